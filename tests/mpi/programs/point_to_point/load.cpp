// Much at once.
#include <algorithm>
#include <filesystem>
#include <string>

#include "sections.hpp"

namespace p2p {
namespace {

const int kLarge = job::share_of(24 << 20);  // bytes

void big() {
  for (const int extra : {0, 3}) {
    const std::vector<char> out = pattern(kLarge + extra, job::rank());
    std::vector<char> in(out.size());
    MPI_Request request;
    MPI_Isend(out.data(), kLarge + extra, MPI_CHAR, next(), 50, MPI_COMM_WORLD, &request);
    MPI_Recv(in.data(), kLarge + extra, MPI_CHAR, before(), 50, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(in == pattern(kLarge + extra, before()));
  }
}

// Columns of a matrix become rows: both sides are not contiguous, with different types.
void big_strided() {
  constexpr int kSide = 1500;
  std::vector<double> out(kSide * kSide), in(out.size(), -1);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<double>(i) + job::rank();
  MPI_Datatype column, columns, blocks;
  MPI_Type_vector(kSide, 1, kSide, MPI_DOUBLE, &column);
  MPI_Type_create_resized(column, 0, sizeof(double), &columns);
  MPI_Type_commit(&columns);
  MPI_Type_vector(kSide, kSide / 2, kSide, MPI_DOUBLE, &blocks);  // the left half of a matrix
  MPI_Type_commit(&blocks);
  MPI_Sendrecv(out.data(), kSide / 2, columns, next(), 51, in.data(), 1, blocks, before(), 51,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  int wrong = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const std::size_t row = i / kSide, at = i % kSide;
    if (at >= kSide / 2) {
      wrong += in[i] != -1;
      continue;
    }
    const std::size_t n = row * (kSide / 2) + at;  // n-th number that was sent
    const double expected = static_cast<double>((n % kSide) * kSide + n / kSide) + before();
    wrong += in[i] != expected;
  }
  CHECK_EQ(wrong, 0);
  MPI_Type_free(&column);
  MPI_Type_free(&columns);
  MPI_Type_free(&blocks);
}

const int kRequests = job::share_of(10000);

// All receives are there first, all sends come first, or neither.
void many_requests(bool receives_first, bool reverse) {
  std::vector<int> out(kRequests), in(kRequests, -1);
  std::vector<MPI_Request> sends(out.size()), receives(out.size());
  const auto receive_all = [&] {
    for (int i = 0; i < kRequests; ++i) {
      const auto at = static_cast<std::size_t>(reverse ? kRequests - 1 - i : i);
      MPI_Irecv(&in[at], 1, MPI_INT, before(), static_cast<int>(at), MPI_COMM_WORLD, &receives[at]);
    }
  };
  if (receives_first) {
    receive_all();
    MPI_Barrier(MPI_COMM_WORLD);
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = job::rank() + static_cast<int>(i);
    MPI_Isend(&out[i], 1, MPI_INT, next(), static_cast<int>(i), MPI_COMM_WORLD, &sends[i]);
  }
  if (!receives_first) {
    MPI_Barrier(MPI_COMM_WORLD);
    receive_all();
  }
  MPI_Waitall(kRequests, receives.data(), MPI_STATUSES_IGNORE);
  MPI_Waitall(kRequests, sends.data(), MPI_STATUSES_IGNORE);
  int wrong = 0;
  for (std::size_t i = 0; i < in.size(); ++i) wrong += in[i] != before() + static_cast<int>(i);
  CHECK_EQ(wrong, 0);
}

const int kReceives = job::share_of(1200);

// More long receives than a channel keeps for those that come early, and the messages come in the
// opposite order.
void early_receives() {
  constexpr int kBytes = 32 << 10;
  std::vector<MPI_Request> receives(static_cast<std::size_t>(kReceives));
  std::vector<char> in(receives.size() * kBytes);
  for (int i = 0; i < kReceives; ++i) {
    MPI_Irecv(in.data() + std::size_t{kBytes} * static_cast<std::size_t>(i), kBytes, MPI_CHAR,
              before(), i, MPI_COMM_WORLD, &receives[static_cast<std::size_t>(i)]);
    int flag;
    for (int n = 0; n < 20; ++n)
      MPI_Iprobe(before(), kReceives, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const std::vector<char> out = pattern(kBytes, job::rank());
  for (int i = kReceives; i-- > 0;)
    MPI_Send(out.data(), kBytes, MPI_CHAR, next(), i, MPI_COMM_WORLD);
  MPI_Waitall(kReceives, receives.data(), MPI_STATUSES_IGNORE);
  const std::vector<char> right = pattern(kBytes, before());
  int wrong = 0;
  for (auto at = in.begin(); at != in.end(); at += kBytes)
    wrong += !std::equal(right.begin(), right.end(), at);
  CHECK_EQ(wrong, 0);
}

// Everybody floods rank 0, which is busy with something else, by blocking sends of small messages.
void flood() {
  const int each = job::share_of(20000);
  if (job::rank() == 0) {
    int busy = 0;
    MPI_Request request;
    MPI_Irecv(&busy, 1, MPI_INT, job::size() - 1, 53, MPI_COMM_WORLD, &request);
    if (job::size() > 1) {
      std::vector<int> seen(static_cast<std::size_t>(job::size()));
      for (int i = 0; i < each * (job::size() - 1); ++i) {
        int value[4] = {-1, -1, -1, -1};
        MPI_Status status;
        MPI_Recv(value, 4, MPI_INT, MPI_ANY_SOURCE, 52, MPI_COMM_WORLD, &status);
        CHECK_EQ(value[0], seen[static_cast<std::size_t>(status.MPI_SOURCE)]++);
        CHECK_EQ(value[3], status.MPI_SOURCE);
      }
    } else {
      const int free_again = 0;
      MPI_Send(&free_again, 1, MPI_INT, 0, 53, MPI_COMM_WORLD);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    for (int i = 0; i < each; ++i) {
      const int value[4] = {i, 0, 0, job::rank()};
      MPI_Send(value, 4, MPI_INT, 0, 52, MPI_COMM_WORLD);
    }
    if (job::rank() == job::size() - 1)
      MPI_Send(&job::state().failures, 1, MPI_INT, 0, 53, MPI_COMM_WORLD);
  }
}

// Open files of this process that are called so.
int open_files(const std::string& name) {
  int count = 0;
  for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const auto target = std::filesystem::read_symlink(file, error);
    count += !error && target.string().find(name) != std::string::npos;
  }
  return count;
}

// Descriptors are few, and a node may have many processes: only the own memory keeps one.
void descriptors() {
  for (int i = 0; i < job::size(); ++i) {
    const int to = (job::rank() + i) % job::size();
    const int from = (job::rank() + job::size() - i) % job::size();
    MPI_Sendrecv(nullptr, 0, MPI_INT, to, 55, nullptr, 0, MPI_INT, from, 55, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  }
  CHECK(open_files("memfd:viaduct") <= 1);
}

// Nobody may wait for the other to receive first.
void head_to_head() {
  constexpr int kMessages = 16;
  const int each = job::share_of(8 << 20) / kMessages, bytes = kMessages * each;
  const int partner = (job::rank() ^ 1) < job::size() ? job::rank() ^ 1 : job::rank();
  const std::vector<char> out = pattern(bytes, job::rank());
  std::vector<char> in(out.size());
  for (int round = 0; round < 3; ++round)
    MPI_Sendrecv(out.data(), bytes, MPI_CHAR, partner, 54, in.data(), bytes, MPI_CHAR, partner, 54,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK(in == pattern(bytes, partner));

  // Both send all before they receive anything; both receive in the opposite order.
  MPI_Request sends[kMessages], receives[kMessages];
  in.assign(in.size(), 0);
  for (int i = 0; i < kMessages; ++i)
    MPI_Isend(out.data() + i * each, each, MPI_CHAR, partner, i, MPI_COMM_WORLD, &sends[i]);
  for (int i = kMessages - 1; i >= 0; --i)
    MPI_Irecv(in.data() + i * each, each, MPI_CHAR, partner, i, MPI_COMM_WORLD, &receives[i]);
  MPI_Waitall(kMessages, sends, MPI_STATUSES_IGNORE);  // the sends first: receives go on meanwhile
  MPI_Waitall(kMessages, receives, MPI_STATUSES_IGNORE);
  CHECK(in == pattern(bytes, partner));

  in.assign(in.size(), 0);
  for (int i = 0; i < kMessages; ++i)
    MPI_Isend(out.data() + i * each, each, MPI_CHAR, partner, i, MPI_COMM_WORLD, &sends[i]);
  for (int i = kMessages - 1; i >= 0; --i)
    MPI_Recv(in.data() + i * each, each, MPI_CHAR, partner, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Waitall(kMessages, sends, MPI_STATUSES_IGNORE);
  CHECK(in == pattern(bytes, partner));
}

}  // namespace

void load() {
  job::section("big messages");
  big();
  job::section("big messages that are not contiguous on either side");
  big_strided();
  const std::string requests = std::to_string(kRequests) + " requests, ";
  job::section(requests + "receives first");
  many_requests(true, false);
  job::section(requests + "sends first");
  many_requests(false, false);
  job::section(requests + "received in reverse order");
  many_requests(false, true);
  many_requests(true, true);
  job::section(std::to_string(kReceives) + " long receives, the messages come in reverse order");
  early_receives();
  job::section("a flood of unexpected messages");
  flood();
  MPI_Barrier(MPI_COMM_WORLD);
  job::section("no descriptor for each process of the node");
  descriptors();
  job::section("large messages head to head");
  head_to_head();
}

}  // namespace p2p
