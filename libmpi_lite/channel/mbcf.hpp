// Messages over Memory-Based Communication Facilities (docs/mbcf.md), after MPI/MBCF.
//
//  * A control message is an entry in the Memory-Based FIFO of the receiver, who hands it to the
//    sink where it lies.
//  * A long transfer is a Remote Write into the receiver's buffer, exported for this transfer only,
//    and behind the data an entry in the FIFO that tells the receiver.
#pragma once

#include "drivers/mbcf/engine.hpp"
#include "libmpi_lite/channel/net.hpp"

namespace viaduct::mpi {

struct MbcfPeer : NetPeer {
  mbcf::Key fifo;            // where it receives
  mbcf::WriterId writer;     // our end of that
  std::size_t in_frame = 0;  // bytes of the largest message that fits one
};

template <link::PacketDevice D>
class MbcfChannel final
    : public NetChannel<MbcfChannel<D>, D, mbcf::Engine<D>, mbcf::EngineConfig, MbcfPeer> {
 public:
  // `fifo`: bytes of this process's FIFO; more if that is not enough for a few messages.
  MbcfChannel(ChannelSink& sink, Launch& launch, std::shared_ptr<D> device, const NetConfig& config,
              std::size_t fifo, ClockOf<D> clock = {});

  const char* name() const override { return "mbcf"; }
  bool send_control(int to, Bytes head, Bytes body) override;
  bool open_receive(int from, MutableBytes into, const RemoteKey* offered, Cookie cookie,
                    RemoteKey& remote_key) override;
  void close_receive(int from, const RemoteKey& remote_key) override;
  bool start_send(int to, Bytes data, const RemoteKey& remote_key, Cookie cookie) override;

 private:
  using Net = NetChannel<MbcfChannel<D>, D, mbcf::Engine<D>, mbcf::EngineConfig, MbcfPeer>;
  friend Net;
  using Net::driver_, Net::sink_, Net::peer, Net::now, Net::ready, Net::lost;

  struct Receive {
    mbcf::Key key;  // of the buffer; none: this place is free
    Cookie cookie;
    int from;
  };
  struct Send {
    Cookie cookie;
  };
  // A control message that does not fit a frame, until it has been answered.
  struct LongEntry {
    std::unique_ptr<std::byte[]> copy;  // of its body, used if the link had no room for all of it
  };

  // For NetChannel.
  bool receive(std::size_t most);
  bool take_completions();
  bool introduce(int rank);
  void learn(MbcfPeer& peer, std::uint64_t key) { peer.fifo = {key}; }
  void end_transfers(int rank);
  std::size_t transfers() const { return sends_.used() + long_entries_.used(); }
  std::string detail() const;
  std::string driver_counted() const;

  bool append(int to, Bytes head, Bytes body, const mbcf::Options& options);
  bool append_long(int to, Bytes head, Bytes body);
  // Whether a request was taken. If it never will be, the peer is given up, and it counts as taken.
  bool taken(int to, const mbcf::Issued& issued, bool& refused);
  [[gnu::noinline]] void on_own_entry(link::PeerId from, Bytes entry);
  void on_written(Bytes entry);
  Cookie end_receive(std::uint32_t name);
  void complete(const mbcf::Completion& completion);

  mbcf::Fifo* fifo_;
  SlotTable<Receive> receives_;
  SlotTable<Send> sends_;
  SlotTable<LongEntry> long_entries_;
};

// On `port`, or where that is nullptr on the one of this process (VIADUCT_PORTS); publishes its
// address. A fence has to follow before
// anything is sent. Throws SetupError.
std::unique_ptr<Channel> open_mbcf_channel(ChannelSink& sink, Launch& launch,
                                           std::shared_ptr<port::Port> port);

}  // namespace viaduct::mpi
