// Hosts of a VIA network, by name: a file for networks that the host database knows nothing of.
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

// "10.9.0.2" or "10.9.0.2:18650"; nullopt: neither.
std::optional<NicAddress> parse_nic_address(std::string_view text, std::uint16_t default_port);

class HostsFile {
 public:
  HostsFile() = default;
  // Lines that begin with something else than an address are left out: M-VIA's files have Ethernet
  // addresses, which say nothing here.
  HostsFile(std::string_view text, std::uint16_t default_port);

  // All addresses of a host, in the file's order. Case does not count, and a name without a domain
  // means the first that has one.
  std::vector<NicAddress> addresses_of(std::string_view name) const;
  // The first name of the first line with that address; empty: none.
  std::string name_of(const NicAddress& address) const;

 private:
  struct Line {
    NicAddress address;
    std::vector<std::string> names;
  };

  std::vector<Line> lines_;
};

}  // namespace viaduct::vipl
