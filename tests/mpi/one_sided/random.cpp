// One-sided operations at random, compared with a sequential model. Every rank makes the same plan
// from the seed: windows of each flavour, rounds of epochs of each kind, and in each epoch
// operations of every rank on every other. What the operations fetch, and what is in the windows
// after each round, must be what the model says.
//
// In the part of a window that belongs to one origin, that origin's accumulates are in order, and a
// block is put to or got from once before the next flush; so all results are known. In the part for
// all, every origin adds to the same elements.
//
//   random [--seeds FIRST:LAST]
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "job.hpp"
#include "one_sided/model.hpp"
#include "programs/stress/random.hpp"

namespace {

using job::rank_in;
using model::Bytes;
using model::Element;
using model::Shape;
using stress::Random;

constexpr int kBlocks = 4;    // of the part of each origin
constexpr int kCounters = 4;  // 64-bit integers that all origins add to

struct World {
  MPI_Comm comm;
  int rank, size;
  int flavor, unit, block;  // block: bytes
  MPI_Win win = MPI_WIN_NULL;
  unsigned char* memory = nullptr;  // this rank's
  Bytes owned;
  std::vector<MPI_Aint> bases;  // dynamic windows: addresses
  std::vector<Bytes> model;     // of each rank's memory

  int part() const { return kBlocks * block; }
  int bytes() const { return size * part() + kCounters * 8; }
  MPI_Aint displacement(int target, int offset) const {
    return flavor == MPI_WIN_FLAVOR_DYNAMIC ? bases[static_cast<std::size_t>(target)] + offset
                                            : offset / unit;
  }
};

// What has been started and what it must have fetched.
struct Fetched {
  Bytes got, expected;
};
struct Started {
  std::vector<std::unique_ptr<Fetched>> results;
  std::vector<std::unique_ptr<Bytes>> buffers;  // that must stay
  std::vector<Shape> shapes;
  std::vector<MPI_Request> requests;
};

Bytes random_bytes(Random& random, std::size_t n) {
  Bytes bytes(n);
  for (auto& b : bytes) b = static_cast<unsigned char>(random.bits());
  return bytes;
}

void create(World& w, Random& random) {
  const int bytes = w.bytes();
  switch (w.flavor) {
    case MPI_WIN_FLAVOR_CREATE:
      w.owned.resize(static_cast<std::size_t>(bytes));
      w.memory = w.owned.data();
      MPI_Win_create(w.memory, bytes, w.unit, MPI_INFO_NULL, w.comm, &w.win);
      break;
    case MPI_WIN_FLAVOR_ALLOCATE:
      MPI_Win_allocate(bytes, w.unit, MPI_INFO_NULL, w.comm, &w.memory, &w.win);
      break;
    case MPI_WIN_FLAVOR_SHARED: {
      MPI_Info info;
      MPI_Info_create(&info);
      MPI_Info_set(info, "alloc_shared_noncontig", random.percent(50) ? "true" : "false");
      MPI_Win_allocate_shared(bytes, w.unit, info, w.comm, &w.memory, &w.win);
      MPI_Info_free(&info);
      break;
    }
    default: {
      w.owned.resize(static_cast<std::size_t>(bytes));
      w.memory = w.owned.data();
      MPI_Win_create_dynamic(MPI_INFO_NULL, w.comm, &w.win);
      MPI_Win_attach(w.win, w.memory, bytes);
      MPI_Aint mine;
      MPI_Get_address(w.memory, &mine);
      w.bases.resize(static_cast<std::size_t>(w.size));
      MPI_Allgather(&mine, 1, MPI_AINT, w.bases.data(), 1, MPI_AINT, w.comm);
    }
  }
  for (int r = 0; r < w.size; ++r)
    w.model.push_back(random_bytes(random, static_cast<std::size_t>(bytes)));
  std::memcpy(w.memory, w.model[static_cast<std::size_t>(w.rank)].data(),
              static_cast<std::size_t>(bytes));
  MPI_Barrier(w.comm);
}

// Reads the elements of a shape, and writes them, in the order of the shape.
Bytes gather(const Bytes& memory, int base, const Element& e, const Shape& shape) {
  Bytes row(shape.indices.size() * static_cast<std::size_t>(e.size), 0xcc);
  for (std::size_t i = 0; i < shape.indices.size(); ++i)
    model::copy(e, &memory[static_cast<std::size_t>(base + shape.indices[i] * e.size)],
                &row[i * static_cast<std::size_t>(e.size)]);
  return row;
}

// One operation of `origin` on a block of `target`, `mode` 0: put, 1: get, 2: accumulates. All
// ranks do this to the model, and `origin` carries it out. `passive`: requests may be used.
void operate(World& w, Random& random, Started& started, int origin, int target, int block,
             int mode, bool passive) {
  const bool mine = origin == w.rank;
  Bytes& memory = w.model[static_cast<std::size_t>(target)];
  const int base = origin * w.part() + block * w.block;
  const Element& e = model::kElements[random.below(mode == 2 ? 7 : 4)];
  const int times = mode == 2 ? random.between(1, 4) : 1;
  for (int n = 0; n < times; ++n) {
    const int style = random.below(3), origin_style = random.below(2);
    const bool request = passive && random.percent(30);
    const std::vector<MPI_Op> ops = model::operations(e);
    const MPI_Op op = ops[static_cast<std::size_t>(random.below(static_cast<int>(ops.size())))];
    // 0: MPI_Accumulate, 1: MPI_Get_accumulate, 2: MPI_Fetch_and_op, 3: MPI_Compare_and_swap
    int form = mode == 2 ? random.below(e.kind == Element::integer ? 4 : 3) : 0;
    if (mode == 2 && form == 0 && op == MPI_NO_OP) form = 1;
    const int step = std::max(1, w.unit / e.size);  // elements from one displacement to the next
    Shape shape = model::choose_shape(random, e, form >= 2 ? 1 : w.block / e.size, style, step);
    if (form >= 2) shape.indices[0] = random.below(w.block / e.size) / step * step;
    const std::size_t count = shape.indices.size(), size = static_cast<std::size_t>(e.size);
    auto data = std::make_unique<Bytes>(random_bytes(random, (2 * count + 1) * size));
    const int stride = origin_style == 1 && form < 2 ? 2 : 1;  // elements apart at the origin
    Bytes packed(count * size);
    for (std::size_t i = 0; i < count; ++i)
      std::memcpy(&packed[i * size], &(*data)[i * static_cast<std::size_t>(stride) * size], size);
    auto fetched = std::make_unique<Fetched>();
    const bool fetches = mode == 1 || form > 0;
    const bool swaps = form == 3 && random.percent(50);  // the comparison is to succeed
    Bytes compare(size);
    if (form == 3) {
      compare = swaps ? gather(memory, base, e, shape) : random_bytes(random, size);
    }
    if (fetches) {
      const Bytes row = gather(memory, base, e, shape);
      const int apart = mode == 1 ? stride : 1;
      fetched->expected.assign((count * static_cast<std::size_t>(apart) + 1) * size, 0xcc);
      fetched->got = fetched->expected;
      for (std::size_t i = 0; i < count; ++i)
        model::copy(e, &row[i * size],
                    &fetched->expected[i * static_cast<std::size_t>(apart) * size]);
    }
    for (std::size_t i = 0; i < count && mode != 1; ++i) {
      unsigned char* const at = &memory[static_cast<std::size_t>(base + shape.indices[i] * e.size)];
      if (mode == 0)
        model::copy(e, &packed[i * size], at);
      else if (form == 3)
        std::memcmp(at, compare.data(), size) == 0 ? void(std::memcpy(at, packed.data(), size))
                                                   : void();
      else
        model::accumulate(e, op, &packed[i * size], at);
    }
    if (!mine) {
      shape.free();
      continue;
    }
    // ---- carried out ----
    Shape apart;
    apart.type = e.type;
    apart.count = static_cast<int>(count);
    if (stride == 2) {
      MPI_Type_create_resized(e.type, 0, 2 * e.size, &apart.type);
      MPI_Type_commit(&apart.type);
      apart.derived = true;
    }
    const int first = shape.derived ? 0 : shape.indices[0];
    const MPI_Aint at = w.displacement(target, base + first * e.size);
    void* const from = data->data();
    void* const into = fetched->got.data();
    MPI_Request r = MPI_REQUEST_NULL;
    if (mode == 0) {
      request
          ? MPI_Rput(from, apart.count, apart.type, target, at, shape.count, shape.type, w.win, &r)
          : MPI_Put(from, apart.count, apart.type, target, at, shape.count, shape.type, w.win);
    } else if (mode == 1) {
      request
          ? MPI_Rget(into, apart.count, apart.type, target, at, shape.count, shape.type, w.win, &r)
          : MPI_Get(into, apart.count, apart.type, target, at, shape.count, shape.type, w.win);
    } else if (form == 0) {
      request ? MPI_Raccumulate(from, apart.count, apart.type, target, at, shape.count, shape.type,
                                op, w.win, &r)
              : MPI_Accumulate(from, apart.count, apart.type, target, at, shape.count, shape.type,
                               op, w.win);
    } else if (form == 1) {
      request ? MPI_Rget_accumulate(from, apart.count, apart.type, into, static_cast<int>(count),
                                    e.type, target, at, shape.count, shape.type, op, w.win, &r)
              : MPI_Get_accumulate(from, apart.count, apart.type, into, static_cast<int>(count),
                                   e.type, target, at, shape.count, shape.type, op, w.win);
    } else if (form == 2) {
      MPI_Fetch_and_op(from, into, e.type, target, at, op, w.win);
    } else {
      MPI_Compare_and_swap(from, compare.data(), into, e.type, target, at, w.win);
    }
    if (r != MPI_REQUEST_NULL) started.requests.push_back(r);
    shape.free();  // handles may go before the operation is complete
    apart.free();
    started.buffers.push_back(std::move(data));
    if (fetches) started.results.push_back(std::move(fetched));
  }
}

void add_to_counter(World& w, Random& random, Started& started, int origin, int target) {
  const int counter = random.below(kCounters);
  const std::int64_t value = random.between(-1000, 1000);
  const int at = w.size * w.part() + counter * 8;
  unsigned char* const place =
      &w.model[static_cast<std::size_t>(target)][static_cast<std::size_t>(at)];
  model::store<std::int64_t>(
      place,
      static_cast<std::int64_t>(static_cast<std::uint64_t>(model::load<std::int64_t>(place)) +
                                static_cast<std::uint64_t>(value)));
  const bool fetch = random.percent(50);
  if (origin != w.rank) return;
  started.buffers.push_back(std::make_unique<Bytes>(16));
  unsigned char* const from = started.buffers.back()->data();
  model::store(from, value);
  const MPI_Aint disp = w.displacement(target, at);
  if (fetch)
    MPI_Fetch_and_op(from, from + 8, MPI_INT64_T, target, disp, MPI_SUM, w.win);
  else
    MPI_Accumulate(from, 1, MPI_INT64_T, target, disp, 1, MPI_INT64_T, MPI_SUM, w.win);
}

// All operations of one origin on one target between two synchronizations.
void phase(World& w, Random& random, Started& started, int origin, int target, bool passive) {
  for (int block = 0; block < kBlocks; ++block)
    if (random.percent(70))
      operate(w, random, started, origin, target, block, random.below(3), passive);
  for (int n = random.below(4); n > 0; --n) add_to_counter(w, random, started, origin, target);
}

void check_results(Started& started) {
  MPI_Waitall(static_cast<int>(started.requests.size()), started.requests.data(),
              MPI_STATUSES_IGNORE);
  for (const auto& f : started.results) CHECK(f->got == f->expected);
  started.results.clear();
  started.buffers.clear();
  started.requests.clear();
}

MPI_Group group_of(const World& w, const std::vector<int>& ranks) {
  MPI_Group all, part;
  MPI_Comm_group(w.comm, &all);
  MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &part);
  MPI_Group_free(&all);
  return part;
}

