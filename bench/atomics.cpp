// viaduct-atomics: fetch-and-add by 1, 4 and 16 requesters onto one word: how many a second, and
// whether the sum is exact. On the simulated network each requester is a node of its own; between
// two processes on memif all requesters share a port, as threads of one task would, each with
// additions of its own under way.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <vector>

#include "drivers/mbcf/node.hpp"
#include "drivers/sim/sim_network.hpp"

using namespace viaduct;
using namespace viaduct::mbcf;

namespace {

constexpr const char* kHelp = R"(NAME
    viaduct-atomics - fetch-and-add onto one word of another task

SYNOPSIS
    viaduct-atomics [--adds N] [--rounds N]

DESCRIPTION
    1, 4 and 16 requesters add their own numbers to one word of 8 bytes, each with up to 16 additions
    under way: on the simulated network (1 % of the frames lost), and between two processes on memif,
    beside one request at a time in the same run. N additions in all (default 400000), the median of
    N rounds (default 5), taken in turn.

EXIT STATUS
    0  every sum was exact
    1  otherwise
    2  wrong usage
)";

constexpr std::size_t kUnderWay = 16;          // additions of one requester
constexpr std::size_t kCounts[] = {1, 4, 16};  // requesters

double seconds_now() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

// One requester: adds 1, 2, 3, ... (modulo 1000) to the word, so that an addition that is lost or
// done twice shows in the sum. Borrows the engine.
template <class Device>
class Adder {
 public:
  Adder(Engine<Device>& engine, const Remote& word, std::uint64_t adds, std::size_t under_way)
      : engine_(&engine), word_(word), left_(adds), under_way_(under_way) {}

  // Issues additions until enough are under way, or there is no room.
  void issue(link::Time now) {
    while (left_ != 0 && open_ < under_way_) {
      const Options options{.urgency = under_way_ == 1 ? link::Urgency::now : link::Urgency::batch,
                            .context = reinterpret_cast<std::uintptr_t>(this)};
      const std::uint64_t value = next_ % 1000;
      if (engine_->fetch_add(word_, Width::eight, value, options, now).status != Status::ok) return;
      ++next_;
      --left_;
      ++open_;
      sum_ += value;
    }
  }
  bool done() const { return left_ == 0 && open_ == 0; }
  std::uint64_t sum() const { return sum_; }

  // Takes the completions of all requesters on that engine; `context` says whose each is. Ends the
  // program if an addition failed.
  static void take_completions(Engine<Device>& engine) {
    for (Completion c; engine.next_completion(c);) {
      if (c.status != Status::ok) {
        std::fprintf(stderr, "viaduct-atomics: an addition failed: %s\n", text(c.status));
        std::exit(1);
      }
      --reinterpret_cast<Adder*>(c.context)->open_;
    }
  }

 private:
  Engine<Device>* engine_;
  Remote word_;
  std::uint64_t left_, next_ = 1, sum_ = 0;  // additions to issue; value; sum of values issued
  std::size_t under_way_, open_ = 0;
};

struct Result {
  double rate;  // additions a second
  bool exact;
};

// Every requester is a node. The rate is in simulated time, on links of 10 Gbit/s and 5 us that
// lose 1 % of the frames. `exact` also asks that frames really were lost.
Result on_sim_net(std::size_t requesters, std::uint64_t adds) {
  sim::SimConfig config;
  config.faults = {.loss = 0.01, .seed = 7};
  sim::SimNetwork net(config);
  struct Node {
    Node(sim::SimNetwork& n, std::uint64_t seed)
        : port(n.add_port()), link(port, link_config(seed)), engine(link, {}) {}
    static link::LinkConfig link_config(std::uint64_t seed) {
      link::LinkConfig c;
      c.seed = seed;
      return c;
    }
    sim::SimPort& port;
    link::Link<sim::SimPort> link;
    Engine<sim::SimPort> engine;
  };
  Node owner(net, 1);
  alignas(8) std::byte word[8] = {};
  const Key key = owner.engine.export_segment(word, Rights::atomic);
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<Adder<sim::SimPort>> adders;
  for (std::size_t i = 0; i < requesters; ++i) {
    nodes.push_back(std::make_unique<Node>(net, 2 + i));
    const Remote at{nodes.back()->link.peer(owner.port.address()), key, 0};
    adders.emplace_back(nodes.back()->engine, at, adds / requesters, kUnderWay);
  }
  const link::Time start = net.now();
  std::size_t left = requesters;
  while (left != 0) {
    owner.engine.poll(net.now());
    left = 0;
    for (std::size_t i = 0; i < requesters; ++i) {
      adders[i].issue(net.now());
      nodes[i]->engine.poll(net.now());
      Adder<sim::SimPort>::take_completions(nodes[i]->engine);
      left += !adders[i].done();
    }
    // Simulated time goes on by 1 us for each round of polls.
    net.step(net.now() + std::chrono::microseconds{1});
  }
  std::uint64_t sum = 0, got = 0;
  for (const auto& adder : adders) sum += adder.sum();
  std::memcpy(&got, word, sizeof got);
  const double seconds = static_cast<double>((net.now() - start).count()) / 1e9;
  return {static_cast<double>(adds / requesters * requesters) / seconds,
          got == sum && net.faults().lost != 0};
}

