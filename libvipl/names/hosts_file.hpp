// HostsFile: names and addresses of the hosts of a VIA network, from a file, for networks that the
// host database does not know. A line has an address and names; # begins a comment:
//
//   # address[:port]    names...
//   10.9.0.2            node2 node2.cluster
//   10.9.0.3:18651      node3
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libvipl/connection/address.hpp"

namespace viaduct::vipl {

// "10.9.0.2" (then the port is `default_port`) or "10.9.0.2:18650". nullopt: neither.
std::optional<NicAddress> parse_nic_address(std::string_view text, std::uint16_t default_port);

// The contents of such a file. Immutable, so any thread may ask it.
class HostsFile {
 public:
  HostsFile() = default;
  // Parses the text. Lines that do not begin with an address are skipped: M-VIA's files have
  // Ethernet addresses, which mean nothing here.
  HostsFile(std::string_view text, std::uint16_t default_port);

  // All addresses of a host, in the order of the file. Case does not matter. A name without a
  // domain means every host of that name, whatever its domain.
  std::vector<NicAddress> addresses_of(std::string_view name) const;
  // The first name of the first line that has this address. Empty: there is none.
  std::string name_of(const NicAddress& address) const;

 private:
  struct Line {
    NicAddress address;
    std::vector<std::string> names;
  };

  std::vector<Line> lines_;
};

}  // namespace viaduct::vipl
