// The C API of rte_pmd_startx.h: each function checks what a C caller may get wrong (null pointers,
// numbers out of range) and calls the C++ class. drivers/rawdev/c_api.hpp has what MBCF's shares.
#include "drivers/startx_emul/c_api.hpp"

#include "drivers/rawdev/c_api.hpp"

namespace viaduct::startx {
namespace {

// Packets of the C header are read and written in the driver's own queues, so both have one layout.
static_assert(sizeof(rte_pmd_startx_packet) == sizeof(Packet) &&
              offsetof(rte_pmd_startx_packet, words) == offsetof(Packet, words) &&
              offsetof(rte_pmd_startx_packet, order) == offsetof(Packet, order) &&
              offsetof(rte_pmd_startx_packet, payload) == offsetof(Packet, payload));
static_assert(sizeof(rte_pmd_startx_outgoing) == sizeof(Outgoing) &&
              offsetof(rte_pmd_startx_outgoing, packet) == offsetof(Outgoing, packet));
static_assert(sizeof(rte_pmd_startx_received) == sizeof(Received) &&
              offsetof(rte_pmd_startx_received, tag) == offsetof(Received, tag) &&
              offsetof(rte_pmd_startx_received, words) == offsetof(Received, words) &&
              offsetof(rte_pmd_startx_received, order) == offsetof(Received, order) &&
              offsetof(rte_pmd_startx_received, payload) == offsetof(Received, payload));
static_assert(kMinWords == RTE_PMD_STARTX_MIN_WORDS && kMaxWords == RTE_PMD_STARTX_MAX_WORDS);
static_assert(static_cast<int>(Priority::low) == RTE_PMD_STARTX_LOW &&
              static_cast<int>(link::Order::unordered) == RTE_PMD_STARTX_UNORDERED);

// rte_pmd_startx.h lists these errno values for its callers.
int error_of(link::SendStatus status) {
  switch (status) {
    case link::SendStatus::sent: return 0;
    case link::SendStatus::try_again: return -EAGAIN;
    case link::SendStatus::too_big: return -EMSGSIZE;
    case link::SendStatus::peer_down: return -EHOSTDOWN;
  }
  return -EINVAL;
}

int error_of(RdmaStatus status) {
  switch (status) {
    case RdmaStatus::ok: return 0;
    case RdmaStatus::peer_down: return -EHOSTDOWN;
    case RdmaStatus::no_right: return -ESTALE;
    case RdmaStatus::too_long: return -EMSGSIZE;
    case RdmaStatus::bad_region: return -EFAULT;
    case RdmaStatus::no_room: return -EAGAIN;
  }
  return -EINVAL;
}

int started(const Started& s, std::uint32_t* transfer) {
  if (s.status == RdmaStatus::ok && transfer != nullptr) *transfer = s.transfer.value;
  return error_of(s.status);
}

bool valid(rte_pmd_startx_priority p) {
  return p == RTE_PMD_STARTX_HIGH || p == RTE_PMD_STARTX_LOW;
}
Priority priority(rte_pmd_startx_priority p) {
  return static_cast<Priority>(p);
}

RegionBytes range(const rte_pmd_startx_bytes* b) {
  return {{b->region}, b->offset, b->length};
}

const rte_pmd_startx_received* in_place(const Received* r) {
  return reinterpret_cast<const rte_pmd_startx_received*>(r);
}

}  // namespace

NiuConfig niu_config(const rte_pmd_startx_conf& conf) {
  NiuConfig niu;
  if (conf.queue_depth != 0) niu.queue_depth = conf.queue_depth;
  if (conf.max_open != 0) niu.rdma.max_open = conf.max_open;
  if (conf.max_posted != 0) niu.rdma.max_posted = conf.max_posted;
  if (conf.max_regions != 0) niu.rdma.max_regions = conf.max_regions;
  return niu;
}

std::unique_ptr<rte_pmd_startx> open_handle(const std::string& port,
                                            const rte_pmd_startx_conf& conf) {
  return rawdev::open_handle<rte_pmd_startx>(port, conf.job_key, niu_config(conf),
                                             "out of memory; lower queue_depth or max_posted");
}

}  // namespace viaduct::startx

using namespace viaduct;
using namespace viaduct::startx;

