// The C API, rte_pmd_mbcf.h: each function checks what a C caller may get wrong, calls Engine or
// Fifo, and turns statuses and exceptions into negative errno values. What both drivers' C APIs
// share is in rawdev/c_api.hpp.
#include "drivers/mbcf/c_api.hpp"

#include "drivers/rawdev/c_api.hpp"

namespace viaduct::mbcf {
namespace {

// The C header repeats these numbers.
static_assert(kMaxChainedEntry == RTE_PMD_MBCF_MOST_CARRIED);
static_assert(static_cast<int>(Rights::read) == RTE_PMD_MBCF_READ &&
              static_cast<int>(Rights::write) == RTE_PMD_MBCF_WRITE &&
              static_cast<int>(Rights::atomic) == RTE_PMD_MBCF_ATOMIC);
static_assert(static_cast<int>(Then::Kind::none) == RTE_PMD_MBCF_THEN_NOTHING &&
              static_cast<int>(Then::Kind::entry) == RTE_PMD_MBCF_THEN_ENTRY &&
              static_cast<int>(Then::Kind::signal) == RTE_PMD_MBCF_THEN_SIGNAL &&
              static_cast<int>(Then::Kind::flag) == RTE_PMD_MBCF_THEN_FLAG);

// The table at the head of rte_pmd_mbcf.h.
int error_of(Status status) {
  switch (status) {
    case Status::ok: return 0;
    case Status::no_room: return -EAGAIN;
    case Status::peer_down: return -EHOSTDOWN;
    case Status::no_key: return -ENOENT;
    case Status::withdrawn: return -ESTALE;
    case Status::no_right: return -EACCES;
    case Status::out_of_range: return -ERANGE;
    case Status::misaligned: return -EFAULT;
    case Status::wrong_kind: return -EPROTOTYPE;
    case Status::no_credit: return -EDQUOT;
    case Status::too_long: return -EMSGSIZE;
  }
  return -EINVAL;
}

// Calls `work`; an exception becomes a negative errno, with the text for rte_pmd_mbcf_error().
template <class Work>
int guarded(Work work) {
  return rawdev::guarded<rte_pmd_mbcf>(work);
}

constexpr std::uint32_t kFlags = RTE_PMD_MBCF_BATCH | RTE_PMD_MBCF_SILENT;

// Translates the options, issues a request by calling `request(engine, options)`, and stores the
// request's number if the caller wants it.
template <class Request>
int issue(rte_pmd_mbcf* mbcf, const rte_pmd_mbcf_options* given, std::uint32_t* number,
          Request request) {
  Options options;
  if (given != nullptr) {
    if ((given->flags & ~kFlags) != 0) return -EINVAL;
    if ((given->flags & RTE_PMD_MBCF_BATCH) != 0) options.urgency = link::Urgency::batch;
    options.silent = (given->flags & RTE_PMD_MBCF_SILENT) != 0;
    options.context = given->context;
  }
  return guarded([&] {
    const Issued issued = request(mbcf->node->engine(), options);
    if (issued.status == Status::ok && number != nullptr) *number = issued.id.value;
    return error_of(issued.status);
  });
}

Remote remote(const rte_pmd_mbcf_remote* r) {
  return {{r->peer}, {r->key}, r->offset};
}
bool valid(const void* memory, std::size_t length) {
  return memory != nullptr || length == 0;
}
bool valid_width(std::uint32_t width) {
  return width == 4 || width == 8;
}
std::span<const std::byte> bytes(const void* from, std::size_t length) {
  return {static_cast<const std::byte*>(from), length};
}

// Translates the second part of a write; false when it is impossible.
bool second_part(const rte_pmd_mbcf_then* given, Then& then) {
  if (given == nullptr) return true;
  switch (given->kind) {
    case RTE_PMD_MBCF_THEN_NOTHING: return true;
    case RTE_PMD_MBCF_THEN_ENTRY:
      then = Then::append({given->writer}, bytes(given->entry, given->length));
      return valid(given->entry, given->length);
    case RTE_PMD_MBCF_THEN_SIGNAL: then = Then::raise({given->key}); return true;
    case RTE_PMD_MBCF_THEN_FLAG:
      then = Then::set({given->key}, given->offset, given->value, Width{given->width});
      return valid_width(given->width);
    default: return false;
  }
}

// The C header's rte_pmd_mbcf_fifo is never defined: its pointers are those of the C++ class.
Fifo* fifo_of(rte_pmd_mbcf_fifo* fifo) {
  return reinterpret_cast<Fifo*>(fifo);
}
const Fifo* fifo_of(const rte_pmd_mbcf_fifo* fifo) {
  return reinterpret_cast<const Fifo*>(fifo);
}

// Stores a new key for the caller; Key{} means that the table is full.
int store_key(Key made, std::uint64_t* key) {
  *key = made.value;
  return made ? 0 : -ENOSPC;
}

}  // namespace

EngineConfig engine_config(const rte_pmd_mbcf_conf& conf) {
  EngineConfig engine;
  if (conf.max_keys != 0) engine.max_keys = conf.max_keys;
  if (conf.max_requests != 0) engine.max_requests = conf.max_requests;
  if (conf.max_writers != 0) engine.max_writers = conf.max_writers;
  return engine;
}

std::unique_ptr<rte_pmd_mbcf> open_handle(const std::string& port, const rte_pmd_mbcf_conf& conf) {
  return rawdev::open_handle<rte_pmd_mbcf>(port, conf.job_key, engine_config(conf),
                                           "out of memory; lower max_keys or max_requests");
}

}  // namespace viaduct::mbcf

