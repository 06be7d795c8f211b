// The MPI channel over StarT-X (docs/startx.md), after MPI-StarT ("MPI-StarT: Delivering Network
// Performance to Numerical Applications", SC98).
//
//  * A control message is one PIO packet, which the receiver hands to the sink in place; or several
//    packets, which share frames and which the receiver puts together. They go with low priority
//    and in order. The user's header word (tag) tells which part of what message a packet is.
//  * A long transfer is remote DMA (RDMA) under a right that the receiver has granted. The right is
//    the remote key.
//
// The channel owns the NIU (through NetChannel). Thread rule: that of Channel. channel/net.hpp has
// what this channel shares with MBCF.
#pragma once

#include "drivers/startx_emul/niu.hpp"
#include "libmpi_lite/channel/net.hpp"

namespace viaduct::mpi {

// What the channel keeps for each process of the job.
struct StartxPeer : NetPeer {
  // A control message in several packets, partly sent or partly received.
  struct Message {
    std::vector<std::byte> bytes;  // room for the largest, once it is needed
    std::size_t size = 0;          // of the whole message; 0: there is none
    std::size_t offset = 0;        // so many bytes have been sent, or have come
  };
  Message unsent;    // to the peer: the link had no room for all packets of this message
  Message arriving;  // from the peer
};

template <link::PacketDevice D>
class StartxChannel final
    : public NetChannel<StartxChannel<D>, D, startx::Niu<D>, startx::NiuConfig, StartxPeer> {
 public:
  // Publishes the endpoint address. Throws SetupError.
  StartxChannel(ChannelSink& sink, Launch& launch, std::shared_ptr<D> device,
                const NetConfig& config, ClockOf<D> clock = {});

  static constexpr std::size_t kRemoteKeyBytes = RemoteKey::kMax;
  static constexpr const auto& kDriverCounterInfo = startx::kCounterInfo;
  static constexpr bool kWritesNow = false;

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

  // What the channel knows of a transfer of the NIU, besides the NIU itself.
  struct Transfer {
    startx::TransferId id;
    startx::RegionId region;  // the buffer, registered for this transfer only
    Cookie cookie;
  };

  // The functions that NetChannel calls; net.hpp says what each one does.
  bool receive(std::size_t most);
  bool take_completions();
  bool send_introduction(int rank);
  void store_key(StartxPeer&, std::uint64_t) {}
  void end_transfers(int) {}  // each ends by a completion with peer_down
  std::size_t transfers() const { return sending_ + unsent_ranks_.size() + !driver_.rdma().idle(); }
  std::string detail() const;

  // A message of several packets, or one that has to wait behind such a message.
  bool send_pieces(int to, Bytes head, Bytes body);
  // Goes on with all messages that are partly sent; true: some packet has been sent.
  bool send_unsent();
  // Sends the packets of a message from byte `offset` on. Afterwards `offset` says how far it got.
  // Any status but `sent` and `try_again`: the peer is down.
  link::SendStatus send_packets(const StartxPeer& peer, Bytes head, Bytes body,
                                std::size_t& offset);
  void on_packet(const startx::Received& packet);
  // A packet that is not a whole message.
  [[gnu::noinline]] void on_other_packet(int from, const startx::Received& packet);
  Transfer& transfer(startx::TransferId id) { return transfers_[id.value & 0xffff]; }

  startx::Rdma<D>& rdma() { return driver_.rdma(); }

  std::vector<int> unsent_ranks_;    // ranks whose `unsent` is not empty
  std::vector<Transfer> transfers_;  // by the slot in their TransferId (its low 16 bits)
  std::size_t sending_ = 0;          // transfers begun by start_send() that have not completed
};

// Opens the channel on `port`, or, where that is nullptr, on the port of this process
// (VIADUCT_PORTS), and publishes its endpoint address. A fence of the job has to follow before
// anything is sent. Throws SetupError.
std::unique_ptr<Channel> open_startx_channel(ChannelSink& sink, Launch& launch,
                                             std::shared_ptr<port::Port> port);

}  // namespace viaduct::mpi
