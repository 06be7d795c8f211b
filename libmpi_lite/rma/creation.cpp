// How windows come to be (MPI 5.0, section 12.2), and end. All processes of the communicator tell
// each other the size and the unit of their parts, so that each checks the arguments of its own
// operations.
//
// Memory that the library allocates is shared by the processes of a node: the lowest rank makes one
// block for all of them, and the others map it. MPI_Win_allocate goes without (VIADUCT_SHM=off, or
// where the system refuses); MPI_Win_allocate_shared cannot.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "libmpi_lite/collective/collective.hpp"
#include "libmpi_lite/collective/construction.hpp"
#include "libmpi_lite/core/config_vars.hpp"
#include "libmpi_lite/core/error.hpp"
#include "libmpi_lite/rma/window.hpp"
#include "libmpi_lite/transfer/process.hpp"

namespace viaduct::mpi {
namespace {

constexpr MPI_Aint kPageBytes = 4096, kLineBytes = 64;

}  // namespace

struct Window::Card {
  std::int64_t size, unit;
  std::int32_t node;           // of this process; the same for processes that can share memory
  std::int32_t noncontiguous;  // its part may begin at a page of its own
  std::int32_t pid, fd;        // by which the others open the block, at the process that makes it
};

std::vector<Window::Card> Window::exchange(const Card& mine) {
  std::vector<Card> cards(targets_.size());
  finish_collective(*start_allgather(*comm_, {&mine, sizeof mine, MPI_BYTE},
                                     {cards.data(), sizeof mine, MPI_BYTE}));
  return cards;
}

bool Window::all_agree(bool good) {
  int bad = good ? 0 : 1, any = 0;
  const Op& max = *op_handles.find(reinterpret_cast<std::uintptr_t>(MPI_MAX));
  finish_collective(*start_allreduce(*comm_, {&bad, 1, MPI_INT}, &any, max));
  return any == 0;
}

bool Window::allocate_private(MPI_Aint size) {
  void* at = nullptr;
  const auto bytes = static_cast<std::size_t>(std::max<MPI_Aint>(size, 1));
  if (::posix_memalign(&at, kLineBytes, bytes) != 0) return false;
  owned_.reset(static_cast<std::byte*>(at));
  memory_ = WindowMemory(at, size, false);
  return true;
}

// One block for the processes of this node. Collective; false: not every process has it.
bool Window::share_block(const std::vector<Card>& cards) {
  const int me = comm_->rank();
  const auto card = [&](int rank) -> const Card& { return cards[static_cast<std::size_t>(rank)]; };
  std::vector<int> members;
  bool pages = false, fits = true;
  for (const int rank : all_ranks_)
    if (card(rank).node == card(me).node) {
      members.push_back(rank);
      pages |= card(rank).noncontiguous != 0;
    }
  std::vector<MPI_Aint> offsets;
  MPI_Aint total = 0;
  for (const int rank : members) {
    if (pages) fits &= !__builtin_add_overflow(total, kPageBytes - 1, &total);
    if (pages) total = total / kPageBytes * kPageBytes;
    offsets.push_back(total);
    fits &= !__builtin_add_overflow(total, card(rank).size, &total);
  }
  const auto bytes = static_cast<std::size_t>(std::max<MPI_Aint>(total, 1));
  const bool leads = members.front() == me;
  fits = fits && (!leads || block_.create(bytes));
  const Card mine{0, 0, 0, 0, ::getpid(), fits && leads ? block_.fd() : -1};
  const std::vector<Card> makers = exchange(mine);
  const Card& maker = makers[static_cast<std::size_t>(members.front())];
  const bool there = fits && maker.fd >= 0 && (leads || block_.open(maker.pid, maker.fd, bytes));
  if (!all_agree(there)) {
    block_ = SharedBlock();
    return false;
  }
  block_.close_fd();
  for (std::size_t i = 0; i < members.size(); ++i) {
    const MPI_Aint size = card(members[i]).size;
    WindowMemory part(block_.data() + offsets[i], size, members.size() > 1);
    if (members[i] == me) {
      memory_ = part;
    } else {
      mapped_.push_back(std::make_unique<WindowMemory>(part));
      target(members[i]).memory = mapped_.back().get();
    }
  }
  return true;
}

Ref<Window> Window::create(Comm& comm, const WindowSpec& spec) {
  Ref<Window> window(new Window(duplicate(comm), spec));
  Window& w = *window;
  w.comm_->name = "a window";
  w.comm_->errhandler = Ref<Errhandler>(
      errhandler_handles.find(reinterpret_cast<std::uintptr_t>(MPI_ERRORS_ARE_FATAL)));
  if (spec.flavor == MPI_WIN_FLAVOR_CREATE) w.memory_ = WindowMemory(spec.base, spec.size, false);
  const bool shared = spec.flavor == MPI_WIN_FLAVOR_SHARED;
  const bool allocates = shared || spec.flavor == MPI_WIN_FLAVOR_ALLOCATE;
  // A process that shares no memory is a node of its own.
  const bool shares = allocates && (shared || config_vars().on("VIADUCT_SHM"));
  const int me = Process::self().rank();
  const std::vector<Card> cards =
      w.exchange({spec.size, spec.unit, shares ? Process::self().node_of(me) : me,
                  shared ? spec.noncontiguous : 1, 0, -1});
  for (const int rank : w.all_ranks_) {
    w.target(rank).size = cards[static_cast<std::size_t>(rank)].size;
    w.target(rank).unit = cards[static_cast<std::size_t>(rank)].unit;
    if (shared && cards[static_cast<std::size_t>(rank)].node != cards[0].node)
      throw Error(MPI_ERR_RMA_SHARED,
                  "ranks 0 and " + std::to_string(rank) +
                      " of argument comm are on different nodes; MPI_Comm_split_type makes "
                      "communicators of processes that can share memory");
  }
  if (allocates && !w.share_block(cards)) {
    if (shared)
      throw Error(MPI_ERR_RMA_SHARED,
                  "the processes cannot share that much memory: it is more than the system has, or "
                  "/proc is not shared between them");
    if (!w.all_agree(w.allocate_private(spec.size)))
      throw Error(MPI_ERR_NO_MEM, "there is not enough memory at every rank for the window");
  }
  w.target(w.comm_->rank()).memory = &w.memory_;
  w.cells = {spec.size, static_cast<int>(spec.unit), spec.flavor, MPI_WIN_UNIFIED};
  // Nobody may act on the memory before it is known here; so all wait for all.
  finish_collective(*start_barrier(*w.comm_));
  return window;
}

void Window::free() {
  finish_collective(*start_barrier(*comm_));
}

}  // namespace viaduct::mpi
