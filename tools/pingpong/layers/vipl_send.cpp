// Layer vipl-send: VipPostSend on one side, VipPostRecv on the other, both polling with VipSendDone
// and VipRecvDone. Credit and words are messages.hpp's; words travel as immediate data.
#include "tools/pingpong/layers/messages.hpp"
#include "tools/pingpong/layers/vipl_side.hpp"

namespace viaduct::pingpong {

namespace {

class ViplQueues {
 public:
  ViplQueues(const TurnConfig& config, const Window& window)
      : slots_(window.packets + kMaxControlWords),
        side_(config, 2 * slots_, (slots_ + 1) * window.bytes, false) {
    // Receives have memory of their own. All sends share one place, because nobody looks at the
    // contents.
    for (std::size_t i = 0; i < slots_; ++i)
      describe(side_.descriptor(i), side_.data() + i * window.bytes, side_.memory(), window.bytes);
    for (std::size_t i = slots_; i < 2 * slots_; ++i)
      describe(side_.descriptor(i), side_.data() + slots_ * window.bytes, side_.memory(),
               window.bytes);
  }

  bool connect() { return side_.connect(); }
  std::string_view failure() const { return side_.failure(); }

  bool post_receive(std::uint32_t slot) {
    return side_.good(VipPostRecv(side_.vi(), side_.descriptor(slot), side_.memory()),
                      "posting a receive");
  }

  bool post_send(std::uint32_t slot, std::uint32_t bytes, ControlWord word) {
    VIP_DESCRIPTOR* const d = side_.descriptor(slots_ + slot);
    d->CS.Control = VIP_CONTROL_OP_SENDRECV;
    d->CS.SegCount = 1;
    if (word != ControlWord::none) [[unlikely]] {
      d->CS.Control |= VIP_CONTROL_IMMEDIATE;
      d->CS.SegCount = 0;
      d->CS.ImmediateData = static_cast<VIP_UINT32>(word);
    }
    d->CS.Length = d->DS[0].Local.Length = bytes;
    return side_.good(VipPostSend(side_.vi(), d, side_.memory()), "posting a send");
  }

  bool next_received(Packet& packet) {
    VIP_DESCRIPTOR* d;
    if (!side_.done(VipRecvDone(side_.vi(), &d), "receiving")) return false;
    packet.slot = static_cast<std::uint32_t>(side_.index(d));
    packet.bytes = d->CS.Length;
    packet.word = (d->CS.Status & VIP_STATUS_IMMEDIATE) != 0
                      ? static_cast<ControlWord>(d->CS.ImmediateData)
                      : ControlWord::none;
    return true;
  }

  bool next_sent() {
    VIP_DESCRIPTOR* d;
    return side_.done(VipSendDone(side_.vi(), &d), "sending");
  }

 private:
  const std::size_t slots_;  // receives, and again sends
  ViplSide side_;
};

const RegisterLayer<Messages<ViplQueues>> register_vipl_send{
    130, {"vipl-send", "VIPL: sends and receives of a Virtual Interface", Over::rdma}};

}  // namespace

}  // namespace viaduct::pingpong
