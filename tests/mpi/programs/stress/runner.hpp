// Runs this rank's part of a plan and checks what was received against MPI's rules of matching.
#pragma once

#include <memory>
#include <string>

#include "plan.hpp"

namespace stress {

class Runner {
 public:
  Runner(std::uint64_t seed, const Plan& plan, const std::vector<Communicator>& comms,
         int world_rank);

  // Sets `at` to the step under way.
  void run(int& at);
  // After run(). What is wrong, one line each; at most a few.
  std::vector<std::string> check();

 private:
  struct Outgoing {
    std::shared_ptr<Layout> layout;
    std::vector<std::byte> memory;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  struct Incoming {
    std::shared_ptr<Layout> layout;
    std::vector<std::byte> memory;   // MPI writes here
    std::vector<std::byte> arrived;  // what it was when the receive was complete
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status{};
  };

  const Class& class_of(int group) const { return plan_.classes[static_cast<std::size_t>(group)]; }
  MPI_Comm comm_of(int group) const;
  Outgoing& prepare_send(int message);
  Incoming& prepare_receive(int receive);
  void send(int message);
  void receive(int receive);
  void receive_probed(const ReceivePlan& plan, MPI_Comm comm, Incoming& in);
  void receive_matched(const ReceivePlan& plan, MPI_Comm comm, Incoming& in);
  void receive_cancelled(const ReceivePlan& plan, MPI_Comm comm, Incoming& in);
  void sendrecv(const Step& step);
  void wait(const Step& step);
  void dead_receive(const Step& step);
  void end_dead_receives();
  void complete(Incoming& in);
  void free_persistent();

  void check_class(const Class& c);
  void check_receive(const Class& c, int receive, int message);
  void wrong(int receive, const std::string& what);
  std::vector<std::byte> content(int message) const;

  std::uint64_t seed_;
  const Plan& plan_;
  const std::vector<Communicator>& comms_;
  int world_rank_;
  std::vector<Outgoing> outgoing_;  // by message
  std::vector<Incoming> incoming_;  // by receive
  std::vector<MPI_Request> dead_;
  int dead_buffer_ = 0;
  std::vector<std::string> complaints_;
};

}  // namespace stress
