// The clockwork of hang reports and state dumps: when a wait is long enough to be reported, and how
// a signal leads to a dump. The texts about operations and peers come from report.cpp.
#include "libmpi_lite/transfer/watch.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "drivers/link/types.hpp"
#include "libmpi_lite/core/config_vars.hpp"
#include "libmpi_lite/transfer/engine.hpp"
#include "libmpi_lite/transfer/process.hpp"

namespace viaduct::mpi {
namespace {

using std::chrono::seconds;

constexpr std::chrono::milliseconds kBetweenLooks{500};  // that do more than read the clock

// The clock's resolution is a few ms; reading it is much cheaper than a yield.
std::chrono::nanoseconds coarse_now() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

std::string start_of_line() {
  return "viaduct: rank " + std::to_string(Process::self().rank()) + ": ";
}

// The MPI function that the program has called. A search of the stack finds it, as noting it in
// each call would make each call longer. dladdr() knows only exported names, and of this library
// only the MPI functions are exported.
std::string called_function() {
  std::array<void*, 32> frames;
  const int depth = ::backtrace(frames.data(), static_cast<int>(frames.size()));
  for (int i = 0; i < depth; ++i) {
    Dl_info found;
    // Minus 1: a return address may be behind the last instruction of its function.
    if (::dladdr(static_cast<char*>(frames[static_cast<std::size_t>(i)]) - 1, &found) == 0 ||
        found.dli_sname == nullptr)
      continue;
    std::string_view name = found.dli_sname;
    if (name.starts_with("PMPI_")) name.remove_prefix(1);
    if (name.starts_with("MPI_")) return std::string(name);
  }
  return "MPI";
}

int dump_signal = 0;          // the signal that has been taken; 0: none
char note[96];                // the handler's line; composed before, as a handler may not do that
std::size_t note_length = 0;  // bytes

}  // namespace

// ---- long waits --------------------------------------------------------------------------------

void LongWait::configure() {
  patience_ = seconds(config_vars().number("VIADUCT_HANG_REPORT_SECONDS"));
}

std::chrono::nanoseconds LongWait::lasted() const {
  return since_ == std::chrono::nanoseconds{} ? since_ : coarse_now() - since_;
}

void LongWait::look(const WaitedFor& what) {
  const auto now = coarse_now();
  if (since_ == std::chrono::nanoseconds{}) {
    since_ = looked_ = now;
    return;
  }
  if (now - looked_ < kBetweenLooks) return;
  const auto waited = now - since_, before = looked_ - since_;
  looked_ = now;
  // Looks are 0.5 s apart or more; operations age by one when the wait enters another second.
  if (std::chrono::floor<seconds>(waited) != std::chrono::floor<seconds>(before))
    Transfer::self().age_operations();
  if (patience_ == seconds(0) || reported_) return;
  if (asked_ && waited >= patience_) return report(what);
  if (!asked_ && waited >= patience_ - seconds(1)) {
    asked_ = true;
    // A second early, so that a peer that is in the library has answered before the report.
    Transfer::self().ask_peers();
  }
}

void LongWait::report(const WaitedFor& what) {
  reported_ = true;
  patience_ *= 2;
  const auto waited = std::chrono::floor<seconds>(lasted()).count();
  std::fputs(
      (start_of_line() + called_function() + " has waited " + std::to_string(waited) + " s for " +
       Transfer::self().text_of(what) + " (VIADUCT_HANG_REPORT_SECONDS=0: no such reports" +
       (dump_signal ? "; SIG" + std::string(::sigabbrev_np(dump_signal)) + ": the whole state"
                    : std::string()) +
       ")\n")
          .c_str(),
      stderr);
}

// ---- dumps -------------------------------------------------------------------------------------

void DumpSignal::take() {
  const std::string name = config_vars().text("VIADUCT_DUMP_SIGNAL");
  if (name == "off") return;
  // A signal that the program uses is left alone; that is worth a line only if the user named it.
  const int signal = name == "SIGUSR2" ? SIGUSR2 : SIGUSR1;
  struct sigaction before {};
  if (::sigaction(signal, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) {
    if (config_vars().is_set("VIADUCT_DUMP_SIGNAL"))
      std::fprintf(stderr,
                   "%sthe program uses %s itself; VIADUCT_DUMP_SIGNAL has to name another\n",
                   start_of_line().c_str(), name.c_str());
    return;
  }
  const int length = std::snprintf(
      note, sizeof note, "%sits state was asked for, and follows as soon as it waits in MPI\n",
      start_of_line().c_str());
  note_length = std::min(static_cast<std::size_t>(length), sizeof note - 1);
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  if (::sigaction(signal, &action, nullptr) == 0) dump_signal = signal;
}

void DumpSignal::give_back() {
  struct sigaction now {};
  if (dump_signal != 0 && ::sigaction(dump_signal, nullptr, &now) == 0 &&
      now.sa_handler == on_signal)
    std::signal(dump_signal, SIG_DFL);
  dump_signal = 0;
  asked_ = 0;
}

// Only async-signal-safe calls.
void DumpSignal::on_signal(int) {
  asked_ = 1;
  const int saved = errno;
  static_cast<void>(!::write(STDERR_FILENO, note, note_length));
  errno = saved;
}

void DumpSignal::answer(const WaitedFor* what, const LongWait* wait) {
  asked_ = 0;
  std::string text = "in " + called_function();
  if (what && wait)
    text +=
        ", has waited " + link::text(wait->lasted()) + " for " + Transfer::self().text_of(*what);
  text += '\n' + Transfer::self().dump();
  // Each line names the rank, as the lines of several ranks may mix.
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    out += start_of_line() + text.substr(at, end + 1 - at);
    at = end + 1;
  }
  std::fputs(out.c_str(), stderr);
}

}  // namespace viaduct::mpi
