// DPDK can be started once in a process, so every test that needs it runs in a child of its own.
// Expectations that fail there are printed there, and fail the test here.
#pragma once

#include <functional>
#include <string>

namespace viaduct::link {

class Child {
 public:
  // Starts `body` in a child that ends itself after `seconds`.
  explicit Child(const std::function<void()>& body, unsigned seconds = 60);
  ~Child();  // kills it if it still runs
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Waits; true when it ended by itself and nothing in it failed.
  bool succeeded();
  void kill();
  bool running() const;
  // The child calls tell(), the parent waits for that. False when the child ended instead.
  bool wait_until_told() const;
  static void tell();
  // What it has printed so far, if it was started with its output kept.
  static std::string output_of(const std::function<void()>& body);

 private:
  int pid_ = -1;
  int told_ = -1;
};

inline bool succeeds(const std::function<void()>& body) {
  return Child(body).succeeded();
}

}  // namespace viaduct::link
