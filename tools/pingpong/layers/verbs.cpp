// Layer verbs: a reliable connection (RC queue pair) with bare libibverbs, the yardstick for the
// layers over VIPL. Queues, depths, timers and the loop are those of vipl-send (messages.hpp), so
// the difference is libvipl's cost. The two sides exchange their addresses over TCP.
#include <infiniband/verbs.h>
#include <sys/socket.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <vector>

#include "tools/pingpong/layers/messages.hpp"
#include "tools/pingpong/socket.hpp"
#include "tools/pingpong/testbed/rdma_devices.hpp"

namespace viaduct::pingpong {

namespace {

// What a side tells the other over TCP: twice, the second time when it is ready to receive.
struct ConnectionInfo {
  ibv_gid gid;
  std::uint32_t number, mtu;  // queue pair number; ibv_mtu of the port
};

// Ownership of verbs objects: each is ended by its own function.
template <class T, auto kEnd>
struct Deleter {
  void operator()(T* it) const { kEnd(it); }
};
template <class T, auto kEnd>
using Owned = std::unique_ptr<T, Deleter<T, kEnd>>;

// Throws Failure if libibverbs could not make the object.
template <class T>
T* made(T* it, const char* what) {
  if (it == nullptr) throw system_failure(std::string("cannot make ") + what);
  return it;
}

// Models WorkQueues (messages.hpp). Members are destroyed in reverse order: the queue pair first,
// the device last.
class VerbsQueues {
 public:
  VerbsQueues(const TurnConfig& config, const Window& window)
      : slots_(window.packets + kMaxControlWords),
        packet_bytes_(window.bytes),
        device_(rdma_device(config.ip)),
        memory_((slots_ + 1) * window.bytes),
        client_(config.client) {
    context_.reset(open(device_.name));
    domain_.reset(made(ibv_alloc_pd(context_.get()), "a protection domain"));
    const int access = IBV_ACCESS_LOCAL_WRITE;  // ibv_reg_mr mixes it with another enumeration
    region_.reset(
        made(ibv_reg_mr(domain_.get(), memory_.data(), memory_.size(), access), "a memory region"));
    const int entries = static_cast<int>(slots_);
    send_queue_.reset(
        made(ibv_create_cq(context_.get(), entries, nullptr, nullptr, 0), "a completion queue"));
    receive_queue_.reset(
        made(ibv_create_cq(context_.get(), entries, nullptr, nullptr, 0), "a completion queue"));
    create_queue_pair();
    if (client_) {
      socket_ = bound_socket(SOCK_STREAM, config.ip, 0);
      server_ = socket_address(config.peer_ip, kVerbsPort);
    } else {
      listener_ = listening_socket(config.ip, kVerbsPort);
    }
  }

  std::string_view failure() const { return failure_; }

  bool post_receive(std::uint32_t slot) {
    ibv_sge place = segment(slot, packet_bytes_);
    ibv_recv_wr work{slot, nullptr, &place, 1}, *bad;
    return good(ibv_post_recv(queue_pair_.get(), &work, &bad), "posting a receive");
  }

  bool post_send(std::uint32_t slot, std::uint32_t bytes, ControlWord word) {
    // All sends share one place behind the receives.
    ibv_sge place = segment(slots_, bytes);
    ibv_send_wr work, *bad;
    work.wr_id = slot;
    work.next = nullptr;
    work.sg_list = &place;
    work.num_sge = 1;
    work.opcode = IBV_WR_SEND;
    work.send_flags = IBV_SEND_SIGNALED;
    if (word != ControlWord::none) [[unlikely]] {
      work.num_sge = 0;
      work.opcode = IBV_WR_SEND_WITH_IMM;
      work.imm_data = htobe32(static_cast<std::uint32_t>(word));
    }
    return good(ibv_post_send(queue_pair_.get(), &work, &bad), "posting a send");
  }

  bool next_received(Packet& packet) {
    ibv_wc done;
    if (!next(receive_queue_.get(), done)) return false;
    packet.slot = static_cast<std::uint32_t>(done.wr_id);
    packet.bytes = done.byte_len;
    packet.word = (done.wc_flags & IBV_WC_WITH_IMM) != 0
                      ? static_cast<ControlWord>(be32toh(done.imm_data))
                      : ControlWord::none;
    return true;
  }

  bool next_sent() {
    ibv_wc done;
    return next(send_queue_.get(), done);
  }

  // One step of connecting the queue pair, repeated until true. Each side goes through
  //
  //    connect_sockets() --> send_info() --> receive_info() --> get_ready(), send_info()
  //    TCP                   own address     other's address    queue pair in RTS
  //    --> receive_info() --> connected
  //        the other side is in RTS as well
  //
  // The second round is needed: a packet that arrives at a queue pair which is not ready is lost
  // and costs a timeout.
  bool connect() {
    if (!socket_connected_ && !connect_sockets()) return false;
    if (infos_sent_ == 0 && !send_info()) return false;
    if (infos_received_ == 0 && !receive_info()) return false;
    if (infos_sent_ == 1 && (!get_ready() || !send_info())) return false;
    return infos_received_ == 2 || receive_info();
  }

 private:
  // The device by its name; throws Failure.
  static ibv_context* open(const std::string& name) {
    int n = 0;
    ibv_device** const list = ibv_get_device_list(&n);
    ibv_context* context = nullptr;
    for (int i = 0; list != nullptr && i < n; ++i)
      if (name == ibv_get_device_name(list[i])) context = ibv_open_device(list[i]);
    if (list != nullptr) ibv_free_device_list(list);
    return made(context, "use of the RDMA device");
  }

