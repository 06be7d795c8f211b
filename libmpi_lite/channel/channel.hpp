// What carries bytes between two processes. A channel chooses nothing: transfer/ decides what is
// sent and how.
//
// Two services:
//  * control messages: at most limits().control bytes, delivered once, whole, in order per peer;
//  * long transfers: from a buffer of the sender straight into a buffer of the receiver. The
//    receiver opens one and hands the remote key that comes out of it to the sender, in a control
//    message; the sender starts it. Both are told when it is over.
//
// Peers are ranks in MPI_COMM_WORLD. All calls are made by the thread that is in the library. No
// call blocks; poll() makes progress and calls the sink, which may call the channel again, except
// poll().
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct::mpi {

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

// What one end of a long transfer has to know about the other: the channel's own business.
struct RemoteKey {
  static constexpr std::size_t kMax = 32;
  std::array<std::byte, kMax> bytes{};
};

// Names a long transfer at one end; given by transfer/, returned by the channel.
using Cookie = std::uint64_t;

class ChannelSink {
 public:
  // `message` is valid during the call only.
  virtual void on_control(int from, Bytes message) = 0;
  // The buffer given to start_send is free again; false: the transfer failed (peer lost, or memory
  // that cannot be copied).
  virtual void on_long_sent(Cookie cookie, bool ok) = 0;
  // All bytes are in the buffer given to open_receive; false: they never will be.
  virtual void on_long_received(Cookie cookie, bool ok) = 0;
  // That process can no longer be reached: it died or was silent for too long. Once per peer, after
  // its long transfers were ended with false.
  virtual void on_peer_lost(int peer, std::string_view why) = 0;

 protected:
  ~ChannelSink() = default;
};

class Channel {
 public:
  struct Limits {
    std::size_t control;  // bytes of the largest control message, at least 256
    std::size_t eager;    // data up to this many bytes had better go in a control message
    // How many receives may be opened before their senders have announced anything; places that are
    // left are for messages that have been announced.
    std::size_t early = 0;
  };

  virtual ~Channel() = default;
  virtual const char* name() const = 0;  // "shm", "mbcf", ...
  virtual Limits limits() const = 0;

  static constexpr std::size_t kMaxHead = 128;
  // One control message: head (at most kMaxHead bytes) ++ body. Its first byte is below 0xf0
  // (larger ones are for channels themselves). false: no room just now; poll, then try again.
  virtual bool send_control(int to, Bytes head, Bytes body) = 0;

  // Sender, when it announces a transfer: what its remote key may hold, so that the receiver can
  // fetch by itself. The data must stay until the end of the transfer.
  virtual void offer(int to, Bytes data, RemoteKey& offered) = 0;
  // Receiver. `offered`: the sender's remote key, nullptr if it has not announced anything yet (the
  // write protocol). The sender may send less than the buffer holds. false: no room just now.
  virtual bool open_receive(int from, MutableBytes into, const RemoteKey* offered, Cookie cookie,
                            RemoteKey& remote_key) = 0;
  // Takes back a receive for which the sender has not started anything and will not.
  virtual void close_receive(int from, const RemoteKey& remote_key) = 0;
  // Sender: `remote_key` is the receiver's. false: no room just now.
  virtual bool start_send(int to, Bytes data, const RemoteKey& remote_key, Cookie cookie) = 0;

  // Somebody waits for that process: its end is noticed even if nothing has been sent to it.
  virtual void watch(int) {}

  // Makes progress. Whether anything happened.
  virtual bool poll() = 0;
  // Work is left that needs poll() though no request of the user is open (acknowledgements, data
  // that others fetch): MPI_Finalize goes on polling.
  virtual bool busy() const = 0;
  // The processes of the node share CPUs: a receiver may be asleep.
  virtual void oversubscribed() {}
  // Sleeps until something may have come through this channel or is to be done for it, or the
  // descriptor `bell` (-1: none) is readable, at most so long. false: it did not, since it has
  // nothing to sleep on, or work to do.
  virtual bool sleep(std::chrono::microseconds, int /*bell*/) { return false; }
  // For who sleeps on another channel: from now until disarm_bell(), what comes through this one
  // makes `bell` readable, which stays -1 if nothing can come. false: there is no such thing, or
  // something has come or is to be done already.
  virtual bool arm_bell(int& /*bell*/) { return false; }
  virtual void disarm_bell() {}
  // To sleep and be woken takes little longer than to yield.
  virtual bool sleeps_lightly() const { return false; }
  // A process that is reached through it was on this one's CPU when it was last in the library, and
  // does not sleep: as long as this one polls, that one may not run.
  virtual bool shares_cpu() { return false; }
  // This process leaves MPI as it should, so that its end is no loss to anybody...
  virtual void finished() {}
  // ... or it ends without MPI_Finalize, which others hear as the reason of its loss.
  virtual void ends_early() {}
  // For VIADUCT_STATS=1: one line about this peer ("shm, ring of 64 KiB, ...").
  virtual std::string describe(int peer) const = 0;
  // What has been counted below, a line for each layer ("link: frames_sent 12, drop_job 3"), and
  // what of it was unusual and has to do with that peer; nothing: nothing.
  virtual std::vector<std::string> counted() const { return {}; }
  virtual std::string counted(int) const { return {}; }
  // How long ago that process was in the library, as far as this one knows; ask() has a process
  // that is say so.
  virtual std::optional<std::chrono::nanoseconds> last_seen(int) const { return {}; }
  virtual void ask(int) {}
  // What is under way between this process and that one, lines for whoever looks for a fault.
  virtual std::string dump(int) const { return {}; }
};

}  // namespace viaduct::mpi
