// Persistent collectives (MPI 5.0, section 6.13): all of them, several runs with other contents
// each, started in another order at each rank, with types and operations that are freed before the
// runs.
#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "job.hpp"

namespace {

using job::rank;
using job::section;
using job::size;

constexpr int kRuns = 4;

std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}
// What rank `from` sends to rank `to` in a run.
int item(int from, int to, int run) {
  return from * 10000 + to * 10 + run;
}
int sum(int to, int run) {
  int s = 0;
  for (int from = 0; from < size(); ++from) s += item(from, to, run);
  return s;
}

void add(void* in, void* inout, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i) static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
}

// One persistent operation, with buffers of an int for each rank.
struct Operation {
  std::vector<int> out = std::vector<int>(at(size())), in = std::vector<int>(at(size()));
  std::vector<int> counts = std::vector<int>(at(size()), 1), places = std::vector<int>(at(size()));
  std::vector<int> bytes = std::vector<int>(at(size()));
  std::vector<MPI_Datatype> types;
  MPI_Request request = MPI_REQUEST_NULL;
  int kind;

  static constexpr int kKinds = 17;

  Operation(int kind, MPI_Datatype type, MPI_Op op) : types(at(size()), type), kind(kind) {
    std::iota(places.begin(), places.end(), 0);
    for (int i = 0; i < size(); ++i) bytes[at(i)] = i * static_cast<int>(sizeof(int));
    void *o = out.data(), *i = in.data();
    const int *c = counts.data(), *p = places.data(), *b = bytes.data();
    const MPI_Comm comm = MPI_COMM_WORLD;
    const MPI_Info none = MPI_INFO_NULL;
    const int root = size() - 1;
    MPI_Datatype* const t = types.data();
    switch (kind) {
      case 0: MPI_Barrier_init(comm, none, &request); break;
      case 1:
        MPI_Bcast_init(rank() == root ? o : i, size(), type, root, comm, none, &request);
        break;
      case 2: MPI_Gather_init(o, 1, type, i, 1, type, root, comm, none, &request); break;
      case 3: MPI_Gatherv_init(o, 1, type, i, c, p, type, root, comm, none, &request); break;
      case 4: MPI_Scatter_init(o, 1, type, i, 1, type, root, comm, none, &request); break;
      case 5: MPI_Scatterv_init(o, c, p, type, i, 1, type, root, comm, none, &request); break;
      case 6: MPI_Allgather_init(o, 1, type, i, 1, type, comm, none, &request); break;
      case 7: MPI_Allgatherv_init(o, 1, type, i, c, p, type, comm, none, &request); break;
      case 8: MPI_Alltoall_init(o, 1, type, i, 1, type, comm, none, &request); break;
      case 9: MPI_Alltoallv_init(o, c, p, type, i, c, p, type, comm, none, &request); break;
      case 10: MPI_Alltoallw_init(o, c, b, t, i, c, b, t, comm, none, &request); break;
      case 11: MPI_Reduce_init(o, i, size(), MPI_INT, op, root, comm, none, &request); break;
      case 12: MPI_Allreduce_init(o, i, size(), MPI_INT, op, comm, none, &request); break;
      case 13: MPI_Reduce_scatter_init(o, i, c, MPI_INT, op, comm, none, &request); break;
      case 14: MPI_Reduce_scatter_block_init(o, i, 1, MPI_INT, op, comm, none, &request); break;
      case 15: MPI_Scan_init(o, i, size(), MPI_INT, op, comm, none, &request); break;
      default: MPI_Exscan_init(o, i, size(), MPI_INT, op, comm, none, &request);
    }
    // Types with a count are the request's; the array, too, may not be read any more.
    if (kind == 10) std::fill(types.begin(), types.end(), MPI_DATATYPE_NULL);
  }

  void fill(int run) {
    for (int to = 0; to < size(); ++to) out[at(to)] = item(rank(), to, run);
    std::fill(in.begin(), in.end(), -1);
  }
  bool right(int run) const {
    const int me = rank(), root = size() - 1;
    const auto holds = [&](int n, auto expected) {
      for (int i = 0; i < n; ++i)
        if (in[at(i)] != expected(i)) return false;
      return true;
    };
    const auto partial = [&](int last) {  // the sum of the ranks up to this one
      return [last, run](int to) {
        int s = 0;
        for (int from = 0; from <= last; ++from) s += item(from, to, run);
        return s;
      };
    };
    switch (kind) {
      case 0: return true;
      case 1: return me == root || holds(size(), [&](int to) { return item(root, to, run); });
      case 2:
      case 3: return me != root || holds(size(), [&](int from) { return item(from, 0, run); });
      case 4:
      case 5: return holds(1, [&](int) { return item(root, me, run); });
      case 6:
      case 7: return holds(size(), [&](int from) { return item(from, 0, run); });
      case 8:
      case 9:
      case 10: return holds(size(), [&](int from) { return item(from, me, run); });
      case 11: return me != root || holds(size(), [&](int to) { return sum(to, run); });
      case 12: return holds(size(), [&](int to) { return sum(to, run); });
      case 13:
      case 14: return holds(1, [&](int) { return sum(me, run); });
      case 15: return holds(size(), partial(me));
      default: return me == 0 || holds(size(), partial(me - 1));
    }
  }
};

