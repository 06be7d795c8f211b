#include "drivers/port/quirks/af_xdp_sockets.hpp"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

namespace viaduct::port {

std::vector<XdpSockets::Socket> XdpSockets::present() {
  std::vector<Socket> sockets;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const std::string name = entry.path().filename();
    int fd = -1, domain = 0;
    std::from_chars(name.data(), name.data() + name.size(), fd);
    socklen_t size = sizeof domain;
    struct stat status {};
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_XDP &&
        fstat(fd, &status) == 0)
      sockets.push_back({fd, status.st_ino});
  }
  return sockets;
}

void XdpSockets::end() {
  ours_ = present();
  std::erase_if(ours_, [this](const Socket& socket) {
    return std::find(before_.begin(), before_.end(), socket) != before_.end();
  });
}

std::vector<int> XdpSockets::descriptors() const {
  std::vector<int> descriptors;
  for (const Socket& socket : ours_) descriptors.push_back(socket.fd);
  return descriptors;
}

void XdpSockets::close_left_over() {
  const auto now = present();
  for (const Socket& socket : ours_) {
    if (std::find(now.begin(), now.end(), socket) == now.end()) continue;
    unmap(socket.inode);
    ::close(socket.fd);
  }
  ours_.clear();
}

// The rings that are mapped from a socket keep it alive as well.
void XdpSockets::unmap(ino_t inode) {
  const std::string name = "socket:[" + std::to_string(inode) + "]";
  std::ifstream maps("/proc/self/maps");
  std::vector<std::pair<std::uintptr_t, std::uintptr_t>> ranges;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t first = 0, last = 0;
    if (line.ends_with(name) &&
        std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR, &first, &last) == 2)
      ranges.emplace_back(first, last);
  }
  for (const auto& [first, last] : ranges) munmap(reinterpret_cast<void*>(first), last - first);
}

}  // namespace viaduct::port
