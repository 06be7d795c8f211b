#include "tests/vipl/programs/support/process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iostream>
#include <map>
#include <utility>

namespace viaduct::vipl_test {

namespace {

std::map<std::string, int (*)(const Arguments&)>& parts() {
  static std::map<std::string, int (*)(const Arguments&)> all;
  return all;
}

constexpr const char* kPartOption = "--part";

[[noreturn]] void become(const std::string& part, const Arguments& arguments, int in, int out) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  std::vector<char*> words;
  const auto add = [&](const std::string& word) {
    words.push_back(const_cast<char*>(word.c_str()));
  };
  const std::string self = "/proc/self/exe", option = kPartOption;
  add(self);
  add(option);
  add(part);
  for (const std::string& argument : arguments) add(argument);
  words.push_back(nullptr);
  ::execv(self.c_str(), words.data());
  ::_exit(127);
}

}  // namespace

Part::Part(const char* name, int (*play)(const Arguments&)) {
  parts()[name] = play;
}

void tell(const std::string& line) {
  std::cout << line << std::endl;
}
std::string hear() {
  std::string line;
  std::getline(std::cin, line);
  return line;
}

Process::Process(const std::string& part, const Arguments& arguments) {
  int to[2], from[2];
  if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0) {
    ADD_FAILURE() << "no pipes";
    return;
  }
  pid_ = ::fork();
  if (pid_ == 0) become(part, arguments, to[0], from[1]);
  ::close(to[0]);
  ::close(from[1]);
  out_ = to[1];
  in_ = from[0];
}

Process::~Process() {
  kill();
  ::close(in_);
  ::close(out_);
}

void Process::tell(const std::string& line) {
  const std::string whole = line + "\n";
  EXPECT_EQ(static_cast<ssize_t>(whole.size()), ::write(out_, whole.data(), whole.size()));
}

std::string Process::hear() {
  std::string line;
  for (char c; ::read(in_, &c, 1) == 1 && c != '\n';) line += c;
  return line;
}

void Process::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  reap();
}

int Process::wait() {
  return pid_ > 0 ? reap() : -1;
}

int Process::reap() {
  int status = 0;
  ::waitpid(std::exchange(pid_, -1), &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool play_part(int argc, char** argv, int& status) {
  if (argc < 3 || std::string(argv[1]) != kPartOption) return false;
  const auto found = parts().find(argv[2]);
  status = found == parts().end() ? 127 : found->second({argv + 3, argv + argc});
  return true;
}

}  // namespace viaduct::vipl_test
