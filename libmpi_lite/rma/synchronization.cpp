// Epochs (MPI 5.0, section 12.5): when operations may go, and when they are done.
//
// Access epochs of a process, which exclude each other:
//
//            fence()                     start_epoch()                lock(), lock_all()
//   none ------------> fence_open_   none -----------> access_    none ---------> locked_,
//   lock_all_
//            fence(), with              complete()                    unlock(), unlock_all()
//            MPI_MODE_NOSUCCEED
//
// A fence may also end an epoch that no operation has used when another kind of epoch begins.
// Functions that wait end when a process that they wait for is lost, with an error.
#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "libmpi_lite/collective/collective.hpp"
#include "libmpi_lite/core/error.hpp"
#include "libmpi_lite/rma/window.hpp"
#include "libmpi_lite/transfer/engine.hpp"

namespace viaduct::mpi {
namespace {

template <class Done>
void wait_for(Done done) {
  if (!done()) wait_until(done, kAnyOfSeveral);
}

[[noreturn]] void fail_epoch(const std::string& what) {
  throw Error(MPI_ERR_RMA_SYNC, what);
}

}  // namespace

// ---- errors ------------------------------------------------------------------------------------

void Window::throw_error(int rank, int error) const {
  if (error == MPI_ERR_PROC_ABORTED)
    throw Error(error, "rank " + std::to_string(rank) +
                           " of the window: " + Transfer::self().loss_text(process(rank)));
  throw Error(error, "an operation named memory of rank " + std::to_string(rank) +
                         " that is not attached to the window there");
}

void Window::throw_errors(std::span<const int> ranks) {
  int failed = -1, first = MPI_SUCCESS;
  for (const int rank : ranks) {
    const int error = std::exchange(target(rank).error, MPI_SUCCESS);
    if (error == MPI_SUCCESS || failed >= 0) continue;
    failed = rank;
    first = error;
  }
  if (failed >= 0) throw_error(failed, first);
}

void Window::check_epoch(int rank, bool passive) {
  const Target& t = target(rank);
  if (lock_all_ || t.lock != LockState::none) return;
  if (!passive && t.access) return;
  if (!passive && fence_open_) {
    fence_used_ = true;
    return;
  }
  fail_epoch("there is no epoch for rank " + std::to_string(rank) +
             (passive ? " that a lock has opened, as operations with requests need" : ""));
}

void Window::check_no_access(const char* function) const {
  const char* open = nullptr;
  if (access_) open = "MPI_Win_start";
  if (locked_ > 0) open = "MPI_Win_lock";
  if (lock_all_) open = "MPI_Win_lock_all";
  if (fence_used_) open = "MPI_Win_fence, with operations in it";
  if (open) fail_epoch(std::string(function) + " in an epoch of " + open);
}

void Window::check_locked(int rank, const char* function) const {
  if (!lock_all_ && target(rank).lock == LockState::none)
    fail_epoch(std::string(function) + " without a lock of rank " + std::to_string(rank));
}

void Window::check_locked_all(const char* function) const {
  if (!lock_all_ && locked_ == 0) fail_epoch(std::string(function) + " without a lock");
}

bool Window::closed() const {
  return !access_ && !exposed_ && locked_ == 0 && !lock_all_ && !fence_used_;
}

// ---- waiting for operations --------------------------------------------------------------------

// Operations have gone, and with them the lock or the post that they wait for has come.
void Window::drain(std::span<const int> ranks) {
  for (const int rank : ranks) {
    const Target& t = target(rank);
    wait_for([&] { return t.lost || (t.waiting.empty() && t.lock != LockState::asked); });
  }
}

void Window::finish_locally(std::span<const int> ranks) {
  for (const int rank : ranks) {
    const Target& t = target(rank);
    wait_for([&] { return t.lost || t.locally_complete(); });
  }
}

void Window::finish(std::span<const int> ranks) {
  for (const int rank : ranks) {
    const Target& t = target(rank);
    wait_for([&] { return t.lost || t.complete(); });
  }
}

// All that has gone to that rank must have gone before. Asks for an answer if there is something
// that it can tell.
void Window::ask_flush(int rank, bool unlocks) {
  Target& t = target(rank);
  if (t.unflushed > 0) t.flushed_alone = t.unflushed == 1;
  t.unflushed = 0;
  if (t.lost || (!t.dirty && !unlocks)) return;
  RmaHead h = head(unlocks ? RmaAction::unlock : RmaAction::flush);
  h.flag = t.dirty ? 1 : 0;
  if (t.dirty) h.id = ++t.flush_sent;
  t.dirty = false;
  send(rank, h);
}

void Window::flush_ranks(std::span<const int> ranks) {
  progress();
  drain(ranks);
  for (const int rank : ranks) ask_flush(rank, false);
  finish(ranks);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  throw_errors(ranks);
}

// Operations that have acted on shared memory are done but for the order of the CPU's stores and
// later loads.
void Window::fence_stores() {
  if (std::exchange(unfenced_, false)) std::atomic_thread_fence(std::memory_order_seq_cst);
}

void Window::flush(int rank) {
  check_locked(rank, "MPI_Win_flush");
  Target& t = target(rank);
  if (!t.settled()) return flush_ranks({&rank, 1});
  poll_now_and_then();
  fence_stores();
}

void Window::flush_all() {
  check_locked_all("MPI_Win_flush_all");
  flush_ranks(all_ranks_);
}

void Window::flush_local(int rank) {
  check_locked(rank, "MPI_Win_flush_local");
  if (target(rank).settled()) return poll_now_and_then();
  progress();
  finish_locally({&rank, 1});
  throw_errors({&rank, 1});
}

void Window::flush_local_all() {
  check_locked_all("MPI_Win_flush_local_all");
  progress();
  finish_locally(all_ranks_);
  throw_errors(all_ranks_);
}

// The memory model is MPI_WIN_UNIFIED: a barrier for the CPU, and progress.
void Window::sync() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  progress();
}

