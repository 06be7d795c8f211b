#pragma once

#include <cerrno>
#include <stdexcept>
#include <string>

#include "drivers/base/cxx20.hpp"

namespace viaduct::base {

// Setting up failed: one sentence that says what, why and what to do about it. Thrown by
// constructors and open functions only, never on the data path.
class SetupError : public std::runtime_error {
 public:
  // `number`: an errno, for C APIs that have no room for a sentence.
  explicit SetupError(const std::string& sentence, int number = EIO)
      : std::runtime_error(sentence), number_(number) {}
  int number() const { return number_; }

 private:
  int number_;
};

}  // namespace viaduct::base
