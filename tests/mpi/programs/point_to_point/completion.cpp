// MPI_Wait*, MPI_Test*, MPI_Request_free, MPI_Request_get_status, generalized requests.
#include <algorithm>

#include "sections.hpp"

namespace p2p {
namespace {

// Null and inactive requests are complete, with an empty status (section 3.7.3).
void nothing_to_wait_for() {
  MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  int value;
  MPI_Recv_init(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &requests[1]);
  const MPI_Request inactive = requests[1];
  MPI_Status status, statuses[3];
  int flag, index, finished, indices[3];

  for (const MPI_Request one : {MPI_REQUEST_NULL, inactive}) {
    MPI_Request request = one;
    status = scrambled();
    CHECK_EQ(MPI_Wait(&request, &status), MPI_SUCCESS);
    CHECK(is_empty(status) && request == one);
    status = scrambled();
    flag = 0;
    MPI_Test(&request, &flag, &status);
    CHECK(flag && is_empty(status) && request == one);
    status = scrambled();
    flag = 0;
    MPI_Request_get_status(request, &flag, &status);
    CHECK(flag && is_empty(status));
  }
  for (MPI_Status& s : statuses) s = scrambled();
  MPI_Waitall(3, requests, statuses);
  for (const MPI_Status& s : statuses) CHECK(is_empty(s));
  for (MPI_Status& s : statuses) s = scrambled();
  flag = 0;
  MPI_Testall(3, requests, &flag, statuses);
  CHECK(flag);
  for (const MPI_Status& s : statuses) CHECK(is_empty(s));
  index = 5;
  status = scrambled();
  MPI_Waitany(3, requests, &index, &status);
  CHECK(index == MPI_UNDEFINED && is_empty(status));
  index = 5;
  flag = 0;
  status = scrambled();
  MPI_Testany(3, requests, &index, &flag, &status);
  CHECK(flag && index == MPI_UNDEFINED && is_empty(status));
  MPI_Waitsome(3, requests, &finished, indices, statuses);
  CHECK_EQ(finished, MPI_UNDEFINED);
  finished = 5;
  MPI_Testsome(3, requests, &finished, indices, statuses);
  CHECK_EQ(finished, MPI_UNDEFINED);
  CHECK(requests[1] == inactive);
  MPI_Request_free(&requests[1]);

  // Of no requests at all.
  CHECK_EQ(MPI_Waitall(0, nullptr, MPI_STATUSES_IGNORE), MPI_SUCCESS);
  MPI_Waitany(0, nullptr, &index, MPI_STATUS_IGNORE);
  CHECK_EQ(index, MPI_UNDEFINED);
  MPI_Waitsome(0, nullptr, &finished, nullptr, MPI_STATUSES_IGNORE);
  CHECK_EQ(finished, MPI_UNDEFINED);
  flag = 0;
  MPI_Testall(0, nullptr, &flag, MPI_STATUSES_IGNORE);
  CHECK(flag);
}

constexpr int kMany = 8;

struct Exchange {  // receives of kMany numbers; they arrive when the sender is told to go on
  int in[kMany];
  MPI_Request requests[kMany];

