// Parsing and searching the hosts file (VIADUCT_VIPL_HOSTS). name_service.cpp reads it from disk.
#include "libvipl/names/hosts_file.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include <strings.h>

namespace viaduct::vipl {
namespace {

// Host names do not distinguish case.
bool equal(const std::string& a, const std::string& b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

// Asked for without a domain, "node2" means "node2.cluster" as well.
bool means(const std::string& asked, const std::string& name) {
  if (equal(asked, name)) return true;
  return asked.find('.') == std::string::npos && equal(asked, name.substr(0, name.find('.')));
}

}  // namespace

std::optional<NicAddress> parse_nic_address(std::string_view text, std::uint16_t default_port) {
  NicAddress out{{}, default_port};
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string ip(text.substr(0, colon));
  if (::inet_pton(AF_INET, ip.c_str(), out.ip.data()) != 1) return std::nullopt;
  if (colon == text.size()) return out;
  const char* const end = text.data() + text.size();
  const auto [stop, wrong] = std::from_chars(text.data() + colon + 1, end, out.port);
  if (wrong != std::errc() || stop != end || out.port == 0) return std::nullopt;
  return out;
}

HostsFile::HostsFile(std::string_view text, std::uint16_t default_port) {
  std::istringstream in{std::string(text)};
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string word;
    words >> word;
    const auto address = parse_nic_address(word, default_port);
    if (!address) continue;
    lines_.push_back({*address, {}});
    while (words >> word) lines_.back().names.push_back(word);
  }
}

std::vector<NicAddress> HostsFile::addresses_of(std::string_view name) const {
  std::vector<NicAddress> out;
  const std::string asked(name);
  for (const Line& line : lines_)
    if (std::ranges::any_of(line.names, [&](const auto& known) { return means(asked, known); }))
      out.push_back(line.address);
  return out;
}

std::string HostsFile::name_of(const NicAddress& address) const {
  const auto found = std::ranges::find_if(
      lines_, [&](const Line& line) { return line.address == address && !line.names.empty(); });
  return found == lines_.end() ? "" : found->names.front();
}

}  // namespace viaduct::vipl
