// A Virtual Interface: two work queues on a queue pair of the device, and the state machine.
//
// Locks, in this order: the connection manager's; state_mutex_; those of posting, send first; those
// of the queues' completions, by address. The state changes with state_mutex_ held, and to Idle
// with all of them; only from Connected to Error it may change under a lock of completions alone,
// by compare-and-swap. So whoever posts and sees Connected posts to a queue pair that is connected,
// or has failed since and flushes what is posted.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include <vipl.h>

#include "libvipl/connection/connection_user.hpp"
#include "libvipl/core/memory.hpp"
#include "libvipl/core/remote_keys.hpp"
#include "libvipl/core/slot_table.hpp"
#include "libvipl/core/work_queue.hpp"

namespace viaduct::vipl {

class Nic;

class Vi final : public Slot, public ConnectionUser {
 public:
  Vi() : send_(*this, false), receive_(*this, true) {}

  using Table = SlotTable<Vi, HandleKind::vi>;
  static Vi* find(VIP_VI_HANDLE handle) { return Table::find(handle); }  // nullptr: there is none
  static VIP_RETURN create(const std::shared_ptr<Nic>& nic, const VIP_VI_ATTRIBUTES& attributes,
                           VIP_CQ_HANDLE send_cq, VIP_CQ_HANDLE receive_cq, VIP_VI_HANDLE& made);
  static VIP_RETURN destroy(VIP_VI_HANDLE handle);

  // ---- slow functions: each asks whether this is still the VI of the handle ----

  // For functions that take their time: the NIC lives as long as they have it. nullptr: not the VI
  // any more.
  std::shared_ptr<Nic> nic(VIP_VI_HANDLE handle);
  struct Answer {
    VIP_VI_STATE state = VIP_STATE_IDLE;
    VIP_VI_ATTRIBUTES attributes{};
    bool send_empty = true;
    bool receive_empty = true;
  };
  VIP_RETURN query(VIP_VI_HANDLE handle, Answer& answer);
  VIP_RETURN set_attributes(VIP_VI_HANDLE handle, const VIP_VI_ATTRIBUTES& attributes);
  // How many descriptors may be outstanding, and how many segments one may have.
  struct Capacity {
    VIP_ULONG sends = 0, receives = 0, segments = 0;
  };
  VIP_RETURN set_capacity(VIP_VI_HANDLE handle, const Capacity& capacity);
  // The steps of the connection manager's functions, which are taken with its lock held.
  // Idle -> Connect Pending. VIP_INVALID_STATE: it is not idle. VIP_ERROR_RESOURCE: the device has
  // no queue pair left, of which an idle VI has none: they have memory for all descriptors.
  VIP_RETURN begin_pending(VIP_VI_HANDLE handle);
  // Any -> Idle; everything posted completes as flushed, in order, if it has not completed before.
  VIP_RETURN back_to_idle(VIP_VI_HANDLE handle);
  // `nic`, whose VI it was, is closed: in any state.
  void reclaim(const Nic& nic);

  // ---- ConnectionUser: called by the connection manager ----

  Card card() override;
  bool establish(const Card& remote) override;
  void abandoned(bool tries_again) override;
  Tally tally() override;
  void delivered(const Tally& other) override;
  void lost(Loss loss) override;
  void alias(std::uint32_t name, std::uint32_t key) override;

  // ---- for the event thread ----

  // Whether a send may fail, or have failed, in a way that concerns others. Without locks.
  bool may_fail_unseen() const {
    const VIP_VI_STATE state = state_;
    return state == VIP_STATE_CONNECTED ||
           (state == VIP_STATE_ERROR && !cause_known_ && !send_.is_empty());
  }
  // Whether there are sends and nobody has taken one since this was asked last. (Whoever takes them
  // looks for himself, and is not to find the lock taken.) In the error state: whether there are
  // any.
  bool has_unseen_sends() {
    const std::uint64_t taken = send_.taken();
    const bool is_looking = std::exchange(seen_taken_, taken) != taken;
    return !send_.is_empty() && (!is_looking || state_ == VIP_STATE_ERROR);
  }
  // It is connected, and unreliable.
  bool may_need_mending() const { return may_need_mending_; }
  // If sends are with the device: whether it is done with them. An unreliable VI: whether its queue
  // pair has failed, which is mended.
  void take_unseen_completions(const Nic& nic);
  void on_device_event(vi::AsyncEvent::Kind kind);
  // The device no longer does what it should, with all VIs of `nic` or those that complete in
  // `broken`: connections end without its help.
  void device_failed(const Nic& nic, const Completions* broken);

