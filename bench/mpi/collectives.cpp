// The collective tests. Each makes its buffers once and then repeats one call on all ranks; the
// figure is the time of the slowest rank.
#include <algorithm>
#include <memory>

#include "bench.hpp"

namespace bench {
namespace {

using Buffer = std::shared_ptr<std::vector<double>>;

// Doubles of `bytes` bytes at least, all 1.0, so that there is something to reduce. Shared, because
// the call that holds them is copied.
Buffer make_buffer(std::size_t bytes) {
  return std::make_shared<std::vector<double>>(bytes / sizeof(double) + 1, 1.0);
}

// Which calls may follow each other without a barrier: those in which every rank waits for all
// others. In a broadcast, the root could run ahead and would measure how much the library buffers.
enum class Shape : unsigned char { everyone_waits, some_run_ahead };

// What all collective cases have in common.
Case collective(const char* name, std::size_t bytes, Shape shape, std::function<void()> call) {
  return {.test = name,
          .bytes = bytes,
          .unit = Unit::us,
          .factor = 1,
          .batched = shape == Shape::everyone_waits,
          .root_clock = false,
          .call = std::move(call)};
}

Case barrier(std::size_t) {
  return collective("barrier", 0, Shape::everyone_waits, [] { MPI_Barrier(MPI_COMM_WORLD); });
}

Case bcast(std::size_t bytes) {
  const Buffer data = make_buffer(bytes);
  return collective("bcast", bytes, Shape::some_run_ahead, [data, bytes] {
    MPI_Bcast(data->data(), static_cast<int>(bytes), MPI_BYTE, 0, MPI_COMM_WORLD);
  });
}

// As a matrix product on distributed columns does it: each rank broadcasts once.
Case bcast_round(std::size_t bytes) {
  const Buffer data = make_buffer(bytes);
  return collective("bcast-round", bytes, Shape::some_run_ahead, [data, bytes] {
    for (int root = 0; root < world_size(); ++root)
      MPI_Bcast(data->data(), static_cast<int>(bytes), MPI_BYTE, root, MPI_COMM_WORLD);
  });
}

// A round of broadcasts by the tree that MPICH makes of ranks counted from the root, all alike to
// it: what MPI-StarT's two-stage broadcast is compared with.
void binomial_broadcast(void* data, std::size_t bytes, int root) {
  constexpr int kTag = 1;
  const int size = world_size(), me = (world_rank() - root + size) % size;
  const auto rank = [&](int relative) { return (relative + root) % size; };
  const int count = static_cast<int>(bytes);
  int mask = 1;
  while (mask < size && (me & mask) == 0) mask <<= 1;
  if (mask < size)
    MPI_Recv(data, count, MPI_BYTE, rank(me - mask), kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (mask >>= 1; mask > 0; mask >>= 1)
    if (me + mask < size) MPI_Send(data, count, MPI_BYTE, rank(me + mask), kTag, MPI_COMM_WORLD);
}

Case binomial_round(std::size_t bytes) {
  const Buffer data = make_buffer(bytes);
  return collective("binomial-round", bytes, Shape::some_run_ahead, [data, bytes] {
    for (int root = 0; root < world_size(); ++root) binomial_broadcast(data->data(), bytes, root);
  });
}

// Reductions add doubles: sizes are rounded down to whole ones, at least one.
int doubles_in(std::size_t bytes) {
  return static_cast<int>(std::max<std::size_t>(1, bytes / sizeof(double)));
}

Case reduce(std::size_t bytes) {
  const Buffer in = make_buffer(bytes), out = make_buffer(bytes);
  return collective("reduce", bytes, Shape::some_run_ahead, [in, out, bytes] {
    MPI_Reduce(in->data(), out->data(), doubles_in(bytes), MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  });
}

Case allreduce(std::size_t bytes) {
  const Buffer in = make_buffer(bytes), out = make_buffer(bytes);
  return collective("allreduce", bytes, Shape::everyone_waits, [in, out, bytes] {
    MPI_Allreduce(in->data(), out->data(), doubles_in(bytes), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  });
}

Case scan(std::size_t bytes) {
  const Buffer in = make_buffer(bytes), out = make_buffer(bytes);
  return collective("scan", bytes, Shape::some_run_ahead, [in, out, bytes] {
    MPI_Scan(in->data(), out->data(), doubles_in(bytes), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  });
}

// Bytes of a buffer with a block for each rank.
std::size_t for_all(std::size_t bytes) {
  return bytes * static_cast<std::size_t>(world_size());
}

Case gather(std::size_t bytes) {
  const Buffer in = make_buffer(bytes), out = make_buffer(for_all(bytes));
  return collective("gather", bytes, Shape::some_run_ahead, [in, out, bytes] {
    const int count = static_cast<int>(bytes);
    MPI_Gather(in->data(), count, MPI_BYTE, out->data(), count, MPI_BYTE, 0, MPI_COMM_WORLD);
  });
}

Case scatter(std::size_t bytes) {
  const Buffer in = make_buffer(for_all(bytes)), out = make_buffer(bytes);
  return collective("scatter", bytes, Shape::some_run_ahead, [in, out, bytes] {
    const int count = static_cast<int>(bytes);
    MPI_Scatter(in->data(), count, MPI_BYTE, out->data(), count, MPI_BYTE, 0, MPI_COMM_WORLD);
  });
}

Case allgather(std::size_t bytes) {
  const Buffer in = make_buffer(bytes), out = make_buffer(for_all(bytes));
  return collective("allgather", bytes, Shape::everyone_waits, [in, out, bytes] {
    const int count = static_cast<int>(bytes);
    MPI_Allgather(in->data(), count, MPI_BYTE, out->data(), count, MPI_BYTE, MPI_COMM_WORLD);
  });
}

Case alltoall(std::size_t bytes) {
  const Buffer in = make_buffer(for_all(bytes)), out = make_buffer(for_all(bytes));
  return collective("alltoall", bytes, Shape::everyone_waits, [in, out, bytes] {
    const int count = static_cast<int>(bytes);
    MPI_Alltoall(in->data(), count, MPI_BYTE, out->data(), count, MPI_BYTE, MPI_COMM_WORLD);
  });
}

}  // namespace

std::vector<Test> collective_tests() {
  return {
      {"barrier", "MPI_Barrier", false, barrier},
      {"bcast", "MPI_Bcast from rank 0", true, bcast},
      {"bcast-round", "one MPI_Bcast from each rank, one after another", true, bcast_round},
      {"binomial-round", "the same by MPI_Send and MPI_Recv along MPICH's binomial trees", true,
       binomial_round},
      {"reduce", "MPI_Reduce of doubles to rank 0", true, reduce},
      {"allreduce", "MPI_Allreduce of doubles", true, allreduce},
      {"gather", "MPI_Gather to rank 0", true, gather},
      {"scatter", "MPI_Scatter from rank 0", true, scatter},
      {"allgather", "MPI_Allgather", true, allgather},
      {"alltoall", "MPI_Alltoall", true, alltoall},
      {"scan", "MPI_Scan of doubles", true, scan},
  };
}

}  // namespace bench
