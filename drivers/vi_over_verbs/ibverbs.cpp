// The only file that knows libibverbs. It implements the classes of verbs.hpp for RoCE v2 ports
// with an IPv4 address: queue pairs and their states, completions, memory, events, and the list of
// devices. The data path adds nothing to libibverbs: work requests and completions are passed as
// they are.
#include "drivers/vi_over_verbs/ibverbs.hpp"

#include <fcntl.h>
#include <infiniband/verbs.h>
#include <net/if.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#include "drivers/base/random.hpp"

namespace viaduct::vi {
namespace {

// verbs.hpp promises the layout and the numbers of libibverbs, which the casts below rely on.
static_assert(sizeof(Segment) == sizeof(ibv_sge) &&
              offsetof(Segment, address) == offsetof(ibv_sge, addr) &&
              offsetof(Segment, length) == offsetof(ibv_sge, length) &&
              offsetof(Segment, key) == offsetof(ibv_sge, lkey));

static_assert(sizeof(ReceiveWork) == sizeof(ibv_recv_wr) &&
              offsetof(ReceiveWork, id) == offsetof(ibv_recv_wr, wr_id) &&
              offsetof(ReceiveWork, next) == offsetof(ibv_recv_wr, next) &&
              offsetof(ReceiveWork, segments) == offsetof(ibv_recv_wr, sg_list) &&
              offsetof(ReceiveWork, count) == offsetof(ibv_recv_wr, num_sge));

constexpr bool is(Operation operation, ibv_wr_opcode opcode) {
  return static_cast<std::uint32_t>(operation) == opcode;
}
static_assert(sizeof(SendWork) == sizeof(ibv_send_wr) &&
              offsetof(SendWork, id) == offsetof(ibv_send_wr, wr_id) &&
              offsetof(SendWork, next) == offsetof(ibv_send_wr, next) &&
              offsetof(SendWork, segments) == offsetof(ibv_send_wr, sg_list) &&
              offsetof(SendWork, count) == offsetof(ibv_send_wr, num_sge) &&
              offsetof(SendWork, verb.operation) == offsetof(ibv_send_wr, opcode) &&
              offsetof(SendWork, verb.flags) == offsetof(ibv_send_wr, send_flags) &&
              offsetof(SendWork, network_immediate) == offsetof(ibv_send_wr, imm_data) &&
              offsetof(SendWork, remote_address) == offsetof(ibv_send_wr, wr.rdma.remote_addr) &&
              offsetof(SendWork, remote_key) == offsetof(ibv_send_wr, wr.rdma.rkey) &&
              is(Operation::rdma_write, IBV_WR_RDMA_WRITE) &&
              is(Operation::rdma_write_with_immediate, IBV_WR_RDMA_WRITE_WITH_IMM) &&
              is(Operation::send, IBV_WR_SEND) &&
              is(Operation::send_with_immediate, IBV_WR_SEND_WITH_IMM) &&
              is(Operation::rdma_read, IBV_WR_RDMA_READ) && Verb::kFence == IBV_SEND_FENCE &&
              Verb::kSignaled == IBV_SEND_SIGNALED);

static_assert(sizeof(Completion) == sizeof(ibv_wc) &&
              offsetof(Completion, id) == offsetof(ibv_wc, wr_id) &&
              offsetof(Completion, outcome) == offsetof(ibv_wc, status) &&
              offsetof(Completion, operation) == offsetof(ibv_wc, opcode) &&
              offsetof(Completion, length) == offsetof(ibv_wc, byte_len) &&
              offsetof(Completion, network_immediate) == offsetof(ibv_wc, imm_data) &&
              offsetof(Completion, flags) == offsetof(ibv_wc, wc_flags) &&
              Completion::kByRdmaWrite == IBV_WC_RECV_RDMA_WITH_IMM &&
              Completion::kWithImmediate == IBV_WC_WITH_IMM);

constexpr bool is(Outcome outcome, ibv_wc_status status) {
  return static_cast<std::uint32_t>(outcome) == status;
}
static_assert(is(Outcome::success, IBV_WC_SUCCESS) &&
              is(Outcome::local_length, IBV_WC_LOC_LEN_ERR) &&
              is(Outcome::local_operation, IBV_WC_LOC_QP_OP_ERR) &&
              is(Outcome::local_protection, IBV_WC_LOC_PROT_ERR) &&
              is(Outcome::flushed, IBV_WC_WR_FLUSH_ERR) &&
              is(Outcome::local_access, IBV_WC_LOC_ACCESS_ERR) &&
              is(Outcome::remote_invalid_request, IBV_WC_REM_INV_REQ_ERR) &&
              is(Outcome::remote_access, IBV_WC_REM_ACCESS_ERR) &&
              is(Outcome::remote_operation, IBV_WC_REM_OP_ERR) &&
              is(Outcome::unanswered, IBV_WC_RETRY_EXC_ERR) &&
              is(Outcome::receiver_not_ready, IBV_WC_RNR_RETRY_EXC_ERR));

// A unique_ptr whose deleter is one of libibverbs' functions. An error of such a function is
// ignored: nothing could be done about it.
template <class T, auto kDelete>
struct Deleter {
  void operator()(T* it) const { kDelete(it); }
};
template <class T, auto kDelete>
using Owned = std::unique_ptr<T, Deleter<T, kDelete>>;

using Context = Owned<ibv_context, ibv_close_device>;
using Channel = Owned<ibv_comp_channel, ibv_destroy_comp_channel>;

// enum ibv_mtu: 1 is 256 bytes, each next number twice as many, 5 is 4096.
std::uint32_t bytes_of(ibv_mtu mtu) {
  return 128u << static_cast<unsigned>(mtu);
}
ibv_mtu mtu_of(std::uint32_t bytes) {
  return static_cast<ibv_mtu>(std::bit_width(std::clamp(bytes, 256u, 4096u) / 128) - 1);
}

// The device may always write into the memory itself, for receives and RDMA reads.
int access_flags(Rights rights) {
  int flags = IBV_ACCESS_LOCAL_WRITE;
  if (rights.write) flags |= IBV_ACCESS_REMOTE_WRITE;
  if (rights.read) flags |= IBV_ACCESS_REMOTE_READ;
  return flags;
}

void make_nonblocking(int fd) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

class IbCompletionQueue final : public CompletionQueue {
 public:
  explicit IbCompletionQueue(ibv_cq* cq) : cq_(cq) {}
  ibv_cq* get() const { return cq_.get(); }