  // For Nic::uses().
  bool uses(const Nic& nic, VIP_MEM_HANDLE memory);

  // ---- data path, see work_queue.hpp ----

  WorkQueue& send_queue() { return send_; }
  WorkQueue& receive_queue() { return receive_; }

  VIP_VI_STATE state() const { return state_.load(std::memory_order_relaxed); }
  // Its connection goes on whatever a descriptor comes to.
  bool survives_errors() const { return !is_reliable() && state() == VIP_STATE_CONNECTED; }
  // The queue pair has failed all the same. Under a lock of completions.
  void needs_mending();
  bool is_reliable() const { return attributes_.ReliabilityLevel != VIP_SERVICE_UNRELIABLE; }
  VIP_RELIABILITY_LEVEL reliability() const { return attributes_.ReliabilityLevel; }
  // nullptr: there is none yet, or any more; then it is not connected.
  vi::QueuePair* queue_pair() { return queue_pair_.get(); }
  // Whether it is the VI of the handle, and not of a process that this one is a child of. With a
  // lock of the VI held.
  bool is_of_this_process(Handle handle) const;
  Handlers& handlers();
  VIP_NIC_HANDLE nic_handle() const;
  // A completion says that the queue pair has failed, and why; if this is the first to say so, the
  // other side hears of it. Under a lock of completions.
  void broken(Loss loss);
  // ... and that somebody else knows why: another completion, the device, or the other side.
  void flushed();
  // ... and that a descriptor here says so; then no asynchronous error does.
  void told();

  // Work may have been posted behind the back of a queue pair that failed: once more.
  void fail_again(Handle vi);

  // cLAN's VipSetUserData.
  std::atomic<VIP_PVOID> user_data{nullptr};

 private:
  class AllLocks;

  VIP_RETURN open(const std::shared_ptr<Nic>& nic, const VIP_VI_ATTRIBUTES& attributes, TagUse tag,
                  Cq* send_cq, Cq* receive_cq, VIP_VI_HANDLE& made);
  bool make_queue_pair();
  bool renew_queue_pair();
  void drop_queue_pair();
  void close();
  void to_idle(bool keep_receives);
  void drain();
  void take_attributes(const VIP_VI_ATTRIBUTES& attributes, TagUse tag);
  void take_capacity(const Capacity& capacity);
  void use_rules();
  VIP_RETURN end(VIP_VI_HANDLE handle);
  bool connected_to_error();
  void mend(const Nic& nic);
  bool first_to_know() { return !cause_known_.exchange(true); }
  bool make_error();
  void report(VIP_ERROR_CODE code);

  std::mutex state_mutex_;
  std::atomic<VIP_VI_STATE> state_{VIP_STATE_IDLE};
  Nic* nic_ = nullptr;
  VIP_VI_ATTRIBUTES attributes_{};
  Capacity capacity_;
  TagUse tag_;
  std::unique_ptr<vi::QueuePair> queue_pair_;
  std::uint32_t psn_ = 0;
  vi::ConnectionPlan plan_;                                           // of this connection
  std::atomic<bool> may_need_mending_{false}, needs_mending_{false};  // it is unreliable; it does
  RemoteKeys remote_keys_;  // under the lock of posting sends
  // Why this connection has ended: the first to know tells whoever has to hear of it, the program
  // by at most one asynchronous error.
  std::atomic<bool> cause_known_{true};
  Calls error_;
  WorkQueue send_;
  WorkQueue receive_;
  std::uint64_t seen_taken_ = 0;  // has_unseen_sends()
};

}  // namespace viaduct::vipl
