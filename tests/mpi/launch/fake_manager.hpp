// A process manager that says what a test wants it to say.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace launch_test {

// One side of a script: the request must begin so; the answer is sent as it is ("": none).
struct Exchange {
  std::string request;
  std::string answer;
};

using Script = std::vector<Exchange>;

// What every process asks first, answered with the fields in this order or that.
inline Script greeting(const std::string& name = "job7") {
  return {{"cmd=init ", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"},
          {"cmd=get_maxes", "rc=0 vallen_max=1024 cmd=maxes keylen_max=64 kvsname_max=256\n"},
          {"cmd=get_my_kvsname", "cmd=my_kvsname kvsname=" + name + "\n"},
          {"cmd=get_appnum", "cmd=appnum rc=0 appnum=3\n"},
          {"cmd=get_universe_size", "size=8 cmd=universe_size\n"}};
}

inline Script operator+(Script a, const Script& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class FakeManager {
 public:
  // `piece`: bytes sent at once, with a pause after each.
  explicit FakeManager(Script script, std::size_t piece = 65536)
      : script_(std::move(script)), piece_(piece) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) throw std::runtime_error("socketpair");
    mine_ = ends[0];
    theirs_ = ends[1];
    thread_ = std::thread([this] { serve(); });
  }
  ~FakeManager() { finish(); }

  int fd() const { return theirs_; }  // whoever gets it closes it
  // What was asked, in order; after the last exchange the connection is closed.
  std::vector<std::string> finish() {
    if (thread_.joinable()) thread_.join();
    return asked_;
  }

 private:
  void serve() {
    for (const auto& [request, answer] : script_) {
      const std::string line = read_line();
      if (line.empty()) break;
      asked_.push_back(line);
      if (!line.starts_with(request)) break;
      say(answer);
    }
    close(mine_);
  }
  std::string read_line() const {
    std::string line;
    char c;
    while (read(mine_, &c, 1) == 1 && c != '\n') line += c;
    return line;
  }
  void say(const std::string& text) const {
    for (std::size_t at = 0; at < text.size(); at += piece_) {
      const std::string part = text.substr(at, piece_);
      if (send(mine_, part.data(), part.size(), MSG_NOSIGNAL) < 0) return;
      if (piece_ < text.size()) std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }

  Script script_;
  std::size_t piece_;
  int mine_ = -1, theirs_ = -1;
  std::vector<std::string> asked_;
  std::thread thread_;
};

// Sets variables (a value of "" removes one) and puts back what was there.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::string>& values) {
    for (const auto& [name, value] : values) {
      const char* old = std::getenv(name.c_str());
      before_[name] = old == nullptr ? "" : old;
      set(name, value);
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() {
    for (const auto& [name, value] : before_) set(name, value);
  }

 private:
  static void set(const std::string& name, const std::string& value) {
    value.empty() ? unsetenv(name.c_str()) : setenv(name.c_str(), value.c_str(), 1);
  }
  std::map<std::string, std::string> before_;
};

// As Hydra starts rank 1 of 4, second process on a host of three.
inline std::map<std::string, std::string> as_hydra(int fd) {
  return {{"PMI_FD", std::to_string(fd)},
          {"PMI_RANK", "1"},
          {"PMI_SIZE", "4"},
          {"PMI_PORT", ""},
          {"MPI_LOCALRANKID", "1"},
          {"MPI_LOCALNRANKS", "3"},
          {"PMIX_NAMESPACE", ""}};
}
// As Slurm does: without anything about hosts.
inline std::map<std::string, std::string> as_slurm(int fd) {
  auto values = as_hydra(fd);
  values["MPI_LOCALRANKID"] = values["MPI_LOCALNRANKS"] = "";
  return values;
}

}  // namespace launch_test