  int poll(int most, Completion* to) override {
    return ibv_poll_cq(cq_.get(), most, reinterpret_cast<ibv_wc*>(to));
  }
  bool arm() override { return ibv_req_notify_cq(cq_.get(), 0) == 0; }
  std::size_t capacity() const override { return static_cast<std::size_t>(cq_->cqe); }
  bool resize(std::size_t capacity) override {
    return ibv_resize_cq(cq_.get(), static_cast<int>(capacity)) == 0;
  }

 private:
  Owned<ibv_cq, ibv_destroy_cq> cq_;
};

class IbRegion final : public Region {
 public:
  explicit IbRegion(ibv_mr* mr, bool remote) : mr_(mr), remote_(remote) {}
  std::uint32_t local_key() const override { return mr_->lkey; }
  std::uint32_t remote_key() const override { return remote_ ? mr_->rkey : 0; }

 private:
  Owned<ibv_mr, ibv_dereg_mr> mr_;
  bool remote_;
};

// What a queue pair must know of its port, the port of an RDMA device.
struct PortAttributes {
  std::uint8_t number = 1;
  std::uint8_t gid_index = 0;
  std::array<std::uint8_t, 16> gid{};
  std::uint32_t mtu = 0;  // payload bytes of one packet
};

// RC or UC. The transitions of its state are drawn at QueuePair in verbs.hpp.
class IbQueuePair final : public QueuePair {
 public:
  IbQueuePair(ibv_qp* qp, const PortAttributes& port) : qp_(qp), port_(port) {}
  bool is_reliable() const { return qp_->qp_type == IBV_QPT_RC; }

  QueuePairAddress address() const override {
    constexpr std::uint32_t kPsnMask = 0xffffff;
    return {port_.gid, qp_->qp_num, static_cast<std::uint32_t>(base::random_word()) & kPsnMask,
            port_.mtu};
  }

