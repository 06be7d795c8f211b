// Two processes on a memif pair: a node each, opened as programs open it.
#include <sys/eventfd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <map>

#include "drivers/mbcf/node.hpp"
#include "tests/support/two_processes.hpp"

namespace viaduct::mbcf {
namespace {

constexpr std::size_t kLong = 3'000'000;
constexpr std::uint64_t kEntries = 2'000, kAtomics = 2'000;
constexpr std::size_t kLongEntry = 20'000, kMaxShort = 1'000;

// A segment: a word to count in, a flag, then bytes.
constexpr std::size_t kCounter = 0, kFlag = 8, kBytes = 64;

class Side : public link::test::MemifSide<Node> {
 public:
  struct Keys {
    Key segment, fifo, signal;
  };

  Side(const std::string& directory, int index)
      : MemifSide(directory, index),
        memory_(kBytes + kLong),
        source_(kLong),
        index_(index),
        asleep_(directory + "/asleep") {
    for (std::size_t i = 0; i < kLong; ++i) source_[i] = expected(i, index);
    fifo_ = engine().create_fifo(1 << 16);
    ours_ = {engine().export_segment(memory_, Rights::all), fifo_->key(),
             engine().create_signal_fd(signal_)};
    must(ours_.segment && ours_.fifo && ours_.signal, "keys");
    theirs_ = exchange(directory, index, ours_);
  }
  Engine<port::Port>& engine() { return node().engine(); }
  const Keys& theirs() const { return theirs_; }
  Remote at(std::uint64_t offset) const { return {peer(), theirs_.segment, offset}; }
  std::span<const std::byte> source(std::size_t length = kLong) const {
    return std::span(source_).first(length);
  }

  // Until the link takes it.
  RequestId issue(const std::function<Issued()>& request, const char* what) {
    Issued issued;
    until([&] { return (issued = request()).status != Status::no_room; }, what);
    must(issued.status == Status::ok, what);
    return issued.id;
  }
  Completion complete(RequestId id, const char* what) {
    Completion c{};
    until([&] { return engine().next_completion(c); }, what);
    must(c.id == id && c.status == Status::ok && c.peer == peer(), what);
    return c;
  }
  Completion execute(const std::function<Issued()>& request, const char* what) {
    return complete(issue(request, what), what);
  }

  // Each writes into the other, and knows by the flag when the other has.
  void exchange_bytes() {
    const Then then = Then::set(theirs_.segment, kFlag, 7, Width::eight);
    execute([&] { return engine().write(at(kBytes), source(), then, {}, port::now()); }, "write");
    until([&] { return word(kFlag) == 7; }, "flag");
    for (std::size_t i = 0; i < kLong; ++i)
      must(memory_[kBytes + i] == expected(i, 1 - index_), "written bytes");
    std::vector<std::byte> back(kLong);
    execute([&] { return engine().read(at(kBytes), back, {}, port::now()); }, "read");
    must(back == source_, "read bytes");
  }

  // Many at once; each former value is there once, in the order of issue.
  void count_in_the_other() {
    std::uint64_t issued = 0, complete = 0;
    const auto count = [&] {
      while (issued < kAtomics) {
        const Options options{.urgency = link::Urgency::batch, .context = issued};
        const Status status =
            engine().fetch_add(at(kCounter), Width::eight, 1, options, port::now()).status;
        must(status == Status::ok || status == Status::no_room, "fetch_add");
        if (status != Status::ok) break;
        ++issued;
      }
      for (Completion c; engine().next_completion(c); ++complete)
        must(c.status == Status::ok && c.value == c.context, "counted once");
      return complete == kAtomics && word(kCounter) == kAtomics;
    };
    until(count, "atomics");
  }

