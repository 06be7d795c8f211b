// Windows and one-sided communication (MPI 5.0, chapter 12): the interface of rma/ for api/ and
// runtime/. docs/mpi.md, "One-sided communication", tells how it works.
//
//   creation.cpp         windows and their memory come to be, and end
//   operations.cpp       the origin: puts, gets, accumulates
//   serve.cpp            the target: messages that arrive
//   synchronization.cpp  fences, start and post, locks, flushes
//   window.cpp           the windows of this process, progress, losses
//   access.cpp           what an operation does to memory
//
// An operation goes one of two ways. Where this process can reach the target's memory (its own, and
// windows that are allocated within a node) it acts on the memory itself. Otherwise the target's
// library does, when a message of kind Kind::rma arrives.
//
// Threads: one thread at a time is in the library. Errors are thrown (core/error.hpp).
#pragma once

#include <mpi.h>

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "libmpi_lite/core/request.hpp"
#include "libmpi_lite/rma/access.hpp"
#include "libmpi_lite/rma/lock_queue.hpp"
#include "libmpi_lite/rma/memory.hpp"
#include "libmpi_lite/rma/wire.hpp"
#include "libmpi_lite/transfer/sinks/rma_sink.hpp"
#include "libmpi_lite/transfer/transfer.hpp"

namespace viaduct::mpi {

inline constexpr std::size_t kLargestElement = 32;  // bytes, of a predefined type

// The request of MPI_Rput and its kin. Errors of it go to the window, by its communicator.
class RmaRequest final : public Request {
 public:
  explicit RmaRequest(Ref<Comm> comm) : Request(Kind::one_sided), comm_(std::move(comm)) {}
  Comm* communicator() const override { return comm_.get(); }

 private:
  const Ref<Comm> comm_;
};

// A data operation at its origin. The caller has checked the arguments, and that the data fits.
struct RmaOperation {
  RmaOperation(RmaAction what, int at_rank, MPI_Aint at_offset, Ref<Datatype> type, MPI_Count bytes)
      : action(what),
        rank(at_rank),
        offset(at_offset),
        target_type(std::move(type)),
        total(bytes) {}

  RmaAction action;                 // put, get, accumulate, get_accumulate or compare_and_swap
  int rank;                         // of the target
  Items origin{};                   // what is sent; nothing in a get, or with MPI_NO_OP
  MPI_Aint offset;                  // in the target's window, in bytes
  Ref<Datatype> target_type;        // how the data lies there
  Items result{};                   // where fetched data goes
  MPI_Count total;                  // bytes of data
  const Op* op = nullptr;           // accumulates
  const Datatype* basic = nullptr;  // accumulates: the predefined type of all elements
  // compare_and_swap: what to compare with, and what to store; an element each. Copied if the
  // operation waits.
  const std::byte *expected_value = nullptr, *swap_value = nullptr;
  Ref<RmaRequest> request;  // of MPI_Rput and its kin; nothing: none

  // ---- the engine's ----
  std::unique_ptr<std::byte[]> kept;       // the elements of a compare_and_swap that waits
  Ref<Datatype> origin_type, result_type;  // holds, as the program may free its handles
  MPI_Count position = 0;                  // bytes that have gone
  int error = MPI_SUCCESS;                 // of a part that acted directly
  std::uint32_t fetch = 0;                 // its entry in Window::fetches_ plus 1; 0: none yet

  bool fetches() const {
    return action == RmaAction::get || action == RmaAction::get_accumulate ||
           action == RmaAction::compare_and_swap;
  }
  bool accumulates() const { return op != nullptr || action == RmaAction::compare_and_swap; }
};

// What the processes of a new window say of themselves.
struct WindowSpec {
  int flavor;  // MPI_WIN_FLAVOR_*
  void* base = nullptr;
  MPI_Aint size = 0;
  MPI_Aint unit = 1;
  bool noncontiguous = false;  // of shared memory: each part may begin at a page of its own
};

class Window final : public Counted {
 public:
  // Collective over the intracommunicator. All processes succeed, or all throw Error.
  static Ref<Window> create(Comm& comm, const WindowSpec& spec);
  ~Window();
  // Collective. The window must be closed() here. Throws Error if a process of it is lost; the
  // window is gone nevertheless.
  void free();

  // ---- what it is ----
  // Its own communicator, which no program sees. It also carries the handle, the name and the error
  // handler of the window: an error of the window is raised at this communicator, and its error
  // handler is given the address of a handle, of whatever kind it is.
  const Ref<Comm>& comm() const { return comm_; }
  int flavor() const { return flavor_; }
  WindowMemory& memory() { return memory_; }
  MPI_Aint size_of(int rank) const { return target(rank).size; }
  MPI_Aint unit_of(int rank) const { return target(rank).unit; }
  // Where this process can reach that rank's part; nullptr: it cannot.
  const WindowMemory* reachable(int rank) const { return target(rank).memory; }

