// Error: how the library's own code reports that a call cannot be done. The functions of api/ catch
// it and hand it to the communicator's error handler (MPI 5.0, section 9.3). Errors at start-up,
// which concern the environment rather than a call, are base::SetupError instead.
#pragma once

#include <stdexcept>
#include <string>

namespace viaduct::mpi {

// `code` is an error class, or a code that the user has added. `what()` is one sentence that names
// the argument and its value, e.g. "rank 7 is not in 0..3 of the communicator".
class Error : public std::runtime_error {
 public:
  Error(int code, const std::string& what) : std::runtime_error(what), code_(code) {}
  int code() const { return code_; }

 private:
  int code_;
};

}  // namespace viaduct::mpi
