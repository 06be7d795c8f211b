// MPI_THREAD_MULTIPLE: several threads of each rank are in MPI at the same time. Any number of
// ranks; with one, the messages go to the process itself.
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "job.hpp"

namespace {

constexpr int kThreads = 4;
int rounds = 300;  // of most loops; fewer where more processes share this machine

std::atomic<int> failures{0};  // of the threads in this section; job::state() is not theirs
void expect(bool good, const char* what, int line) {
  if (good) return;
  ++failures;
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  std::cerr << __FILE__ << ":" << line << ": not true: " << what << std::endl;
}
#define EXPECT(condition) expect((condition), #condition, __LINE__)

// Runs body(0) to body(kThreads - 1) in threads of their own, of which the main thread is one.
void in_threads(const std::function<void(int)>& body, int threads = kThreads) {
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(body, i);
  body(0);
  for (std::thread& t : others) t.join();
  CHECK_EQ(failures.exchange(0), 0);
}

int to() {
  return (job::rank() + 1) % job::size();
}
int from() {
  return (job::rank() + job::size() - 1) % job::size();
}

std::vector<MPI_Comm> comm_for_each_thread() {
  std::vector<MPI_Comm> comms(kThreads);
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  return comms;
}
void free_all(std::vector<MPI_Comm>& comms) {
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

// A ring of messages of each thread: short ones, and long ones that take rendezvous.
void ring(MPI_Comm comm, int tag, int times) {
  const int right = to(), left = from();
  for (int round = 0; round < times; ++round) {
    const std::size_t count = round % 16 == 15 ? 20'000 : 1 + static_cast<std::size_t>(round % 8);
    std::vector<int> out(count, round * 100 + tag), in(count, -1);
    MPI_Request request;
    MPI_Status status;
    MPI_Irecv(in.data(), static_cast<int>(count), MPI_INT, left, tag, comm, &request);
    MPI_Send(out.data(), static_cast<int>(count), MPI_INT, right, tag, comm);
    MPI_Wait(&request, &status);
    EXPECT(in == out);
    EXPECT(status.MPI_SOURCE == left && status.MPI_TAG == tag);
  }
}

void levels() {
  job::section("MPI_THREAD_MULTIPLE is provided");
  int level = -1, main = -1;
  MPI_Query_thread(&level);
  CHECK_EQ(level, MPI_THREAD_MULTIPLE);
  MPI_Is_thread_main(&main);
  CHECK_EQ(main, 1);
  std::thread([&] {
    MPI_Is_thread_main(&main);
    MPI_Query_thread(&level);
  }).join();
  CHECK_EQ(main, 0);
  CHECK_EQ(level, MPI_THREAD_MULTIPLE);
}

void messages() {
  job::section("threads send and receive with different tags");
  in_threads([](int i) { ring(MPI_COMM_WORLD, i, rounds); });
  job::section("threads send and receive in different communicators");
  std::vector<MPI_Comm> comms = comm_for_each_thread();
  in_threads([&](int i) { ring(comms[static_cast<std::size_t>(i)], 0, rounds); });
  free_all(comms);
}

// Each thread waits for what the thread before it sends, through the next process.
void chains() {
  job::section("a thread that waits needs one that sends");
  const int right = to(), left = from();
  in_threads([&](int i) {
    for (int round = 0; round < rounds; ++round) {
      int value = -1;
      const int next = (i + 1) % kThreads;
      if (i == 0) MPI_Send(&round, 1, MPI_INT, right, 100 + next, MPI_COMM_WORLD);
      MPI_Recv(&value, 1, MPI_INT, left, 100 + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      EXPECT(value == round);
      if (i != 0) MPI_Ssend(&round, 1, MPI_INT, right, 100 + next, MPI_COMM_WORLD);
    }
  });
  job::section("a thread that has waited for long is woken by a message to the process itself");
  const int me = job::rank();
  in_threads(
      [&](int i) {
        int value = -1;
        if (i == 0) {
          MPI_Recv(&value, 1, MPI_INT, me, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
          EXPECT(value == 5);
        } else {
          std::this_thread::sleep_for(std::chrono::milliseconds(60));
          value = 5;
          MPI_Send(&value, 1, MPI_INT, me, 7, MPI_COMM_WORLD);
        }
      },
      2);
}

// One thread completes what another one waits for.
void generalized() {
  job::section("a generalized request is completed by another thread");
  constexpr auto query = [](void*, MPI_Status* status) -> int {
    MPI_Status_set_elements(status, MPI_INT, 3);
    MPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
  };
  constexpr auto nothing = [](void*) -> int { return MPI_SUCCESS; };
  constexpr auto no_cancel = [](void*, int) -> int { return MPI_SUCCESS; };
  MPI_Request request;
  MPI_Grequest_start(query, nothing, no_cancel, nullptr, &request);
  MPI_Request same = request;
  in_threads(
      [&](int i) {
        if (i == 0) {
          MPI_Status status;
          int count = 0;
          MPI_Wait(&request, &status);
          MPI_Get_count(&status, MPI_INT, &count);
          EXPECT(count == 3);
        } else {
          std::this_thread::sleep_for(std::chrono::milliseconds(30));
          MPI_Grequest_complete(same);
        }
      },
      2);
}

void completion() {
  job::section("waits and tests on several requests, persistent ones, and probes");
  std::vector<MPI_Comm> comms = comm_for_each_thread();
  const int right = to(), left = from();
  in_threads([&](int i) {
    const MPI_Comm comm = comms[static_cast<std::size_t>(i)];
    constexpr int kMany = 6;
    int in[kMany], out[kMany];
    MPI_Request requests[2 * kMany];
    for (int k = 0; k < kMany; ++k) {
      MPI_Recv_init(&in[k], 1, MPI_INT, left, k, comm, &requests[k]);
      MPI_Send_init(&out[k], 1, MPI_INT, right, k, comm, &requests[kMany + k]);
    }
    for (int round = 0; round < rounds / 4; ++round) {
      for (int k = 0; k < kMany; ++k) out[k] = round * kMany + k;
      MPI_Startall(2 * kMany, requests);
      if (round % 3 == 0) {
        MPI_Waitall(2 * kMany, requests, MPI_STATUSES_IGNORE);
      } else if (round % 3 == 1) {
        for (int left_over = 2 * kMany, done; left_over > 0; --left_over)
          MPI_Waitany(2 * kMany, requests, &done, MPI_STATUS_IGNORE);
      } else {
        for (int flag = 0; !flag;) MPI_Testall(2 * kMany, requests, &flag, MPI_STATUSES_IGNORE);
      }
      for (int k = 0; k < kMany; ++k) EXPECT(in[k] == round * kMany + k);
    }
    for (MPI_Request& r : requests) MPI_Request_free(&r);
    for (int round = 0; round < rounds / 4; ++round) {
      int value = -1, flag = 0;
      MPI_Status status;
      MPI_Message message;
      MPI_Request sent;
      MPI_Isend(&round, 1, MPI_INT, right, i, comm, &sent);
      if (round % 2 == 0) {
        MPI_Probe(left, MPI_ANY_TAG, comm, &status);
        MPI_Recv(&value, 1, MPI_INT, left, status.MPI_TAG, comm, MPI_STATUS_IGNORE);
      } else {
        while (!flag) MPI_Iprobe(left, i, comm, &flag, &status);
        MPI_Mprobe(left, i, comm, &message, &status);
        MPI_Mrecv(&value, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
      }
      EXPECT(value == round && status.MPI_TAG == i);
      MPI_Wait(&sent, MPI_STATUS_IGNORE);
    }
  });
  free_all(comms);
  job::section("threads that probe for the same messages get each of them once");
  std::atomic<int> got{0}, sum{0};
  const int many = kThreads * 50;
  in_threads([&](int i) {
    if (i == 0)
      for (int k = 1; k <= many; ++k) MPI_Send(&k, 1, MPI_INT, right, 55, MPI_COMM_WORLD);
    for (int k = 0; k < many / kThreads; ++k) {
      MPI_Message message;
      int value = 0;
      MPI_Mprobe(left, 55, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
      MPI_Mrecv(&value, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
      ++got;
      sum += value;
    }
  });
  CHECK_EQ(got.load(), many);
  CHECK_EQ(sum.load(), many * (many + 1) / 2);
}

void collectives() {
  job::section("collectives in a communicator of each thread");
  std::vector<MPI_Comm> comms = comm_for_each_thread();
  in_threads([&](int i) {
    const MPI_Comm comm = comms[static_cast<std::size_t>(i)];
    const int n = job::size_of(comm), me = job::rank_in(comm);
    std::vector<int> all(static_cast<std::size_t>(n));
    for (int round = 0; round < rounds / 3; ++round) {
      int mine = me + round + i, sum = 0;
      MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
      EXPECT(sum == n * (round + i) + n * (n - 1) / 2);
      MPI_Request request;
      MPI_Iallgather(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, comm, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      for (int r = 0; r < n; ++r) EXPECT(all[static_cast<std::size_t>(r)] == r + round + i);
      MPI_Barrier(comm);
      int root_says = me == round % n ? round : -1;
      MPI_Bcast(&root_says, 1, MPI_INT, round % n, comm);
      EXPECT(root_says == round);
    }
  });
  job::section("threads make communicators at the same time");
  in_threads([&](int i) {
    const MPI_Comm mine = comms[static_cast<std::size_t>(i)];
    for (int round = 0; round < 10; ++round) {
      MPI_Comm made, part;
      if (round % 3 == 2) {
        MPI_Request request;
        MPI_Comm_idup(mine, &made, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
      } else {
        MPI_Comm_dup(mine, &made);
      }
      MPI_Comm_split(mine, job::rank() % 2, 0, &part);
      // Were two contexts the same, messages of different threads would mix here.
      ring(made, 1, 4);
      int value = i, sum = 0;
      MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, part);
      EXPECT(sum == i * job::size_of(part));
      MPI_Comm_free(&part);
      MPI_Comm_free(&made);
    }
  });
  free_all(comms);
}

void objects() {
  job::section("threads make and free objects, and have attributes");
  in_threads([](int i) {
    for (int round = 0; round < rounds; ++round) {
      MPI_Datatype type;
      MPI_Type_vector(2 + i, 1, 3, MPI_INT, &type);
      MPI_Type_commit(&type);
      int size = 0, key, flag = 0;
      MPI_Type_size(type, &size);
      EXPECT(size == (2 + i) * static_cast<int>(sizeof(int)));
      MPI_Type_free(&type);
      MPI_Info info;
      MPI_Info_create(&info);
      MPI_Info_set(info, "key", "value");
      char value[8];
      int room = sizeof value;
      MPI_Info_get_string(info, "key", &room, value, &flag);
      EXPECT(flag && std::string(value) == "value");
      MPI_Info_free(&info);
      MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, nullptr);
      MPI_Comm_set_attr(MPI_COMM_SELF, key, &round);
      void* found = nullptr;
      MPI_Comm_get_attr(MPI_COMM_SELF, key, static_cast<void*>(&found), &flag);
      EXPECT(flag && found == &round);
      MPI_Comm_delete_attr(MPI_COMM_SELF, key);
      MPI_Comm_free_keyval(&key);
    }
  });
}

void one_sided() {
  job::section("threads use windows: counters exact, each thread's puts and gets its own");
  long* memory = nullptr;
  MPI_Win win;
  MPI_Win_allocate((1 + kThreads) * static_cast<MPI_Aint>(sizeof(long)), sizeof(long),
                   MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&memory), &win);
  for (int i = 0; i <= kThreads; ++i) memory[i] = 0;
  MPI_Win_lock_all(0, win);
  MPI_Barrier(MPI_COMM_WORLD);
  const int right = to(), few = rounds / 6;
  in_threads([&](int i) {
    for (int round = 1; round <= few; ++round) {
      const long one = 1, value = round * 10 + i;
      long before = -1, read = -1;
      MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 0, MPI_SUM, win);
      MPI_Put(&value, 1, MPI_LONG, right, 1 + i, 1, MPI_LONG, win);
      MPI_Win_flush_all(win);
      EXPECT(before >= 0 && before < long{few} * kThreads * job::size());
      MPI_Request request;
      MPI_Rget(&read, 1, MPI_LONG, right, 1 + i, 1, MPI_LONG, win, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      EXPECT(read == value);
    }
  });
  MPI_Win_flush_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  if (job::rank() == 0) CHECK_EQ(memory[0], long{few} * kThreads * job::size());
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
}

std::atomic<int> handled{0};
void on_error(MPI_Comm* comm, int* code, ...) {
  int error_class = -1, rank = -1;
  MPI_Error_class(*code, &error_class);
  MPI_Comm_rank(*comm, &rank);
  if (error_class == MPI_ERR_TAG && rank == job::rank()) ++handled;
}

void errors() {
  job::section("errors in threads reach the handler, which may call MPI");
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(on_error, &handler);
  std::vector<MPI_Comm> comms = comm_for_each_thread();
  for (const MPI_Comm comm : comms) MPI_Comm_set_errhandler(comm, handler);
  in_threads([&](int i) {
    const MPI_Comm comm = comms[static_cast<std::size_t>(i)];
    for (int round = 0; round < 50; ++round) {
      int error_class = -1;
      MPI_Error_class(MPI_Send(&round, 1, MPI_INT, 0, -5, comm), &error_class);
      EXPECT(error_class == MPI_ERR_TAG);
      ring(comm, 3, 1);
    }
  });
  CHECK_EQ(handled.exchange(0), 50 * kThreads);
  MPI_Errhandler_free(&handler);
  free_all(comms);
}

}  // namespace

int main(int argc, char** argv) {
  int provided = -1;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  rounds = job::share_of(rounds) / ((job::size() + 1) / 2);
  levels();
  messages();
  chains();
  generalized();
  completion();
  collectives();
  objects();
  one_sided();
  errors();
  return job::report();
}