extern "C" {

rte_pmd_startx* rte_pmd_startx_open(const char* port, const rte_pmd_startx_conf* conf) {
  return rawdev::open_c_api<rte_pmd_startx>(port, conf, open_handle);
}

void rte_pmd_startx_close(rte_pmd_startx* startx) {
  delete startx;
}

const char* rte_pmd_startx_error(void) {
  return rawdev::last_error<rte_pmd_startx>.c_str();
}

int rte_pmd_startx_poll(rte_pmd_startx* startx) {
  return rawdev::poll(startx);
}

int rte_pmd_startx_address(const rte_pmd_startx* startx, std::uint8_t mac[6]) {
  return rawdev::address(startx, mac);
}

int rte_pmd_startx_peer(rte_pmd_startx* startx, const std::uint8_t mac[6], std::uint32_t* peer) {
  return rawdev::peer(startx, mac, peer);
}

int rte_pmd_startx_send(rte_pmd_startx* startx, std::uint32_t to, rte_pmd_startx_priority p,
                        const rte_pmd_startx_packet* packet) {
  if (startx == nullptr || packet == nullptr || !valid(p) ||
      packet->order > RTE_PMD_STARTX_UNORDERED)
    return -EINVAL;
  // A wrong word count is checked by the NIU: -EMSGSIZE.
  return error_of(startx->node->niu().try_send(
      {to}, priority(p), *reinterpret_cast<const Packet*>(packet), port::now()));
}

const rte_pmd_startx_received* rte_pmd_startx_peek(rte_pmd_startx* startx,
                                                   rte_pmd_startx_priority p) {
  return startx != nullptr && valid(p) ? in_place(startx->node->niu().peek(priority(p))) : nullptr;
}

void rte_pmd_startx_pop(rte_pmd_startx* startx, rte_pmd_startx_priority p) {
  if (startx != nullptr && valid(p)) startx->node->niu().pop(priority(p));
}

rte_pmd_startx_outgoing* rte_pmd_startx_reserve(rte_pmd_startx* startx, rte_pmd_startx_priority p) {
  if (startx == nullptr || !valid(p)) return nullptr;
  return reinterpret_cast<rte_pmd_startx_outgoing*>(startx->node->niu().reserve(priority(p)));
}

void rte_pmd_startx_commit(rte_pmd_startx* startx, rte_pmd_startx_priority p) {
  if (startx != nullptr && valid(p)) startx->node->niu().commit(priority(p));
}

const rte_pmd_startx_received* rte_pmd_startx_queue_peek(rte_pmd_startx* startx,
                                                         rte_pmd_startx_priority p) {
  if (startx == nullptr || !valid(p)) return nullptr;
  return in_place(startx->node->niu().queue_peek(priority(p)));
}

void rte_pmd_startx_queue_pop(rte_pmd_startx* startx, rte_pmd_startx_priority p) {
  if (startx != nullptr && valid(p)) startx->node->niu().queue_pop(priority(p));
}

int rte_pmd_startx_register(rte_pmd_startx* startx, void* memory, std::size_t size,
                            std::uint32_t* region) {
  if (startx == nullptr || region == nullptr || (memory == nullptr && size != 0)) return -EINVAL;
  const auto id = startx->node->rdma().register_memory({static_cast<std::byte*>(memory), size});
  *region = id.value;
  return id.value != 0 ? 0 : -ENOSPC;
}

int rte_pmd_startx_deregister(rte_pmd_startx* startx, std::uint32_t region) {
  if (startx == nullptr) return -EINVAL;
  // deregister() has one answer for both failures; C callers get two.
  if (!startx->node->rdma().registered({region})) return -ENOENT;
  return startx->node->rdma().deregister({region}) ? 0 : -EBUSY;
}

int rte_pmd_startx_post(rte_pmd_startx* startx, std::uint32_t from, std::uint32_t tag,
                        const rte_pmd_startx_bytes* into, std::uint32_t* transfer) {
  if (startx == nullptr || into == nullptr) return -EINVAL;
  return started(startx->node->rdma().post({from}, tag, range(into)), transfer);
}

int rte_pmd_startx_cancel(rte_pmd_startx* startx, std::uint32_t transfer) {
  if (startx == nullptr) return -EINVAL;
  return startx->node->rdma().cancel({transfer}) ? 0 : -ENOENT;
}

int rte_pmd_startx_request(rte_pmd_startx* startx, std::uint32_t to, std::uint32_t tag,
                           const rte_pmd_startx_bytes* from, std::uint32_t* transfer) {
  if (startx == nullptr || from == nullptr) return -EINVAL;
  return started(startx->node->rdma().request({to}, tag, range(from), port::now()), transfer);
}

int rte_pmd_startx_grant(rte_pmd_startx* startx, std::uint32_t to, const rte_pmd_startx_bytes* into,
                         rte_pmd_startx_right* right, std::uint32_t* transfer) {
  if (startx == nullptr || into == nullptr || right == nullptr) return -EINVAL;
  Right granted;
  const Started s = startx->node->rdma().grant({to}, range(into), granted);
  *right = {granted.slot, granted.key, granted.length};
  return started(s, transfer);
}

int rte_pmd_startx_revoke(rte_pmd_startx* startx, std::uint32_t transfer) {
  if (startx == nullptr) return -EINVAL;
  return startx->node->rdma().revoke({transfer}) ? 0 : -ENOENT;
}

int rte_pmd_startx_write(rte_pmd_startx* startx, std::uint32_t to,
                         const rte_pmd_startx_right* right, const rte_pmd_startx_bytes* from,
                         std::uint32_t* transfer) {
  if (startx == nullptr || right == nullptr || from == nullptr) return -EINVAL;
  return started(startx->node->rdma().write({to}, {right->slot, right->key, right->length},
                                            range(from), port::now()),
                 transfer);
}

int rte_pmd_startx_completion(rte_pmd_startx* startx, struct rte_pmd_startx_completion* out) {
  if (startx == nullptr || out == nullptr) return -EINVAL;
  Completion c;
  if (!startx->node->rdma().next_completion(c)) return -ENOENT;
  *out = {c.transfer.value, c.peer.value, error_of(c.status),
          static_cast<std::uint8_t>(c.receiving ? 1 : 0), c.length};
  return 0;
}

int rte_pmd_startx_event(rte_pmd_startx* startx, struct rte_pmd_startx_event* out) {
  return rawdev::event(startx, out);
}

}  // extern "C"