void round_of_start(World& w, Random& random, Started& started) {
  std::vector<int> targets, origins;
  std::vector<bool> reaches(static_cast<std::size_t>(w.size * w.size));
  for (int o = 0; o < w.size; ++o)
    for (int t = 0; t < w.size; ++t) {
      const bool does = random.percent(60);
      reaches[static_cast<std::size_t>(o * w.size + t)] = does;
      if (does && o == w.rank) targets.push_back(t);
      if (does && t == w.rank) origins.push_back(o);
    }
  const bool tests = random.percent(50);
  MPI_Group to = group_of(w, targets), from = group_of(w, origins);
  MPI_Win_post(from, random.percent(50) ? MPI_MODE_NOSTORE : 0, w.win);
  MPI_Win_start(to, 0, w.win);
  for (int o = 0; o < w.size; ++o)
    for (int t = 0; t < w.size; ++t)
      if (reaches[static_cast<std::size_t>(o * w.size + t)]) phase(w, random, started, o, t, false);
  MPI_Win_complete(w.win);
  check_results(started);
  int flag = 0;
  while (tests && !flag) MPI_Win_test(w.win, &flag);
  if (!tests) MPI_Win_wait(w.win);
  if (to != MPI_GROUP_EMPTY) MPI_Group_free(&to);
  if (from != MPI_GROUP_EMPTY) MPI_Group_free(&from);
}

