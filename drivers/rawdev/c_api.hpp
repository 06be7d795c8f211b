// What the C APIs of StarT-X and MBCF (rte_pmd_startx.h, rte_pmd_mbcf.h) share: opening, errors,
// and the functions that are the same in both. A handle (struct rte_pmd_...) has one member:
// `node`, a unique_ptr to the driver's node (an endpoint::EndpointOf), which it owns.
//
// No exception may leave a C function, so each error becomes an errno, and a sentence in
// last_error. Thread rule: one thread at a time for each handle; last_error belongs to the calling
// thread.
#pragma once

#include <rte_errno.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "drivers/endpoint/endpoint.hpp"
#include "drivers/link/config.hpp"
#include "drivers/link/event_queue.hpp"

namespace viaduct::rawdev {

// Why the last call that sets something up failed in this thread, as a sentence. Each driver (each
// Handle) has a sentence of its own. A success does not clear it.
template <class Handle>
inline thread_local std::string last_error;

// Notes an error for a function that returns a pointer; `error` is an errno.
template <class Handle>
std::nullptr_t failed(int error, const char* text) {
  last_error<Handle> = text;
  rte_errno = error;
  return nullptr;
}

// What `work` returns, or the negative errno of what it throws.
template <class Handle, class Work>
int guarded(Work work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    last_error<Handle> = "out of memory";
    return -ENOMEM;
  } catch (const base::SetupError& error) {
    last_error<Handle> = error.what();
    return -error.number();
  } catch (const std::exception& error) {
    last_error<Handle> = error.what();
    return -EIO;
  }
}

// Opens a node on `port`; nullptr with rte_errno and last_error set when that fails. `job_key` 0:
// what the environment says. `out_of_memory`: what to tell a user whose configuration needs too
// much.
template <class Handle, class Config>
std::unique_ptr<Handle> open_handle(const std::string& port, std::uint64_t job_key,
                                    const Config& config, const char* out_of_memory) {
  using Node = typename decltype(Handle::node)::element_type;
  try {
    port::PortConfig port_config;
    port_config.devargs = port;
    endpoint::check_config();
    link::LinkConfig link_config = link::link_config_from_environment();
    if (job_key != 0) link_config.job_key = job_key;
    auto handle = std::make_unique<Handle>();
    handle->node = Node::open(port_config, link_config, config);
    return handle;
  } catch (const std::bad_alloc&) {
    return failed<Handle>(ENOMEM, out_of_memory);
  } catch (const std::exception& error) {
    return failed<Handle>(EIO, error.what());
  }
}

// The body of rte_pmd_..._open(). `conf` may be nullptr: all defaults. The caller owns the result.
template <class Handle, class Conf, class Open>
Handle* open_c_api(const char* port, const Conf* conf, Open open) {
  if (port == nullptr)
    return failed<Handle>(EINVAL, "no port was named; pass a PCI address or a vdev");
  return open(port, conf != nullptr ? *conf : Conf{}).release();
}

// All progress of one node. 0 or a negative errno.
template <class Handle>
int poll(Handle* handle) {
  if (handle == nullptr) return -EINVAL;
  return guarded<Handle>([&] {  // bad_alloc: no memory for a peer that connects
    handle->node->poll();
    return 0;
  });
}

template <class Handle>
int address(const Handle* handle, std::uint8_t mac[6]) {
  if (handle == nullptr || mac == nullptr) return -EINVAL;
  std::memcpy(mac, handle->node->address().bytes.data(), 6);
  return 0;
}

// The peer with this Ethernet address. -EINVAL: our own address or a multicast one; -ENOSPC:
// max_peers are in use.
template <class Handle>
int peer(Handle* handle, const std::uint8_t mac[6], std::uint32_t* peer) {
  if (handle == nullptr || mac == nullptr || peer == nullptr) return -EINVAL;
  link::Address address;
  std::memcpy(address.bytes.data(), mac, 6);
  if (address == handle->node->address() || (mac[0] & 1) != 0) return -EINVAL;
  try {
    *peer = handle->node->link().peer(address).value;
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  }
  return *peer != 0 ? 0 : -ENOSPC;
}

// Takes the oldest event of a connection; -ENOENT when there is none. `out`: a struct
// rte_pmd_..._event.
template <class Handle, class Event>
int event(Handle* handle, Event* out) {
  if (handle == nullptr || out == nullptr) return -EINVAL;
  link::Event event;
  if (!handle->node->driver().next_event(event)) return -ENOENT;
  const bool up = event.kind == link::Event::Kind::peer_up;
  out->peer = event.peer.value;
  std::memcpy(out->mac, event.address.bytes.data(), 6);
  out->up = up ? 1 : 0;
  out->reason = up ? nullptr : link::text(event.reason);
  return 0;
}

}  // namespace viaduct::rawdev
