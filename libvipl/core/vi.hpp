// Vi: a Virtual Interface (VI Architecture, VIPL 1.0). It is two work queues on a queue pair of the
// device, and the state machine of its connection.
//
// Objects live in a SlotTable and are used again, never freed. A VI has a queue pair only from the
// moment it is to be connected, because queue pairs have memory for all their descriptors.
//
// Threads: functions that a program calls may be called by any thread; each asks, under a lock,
// whether the object still has the program's handle. The connection manager calls the
// ConnectionUser functions; the event thread calls those marked so.
//
// Lock order: the connection manager's; state_mutex_; the locks of posting, send before receive;
// the mutexes of the queues' Completions, by address. AllLocks takes all but the first. The state
// changes with state_mutex_ held, and to Idle with all of them. Only from Connected to Error it may
// change under a Completions mutex alone, by compare-and-swap. So a thread that posts and sees
// Connected posts to a queue pair that is connected, or has failed meanwhile and flushes what is
// posted.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include <vipl.h>

#include "libvipl/connection/connection_user.hpp"
#include "libvipl/core/memory.hpp"
#include "libvipl/core/queues/work_queue.hpp"
#include "libvipl/core/remote_keys.hpp"
#include "libvipl/core/slot_table.hpp"

namespace viaduct::vipl {

class Nic;

class Vi final : public Slot, public ConnectionUser {
 public:
  Vi() : send_(*this, false), receive_(*this, true) {}

  using Table = SlotTable<Vi, HandleKind::vi>;
  static Vi* find(VIP_VI_HANDLE handle) { return Table::find(handle); }  // nullptr: there is none
  // VipCreateVi. The return codes here are those of the VIPL function.
  static VIP_RETURN create(const std::shared_ptr<Nic>& nic, const VIP_VI_ATTRIBUTES& attributes,
                           VIP_CQ_HANDLE send_cq, VIP_CQ_HANDLE receive_cq, VIP_VI_HANDLE& made);
  // VipDestroyVi. Calls the connection manager, so the caller must hold no lock of the VI.
  static VIP_RETURN destroy(VIP_VI_HANDLE handle);

  // ---- slow functions: each asks whether this is still the VI of the handle ----

  // The VI's NIC, which then lives as long as the caller needs it. nullptr: the object no longer
  // has this handle.
  std::shared_ptr<Nic> nic(VIP_VI_HANDLE handle);
  struct Answer {
    VIP_VI_STATE state = VIP_STATE_IDLE;
    VIP_VI_ATTRIBUTES attributes{};
    bool send_empty = true;
    bool receive_empty = true;
  };
  // VipQueryVi, VipSetViAttributes.
  VIP_RETURN query(VIP_VI_HANDLE handle, Answer& answer);
  VIP_RETURN set_attributes(VIP_VI_HANDLE handle, const VIP_VI_ATTRIBUTES& attributes);
  // VipSetViCapacity: how many descriptors each queue may have outstanding (posted and not
  // dequeued), and how many segments a descriptor may have.
  struct Capacity {
    VIP_ULONG sends = 0, receives = 0, segments = 0;
  };
  VIP_RETURN set_capacity(VIP_VI_HANDLE handle, const Capacity& capacity);
  // Steps of the connection manager's functions, called with its lock held.
  //
  // Idle to Connect Pending; makes the queue pair. VIP_INVALID_STATE: the VI is not Idle.
  // VIP_ERROR_RESOURCE: the device has no queue pair or completion queue left. `put_off`:
  // make_ready() makes the queue pair.
  VIP_RETURN begin_pending(VIP_VI_HANDLE handle, bool put_off = false);
  // VipDisconnect: any state to Idle. Everything that is posted and has not completed completes as
  // flushed, in order.
  VIP_RETURN back_to_idle(VIP_VI_HANDLE handle);
  // `nic` is closed: ends the VI in any state, if it is still a VI of `nic`.
  void reclaim(const Nic& nic);