  MPI_Win handle = MPI_WIN_NULL;
  std::string name;  // of MPI_Win_set_name
  Attributes attributes;
  Ref<Info> info = make<Info>();  // hints that were set
  // Where the values of predefined attributes are; the program may keep the addresses.
  struct Cells {
    MPI_Aint size;
    int unit, flavor, model;
  } cells{};

  // ---- data ----
  // An epoch for that target must be open; throws Error (MPI_ERR_RMA_SYNC) otherwise. `passive`: an
  // epoch of a lock, as request-based operations demand.
  void check_epoch(int rank, bool passive);
  void start(RmaOperation&& operation);
  // The same for a put or a get of one block, `mine` in this process and as many bytes in the
  // window: done if it needs no more than a copy. false: it is for start(), and nothing is checked.
  bool copy_at_once(RmaAction action, int rank, MPI_Aint displacement, std::byte* mine,
                    MPI_Count bytes);

  // ---- synchronization; asserts have been checked ----
  void fence(int assertion);
  void post(const Group& group, int assertion);
  void start_epoch(const Group& group, int assertion);
  void complete();
  void wait_exposure();
  bool test_exposure();
  void lock(int rank, bool exclusive, bool no_check);
  void lock_all(bool no_check);
  void unlock(int rank);
  void unlock_all();
  void flush(int rank);
  void flush_all();
  void flush_local(int rank);
  void flush_local_all();
  void sync();
  // No epoch is open, of this process as an origin or as a target.
  bool closed() const;

  // ---- for rma_sink() ----
  bool on_message(int rank, const RmaHead& head, Bytes rest);
  void on_peer_lost(int rank);
  bool pump();  // lets waiting operations go; whether any did
  bool has_backlog() const;
  static bool any_waits() { return with_waiting_ > 0; }

 private:
  // The other process as a target of this one's operations.
  //
  //   lock:   none -- lock(), or the first operation under lock_all() --> asked -- `locked` -->
  //   held
  //           none -- with MPI_MODE_NOCHECK --> unchecked
  //           all  -- unlock() --> none
  enum class LockState : std::uint8_t { none, asked, held, unchecked };
  struct Target {
    MPI_Aint size = 0, unit = 1;
    const WindowMemory* memory =
        nullptr;           // where this process can reach it; else messages are sent
    std::size_t room = 0;  // bytes of strips and data in one message; 0: not known
    LockState lock = LockState::none;
    bool access = false;     // in the group of MPI_Win_start
    bool open = false;       // the lock is granted, or the post has arrived: operations may go
    bool dirty = false;      // messages have gone that no flush has covered
    unsigned unflushed = 0;  // messages since the last flush, but for those that are answered
    // The last flush came after one such message. So the next one is likely to be the only one,
    // too, and asks for the answer itself.
    bool flushed_alone = false;
    bool lost = false;
    unsigned posts = 0;      // that no start has used
    unsigned fetches = 0;    // messages whose answers have not arrived
    unsigned transfers = 0;  // long transfers under way, either way
    std::uint64_t flush_sent = 0, flush_done = 0;
    int error = MPI_SUCCESS;  // of an operation, to be reported by the next synchronization
    std::deque<RmaOperation> waiting;  // operations that have not gone, in order
    bool locally_complete() const { return waiting.empty() && fetches == 0 && transfers == 0; }
    bool acknowledged() const { return !dirty && flush_done == flush_sent; }
    bool complete() const { return locally_complete() && flush_done == flush_sent; }
    // A flush has nothing to do or to tell.
    bool settled() const {
      return locally_complete() && acknowledged() && error == MPI_SUCCESS && !lost &&
             lock != LockState::asked;
    }
  };
  // The other process as an origin of operations on this one's memory.
  struct Origin {
    unsigned transfers = 0;        // long transfers under way, either way
    std::deque<RmaHead> deferred;  // messages that wait for the end of these
    unsigned completes = 0;        // of MPI_Win_complete, that no wait has used
    int error = MPI_SUCCESS;       // to be told by the next `flushed`
  };
  // A result that comes in answers.
  struct Fetch {
    int rank = -1;  // -1: the entry is free
    Items into{};
    Ref<Datatype> type;
    MPI_Count position = 0, total = 0;  // bytes: how far answers have come, and how far they go
    int error = MPI_SUCCESS;
    Ref<RmaRequest> request;
    std::uint32_t next_free = 0;  // if it is free: the next free entry plus 1; 0: none
  };
  struct LongTransfer;

  Window(Ref<Comm> comm, const WindowSpec& spec);

  Target& target(int rank) { return targets_[static_cast<std::size_t>(rank)]; }
  const Target& target(int rank) const { return targets_[static_cast<std::size_t>(rank)]; }
  Origin& origin(int rank) { return origins_[static_cast<std::size_t>(rank)]; }
  int ranks() const { return comm_->size(); }
  int process(int rank) const { return comm_->peer(rank); }
  RmaHead head(RmaAction action) const;
  void send(int rank, const RmaHead& head, Bytes body = {});

  // creation.cpp
  struct Card;
  std::vector<Card> exchange(const Card& mine);
  bool all_agree(bool good);
  bool share_block(const std::vector<Card>& cards);
  bool allocate_private(MPI_Aint size);

