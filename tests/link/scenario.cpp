#include "tests/link/scenario.hpp"

#include <cstring>
#include <sstream>

namespace viaduct::link::test {
namespace {

struct Stamp {
  std::uint32_t from, from_incarnation, to, to_incarnation, number;
  std::uint8_t lane, order;
  std::uint16_t size;  // whole message
};

std::byte pattern(const Stamp& s, std::size_t i) {
  return static_cast<std::byte>(s.number * 7 + s.lane * 3 + s.from * 11 + i * 13);
}

class Scenario {
 public:
  explicit Scenario(const ScenarioConfig& config)
      : config_(config), random_(config.seed), world_(config.net) {
    for (std::size_t i = 0; i < config.nodes; ++i) {
      world_.add(incarnation_config(i, 1), config.port);
      players_.emplace_back();
      connect_sink(i);
    }
    for (std::size_t i = 0; i < config.nodes; ++i) players_[i].streams.resize(config.nodes);
    world_.schedule.set_pauses(config.pauses);
  }

  ScenarioResult run() {
    std::size_t restarts = config_.restarts, partitions = config_.partitions;
    // Faults go on for most of the time, then the network is healthy and everything must arrive.
    for (int round = 0; round < 4000 && failure_.empty(); ++round) {
      for (std::size_t i = 0; i < players_.size(); ++i) feed(i);
      world_.net.step(world_.net.now() + microseconds{5});
      world_.poll();
      if (round % 16 == 15) {
        if (restarts != 0) restart(random_() % players_.size()), --restarts;
        if (partitions != 0) partition(), --partitions;
      }
      if (all_sent()) break;
    }
    const auto settled = [this] {
      for (std::size_t i = 0; i < players_.size(); ++i) feed(i);
      return !failure_.empty() || (all_sent() && all_idle());
    };
    busy_off_ = true;
    if (!world_.run_until(settled, seconds{20}, microseconds{50}) && failure_.empty())
      fail("not everything was sent and acknowledged\n" + dump());
    // Acknowledgements on their way, and what came of an incarnation that ended and was never
    // completed.
    const auto released = [this] { return !failure_.empty() || all_released(); };
    world_.run(milliseconds{1});
    world_.run_until(released, seconds{20}, microseconds{50});
    check_complete();
    return finish();
  }

 private:
  // From one incarnation of one node to one incarnation of another, in one lane and order.
  struct Stream {
    std::uint32_t next = 0;             // ordered: the number that must come
    std::set<std::uint32_t> delivered;  // unordered
  };
  using StreamKey = std::array<std::uint32_t, 4>;  // from, from's incarnation, lane, order
  struct Sending {
    PeerId peer;
    std::uint32_t peer_incarnation = 0;
    std::uint32_t left = 0;
    std::uint32_t next[kLanes][2] = {};  // numbers to be used
    bool broken = false;                 // an incarnation ended: completeness is not owed
  };
  struct Player {
    std::uint32_t incarnation = 1;
    std::vector<Sending> streams;          // by destination
    std::map<StreamKey, Stream> received;  // in this incarnation
  };

  LinkConfig incarnation_config(std::size_t i, std::uint32_t incarnation) {
    LinkConfig link = config_.link;
    link.seed = config_.seed * 1000 + i * 10 + incarnation;
    link.incarnation = link.seed;
    return link;
  }
  void connect_sink(std::size_t i) {
    world_.nodes[i]->sink.message = [this, i](const Incoming& m) { return receive(i, m); };
    world_.nodes[i]->sink.down = [this, i](PeerId peer, const Address&, DownReason reason) {
      ++result_.incarnations_ended;
      for (Sending& s : players_[i].streams)
        if (s.peer == peer) {
          s.peer = PeerId{};
          s.broken = true;
        }
      if (config_.restarts == 0)
        fail(std::string("a peer was given up without cause: ") + text(reason));
    };
  }
  void fail(const std::string& what) {
    if (failure_.empty()) failure_ = what;
  }

  void feed(std::size_t i) {
    Player& player = players_[i];
    SimLink& link = *world_.nodes[i]->link;
    for (std::size_t to = 0; to < players_.size(); ++to) {
      Sending& s = player.streams[to];
      if (to == i) continue;
      if (!started_) s.left = config_.messages;
      if (!s.peer && s.left != 0) {
        s.peer = link.peer(world_.nodes[to]->address());
        if (++s.peer_incarnation > 1) std::memset(s.next, 0, sizeof(s.next));
      }
      const std::uint32_t burst = 1 + random_() % 8;
      for (std::uint32_t n = 0; n < burst && s.left != 0; ++n)
        if (!send_one(i, to, s, link)) break;
    }
    if (i + 1 == players_.size()) started_ = true;
  }

