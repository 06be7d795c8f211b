// How many other processes a process exchanges messages with in collective operations. With
// connections on demand, that is the number of its connections.
//
// Each rank of a job in turn is this process; the messages of the others are made up, without data.
// As if each rank were on a node of its own.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <set>
#include <vector>

#include "libmpi_lite/collective/collective.hpp"
#include "libmpi_lite/collective/plan.hpp"
#include "libmpi_lite/transfer/engine.hpp"
#include "tests/mpi/core/predefined.hpp"
#include "tests/mpi/transfer/mock_channel.hpp"

namespace viaduct::mpi {
namespace {

constexpr std::uint32_t kContext = 4;
constexpr MPI_Count kShort = 8;  // bytes of each block
// Bytes of all blocks together: more than any limit of algorithms/sizes.hpp.
constexpr MPI_Count kLong = 320 << 10;

class ProcessOfMany {
 public:
  ProcessOfMany(int rank, int size) {
    static const bool defined = [] {
      request_handles.define(kCompleteSend, Ref<Request>(new CompleteSend));
      return true;
    }();
    (void)defined;
    std::vector<int> all(static_cast<std::size_t>(size));
    std::iota(all.begin(), all.end(), 0);
    TransferConfig config;
    config.write_protocol = WriteProtocol::nsr;
    config.eager_budget = 1u << 30;
    config.collectives = &collective_sink();
    transfer_ = std::make_unique<Transfer>(
        [&](ChannelSink& sink) {
          sink_ = &sink;
          std::vector<std::unique_ptr<Channel>> channels;
          auto channel = std::make_unique<MockChannel>();
          channel->control = channel->eager = 1 << 20;
          channel_ = channel.get();
          channels.push_back(std::move(channel));
          return channels;
        },
        [](int) { return 0; }, rank, size, config);
    world_ = make<Comm>(kContext, make<Group>(all, rank), nullptr, nullptr);
    world_->plan = std::make_unique<Plan>(all, rank, false, true);
  }

  Comm& world() { return *world_; }
  const std::set<int>& partners() const { return channel_->said_to; }

  // Lets the operation receive what it waits for until it is complete.
  void finish(const Ref<Request>& operation) {
    MatchQueues& queues = transfer_->queues(world_->collective_context());
    while (!operation->complete) {
      ReceiveRequest* awaited = nullptr;
      queues.for_each_posted([&](ReceiveRequest& r) {
        if (!awaited) awaited = &r;
      });
      ASSERT_TRUE(awaited) << "it waits for nothing";
      channel_->said_to.insert(awaited->peer);
      const Head head = head_of(Kind::eager, awaited->context, static_cast<unsigned>(awaited->rank),
                                static_cast<unsigned>(awaited->tag));
      std::vector<std::byte> message(sizeof head + static_cast<std::size_t>(awaited->bytes));
      std::memcpy(message.data(), &head, sizeof head);
      sink_->on_control(awaited->peer, message);
      transfer_->progress();
    }
    EXPECT_EQ(operation->error, MPI_SUCCESS);
  }