  // ---- ConnectionUser: called by the connection manager ----

  VIP_VI_HANDLE name() const override { return program_handle(); }
  bool make_ready() override;
  EndpointInfo card() override;
  bool establish(const EndpointInfo& remote) override;
  void on_attempt_failed(bool tries_again) override;
  Tally tally() override;
  void delivered(const Tally& other) override;
  void on_connection_lost(CloseReason reason) override;
  void alias(std::uint32_t name, std::uint32_t key) override;

  // ---- for the event thread ----

  // Whether a send may have failed in a way that the other side must hear of. Reads without a lock,
  // so the answer is a hint.
  bool may_fail_unseen() const {
    const VIP_VI_STATE state = state_;
    return state == VIP_STATE_CONNECTED ||
           (state == VIP_STATE_ERROR && !cause_known_ && !send_.is_empty());
  }
  // Whether there are sends, and the program has taken none since the last call. A program that
  // takes them polls the queue itself, and should not find the lock taken by the event thread. In
  // the state Error: whether there are any.
  bool has_unseen_sends() {
    const std::uint64_t taken = send_.taken();
    const bool is_looking = std::exchange(seen_taken_, taken) != taken;
    return !send_.is_empty() && (!is_looking || state_ == VIP_STATE_ERROR);
  }
  // Whether its latest connection is, or was, unreliable; recover() asks whether it still exists.
  bool may_need_recovery() const { return may_need_recovery_; }
  // Polls the send queue if the device has sends. An unreliable VI: repairs the queue pair if it
  // has failed.
  void take_unseen_completions(const Nic& nic);
  // The device has reported an asynchronous event for the queue pair.
  void on_device_event(vi::AsyncEvent::Kind kind);
  // The device no longer works, for all VIs of `nic`, or for those that complete in `broken`:
  // the connection ends without its help.
  void device_failed(const Nic& nic, const Completions* broken);

  // Whether the device has work of this VI that uses the region. Takes all locks.
  bool uses(const Nic& nic, VIP_MEM_HANDLE memory);

  // ---- data path, see work_queue.hpp ----

  WorkQueue& send_queue() { return send_; }
  WorkQueue& receive_queue() { return receive_; }

  VIP_VI_STATE state() const { return state_.load(std::memory_order_relaxed); }
  // Whether it is an unreliable VI that is connected: an error of a descriptor does not end its
  // connection.
  bool survives_errors() const { return !is_reliable() && state() == VIP_STATE_CONNECTED; }
  // ... but the queue pair has failed all the same, and must be reset and connected again. Under a
  // Completions mutex.
  void request_recovery();
  bool is_reliable() const { return attributes_.ReliabilityLevel != VIP_SERVICE_UNRELIABLE; }
  VIP_RELIABILITY_LEVEL reliability() const { return attributes_.ReliabilityLevel; }
  // nullptr while there is none; then the VI is not connected.
  vi::QueuePair* queue_pair() { return queue_pair_.get(); }
  // Whether the object has this handle and is not that of a parent process. Under a lock of the VI.
  bool is_of_this_process(Handle handle) const;
  Handlers& handlers();
  VIP_NIC_HANDLE nic_handle() const;
  // A completion says that the queue pair has failed, and why. The first caller to know the reason
  // tells the other side. These three are called under a Completions mutex.
  void on_failed(CloseReason reason);
  // A completion says only that the queue pair has failed; the reason comes from another
  // completion, from the device, or from the other side.
  void on_flushed();
  // A descriptor of this side says why the queue pair has failed; so no asynchronous error follows.
  void on_cause_reported();

  // Makes the queue pair fail once more: work may have been posted after it had flushed its queues.
  void fail_again(Handle vi);

  // cLAN's VipSetUserData. The library does not look at it.
  std::atomic<VIP_PVOID> user_data{nullptr};

 private:
  class AllLocks;