  bool prepare(Rights rights) override {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = port_.number;
    attr.qp_access_flags = static_cast<unsigned>(access_flags(rights));
    return modify(attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  }

  bool connect(const ConnectAttributes& plan) override {
    return modify_to_rtr(plan) && modify_to_rts(plan);
  }

  bool fail() override { return change_state(IBV_QPS_ERR); }
  // A queue pair that cannot be asked counts as failed: its device is gone.
  bool has_failed() override {
    ibv_qp_attr attr{};
    ibv_qp_init_attr initial{};
    return ibv_query_qp(qp_.get(), &attr, IBV_QP_STATE, &initial) != 0 ||
           attr.qp_state == IBV_QPS_ERR;
  }
  bool reset() override { return change_state(IBV_QPS_RESET); }

  // libibverbs takes pointers to non-const, but does not change the work request.
  int post_send(const SendWork& work) override {
    auto* const wr = const_cast<ibv_send_wr*>(reinterpret_cast<const ibv_send_wr*>(&work));
    ibv_send_wr* bad;
    return ibv_post_send(qp_.get(), wr, &bad);
  }

  int post_receive(const ReceiveWork& work) override {
    auto* const wr = const_cast<ibv_recv_wr*>(reinterpret_cast<const ibv_recv_wr*>(&work));
    ibv_recv_wr* bad;
    return ibv_post_recv(qp_.get(), wr, &bad);
  }

 private:
  bool modify(ibv_qp_attr& attr, int mask) { return ibv_modify_qp(qp_.get(), &attr, mask) == 0; }

  bool change_state(ibv_qp_state state) {
    ibv_qp_attr attr{};
    attr.qp_state = state;
    return modify(attr, IBV_QP_STATE);
  }

  // Init -> Ready to Receive (IBV_QPS_RTR). UC has no acknowledgements, so the device refuses the
  // attributes that concern them (kReliable); likewise below.
  bool modify_to_rtr(const ConnectAttributes& plan) {
    constexpr std::uint8_t kHops = 64;        // the usual TTL of IP
    constexpr std::uint8_t kRetryTimer = 12;  // 0.64 ms, InfiniBand specification, table 45
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTR;
    // Both sides compute the same: the path MTU must be one.
    attr.path_mtu = mtu_of(std::min(port_.mtu, plan.remote.mtu));
    attr.dest_qp_num = plan.remote.number;
    attr.rq_psn = plan.remote.psn;
    attr.max_dest_rd_atomic = plan.reads_served;
    attr.min_rnr_timer = kRetryTimer;
    attr.ah_attr.is_global = 1;  // RoCE routes by GIDs (IP addresses) only
    attr.ah_attr.port_num = port_.number;
    attr.ah_attr.grh.sgid_index = port_.gid_index;
    attr.ah_attr.grh.hop_limit = kHops;
    attr.ah_attr.grh.traffic_class = plan.traffic_class;
    std::memcpy(attr.ah_attr.grh.dgid.raw, plan.remote.gid.data(), plan.remote.gid.size());
    constexpr int kAlways =
        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    constexpr int kReliable = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    return modify(attr, kAlways | (is_reliable() ? kReliable : 0));
  }

  // Ready to Receive -> Ready to Send (IBV_QPS_RTS).
  bool modify_to_rts(const ConnectAttributes& plan) {
    constexpr std::uint8_t kTimeout = 14;  // 67 ms, InfiniBand specification, 9.7.6.1.3
    constexpr std::uint8_t kRetries = 7;   // the maximum: the field has 3 bits
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = plan.psn;
    attr.timeout = kTimeout;
    attr.retry_cnt = kRetries;
    // VIA has no receiver-not-ready retry: a message that meets no receive ends the connection.
    attr.rnr_retry = 0;
    attr.max_rd_atomic = plan.reads_asked;
    constexpr int kAlways = IBV_QP_STATE | IBV_QP_SQ_PSN;
    constexpr int kReliable =
        IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    return modify(attr, kAlways | (is_reliable() ? kReliable : 0));
  }

  Owned<ibv_qp, ibv_destroy_qp> qp_;
  PortAttributes port_;
};

// A protection domain.
class IbDomain final : public Domain {
 public:
  IbDomain(ibv_pd* pd, const PortAttributes& port) : pd_(pd), port_(port) {}

