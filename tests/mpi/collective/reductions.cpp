// Reduce, allreduce, reduce_scatter, scan and exscan: predefined operations, and products of
// matrices, which come out wrong in any order but that of the ranks.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "buffers.hpp"

using namespace collective;

namespace {

// 2x2 matrices of numbers modulo a prime; in memory with a gap in the middle and one behind.
constexpr int kPrime = 10007;
struct Matrix {
  int a, b;
  int gap = 77;
  int c, d;
  int gap_behind = 88;
};
bool operator==(const Matrix& x, const Matrix& y) {
  return !std::memcmp(&x, &y, sizeof x);
}
Matrix product(const Matrix& x, const Matrix& y) {
  return {(x.a * y.a + x.b * y.c) % kPrime, (x.a * y.b + x.b * y.d) % kPrime, 77,
          (x.c * y.a + x.d * y.c) % kPrime, (x.c * y.b + x.d * y.d) % kPrime, 88};
}
Matrix matrix(int rank, int i) {
  return {(rank * 7 + i) % 100 + 1, rank + 2, 77, i % 50 + 3, (rank * 13 + i * 3) % 90 + 5, 88};
}
// Of ranks 0 to last.
Matrix expected(int last, int i) {
  Matrix result = matrix(0, i);
  for (int rank = 1; rank <= last; ++rank) result = product(result, matrix(rank, i));
  return result;
}

int types_seen = 0;  // of calls with a handle that is good for something
void multiply(void* in, void* inout, int* count, MPI_Datatype* type) {
  int size = 0;
  if (MPI_Type_size(*type, &size) == MPI_SUCCESS && size == 4 * static_cast<int>(sizeof(int)))
    ++types_seen;
  const auto* left = static_cast<const Matrix*>(in);
  auto* right = static_cast<Matrix*>(inout);
  for (int i = 0; i < *count; ++i) {
    const Matrix result = product(left[i], right[i]);
    right[i].a = result.a, right[i].b = result.b, right[i].c = result.c, right[i].d = result.d;
  }
}

MPI_Datatype matrix_type() {
  MPI_Datatype halves, whole;
  MPI_Type_vector(2, 2, 3, MPI_INT, &halves);
  MPI_Type_create_resized(halves, 0, sizeof(Matrix), &whole);
  MPI_Type_commit(&whole);
  MPI_Type_free(&halves);
  return whole;
}

// ---- sums of ints and products of matrices, in one shape for the tests -------------------------

struct Sums {
  using Item = int;
  static Item item(int rank, int i) { return value(rank, 0, i) % 100000; }
  static Item result(int last, int i) {
    int sum = 0;
    for (int rank = 0; rank <= last; ++rank) sum += item(rank, i);
    return sum;
  }
  static Item blank() { return -1; }
  static constexpr std::array kCounts{0, 1, 5, 4000, 4200, 70000};
  MPI_Datatype type = MPI_INT;
  MPI_Op op = MPI_SUM;
};

struct Matrices {
  using Item = Matrix;
  static Item item(int rank, int i) { return matrix(rank, i); }
  static Item result(int last, int i) { return expected(last, i); }
  static Item blank() { return {-1, -1, 77, -1, -1, 88}; }
  static constexpr std::array kCounts{0, 1, 5, 1000, 1100, 6000};
  Matrices() { MPI_Op_create(multiply, 0, &op); }
  ~Matrices() {
    MPI_Op_free(&op);
    MPI_Type_free(&type);
  }
  MPI_Datatype type = matrix_type();
  MPI_Op op;
};

struct Case {
  MPI_Comm comm;
  bool nonblocking, in_place;
  int me = rank_in(comm), size = size_of(comm);
};

template <class Kind>
std::vector<typename Kind::Item> items(int rank, int count) {
  std::vector<typename Kind::Item> data;
  for (int i = 0; i < count; ++i) data.push_back(Kind::item(rank, i));
  return data;
}
template <class Kind>
std::vector<typename Kind::Item> results(int last, int first, int count) {
  std::vector<typename Kind::Item> data;
  for (int i = 0; i < count; ++i) data.push_back(Kind::result(last, first + i));
  return data;
}
template <class Kind>
std::vector<typename Kind::Item> blanks(int count) {
  return std::vector<typename Kind::Item>(static_cast<std::size_t>(count), Kind::blank());
}

template <class Kind>
void reduces(const Case& c, const Kind& kind) {
  for (const int n : Kind::kCounts)
    for (int root = 0; root < c.size; ++root) {
      if (n > 1000 && root != 0 && root != c.size - 1) continue;
      const bool stays = c.in_place && c.me == root;
      const auto mine = items<Kind>(c.me, n);
      auto into = stays ? mine : blanks<Kind>(c.me == root ? n : 0);
      CHECK_EQ(
          COLLECTIVE(c.nonblocking, reduce, Reduce, stays ? MPI_IN_PLACE : mine.data(),
                     c.me == root ? into.data() : nullptr, n, kind.type, kind.op, root, c.comm),
          MPI_SUCCESS);
      if (c.me == root) CHECK(into == results<Kind>(c.size - 1, 0, n));
    }
}

template <class Kind>
void allreduces(const Case& c, const Kind& kind) {
  for (const int n : Kind::kCounts) {
    const auto mine = items<Kind>(c.me, n);
    auto into = c.in_place ? mine : blanks<Kind>(n);
    CHECK_EQ(
        COLLECTIVE(c.nonblocking, allreduce, Allreduce, c.in_place ? MPI_IN_PLACE : mine.data(),
                   into.data(), n, kind.type, kind.op, c.comm),
        MPI_SUCCESS);
    CHECK(into == results<Kind>(c.size - 1, 0, n));
  }
}

// Rank r gets `each` * (r % 3) items: some nothing.
template <class Kind>
void reduce_scatters(const Case& c, const Kind& kind) {
  for (const int each : Kind::kCounts) {
    if (each > 5000) continue;
    std::vector<int> counts;
    int total = 0, first = 0;
    for (int rank = 0; rank < c.size; ++rank) {
      if (rank == c.me) first = total;
      counts.push_back(each * (rank % 3));
      total += counts.back();
    }
    const int n = counts[static_cast<std::size_t>(c.me)];
    const auto mine = items<Kind>(c.me, total);
    auto into = c.in_place ? mine : blanks<Kind>(n);
    CHECK_EQ(COLLECTIVE(c.nonblocking, reduce_scatter, Reduce_scatter,
                        c.in_place ? MPI_IN_PLACE : mine.data(), into.data(), counts.data(),
                        kind.type, kind.op, c.comm),
             MPI_SUCCESS);
    into.resize(static_cast<std::size_t>(n), Kind::blank());
    CHECK(into == results<Kind>(c.size - 1, first, n));

    const auto block = items<Kind>(c.me, each * c.size);
    auto block_into = c.in_place ? block : blanks<Kind>(each);
    CHECK_EQ(COLLECTIVE(c.nonblocking, reduce_scatter_block, Reduce_scatter_block,
                        c.in_place ? MPI_IN_PLACE : block.data(), block_into.data(), each,
                        kind.type, kind.op, c.comm),
             MPI_SUCCESS);
    block_into.resize(static_cast<std::size_t>(each), Kind::blank());
    CHECK(block_into == results<Kind>(c.size - 1, each * c.me, each));
  }
}

template <class Kind>
void scans(const Case& c, const Kind& kind) {
  for (const int n : Kind::kCounts) {
    const auto mine = items<Kind>(c.me, n);
    auto into = c.in_place ? mine : blanks<Kind>(n);
    CHECK_EQ(COLLECTIVE(c.nonblocking, scan, Scan, c.in_place ? MPI_IN_PLACE : mine.data(),
                        into.data(), n, kind.type, kind.op, c.comm),
             MPI_SUCCESS);
    CHECK(into == results<Kind>(c.me, 0, n));

    auto before = c.in_place ? mine : blanks<Kind>(n);
    CHECK_EQ(COLLECTIVE(c.nonblocking, exscan, Exscan, c.in_place ? MPI_IN_PLACE : mine.data(),
                        before.data(), n, kind.type, kind.op, c.comm),
             MPI_SUCCESS);
    // The first rank's buffer stays as it was.
    if (c.me > 0)
      CHECK(before == results<Kind>(c.me - 1, 0, n));
    else
      CHECK(before == (c.in_place ? mine : blanks<Kind>(n)));
  }
}

template <class Kind, class Try>
void each_case(Try attempt) {
  const Communicators communicators;
  const Kind kind;
  for (const MPI_Comm comm : communicators.all())
    for (const bool nonblocking : {false, true})
      for (const bool in_place : {false, true}) attempt(Case{comm, nonblocking, in_place}, kind);
}

// ---- what does not fit the shape ---------------------------------------------------------------

// Sums of floating-point numbers depend on the order; all ranks must get the same bits.
void same_bits_everywhere() {
  for (const int n : {1, 7, 5000}) {
    std::vector<double> mine, sum(static_cast<std::size_t>(n)), first(sum);
    for (int i = 0; i < n; ++i) mine.push_back(1.0 / (3 + job::rank() * 7 + i) * (i % 2 ? 1e9 : 1));
    MPI_Allreduce(mine.data(), sum.data(), n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    first = sum;
    MPI_Bcast(first.data(), n, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    CHECK(!std::memcmp(first.data(), sum.data(), sizeof(double) * sum.size()));
  }
}

void places_of_extremes() {
  struct Place {
    double value;
    int rank;
  };
  const int n = job::size();
  const Place mine{static_cast<double>(job::rank() / 2), job::rank()};
  Place least{}, most{};
  MPI_Allreduce(&mine, &least, 1, MPI_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD);
  MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
  CHECK_EQ(least.rank, 0);
  CHECK_EQ(most.rank, (n - 1) / 2 * 2);
  CHECK_EQ(most.value, (n - 1) / 2);
}

// The handles go as soon as the operation has started; the function still gets one that works.
void freed_handles() {
  for (const int n : {3, 6000}) {
    MPI_Datatype type = matrix_type();
    MPI_Op op;
    MPI_Op_create(multiply, 0, &op);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    const auto mine = items<Matrices>(job::rank(), n);
    auto sum = blanks<Matrices>(n), prefix = blanks<Matrices>(n);
    types_seen = 0;
    MPI_Request requests[2];
    MPI_Iallreduce(mine.data(), sum.data(), n, type, op, comm, &requests[0]);
    MPI_Iscan(mine.data(), prefix.data(), n, type, op, comm, &requests[1]);
    MPI_Op_free(&op);
    MPI_Type_free(&type);
    MPI_Comm_free(&comm);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK(sum == results<Matrices>(job::size() - 1, 0, n));
    CHECK(prefix == results<Matrices>(job::rank(), 0, n));
    if (job::rank() > 0) CHECK(types_seen > 0);
  }
}

// ---- user functions over unusual types ---------------------------------------------------------

// Columns of a matrix: each reaches further than its extent, which is one int.
constexpr int kRows = 4;
int columns;  // of the matrix
void add_columns(void* in, void* inout, int* count, MPI_Datatype*) {
  for (int row = 0; row < kRows; ++row)
    for (int column = 0; column < *count; ++column)
      static_cast<int*>(inout)[row * columns + column] +=
          static_cast<const int*>(in)[row * columns + column];
}

void sums_of_columns(MPI_Datatype type, MPI_Op op) {
  const int n = job::size(), me = job::rank();
  std::vector<int> mine, all, in(static_cast<std::size_t>(kRows * columns));
  for (int i = 0; i < kRows * columns; ++i) {
    mine.push_back(i + me);
    all.push_back(i * n + n * (n - 1) / 2);
  }
  for (int root = 0; root < n; ++root) {
    in.assign(in.size(), -1);
    MPI_Reduce(mine.data(), in.data(), columns, type, op, root, MPI_COMM_WORLD);
    if (me == root) CHECK(in == all);
  }
  in.assign(in.size(), -1);
  MPI_Allreduce(mine.data(), in.data(), columns, type, op, MPI_COMM_WORLD);
  CHECK(in == all);
  in.assign(in.size(), -1);
  MPI_Reduce_scatter_block(mine.data(), in.data(), columns / n, type, op, MPI_COMM_WORLD);
  for (int i = 0; i < kRows * columns; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const int first = me * (columns / n);  // of this rank's columns
    CHECK_EQ(in[at], i % columns < columns / n ? all[at + static_cast<std::size_t>(first)] : -1);
  }
}

void interleaved_items() {
  columns = 3 * job::size();
  MPI_Datatype whole, column;
  MPI_Type_vector(kRows, 1, columns, MPI_INT, &whole);
  MPI_Type_create_resized(whole, 0, sizeof(int), &column);
  MPI_Type_commit(&column);
  for (const int commutes : {0, 1}) {
    MPI_Op op;
    MPI_Op_create(add_columns, commutes, &op);
    sums_of_columns(column, op);
    MPI_Op_free(&op);
  }
  MPI_Type_free(&whole);
  MPI_Type_free(&column);
}

// Whatever memory a user function is given, items lie in it as they do in an array of the
// program's.
struct Record {
  char unused, tag;
  double value;
};
bool misplaced = false;
void add_records(void* in, void* inout, int* count, MPI_Datatype*) {
  for (void* const items : {in, inout})
    misplaced |= reinterpret_cast<std::uintptr_t>(items) % alignof(Record) != 0;
  if (misplaced) return;
  for (int i = 0; i < *count; ++i)
    static_cast<Record*>(inout)[i].value += static_cast<const Record*>(in)[i].value;
}

void aligned_items() {
  const int lengths[] = {1, 1};
  const MPI_Aint places[] = {offsetof(Record, tag), offsetof(Record, value)};
  const MPI_Datatype types[] = {MPI_CHAR, MPI_DOUBLE};
  MPI_Datatype parts, record;
  MPI_Type_create_struct(2, lengths, places, types, &parts);
  MPI_Type_create_resized(parts, 0, sizeof(Record), &record);
  MPI_Type_commit(&record);
  MPI_Op op;
  MPI_Op_create(add_records, 1, &op);
  for (const int n : {1, 3, 6000}) {
    const std::vector<Record> mine(static_cast<std::size_t>(n), {0, 't', 1.0});
    std::vector<Record> sum(mine.size()), prefix(mine.size());
    MPI_Allreduce(mine.data(), sum.data(), n, record, op, MPI_COMM_WORLD);
    MPI_Scan(mine.data(), prefix.data(), n, record, op, MPI_COMM_WORLD);
    CHECK(!misplaced);
    CHECK_EQ(sum.back().value, job::size());
    CHECK_EQ(prefix.back().value, job::rank() + 1);
  }
  MPI_Op_free(&op);
  MPI_Type_free(&parts);
  MPI_Type_free(&record);
}

// A buffer at MPI_BOTTOM, which is a null pointer, with a type of absolute addresses.
int at_bottom;
void add_at_bottom(void* in, void* inout, int*, MPI_Datatype*) {
  const auto item = [](void* items) {
    return reinterpret_cast<int*>(reinterpret_cast<std::uintptr_t>(items) +
                                  reinterpret_cast<std::uintptr_t>(&at_bottom));
  };
  *item(inout) += *item(in);
}

void in_place_at_bottom() {
  const int n = job::size(), me = job::rank(), length = 1;
  MPI_Aint address;
  MPI_Datatype type;
  MPI_Op op;
  MPI_Get_address(&at_bottom, &address);
  MPI_Type_create_hindexed(1, &length, &address, MPI_INT, &type);
  MPI_Type_commit(&type);
  MPI_Op_create(add_at_bottom, 1, &op);
  at_bottom = me;
  MPI_Allreduce(MPI_IN_PLACE, MPI_BOTTOM, 1, type, op, MPI_COMM_WORLD);
  CHECK_EQ(at_bottom, n * (n - 1) / 2);
  at_bottom = me;
  MPI_Scan(MPI_IN_PLACE, MPI_BOTTOM, 1, type, op, MPI_COMM_WORLD);
  CHECK_EQ(at_bottom, me * (me + 1) / 2);
  at_bottom = me;
  MPI_Exscan(MPI_IN_PLACE, MPI_BOTTOM, 1, type, op, MPI_COMM_WORLD);
  CHECK_EQ(at_bottom, me * (me - 1) / 2);
  MPI_Op_free(&op);
  MPI_Type_free(&type);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  job::section("reduce: sums");
  each_case<Sums>(reduces<Sums>);
  job::section("reduce: products of matrices");
  each_case<Matrices>(reduces<Matrices>);
  job::section("allreduce: sums");
  each_case<Sums>(allreduces<Sums>);
  job::section("allreduce: products of matrices");
  each_case<Matrices>(allreduces<Matrices>);
  job::section("reduce_scatter: sums");
  each_case<Sums>(reduce_scatters<Sums>);
  job::section("reduce_scatter: products of matrices");
  each_case<Matrices>(reduce_scatters<Matrices>);
  job::section("scan and exscan: sums");
  each_case<Sums>(scans<Sums>);
  job::section("scan and exscan: products of matrices");
  each_case<Matrices>(scans<Matrices>);
  job::section("all ranks get the same bits");
  same_bits_everywhere();
  job::section("MPI_MINLOC and MPI_MAXLOC");
  places_of_extremes();
  job::section("handles freed while operations run");
  freed_handles();
  job::section("items that reach into one another: columns of a matrix");
  interleaved_items();
  job::section("user functions get items as aligned as the program's own");
  aligned_items();
  job::section("in place at MPI_BOTTOM");
  in_place_at_bottom();
  return job::report();
}
