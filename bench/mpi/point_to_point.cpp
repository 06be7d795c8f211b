// The point-to-point tests, between the first and the last rank; the other ranks wait in the
// barrier before the next sample. (ring and halo use all ranks.)
#include <algorithm>
#include <cstring>
#include <memory>
#include <thread>

#include "bench.hpp"

namespace bench {
namespace {

constexpr int kWindow = 64;  // messages under way at once
constexpr int kTag = 1, kPostedTag = 2;

int count_of(std::size_t bytes) {
  return static_cast<int>(bytes);
}
int first() {
  return 0;
}
int last() {
  return world_size() - 1;
}

// With one rank, the first and the last would be the same and would wait for themselves.
void need_two(const char* test) {
  if (world_size() < 2) fail(std::string(test) + " needs two ranks; start it with mpiexec -n 2");
}

std::byte pattern(std::size_t i) {
  return static_cast<std::byte>(i * 7 + 3);
}

// Sends one message and compares it: the figures of a library that delivers something else would be
// worth nothing.
void check_delivery(std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  if (world_rank() == first()) {
    for (std::size_t i = 0; i < bytes; ++i) data[i] = pattern(i);
    MPI_Send(data.data(), count_of(bytes), MPI_BYTE, last(), kTag, MPI_COMM_WORLD);
  } else if (world_rank() == last()) {
    MPI_Recv(data.data(), count_of(bytes), MPI_BYTE, first(), kTag, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    for (std::size_t i = 0; i < bytes; ++i)
      if (data[i] != pattern(i)) fail("wrong data arrived at byte " + std::to_string(i));
  }
}

// Half of the time of a message there and back, by rank 0's clock.
Case latency(std::size_t bytes) {
  need_two("latency");
  check_delivery(bytes);
  auto data = std::make_shared<std::vector<std::byte>>(bytes);
  const int count = count_of(bytes);
  return {.test = "latency",
          .bytes = bytes,
          .unit = Unit::us,
          .factor = 0.5,  // half a round trip
          .batched = true,
          .root_clock = true,
          .call = [data, count] {
            void* const buffer = data->data();
            if (world_rank() == first()) {
              MPI_Send(buffer, count, MPI_BYTE, last(), kTag, MPI_COMM_WORLD);
              MPI_Recv(buffer, count, MPI_BYTE, last(), kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            } else if (world_rank() == last()) {
              MPI_Recv(buffer, count, MPI_BYTE, first(), kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
              MPI_Send(buffer, count, MPI_BYTE, first(), kTag, MPI_COMM_WORLD);
            }
          }};
}

// A window of messages one way, then a short answer when all have arrived, so that rank 0's clock
// sees the end.
std::function<void()> window_call(std::size_t bytes, MPI_Comm comm = MPI_COMM_WORLD) {
  auto data = std::make_shared<std::vector<std::byte>>(bytes * kWindow);
  auto requests = std::make_shared<std::vector<MPI_Request>>(kWindow);
  return [data, requests, bytes, comm] {
    const int count = count_of(bytes);
    std::byte* at = data->data();
    char answer = 0;
    if (world_rank() == first()) {
      for (MPI_Request& request : *requests) {
        MPI_Isend(at, count, MPI_BYTE, last(), kTag, comm, &request);
        at += bytes;
      }
      MPI_Waitall(kWindow, requests->data(), MPI_STATUSES_IGNORE);
      MPI_Recv(&answer, 1, MPI_CHAR, last(), kTag, comm, MPI_STATUS_IGNORE);
    } else if (world_rank() == last()) {
      for (MPI_Request& request : *requests) {
        MPI_Irecv(at, count, MPI_BYTE, first(), kTag, comm, &request);
        at += bytes;
      }
      MPI_Waitall(kWindow, requests->data(), MPI_STATUSES_IGNORE);
      MPI_Send(&answer, 1, MPI_CHAR, first(), kTag, comm);
    }
  };
}

// kWindow messages one way in each call.
Case bandwidth(std::size_t bytes) {
  need_two("bandwidth");
  check_delivery(bytes);
  return {.test = "bandwidth",
          .bytes = bytes,
          .unit = Unit::mb_per_s,
          .factor = static_cast<double>(bytes) * kWindow,
          .batched = true,
          .root_clock = true,
          .call = window_call(bytes)};
}

// ---- receives that are posted before their messages ---------------------------------------------
//
// As MPI/MBCF compares its protocols: each rank posts its next receives before it sends what the
// other rank waits for. What the last rank has posted at the end is cancelled when the case goes.

struct PostedReceives {
  PostedReceives(std::size_t bytes, int count)
      : bytes(bytes), data(bytes * static_cast<std::size_t>(count)), requests(index(count)) {}
  PostedReceives(const PostedReceives&) = delete;
  PostedReceives& operator=(const PostedReceives&) = delete;
  ~PostedReceives() {
    for (MPI_Request& request : requests)
      if (posted) MPI_Cancel(&request);
    if (posted) wait();
  }
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  int count() const { return static_cast<int>(requests.size()); }
  void post(int from) {
    for (int i = 0; i < count(); ++i)
      MPI_Irecv(data.data() + bytes * index(i), count_of(bytes), MPI_BYTE, from, kPostedTag,
                MPI_COMM_WORLD, &requests[index(i)]);
    posted = true;
  }
  void wait() {
    MPI_Waitall(count(), requests.data(), MPI_STATUSES_IGNORE);
    posted = false;
  }

  const std::size_t bytes;
  std::vector<std::byte> data;
  std::vector<MPI_Request> requests;
  bool posted = false;
};

// Half of the time there and back.
Case posted_latency(std::size_t bytes) {
  need_two("posted-latency");
  auto receive = std::make_shared<PostedReceives>(bytes, 1);
  auto data = std::make_shared<std::vector<std::byte>>(bytes);
  if (world_rank() == last()) receive->post(first());
  MPI_Barrier(MPI_COMM_WORLD);  // what an earlier case has posted is cancelled
  return {.test = "posted-latency",
          .bytes = bytes,
          .unit = Unit::us,
          .factor = 0.5,
          .batched = true,
          .root_clock = true,
          .call = [receive, data, bytes] {
            const bool begins = world_rank() == first();
            if (!begins && world_rank() != last()) return;
            const int other = begins ? last() : first();
            if (!begins) receive->wait();
            receive->post(other);
            MPI_Send(data->data(), count_of(bytes), MPI_BYTE, other, kPostedTag, MPI_COMM_WORLD);
            if (begins) receive->wait();
          }};
}

// A window of messages one way. The answer says that the next window's receives are posted.
// `source`: of the receives.
Case posted_stream_from(const char* test, int source, std::size_t bytes) {
  need_two(test);
  constexpr std::size_t kMemory = 4u << 20;
  const int window = static_cast<int>(
      std::clamp<std::size_t>(kMemory / std::max<std::size_t>(bytes, 1), 2, kWindow));
  auto receives = std::make_shared<PostedReceives>(world_rank() == last() ? bytes : 0, window);
  auto data = std::make_shared<std::vector<std::byte>>(bytes);
  if (world_rank() == last()) receives->post(source);
  MPI_Barrier(MPI_COMM_WORLD);
  return {.test = test,
          .bytes = bytes,
          .unit = Unit::mb_per_s,
          .factor = static_cast<double>(bytes) * window,
          .batched = true,
          .root_clock = true,
          .call = [receives, data, bytes, source] {
            char answer = 0;
            if (world_rank() == first()) {
              for (MPI_Request& request : receives->requests)
                MPI_Isend(data->data(), count_of(bytes), MPI_BYTE, last(), kPostedTag,
                          MPI_COMM_WORLD, &request);
              receives->wait();
              MPI_Recv(&answer, 1, MPI_CHAR, last(), kPostedTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            } else if (world_rank() == last()) {
              receives->wait();
              receives->post(source);
              MPI_Send(&answer, 1, MPI_CHAR, first(), kPostedTag, MPI_COMM_WORLD);
            }
          }};
}

Case posted_stream(std::size_t bytes) {
  return posted_stream_from("posted-stream", first(), bytes);
}

Case any_source_stream(std::size_t bytes) {
  return posted_stream_from("any-stream", MPI_ANY_SOURCE, bytes);
}

// The same as bandwidth, counted in messages.
Case message_rate(std::size_t bytes) {
  need_two("rate");
  return {.test = "rate",
          .bytes = bytes,
          .unit = Unit::per_second,
          .factor = kWindow,
          .batched = true,
          .root_clock = true,
          .call = window_call(bytes)};
}

// The same by two threads a rank, each with a communicator of its own. A call is long, as it starts
// a thread.
Case thread_rate(std::size_t bytes) {
  need_two("thread-rate");
  constexpr int kWindows = 200;  // by each thread in a call
  struct Comms {
    Comms() {
      for (MPI_Comm& comm : of_thread) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    }
    ~Comms() {
      for (MPI_Comm& comm : of_thread) MPI_Comm_free(&comm);
    }
    Comms(const Comms&) = delete;
    Comms& operator=(const Comms&) = delete;
    MPI_Comm of_thread[2];
  };
  auto comms = std::make_shared<Comms>();
  const auto windows = [comms, bytes](int thread) {
    return [comms, window = window_call(bytes, comms->of_thread[thread])] {
      for (int i = 0; i < kWindows; ++i) window();
    };
  };
  return {.test = "thread-rate",
          .bytes = bytes,
          .unit = Unit::per_second,
          .factor = 2.0 * kWindows * kWindow,
          .batched = true,
          .root_clock = true,
          .call = [mine = windows(0), other = windows(1)] {
            if (world_rank() != first() && world_rank() != last()) return;
            std::thread thread(other);
            mine();
            thread.join();
          }};
}

// A token that goes round all ranks once.
Case ring(std::size_t bytes) {
  auto data = std::make_shared<std::vector<std::byte>>(bytes);
  return {.test = "ring",
          .bytes = bytes,
          .unit = Unit::us,
          .factor = 1,
          .batched = true,
          .root_clock = true,
          .call = [data, bytes] {
            const int count = count_of(bytes), rank = world_rank(), size = world_size();
            const int next = (rank + 1) % size, before = (rank + size - 1) % size;
            if (size == 1) return;
            if (rank == 0) MPI_Send(data->data(), count, MPI_BYTE, next, kTag, MPI_COMM_WORLD);
            MPI_Recv(data->data(), count, MPI_BYTE, before, kTag, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            if (rank != 0) MPI_Send(data->data(), count, MPI_BYTE, next, kTag, MPI_COMM_WORLD);
          }};
}

// The neighbours of a rank on a two-dimensional grid that is closed in both directions.
std::vector<int> grid_neighbours() {
  int dims[2] = {0, 0}, periods[2] = {1, 1};
  MPI_Comm grid;
  MPI_Dims_create(world_size(), 2, dims);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
  std::vector<int> neighbours(4);
  MPI_Cart_shift(grid, 0, 1, &neighbours[0], &neighbours[1]);
  MPI_Cart_shift(grid, 1, 1, &neighbours[2], &neighbours[3]);
  MPI_Comm_free(&grid);
  return neighbours;
}

// What a stencil code does in each step: one message to and from each of four neighbours.
Case halo(std::size_t bytes) {
  auto data = std::make_shared<std::vector<std::byte>>(8 * bytes);
  const std::vector<int> neighbours = grid_neighbours();
  return {.test = "halo",
          .bytes = bytes,
          .unit = Unit::us,
          .factor = 1,
          .batched = true,
          .root_clock = false,
          .call = [data, neighbours, bytes] {
            MPI_Request requests[8];
            for (int i = 0; i < 4; ++i) {
              const auto at = static_cast<std::size_t>(i) * bytes;
              const int peer = neighbours[static_cast<std::size_t>(i)];
              const int opposite = i ^ 1;  // what comes from above was sent down
              MPI_Irecv(data->data() + at, count_of(bytes), MPI_BYTE, peer, i, MPI_COMM_WORLD,
                        &requests[i]);
              MPI_Isend(data->data() + 4 * bytes + at, count_of(bytes), MPI_BYTE, peer, opposite,
                        MPI_COMM_WORLD, &requests[4 + i]);
            }
            MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
          }};
}

}  // namespace

std::vector<Test> point_to_point_tests() {
  return {
      {"latency", "half a round trip", true, latency},
      {"bandwidth", "64 messages under way, one way", true, bandwidth},
      {"posted-latency", "the same as latency, receives posted before what they answer", true,
       posted_latency},
      {"posted-stream", "bandwidth, receives posted before their messages are sent", true,
       posted_stream},
      {"any-stream", "the same as posted-stream, receives from MPI_ANY_SOURCE", true,
       any_source_stream},
      {"rate", "messages of 8 bytes a second, 64 under way", false,
       [](std::size_t) { return message_rate(8); }},
      {"thread-rate", "the same by two threads a rank; needs --multiple", false,
       [](std::size_t) { return thread_rate(8); }, true},
      {"ring", "a token that goes round all ranks", true, ring},
      {"halo", "one message from and to each of four neighbours on a grid of all ranks", true,
       halo},
  };
}

}  // namespace bench
