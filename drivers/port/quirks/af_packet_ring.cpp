#include "drivers/port/quirks/af_packet_ring.hpp"

#include <net/ethernet.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <atomic>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>

namespace viaduct::port {
namespace {

// This process's packet socket that is bound to the interface; -1: none.
int find_socket(const std::string& interface) {
  const auto index = static_cast<int>(if_nametoindex(interface.c_str()));
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const std::string name = entry.path().filename();
    int fd = -1;
    std::from_chars(name.data(), name.data() + name.size(), fd);
    sockaddr_ll bound{};
    socklen_t size = sizeof bound;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) == 0 &&
        bound.sll_family == AF_PACKET && bound.sll_ifindex == index && bound.sll_protocol != 0)
      return fd;
  }
  return -1;
}

}  // namespace

// The driver maps both rings of a socket in one piece: receive, then transmit, of one size.
PacketRing::PacketRing(const std::string& interface, std::size_t slot_bytes, std::size_t slots)
    : socket_(find_socket(interface)), slot_bytes_(slot_bytes) {
  int version = -1;
  socklen_t size = sizeof version;
  struct stat status {};
  if (getsockopt(socket_, SOL_PACKET, PACKET_VERSION, &version, &size) != 0 ||
      version != TPACKET_V2 || fstat(socket_, &status) != 0)
    return;
  const std::string name = "socket:[" + std::to_string(status.st_ino) + "]";
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t first = 0, last = 0;
    if (!line.ends_with(name) ||
        std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR, &first, &last) != 2)
      continue;
    const std::size_t ring = slots * slot_bytes;
    if (last - first != 2 * ring) continue;
    slots_ = reinterpret_cast<std::byte*>(first + ring);
    count_ = slots;
    return;
  }
}

bool PacketRing::waits(std::size_t index) const {
  const std::uint32_t status = std::atomic_ref(slot(index)->tp_status).load();
  return status == TP_STATUS_SEND_REQUEST || status == TP_STATUS_WRONG_FORMAT;
}

// The one behind a slot that is free or under way.
std::size_t PacketRing::first_waiting() const {
  for (std::size_t i = 0; i < count_; ++i)
    if (waits(i) && !waits(i == 0 ? count_ - 1 : i - 1)) return i;
  return suspect_;  // the ring is full of them
}

void PacketRing::on_send_refused(base::Time now) {
  if (suspect_ != kNone && waits(suspect_) && now - suspected_since_ < kBusy) return;
  const std::size_t first = first_waiting();
  if (first != suspect_ || first == kNone) {
    suspect_ = first;
    suspected_since_ = now;
    return;
  }
  slot(first)->tp_len = ETHER_HDR_LEN;
  std::atomic_ref(slot(first)->tp_status).store(TP_STATUS_SEND_REQUEST);
  suspect_ = kNone;
  ::sendto(socket_, nullptr, 0, MSG_DONTWAIT, nullptr, 0);
}

}  // namespace viaduct::port