  Exchange() {
    for (int i = 0; i < kMany; ++i) {
      in[i] = -1;
      MPI_Irecv(&in[i], 1, MPI_INT, before(), i, MPI_COMM_WORLD, &requests[i]);
    }
  }
  static void send(int i) {
    const int value = 100 * job::rank() + i;
    MPI_Send(&value, 1, MPI_INT, next(), i, MPI_COMM_WORLD);
  }
  void check(int i, const MPI_Status& status) const {
    CHECK_EQ(in[i], 100 * before() + i);
    CHECK_EQ(status.MPI_ERROR, scrambled().MPI_ERROR);  // only errors are put there (section 3.2.5)
    CHECK_EQ(status.MPI_TAG, i);
    CHECK_EQ(status.MPI_SOURCE, before());
    CHECK(requests[i] == MPI_REQUEST_NULL);
  }
};

void any() {
  Exchange e;
  for (int i = kMany - 1; i >= 0; --i) {  // only one is complete at a time
    Exchange::send(i);
    int index = -1, flag = 0;
    MPI_Status status = scrambled();
    if (i % 2) {
      MPI_Waitany(kMany, e.requests, &index, &status);
    } else {
      while (!flag) MPI_Testany(kMany, e.requests, &index, &flag, &status);
    }
    CHECK_EQ(index, i);
    if (index == i) e.check(i, status);
    flag = 1;
    MPI_Testany(kMany, e.requests, &index, &flag, &status);
    CHECK_EQ(flag, i == 0);  // nothing else is; at the end there is no active request left
    CHECK_EQ(index, MPI_UNDEFINED);
    MPI_Barrier(MPI_COMM_WORLD);  // the one before must not be ahead
  }
}

void some() {
  Exchange e;
  int finished = -1, indices[kMany], left = kMany;
  MPI_Status statuses[kMany];
  std::fill(statuses, statuses + kMany, scrambled());
  MPI_Testsome(kMany, e.requests, &finished, indices, statuses);
  CHECK_EQ(finished, 0);
  MPI_Request told;
  MPI_Isend(nullptr, 0, MPI_CHAR, before(), 903, MPI_COMM_WORLD, &told);
  await(next(), 903);  // the next one has seen that nothing has come
  for (int i = 0; i < kMany; ++i) Exchange::send(i);
  for (int round = 0; left > 0; ++round) {
    if (round % 2)
      MPI_Waitsome(kMany, e.requests, &finished, indices, statuses);
    else
      MPI_Testsome(kMany, e.requests, &finished, indices, statuses);
    CHECK(round % 2 == 0 || finished > 0);
    for (int i = 0; i < finished; ++i) e.check(indices[i], statuses[i]);
    left -= finished;
  }
  MPI_Wait(&told, MPI_STATUS_IGNORE);
}

void all() {
  Exchange e;
  int flag = 1;
  MPI_Status statuses[kMany];
  std::fill(statuses, statuses + kMany, scrambled());
  for (int i = 0; i + 1 < kMany; ++i) Exchange::send(i);
  MPI_Testall(kMany, e.requests, &flag, statuses);
  CHECK(!flag);  // the last one is missing; no request may be gone
  for (const MPI_Request request : e.requests) CHECK(request != MPI_REQUEST_NULL);
  MPI_Request told;
  MPI_Isend(nullptr, 0, MPI_CHAR, before(), 904, MPI_COMM_WORLD, &told);
  await(next(), 904);
  Exchange::send(kMany - 1);
  for (flag = 0; !flag;) MPI_Testall(kMany, e.requests, &flag, statuses);
  for (int i = 0; i < kMany; ++i) e.check(i, statuses[i]);
  MPI_Wait(&told, MPI_STATUS_IGNORE);
}

void get_status() {
  int in = -1, flag = 1;
  const int out = job::rank();
  MPI_Request request, told;
  MPI_Status status = scrambled();
  MPI_Irecv(&in, 1, MPI_INT, before(), 9, MPI_COMM_WORLD, &request);
  MPI_Request_get_status(request, &flag, &status);
  CHECK(!flag);
  MPI_Isend(nullptr, 0, MPI_CHAR, before(), 905, MPI_COMM_WORLD, &told);
  await(next(), 905);
  MPI_Send(&out, 1, MPI_INT, next(), 9, MPI_COMM_WORLD);
  for (int round = 0; round < 2; ++round) {  // it stays complete until somebody waits for it
    flag = 0;
    status = scrambled();
    while (!flag) MPI_Request_get_status(request, &flag, &status);
    CHECK(request != MPI_REQUEST_NULL);
    CHECK_EQ(status.MPI_SOURCE, before());
    CHECK_EQ(in, before());
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Wait(&told, MPI_STATUS_IGNORE);
}

// The operation goes on when its request is freed (section 3.7.3).
void free_active() {
  for (const int bytes : kSizes) {
    const std::vector<char> out = pattern(bytes, job::rank());
    std::vector<char> in(out.size());
    MPI_Request request;
    MPI_Isend(out.data(), bytes, MPI_CHAR, next(), 10, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    CHECK(request == MPI_REQUEST_NULL);
    MPI_Recv(in.data(), bytes, MPI_CHAR, before(), 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(in == pattern(bytes, before()));
    MPI_Send_init(in.data(), bytes, MPI_CHAR, next(), 11, MPI_COMM_WORLD, &request);
    MPI_Start(&request);
    MPI_Request_free(&request);
    CHECK(request == MPI_REQUEST_NULL);
    std::vector<char> back(out.size());
    MPI_Recv(back.data(), bytes, MPI_CHAR, before(), 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(back == pattern(bytes, (job::rank() + 2 * job::size() - 2) % job::size()));
    MPI_Barrier(MPI_COMM_WORLD);  // only now are out and in surely free
  }
}

// What the callbacks of a generalized request (section 13.2) were called with.
struct General {
  int queries = 0, frees = 0, cancels = 0, complete_when_cancelled = -1;
  int query_says = MPI_SUCCESS, free_says = MPI_SUCCESS;
};
int query(void* state, MPI_Status* status) {
  auto* general = static_cast<General*>(state);
  ++general->queries;
  MPI_Status_set_elements(status, MPI_INT, 3);
  MPI_Status_set_cancelled(status, general->cancels > 0);
  status->MPI_SOURCE = 12;
  status->MPI_TAG = 34;
  return general->query_says;
}
int free_it(void* state) {
  auto* general = static_cast<General*>(state);
  ++general->frees;
  return general->free_says;
}
int cancel_it(void* state, int complete) {
  auto* general = static_cast<General*>(state);
  ++general->cancels;
  general->complete_when_cancelled = complete;
  return MPI_SUCCESS;
}

void generalized() {
  General general;
  MPI_Request request;
  MPI_Status status = scrambled();
  int flag = 1, cancelled = -1;
  MPI_Grequest_start(query, free_it, cancel_it, &general, &request);
  MPI_Test(&request, &flag, &status);
  CHECK(!flag);
  MPI_Grequest_complete(request);
  MPI_Wait(&request, &status);
  CHECK(request == MPI_REQUEST_NULL);
  CHECK_EQ(status.MPI_SOURCE, 12);
  CHECK_EQ(status.MPI_TAG, 34);
  CHECK_EQ(count_of(status, MPI_INT), 3);
  MPI_Test_cancelled(&status, &cancelled);
  CHECK_EQ(cancelled, 0);
  CHECK_EQ(general.queries, 1);
  CHECK_EQ(general.frees, 1);

  general = {};
  MPI_Request both[2];
  int in = -1;
  MPI_Status statuses[2];
  const int out = job::rank();
  MPI_Grequest_start(query, free_it, cancel_it, &general, &both[0]);
  MPI_Irecv(&in, 1, MPI_INT, before(), 12, MPI_COMM_WORLD, &both[1]);
  MPI_Send(&out, 1, MPI_INT, next(), 12, MPI_COMM_WORLD);
  MPI_Cancel(&both[0]);
  CHECK_EQ(general.cancels, 1);
  CHECK_EQ(general.complete_when_cancelled, 0);
  MPI_Grequest_complete(both[0]);
  MPI_Waitall(2, both, statuses);
  MPI_Test_cancelled(&statuses[0], &cancelled);
  CHECK(cancelled);
  CHECK_EQ(in, before());
  CHECK_EQ(general.frees, 1);
}

// Nobody waits for one that is freed: only its free function is called.
void generalized_and_freed() {
  for (const bool completed_first : {true, false}) {
    General general;
    MPI_Request request;
    MPI_Grequest_start(query, free_it, cancel_it, &general, &request);
    MPI_Request same = request;
    if (completed_first) MPI_Grequest_complete(request);
    MPI_Request_free(&request);
    CHECK(request == MPI_REQUEST_NULL);
    CHECK_EQ(general.frees, completed_first ? 1 : 0);
    if (!completed_first) MPI_Grequest_complete(same);
    CHECK_EQ(general.frees, 1);
    CHECK_EQ(general.queries, 0);
  }
}

// Whoever calls a callback returns its error, or has it in a status; of two, the last one's.
void generalized_that_fail() {
  General general{.query_says = MPI_ERR_ARG, .free_says = MPI_ERR_OTHER};
  MPI_Request request;
  MPI_Status status = scrambled();
  int flag = 0, index = -1, out = -1;
  const auto start = [&] {
    MPI_Grequest_start(query, free_it, cancel_it, &general, &request);
    MPI_Grequest_complete(request);
    general.queries = general.frees = 0;
  };
  start();
  CHECK_CLASS(MPI_Request_get_status(request, &flag, &status), MPI_ERR_ARG);
  CHECK(flag);
  CHECK_EQ(status.MPI_TAG, 34);
  CHECK_CLASS(MPI_Request_get_status_any(1, &request, &index, &flag, &status), MPI_ERR_ARG);
  CHECK_EQ(index, 0);
  CHECK_CLASS(MPI_Request_get_status_all(1, &request, &flag, &status), MPI_ERR_IN_STATUS);
  CHECK_EQ(status.MPI_ERROR, MPI_ERR_ARG);
  CHECK_CLASS(MPI_Request_get_status_some(1, &request, &out, &index, &status), MPI_ERR_IN_STATUS);
  CHECK_EQ(out, 1);
  CHECK_EQ(status.MPI_ERROR, MPI_ERR_ARG);
  CHECK_EQ(general.queries, 4);
  // Also if nobody wants to know the status.
  CHECK_CLASS(MPI_Request_get_status_all(1, &request, &flag, MPI_STATUSES_IGNORE),
              MPI_ERR_IN_STATUS);
  CHECK_CLASS(MPI_Request_get_status_some(1, &request, &out, &index, MPI_STATUSES_IGNORE),
              MPI_ERR_IN_STATUS);
  CHECK_EQ(general.queries, 6);
  CHECK_EQ(general.frees, 0);
  CHECK_CLASS(MPI_Wait(&request, &status), MPI_ERR_OTHER);
  CHECK_EQ(general.frees, 1);
  start();
  CHECK_CLASS(MPI_Waitall(1, &request, &status), MPI_ERR_IN_STATUS);
  CHECK_EQ(status.MPI_ERROR, MPI_ERR_OTHER);
  general.free_says = MPI_SUCCESS;
  start();
  CHECK_CLASS(MPI_Wait(&request, &status), MPI_ERR_ARG);
}

}  // namespace

void completion() {
  job::section("null and inactive requests, no requests");
  nothing_to_wait_for();
  job::section("MPI_Waitany, MPI_Testany: the one that is complete");
  any();
  job::section("MPI_Waitsome, MPI_Testsome");
  some();
  job::section("MPI_Testall: all or none");
  all();
  job::section("MPI_Request_get_status leaves the request");
  get_status();
  job::section("MPI_Request_free of active requests");
  free_active();
  job::section("generalized requests");
  generalized();
  generalized_and_freed();
  generalized_that_fail();
}

}  // namespace p2p
