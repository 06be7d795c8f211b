// Broadcast, gather, scatter, allgather, alltoall and their v- and w-forms: every root, sizes on
// both sides of each change of algorithm, data with and without gaps, in place, blocking and not.
#include <algorithm>
#include <random>
#include <utility>

#include "buffers.hpp"

using namespace collective;

namespace {

// Ints for each rank.
constexpr int kSizes[] = {0, 2, 62, 514, 2050};
constexpr int kBroadcastSizes[] = {0, 2, 1000, 32768, 33000, 100002};

struct Case {
  MPI_Comm comm;
  Form sends, receives;
  bool nonblocking;
  int me = rank_in(comm), size = size_of(comm);
};

template <class Try>
void each_case(Try attempt) {
  const Communicators communicators;
  for (const MPI_Comm comm : communicators.all()) {
    attempt(Case{comm, Form::plain, Form::plain, false});
    attempt(Case{comm, Form::gapped, Form::plain, true});
    attempt(Case{comm, Form::plain, Form::gapped, false});
    attempt(Case{comm, Form::gapped, Form::gapped, true});
  }
}

// For large data not every root.
bool worth_it(const Case& c, int root, int n) {
  return n <= 62 || root == 0 || root == c.size - 1 || root == c.size / 2;
}

void broadcasts(const Case& c) {
  for (const int n : kBroadcastSizes)
    for (int root = 0; root < c.size; ++root) {
      if (!worth_it(c, root, n)) continue;
      Buffer data(c.me == root ? c.sends : c.receives, n);
      if (c.me == root) data.fill([&](int i) { return value(root, 0, i); });
      CHECK_EQ(COLLECTIVE(c.nonblocking, bcast, Bcast, data.data(), data.count(), data.type(), root,
                          c.comm),
               MPI_SUCCESS);
      CHECK(data.holds(0, n, [&](int i) { return value(root, 0, i); }));
      CHECK(data.gaps_intact());
    }
}

void gathers(const Case& c) {
  for (const int n : kSizes)
    for (int root = 0; root < c.size; ++root)
      for (const bool in_place : {false, true}) {
        if (!worth_it(c, root, n)) continue;
        Buffer mine(c.sends, n), all(c.receives, c.me == root ? n * c.size : 0);
        mine.fill([&](int i) { return value(c.me, 0, i); });
        const bool stays = in_place && c.me == root;
        if (stays)
          for (int i = 0; i < n; ++i) all[root * n + i] = value(root, 0, i);
        // What is not significant away from the root is nonsense there.
        CHECK_EQ(COLLECTIVE(c.nonblocking, gather, Gather, stays ? MPI_IN_PLACE : mine.data(),
                            mine.count(), mine.type(), c.me == root ? all.data() : nullptr,
                            c.me == root ? all.count(n) : -1,
                            c.me == root ? all.type() : MPI_DATATYPE_NULL, root, c.comm),
                 MPI_SUCCESS);
        for (int from = 0; c.me == root && from < c.size; ++from)
          CHECK(all.holds(from * n, n, [&](int i) { return value(from, 0, i); }));
        CHECK(all.gaps_intact());
      }
}

void scatters(const Case& c) {
  for (const int n : kSizes)
    for (int root = 0; root < c.size; ++root)
      for (const bool in_place : {false, true}) {
        if (!worth_it(c, root, n)) continue;
        Buffer all(c.sends, c.me == root ? n * c.size : 0), mine(c.receives, n);
        all.fill([&](int i) { return value(root, n ? i / n : 0, n ? i % n : 0); });
        const bool stays = in_place && c.me == root;
        CHECK_EQ(
            COLLECTIVE(c.nonblocking, scatter, Scatter, c.me == root ? all.data() : nullptr,
                       c.me == root ? all.count(n) : -1,
                       c.me == root ? all.type() : MPI_DATATYPE_NULL,
                       stays ? MPI_IN_PLACE : mine.data(), mine.count(), mine.type(), root, c.comm),
            MPI_SUCCESS);
        if (stays)
          CHECK(mine.untouched(0, n));
        else
          CHECK(mine.holds(0, n, [&](int i) { return value(root, c.me, i); }));
        CHECK(mine.gaps_intact());
      }
}

// The root's buffer is only read, in place as well: it may be memory that cannot be written.
void scatters_of_constants() {
  constexpr int kEach = 2;
  static const int constants[kEach * 16] = {1, 2, 3, 4, 5, 6, 7, 8};
  const int me = job::rank();
  for (int root = 0; root < job::size() && root < 16; ++root) {
    int in[kEach] = {-1, -1};
    void* const into = me == root ? MPI_IN_PLACE : in;
    CHECK_EQ(MPI_Scatter(constants, kEach, MPI_INT, into, kEach, MPI_INT, root, MPI_COMM_WORLD),
             MPI_SUCCESS);
    if (me != root) CHECK(std::equal(in, in + kEach, constants + kEach * me));
  }
}

// That int, wherever it lies: for MPI_BOTTOM. The next one is behind it.
MPI_Datatype int_at(int& place) {
  const int length = 1;
  MPI_Aint address;
  MPI_Datatype at, each;
  MPI_Get_address(&place, &address);
  MPI_Type_create_hindexed(1, &length, &address, MPI_INT, &at);
  MPI_Type_create_resized(at, 0, sizeof(int), &each);
  MPI_Type_commit(&each);
  MPI_Type_free(&at);
  return each;
}

// Two buffers that both start at MPI_BOTTOM are not the same.
void scatters_at_bottom() {
  constexpr int kMax = 16;
  int out[kMax], in = -1;
  for (int i = 0; i < kMax; ++i) out[i] = 100 + i;
  MPI_Datatype out_type = int_at(out[0]), in_type = int_at(in);
  for (int root = 0; root < job::size() && job::size() <= kMax; ++root) {
    MPI_Scatter(MPI_BOTTOM, 1, out_type, MPI_BOTTOM, 1, in_type, root, MPI_COMM_WORLD);
    CHECK_EQ(std::exchange(in, -1), 100 + job::rank());
  }
  MPI_Type_free(&out_type);
  MPI_Type_free(&in_type);
}

void allgathers(const Case& c) {
  for (const int n : kSizes)
    for (const bool in_place : {false, true}) {
      Buffer mine(c.sends, n), all(c.receives, n * c.size);
      mine.fill([&](int i) { return value(c.me, 0, i); });
      for (int i = 0; in_place && i < n; ++i) all[c.me * n + i] = value(c.me, 0, i);
      CHECK_EQ(
          COLLECTIVE(c.nonblocking, allgather, Allgather, in_place ? MPI_IN_PLACE : mine.data(),
                     mine.count(), mine.type(), all.data(), all.count(n), all.type(), c.comm),
          MPI_SUCCESS);
      for (int from = 0; from < c.size; ++from)
        CHECK(all.holds(from * n, n, [&](int i) { return value(from, 0, i); }));
      CHECK(all.gaps_intact());
    }
}

void alltoalls(const Case& c) {
  for (const int n : kSizes)
    for (const bool in_place : {false, true}) {
      Buffer out(c.sends, n * c.size), in(c.receives, n * c.size);
      const auto mine = [&](int i) { return value(c.me, n ? i / n : 0, n ? i % n : 0); };
      (in_place ? in : out).fill(mine);
      CHECK_EQ(COLLECTIVE(c.nonblocking, alltoall, Alltoall, in_place ? MPI_IN_PLACE : out.data(),
                          out.count(n), out.type(), in.data(), in.count(n), in.type(), c.comm),
               MPI_SUCCESS);
      for (int from = 0; from < c.size; ++from)
        CHECK(in.holds(from * n, n, [&](int i) { return value(from, c.me, i); }));
      CHECK(in.gaps_intact());
    }
}

// ---- counts that differ ------------------------------------------------------------------------

// The same table of counts in all processes: ints from one rank to another, about a third of them
// 0.
class Counts {
 public:
  Counts(int size, unsigned seed, int most)
      : size_(size), counts_(static_cast<std::size_t>(size * size)) {
    std::mt19937 random(seed);
    for (int& n : counts_)
      n = random() % 3 == 0 ? 0 : 2 * static_cast<int>(random() % static_cast<unsigned>(most / 2));
  }
  int operator()(int from, int to) const {
    return counts_[static_cast<std::size_t>(from * size_ + to)];
  }

