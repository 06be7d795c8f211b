// Messages over StarT-X (docs/startx.md), after MPI-StarT.
//
//  * A control message is one packet, handed to the sink where it lies, or several, which share
//    frames and are put together at the receiver. They go with low priority and in order; the
//    user's header word tells which part of what message a packet is.
//  * A long transfer is remote DMA under a right that the receiver has granted.
#pragma once

#include "drivers/startx_emul/niu.hpp"
#include "libmpi_lite/channel/net.hpp"

namespace viaduct::mpi {

struct StartxPeer : NetPeer {
  struct Message {
    std::vector<std::byte> bytes;  // room for the largest, once it is needed
    std::size_t size = 0;          // 0: none
    std::size_t at = 0;            // so much has been sent, or has come
  };
  Message rest;      // of a message that has found no room
  Message arriving;  // in several packets
};

template <link::PacketDevice D>
class StartxChannel final
    : public NetChannel<StartxChannel<D>, D, startx::Niu<D>, startx::NiuConfig, StartxPeer> {
 public:
  StartxChannel(ChannelSink& sink, Launch& launch, std::shared_ptr<D> device,
                const NetConfig& config, ClockOf<D> clock = {});

  const char* name() const override { return "startx"; }
  bool send_control(int to, Bytes head, Bytes body) override;
  bool open_receive(int from, MutableBytes into, const RemoteKey* offered, Cookie cookie,
                    RemoteKey& remote_key) override;
  void close_receive(int from, const RemoteKey& remote_key) override;
  bool start_send(int to, Bytes data, const RemoteKey& remote_key, Cookie cookie) override;

 private:
  using Net = NetChannel<StartxChannel<D>, D, startx::Niu<D>, startx::NiuConfig, StartxPeer>;
  friend Net;
  using Net::driver_, Net::sink_, Net::peer, Net::now, Net::ready, Net::lost;

  struct Transfer {
    startx::TransferId id;
    startx::RegionId region;
    Cookie cookie;
  };

  // For NetChannel.
  bool receive(std::size_t most);
  bool take_completions();
  bool introduce(int rank);
  void learn(StartxPeer&, std::uint64_t) {}
  void end_transfers(int) {}  // they have completions
  std::size_t transfers() const { return sending_ + rests_.size() + !driver_.rdma().idle(); }
  std::string detail() const;
  std::string driver_counted() const;

  bool send_pieces(int to, Bytes head, Bytes body);
  bool send_rests();
  link::SendStatus send_packets(const StartxPeer& peer, Bytes head, Bytes body, std::size_t& at);
  void on_packet(const startx::Received& packet);
  [[gnu::noinline]] void on_part(int from, const startx::Received& packet);
  Transfer& transfer(startx::TransferId id) { return transfers_[id.value & 0xffff]; }

  startx::Rdma<D>& rdma() { return driver_.rdma(); }

  std::vector<int> rests_;           // ranks that a rest waits for
  std::vector<Transfer> transfers_;  // by the slot in their name
  std::size_t sending_ = 0;
};

// On `port`, or where that is nullptr on the one of this process (VIADUCT_PORTS); publishes its
// address. A fence has to follow before
// anything is sent. Throws SetupError.
std::unique_ptr<Channel> open_startx_channel(ChannelSink& sink, Launch& launch,
                                             std::shared_ptr<port::Port> port);

}  // namespace viaduct::mpi
