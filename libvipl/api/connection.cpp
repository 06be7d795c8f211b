// The C API of connections: VipConnect..., VipDisconnect. Each function checks its arguments, finds
// the objects behind the handles, and calls the connection manager with the VI's change of state as
// the step. connection/manager.hpp draws what happens then.
#include <vipl.h>

#include "libvipl/api/guarded.hpp"
#include "libvipl/connection/manager.hpp"
#include "libvipl/connection/received_request.hpp"
#include "libvipl/core/nic.hpp"
#include "libvipl/core/object_table.hpp"
#include "libvipl/core/vi.hpp"

namespace {

using namespace viaduct::vipl;

using Requests = ObjectTable<ReceivedRequest, HandleKind::connection>;

// The connection handles (VIP_CONN_HANDLE) of all NICs. Never destroyed: threads of the program may
// outlive main().
Requests& requests() {
  static Requests& it = *new Requests;
  return it;
}

// What QoS points to if the other side's VI has one. VIP_QOS is opaque, so only its presence is
// known. Not NULL: a program that copies these attributes to its own VI gets one that matches.
char some_quality;

// Fills in the other side's attributes. `attributes` may be NULL: programs need not care.
void fill_attributes(const EndpointInfo& card, VIP_VI_ATTRIBUTES* attributes) {
  if (attributes == nullptr) return;
  *attributes = {};
  attributes->ReliabilityLevel = card.reliability;
  attributes->MaxTransferSize = static_cast<VIP_ULONG>(card.max_transfer_size);
  attributes->QoS = card.has_qos ? &some_quality : nullptr;
  attributes->EnableRdmaWrite = card.rdma_write ? VIP_TRUE : VIP_FALSE;
  attributes->EnableRdmaRead = card.rdma_read ? VIP_TRUE : VIP_FALSE;
}

// nullopt: there is none, or it is too long.
std::optional<Discriminator> discriminator_at(const VIP_NET_ADDRESS* address) {
  return address != nullptr ? discriminator_of(*address) : std::nullopt;
}

// The arguments of VipConnectRequest and VipConnectPeerRequest, checked.
struct RequestArguments {
  std::shared_ptr<Nic> nic;
  Vi* vi = nullptr;
  Discriminator local;
  Endpoint remote;
};

// False: an argument is invalid.
bool read(VIP_VI_HANDLE handle, const VIP_NET_ADDRESS* local, const VIP_NET_ADDRESS* remote,
          VIP_ULONG timeout, RequestArguments& arguments) {
  arguments.vi = Vi::find(handle);
  if (arguments.vi == nullptr || local == nullptr || remote == nullptr || timeout == 0)
    return false;
  arguments.nic = arguments.vi->nic(handle);
  // Of the local address only the discriminator counts: programs leave the rest as it was.
  const auto discriminator = discriminator_of(*local);
  const auto endpoint = endpoint_of(*remote);
  if (arguments.nic == nullptr || !discriminator || !endpoint) return false;
  arguments.local = *discriminator;
  arguments.remote = *endpoint;
  return true;
}

VIP_RETURN wait(Nic& nic, const Discriminator& local, Deadline deadline, VIP_NET_ADDRESS* remote,
                VIP_VI_ATTRIBUTES* attributes, VIP_CONN_HANDLE& handle) {
  std::shared_ptr<ReceivedRequest> request;
  const VIP_RETURN result = nic.manager().wait(local, deadline, request);
  if (result != VIP_SUCCESS) return result;
  // Handles of requests whose NIC has been closed are collected here.
  requests().remove_if([](const ReceivedRequest& other) { return other.table() == nullptr; });
  handle = requests().add(request);
  const Caller& caller = Manager::caller(*request);
  if (remote != nullptr) write(caller.endpoint, *remote);
  fill_attributes(caller.card, attributes);
  return VIP_SUCCESS;
}

VIP_RETURN accept(VIP_CONN_HANDLE connection, VIP_VI_HANDLE handle) {
  const auto request = requests().find(connection);
  Vi* const vi = Vi::find(handle);
  if (request == nullptr || vi == nullptr) return VIP_INVALID_PARAMETER;
  const auto nic = vi->nic(handle);
  if (nic == nullptr || !nic->manager().is_from_here(*request)) return VIP_INVALID_PARAMETER;
  const VIP_RETURN result =
      Manager::accept(request, *vi, [&] { return vi->begin_pending(handle); });
  if (result == VIP_SUCCESS) requests().remove(connection);
  return result;
}

VIP_RETURN request(VIP_VI_HANDLE handle, const VIP_NET_ADDRESS* local,
                   const VIP_NET_ADDRESS* remote, VIP_ULONG timeout,
                   VIP_VI_ATTRIBUTES* attributes) {
  RequestArguments arguments;
  if (!read(handle, local, remote, timeout, arguments)) return VIP_INVALID_PARAMETER;
  EndpointInfo card;
  const VIP_RETURN result = arguments.nic->manager().request(
      *arguments.vi, arguments.local, arguments.remote, deadline_after(timeout), card,
      [&] { return arguments.vi->begin_pending(handle); });
  if (result == VIP_SUCCESS) fill_attributes(card, attributes);
  return result;
}

VIP_RETURN peer_request(VIP_VI_HANDLE handle, const VIP_NET_ADDRESS* local,
                        const VIP_NET_ADDRESS* remote, VIP_ULONG timeout) {
  RequestArguments arguments;
  if (!read(handle, local, remote, timeout, arguments)) return VIP_INVALID_PARAMETER;
  Nic& nic = *arguments.nic;
  const VIP_RETURN result = nic.manager().peer_request(
      *arguments.vi, arguments.local, arguments.remote, deadline_after(timeout),
      [&] { return arguments.vi->begin_pending(handle, nic.is_driven_by_program()); });
  nic.hurry();
  return result;
}

// VipConnectPeerDone and VipConnectPeerWait differ only in the function of the manager.
using Outcome = VIP_RETURN (Manager::*)(ConnectionUser& user, EndpointInfo& remote,
                                        const Step& check);

VIP_RETURN peer_outcome(VIP_VI_HANDLE handle, VIP_VI_ATTRIBUTES* attributes, Outcome outcome) {
  Vi* const vi = Vi::find(handle);
  const auto nic = vi != nullptr ? vi->nic(handle) : nullptr;
  if (nic == nullptr) return VIP_INVALID_PARAMETER;
  EndpointInfo card;
  const VIP_RETURN result = (nic->manager().*outcome)(
      *vi, card, [&] { return vi->is(handle_of(handle)) ? VIP_SUCCESS : VIP_INVALID_PARAMETER; });
  if (result == VIP_SUCCESS) fill_attributes(card, attributes);
  return result;
}

VIP_RETURN event(Nic& nic, VIP_CONNECT_EVENT& to) {
  ConnectEvent event;
  const VIP_RETURN result = nic.manager().next_event(event);
  if (result != VIP_SUCCESS) return result;
  to = {};
  to.Code = event.is_outcome ? VIP_EVENT_OUTCOME : VIP_EVENT_PEER_ASKS;
  to.ViHandle = event.vi;
  to.Outcome = event.outcome;
  if (event.outcome == VIP_SUCCESS) fill_attributes(event.card, &to.RemoteViAttribs);
  write(event.local, to.LocalAddr.Address);
  write(event.remote, to.RemoteAddr.Address);
  return VIP_SUCCESS;
}

VIP_RETURN disconnect(VIP_VI_HANDLE handle) {
  Vi* const vi = Vi::find(handle);
  const auto nic = vi != nullptr ? vi->nic(handle) : nullptr;
  if (nic == nullptr) return VIP_INVALID_PARAMETER;
  return nic->manager().disconnect(*vi, [&] { return vi->back_to_idle(handle); });
}

}  // namespace