  void create_queue_pair() {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = send_queue_.get();
    wanted.recv_cq = receive_queue_.get();
    // One place in the queue for each slot: neither queue can overflow.
    wanted.cap.max_send_wr = wanted.cap.max_recv_wr = slots_;
    wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
    wanted.qp_type = IBV_QPT_RC;
    queue_pair_.reset(made(ibv_create_qp(domain_.get(), &wanted), "a queue pair"));
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = device_.port;
    modify(attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  }

  // Connects the TCP sockets. False: not yet.
  bool connect_sockets() {
    if (client_) {
      socket_connected_ = ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&server_),
                                    sizeof(server_)) == 0 ||
                          errno == EISCONN;
    } else {
      socket_ =
          UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      socket_connected_ = static_cast<bool>(socket_);
    }
    return socket_connected_;
  }

  // Sends own_info; queries the device for it first.
  bool send_info() {
    ibv_port_attr port{};
    ConnectionInfo own_info{};
    if (ibv_query_port(context_.get(), device_.port, &port) != 0 ||
        ibv_query_gid(context_.get(), device_.port, device_.gid_index, &own_info.gid) != 0)
      return good(EIO, "asking the device");
    own_info.number = queue_pair_->qp_num;
    own_info.mtu = static_cast<std::uint32_t>(port.active_mtu);
    mtu_ = own_info.mtu;
    if (::send(socket_.get(), &own_info, sizeof(own_info), MSG_NOSIGNAL) != sizeof(own_info))
      return false;
    ++infos_sent_;
    return true;
  }

  bool receive_info() {
    // Peeks first, so that a part of a ConnectionInfo is left in the socket until the rest has
    // come.
    if (::recv(socket_.get(), &remote_info_, sizeof(remote_info_), MSG_PEEK) !=
            sizeof(remote_info_) ||
        ::recv(socket_.get(), &remote_info_, sizeof(remote_info_), 0) != sizeof(remote_info_))
      return false;
    ++infos_received_;
    return true;
  }

  // Moves the queue pair through RTR (ready to receive) to RTS (ready to send). Timers and retries
  // are libvipl's (drivers/vi_over_verbs/ibverbs.cpp), so that losses cost both the same.
  bool get_ready() {
    ibv_qp_attr to{};
    to.qp_state = IBV_QPS_RTR;
    to.path_mtu = static_cast<ibv_mtu>(std::min(mtu_, remote_info_.mtu));
    to.dest_qp_num = remote_info_.number;
    to.min_rnr_timer = 12;
    to.ah_attr.is_global = 1;
    to.ah_attr.port_num = device_.port;
    to.ah_attr.grh.sgid_index = device_.gid_index;
    to.ah_attr.grh.hop_limit = 64;
    to.ah_attr.grh.dgid = remote_info_.gid;
    if (!modify(to, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
      return false;
    to.qp_state = IBV_QPS_RTS;
    to.timeout = 14;
    to.retry_cnt = 7;
    return modify(to, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                          IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
  }

  bool modify(ibv_qp_attr& attributes, int which) {
    return good(ibv_modify_qp(queue_pair_.get(), &attributes, which), "connecting a queue pair");
  }

  // A slot of memory_ as a scatter-gather element.
  ibv_sge segment(std::size_t slot, std::size_t bytes) const {
    return {reinterpret_cast<std::uint64_t>(memory_.data() + slot * packet_bytes_),
            static_cast<std::uint32_t>(bytes), region_->lkey};
  }

  // The oldest completion of the queue. False: none, or it is an error, which fails the turn.
  bool next(ibv_cq* queue, ibv_wc& done) {
    const int n = ibv_poll_cq(queue, 1, &done);
    if (n == 0) return false;
    if (n == 1 && done.status == IBV_WC_SUCCESS) [[likely]]
      return true;
    if (failure_.empty()) failure_ = n == 1 ? ibv_wc_status_str(done.status) : "ibv_poll_cq";
    return false;
  }

  bool good(int error, const char* what) {
    if (error == 0) [[likely]]
      return true;
    if (failure_.empty()) failure_ = std::string(what) + ": " + std::strerror(error);
    return false;
  }

  const std::uint32_t slots_;
  const std::size_t packet_bytes_;
  const vi::DeviceInfo device_;
  std::vector<std::byte> memory_;  // receives, and behind them what is sent
  Owned<ibv_context, ibv_close_device> context_;
  Owned<ibv_pd, ibv_dealloc_pd> domain_;
  Owned<ibv_mr, ibv_dereg_mr> region_;
  Owned<ibv_cq, ibv_destroy_cq> send_queue_, receive_queue_;
  Owned<ibv_qp, ibv_destroy_qp> queue_pair_;

  const bool client_;
  UniqueFd socket_, listener_;
  sockaddr_in server_{};
  bool socket_connected_ = false;
  int infos_sent_ = 0, infos_received_ = 0;
  std::uint32_t mtu_ = 0;
  ConnectionInfo remote_info_{};
  std::string failure_;
};

const RegisterLayer<Messages<VerbsQueues>> register_verbs{
    120, {"verbs", "bare libibverbs, sends and receives of a reliable connection", Over::rdma}};

}  // namespace

}  // namespace viaduct::pingpong