// What the owner of the word tells the requesters' process: where the word is.
struct WordLocation {
  link::Address address;
  Key key;
};

// The owner's process. Serves until the pipe `from` is closed; on each byte that comes writes what
// the word holds to `to`, and sets the word to 0 for the next run.
[[noreturn]] void run_owner(const std::string& socket, int from, int to) {
  auto node = mbcf::Node::open("net_memif0,role=server,socket=" + socket + ",socket-abstract=no");
  alignas(8) std::uint64_t word = 0;
  const WordLocation me{
      node->address(),
      node->engine().export_segment(std::as_writable_bytes(std::span(&word, 1)), Rights::all)};
  if (::write(to, &me, sizeof me) != sizeof me) std::_Exit(1);
  for (;;) {
    for (int i = 0; i < 1000; ++i) node->poll();
    char byte;
    const ssize_t n = ::read(from, &byte, 1);
    if (n == 0) std::_Exit(0);
    if (n != 1) continue;
    const std::uint64_t got = std::atomic_ref(word).exchange(0);
    if (::write(to, &got, sizeof got) != sizeof got) std::_Exit(1);
  }
}

// The owner of the word as a child process, and this process's connection to it. The destructor
// ends the child.
class TwoProcesses {
 public:
  TwoProcesses() {
    char scratch[] = "/tmp/viaduct-atomics.XXXXXX";
    if (::mkdtemp(scratch) == nullptr || ::pipe(to_owner_) != 0 ||
        ::pipe2(from_owner_, O_CLOEXEC) != 0) {
      std::perror("viaduct-atomics");
      std::exit(1);
    }
    directory_ = scratch;
    const std::string socket = directory_ + "/m.sock";
    // Before DPDK is started: each process has an EAL of its own.
    owner_ = ::fork();
    if (owner_ < 0) {
      std::perror("viaduct-atomics");
      std::exit(1);
    }
    if (owner_ == 0) {
      ::close(to_owner_[1]);
      // The owner polls the port between looks at the pipe.
      ::fcntl(to_owner_[0], F_SETFL, O_NONBLOCK);
      run_owner(socket, to_owner_[0], from_owner_[1]);
    }
    ::close(from_owner_[1]);
    WordLocation owner{};
    if (::read(from_owner_[0], &owner, sizeof owner) != sizeof owner) {
      std::fprintf(stderr, "viaduct-atomics: the owner's process did not start.\n");
      finish(1);
    }
    node_ = mbcf::Node::open("net_memif0,role=client,socket=" + socket + ",socket-abstract=no");
    word_ = {node_->link().peer(owner.address), owner.key, 0};
    node_->link().connect(word_.peer, port::now());
    for (const double end = seconds_now() + 10; !node_->link().connected(word_.peer);) {
      node_->poll();
      if (seconds_now() < end) continue;
      std::fprintf(stderr, "viaduct-atomics: no connection within 10 s.\n");
      finish(1);
    }
  }
  ~TwoProcesses() { stop(); }

