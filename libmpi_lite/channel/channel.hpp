// The channel interface: what carries bytes between two processes. One class implements it for each
// transport (self, shm, mbcf, startx, vi). A channel chooses nothing: transfer/ decides what is
// sent and by which protocol (eager, rendezvous, write protocol).
//
// A channel offers two services:
//  * control messages: at most limits().control bytes each, delivered exactly once, whole, and in
//    order for each pair of processes;
//  * long transfers: from a buffer of the sender straight into a buffer of the receiver. The
//    receiver opens the transfer and hands the remote key that comes out of it to the sender, in a
//    control message (CTS or RTR). The sender starts the transfer. The channel reports the end of
//    the transfer to both.
//
// Peers are named by their rank in MPI_COMM_WORLD.
//
// Ownership: transfer/ owns the channels. A channel keeps a reference to the sink, which outlives
// it. The caller keeps the buffers of a long transfer until the sink has heard of its end.
//
// Thread rule: the one thread that is in the library makes all calls. No call blocks. poll() makes
// progress and calls the sink; inside that call the sink may call any function of the channel
// except poll().
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

#include "drivers/base/counter_set.hpp"

namespace viaduct::mpi {

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

// A remote key (buffer descriptor): what one end of a long transfer has to know about the other
// end's buffer. Plain bytes that travel in control messages; only the channel that filled them in
// can read them.
struct RemoteKey {
  static constexpr std::size_t kMax = 32;  // bytes that any channel may use
  std::array<std::byte, kMax> bytes{};
};

// Request id: names a long transfer at one end. transfer/ chooses it, and the channel gives it back
// unchanged when that end is done.
using Cookie = std::uint64_t;

// What a channel reports to transfer/. All functions are called from inside Channel::poll() only,
// on the thread that polls.
class ChannelSink {
 public:
  // A control message has come from that rank. `message` is valid during the call only: as a rule
  // it lies in the ring, FIFO entry or packet in which it arrived.
  virtual void on_control(int from, Bytes message) = 0;
  // A transfer begun with start_send() has ended: the data buffer is free again. false: the
  // transfer failed, because the peer is lost or because its memory cannot be written.
  virtual void on_long_sent(Cookie cookie, bool ok) = 0;
  // A transfer opened with open_receive() has ended: all bytes are in the buffer. false: they never
  // will be, and the content of the buffer is undefined.
  virtual void on_long_received(Cookie cookie, bool ok) = 0;
  // That process can no longer be reached: it died, was silent for too long, or cannot be talked
  // to. `why` is part of a sentence for the user, valid during the call. Called once for each peer,
  // after the channel has ended the peer's long transfers with false.
  virtual void on_peer_lost(int peer, std::string_view why) = 0;

 protected:
  ~ChannelSink() = default;
};

class Channel {
 public:
  // Constant while the channel is open.
  struct Limits {
    std::size_t control;  // bytes of the largest control message, at least 256
    std::size_t eager;    // bytes: longer data had better go by rendezvous
    // How many receives may be opened before their senders have announced anything (write
    // protocol). The remaining places for long transfers are kept for announced messages
    // (rendezvous), so that receives which wait for a late sender cannot hold those up. 0: the
    // channel has no write protocol.
    std::size_t early = 0;
    std::size_t remote_key = RemoteKey::kMax;  // bytes of a RemoteKey that are in use
    // The channel has write_now(). So the write protocol may pay for short messages, too.
    bool writes_now = false;
  };

  // The channel is destroyed by transfer/ at MPI_Finalize or exit().
  virtual ~Channel() = default;
  virtual const char* name() const = 0;  // "shm", "mbcf", ...
  virtual Limits limits() const = 0;
  // It leads to processes of other nodes, and not to those of this node or to this process itself.
  virtual bool between_nodes() const { return false; }

  // Bytes of the largest `head` of a control message: protocol headers are built on the stack.
  static constexpr std::size_t kMaxHead = 128;
  // The same for the head of write_now().
  static constexpr std::size_t kMaxWrittenHead = 112;
  // Sends one control message: head ++ body, both copied before the call returns. The first byte of
  // the head is below 0xf0: larger values mark messages that channels send each other. With a lost
  // peer the message is accepted and vanishes; on_peer_lost() tells. false: no room just now (or
  // the connection is not up yet), nothing was sent; poll, then try again.
  virtual bool send_control(int to, Bytes head, Bytes body) = 0;

