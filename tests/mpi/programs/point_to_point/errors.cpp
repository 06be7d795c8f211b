// Errors come back with the right class, and the job goes on.
#include <chrono>
#include <thread>

#include "sections.hpp"

namespace p2p {
namespace {

constexpr int kRoom = 10;

// A message that is longer than its receive: what fits arrives, nothing behind it is touched.
template <class Receive>
void truncated(int bytes, Receive receive) {
  const std::vector<char> out = pattern(bytes, job::rank());
  std::vector<char> in(kRoom + 1, 'x');
  MPI_Request request;
  MPI_Isend(out.data(), bytes, MPI_CHAR, next(), 40, MPI_COMM_WORLD, &request);
  CHECK_CLASS(receive(in.data()), MPI_ERR_TRUNCATE);
  CHECK_EQ(in.back(), 'x');
  CHECK_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);  // the sender is not to blame
}

void truncation() {
  for (const int bytes : {kRoom + 1, 1000, 65536, 1000003}) {
    truncated(bytes, [](char* in) {
      return MPI_Recv(in, kRoom, MPI_CHAR, before(), 40, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    });
    truncated(bytes, [](char* in) {
      MPI_Request request;
      MPI_Irecv(in, kRoom, MPI_CHAR, before(), 40, MPI_COMM_WORLD, &request);
      return MPI_Wait(&request, MPI_STATUS_IGNORE);
    });
    truncated(bytes, [](char* in) {
      MPI_Request request;
      int flag = 0, result = MPI_SUCCESS;
      MPI_Irecv(in, kRoom, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
      while (!flag && result == MPI_SUCCESS) result = MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
      return result;
    });
    truncated(bytes, [](char* in) {
      MPI_Message message;
      MPI_Mprobe(before(), 40, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
      return MPI_Mrecv(in, kRoom, MPI_CHAR, &message, MPI_STATUS_IGNORE);
    });
  }
}

// MPI_Waitall says which of them failed (section 3.7.5).
void in_status() {
  char shorter[kRoom], fits[kRoom];
  const std::vector<char> out = pattern(2 * kRoom, 1);
  MPI_Request requests[4];
  MPI_Status statuses[4] = {scrambled(), scrambled(), scrambled(), scrambled()};
  MPI_Irecv(shorter, kRoom, MPI_CHAR, before(), 41, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(fits, kRoom, MPI_CHAR, before(), 42, MPI_COMM_WORLD, &requests[1]);
  MPI_Isend(out.data(), 2 * kRoom, MPI_CHAR, next(), 41, MPI_COMM_WORLD, &requests[2]);
  MPI_Isend(out.data(), kRoom, MPI_CHAR, next(), 42, MPI_COMM_WORLD, &requests[3]);
  CHECK_CLASS(MPI_Waitall(4, requests, statuses), MPI_ERR_IN_STATUS);
  CHECK_CLASS(statuses[0].MPI_ERROR, MPI_ERR_TRUNCATE);
  for (int i = 1; i < 4; ++i) {  // done, or not yet looked at
    int error_class = -1;
    MPI_Error_class(statuses[i].MPI_ERROR, &error_class);
    CHECK(error_class == MPI_SUCCESS || error_class == MPI_ERR_PENDING);
  }
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

void arguments() {
  int value = 0, flag, index;
  const int size = job::size();
  int* tag_bound;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_bound, &flag);
  MPI_Request request = MPI_REQUEST_NULL;
  const MPI_Comm world = MPI_COMM_WORLD;

  for (const int rank : {size, -77, MPI_ANY_SOURCE})
    CHECK_CLASS(MPI_Send(&value, 1, MPI_INT, rank, 1, world), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Isend(&value, 1, MPI_INT, size, 1, world, &request), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Recv(&value, 1, MPI_INT, size, 1, world, MPI_STATUS_IGNORE), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Recv_init(&value, 1, MPI_INT, -77, 1, world, &request), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Iprobe(size, 1, world, &flag, MPI_STATUS_IGNORE), MPI_ERR_RANK);

  for (const int tag : {-77, MPI_ANY_TAG})
    CHECK_CLASS(MPI_Send(&value, 1, MPI_INT, 0, tag, world), MPI_ERR_TAG);
  CHECK_CLASS(MPI_Ssend_init(&value, 1, MPI_INT, 0, -77, world, &request), MPI_ERR_TAG);
  CHECK_CLASS(MPI_Irecv(&value, 1, MPI_INT, 0, -77, world, &request), MPI_ERR_TAG);
  if (*tag_bound < 2147483647)
    CHECK_CLASS(MPI_Send(&value, 1, MPI_INT, 0, *tag_bound + 1, world), MPI_ERR_TAG);

  CHECK_CLASS(MPI_Send(&value, -1, MPI_INT, 0, 1, world), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Irecv(&value, -1, MPI_INT, 0, 1, world, &request), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Waitall(-1, &request, MPI_STATUSES_IGNORE), MPI_ERR_COUNT);

  MPI_Datatype raw;
  MPI_Type_contiguous(2, MPI_INT, &raw);
  CHECK_CLASS(MPI_Send(&value, 1, MPI_DATATYPE_NULL, 0, 1, world), MPI_ERR_TYPE);
  int two[2] = {0, 0};  // never committed
  CHECK_CLASS(MPI_Send(two, 1, raw, MPI_PROC_NULL, 1, world), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Recv(two, 1, raw, MPI_PROC_NULL, 1, world, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
  MPI_Type_free(&raw);

  CHECK_CLASS(MPI_Send(&value, 1, MPI_INT, 0, 1, MPI_COMM_NULL), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Iprobe(0, 1, MPI_COMM_NULL, &flag, MPI_STATUS_IGNORE), MPI_ERR_COMM);

  request = MPI_REQUEST_NULL;
  CHECK_CLASS(MPI_Start(&request), MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_Cancel(&request), MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_Request_free(&request), MPI_ERR_REQUEST);
  CHECK_EQ(MPI_Waitany(1, &request, &index, MPI_STATUS_IGNORE), MPI_SUCCESS);
}

void arrays_that_are_missing() {
  MPI_Request request;
  int finished;
  CHECK_CLASS(MPI_Startall(1, nullptr), MPI_ERR_ARG);
  MPI_Irecv(nullptr, 0, MPI_INT, 0, 47, MPI_COMM_SELF, &request);
  MPI_Send(nullptr, 0, MPI_INT, 0, 47, MPI_COMM_SELF);
  CHECK_CLASS(MPI_Waitsome(1, &request, &finished, nullptr, MPI_STATUSES_IGNORE), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Testsome(1, &request, &finished, nullptr, MPI_STATUSES_IGNORE), MPI_ERR_ARG);
#ifdef VIADUCT_MPI_H
  CHECK_CLASS(MPI_Request_get_status_some(1, &request, &finished, nullptr, MPI_STATUSES_IGNORE),
              MPI_ERR_ARG);
#endif
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

// A probe that is refused takes nothing away.
void refused_probe() {
  MPI_Request request;
  MPI_Message message;
  int flag = 0;
  MPI_Isend(nullptr, 0, MPI_INT, 0, 48, MPI_COMM_SELF, &request);
  CHECK_CLASS(MPI_Improbe(0, 48, MPI_COMM_SELF, nullptr, &message, MPI_STATUS_IGNORE), MPI_ERR_ARG);
  MPI_Improbe(0, 48, MPI_COMM_SELF, &flag, &message, MPI_STATUS_IGNORE);
  CHECK(flag);
  if (flag) MPI_Mrecv(nullptr, 0, MPI_INT, &message, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void start_what_is_not_persistent() {
  int in = -1;
  const int out = 3;
  MPI_Request request;
  MPI_Irecv(&in, 1, MPI_INT, before(), 43, MPI_COMM_WORLD, &request);
  CHECK_CLASS(MPI_Start(&request), MPI_ERR_REQUEST);
  MPI_Send(&out, 1, MPI_INT, next(), 43, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK_EQ(in, out);
}

void buffered_mode() {
  std::vector<char> data(100000, 'b'), in(data.size());
  const int count = static_cast<int>(data.size());
  MPI_Request request;
  // No buffer, or one that is too small for the message: an error, and nothing is sent.
  CHECK_CLASS(MPI_Bsend(data.data(), count, MPI_CHAR, next(), 44, MPI_COMM_WORLD), MPI_ERR_BUFFER);
  std::vector<char> buffer(2000 + MPI_BSEND_OVERHEAD);
  const int size = static_cast<int>(buffer.size());
  MPI_Buffer_attach(buffer.data(), size);
  CHECK_CLASS(MPI_Buffer_attach(buffer.data(), size), MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Bsend(data.data(), count, MPI_CHAR, next(), 44, MPI_COMM_WORLD), MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Ibsend(data.data(), count, MPI_CHAR, next(), 44, MPI_COMM_WORLD, &request),
              MPI_ERR_BUFFER);
  int flag = 1;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Iprobe(MPI_ANY_SOURCE, 44, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  CHECK(!flag);
  // The room can be used again and again, once the messages are gone.
  for (int round = 0; round < 20; ++round) {
    CHECK_EQ(MPI_Bsend(data.data(), 2000, MPI_CHAR, next(), 45, MPI_COMM_WORLD), MPI_SUCCESS);
    MPI_Recv(in.data(), 2000, MPI_CHAR, before(), 45, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  // Detaching waits until everything is delivered.
  data.assign(data.size(), 'c');
  CHECK_EQ(MPI_Bsend(data.data(), 2000, MPI_CHAR, next(), 46, MPI_COMM_WORLD), MPI_SUCCESS);
  MPI_Irecv(in.data(), 2000, MPI_CHAR, before(), 46, MPI_COMM_WORLD, &request);
  void* address = nullptr;
  int detached = 0;
  MPI_Buffer_detach(&address, &detached);
  CHECK(address == buffer.data());
  CHECK_EQ(detached, size);
  buffer.assign(buffer.size(), 'z');
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(std::vector<char>(in.begin(), in.begin() + 2000) == std::vector<char>(2000, 'c'));
}

// The library learns that a message is through from one that lies behind hundreds of others.
void buffer_is_free_again() {
  constexpr int kLong = 1 << 20, kShort = 500, kFar = 48, kNear = 49, kWord = 50;
  if (job::size() < 3 || job::rank() > 2) return;
  std::vector<char> data(kLong, 'd'), buffer(kLong + MPI_BSEND_OVERHEAD);
  char small = 0;
  if (job::rank() == 0) {
    MPI_Buffer_attach(buffer.data(), static_cast<int>(buffer.size()));
    MPI_Bsend(data.data(), kLong, MPI_CHAR, 1, kFar, MPI_COMM_WORLD);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // meanwhile all the rest happens
    MPI_Recv(&small, 1, MPI_CHAR, 2, kWord, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_CLASS(MPI_Bsend(data.data(), kLong, MPI_CHAR, 1, kFar, MPI_COMM_WORLD), MPI_SUCCESS);
    for (int i = 0; i < kShort; ++i)
      MPI_Recv(&small, 1, MPI_CHAR, 1, kNear, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    void* address = nullptr;
    int size = 0;
    MPI_Buffer_detach(&address, &size);
  } else if (job::rank() == 1) {
    for (int i = 0; i < kShort; ++i) MPI_Send(&small, 1, MPI_CHAR, 0, kNear, MPI_COMM_WORLD);
    MPI_Recv(data.data(), kLong, MPI_CHAR, 0, kFar, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&small, 1, MPI_CHAR, 2, kWord, MPI_COMM_WORLD);
    MPI_Recv(data.data(), kLong, MPI_CHAR, 0, kFar, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(&small, 1, MPI_CHAR, 1, kWord, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&small, 1, MPI_CHAR, 0, kWord, MPI_COMM_WORLD);
  }
}

#ifdef MPI_BUFFER_AUTOMATIC
void automatic_buffer() {
  constexpr int kCount = 300000;
  MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0);
  for (int i = 0; i < 3; ++i) {
    const std::vector<char> data(kCount, static_cast<char>('e' + i));
    CHECK_CLASS(MPI_Bsend(data.data(), kCount, MPI_CHAR, next(), 51, MPI_COMM_WORLD), MPI_SUCCESS);
  }
  CHECK_CLASS(MPI_Bsend(nullptr, 0, MPI_CHAR, next(), 51, MPI_COMM_WORLD), MPI_SUCCESS);
  std::vector<char> in(kCount);
  for (int i = 0; i < 3; ++i) {
    MPI_Recv(in.data(), kCount, MPI_CHAR, before(), 51, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(in == std::vector<char>(kCount, static_cast<char>('e' + i)));
  }
  MPI_Recv(nullptr, 0, MPI_CHAR, before(), 51, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  void* address = nullptr;
  int size = 0;
  MPI_Buffer_detach(&address, &size);
  CHECK(address == MPI_BUFFER_AUTOMATIC);
}
#endif

int handler_calls = 0;
void count_call(MPI_Comm*, int*, ...) {
  ++handler_calls;
}

// What goes wrong when a persistent request is started is for its communicator's handler (section
// 9.3).
void started_without_room() {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(count_call, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Errhandler_free(&handler);
  const char data[100] = "there is no buffer";
  MPI_Request request;
  MPI_Bsend_init(data, 100, MPI_CHAR, next(), 49, comm, &request);
  CHECK_CLASS(MPI_Start(&request), MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Startall(1, &request), MPI_ERR_BUFFER);
  CHECK_EQ(handler_calls, 2);
  MPI_Request_free(&request);
  MPI_Comm_free(&comm);
}

}  // namespace

void errors() {
  job::section("a message that is too long: MPI_ERR_TRUNCATE, and the job goes on");
  truncation();
  MPI_Barrier(MPI_COMM_WORLD);
  job::section("MPI_ERR_IN_STATUS");
  in_status();
  MPI_Barrier(MPI_COMM_WORLD);
  job::section("wrong ranks, tags, counts, types, communicators, requests");
  arguments();
  start_what_is_not_persistent();
  arrays_that_are_missing();
  refused_probe();
  job::section("buffered mode without room: MPI_ERR_BUFFER; room is used again");
  buffered_mode();
  buffer_is_free_again();
#ifdef MPI_BUFFER_AUTOMATIC
  automatic_buffer();
#endif
  started_without_room();
}

}  // namespace p2p
