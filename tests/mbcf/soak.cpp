// Millions of mixed requests among random nodes in a network that loses, doubles, reorders and
// alters frames. Every answer and, after each scenario, all memory must be what a reference model
// says; each request must have been executed exactly once. Prints what it counted; the exit code
// says whether all of it was right. A failure names its seed.
//
//   mbcf_soak [--requests N] [--seed FIRST]
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <unordered_map>

#include "drivers/mbcf/engine.hpp"
#include "tests/support/driver_bed.hpp"

namespace viaduct::mbcf {
namespace {

constexpr std::uint64_t kEachScenario = 20'000;
constexpr std::size_t kMaxNodes = 4;

// What a node keeps for each of the others: the places that requests of that one act on.
constexpr std::size_t kShort = 1024;          // short writes and reads, words
constexpr std::size_t kLong = 24 * 1024;      // long writes
constexpr std::size_t kStable = 8 * 1024;     // never written
constexpr std::size_t kSlot = 64;             // data of short combinations, by their number
constexpr std::size_t kSlots = 64;            //
constexpr std::size_t kLongSlot = 16 * 1024;  // data of long combinations: their number, repeated
constexpr std::size_t kAtLong = kShort, kAtStable = kAtLong + kLong, kAtSlots = kAtStable + kStable,
                      kAtLongSlot = kAtSlots + kSlot * kSlots, kAtFlag = kAtLongSlot + kLongSlot,
                      kArea = kAtFlag + 64;
constexpr std::size_t kAtShared = kMaxNodes * kArea;  // a word for all

[[noreturn]] void fail(std::uint64_t seed, const std::string& what) {
  std::printf("FAILED with seed %" PRIu64 ": %s\n", seed, what.c_str());
  std::exit(1);
}

std::byte stable(std::size_t i) {
  return static_cast<std::byte>((i * 2654435761u) >> 11);
}

struct SimNode {
  struct Config {
    EngineConfig engine;
  };
  SimNode(sim::SimPort& p, const link::LinkConfig& link_config, const Config& config)
      : port(p), link(p, link_config), engine(link, config.engine), memory(kAtShared + 8) {
    all = engine.export_segment(memory, Rights::all);
    fifo = engine.create_fifo(16 * 1024);
    signal = engine.create_signal([this](std::uint64_t count) { signals += count; });
    for (std::size_t n = 0; n < kMaxNodes; ++n)
      for (std::size_t i = 0; i < kStable; ++i) memory[n * kArea + kAtStable + i] = stable(i);
  }
  void poll(link::Time now) { engine.poll(now); }

  sim::SimPort& port;
  link::Link<sim::SimPort> link;
  Engine<sim::SimPort> engine;
  std::vector<std::byte> memory;
  Key all, signal;
  Fifo* fifo;
  std::uint64_t signals = 0;
};

struct EntryHead {
  std::uint32_t number, length;
  std::uint8_t from, on_long_write, pad[6];
};

// All that happened in all scenarios.
struct Totals {
  std::uint64_t scenarios = 0, issued = 0, completed = 0, silent = 0;
  std::uint64_t writes = 0, reads = 0, atomics = 0, entries = 0, signals = 0, fences = 0;
  std::uint64_t lost = 0, duplicated = 0, reordered = 0, corrupted = 0, resent = 0, replayed = 0,
                paused = 0;
};

class Scenario {
 public:
  Scenario(std::uint64_t seed, std::uint64_t requests, Totals& totals)
      : seed_(seed), random_(seed), totals_(totals), left_(requests), bed_(config()) {
    for (std::size_t from = 0; from < bed_.size(); ++from)
      for (std::size_t to = 0; to < bed_.size(); ++to) {
        if (from == to) continue;
        Pair& pair = pairs_[from][to];
        pair.peer = bed_.peer(from, to);
        pair.memory.resize(kArea);
        for (std::size_t i = 0; i < kStable; ++i) pair.memory[kAtStable + i] = stable(i);
        pair.writer =
            bed_[from].engine.open_writer(pair.peer, bed_[to].fifo->key(), bed_.now(from));
      }
    // What is long, and so what is in order with what, is fixed once the peers know each other.
    bed_.run([&] { return all_connected(); }, std::chrono::seconds{60});
  }

