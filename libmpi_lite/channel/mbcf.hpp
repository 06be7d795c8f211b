// The MPI channel over Memory-Based Communication Facilities (docs/mbcf.md), after MPI/MBCF
// ("MPI/MBCF with the NAS Parallel Benchmarks", EuroPVM/MPI 1999).
//
//  * A control message is an entry in the Memory-Based FIFO of the receiver. The receiver hands the
//    entry to the sink in place.
//  * A long transfer is a Remote Write into the receiver's buffer. The buffer is exported as a
//    segment for this transfer only. The write carries an entry for the FIFO (write with notify):
//    it is in the FIFO when the data is in place, and tells the receiver. With short data the head
//    of the message is in that entry, too. With
//    NetConfig::remote_write off the data goes as entries, too: pieces, which the receiver copies.
//
// The channel owns the engine (through NetChannel), and the engine owns the FIFO. Thread rule: that
// of Channel. channel/net.hpp has what this channel shares with StarT-X.
#pragma once

#include "drivers/base/slot_map.hpp"
#include "drivers/mbcf/engine.hpp"
#include "libmpi_lite/channel/net.hpp"

namespace viaduct::mpi {

// What the channel keeps for each process of the job.
struct MbcfPeer : NetPeer {
  mbcf::Key fifo;         // of the peer's FIFO, from its endpoint address or its introduction
  mbcf::WriterId writer;  // this process's writing end of that FIFO
  std::size_t max_single_frame = 0;  // bytes of the largest control message that fits one frame
};

template <link::PacketDevice D>
class MbcfChannel final
    : public NetChannel<MbcfChannel<D>, D, mbcf::Engine<D>, mbcf::EngineConfig, MbcfPeer> {
 public:
  // Creates the FIFO and publishes the endpoint address. `fifo`: bytes of this process's FIFO; it
  // gets more if that is not enough for a few messages of the largest size. Throws SetupError.
  MbcfChannel(ChannelSink& sink, Launch& launch, std::shared_ptr<D> device, const NetConfig& config,
              std::size_t fifo, ClockOf<D> clock = {});

  static constexpr std::size_t kRemoteKeyBytes = sizeof(mbcf::Key);
  static constexpr const auto& kDriverCounterInfo = mbcf::kCounterInfo;
  static constexpr bool kWritesNow = true;

  const char* name() const override { return "mbcf"; }
  bool send_control(int to, Bytes head, Bytes body) override;
  bool open_receive(int from, MutableBytes into, const RemoteKey* offered, Cookie cookie,
                    RemoteKey& remote_key) override;
  void close_receive(int from, const RemoteKey& remote_key) override;
  bool start_send(int to, Bytes data, const RemoteKey& remote_key, Cookie cookie) override;
  bool write_now(int to, Bytes data, const RemoteKey& remote_key, Bytes head) override;

 private:
  using Net = NetChannel<MbcfChannel<D>, D, mbcf::Engine<D>, mbcf::EngineConfig, MbcfPeer>;
  friend Net;
  using Net::driver_, Net::sink_, Net::peer, Net::now, Net::ready, Net::lost;

  // A receive that is open for one Remote Write, or for pieces. Its key names it, also to the
  // sender.
  struct Receive {
    mbcf::Key key;  // of the buffer; Key{}: none is open
    Cookie cookie = 0;
    int from = -1;  // rank of the sender
    MutableBytes into;
    std::size_t arrived = 0;  // bytes that have come in pieces
  };
  // A Remote Write that has not completed, or a transfer in pieces that is not wholly sent.
  struct Send {
    Cookie cookie;
    // In pieces:
    int to;
    Bytes data;
    RemoteKey remote_key;
    std::size_t sent;  // bytes
    bool whole;        // the last piece is sent, too
  };
  struct SendId {
    std::uint32_t value = 0;
  };
  // A control message that does not fit a frame, until it has been answered. Its slot keeps the
  // copy's memory for the next message.
  struct LongEntry {
    std::unique_ptr<std::byte[]> copy;  // of the body; used if the link had no room for all of it
  };
  struct LongEntryId {
    std::uint32_t value = 0;
  };

  // The functions that NetChannel calls; net.hpp says what each one does.
  bool receive(std::size_t most);
  bool take_completions();
  bool send_introduction(int rank);
  void store_key(MbcfPeer& peer, std::uint64_t key) { peer.fifo = {key}; }
  void end_transfers(int rank);
  std::size_t transfers() const { return sends_.size() + long_entries_.size(); }
  std::string detail() const;

  // Appends an entry to the peer's FIFO; results as send_control().
  bool append(int to, Bytes head, Bytes body, const mbcf::Options& options);
  bool append_long(int to, Bytes head, Bytes body);
  // What an issued request means for a caller of send_control() or start_send(): whether it was
  // accepted. If it was refused for ever, the peer is marked lost, and the request counts as
  // accepted: it vanishes. `refused`: it was not issued, so there will be no completion.
  bool accepted(int to, const mbcf::Issued& issued, bool& refused);
  // An entry that channels send each other: an introduction, or the end of a long transfer.
  [[gnu::noinline]] void on_channel_message(link::PeerId from, Bytes entry);
  // write_now() of more than a frame. `last`: the most data that the last request takes.
  bool write_row(int to, mbcf::Key key, Bytes data, std::size_t last, const mbcf::Then& then);
  void on_written(link::PeerId from, Bytes entry);
  void on_piece(Bytes entry);
  // Sends what there is room for of a transfer in pieces.
  void send_pieces(Send& send);
  // The same for all such transfers, and reports those that are sent; true: something was done.
  bool send_pieces();
  // Withdraws the key, so that nothing is written to the buffer any more.
  Cookie end_receive(Receive& receive);
  // The receive with this key; nullptr: it is over, or never was.
  Receive* find_receive(mbcf::Key key);
  void complete(const mbcf::Completion& completion);

  const bool remote_write_;  // NetConfig::remote_write
  mbcf::Fifo* fifo_;         // this process receives control messages here; owned by the engine
  std::vector<Receive> receives_;  // by the place of their key in the engine's table
  // Their slots are made when they are first needed: a job may never have so many transfers.
  base::SlotMap<Send, SendId> sends_;                   // the slot is in the request's context
  base::SlotMap<LongEntry, LongEntryId> long_entries_;  // likewise
  std::vector<base::Slot> in_pieces_;  // of sends_: those whose data goes in pieces, oldest first
};

// Opens the channel on `port`, or, where that is nullptr, on the port of this process
// (VIADUCT_PORTS), and publishes its endpoint address. A fence of the job has to follow before
// anything is sent. Throws SetupError.
std::unique_ptr<Channel> open_mbcf_channel(ChannelSink& sink, Launch& launch,
                                           std::shared_ptr<port::Port> port);

}  // namespace viaduct::mpi
