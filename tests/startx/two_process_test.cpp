// Two processes on a memif pair: a node each, opened as programs open it.
#include "drivers/startx_emul/node.hpp"
#include "tests/support/two_processes.hpp"

namespace viaduct::startx {
namespace {

using link::SendStatus;

constexpr std::size_t kTransfer = 3'000'000;
constexpr std::uint32_t kPackets = 20'000;

class Side : public link::test::MemifSide<Node> {
 public:
  Side(const std::string& directory, int index)
      : MemifSide(directory, index), memory_(2 * kTransfer) {
    region_ = node().rdma().register_memory(memory_);
    for (std::size_t i = 0; i < kTransfer; ++i) memory_[i] = expected(i, index);
    must(exchange(directory, index, index) == 1 - index, "meeting the other");
  }

  static std::byte expected(std::size_t i, int from) {
    return static_cast<std::byte>(i * 7 + i / 253 + static_cast<std::size_t>(from));
  }

  void send_pio(std::uint32_t tag) {
    Packet packet;
    packet.tag = tag;
    packet.payload[0] = tag * 3;
    until(
        [&] {
          return node().niu().try_send(peer(), Priority::high, packet, port::now()) ==
                 SendStatus::sent;
        },
        "send");
  }
  void receive_pio(std::uint32_t tag) {
    until([&] { return node().niu().peek(Priority::high) != nullptr; }, "receive");
    const Received* got = node().niu().peek(Priority::high);
    must(got->tag == tag && got->payload[0] == tag * 3 && got->from == peer(), "PIO packet");
    node().niu().pop(Priority::high);
  }

  // Both directions at once, in order and nothing missing.
  void exchange_queued() {
    std::uint32_t sent = 0, got = 0;
    Niu<port::Port>& niu = node().niu();
    until(
        [&] {
          while (sent < kPackets) {
            Outgoing* entry = niu.reserve(Priority::low);
            if (!entry) break;
            entry->to = peer();
            entry->packet.tag = sent++;
            entry->packet.words = 2;
            entry->packet.order = link::Order::ordered;
            niu.commit(Priority::low);
          }
          while (const Received* r = niu.queue_peek(Priority::low)) {
            must(r->tag == got++, "order of queued packets");
            niu.queue_pop(Priority::low);
          }
          return got == kPackets && node().link().idle();
        },
        "queued packets");
  }

  void exchange_rdma(int index) {
    Rdma<port::Port>& rdma = node().rdma();
    must(rdma.post(peer(), 1, {region_, kTransfer, kTransfer}).status == RdmaStatus::ok, "post");
    must(rdma.request(peer(), 1, {region_, 0, kTransfer}, port::now()).status == RdmaStatus::ok,
         "request");
    std::size_t complete = 0;
    until(
        [&] {
          for (Completion c; rdma.next_completion(c); ++complete)
            must(c.status == RdmaStatus::ok && c.length == kTransfer, "completion");
          return complete == 2;
        },
        "RDMA transfers");
    for (std::size_t i = 0; i < kTransfer; ++i)
      must(memory_[kTransfer + i] == expected(i, 1 - index), "transferred bytes");
  }

  RegionId region() const { return region_; }

 private:
  std::vector<std::byte> memory_;
  RegionId region_;
};

using TwoProcesses = link::test::TwoProcesses<Side>;

TEST_F(TwoProcesses, AllThreeMechanismsWork) {
  run([](Side& side, int index) {
    for (std::uint32_t tag = 0; tag < 1000; ++tag) {
      if (index == 0) side.send_pio(tag);
      side.receive_pio(tag);
      if (index == 1) side.send_pio(tag);
      if (index == 0 && tag == 999) break;
    }
    side.exchange_queued();
    side.exchange_rdma(index);
    // Neither leaves while the other may still wait for an acknowledgement.
    side.until([&] { return side.node().link().idle(); }, "acknowledgements");
    side.send_pio(7777);
    side.receive_pio(7777);
    side.settle();
  });
}

TEST_F(TwoProcesses, AKilledProcessIsSeenByTheOtherAndItsTransfersEnd) {
  kill_one(
      [](Side& side) {
        side.receive_pio(1);
        // It will be killed with a post and a request of ours open.
        Rdma<port::Port>& rdma = side.node().rdma();
        Side::must(rdma.post(side.peer(), 1, {side.region(), 0, 100}).status == RdmaStatus::ok,
                   "post");
        Side::must(rdma.request(side.peer(), 2, {side.region(), 0, 100}, port::now()).status ==
                       RdmaStatus::ok,
                   "request");
        link::Child::tell();
        side.await_death();
        Side::must(side.node().niu().try_send(side.peer(), Priority::high, Packet{}, port::now()) ==
                       SendStatus::peer_down,
                   "sending to the dead");
        std::size_t ended = 0;
        for (Completion c; rdma.next_completion(c);) ended += c.status == RdmaStatus::peer_down;
        Side::must(ended == 2, "transfers with the dead");
      },
      [](Side& side) {
        side.send_pio(1);
        side.until_killed();
      });
}

}  // namespace
}  // namespace viaduct::startx