  // One measurement: `adds` additions in all, by `requesters` requesters.
  Result run(std::size_t requesters, std::uint64_t adds, std::size_t under_way) {
    std::vector<Adder<port::Port>> adders;
    for (std::size_t i = 0; i < requesters; ++i)
      adders.emplace_back(node_->engine(), word_, adds / requesters, under_way);
    const double start = seconds_now();
    for (bool done = false; !done;) {
      const link::Time now = port::now();
      for (auto& adder : adders) adder.issue(now);
      node_->engine().poll(now);
      Adder<port::Port>::take_completions(node_->engine());
      done = std::all_of(adders.begin(), adders.end(), [](const auto& a) { return a.done(); });
    }
    const double seconds = seconds_now() - start;
    std::uint64_t sum = 0, got = 0;
    for (const auto& adder : adders) sum += adder.sum();
    const bool told =
        ::write(to_owner_[1], "?", 1) == 1 && ::read(from_owner_[0], &got, sizeof got) == 8;
    return {static_cast<double>(adds / requesters * requesters) / seconds, told && got == sum};
  }

 private:
  void stop() {
    ::close(to_owner_[1]);
    ::waitpid(owner_, nullptr, 0);
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  [[noreturn]] void finish(int code) {
    stop();
    std::exit(code);
  }

  int to_owner_[2], from_owner_[2];  // pipes: to the owner; from the owner
  pid_t owner_ = -1;
  std::string directory_;
  std::unique_ptr<mbcf::Node> node_;
  Remote word_;
};

// One row of the table: a testbed, and the rates of all rounds.
struct Row {
  const char* testbed;
  std::size_t requesters, under_way;
  std::vector<double> rates;
  bool exact = true;
};

// All rows in every round, so that a busy machine is busy for all of them. Returns the exit status.
int measure(std::uint64_t adds, std::size_t rounds) {
  std::vector<Row> rows;
  rows.push_back({"two processes, one at a time", 1, 1, {}, true});
  for (const std::size_t n : kCounts) rows.push_back({"two processes", n, kUnderWay, {}, true});
  for (const std::size_t n : kCounts) rows.push_back({"SimNetwork", n, kUnderWay, {}, true});
  TwoProcesses processes;
  for (std::size_t round = 0; round < rounds; ++round)
    for (Row& row : rows) {
      const bool sim = std::strcmp(row.testbed, "SimNetwork") == 0;
      // On the simulated network time and faults follow from the seed.
      if (sim && round != 0) continue;  // the same every time
      const Result r = sim ? on_sim_net(row.requesters, adds / 4)
                           : processes.run(row.requesters, adds, row.under_way);
      row.rates.push_back(r.rate);
      row.exact = row.exact && r.exact;
    }
  bool exact = true;
  std::printf("%-30s %10s %14s %24s %8s %6s\n", "bed", "requesters", "adds/s median",
              "[least .. most]", "ratio", "sum");
  double base = 0;
  for (Row& row : rows) {
    std::sort(row.rates.begin(), row.rates.end());
    const double median = row.rates[row.rates.size() / 2];
    if (row.under_way == 1 || (row.requesters == 1 && std::strcmp(row.testbed, "SimNetwork") == 0))
      base = median;
    std::printf("%-30s %10zu %14.0f [%10.0f..%10.0f] %8.2f %6s\n", row.testbed, row.requesters,
                median, row.rates.front(), row.rates.back(), median / base,
                row.exact ? "exact" : "WRONG");
    exact = exact && row.exact;
  }
  std::printf(
      "ratio: to one at a time between the processes; to one requester on SimNetwork (whose "
      "seconds are simulated)\n");
  return exact ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t adds = 400'000, rounds = 5;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--help") return std::fputs(kHelp, stdout), 0;
    char* end = nullptr;
    const std::uint64_t value = i + 1 < argc ? std::strtoull(argv[++i], &end, 10) : 0;
    if ((option != "--adds" && option != "--rounds") || value == 0 || *end != '\0') {
      std::fputs(kHelp, stderr);
      return 2;
    }
    (option == "--adds" ? adds : rounds) = value;
  }
  try {
    return measure(adds, rounds);
  } catch (const base::SetupError& error) {
    std::fprintf(stderr, "viaduct-atomics: %s\n", error.what());
    return 1;
  }
}
