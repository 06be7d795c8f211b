// The error classes of every collective, blocking and nonblocking, for arguments that are wrong;
// all ranks make the same mistake, so nobody waits for anybody.
#include <functional>

#include "buffers.hpp"

using namespace collective;

namespace {

// The arguments that functions share; each test spoils one of them.
struct Arguments {
  MPI_Comm comm = MPI_COMM_WORLD;
  int count = 2, root = 0;
  MPI_Datatype type = MPI_INT;
  MPI_Op op = MPI_SUM;
  bool null_buffer = false, null_counts = false, in_place_receive = false, one_buffer = false;
};

class Calls {
 public:
  explicit Calls(const Arguments& arguments)
      : a(arguments),
        n(job::size()),
        out(static_cast<std::size_t>(4 * n)),
        in(out),
        counts(static_cast<std::size_t>(n), a.count),
        places(counts.size(), 0),
        types(counts.size(), a.type) {}

  void broadcast(bool nb, int expected) {
    CHECK_CLASS(COLLECTIVE(nb, bcast, Bcast, receive(), a.count, a.type, a.root, a.comm), expected);
  }
  void rooted(bool nb, int expected) {
    CHECK_CLASS(COLLECTIVE(nb, gather, Gather, send(), a.count, a.type, receive(), a.count, a.type,
                           a.root, a.comm),
                expected);
    CHECK_CLASS(COLLECTIVE(nb, scatter, Scatter, send(), a.count, a.type, receive(), a.count,
                           a.type, a.root, a.comm),
                expected);
  }
  void rooted_v(bool nb, int expected) {
    CHECK_CLASS(COLLECTIVE(nb, gatherv, Gatherv, send(), a.count, a.type, receive(), list(),
                           places.data(), a.type, a.root, a.comm),
                expected);
    CHECK_CLASS(COLLECTIVE(nb, scatterv, Scatterv, send(), list(), places.data(), a.type, receive(),
                           a.count, a.type, a.root, a.comm),
                expected);
  }
  void to_all(bool nb, int expected) {
    CHECK_CLASS(COLLECTIVE(nb, allgather, Allgather, send(), a.count, a.type, receive(), a.count,
                           a.type, a.comm),
                expected);
    CHECK_CLASS(COLLECTIVE(nb, alltoall, Alltoall, send(), a.count, a.type, receive(), a.count,
                           a.type, a.comm),
                expected);
  }
  void to_all_v(bool nb, int expected) {
    CHECK_CLASS(COLLECTIVE(nb, allgatherv, Allgatherv, send(), a.count, a.type, receive(), list(),
                           places.data(), a.type, a.comm),
                expected);
    CHECK_CLASS(COLLECTIVE(nb, alltoallv, Alltoallv, send(), list(), places.data(), a.type,
                           receive(), list(), places.data(), a.type, a.comm),
                expected);
    CHECK_CLASS(COLLECTIVE(nb, alltoallw, Alltoallw, send(), list(), places.data(), types.data(),
                           receive(), list(), places.data(), types.data(), a.comm),
                expected);
  }
  void reduce(bool nb, int expected) {
    CHECK_CLASS(
        COLLECTIVE(nb, reduce, Reduce, send(), receive(), a.count, a.type, a.op, a.root, a.comm),
        expected);
  }
  void reductions(bool nb, int expected) {
    to_all_reductions(nb, expected);
    scans(nb, expected);
  }
  void to_all_reductions(bool nb, int expected) {
    CHECK_CLASS(
        COLLECTIVE(nb, allreduce, Allreduce, send(), receive(), a.count, a.type, a.op, a.comm),
        expected);
    CHECK_CLASS(COLLECTIVE(nb, reduce_scatter_block, Reduce_scatter_block, send(), receive(),
                           a.count, a.type, a.op, a.comm),
                expected);
  }
  void scans(bool nb, int expected) {
    scan(nb, expected);
    CHECK_CLASS(COLLECTIVE(nb, exscan, Exscan, send(), receive(), a.count, a.type, a.op, a.comm),
                expected);
  }
  void scan(bool nb, int expected) {
    CHECK_CLASS(COLLECTIVE(nb, scan, Scan, send(), receive(), a.count, a.type, a.op, a.comm),
                expected);
  }
  void reduce_scatter(bool nb, int expected) {
    CHECK_CLASS(COLLECTIVE(nb, reduce_scatter, Reduce_scatter, send(), receive(), list(), a.type,
                           a.op, a.comm),
                expected);
  }
  void barrier(bool nb, int expected) {
    CHECK_CLASS(COLLECTIVE(nb, barrier, Barrier, a.comm), expected);
  }

