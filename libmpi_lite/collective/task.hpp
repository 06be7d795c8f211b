// Coroutines that wait for messages. An algorithm is written as if it could block:
//
//   Task ring(Collective& op, ...) {
//     Pending pending(op);
//     pending.add(receive(...));
//     pending.add(send(...));
//     co_await pending;         // both have completed
//     co_await other_stage(op);  // another Task
//   }
//
// While a task of a nonblocking collective waits, it is suspended, and the thread does something
// else: the program's own work, or progress(), which continues the task (continue_collectives()).
// A task of a blocking call (class BlockingCall) is never suspended: the wait is a loop around
// progress() inside the co_await, which costs less.
//
// Ownership: a Task owns its coroutine frame, and the frame of the task that awaits it owns the
// Task. The outermost Task is in the Collective, which keeps itself alive until the end. So
// parameters of a coroutine that are references must refer to something of an outer frame.
//
// Threads: one thread at a time is in the library. Tasks are resumed only by start() and
// continue_collectives(), never from inside a channel's poll. While the task of a blocking call
// waits, progress() may continue tasks of others, none of which waits in turn.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

#include "libmpi_lite/collective/pool.hpp"
#include "libmpi_lite/core/request.hpp"

namespace viaduct::mpi {

class Collective;

// A coroutine that starts when it is awaited (or by start()), and resumes the awaiting task when it
// ends, both by symmetric transfer. An exception in it is rethrown at the co_await.
class [[nodiscard]] Task {
 public:
  struct promise_type : Pooled {
    std::coroutine_handle<> waiting = std::noop_coroutine();  // the task that waits for this one
    std::exception_ptr error;

    Task get_return_object() {
      return Task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept {
      struct Return {
        bool await_ready() noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> ended) noexcept {
          return ended.promise().waiting;
        }
        void await_resume() noexcept {}
      };
      return Return{};
    }
    void return_void() {}
    void unhandled_exception() { error = std::current_exception(); }
  };

  Task() = default;
  Task(Task&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(frame_, other.frame_);
    return *this;
  }
  ~Task() {
    if (frame_) frame_.destroy();
  }

  // For the outermost task only: runs it up to its first wait for something that is not there yet.
  void start() { frame_.resume(); }
  bool done() const { return frame_.done(); }
  // The exception that ended the task; nullptr if there was none.
  const std::exception_ptr& error() const { return frame_.promise().error; }

  auto operator co_await() const noexcept {
    struct Wait {
      std::coroutine_handle<promise_type> inner;
      bool await_ready() noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<> outer) noexcept {
        inner.promise().waiting = outer;
        return inner;
      }
      void await_resume() {
        if (inner.promise().error) std::rethrow_exception(inner.promise().error);
      }
    };
    return Wait{frame_};
  }

 private:
  explicit Task(std::coroutine_handle<promise_type> frame) : frame_(frame) {}
  std::coroutine_handle<promise_type> frame_;
};

// Messages under way that a task waits for together. Can be used again after each wait. When a
// message fails, the error is noted in the Collective, and the algorithm goes on: other ranks still
// wait for its messages, or for loss notices in their place.
//
// A Pending lives in a coroutine frame. Messages that are complete when they are added, as short
// sends are, get checked at once and are not kept. The others are linked by Request::next, and the
// list has a hold on each.
class Pending {
 public:
  explicit Pending(Collective& collective) : collective_(collective) {}
  ~Pending() {
    if (first_) release();
  }
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;

  void add(Ref<Request> request);
  // Cancels the messages that have not matched; those that have matched go on.
  void cancel();
  Pending* next_of_collective() const { return older_; }
  // Calls visit(request) for each message, in the order of add().
  template <class Visit>
  void for_each(Visit visit) const {
    for (Request* r = first_; r; r = r->next) visit(*r);
  }

  auto operator co_await() noexcept {
    struct Wait {
      Pending& pending;
      bool await_ready() {
        return !pending.first_ || pending.all_complete() || pending.waits_in_place();
      }
      void await_suspend(std::coroutine_handle<> task) { pending.suspend(task); }
      void await_resume() {
        if (pending.first_) pending.collect();
      }
    };
    return Wait{*this};
  }

 private:
  friend bool continue_collectives();
  bool all_complete() const;
  bool waits_in_place();  // if the call blocks: waits for all messages, and returns true
  void suspend(std::coroutine_handle<> task);
  void collect();                                          // checks and releases all messages
  static void completed(Request& request, void* pending);  // Request::on_complete
  void release();                                          // all messages
  void unlist();                                           // from Collective::pendings_

  Collective& collective_;
  Request* first_ = nullptr;      // list of the messages
  Request** last_ = &first_;      // the link that the next one goes into
  std::size_t open_ = 0;          // how many of them the suspended task still waits for
  std::coroutine_handle<> task_;  // the suspended task
  Pending* next_ = nullptr;       // in the list of tasks that are ready to continue
  // Link in Collective::pendings_, the list of those that have requests. Many never have any, as
  // their messages are complete at once.
  Pending* older_ = nullptr;
};

// Resumes the tasks whose messages have completed. Returns whether there were any.
bool continue_collectives();

}  // namespace viaduct::mpi
