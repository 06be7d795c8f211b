// The two ends of a session between processes: RemoteSession sends the orders, Server follows them.
// The sequence of orders and answers is drawn in session.hpp. Both sides open their side of a layer
// anew for each turn, so that no turn inherits state from the one before.
#include "tools/pingpong/session.hpp"

#include <algorithm>
#include <cstring>

#include "tools/pingpong/error.hpp"

namespace viaduct::pingpong {

namespace {

// How long the client waits for answers. The server may have to open its port before it answers ...
constexpr std::chrono::seconds kOpenPatience{15};
// ... but not if orders travel over that port: a server that answers at all has it open.
constexpr std::chrono::seconds kOverPortPatience{3};
// For other answers. The server may still be waiting for its link, whose other end is up already
// here.
constexpr std::chrono::seconds kAnswerPatience{15};
constexpr std::chrono::seconds kNextPatience{15};   // the server: between two orders
constexpr std::chrono::seconds kBrokenPatience{3};  // the server: after a turn that broke off
constexpr std::chrono::seconds kByePatience{1};     // the server: for a repeated bye
// The client: for the layer to connect, once the server has its side.
constexpr std::chrono::seconds kConnectPatience{8};
// The server: for the client to connect in a turn. A client that has not come by then may have
// missed the answer; it repeats the order, and the server has to be listening again. Shorter than
// kConnectPatience for that reason.
constexpr std::chrono::milliseconds kClientPatience{1500};
constexpr std::chrono::milliseconds kWarmUp{100};  // of the first point after a port was opened
constexpr std::size_t kMinMtu = 64;
constexpr std::uint64_t kMaxTime = 60'000'000'000;  // ns; what --time-per-point can ask for

// What one side of a layer needs to know (layer.hpp), from what this side has and what the order
// says. Both sides derive `turn` from the number of the order, so it agrees.
TurnConfig make_turn_config(Side& side, const LayerKind& kind, const link::Address& peer,
                            std::size_t mtu, bool checksum, std::uint32_t turn,
                            const Point& point) {
  TurnConfig out;
  out.client = side.config().client;
  out.port = kind.info.over == Over::port ? &side.port() : nullptr;
  out.peer = peer;
  out.mtu = mtu;
  out.ip = side.config().ip;
  out.peer_ip = side.config().peer_ip;
  out.checksum = checksum;
  out.turn = static_cast<std::uint8_t>(turn);  // a late frame of 256 turns ago cannot exist
  out.point = point;
  return out;
}

// The client. Says hello in its constructor.
class RemoteSession final : public Session {
 public:
  RemoteSession(Side& side, Control& control, bool checksum)
      : side_(side), control_(control), checksum_(checksum) {
    Order hello;
    if (side.has_port()) {
      hello.has_port = 1;
      std::copy_n(side.port().address().bytes.begin(), 6, hello.address);
    }
    const Answer answer =
        control_.call(hello, control_.lossy() ? kOverPortPatience : kOpenPatience);
    if (!side.has_port()) return;
    if (!answer.has_port)
      throw Failure("the other side has no port; start it with --listen --port DEVARGS");
    std::copy_n(answer.address, 6, peer_.bytes.begin());
    mtu_ = std::min<std::size_t>(answer.mtu, side.port().mtu());
  }

  RoundTrips latency(const LayerKind& kind, const Point& point) override {
    const auto layer = start(kind, point);
    const RoundTrips out = layer->ping(point);
    result();
    return out;
  }
  Received bandwidth(const LayerKind& kind, const Point& point) override {
    const auto layer = start(kind, point);
    const double sending = layer->send(point);
    const Answer answer = result();
    return Received{answer.messages, answer.bytes, answer.seconds}.at_least_as_long_as(sending);
  }
  void end() override {
    Order bye;
    bye.what = Order::What::bye;
    control_.call(bye, kAnswerPatience);
  }

 private:
  // Opens the port if need be and begins a turn. With a fixed number of messages there is no
  // warm-up: then instructions are counted and every message matters.
  std::unique_ptr<Layer> start(const LayerKind& kind, const Point& point) {
    if (side_.prepare(kind)) {
      bring_up(kind);
      if (point.messages == 0) warm_up(kind);
    }
    return begin(kind, point);
  }