  void run() {
    const bool all = bed_.run(
        [&] {
          for (std::size_t n = 0; n < bed_.size(); ++n) {
            take_completions(n);
            if (pick(4) != 0) read_entries(n);
            for (std::size_t i = pick(4); i != 0 && left_ != 0; --i) issue(n);
          }
          return left_ == 0 && finished();
        },
        std::chrono::seconds{60});
    if (!all) fail(seed_, "requests are left after a minute");
    check();
    add_up();
  }

 private:
  using Bed = link::test::BedOf<SimNode, SimNode::Config>;
  struct Pair {  // requests of one node to another
    link::PeerId peer;
    WriterId writer;
    std::vector<std::byte> memory;  // what the target's must be
    std::uint32_t slots = 0, long_slots = 0;
    std::uint32_t entries[2] = {}, entries_read[2] = {};  // plain and short; on long writes
    std::uint64_t flag = 0;
    std::uint64_t signals = 0;
    bool fenced = false;  // at the end
  };
  struct Pending {
    enum class What : std::uint8_t { nothing, value, bytes } what = What::nothing;
    std::uint64_t value = 0;
    std::vector<std::byte> expected;
    std::vector<std::byte> buffer;  // must stay until the completion
  };

  bool all_connected() {
    for (std::size_t from = 0; from < bed_.size(); ++from)
      for (std::size_t to = 0; to < bed_.size(); ++to)
        if (from != to && !bed_[from].link.connected(bed_.peer(from, to))) return false;
    return true;
  }
  std::size_t pick(std::size_t n) { return random_() % n; }
  static std::span<const std::byte> const_bytes(const std::vector<std::byte>& v) { return v; }

  link::test::BedConfigOf<SimNode::Config> config() {
    link::test::BedConfigOf<SimNode::Config> c;
    c.nodes = 2 + pick(kMaxNodes - 1);
    c.net.faults = {
        .loss = 0.01, .duplicate = 0.001, .reorder = 0.01, .corrupt = 0.001, .seed = seed_};
    c.port.mtu = mtu_ = std::array<std::size_t, 4>{576, 1504, 1504, 9000}[pick(4)];
    c.driver.engine.max_requests = pick(2) == 0 ? 1024 : 16;
    if (pick(2) == 0) c.link.first_sequence = 0xfffffff0u;  // just before it wraps
    if (seed_ % 4 == 0) {  // nodes lose their CPU, and no keepalive sets right what got stuck
      c.pauses = {.probability = 0.001, .seed = seed_};
      c.link.dead_after = std::chrono::hours{1};
    }
    return c;
  }

  std::vector<std::byte> random_bytes(std::size_t size) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; i += 8) {
      const std::uint64_t word = random_();
      std::memcpy(bytes.data() + i, &word, std::min<std::size_t>(8, size - i));
    }
    return bytes;
  }

