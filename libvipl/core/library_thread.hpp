// Starts the library's own threads.
#pragma once

#include <functional>
#include <thread>

namespace viaduct::vipl {

// A thread that runs `run`. It blocks all signals, so that signals of the process go to the
// program's threads, which may have blocked them in order to wait for them. Signals that report a
// fault of the thread itself (SIGSEGV, ...) stay unblocked.
std::thread library_thread(std::function<void()> run);

}  // namespace viaduct::vipl
