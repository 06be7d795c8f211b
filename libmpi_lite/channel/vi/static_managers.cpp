// The static connection managers: all connections are made in MPI_Init. They are what programs have
// without on-demand connections, and are there for comparison.
#include <algorithm>
#include <thread>

#include "drivers/base/setup_error.hpp"
#include "libmpi_lite/channel/vi/vi_channel.hpp"

namespace viaduct::mpi {
namespace {

using std::chrono::steady_clock;

// How long MPI_Init waits for another process.
constexpr std::chrono::seconds kPatience{120};
constexpr VIP_ULONG kPatienceMs = 120'000;
// The pause after a server did not wait for this client: it serves the others before.
constexpr std::chrono::milliseconds kShortestPause{1}, kLongestPause{20};

}  // namespace

void ViChannel::connect_all() {
  switch (config_.manager) {
    case ViManager::on_demand: return;
    case ViManager::static_peer: return connect_peers();
    case ViManager::static_client_server: return connect_clients_and_servers();
  }
}

void ViChannel::fail_start(const ViPeer& p, std::string_view why) {
  throw base::SetupError("rank " + std::to_string(launch_.rank()) + " cannot connect to rank " +
                         std::to_string(p.rank) + ": " + std::string(why));
}

// Peer to peer: whoever answers first is connected first.
void ViChannel::connect_peers() {
  const auto until = steady_clock::now() + kPatience;
  for (ViPeer& p : peers_)
    if (p.rank != launch_.rank()) want(p);
  wait_for_all(until);
}

void ViChannel::wait_for_all(steady_clock::time_point until) {
  for (;;) {
    const auto missing = std::find_if(peers_.begin(), peers_.end(), [&](const ViPeer& p) {
      return p.rank != launch_.rank() && p.state != State::connected;
    });
    if (missing == peers_.end()) return;
    if (missing->state == State::lost) fail_start(*missing, missing->end_reason);
    if (steady_clock::now() > until) fail_start(*missing, vi_reason(VIP_TIMEOUT));
    if (!poll()) sleep(kShortestPause, -1);
  }
}

// As MVICH does it: in the order of ranks, and the lower rank of a pair is the server.
void ViChannel::connect_clients_and_servers() {
  const auto own = static_cast<std::size_t>(launch_.rank());
  for (std::size_t rank = 0; rank < own; ++rank) connect_to_server(peers_[rank]);
  for (std::size_t rank = own + 1; rank < peers_.size(); ++rank) connect_to_client(peers_[rank]);
  wait_for_all(steady_clock::now() + kPatience);
}

void ViChannel::connect_to_server(ViPeer& server) {
  if (!resolve(server) || !make_vi(server)) fail_start(server, server.end_reason);
  server.state = State::asking;
  VIP_ADDRESS_ROOM local = nic_.address().with(nic_.client(launch_.rank()));
  VIP_ADDRESS_ROOM remote = server.address->with(nic_.client(launch_.rank()));
  const auto until = steady_clock::now() + kPatience;
  auto pause = kShortestPause;
  VIP_RETURN result = VIP_NO_MATCH;
  while (result == VIP_NO_MATCH && steady_clock::now() < until) {
    VIP_VI_ATTRIBUTES attributes;
    result =
        VipConnectRequest(server.vi, &local.Address, &remote.Address, kPatienceMs, &attributes);
    if (result != VIP_NO_MATCH) break;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
  if (result != VIP_SUCCESS) fail_start(server, vi_reason(result));
  greet(server);
}

void ViChannel::connect_to_client(ViPeer& client) {
  if (!resolve(client) || !make_vi(client)) fail_start(client, client.end_reason);
  client.state = State::asking;
  VIP_ADDRESS_ROOM local = nic_.address().with(nic_.client(client.rank));
  VIP_ADDRESS_ROOM remote{};
  VIP_VI_ATTRIBUTES attributes{};
  VIP_CONN_HANDLE request{};
  VIP_RETURN result = VipConnectWait(nic_.handle(), &local.Address, kPatienceMs, &remote.Address,
                                     &attributes, &request);
  if (result == VIP_SUCCESS) result = VipConnectAccept(request, client.vi);
  if (result != VIP_SUCCESS) fail_start(client, vi_reason(result));
  greet(client);
}

}  // namespace viaduct::mpi
