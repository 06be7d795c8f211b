// One process of a job, as the library sees it: the system tests start it with each launcher.
//   launch_program cards            puts, fences, gets the values of all ranks; prints one line
//   each launch_program abort CODE RANK  that rank aborts with that code, the others wait for ever
//   launch_program wait             tells its process id and waits for ever
//   launch_program fence            tells its process id; the ranks but 0 wait in a fence
//   launch_program early            rank 0 leaves at once, the others are late
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>

#include "libmpi_lite/launch/launch.hpp"

namespace {

using viaduct::mpi::Launch;

[[noreturn]] void wait_for_ever() {
  while (true) pause();
}

// In one piece: what several ranks print must not be mixed.
void say(const std::string& line) {
  const std::string text = line + "\n";
  if (write(STDOUT_FILENO, text.data(), text.size()) < 0) std::abort();
}

// Of the greatest length that is promised, with all printable characters in it.
std::string card_of(int rank) {
  std::string card = std::to_string(rank) + ":";
  for (char c = '!'; card.size() < 900; c = c == '~' ? '!' : static_cast<char>(c + 1)) card += c;
  return card;
}

void exchange(Launch& job) {
  job.put("card", card_of(job.rank()));
  job.put("second", "2=" + std::to_string(job.rank()));
  job.fence();
  for (int rank = 0; rank < job.size(); ++rank) {
    if (job.get(rank, "card") != card_of(rank)) throw std::runtime_error("wrong card");
    if (job.get(rank, "second") != "2=" + std::to_string(rank))
      throw std::runtime_error("wrong second card");
  }
  const auto start = std::chrono::steady_clock::now();
  try {
    job.get(0, "nothing");
    throw std::logic_error("a key that nobody has put was found");
  } catch (const std::runtime_error&) {
  }
  if (std::chrono::steady_clock::now() - start > std::chrono::seconds(5))
    throw std::runtime_error("it took long to see that a key is not there");
  job.put("late", "l" + std::to_string(job.rank()));
  job.fence();
  if (job.get(job.size() - 1, "late") != "l" + std::to_string(job.size() - 1))
    throw std::runtime_error("wrong late card");
}

// The last rank is late, so the fence of the others cannot be over when they first ask.
void wait_in_two_steps(Launch& job) {
  using namespace std::chrono_literals;
  const bool late = job.rank() == job.size() - 1;
  if (late) std::this_thread::sleep_for(200ms);
  job.start_fence();
  if (!late && job.fence_passed()) throw std::runtime_error("a fence was over too early");
  const auto until = std::chrono::steady_clock::now() + 10s;
  while (!job.fence_passed()) {
    if (std::chrono::steady_clock::now() > until) throw std::runtime_error("a fence has no end");
    std::this_thread::sleep_for(1ms);
  }
}

void run(Launch& job, const std::string& what, char** arguments) {
  if (what == "cards") {
    exchange(job);
    wait_in_two_steps(job);
    say(std::string(job.name()) + " rank " + std::to_string(job.rank()) + "/" +
        std::to_string(job.size()) + " local " + std::to_string(job.local_rank()) + "/" +
        std::to_string(job.local_size()) + " job " + std::to_string(job.job_key()));
  } else if (what == "abort") {
    // srun forgets the status of a job that ends while it is still being launched.
    const bool by_srun = std::getenv("SLURM_PROCID") != nullptr;
    std::this_thread::sleep_for(std::chrono::milliseconds(by_srun ? 3000 : 500));
    if (job.rank() == std::atoi(arguments[1])) job.abort(std::atoi(arguments[0]), "on purpose");
    wait_for_ever();
  } else if (what == "wait") {
    say("pid " + std::to_string(getpid()));
    wait_for_ever();
  } else if (what == "fence") {
    say("pid " + std::to_string(getpid()));
    if (job.rank() == 0) wait_for_ever();
    job.fence();
  } else if (what == "early") {
    if (job.rank() > 0) std::this_thread::sleep_for(std::chrono::seconds(2));
  } else {
    throw std::runtime_error("what? " + what);
  }
}

}  // namespace

int main(int, char** arguments) try {
  const auto job = viaduct::mpi::join_job();
  run(*job, arguments[1], arguments + 2);
  job->finalize();
  if (std::string(arguments[1]) == "early") say("done");
} catch (const std::exception& error) {
  std::cerr << "launch_program: " << error.what() << std::endl;
  return 1;
}
