// Posts descriptors of one kind, a given number of times, on a device that does nothing: for
// callgrind, see vipl-instructions.
#include <cstring>
#include <string>

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

int main(int argc, char** argv) {
  for (const Kind& kind : kKinds)
    if (argc == 3 && std::strcmp(argv[1], kind.name) == 0) {
      run(kind, std::stoul(argv[2]));
      return 0;
    }
  std::fprintf(stderr, "usage: vipl-instructions-of KIND TIMES\n");
  return 2;
}