  // A port that was just opened writes to memory that nobody has touched. On a memif the first
  // message in each slot of its ring takes twenty times as long as those that follow, so a turn is
  // run and thrown away.
  void warm_up(const LayerKind& kind) {
    const Point point{.time = kWarmUp};
    begin(kind, point)->ping(point);
    result();
  }

  // Orders a turn and connects this side of the layer to the server's, which is there once the
  // answer comes.
  std::unique_ptr<Layer> begin(const LayerKind& kind, const Point& point) {
    Order order;
    order.what = Order::What::turn;
    order.latency = point.measure == Measure::latency;
    order.checksum = checksum_;
    order.bytes = point.bytes;
    order.messages = point.messages;
    order.nanoseconds = static_cast<std::uint64_t>(point.time.count());
    order.mtu = mtu_;
    kind.info.name.copy(order.layer, sizeof(order.layer) - 1);
    const Answer answer = control_.call(order, kAnswerPatience);
    TurnConfig config =
        make_turn_config(side_, kind, peer_, mtu_, checksum_, answer.sequence, point);
    config.endpoint_address.assign(answer.endpoint_address,
                                   ::strnlen(answer.endpoint_address, kMaxEndpointAddress));
    auto layer = kind.make(config);
    if (!layer->connect(kConnectPatience))
      throw Failure("no connection within 8 s, though the other side is there");
    return layer;
  }

  // The server answers before it waits for its link, so that both sides wait at the same time: a
  // memif comes up only while both ends are polled.
  void bring_up(const LayerKind& kind) {
    Order order;
    order.what = Order::What::bring_up;
    kind.info.name.copy(order.layer, sizeof(order.layer) - 1);
    control_.call(order, kOpenPatience);
    side_.wait_for_link();
  }

  // What the server measured in the last turn. Needed for round trips too: the server has left the
  // turn when it answers.
  Answer result() {
    Order order;
    order.what = Order::What::result;
    return control_.call(order, kAnswerPatience);
  }

  Side& side_;
  Control& control_;
  bool checksum_;
  link::Address peer_;
  std::size_t mtu_ = 0;
};

// The server: takes one order after the other. A turn is carried out inside follow(); no order is
// taken meanwhile.
class Server {
 public:
  Server(Side& side, Control& control) : side_(side), control_(control) {}

  void run(std::chrono::milliseconds patience) {
    Order order;
    do {
      if (!control_.next(order, patience))
        throw Failure("the other side has fallen silent" +
                      (turn_failure_.empty() ? "" : " (" + turn_failure_ + ")"));
      follow(order);
      patience = turn_failure_.empty() ? kNextPatience : kBrokenPatience;
    } while (order.what != Order::What::bye);
    // The answer to bye may have been lost: a client that has not got it repeats bye.
    while (control_.lossy() && control_.next(order, kByePatience) && order.what == Order::What::bye)
      follow(order);
  }

 private:
  // Carries out one order and answers. A failure becomes the answer's reason; the session goes on.
  void follow(const Order& order) {
    Answer answer;
    answer.sequence = order.sequence;
    try {
      // A turn and bring_up answer in their middle, so they return instead of breaking.
      switch (order.what) {
        case Order::What::hello: hello(order, answer); break;
        case Order::What::bring_up: return bring_up(order, answer);
        case Order::What::turn:
          // The client repeats an order whose answer is slow or lost. A turn in which something
          // arrived has been carried out already; one in which nothing came is tried again.
          if (order.sequence != turn_ || !received_anything_) turn(order, answer);
          return;
        case Order::What::result:
          if (!turn_failure_.empty()) throw Failure(turn_failure_);
          answer.messages = received_.messages;
          answer.bytes = received_.bytes;
          answer.seconds = received_.seconds;
          break;
        case Order::What::bye: break;
        default: return;
      }
    } catch (const Failure& failure) {
      fail(answer, failure);
    } catch (const base::SetupError& error) {
      fail(answer, error);
    }
    control_.answer(answer);
  }

