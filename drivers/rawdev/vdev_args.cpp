// Takes the pairs that DPDK's parser finds. Strict, because a mistyped argument would otherwise be
// silently ignored: unknown keys, empty values and zeros are refused with a sentence.
#include "drivers/rawdev/vdev_args.hpp"

#include <charconv>
#include <limits>

#include "drivers/port/kvargs.hpp"

namespace viaduct::rawdev {
namespace {

class Parser {
 public:
  explicit Parser(std::initializer_list<NumberArgument> numbers) : numbers_(numbers) {}

  std::string parse(const std::string& text) {
    for (const auto& [key, value] : port::Kvargs(text)) {
      if (value == nullptr || *value == '\0')
        throw_bad_argument(std::string(key) + (value == nullptr ? "" : "=") + " is not key=value");
      set(key, value);
    }
    if (port_.empty()) throw_bad_argument("no port was named");
    return port_;
  }

 private:
  [[noreturn]] void throw_bad_argument(const std::string& what) const {
    std::string accepted = "port=<name or id of an ethdev>";
    for (const NumberArgument& n : numbers_) accepted.append(" ").append(n.name).append("=<int>");
    throw base::SetupError(what + "; accepted are " + accepted);
  }

  void set(std::string_view key, std::string_view value) {
    if (key == "port") {
      port_ = "port:" + std::string(value);
      return;
    }
    for (const NumberArgument& n : numbers_)
      if (n.name == key)
        return std::visit(
            [&](auto* into) { *into = number<std::decay_t<decltype(*into)>>(key, value); }, n.into);
    throw_bad_argument("there is no argument " + std::string(key));
  }

  // 0 is refused, because it means "default" in the configuration structures.
  template <class Number>
  Number number(std::string_view key, std::string_view value) const {
    Number n = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), n);
    if (error != std::errc() || end != value.data() + value.size() || n == 0)
      throw_bad_argument(std::string(key) + "=" + std::string(value) +
                         " is not a whole number from 1 to " +
                         std::to_string(std::numeric_limits<Number>::max()));
    return n;
  }

  const std::initializer_list<NumberArgument> numbers_;
  std::string port_;
};

}  // namespace

std::string parse_vdev_args(const std::string& text,
                            std::initializer_list<NumberArgument> numbers) {
  return Parser(numbers).parse(text);
}

}  // namespace viaduct::rawdev
