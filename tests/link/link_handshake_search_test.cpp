// Connections, searched: every order of a few steps of two processes and their network, and many
// longer ones drawn at random. A step is what users, networks, schedules and deaths do: one process
// polls, one frame arrives, one is lost, an old one comes again, one process asks for a connection,
// ends one, dies and restarts, time passes without either being scheduled. Afterwards nothing more
// goes wrong, and a message of each must reach the other. The link's dead_after is an hour, so that
// no keepalive sets right what got stuck.
#include <gtest/gtest.h>

#include <random>

#include "tests/link/sim_world.hpp"

namespace viaduct::link::test {
namespace {

class Search {
 public:
  static constexpr std::size_t kSteps = 12;

  // `connected`: the two have a connection to begin with.
  explicit Search(bool connected) {
    for (std::size_t i : {0u, 1u}) {
      world_.add(new_incarnation(), {.pool = 160, .receive_ring = 32});
      world_.nodes[i]->sink.message = [this, i](const Incoming& m) {
        if (!m.bytes.empty()) arrived_[i] = true;  // else of the steps
        return RxResult::consumed;
      };
    }
    world_.net.hook = [this](std::uint32_t, std::vector<std::byte>& frame) {
      if (frames_.size() < 64) frames_.push_back(frame);
      return !std::exchange(lose_next_, false);
    };
    if (!connected) return;
    send(0, "");
    world_.run_until([this] { return node(0).link->idle() && node(1).link->idle(); },
                     milliseconds{100});
  }

  void step(std::size_t which) {
    switch (which) {
      case 0:
      case 1: node(which).link->poll(world_.net.now()); break;
      case 2: world_.net.step(world_.net.now() + milliseconds{1}); break;
      case 3: lose_next_ = true; break;
      case 4:
      case 5: send(which - 4, ""); break;
      case 6: world_.net.step(world_.net.now() + milliseconds{40}); break;
      case 7: world_.net.step(world_.net.now() + seconds{5}); break;
      case 8:
        world_.kill(node(1));
        node(1).start(new_incarnation());
        break;
      case 9: node(0).link->disconnect(peer(0), world_.net.now()); break;
      case 10: replay(0); break;
      default: replay(frames_.size() / 2); break;
    }
  }

  // Whether a message of each reaches the other. The first asks alone unless it takes itself for
  // connected: if that is to a dead incarnation, only a message of the second can tell it.
  bool conclude() {
    lose_next_ = false;
    return (node(0).link->connected(peer(0)) || arrive({0})) && arrive({0, 1});
  }

 private:
  // Whether messages of these reach the others, sent again to each new incarnation.
  bool arrive(std::initializer_list<std::size_t> senders) {
    arrived_[0] = arrived_[1] = false;
    sent_to_[0] = sent_to_[1] = {};
    return world_.run_until(
        [&] {
          bool all = true;
          for (const std::size_t i : senders) {
            if (!arrived_[1 - i] && sent_to_[i] != peer(i) && send(i, "message"))
              sent_to_[i] = peer(i);
            all = all && arrived_[1 - i];
          }
          return all;
        },
        seconds{5}, microseconds{200});
  }
  LinkConfig new_incarnation() {
    LinkConfig config;
    config.dead_after = std::chrono::hours{1};
    config.seed = ++incarnations_;
    return config;
  }
  Node& node(std::size_t i) { return *world_.nodes[i]; }
  PeerId peer(std::size_t at) { return node(at).link->peer(node(1 - at).address()); }
  bool send(std::size_t from, std::string_view text) {
    return send_text(node(from), peer(from), text, world_.net.now()) == SendStatus::sent;
  }
  void replay(std::size_t which) {
    if (which < frames_.size()) {
      const std::vector<std::byte> frame = frames_[which];
      const bool from_first = std::memcmp(frame.data() + 6, node(0).address().bytes.data(), 6) == 0;
      world_.net.inject(*node(from_first ? 0 : 1).port, frame);
    }
  }

  std::uint64_t incarnations_ = 0;
  std::vector<std::vector<std::byte>> frames_;  // as they were sent
  bool lose_next_ = false;
  bool arrived_[2] = {};
  PeerId sent_to_[2];
  World world_;
};

std::string try_steps(bool connected, const std::vector<std::size_t>& steps) {
  Search search(connected);
  std::string name = connected ? "of connected ones: " : "";
  for (const std::size_t s : steps) {
    search.step(s);
    name += std::to_string(s) + " ";
  }
  return search.conclude() ? "" : "no connection after steps " + name;
}

TEST(HandshakeSearch, EveryOrderOfFourSteps) {
  std::vector<std::size_t> steps(4);
  std::size_t orders = 1;
  for (std::size_t i = 0; i < steps.size(); ++i) orders *= Search::kSteps;
  for (std::size_t number = 0; number < orders; ++number) {
    std::size_t rest = number;
    for (std::size_t& s : steps) s = rest % Search::kSteps, rest /= Search::kSteps;
    for (const bool connected : {false, true}) ASSERT_EQ(try_steps(connected, steps), "");
  }
}

TEST(HandshakeSearch, LongerOrdersDrawnAtRandom) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 10'000; ++i) {
    std::vector<std::size_t> steps(5 + random() % 40);
    for (std::size_t& s : steps) s = random() % Search::kSteps;
    ASSERT_EQ(try_steps(i % 2 == 0, steps), "");
  }
}

}  // namespace
}  // namespace viaduct::link::test
