// Layer vipl-rdma: RDMA writes into a ring in the other side's memory. The receiver polls the last
// word of the next packet there. Credit comes back by RDMA writes too; only the exchange of
// addresses is a send and receive.
//
// Memory of each side for data, all of it registered and writable by the other side:
//
//    0           64                 256 (kHead)
//    | Control   | Outgoing         | ring               | staging
//    | comes in  | goes out         | packets come in    | packets go out
#include <atomic>
#include <cstring>

#include "tools/pingpong/layers/messages.hpp"
#include "tools/pingpong/layers/vipl_side.hpp"

namespace viaduct::pingpong {

namespace {

// What the other side writes beside data. `taken` counts up and gives credit.
struct ControlBlock {
  std::uint64_t taken;     // packets that the writer has taken from its ring
  std::uint64_t finished;  // 1: no more will come
};
// Where this side's memory is. Exchanged by one send and receive before the connection is used for
// data.
struct BufferAddresses {
  std::uint64_t control, ring;
  VIP_MEM_HANDLE memory;
};

class ViplRdma {
 public:
  static constexpr bool kLossy = false;

  explicit ViplRdma(const TurnConfig& config)
      : window_(config.point.bytes),
        place_bytes_((window_.bytes + 63) / 64 * 64),
        side_(config, window_.packets + 3, kHead + 2 * window_.packets * place_bytes_, true) {
    describe(side_.descriptor(kSendAddresses), &outgoing().own_addresses, side_.memory(),
             sizeof(BufferAddresses));
    describe(side_.descriptor(kReceiveAddresses), &outgoing().remote_addresses, side_.memory(),
             sizeof(BufferAddresses));
    side_.good(VipPostRecv(side_.vi(), side_.descriptor(kReceiveAddresses), side_.memory()),
               "posting a receive");
  }

  bool ready() const { return addresses_exchanged_; }
  std::string_view failure() const { return side_.failure(); }

  void begin(const Point& point) {
    latency_ = point.measure == Measure::latency;
    cursor_.begin(point.bytes, window_);
  }

  void poll() {
    if (!addresses_exchanged_) [[unlikely]]
      return exchange_addresses();
    take_arrived();
    VIP_DESCRIPTOR* d;
    while (completed_ != posted_ && side_.done(VipSendDone(side_.vi(), &d), "writing")) {
      ++completed_;
      if (side_.index(d) == kControl) control_in_flight_ = false;
    }
    if (!latency_ && taken_ - reported_taken_ >= window_.packets / 2) write_control(false);
  }

  bool try_send() {
    return cursor_.send_message([this](std::uint32_t bytes) { return write_packet(bytes); });
  }

  std::uint64_t stream(std::uint64_t max_messages) {
    const std::uint64_t completed = cursor_.send_burst(
        max_messages, [this](std::uint32_t bytes) { return write_packet(bytes); });
    poll();
    return completed;
  }

  bool try_finish() { return write_control(true); }

  std::uint64_t arrived() const { return arrived_; }
  std::uint64_t bytes() const { return bytes_; }
  bool finished() const { return read(incoming().finished) != 0; }
  bool drained() const { return completed_ == posted_; }

 private:
  // Descriptors by number: two for the exchange of addresses, one for the control block, then one
  // for each packet of the ring.
  static constexpr std::size_t kSendAddresses = 0, kReceiveAddresses = 1, kControl = 2,
                               kPackets = 3;

  // What is sent from memory in front of the rings.
  struct Outgoing {
    ControlBlock control;
    BufferAddresses own_addresses, remote_addresses;
  };
  static constexpr std::size_t kHead = 256;
  static_assert(sizeof(ControlBlock) <= 64 && sizeof(Outgoing) <= kHead - 64);
  ControlBlock& incoming() const { return *reinterpret_cast<ControlBlock*>(side_.data()); }
  Outgoing& outgoing() const { return *reinterpret_cast<Outgoing*>(side_.data() + 64); }
  // Where packets come in, and where they go out from.
  std::byte* ring() const { return side_.data() + kHead; }
  std::byte* staging() const { return ring() + window_.packets * place_bytes_; }

  template <class T>
  static T read(T& word) {  // the device writes it
    return std::atomic_ref(word).load(std::memory_order_acquire);
  }
  // The number of a packet, in its last four bytes. A packet is placed at the end of its slot, so
  // the receiver knows where the number is without knowing the size. The layer relies on the device
  // to place the last bytes of a write last.
  std::uint32_t& number(std::byte* places, std::uint32_t packet) const {
    std::byte* const end = places + (packet % window_.packets + 1) * place_bytes_;
    return *reinterpret_cast<std::uint32_t*>(end - sizeof(std::uint32_t));
  }

