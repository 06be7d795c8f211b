// Lets two links talk over a simulated network that loses, alters and truncates some frames, writes
// what is on the wire to a pcap file and prints each frame's fields as this side of the project
// understands them: a line a frame, in the form in which tshark prints fields. wireshark_test.sh
// compares the two.
//
//   wireshark_frames FILE.pcap
#include <cstddef>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "drivers/base/crc32c.hpp"
#include "drivers/link/link.hpp"
#include "drivers/mbcf/engine.hpp"
#include "drivers/port/packet_capture.hpp"
#include "drivers/sim/sim_network.hpp"
#include "drivers/startx_emul/wire.hpp"

namespace {

using namespace viaduct;
using link::Lane;
using link::Order;
using link::Protocol;
using link::Time;
using startx::Kind;

using Bytes = std::span<const std::byte>;

template <class T>
T read(Bytes& from) {
  T value;
  std::memcpy(&value, from.data(), sizeof value);
  from = from.subspan(sizeof value);
  return value;
}

// One line of tshark -T fields: the columns in the order in which they are named at first.
class Line {
 public:
  template <class... Value>
  void add(const char* column, const char* format, Value... value) {
    char text[32];
    std::snprintf(text, sizeof text, format, value...);
    std::string& cell = cells_[column];
    if (!cell.empty()) cell += ',';
    cell += text;
  }
  void dec(const char* column, std::uint64_t v) {
    add(column, "%llu", static_cast<unsigned long long>(v));
  }
  void hex(const char* column, std::uint32_t v) { add(column, "0x%08x", v); }
  void hex64(const char* column, std::uint64_t v) {
    add(column, "0x%016llx", static_cast<unsigned long long>(v));
  }
  void print(const std::vector<const char*>& columns) {
    for (std::size_t i = 0; i < columns.size(); ++i)
      std::printf("%s%s", i == 0 ? "" : "\t", cells_[columns[i]].c_str());
    std::printf("\n");
  }

