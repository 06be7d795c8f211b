// Layers mpi and mpi-vi: MPI_Isend and MPI_Irecv between the two sides, each a process of an MPI
// job of two, over the port that is measured (VIADUCT_CHANNEL says by which driver), or over
// Virtual Interfaces. There is no process manager: what it would tell the one side of the other
// travels with the orders (endpoint_address). Process::join() and leave() are used in place of
// MPI_Init and MPI_Finalize, once a turn.
#include <mpi.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "drivers/port/eal.hpp"
#include "libmpi_lite/channel/node.hpp"
#include "libmpi_lite/channel/open.hpp"
#include "libmpi_lite/core/config_vars.hpp"
#include "libmpi_lite/transfer/process.hpp"
#include "tools/pingpong/error.hpp"
#include "tools/pingpong/layers/transport.hpp"
#include "tools/pingpong/testbed/rdma_devices.hpp"

namespace viaduct::pingpong {

namespace {

// The launch interface (libmpi_lite/launch) of a job of the two sides: rank 0 is the client. The
// server's address is in its endpoint_address. The server needs no address of the client, because
// the client sends first.
class TwoRankLaunch final : public mpi::Launch {
 public:
  TwoRankLaunch(const TurnConfig& config, std::string key)
      : Launch({.rank = config.client ? 0 : 1, .size = 2, .job_key = config.turn}),
        key_(std::move(key)),
        server_address_(config.endpoint_address) {}

  const char* name() const override { return "viaduct-pingpong"; }
  // Called by join(): the address of this side's channel becomes its endpoint_address.
  void put(std::string_view key, std::string_view value) override {
    if (key == key_) own_address_ = value;
  }
  void fence() override {}
  void start_fence() override {}
  bool fence_passed() override { return true; }
  std::string get(int, std::string_view key) override {
    if (key == key_ && !server_address_.empty()) return server_address_;
    // Two different nodes, whatever the truth is: shared memory is not to be used, and each side
    // has a CPU of its own.
    if (key == mpi::Nodes::kKey) return mpi::NodeInfo{}.text();
    if (key == mpi::kSettingsKey) return mpi::own_settings();  // key_ tells the channel
    throw base::SetupError("the other side has not told " + std::string(key));
  }
  void finalize() override {}
  [[noreturn]] void abort(int, std::string_view) override { std::_Exit(1); }

  const std::string& own_address() const { return own_address_; }

 private:
  const std::string key_, server_address_;
  std::string own_address_;
};

// The Transport. Before a turn the sides exchange an empty message each (hello):
//
//    client: sends its hello (hello_sent_) -> receives the server's (hello_received_)
//            -> its own is off (hello_send_complete_)
//    server: receives the client's hello (hello_received_) -> sends its own (hello_sent_)
//            -> it is off (hello_send_complete_)
//
// Ready when hello_received_ and hello_send_complete_. The end of a turn is a message with the
// number of messages sent (kFinish).
template <Over kOver>
class Mpi {
 public:
  static constexpr bool kLossy = false;

  explicit Mpi(const TurnConfig& config)
      : peer_(config.client ? 1 : 0),
        size_(config.point.bytes),
        latency_(config.point.measure == Measure::latency),
        receives_(latency_ || !config.client),
        window_(latency_ ? 1 : window(size_)),
        out_(size_, std::byte{0x5a}),
        in_(receives_ ? size_ * window_ : 0),
        incoming_(receives_ ? window_ : 0, MPI_REQUEST_NULL),
        outgoing_(window_, MPI_REQUEST_NULL) {
    configure(config);
    auto launch = std::make_unique<TwoRankLaunch>(
        config, "viaduct-" + mpi::config_vars().text("VIADUCT_CHANNEL"));
    const TwoRankLaunch& job = *launch;
    // The port stays the session's.
    process().join(std::move(launch), MPI_THREAD_SINGLE, {std::shared_ptr<void>(), config.port});
    endpoint_address_ = job.own_address();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    // From anybody, as receives from a known process may ask that process for something.
    check(MPI_Irecv(nullptr, 0, MPI_BYTE, MPI_ANY_SOURCE, kHello, MPI_COMM_WORLD, &hello_in_));
    if (config.client) send_hello();
  }
  ~Mpi() { process().leave(); }
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;

  std::string endpoint_address() const { return endpoint_address_; }
  bool ready() const { return hello_received_ && hello_send_complete_; }
  bool drained() const { return pending_ == 0 && !process().busy(); }
  std::string_view failure() const { return failure_; }

  void begin(const Point&) {}

  void poll() {
    if (!ready()) [[unlikely]]
      return exchange_hello();
    while (take(next_in_)) {
      if (latency_) return;  // to be answered before anything else
      receive(next_in_);
      next_in_ = (next_in_ + 1) % window_;
    }
    if (finish_in_ != MPI_REQUEST_NULL && (!receives_ || ++polls_ % 64 == 0)) test(finish_in_);
    while (pending_ != 0 && sent(oldest_out_)) oldest_out_ = (oldest_out_ + 1) % window_;
  }

  bool try_send() {
    if (pending_ == window_ && !sent(oldest_out_)) return false;
    send();
    if (latency_ && incoming_[0] == MPI_REQUEST_NULL) receive(0);
    return true;
  }

  std::uint64_t stream(std::uint64_t max_messages) {
    std::uint64_t handed = 0;
    while (handed < max_messages && pending_ < window_) {
      send();
      ++handed;
    }
    poll();
    return handed;
  }

