// Buffered mode with buffers of communicators and with flushes (MPI 5.0, section 3.6),
// MPI_Isendrecv (section 3.11), and MPI_Comm_idup (section 7.4.2).
#include <algorithm>
#include <vector>

#include "job.hpp"

namespace {

using job::rank;
using job::section;
using job::size;

int next() {
  return (rank() + 1) % size();
}
int previous() {
  return (rank() + size() - 1) % size();
}

// A long message waits for its receive in the buffer, until the other rank lets the receive be
// posted.
void flushes(MPI_Comm comm, bool of_comm) {
  constexpr int kItems = 100'000;
  std::vector<int> out(kItems, rank()), in(kItems, -1);
  std::vector<std::byte> memory(2 * kItems * sizeof(int) + 2 * MPI_BSEND_OVERHEAD);
  const int bytes = static_cast<int>(memory.size());
  of_comm ? MPI_Comm_attach_buffer(comm, memory.data(), bytes)
          : MPI_Buffer_attach(memory.data(), bytes);
  MPI_Request flushed, again;
  MPI_Bsend(out.data(), kItems, MPI_INT, next(), 1, comm);
  of_comm ? MPI_Comm_iflush_buffer(comm, &flushed) : MPI_Buffer_iflush(&flushed);
  of_comm ? MPI_Comm_iflush_buffer(comm, &again) : MPI_Buffer_iflush(&again);
  int done = 1;
  MPI_Test(&flushed, &done, MPI_STATUS_IGNORE);
  if (size() > 1) CHECK_EQ(done, 0);  // a message to itself is in memory at once
  MPI_Barrier(comm);                  // no rank receives before all have looked
  MPI_Recv(in.data(), kItems, MPI_INT, previous(), 1, comm, MPI_STATUS_IGNORE);
  CHECK(std::ranges::all_of(in, [](int i) { return i == previous(); }));
  MPI_Wait(&flushed, MPI_STATUS_IGNORE);
  MPI_Wait(&again, MPI_STATUS_IGNORE);

  // The other rank receives first.
  MPI_Request received;
  MPI_Irecv(in.data(), kItems, MPI_INT, previous(), 2, comm, &received);
  MPI_Bsend(out.data(), kItems, MPI_INT, next(), 2, comm);
  CHECK_EQ(of_comm ? MPI_Comm_flush_buffer(comm) : MPI_Buffer_flush(), MPI_SUCCESS);
  MPI_Wait(&received, MPI_STATUS_IGNORE);
  of_comm ? MPI_Comm_iflush_buffer(comm, &flushed) : MPI_Buffer_iflush(&flushed);
  MPI_Wait(&flushed, MPI_STATUS_IGNORE);  // nothing is left
  void* detached = nullptr;
  int got = -1;
  of_comm ? MPI_Comm_detach_buffer(comm, &detached, &got) : MPI_Buffer_detach(&detached, &got);
  CHECK(detached == memory.data());
  CHECK_EQ(got, bytes);
}

void buffers() {
  section("flushes of the buffer of the process");
  flushes(MPI_COMM_WORLD, false);
  section("flushes of the buffer of a communicator");
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  flushes(comm, true);

  section("the communicator's buffer comes first");
  std::byte small[64], large[4096];
  MPI_Buffer_attach(large, sizeof large);
  MPI_Comm_attach_buffer_c(comm, small, sizeof small);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  const std::vector<int> out(100, rank());
  std::vector<int> in(100);
  CHECK_CLASS(MPI_Bsend(out.data(), 100, MPI_INT, next(), 0, comm), MPI_ERR_BUFFER);
  CHECK_EQ(MPI_Bsend(out.data(), 100, MPI_INT, next(), 0, MPI_COMM_WORLD), MPI_SUCCESS);
  MPI_Recv(in.data(), 100, MPI_INT, previous(), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK_CLASS(MPI_Comm_attach_buffer(comm, large, 1), MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Comm_attach_buffer(comm, nullptr, 1), MPI_ERR_ARG);
  void* detached;
  MPI_Count bytes = -1;
  MPI_Comm_detach_buffer_c(comm, &detached, &bytes);
  CHECK_EQ(bytes, MPI_Count{sizeof small});
  CHECK_EQ(MPI_Bsend(out.data(), 100, MPI_INT, next(), 0, comm), MPI_SUCCESS);  // the process's
  MPI_Recv(in.data(), 100, MPI_INT, previous(), 0, comm, MPI_STATUS_IGNORE);
  int got = -1;
  MPI_Comm_detach_buffer(comm, &detached, &got);
  CHECK(detached == nullptr);
  CHECK_EQ(got, 0);
  MPI_Buffer_detach(&detached, &got);

  section("a buffer with memory of the library's");
  MPI_Comm_attach_buffer(comm, MPI_BUFFER_AUTOMATIC, 0);
  CHECK_EQ(MPI_Bsend(out.data(), 100, MPI_INT, next(), 0, comm), MPI_SUCCESS);
  MPI_Recv(in.data(), 100, MPI_INT, previous(), 0, comm, MPI_STATUS_IGNORE);
  CHECK_EQ(in[99], previous());
  MPI_Comm_free(&comm);  // detaches
}

void exchanges() {
  section("MPI_Isendrecv");
  for (const int items : {1, 100'000}) {
    std::vector<int> out(static_cast<std::size_t>(items), rank()), in(out.size(), -1);
    MPI_Request request;
    MPI_Status status;
    MPI_Isendrecv(out.data(), items, MPI_INT, next(), 1, in.data(), items, MPI_INT, previous(), 1,
                  MPI_COMM_WORLD, &request);
    MPI_Wait(&request, &status);
    CHECK(request == MPI_REQUEST_NULL);
    CHECK_EQ(in.back(), previous());
    CHECK_EQ(status.MPI_SOURCE, previous());
    int count = -1;
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK_EQ(count, items);
    MPI_Isendrecv_replace(in.data(), items, MPI_INT, previous(), 2, next(), 2, MPI_COMM_WORLD,
                          &request);
    MPI_Wait(&request, &status);
    CHECK_EQ(in.front(), rank());
    MPI_Isendrecv_c(out.data(), items, MPI_INT, next(), 1, in.data(), items, MPI_INT, previous(), 1,
                    MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Isendrecv_replace_c(in.data(), items, MPI_INT, previous(), 2, next(), 2, MPI_COMM_WORLD,
                            &request);
    MPI_Request_free(&request);  // it goes on
    static std::vector<std::vector<int>> kept;
    kept.push_back(std::move(in));
  }
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  int two[] = {1, 2}, one = 0;
  MPI_Request request;
  MPI_Isendrecv(two, 2, MPI_INT, next(), 1, &one, 1, MPI_INT, previous(), 1, comm, &request);
  CHECK_CLASS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
  MPI_Isendrecv(two, 1, MPI_INT, next(), 1, &one, 1, MPI_INT, previous(), 1, comm, &request);
  CHECK_CLASS(MPI_Cancel(&request), MPI_ERR_REQUEST);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK_CLASS(MPI_Isendrecv(two, -1, MPI_INT, 0, 1, &one, 1, MPI_INT, 0, 1, comm, &request),
              MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Isendrecv(two, 1, MPI_INT, size(), 1, &one, 1, MPI_INT, 0, 1, comm, &request),
              MPI_ERR_RANK);
  CHECK_CLASS(MPI_Isendrecv(two, 1, MPI_INT, 0, -1, &one, 1, MPI_INT, 0, 1, comm, &request),
              MPI_ERR_TAG);
  MPI_Comm_free(&comm);
}

// Many at once, started in another order at each rank: of one communicator they have the same
// order.
void duplicates() {
  section("MPI_Comm_idup");
  constexpr int kComms = 6;
  MPI_Comm parents[kComms], made[kComms], named;
  MPI_Request requests[kComms + 1];
  for (MPI_Comm& parent : parents) MPI_Comm_dup(MPI_COMM_WORLD, &parent);
  for (int i = 0; i < kComms; ++i) {
    const int which = (i + rank()) % kComms;
    MPI_Comm_idup(parents[which], &made[which], &requests[which]);
  }
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
  MPI_Comm_idup_with_info(MPI_COMM_WORLD, info, &named, &requests[kComms]);
  MPI_Info_free(&info);
  MPI_Waitall(kComms + 1, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < kComms; ++i) {
    int result = -1, sum = 0;
    MPI_Comm_compare(parents[i], made[i], &result);
    CHECK_EQ(result, MPI_CONGRUENT);
    const int mine = rank() + i;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, made[i]);
    CHECK_EQ(sum, size() * (size() - 1) / 2 + size() * i);
  }
  // Each has messages of its own.
  for (int i = kComms - 1; i >= 0; --i) MPI_Send(&i, 1, MPI_INT, next(), 0, made[i]);
  for (int i = 0; i < kComms; ++i) {
    int got = -1;
    MPI_Recv(&got, 1, MPI_INT, previous(), 0, made[i], MPI_STATUS_IGNORE);
    CHECK_EQ(got, i);
    MPI_Comm_free(&made[i]);
    MPI_Comm_free(&parents[i]);
  }
  int flag = 0;
  char value[8] = "";
  MPI_Comm_get_info(named, &info);
  MPI_Info_get(info, "mpi_assert_no_any_tag", 7, value, &flag);
  CHECK(flag && std::string(value) == "true");
  MPI_Info_free(&info);
  MPI_Comm_free(&named);

  if (size() > 1) {
    MPI_Comm half, inter, copy;
    MPI_Comm_split(MPI_COMM_WORLD, rank() % 2, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank() % 2, 1, &inter);
    MPI_Comm_idup(inter, &copy, &requests[0]);
    MPI_Comm_free(&inter);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    int mine = rank(), theirs = -1;
    MPI_Allreduce(&mine, &theirs, 1, MPI_INT, MPI_MIN, copy);
    CHECK_EQ(theirs, 1 - rank() % 2);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&half);
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK_CLASS(MPI_Comm_idup(MPI_COMM_NULL, &named, &requests[0]), MPI_ERR_COMM);
  CHECK(named == MPI_COMM_NULL);
  CHECK_CLASS(MPI_Comm_idup(MPI_COMM_WORLD, nullptr, &requests[0]), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Comm_idup(MPI_COMM_WORLD, &named, nullptr), MPI_ERR_ARG);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

void types_and_hardware() {
  section("pairs of types, and the hardware");
  MPI_Datatype pair = MPI_INT;
  MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &pair);
  CHECK(pair == MPI_DOUBLE_INT);
  MPI_Type_get_value_index(MPI_INT, MPI_DOUBLE, &pair);
  CHECK(pair == MPI_DATATYPE_NULL);
  CHECK_CLASS(MPI_Type_get_value_index(MPI_DATATYPE_NULL, MPI_INT, &pair), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Type_get_value_index(MPI_INT, MPI_INT, nullptr), MPI_ERR_ARG);
  MPI_Info info;
  MPI_Get_hw_resource_info(&info);
  int flag = 0;
  char value[8] = "";
  MPI_Info_get(info, "mpi_shared_memory", 7, value, &flag);
  CHECK(flag && std::string(value) == "true");
  MPI_Info_free(&info);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  buffers();
  exchanges();
  duplicates();
  types_and_hardware();
  return job::report();
}
