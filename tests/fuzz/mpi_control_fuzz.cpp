// What the MPI library makes of any control message: the input is a row of steps: a message from
// the one peer, with its names of requests true or not; a receive or a send of the program; the end
// of a long transfer. Nothing outside the receive buffers may change, nothing may be moved into a
// buffer that is closed, and the counters must be sane.
#include <cstring>
#include <map>

#include "libmpi_lite/transfer/engine.hpp"
#include "tests/fuzz/require.hpp"

using namespace viaduct::mpi;

// What a process tells of itself when it waits for long is not part of this.
namespace viaduct::mpi {
void LongWait::look(const WaitedFor&) {}
std::chrono::nanoseconds LongWait::lasted() const {
  return {};
}
void DumpSignal::answer(const WaitedFor*, const LongWait*) {}
}  // namespace viaduct::mpi

namespace {

constexpr int kMe = 0, kPeer = 1;
constexpr std::size_t kEager = 32, kLargest = 96, kGuard = 16, kMaxOperations = 32;
constexpr std::size_t kPlaces = 8, kEarly = 4;  // of long receives; before their RTS

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  bool more() const { return size_ != 0; }
  std::uint8_t byte() {
    if (size_ == 0) return 0;
    --size_;
    return *data_++;
  }
  Bytes bytes(std::size_t n) {
    n = std::min(n, size_);
    const Bytes b{reinterpret_cast<const std::byte*>(data_), n};
    data_ += n;
    size_ -= n;
    return b;
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
};

// Accepts everything, delivers nothing by itself.
class Wire final : public Channel {
 public:
  const char* name() const override { return "fuzz"; }
  Limits limits() const override { return {.control = 256, .eager = kEager, .early = kEarly}; }
  bool send_control(int to, Bytes, Bytes) override {
    require(to == kPeer);
    return true;
  }
  void offer(int, Bytes, RemoteKey&) override {}
  bool open_receive(int, MutableBytes into, const RemoteKey*, Cookie cookie,
                    RemoteKey& remote_key) override {
    if (open.size() == kPlaces) return false;
    std::memcpy(remote_key.bytes.data(), &cookie, sizeof cookie);
    require(open.try_emplace(cookie, into).second);
    return true;
  }
  void close_receive(int, const RemoteKey& remote_key) override {
    Cookie cookie;
    std::memcpy(&cookie, remote_key.bytes.data(), sizeof cookie);
    require(open.erase(cookie) == 1);
  }
  bool start_send(int, Bytes data, const RemoteKey&, Cookie cookie) override {
    for (const std::byte b : data) sum += std::to_integer<unsigned>(b);  // it can be read
    sending.push_back(cookie);
    return true;
  }
  bool poll() override { return false; }
  bool busy() const override { return false; }
  std::string describe(int) const override { return "fuzz"; }

  std::map<Cookie, MutableBytes> open;
  std::vector<Cookie> sending;
  unsigned sum = 0;
};

struct Buffer {
  std::vector<std::byte> memory = std::vector<std::byte>(kLargest + 2 * kGuard, kCanary);
  std::size_t size = 0;
  Ref<Operation> operation;
  bool intact() const {
    const auto canary = [](std::byte b) { return b == kCanary; };
    return std::all_of(memory.begin(), memory.begin() + kGuard, canary) &&
           std::all_of(memory.begin() + static_cast<std::ptrdiff_t>(kGuard + size), memory.end(),
                       canary);
  }
};

class Job {
 public:
  Job() {
    const auto open = [&](ChannelSink& sink) {
      sink_ = &sink;
      std::vector<std::unique_ptr<Channel>> channels;
      auto wire = std::make_unique<Wire>();
      wire_ = wire.get();
      channels.push_back(std::move(wire));
      return channels;
    };
    TransferConfig config;
    config.eager_budget = 600;
    transfer_ = std::make_unique<Transfer>(
        open, [](int) { return 0; }, kMe, 2, config);
    comm_ = make<Comm>(4u, make<Group>(std::vector{0, 1}, kMe), nullptr, nullptr);
  }

