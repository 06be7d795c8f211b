// Communicators (MPI 5.0, chapter 7): which processes may talk to each other, in which context. The
// context id is in the header of every message that takes part in matching, so that messages of
// different communicators never match.
//
// The handle table and the operations under way hold a communicator (Ref); it is destroyed when the
// last of them lets go, which may be long after MPI_Comm_free. Thread rule: one thread at a time,
// as everywhere in the library.
#pragma once

#include <mpi.h>

#include <memory>
#include <string>

#include "libmpi_lite/core/attribute.hpp"
#include "libmpi_lite/core/data/datatype.hpp"
#include "libmpi_lite/core/errhandler.hpp"
#include "libmpi_lite/core/group.hpp"
#include "libmpi_lite/core/info.hpp"
#include "libmpi_lite/core/session.hpp"
#include "libmpi_lite/core/topology/topology.hpp"

namespace viaduct::mpi {

// What the collectives have worked out about a communicator: which ranks share a node, who leads.
// Defined in collective/plan.hpp; the communicator only owns it.
struct CommPlan {
  virtual ~CommPlan() = default;
};

class MatchQueues;

// A communicator has two contexts in a row: the even one for point-to-point messages, the odd one
// for collectives.
inline bool collective_context(std::uint32_t context) {
  return context % 2 != 0;
}

// Contexts are below this number, so that each has more streams of messages beside it: its setups
// and its data of partitioned communication (transfer/parts/partitioned.hpp).
inline constexpr std::uint32_t kFirstFlagOfContext = 1u << 30;
inline constexpr std::uint32_t kPartitionedSetup = 1u << 31, kPartitionedData = 1u << 30;

class Comm final : public Counted {
 public:
  // `context`: even; the same in all processes of the communicator, and in no other communicator
  // that one of them is in (agree_on_context()). `remote`: the other group of an intercommunicator,
  // or nothing. `errhandler`: nothing means MPI_ERRORS_ARE_FATAL.
  Comm(std::uint32_t context, Ref<Group> group, Ref<Group> remote, Ref<Errhandler> errhandler);
  ~Comm();

  // For a communicator whose context is agreed on while the program goes on (MPI_Comm_idup): made
  // with kUnsettled, which no message has, and used only when it has its context.
  static constexpr std::uint32_t kUnsettled = kFirstFlagOfContext - 8;
  void settle(std::uint32_t context);
  std::uint32_t context() const { return context_; }
  std::uint32_t collective_context() const { return context_ + 1; }

  bool inter() const { return static_cast<bool>(remote_); }
  int rank() const { return rank_; }  // of this process in the local group
  int size() const { return size_; }  // of the local group
  // How many ranks can be sent to: in an intercommunicator the size of the remote group.
  int peers() const { return peers_; }
  // The process (rank in MPI_COMM_WORLD) behind a rank that a program names in a send or receive: a
  // rank of the remote group in an intercommunicator.
  int peer(int rank) const { return (remote_ ? *remote_ : *group_).world_rank(rank); }

  const Ref<Group>& group() const { return group_; }
  const Ref<Group>& remote_group() const { return remote_; }  // nothing: an intracommunicator

  MPI_Comm handle = MPI_COMM_NULL;  // what the program knows it by; null once it is freed
  // Of an intercommunicator: its local group as a communicator of its own, for what that group has
  // to agree on within itself. Its context is 2 above this one's. No program ever sees it.
  Ref<Comm> local;
  Ref<Errhandler> errhandler;
  bool errhandler_set = false;  // the program has set it on this communicator itself
  Attributes attributes;
  Topology topology;                   // none, a grid or a graph
  std::string name;                    // of MPI_Comm_set_name
  Ref<Info> info;                      // hints; nothing: none have been set
  std::unique_ptr<CommBuffer> buffer;  // of MPI_Comm_attach_buffer; nothing: none
  // The session that the communicator came from; nothing: none, it came from MPI_COMM_WORLD.
  const Ref<Session>& session() const { return group_->session(); }
  std::unique_ptr<CommPlan> plan;            // made by the first collective that needs it
  MatchQueues* collective_queues = nullptr;  // of the collective context, from its first use on

 private:
  std::uint32_t context_;
  const Ref<Group> group_, remote_;
  const int rank_, size_, peers_;
};

inline HandleTable<Comm, HandleKind::comm> comm_handles;

// ---- in transfer/operations.cpp ----------------------------------------------------------------

// Frees what the matching keeps for the contexts of a communicator that goes.
void forget_matching(const Comm& comm);

// ---- in collective/agreement.cpp: it takes collectives -----------------------------------------

// A context that is free in all processes of `comm` (of both groups, if it is an
// intercommunicator). Collective over `comm`. Throws Error if the contexts are used up.
std::uint32_t agree_on_context(Comm& comm);
// The same over the processes of a group only, all of which are in `comm`, by messages with that
// tag. The other processes of `comm` take no part.
std::uint32_t agree_on_context(Comm& comm, const Group& group, int tag);

}  // namespace viaduct::mpi
