// Stands in for libibverbs where it is linked in, with a device that does nothing: whatever is
// posted has completed when it is next asked for, receives as if a message of 8 bytes had come. So
// what is left of posting and polling is libvipl's own, drivers/vi_over_verbs included.
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "tests/vipl/core/null_verbs.hpp"

#undef ibv_query_port
#undef ibv_reg_mr

using viaduct::vipl::test::null_verbs;

namespace {

constexpr std::uint32_t kMessage = 8;

struct NullCq {
  ibv_cq cq{};
  // Of what was posted, the oldest first. Never more than the capacity, or the library errs.
  struct Posted {
    std::uint64_t id;
    bool receive;
  };
  std::array<Posted, 4096> posted;
  std::uint64_t first = 0, end = 0;

  void add(std::uint64_t id, bool receive) { posted[end++ % posted.size()] = {id, receive}; }
};

struct NullQp {
  ibv_qp qp{};
};

NullCq& null(ibv_cq* cq) {
  return *reinterpret_cast<NullCq*>(cq);
}

}  // namespace

// With names that callgrind finds.
extern "C" {

int null_post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr**) {
  null(qp->send_cq).add(wr->wr_id, false);
  return 0;
}
int null_post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr**) {
  null(qp->recv_cq).add(wr->wr_id, true);
  return 0;
}
int null_poll_cq(ibv_cq* cq, int most, ibv_wc* wc) {
  NullCq& it = null(cq);
  int n = 0;
  for (; n < most && it.first != it.end; ++n) {
    const NullCq::Posted& done = it.posted[it.first++ % it.posted.size()];
    wc[n].wr_id = done.id;
    wc[n].status = IBV_WC_SUCCESS;
    wc[n].opcode = done.receive ? IBV_WC_RECV : IBV_WC_SEND;
    wc[n].byte_len = kMessage;
    wc[n].wc_flags = 0;
  }
  return n;
}
int null_req_notify_cq(ibv_cq*, int) {
  return 0;
}

}  // extern "C"

namespace {

ibv_device device{};
ibv_device* list[] = {&device, nullptr};

}  // namespace

extern "C" {

ibv_device** ibv_get_device_list(int* n) {
  std::strcpy(device.name, "null0");
  if (n != nullptr) *n = 1;
  return list;
}
void ibv_free_device_list(ibv_device**) {}
const char* ibv_get_device_name(ibv_device* it) {
  return it->name;
}

ibv_context* ibv_open_device(ibv_device* it) {
  auto* const context = new ibv_context{};
  context->device = it;
  context->async_fd = eventfd(0, EFD_CLOEXEC);
  context->ops.post_send = null_post_send;
  context->ops.post_recv = null_post_recv;
  context->ops.poll_cq = null_poll_cq;
  context->ops.req_notify_cq = null_req_notify_cq;
  return context;
}
int ibv_close_device(ibv_context* context) {
  close(context->async_fd);
  delete context;
  return 0;
}
int ibv_query_device(ibv_context*, ibv_device_attr* attr) {
  *attr = {};
  attr->max_qp_wr = attr->max_cqe = 1024;
  attr->max_sge = 32;
  attr->max_sge_rd = null_verbs.max_sge_rd;
  attr->max_cq = attr->max_qp = attr->max_mr = attr->max_pd = 1024;
  attr->max_mr_size = ~std::uint64_t{0};
  attr->max_qp_rd_atom = attr->max_qp_init_rd_atom = 16;
  attr->phys_port_cnt = 1;
  return 0;
}
int ibv_query_port(ibv_context*, std::uint8_t, _compat_ibv_port_attr* compat) {
  auto* const attr = reinterpret_cast<ibv_port_attr*>(compat);
  attr->state = IBV_PORT_ACTIVE;
  attr->active_mtu = IBV_MTU_1024;
  attr->max_msg_sz = 1u << 23;
  attr->link_layer = IBV_LINK_LAYER_ETHERNET;
  return 0;
}
int ibv_query_gid(ibv_context*, std::uint8_t, int, ibv_gid* gid) {
  *gid = {};
  return 0;
}
ssize_t _ibv_query_gid_table(ibv_context*, ibv_gid_entry* entries, std::size_t, std::uint32_t,
                             std::size_t) {
  constexpr std::array<std::uint8_t, 16> kLoopback{0, 0, 0,    0,    0,   0, 0, 0,
                                                   0, 0, 0xff, 0xff, 127, 0, 0, 1};
  for (std::uint8_t i = 0; i < 2; ++i) {
    entries[i] = {};
    std::memcpy(entries[i].gid.raw, kLoopback.data(), kLoopback.size());
    entries[i].gid.raw[15] = static_cast<std::uint8_t>(1 + i);
    entries[i].gid_type = IBV_GID_TYPE_ROCE_V2;
    entries[i].port_num = 1;
    entries[i].gid_index = 3u * i;
  }
  return 2;
}

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  return new ibv_pd{context, 0};
}
int ibv_dealloc_pd(ibv_pd* pd) {
  delete pd;
  return 0;
}
ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, std::size_t bytes, std::uint64_t, unsigned) {
  static std::uint32_t key = 0x100;
  return new ibv_mr{pd->context, pd, address, bytes, 0, ++key, key};
}
ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, std::size_t bytes, int) {
  return ibv_reg_mr_iova2(pd, address, bytes, 0, 0);
}
int ibv_dereg_mr(ibv_mr* mr) {
  delete mr;
  return 0;
}

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  return new ibv_comp_channel{context, eventfd(0, EFD_CLOEXEC), 0};
}
int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  close(channel->fd);
  delete channel;
  return 0;
}
ibv_cq* ibv_create_cq(ibv_context* context, int capacity, void* owner, ibv_comp_channel*, int) {
  auto* const made = new NullCq;
  made->cq.context = context;
  made->cq.cq_context = owner;
  made->cq.cqe = capacity;
  return &made->cq;
}
int ibv_resize_cq(ibv_cq* cq, int capacity) {
  cq->cqe = capacity;
  return 0;
}
int ibv_destroy_cq(ibv_cq* cq) {
  delete &null(cq);
  return 0;
}
int ibv_get_cq_event(ibv_comp_channel*, ibv_cq**, void**) {
  return -1;
}
void ibv_ack_cq_events(ibv_cq*, unsigned) {}
int ibv_get_async_event(ibv_context*, ibv_async_event*) {
  return -1;
}
void ibv_ack_async_event(ibv_async_event*) {}

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  auto* const made = new NullQp;
  made->qp.context = pd->context;
  made->qp.send_cq = attr->send_cq;
  made->qp.recv_cq = attr->recv_cq;
  return &made->qp;
}
int ibv_modify_qp(ibv_qp*, ibv_qp_attr* attr, int) {
  if (attr->qp_state == IBV_QPS_RTR) null_verbs.connected = *attr;
  return 0;
}
int ibv_query_qp(ibv_qp*, ibv_qp_attr*, int, ibv_qp_init_attr*) {
  return 0;
}
int ibv_destroy_qp(ibv_qp* qp) {
  delete reinterpret_cast<NullQp*>(qp);
  return 0;
}

}  // extern "C"
