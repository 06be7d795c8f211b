// Nobody waits for ever for the credit of a FIFO, whatever its writers do and however their
// messages cross, and nothing is sent for nothing.
#include "tests/mbcf/bed.hpp"

namespace viaduct::mbcf {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

Status append(Bed& bed, std::size_t at, WriterId writer, std::size_t size) {
  return bed[at].engine.append(writer, {}, bed[at].bytes(0, size), kSilentBatch, bed.now()).status;
}
bool appended(Bed& bed, std::size_t at, WriterId writer, std::size_t size, link::Duration limit) {
  return bed.run([&] { return append(bed, at, writer, size) == Status::ok; }, limit);
}
void steps(Bed& bed, int count) {
  for (int i = 0; i < count; ++i) {
    bed.poll();
    bed.net.step(bed.now() + microseconds{2});
  }
}
BedConfig nodes(std::size_t count) {
  BedConfig config;
  config.nodes = count;
  return config;
}

TEST(FifoCredit, ARecallSurvivesClosingAndOpening) {
  Bed bed(nodes(3));
  Fifo* fifo = bed[2].engine.create_fifo(4096);
  WriterId restless = bed.writer(0, 2, *fifo);
  const WriterId large = bed.writer(1, 2, *fifo);
  const bool done = bed.run(
      [&] {
        if (bed[2].count(Counter::fifo_recalls) < 2) {
          bed[0].engine.close_writer(restless);
          restless = bed[0].engine.open_writer(bed.peer(0, 2), fifo->key(), bed.now());
        }
        return append(bed, 1, large, 4096) == Status::ok;
      },
      milliseconds{20});
  EXPECT_TRUE(done || appended(bed, 1, large, 4096, seconds{1}));
}

TEST(FifoCredit, AnEndThatWasOpenedAgainIsAskedAndEnds) {
  for (int close_at = 0; close_at < 12; ++close_at)
    for (int open_after = 1; open_after < 12; ++open_after) {
      BedConfig config = nodes(3);
      config.driver.engine.max_writers = 1;
      Bed bed(config);
      Fifo* fifo = bed[2].engine.create_fifo(4096);
      WriterId idle = bed.writer(0, 2, *fifo);
      const WriterId large = bed.writer(1, 2, *fifo);
      for (int i = 0; i < 30; ++i) append(bed, 0, idle, 60);
      bed.run_for(microseconds{200});
      while (fifo->front()) fifo->pop();  // a grant is due
      steps(bed, close_at);
      bed[0].engine.close_writer(idle);
      steps(bed, open_after);
      idle = bed[0].engine.open_writer(bed.peer(0, 2), fifo->key(), bed.now());
      bed.run_for(milliseconds{2});
      EXPECT_TRUE(appended(bed, 1, large, 4096, milliseconds{300}))
          << "closed at " << close_at << ", opened after " << open_after;
      bed.run_for(milliseconds{5});
      while (fifo->front()) fifo->pop();
      bed[0].engine.close_writer(idle);
      bed.run_for(milliseconds{5});
      Fifo* other = bed[2].engine.create_fifo(4096);
      EXPECT_TRUE(bed.run(
          [&] { return bool(bed[0].engine.open_writer(bed.peer(0, 2), other->key(), bed.now())); },
          milliseconds{100}))
          << "closed at " << close_at << ", opened after " << open_after;
    }
}

TEST(FifoCredit, WhoHoldsPartOfWhatItAsksForHoldsUpNobody) {
  Bed bed(nodes(6));
  Fifo* fifo = bed[5].engine.create_fifo(16384);
  WriterId writers[5];
  for (std::size_t i = 0; i < 5; ++i) writers[i] = bed.writer(i, 5, *fifo);
  for (std::size_t i = 0; i < 5; ++i) {
    bed[i].engine.close_writer(writers[i]);
    bed.run_for(milliseconds{1});
    writers[i] = bed.writer(i, 5, *fifo);
  }
  for (int i = 0; i < 25; ++i) append(bed, 0, writers[0], 60);
  bed.run_for(milliseconds{1});
  // Three tries, each for more, before any answer is seen.
  const auto others = [&](int count) {
    for (int i = 0; i < count; ++i) {
      for (std::size_t n = 1; n < 6; ++n) bed[n].poll(bed.now());
      bed.net.step(bed.now() + microseconds{1});
    }
  };
  append(bed, 0, writers[0], 60 * kBlock);
  others(4);
  append(bed, 0, writers[0], 70 * kBlock);
  others(4);
  append(bed, 0, writers[0], 130 * kBlock);
  others(40);
  bed.run_for(milliseconds{5});
  while (fifo->front()) fifo->pop();
  bed.run_for(milliseconds{5});
  EXPECT_TRUE(appended(bed, 1, writers[1], 8, seconds{1}));
}

TEST(FifoCredit, IdleWritersAreQuiet) {
  {
    Bed bed(nodes(3));
    Fifo* fifo = bed[2].engine.create_fifo(16384);
    const WriterId writers[2] = {bed.writer(0, 2, *fifo), bed.writer(1, 2, *fifo)};
    int sent[2] = {}, read = 0;
    ASSERT_TRUE(bed.run(
        [&] {
          for (std::size_t i : {0, 1})
            if (sent[i] < 20 && append(bed, i, writers[i], 9000) == Status::ok) ++sent[i];
          for (; fifo->front(); ++read) fifo->pop();
          return read == 40;
        },
        seconds{5}));
    bed.run_for(milliseconds{20});
    const std::uint64_t before = bed[2].count(Counter::fifo_recalls);
    bed.run_for(milliseconds{100});
    EXPECT_EQ(bed[2].count(Counter::fifo_recalls), before);
  }
  Bed bed(nodes(71));
  Fifo* fifo = bed[0].engine.create_fifo(4096);  // not a block for each
  for (std::size_t i = 1; i < 71; ++i)
    bed[i].engine.open_writer(bed.peer(i, 0), fifo->key(), bed.now());
  bed.run_for(milliseconds{20});
  const std::uint64_t before = bed[0].count(Counter::fifo_recalls);
  bed.run_for(milliseconds{20});
  EXPECT_EQ(bed[0].count(Counter::fifo_recalls), before);
}

TEST(FifoCredit, HalfIsLentAheadAndNotMore) {
  Bed bed(nodes(5));
  Fifo* fifo = bed[0].engine.create_fifo(4096);
  for (std::size_t i = 1; i < 5; ++i) bed.writer(i, 0, *fifo);
  EXPECT_LE(fifo->lent_blocks(), 32u + 4u);
}

TEST(FifoCredit, AnEndThatIsClosedBeforeItsOwnerHeardOfItEnds) {
  BedConfig config = nodes(2);
  config.driver.engine.max_writers = 1;
  Bed bed(config);
  Fifo* fifo = bed[1].engine.create_fifo(4096);
  Fifo* other = bed[1].engine.create_fifo(4096);
  EXPECT_EQ(
      bed.complete(0, [&] { return bed[0].engine.fence(bed.peer(0, 1), {}, bed.now()); }).status,
      Status::ok);
  int writes = 0;
  while (bed[0]
             .engine.write(bed.remote(0, 1), bed[0].bytes(0, 1452), kSilentBatch, bed.now())
             .status == Status::ok)
    ++writes;
  ASSERT_GT(writes, 0) << "the lane is full";
  bed[0].engine.close_writer(bed[0].engine.open_writer(bed.peer(0, 1), fifo->key(), bed.now()));
  bed.run_for(milliseconds{50});
  EXPECT_TRUE(bed.run(
      [&] { return bool(bed[0].engine.open_writer(bed.peer(0, 1), other->key(), bed.now())); }));
}

TEST(FifoCredit, AWriterThatWaitsHearsThatItsFifoIsWithdrawn) {
  BedConfig config = nodes(3);
  config.link.dead_after = milliseconds{100};
  Bed bed(config);
  Fifo* fifo = bed[2].engine.create_fifo(4096);
  const WriterId writers[] = {bed.writer(0, 2, *fifo), bed.writer(1, 2, *fifo)};
  for (const std::size_t i : {0, 1})
    bed.run([&] { return append(bed, i, writers[i], 60), false; }, milliseconds{20});
  ASSERT_EQ(fifo->free_blocks() + fifo->lent_blocks(), 0u) << "it is full";
  for (const std::size_t i : {0, 1}) ASSERT_EQ(append(bed, i, writers[i], 8), Status::no_room);
  bed.vanish(0);  // one of them ends before it is told
  ASSERT_TRUE(bed[2].engine.withdraw(fifo->key()));
  Status status = Status::ok;
  EXPECT_TRUE(bed.run([&] {
    status = append(bed, 1, writers[1], 8);
    return status != Status::no_room;
  }));
  EXPECT_EQ(status, Status::withdrawn);
  EXPECT_TRUE(
      bed.run([&] { return append(bed, 0, writers[0], 8) == Status::peer_down; }, seconds{20}));
}

// As its answer could not be sent at once: the acknowledgement of the close was still due.
TEST(FifoCredit, AnEndWhoseFifoIsWithdrawnBeforeTheFarewellEnds) {
  for (int close_at = 0; close_at < 12; ++close_at) {
    BedConfig config = nodes(2);
    config.driver.engine.max_writers = 1;
    Bed bed(config);
    Fifo* fifo = bed[1].engine.create_fifo(4096);
    const WriterId writer = bed.writer(0, 1, *fifo);
    bed[0].engine.close_writer(writer);
    steps(bed, close_at);
    bed[1].engine.withdraw(fifo->key());
    Fifo* other = bed[1].engine.create_fifo(4096);
    EXPECT_TRUE(bed.run(
        [&] { return bool(bed[0].engine.open_writer(bed.peer(0, 1), other->key(), bed.now())); },
        milliseconds{100}))
        << close_at;
  }
}

// Credit that is granted while the answer to a recall is on its way can be recalled, too.
TEST(FifoCredit, ARecallIsNotTakenForAnEarlierOne) {
  Bed bed(nodes(4));
  Fifo* fifo = bed[2].engine.create_fifo(4096);
  const auto fill = [&](std::size_t at, WriterId writer, int entries) {
    for (int i = 0; i < entries; ++i)
      ASSERT_TRUE(appended(bed, at, writer, 60, milliseconds{5})) << at << ' ' << i;
    bed.run_for(milliseconds{1});
  };
  const WriterId idle = bed.writer(0, 2, *fifo);
  const WriterId first = bed.writer(1, 2, *fifo), second = bed.writer(3, 2, *fifo);
  fill(0, idle, 40);
  fill(1, first, 10);
  // What the idle one answers is lost for a while.
  bed.net.hook = [](std::uint32_t port, std::vector<std::byte>&) { return port != 0; };
  ASSERT_EQ(append(bed, 1, first, 15 * kBlock), Status::no_room);
  bed.run_for(milliseconds{1});
  ASSERT_EQ(bed[2].count(Counter::fifo_recalls), 2u);
  for (int i = 0; i < 5; ++i) fifo->pop();
  ASSERT_TRUE(appended(bed, 1, first, 15 * kBlock, milliseconds{1}));
  ASSERT_EQ(append(bed, 3, second, 4096), Status::no_room);
  bed.run_for(microseconds{200});
  bed.net.hook = nullptr;
  EXPECT_TRUE(bed.run(
      [&] {
        while (fifo->front()) fifo->pop();
        return append(bed, 3, second, 4096) == Status::ok;
      },
      seconds{1}));
}

TEST(FifoCredit, WhatARefusedWriteDidNotSpendIsGivenBack) {
  Bed bed(nodes(3));
  Fifo* fifo = bed[2].engine.create_fifo(4096);
  const WriterId idle = bed.writer(0, 2, *fifo);
  const WriterId large = bed.writer(1, 2, *fifo);
  const Key key = bed[2].engine.export_segment(bed[2].bytes(0, 1'000'000), Rights::all);
  ASSERT_EQ(bed[0]
                .engine
                .write({bed.peer(0, 2), key, 0}, bed[0].bytes(0, 1'000'000),
                       Then::append(idle, bytes_of_text("e")), {}, bed.now())
                .status,
            Status::ok);
  ASSERT_EQ(append(bed, 1, large, 4096), Status::no_room);
  ASSERT_TRUE(bed.run([&] { return fifo->lent_blocks() <= 2; })) << "the others gave theirs back";
  bed[2].engine.withdraw(key);
  Completion c;
  ASSERT_TRUE(bed.run([&] { return bed[0].engine.next_completion(c); }));
  ASSERT_EQ(c.status, Status::withdrawn);
  EXPECT_TRUE(appended(bed, 1, large, 4096, seconds{1}));
}

// The reader keeps the oldest entry; there is room beside it.
TEST(FifoCredit, NobodyAsksForCreditThatItsUserHasHad) {
  Bed bed(nodes(3));
  Fifo* fifo = bed[2].engine.create_fifo(4096);
  const WriterId idle = bed.writer(0, 2, *fifo);
  const WriterId busy = bed.writer(1, 2, *fifo);
  ASSERT_TRUE(appended(bed, 0, idle, 4096, seconds{1}));
  ASSERT_TRUE(bed.run([&] { return fifo->front().has_value(); }));
  fifo->pop();
  bed.run_for(milliseconds{5});
  EXPECT_TRUE(appended(bed, 1, busy, 8, seconds{1}));
  EXPECT_TRUE(appended(bed, 1, busy, 56 * kBlock, seconds{1}));
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(appended(bed, 1, busy, 8, milliseconds{100})) << i;
}

TEST(FifoCredit, ASmallEntryNeedNotWaitForRoomForALargeOne) {
  Bed bed;
  Fifo* fifo = bed[1].engine.create_fifo(4096);
  const WriterId writer = bed.writer(0, 1, *fifo);
  for (int i = 0; i < 32; ++i) ASSERT_EQ(append(bed, 0, writer, 8), Status::ok) << i;
  EXPECT_EQ(append(bed, 0, writer, 4096), Status::no_room);
  bed.run_for(milliseconds{1});
  EXPECT_EQ(append(bed, 0, writer, 4096), Status::no_room);
  EXPECT_TRUE(appended(bed, 0, writer, 8, milliseconds{100}));
}

}  // namespace
}  // namespace viaduct::mbcf