  // One request of node n to another, of any kind; not counted if there is no room for it.
  void issue(std::size_t n) {
    const std::size_t to = (n + 1 + pick(bed_.size() - 1)) % bed_.size();
    Pair& pair = pairs_[n][to];
    Engine<sim::SimPort>& engine = bed_[n].engine;
    Options options;
    options.silent = pick(3) == 0;
    options.urgency = pick(2) == 0 ? link::Urgency::now : link::Urgency::batch;
    const auto at = [&](std::size_t offset) {
      return Remote{pair.peer, bed_[to].all, n * kArea + offset};
    };
    const link::Time now = bed_.now(n);
    Pending pending;
    Issued issued;
    const auto read = [&](std::size_t offset, std::size_t size) {
      options.silent = false;
      pending.buffer.resize(size);
      issued = engine.read(at(offset), pending.buffer, options, now);
      pending.what = Pending::What::bytes;
      pending.expected = get(pair, offset, size);
      totals_.reads += issued.status == Status::ok;
    };
    switch (pick(13)) {
      case 0:
      case 1: {  // short write
        const std::size_t size = pick(2) == 0 ? 8 : pick(200), offset = pick(kShort - size);
        const auto data = random_bytes(size);
        issued = engine.write(at(offset), const_bytes(data), options, now);
        if (issued.status == Status::ok) {
          put(pair, offset, data);
          ++totals_.writes;
        }
        break;
      }
      case 2: {  // long write
        const std::size_t size = mtu_ + pick(pick(8) == 0 ? kLong - mtu_ : 4000);
        const std::size_t offset = kAtLong + pick(kLong - size + 1);
        options.silent = false;
        pending.buffer = random_bytes(size);
        issued = engine.write(at(offset), const_bytes(pending.buffer), options, now);
        if (issued.status == Status::ok) {
          put(pair, offset, pending.buffer);
          ++totals_.writes;
        }
        break;
      }
      case 3:
      case 4: {  // short read: of what was there when it was issued
        const std::size_t size = pick(200);
        read(pick(kShort - size), size);
        break;
      }
      case 5: {  // long read
        const std::size_t size = 1000 + pick(kStable - 1000);
        read(kAtStable + pick(kStable - size), size);
        break;
      }
      case 6:
      case 7: issued = atomic(n, pair, at(0), options, pending); break;
      case 8:
        issued =
            engine.fetch_add({pair.peer, bed_[to].all, kAtShared}, Width::eight, 1, options, now);
        shared_[to] += issued.status == Status::ok;
        totals_.atomics += issued.status == Status::ok;
        break;
      case 9: {  // entry
        const std::size_t size = pick(8) == 0 ? 2000 + pick(6000) : pick(600);
        EntryHead head{
            pair.entries[0], static_cast<std::uint32_t>(size), static_cast<std::uint8_t>(n), 0, {}};
        options.silent = options.silent && size < 400;
        pending.buffer.assign(size, static_cast<std::byte>(pair.entries[0]));
        issued = engine.append(pair.writer, std::as_bytes(std::span(&head, 1)),
                               const_bytes(pending.buffer), options, now);
        pair.entries[0] += issued.status == Status::ok;
        totals_.entries += issued.status == Status::ok;
        break;
      }
      case 10:
        issued = engine.signal(pair.peer, bed_[to].signal, options, now);
        pair.signals += issued.status == Status::ok;
        totals_.signals += issued.status == Status::ok;
        break;
      case 11: issued = combination(n, to, pair, at(0), options, pending); break;
      default:
        issued = engine.fence(pair.peer, options, now);
        totals_.fences += issued.status == Status::ok;
        options.silent = false;
        break;
    }
    if (issued.status == Status::no_room) return;
    if (issued.status != Status::ok) fail(seed_, std::string("at issue: ") + text(issued.status));
    --left_;
    ++totals_.issued;
    if (options.silent)
      ++totals_.silent;
    else
      pending_[n].emplace(issued.id.value, std::move(pending));
  }

