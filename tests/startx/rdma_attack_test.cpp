// RDMA messages that no honest peer sends: counted, ignored, memory untouched.
#include <gtest/gtest.h>

#include "drivers/startx_emul/wire.hpp"
#include "tests/startx/bed.hpp"

namespace viaduct::startx {
namespace {

using link::Lane;
using link::Order;
using link::SendStatus;
using std::chrono::milliseconds;

constexpr std::uint64_t kRight = 1000;  // bytes granted
constexpr std::uint64_t kOffset = 4096;

// Node 0 has granted node 1 the right to kRight bytes at kOffset; node 2 has none. Both attackers
// speak to the link directly.
class RdmaAttack : public ::testing::Test {
 protected:
  RdmaAttack() : bed(config()) {
    EXPECT_EQ(bed[0].rdma().grant(bed.peer(0, 1), bed[0].bytes(kOffset, kRight), right).status,
              RdmaStatus::ok);
  }
  static BedConfig config() {
    BedConfig c;
    c.nodes = 3;
    return c;
  }
  void send(std::size_t from, Lane lane, Kind kind, std::span<const std::byte> head,
            std::size_t size) {
    const std::vector<std::byte> body(size, std::byte{0xee});
    SendStatus status = SendStatus::try_again;
    ASSERT_TRUE(bed.run([&] {
      status =
          bed[from].link.try_send(bed.peer(from, 0), lane, Order::unordered, message_type(kind),
                                  head, body, link::Urgency::now, bed.now());
      return status == SendStatus::sent;
    }));
    ASSERT_TRUE(bed.run([&] { return bed[from].link.idle(); }));
  }
  void data(std::size_t from, std::uint32_t slot, std::uint32_t key, std::uint64_t offset,
            std::size_t size, Kind kind = Kind::rdma_data) {
    const DataHead head{7, slot, key, offset};
    send(from, Lane::bulk, kind, bytes_of(head), size);
  }
  // Bytes of node 0's memory that were written.
  std::size_t written() const {
    const auto& memory = const_cast<Bed&>(bed)[0].memory;
    return memory.size() -
           static_cast<std::size_t>(std::count(memory.begin(), memory.end(), std::byte{0}));
  }
  std::uint64_t count(Counter c) { return bed[0].count(c); }

