// Posts descriptors of one kind, a given number of times, on a device that does nothing: for
// callgrind, see vipl-instructions.
#include <infiniband/verbs.h>

#include <string>
#include <string_view>

#include "tests/vipl/core/null_pair.hpp"

using namespace viaduct::vipl::test;

namespace {

struct Kind {
  const char* name;
  bool with_cq;
  bool receive;
  std::uint16_t segments;
  std::uint16_t control;
};
constexpr Kind kKinds[] = {
    {"send", false, false, 1, 0},
    {"send-4-segments", false, false, 4, 0},
    {"rdma-write", false, false, 2, VIP_CONTROL_OP_RDMAWRITE},
    {"receive", false, true, 1, 0},
    {"send-cq", true, false, 1, 0},
    {"receive-cq", true, true, 1, 0},
};

void run(const Kind& kind, unsigned long times) {
  NullPair pair(kind.with_cq);
  VIP_DESCRIPTOR* const d = pair.descriptor(0, kind.segments, kind.control);
  for (unsigned long i = 0; i < times; ++i) {
    must((kind.receive ? VipPostRecv : VipPostSend)(pair.vi, d, pair.handle), "post");
    VIP_VI_HANDLE vi = pair.vi;
    VIP_BOOLEAN receive = kind.receive;
    if (kind.with_cq) must(VipCQDone(pair.cq, &vi, &receive), "VipCQDone");
    VIP_DESCRIPTOR* taken = nullptr;
    must((receive ? VipRecvDone : VipSendDone)(vi, &taken), "done");
  }
}

}  // namespace

// What the same takes with bare libibverbs: the yardstick. With names that callgrind finds.
extern "C" [[gnu::noinline]] bool bare_post_send(ibv_qp* queue_pair, ibv_wr_opcode operation,
                                                 void* data, std::uint32_t key) {
  ibv_sge segment{reinterpret_cast<std::uint64_t>(data), 8, key};
  ibv_send_wr work{}, *bad = nullptr;
  work.wr_id = 1;
  work.sg_list = &segment;
  work.num_sge = 1;
  work.opcode = operation;
  work.send_flags = IBV_SEND_SIGNALED;
  if (operation == IBV_WR_RDMA_WRITE) {
    work.wr.rdma.remote_addr = segment.addr;
    work.wr.rdma.rkey = key;
  }
  return ibv_post_send(queue_pair, &work, &bad) == 0;
}

extern "C" [[gnu::noinline]] bool bare_post_receive(ibv_qp* queue_pair, void* data,
                                                    std::uint32_t key) {
  ibv_sge segment{reinterpret_cast<std::uint64_t>(data), 8, key};
  ibv_recv_wr work{1, nullptr, &segment, 1}, *bad = nullptr;
  return ibv_post_recv(queue_pair, &work, &bad) == 0;
}

extern "C" [[gnu::noinline]] bool bare_take(ibv_cq* queue, std::uint64_t& id) {
  ibv_wc done;
  if (ibv_poll_cq(queue, 1, &done) != 1 || done.status != IBV_WC_SUCCESS) return false;
  id = done.wr_id;
  return true;
}

namespace {

constexpr std::string_view kBare[] = {"bare-send", "bare-rdma-write", "bare-receive"};

void run_bare(std::string_view kind, unsigned long times) {
  ibv_context* const context = ibv_open_device(*ibv_get_device_list(nullptr));
  ibv_cq* const completions = ibv_create_cq(context, 16, nullptr, nullptr, 0);
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = completions;
  ibv_pd* const domain = ibv_alloc_pd(context);
  ibv_qp* const queue_pair = ibv_create_qp(domain, &wanted);
  char data[8];
  const std::uint32_t key = ibv_reg_mr(domain, data, sizeof data, 0)->lkey;
  const ibv_wr_opcode operation = kind == kBare[1] ? IBV_WR_RDMA_WRITE : IBV_WR_SEND;
  for (std::uint64_t i = 0, id = 0; i < times; ++i) {
    const bool posted = kind == kBare[2] ? bare_post_receive(queue_pair, data, key)
                                         : bare_post_send(queue_pair, operation, data, key);
    must(posted ? VIP_SUCCESS : VIP_ERROR_RESOURCE, "posting");
    must(bare_take(completions, id) ? VIP_SUCCESS : VIP_NOT_DONE, "bare_take");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view wanted = argc == 3 ? argv[1] : "";
  for (const std::string_view kind : kBare)
    if (wanted == kind) {
      run_bare(kind, std::stoul(argv[2]));
      return 0;
    }
  for (const Kind& kind : kKinds)
    if (wanted == kind.name) {
      run(kind, std::stoul(argv[2]));
      return 0;
    }
  std::fprintf(stderr, "usage: vipl-instructions-of KIND TIMES\n");
  return 2;
}
