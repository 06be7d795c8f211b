// NameService: host names to NIC addresses and back. It asks a file first (VIADUCT_VIPL_HOSTS),
// then the host database (/etc/hosts, DNS, or what nsswitch.conf says).
//
// Immutable after construction, so any thread may ask it. A look-up may block for as long as DNS
// does.
#pragma once

#include <optional>
#include <string>

#include "libvipl/connection/address.hpp"
#include "libvipl/names/hosts_file.hpp"

namespace viaduct::vipl {

class NameService {
 public:
  // `self`: the NIC's own address. `hosts_file`: a path; empty: no file. Throws vi::SetupError if
  // the file cannot be read.
  NameService(const NicAddress& self, const std::string& hosts_file);

  // Address number `number` of the host. nullopt: the name is unknown, or has fewer addresses. An
  // address as text means itself.
  std::optional<NicAddress> address_of(const std::string& name, std::size_t number) const;
  // The name of the host with this address. Empty: none is known.
  std::string name_of(const NicAddress& address) const;

 private:
  std::vector<NicAddress> ask_database(const std::string& name) const;
  // An address of the loopback network becomes the NIC's own.
  NicAddress as_seen_from_nic(const NicAddress& address) const;

  const NicAddress self_;
  HostsFile file_;
};

}  // namespace viaduct::vipl