  void step(Input& in) {
    switch (in.byte() % 5) {
      case 0: return receive(in);
      case 1: return send(in);
      case 2: return end_transfer(in.byte());
      default: return message(in);
    }
  }
  void check() const {
    for (const auto& b : buffers_)
      require(b->operation->kind == Request::Kind::send || b->intact());
  }

 private:
  Buffer* buffer(std::uint8_t size) {
    if (buffers_.size() == kMaxOperations) return nullptr;
    buffers_.push_back(std::make_unique<Buffer>());
    buffers_.back()->size = size % kLargest;
    return buffers_.back().get();
  }
  Items items(Buffer& b) {
    return {b.memory.data() + kGuard, static_cast<MPI_Count>(b.size), &datatype(MPI_BYTE)};
  }
  Envelope envelope(int tag) { return {comm_.get(), 4, kPeer, tag}; }

  void receive(Input& in) {
    Buffer* b = buffer(in.byte());
    if (!b) return;
    const std::uint8_t how = in.byte();
    Envelope from = envelope(how & 4 ? MPI_ANY_TAG : how & 3);
    if (how & 8) from.rank = MPI_ANY_SOURCE;
    auto r = make<ReceiveRequest>(items(*b), from, how & 8 ? -1 : kPeer);
    b->operation = Ref<Operation>(r.get());
    transfer_->start(*r);
    if (how & 16) transfer_->cancel(*r);
  }
  void send(Input& in) {
    Buffer* b = buffer(in.byte());
    if (!b) return;
    const std::uint8_t how = in.byte();
    auto s = make<SendRequest>(items(*b), envelope(how & 3), kPeer,
                               how & 4 ? SendMode::synchronous : SendMode::standard);
    b->operation = Ref<Operation>(s.get());
    transfer_->start(*s);
    if (how & 16) transfer_->cancel(*s);
  }
  void end_transfer(std::uint8_t which) {
    if (which % 2 && !wire_->sending.empty()) {
      const Cookie cookie = wire_->sending.back();
      wire_->sending.pop_back();
      return sink_->on_long_sent(cookie, true);
    }
    if (wire_->open.empty()) return;
    const auto [cookie, into] = *wire_->open.begin();
    wire_->open.erase(wire_->open.begin());
    std::fill(into.begin(), into.end(), std::byte{1});
    sink_->on_long_received(cookie, true);
  }
  void message(Input& in) {
    const std::uint8_t true_name = in.byte();
    const Bytes said = in.bytes(in.byte() % 128);
    std::vector<std::byte> m(said.begin(), said.end());
    if (m.empty()) return;
    m[0] = std::byte(std::to_integer<unsigned>(m[0]) % 14);
    // Names lie at one of these places; and messages for nobody's context lead nowhere.
    constexpr std::size_t kOffsets[] = {8, 16, 24};
    const std::size_t at = kOffsets[true_name % 3];
    if (true_name & 64 && !buffers_.empty() && m.size() >= at + 8) {
      const std::uint64_t id = buffers_[true_name / 3 % buffers_.size()]->operation->id;
      std::memcpy(m.data() + at, &id, sizeof id);
    }
    if (true_name & 128 && m.size() >= 8) {
      const std::uint32_t context = 4;
      std::memcpy(m.data() + 4, &context, sizeof context);
    }
    sink_->on_control(kPeer, m);
  }

  ChannelSink* sink_ = nullptr;
  Wire* wire_ = nullptr;
  std::unique_ptr<Transfer> transfer_;
  Ref<Comm> comm_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const bool defined = (define_datatypes(), true);
  require(defined);
  Job job;
  Input in(data, size);
  while (in.more()) {
    job.step(in);
    job.check();
  }
  return 0;
}