 private:
  std::map<std::string, std::string> cells_;
};

const std::vector<const char*> kColumns{"viaduct.version",
                                        "viaduct.type",
                                        "viaduct.lane",
                                        "viaduct.unordered",
                                        "viaduct.want",
                                        "viaduct.answer",
                                        "viaduct.length",
                                        "viaduct.connection",
                                        "viaduct.token",
                                        "viaduct.sequence",
                                        "viaduct.ack",
                                        "viaduct.credit",
                                        "viaduct.checksum.bad",
                                        "viaduct.retransmission",
                                        "viaduct.message.length",
                                        "viaduct.message.protocol",
                                        "viaduct.message.kind",
                                        "viaduct.block.lane",
                                        "viaduct.block.words",
                                        "viaduct.block.received",
                                        "viaduct.job",
                                        "viaduct.incarnation",
                                        "viaduct.echo",
                                        "viaduct.my_connection",
                                        "viaduct.my_token",
                                        "viaduct.my_seed",
                                        "viaduct.first_sequence",
                                        "viaduct.window",
                                        "viaduct.mtu",
                                        "startx.kind",
                                        "startx.tag",
                                        "startx.word",
                                        "startx.transfer",
                                        "startx.slot",
                                        "startx.key",
                                        "startx.length",
                                        "startx.offset",
                                        "mbcf.silent",
                                        "mbcf.kind",
                                        "mbcf.key",
                                        "mbcf.offset",
                                        "mbcf.id",
                                        "mbcf.length",
                                        "mbcf.has_then",
                                        "mbcf.flag",
                                        "mbcf.then",
                                        "mbcf.width",
                                        "mbcf.entry",
                                        "mbcf.operand",
                                        "mbcf.compare",
                                        "mbcf.op",
                                        "mbcf.status",
                                        "mbcf.value",
                                        "mbcf.writer",
                                        "mbcf.blocks",
                                        "mbcf.capacity"};

void describe_startx(Line& line, std::uint8_t kind, Bytes body) {
  line.dec("startx.kind", kind);
  switch (static_cast<Kind>(kind)) {
    case Kind::pio:
    case Kind::queue:
      line.hex("startx.tag", read<std::uint32_t>(body));
      while (!body.empty()) line.hex("startx.word", read<std::uint32_t>(body));
      break;
    case Kind::rdma_request: {
      const auto m = read<startx::RequestMessage>(body);
      line.dec("startx.transfer", m.transfer);
      line.hex("startx.tag", m.tag);
      line.dec("startx.length", m.length);
      break;
    }
    case Kind::rdma_grant:
    case Kind::rdma_done: {
      const auto m = read<startx::RightMessage>(body);
      line.dec("startx.transfer", m.transfer);
      line.dec("startx.slot", m.slot);
      line.hex("startx.key", m.key);
      break;
    }
    case Kind::rdma_refuse:
      line.dec("startx.transfer", read<startx::RefuseMessage>(body).transfer);
      break;
    case Kind::rdma_data:
    case Kind::rdma_last: {
      const auto m = read<startx::DataHead>(body);
      line.dec("startx.transfer", m.transfer);
      line.dec("startx.slot", m.slot);
      line.hex("startx.key", m.key);
      line.dec("startx.offset", m.offset);
      break;
    }
  }
}

void describe_target(Line& line, Bytes& body) {
  const auto m = read<mbcf::TargetHead>(body);
  line.hex64("mbcf.key", m.key);
  line.dec("mbcf.offset", m.offset);
  line.hex("mbcf.id", m.id);
}
void describe_silent_target(Line& line, Bytes& body) {
  const auto m = read<mbcf::SilentTarget>(body);
  line.hex64("mbcf.key", m.key);
  line.dec("mbcf.offset", m.offset);
}
void describe_long(Line& line, Bytes& body) {
  const auto m = read<mbcf::LongHead>(body);
  line.dec("mbcf.length", m.length);
  line.dec("mbcf.has_then", m.then);
}
void describe_then(Line& line, Bytes& body) {
  const auto m = read<mbcf::ThenHead>(body);
  line.hex64("mbcf.key", m.key);
  line.dec("mbcf.offset", m.offset);
  line.dec("mbcf.flag", m.value);
  line.dec("mbcf.then", m.kind);
  line.dec("mbcf.width", m.width);
  line.dec("mbcf.entry", m.length);
}
void describe_atomic(Line& line, Bytes& body) {
  const auto m = read<mbcf::AtomicHead>(body);
  line.dec("mbcf.operand", m.operand);
  line.dec("mbcf.compare", m.compare);
  line.dec("mbcf.op", m.op);
  line.dec("mbcf.width", m.width);
}

void describe_credit(Line& line, mbcf::Kind kind, Bytes& body) {
  if (kind == mbcf::Kind::want) {
    const auto m = read<mbcf::Want>(body);
    line.hex64("mbcf.key", m.key);
    line.hex("mbcf.writer", m.writer);
    line.dec("mbcf.blocks", m.blocks);
  } else if (kind == mbcf::Kind::give_back) {
    const auto m = read<mbcf::GiveBack>(body);
    line.hex64("mbcf.key", m.key);
    line.dec("mbcf.blocks", m.blocks);
    line.hex("mbcf.writer", m.closing);
  } else if (kind == mbcf::Kind::grant) {
    const auto m = read<mbcf::Grant>(body);
    line.hex("mbcf.writer", m.writer);
    line.dec("mbcf.blocks", m.blocks);
    line.dec("mbcf.capacity", m.capacity);
  } else {
    line.hex("mbcf.writer", read<std::uint32_t>(body));
  }
}

void describe_mbcf(Line& line, std::uint8_t number, Bytes body) {
  using mbcf::Kind;
  const auto kind = static_cast<Kind>(number & ~mbcf::kSilentKind);
  const bool silent = (number & mbcf::kSilentKind) != 0;
  line.dec("mbcf.silent", silent);
  line.dec("mbcf.kind", static_cast<std::uint8_t>(kind));
  if (kind >= Kind::want) {
    describe_credit(line, kind, body);
    if (kind == Kind::gone) line.dec("mbcf.status", read<std::uint32_t>(body));
    return;
  }
  const bool target = kind <= Kind::long_write || kind == Kind::append || kind == Kind::read ||
                      kind == Kind::atomic || kind == Kind::signal;
  if (silent)
    describe_silent_target(line, body);
  else if (target)
    describe_target(line, body);
  else
    line.hex("mbcf.id", read<std::uint32_t>(body));
  if (kind == Kind::long_write || kind == Kind::read) describe_long(line, body);
  if (kind == Kind::write_then || kind == Kind::long_then) describe_then(line, body);
  if (kind == Kind::atomic) describe_atomic(line, body);
  if (kind == Kind::answer) line.dec("mbcf.status", read<std::uint32_t>(body));
  if (kind == Kind::value) line.dec("mbcf.value", read<std::uint64_t>(body));
}

void describe_messages(Line& line, Bytes payload) {
  while (!payload.empty()) {
    const auto m = read<link::MessageHeader>(payload);
    line.dec("viaduct.message.length", m.length);
    line.dec("viaduct.message.protocol", m.protocol);
    line.dec("viaduct.message.kind", m.kind);
    if (m.protocol == static_cast<std::uint8_t>(Protocol::startx))
      describe_startx(line, m.kind, payload.first(m.length));
    if (m.protocol == static_cast<std::uint8_t>(Protocol::mbcf))
      describe_mbcf(line, m.kind, payload.first(m.length));
    payload = payload.subspan(m.length);
  }
}

void describe_acks(Line& line, Bytes payload) {
  while (!payload.empty()) {
    const auto block = read<link::AckBlock>(payload);
    line.dec("viaduct.block.lane", block.lane_flags & link::kLaneMask);
    line.dec("viaduct.block.words", block.words);
    line.dec("viaduct.ack", block.ack);
    line.dec("viaduct.credit", block.credit);
    for (std::uint32_t word = 0; word < block.words; ++word) {
      const auto bits = read<std::uint64_t>(payload);
      for (std::uint32_t i = 0; i < 64; ++i)
        if ((bits >> i & 1) != 0) line.dec("viaduct.block.received", block.ack + 1 + 64 * word + i);
    }
  }
}

void describe_handshake(Line& line, Bytes payload) {
  const auto h = read<link::Handshake>(payload);
  line.hex64("viaduct.job", h.job_key);
  line.hex64("viaduct.incarnation", h.incarnation);
  line.hex64("viaduct.echo", h.echo);
  line.hex64("viaduct.cookie", h.cookie);
  line.dec("viaduct.my_connection", h.connection);
  line.hex("viaduct.my_token", h.token);
  line.hex("viaduct.my_seed", h.seed);
  for (const std::uint32_t s : {h.sequence[0], h.sequence[1], h.sequence[2]})
    line.dec("viaduct.first_sequence", s);
  for (const std::uint16_t w : {h.window[0], h.window[1], h.window[2]})
    line.dec("viaduct.window", w);
  line.dec("viaduct.mtu", h.mtu);
}

// What the frames of a run add up to; the run is worth comparing only if all of it happened.
struct Seen {
  std::set<std::uint8_t> types;
  unsigned bad = 0, again = 0, gaps = 0, truncated = 0;
};

class Describer {
 public:
  void describe(Bytes frame) {
    Line line;
    Bytes rest = frame;
    if (frame.size() < link::kFrameHeader) {
      ++seen.truncated;
      return line.print(kColumns);
    }
    const auto h = read<link::FrameHeader>(rest);
    const auto type = static_cast<std::uint8_t>(h.version_type & 15);
    const unsigned lane = h.lane_flags & link::kLaneMask;
    line.dec("viaduct.version", h.version_type >> 4);
    line.dec("viaduct.type", type);
    line.dec("viaduct.lane", lane);
    line.dec("viaduct.unordered", (h.lane_flags & link::kFlagUnordered) != 0);
    line.dec("viaduct.want", (h.lane_flags & link::kFlagWant) != 0);
    line.dec("viaduct.answer", (h.lane_flags & link::kFlagAnswer) != 0);
    line.dec("viaduct.length", h.length);
    line.dec("viaduct.connection", h.connection);
    line.hex("viaduct.token", h.token);
    line.dec("viaduct.sequence", h.sequence);
    line.dec("viaduct.ack", h.ack);
    line.dec("viaduct.credit", h.credit);
    if (h.version_type >> 4 == link::kVersion) {
      if (h.length > rest.size())
        ++seen.truncated;
      else
        describe_payload(line, h, lane, rest.first(h.length));
    }
    line.print(kColumns);
  }