  static void fail(Answer& answer, const std::exception& error) {
    answer.failed = 1;
    std::strncpy(answer.reason, error.what(), sizeof(answer.reason) - 1);
  }

  void hello(const Order& order, Answer& answer) {
    std::copy_n(order.address, 6, peer_.bytes.begin());
    if (!side_.has_port()) {
      if (order.has_port) throw Failure("it has no port; start it with --listen --port DEVARGS");
      return;
    }
    answer.has_port = 1;
    answer.mtu = side_.port().mtu();
    std::copy_n(side_.port().address().bytes.begin(), 6, answer.address);
  }

  void bring_up(const Order& order, Answer& answer) {
    side_.prepare(kind_of(order));
    control_.answer(answer);
    side_.wait_for_link();
  }

  // One turn. The layer must be listening before the answer is sent, because the client connects as
  // soon as it has the answer. A failure after that cannot be answered any more: it is kept for the
  // result.
  void turn(const Order& order, Answer& answer) {
    const std::unique_ptr<Layer> layer = open_layer(order);
    turn_ = order.sequence;
    received_anything_ = false;
    received_ = {};
    turn_failure_.clear();
    layer->endpoint_address().copy(answer.endpoint_address, kMaxEndpointAddress);
    control_.answer(answer);  // now the client starts
    try {
      carry_out(order, *layer);
    } catch (const Failure& failure) {
      turn_failure_ = failure.what();
    }
  }

  // The measured part. Returns without a result if no client connects.
  void carry_out(const Order& order, Layer& layer) {
    if (!layer.connect(kClientPatience)) return;
    const Point point = point_of(order);
    if (order.latency) {
      received_anything_ = layer.serve_ping(point);
    } else {
      received_ = layer.receive(point);
      received_anything_ = received_.bytes > 0;
    }
  }

  static Point point_of(const Order& order) {
    return {order.latency ? Measure::latency : Measure::bandwidth, order.bytes, order.messages,
            std::chrono::nanoseconds{order.nanoseconds}};
  }

  // The layer that the order names. Throws Failure if this side does not have it, or was started
  // without the port or address that the layer needs.
  const LayerKind& kind_of(const Order& order) const {
    const LayerKind* kind = find_layer(order.layer);
    if (kind == nullptr)
      throw Failure("it has no layer " + std::string(order.layer) +
                    "; use the same version of viaduct-pingpong on both sides");
    const bool over_port = kind->info.over == Over::port;
    if (over_port ? !side_.has_port() : side_.config().ip.empty())
      throw Failure(std::string("layer ") + order.layer + " needs it to be started with " +
                    (over_port ? "--port DEVARGS" : "--ip ADDRESS"));
    return *kind;
  }

  // This side of the layer. An order comes from a wire, so its numbers are checked before memory is
  // allocated for them.
  std::unique_ptr<Layer> open_layer(const Order& order) {
    const LayerKind& kind = kind_of(order);
    if (order.bytes < kMinBytes || order.bytes > kMaxBytes || order.nanoseconds > kMaxTime ||
        (kind.info.over == Over::port && (order.mtu < kMinMtu || order.mtu > side_.port().mtu())))
      throw Failure("the order makes no sense; use the same version on both sides");
    side_.prepare(kind);
    return kind.make(make_turn_config(side_, kind, peer_, order.mtu, order.checksum != 0,
                                      order.sequence, point_of(order)));
  }

  Side& side_;
  Control& control_;
  link::Address peer_;
  std::uint32_t turn_ = 0;          // order number of the last turn...
  bool received_anything_ = false;  // ... whether anything arrived in it...
  Received received_;               // ... and what...
  std::string turn_failure_;        // ... or why it ended too early
};

}  // namespace

std::unique_ptr<Session> remote_session(Side& side, Control& control, bool checksum) {
  return std::make_unique<RemoteSession>(side, control, checksum);
}

void serve(Side& side, Control& control, std::chrono::milliseconds first_patience) {
  Server(side, control).run(first_patience);
}

}  // namespace viaduct::pingpong