void all_kinds() {
  section("all kinds, several runs, in another order at each rank");
  MPI_Datatype type;
  MPI_Type_contiguous(static_cast<int>(sizeof(int)), MPI_BYTE, &type);
  MPI_Type_commit(&type);
  MPI_Op op;
  MPI_Op_create(add, 1, &op);
  std::vector<Operation> operations;
  operations.reserve(Operation::kKinds);
  for (int kind = 0; kind < Operation::kKinds; ++kind) operations.emplace_back(kind, type, op);
  MPI_Type_free(&type);
  MPI_Op_free(&op);

  std::minstd_rand random(static_cast<unsigned>(rank()) + 1);
  std::vector<std::size_t> order(operations.size());
  std::iota(order.begin(), order.end(), 0);
  for (int run = 0; run < kRuns; ++run) {
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) {
      operations[i].fill(run);
      CHECK_EQ(MPI_Start(&operations[i].request), MPI_SUCCESS);
    }
    std::shuffle(order.begin(), order.end(), random);
    std::vector<MPI_Request> requests;
    for (const std::size_t i : order) requests.push_back(operations[i].request);
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    for (const Operation& operation : operations) {
      CHECK(operation.right(run));
      CHECK(operation.request != MPI_REQUEST_NULL);
    }
  }
  for (Operation& operation : operations) {
    MPI_Request_free(&operation.request);
    CHECK(operation.request == MPI_REQUEST_NULL);
  }
}

void in_place_and_large() {
  section("in place, with large counts, by MPI_Startall");
  int vector[] = {rank(), 1}, other[] = {rank(), 2}, all = -1;
  MPI_Request requests[2];
  MPI_Allreduce_init_c(MPI_IN_PLACE, vector, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &requests[0]);
  MPI_Allreduce_init(other, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
  MPI_Startall(2, requests);
  int flag = 0;
  while (!flag) MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
  CHECK_EQ(vector[0], size() * (size() - 1) / 2);
  CHECK_EQ(vector[1], size());
  CHECK_EQ(all, size() - 1);
  for (MPI_Request& request : requests) MPI_Request_free(&request);
}

void between_groups() {
  if (size() < 2) return;
  section("between two groups");
  const int color = rank() % 2;
  MPI_Comm half, inter;
  MPI_Comm_split(MPI_COMM_WORLD, color, 0, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - color, 1, &inter);
  int mine = rank(), theirs = -1, remote;
  MPI_Comm_remote_size(inter, &remote);
  MPI_Request request;
  MPI_Allreduce_init(&mine, &theirs, 1, MPI_INT, MPI_MIN, inter, MPI_INFO_NULL, &request);
  MPI_Comm_free(&inter);  // the request goes on
  for (int run = 0; run < kRuns; ++run) {
    theirs = -1;
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_EQ(theirs, 1 - color);
  }
  MPI_Request_free(&request);
  MPI_Comm_free(&half);
}

// A run that fails gives its error to the communicator's handler, and the request can be started
// again.
void failures() {
  section("errors");
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int value = 0;
  MPI_Request request;
  CHECK_CLASS(MPI_Bcast_init(&value, -1, MPI_INT, 0, comm, MPI_INFO_NULL, &request), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Bcast_init(&value, 1, MPI_INT, size(), comm, MPI_INFO_NULL, &request),
              MPI_ERR_ROOT);
  CHECK_CLASS(MPI_Bcast_init(&value, 1, MPI_DATATYPE_NULL, 0, comm, MPI_INFO_NULL, &request),
              MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Bcast_init(&value, 1, MPI_INT, 0, MPI_COMM_NULL, MPI_INFO_NULL, &request),
              MPI_ERR_COMM);
  CHECK_CLASS(MPI_Bcast_init(&value, 1, MPI_INT, 0, comm, (MPI_Info)MPI_COMM_WORLD, &request),
              MPI_ERR_INFO);
  CHECK_CLASS(MPI_Bcast_init(&value, 1, MPI_INT, 0, comm, MPI_INFO_NULL, nullptr), MPI_ERR_ARG);
  float in = 0, out = 0;
  CHECK_CLASS(MPI_Allreduce_init(&in, &in, 1, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL, &request),
              MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Allreduce_init(&in, &out, 1, MPI_FLOAT, MPI_BAND, comm, MPI_INFO_NULL, &request),
              MPI_ERR_OP);
  MPI_Barrier(MPI_COMM_WORLD);

  MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  CHECK_CLASS(MPI_Cancel(&request), MPI_ERR_REQUEST);  // inactive
  MPI_Start(&request);
  CHECK_CLASS(MPI_Start(&request), MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_Cancel(&request), MPI_ERR_REQUEST);
  int flag = 0;
  MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
  if (!flag) CHECK_CLASS(MPI_Request_free(&request), MPI_ERR_REQUEST);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Request_free(&request);

  if (size() > 1) {
    int two[2] = {};
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    MPI_Comm_set_errhandler(other, MPI_ERRORS_RETURN);
    MPI_Bcast_init(two, rank() == 0 ? 2 : 1, MPI_INT, 0, other, MPI_INFO_NULL, &request);
    for (int run = 0; run < 2; ++run) {
      MPI_Start(&request);
      const int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
      if (rank() != 0) CHECK_CLASS(code, MPI_ERR_TRUNCATE);
    }
    MPI_Request_free(&request);
    MPI_Comm_free(&other);
  }
  MPI_Comm_free(&comm);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  all_kinds();
  in_place_and_large();
  between_groups();
  failures();
  return job::report();
}