  Seen seen;

 private:
  void describe_payload(Line& line, const link::FrameHeader& h, unsigned lane, Bytes payload) {
    const auto type = static_cast<link::FrameType>(h.version_type & 15);
    seen.types.insert(h.version_type & 15);
    const std::uint32_t seed = seeds_[{h.connection, h.token}];  // hello: 0
    const auto crc = link::frame_checksum(
        h, base::crc32c(payload.data(), payload.size(), link::route_checksum(h, seed)));
    const bool bad = h.checksum != crc;
    if (h.checksum != 0) line.dec("viaduct.checksum.bad", bad);
    seen.bad += bad;
    if (type == link::FrameType::data) {
      if (!sequences_.insert({h.connection, h.token, lane, h.sequence}).second) {
        line.dec("viaduct.retransmission", 1);
        ++seen.again;
      }
      describe_messages(line, payload);
    } else if (type == link::FrameType::ack) {
      seen.gaps += payload.size() > sizeof(link::AckBlock);
      describe_acks(line, payload);
    } else if (type != link::FrameType::goodbye) {
      describe_handshake(line, payload);
      const auto told = read<link::Handshake>(payload);
      seeds_[{told.connection, told.token}] = told.seed;
    }
  }

  std::set<std::tuple<std::uint32_t, std::uint32_t, unsigned, std::uint32_t>> sequences_;
  std::map<std::pair<std::uint16_t, std::uint32_t>, std::uint32_t> seeds_;
};

struct Sink final : link::ReceiveHandler {
  link::RxResult on_message(const link::Incoming&) override {
    ++messages;
    return link::RxResult::consumed;
  }
  unsigned messages = 0;
};

class Talk {
 public:
  explicit Talk(const char* file) : pcap_(file) {
    net_.hook = [this](std::uint32_t, std::vector<std::byte>& frame) { return on_wire(frame); };
  }

