// A program of sends and receives for all ranks, made from a seed; every rank knows all of it.
//
// Messages and receives are grouped in classes: every receive of a class may get every message of
// it, and no other. So whichever message a wildcard takes, all find a partner in the end. Steps are
// put in one global order in which a step that may block comes only when what it waits for has been
// started by earlier steps, even if every send were synchronous; the ranks' programs are this
// order's projections, hence no run of them can deadlock.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "layout.hpp"

namespace stress {

inline std::size_t index(int i) {
  return static_cast<std::size_t>(i);
}

struct Communicator {
  MPI_Comm comm;             // MPI_COMM_NULL if this rank is not in it
  std::vector<int> members;  // world ranks, by rank in the communicator
};

enum class Mode : std::uint8_t { standard, buffered, synchronous, ready };
enum class SendStyle : std::uint8_t { blocking, nonblocking, persistent };
enum class ReceiveStyle : std::uint8_t {
  blocking,
  nonblocking,
  persistent,
  probe,           // MPI_Probe, then MPI_Recv of what it found
  iprobe,          // MPI_Iprobe until there is something
  matched_probe,   // MPI_Mprobe, MPI_Mrecv
  matched_iprobe,  // MPI_Improbe until there is something, MPI_Imrecv: nonblocking from there
  cancelled,       // MPI_Irecv, MPI_Cancel; received once more if it really was cancelled
};

struct MessagePlan {
  int group;   // index of its class
  int source;  // ranks in the communicator of the class
  int tag, elements;
  Mode mode = Mode::standard;
  SendStyle style = SendStyle::nonblocking;
  std::uint64_t layout;
  int repeats = -1;  // the message whose persistent request is started once more
  bool waited = false, reused = false;
};

struct ReceivePlan {
  int group;
  int source, tag;  // as the call is given them
  int capacity;     // in elements
  ReceiveStyle style = ReceiveStyle::nonblocking;
  std::uint64_t layout;
  int repeats = -1;
  bool waited = false, reused = false;
};

struct Class {
  int comm, dest;
  Element element;
  bool one_source;                      // then the n-th receive gets the n-th message
  bool mixed;                           // receives with different patterns, the narrow ones first
  std::vector<int> messages, receives;  // in the order in which they are started
  int sent = 0, posted = 0;             // how many have been started
  int posted_early = 0;                 // before the barrier

  // The n-th receive gets the n-th message.
  bool in_step() const { return one_source && !mixed; }
  bool complete_receive(int index) const {  // will the receive find its message?
    return mixed ? sent == static_cast<int>(messages.size()) : sent > index;
  }
  bool complete_send(int index) const {
    return in_step() ? posted > index : posted == static_cast<int>(receives.size());
  }
};

enum class StepKind : std::uint8_t { send, receive, wait, sendrecv, dead_receive, barrier };
enum class WaitStyle : std::uint8_t {
  wait,
  waitall,
  waitany,
  waitsome,
  test,
  testall,
  testany,
  testsome
};

struct Step {
  StepKind kind;
  int message = -1, receive = -1;              // sendrecv has both
  std::vector<int> sends = {}, receives = {};  // wait: for these
  WaitStyle style = WaitStyle::wait;
  int comm = 0;  // dead_receive: nobody sends to it, it is cancelled
};

struct Plan {
  std::vector<Class> classes;
  std::vector<MessagePlan> messages;
  std::vector<ReceivePlan> receives;
  std::vector<std::vector<Step>> steps;  // by world rank
  std::size_t buffered_bytes = 0;        // an upper bound for what one rank buffers
};

// What to leave out, because a library that is tested beside ours is known to get it wrong.
struct Avoid {
  bool buffered_pairs = false;  // MPICH 4.0: large buffered messages of pairs arrive too long
  bool buffered_restarts =
      false;  // Open MPI 4.1: a buffered request that is started again sends rubbish
};

Plan make_plan(std::uint64_t seed, const std::vector<Communicator>& comms, int world_size,
               const Avoid& avoid);

std::string describe(const Plan& plan, const Step& step);

}  // namespace stress
