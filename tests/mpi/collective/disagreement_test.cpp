// What one process of a job of three answers about an operation that has failed; what the others
// say, the test decides.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "libmpi_lite/collective/collective_request.hpp"
#include "tests/mpi/transfer/process_of_three.hpp"

namespace viaduct::mpi {
namespace {

constexpr int kAnyTag = 7;

class Disagreement : public ProcessOfThree {
 protected:
  Disagreement() : ProcessOfThree({.collectives = &collective_sink()}) {}

  void hear_refusal(int from, std::uint32_t number, int error) {
    const RefusalHead head{Kind::refusal, {}, world_->collective_context(), number, error};
    sink_->on_control(from, bytes_of(head));
  }
  void hear_query(int from, std::uint32_t number) {
    const StatusQueryHead head{Kind::question, {}, world_->collective_context(), number, kAnyTag};
    sink_->on_control(from, bytes_of(head));
  }
  template <class HeadType>
  std::vector<HeadType> said(Kind kind) const {
    std::vector<HeadType> found;
    for (const std::vector<std::byte>& message : channel_->said)
      if (message[0] == static_cast<std::byte>(kind))
        std::memcpy(&found.emplace_back(), message.data(), sizeof(HeadType));
    return found;
  }
};

// Process 1 has found a mistake, and is not scheduled between its refusals to this process and to
// process 2. Process 2 learns the error from this one, not that the operation "has ended".
TEST_F(Disagreement, WhoAsksAboutAFailedOperationLearnsTheError) {
  auto barrier = make<Collective>(*world_, CollectiveKind::barrier);
  hear_refusal(1, 0, MPI_ERR_OTHER);
  EXPECT_EQ(barrier->error, MPI_ERR_OTHER);
  barrier = {};
  hear_query(2, 0);
  const auto refusals = said<RefusalHead>(Kind::refusal);
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_EQ(refusals[0].number, 0u);
  EXPECT_EQ(refusals[0].error, MPI_ERR_OTHER);
  EXPECT_TRUE(said<StatusQueryHead>(Kind::ended).empty());
}

TEST_F(Disagreement, NoAnswerBeforeTheOperationHasBegun) {
  hear_query(2, 0);
  EXPECT_TRUE(channel_->said.empty());
  hear_refusal(1, 0, MPI_ERR_OTHER);
  hear_query(2, 0);
  EXPECT_TRUE(channel_->said.empty());
}

}  // namespace
}  // namespace viaduct::mpi
