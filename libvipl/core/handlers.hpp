// Handlers: the thread of an open NIC that runs the program's handlers, those of the Notify
// functions and of VipErrorCallback. It runs one at a time, in the order in which they became due.
// The library holds no lock meanwhile, so a handler may call any function, VipCloseNic included.
//
// Owned by Nic. The thread shares the state, because it may outlive this object: a handler that
// closes its NIC destroys it.
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <variant>

#include <vipl.h>

namespace viaduct::vipl {

// A handler of VipSendNotify or VipRecvNotify.
struct QueueCall {
  VIP_PVOID context;
  VIP_VI_CALLBACK handler;
  VIP_NIC_HANDLE nic;
  VIP_VI_HANDLE vi;
  VIP_DESCRIPTOR* descriptor;  // filled in when one has completed
};
// A handler of VipCQNotify.
struct CqCall {
  VIP_PVOID context;
  VIP_CQ_CALLBACK handler;
  VIP_NIC_HANDLE nic;
  VIP_CQ_HANDLE cq;
  VIP_VI_HANDLE vi;     // filled in when it is known...
  VIP_BOOLEAN receive;  // the same
};
// An asynchronous error; the handler is looked up when the call is made.
using ErrorCall = VIP_ERROR_DESCRIPTOR;
using Call = std::variant<ErrorCall, QueueCall, CqCall>;
// A list, because its nodes can be moved without an allocation: a node is allocated when the
// handler is registered, and spliced into the queue of due calls under locks of the data path.
// (Not a boost::lockfree::queue: calls are dropped from the middle, and a sleeping thread runs a
// call 22 us after it is due with either.)
using Calls = std::list<Call>;

class Handlers {
 public:
  Handlers();
  ~Handlers() { stop(); }
  Handlers(const Handlers&) = delete;
  Handlers& operator=(const Handlers&) = delete;

  // VipErrorCallback. NULL: errors are printed on standard error again.
  void set_error_handler(VIP_PVOID context, VIP_ERROR_HANDLER handler);
  // Moves the first call of `from` to the queue of due calls. Allocates nothing; any lock may be
  // held, here and in the forget functions.
  void run_first(Calls& from);
  // The VI's queues, or the CQ, are gone: their due handlers are dropped. A handler that the thread
  // has already taken is not waited for, because the calling program may hold a lock that the
  // handler needs.
  void forget_queue(VIP_VI_HANDLE vi);
  void forget_cq(VIP_CQ_HANDLE cq);
  // The thread ends. From now on handlers run in run_due(), which the program's progress calls, and
  // nowhere else; `on_due`, which must not throw, is called whenever one has become due, perhaps
  // with locks held. For a NIC that its program drives.
  void run_by_program(std::function<void()> on_due);
  // Calls the handlers that are due, if run_by_program() was called. False: there was none. The
  // caller must hold no lock.
  bool run_due();
  // No handler begins from now on. Waits for one that is running, unless it is the calling one. The
  // caller must hold no lock.
  void stop();

 private:
  struct State;
  template <class Chosen>
  void drop(Chosen chosen);
  void end_thread();
  static void serve(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;  // the thread's too
  std::thread thread_;
};

}  // namespace viaduct::vipl
