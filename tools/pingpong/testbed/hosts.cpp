// How two real hosts meet (hosts.hpp). Everything after that is the session (session.hpp), the same
// as in a testbed.
#include "tools/pingpong/testbed/hosts.hpp"

#include <cstdio>
#include <iostream>

#include "tools/pingpong/error.hpp"
#include "tools/pingpong/run.hpp"

namespace viaduct::pingpong {

int run_listen(const Options& options) {
  SideConfig config;
  config.devargs = options.port;
  config.mtu = options.mtu;
  config.ip = options.ip;
  Side side(config);
  if (side.has_port()) {
    const std::string address = side.port().address().text();
    std::cout << "port " << options.port << " has address " << address << std::endl;
    if (!side.port().link_up() && !options.port.starts_with("net_memif"))  // whose peer is its link
      std::cout << "its link is down so far: check the cable or the other end of the wire"
                << std::endl;
  }
  // Without an IP address, orders come as raw frames through the port itself.
  if (options.ip.empty()) {
    std::cout << "on the other host: viaduct-pingpong --connect " << side.port().address().text()
              << " --port DEVARGS" << std::endl;
    serve(side, *frame_control(side.port(), nullptr), std::chrono::hours{24 * 365});
    return 0;
  }
  const UniqueFd listener = listening_socket(options.ip, kControlPort);
  std::cout << "on the other host: viaduct-pingpong --connect " << options.ip
            << (side.has_port() ? " --port DEVARGS" : "") << std::endl;
  // After the address was printed, so that a user can start the other side.
  UniqueFd socket = wait_for_client(listener);
  config.peer_ip = peer_ip(socket.get());
  side.set_peer_ip(config.peer_ip);
  serve(side, *socket_control(std::move(socket)), std::chrono::seconds{30});
  return 0;
}

int run_connect(const Options& options) {
  SideConfig config;
  config.client = true;
  config.devargs = options.port;
  config.mtu = options.mtu;
  std::unique_ptr<Control> control;
  const auto address = link::Address::parse(options.connect_to);
  UniqueFd socket;
  // An IPv4 address: TCP first, because the connection tells which of this host's addresses faces
  // the server.
  if (!address) {
    socket = connect_to_server(options.connect_to);
    config.ip = own_ip(socket.get());
    config.peer_ip = options.connect_to;
  }
  Side side(config);
  if (address) {
    // The frames would be sent to this very port and never answered.
    if (*address == side.port().address())
      throw Failure(options.connect_to +
                    " is the address of this side's own port; name that of the other host, which "
                    "viaduct-pingpong --listen prints there");
    // Frames sent before the link is up would be lost.
    side.wait_for_link();
    control = frame_control(side.port(), &*address);
  } else {
    control = socket_control(std::move(socket));
  }
  const auto session = remote_session(side, *control, options.checksum);
  report(options, measure(*session, options));
  return 0;
}

}  // namespace viaduct::pingpong