  // Connects, then sends this side's addresses and waits for the other side's.
  void exchange_addresses() {
    if (!connected_) {
      if (!side_.connect()) return;
      connected_ = true;
      outgoing().own_addresses = {address(&incoming()), address(ring()), side_.memory()};
      side_.good(VipPostSend(side_.vi(), side_.descriptor(kSendAddresses), side_.memory()),
                 "posting a send");
      ++posted_;
    }
    VIP_DESCRIPTOR* d;
    addresses_exchanged_ = side_.done(VipRecvDone(side_.vi(), &d), "receiving");
  }

  // Takes packets in order, for as long as the next slot holds the next number.
  void take_arrived() {
    while (read(number(ring(), taken_)) == static_cast<std::uint32_t>(taken_ + 1)) {
      bytes_ += cursor_.arriving_bytes();
      ++taken_;
      if (!cursor_.arrived()) {
        if (latency_ && taken_ - reported_taken_ >= window_.packets / 2) write_control(false);
        continue;
      }
      ++arrived_;
      // In round trips no credit is written: an answer says that the other side has taken the
      // question, and the reverse.
      if (latency_) {
        reported_taken_ = taken_;
        known_taken_ = sent_;
      }
    }
  }

  // Writes the next packet, if the other side's ring has room. The known credit is renewed only
  // when it is used up.
  bool write_packet(std::uint32_t bytes) {
    if (sent_ - known_taken_ >= window_.packets) {
      known_taken_ = std::max(known_taken_, read(incoming().taken));
      if (sent_ - known_taken_ >= window_.packets) return false;
    }
    // The descriptor may not have come back yet although the other side has the packet.
    if (posted_ - completed_ >= window_.packets) return false;
    const auto place = static_cast<std::uint32_t>(sent_ % window_.packets);
    number(staging(), place) = static_cast<std::uint32_t>(sent_ + 1);
    const std::size_t offset = (place + 1) * place_bytes_ - bytes;
    if (!write(kPackets + place, staging() + offset, outgoing().remote_addresses.ring + offset,
               bytes))
      return false;
    ++sent_;
    return true;
  }

  // Writes the control block at the other side: how much has been taken, and whether this is the
  // end of the turn. One such write is under way at most, because its memory must not change
  // meanwhile.
  bool write_control(bool finish) {
    if (control_in_flight_) return false;
    outgoing().control = {taken_, finish ? 1u : 0u};
    if (!write(kControl, &outgoing().control, outgoing().remote_addresses.control,
               sizeof(ControlBlock)))
      return false;
    control_in_flight_ = true;
    reported_taken_ = taken_;
    return true;
  }

  // Posts one RDMA write from this side's memory to address `to` at the other side.
  bool write(std::size_t descriptor, void* from, std::uint64_t to, std::size_t bytes) {
    VIP_DESCRIPTOR* const d = side_.descriptor(descriptor);
    d->CS.Control = VIP_CONTROL_OP_RDMAWRITE;
    d->CS.SegCount = 2;
    d->CS.Length = static_cast<VIP_UINT32>(bytes);
    d->DS[0].Remote.Data.AddressBits = to;
    d->DS[0].Remote.Handle = outgoing().remote_addresses.memory;
    d->DS[1].Local.Data.Address = from;
    d->DS[1].Local.Handle = side_.memory();
    d->DS[1].Local.Length = static_cast<VIP_UINT32>(bytes);
    if (!side_.good(VipPostSend(side_.vi(), d, side_.memory()), "posting a write")) return false;
    ++posted_;
    return true;
  }

  static std::uint64_t address(const void* pointer) {
    return reinterpret_cast<std::uint64_t>(pointer);
  }

  const Window window_;
  const std::size_t place_bytes_;
  ViplSide side_;
  bool connected_ = false, addresses_exchanged_ = false, latency_ = false,
       control_in_flight_ = false;
  PacketCursor cursor_;
  std::uint64_t sent_ = 0, known_taken_ = 0;      // packets, and how many of them are taken
  std::uint64_t taken_ = 0, reported_taken_ = 0;  // packets of the other side, and what it knows
  std::uint64_t posted_ = 0, completed_ = 0;      // descriptors
  std::uint64_t arrived_ = 0, bytes_ = 0;
};

const RegisterLayer<ViplRdma> register_vipl_rdma{
    140, {"vipl-rdma", "VIPL: RDMA writes into memory that the other side polls", Over::rdma}};

}  // namespace

}  // namespace viaduct::pingpong
