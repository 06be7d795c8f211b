// The Memory-Based FIFO: whole entries, in order for each writer, full without loss, fair.
#include <fcntl.h>

#include <map>
#include <random>

#include "tests/mbcf/bed.hpp"

// Instead of the C library's: with `signals_come` every second call and all of more than 16 MiB are
// interrupted.
static bool signals_come = false;
extern "C" int posix_fallocate(int file, off_t offset, off_t length) {
  static unsigned calls = 0;
  if (signals_come && (length > off_t{1} << 24 || ++calls % 2 != 0)) return EINTR;
  return ::fallocate(file, 0, offset, length) == 0 ? 0 : errno;
}

namespace viaduct::mbcf {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Fifo, EntriesOfEverySizeUpToItsOwnArriveWholeAndInOrder) {
  Bed bed;
  Fifo* fifo = bed[1].engine.create_fifo(16'384);
  ASSERT_EQ(fifo->capacity(), 16'384u);
  const WriterId writer = bed.writer(0, 1, *fifo);
  EXPECT_EQ(bed[0].engine.capacity(writer), fifo->capacity());
  const std::vector<std::size_t> sizes{0,    1,    63,   64,   65,     1400,   1440, 1460,
                                       1500, 5000, 8192, 9000, 16'383, 16'384, 1,    2};
  std::size_t sent = 0, received = 0;
  ASSERT_TRUE(bed.run([&] {
    while (sent < sizes.size()) {
      bed[0].fill(0, sizes[sent], static_cast<std::uint32_t>(sent));
      const std::size_t head = std::min<std::size_t>(sizes[sent], 20 * (sent % 3));
      const Status status =
          bed[0]
              .engine
              .append(writer, bed[0].bytes(0, head), bed[0].bytes(head, sizes[sent] - head),
                      kSilentBatch, bed.now())
              .status;
      if (status == Status::no_room) break;
      EXPECT_EQ(status, Status::ok);
      // What is long is read later: it must stay.
      if (sizes[sent++] > 1400) break;
    }
    while (const auto entry = fifo->front()) {
      EXPECT_EQ(entry->bytes.size(), sizes[received]);
      for (std::size_t i = 0; i < entry->bytes.size(); ++i)
        EXPECT_EQ(entry->bytes[i], SimNode::pattern(i, static_cast<std::uint32_t>(received)));
      EXPECT_EQ(entry->from, bed.peer(1, 0));
      fifo->pop();
      ++received;
    }
    // One at a time, as there is one place to send from.
    const bool open = sent != received;
    if (open) bed.run_for(milliseconds{1});
    return received == sizes.size();
  }));
  EXPECT_FALSE(fifo->front());
  EXPECT_EQ(bed[0].engine.append(writer, {}, bed[0].bytes(0, 16'385), {}, bed.now()).status,
            Status::too_long);
  const std::vector<std::byte> head(kMaxChainedEntry + 1);
  EXPECT_EQ(bed[0].engine.append(writer, head, {}, {}, bed.now()).status, Status::too_long);
}

TEST(Fifo, AnEntryThatIsCopiedMayChangeAtOnceAndTheRestOfAnotherMayMove) {
  for (const std::size_t size : std::initializer_list<std::size_t>{8, 9'000, 400'000}) {
    Bed bed;
    Fifo* fifo = bed[1].engine.create_fifo(1 << 20);
    const WriterId writer = bed.writer(0, 1, *fifo);
    bed[0].fill(0, size, 7);
    Issued issued;
    ASSERT_TRUE(bed.run([&] {
      issued = bed[0].engine.append(writer, {}, bed[0].bytes(0, size), {}, bed.now());
      return issued.status != Status::no_room;
    }));
    ASSERT_EQ(issued.status, Status::ok);
    EXPECT_EQ(issued.copied, size < 64 * 1024) << size;
    std::vector<std::byte> elsewhere;
    if (!issued.copied) {
      elsewhere.assign(bed[0].memory.begin(), bed[0].memory.begin() + size);
      bed[0].engine.relocate(issued.id, elsewhere);
    }
    bed[0].fill(0, size, 8);
    ASSERT_TRUE(bed.run([&] { return fifo->front().has_value(); }));
    const auto entry = fifo->front();
    ASSERT_EQ(entry->bytes.size(), size);
    for (std::size_t i = 0; i < size; ++i)
      ASSERT_EQ(entry->bytes[i], SimNode::pattern(i, 7)) << i << " of " << size;
    Completion completion{};
    ASSERT_TRUE(bed.run([&] { return bed[0].engine.next_completion(completion); }));
    EXPECT_EQ(completion.id, issued.id);
  }
}

TEST(Fifo, ARequestThatIsOverMovesNobodysEntry) {
  Bed bed({.driver = {.engine = {.max_requests = 1}}});
  Fifo* fifo = bed[1].engine.create_fifo(1 << 20);
  const WriterId writer = bed.writer(0, 1, *fifo);
  const auto append = [&](std::uint32_t seed) {
    bed[0].fill(0, 400'000, seed);
    Issued issued;
    EXPECT_TRUE(bed.run([&] {
      issued = bed[0].engine.append(writer, {}, bed[0].bytes(0, 400'000), {}, bed.now());
      return issued.status == Status::ok;
    }));
    EXPECT_FALSE(issued.copied);
    return issued.id;
  };
  const RequestId over = append(1);
  Completion completion{};
  ASSERT_TRUE(bed.run([&] { return bed[0].engine.next_completion(completion); }));
  fifo->pop();
  append(2);
  const std::vector<std::byte> other(400'000);
  bed[0].engine.relocate(over, other);
  ASSERT_TRUE(bed.run([&] { return fifo->front().has_value(); }));
  const auto entry = fifo->front();
  for (std::size_t i = 0; i < entry->bytes.size(); ++i)
    ASSERT_EQ(entry->bytes[i], SimNode::pattern(i, 2)) << i;
}

TEST(Fifo, AFullOneHoldsUpItsWritersAndNobodyElse) {
  Bed bed;
  Fifo* full = bed[1].engine.create_fifo(4096);
  Fifo* other = bed[1].engine.create_fifo(4096);
  const WriterId to_full = bed.writer(0, 1, *full), to_other = bed.writer(0, 1, *other);
  std::uint64_t sent = 0;
  const auto append = [&](WriterId writer, std::uint64_t value) {
    return bed[0]
               .engine
               .append(writer, {}, std::as_bytes(std::span(&value, 1)), kSilentBatch, bed.now())
               .status == Status::ok;
  };
  bed.run([&] { return sent += append(to_full, sent), false; }, milliseconds{20});
  EXPECT_EQ(sent, 64u) << "all of it can be filled, and no more";
  EXPECT_FALSE(append(to_full, 0));
  // Meanwhile everything else goes on.
  for (std::uint64_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(bed.run([&] { return append(to_other, i); }));
    ASSERT_TRUE(bed.run([&] { return other->front().has_value(); }));
    other->pop();
  }
  EXPECT_EQ(bed.complete(0,
                         [&] {
                           return bed[0].engine.fetch_add(bed.remote(0, 1), Width::eight, 1, {},
                                                          bed.now());
                         })
                .status,
            Status::ok);
  // The reader comes back.
  for (std::uint64_t i = 0; i < 300; ++i) {
    ASSERT_TRUE(bed.run([&] {
      if (append(to_full, sent)) ++sent;
      return full->front().has_value();
    }));
    std::uint64_t value;
    std::memcpy(&value, full->front()->bytes.data(), sizeof value);
    ASSERT_EQ(value, i);
    full->pop();
  }
  EXPECT_EQ(bed[1].count(Counter::refused_no_credit), 0u);
}

// Everybody gets through, also those who need nearly all of it at once; what a writer wrote is in
// order and whole; space is neither lost nor made.
TEST(Fifo, ManyWritersOfSmallAndHugeEntriesShareASmallOne) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    BedConfig config;
    config.nodes = 9;
    config.net.faults = {.loss = 0.02, .duplicate = 0.01, .reorder = 0.02, .seed = seed};
    Bed bed(config);
    Fifo* fifo = bed[0].engine.create_fifo(4096);
    struct Sender {
      WriterId writer;
      std::uint32_t sent = 0, received = 0;
      std::size_t size = 0;
    };
    std::map<std::uint32_t, Sender*> by_peer;
    std::vector<Sender> senders(9);
    std::mt19937_64 random(seed);
    const std::uint32_t kEach = 60;
    for (std::size_t i = 1; i < 9; ++i) {
      senders[i].writer = bed.writer(i, 0, *fifo);
      by_peer[bed.peer(0, i).value] = &senders[i];
      senders[i].size = 8;
    }
    std::size_t received = 0;
    ASSERT_TRUE(bed.run(
        [&] {
          for (std::size_t i = 1; i < 9; ++i) {
            Sender& s = senders[i];
            if (s.sent == kEach) continue;
            // The head says which one it is; the rest is the same for all, as it is sent later.
            const std::uint32_t head[2] = {s.sent, static_cast<std::uint32_t>(s.size)};
            std::fill_n(bed[i].memory.begin(), 4096, std::byte(i));
            const Status status = bed[i]
                                      .engine
                                      .append(s.writer, std::as_bytes(std::span(head)),
                                              bed[i].bytes(0, s.size - 8), kSilentBatch, bed.now())
                                      .status;
            if (status == Status::no_room) continue;
            EXPECT_EQ(status, Status::ok);
            ++s.sent;
            s.size = i % 2 ? 8 + random() % 100 : 1500 + random() % 2597;
          }
          for (int n = 0; n < 2; ++n)
            if (const auto entry = fifo->front()) {
              Sender* s = by_peer[entry->from.value];
              if (s == nullptr) {
                ADD_FAILURE() << "from nobody";
                return true;
              }
              std::uint32_t head[2];
              std::memcpy(head, entry->bytes.data(), sizeof head);
              EXPECT_EQ(head[0], s->received++);
              EXPECT_EQ(head[1], entry->bytes.size());
              const auto who = std::byte(s - senders.data());
              for (const std::byte x : entry->bytes.subspan(8)) EXPECT_EQ(x, who);
              fifo->pop();
              ++received;
            }
          return received == 8 * kEach;
        },
        seconds{30}))
        << received << " with seed " << seed;
    EXPECT_GT(bed.net.faults().lost, 0u);
    EXPECT_GT(bed[0].count(Counter::fifo_recalls), 0u);
    EXPECT_EQ(bed[0].count(Counter::refused_no_credit), 0u);
    bed.run_for(milliseconds{50});
    EXPECT_LE(fifo->lent_blocks(), fifo->capacity() / kBlock);
    EXPECT_EQ(fifo->free_blocks() + fifo->lent_blocks(), fifo->capacity() / kBlock);
    for (std::size_t i = 1; i < 9; ++i) bed[i].engine.close_writer(senders[i].writer);
    ASSERT_TRUE(bed.run([&] { return fifo->free_blocks() == fifo->capacity() / kBlock; }));
  }
}

TEST(Fifo, AWriterThatDiesWithinAnEntryLeavesNothingBehind) {
  Bed bed({.nodes = 3});
  Fifo* fifo = bed[2].engine.create_fifo(1 << 20);
  const WriterId dies = bed.writer(0, 2, *fifo), lives = bed.writer(1, 2, *fifo);
  ASSERT_TRUE(bed.run([&] {
    return bed[0].engine.append(dies, {}, bed[0].bytes(0, 400'000), {}, bed.now()).status ==
           Status::ok;
  }));
  ASSERT_TRUE(bed.run([&] { return bed[2].count(Counter::bytes_appended) > 20'000; }));
  bed.vanish(0);
  // Others write past it; what they write can be read, and space comes back when it is given up.
  for (std::uint64_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(bed.run([&] {
      return bed[1]
                 .engine.append(lives, {}, std::as_bytes(std::span(&i, 1)), kSilentBatch, bed.now())
                 .status == Status::ok;
    }));
    ASSERT_TRUE(bed.run([&] { return fifo->front().has_value(); }));
    EXPECT_EQ(fifo->front()->from, bed.peer(2, 1));
    fifo->pop();
  }
  EXPECT_LT(fifo->free_blocks() + fifo->lent_blocks(), fifo->capacity() / kBlock);
  ASSERT_TRUE(bed.run([&] { return bed[2].count(Counter::entries_abandoned) == 1; }, seconds{20}));
  EXPECT_EQ(fifo->free_blocks() + fifo->lent_blocks(), fifo->capacity() / kBlock);
  EXPECT_FALSE(fifo->front());
}

TEST(Fifo, AWithdrawnOneTellsItsWritersWhy) {
  Bed bed;
  Fifo* fifo = bed[1].engine.create_fifo(4096);
  const WriterId writer = bed.writer(0, 1, *fifo);
  const Key key = fifo->key();
  ASSERT_TRUE(bed[1].engine.withdraw(key));
  const auto append = [&] {
    return bed[0].engine.append(writer, {}, bytes_of_text("late"), {}, bed.now());
  };
  EXPECT_EQ(bed.complete(0, append).status, Status::withdrawn);
  Status status = Status::ok;
  ASSERT_TRUE(bed.run([&] {
    Completion c;
    while (bed[0].engine.next_completion(c)) EXPECT_EQ(c.status, Status::withdrawn);
    status = append().status;
    return status != Status::ok && status != Status::no_room;
  })) << "its credit has run out";
  EXPECT_EQ(status, Status::withdrawn);
  const WriterId again = bed[0].engine.open_writer(bed.peer(0, 1), key, bed.now());
  ASSERT_TRUE(bed.run([&] {
    return bed[0].engine.append(again, {}, bytes_of_text("late"), {}, bed.now()).status ==
           Status::withdrawn;
  }));
}

TEST(Fifo, OpeningTwiceGivesTheSameEndAndEndsRunOut) {
  BedConfig config;
  config.driver.engine.max_writers = 2;
  Bed bed(config);
  Fifo* one = bed[1].engine.create_fifo(1);
  Fifo* two = bed[1].engine.create_fifo(1);
  Fifo* three = bed[1].engine.create_fifo(1);
  const WriterId first = bed.writer(0, 1, *one);
  EXPECT_EQ(bed.writer(0, 1, *one), first);
  EXPECT_TRUE(bed.writer(0, 1, *two));
  const auto open = [&] {
    return bed[0].engine.open_writer(bed.peer(0, 1), three->key(), bed.now());
  };
  EXPECT_FALSE(open());
  bed[0].engine.close_writer(first);
  EXPECT_EQ(bed[0].engine.append(first, {}, {}, {}, bed.now()).status, Status::no_key);
  bed.run_for(milliseconds{1});
  EXPECT_TRUE(open());
  EXPECT_EQ(bed[0].engine.append(first, {}, {}, {}, bed.now()).status, Status::no_key);
  EXPECT_EQ(bed[0].engine.append({}, {}, {}, {}, bed.now()).status, Status::no_key);
}

TEST(Fifo, CreditOfRefusedCombinationsComesBack) {
  Bed bed;
  Fifo* fifo = bed[1].engine.create_fifo(4096);
  WriterId writer = bed.writer(0, 1, *fifo);
  const auto write = [&](std::uint64_t offset, std::size_t size) {
    return bed
        .complete(0,
                  [&] {
                    return bed[0].engine.write(bed.remote(0, 1, offset), bed[0].bytes(0, size),
                                               Then::append(writer, bytes_of_text("e")), {},
                                               bed.now());
                  })
        .status;
  };
  for (const std::size_t size : {8, 1600, 30'000, 300'000})
    for (int i = 0; i < 100; ++i)
      ASSERT_EQ(write(bed[1].memory.size(), size), Status::out_of_range) << size << ' ' << i;
  // Refused in the middle.
  for (int i = 0; i < 100; ++i) {
    const Key key = bed[1].engine.export_segment(bed[1].bytes(0, 400'000), Rights::all);
    ASSERT_TRUE(bed.run([&] {
      return bed[0]
                 .engine
                 .write({bed.peer(0, 1), key, 0}, bed[0].bytes(0, 400'000),
                        Then::append(writer, bytes_of_text("e")), {}, bed.now())
                 .status == Status::ok;
    })) << i;
    bed.run_for(std::chrono::microseconds{10 * i});
    if (i % 2 != 0) bed[0].engine.close_writer(writer);
    bed[1].engine.withdraw(key);
    Completion c;
    ASSERT_TRUE(bed.run([&] { return bed[0].engine.next_completion(c); }));
    while (fifo->front()) fifo->pop();
    if (i % 2 != 0) writer = bed.writer(0, 1, *fifo);
  }
  bed[0].engine.close_writer(writer);
  EXPECT_TRUE(bed.run([&] { return fifo->free_blocks() == 64; })) << fifo->lent_blocks();
}

TEST(Fifo, AnEntryThatIsTooLongBeforeThatIsKnownHarmsNothing) {
  Bed bed;
  Fifo* fifo = bed[1].engine.create_fifo(4096);
  const WriterId writer = bed[0].engine.open_writer(bed.peer(0, 1), fifo->key(), bed.now());
  const auto append = [&](std::size_t size) {
    return bed[0].engine.append(writer, {}, bed[0].bytes(0, size), kSilentBatch, bed.now()).status;
  };
  EXPECT_EQ(append(5000), Status::no_room);
  ASSERT_TRUE(bed.run([&] { return append(5000) == Status::too_long; }));
  EXPECT_TRUE(bed.run([&] { return append(4096) == Status::ok; }));
  EXPECT_EQ(bed[1].count(Counter::drop_credit), 0u);
}

TEST(Fifo, AClosedEndCanBeOpenedAgainAtAnyMoment) {
  BedConfig config;
  config.driver.engine.max_writers = 1;
  Bed bed(config);
  Fifo* fifo = bed[1].engine.create_fifo(4096);
  for (int pause = 0; pause < 60; ++pause) {
    const WriterId writer = bed.writer(0, 1, *fifo);
    ASSERT_TRUE(writer) << pause;
    ASSERT_TRUE(bed.run([&] {
      return bed[0].engine.append(writer, {}, bytes_of_text("x"), kSilentBatch, bed.now()).status ==
             Status::ok;
    }));
    bed[0].engine.close_writer(writer);
    for (int i = 0; i < pause / 4; ++i) bed.run_for(std::chrono::microseconds{1});
    while (fifo->front()) fifo->pop();
  }
  bed.run_for(milliseconds{1});
  while (fifo->front()) fifo->pop();
  EXPECT_EQ(bed[1].count(Counter::entries_received), 60u);
  EXPECT_EQ(fifo->free_blocks(), 64u);
  // Also one whose FIFO goes away while it is being closed.
  const WriterId writer = bed.writer(0, 1, *fifo);
  bed[0].engine.close_writer(writer);
  bed[1].engine.withdraw(fifo->key());
  bed.run_for(milliseconds{1});
  Fifo* next = bed[1].engine.create_fifo(4096);
  EXPECT_TRUE(bed.writer(0, 1, *next));
}

TEST(Fifo, AnEntryOnAWriteNeedsCreditToo) {
  Bed bed;
  Fifo* fifo = bed[1].engine.create_fifo(4096);
  const WriterId writer = bed.writer(0, 1, *fifo);
  int sent = 0;
  bed.run(
      [&] {
        const Issued issued = bed[0].engine.write(bed.remote(0, 1), bed[0].bytes(0, 3000),
                                                  Then::append(writer, bytes_of_text("e")),
                                                  {.silent = true}, bed.now());
        sent += issued.status == Status::ok;
        return false;
      },
      milliseconds{20});
  EXPECT_EQ(sent, 64);
  EXPECT_EQ(bed[1].count(Counter::entries_received), 64u);
  const std::vector<std::byte> big(kMaxChainedEntry + 1);
  EXPECT_EQ(
      bed[0].engine.write(bed.remote(0, 1), {}, Then::append(writer, big), {}, bed.now()).status,
      Status::too_long);
  EXPECT_EQ(bed[0].engine.write(bed.remote(0, 1), {}, Then::append({}, big), {}, bed.now()).status,
            Status::too_long);
}

// Where signals come so often that few reservations end undisturbed, as Linux before 6.8 has it.
TEST(Fifo, IsMadeWhateverSignalsCome) {
  Bed bed;
  signals_come = true;
  Fifo* fifo = nullptr;
  EXPECT_NO_THROW(fifo = bed[0].engine.create_fifo(std::size_t{1} << 25));
  signals_come = false;
  ASSERT_NE(fifo, nullptr);
  EXPECT_EQ(fifo->capacity(), std::size_t{1} << 25);
}

}  // namespace
}  // namespace viaduct::mbcf
