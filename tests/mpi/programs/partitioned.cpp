// Partitioned communication (MPI 5.0, chapter 4): partitions that differ at both ends, ready in any
// order, several runs, types with gaps, many requests at once.
#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "job.hpp"

namespace {

using job::rank;
using job::section;
using job::size;

constexpr int kRuns = 5;

std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}
int next() {
  return (rank() + 1) % size();
}
int previous() {
  return (rank() + size() - 1) % size();
}
int item(int from, int i, int run) {
  return from * 100000 + i * 10 + run;
}

// Both ends divide the same number of ints. `gap`: the receiver puts so many ints between two.
void divided(int items, int out_partitions, int in_partitions, int gap, std::minstd_rand& random) {
  MPI_Datatype spread;
  MPI_Type_create_resized(MPI_INT, 0, static_cast<MPI_Aint>(sizeof(int)) * (gap + 1), &spread);
  MPI_Type_commit(&spread);
  std::vector<int> out(at(items)), in(at(items * (gap + 1)));
  MPI_Request send, receive;
  MPI_Psend_init(out.data(), out_partitions, items / out_partitions, MPI_INT, next(), 3,
                 MPI_COMM_WORLD, MPI_INFO_NULL, &send);
  MPI_Precv_init(in.data(), in_partitions, items / in_partitions, spread, previous(), 3,
                 MPI_COMM_WORLD, MPI_INFO_NULL, &receive);
  MPI_Type_free(&spread);
  std::vector<int> order(at(out_partitions));
  std::iota(order.begin(), order.end(), 0);
  for (int run = 0; run < kRuns; ++run) {
    std::fill(in.begin(), in.end(), -1);
    for (int i = 0; i < items; ++i) out[at(i)] = item(rank(), i, run);
    MPI_Start(&receive);
    MPI_Start(&send);
    std::shuffle(order.begin(), order.end(), random);
    for (const int partition : order) CHECK_EQ(MPI_Pready(partition, send), MPI_SUCCESS);
    for (int partition = 0; partition < in_partitions; ++partition) {
      int arrived = 0;
      while (!arrived) MPI_Parrived(receive, partition, &arrived);
      for (int i = 0; i < items / in_partitions; ++i) {
        const int k = partition * (items / in_partitions) + i;
        CHECK_EQ(in[at(k * (gap + 1))], item(previous(), k, run));
      }
    }
    MPI_Status status;
    MPI_Wait(&receive, &status);
    CHECK_EQ(status.MPI_SOURCE, previous());
    CHECK_EQ(status.MPI_TAG, 3);
    int count = -1;
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK_EQ(count, items);
    for (int k = 0; k < items; ++k)
      for (int g = 1; g <= gap; ++g) CHECK_EQ(in[at(k * (gap + 1) + g)], -1);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
  }
  MPI_Request_free(&send);
  MPI_Request_free(&receive);
}

void partitions() {
  section("partitions of different sizes, in any order");
  std::minstd_rand random(static_cast<unsigned>(rank()) + 1);
  for (const int items : {24, 24 * 1000, 24 * 20000})
    for (const int gap : {0, 1}) {
      if (gap != 0 && items > 24000) continue;
      divided(items, 6, 6, gap, random);
      divided(items, 8, 3, gap, random);
      divided(items, 3, 8, gap, random);
      divided(items, 1, 24, gap, random);
    }
}