VIP_RETURN VipConnectWait(VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS* LocalAddr, VIP_ULONG Timeout,
                          VIP_NET_ADDRESS* RemoteAddr, VIP_VI_ATTRIBUTES* RemoteViAttribs,
                          VIP_CONN_HANDLE* ConnHandle) {
  const auto nic = Nic::find(NicHandle);
  if (nic == nullptr || LocalAddr == nullptr || ConnHandle == nullptr) return VIP_INVALID_PARAMETER;
  const auto local = discriminator_of(*LocalAddr);
  if (!local) return VIP_INVALID_PARAMETER;
  return guarded([&] {
    return wait(*nic, *local, deadline_after(Timeout), RemoteAddr, RemoteViAttribs, *ConnHandle);
  });
}

VIP_RETURN VipConnectAccept(VIP_CONN_HANDLE ConnHandle, VIP_VI_HANDLE ViHandle) {
  return guarded([&] { return accept(ConnHandle, ViHandle); });
}

// remove() first: of two threads with the same handle only one gets the request.
VIP_RETURN VipConnectReject(VIP_CONN_HANDLE ConnHandle) {
  const auto request = requests().remove(ConnHandle);
  if (request == nullptr) return VIP_INVALID_PARAMETER;
  return guarded([&] { return Manager::reject(request); });
}