  std::unique_ptr<Region> register_memory(void* address, std::size_t bytes,
                                          Rights rights) override {
    ibv_mr* mr = ibv_reg_mr(pd_.get(), address, bytes, access_flags(rights));
    // Local write access to memory that the program itself may only read (a constant, a mapped
    // file) is refused. Such memory can still be sent, so register it without that access.
    if (mr == nullptr && !rights.write)
      mr = ibv_reg_mr(pd_.get(), address, bytes, rights.read ? IBV_ACCESS_REMOTE_READ : 0);
    if (mr == nullptr) return nullptr;
    return std::make_unique<IbRegion>(mr, rights.write || rights.read);
  }

  std::unique_ptr<QueuePair> create_queue_pair(const QueuePairAttributes& plan) override {
    ibv_qp_init_attr attr{};
    attr.qp_context = plan.owner;
    attr.send_cq = static_cast<IbCompletionQueue*>(plan.send_completions)->get();
    attr.recv_cq = static_cast<IbCompletionQueue*>(plan.receive_completions)->get();
    attr.cap.max_send_wr = plan.sends;
    attr.cap.max_recv_wr = plan.receives;
    attr.cap.max_send_sge = attr.cap.max_recv_sge = plan.segments;
    attr.qp_type = plan.reliable ? IBV_QPT_RC : IBV_QPT_UC;
    ibv_qp* const qp = ibv_create_qp(pd_.get(), &attr);
    return qp != nullptr ? std::make_unique<IbQueuePair>(qp, port_) : nullptr;
  }

 private:
  Owned<ibv_pd, ibv_dealloc_pd> pd_;
  PortAttributes port_;
};

// Whether the device makes UC queue pairs. Its attributes do not say, so try to make one.
bool has_unreliable_queue_pairs(ibv_context* context) {
  const Owned<ibv_pd, ibv_dealloc_pd> domain(ibv_alloc_pd(context));
  const Owned<ibv_cq, ibv_destroy_cq> completions(ibv_create_cq(context, 1, nullptr, nullptr, 0));
  if (domain == nullptr || completions == nullptr) return false;
  ibv_qp_init_attr attr{};
  attr.send_cq = attr.recv_cq = completions.get();
  attr.cap = {.max_send_wr = 1,
              .max_recv_wr = 1,
              .max_send_sge = 1,
              .max_recv_sge = 1,
              .max_inline_data = 0};
  attr.qp_type = IBV_QPT_UC;
  return Owned<ibv_qp, ibv_destroy_qp>(ibv_create_qp(domain.get(), &attr)) != nullptr;
}

Limits limits_of(const ibv_device_attr& device, const ibv_port_attr& port) {
  // libibverbs counts in int.
  const auto natural = [](int value) { return static_cast<std::uint32_t>(std::max(value, 0)); };
  // RDMA reads at a time: as many as RDMA NICs allow. Soft-RoCE allows 128, but then takes 8 KB for
  // them in each queue pair.
  constexpr int kMaxReads = 16;
  const auto reads = [=](int value) {
    return static_cast<std::uint8_t>(std::clamp(value, 0, kMaxReads));
  };
  Limits limits;
  limits.queue_depth = natural(device.max_qp_wr);
  limits.segments = natural(device.max_sge);
  // Some devices read into fewer segments than they send from; others leave this limit 0.
  limits.read_segments = device.max_sge_rd > 0 ? natural(device.max_sge_rd) : limits.segments;
  limits.completion_queues = natural(device.max_cq);
  limits.completions = natural(device.max_cqe);
  limits.queue_pairs = natural(device.max_qp);
  limits.regions = natural(device.max_mr);
  limits.domains = natural(device.max_pd);
  limits.region_bytes = device.max_mr_size;
  limits.message_bytes = port.max_msg_sz;
  limits.mtu = bytes_of(port.active_mtu);
  limits.reads_asked = reads(device.max_qp_init_rd_atom);
  limits.reads_served = reads(device.max_qp_rd_atom);
  limits.hardware_version = device.hw_ver;
  return limits;
}

class IbDevice final : public Device {
 public:
  IbDevice(Context context, Channel channel, const PortAttributes& port, const Limits& limits)
      : context_(std::move(context)), channel_(std::move(channel)), port_(port), limits_(limits) {
    // libvipl's event thread polls the descriptors, then takes events until there are no more.
    make_nonblocking(channel_->fd);
    make_nonblocking(context_->async_fd);
  }