  // operations.cpp
  void poll_now_and_then() {
    if (++calls_ % kBetweenPolls == 0) [[unlikely]]
      progress();
  }
  bool may_send(const Target& t) const { return fence_open_ || t.open; }
  bool advance(RmaOperation& operation, Target& t);  // whether all of it has gone
  bool send_fragment(RmaOperation& operation, Target& t);
  bool send_long(RmaOperation& operation, Target& t);
  bool act_on_block(RmaOperation& operation, const WindowMemory& memory);
  bool act_directly(RmaOperation& operation, Target& t, const Region& region);
  MPI_Count choose_region(const RmaOperation& operation, std::size_t room, Region& region);
  Bytes pack_fragment(const RmaOperation& operation, const Region& region, bool with_strips);
  std::uint64_t fetch_id(RmaOperation& operation);
  bool on_answer(int rank, const RmaHead& head, Bytes data);
  void end_fetch(std::uint32_t id);
  // A message of transfer/ between this process and that rank. `expected`: bytes to be received; 0:
  // any number.
  void begin_transfer(int rank, bool origin_side, bool receives, int tag, const Items& items,
                      MPI_Count expected, Ref<RmaRequest> request);
  static void on_transfer_complete(Request& message, void* transfer);
  void transfer_done(LongTransfer& transfer, int error);
  void start_waiting(int rank);

  // serve.cpp
  bool serve(int rank, const RmaHead& head, Bytes rest);
  bool serve_accumulate(int rank, const RmaHead& head, const Region& region, Bytes data);
  bool serve_transfer(int rank, const RmaHead& head, const Region& region);
  void serve_in_order(int rank, const RmaHead& head);
  void serve_deferred(int rank);
  void answer(int rank, const RmaHead& request, Bytes data, int error);
  void refuse(int rank, const RmaHead& request);
  void defer_or_serve(int rank, const RmaHead& head);
  void grant(int rank);

  // synchronization.cpp
  void check_no_access(const char* function) const;
  void check_locked(int rank, const char* function) const;
  void check_locked_all(const char* function) const;
  void ask_lock(int rank, bool exclusive, bool no_check);
  void ask_flush(int rank, bool unlocks);
  void fence_stores();
  // Each of these waits for all of `ranks`; a lost one counts as done.
  void drain(std::span<const int> ranks);
  void finish_locally(std::span<const int> ranks);
  void finish(std::span<const int> ranks);
  void flush_ranks(std::span<const int> ranks);
  void unlock_ranks(std::span<const int> ranks);
  // Throws Error with the first error that operations to these ranks have had since it was last
  // reported.
  void throw_errors(std::span<const int> ranks);
  [[noreturn]] void throw_error(int rank, int error) const;
  bool exposure_done() const;
  void end_exposure();

  Ref<Comm> comm_;
  const int flavor_;
  WindowMemory memory_;                                // this process's part
  std::vector<std::unique_ptr<WindowMemory>> mapped_;  // parts of others, of this node
  std::unique_ptr<std::byte, void (*)(void*)> owned_;  // memory of the library's, if it is private
  SharedBlock block_;                                  // the same, if it is shared
  std::vector<Target> targets_;                        // by rank, and likewise below
  std::vector<Origin> origins_;
  std::vector<int> waiting_;      // targets with waiting operations
  std::vector<Fetch> fetches_;    // results that are awaited
  std::uint32_t free_fetch_ = 0;  // entry plus 1; 0: none
  std::uint32_t next_tag_ = 0;    // of long transfers
  LockQueue locks_;
  std::vector<std::byte> scratch_;    // a fragment that is composed, or an answer
  std::vector<std::byte> unpacked_;   // results of operations that act directly
  std::vector<Strip> strips_;         // of a fragment that is composed
  std::vector<Strip> served_strips_;  // of a message that is served

  // Epochs of this process.
  bool fence_open_ = false, fence_used_ = false;  // a fence has opened an epoch; with operations
  bool lock_all_ = false, lock_all_unchecked_ = false;
  int locked_ = 0;                         // targets that lock() has locked
  bool access_ = false, exposed_ = false;  // MPI_Win_start, MPI_Win_post: with these ranks
  std::vector<int> access_ranks_, exposure_ranks_;
  bool unfenced_ = false;  // puts have stored to shared memory since the last fence of the CPU
  unsigned calls_ = 0;     // of start() and of flushes that had nothing to wait for

  std::vector<int> all_ranks_;
  // Polls cost more than operations on shared memory, and messages that are sent without a poll
  // between them share a frame.
  static constexpr unsigned kBetweenPolls = 32;
  static constexpr std::uint32_t kGetTag = 1u << 22;  // in the tags of messages that answer gets
  static inline unsigned with_waiting_ = 0;           // windows that have waiting operations
};

inline HandleTable<Window, HandleKind::win> win_handles;

// The receiver of the events that transfer/ reports to one-sided communication. Lives as long as
// the process.
RmaSink& rma_sink();

}  // namespace viaduct::mpi
