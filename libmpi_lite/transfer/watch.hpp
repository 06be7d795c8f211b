// Diagnosis of programs that hang: a process reports what it waits for when a wait takes very long,
// and dumps its state when a signal asks for that. Both happen inside waits (wait.cpp), after many
// vain polls, so they are not on the path of a message. report.cpp makes the texts.
//
// Threads: only the thread that is in the library calls these functions; the signal handler only
// sets a flag and writes a fixed line.
#pragma once

#include <chrono>
#include <csignal>

namespace viaduct::mpi {

class Request;
struct Envelope;

// What a call waits for: a request, a message that is probed for, or an event that the text names;
// none of them: any of several requests. The pointers are valid for the duration of the wait.
struct WaitedFor {
  const Request* request = nullptr;
  const Envelope* probe = nullptr;
  const char* event = nullptr;
};

inline constexpr auto kAnyOfSeveral = [] { return WaitedFor{}; };

// How long a wait has lasted; each wait has one of these.
//
//    begin() -> not timed -- first look() --> timed -- patience less 1 s --> peers asked
//                                                                                |
//                                                        reported <-- patience --'
class LongWait {
 public:
  static void configure();  // reads VIADUCT_HANG_REPORT_SECONDS
  // To be called now and then while nothing happens. Reports at most once in a wait; each report
  // doubles the patience of the later waits, so that a program which means to wait is not noisy.
  void look(const WaitedFor& what);
  // Counted from the first look(); 0 before.
  std::chrono::nanoseconds lasted() const;

 private:
  void report(const WaitedFor& what);

  static inline std::chrono::seconds patience_{};  // of a wait until its report; 0: no reports
  std::chrono::nanoseconds since_{}, looked_{};    // first and last look; coarse clock
  bool asked_ = false, reported_ = false;
};

// The signal that asks for a dump of the state (VIADUCT_DUMP_SIGNAL). The handler sets a flag; the
// next vain poll answers, as a handler may not do what a dump takes.
class DumpSignal {
 public:
  // Installs the handler, unless the program has one for that signal, or ignores it.
  static void take();
  // Restores the default action, unless the program has taken the signal over meanwhile.
  static void give_back();
  // `what` is nullptr where a call polls and does not wait.
  static void answer_if_asked(const WaitedFor* what, const LongWait* wait = nullptr) {
    if (asked_ != 0) [[unlikely]]
      answer(what, wait);
  }

 private:
  static void on_signal(int);
  static void answer(const WaitedFor* what, const LongWait* wait);
  static inline volatile std::sig_atomic_t asked_ = 0;
};

}  // namespace viaduct::mpi