// ---- fences ------------------------------------------------------------------------------------

// The barrier comes even if an operation has failed here, as the others wait in it.
void Window::fence(int assertion) {
  if (exposed_) fail_epoch("MPI_Win_fence in an epoch of MPI_Win_post");
  fence_used_ = false;
  check_no_access("MPI_Win_fence");
  const bool first = assertion & MPI_MODE_NOPRECEDE, last = assertion & MPI_MODE_NOSUCCEED;
  fence_open_ = false;
  std::optional<Error> failed;
  if (!first) {
    fence_open_ = true;  // what has not gone yet may go
    try {
      flush_ranks(all_ranks_);
    } catch (const Error& e) {
      failed = e;
    }
    fence_open_ = false;
  }
  if (!first || !last) finish_collective(*start_barrier(*comm_));
  std::atomic_thread_fence(std::memory_order_seq_cst);
  fence_open_ = !last;
  if (failed) throw *failed;
}

// ---- start and post ----------------------------------------------------------------------------

void Window::start_epoch(const Group& group, int assertion) {
  check_no_access("MPI_Win_start");
  progress();
  fence_open_ = false;
  access_ = true;
  for (const int world_rank : group.world_ranks()) {
    const int rank = comm_->group()->rank_of(world_rank);
    Target& t = target(rank);
    access_ranks_.push_back(rank);
    t.access = true;
    // With MPI_MODE_NOCHECK the post has been called already, and sends no message.
    t.open = (assertion & MPI_MODE_NOCHECK) || t.posts > 0;
    if (t.open && !(assertion & MPI_MODE_NOCHECK)) --t.posts;
  }
}

// Waits for the posts, as operations could not go before; then only until the origin's buffers are
// free. The targets wait for the operations themselves.
void Window::complete() {
  if (!access_) fail_epoch("MPI_Win_complete without MPI_Win_start");
  progress();
  for (const int rank : access_ranks_) {
    const Target& t = target(rank);
    wait_for([&] { return t.lost || (t.open && t.waiting.empty()); });
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (!t.lost) send(rank, head(RmaAction::complete));
  }
  finish_locally(access_ranks_);
  const std::vector<int> ranks = std::exchange(access_ranks_, {});
  for (const int rank : ranks) {
    Target& t = target(rank);
    t.access = t.open = t.flushed_alone = false;
    if (t.lost) t.error = MPI_ERR_PROC_ABORTED;
  }
  access_ = false;
  throw_errors(ranks);
}