  Issued atomic(std::size_t n, Pair& pair, Remote at, Options& options, Pending& pending) {
    Engine<sim::SimPort>& engine = bed_[n].engine;
    const bool four = pick(2) == 0;
    const Width width = four ? Width::four : Width::eight;
    const std::size_t size = four ? 4 : 8, offset = size * pick(16);
    at.offset += offset;
    std::uint64_t before = 0;
    std::memcpy(&before, pair.memory.data() + offset, size);
    const std::uint64_t operand = random_();
    std::uint64_t after = operand;
    Issued issued;
    switch (pick(3)) {
      case 0: issued = engine.swap(at, width, operand, options, bed_.now(n)); break;
      case 1:
        issued = engine.fetch_add(at, width, operand, options, bed_.now(n));
        after = before + operand;
        break;
      default: {
        const std::uint64_t expected = pick(2) == 0 ? before : random_();
        issued = engine.compare_swap(at, width, expected, operand, options, bed_.now(n));
        const bool same =
            four ? static_cast<std::uint32_t>(expected) == static_cast<std::uint32_t>(before)
                 : expected == before;
        if (!same) after = before;
      }
    }
    if (issued.status != Status::ok) return issued;
    ++totals_.atomics;
    std::memcpy(pair.memory.data() + offset, &after, size);
    pending.what = Pending::What::value;
    pending.value = before;
    return issued;
  }

  // The data tells its own number, so that whoever sees the second part can tell whether the data
  // was there before.
  Issued combination(std::size_t n, std::size_t to, Pair& pair, Remote at, Options& options,
                     Pending& pending) {
    const bool is_long = pick(3) == 0;
    std::uint32_t& number = is_long ? pair.long_slots : pair.slots;
    const std::uint64_t value = number + 1;
    const std::size_t size = is_long ? mtu_ + 8 * pick(800) : kSlot;
    const std::size_t offset = is_long ? kAtLongSlot : kAtSlots + kSlot * (number % kSlots);
    for (std::size_t i = 0; i < size; i += 8) {
      const auto* bytes = reinterpret_cast<const std::byte*>(&value);
      pending.buffer.insert(pending.buffer.end(), bytes, bytes + 8);
    }
    at.offset += offset;
    options.silent = options.silent && !is_long;
    EntryHead head{pair.entries[is_long], 0, static_cast<std::uint8_t>(n), is_long, {}};
    std::vector<std::byte> entry(sizeof head + 8);
    head.length = 8;
    std::memcpy(entry.data(), &head, sizeof head);
    std::memcpy(entry.data() + sizeof head, &value, 8);
    const std::size_t which = pick(3);
    // Flags of short ones only: those of long ones come later.
    const Then then = which == 0              ? Then::append(pair.writer, entry)
                      : which == 1 || is_long ? Then::raise(bed_[to].signal)
                                              : Then::set(bed_[to].all, n * kArea + kAtFlag,
                                                          pair.flag + 1, Width::eight);
    const Issued issued =
        bed_[n].engine.write(at, const_bytes(pending.buffer), then, options, bed_.now(n));
    if (issued.status != Status::ok) return issued;
    ++number;
    ++totals_.writes;
    put(pair, offset, pending.buffer);
    pair.entries[is_long] += then.kind == Then::Kind::entry;
    totals_.entries += then.kind == Then::Kind::entry;
    pair.signals += then.kind == Then::Kind::signal;
    totals_.signals += then.kind == Then::Kind::signal;
    if (then.kind == Then::Kind::flag) {
      ++pair.flag;
      std::memcpy(pair.memory.data() + kAtFlag, &pair.flag, 8);
    }
    return issued;
  }

  static void put(Pair& pair, std::size_t offset, const std::vector<std::byte>& data) {
    std::copy(data.begin(), data.end(), pair.memory.begin() + static_cast<std::ptrdiff_t>(offset));
  }
  static std::vector<std::byte> get(const Pair& pair, std::size_t offset, std::size_t size) {
    const auto from = pair.memory.begin() + static_cast<std::ptrdiff_t>(offset);
    return {from, from + static_cast<std::ptrdiff_t>(size)};
  }

