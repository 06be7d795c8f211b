// MPI_Cancel (section 3.8.4): the operation either happens or it does not, and the status says
// which.
#include "sections.hpp"

namespace p2p {
namespace {

bool was_cancelled(const MPI_Status& status) {
  int flag = 0;
  MPI_Test_cancelled(&status, &flag);
  return flag != 0;
}

void receives() {
  int in = -1;
  const int out = job::rank();
  MPI_Request request;
  MPI_Status status;
  MPI_Irecv(&in, 1, MPI_INT, before(), 30, MPI_COMM_WORLD, &request);
  MPI_Cancel(&request);
  MPI_Wait(&request, &status);
  CHECK(was_cancelled(status));
  CHECK(request == MPI_REQUEST_NULL);
  MPI_Barrier(MPI_COMM_WORLD);
  // A message that comes now must go to the next receive, not to the cancelled one.
  int later = -1;
  MPI_Sendrecv(&out, 1, MPI_INT, next(), 30, &later, 1, MPI_INT, before(), 30, MPI_COMM_WORLD,
               &status);
  CHECK(!was_cancelled(status));
  CHECK_EQ(later, before());
  CHECK_EQ(in, -1);

  // With wildcards, and by MPI_Test.
  MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &request);
  MPI_Cancel(&request);
  for (int flag = 0; !flag;) MPI_Test(&request, &flag, &status);
  CHECK(was_cancelled(status));
}

void complete_receive() {
  int in = -1, flag = 0;
  const int out = job::rank();
  MPI_Request request;
  MPI_Status status;
  MPI_Irecv(&in, 1, MPI_INT, before(), 31, MPI_COMM_WORLD, &request);
  MPI_Send(&out, 1, MPI_INT, next(), 31, MPI_COMM_WORLD);
  while (!flag) MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
  MPI_Cancel(&request);
  MPI_Wait(&request, &status);
  CHECK(!was_cancelled(status));
  CHECK_EQ(in, before());
}

void persistent_receive() {
  int in = -1;
  const int out = job::rank();
  MPI_Request request;
  MPI_Status status;
  MPI_Recv_init(&in, 1, MPI_INT, before(), 32, MPI_COMM_WORLD, &request);
  MPI_Start(&request);
  MPI_Cancel(&request);
  MPI_Wait(&request, &status);
  CHECK(was_cancelled(status));
  CHECK(request != MPI_REQUEST_NULL);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Start(&request);  // a new operation, not cancelled
  MPI_Send(&out, 1, MPI_INT, next(), 32, MPI_COMM_WORLD);
  MPI_Wait(&request, &status);
  CHECK(!was_cancelled(status));
  CHECK_EQ(in, before());
  MPI_Request_free(&request);
}

// The receiver posts its receive when the cancellation is under way; both must agree what happened.
void sends() {
  for (const int bytes : kSizes) {
    const std::vector<char> out = pattern(bytes, job::rank());
    std::vector<char> in(out.size(), 'x');
    MPI_Request send, told, receive;
    MPI_Status status;
    MPI_Issend(out.data(), bytes, MPI_CHAR, next(), 33, MPI_COMM_WORLD, &send);
    MPI_Cancel(&send);
    MPI_Isend(nullptr, 0, MPI_CHAR, next(), 906, MPI_COMM_WORLD, &told);
    await(before(), 906);
    MPI_Irecv(in.data(), bytes, MPI_CHAR, before(), 33, MPI_COMM_WORLD, &receive);
    MPI_Wait(&send, &status);
    MPI_Wait(&told, MPI_STATUS_IGNORE);
    const int mine = was_cancelled(status);
    int theirs = -1;
    MPI_Sendrecv(&mine, 1, MPI_INT, next(), 34, &theirs, 1, MPI_INT, before(), 34, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    if (theirs) MPI_Cancel(&receive);
    MPI_Wait(&receive, &status);
    CHECK_EQ(was_cancelled(status), theirs != 0);
    MPI_Barrier(MPI_COMM_WORLD);  // the next message must not meet this receive
    CHECK(in == (theirs ? std::vector<char>(out.size(), 'x') : pattern(bytes, before())));
  }
}

}  // namespace

void cancel() {
  job::section("a receive is cancelled");
  receives();
  job::section("a receive that is complete is not cancelled");
  complete_receive();
  MPI_Barrier(MPI_COMM_WORLD);
  job::section("a persistent receive is cancelled and started again");
  persistent_receive();
  job::section("a send is cancelled or received, never both, never neither");
  sends();
}

}  // namespace p2p
