// Each request does what it promises, and its initiator learns the outcome.
#include <poll.h>
#include <unistd.h>

#include <deque>

#include "tests/mbcf/bed.hpp"

namespace viaduct::mbcf {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class RequestTest : public ::testing::Test {
 protected:
  Engine<sim::SimPort>& a() { return bed[0].engine; }
  Engine<sim::SimPort>& b() { return bed[1].engine; }
  Remote at_b(std::uint64_t offset = 0) { return bed.remote(0, 1, offset); }
  void fence() {
    EXPECT_EQ(bed.complete(0, [&] { return a().fence(bed.peer(0, 1), {}, bed.now()); }).status,
              Status::ok);
  }

  Bed bed;
};

TEST_F(RequestTest, WritesOfEverySizeArriveAndNothingBesidesThem) {
  for (const std::size_t size :
       {0, 1, 4, 7, 8, 9, 500, 520, 540, 1400, 1420, 1440, 1460, 1500, 3000, 100'000, 300'000}) {
    bed[0].fill(0, size, static_cast<std::uint32_t>(size));
    std::fill(bed[1].memory.begin(), bed[1].memory.end(), std::byte{0});
    const Completion c = bed.complete(0, [&] {
      return a().write(at_b(64), bed[0].bytes(0, size), {.context = size}, bed.now());
    });
    EXPECT_EQ(c.status, Status::ok) << size;
    EXPECT_EQ(c.context, size);
    EXPECT_TRUE(bed[1].holds(64, size, static_cast<std::uint32_t>(size))) << size;
    EXPECT_EQ(std::count_if(bed[1].memory.begin(), bed[1].memory.begin() + 64,
                            [](std::byte x) { return x != std::byte{0}; }),
              0);
    EXPECT_EQ(bed[1].memory[64 + size], std::byte{0});
  }
}

TEST_F(RequestTest, ReadsOfEverySizeArrive) {
  for (const std::size_t size : {0, 1, 4, 8, 520, 540, 1440, 1460, 1500, 3000, 100'000, 300'000}) {
    bed[1].fill(8, size, static_cast<std::uint32_t>(size));
    std::fill(bed[0].memory.begin(), bed[0].memory.end(), std::byte{0});
    const Completion c =
        bed.complete(0, [&] { return a().read(at_b(8), bed[0].bytes(16, size), {}, bed.now()); });
    EXPECT_EQ(c.status, Status::ok) << size;
    EXPECT_TRUE(bed[0].holds(16, size, static_cast<std::uint32_t>(size))) << size;
    EXPECT_EQ(bed[0].memory[16 + size], std::byte{0});
  }
}

TEST_F(RequestTest, AtomicsOnBothWidths) {
  const auto run = [&](auto issue) {
    const Completion c = bed.complete(0, issue);
    EXPECT_EQ(c.status, Status::ok);
    return c.value;
  };
  for (const Width w : {Width::four, Width::eight}) {
    const std::uint64_t offset = w == Width::four ? 4 : 64;
    const std::uint64_t most = w == Width::four ? 0xffffffffu : ~std::uint64_t{0};
    const auto word = [&] {
      return w == Width::four ? bed[1].word<std::uint32_t>(offset)
                              : bed[1].word<std::uint64_t>(offset);
    };
    EXPECT_EQ(run([&] { return a().swap(at_b(offset), w, most, {}, bed.now()); }), 0u);
    EXPECT_EQ(word(), most);
    EXPECT_EQ(run([&] { return a().fetch_add(at_b(offset), w, 3, {}, bed.now()); }), most);
    EXPECT_EQ(word(), 2u) << "it wraps at its own width";
    EXPECT_EQ(run([&] { return a().compare_swap(at_b(offset), w, 7, 9, {}, bed.now()); }), 2u);
    EXPECT_EQ(word(), 2u);
    EXPECT_EQ(run([&] { return a().compare_swap(at_b(offset), w, 2, 9, {}, bed.now()); }), 2u);
    EXPECT_EQ(word(), 9u);
  }
  EXPECT_EQ(bed[1].word<std::uint32_t>(8), 0u) << "a word of four bytes is four bytes";
}

TEST_F(RequestTest, SilentRequestsActAndSayNothingUnlessRefused) {
  const Options silent{.silent = true};
  for (std::uint64_t i = 0; i < 100; ++i)
    EXPECT_EQ(a().write(at_b(8 * i), std::as_bytes(std::span(&i, 1)), silent, bed.now()).status,
              Status::ok);
  bed[0].fill(0, 50'000, 5);
  EXPECT_EQ(a().write(at_b(1000), bed[0].bytes(0, 50'000), silent, bed.now()).status, Status::ok);
  EXPECT_EQ(a().fetch_add(at_b(0), Width::eight, 42, silent, bed.now()).status, Status::ok);
  fence();
  EXPECT_TRUE(bed[1].holds(1000, 50'000, 5));
  EXPECT_EQ(bed[1].word<std::uint64_t>(0), 42u);
  EXPECT_EQ(bed[1].word<std::uint64_t>(8 * 99), 99u);
  Completion c;
  EXPECT_FALSE(a().next_completion(c));

  const Issued outside =
      a().write(at_b(bed[1].memory.size()), bed[0].bytes(0, 1), silent, bed.now());
  ASSERT_TRUE(bed.run([&] { return a().next_completion(c); }));
  EXPECT_EQ(c.id, outside.id);
  EXPECT_EQ(c.status, Status::out_of_range);
}

// What relocate() moves is the rest of an append: another request's data stays where it is.
TEST_F(RequestTest, OnlyAppendsCanBeMoved) {
  bed[0].fill(0, 400'000, 1);
  const Issued write = a().write(at_b(0), bed[0].bytes(0, 400'000), {}, bed.now());
  ASSERT_EQ(write.status, Status::ok);
  const std::vector<std::byte> other(400'000);
  a().relocate(write.id, other);
  Completion c;
  ASSERT_TRUE(bed.run([&] { return a().next_completion(c); }));
  EXPECT_TRUE(bed[1].holds(0, 400'000, 1));
}

// A fence must not pass long requests, which travel apart from it.
TEST_F(RequestTest, AFenceWaitsForAllBeforeItAndForNothingBehindIt) {
  bed[0].fill(0, 400'000, 1);
  ASSERT_EQ(a().write(at_b(0), bed[0].bytes(0, 400'000), {.context = 1}, bed.now()).status,
            Status::ok);
  ASSERT_EQ(a().read(at_b(500'000), bed[0].bytes(500'000, 9000), {.context = 2}, bed.now()).status,
            Status::ok);
  ASSERT_EQ(a().fence(bed.peer(0, 1), {.context = 3}, bed.now()).status, Status::ok);
  ASSERT_EQ(a().write(at_b(0), bed[0].bytes(0, 400'000), {.context = 4}, bed.now()).status,
            Status::ok);
  std::vector<std::uint64_t> order;
  ASSERT_TRUE(bed.run([&] {
    for (Completion c; a().next_completion(c);) {
      EXPECT_EQ(c.status, Status::ok);
      order.push_back(c.context);
      if (c.context == 3) {
        EXPECT_TRUE(bed[1].holds(0, 400'000, 1));
      }
    }
    return order.size() == 4;
  }));
  EXPECT_LT(std::find(order.begin(), order.end(), 1), std::find(order.begin(), order.end(), 3));
  EXPECT_LT(std::find(order.begin(), order.end(), 2), std::find(order.begin(), order.end(), 3));
  EXPECT_EQ(order.back(), 4u);
}

TEST_F(RequestTest, RefusalsSayWhyAndTouchNothing) {
  const Key readable = b().export_segment(bed[1].bytes(0, 4096), Rights::read);
  const Key writable = b().export_segment(bed[1].bytes(0, 4096), Rights::write);
  Fifo* fifo = b().create_fifo(4096);
  const Key signal = b().create_signal([](std::uint64_t) { FAIL(); });
  const link::PeerId to = bed.peer(0, 1);
  const std::span<std::byte> local = bed[0].bytes(0, 8);
  std::fill(local.begin(), local.end(), std::byte{1});
  const auto status = [&](auto issue) { return bed.complete(0, issue).status; };
  const auto write = [&](Key key, std::uint64_t offset, std::size_t size) {
    return status([&] {
      return a().write({to, key, offset}, bed[0].bytes(0, size), {}, bed.now());
    });
  };
  const auto add = [&](Key key, std::uint64_t offset) {
    return status([&] { return a().fetch_add({to, key, offset}, Width::eight, 1, {}, bed.now()); });
  };
  const auto read = [&](Key key, std::uint64_t offset, std::size_t size) {
    return status([&] {
      return a().read({to, key, offset}, bed[0].bytes(8, size), {}, bed.now());
    });
  };
  EXPECT_EQ(write(readable, 0, 8), Status::no_right);
  EXPECT_EQ(write(readable, 0, 4000), Status::no_right);
  EXPECT_EQ(read(writable, 0, 8), Status::no_right);
  EXPECT_EQ(read(writable, 0, 4000), Status::no_right);
  EXPECT_EQ(add(writable, 0), Status::no_right);
  EXPECT_EQ(add(bed[1].all, 4), Status::misaligned);
  EXPECT_EQ(write(fifo->key(), 0, 8), Status::wrong_kind);
  EXPECT_EQ(write(signal, 0, 8), Status::wrong_kind);
  EXPECT_EQ(status([&] { return a().signal(to, bed[1].all, {}, bed.now()); }), Status::wrong_kind);
  EXPECT_EQ(write({}, 0, 8), Status::no_key);
  EXPECT_EQ(write({bed[1].all.value ^ 0x10000}, 0, 8), Status::no_key);
  EXPECT_EQ(write({bed[1].all.value ^ 0x7fff}, 0, 8), Status::no_key) << "far behind the table";
  for (const std::uint64_t offset : {std::uint64_t{4089}, std::uint64_t{4096}, std::uint64_t{4097},
                                     ~std::uint64_t{0}, ~std::uint64_t{7}})
    EXPECT_EQ(write(writable, offset, 8), Status::out_of_range) << offset;
  EXPECT_EQ(write(writable, 97, 4000), Status::out_of_range);
  EXPECT_EQ(write(writable, ~std::uint64_t{0} - 3999, 4000), Status::out_of_range);
  EXPECT_EQ(read(readable, 4089, 8), Status::out_of_range);
  EXPECT_EQ(read(readable, ~std::uint64_t{0}, 4000), Status::out_of_range);
  EXPECT_EQ(bed[1].written(), 0u);
  // The edges themselves are inside.
  EXPECT_EQ(write(writable, 4088, 8), Status::ok);
  EXPECT_EQ(write(writable, 4096, 0), Status::ok);
  EXPECT_EQ(write(writable, 96, 4000), Status::ok);
}

TEST_F(RequestTest, AWithdrawnSegmentAnswersClearlyAndIsLeftAlone) {
  const Key key = b().export_segment(bed[1].bytes(0, 500'000), Rights::all);
  bed[0].fill(0, 400'000, 3);
  // In the middle of a long write and of a long read.
  ASSERT_EQ(a().write({bed.peer(0, 1), key, 0}, bed[0].bytes(0, 400'000), {.context = 1}, bed.now())
                .status,
            Status::ok);
  ASSERT_EQ(
      a().read({bed.peer(0, 1), key, 0}, bed[0].bytes(500'000, 400'000), {.context = 2}, bed.now())
          .status,
      Status::ok);
  ASSERT_TRUE(bed.run([&] {
    return bed[1].count(Counter::bytes_written) > 50'000 &&
           bed[1].count(Counter::bytes_read) > 50'000;
  }));
  ASSERT_LT(bed[1].count(Counter::bytes_written), 400'000u) << "the test came too late";
  EXPECT_TRUE(b().withdraw(key));
  EXPECT_FALSE(b().withdraw(key));
  const std::vector<std::byte> before = bed[1].memory;
  int refused = 0;
  ASSERT_TRUE(bed.run([&] {
    for (Completion c; a().next_completion(c); ++refused) EXPECT_EQ(c.status, Status::withdrawn);
    return refused == 2;
  }));
  fence();
  EXPECT_EQ(bed[1].memory, before);
  // And afterwards, long and short ones, until the key is forgotten for a newer one at its place.
  for (const std::size_t size : {std::size_t{8}, std::size_t{10'000}})
    EXPECT_EQ(
        bed.complete(
               0,
               [&] {
                 return a().write({bed.peer(0, 1), key, 0}, bed[0].bytes(0, size), {}, bed.now());
               })
            .status,
        Status::withdrawn);
  // The connection is none the worse for it.
  EXPECT_EQ(bed.complete(0, [&] { return a().write(at_b(), bed[0].bytes(0, 9000), {}, bed.now()); })
                .status,
            Status::ok);
}

TEST_F(RequestTest, SignalsAreCountedAndNoneIsLost) {
  std::uint64_t told = 0;
  const Key key = b().create_signal([&](std::uint64_t count) { told += count; });
  int fd = -1;
  const Key pollable = b().create_signal_fd(fd);
  const link::PeerId to = bed.peer(0, 1);
  for (int sent = 0; sent < 2000;) {
    const Options silent{.urgency = link::Urgency::batch, .silent = true};
    if (a().signal(to, key, silent, bed.now()).status == Status::ok) {
      bed.run([&] { return a().signal(to, pollable, silent, bed.now()).status == Status::ok; });
      ++sent;
    } else {
      bed.run_for(std::chrono::microseconds{10});
    }
  }
  fence();
  EXPECT_EQ(told, 2000u);
  pollfd p{fd, POLLIN, 0};
  EXPECT_EQ(::poll(&p, 1, 0), 1);
  std::uint64_t count = 0;
  ASSERT_EQ(::read(fd, &count, sizeof count), static_cast<ssize_t>(sizeof count));
  EXPECT_EQ(count, 2000u);
  EXPECT_EQ(::poll(&p, 1, 0), 0);
}

TEST_F(RequestTest, AHandlerMayIssueRequestsAndWithdrawItself) {
  int called = 0;
  Key key;
  key = b().create_signal([&](std::uint64_t) {
    ++called;
    EXPECT_TRUE(b().withdraw(key));
    const std::uint64_t answer = 7;
    EXPECT_EQ(b().write(bed.remote(1, 0, 8), std::as_bytes(std::span(&answer, 1)), {.silent = true},
                        bed.now())
                  .status,
              Status::ok);
  });
  const link::PeerId to = bed.peer(0, 1);
  EXPECT_EQ(bed.complete(0, [&] { return a().signal(to, key, {}, bed.now()); }).status, Status::ok);
  EXPECT_TRUE(bed.run([&] { return bed[0].word<std::uint64_t>(8) == 7; }));
  EXPECT_EQ(bed.complete(0, [&] { return a().signal(to, key, {}, bed.now()); }).status,
            Status::withdrawn);
  EXPECT_EQ(called, 1);
}

TEST_F(RequestTest, TheSecondPartOfACombinationComesAfterItsData) {
  Fifo* fifo = b().create_fifo(4096);
  std::size_t size = 0;
  std::uint32_t seed = 0;
  int signals = 0;
  const Key key = b().create_signal([&](std::uint64_t count) {
    signals += static_cast<int>(count);
    EXPECT_TRUE(bed[1].holds(64, size, seed));
  });
  const WriterId writer = bed.writer(0, 1, *fifo);
  int entries = 0;
  for (const std::size_t n : {0, 1, 8, 100, 1200, 1350, 1380, 1400, 1440, 3000, 100'000}) {
    size = n;
    for (const Then& then : {Then::append(writer, bytes_of_text("it is there")), Then::raise(key),
                             Then::set(bed[1].all, 8, n + 1, Width::eight),
                             Then::set(bed[1].all, 4, 77, Width::four)}) {
      bed[0].fill(0, size, ++seed);
      std::fill(bed[1].memory.begin(), bed[1].memory.end(), std::byte{0});
      bool seen = false;
      Completion c{};
      ASSERT_EQ(a().write(at_b(64), bed[0].bytes(0, size), then, {}, bed.now()).status, Status::ok);
      ASSERT_TRUE(bed.run([&] {
        if (then.kind == Then::Kind::entry)
          while (const auto entry = fifo->front()) {
            EXPECT_EQ(text_of(*entry), "it is there");
            fifo->pop();
            ++entries;
            seen = true;
          }
        if (then.kind == Then::Kind::flag)
          seen = seen || (then.width == Width::eight ? bed[1].word<std::uint64_t>(8) == n + 1
                                                     : bed[1].word<std::uint32_t>(4) == 77);
        if (seen) {
          EXPECT_TRUE(bed[1].holds(64, size, seed));
        }
        return a().next_completion(c);
      }));
      EXPECT_EQ(c.status, Status::ok);
    }
  }
  EXPECT_EQ(entries, 11);
  EXPECT_EQ(signals, 11);
}

TEST_F(RequestTest, ACombinationThatFitsAFrameHappensWhollyOrNotAtAll) {
  const Key readable = b().export_segment(bed[1].bytes(0, 4096), Rights::read);
  Options options;
  const auto status = [&](Remote to, const Then& then) {
    bed[0].fill(0, 64, 1);
    const auto issue = [&] { return a().write(to, bed[0].bytes(0, 64), then, options, bed.now()); };
    return bed.complete(0, issue).status;
  };
  for (const bool silent : {false, true}) {
    options.silent = silent;
    EXPECT_EQ(status(at_b(), Then::raise({bed[1].all.value ^ 1u << 20})), Status::no_key);
    EXPECT_EQ(status(at_b(), Then::set(readable, 0, 1, Width::eight)), Status::no_right);
    EXPECT_EQ(status(at_b(), Then::set(bed[1].all, 4, 1, Width::eight)), Status::misaligned);
    EXPECT_EQ(status(at_b(), Then::set(bed[1].all, bed[1].memory.size() - 4, 1, Width::eight)),
              Status::out_of_range);
    EXPECT_EQ(status(at_b(bed[1].memory.size() - 63), Then::set(bed[1].all, 0, 1, Width::eight)),
              Status::out_of_range);
  }
  EXPECT_EQ(bed[1].written(), 0u);
}

// Entries whose data is refused give their credit back, or the FIFO would be full some time.
TEST_F(RequestTest, ASilentCombinationIsHeardOfOnlyIfItIsRefused) {
  Fifo* fifo = b().create_fifo(4096);
  const WriterId writer = bed.writer(0, 1, *fifo);
  const Options silent{.silent = true};
  const Then then = Then::append(writer, bytes_of_text("it is there"));
  bed[0].fill(0, 64, 1);
  for (int round = 0; round < 200; ++round) {
    const auto write = [&](Remote to) {
      return a().write(to, bed[0].bytes(0, 64), then, silent, bed.now()).status == Status::ok;
    };
    ASSERT_TRUE(bed.run([&] { return write(at_b(64)); }));
    ASSERT_TRUE(bed.run([&] { return write(at_b(bed[1].memory.size())); })) << round;
    Completion c{};
    ASSERT_TRUE(bed.run([&] { return a().next_completion(c); }));
    EXPECT_EQ(c.status, Status::out_of_range);
    ASSERT_TRUE(fifo->front());
    EXPECT_TRUE(bed[1].holds(64, 64, 1));
    fifo->pop();
    EXPECT_FALSE(fifo->front() || a().next_completion(c));
  }
}

TEST_F(RequestTest, AFullTableSaysSoAndRecovers) {
  BedConfig config;
  config.driver.engine.max_requests = 4;
  Bed small(config);
  auto& engine = small[0].engine;
  const std::uint64_t value = 1;
  const auto write = [&] {
    return engine.write(small.remote(0, 1, 8), std::as_bytes(std::span(&value, 1)), {}, small.now())
        .status;
  };
  for (int i = 0; i < 4; ++i) EXPECT_EQ(write(), Status::ok);
  EXPECT_EQ(write(), Status::no_room);
  small.run_for(milliseconds{5});
  EXPECT_EQ(write(), Status::no_room) << "the completions have not been taken";
  Completion c;
  int taken = 0;
  for (; engine.next_completion(c); ++taken) EXPECT_EQ(c.status, Status::ok);
  EXPECT_EQ(taken, 4);
  EXPECT_EQ(write(), Status::ok);
}

TEST_F(RequestTest, RequestsToAPeerThatEndsAreAllAccountedFor) {
  fence();  // connected
  bed.vanish(1);
  Fifo* fifo = b().create_fifo(4096);
  const WriterId writer = a().open_writer(bed.peer(0, 1), fifo->key(), bed.now());
  const link::PeerId to = bed.peer(0, 1);
  std::set<std::uint32_t> open;
  const auto note = [&](const Issued& issued) {
    ASSERT_EQ(issued.status, Status::ok);
    open.insert(issued.id.value);
  };
  note(a().write(at_b(), bed[0].bytes(0, 8), {}, bed.now()));
  note(a().write(at_b(), bed[0].bytes(0, 300'000), {}, bed.now()));
  note(a().write(at_b(), bed[0].bytes(0, 300'000), {.silent = true}, bed.now()));
  for (int i = 0; i < 5; ++i) note(a().read(at_b(), bed[0].bytes(0, 100'000), {}, bed.now()));
  note(a().fetch_add(at_b(), Width::eight, 1, {}, bed.now()));
  note(a().fence(to, {}, bed.now()));
  ASSERT_TRUE(bed.run(
      [&] {
        for (Completion c; a().next_completion(c);) {
          EXPECT_EQ(c.status, Status::peer_down);
          EXPECT_EQ(open.erase(c.id.value), 1u);
        }
        return open.empty();
      },
      seconds{20}));
  EXPECT_EQ(a().append(writer, {}, bytes_of_text("x"), {}, bed.now()).status, Status::peer_down);
  EXPECT_EQ(a().write({to, bed[1].all, 0}, bed[0].bytes(0, 8), {}, bed.now()).status,
            Status::peer_down);
  EXPECT_EQ(a().write({to, bed[1].all, 0}, bed[0].bytes(0, 80'000), {}, bed.now()).status,
            Status::peer_down);
  EXPECT_EQ(bed[0].port.frames_in_use(), 0u);
}

TEST_F(RequestTest, RequestsToAnEarlierLifeNeverActOnTheNext) {
  fence();
  const Key old_key = bed[1].all;
  for (int i = 0; i < 20; ++i) a().fetch_add(at_b(), Width::eight, 1, {}, bed.now());
  bed.restart(1);
  // Whoever still has the old key is told that it is none.
  const std::uint64_t one = 1;
  std::size_t open = 20;
  bool told = false;
  ASSERT_TRUE(bed.run(
      [&] {
        for (Completion c; a().next_completion(c); --open) {
          told = told || c.status == Status::no_key;
          EXPECT_TRUE(c.status == Status::no_key || c.status == Status::ok ||
                      c.status == Status::peer_down)
              << text(c.status);
        }
        const Remote old{bed.peer(0, 1), old_key, 0};
        open += !told && a().write(old, std::as_bytes(std::span(&one, 1)), {}, bed.now()).status ==
                             Status::ok;
        return told && open == 0;
      },
      seconds{20}));
  EXPECT_EQ(bed[1].word<std::uint64_t>(0), 0u);
  EXPECT_EQ(
      bed.complete(0, [&] { return a().fetch_add(at_b(), Width::eight, 1, {}, bed.now()); }).status,
      Status::ok);
  EXPECT_EQ(bed[1].word<std::uint64_t>(0), 1u);
}

TEST_F(RequestTest, AnEngineMayComeAfterTheConnection) {
  sim::SimNetwork net;
  sim::SimPort& here = net.add_port();
  sim::SimPort& there = net.add_port();
  link::LinkConfig one, two;
  one.seed = 1;
  two.seed = 2;
  link::Link<sim::SimPort> mine(here, one), theirs(there, two);
  const link::PeerId to = mine.peer(there.address());
  mine.connect(to, net.now());
  const auto poll = [&](auto& a, auto& b) {
    a.poll(net.now());
    b.poll(net.now());
    net.step(net.now() + std::chrono::microseconds{5});
  };
  while (!mine.connected(to)) poll(mine, theirs);
  Engine<sim::SimPort> client(mine, {}), server(theirs, {});
  std::vector<std::byte> memory(20'000), data(20'000, std::byte{3}), back(20'000);
  const Key key = server.export_segment(memory, Rights::all);
  Fifo* fifo = server.create_fifo(1 << 15);
  const WriterId writer = client.open_writer(to, fifo->key(), net.now());
  EXPECT_EQ(client.write({to, key, 0}, data, {}, net.now()).status, Status::ok);
  for (int i = 0; i < 2000; ++i) poll(client, server);
  EXPECT_EQ(memory, data);
  EXPECT_EQ(client.read({to, key, 0}, back, {}, net.now()).status, Status::ok);
  EXPECT_EQ(client.append(writer, {}, std::span(data).first(10'000), {}, net.now()).status,
            Status::ok);
  for (int i = 0; i < 2000; ++i) poll(client, server);
  EXPECT_EQ(back, data);
  ASSERT_TRUE(fifo->front());
  EXPECT_EQ(fifo->front()->bytes.size(), 10'000u);
}

TEST_F(RequestTest, ImpossibleConfigurationsAreRefusedWithOneSentence) {
  for (const EngineConfig& config :
       {EngineConfig{.max_keys = 0}, EngineConfig{.max_keys = 65536},
        EngineConfig{.max_requests = 0}, EngineConfig{.max_requests = 65536},
        EngineConfig{.max_writers = 0}}) {
    sim::SimNetwork net;
    link::Link<sim::SimPort> link(net.add_port(), {});
    EXPECT_THROW(Engine<sim::SimPort>(link, config), base::SetupError);
  }
  EXPECT_THROW(b().create_fifo(0), base::SetupError);
  EXPECT_THROW(b().create_fifo(~std::size_t{0}), base::SetupError);
}

TEST_F(RequestTest, KeysAreUnlikeEachOtherAndRunOut) {
  BedConfig config;
  config.driver.engine.max_keys = 3;
  Bed small(config);
  auto& engine = small[0].engine;  // has one already
  const Key one = engine.export_segment(small[0].memory, Rights::all);
  const Key two = engine.export_segment(small[0].memory, Rights::all);
  EXPECT_TRUE(one && two);
  EXPECT_NE(one.value >> 16, two.value >> 16);
  EXPECT_FALSE(engine.export_segment(small[0].memory, Rights::all));
  EXPECT_EQ(engine.create_fifo(1), nullptr);
  EXPECT_FALSE(engine.create_signal([](std::uint64_t) {}));
  EXPECT_TRUE(engine.withdraw(one));
  EXPECT_NE(engine.export_segment(small[0].memory, Rights::all), one);
}

}  // namespace
}  // namespace viaduct::mbcf
