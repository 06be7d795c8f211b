// Threads of the library.
#pragma once

#include <functional>
#include <thread>

namespace viaduct::vipl {

// Signals of the process are not delivered to it: they are for the program's threads, which may
// have blocked them to wait for them. Those that say that the thread itself has failed still are.
std::thread library_thread(std::function<void()> run);

}  // namespace viaduct::vipl