  const Limits& limits() const override { return limits_; }

  std::unique_ptr<Domain> create_domain() override {
    ibv_pd* const pd = ibv_alloc_pd(context_.get());
    return pd != nullptr ? std::make_unique<IbDomain>(pd, port_) : nullptr;
  }

  std::unique_ptr<CompletionQueue> create_completion_queue(std::size_t capacity,
                                                           void* owner) override {
    ibv_cq* const cq =
        ibv_create_cq(context_.get(), static_cast<int>(capacity), owner, channel_.get(), 0);
    return cq != nullptr ? std::make_unique<IbCompletionQueue>(cq) : nullptr;
  }

  // Acknowledge an event before anything is done about it. ibv_destroy_cq() waits until all events
  // of its queue are acknowledged; the thread that calls it may hold a lock that the handling of
  // this event is about to take, which would be a deadlock.
  int completion_fd() const override { return channel_->fd; }
  void* next_completion_event() override {
    ibv_cq* cq = nullptr;
    void* owner = nullptr;
    if (ibv_get_cq_event(channel_.get(), &cq, &owner) != 0) return nullptr;
    ibv_ack_cq_events(cq, 1);
    return owner;
  }

  int async_fd() const override { return context_->async_fd; }
  std::optional<AsyncEvent> next_async_event() override {
    ibv_async_event event{};
    if (ibv_get_async_event(context_.get(), &event) != 0) return std::nullopt;
    const AsyncEvent result = translate(event);
    ibv_ack_async_event(&event);
    return result;
  }

 private:
  static AsyncEvent translate(const ibv_async_event& event) {
    using Kind = AsyncEvent::Kind;
    switch (event.event_type) {
      case IBV_EVENT_QP_FATAL: return {Kind::queue_pair_error, event.element.qp->qp_context};
      case IBV_EVENT_QP_REQ_ERR:
      case IBV_EVENT_QP_ACCESS_ERR: return {Kind::remote_access, event.element.qp->qp_context};
      case IBV_EVENT_CQ_ERR: return {Kind::completion_queue_error, event.element.cq->cq_context};
      case IBV_EVENT_DEVICE_FATAL: return {Kind::device_error, nullptr};
      default: return {};
    }
  }

  Context context_;  // first, so that it is closed last
  Channel channel_;
  PortAttributes port_;
  Limits limits_;
};

// ---- devices and their ports ----

// ::ffff:a.b.c.d, the GID of an IPv4 address in RoCE v2.
bool is_ipv4_mapped(const ibv_gid& gid) {
  constexpr std::array<std::uint8_t, 12> kPrefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::equal(kPrefix.begin(), kPrefix.end(), gid.raw);
}

std::string interface_name(std::uint32_t index) {
  std::array<char, IF_NAMESIZE> name{};
  return ::if_indextoname(index, name.data()) != nullptr ? name.data() : "";
}

// Fills in the IPv4 addresses of the port, from the RoCE v2 entries of the device's GID table.
// Other entries are of no use: libvipl's control connections (TCP) use the same address.
void look_up_addresses(ibv_context* context, const ibv_device_attr& device, DeviceInfo& info) {
  constexpr std::size_t kMaxGids = 4096;
  std::vector<ibv_gid_entry> gids(
      std::min<std::size_t>(kMaxGids, std::size_t{device.phys_port_cnt} * 1024));
  const ssize_t n = ibv_query_gid_table(context, gids.data(), gids.size(), 0);
  gids.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  for (const ibv_gid_entry& entry : gids) {
    if (entry.port_num != info.port || entry.gid_type != IBV_GID_TYPE_ROCE_V2) continue;
    if (info.interface.empty()) info.interface = interface_name(entry.ndev_ifindex);
    if (!is_ipv4_mapped(entry.gid) || entry.gid_index > 255) continue;  // sgid_index: 8 bits
    PortAddress& address = info.addresses.emplace_back();
    std::copy(entry.gid.raw + 12, entry.gid.raw + 16, address.ip.begin());
    address.gid_index = static_cast<std::uint8_t>(entry.gid_index);
    address.interface = interface_name(entry.ndev_ifindex);
  }
  info.usable = !info.addresses.empty();
  if (info.usable) info.use(info.addresses.front());
}

// Describes one port, usable or not; `problem` says what the user can do.
DeviceInfo look_up_port(ibv_context* context, const ibv_device_attr& device, std::uint8_t number) {
  DeviceInfo info;
  info.name = ibv_get_device_name(context->device);
  info.port = number;
  ibv_port_attr port{};
  if (ibv_query_port(context, number, &port) != 0) {
    info.problem = "the device does not answer: see dmesg";
    return info;
  }
  if (port.link_layer != IBV_LINK_LAYER_ETHERNET) {
    info.problem = "the port is not Ethernet: use a RoCE port";
    return info;
  }
  look_up_addresses(context, device, info);
  const std::string interface = info.interface.empty() ? "its network interface" : info.interface;
  if (port.state != IBV_PORT_ACTIVE) {
    info.usable = false;
    info.problem = "the link is down: ip link set " + interface + " up, and check the cable";
  } else if (!info.usable) {
    info.problem = "no IPv4 address: ip addr add ADDRESS/PREFIX dev " + interface;
  }
  return info;
}

class IbProvider final : public Provider {
 public:
  std::vector<DeviceInfo> devices() override {
    std::vector<DeviceInfo> all;
    int n = 0;
    ibv_device** const list = ibv_get_device_list(&n);
    for (int i = 0; list != nullptr && i < n; ++i) add_ports_of(list[i], all);
    if (list != nullptr) ibv_free_device_list(list);
    std::ranges::sort(all, {}, [](const DeviceInfo& it) { return std::pair(it.name, it.port); });
    return all;
  }