void round_of_locks(World& w, Random& random, Started& started, bool all) {
  const int phases = random.between(1, 3), way = random.below(2);
  const bool locally = random.percent(50);
  const bool exclusive = random.percent(50);
  if (all) MPI_Win_lock_all(0, w.win);
  for (int o = 0; o < w.size; ++o)
    for (int n = 0; n < w.size; ++n) {
      const int t = (n + o) % w.size;
      const bool mine = o == w.rank;
      if (mine && !all) MPI_Win_lock(exclusive ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, t, 0, w.win);
      for (int p = 0; p < phases; ++p) {
        phase(w, random, started, o, t, true);
        // Results of earlier targets are looked at, too: theirs have been flushed as well.
        if (!mine || (p + 1 == phases && (way == 1 || !all))) continue;
        way == 0 ? MPI_Win_flush(t, w.win) : MPI_Win_flush_all(w.win);
        check_results(started);
      }
      if (mine && !all) MPI_Win_unlock(t, w.win);
      if (mine && !all) check_results(started);
    }
  if (all && locally) {
    MPI_Win_flush_local_all(w.win);
    check_results(started);
  }
  if (all) MPI_Win_unlock_all(w.win);
  check_results(started);
}

void check_memory(World& w) {
  MPI_Barrier(w.comm);
  MPI_Win_lock(MPI_LOCK_SHARED, w.rank, 0, w.win);
  const Bytes& expected = w.model[static_cast<std::size_t>(w.rank)];
  CHECK(std::memcmp(w.memory, expected.data(), expected.size()) == 0);
  MPI_Win_unlock(w.rank, w.win);
  MPI_Barrier(w.comm);
}

