// Names of hosts to NIC addresses and back: first a file (VIADUCT_VIPL_HOSTS), then the host
// database (/etc/hosts, DNS, whatever nsswitch.conf says).
#pragma once

#include <optional>
#include <string>

#include "libvipl/connection/address.hpp"
#include "libvipl/names/hosts_file.hpp"

namespace viaduct::vipl {

class NameService {
 public:
  // Throws vi::SetupError when there is a file and it cannot be read. Empty: no file.
  NameService(const NicAddress& self, const std::string& hosts_file);

  // The address with that number; nullopt: the name is not known, or has not so many. Names that
  // are addresses mean themselves. May ask the network.
  std::optional<NicAddress> address_of(const std::string& name, std::size_t number) const;
  // Empty: none is known.
  std::string name_of(const NicAddress& address) const;

 private:
  std::vector<NicAddress> ask_database(const std::string& name) const;
  NicAddress as_seen_from_nic(const NicAddress& address) const;

  const NicAddress self_;
  HostsFile file_;
};

}  // namespace viaduct::vipl