  // Sender, when it announces a transfer (RTS): fills in what the receiver needs to fetch `data` by
  // itself, if the channel can do that. The announcement carries `offered`. The data must stay
  // until the end of the transfer.
  virtual void offer(int to, Bytes data, RemoteKey& offered) = 0;
  // Receiver: gets ready for a transfer into `into` and fills in `remote_key` for the sender.
  // `offered`: what the sender's offer() gave; nullptr if the sender has not announced anything yet
  // (write protocol). The sender may send less than the buffer holds. With a lost peer the call
  // succeeds, and on_long_received(cookie, false) follows. false: no room just now, nothing was
  // opened; poll, then try again.
  virtual bool open_receive(int from, MutableBytes into, const RemoteKey* offered, Cookie cookie,
                            RemoteKey& remote_key) = 0;
  // Receiver: takes back a receive whose sender has not started and will not. The sink hears
  // nothing more of its cookie, and nothing is written to the buffer any more.
  virtual void close_receive(int from, const RemoteKey& remote_key) = 0;
  // Sender: starts the transfer into the buffer that `remote_key`, the receiver's, names. The data
  // must stay as it is until on_long_sent(). With a lost peer the call succeeds, and
  // on_long_sent(cookie, false) follows. false: no room just now, nothing was started; poll, then
  // try again.
  virtual bool start_send(int to, Bytes data, const RemoteKey& remote_key, Cookie cookie) = 0;

  // Sender, write protocol: send_control(head) and start_send(data) in one request, for short data.
  // When the data is in its buffer, the receiver's sink hears the head as a control message, in
  // order with all others, and at once on_long_received(). Both are copied, and on_long_sent() does
  // not follow. With a lost peer the message is accepted and vanishes. false: nothing was sent, as
  // there is no room just now, or the data is not short.
  virtual bool write_now(int /*to*/, Bytes /*data*/, const RemoteKey&, Bytes /*head*/) {
    return false;
  }

  // Once, after the job's fence and before anything is sent. A channel that is configured to have
  // its connections from the start makes them now, together with the other processes: the only call
  // that blocks. Throws SetupError.
  virtual void connect_all() {}

  // This process depends on that rank. The channel checks that rank's liveness from now on, even if
  // nothing has been sent to it.
  virtual void watch(int) {}

  // Makes progress: receives, sends what waits, reports to the sink. true: something happened, so
  // that a caller who waits had better poll again soon. Not reentrant.
  virtual bool poll() = 0;
  // Work is left that needs poll() though no request of the user is open: acknowledgements, or data
  // that others still fetch. MPI_Finalize goes on polling (for a limited time) as long as this is
  // true.
  virtual bool busy() const = 0;
  // Told once after the job has started if it is oversubscribed: processes of some machine share
  // CPUs. The peer that is to receive may then be asleep and need to be woken.
  virtual void oversubscribed() {}
  // Sleeps until something may have come through this channel, until the channel itself has
  // something to do (a timer), until the file descriptor `bell` (-1: none) is readable, or until
  // that many microseconds have passed. While the thread sleeps, others may call the channel
  // (core/threads/library_lock.hpp). false: the channel did not sleep, because it has nothing to
  // sleep on or has work to do.
  virtual bool sleep(std::chrono::microseconds, int /*bell*/) { return false; }
  // Another thread of this process sleeps in sleep(), or on a bell of this channel: ends that, if
  // nothing but this channel can.
  virtual void end_sleep() {}
  // For a process that sleeps on another channel: from now until disarm_bell(), arrivals on this
  // channel make the file descriptor `bell` readable. `bell` stays -1 if nothing can arrive. false:
  // this channel cannot wake a sleeper, or something has arrived or is to be done already; then
  // nothing is armed.
  virtual bool arm_bell(int& /*bell*/) { return false; }
  virtual void disarm_bell() {}
  // To sleep on this channel and be woken takes little longer than to yield the CPU.
  virtual bool sleeps_lightly() const { return false; }
  // A process that is reached through this channel, and does not sleep, was on the CPU of this
  // process when it was last in the library. As long as this process polls, that one may not get to
  // run.
  virtual bool shares_cpu() { return false; }
  // This process leaves MPI by MPI_Finalize: the peers must not take its end for a failure.
  virtual void finished() {}
  // This process ends without MPI_Finalize: the peers hear that as the reason of its loss.
  virtual void ends_early() {}
  // For VIADUCT_STATS=1: one line about the way to this peer ("shm, ring of 64 KiB, ...").
  virtual std::string describe(int peer) const = 0;
  // The counters of the channel and of the layers below. Which there are does not change.
  virtual std::vector<base::NamedCounter> all_counters() const { return {}; }
  // The counters of unusual events that belong to this peer; empty if there were none.
  virtual std::string counted(int) const { return {}; }
  // How long ago that process was in the library, as far as this process knows; nothing: unknown.
  virtual std::optional<std::chrono::nanoseconds> last_seen(int) const { return {}; }
  // Asks that process for a sign of life. If it polls, its answer changes last_seen().
  virtual void ask(int) {}
  // What is under way between this process and that one, as lines for a person who looks for a
  // fault (the dump on SIGUSR1). Empty: nothing to tell.
  virtual std::string dump(int) const { return {}; }
};

}  // namespace viaduct::mpi