// The sender's partitions end within items of the receiver's type, which has gaps.
void within_items() {
  section("partitions that end within an item");
  MPI_Datatype pair;  // two ints with one between them
  MPI_Type_vector(2, 1, 2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  int out[6], in[9];
  MPI_Request send, receive;
  MPI_Psend_init_c(out, 2, 3, MPI_INT, next(), 0, MPI_COMM_WORLD, MPI_INFO_NULL, &send);
  MPI_Precv_init_c(in, 3, 1, pair, previous(), 0, MPI_COMM_WORLD, MPI_INFO_NULL, &receive);
  for (int run = 0; run < kRuns; ++run) {
    for (int i = 0; i < 6; ++i) out[i] = item(rank(), i, run);
    std::fill(in, in + 9, -1);
    MPI_Start(&send);
    MPI_Pready_range(0, 1, send);
    MPI_Start(&receive);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    for (int i = 0; i < 6; ++i) CHECK_EQ(in[i / 2 * 3 + i % 2 * 2], item(previous(), i, run));
    for (int i = 0; i < 3; ++i) CHECK_EQ(in[i * 3 + 1], -1);
  }
  MPI_Request_free(&send);
  MPI_Request_free(&receive);
  MPI_Type_free(&pair);
}

// Requests of one pair of ranks match in their order; partitioned and other messages do not match.
void matching() {
  section("requests match in their order, and no other messages");
  constexpr int kRequests = 4;
  int out[kRequests][2], in[kRequests][2], plain = -1;
  MPI_Request sends[kRequests], receives[kRequests], other;
  MPI_Comm comm;  // for the receive from anybody: others may be in the next section already
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Irecv(&plain, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &other);
  for (int i = 0; i < kRequests; ++i) {
    MPI_Psend_init(out[i], 2, 1, MPI_INT, next(), i / 2, comm, MPI_INFO_NULL, &sends[i]);
    MPI_Precv_init(in[i], 1, 2, MPI_INT, previous(), i / 2, comm, MPI_INFO_NULL, &receives[i]);
  }
  for (int run = 0; run < kRuns; ++run) {
    for (int i = 0; i < kRequests; ++i)
      for (int k = 0; k < 2; ++k) out[i][k] = item(rank(), 2 * i + k, run);
    MPI_Startall(kRequests, receives);
    MPI_Startall(kRequests, sends);
    const int both[] = {1, 0};
    for (int i = kRequests - 1; i >= 0; --i) MPI_Pready_list(2, both, sends[i]);
    MPI_Waitall(kRequests, receives, MPI_STATUSES_IGNORE);
    MPI_Waitall(kRequests, sends, MPI_STATUSES_IGNORE);
    for (int i = 0; i < kRequests; ++i)
      for (int k = 0; k < 2; ++k) CHECK_EQ(in[i][k], item(previous(), 2 * i + k, run));
  }
  for (int i = 0; i < kRequests; ++i) {
    MPI_Request_free(&sends[i]);
    MPI_Request_free(&receives[i]);
  }
  const int mine = rank();
  MPI_Send(&mine, 1, MPI_INT, next(), 9, comm);
  MPI_Wait(&other, MPI_STATUS_IGNORE);
  CHECK_EQ(plain, previous());
  MPI_Comm_free(&comm);
}

void nobody() {
  section("with MPI_PROC_NULL");
  int value = 7;
  MPI_Request requests[2];
  MPI_Psend_init(&value, 1, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
                 &requests[0]);
  MPI_Precv_init(&value, 1, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
                 &requests[1]);
  for (int run = 0; run < 2; ++run) {
    MPI_Startall(2, requests);
    MPI_Pready(0, requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Status status;
    MPI_Wait(&requests[1], &status);
    CHECK_EQ(status.MPI_SOURCE, MPI_PROC_NULL);
    CHECK_EQ(value, 7);
  }
  for (MPI_Request& request : requests) MPI_Request_free(&request);
}

void errors() {
  section("errors");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  int value = 0, flag = 0;
  MPI_Request send = MPI_REQUEST_NULL, receive = MPI_REQUEST_NULL;
  const auto init = [&](int partitions, MPI_Count count, MPI_Datatype type, int to, int tag,
                        MPI_Info info) {
    return MPI_Psend_init(&value, partitions, count, type, to, tag, MPI_COMM_WORLD, info, &send);
  };
  const MPI_Info none = MPI_INFO_NULL;
  CHECK_CLASS(init(0, 1, MPI_INT, 0, 0, none), MPI_ERR_ARG);
  CHECK_CLASS(init(1, -1, MPI_INT, 0, 0, none), MPI_ERR_COUNT);
  CHECK_CLASS(init(4, INT64_MAX / 8, MPI_INT, 0, 0, none), MPI_ERR_COUNT);
  CHECK_CLASS(init(1, 1, MPI_DATATYPE_NULL, 0, 0, none), MPI_ERR_TYPE);
  CHECK_CLASS(init(1, 1, MPI_INT, size(), 0, none), MPI_ERR_RANK);
  CHECK_CLASS(init(1, 1, MPI_INT, 0, -1, none), MPI_ERR_TAG);
  CHECK_CLASS(init(1, 1, MPI_INT, 0, 0, (MPI_Info)MPI_COMM_WORLD), MPI_ERR_INFO);
  CHECK_CLASS(
      MPI_Precv_init(&value, 1, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, none, &receive),
      MPI_ERR_RANK);
  CHECK_CLASS(MPI_Precv_init(&value, 1, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, none, &receive),
              MPI_ERR_TAG);
  CHECK_CLASS(MPI_Pready(0, MPI_REQUEST_NULL), MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_Parrived(MPI_REQUEST_NULL, 0, &flag), MPI_ERR_REQUEST);

  // To itself: more data than the receiver has room for.
  int two[2] = {1, 2};
  MPI_Psend_init(two, 2, 1, MPI_INT, 0, 0, MPI_COMM_SELF, none, &send);
  MPI_Precv_init(&value, 1, 1, MPI_INT, 0, 0, MPI_COMM_SELF, none, &receive);
  CHECK_CLASS(MPI_Pready(0, send), MPI_ERR_REQUEST);  // inactive
  MPI_Start(&send);
  CHECK_CLASS(MPI_Pready(2, send), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Pready(-1, send), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Pready_range(0, 2, send), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Pready_list(1, nullptr, send), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Pready(0, receive), MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_Parrived(send, 0, &flag), MPI_ERR_REQUEST);
  CHECK_EQ(MPI_Pready(0, send), MPI_SUCCESS);
  CHECK_CLASS(MPI_Pready(0, send), MPI_ERR_ARG);  // a second time
  CHECK_CLASS(MPI_Cancel(&send), MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_Request_free(&send), MPI_ERR_REQUEST);
  MPI_Pready(1, send);
  MPI_Start(&receive);
  CHECK_CLASS(MPI_Parrived(receive, 1, &flag), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Parrived(receive, 0, nullptr), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Wait(&receive, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
  MPI_Wait(&send, MPI_STATUS_IGNORE);
  MPI_Request_free(&send);
  MPI_Request_free(&receive);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  partitions();
  within_items();
  matching();
  nobody();
  errors();
  return job::report();
}
