// The rawdev's selftest: two engines on a simulated network that loses, doubles, reorders and
// damages frames (rawdev/selftest_pair.hpp) issue every kind of request to each other.
#include "drivers/mbcf/selftest.hpp"

#include <cstring>
#include <functional>
#include <vector>

#include "drivers/mbcf/engine.hpp"
#include "drivers/rawdev/selftest_pair.hpp"

namespace viaduct::mbcf {
namespace {

// A segment's layout in bytes: three words for the atomic operations, the flag, the areas of the
// short writes and of the long one. kLong is far more than a frame, kLongEntry a few frames.
constexpr std::size_t kFlag = 24, kShortArea = 64, kShort = 100, kShorts = 400;
constexpr std::size_t kLongArea = kShortArea + kShort * kShorts, kLong = 100'000;
constexpr std::uint64_t kAtomics = 600, kEntries = 400, kSignals = 100, kFlagValue = 0x1234;
constexpr std::size_t kLongEntry = 5'000;

class Selftest {
 public:
  // Empty when all is well, else what is not. The steps build on each other: later ones count
  // entries and signals on from where earlier ones ended.
  std::string run() {
    for (std::size_t n = 0; n < kLong; ++n) source_[n] = static_cast<std::byte>(n * 31 + n / 251);
    for (std::size_t i : {0, 1})
      if (!offer(i)) return "segments, FIFOs and signals cannot be made";
    if (!atomics()) return "atomic operations are not executed exactly once and in order";
    if (!short_writes()) return "short writes do not arrive as they were sent";
    if (!entries()) return "FIFO entries do not arrive as they were sent";
    if (!signals()) return "signals do not arrive exactly once";
    if (!combinations()) return "writes with a second part are not executed as they should be";
    if (!reads()) return "reads do not give what is there";
    if (!refusals()) return "bad requests are not refused as they should be";
    return {};
  }
  std::uint64_t lost_frames() const { return pair_.lost_frames(); }

 private:
  // One of the two tasks: what it has registered, and what it has received.
  struct Side {
    std::vector<std::byte> memory = std::vector<std::byte>(kLongArea + kLong);
    std::vector<std::byte> local = std::vector<std::byte>(kLong);
    Key segment, signal;
    Fifo* fifo = nullptr;
    WriterId writer;                         // to the other's FIFO
    std::uint64_t signals = 0, entries = 0;  // received
    bool good = true;                        // all entries were as they should be
  };
  using Issue = std::function<Issued(std::size_t side, std::uint64_t n)>;
  using Check = std::function<bool(const Completion&)>;

  bool offer(std::size_t i) {
    Side& side = sides_[i];
    side.segment = pair_[i].export_segment(side.memory, Rights::all);
    side.fifo = pair_[i].create_fifo(32 * 1024);
    side.signal = pair_[i].create_signal([&](std::uint64_t count) { side.signals += count; });
    return side.segment && side.fifo != nullptr && side.signal;
  }
  Remote at(std::size_t i, std::uint64_t offset) {
    return {pair_.other(i), sides_[1 - i].segment, offset};
  }
  std::span<const std::byte> source(std::size_t from, std::size_t length) const {
    return std::span(source_).subspan(from, length);
  }

  // Both sides issue `count` requests, the n-th by `issue(side, n)`, as fast as there is room, and
  // take their completions and entries. True if all completed in time with ok, and `check` agreed.
  bool all(std::uint64_t count, const Issue& issue, const Check& check = {}) {
    std::uint64_t issued[2] = {}, done[2] = {};
    bool good = true;
    const bool complete = pair_.wait([&] {
      for (std::size_t i : {0, 1}) {
        for (; issued[i] < count; ++issued[i]) {
          const Status status = issue(i, issued[i]).status;
          if (status == Status::no_room) break;
          good = good && status == Status::ok;
        }
        for (Completion c; pair_[i].next_completion(c); ++done[i])
          good = good && c.status == Status::ok && (!check || check(c));
        take_entries(i);
        good = good && sides_[i].good;
      }
      return !good || (done[0] == count && done[1] == count);
    });
    return complete && good;
  }

  // One word for each operation, which makes it count the requests. If each is executed exactly
  // once and in order, the word's former value is the request's number. A lost, repeated or
  // reordered request would show in all later values.
  bool atomics() {
    return all(
        3 * kAtomics,
        [&](std::size_t i, std::uint64_t n) {
          const std::uint64_t k = n / 3, op = n % 3;
          const Options options{.context = k};
          const Remote word = at(i, op * sizeof(std::uint64_t));
          Engine<sim::SimPort>& engine = pair_[i];
          return op == 0 ? engine.fetch_add(word, Width::eight, 1, options, pair_.now())
                 : op == 1
                     ? engine.swap(word, Width::eight, k + 1, options, pair_.now())
                     : engine.compare_swap(word, Width::eight, k, k + 1, options, pair_.now());
        },
        [](const Completion& c) { return c.value == c.context; });
  }