  void with_root(bool nb, int expected) {
    broadcast(nb, expected);
    rooted(nb, expected);
    rooted_v(nb, expected);
    reduce(nb, expected);
  }
  void with_data(bool nb, int expected) {
    with_root(nb, expected);
    to_all(nb, expected);
    to_all_v(nb, expected);
    reductions(nb, expected);
    reduce_scatter(nb, expected);
  }
  void with_op(bool nb, int expected) {
    reduce(nb, expected);
    reductions(nb, expected);
    reduce_scatter(nb, expected);
  }
  void with_counts(bool nb, int expected) {
    to_all_v(nb, expected);
    reduce_scatter(nb, expected);
    if (job::size() == 1) rooted_v(nb, expected);
  }

 private:
  void* send() { return a.null_buffer ? nullptr : out.data(); }
  void* receive() {
    if (a.in_place_receive) return MPI_IN_PLACE;
    return a.null_buffer ? nullptr : a.one_buffer ? out.data() : in.data();
  }
  const int* list() { return a.null_counts ? nullptr : counts.data(); }

  Arguments a;
  int n;
  std::vector<int> out, in, counts, places;
  std::vector<MPI_Datatype> types;
};

void both_ways(const Arguments& arguments, const std::function<void(Calls&, bool)>& test) {
  for (const bool nonblocking : {false, true}) {
    Calls calls(arguments);
    test(calls, nonblocking);
  }
}

void wrong_arguments() {
  both_ways({.comm = MPI_COMM_NULL}, [](Calls& c, bool nb) {
    c.barrier(nb, MPI_ERR_COMM);
    c.with_data(nb, MPI_ERR_COMM);
  });
  both_ways({.count = -1}, [](Calls& c, bool nb) { c.with_data(nb, MPI_ERR_COUNT); });
  both_ways({.type = MPI_DATATYPE_NULL}, [](Calls& c, bool nb) { c.with_data(nb, MPI_ERR_TYPE); });
  MPI_Datatype uncommitted;
  MPI_Type_contiguous(1, MPI_INT, &uncommitted);
  both_ways({.type = uncommitted}, [](Calls& c, bool nb) { c.with_data(nb, MPI_ERR_TYPE); });
  MPI_Type_free(&uncommitted);
  for (const int root : {-1, job::size(), MPI_ROOT, MPI_PROC_NULL, MPI_ANY_SOURCE})
    both_ways({.root = root}, [](Calls& c, bool nb) { c.with_root(nb, MPI_ERR_ROOT); });
  both_ways({.op = MPI_OP_NULL}, [](Calls& c, bool nb) { c.with_op(nb, MPI_ERR_OP); });
  both_ways({.type = MPI_FLOAT, .op = MPI_BAND},
            [](Calls& c, bool nb) { c.with_op(nb, MPI_ERR_OP); });
  both_ways({.op = MPI_MAXLOC}, [](Calls& c, bool nb) { c.with_op(nb, MPI_ERR_OP); });
  both_ways({.null_buffer = true}, [](Calls& c, bool nb) { c.with_data(nb, MPI_ERR_BUFFER); });
  both_ways({.null_counts = true}, [](Calls& c, bool nb) { c.with_counts(nb, MPI_ERR_ARG); });
  both_ways({.in_place_receive = true}, [](Calls& c, bool nb) {
    c.broadcast(nb, MPI_ERR_BUFFER);
    c.to_all(nb, MPI_ERR_BUFFER);
    c.to_all_v(nb, MPI_ERR_BUFFER);
  });
}

// Where MPI_IN_PLACE was meant. Alone, as only those see it that have both buffers.
void one_buffer_for_both() {
  both_ways({.comm = MPI_COMM_SELF, .one_buffer = true}, [](Calls& c, bool nb) {
    c.rooted(nb, MPI_ERR_BUFFER);
    c.to_all(nb, MPI_ERR_BUFFER);
    c.reduce(nb, MPI_ERR_BUFFER);
    c.to_all_reductions(nb, MPI_ERR_BUFFER);
    c.scan(nb, MPI_ERR_BUFFER);
    c.reduce_scatter(nb, MPI_ERR_BUFFER);
  });
  both_ways({.comm = MPI_COMM_SELF, .count = 0, .one_buffer = true}, [](Calls& c, bool nb) {
    c.rooted(nb, MPI_SUCCESS);
    c.to_all(nb, MPI_SUCCESS);
    c.with_op(nb, MPI_SUCCESS);
  });
  // Types that start at different places in it: what one reads the other does not write.
  int pair[2] = {7, 0};
  const int one = 1, second = 1;
  MPI_Datatype behind;
  MPI_Type_indexed(1, &one, &second, MPI_INT, &behind);
  MPI_Type_commit(&behind);
  CHECK_CLASS(MPI_Allgather(pair, 1, MPI_INT, pair, 1, behind, MPI_COMM_SELF), MPI_SUCCESS);
  CHECK_EQ(pair[1], 7);
  MPI_Type_free(&behind);
}

// What is wrong with an argument that is not significant, nobody sees; nor what is wrong with no
// data.
void nothing_wrong() {
  both_ways({.count = 0, .null_buffer = true},
            [](Calls& c, bool nb) { c.with_data(nb, MPI_SUCCESS); });
  both_ways({}, [](Calls& c, bool nb) { c.with_data(nb, MPI_SUCCESS); });
  const int zero = 0;
  int one[1] = {0};
  const MPI_Datatype no_type = MPI_DATATYPE_NULL;
  MPI_Comm self;
  MPI_Comm_dup(MPI_COMM_SELF, &self);
  CHECK_CLASS(MPI_Alltoallw(one, &zero, &zero, &no_type, one, &zero, &zero, &no_type, self),
              MPI_SUCCESS);
  MPI_Comm_free(&self);
}

// Only the root may leave its part in place.
void in_place_elsewhere() {
  int data[2] = {0, 0};
  if (job::rank() == 0) return;
  CHECK_CLASS(MPI_Gather(MPI_IN_PLACE, 1, MPI_INT, data, 1, MPI_INT, 0, MPI_COMM_WORLD),
              MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Scatter(data, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, 0, MPI_COMM_WORLD),
              MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Reduce(MPI_IN_PLACE, data, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD),
              MPI_ERR_BUFFER);
}

void intercommunicators() {
  if (job::size() < 2) return;
  MPI_Comm local, inter;
  const bool first = job::rank() == 0;
  MPI_Comm_split(MPI_COMM_WORLD, first, 0, &local);
  MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, first ? 1 : 0, 2, &inter);
  MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
  both_ways({.comm = inter}, [](Calls& c, bool nb) { c.scans(nb, MPI_ERR_COMM); });
  both_ways({.comm = inter, .root = job::size()},
            [](Calls& c, bool nb) { c.with_root(nb, MPI_ERR_ROOT); });
  int data[2];
  CHECK_CLASS(MPI_Allreduce(MPI_IN_PLACE, data, 1, MPI_INT, MPI_SUM, inter), MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Allgather(MPI_IN_PLACE, 1, MPI_INT, data, 1, MPI_INT, inter), MPI_ERR_BUFFER);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&local);
}

