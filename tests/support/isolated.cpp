#include "tests/support/isolated.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>

namespace viaduct::link {
namespace {

int tell_fd = -1;

[[noreturn]] void run(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
  std::fflush(nullptr);
  _exit(testing::Test::HasFailure() ? 1 : 0);
}

}  // namespace

Child::Child(const std::function<void()>& body, unsigned seconds) {
  int ends[2];
  if (pipe(ends) != 0) return;
  std::fflush(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    close(ends[0]);
    tell_fd = ends[1];
    alarm(seconds);
    run(body);
  }
  close(ends[1]);
  told_ = ends[0];
}

Child::~Child() {
  kill();
  if (told_ >= 0) close(told_);
}

bool Child::succeeded() {
  if (pid_ < 0) return false;
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  if (WIFSIGNALED(status))
    ADD_FAILURE() << "the child was killed by " << strsignal(WTERMSIG(status));
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void Child::kill() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

bool Child::running() const {
  siginfo_t info{};
  return pid_ >= 0 &&
         waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == 0;
}

bool Child::wait_until_told() const {
  char byte = 0;
  return read(told_, &byte, 1) == 1;
}

void Child::tell() {
  const char byte = 1;
  if (write(tell_fd, &byte, 1) != 1) _exit(2);
}

std::string Child::output_of(const std::function<void()>& body) {
  const std::string path = testing::TempDir() + "viaduct_output_" + std::to_string(getpid());
  Child child([&] {
    if (std::freopen(path.c_str(), "w", stdout) == nullptr || dup2(fileno(stdout), 2) != 2)
      _exit(3);
    body();
  });
  EXPECT_TRUE(child.succeeded());
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  unlink(path.c_str());
  return text;
}

}  // namespace viaduct::link