void run(std::uint64_t seed, MPI_Comm node) {
  Random random(seed);
  const int flavors[] = {MPI_WIN_FLAVOR_CREATE, MPI_WIN_FLAVOR_ALLOCATE, MPI_WIN_FLAVOR_DYNAMIC,
                         MPI_WIN_FLAVOR_SHARED};
  World w;
  w.flavor = flavors[random.below(4)];
  w.comm = w.flavor == MPI_WIN_FLAVOR_SHARED ? node : MPI_COMM_WORLD;
  w.rank = rank_in(w.comm);
  w.size = job::size_of(w.comm);
  w.unit = w.flavor == MPI_WIN_FLAVOR_DYNAMIC ? 1 : 1 << random.below(4);
  w.block = random.percent(80) ? 16 * random.between(2, 24) : 16 * random.between(1000, 3000);
  create(w, random);
  for (int round = 0; round < 4; ++round) {
    Started started;
    switch (random.below(4)) {
      case 0:
        MPI_Win_fence(MPI_MODE_NOPRECEDE, w.win);
        for (int epochs = random.between(1, 2); epochs > 0; --epochs) {
          for (int o = 0; o < w.size; ++o)
            for (int t = 0; t < w.size; ++t) phase(w, random, started, o, t, false);
          MPI_Win_fence(epochs == 1 ? MPI_MODE_NOSUCCEED : 0, w.win);
          check_results(started);
        }
        break;
      case 1: round_of_start(w, random, started); break;
      case 2: round_of_locks(w, random, started, false); break;
      default: round_of_locks(w, random, started, true);
    }
    check_memory(w);
  }
  if (w.flavor == MPI_WIN_FLAVOR_DYNAMIC) MPI_Win_detach(w.win, w.memory);
  MPI_Win_free(&w.win);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  long first = 1, last = std::max(8, job::share_of(160 / job::size()));
  if (argc == 3 && std::string(argv[1]) == "--seeds")
    std::sscanf(argv[2], "%ld:%ld", &first, &last);
  MPI_Comm node;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  job::section("one-sided operations at random, seeds " + std::to_string(first) + " to " +
               std::to_string(last));
  for (long seed = first; seed <= last; ++seed) {
    const int before = job::state().failures;
    run(static_cast<std::uint64_t>(seed), node);
    if (job::state().failures != before)
      std::fprintf(stderr, "rank %d: seed %ld failed\n", job::rank(), seed);
  }
  MPI_Comm_free(&node);
  return job::report();
}