  void take_completions(std::size_t n) {
    for (Completion c; bed_[n].engine.next_completion(c);) {
      const auto found = pending_[n].find(c.id.value);
      if (found == pending_[n].end()) fail(seed_, "a completion that is nobody's, or comes twice");
      if (c.status != Status::ok) fail(seed_, std::string("refused: ") + text(c.status));
      const Pending& p = found->second;
      if (p.what == Pending::What::value && c.value != p.value)
        fail(seed_, "a word held something else");
      if (p.what == Pending::What::bytes && p.buffer != p.expected)
        fail(seed_, "other bytes were read");
      pending_[n].erase(found);
      ++totals_.completed;
    }
  }

  void read_entries(std::size_t n) {
    for (std::size_t most = pick(20); most != 0; --most) {
      const auto entry = bed_[n].fifo->front();
      if (!entry) return;
      EntryHead head;
      if (entry->bytes.size() < sizeof head) fail(seed_, "an entry is too short");
      std::memcpy(&head, entry->bytes.data(), sizeof head);
      const auto body = entry->bytes.subspan(sizeof head);
      if (head.from >= bed_.size() || head.on_long_write > 1) fail(seed_, "an entry is altered");
      Pair& pair = pairs_[head.from][n];
      if (entry->from != bed_.peer(n, head.from)) fail(seed_, "an entry names another writer");
      if (body.size() != head.length) fail(seed_, "an entry is not whole");
      if (head.number != pair.entries_read[head.on_long_write]++)
        fail(seed_, "an entry is lost, doubled or out of order");
      const auto fill = static_cast<std::byte>(head.number);
      if (head.on_long_write != 0) {
        data_is_there(n, head.from, body);
      } else if (body.size() != 8) {  // 8: may be a short combination's
        for (const std::byte b : body)
          if (b != fill) fail(seed_, "an entry is altered");
      }
      bed_[n].fifo->pop();
    }
  }
  // The data of a combination came before its entry (a later one may have come since).
  void data_is_there(std::size_t n, std::size_t from, std::span<const std::byte> body) {
    std::uint64_t number = 0;
    std::memcpy(&number, body.data(), sizeof number);
    for (std::size_t i = 0; i < mtu_; i += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, bed_[n].memory.data() + from * kArea + kAtLongSlot + i, sizeof word);
      if (word < number) fail(seed_, "an entry came before its data");
    }
  }

  // Everything has been answered, the silent ones have been followed by a fence, and all entries
  // have been read.
  bool finished() {
    bool all = true;
    for (std::size_t n = 0; n < bed_.size(); ++n) {
      for (std::size_t to = 0; to < bed_.size(); ++to) {
        Pair& pair = pairs_[n][to];
        if (n == to) continue;
        if (!pair.fenced) {
          const Issued fence = bed_[n].engine.fence(pair.peer, {}, bed_.now(n));
          pair.fenced = fence.status == Status::ok;
          if (pair.fenced) pending_[n].emplace(fence.id.value, Pending{});
          totals_.fences += pair.fenced;
          totals_.issued += pair.fenced;
        }
        all = all && pair.fenced && pair.entries[0] == pair.entries_read[0] &&
              pair.entries[1] == pair.entries_read[1];
      }
      all = all && pending_[n].empty();
    }
    return all;
  }

  void check() {
    for (std::size_t to = 0; to < bed_.size(); ++to) {
      std::uint64_t shared, signals = 0;
      std::memcpy(&shared, bed_[to].memory.data() + kAtShared, sizeof shared);
      if (shared != shared_[to]) fail(seed_, "the sum in the shared word is wrong");
      for (std::size_t n = 0; n < bed_.size(); ++n) {
        if (n == to) continue;
        signals += pairs_[n][to].signals;
        if (std::memcmp(bed_[to].memory.data() + n * kArea, pairs_[n][to].memory.data(), kArea) !=
            0)
          fail(seed_, "memory is not what the model says");
      }
      if (signals != bed_[to].signals) fail(seed_, "signals were lost or doubled");
      if (bed_[to].fifo->front()) fail(seed_, "there is an entry too many");
    }
  }

  void add_up() {
    const auto& faults = bed_.net.faults();
    totals_.lost += faults.lost;
    totals_.duplicated += faults.duplicated;
    totals_.reordered += faults.reordered;
    totals_.corrupted += faults.corrupted;
    totals_.paused += bed_.schedule.pauses();
    for (std::size_t n = 0; n < bed_.size(); ++n) {
      const link::Counters& c = bed_[n].link.counters();
      totals_.resent += c[link::Counter::retransmits];
      totals_.replayed += c[link::Counter::drop_duplicate];
      const auto served = [&](Counter counter) { return bed_[n].engine.counters()[counter]; };
      served_.writes += served(Counter::writes_served);
      served_.reads += served(Counter::reads_served);
      served_.atomics += served(Counter::atomics_served);
      served_.entries += served(Counter::entries_received);
      served_.signals += served(Counter::signals_received);
      served_.fences += served(Counter::fences_served);
    }
    ++totals_.scenarios;
  }

  const std::uint64_t seed_;
  std::mt19937_64 random_;
  Totals& totals_;
  std::uint64_t left_;
  std::size_t mtu_ = 0;  // what is longer takes the way of long requests
  Bed bed_;
  Pair pairs_[kMaxNodes][kMaxNodes];
  std::unordered_map<std::uint32_t, Pending> pending_[kMaxNodes];
  std::uint64_t shared_[kMaxNodes] = {};

 public:
  static inline Totals served_;  // executed at the targets, of all scenarios
};