  // True when everything that the comparison should cover has happened.
  bool run() {
    link::LinkConfig config;
    config.job_key = 0x1122334455667788;
    config.seed = 7;
    left_ = std::make_unique<link::Link<sim::SimPort>>(a_, config);
    config.seed = 8;
    right_ = std::make_unique<link::Link<sim::SimPort>>(b_, config);
    left_->attach(Protocol::startx, &sink_);
    right_->attach(Protocol::startx, &sink_);
    right_->attach(Protocol::test, &sink_);
    peer_ = left_->peer(b_.address());
    talk();
    requests();
    unexpected();
    left_.reset();
    right_.reset();
    const Seen& seen = describer_.seen;
    std::fprintf(stderr, "%u messages, %zu types, %u bad, %u sent again, %u gaps, %u truncated\n",
                 sink_.messages, seen.types.size(), seen.bad, seen.again, seen.gaps,
                 seen.truncated);
    return sink_.messages == sent_ && seen.types.size() == 6 && seen.bad > 0 && seen.again > 0 &&
           seen.gaps > 0 && seen.truncated == 2;
  }

 private:
  bool on_wire(std::vector<std::byte>& frame) {
    const auto type = static_cast<link::FrameType>(
        static_cast<unsigned>(frame[offsetof(link::FrameHeader, version_type)]) & 15);
    const unsigned number = type == link::FrameType::data ? ++data_frames_ : 0;
    if (number == 9) frame.back() ^= std::byte{4};
    pcap_.write(frame);
    describer_.describe(frame);
    return number % 7 != 6;  // lost behind the place where we listen
  }

  void poll(link::Duration time) {
    for (const auto end = net_.now() + time; net_.now() < end;) {
      left_->poll(net_.now());
      right_->poll(net_.now());
      net_.step(std::min(end, net_.now() + std::chrono::microseconds{5}));
    }
  }

  template <class Head>
  void send(Lane lane, Order order, link::MessageType type, const Head& head, Bytes body,
            link::Urgency urgency) {
    while (left_->try_send(peer_, lane, order, type, std::as_bytes(std::span(&head, 1)), body,
                           urgency, net_.now()) != link::SendStatus::sent)
      poll(std::chrono::microseconds{20});
    ++sent_;
  }

  void talk() {
    using enum link::Urgency;
    std::vector<std::uint32_t> words(22);
    for (std::uint32_t i = 0; i < 22; ++i) words[i] = 0x01000000u * i + i;
    const auto some = [&](std::size_t n) { return std::as_bytes(std::span(words).first(n)); };
    std::uint32_t tag = 0xfeed0000;
    for (std::size_t n = 2; n <= 22; n += 5)
      send(Lane::high, Order::ordered, message_type(Kind::pio), ++tag, some(n), now);
    poll(std::chrono::milliseconds{2});
    for (int i = 0; i < 5; ++i)
      send(Lane::low, Order::unordered, message_type(Kind::queue), ++tag, some(4), batch);
    send(Lane::low, Order::ordered, message_type(Kind::rdma_request),
         startx::RequestMessage{3, ++tag, 1ull << 33}, {}, now);
    send(Lane::high, Order::ordered, message_type(Kind::rdma_grant),
         startx::RightMessage{3, 5, 0xabcdef01}, {}, now);
    send(Lane::high, Order::ordered, message_type(Kind::rdma_refuse), startx::RefuseMessage{4}, {},
         now);
    const std::vector<std::byte> block(1000, std::byte{0x5a});
    for (std::uint64_t i = 0; i < 40; ++i)
      send(Lane::bulk, Order::unordered, message_type(i == 39 ? Kind::rdma_last : Kind::rdma_data),
           startx::DataHead{3, 5, 0xabcdef01, (1ull << 33) + 1000 * i}, block, now);
    send(Lane::high, Order::ordered, message_type(Kind::rdma_done),
         startx::RightMessage{3, 5, 0xabcdef01}, {}, now);
    send(Lane::low, Order::ordered, {Protocol::test, 9}, tag, some(1), now);
    poll(std::chrono::milliseconds{20});
  }

