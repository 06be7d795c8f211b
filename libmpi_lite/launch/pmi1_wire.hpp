// The PMI-1 wire protocol: lines of "name=value" fields, separated by blanks, in any order, over a
// stream socket. Each request is answered by one line.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace viaduct::mpi {

// One line taken apart, e.g. "cmd=get_result rc=0 msg=success value=x=y".
class Pmi1Message {
 public:
  explicit Pmi1Message(std::string_view line);
  std::optional<std::string> field(std::string_view name) const;
  // SetupError unless the field is there (and a number).
  std::string text(std::string_view name) const;
  int number(std::string_view name) const;
  // rc is absent or 0.
  bool good() const;
  const std::string& line() const { return line_; }

 private:
  std::string line_;
  std::vector<std::pair<std::string, std::string>> fields_;
};

// The connection to the process manager. All waiting is done by the kernel, none by spinning.
class Pmi1Wire {
 public:
  // Takes the descriptor over. `patience`: how long an answer may take that depends on the manager
  // alone.
  Pmi1Wire(int fd, std::string manager, std::chrono::milliseconds patience);
  // "host:port", as in PMI_PORT.
  static Pmi1Wire connect(const std::string& address, std::chrono::milliseconds patience);
  Pmi1Wire(Pmi1Wire&& other) noexcept;
  Pmi1Wire(const Pmi1Wire&) = delete;
  Pmi1Wire& operator=(Pmi1Wire&&) = delete;
  ~Pmi1Wire();

  // `request` without the newline; `answer` is the cmd= of what must come back. SetupError if
  // something else comes, or nothing. It may say rc=-1: see Pmi1Message::good().
  Pmi1Message ask(std::string_view request, std::string_view answer);
  // As ask(), for answers that depend on other processes: they take as long as they take.
  Pmi1Message ask_all(std::string_view request, std::string_view answer);
  // A line that was announced by an earlier one.
  Pmi1Message expect(std::string_view cmd);
  // A request without an answer; whether it could be sent. Does not wait.
  bool tell(std::string_view request) noexcept;
  void close() noexcept;

 private:
  Pmi1Message receive(std::string_view cmd, bool forever);
  void send_line(std::string_view request);
  std::string receive_line(std::string_view cmd, bool forever);
  void wait_readable(std::string_view cmd, bool forever);
  [[noreturn]] void lost(const std::string& doing, const std::string& why) const;

  int fd_;
  std::string manager_;  // for messages, e.g. "at PMI_FD=6"
  std::chrono::milliseconds patience_;
  std::string received_;  // what came after the last line
};

}  // namespace viaduct::mpi