  // The rest of create(), for an object that no other thread knows yet.
  VIP_RETURN open(const std::shared_ptr<Nic>& nic, const VIP_VI_ATTRIBUTES& attributes, TagUse tag,
                  Cq* send_cq, Cq* receive_cq, VIP_VI_HANDLE& made);
  // For the next connection: completion queues and a queue pair, in which posted receives wait.
  // False: the device has none left.
  bool make_queue_pair();
  // Resets the queue pair and prepares it as make_queue_pair() does, without its receives. False:
  // it cannot be reset.
  bool renew_queue_pair();
  // Destroys the queue pair, after taking the completions that it has left in the queues.
  void drop_queue_pair();
  // Ends this use of the object: nothing of it is known to the device or to other threads
  // afterwards. With all locks held.
  void close();
  // The end of a connection or of an attempt. `keep_receives`: an attempt has failed, so receives
  // stay posted for the next one.
  void to_idle(bool keep_receives);
  // Takes all completions of both queues.
  void drain();
  void take_attributes(const VIP_VI_ATTRIBUTES& attributes, TagUse tag);
  void take_capacity(const Capacity& capacity);
  // Tells both queues what descriptors may do.
  void update_rules();
  // destroy() with the manager's lock held.
  VIP_RETURN end(VIP_VI_HANDLE handle);
  // Connected to Error; the queue pair flushes. False: it was not Connected.
  bool connected_to_error();
  // Unreliable VIs: makes a failed queue pair work again, without a word to the other side.
  void recover(const Nic& nic);
  // True for the first caller in each connection.
  bool first_to_know() { return !cause_known_.exchange(true); }
  // Allocates the asynchronous error that this connection may need. False: no memory.
  bool make_error();
  // Reports an asynchronous error of this VI to the program; on reliable VIs only.
  void report(VIP_ERROR_CODE code);

  std::mutex state_mutex_;
  // The state machine of VIPL. It begins and can be destroyed in Idle.
  //
  //                 begin_pending()               establish()
  //      +--------+ ------------> +---------+ ----------------> +-----------+
  //      |  Idle  |               | Connect |                   | Connected |
  //      +--------+ <------------ | Pending | <---------------- +-----------+
  //        ^    ^   on_attempt_   +---------+ on_attempt_       |       |
  //        |    |   failed(false)               failed(true)      |       |
  //        |    +-------------------------------------------------+       |
  //        |         on_attempt_failed(false): the other side             |
  //        |         did not finish                                       |
  //        |                                                              |
  //        |                      +---------+   connected_to_error():     |
  //        |                      |  Error  | <---------------------------+
  //        |                      +---------+   a descriptor failed, the device failed, or the
  //        |  back_to_idle(), from     |        other side disconnected or is gone
  //        |  every state              |
  //        +---------------------------+
  //
  // on_attempt_failed() may also find Error, if the queue pair failed before the other side was
  // ready.
  std::atomic<VIP_VI_STATE> state_{VIP_STATE_IDLE};
  Nic* nic_ = nullptr;  // nullptr while the object is not in use
  VIP_VI_ATTRIBUTES attributes_{};
  Capacity capacity_;  // of the next connection, or the present one
  TagUse tag_;
  std::unique_ptr<vi::QueuePair> queue_pair_;
  std::uint32_t psn_ = 0;       // first packet sequence number, as in the last card()
  vi::ConnectAttributes plan_;  // of this connection
  // Of this connection: it is unreliable; its queue pair has failed.
  std::atomic<bool> may_need_recovery_{false}, needs_recovery_{false};
  RemoteKeys remote_keys_;  // under the lock of posting sends
  // Whether it is known why this connection has ended, or there is none. The caller that sets it
  // tells the other side and the program; the program gets at most one asynchronous error.
  std::atomic<bool> cause_known_{true};
  Calls error_;  // room for one asynchronous error, so that report() allocates nothing
  WorkQueue send_;
  WorkQueue receive_;
  std::uint64_t seen_taken_ = 0;  // send_.taken() at the last has_unseen_sends()
};

}  // namespace viaduct::vipl
