// A process with an open NIC and one VI, for tests that kill it: this program itself, started with
// `--process ADDRESS [die WHERE]`. It is told what to do line by line and answers line by line; it
// dies by SIGKILL in the function WHERE of its ConnectionUser, or when it is told to, and in any
// case with the test.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "libvipl/connection/socket/unique_fd.hpp"
#include "tests/vipl/connection/bed.hpp"

namespace viaduct::vipl::test {

class Process {
 public:
  explicit Process(const NicAddress& address, const std::string& die_where = "never") {
    int in[2], out[2];
    if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) ADD_FAILURE() << "no pipe";
    const std::string name = address.text();
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);
      ::signal(SIGPIPE, SIG_DFL);
      ::dup2(in[0], STDIN_FILENO);
      ::dup2(out[1], STDOUT_FILENO);
      ::execl("/proc/self/exe", "process", "--process", name.c_str(), die_where.c_str(), nullptr);
      ::_exit(127);
    }
    to_ = UniqueFd(in[1]);
    from_ = UniqueFd(out[0]);
    ::close(in[0]);
    ::close(out[1]);
    EXPECT_EQ(answer(), "open");
  }
  ~Process() { kill(); }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // If it is dead already, that shows in its answer.
  void tell(const std::string& command) {
    const std::string line = command + "\n";
    [[maybe_unused]] const ssize_t n = ::write(to_.get(), line.data(), line.size());
  }
  // The next line; "" when it is dead.
  std::string answer() {
    std::string line;
    char c = 0;
    while (::read(from_.get(), &c, 1) == 1) {
      if (c == '\n') return line;
      line += c;
    }
    return "";
  }
  std::string ask(const std::string& command) {
    tell(command);
    return answer();
  }
  void signal(int number) { ::kill(pid_, number); }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
  UniqueFd to_, from_;
};

// What runs in it; the answers of blocking commands come when they are done.
int run_process(const std::string& address, const std::string& die_where);

}  // namespace viaduct::vipl::test
