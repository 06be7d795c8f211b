#pragma once

#include <stdexcept>

namespace viaduct {

// Setting up failed: one sentence that says what, why and what to do about it. Thrown by
// constructors and open functions only, never on the data path.
class SetupError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace viaduct
