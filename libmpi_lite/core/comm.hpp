// Communicators (MPI 5.0, chapter 7): who may talk to whom, in which context.
#pragma once

#include <mpi.h>

#include <memory>
#include <string>

#include "libmpi_lite/core/attribute.hpp"
#include "libmpi_lite/core/datatype.hpp"
#include "libmpi_lite/core/errhandler.hpp"
#include "libmpi_lite/core/group.hpp"
#include "libmpi_lite/core/info.hpp"
#include "libmpi_lite/core/topology.hpp"

namespace viaduct::mpi {

// What the collectives have worked out about a communicator (which ranks share a node...); theirs.
struct CommPlan {
  virtual ~CommPlan() = default;
};

class MatchQueues;

// Of a communicator's two contexts the even one is that of point-to-point messages.
inline bool collective_context(std::uint32_t context) {
  return context % 2 != 0;
}

class Comm final : public Counted {
 public:
  // `context`: even; the same in all processes of the communicator and in no other communicator
  // that one of them is in. `remote`: the other group of an intercommunicator, or nothing.
  Comm(std::uint32_t context, Ref<Group> group, Ref<Group> remote, Ref<Errhandler> errhandler);
  ~Comm();

  // Point-to-point messages and collectives are told apart by their contexts.
  std::uint32_t context() const { return context_; }
  std::uint32_t collective_context() const { return context_ + 1; }

  bool inter() const { return static_cast<bool>(remote_); }
  int rank() const { return rank_; }
  int size() const { return size_; }  // of the local group
  // How many there are to send to: the remote group's size in an intercommunicator.
  int peers() const { return peers_; }
  // The process behind the rank that a program names in a send or receive.
  int peer(int rank) const { return (remote_ ? *remote_ : *group_).world_rank(rank); }

  const Ref<Group>& group() const { return group_; }
  const Ref<Group>& remote_group() const { return remote_; }

  MPI_Comm handle = MPI_COMM_NULL;  // what the program knows it by; null once it is freed
  // Of an intercommunicator: its local group as a communicator, for what that group has to agree on
  // within itself (context 2 above this one's). No program ever sees it.
  Ref<Comm> local;
  Ref<Errhandler> errhandler;
  bool errhandler_set = false;  // by the program, on this communicator itself
  Attributes attributes;
  Topology topology;
  std::string name;
  Ref<Info> info;
  std::unique_ptr<CommPlan> plan;
  MatchQueues* collective_queues = nullptr;  // of the collective context, from its first use on

 private:
  const std::uint32_t context_;
  const Ref<Group> group_, remote_;
  const int rank_, size_, peers_;
};

inline HandleTable<Comm, HandleKind::comm> comm_handles;

// ---- in transfer/operations.cpp ----------------------------------------------------------------

// The communicator goes, and with it what the matching keeps for its contexts.
void forget_matching(const Comm& comm);

// ---- in collective/agreement.cpp: it takes collectives -----------------------------------------

// A context that is free in all processes of `comm` (of both groups, if it is an
// intercommunicator); collective.
std::uint32_t agree_on_context(Comm& comm);
// The same over the processes of a group, all of which are in `comm`, by messages with that tag.
std::uint32_t agree_on_context(Comm& comm, const Group& group, int tag);

}  // namespace viaduct::mpi
