// The credit of a FIFO, searched: every order of a few steps of two writers and the owner, and many
// longer ones drawn at random. Steps are what users do and what the schedule of processes and
// network allows: a step polls one node only, the network delivers when a step says so, and a node
// may be without its CPU for longer than any timer of the drivers. Afterwards everybody runs again,
// and both writers must get the whole FIFO in turn: whatever got stuck or lost shows as one who
// never does. The link's dead_after is an hour, so no keepalive sets anything right.
#include <gmock/gmock.h>

#include <array>
#include <random>

#include "tests/mbcf/bed.hpp"
#include "tests/support/effort.hpp"

namespace viaduct::mbcf {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kFifoBytes = 4096;
constexpr std::size_t kOwner = 2;

class Search {
 public:
  static constexpr std::size_t kSteps = 10;

  Search() : bed_(config()), fifo_(bed_[kOwner].engine.create_fifo(kFifoBytes)) {
    for (std::size_t n : {0u, 1u}) writers_[n] = bed_.writer(n, kOwner, *fifo_);
  }

  void step(std::size_t which) {
    switch (which) {
      case 0:
      case 1:
      case 2: bed_[which].poll(bed_.now()); break;
      case 3: append(0, 8); break;
      case 4: append(0, kFifoBytes); break;
      case 5: append(1, kFifoBytes); break;
      case 6: fifo_->pop(); break;
      case 7: reopen(0); break;
      case 8: deliver(microseconds{10}); break;
      default: others_go_on(0, milliseconds{3}); break;
    }
  }

  // Empty: all is well.
  std::string conclude() {
    const auto read_all = [this] {
      while (fifo_->front()) fifo_->pop();
    };
    for (std::size_t n : {0u, 1u, 0u}) {
      const bool got = bed_.run(
          [&] {
            read_all();
            if (!writers_[n]) writers_[n] = open(n);
            return writers_[n] && append(n, kFifoBytes);
          },
          milliseconds{200});
      if (!got) return "writer " + std::to_string(n) + " never gets the whole FIFO";
    }
    // What is neither free nor granted to an open writer has been lost.
    bed_.run_for(milliseconds{1});
    read_all();
    for (std::size_t n : {0u, 1u}) bed_[n].engine.close_writer(writers_[n]);
    const bool all_back = bed_.run(
        [&] {
          read_all();
          return fifo_->lent_blocks() == 0 && fifo_->free_blocks() == kFifoBytes / kBlock;
        },
        milliseconds{200});
    return all_back ? "" : "credit is lost";
  }

 private:
  static BedConfig config() {
    BedConfig c;
    c.nodes = 3;
    c.port = {.pool = 192, .receive_ring = 32};
    c.link.dead_after = std::chrono::hours{1};
    c.driver.memory = kFifoBytes;
    return c;
  }

  bool append(std::size_t n, std::size_t size) {
    return bed_[n]
               .engine.append(writers_[n], {}, bed_[n].bytes(0, size), kSilentBatch, bed_.now())
               .status == Status::ok;
  }
  WriterId open(std::size_t n) {
    return bed_[n].engine.open_writer(bed_.peer(n, kOwner), fifo_->key(), bed_.now());
  }
  void reopen(std::size_t n) {
    bed_[n].engine.close_writer(writers_[n]);
    writers_[n] = open(n);  // none as long as its last entry has not been sent
  }
  void deliver(link::Duration time) {
    const link::Time until = bed_.now() + time;
    while (bed_.net.step(until)) continue;
  }
  // Node n has no CPU for so long.
  void others_go_on(std::size_t n, link::Duration time) {
    for (const link::Time end = bed_.now() + time; bed_.now() < end;) {
      deliver(microseconds{50});
      for (std::size_t other = 0; other < bed_.size(); ++other)
        if (other != n) bed_[other].poll(bed_.now());
    }
  }

  Bed bed_;
  Fifo* const fifo_;
  WriterId writers_[2];
};

std::string try_steps(const std::vector<std::size_t>& steps) {
  Search search;
  std::string name;
  for (const std::size_t s : steps) {
    search.step(s);
    name += std::to_string(s) + " ";
  }
  const std::string failure = search.conclude();
  return failure.empty() ? "" : "steps " + name + ": " + failure;
}

TEST(FifoCreditSearch, EveryOrderOfFourSteps) {
  constexpr std::size_t kOrders = 10'000;
  static_assert(kOrders == Search::kSteps * Search::kSteps * Search::kSteps * Search::kSteps);
  std::vector<std::size_t> steps(4);
  std::array<std::array<bool, Search::kSteps>, 4> tried{};  // [place][step]
  // The prime takes us to every order once, and to all kinds of them where only some are tried.
  for (std::size_t i = 0; i < test::effort(kOrders); ++i) {
    std::size_t rest = i * 7919 % kOrders;
    for (std::size_t place = 0; place < 4; ++place) {
      steps[place] = rest % Search::kSteps;
      rest /= Search::kSteps;
      tried[place][steps[place]] = true;
    }
    ASSERT_EQ(try_steps(steps), "");
  }
  for (const auto& place : tried) EXPECT_THAT(place, testing::Each(true));
}

TEST(FifoCreditSearch, LongerOrdersDrawnAtRandom) {
  std::mt19937_64 random(1);
  for (std::uint64_t i = 0; i < test::effort(3'000); ++i) {
    std::vector<std::size_t> steps(5 + random() % 40);
    for (std::size_t& s : steps) s = random() % Search::kSteps;
    ASSERT_EQ(try_steps(steps), "");
  }
}

}  // namespace
}  // namespace viaduct::mbcf