// A message that is longer than its receivers expect: those that get it say so, and the next
// collective works.
void truncation() {
  for (const bool nonblocking : {false, true})
    for (int root = 0; root < job::size(); ++root) {
      const bool is_root = job::rank() == root;
      int data[4] = {root, 1, 2, 3}, failed = 0, all_failed = 0;
      const int code = COLLECTIVE(nonblocking, bcast, Bcast, data, is_root ? 4 : 1, MPI_INT, root,
                                  MPI_COMM_WORLD);
      if (code != MPI_SUCCESS) {
        CHECK_CLASS(code, MPI_ERR_TRUNCATE);
        failed = 1;
      }
      if (code == MPI_SUCCESS) CHECK_EQ(data[0], root);
      CHECK_CLASS(COLLECTIVE(nonblocking, allreduce, Allreduce, &failed, &all_failed, 1, MPI_INT,
                             MPI_SUM, MPI_COMM_WORLD),
                  MPI_SUCCESS);
      if (job::size() > 1) CHECK(all_failed > 0);
    }
}

void null_request() {
  CHECK_CLASS(MPI_Ibarrier(MPI_COMM_WORLD, nullptr), MPI_ERR_ARG);
}

// Collectives can be neither freed nor cancelled while they are under way (section 6.12).
void freed_and_cancelled() {
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  if (job::size() > 1) CHECK_CLASS(MPI_Request_free(&request), MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_Cancel(&request), MPI_ERR_REQUEST);
  CHECK(request != MPI_REQUEST_NULL);
  CHECK_CLASS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);

  // One that is known to be complete is like any other request.
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int done = 0; !done;) MPI_Request_get_status(request, &done, MPI_STATUS_IGNORE);
  CHECK_CLASS(MPI_Request_free(&request), MPI_SUCCESS);
  CHECK(request == MPI_REQUEST_NULL);
}

// Wrong at the root alone, so that the others have begun one collective more. Runs in MPI_Finalize,
// which must come to its end nevertheless.
int leave_out_of_step(MPI_Comm, int, void*, void*) {
  char mine[4] = {};
  std::vector<char> all(sizeof mine * static_cast<std::size_t>(job::size()));
  const int wrong = job::rank() == 0 ? -1 : 4;
  CHECK_CLASS(MPI_Gather(mine, 4, MPI_CHAR, all.data(), wrong, MPI_CHAR, 0, MPI_COMM_WORLD),
              job::rank() == 0 ? MPI_ERR_COUNT : MPI_SUCCESS);
  return MPI_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  job::section("wrong arguments");
  wrong_arguments();
  null_request();
  freed_and_cancelled();
  job::section("the same buffer twice");
  one_buffer_for_both();
  job::section("arguments that do not matter");
  nothing_wrong();
  job::section("in place away from the root");
  in_place_elsewhere();
  job::section("intercommunicators");
  intercommunicators();
  job::section("truncation");
  truncation();
  int key;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, leave_out_of_step, &key, nullptr);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
  return job::report();
}