  // Short and long entries, in order and nothing missing, both ways at once.
  void exchange_entries() {
    const auto length = [](std::uint64_t n) {
      return n % 100 == 99 ? kLongEntry : n * 37 % kMaxShort;
    };
    const WriterId writer = engine().open_writer(peer(), theirs_.fifo, port::now());
    std::uint64_t sent = 0, got = 0, complete = 0;
    until(
        [&] {
          while (sent < kEntries) {
            const Issued issued =
                engine().append(writer, bytes_of(sent), source(length(sent)), {}, port::now());
            must(issued.status == Status::ok || issued.status == Status::no_room, "append");
            if (issued.status != Status::ok) break;
            ++sent;
          }
          for (Completion c; engine().next_completion(c); ++complete)
            must(c.status == Status::ok, "entry");
          for (; const auto entry = fifo_->front(); ++got, fifo_->pop())
            check_entry(*entry, got, length(got));
          return got == kEntries && complete == kEntries;
        },
        "entries");
    engine().close_writer(writer);
  }
  void check_entry(const Entry& entry, std::uint64_t number, std::size_t length) const {
    must(entry.from == peer() && entry.bytes.size() == sizeof number + length, "length of entry");
    must(std::memcmp(entry.bytes.data(), &number, sizeof number) == 0, "order of entries");
    for (std::size_t i = 0; i < length; ++i)
      must(entry.bytes[sizeof number + i] == expected(i, 1 - index_), "bytes of entry");
  }

  void raise() {
    execute([&] { return engine().signal(peer(), theirs_.signal, {}, port::now()); }, "signal");
  }
  void await_signal() {
    std::uint64_t count = 0;
    until([&] { return eventfd_read(signal_, &count) == 0; }, "being signalled");
    must(count == 1, "one signal");
  }

  // Polls no more.
  [[noreturn]] void fall_asleep() {
    settle();
    std::ofstream{asleep_};
    for (;;) pause();
  }
  void until_other_sleeps() {
    until([&] { return std::filesystem::exists(asleep_); }, "the other's sleep");
  }

 private:
  static std::byte expected(std::size_t i, int from) {
    return static_cast<std::byte>(i * 7 + i / 253 + static_cast<std::size_t>(from));
  }
  std::uint64_t word(std::size_t offset) {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(memory_.data() + offset)).load();
  }

  std::vector<std::byte> memory_, source_;
  const int index_;
  const std::string asleep_;  // a file
  Fifo* fifo_ = nullptr;
  int signal_ = -1;
  Keys ours_, theirs_;
};

using TwoProcesses = link::test::TwoProcesses<Side>;

TEST_F(TwoProcesses, AllRequestsWork) {
  run([](Side& side, int index) {
    side.exchange_bytes();
    side.count_in_the_other();
    side.exchange_entries();
    // Neither leaves before the other is done: the last words are signals.
    if (index == 0) {
      side.raise();
      side.await_signal();
    } else {
      side.await_signal();
      side.raise();
    }
    side.settle();
  });
}

// Every request, to a peer that no longer answers.
TEST_F(TwoProcesses, RequestsToAKilledProcessEnd) {
  kill_one(
      [](Side& side) {
        Engine<port::Port>& engine = side.engine();
        const WriterId writer = engine.open_writer(side.peer(), side.theirs().fifo, port::now());
        side.until([&] { return engine.capacity(writer) != 0; }, "credit");
        side.raise();
        side.until_other_sleeps();
        std::uint64_t word = 0;
        std::vector<std::byte> back(kLong);
        std::map<std::uint32_t, bool> open;
        const auto ask = [&](const std::function<Issued()>& request) {
          open[side.issue(request, "request").value] = true;
        };
        const link::Time now = port::now();
        const auto at = [&] { return side.at(kBytes); };
        ask([&] { return engine.write(at(), side.source(8), {}, now); });
        ask([&] {
          return engine.read(at(), std::as_writable_bytes(std::span(&word, 1)), {}, now);
        });
        ask([&] { return engine.fetch_add(at(), Width::eight, 1, {}, now); });
        ask([&] { return engine.signal(side.peer(), side.theirs().signal, {}, now); });
        ask([&] { return engine.append(writer, {}, side.source(kLongEntry), {}, now); });
        ask([&] { return engine.write(at(), side.source(), {}, now); });
        ask([&] { return engine.read(at(), back, {}, now); });
        ask([&] { return engine.fence(side.peer(), {}, now); });
        link::Child::tell();
        side.await_death();
        for (Completion c; engine.next_completion(c);)
          Side::must(c.status == Status::peer_down && open.erase(c.id.value) == 1, "completion");
        Side::must(open.empty(), "a completion for each request");
        Side::must(engine.append(writer, {}, side.source(8), {}, now).status == Status::peer_down,
                   "appending to the dead");
        Side::must(engine.write(at(), side.source(8), {}, now).status == Status::peer_down,
                   "writing to the dead");
      },
      [](Side& side) {
        side.await_signal();
        side.fall_asleep();
      });
}

}  // namespace
}  // namespace viaduct::mbcf