  bool send_one(std::size_t i, std::size_t to, Sending& s, SimLink& link) {
    Stamp stamp{};
    stamp.from = static_cast<std::uint32_t>(i);
    stamp.from_incarnation = players_[i].incarnation << 16 | s.peer_incarnation;
    stamp.to = static_cast<std::uint32_t>(to);
    stamp.lane = static_cast<std::uint8_t>(random_() % kLanes);
    stamp.order = static_cast<std::uint8_t>(random_() % 2);
    stamp.number = s.next[stamp.lane][stamp.order];
    const std::size_t most = link.max_message(s.peer);
    // Drawn one by one: a scenario must be the same one in every build.
    const std::size_t longest = random_() % 4 == 0 ? most - sizeof(Stamp) : 40;
    const std::size_t size = sizeof(Stamp) + random_() % longest;
    stamp.size = static_cast<std::uint16_t>(size);
    std::byte body[2048];
    for (std::size_t b = 0; b < size - sizeof(Stamp); ++b) body[b] = pattern(stamp, b);
    const auto status = link.try_send(
        s.peer, static_cast<Lane>(stamp.lane), static_cast<Order>(stamp.order), kTestMessage,
        std::as_bytes(std::span{&stamp, 1}), {body, size - sizeof(Stamp)},
        random_() % 2 ? Urgency::now : Urgency::batch, world_.schedule.read_clock(i));
    if (status == SendStatus::too_big) fail("max_message() bytes are too big");
    if (status == SendStatus::peer_down) fail("peer_down without on_peer_down");
    if (status != SendStatus::sent) return false;
    ++s.next[stamp.lane][stamp.order];
    --s.left;
    ++result_.sent;
    return true;
  }

  RxResult receive(std::size_t i, const Incoming& m) {
    if (!busy_off_ && config_.busy > 0 &&
        std::uniform_real_distribution<>{}(random_) < config_.busy)
      return RxResult::backpressure;
    Stamp stamp;
    if (m.bytes.size() < sizeof(stamp)) return fail("a message was cut"), RxResult::consumed;
    std::memcpy(&stamp, m.bytes.data(), sizeof(stamp));
    if (stamp.size != m.bytes.size() || stamp.to != i ||
        stamp.lane != static_cast<std::uint8_t>(m.lane) ||
        stamp.order != static_cast<std::uint8_t>(m.order))
      return fail("a message was altered or misdelivered"), RxResult::consumed;
    for (std::size_t b = 0; b < m.bytes.size() - sizeof(stamp); ++b)
      if (m.bytes[sizeof(stamp) + b] != pattern(stamp, b))
        return fail("a message's contents were altered"), RxResult::consumed;
    ++result_.delivered;
    Stream& stream =
        players_[i].received[{stamp.from, stamp.from_incarnation, stamp.lane, stamp.order}];
    if (m.order == Order::ordered) {
      if (stamp.number != stream.next) {
        std::ostringstream what;
        what << "ordered message " << stamp.number << " came when " << stream.next << " was due";
        fail(what.str());
      }
      stream.next = stamp.number + 1;
    } else if (!stream.delivered.insert(stamp.number).second) {
      fail("an unordered message came twice");
    }
    return RxResult::consumed;
  }

  void restart(std::size_t i) {
    Node& node = *world_.nodes[i];
    gather(*node.link);
    world_.kill(node);
    Player& player = players_[i];
    ++player.incarnation;
    player.received.clear();
    for (Sending& s : player.streams) {
      s.peer = PeerId{};
      s.broken = true;
    }
    for (Player& other : players_) other.streams[i].broken = true;
    node.start(incarnation_config(i, player.incarnation));
  }

  void partition() {
    const std::size_t a = random_() % players_.size();
    const std::size_t b = (a + 1 + random_() % (players_.size() - 1)) % players_.size();
    world_.net.partition(*world_.nodes[a]->port, *world_.nodes[b]->port);
    const auto span = milliseconds{1 + random_() % 60};
    world_.run(span, microseconds{200});
    world_.net.heal(*world_.nodes[a]->port, *world_.nodes[b]->port);
  }

  bool all_sent() const {
    if (!started_) return false;
    for (const Player& p : players_)
      for (const Sending& s : p.streams)
        if (s.left != 0) return false;
    return true;
  }
  bool all_idle() const {
    for (const auto& node : world_.nodes)
      if (!node->link->idle()) return false;
    return true;
  }
  bool all_released() const {
    for (const auto& node : world_.nodes)
      if (node->link->frames_held() != 0 || node->port->frames_in_use() != 0) return false;
    return true;
  }

  std::string dump() const {
    std::ostringstream out;
    for (std::size_t i = 0; i < players_.size(); ++i) {
      out << "node " << i << ", still to send";
      for (const Sending& s : players_[i].streams) out << ' ' << s.left << (s.broken ? "*" : "");
      out << '\n' << world_.nodes[i]->link->dump(world_.net.now());
    }
    return out.str();
  }