using namespace viaduct;
using namespace viaduct::mbcf;

extern "C" {

rte_pmd_mbcf* rte_pmd_mbcf_open(const char* port, const rte_pmd_mbcf_conf* conf) {
  return rawdev::open_c_api<rte_pmd_mbcf>(port, conf, open_handle);
}

void rte_pmd_mbcf_close(rte_pmd_mbcf* mbcf) {
  delete mbcf;
}

const char* rte_pmd_mbcf_error(void) {
  return rawdev::last_error<rte_pmd_mbcf>.c_str();
}

int rte_pmd_mbcf_poll(rte_pmd_mbcf* mbcf) {
  return rawdev::poll(mbcf);
}

int rte_pmd_mbcf_address(const rte_pmd_mbcf* mbcf, std::uint8_t mac[6]) {
  return rawdev::address(mbcf, mac);
}

int rte_pmd_mbcf_peer(rte_pmd_mbcf* mbcf, const std::uint8_t mac[6], std::uint32_t* peer) {
  return rawdev::peer(mbcf, mac, peer);
}

int rte_pmd_mbcf_event(rte_pmd_mbcf* mbcf, struct rte_pmd_mbcf_event* out) {
  return rawdev::event(mbcf, out);
}

// ---- what this task registers

int rte_pmd_mbcf_export(rte_pmd_mbcf* mbcf, void* memory, std::size_t size, std::uint32_t rights,
                        std::uint64_t* key) {
  if (mbcf == nullptr || key == nullptr || !valid(memory, size) ||
      rights > static_cast<std::uint32_t>(Rights::all))
    return -EINVAL;
  return guarded([&] {
    return store_key(mbcf->node->engine().export_segment({static_cast<std::byte*>(memory), size},
                                                         static_cast<Rights>(rights)),
                     key);
  });
}

int rte_pmd_mbcf_withdraw(rte_pmd_mbcf* mbcf, std::uint64_t key) {
  if (mbcf == nullptr) return -EINVAL;
  return guarded([&] { return mbcf->node->engine().withdraw({key}) ? 0 : -ENOENT; });
}

int rte_pmd_mbcf_create_fifo(rte_pmd_mbcf* mbcf, std::size_t bytes, rte_pmd_mbcf_fifo** fifo,
                             std::uint64_t* key) {
  if (mbcf == nullptr || fifo == nullptr || key == nullptr || bytes == 0 || bytes > kMaxFifoBytes)
    return -EINVAL;
  return guarded([&] {
    Fifo* const made = mbcf->node->engine().create_fifo(bytes);
    *fifo = reinterpret_cast<rte_pmd_mbcf_fifo*>(made);
    return store_key(made != nullptr ? made->key() : Key{}, key);
  });
}

int rte_pmd_mbcf_fifo_front(const rte_pmd_mbcf_fifo* fifo, rte_pmd_mbcf_entry* out) {
  if (fifo == nullptr || out == nullptr) return -EINVAL;
  const auto entry = fifo_of(fifo)->front();
  if (!entry) return -ENOENT;
  *out = {entry->from.value, entry->bytes.data(), entry->bytes.size()};
  return 0;
}

void rte_pmd_mbcf_fifo_pop(rte_pmd_mbcf_fifo* fifo) {
  if (fifo != nullptr) fifo_of(fifo)->pop();
}

std::uint64_t rte_pmd_mbcf_fifo_key(const rte_pmd_mbcf_fifo* fifo) {
  return fifo != nullptr ? fifo_of(fifo)->key().value : 0;
}

std::size_t rte_pmd_mbcf_fifo_capacity(const rte_pmd_mbcf_fifo* fifo) {
  return fifo != nullptr ? fifo_of(fifo)->capacity() : 0;
}

int rte_pmd_mbcf_create_signal(rte_pmd_mbcf* mbcf, rte_pmd_mbcf_handler handler, void* user,
                               std::uint64_t* key) {
  if (mbcf == nullptr || handler == nullptr || key == nullptr) return -EINVAL;
  return guarded([&] {
    return store_key(mbcf->node->engine().create_signal(
                         [handler, user](std::uint64_t count) { handler(user, count); }),
                     key);
  });
}

int rte_pmd_mbcf_create_signal_fd(rte_pmd_mbcf* mbcf, int* fd, std::uint64_t* key) {
  if (mbcf == nullptr || fd == nullptr || key == nullptr) return -EINVAL;
  return guarded([&] { return store_key(mbcf->node->engine().create_signal_fd(*fd), key); });
}

// ---- requests

int rte_pmd_mbcf_write(rte_pmd_mbcf* mbcf, const rte_pmd_mbcf_remote* to, const void* data,
                       std::size_t length, const rte_pmd_mbcf_then* given,
                       const rte_pmd_mbcf_options* options, std::uint32_t* request) {
  Then then;
  if (mbcf == nullptr || to == nullptr || !valid(data, length) || !second_part(given, then))
    return -EINVAL;
  return issue(mbcf, options, request, [&](auto& engine, const Options& o) {
    return engine.write(remote(to), bytes(data, length), then, o, port::now());
  });
}

int rte_pmd_mbcf_read(rte_pmd_mbcf* mbcf, const rte_pmd_mbcf_remote* from, void* into,
                      std::size_t length, const rte_pmd_mbcf_options* options,
                      std::uint32_t* request) {
  if (mbcf == nullptr || from == nullptr || !valid(into, length)) return -EINVAL;
  return issue(mbcf, options, request, [&](auto& engine, const Options& o) {
    return engine.read(remote(from), {static_cast<std::byte*>(into), length}, o, port::now());
  });
}

int rte_pmd_mbcf_swap(rte_pmd_mbcf* mbcf, const rte_pmd_mbcf_remote* at, std::uint32_t width,
                      std::uint64_t value, const rte_pmd_mbcf_options* options,
                      std::uint32_t* request) {
  if (mbcf == nullptr || at == nullptr || !valid_width(width)) return -EINVAL;
  return issue(mbcf, options, request, [&](auto& engine, const Options& o) {
    return engine.swap(remote(at), Width(width), value, o, port::now());
  });
}

int rte_pmd_mbcf_fetch_add(rte_pmd_mbcf* mbcf, const rte_pmd_mbcf_remote* at, std::uint32_t width,
                           std::uint64_t value, const rte_pmd_mbcf_options* options,
                           std::uint32_t* request) {
  if (mbcf == nullptr || at == nullptr || !valid_width(width)) return -EINVAL;
  return issue(mbcf, options, request, [&](auto& engine, const Options& o) {
    return engine.fetch_add(remote(at), Width(width), value, o, port::now());
  });
}

int rte_pmd_mbcf_compare_swap(rte_pmd_mbcf* mbcf, const rte_pmd_mbcf_remote* at,
                              std::uint32_t width, std::uint64_t expected, std::uint64_t value,
                              const rte_pmd_mbcf_options* options, std::uint32_t* request) {
  if (mbcf == nullptr || at == nullptr || !valid_width(width)) return -EINVAL;
  return issue(mbcf, options, request, [&](auto& engine, const Options& o) {
    return engine.compare_swap(remote(at), Width(width), expected, value, o, port::now());
  });
}

int rte_pmd_mbcf_signal(rte_pmd_mbcf* mbcf, std::uint32_t peer, std::uint64_t key,
                        const rte_pmd_mbcf_options* options, std::uint32_t* request) {
  if (mbcf == nullptr) return -EINVAL;
  return issue(mbcf, options, request, [&](auto& engine, const Options& o) {
    return engine.signal({peer}, {key}, o, port::now());
  });
}

int rte_pmd_mbcf_fence(rte_pmd_mbcf* mbcf, std::uint32_t peer, const rte_pmd_mbcf_options* options,
                       std::uint32_t* request) {
  if (mbcf == nullptr) return -EINVAL;
  return issue(mbcf, options, request, [&](auto& engine, const Options& o) {
    return engine.fence({peer}, o, port::now());
  });
}

int rte_pmd_mbcf_open_writer(rte_pmd_mbcf* mbcf, std::uint32_t peer, std::uint64_t fifo,
                             std::uint32_t* writer) {
  if (mbcf == nullptr || writer == nullptr) return -EINVAL;
  return guarded([&] {
    *writer = mbcf->node->engine().open_writer({peer}, {fifo}, port::now()).value;
    return *writer != 0 ? 0 : -EAGAIN;  // WriterId{}: max_writers are open, or one is closing
  });
}

int rte_pmd_mbcf_close_writer(rte_pmd_mbcf* mbcf, std::uint32_t writer) {
  if (mbcf == nullptr) return -EINVAL;
  mbcf->node->engine().close_writer({writer});
  return 0;
}

int rte_pmd_mbcf_append(rte_pmd_mbcf* mbcf, std::uint32_t writer, const void* head,
                        std::size_t head_length, const void* body, std::size_t length,
                        const rte_pmd_mbcf_options* options, std::uint32_t* request) {
  if (mbcf == nullptr || !valid(head, head_length) || !valid(body, length)) return -EINVAL;
  return issue(mbcf, options, request, [&](auto& engine, const Options& o) {
    return engine.append({writer}, bytes(head, head_length), bytes(body, length), o, port::now());
  });
}

int rte_pmd_mbcf_capacity(const rte_pmd_mbcf* mbcf, std::uint32_t writer, std::uint64_t* bytes) {
  if (mbcf == nullptr || bytes == nullptr) return -EINVAL;
  *bytes = mbcf->node->engine().capacity({writer});
  return *bytes != 0 ? 0 : -EAGAIN;
}

int rte_pmd_mbcf_issue(rte_pmd_mbcf* mbcf, rte_pmd_mbcf_request* r) {
  if (r == nullptr) return -EINVAL;
  const auto options = &r->options;
  const auto number = &r->request;
  switch (r->op) {
    case RTE_PMD_MBCF_OP_WRITE:
      return rte_pmd_mbcf_write(mbcf, &r->at, r->local, r->length, &r->then, options, number);
    case RTE_PMD_MBCF_OP_READ:
      return rte_pmd_mbcf_read(mbcf, &r->at, r->local, r->length, options, number);
    case RTE_PMD_MBCF_OP_SWAP:
      return rte_pmd_mbcf_swap(mbcf, &r->at, r->width, r->value, options, number);
    case RTE_PMD_MBCF_OP_FETCH_ADD:
      return rte_pmd_mbcf_fetch_add(mbcf, &r->at, r->width, r->value, options, number);
    case RTE_PMD_MBCF_OP_COMPARE_SWAP:
      return rte_pmd_mbcf_compare_swap(mbcf, &r->at, r->width, r->expected, r->value, options,
                                       number);
    case RTE_PMD_MBCF_OP_APPEND:
      return rte_pmd_mbcf_append(mbcf, r->writer, r->head, r->head_length, r->local, r->length,
                                 options, number);
    case RTE_PMD_MBCF_OP_SIGNAL:
      return rte_pmd_mbcf_signal(mbcf, r->at.peer, r->at.key, options, number);
    case RTE_PMD_MBCF_OP_FENCE: return rte_pmd_mbcf_fence(mbcf, r->at.peer, options, number);
    default: return -EINVAL;
  }
}

int rte_pmd_mbcf_completion(rte_pmd_mbcf* mbcf, struct rte_pmd_mbcf_completion* out) {
  if (mbcf == nullptr || out == nullptr) return -EINVAL;
  Completion c;
  if (!mbcf->node->engine().next_completion(c)) return -ENOENT;
  *out = {c.id.value, c.peer.value, error_of(c.status), c.context, c.value};
  return 0;
}

}  // extern "C"
