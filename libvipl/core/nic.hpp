// Nic: an open NIC (VipOpenNic). It owns the device, the memory, the connection manager, and the
// two threads: one for events of the device and of connections, one for the program's handlers; or,
// if the program drives the NIC itself (own_progress.hpp), none. VIs and CQs belong to it, and
// close() reclaims them.
//
// Shared ownership: a function that takes its time holds a reference, so that VipCloseNic in
// another thread does not destroy the NIC under it. All functions may be called by any thread.
//
// Lock order: see vi.hpp. mutex_ is taken under any of those locks, and no other lock under it.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "drivers/vi_over_verbs/verbs.hpp"
#include "libvipl/connection/manager.hpp"
#include "libvipl/connection/socket/fork.hpp"
#include "libvipl/core/event_thread.hpp"
#include "libvipl/core/handlers.hpp"
#include "libvipl/core/memory.hpp"
#include "libvipl/core/object_table.hpp"
#include "libvipl/core/progress/own_progress.hpp"
#include "libvipl/core/queues/completions.hpp"

namespace viaduct::vipl {

class Cq;
class Vi;

class Nic : public std::enable_shared_from_this<Nic> {
 public:
  // Opens a NIC of its own at each call, and enters it in the table. `name`: as the program wrote
  // it. Throws vi::SetupError or std::runtime_error, each with a sentence for the user.
  static std::shared_ptr<Nic> open(const std::string& name, std::unique_ptr<vi::Device> device,
                                   const NicAddress& address);
  // nullptr: the handle is no open NIC of this process.
  static std::shared_ptr<Nic> find(VIP_NIC_HANDLE handle);
  // VipCloseNic. False: as above.
  static bool close(VIP_NIC_HANDLE handle);

  ~Nic();

  // False in a child of fork(): the NIC is the parent's.
  bool is_ours() const { return forks_ == forks(); }
  VIP_NIC_HANDLE handle() const { return handle_; }
  const VIP_NIC_ATTRIBUTES& attributes() const { return attributes_; }
  // Where all processes of this host that have the device open are reached; manager().self() may
  // have a port of its own.
  const NicAddress& host_address() const { return host_address_; }
  vi::Device& device() { return *device_; }
  Memory& memory() { return memory_; }
  Manager& manager() { return manager_; }
  Handlers& handlers() { return handlers_; }

  // How the Wait functions wait: how long they spin (VIADUCT_VIPL_SPIN), and what they do then.
  WaitPolicy wait_policy() const { return {spin_time_, own_ ? &drive_ : nullptr}; }
  // The traffic class byte in the IP headers of data packets.
  std::uint8_t traffic_class() const { return traffic_class_; }

  // Whether the device has work of any VI that uses this region. The caller must hold no lock of a
  // VI.
  bool uses(VIP_MEM_HANDLE memory);

  bool is_driven_by_program() const { return own_.has_value(); }
  // VipNicOwnProgress: ends the two threads. VIP_INVALID_STATE: the NIC is in use already.
  VIP_RETURN drive_by_program(bool own_port);
  // VipNicProgress, -Arm, -Descriptor. VIP_INVALID_STATE: the NIC's threads drive it.
  VIP_RETURN progress();
  VIP_RETURN arm(std::span<const VIP_CQ_HANDLE> cqs);
  VIP_RETURN descriptor(int& fd) const;
  // The program's next progress is to look at once; no effect if it does not drive the NIC.
  void hurry() {
    if (own_) own_->hurry();
  }

  // A VI has been connected: from now on the event thread looks at its send queue from time to
  // time, see take_unseen_completions().
  void poll_sends_periodically();
  // The same at once: a queue pair has failed, and the program may be looking at another queue.
  void poll_sends_now();

  // What belongs to the NIC. add() returns false when the NIC is being closed. Any lock may be
  // held.
  bool add(Vi& vi);
  void remove(Vi& vi);
  bool add(Cq& cq);
  void remove(Cq& cq);

 private:
  Nic(const std::string& name, std::unique_ptr<vi::Device> device, const NicAddress& address);
  // Gives the NIC its handle and starts the event thread.
  void start(VIP_NIC_HANDLE handle);
  void watch_events(bool threaded);
  // The whole of close(), after the handle has been removed.
  void end();
  // Causes a turn of the event thread soon, or a look of the program. Any lock may be held.
  void wake();
  // Does all that is ready and due, for the program.
  OwnProgress::Found look();
  // The event thread's functions.
  void take_completion_events();
  void take_async_events();
  Deadline take_unseen_completions();
  // The VIs whose send queue the event thread should poll. `any_connected`: whether it should look
  // again later.
  std::vector<Vi*> vis_with_sends(bool& any_connected);
  std::vector<Vi*> vis();
  // The device no longer works, for the VIs that complete in `broken`, or for all (nullptr).
  void end_connections(const Completions* broken);
  void report_device_error(VIP_RESOURCE_CODE resource);

  const unsigned forks_ = forks();
  const NicAddress host_address_;
  std::array<VIP_UINT8, NicAddress::kBytes> address_bytes_;
  VIP_NIC_ATTRIBUTES attributes_{};
  std::unique_ptr<vi::Device> device_;
  VIP_NIC_HANDLE handle_ = nullptr;
  Memory memory_;
  Handlers handlers_;
  Manager manager_;
  std::mutex mutex_;  // for the next three
  bool ended_ = false;
  std::unordered_set<Vi*> vis_;
  std::unordered_set<Cq*> cqs_;
  // For the event thread: there may be VIs whose sends it must poll; poll without waiting for
  // next_poll_.
  std::atomic<bool> some_connected_{false}, poll_now_{false};
  Clock::time_point next_poll_;  // the event thread's
  const bool prints_drops_;      // VIADUCT_VIPL_STATS
  const std::chrono::nanoseconds spin_time_;
  const std::uint8_t traffic_class_;
  const Drive drive_ = [this](Deadline deadline) { own_->sleep(deadline); };
  std::optional<EventThread> events_;  // its thread uses all of the above
  std::optional<OwnProgress> own_;     // if the program drives the NIC; then events_ has stopped
};

}  // namespace viaduct::vipl
