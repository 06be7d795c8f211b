// Probes, wildcards, the order of messages.
#include "sections.hpp"

namespace p2p {
namespace {

void probe_and_receive() {
  for (const int bytes : kSizes) {
    const std::vector<char> out = pattern(bytes, job::rank());
    std::vector<char> in(out.size());
    MPI_Request request;
    MPI_Isend(out.data(), bytes, MPI_CHAR, next(), 20, MPI_COMM_WORLD, &request);
    for (int round = 0; round < 2; ++round) {  // a probe takes nothing away
      MPI_Status status = scrambled();
      MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
      CHECK_EQ(status.MPI_SOURCE, before());
      CHECK_EQ(status.MPI_TAG, 20);
      CHECK_EQ(count_of(status), bytes);
      status = scrambled();
      int flag = 0;
      MPI_Iprobe(before(), 20, MPI_COMM_WORLD, &flag, &status);
      CHECK(flag);
      CHECK_EQ(count_of(status), bytes);
      MPI_Iprobe(before(), 21, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
      CHECK(!flag);
    }
    MPI_Recv(in.data(), bytes, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    CHECK(in == pattern(bytes, before()));
    int flag = 1;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    CHECK(!flag);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

// What MPI_Mprobe has found is out of the matching: later messages are received first.
void matched() {
  for (const int bytes : kSizes) {
    const std::vector<char> first = pattern(bytes, 1), second = pattern(bytes, 2);
    std::vector<char> in(first.size());
    MPI_Request sends[2], receive;
    MPI_Isend(first.data(), bytes, MPI_CHAR, next(), 22, MPI_COMM_WORLD, &sends[0]);
    MPI_Isend(second.data(), bytes, MPI_CHAR, next(), 22, MPI_COMM_WORLD, &sends[1]);
    MPI_Message early, late;
    MPI_Status status = scrambled();
    MPI_Mprobe(before(), MPI_ANY_TAG, MPI_COMM_WORLD, &early, &status);
    CHECK_EQ(status.MPI_SOURCE, before());
    CHECK_EQ(status.MPI_TAG, 22);
    CHECK_EQ(count_of(status), bytes);
    int flag = 0;
    while (!flag) MPI_Improbe(MPI_ANY_SOURCE, 22, MPI_COMM_WORLD, &flag, &late, &status);
    MPI_Message none;
    MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &none, &status);
    CHECK(!flag);
    MPI_Imrecv(in.data(), bytes, MPI_CHAR, &late, &receive);
    CHECK(late == MPI_MESSAGE_NULL);
    status = scrambled();
    MPI_Wait(&receive, &status);
    CHECK_EQ(count_of(status), bytes);
    CHECK(in == second);
    status = scrambled();
    MPI_Mrecv(in.data(), bytes, MPI_CHAR, &early, &status);
    CHECK(early == MPI_MESSAGE_NULL);
    CHECK_EQ(status.MPI_SOURCE, before());
    CHECK_EQ(count_of(status), bytes);
    CHECK(in == first);
    MPI_Waitall(2, sends, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

// Large and small messages take different ways through a library; their order is one (section 3.5).
void order() {
  constexpr int kMessages = 200;
  std::vector<std::vector<int>> out;
  std::vector<MPI_Request> requests(kMessages);
  for (int i = 0; i < kMessages; ++i)
    out.emplace_back(static_cast<std::size_t>(i % 3 ? 2 : 30000), i);
  for (int i = 0; i < kMessages; ++i) {
    const auto at = static_cast<std::size_t>(i);
    MPI_Isend(out[at].data(), static_cast<int>(out[at].size()), MPI_INT, next(), 23 + i % 2,
              MPI_COMM_WORLD, &requests[at]);
  }
  std::vector<int> in(30000);
  for (int i = 0; i < kMessages; ++i) {
    MPI_Status status;
    MPI_Recv(in.data(), 30000, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    CHECK_EQ(in[0], i);
    CHECK_EQ(status.MPI_TAG, 23 + i % 2);
    CHECK_EQ(count_of(status, MPI_INT), i % 3 ? 2 : 30000);
  }
  MPI_Waitall(kMessages, requests.data(), MPI_STATUSES_IGNORE);
}

// Everybody sends to rank 0, which takes what comes; and itself.
void anybody() {
  constexpr int kEach = 50;
  std::vector<MPI_Request> requests(kEach);
  std::vector<int> values(kEach);
  for (int i = 0; i < kEach; ++i) {
    const auto at = static_cast<std::size_t>(i);
    values[at] = 1000 * job::rank() + i;
    MPI_Isend(&values[at], 1, MPI_INT, 0, job::rank(), MPI_COMM_WORLD, &requests[at]);
  }
  if (job::rank() == 0) {
    std::vector<int> seen(static_cast<std::size_t>(job::size()));
    for (int i = 0; i < kEach * job::size(); ++i) {
      int value = -1;
      MPI_Status status;
      MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
      CHECK_EQ(status.MPI_SOURCE, status.MPI_TAG);
      CHECK_EQ(value,
               1000 * status.MPI_SOURCE + seen[static_cast<std::size_t>(status.MPI_SOURCE)]++);
    }
  }
  MPI_Waitall(kEach, requests.data(), MPI_STATUSES_IGNORE);
}

// A communicator is a world of its own: equal tags on another one do not match.
void communicators_apart() {
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  const int here = 1, there = 2;
  int in = -1, flag = 0;
  MPI_Request requests[2];
  MPI_Isend(&there, 1, MPI_INT, next(), 25, other, &requests[0]);
  MPI_Isend(&here, 1, MPI_INT, next(), 25, MPI_COMM_WORLD, &requests[1]);
  MPI_Recv(&in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK_EQ(in, here);
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  CHECK(!flag);
  MPI_Recv(&in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, other, MPI_STATUS_IGNORE);
  CHECK_EQ(in, there);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Comm_free(&other);
}

// The largest tag there may be.
void tag_limit() {
  int* bound = nullptr;
  int flag = 0, in = -1;
  const int out = job::rank();
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &flag);
  CHECK(flag && *bound >= 32767);
  MPI_Status status;
  MPI_Sendrecv(&out, 1, MPI_INT, next(), *bound, &in, 1, MPI_INT, before(), MPI_ANY_TAG,
               MPI_COMM_WORLD, &status);
  CHECK_EQ(status.MPI_TAG, *bound);
  CHECK_EQ(in, before());
}

// MPI_Get_count knows whole items only, MPI_Get_elements what they are made of (section 5.1.11).
void counts() {
  MPI_Datatype three;
  MPI_Type_contiguous(3, MPI_INT, &three);
  MPI_Type_commit(&three);
  for (const int ints : {0, 3, 4, 9}) {
    const std::vector<int> out(9, ints);
    std::vector<int> in(15, -1);
    MPI_Status status;
    MPI_Request request;
    MPI_Isend(out.data(), ints, MPI_INT, next(), 26, MPI_COMM_WORLD, &request);
    MPI_Recv(in.data(), 5, three, before(), 26, MPI_COMM_WORLD, &status);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    int elements = -1;
    MPI_Count elements_x = -1;
    MPI_Get_elements(&status, three, &elements);
    MPI_Get_elements_x(&status, three, &elements_x);
    CHECK_EQ(elements, ints);
    CHECK_EQ(elements_x, ints);
    CHECK_EQ(count_of(status, three), ints % 3 ? MPI_UNDEFINED : ints / 3);
    CHECK_EQ(in[static_cast<std::size_t>(ints)], -1);
  }
  MPI_Type_free(&three);
}

}  // namespace

void probes() {
  job::section("MPI_Probe, MPI_Iprobe");
  probe_and_receive();
  job::section("MPI_Mprobe, MPI_Improbe, MPI_Mrecv, MPI_Imrecv");
  matched();
  job::section("messages do not overtake each other");
  order();
  MPI_Barrier(MPI_COMM_WORLD);
  job::section("MPI_ANY_SOURCE, MPI_ANY_TAG");
  anybody();
  MPI_Barrier(MPI_COMM_WORLD);
  job::section("equal tags on two communicators");
  communicators_apart();
  MPI_Barrier(MPI_COMM_WORLD);
  job::section("the largest tag");
  tag_limit();
  job::section("MPI_Get_count, MPI_Get_elements");
  counts();
}

}  // namespace p2p
