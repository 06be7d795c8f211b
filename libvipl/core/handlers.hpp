// The thread that runs the program's handlers: those of the Notify functions and of
// VipErrorCallback, one at a time and in the order of what they tell. The library holds no lock
// meanwhile, so handlers may call any function, VipCloseNic included.
#pragma once

#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <variant>

#include <vipl.h>

namespace viaduct::vipl {

struct QueueCall {
  VIP_PVOID context;
  VIP_VI_CALLBACK handler;
  VIP_NIC_HANDLE nic;
  VIP_VI_HANDLE vi;
  VIP_DESCRIPTOR* descriptor;  // filled in when it is known
};
struct CqCall {
  VIP_PVOID context;
  VIP_CQ_CALLBACK handler;
  VIP_NIC_HANDLE nic;
  VIP_CQ_HANDLE cq;
  VIP_VI_HANDLE vi;     // filled in when it is known...
  VIP_BOOLEAN receive;  // ... likewise
};
using ErrorCall = VIP_ERROR_DESCRIPTOR;
using Call = std::variant<ErrorCall, QueueCall, CqCall>;
// A node of it is allocated when a handler is registered, and only moved when it is due.
using Calls = std::list<Call>;

class Handlers {
 public:
  Handlers();
  ~Handlers() { stop(); }
  Handlers(const Handlers&) = delete;
  Handlers& operator=(const Handlers&) = delete;

  void set_error_handler(VIP_PVOID context, VIP_ERROR_HANDLER handler);
  // The first of `from` is due. Any lock may be held, like for what follows; allocates nothing.
  void run_first(Calls& from);
  // The queues of this VI, or this CQ, are gone: their handlers are not called any more. One that
  // the thread has taken is not waited for: the program may hold a lock that it needs.
  void forget_queue(VIP_VI_HANDLE vi);
  void forget_cq(VIP_CQ_HANDLE cq);
  // No handler is called any more, now and later. Waits for one that is running, unless it is the
  // one that calls. No lock may be held.
  void stop();

 private:
  struct State;
  template <class Chosen>
  void drop(Chosen chosen);
  static void serve(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;  // the thread's too
  std::thread thread_;
};

}  // namespace viaduct::vipl
