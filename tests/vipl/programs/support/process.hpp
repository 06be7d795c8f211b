// A second process: this program once more, playing a part by its name. The two talk in lines.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace viaduct::vipl_test {

using Arguments = std::vector<std::string>;

// A part is registered by an object of this at namespace scope. It reads the other's lines on
// standard input and writes its own to standard output; what it returns is the exit status.
struct Part {
  Part(const char* name, int (*play)(const Arguments& arguments));
};
// In a part:
void tell(const std::string& line);
std::string hear();  // empty: the other has ended

class Process {
 public:
  Process(const std::string& part, const Arguments& arguments);
  ~Process();  // killed if it still runs
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void tell(const std::string& line);
  std::string hear();  // empty: it has ended
  void kill();         // SIGKILL, and waits for its end
  int wait();          // the exit status; -1: it was killed

 private:
  int reap();
  pid_t pid_ = -1;
  int in_ = -1, out_ = -1;
};

// For main(): plays the part if the command line names one.
bool play_part(int argc, char** argv, int& status);

}  // namespace viaduct::vipl_test
