// A parser for PMI_process_mapping. The text comes from outside, so host numbers
// are checked, and a text that describes no ranks is refused: it would be applied for ever.
#include "libmpi_lite/launch/process_mapping.hpp"

#include <charconv>
#include <cstdint>
#include <limits>
#include <string>

#include "drivers/link/types.hpp"

namespace viaduct::mpi {
namespace {

// Takes the text apart from its beginning. Throws SetupError where the text is not as expected.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : all_(text), rest_(text) {}
  bool ended() const { return rest_.empty(); }
  bool next_is(std::string_view token) const { return rest_.starts_with(token); }
  void take(std::string_view token) {
    if (!next_is(token)) refuse();
    rest_.remove_prefix(token.size());
  }
  int take_number() {
    int number = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (error != std::errc() || number < 0) refuse();
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return number;
  }
  [[noreturn]] void refuse() const {
    throw base::SetupError("the process manager's PMI_process_mapping '" + std::string(all_) +
                           "' does not say which processes share a host");
  }

 private:
  std::string_view all_, rest_;
};

}  // namespace

std::vector<int> hosts_of_ranks(std::string_view mapping, int size) {
  const auto wanted = static_cast<std::size_t>(size);
  std::vector<int> hosts;
  // One round applies the whole text once.
  while (hosts.size() < wanted) {
    Scanner text(mapping);
    const std::size_t before = hosts.size();
    text.take("(vector");
    while (!text.next_is(")")) {
      text.take(",(");
      const int first = text.take_number();
      text.take(",");
      const int count = text.take_number();
      text.take(",");
      const int each = text.take_number();
      text.take(")");
      // The hosts [first, end). Host numbers must fit an int.
      const std::int64_t end = std::int64_t{first} + count;
      if (end > std::int64_t{std::numeric_limits<int>::max()} + 1) text.refuse();
      for (std::int64_t host = first; host < end && hosts.size() < wanted; ++host)
        for (int i = 0; i < each && hosts.size() < wanted; ++i)
          hosts.push_back(static_cast<int>(host));
    }
    text.take(")");
    if (!text.ended() || hosts.size() == before) text.refuse();
  }
  return hosts;
}

}  // namespace viaduct::mpi