 private:
  int size_;
  std::vector<int> counts_;
};

// One argument with a count and a displacement for each rank; the parts lie in reverse order of the
// ranks with room between them.
struct Parts {
  template <class Count>
  Parts(Form form, int size, Count count) : buffer(form, room(size, count)) {
    int at = buffer.size();
    for (int rank = 0; rank < size; ++rank) {
      ints.push_back(count(rank));
      at -= ints.back() + 2;
      starts.push_back(at);
      counts.push_back(buffer.count(ints.back()));
      displacements.push_back(buffer.displacement(at));
    }
  }
  template <class Value>
  void fill(int rank, Value v) {
    const auto r = static_cast<std::size_t>(rank);
    for (int i = 0; i < ints[r]; ++i) buffer[starts[r] + i] = v(i);
  }
  template <class Value>
  bool holds(int rank, Value v) {
    const auto r = static_cast<std::size_t>(rank);
    return buffer.holds(starts[r], ints[r], v) && buffer.untouched(starts[r] + ints[r], 2);
  }

  Buffer buffer;
  std::vector<int> ints, starts, counts, displacements;

 private:
  template <class Count>
  static int room(int size, Count count) {
    int ints = 0;
    for (int rank = 0; rank < size; ++rank) ints += count(rank) + 2;
    return ints;
  }
};

constexpr int kMax[] = {8, 600, 6000};  // ints

void gathervs(const Case& c) {
  for (const int most : kMax)
    for (int root = 0; root < c.size; ++root) {
      if (!worth_it(c, root, most)) continue;
      const Counts counts(c.size, static_cast<unsigned>(most + root), most);
      const int n = counts(c.me, root);
      const bool in_place = root % 2 == 1 && c.me == root;
      Buffer mine(c.sends, n);
      mine.fill([&](int i) { return value(c.me, root, i); });
      Parts all(c.receives, c.me == root ? c.size : 0,
                [&](int from) { return counts(from, root); });
      if (in_place) all.fill(root, [&](int i) { return value(root, root, i); });
      CHECK_EQ(COLLECTIVE(c.nonblocking, gatherv, Gatherv, in_place ? MPI_IN_PLACE : mine.data(),
                          mine.count(), mine.type(), all.buffer.data(), all.counts.data(),
                          all.displacements.data(), all.buffer.type(), root, c.comm),
               MPI_SUCCESS);
      for (int from = 0; c.me == root && from < c.size; ++from)
        CHECK(all.holds(from, [&](int i) { return value(from, root, i); }));

      Parts out(c.sends, c.me == root ? c.size : 0, [&](int to) { return counts(to, root); });
      for (int to = 0; c.me == root && to < c.size; ++to)
        out.fill(to, [&](int i) { return value(root, to, i); });
      Buffer arrived(c.receives, n);
      CHECK_EQ(COLLECTIVE(c.nonblocking, scatterv, Scatterv, out.buffer.data(), out.counts.data(),
                          out.displacements.data(), out.buffer.type(),
                          in_place ? MPI_IN_PLACE : arrived.data(), arrived.count(), arrived.type(),
                          root, c.comm),
               MPI_SUCCESS);
      CHECK(in_place ? arrived.untouched(0, n)
                     : arrived.holds(0, n, [&](int i) { return value(root, c.me, i); }));
      CHECK(all.buffer.gaps_intact() && arrived.gaps_intact());
    }
}

void allgathervs(const Case& c) {
  for (const int most : kMax)
    for (const bool in_place : {false, true}) {
      const Counts counts(c.size, static_cast<unsigned>(most + 17), most);
      const int n = counts(c.me, 0);
      Buffer mine(c.sends, n);
      mine.fill([&](int i) { return value(c.me, 5, i); });
      Parts all(c.receives, c.size, [&](int from) { return counts(from, 0); });
      if (in_place) all.fill(c.me, [&](int i) { return value(c.me, 5, i); });
      CHECK_EQ(
          COLLECTIVE(c.nonblocking, allgatherv, Allgatherv, in_place ? MPI_IN_PLACE : mine.data(),
                     mine.count(), mine.type(), all.buffer.data(), all.counts.data(),
                     all.displacements.data(), all.buffer.type(), c.comm),
          MPI_SUCCESS);
      for (int from = 0; from < c.size; ++from)
        CHECK(all.holds(from, [&](int i) { return value(from, 5, i); }));
      CHECK(all.buffer.gaps_intact());
    }
}

void alltoallvs(const Case& c) {
  for (const int most : kMax)
    for (const bool in_place : {false, true}) {
      // In place both directions have the same count (MPI 5.0, section 6.8).
      const Counts table(c.size, static_cast<unsigned>(most + 29), most);
      const auto counts = [&](int from, int to) {
        return in_place ? table(std::min(from, to), std::max(from, to)) : table(from, to);
      };
      Parts out(c.sends, c.size, [&](int to) { return counts(c.me, to); });
      Parts in(c.receives, c.size, [&](int from) { return counts(from, c.me); });
      for (int to = 0; to < c.size; ++to)
        (in_place ? in : out).fill(to, [&](int i) { return value(c.me, to, i); });
      CHECK_EQ(COLLECTIVE(c.nonblocking, alltoallv, Alltoallv,
                          in_place ? MPI_IN_PLACE : out.buffer.data(), out.counts.data(),
                          out.displacements.data(), out.buffer.type(), in.buffer.data(),
                          in.counts.data(), in.displacements.data(), in.buffer.type(), c.comm),
               MPI_SUCCESS);
      for (int from = 0; from < c.size; ++from)
        CHECK(in.holds(from, [&](int i) { return value(from, c.me, i); }));
      CHECK(in.buffer.gaps_intact());
    }
}

// Plain ints between odd and even ranks, pairs with gaps between others; an arbitrary type where
// there is no data.
void alltoallws(const Case& c) {
  for (const int most : kMax)
    for (const bool in_place : {false, true}) {
      const Counts table(c.size, static_cast<unsigned>(most + 41), most);
      const auto counts = [&](int from, int to) {
        return table(std::min(from, to), std::max(from, to));
      };
      const auto plain = [&](int rank) { return (c.me + rank) % 2 == 1; };
      std::vector<int> ints, bytes;
      std::vector<MPI_Datatype> types;
      int total = 0;
      for (int rank = 0; rank < c.size; ++rank) {
        const Form form = plain(rank) ? Form::plain : Form::gapped;
        const int n = counts(c.me, rank);
        ints.push_back(Buffer(form, n).count());
        bytes.push_back(total);
        total += (plain(rank) ? n : 2 * n) * static_cast<int>(sizeof(int));
        types.push_back(n ? Buffer(form, n).type() : MPI_BYTE);
      }
      std::vector<int> sent(static_cast<std::size_t>(total) / sizeof(int) + 1),
          received(sent.size(), -1);
      const auto place = [&](std::vector<int>& memory, int rank, int i) -> int& {
        const int at = bytes[static_cast<std::size_t>(rank)] / static_cast<int>(sizeof(int)) +
                       (plain(rank) ? i : 2 * i);
        return memory[static_cast<std::size_t>(at)];
      };
      for (int to = 0; to < c.size; ++to)
        for (int i = 0; i < counts(c.me, to); ++i)
          place(in_place ? received : sent, to, i) = value(c.me, to, i);
      CHECK_EQ(
          COLLECTIVE(c.nonblocking, alltoallw, Alltoallw, in_place ? MPI_IN_PLACE : sent.data(),
                     ints.data(), bytes.data(), types.data(), received.data(), ints.data(),
                     bytes.data(), types.data(), c.comm),
          MPI_SUCCESS);
      for (int from = 0; from < c.size; ++from)
        for (int i = 0; i < counts(from, c.me); ++i)
          CHECK_EQ(place(received, from, i), value(from, c.me, i));
    }
}

// Every block has its own address, and the buffers are MPI_BOTTOM both.
void alltoallws_at_bottom(bool nonblocking) {
  const auto size = static_cast<std::size_t>(job::size());
  const int me = job::rank();
  std::vector<int> out(size), in(size, -1), ones(size, 1), nowhere(size, 0);
  std::vector<MPI_Datatype> out_types, in_types;
  for (std::size_t rank = 0; rank < size; ++rank) {
    out[rank] = value(me, static_cast<int>(rank), 0);
    out_types.push_back(int_at(out[rank]));
    in_types.push_back(int_at(in[size - 1 - rank]));
  }
  CHECK_EQ(COLLECTIVE(nonblocking, alltoallw, Alltoallw, MPI_BOTTOM, ones.data(), nowhere.data(),
                      out_types.data(), MPI_BOTTOM, ones.data(), nowhere.data(), in_types.data(),
                      MPI_COMM_WORLD),
           MPI_SUCCESS);
  for (std::size_t rank = 0; rank < size; ++rank) {
    CHECK_EQ(in[size - 1 - rank], value(static_cast<int>(rank), me, 0));
    MPI_Type_free(&out_types[rank]);
    MPI_Type_free(&in_types[rank]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  job::section("broadcast");
  each_case(broadcasts);
  job::section("gather");
  each_case(gathers);
  job::section("scatter");
  each_case(scatters);
  scatters_of_constants();
  scatters_at_bottom();
  job::section("allgather");
  each_case(allgathers);
  job::section("alltoall");
  each_case(alltoalls);
  job::section("gatherv and scatterv");
  each_case(gathervs);
  job::section("allgatherv");
  each_case(allgathervs);
  job::section("alltoallv");
  each_case(alltoallvs);
  job::section("alltoallw");
  each_case(alltoallws);
  for (const bool nonblocking : {false, true}) alltoallws_at_bottom(nonblocking);
  return job::report();
}