  Bed bed;
  Right right;
};

TEST_F(RdmaAttack, WrongSlotKeyOrPeer) {
  data(1, right.slot + 1, right.key, 0, 10);
  data(1, 2047, right.key, 0, 10);  // the last of the table
  data(1, ~0u, right.key, 0, 10);
  data(1, 2048, right.key, 0, 10);  // just behind the table
  data(1, right.slot, right.key + 1, 0, 10);
  data(1, right.slot, 0, 0, 10);
  data(2, right.slot, right.key, 0, 10);  // the right is node 1's
  EXPECT_EQ(count(Counter::rdma_drop_right), 7u);
  EXPECT_EQ(written(), 0u);
}

TEST_F(RdmaAttack, OutsideTheRight) {
  const std::uint64_t most = ~std::uint64_t{0};
  data(1, right.slot, right.key, kRight, 1);
  data(1, right.slot, right.key, kRight - 9, 10);
  data(1, right.slot, right.key, kRight + 1, 0);
  data(1, right.slot, right.key, most, 1);
  data(1, right.slot, right.key, most - 8, 10);  // offset + length overflows to something small
  data(1, right.slot, right.key, std::uint64_t{1} << 63, 10);
  data(1, right.slot, right.key, 0, kRight + 1);
  data(1, right.slot, right.key, most, 1, Kind::rdma_last);
  EXPECT_EQ(count(Counter::rdma_drop_range), 8u);
  EXPECT_EQ(written(), 0u);
}

TEST_F(RdmaAttack, MoreBytesThanGrantedThroughRepetition) {
  for (int i = 0; i < 3; ++i) data(1, right.slot, right.key, 0, 400);
  EXPECT_EQ(count(Counter::rdma_drop_range), 1u);
  EXPECT_EQ(written(), 400u);
  EXPECT_TRUE(bed[0].completions().empty());
}

TEST_F(RdmaAttack, AnEndThatContradictsWhatHasArrived) {
  data(1, right.slot, right.key, 0, 400);
  data(1, right.slot, right.key, 100, 100, Kind::rdma_last);  // the end before bytes placed
  EXPECT_EQ(count(Counter::rdma_drop_range), 1u);
  data(1, right.slot, right.key, 500, 100, Kind::rdma_last);  // 600 bytes in all: 100 are missing
  data(1, right.slot, right.key, 700, 100, Kind::rdma_last);  // a second end
  EXPECT_EQ(count(Counter::rdma_drop_range), 2u);
  data(1, right.slot, right.key, 600, 100);  // behind the end
  EXPECT_EQ(count(Counter::rdma_drop_range), 3u);
  EXPECT_TRUE(bed[0].completions().empty());
  data(1, right.slot, right.key, 400, 100);
  const auto completions = bed[0].completions();
  ASSERT_EQ(completions.size(), 1u);
  EXPECT_EQ(completions[0].length, 600u);
  EXPECT_EQ(written(), 600u);
}

TEST_F(RdmaAttack, ARightThatWasUsed) {
  data(1, right.slot, right.key, 0, kRight, Kind::rdma_last);
  ASSERT_EQ(bed[0].completions().size(), 1u);
  std::fill(bed[0].memory.begin(), bed[0].memory.end(), std::byte{0});
  data(1, right.slot, right.key, 0, 10);
  data(1, right.slot, right.key, 0, 10, Kind::rdma_last);
  EXPECT_EQ(count(Counter::rdma_drop_right), 2u);
  EXPECT_EQ(written(), 0u);
}

TEST_F(RdmaAttack, ARightOfAPeerThatDied) {
  BedConfig c = config();
  c.link.dead_after = milliseconds{20};
  Bed short_lived(c);
  Right old;
  const auto first = short_lived.peer(0, 1);
  ASSERT_EQ(short_lived[0].rdma().grant(first, short_lived[0].bytes(0, 100), old).status,
            RdmaStatus::ok);
  short_lived[0].link.connect(first, short_lived.now());
  short_lived.run([&] { return short_lived[0].link.connected(first); });
  short_lived.net.partition(short_lived[0].port, short_lived[1].port);
  std::vector<Completion> all;
  ASSERT_TRUE(short_lived.run([&] { return !(all = short_lived[0].completions()).empty(); }));
  EXPECT_EQ(all[0].status, RdmaStatus::peer_down);
  ASSERT_TRUE(short_lived.run([&] {
    return short_lived[1].link.view(short_lived.peer(1, 0)).state != link::PeerState::up;
  }));
  short_lived.net.heal(short_lived[0].port, short_lived[1].port);
  const DataHead head{1, old.slot, old.key, 0};
  const std::vector<std::byte> body(10, std::byte{0xee});
  ASSERT_TRUE(short_lived.run([&] {
    return short_lived[1].link.try_send(short_lived.peer(1, 0), Lane::bulk, Order::unordered,
                                        message_type(Kind::rdma_data), bytes_of(head), body,
                                        link::Urgency::now, short_lived.now()) == SendStatus::sent;
  }));
  ASSERT_TRUE(short_lived.run([&] { return short_lived[0].count(Counter::rdma_drop_right) == 1; }));
  EXPECT_EQ(short_lived[0].memory[0], std::byte{0});
}

// Grants, refusals and dones that answer nothing, or somebody else's transfer.
TEST_F(RdmaAttack, AnswersThatNobodyAskedFor) {
  const Started requested =
      bed[0].rdma().request(bed.peer(0, 1), 5, bed[0].bytes(0, 10), bed.now());
  ASSERT_EQ(requested.status, RdmaStatus::ok);
  const std::uint32_t id = requested.transfer.value;
  const RightMessage stolen{id, 3, 4}, unknown{id + 1, 3, 4}, nonsense{~0u, ~0u, ~0u};
  const RefuseMessage refuse_stolen{id}, refuse_unknown{id + 0x10000};
  send(2, Lane::high, Kind::rdma_grant, bytes_of(stolen), 0);
  send(2, Lane::high, Kind::rdma_refuse, bytes_of(refuse_stolen), 0);
  send(1, Lane::high, Kind::rdma_grant, bytes_of(unknown), 0);
  send(1, Lane::high, Kind::rdma_grant, bytes_of(nonsense), 0);
  send(1, Lane::high, Kind::rdma_refuse, bytes_of(refuse_unknown), 0);
  send(1, Lane::high, Kind::rdma_done, bytes_of(stolen), 0);  // before any data was sent
  EXPECT_EQ(count(Counter::rdma_drop_control), 6u);
  EXPECT_EQ(count(Counter::rdma_data_sent), 0u);
  EXPECT_TRUE(bed[0].completions().empty());
}

// A grant from the right peer leads to data; only the done that names the same right ends it.
TEST_F(RdmaAttack, ADoneForAnotherRight) {
  bed[1].link.attach(link::Protocol::startx, nullptr);  // nor says that there is no such right
  const Started requested =
      bed[0].rdma().request(bed.peer(0, 1), 5, bed[0].bytes(0, 10), bed.now());
  const std::uint32_t id = requested.transfer.value;
  const RightMessage grant{id, 77, 88}, wrong_key{id, 77, 89}, wrong_slot{id, 78, 88};
  send(1, Lane::high, Kind::rdma_grant, bytes_of(grant), 0);
  ASSERT_TRUE(bed.run([&] { return count(Counter::rdma_data_sent) == 1; }));
  send(1, Lane::high, Kind::rdma_grant, bytes_of(grant), 0);  // a second time
  send(1, Lane::high, Kind::rdma_done, bytes_of(wrong_key), 0);
  send(1, Lane::high, Kind::rdma_done, bytes_of(wrong_slot), 0);
  send(2, Lane::high, Kind::rdma_done, bytes_of(grant), 0);
  EXPECT_EQ(count(Counter::rdma_drop_control), 4u);
  EXPECT_TRUE(bed[0].completions().empty());
  send(1, Lane::high, Kind::rdma_done, bytes_of(grant), 0);
  EXPECT_EQ(bed[0].completions().size(), 1u);
}

// What is refused: a request, or a transfer that has been sent, by the one it was sent to.
TEST_F(RdmaAttack, ARefusalInTheMiddle) {
  bed[1].link.attach(link::Protocol::startx, nullptr);
  const Right theirs{5, 6, 1 << 20};
  const Started write =
      bed[0].rdma().write(bed.peer(0, 1), theirs, bed[0].bytes(0, 1 << 20), bed.now());
  ASSERT_EQ(write.status, RdmaStatus::ok);
  const RefuseMessage refusal{write.transfer.value};
  send(1, Lane::high, Kind::rdma_refuse, bytes_of(refusal), 0);  // before all of it was sent
  EXPECT_EQ(count(Counter::rdma_drop_control), 1u);
  ASSERT_TRUE(bed.run([&] { return bed[0].rdma().idle() && bed[0].link.idle(); }));
  send(2, Lane::high, Kind::rdma_refuse, bytes_of(refusal), 0);
  EXPECT_EQ(count(Counter::rdma_drop_control), 2u);
  EXPECT_TRUE(bed[0].completions().empty());
  send(1, Lane::high, Kind::rdma_refuse, bytes_of(refusal), 0);
  send(1, Lane::high, Kind::rdma_refuse, bytes_of(refusal), 0);
  const auto completions = bed[0].completions();
  ASSERT_EQ(completions.size(), 1u);
  EXPECT_EQ(completions[0].status, RdmaStatus::no_right);
  EXPECT_EQ(count(Counter::rdma_drop_control), 3u);
}

// The arithmetic of transfers beyond 4 GiB, without the memory: the region claims more than it has
// and only bytes that exist are touched.
TEST_F(RdmaAttack, OffsetsBeyondFourGigabytesAreNotCutShort) {
  constexpr std::uint64_t kHuge = (std::uint64_t{5} << 30) + 3;
  const RegionId region = bed[0].rdma().register_memory({bed[0].memory.data(), kHuge});
  Right huge;
  ASSERT_EQ(bed[0].rdma().grant(bed.peer(0, 1), {region, 0, kHuge}, huge).status, RdmaStatus::ok);
  EXPECT_EQ(huge.length, kHuge);
  // In 32 bits these offsets would lie inside or wrap to the beginning; they are behind the end.
  data(1, huge.slot, huge.key, kHuge, 1);
  data(1, huge.slot, huge.key, kHuge - 9, 10);
  data(1, huge.slot, huge.key, std::uint64_t{8} << 30, 4);
  EXPECT_EQ(count(Counter::rdma_drop_range), 3u);
  // An end there means that nearly all is still missing.
  data(1, huge.slot, huge.key, std::uint64_t{5} << 30, 0, Kind::rdma_last);
  data(1, huge.slot, huge.key, 0, 100);
  EXPECT_EQ(count(Counter::rdma_drop_range), 3u);
  EXPECT_TRUE(bed[0].completions().empty());
  EXPECT_EQ(written(), 100u);
}

}  // namespace
}  // namespace viaduct::startx
