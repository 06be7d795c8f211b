// The PMI-1 wire protocol: lines of "name=value" fields over a stream socket. Fields are separated
// by blanks and may come in any order. Each request is one line and is answered by one line; its
// kind is the field "cmd". pmi1.cpp has the requests.
//
// Thread rule: that of Launch. All waiting is done in the kernel (poll), none by spinning.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "drivers/base/unique_fd.hpp"

namespace viaduct::mpi {

// One line, taken apart, e.g. "cmd=get_result rc=0 msg=success value=x=y".
class Pmi1Message {
 public:
  explicit Pmi1Message(std::string_view line);
  // The value of the first field of that name; nothing if there is none.
  std::optional<std::string> field(std::string_view name) const;
  // The same for fields that must be there (and be a number). Throw SetupError.
  std::string text(std::string_view name) const;
  int number(std::string_view name) const;
  // The manager has done what it was asked for: rc is absent or 0.
  bool ok() const;
  const std::string& line() const { return line_; }

 private:
  std::string line_;
  std::vector<std::pair<std::string, std::string>> fields_;
};

// The connection to the process manager. Owns the socket; can be moved, not copied.
class Pmi1Wire {
 public:
  // `manager` names the connection in error messages. `timeout`: how
  // long the manager may take for an answer that depends on it alone.
  Pmi1Wire(base::UniqueFd socket, std::string manager, std::chrono::milliseconds timeout);
  // Connects to "host:port", the form of PMI_PORT. Throws SetupError.
  static Pmi1Wire connect(const std::string& address, std::chrono::milliseconds timeout);

  // Sends a request and waits for its answer. `request` is a line without the newline; `answer` is
  // the cmd= of the line that must come back. Throws SetupError if something else comes, or nothing
  // within `timeout`. The answer may be a refusal: see Pmi1Message::ok().
  Pmi1Message ask(std::string_view request, std::string_view answer);
  // Sends a request whose answer is taken later.
  void start(std::string_view request) { send_line(request); }
  // Waits for a line that belongs to an earlier request.
  Pmi1Message expect(std::string_view cmd);
  // The same without a time limit: for answers that depend on other processes.
  Pmi1Message expect_untimed(std::string_view cmd);
  // The same without waiting; nothing if the line has not come yet.
  std::optional<Pmi1Message> take(std::string_view cmd);
  // Sends a request that has no answer; does not wait. false: it could not be sent whole.
  bool send_only(std::string_view request) noexcept;
  // Closes the socket. Only the destructor may follow.
  void close() noexcept { socket_.reset(); }

 private:
  using Clock = std::chrono::steady_clock;

  // Waits until then at most.
  Pmi1Message receive(std::string_view cmd, Clock::time_point until);
  void send_line(std::string_view request);
  // Takes what has come into received_. Throws SetupError if the manager is gone.
  void read_some(std::string_view cmd);
  void wait_readable(std::string_view cmd, Clock::time_point until);
  // The manager is gone: throws SetupError. `doing`: what the manager was to do, `why` it did not.
  [[noreturn]] void throw_lost(const std::string& doing, const std::string& why) const;

  base::UniqueFd socket_;              // none: closed or moved from
  std::string manager_;                // for messages, e.g. "at PMI_FD=6"
  std::chrono::milliseconds timeout_;  // for answers that depend on the manager alone
  std::string received_;               // bytes that came after the last whole line
};

}  // namespace viaduct::mpi