  // Silent writes in batches, and a fence, whose completion says that they are done. A refusal
  // would be a second completion that is not ok.
  bool short_writes() {
    std::uint64_t written[2] = {};
    const bool done = all(1, [&](std::size_t i, std::uint64_t) {
      for (std::uint64_t& n = written[i]; n < kShorts; ++n) {
        const Issued issued =
            pair_[i].write(at(i, kShortArea + n * kShort), source(n * kShort, kShort),
                           {.urgency = link::Urgency::batch, .silent = true}, pair_.now());
        if (issued.status != Status::ok) return issued;
      }
      return pair_[i].fence(pair_.other(i), {}, pair_.now());
    });
    return done && memory_holds(kShortArea, 0, kShort * kShorts);
  }
  bool memory_holds(std::size_t offset, std::size_t from, std::size_t length) const {
    for (const Side& side : sides_)
      if (std::memcmp(side.memory.data() + offset, source_.data() + from, length) != 0)
        return false;
    return true;
  }

  // Lengths from 0 to 599, and now and then an entry in several frames.
  static std::size_t entry_length(std::uint64_t n) {
    return n % 50 == 49 ? kLongEntry : n * 37 % 600;
  }
  bool entries() {
    for (std::size_t i : {0, 1})
      sides_[i].writer =
          pair_[i].open_writer(pair_.other(i), sides_[1 - i].fifo->key(), pair_.now());
    const bool done = all(kEntries, [&](std::size_t i, std::uint64_t n) {
      return pair_[i].append(sides_[i].writer, bytes_of(n), source(n, entry_length(n)), {},
                             pair_.now());
    });
    return done && sides_[0].entries == kEntries && sides_[1].entries == kEntries;
  }
  // The n-th entry is n and then bytes that depend on n.
  void take_entries(std::size_t i) {
    Side& side = sides_[i];
    while (const auto entry = side.fifo->front()) {
      const std::uint64_t n = side.entries++;
      const std::size_t length = n < kEntries ? entry_length(n) : 0;
      side.good = side.good && entry->from == pair_.other(i) &&
                  entry->bytes.size() == sizeof n + length &&
                  std::memcmp(entry->bytes.data(), &n, sizeof n) == 0 &&
                  std::memcmp(entry->bytes.data() + sizeof n, source_.data() + n, length) == 0;
      side.fifo->pop();
    }
  }

  bool signals() {
    const bool done = all(kSignals, [&](std::size_t i, std::uint64_t) {
      return pair_[i].signal(pair_.other(i), sides_[1 - i].signal, {}, pair_.now());
    });
    return done && sides_[0].signals == kSignals && sides_[1].signals == kSignals;
  }

  // A long write with each kind of second part. All three write the same bytes to the same place.
  bool combinations() {
    const std::uint64_t number = kEntries;
    const bool done = all(3, [&](std::size_t i, std::uint64_t n) {
      const Then then = n == 0 ? Then::append(sides_[i].writer, bytes_of(number))
                        : n == 1
                            ? Then::raise(sides_[1 - i].signal)
                            : Then::set(sides_[1 - i].segment, kFlag, kFlagValue, Width::eight);
      return pair_[i].write(at(i, kLongArea), source_, then, {}, pair_.now());
    });
    for (const Side& side : sides_) {
      std::uint64_t flag;
      std::memcpy(&flag, side.memory.data() + kFlag, sizeof flag);
      if (flag != kFlagValue || side.signals != kSignals + 1 || side.entries != kEntries + 1)
        return false;
    }
    return done && memory_holds(kLongArea, 0, kLong);
  }

  bool reads() {
    const bool long_one = all(1, [&](std::size_t i, std::uint64_t) {
      return pair_[i].read(at(i, kLongArea), sides_[i].local, {}, pair_.now());
    });
    if (!long_one || sides_[0].local != source_ || sides_[1].local != source_) return false;
    std::uint64_t flags[2] = {};
    const bool short_one = all(1, [&](std::size_t i, std::uint64_t) {
      return pair_[i].read(at(i, kFlag), std::as_writable_bytes(std::span(&flags[i], 1)), {},
                           pair_.now());
    });
    return short_one && flags[0] == kFlagValue && flags[1] == kFlagValue;
  }

  // Whether a write to `where` is refused for that reason.
  bool refused(const Remote& where, Status why) {
    if (pair_[0].write(where, source(0, 8), {}, pair_.now()).status != Status::ok) return false;
    Completion c{};
    return pair_.wait([&] { return pair_[0].next_completion(c); }) && c.status == why;
  }
  bool refusals() {
    Remote where = at(0, kLongArea + kLong - 7);  // refused() writes 8 bytes: one too many
    if (!refused(where, Status::out_of_range)) return false;
    where.key = sides_[1].signal;
    if (!refused(where, Status::wrong_kind)) return false;
    where.key = {sides_[1].segment.value ^ 0x10000};  // the right place, a wrong random part
    if (!refused(where, Status::no_key)) return false;
    return pair_[1].withdraw(sides_[1].segment) && refused(at(0, 0), Status::withdrawn);
  }

  std::vector<std::byte> source_ = std::vector<std::byte>(kLong);
  Side sides_[2];
  rawdev::SelftestPair<Engine<sim::SimPort>, EngineConfig> pair_;
};

}  // namespace

std::string selftest() {
  return rawdev::run_selftest<Selftest>();
}

}  // namespace viaduct::mbcf
