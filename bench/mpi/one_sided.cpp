// The tests of one-sided communication. In most of them rank 0 acts on memory of the last rank,
// which calls nothing but the barrier before the next sample: the target is passive, and its
// library acts while it waits. Windows are allocated by the library, but for the tests whose names
// begin with "created".
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "bench.hpp"

namespace bench {
namespace {

constexpr int kBatch = 64;  // operations before one flush
constexpr MPI_Aint kWord = sizeof(std::int64_t);

// The rank whose memory rank 0 acts on.
int target() {
  return world_size() - 1;
}

enum class Memory : unsigned char { allocated, created };

// A window with so many bytes at each rank, zeros at first. All calls are collective.
class Window {
 public:
  Window(std::size_t bytes, Memory memory, bool lock_all) : locked_(lock_all) {
    const auto size = static_cast<MPI_Aint>(words(bytes) * sizeof(std::int64_t));
    if (memory == Memory::created) {
      own_.resize(words(bytes));
      base_ = own_.data();
      MPI_Win_create(base_, size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win_);
    } else {
      MPI_Win_allocate(size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base_, &win_);
    }
    std::memset(base_, 0, static_cast<std::size_t>(size));
    MPI_Barrier(MPI_COMM_WORLD);
    if (locked_) MPI_Win_lock_all(MPI_MODE_NOCHECK, win_);
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  ~Window() {
    if (locked_) MPI_Win_unlock_all(win_);
    MPI_Win_free(&win_);
  }
  // At least one.
  static std::size_t words(std::size_t bytes) {
    return std::max<std::size_t>(1, bytes / sizeof(std::int64_t));
  }
  MPI_Win get() const { return win_; }
  std::int64_t* base() const { return base_; }

 private:
  std::vector<std::int64_t> own_;
  std::int64_t* base_ = nullptr;
  MPI_Win win_ = MPI_WIN_NULL;
  const bool locked_;
};

using Numbers = std::shared_ptr<std::vector<std::int64_t>>;
Numbers numbers(std::size_t bytes, std::int64_t value) {
  return std::make_shared<std::vector<std::int64_t>>(Window::words(bytes), value);
}

// A case in which only rank 0 calls something.
Case passive(const char* name, std::size_t bytes, Unit unit, double factor,
             std::function<void()> call) {
  if (world_size() < 2) fail(std::string(name) + " needs two ranks; start it with mpiexec -n 2");
  return {.test = name,
          .bytes = bytes,
          .unit = unit,
          .factor = factor,
          .batched = true,
          .root_clock = true,
          .call = [call = std::move(call)] {
            if (world_rank() == 0) call();
          }};
}

// An operation at rank 0, and the flush that waits for it; or a batch of them.
template <class Operation>
Case flushed(const char* name, std::size_t bytes, Memory memory, Operation operation) {
  auto window = std::make_shared<Window>(bytes, memory, true);
  return passive(name, bytes, Unit::us, 1, [window, operation] {
    operation(window->get());
    MPI_Win_flush(target(), window->get());
  });
}

template <class Operation>
Case rate(const char* name, Memory memory, Operation operation) {
  auto window = std::make_shared<Window>(kBatch * kWord, memory, true);
  return passive(name, kWord, Unit::per_second, kBatch, [window, operation] {
    for (int i = 0; i < kBatch; ++i) operation(window->get(), i * kWord);
    MPI_Win_flush(target(), window->get());
  });
}

// The figures of a library that does something else would be worth nothing.
void check_memory(std::size_t bytes, Memory memory) {
  Window window(bytes, memory, true);
  const auto count = static_cast<int>(Window::words(bytes));
  const Numbers sent = numbers(bytes, 7), got = numbers(bytes, 0);
  if (world_rank() == 0) {
    MPI_Put(sent->data(), count, MPI_INT64_T, target(), 0, count, MPI_INT64_T, window.get());
    MPI_Win_flush(target(), window.get());
    MPI_Accumulate(sent->data(), count, MPI_INT64_T, target(), 0, count, MPI_INT64_T, MPI_SUM,
                   window.get());
    MPI_Win_flush(target(), window.get());
    MPI_Get(got->data(), count, MPI_INT64_T, target(), 0, count, MPI_INT64_T, window.get());
    MPI_Win_flush(target(), window.get());
    for (const std::int64_t number : *got)
      if (number != 14) fail("a put of 7 and a sum of 7 gave " + std::to_string(number));
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

Case put_to(const char* name, std::size_t bytes, Memory memory) {
  check_memory(bytes, memory);
  return flushed(name, bytes, memory, [data = numbers(bytes, 1)](MPI_Win win) {
    const auto count = static_cast<int>(data->size());
    MPI_Put(data->data(), count, MPI_INT64_T, target(), 0, count, MPI_INT64_T, win);
  });
}

Case put(std::size_t bytes) {
  return put_to("put", bytes, Memory::allocated);
}

Case created_put(std::size_t bytes) {
  return put_to("created-put", bytes, Memory::created);
}

Case get(std::size_t bytes) {
  return flushed("get", bytes, Memory::allocated, [data = numbers(bytes, 1)](MPI_Win win) {
    const auto count = static_cast<int>(data->size());
    MPI_Get(data->data(), count, MPI_INT64_T, target(), 0, count, MPI_INT64_T, win);
  });
}

Case accumulate(std::size_t bytes) {
  return flushed("accumulate", bytes, Memory::allocated, [data = numbers(bytes, 1)](MPI_Win win) {
    const auto count = static_cast<int>(data->size());
    MPI_Accumulate(data->data(), count, MPI_INT64_T, target(), 0, count, MPI_INT64_T, MPI_SUM, win);
  });
}

Case fetch_and_op_on(const char* name, Memory memory) {
  return flushed(name, kWord, memory, [result = numbers(kWord, 0)](MPI_Win win) {
    static const std::int64_t one = 1;
    MPI_Fetch_and_op(&one, result->data(), MPI_INT64_T, target(), 0, MPI_SUM, win);
  });
}

Case fetch_and_op(std::size_t) {
  return fetch_and_op_on("fetch-op", Memory::allocated);
}

Case created_fetch_and_op(std::size_t) {
  return fetch_and_op_on("created-fetch-op", Memory::created);
}

// Each succeeds: it finds what the one before has stored. The buffers stay until the flush.
Case compare_and_swap(std::size_t) {
  struct Buffers {
    std::int64_t expected = -1, next = 0, result = 0;
  };
  auto buffers = std::make_shared<Buffers>();
  return flushed("cas", kWord, Memory::allocated, [buffers](MPI_Win win) {
    buffers->expected = buffers->next++;
    MPI_Compare_and_swap(&buffers->next, &buffers->expected, &buffers->result, MPI_INT64_T,
                         target(), 0, win);
  });
}

Case put_rate(std::size_t) {
  return rate("put-rate", Memory::allocated, [data = numbers(kWord, 1)](MPI_Win win, MPI_Aint at) {
    MPI_Put(data->data(), 1, MPI_INT64_T, target(), at, 1, MPI_INT64_T, win);
  });
}

Case accumulate_rate(std::size_t) {
  return rate("acc-rate", Memory::allocated, [data = numbers(kWord, 1)](MPI_Win win, MPI_Aint at) {
    MPI_Accumulate(data->data(), 1, MPI_INT64_T, target(), at, 1, MPI_INT64_T, MPI_SUM, win);
  });
}

// ---- epochs ------------------------------------------------------------------------------------

Case lock(std::size_t) {
  auto window = std::make_shared<Window>(kWord, Memory::allocated, false);
  return passive("lock", kWord, Unit::us, 1, [window, data = numbers(kWord, 1)] {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target(), 0, window->get());
    MPI_Put(data->data(), 1, MPI_INT64_T, target(), 0, 1, MPI_INT64_T, window->get());
    MPI_Win_unlock(target(), window->get());
  });
}

// Each rank puts into the memory of the next one.
Case fence(std::size_t) {
  auto window = std::make_shared<Window>(kWord, Memory::allocated, false);
  MPI_Win_fence(0, window->get());
  return {.test = "fence",
          .bytes = kWord,
          .unit = Unit::us,
          .factor = 1,
          .batched = true,
          .root_clock = false,
          .call = [window, data = numbers(kWord, 1)] {
            const int next = (world_rank() + 1) % world_size();
            MPI_Put(data->data(), 1, MPI_INT64_T, next, 0, 1, MPI_INT64_T, window->get());
            MPI_Win_fence(0, window->get());
          }};
}

// ---- a counter that all ranks increment
// ----------------------------------------------------------

// Each number from 0 on must have been fetched once.
class Counter {
 public:
  Counter() : window_(kWord, Memory::allocated, true) {}
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;
  ~Counter() {
    std::uint64_t mine[2] = {calls_, sum_}, all[2];
    MPI_Allreduce(mine, all, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    std::int64_t counter = 0;
    const std::int64_t none = 0;
    MPI_Fetch_and_op(&none, &counter, MPI_INT64_T, 0, 0, MPI_NO_OP, window_.get());
    MPI_Win_flush(0, window_.get());
    const std::uint64_t calls = all[0];
    if (static_cast<std::uint64_t>(counter) != calls || all[1] != calls * (calls - 1) / 2)
      fail("the counter is " + std::to_string(counter) + " after " + std::to_string(calls) +
           " increments, and their results add up to " + std::to_string(all[1]));
  }
  void increment() {
    static const std::int64_t one = 1;
    std::int64_t before = 0;
    MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 0, 0, MPI_SUM, window_.get());
    MPI_Win_flush(0, window_.get());
    ++calls_;
    sum_ += static_cast<std::uint64_t>(before);
  }

 private:
  Window window_;
  std::uint64_t calls_ = 0, sum_ = 0;
};

Case counter(std::size_t) {
  auto shared = std::make_shared<Counter>();
  return {.test = "counter",
          .bytes = kWord,
          .unit = Unit::per_second,
          .factor = static_cast<double>(world_size()),
          .batched = true,
          .root_clock = false,
          .call = [shared] { shared->increment(); }};
}

}  // namespace

std::vector<Test> one_sided_tests() {
  return {
      {"put", "MPI_Put and MPI_Win_flush", true, put},
      {"get", "MPI_Get and MPI_Win_flush", true, get},
      {"accumulate", "MPI_Accumulate (a sum) and MPI_Win_flush", true, accumulate},
      {"fetch-op", "MPI_Fetch_and_op (a sum of 8 bytes) and MPI_Win_flush", false, fetch_and_op},
      {"cas", "MPI_Compare_and_swap (8 bytes) and MPI_Win_flush", false, compare_and_swap},
      {"put-rate", "puts of 8 bytes a second, 64 and a flush", false, put_rate},
      {"acc-rate", "accumulates of 8 bytes a second, 64 and a flush", false, accumulate_rate},
      {"created-put", "put, in a window of MPI_Win_create", true, created_put},
      {"created-fetch-op", "fetch-op, in a window of MPI_Win_create", false, created_fetch_and_op},
      {"lock", "exclusive MPI_Win_lock, MPI_Put of 8 bytes, MPI_Win_unlock", false, lock},
      {"fence", "MPI_Put of 8 bytes to the next rank and MPI_Win_fence, on all ranks", false,
       fence},
      {"counter", "increments a second, by all ranks, of a counter at rank 0; checked", false,
       counter},
  };
}

}  // namespace bench
