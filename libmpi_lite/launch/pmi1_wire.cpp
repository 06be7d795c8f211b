// Lines to and from a PMI-1 manager: taking them apart, and blocking input and output with a time
// limit. Every failure becomes a SetupError that tells the user what the manager did.
#include "libmpi_lite/launch/pmi1_wire.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "drivers/link/types.hpp"

namespace viaduct::mpi {
namespace {

// Far more than any manager sends (values have 1024 characters at most). A longer line is not PMI,
// and must not fill the memory.
constexpr std::size_t kMaxLine = 65536;

std::string reason() {
  return std::strerror(errno);
}

}  // namespace

Pmi1Message::Pmi1Message(std::string_view line) : line_(line) {
  constexpr std::string_view kBlanks = " \t\r";
  while (!line.empty()) {
    const auto start = line.find_first_not_of(kBlanks);
    if (start == std::string_view::npos) break;
    line.remove_prefix(start);
    const auto field = line.substr(0, line.find_first_of(kBlanks));
    line.remove_prefix(field.size());
    const auto equals = field.find('=');             // the first one: a value may have more of them
    if (equals == std::string_view::npos) continue;  // not a field: managers may add words
    fields_.emplace_back(field.substr(0, equals), field.substr(equals + 1));
  }
}

std::optional<std::string> Pmi1Message::field(std::string_view name) const {
  for (const auto& [key, value] : fields_)
    if (key == name) return value;
  return {};
}

std::string Pmi1Message::text(std::string_view name) const {
  if (auto value = field(name)) return *value;
  throw base::SetupError("the process manager's answer '" + line_ + "' has no " +
                         std::string(name) + "=; does it speak PMI-1?");
}

int Pmi1Message::number(std::string_view name) const {
  const std::string value = text(name);
  int number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size())
    throw base::SetupError("the process manager's answer '" + line_ + "' has no number after " +
                           std::string(name) + "=; does it speak PMI-1?");
  return number;
}

bool Pmi1Message::ok() const {
  const auto rc = field("rc");
  return !rc || *rc == "0";
}

Pmi1Wire::Pmi1Wire(base::UniqueFd socket, std::string manager, std::chrono::milliseconds timeout)
    : socket_(std::move(socket)), manager_(std::move(manager)), timeout_(timeout) {
  // Programs that this process starts are no part of the job, and must not hold the connection
  // open.
  fcntl(socket_.get(), F_SETFD, fcntl(socket_.get(), F_GETFD) | FD_CLOEXEC);
}

Pmi1Wire Pmi1Wire::connect(const std::string& address, std::chrono::milliseconds timeout) {
  const auto colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == address.size())
    throw base::SetupError("PMI_PORT=" + address +
                           " is not HOST:PORT; does something else set it?");
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(address.substr(0, colon).c_str(),
                                    address.substr(colon + 1).c_str(), &hints, &found))
    throw base::SetupError("the process manager at PMI_PORT=" + address +
                           " cannot be found: " + gai_strerror(error));
  base::UniqueFd fd;
  std::string why;
  // Try each address until one answers; report the error of the last one.
  for (const addrinfo* to = found; to != nullptr && !fd; to = to->ai_next) {
    fd = base::UniqueFd(socket(to->ai_family, to->ai_socktype | SOCK_CLOEXEC, to->ai_protocol));
    if (!fd || ::connect(fd.get(), to->ai_addr, to->ai_addrlen) == 0) continue;
    why = reason();
    fd.reset();
  }
  freeaddrinfo(found);
  if (!fd)
    throw base::SetupError("the process manager at PMI_PORT=" + address +
                           " does not answer: " + why);
  return {std::move(fd), "at PMI_PORT=" + address, timeout};
}

Pmi1Message Pmi1Wire::ask(std::string_view request, std::string_view answer) {
  send_line(request);
  return expect(answer);
}

Pmi1Message Pmi1Wire::expect(std::string_view cmd) {
  return receive(cmd, Clock::now() + timeout_);
}

Pmi1Message Pmi1Wire::expect_untimed(std::string_view cmd) {
  return receive(cmd, Clock::time_point::max());
}

// MSG_DONTWAIT: abort() must not hang at a manager that does not read. MSG_NOSIGNAL, here and
// below: a manager that is gone must not kill the process by SIGPIPE before it can say so.
bool Pmi1Wire::send_only(std::string_view request) noexcept try {
  const std::string line = std::string(request) + '\n';
  return send(socket_.get(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(line.size());
} catch (...) {
  return false;
}

std::optional<Pmi1Message> Pmi1Wire::take(std::string_view cmd) {
  if (received_.find('\n') == std::string::npos) read_some(cmd);
  const auto end = received_.find('\n');
  if (end == std::string::npos) return {};
  Pmi1Message message(std::string_view(received_).substr(0, end));
  received_.erase(0, end + 1);
  if (message.field("cmd") != cmd)
    throw base::SetupError("the process manager " + manager_ + " said '" + message.line() +
                           "' where cmd=" + std::string(cmd) + " was due; does it speak PMI-1?");
  return message;
}

Pmi1Message Pmi1Wire::receive(std::string_view cmd, Clock::time_point until) {
  while (true) {
    if (auto message = take(cmd)) return *message;
    wait_readable(cmd, until);
  }
}

void Pmi1Wire::send_line(std::string_view request) {
  const std::string line = std::string(request) + '\n';
  std::size_t sent = 0;
  while (sent < line.size()) {
    const ssize_t n = send(socket_.get(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (n >= 0) {
      sent += static_cast<std::size_t>(n);
    } else if (errno == EAGAIN) {
      pollfd writable{socket_.get(), POLLOUT,
                      0};  // a manager may hand over a socket that does not block
      poll(&writable, 1, -1);
    } else if (errno != EINTR) {
      throw_lost("was sent '" + std::string(request) + "'", reason());
    }
  }
}

void Pmi1Wire::read_some(std::string_view cmd) {
  if (received_.size() > kMaxLine)
    throw base::SetupError("the process manager " + manager_ +
                           " sends lines without end; does it speak PMI-1?");
  std::array<char, 2048> piece;
  const ssize_t n = recv(socket_.get(), piece.data(), piece.size(), MSG_DONTWAIT);
  if (n > 0)
    received_.append(piece.data(), static_cast<std::size_t>(n));
  else if (n == 0)
    throw_lost("was to send cmd=" + std::string(cmd), "it closed the connection");
  else if (errno != EINTR && errno != EAGAIN)
    throw_lost("was to send cmd=" + std::string(cmd), reason());
}

// A signal ends it early: the caller finds nothing and waits again, but not for longer in all.
void Pmi1Wire::wait_readable(std::string_view cmd, Clock::time_point until) {
  pollfd readable{socket_.get(), POLLIN, 0};
  int patience = -1;
  if (until != Clock::time_point::max()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    patience = static_cast<int>(std::max<std::int64_t>(left.count(), 0));
  }
  if (poll(&readable, 1, patience) == 0)
    throw base::SetupError(
        "the process manager " + manager_ + " has not sent cmd=" + std::string(cmd) + " for " +
        std::to_string(timeout_.count()) + " ms; does it still run, and does it speak PMI-1?");
}

void Pmi1Wire::throw_lost(const std::string& doing, const std::string& why) const {
  throw base::SetupError("the process manager " + manager_ + " is gone (when it " + doing + ": " +
                         why +
                         "); this process was to be started by mpiexec or srun and to end with it");
}

}  // namespace viaduct::mpi