VIP_RETURN VipConnectRequest(VIP_VI_HANDLE ViHandle, VIP_NET_ADDRESS* LocalAddr,
                             VIP_NET_ADDRESS* RemoteAddr, VIP_ULONG Timeout,
                             VIP_VI_ATTRIBUTES* RemoteViAttribs) {
  return guarded(
      [&] { return request(ViHandle, LocalAddr, RemoteAddr, Timeout, RemoteViAttribs); });
}

VIP_RETURN VipDisconnect(VIP_VI_HANDLE ViHandle) {
  return guarded([&] { return disconnect(ViHandle); });
}

VIP_RETURN VipConnectPeerRequest(VIP_VI_HANDLE ViHandle, VIP_NET_ADDRESS* LocalAddr,
                                 VIP_NET_ADDRESS* RemoteAddr, VIP_ULONG Timeout) {
  return guarded([&] { return peer_request(ViHandle, LocalAddr, RemoteAddr, Timeout); });
}

VIP_RETURN VipConnectPeerDone(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES* RemoteAttribs) {
  return guarded([&] { return peer_outcome(ViHandle, RemoteAttribs, &Manager::peer_done); });
}

VIP_RETURN VipConnectPeerWait(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES* RemoteAttribs) {
  return guarded([&] { return peer_outcome(ViHandle, RemoteAttribs, &Manager::peer_wait); });
}

VIP_RETURN VipConnectEvent(VIP_NIC_HANDLE NicHandle, VIP_CONNECT_EVENT* Event) {
  const auto nic = Nic::find(NicHandle);
  if (nic == nullptr || Event == nullptr) return VIP_INVALID_PARAMETER;
  return guarded([&] { return event(*nic, *Event); });
}

VIP_RETURN VipPeerListen(VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS* LocalAddr, VIP_UINT8* Key,
                         VIP_ULONG KeyLength) {
  const auto nic = Nic::find(NicHandle);
  const auto prefix = discriminator_at(LocalAddr);
  if (nic == nullptr || !prefix || (Key == nullptr && KeyLength != 0)) return VIP_INVALID_PARAMETER;
  return guarded([&] { return nic->manager().peer_listen(*prefix, {Key, KeyLength}); });
}

VIP_RETURN VipPeerStopListening(VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS* LocalAddr) {
  const auto nic = Nic::find(NicHandle);
  const auto prefix = discriminator_at(LocalAddr);
  if (nic == nullptr || !prefix) return VIP_INVALID_PARAMETER;
  return guarded([&] { return nic->manager().peer_stop_listening(*prefix); });
}

VIP_RETURN VipPeerRefuse(VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS* LocalAddr,
                         VIP_NET_ADDRESS* RemoteAddr) {
  const auto nic = Nic::find(NicHandle);
  const auto local = discriminator_at(LocalAddr);
  const auto remote = RemoteAddr != nullptr ? endpoint_of(*RemoteAddr) : std::nullopt;
  if (nic == nullptr || !local || !remote) return VIP_INVALID_PARAMETER;
  return guarded([&] { return nic->manager().peer_refuse(*local, *remote); });
}

VIP_RETURN VipPeerQuery(VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS* LocalAddr, VIP_ULONG* Waiting,
                        VIP_ULONG* Unauthorized) {
  const auto nic = Nic::find(NicHandle);
  const auto prefix = discriminator_at(LocalAddr);
  if (nic == nullptr || !prefix) return VIP_INVALID_PARAMETER;
  const auto counts = nic->manager().peer_counts(*prefix);
  if (!counts) return VIP_NO_MATCH;
  if (Waiting != nullptr) *Waiting = counts->waiting;
  if (Unauthorized != nullptr) *Unauthorized = counts->unauthorized;
  return VIP_SUCCESS;
}