 private:
  ChannelSink* sink_ = nullptr;
  MockChannel* channel_ = nullptr;
  std::unique_ptr<Transfer> transfer_;
  Ref<Comm> world_;
};

// What a program calls, as one rank of it: `run` starts an operation and finishes it.
using Program = std::function<void(ProcessOfMany&)>;

std::vector<std::byte>& buffer(int n) {
  static std::vector<std::byte> buffers[2];
  buffers[n].resize(static_cast<std::size_t>(kLong) + 64 * 1024);
  return buffers[n];
}
Part in(MPI_Count bytes) {
  return {buffer(0).data(), bytes / 8, MPI_DOUBLE};
}
Part out(MPI_Count bytes) {
  return {buffer(1).data(), bytes / 8, MPI_DOUBLE};
}
const Op& sum() {
  return *op_handles.find(reinterpret_cast<std::uintptr_t>(MPI_SUM));
}
MPI_Count long_block(const Comm& comm) {
  return kLong / comm.size() / 8 * 8;
}

void barrier(ProcessOfMany& p) {
  p.finish(start_barrier(p.world()));
}
void broadcasts(ProcessOfMany& p, MPI_Count bytes) {
  for (int root = 0; root < p.world().size(); ++root)
    p.finish(start_broadcast(p.world(), in(bytes), root));
}
void reduces(ProcessOfMany& p) {
  for (int root = 0; root < p.world().size(); ++root)
    p.finish(start_reduce(p.world(), in(kShort), buffer(1).data(), sum(), root));
}
void gathers_and_scatters(ProcessOfMany& p) {
  for (int root = 0; root < p.world().size(); ++root) {
    p.finish(start_gather(p.world(), in(kShort), out(kShort), root));
    p.finish(start_scatter(p.world(), in(kShort), out(kShort), root));
  }
}
void allreduce(ProcessOfMany& p, MPI_Count bytes) {
  p.finish(start_allreduce(p.world(), in(bytes), buffer(1).data(), sum()));
}
void allgather(ProcessOfMany& p, MPI_Count block) {
  p.finish(start_allgather(p.world(), in(block), out(block)));
}
void alltoall(ProcessOfMany& p, MPI_Count block) {
  p.finish(start_alltoall(p.world(), in(block), out(block)));
}
void all_but_alltoall(ProcessOfMany& p) {
  barrier(p);
  broadcasts(p, kShort);
  reduces(p);
  gathers_and_scatters(p);
  allreduce(p, kShort);
  allgather(p, kShort);
}
void all_short(ProcessOfMany& p) {
  all_but_alltoall(p);
  alltoall(p, kShort);
}
void all_but_alltoall_long_too(ProcessOfMany& p) {
  all_but_alltoall(p);
  broadcasts(p, kLong);
  allreduce(p, kLong);
  allgather(p, long_block(p.world()));
}

// Average over the ranks.
double partners(int size, const Program& program) {
  std::size_t sum = 0;
  for (int rank = 0; rank < size; ++rank) {
    ProcessOfMany process(rank, size);
    program(process);
    EXPECT_FALSE(process.partners().contains(rank));
    sum += process.partners().size();
  }
  return static_cast<double>(sum) / size;
}

struct Row {
  const char* name;
  Program program;
  int at_16, at_32;  // most partners
};

const std::vector<Row>& rows() {
  static const std::vector<Row> all{
      {"barrier", barrier, 4, 5},
      {"broadcast, short, each root", [](auto& p) { broadcasts(p, kShort); }, 4, 5},
      {"broadcast, long, each root", [](auto& p) { broadcasts(p, kLong); }, 2, 2},
      {"reduce, short, each root", reduces, 4, 5},
      {"gather and scatter, short, each root", gathers_and_scatters, 4, 5},
      {"allreduce, short", [](auto& p) { allreduce(p, kShort); }, 4, 5},
      {"allreduce, long", [](auto& p) { allreduce(p, kLong); }, 2, 2},
      {"allgather, short", [](auto& p) { allgather(p, kShort); }, 4, 5},
      {"allgather, long", [](auto& p) { allgather(p, long_block(p.world())); }, 2, 2},
      {"alltoall, short", [](auto& p) { alltoall(p, kShort); }, 4, 5},
      {"alltoall, long", [](auto& p) { alltoall(p, long_block(p.world())); }, 15, 31},
      {"all of the short ones", all_short, 4, 5},
      {"all but the alltoall, short and long", all_but_alltoall_long_too, 5, 6},
  };
  return all;
}

// Table 2 of the paper on connections on demand (docs/mpi.md) has, for 16 and 32 processes:
// barrier, broadcast and allreduce 4 and 5, allgather 5 and 6, alltoall 15 and 31.
TEST(Partners, PowersOfTwo) {
  for (const Row& row : rows()) {
    EXPECT_LE(partners(16, row.program), row.at_16) << row.name;
    EXPECT_LE(partners(32, row.program), row.at_32) << row.name;
  }
}

// On the hypercube of a size that is no power of two, some processes have a partner for each
// dimension of the larger cube, and most have fewer.
TEST(Partners, OtherSizes) {
  const Program along_cube = [](auto& p) {
    barrier(p);
    broadcasts(p, kShort);
    reduces(p);
    gathers_and_scatters(p);
    allreduce(p, kShort);
  };
  for (const int size : {3, 5, 6, 7, 12, 15, 24, 33, 36, 48}) {
    SCOPED_TRACE(size);
    const int dimensions = std::bit_width(static_cast<unsigned>(size)) - 1;
    EXPECT_LT(partners(size, along_cube), dimensions + 1);
    if (size % 2 == 0) {
      EXPECT_LE(partners(size, [](auto& p) { allgather(p, kShort); }), dimensions);
    }
  }
}

}  // namespace
}  // namespace viaduct::mpi