  // All that a queue pair needs of the port is read once, here.
  std::unique_ptr<Device> open(const DeviceInfo& wanted) override {
    Context context = open_context(wanted.name);
    ibv_device_attr device{};
    ibv_port_attr attr{};
    PortAttributes port{wanted.port, wanted.gid_index, {}, 0};
    ibv_gid gid{};
    if (context == nullptr || ibv_query_device(context.get(), &device) != 0 ||
        ibv_query_port(context.get(), port.number, &attr) != 0 ||
        ibv_query_gid(context.get(), port.number, port.gid_index, &gid) != 0)
      throw SetupError("cannot open the RDMA device " + wanted.name +
                       ": check that ibv_devices shows it and that /dev/infiniband/uverbs* may be "
                       "read and written");
    Channel channel(ibv_create_comp_channel(context.get()));
    if (channel == nullptr)
      throw SetupError("no file descriptors left for the RDMA device " + wanted.name +
                       ": raise ulimit -n");
    std::copy_n(gid.raw, port.gid.size(), port.gid.begin());
    port.mtu = bytes_of(attr.active_mtu);
    Limits limits = limits_of(device, attr);
    limits.unreliable = has_unreliable_queue_pairs(context.get());
    return std::make_unique<IbDevice>(std::move(context), std::move(channel), port, limits);
  }

 private:
  // A device that cannot be opened is listed, too, so that tools can say why.
  static void add_ports_of(ibv_device* listed, std::vector<DeviceInfo>& all) {
    const Context context(ibv_open_device(listed));
    ibv_device_attr device{};
    if (context == nullptr || ibv_query_device(context.get(), &device) != 0) {
      DeviceInfo& info = all.emplace_back();
      info.name = ibv_get_device_name(listed);
      info.problem = "cannot be opened: check that /dev/infiniband/uverbs* may be read and written";
      return;
    }
    for (unsigned port = 1; port <= device.phys_port_cnt; ++port)
      all.push_back(look_up_port(context.get(), device, static_cast<std::uint8_t>(port)));
  }

  static Context open_context(const std::string& name) {
    Context context;
    ibv_device** const list = ibv_get_device_list(nullptr);
    for (ibv_device** it = list; it != nullptr && *it != nullptr; ++it)
      if (name == ibv_get_device_name(*it)) context.reset(ibv_open_device(*it));
    if (list != nullptr) ibv_free_device_list(list);
    return context;
  }
};

}  // namespace

Provider& ibverbs_provider() {
  static IbProvider provider;
  return provider;
}

}  // namespace viaduct::vi
