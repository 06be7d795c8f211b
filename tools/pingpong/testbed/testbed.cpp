// Runs viaduct-testbed as a child process, to make two emulated hosts and to remove them
// (testbed.hpp). Also removes testbeds of earlier runs whose processes were all killed.
#include "tools/pingpong/testbed/testbed.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <vector>

#include "tools/pingpong/error.hpp"
#include "tools/pingpong/socket.hpp"
#include "tools/pingpong/watch.hpp"

namespace viaduct::pingpong {

namespace {

namespace fs = std::filesystem;

constexpr const char* kNamePrefix = "pingpong-";   // then the owner's process number
constexpr const char* kNamespaces = "/run/netns";  // where `ip netns` keeps them, by name

// The path of viaduct-testbed: beside this program (installed), in the source tree of a build
// directory, or in PATH.
std::string find_program() {
  std::vector<fs::path> places;
  std::error_code error;
  if (const fs::path self = fs::read_symlink("/proc/self/exe", error); !error) {
    places.push_back(self.parent_path());
    places.push_back(self.parent_path() / "../../tools");
  }
  const char* path = std::getenv("PATH");
  std::istringstream list(path ? path : "");
  for (std::string place; std::getline(list, place, ':');) places.emplace_back(place);
  for (const fs::path& place : places)
    if (const fs::path program = place / "viaduct-testbed"; ::access(program.c_str(), X_OK) == 0)
      return program.string();
  throw Failure(
      "viaduct-testbed was not found beside viaduct-pingpong nor in PATH; build it with: "
      "ninja -C build");
}

// Becomes another program. Both callers are processes with nothing else left to do, so failure ends
// them.
[[noreturn]] void execute(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

// Blocked signals are inherited across exec(); viaduct-testbed must get those that ask it to stop.
void reset_signals() {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// How a child process ended.
struct Ended {
  int status;
  std::string said;  // on standard error
};

// Runs a program to its end and collects its standard error. If this process is interrupted
// meanwhile, the child is asked to stop, and still waited for, because it cleans up after itself.
Ended run(const std::vector<std::string>& words) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw system_failure("cannot make a pipe");
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) throw system_failure("cannot start " + words[0]);
  if (child == 0) {
    reset_signals();
    ::dup2(write_end.get(), STDERR_FILENO);
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    ::dup2(null, STDIN_FILENO);
    ::dup2(null, STDOUT_FILENO);
    execute(words);
  }
  // The child has the only writing end now, so reading ends when the child does.
  write_end.reset();
  Ended out{0, {}};
  bool told = false;
  for (char buffer[512];;) {
    const ssize_t n = ::read(read_end.get(), buffer, sizeof(buffer));
    if (interrupted && !told) {
      ::kill(child, SIGTERM);  // it cleans up after itself
      told = true;
    }
    if (n > 0)
      out.said.append(buffer, static_cast<std::size_t>(n));
    else if (n == 0 || errno != EINTR)
      break;
  }
  while (::waitpid(child, &out.status, 0) < 0 && errno == EINTR) continue;
  return out;
}

// The child's own words, without its name and the line's end.
std::string reason(const Ended& ended) {
  std::string out = ended.said;
  while (!out.empty() && out.back() == '\n') out.pop_back();
  if (const std::string prefix = "viaduct-testbed: "; out.starts_with(prefix))
    out.erase(0, prefix.size());
  return out.empty() ? "viaduct-testbed ended with status " + std::to_string(ended.status) : out;
}

// Takes down testbeds of earlier runs that were killed with all their processes. A testbed is an
// orphan if no process has the number in its name.
void remove_orphans(const std::string& program) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(kNamespaces, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kNamePrefix)) continue;
    const std::string testbed = name.substr(0, name.rfind('-'));
    const pid_t owner = std::atoi(testbed.c_str() + std::string_view(kNamePrefix).size());
    if (owner > 0 && ::kill(owner, 0) != 0 && errno == ESRCH)
      run({program, "down", "--name", testbed});
  }
}

}  // namespace

Testbed::Testbed(std::size_t mtu, bool offload)
    : program_(find_program()), name_(kNamePrefix + std::to_string(::getpid())) {
  remove_orphans(program_);
  const Ended ended = run({program_, "up", "--hosts", "2", "--ports", "1", "--name", name_, "--mtu",
                           std::to_string(mtu), "--offload", offload ? "on" : "off"});
  // The script may have finished before the signal reached it.
  if (interrupted) {
    run({program_, "down", "--name", name_});
    throw Interrupted{};
  }
  if (ended.status != 0) throw Failure("cannot make two emulated hosts: " + reason(ended));
}

Testbed::~Testbed() {
  const char* const still_there = "viaduct-pingpong: the emulated hosts are still there: %s\n";
  try {
    const Ended ended = run({program_, "down", "--name", name_});
    if (ended.status != 0) ::dprintf(STDERR_FILENO, still_there, reason(ended).c_str());
  } catch (const std::exception& error) {  // run() could not start a program
    ::dprintf(STDERR_FILENO, still_there, error.what());
  }
}

void Testbed::enter(int host) const {
  const std::string file = std::string(kNamespaces) + "/" + name_ + "-host" + std::to_string(host);
  const UniqueFd space(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!space || ::setns(space.get(), CLONE_NEWNET) != 0)
    throw system_failure("cannot enter the emulated host " + file);
  // /sys shows the interfaces of the namespace in which it was mounted, and AF_XDP looks for the
  // interface there. The mount namespace is this process's own, so the host's /sys is not touched.
  if (::unshare(CLONE_NEWNS) != 0 || ::mount("", "/", nullptr, MS_SLAVE | MS_REC, nullptr) != 0 ||
      ::mount("sysfs", "/sys", "sysfs", 0, nullptr) != 0)
    throw system_failure("cannot mount /sys for the emulated host " + file);
}

std::string Testbed::ip(int host) {
  return "10.77.0." + std::to_string(host + 1);
}

void Testbed::take_down_instead() const {
  reset_signals();
  execute({program_, "down", "--name", name_});
}

}  // namespace viaduct::pingpong
