// Lets two links talk over a simulated network that loses, alters and truncates some frames, and
// writes what is on the wire to a pcap file: the same bytes in each run. wireshark_test.sh compares
// what the dissector says of them with what it said when somebody last looked.
//
//   wireshark_frames FILE.pcap
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

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

  // True when every message has arrived, whatever was lost.
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
    return sink_.messages == sent_;
  }

 private:
  bool on_wire(std::vector<std::byte>& frame) {
    const auto type = static_cast<link::FrameType>(
        static_cast<unsigned>(frame[offsetof(link::FrameHeader, version_type)]) & 15);
    const unsigned number = type == link::FrameType::data ? ++data_frames_ : 0;
    if (number == 9) frame.back() ^= std::byte{4};
    pcap_.write(frame);
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
  unsigned data_frames_ = 0, sent_ = 0;
  Sink sink_;
  sim::SimNetwork net_;
  sim::SimPort& a_ = net_.add_port();
  sim::SimPort& b_ = net_.add_port();
  std::unique_ptr<link::Link<sim::SimPort>> left_, right_;
  link::PeerId peer_;
};

}  // namespace

// In place of the C library's: keys, tokens and seeds are the same in each run.
extern "C" int getentropy(void* to, std::size_t length) {
  std::memset(to, 0x5e, length);
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: wireshark_frames FILE.pcap\n");
    return 2;
  }
  return Talk(argv[1]).run() ? 0 : 1;
}
