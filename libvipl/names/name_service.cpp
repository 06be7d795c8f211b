// The look-ups behind VipNSGetHostByName and VipNSGetHostByAddr (api/names.cpp counts the users).
#include "libvipl/names/name_service.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>

#include "drivers/vi_over_verbs/verbs.hpp"

namespace viaduct::vipl {
namespace {

constexpr std::uint8_t kLoopbackNet = 127;

HostsFile read_hosts(const std::string& path, std::uint16_t default_port) {
  if (path.empty()) return {};
  std::ifstream in(path);
  std::string text;
  for (std::string line; std::getline(in, line);) text.append(line).append("\n");
  if (!in.is_open() || in.bad())
    throw vi::SetupError("VIADUCT_VIPL_HOSTS=" + path + ": " + std::strerror(errno) +
                         "; name a file of addresses and host names, or unset it");
  return {text, default_port};
}

}  // namespace

NameService::NameService(const NicAddress& self, const std::string& hosts_file)
    : self_(self), file_(read_hosts(hosts_file, self.port)) {}

std::optional<NicAddress> NameService::address_of(const std::string& name,
                                                  std::size_t number) const {
  if (const auto address = parse_nic_address(name, self_.port)) {
    if (number != 0) return std::nullopt;
    return as_seen_from_nic(*address);
  }
  std::vector<NicAddress> all = file_.addresses_of(name);
  if (all.empty()) all = ask_database(name);
  if (number >= all.size()) return std::nullopt;
  return all[number];
}

std::string NameService::name_of(const NicAddress& address) const {
  std::string in_file = file_.name_of(address);
  if (!in_file.empty()) return in_file;
  sockaddr_in socket{};
  socket.sin_family = AF_INET;
  std::memcpy(&socket.sin_addr, address.ip.data(), address.ip.size());
  std::array<char, NI_MAXHOST> name{};
  const int result = ::getnameinfo(reinterpret_cast<const sockaddr*>(&socket), sizeof socket,
                                   name.data(), name.size(), nullptr, 0, NI_NAMEREQD);
  if (result == 0) return name.data();
  // The NIC's own address is mostly in no database, but the host's own name leads to it.
  if (address.ip != self_.ip || ::gethostname(name.data(), name.size() - 1) != 0) return "";
  return name.data();
}

std::vector<NicAddress> NameService::ask_database(const std::string& name) const {
  addrinfo wanted{};
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_STREAM;  // else each address comes once for each type
  addrinfo* found = nullptr;
  if (::getaddrinfo(name.c_str(), nullptr, &wanted, &found) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  std::vector<NicAddress> out;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    NicAddress address{{}, self_.port};
    const auto* socket = reinterpret_cast<const sockaddr_in*>(entry->ai_addr);
    std::memcpy(address.ip.data(), &socket->sin_addr, address.ip.size());
    out.push_back(as_seen_from_nic(address));
  }
  return out;
}

// Debian gives a host's own name the address 127.0.1.1. No NIC has that address; this host's NIC is
// meant.
NicAddress NameService::as_seen_from_nic(const NicAddress& address) const {
  const bool other_loopback = address.ip[0] == kLoopbackNet && self_.ip[0] != kLoopbackNet;
  return other_loopback ? NicAddress{self_.ip, address.port} : address;
}

}  // namespace viaduct::vipl