  // Each kind of MBCF message.
  void requests() {
    using namespace mbcf;
    Engine<sim::SimPort> here(*left_, {}), there(*right_, {});
    const auto poll_both = [&] {
      for (int i = 0; i < 4000; ++i) {
        here.poll(net_.now());
        there.poll(net_.now());
        net_.step(net_.now() + std::chrono::microseconds{5});
      }
    };
    std::vector<std::byte> memory(8192), local(8192, std::byte{0x5a});
    const Bytes data = local;
    const Remote at{peer_, there.export_segment(memory, Rights::all), 64};
    const Key signal = there.create_signal([](std::uint64_t) {});
    Fifo* fifo = there.create_fifo(16384);
    const WriterId writer = here.open_writer(peer_, fifo->key(), net_.now());
    const Key gone{0x1234'5678'9abc'0005};
    poll_both();
    const Time now = net_.now();
    here.write(at, data.first(8), {.silent = true}, now);
    here.write(at, data.first(8), {}, now);
    here.write(at, data.first(8), Then::raise(signal), {.silent = true}, now);
    here.append(writer, {}, data.first(8), {.silent = true}, now);
    here.swap(at, Width::eight, 3, {.silent = true}, now);
    here.signal(peer_, signal, {.silent = true}, now);
    here.write(at, data.first(16), Then::append(writer, data.first(24)), {}, now);
    here.write(at, data.first(5000), Then::set(at.key, 8, 77, Width::four), {}, now);
    here.write({peer_, gone, 0}, data.first(8), {.silent = true}, now);
    here.append(writer, data.first(16), data.first(600), {}, now);
    here.read(at, std::span(local).first(100), {}, now);
    here.read(at, local, {}, now);  // more than there is
    here.read({peer_, at.key, 0}, local, {}, now);
    here.compare_swap(at, Width::four, 1, 2, {}, now);
    here.fetch_add(at, Width::eight, 1ull << 40, {}, now);
    here.signal(peer_, signal, {}, now);
    here.fence(peer_, {}, now);
    poll_both();
    here.append(writer, {}, data.first(2000), {}, net_.now());
    here.append(writer, {}, data, {}, net_.now());  // wants more credit
    const WriterId lost = here.open_writer(peer_, gone, net_.now());
    poll_both();
    here.close_writer(writer);
    here.close_writer(lost);
    poll_both();
  }

  // Frames that a link drops, and that the dissector explains all the same.
  void unexpected() {
    std::vector<std::byte> frame(60);
    link::FrameHeader h{};
    h.ether_type = link::kEtherType;
    h.version_type = link::kVersion << 4 | static_cast<std::uint8_t>(link::FrameType::data);
    h.length = 60 - link::kFrameHeader + 1;  // one more than there is
    std::memcpy(frame.data(), &h, sizeof h);
    net_.inject(a_, frame);
    frame.resize(30);
    net_.inject(a_, frame);
    frame.resize(60);
    h.version_type = 7 << 4 | 1;
    std::memcpy(frame.data(), &h, sizeof h);
    net_.inject(a_, frame);
    poll(std::chrono::milliseconds{1});
  }

  port::PcapWriter pcap_;
  Describer describer_;
  unsigned data_frames_ = 0, sent_ = 0;
  Sink sink_;
  sim::SimNetwork net_;
  sim::SimPort& a_ = net_.add_port();
  sim::SimPort& b_ = net_.add_port();
  std::unique_ptr<link::Link<sim::SimPort>> left_, right_;
  link::PeerId peer_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: wireshark_frames FILE.pcap\n");
    return 2;
  }
  for (std::size_t i = 0; i < kColumns.size(); ++i)
    std::printf("%s%s", i == 0 ? "" : "\t", kColumns[i]);
  std::printf("\n");
  return Talk(argv[1]).run() ? 0 : 1;
}
