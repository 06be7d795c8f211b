// The one exception of the drivers.
#pragma once

#include <cerrno>
#include <stdexcept>
#include <string>

#include "drivers/base/cxx20.hpp"

namespace viaduct::base {

// Set-up has failed. what() is a sentence for the user that says what failed, why, and what to do
// about it. Constructors and open functions throw this; nothing on the data path does.
class SetupError : public std::runtime_error {
 public:
  // `number`: an errno, for C APIs that return a number only.
  explicit SetupError(const std::string& sentence, int number = EIO)
      : std::runtime_error(sentence), number_(number) {}
  int number() const { return number_; }

 private:
  int number_;
};

}  // namespace viaduct::base
