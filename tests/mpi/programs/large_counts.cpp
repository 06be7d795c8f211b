// The functions with large counts (MPI 5.0, section 2.5.8): that they do what their twins do, and
// that numbers above 2^31 come through. With the argument "long", two ranks exchange more than 2^31
// items; with "long N", N times 64 MiB: 80 are more than 2^32 bytes.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <vector>

#include "job.hpp"

namespace {

using job::rank;
using job::section;
using job::size;

constexpr MPI_Count kGiga = MPI_Count{1} << 30;

int next() {
  return (rank() + 1) % size();
}
int previous() {
  return (rank() + size() - 1) % size();
}

// ---- messages ----------------------------------------------------------------------------------

void blocking_messages() {
  section("blocking messages");
  const int out[] = {rank(), 7};
  std::array<std::byte, 4096> buffer;
  MPI_Buffer_attach_c(buffer.data(), sizeof buffer);
  using Send = int(const void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm);
  for (Send* send : {MPI_Send_c, MPI_Ssend_c, MPI_Bsend_c, MPI_Rsend_c}) {
    int in[2] = {-1, -1};
    MPI_Request request;
    MPI_Irecv_c(in, 2, MPI_INT, previous(), 1, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);  // MPI_Rsend needs the receive
    CHECK_EQ(send(out, 2, MPI_INT, next(), 1, MPI_COMM_WORLD), MPI_SUCCESS);
    MPI_Status status;
    MPI_Wait(&request, &status);
    CHECK_EQ(in[0], previous());
    MPI_Count count = -1;
    MPI_Get_count_c(&status, MPI_INT, &count);
    CHECK_EQ(count, 2);
    MPI_Get_elements_c(&status, MPI_INT, &count);
    CHECK_EQ(count, 2);
  }
  void* detached;
  MPI_Count bytes = -1;
  MPI_Buffer_detach_c(&detached, &bytes);
  CHECK(detached == buffer.data());
  CHECK_EQ(bytes, MPI_Count{sizeof buffer});

  int in[2] = {-1, -1};
  MPI_Sendrecv_c(out, 2, MPI_INT, next(), 2, in, 2, MPI_INT, previous(), 2, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  CHECK_EQ(in[0], previous());
  MPI_Sendrecv_replace_c(in, 2, MPI_INT, previous(), 3, next(), 3, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
  CHECK_EQ(in[0], rank());

  MPI_Request request;
  MPI_Isend_c(out, 2, MPI_INT, next(), 4, MPI_COMM_WORLD, &request);
  MPI_Message message;
  MPI_Mprobe(previous(), 4, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
  MPI_Mrecv_c(in, 2, MPI_INT, &message, MPI_STATUS_IGNORE);
  CHECK_EQ(in[0], previous());
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void requests() {
  section("nonblocking and persistent messages");
  const int out = rank();
  std::array<std::byte, 4096> buffer;
  MPI_Buffer_attach(buffer.data(), sizeof buffer);
  using Start = int(const void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
  int round = 0;
  for (Start* start : {MPI_Isend_c, MPI_Issend_c, MPI_Ibsend_c, MPI_Irsend_c, MPI_Send_init_c,
                       MPI_Ssend_init_c, MPI_Bsend_init_c, MPI_Rsend_init_c}) {
    const bool persistent = round++ >= 4;
    int in = -1;
    MPI_Request requests[2];
    if (persistent) {
      MPI_Recv_init_c(&in, 1, MPI_INT, previous(), 1, MPI_COMM_WORLD, &requests[0]);
      MPI_Start(&requests[0]);
    } else {
      MPI_Irecv_c(&in, 1, MPI_INT, previous(), 1, MPI_COMM_WORLD, &requests[0]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(start(&out, 1, MPI_INT, next(), 1, MPI_COMM_WORLD, &requests[1]), MPI_SUCCESS);
    if (persistent) MPI_Start(&requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK_EQ(in, previous());
    if (persistent)
      for (MPI_Request& request : requests) MPI_Request_free(&request);
  }
  void* detached;
  int bytes;
  MPI_Buffer_detach(&detached, &bytes);

  int in = -1;
  MPI_Request sent, received;
  MPI_Isend_c(&out, 1, MPI_INT, next(), 4, MPI_COMM_WORLD, &sent);
  MPI_Message message;
  MPI_Mprobe(previous(), 4, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
  MPI_Imrecv_c(&in, 1, MPI_INT, &message, &received);
  MPI_Wait(&received, MPI_STATUS_IGNORE);
  MPI_Wait(&sent, MPI_STATUS_IGNORE);
  CHECK_EQ(in, previous());
}

void statuses() {
  section("statuses of up to 2^63 - 1 elements");
  MPI_Status status{};
  for (const MPI_Count elements : {MPI_Count{0}, 3 * kGiga, MPI_Count{INT64_MAX}}) {
    MPI_Status_set_elements_c(&status, MPI_DOUBLE, elements);
    MPI_Count got = -1;
    MPI_Get_elements_c(&status, MPI_DOUBLE, &got);
    CHECK_EQ(got, elements);
    MPI_Get_count_c(&status, MPI_DOUBLE, &got);
    CHECK_EQ(got, elements);
    int few = -1;
    MPI_Get_elements(&status, MPI_DOUBLE, &few);
    CHECK_EQ(few, elements > INT32_MAX ? MPI_UNDEFINED : static_cast<int>(elements));
  }
  MPI_Count got = -1;
  MPI_Status_set_elements_c(&status, MPI_DOUBLE, INT64_MAX);
  MPI_Get_elements_c(&status, MPI_BYTE, &got);
  CHECK_EQ(got, MPI_Count{MPI_UNDEFINED});
}

// ---- datatypes ---------------------------------------------------------------------------------

struct Made {
  MPI_Count size, lb, extent;
  int combiner, integers;  // how many integers, and large counts, the constructor had
  std::vector<MPI_Count> counts;
};

void check_type(MPI_Datatype type, const Made& expected) {
  MPI_Count size = -1, lb = -1, extent = -1;
  MPI_Type_size_c(type, &size);
  MPI_Type_get_extent_c(type, &lb, &extent);
  CHECK_EQ(size, expected.size);
  CHECK_EQ(lb, expected.lb);
  CHECK_EQ(extent, expected.extent);
  int few = 0;
  MPI_Type_size(type, &few);
  CHECK_EQ(few, size > INT32_MAX ? MPI_UNDEFINED : static_cast<int>(size));

  MPI_Count integers = -1, addresses = -1, counts = -1, types = -1;
  int combiner = -1;
  MPI_Type_get_envelope_c(type, &integers, &addresses, &counts, &types, &combiner);
  CHECK_EQ(combiner, expected.combiner);
  CHECK_EQ(integers, MPI_Count{expected.integers});
  CHECK_EQ(addresses, MPI_Count{0});
  CHECK_EQ(counts, static_cast<MPI_Count>(expected.counts.size()));
  std::vector<int> got_integers(static_cast<std::size_t>(integers));
  std::vector<MPI_Count> got(static_cast<std::size_t>(counts));
  std::vector<MPI_Datatype> got_types(static_cast<std::size_t>(types));
  MPI_Type_get_contents_c(type, integers, 0, counts, types, got_integers.data(), nullptr,
                          got.data(), got_types.data());
  CHECK(got == expected.counts);
  CHECK_CLASS(MPI_Type_get_contents_c(type, integers, 0, counts - 1, types, got_integers.data(),
                                      nullptr, got.data(), got_types.data()),
              MPI_ERR_ARG);
  int i, a, t;
  CHECK_CLASS(MPI_Type_get_envelope(type, &i, &a, &t, &combiner), MPI_ERR_TYPE);
  MPI_Type_free(&type);
}

void datatypes() {
  section("datatypes with large counts");
  constexpr MPI_Count k2 = 2 * kGiga, k8 = 8 * kGiga;
  MPI_Datatype type;
  MPI_Type_contiguous_c(k8, MPI_CHAR, &type);
  check_type(type, {k8, 0, k8, MPI_COMBINER_CONTIGUOUS, 0, {k8}});
  MPI_Type_vector_c(2, k2, k8, MPI_SHORT, &type);
  check_type(type, {4 * k2, 0, 2 * (k8 + k2), MPI_COMBINER_VECTOR, 0, {2, k2, k8}});
  MPI_Type_create_hvector_c(2, 1, k8, MPI_SHORT, &type);
  check_type(type, {4, 0, k8 + 2, MPI_COMBINER_HVECTOR, 0, {2, 1, k8}});
  const MPI_Count lengths[] = {1, k2}, places[] = {k8, 0};
  MPI_Type_indexed_c(2, lengths, places, MPI_SHORT, &type);
  check_type(type, {2 * (k2 + 1), 0, 2 * k8 + 2, MPI_COMBINER_INDEXED, 0, {2, 1, k2, k8, 0}});
  MPI_Type_create_hindexed_c(2, lengths, places, MPI_CHAR, &type);
  check_type(type, {k2 + 1, 0, k8 + 1, MPI_COMBINER_HINDEXED, 0, {2, 1, k2, k8, 0}});
  MPI_Type_create_indexed_block_c(2, 3, places, MPI_CHAR, &type);
  check_type(type, {6, 0, k8 + 3, MPI_COMBINER_INDEXED_BLOCK, 0, {2, 3, k8, 0}});
  MPI_Type_create_hindexed_block_c(2, 3, places, MPI_CHAR, &type);
  check_type(type, {6, 0, k8 + 3, MPI_COMBINER_HINDEXED_BLOCK, 0, {2, 3, k8, 0}});
  const MPI_Datatype types[] = {MPI_CHAR, MPI_SHORT};
  MPI_Type_create_struct_c(2, lengths, places, types, &type);
  check_type(type, {1 + 2 * k2, 0, k8 + 2, MPI_COMBINER_STRUCT, 0, {2, 1, k2, k8, 0}});
  MPI_Type_create_resized_c(MPI_CHAR, -k2, k8, &type);
  check_type(type, {1, -k2, k8, MPI_COMBINER_RESIZED, 0, {-k2, k8}});
  const MPI_Count sizes[] = {4, k8}, subsizes[] = {2, k2}, starts[] = {1, k2};
  MPI_Type_create_subarray_c(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_CHAR, &type);
  check_type(type, {2 * k2, 0, 4 * k8, MPI_COMBINER_SUBARRAY, 2, {4, k8, 2, k2, 1, k2}});
  const int kinds[] = {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK};
  const int arguments[] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
  const int grid[] = {1, 4};
  MPI_Type_create_darray_c(4, 1, 2, sizes, kinds, arguments, grid, MPI_ORDER_C, MPI_CHAR, &type);
  check_type(type, {k8, 0, 4 * k8, MPI_COMBINER_DARRAY, 10, {4, k8}});

  // Data far apart, few bytes of it: the lowest and the highest byte of 8 GiB.
  MPI_Type_create_hindexed_block_c(2, 1, places, MPI_CHAR, &type);
  MPI_Count lb = -1, extent = -1;
  MPI_Type_get_true_extent_c(type, &lb, &extent);
  CHECK_EQ(lb, MPI_Count{0});
  CHECK_EQ(extent, k8 + 1);
  MPI_Type_free(&type);
}

void packing() {
  section("packing");
  MPI_Count size = -1;
  MPI_Pack_size_c(4 * kGiga, MPI_INT, MPI_COMM_WORLD, &size);
  CHECK_EQ(size, 16 * kGiga);
  int few = -1;
  MPI_Pack_size(INT32_MAX, MPI_INT, MPI_COMM_WORLD, &few);
  CHECK_EQ(few, MPI_UNDEFINED);
  MPI_Pack_external_size_c("external32", 4 * kGiga, MPI_INT, &size);
  CHECK_EQ(size, 16 * kGiga);

  const int out[] = {1, 2, 3};
  std::array<std::byte, 64> packed{};
  int in[3] = {};
  MPI_Count position = 4;
  MPI_Pack_c(out, 3, MPI_INT, packed.data(), packed.size(), &position, MPI_COMM_WORLD);
  CHECK_EQ(position, MPI_Count{16});
  position = 4;
  MPI_Unpack_c(packed.data(), packed.size(), &position, in, 3, MPI_INT, MPI_COMM_WORLD);
  CHECK(std::memcmp(out, in, sizeof in) == 0);
  position = 0;
  MPI_Pack_external_c("external32", out, 3, MPI_INT, packed.data(), packed.size(), &position);
  CHECK_EQ(position, MPI_Count{12});
  position = 0;
  std::memset(in, 0, sizeof in);
  MPI_Unpack_external_c("external32", packed.data(), packed.size(), &position, in, 3, MPI_INT);
  CHECK(std::memcmp(out, in, sizeof in) == 0);
}

// ---- collectives -------------------------------------------------------------------------------

MPI_Count most_items = 0;
void add_all(void* in, void* inout, MPI_Count* count, MPI_Datatype*) {
  most_items = std::max(most_items, *count);
  for (MPI_Count i = 0; i < *count; ++i) static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
}

void reductions() {
  section("reductions, also with functions that take large counts");
  MPI_Op add;
  MPI_Op_create_c(add_all, 1, &add);
  const int ranks = size(), sum = ranks * (ranks - 1) / 2;
  const auto n = static_cast<std::size_t>(ranks);
  for (const MPI_Op op : {add, MPI_SUM}) {
    const std::vector<int> mine(n, rank());
    std::vector<int> all(n, -1);
    MPI_Allreduce_c(mine.data(), all.data(), ranks, MPI_INT, op, MPI_COMM_WORLD);
    CHECK(all == std::vector<int>(n, sum));
    MPI_Reduce_c(mine.data(), all.data(), ranks, MPI_INT, op, 0, MPI_COMM_WORLD);
    MPI_Scan_c(mine.data(), all.data(), ranks, MPI_INT, op, MPI_COMM_WORLD);
    CHECK(all == std::vector<int>(n, rank() * (rank() + 1) / 2));
    MPI_Exscan_c(mine.data(), all.data(), ranks, MPI_INT, op, MPI_COMM_WORLD);
    CHECK(rank() == 0 || all == std::vector<int>(n, rank() * (rank() - 1) / 2));
    const std::vector<MPI_Count> ones(n, 1);
    int one = -1;
    MPI_Reduce_scatter_c(mine.data(), &one, ones.data(), MPI_INT, op, MPI_COMM_WORLD);
    CHECK_EQ(one, sum);
    one = -1;
    MPI_Reduce_scatter_block_c(mine.data(), &one, 1, MPI_INT, op, MPI_COMM_WORLD);
    CHECK_EQ(one, sum);
    MPI_Request request;
    std::vector<int> later(n, -1);
    MPI_Iallreduce_c(mine.data(), later.data(), ranks, MPI_INT, op, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(later == std::vector<int>(n, sum));
  }
  int two[] = {1, 2}, four[] = {3, 4};
  MPI_Reduce_local_c(two, four, 2, MPI_INT, add);
  CHECK_EQ(four[1], 6);
  CHECK(most_items >= 1);
  MPI_Op_free(&add);
}

void movement() {
  section("collectives that move data");
  const int ranks = size();
  const auto n = static_cast<std::size_t>(ranks);
  std::vector<int> all(n, -1), expected(n);
  std::iota(expected.begin(), expected.end(), 0);
  int mine = rank(), one = -1;
  std::vector<MPI_Count> ones(n, 1);
  std::vector<MPI_Aint> places(n), bytes(n);
  std::iota(places.begin(), places.end(), 0);
  for (std::size_t i = 0; i < n; ++i) bytes[i] = places[i] * MPI_Aint{sizeof(int)};
  const std::vector<MPI_Datatype> types(n, MPI_INT);

  int value = rank() == 0 ? 42 : -1;
  MPI_Bcast_c(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
  CHECK_EQ(value, 42);
  MPI_Allgather_c(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, MPI_COMM_WORLD);
  CHECK(all == expected);
  all.assign(n, -1);
  MPI_Allgatherv_c(&mine, 1, MPI_INT, all.data(), ones.data(), places.data(), MPI_INT,
                   MPI_COMM_WORLD);
  CHECK(all == expected);
  all.assign(n, -1);
  MPI_Gather_c(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
  CHECK(rank() != 0 || all == expected);
  all.assign(n, -1);
  MPI_Gatherv_c(&mine, 1, MPI_INT, all.data(), ones.data(), places.data(), MPI_INT, 0,
                MPI_COMM_WORLD);
  CHECK(rank() != 0 || all == expected);
  MPI_Scatter_c(expected.data(), 1, MPI_INT, &one, 1, MPI_INT, 0, MPI_COMM_WORLD);
  CHECK_EQ(one, rank());
  one = -1;
  MPI_Scatterv_c(expected.data(), ones.data(), places.data(), MPI_INT, &one, 1, MPI_INT, 0,
                 MPI_COMM_WORLD);
  CHECK_EQ(one, rank());

  const std::vector<int> out(n, rank());
  all.assign(n, -1);
  MPI_Alltoall_c(out.data(), 1, MPI_INT, all.data(), 1, MPI_INT, MPI_COMM_WORLD);
  CHECK(all == expected);
  all.assign(n, -1);
  MPI_Alltoallv_c(out.data(), ones.data(), places.data(), MPI_INT, all.data(), ones.data(),
                  places.data(), MPI_INT, MPI_COMM_WORLD);
  CHECK(all == expected);
  all.assign(n, -1);
  MPI_Request request;
  MPI_Ialltoallw_c(out.data(), ones.data(), bytes.data(), types.data(), all.data(), ones.data(),
                   bytes.data(), types.data(), MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(all == expected);
}

void errors() {
  section("errors");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int value = 0;
  const int all = MPI_PROC_NULL;
  CHECK_CLASS(MPI_Send_c(&value, -1, MPI_INT, all, 0, MPI_COMM_WORLD), MPI_ERR_COUNT);
  // More bytes than 64 bits can tell.
  CHECK_CLASS(MPI_Send_c(&value, INT64_MAX / 2, MPI_INT, all, 0, MPI_COMM_WORLD), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Bcast_c(&value, INT64_MAX / 2, MPI_INT, 0, MPI_COMM_WORLD), MPI_ERR_COUNT);
  const std::vector<MPI_Count> many(static_cast<std::size_t>(size()), INT64_MAX / 2 + 1);
  if (size() > 1)
    CHECK_CLASS(
        MPI_Reduce_scatter_c(&value, &value, many.data(), MPI_BYTE, MPI_BOR, MPI_COMM_WORLD),
        MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Recv_c(nullptr, 3 * kGiga, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
              MPI_ERR_BUFFER);
  MPI_Datatype type;
  CHECK_CLASS(MPI_Type_contiguous_c(-1, MPI_INT, &type), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Type_contiguous_c(INT64_MAX, MPI_INT, &type), MPI_ERR_VALUE_TOO_LARGE);
  CHECK_CLASS(MPI_Type_vector_c(1, -1, 1, MPI_INT, &type), MPI_ERR_ARG);
  const MPI_Count sizes[] = {2}, subsizes[] = {3}, starts[] = {0};
  CHECK_CLASS(MPI_Type_create_subarray_c(1, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &type),
              MPI_ERR_ARG);
  CHECK_CLASS(MPI_Buffer_attach_c(&value, -1), MPI_ERR_ARG);
  MPI_Op op;
  CHECK_CLASS(MPI_Op_create_c(nullptr, 1, &op), MPI_ERR_ARG);
  MPI_Status status{};
  CHECK_CLASS(MPI_Status_set_elements_c(&status, MPI_INT, -1), MPI_ERR_COUNT);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

// ---- more than 2^31 items ----------------------------------------------------------------------

// Addresses for more than 2^31 bytes, with memory for kUnit of them: it is there again and again.
// 2^32 is no multiple of kUnit, so what is 2^32 bytes from its place is not what belongs there.
class Repeated {
 public:
  static constexpr std::size_t kUnit = (64 << 20) + 4096;
  explicit Repeated(std::size_t times) : bytes_(times * kUnit) {
    const int memory = ::memfd_create("repeated", 0);
    if (::ftruncate(memory, kUnit) != 0) std::abort();
    at_ = static_cast<std::byte*>(
        ::mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    for (std::size_t i = 0; i < times; ++i)
      if (::mmap(at_ + i * kUnit, kUnit, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory,
                 0) == MAP_FAILED)
        std::abort();
    ::close(memory);
  }
  ~Repeated() { ::munmap(at_, bytes_); }
  Repeated(const Repeated&) = delete;
  Repeated& operator=(const Repeated&) = delete;
  std::byte* data() const { return at_; }
  std::size_t size() const { return bytes_; }

 private:
  std::size_t bytes_;
  std::byte* at_;
};

void fill(const Repeated& memory, int seed) {
  for (std::size_t i = 0; i < Repeated::kUnit; i += 4096)
    memory.data()[i] = static_cast<std::byte>(i / 4096 + static_cast<std::size_t>(seed));
}
bool holds(const Repeated& memory, int seed) {
  for (std::size_t i = 0; i < Repeated::kUnit; i += 4096)
    if (memory.data()[i] != static_cast<std::byte>(i / 4096 + static_cast<std::size_t>(seed)))
      return false;
  return true;
}

void long_messages(std::size_t units) {
  const Repeated memory(units);
  const auto items = static_cast<MPI_Count>(memory.size());
  section("a message of more than 2^31 items");
  fill(memory, rank() == 0 ? 1 : 0);
  MPI_Request request;
  if (rank() == 1) MPI_Irecv_c(memory.data(), items, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == 0) {
    MPI_Send_c(memory.data(), items, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
  } else if (rank() == 1) {
    MPI_Status status;
    MPI_Wait(&request, &status);
    MPI_Count count = -1;
    MPI_Get_count_c(&status, MPI_BYTE, &count);
    CHECK_EQ(count, items);
    int few = 0;
    MPI_Get_count(&status, MPI_BYTE, &few);
    CHECK_EQ(few, MPI_UNDEFINED);
    CHECK(holds(memory, 1));
  }
  section("a broadcast of more than 2^31 items");
  fill(memory, rank() == 0 ? 2 : 0);
  MPI_Bcast_c(memory.data(), items, MPI_BYTE, 0, MPI_COMM_WORLD);
  CHECK(holds(memory, 2));
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  blocking_messages();
  requests();
  statuses();
  datatypes();
  packing();
  reductions();
  movement();
  errors();
  constexpr std::size_t kMoreThan31Bits = 33;
  if (argc > 1 && std::string(argv[1]) == "long")
    long_messages(argc > 2 ? std::stoul(argv[2]) : kMoreThan31Bits);
  return job::report();
}