  void check_complete() {
    for (std::size_t i = 0; i < players_.size(); ++i)
      for (std::size_t to = 0; to < players_.size(); ++to) {
        const Sending& s = players_[i].streams[to];
        if (i == to || s.broken) continue;
        for (std::uint32_t lane = 0; lane < kLanes; ++lane)
          for (std::uint32_t order = 0; order < 2; ++order) {
            const auto incarnation = players_[i].incarnation << 16 | s.peer_incarnation;
            const Stream& r =
                players_[to].received[{static_cast<std::uint32_t>(i), incarnation, lane, order}];
            const std::size_t got = order == 0 ? r.next : r.delivered.size();
            if (got != s.next[lane][order]) fail("messages are missing");
          }
      }
    if (!all_released()) fail("a link holds frames though all is done, or lost them\n" + dump());
  }

  void gather(const SimLink& link) {
    const Counters& c = link.counters();
    result_.retransmits += c[Counter::retransmits];
    result_.fast_retransmits += c[Counter::fast_retransmits];
    result_.probes += c[Counter::probes];
    result_.duplicates += c[Counter::drop_duplicate];
    result_.bad_checksums += c[Counter::drop_checksum];
    result_.stale += c[Counter::drop_incarnation] + c[Counter::drop_token];
    result_.credit_waits += c[Counter::credit_waits];
    if (c[Counter::drop_message] + c[Counter::drop_protocol] != 0) fail("malformed messages");
    const base::FaultSpec& faults = config_.net.faults;
    if (config_.restarts == 0 && faults.corrupt + faults.truncate == 0 &&
        c[Counter::drop_ack] + c[Counter::drop_token] != 0)
      fail("an honest peer's frames were taken for forged");
  }
  ScenarioResult finish() {
    for (const auto& node : world_.nodes) {
      gather(*node->link);
      result_.overruns += node->port->overruns();
    }
    for (const Player& p : players_)
      for (const Sending& s : p.streams)
        if (config_.link.first_sequence && s.peer_incarnation == 1) result_.wraps += 1;
    result_.faults = world_.net.faults();
    result_.partitioned = world_.net.partitioned();
    result_.pauses = world_.schedule.pauses();
    result_.failure = failure_;
    return result_;
  }

  ScenarioConfig config_;
  std::mt19937_64 random_;
  World world_;
  std::vector<Player> players_;
  ScenarioResult result_;
  std::string failure_;
  bool started_ = false, busy_off_ = false;
};

}  // namespace

ScenarioConfig draw_scenario(std::uint64_t seed) {
  std::mt19937_64 random(seed * 0x9e3779b97f4a7c15);
  const auto chance = [&random](double p) {
    return std::uniform_real_distribution<>{}(random) < p;
  };
  const auto up_to = [&random](double most) {
    return std::uniform_real_distribution<>{0, most}(random);
  };
  ScenarioConfig c;
  c.seed = seed;
  c.nodes = 2 + random() % 3;
  c.messages = 50 + static_cast<std::uint32_t>(random() % 250);
  c.net.latency = microseconds{1 + random() % 50};
  if (chance(0.5)) c.net.jitter = microseconds{1 + random() % 20};
  c.net.reorder_delay = microseconds{5 + random() % 200};
  base::FaultSpec& f = c.net.faults;
  f.seed = seed;
  if (chance(0.8)) f.loss = up_to(0.3);
  if (chance(0.5)) f.duplicate = up_to(0.2);
  if (chance(0.5)) f.reorder = up_to(0.3);
  if (chance(0.5)) f.corrupt = up_to(0.1);
  if (chance(0.3)) f.truncate = up_to(0.05);
  const std::size_t mtus[] = {576, 1500, 2000};
  c.port.mtu = mtus[random() % 3];
  c.port.receive_ring = 64 << random() % 5;
  c.port.pool = 4 * c.port.receive_ring + 256;
  c.port.transmit_burst = 1 + random() % 32;
  if (chance(0.5)) c.link.first_sequence = 0u - static_cast<std::uint32_t>(random() % 60);
  c.link.max_window = 4u << random() % 8;
  c.link.idle_window = static_cast<std::uint32_t>(random() % 4);
  if (chance(0.3)) c.busy = up_to(0.5);
  if (chance(0.25)) c.restarts = 1 + random() % 3;
  if (chance(0.25)) c.partitions = 1 + random() % 3;
  if (chance(0.3)) {
    c.pauses.probability = up_to(0.01);
    c.pauses.seed = seed;
    // As MPI has it: nothing that waits is set right by a keepalive within the scenario.
    if (c.restarts == 0) c.link.dead_after = std::chrono::hours{1};
  }
  return c;
}

ScenarioResult run_scenario(const ScenarioConfig& config) {
  return Scenario(config).run();
}

}  // namespace viaduct::link::test