int report(const Totals& t) {
  const Totals& s = Scenario::served_;
  std::printf("%" PRIu64 " requests (%" PRIu64 " silent) in %" PRIu64 " scenarios, %" PRIu64
              " completions\n",
              t.issued, t.silent, t.scenarios, t.completed);
  std::printf("faults: %" PRIu64 " frames lost, %" PRIu64 " doubled, %" PRIu64
              " reordered, %" PRIu64 " altered; %" PRIu64 " sent again, %" PRIu64
              " copies dropped; CPU lost %" PRIu64 " times\n",
              t.lost, t.duplicated, t.reordered, t.corrupted, t.resent, t.replayed, t.paused);
  bool exact = true;
  const auto row = [&](const char* what, std::uint64_t issued, std::uint64_t executed) {
    std::printf("  %-14s %10" PRIu64 " issued %10" PRIu64 " executed\n", what, issued, executed);
    exact = exact && issued == executed;
  };
  row("writes", t.writes, s.writes);
  row("reads", t.reads, s.reads);
  row("atomics", t.atomics, s.atomics);
  row("FIFO entries", t.entries, s.entries);
  row("signals", t.signals, s.signals);
  row("fences", t.fences, s.fences);
  const bool faulty = t.lost != 0 && t.duplicated != 0 && t.reordered != 0 && t.corrupted != 0;
  if (!faulty) std::printf("FAILED: a kind of fault did not happen\n");
  if (!exact) std::printf("FAILED: not everything was executed exactly once\n");
  if (exact && faulty)
    std::printf(
        "each was executed exactly once and memory was as the model said after each scenario\n");
  return exact && faulty ? 0 : 1;
}

}  // namespace
}  // namespace viaduct::mbcf

int main(int argc, char** argv) {
  std::uint64_t requests = 5'000'000, seed = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    char* end = nullptr;
    const std::uint64_t value = std::strtoull(argv[i + 1], &end, 10);
    if (*end != '\0' || (option != "--requests" && option != "--seed")) argc = 0;
    (option == "--seed" ? seed : requests) = value;
  }
  if (argc % 2 == 0) {
    std::fprintf(stderr, "usage: mbcf_soak [--requests N] [--seed FIRST]\n");
    return 2;
  }
  using namespace viaduct::mbcf;
  Totals totals;
  for (; totals.issued < requests; ++seed)
    Scenario(seed, std::min(kEachScenario, requests - totals.issued), totals).run();
  return report(totals);
}
