// Two processes on a memif pair: a node each, opened as programs open it.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>

#include "drivers/endpoint/endpoint.hpp"
#include "tests/support/isolated.hpp"

namespace viaduct::link::test {

// One side, in a process of its own. A failed step names itself and ends the process.
template <class Node>
class MemifSide {
 public:
  MemifSide(const std::string& directory, int index) {
    const auto mac = [](int i) { return "02:00:00:00:5a:0" + std::to_string(i); };
    node_ = Node::open("net_memif0,role=" + std::string(index == 0 ? "server" : "client") +
                       ",socket=" + directory + "/memif,socket-abstract=no,mac=" + mac(index));
    must(node_->address() == Address::parse(mac(index)), "address");
    peer_ = node_->link().peer(*Address::parse(mac(1 - index)));
  }
  Node& node() { return *node_; }
  PeerId peer() const { return peer_; }

  static void must(bool good, const char* what) {
    if (good) return;
    std::fprintf(stderr, "process %d: failed: %s\n", getpid(), what);
    _exit(1);
  }
  void until(const std::function<bool()>& done, const char* what) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{60};
    while (!done()) {
      node_->poll();
      sched_yield();  // the other may need this CPU
      must(std::chrono::steady_clock::now() < end, what);
    }
  }
  void until_killed() {
    until([] { return false; }, "being killed");
  }
  // Before leaving: the other may still wait for an acknowledgement.
  void settle() {
    until([&] { return node_->link().idle() || !node_->link().connected(peer_); },
          "last acknowledgement");
  }
  void await_death() {
    Event event{};
    until([&] { return node_->driver().next_event(event) && event.kind == Event::Kind::peer_down; },
          "news of the death");
    must(event.peer == peer_, "who died");
  }

 protected:
  // Gives the other what it must know of us and returns what it gave: then both are there, and the
  // time that a process needs to start is not taken for silence. A file each, which appears whole.
  template <class T>
  T exchange(const std::string& directory, int index, const T& ours) {
    const auto name = [&](int of) { return directory + "/side" + std::to_string(of); };
    const std::string unfinished = name(index) + ".part";
    std::ofstream(unfinished).write(reinterpret_cast<const char*>(&ours), sizeof ours);
    std::filesystem::rename(unfinished, name(index));
    until([&] { return std::filesystem::exists(name(1 - index)); }, "the other's start");
    T theirs{};
    std::ifstream(name(1 - index)).read(reinterpret_cast<char*>(&theirs), sizeof theirs);
    return theirs;
  }

 private:
  std::unique_ptr<Node> node_;
  PeerId peer_;
};

// `Side` is made of a directory and 0 or 1.
template <class Side>
class TwoProcesses : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/viaduct-pair-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  // On a busy machine a process may be off its CPU for seconds: who waits for no death is patient.
  // Still less than the limit of until(), because the peer falls silent when its goodbye is lost.
  static constexpr const char *kPatient = "20000", *kAwaitsDeath = "1000";  // ms

  // DPDK is started in the children only: a process starts it once.
  Child start(int index, const char* dead_after, const std::function<void(Side&)>& work) {
    return Child(
        [this, index, dead_after, work] {
          setenv("VIADUCT_DEAD_AFTER_MS", dead_after, 1);
          setenv("VIADUCT_MEMORY", "nohuge", 1);
          Side side(directory_, index);
          work(side);
        },
        120);
  }
  // Both do it to the end.
  void run(const std::function<void(Side&, int)>& work) {
    Child first = start(0, kPatient, [&](Side& side) { work(side, 0); });
    Child second = start(1, kPatient, [&](Side& side) { work(side, 1); });
    EXPECT_TRUE(first.succeeded()) << "side 0";
    EXPECT_TRUE(second.succeeded()) << "side 1";
  }
  // Side 0 survives side 1, which is killed as soon as side 0 says Child::tell().
  void kill_one(const std::function<void(Side&)>& survivor,
                const std::function<void(Side&)>& victim) {
    Child stays = start(0, kAwaitsDeath, survivor);
    Child dies = start(1, kPatient, victim);
    EXPECT_TRUE(stays.wait_until_told());
    EXPECT_TRUE(dies.running());
    dies.kill();
    EXPECT_TRUE(stays.succeeded());
  }
  std::string directory_;
};

}  // namespace viaduct::link::test
