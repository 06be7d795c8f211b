// Layer startx-rdma: remote DMA, memory to memory. The receiver hands out the rights to write into
// its buffers ahead of time, in packets of its own (grant and write), as a program that wants speed
// does. So a transfer does not begin with a round trip.
//
// A buffer of the receiver, called slot, goes round: free -> granted and sent to the other side ->
// written -> free.
#include <vector>

#include "tools/pingpong/layers/startx.hpp"
#include "tools/pingpong/layers/transport.hpp"

namespace viaduct::pingpong {

namespace {

using startx::Priority;
using startx::RdmaStatus;

// Bytes of receive buffers: a few transfers keep a wire busy, and so much memory stays in a core's
// cache.
constexpr std::size_t kReceiveMemory = 2u << 20;

class StartxRdma {
 public:
  static constexpr bool kLossy = false;

  explicit StartxRdma(const TurnConfig& config) : side_(config), client_(config.client) {}

  bool ready() const { return side_.ready(); }
  bool drained() const { return side_.drained() && completed_ == sent_; }
  std::string_view failure() const { return side_.failure(); }

  void begin(const Point& point) {
    size_ = point.bytes;
    out_.assign(size_, std::byte{0x5a});
    out_region_ = rdma().register_memory(out_);
    if (client_ && point.measure == Measure::bandwidth) return;  // receives nothing
    const std::size_t wanted = point.measure == Measure::latency ? 2 : kMaxSlots;
    const std::size_t slots = std::clamp<std::size_t>(kReceiveMemory / size_, 2, wanted);
    in_.resize(slots * size_);
    in_region_ = rdma().register_memory(in_);
    for (std::uint32_t slot = 0; slot < slots; ++slot) free_.push(slot);
  }

  void poll() {
    const link::Time now = port::now();
    grant_rights(now);
    progress(now);
  }

  bool try_send() {
    const link::Time now = port::now();
    if (!write_one(now)) return false;
    side_.poll(now);
    return true;
  }

  std::uint64_t stream(std::uint64_t max_messages) {
    const link::Time now = port::now();
    std::uint64_t started = 0;
    while (started < max_messages && write_one(now)) ++started;
    progress(now);
    return started;
  }

  bool try_finish() { return side_.try_finish(sent_, port::now()); }

  std::uint64_t arrived() const { return arrived_; }
  // Bytes placed in memory, not transfers completed: transfers side by side complete at the same
  // moment.
  std::uint64_t bytes() const {
    return side_.niu().counters()[startx::Counter::rdma_bytes_received];
  }
  bool finished() const { return side_.finished(arrived_); }

 private:
  static constexpr std::size_t kMaxSlots = 16;  // RdmaConfig::max_open

  // A bounded queue, for at most as many values as there are slots.
  template <class T>
  class BoundedQueue {
   public:
    bool empty() const { return head_ == tail_; }
    bool full() const { return tail_ - head_ == kMaxSlots; }
    void push(const T& value) { values_[tail_++ % kMaxSlots] = value; }
    const T& front() const { return values_[head_ % kMaxSlots]; }
    void pop() { ++head_; }

   private:
    T values_[kMaxSlots];
    std::uint32_t head_ = 0, tail_ = 0;
  };

  startx::Rdma<port::Port>& rdma() { return side_.niu().rdma(); }

  // Polls, takes rights that the other side has sent, and completions of transfers both ways.
  void progress(link::Time now) {
    side_.poll(now);
    while (const startx::Received* packet = side_.niu().peek(Priority::high)) {
      startx::Right right;
      static_assert(sizeof(right) <= sizeof(packet->payload));
      std::memcpy(&right, packet->payload, sizeof(right));
      if (packet->tag == kTagRight && !rights_.full()) rights_.push(right);
      side_.niu().pop(Priority::high);
    }
    startx::Completion completion;
    while (rdma().next_completion(completion)) take(completion);
  }

  // A transfer is complete. If it was the other side's, its slot is free again.
  void take(const startx::Completion& completion) {
    if (completion.status != RdmaStatus::ok) {
      side_.fail(completion.status == RdmaStatus::peer_down ? "the peer is down"
                                                            : "a transfer was refused");
      return;
    }
    if (!completion.receiving) {
      ++completed_;
      return;
    }
    ++arrived_;
    for (std::uint32_t slot = 0; slot < kMaxSlots; ++slot)
      if (open_[slot] == completion.transfer) free_.push(slot);
  }

  // Grants a right for each free slot and sends it. Called before the next poll rather than on
  // completion: an answer must not wait for it. Stops when there is no room, and goes on at the
  // next call with the right that it could not send.
  void grant_rights(link::Time now) {
    while (!free_.empty()) {
      const std::uint32_t slot = free_.front();
      if (!right_unsent_) {
        const startx::Started started =
            rdma().grant(side_.peer(), {in_region_, slot * size_, size_}, right_);
        if (started.status != RdmaStatus::ok) return;
        open_[slot] = started.transfer;
        right_unsent_ = true;
      }
      startx::Packet packet;
      packet.tag = kTagRight;
      packet.words = sizeof(right_) / sizeof(std::uint32_t);
      std::memcpy(packet.payload, &right_, sizeof(right_));
      if (side_.niu().try_send(side_.peer(), Priority::high, packet, now) != link::SendStatus::sent)
        return;
      right_unsent_ = false;
      free_.pop();
    }
  }

  // Starts one transfer with the oldest right. False: there is no right or no room.
  bool write_one(link::Time now) {
    if (rights_.empty()) return false;
    const startx::Started started =
        rdma().write(side_.peer(), rights_.front(), {out_region_, 0, size_}, now);
    if (started.status == RdmaStatus::no_room) return false;
    if (started.status != RdmaStatus::ok) {
      side_.fail("a write was refused");
      return false;
    }
    rights_.pop();
    ++sent_;
    return true;
  }

  StartxSide side_;
  const bool client_;
  std::vector<std::byte> out_, in_;
  startx::RegionId out_region_, in_region_;
  std::size_t size_ = 0;
  BoundedQueue<startx::Right> rights_;       // to write at the other side
  BoundedQueue<std::uint32_t> free_;         // slots of in_ to give a right to
  startx::TransferId open_[kMaxSlots] = {};  // the transfer that a slot is open for
  startx::Right right_;                      // granted for the first of free_, not sent yet
  bool right_unsent_ = false;
  std::uint64_t sent_ = 0, completed_ = 0, arrived_ = 0;
};

const RegisterLayer<StartxRdma> register_startx_rdma{
    40, {"startx-rdma", "StarT-X remote DMA between registered memory; for long messages"}};

}  // namespace

}  // namespace viaduct::pingpong