void Window::post(const Group& group, int assertion) {
  if (exposed_) fail_epoch("MPI_Win_post in an epoch of MPI_Win_post");
  if (fence_used_) fail_epoch("MPI_Win_post in an epoch of MPI_Win_fence, with operations in it");
  std::atomic_thread_fence(std::memory_order_seq_cst);
  fence_open_ = false;
  exposed_ = true;
  for (const int world_rank : group.world_ranks()) {
    const int rank = comm_->group()->rank_of(world_rank);
    exposure_ranks_.push_back(rank);
    if (!(assertion & MPI_MODE_NOCHECK)) send(rank, head(RmaAction::post));
  }
  progress();
}

bool Window::exposure_done() const {
  return std::ranges::all_of(exposure_ranks_, [&](int rank) {
    return target(rank).lost || origins_[static_cast<std::size_t>(rank)].completes > 0;
  });
}

void Window::end_exposure() {
  const std::vector<int> ranks = std::exchange(exposure_ranks_, {});
  exposed_ = false;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  int lost = -1;
  for (const int rank : ranks) {
    if (origin(rank).completes > 0)
      --origin(rank).completes;
    else
      lost = rank;
  }
  if (lost >= 0) throw_error(lost, MPI_ERR_PROC_ABORTED);
}

void Window::wait_exposure() {
  if (!exposed_) fail_epoch("MPI_Win_wait without MPI_Win_post");
  progress();
  wait_for([&] { return exposure_done(); });
  end_exposure();
}

bool Window::test_exposure() {
  if (!exposed_) fail_epoch("MPI_Win_test without MPI_Win_post");
  progress();
  if (!exposure_done()) return false;
  end_exposure();
  return true;
}

// ---- locks -------------------------------------------------------------------------------------

void Window::ask_lock(int rank, bool exclusive, bool no_check) {
  Target& t = target(rank);
  t.lock = no_check ? LockState::unchecked : LockState::asked;
  t.open = no_check;
  if (no_check) return;
  RmaHead h = head(RmaAction::lock);
  h.flag = exclusive ? 1 : 0;
  send(rank, h);
}

// Where the program may load and store in the target's memory itself, the lock has to be there when
// the call returns. Elsewhere operations wait for it.
void Window::lock(int rank, bool exclusive, bool no_check) {
  Target& t = target(rank);
  if (t.lock == LockState::none && t.lost) throw_error(rank, MPI_ERR_PROC_ABORTED);
  if (access_ || lock_all_ || fence_used_) check_no_access("MPI_Win_lock");
  if (t.lock != LockState::none)
    fail_epoch("rank " + std::to_string(rank) + " has been locked already");
  fence_open_ = false;
  ask_lock(rank, exclusive, no_check);
  ++locked_;
  progress();
  if (!t.memory) return;
  drain({&rank, 1});
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void Window::lock_all(bool no_check) {
  check_no_access("MPI_Win_lock_all");
  fence_open_ = false;
  lock_all_ = true;
  lock_all_unchecked_ = no_check;
  for (const int rank : all_ranks_)
    if (target(rank).memory && !target(rank).lost) ask_lock(rank, false, no_check);
  drain(all_ranks_);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  progress();
}

void Window::unlock_ranks(std::span<const int> ranks) {
  progress();
  drain(ranks);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (const int rank : ranks) ask_flush(rank, target(rank).lock == LockState::held);
  finish(ranks);
  for (const int rank : ranks) {
    Target& t = target(rank);
    t.lock = LockState::none;
    t.open = false;
  }
}

void Window::unlock(int rank) {
  if (lock_all_) fail_epoch("MPI_Win_unlock in an epoch of MPI_Win_lock_all");
  check_locked(rank, "MPI_Win_unlock");
  unlock_ranks({&rank, 1});
  --locked_;
  throw_errors({&rank, 1});
}

void Window::unlock_all() {
  if (!lock_all_) fail_epoch("MPI_Win_unlock_all without MPI_Win_lock_all");
  unlock_ranks(all_ranks_);
  lock_all_ = false;
  throw_errors(all_ranks_);
}

}  // namespace viaduct::mpi
