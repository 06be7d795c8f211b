// The events that communication between two processes reports to one-sided communication (rma/), a
// layer above. runtime/process.cpp registers the implementation with the Transfer, so that this
// layer does not depend on it.
//
// Messages of one-sided communication take no part in matching: they name a window, and act on its
// memory when they arrive. So they cannot meet a receive of the program's.
//
// Threads: only the thread that is in the library calls these functions, from inside
// Transfer::progress() or a wait. They may send control messages and start sends and receives, and
// must not wait.
#pragma once

#include "libmpi_lite/channel/channel.hpp"

namespace viaduct::mpi {

class RmaSink {
 public:
  // A control message of kind Kind::rma has come from that process. false: no correct process would
  // have sent it. `message` is valid during the call only.
  virtual bool on_message(int process, Bytes message) = 0;
  // Continues operations that wait for room in a channel. Returns whether there were any that went.
  virtual bool progress() = 0;
  // Operations wait for room in a channel, so a poll may let them go.
  virtual bool has_backlog() const = 0;
  // That process is lost, for good. Called after the sends and receives that name it have failed.
  virtual void on_peer_lost(int process) = 0;

 protected:
  ~RmaSink() = default;
};

// Has no windows: for tests of this layer alone.
class NoRma final : public RmaSink {
 public:
  static RmaSink& self() {
    static NoRma none;
    return none;
  }

 private:
  bool on_message(int, Bytes) override { return false; }
  bool progress() override { return false; }
  bool has_backlog() const override { return false; }
  void on_peer_lost(int) override {}
};

}  // namespace viaduct::mpi
