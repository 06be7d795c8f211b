#include "tests/vipl/connection/process.hpp"

#include <iostream>
#include <sstream>

#include "libvipl/names/hosts_file.hpp"

namespace viaduct::vipl::test {
namespace {

[[noreturn]] void die() {
  ::kill(::getpid(), SIGKILL);
  for (;;) ::pause();
}

std::string state_name(const FakeVi& vi) {
  static const std::map<FakeVi::State, std::string> kNames{{FakeVi::State::idle, "idle"},
                                                           {FakeVi::State::pending, "pending"},
                                                           {FakeVi::State::connected, "connected"},
                                                           {FakeVi::State::error, "error"}};
  return vi.complaint().empty() ? kNames.at(vi.state()) : vi.complaint();
}

// Commands: serve NAME | hold NAME | accept | request ADDRESS NAME | peer ADDRESS NAME | finish |
// disconnect | state | await STATE. Answers: a VIP_RETURN, or a state.
class Commands {
 public:
  Commands(const NicAddress& address, const std::string& die_where)
      : vi_([die_where](const std::string& where) {
          if (where == die_where) die();
        }),
        nic_(address) {}

  std::string run(std::istringstream& words) {
    std::string command, first, second;
    words >> command >> first >> second;
    if (command == "serve") return text(nic_.serve(vi_, first));
    if (command == "hold") return text(nic_.manager.wait(disc(first), in(kLong), request_));
    if (command == "accept") return text(Manager::accept(request_, vi_));
    if (command == "request") return text(nic_.request(vi_, remote(first, second)));
    if (command == "peer")
      return text(nic_.manager.peer_request(vi_, disc(second), remote(first, second), in(kLong)));
    if (command == "finish") {
      EndpointInfo card;
      return text(nic_.manager.peer_wait(vi_, card));
    }
    if (command == "disconnect") nic_.disconnect(vi_);
    if (command == "await")
      vi_.wait_for(first == "error" ? FakeVi::State::error : FakeVi::State::connected);
    return state_name(vi_);
  }

 private:
  static std::string text(VIP_RETURN result) { return std::to_string(result); }
  static Endpoint remote(const std::string& address, const std::string& name) {
    return {*parse_nic_address(address, kPort), disc(name)};
  }

  FakeVi vi_;
  Nic nic_;
  std::shared_ptr<ReceivedRequest> request_;
};

}  // namespace

int run_process(const std::string& address, const std::string& die_where) {
  Commands commands(*parse_nic_address(address, kPort), die_where);
  std::cout << "open" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::cout << commands.run(words) << std::endl;
  }
  return 0;
}

}  // namespace viaduct::vipl::test
