// What a process tells about itself when nothing seems to go on: its state when a signal asks for
// it, and what it waits for when that takes very long. Nothing of it is on the way of a message.
#pragma once

#include <chrono>
#include <csignal>

namespace viaduct::mpi {

class Request;
struct Envelope;

// What a call waits for: a request, or a message that is probed for; neither: any of several.
struct WaitedFor {
  const Request* request = nullptr;
  const Envelope* probe = nullptr;
};

inline constexpr auto kAnyOfSeveral = [] { return WaitedFor{}; };

// The wait that this process is in: one thread at a time is in the library, and waits do not nest.
class LongWait {
 public:
  // VIADUCT_HANG_REPORT_SECONDS.
  static void configure();
  // A wait begins: the first poll of it was in vain.
  static void begin() { since_ = {}; }
  // Called now and then while nothing happens. Reports once; the next wait that does so has to take
  // twice as long, so that a program which means to wait is not a noisy one.
  static void look(const WaitedFor& what);
  // From the first look on.
  static std::chrono::nanoseconds lasted();

 private:
  static void report(const WaitedFor& what);

  static inline std::chrono::seconds patience_{};  // 0: no report
  static inline std::chrono::nanoseconds since_{}, looked_{};
  static inline bool asked_ = false, reported_ = false;
};

// The signal that asks for a dump of the state (VIADUCT_DUMP_SIGNAL). The handler notes it; whoever
// polls in vain answers.
class DumpSignal {
 public:
  // Unless the program has a handler for that signal, or ignores it.
  static void take();
  // If the program has not taken it over meanwhile.
  static void give_back();
  // `what` is nullptr where a call asks and does not wait.
  static void answer_if_asked(const WaitedFor* what) {
    if (asked_ != 0) [[unlikely]]
      answer(what);
  }

 private:
  static void on_signal(int);
  static void answer(const WaitedFor* what);
  static inline volatile std::sig_atomic_t asked_ = 0;
};

}  // namespace viaduct::mpi