  bool try_finish() {
    if (pending_ != 0) return false;
    check(
        MPI_Isend(&count_, 1, MPI_UINT64_T, peer_, kFinish, MPI_COMM_WORLD, &outgoing_[next_out_]));
    ++pending_;
    return true;
  }

  std::uint64_t arrived() const { return arrived_; }
  std::uint64_t bytes() const { return arrived_ * size_; }
  bool finished() const {
    return ready() && finish_in_ == MPI_REQUEST_NULL && arrived_ >= remote_sent_;
  }

 private:
  enum Tag : int { kData, kHello, kFinish };

  // Messages under way at once: as many as keep a wire busy and a cache warm.
  static std::size_t window(std::size_t bytes) {
    return std::clamp<std::size_t>((512u << 10) / bytes, 2, 64);
  }
  static mpi::Process& process() { return mpi::Process::self(); }

  static void configure(const TurnConfig& config) {
    ::setenv("VIADUCT_CHECKSUM", config.checksum ? "on" : "off", 1);
    if (kOver != Over::rdma) return;
    const vi::DeviceInfo device = rdma_device(config.ip);
    const std::string& name = device.interface.empty() ? device.name : device.interface;
    ::setenv("VIADUCT_VI_NIC", name.c_str(), 1);
    ::setenv("VIADUCT_CHANNEL", "vi", 1);
    // Then the server does not ask where the client is, whom it waits for; nobody can tell.
    ::setenv("VIADUCT_VI_LIMIT", "1", 1);
  }

  // Keeps the first error's text as failure(). Errors return, because the error handler is
  // MPI_ERRORS_RETURN.
  void check(int error) {
    if (error == MPI_SUCCESS) [[likely]]
      return;
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    MPI_Error_string(error, text.data(), &length);
    if (failure_.empty()) failure_ = text.data();
  }
  bool test(MPI_Request& request) {
    int done = 0;
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    return done != 0;
  }

  // One step of the exchange of hellos. The server posts its receives only when it has heard the
  // client: a posted receive may tell the sender about its buffer (ready-to-receive RTR), and the
  // server does not know yet where the client is.
  void exchange_hello() {
    if (!hello_received_ && test(hello_in_)) {
      hello_received_ = true;
      for (std::size_t i = 0; i < incoming_.size(); ++i) receive(i);
      check(MPI_Irecv(&remote_sent_, 1, MPI_UINT64_T, peer_, kFinish, MPI_COMM_WORLD, &finish_in_));
    }
    if (hello_received_ && !hello_sent_) send_hello();
    if (hello_sent_ && !hello_send_complete_ && test(outgoing_[0])) hello_send_complete_ = true;
  }
  void send_hello() {
    hello_sent_ = true;
    check(MPI_Isend(nullptr, 0, MPI_BYTE, peer_, kHello, MPI_COMM_WORLD, &outgoing_[0]));
  }

  void receive(std::size_t i) {
    check(MPI_Irecv(in_.data() + i * size_, static_cast<int>(size_), MPI_BYTE, peer_, kData,
                    MPI_COMM_WORLD, &incoming_[i]));
  }
  // Whether message i of the window has arrived.
  bool take(std::size_t i) {
    if (!receives_ || incoming_[i] == MPI_REQUEST_NULL || !test(incoming_[i]) || !failure_.empty())
      return false;
    ++arrived_;
    return true;
  }

  void send() {
    check(MPI_Isend(out_.data(), static_cast<int>(size_), MPI_BYTE, peer_, kData, MPI_COMM_WORLD,
                    &outgoing_[next_out_]));
    next_out_ = (next_out_ + 1) % window_;
    ++pending_;
    ++count_;
  }
  bool sent(std::size_t i) {
    if (!test(outgoing_[i])) return false;
    --pending_;
    return true;
  }

  const int peer_;
  const std::size_t size_;
  const bool latency_;  // one message at a time: received, answered, and then the next is awaited
  const bool receives_;
  const std::size_t window_;  // messages under way at once, each way
  std::vector<std::byte> out_, in_;
  std::vector<MPI_Request> incoming_, outgoing_;
  MPI_Request hello_in_ = MPI_REQUEST_NULL, finish_in_ = MPI_REQUEST_NULL;
  std::size_t next_in_ = 0, next_out_ = 0, oldest_out_ = 0;  // receives and sends are used in turn
  std::size_t pending_ = 0;                // sends that are not complete, from oldest_out_ on
  std::uint64_t count_ = 0, arrived_ = 0;  // messages sent; received
  std::uint64_t remote_sent_ = 0;  // messages that the other side has sent, when it has finished
  // The exchange of hellos, see above.
  bool hello_received_ = false, hello_sent_ = false, hello_send_complete_ = false;
  std::uint32_t polls_ = 0;
  std::string endpoint_address_, failure_;
};

const RegisterLayer<Mpi<Over::port>> register_mpi{
    95,
    {.name = "mpi",
     .summary = "MPI messages; VIADUCT_CHANNEL=mbcf|startx says over which driver",
     .one_side_per_process = true}};
const RegisterLayer<Mpi<Over::rdma>> register_mpi_vi{
    150,
    {.name = "mpi-vi",
     .summary = "MPI messages over Virtual Interfaces",
     .over = Over::rdma,
     .one_side_per_process = true}};

}  // namespace

}  // namespace viaduct::pingpong
