// Posting and polling allocate nothing and make no system call of their own. A thread that moves
// messages is watched: the allocator counts its calls, and a seccomp filter lets it write to the
// device files and nothing else (rdma_rxe rings its doorbell by a write; libibverbs makes it).
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <thread>

#include "tests/vipl/programs/support/bed.hpp"
#include "tests/vipl/programs/support/process.hpp"

// AddressSanitizer has an allocator of its own and makes system calls.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kCanWatch = false;
namespace viaduct::vipl_test {
bool watched = false;
std::size_t allocations = 0;
}  // namespace viaduct::vipl_test
#else
constexpr bool kCanWatch = true;
#include "tests/vipl/watched_malloc.hpp"
#endif

namespace viaduct::vipl_test {

namespace {

std::atomic<std::size_t> system_calls = 0;
std::atomic<int> first_system_call = -1;

void on_system_call(int, siginfo_t* info, void*) {
  int none = -1;
  first_system_call.compare_exchange_strong(none, info->si_syscall);
  ++system_calls;
}

// The device files that this process has open.
std::vector<int> device_files() {
  std::vector<int> out;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const auto target = std::filesystem::read_symlink(entry.path(), gone);
    if (!gone && target.string().starts_with("/dev/infiniband/uverbs"))
      out.push_back(std::stoi(entry.path().filename().string()));
  }
  return out;
}

// From now on this thread may write to those files (or control them) and return from the handler;
// everything else raises SIGSYS and is counted.
bool allow_only(const std::vector<int>& files) {
  constexpr auto load = [](std::size_t offset) {
    return sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<__u32>(offset));
  };
  constexpr auto give = [](__u32 what) { return sock_filter BPF_STMT(BPF_RET | BPF_K, what); };
  constexpr auto if_equal = [](__u32 value, __u8 then, __u8 otherwise) {
    return sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, then, otherwise);
  };
  std::vector<sock_filter> program = {
      load(offsetof(seccomp_data, nr)),
      if_equal(SYS_rt_sigreturn, 0, 1),
      give(SECCOMP_RET_ALLOW),
      if_equal(SYS_write, 2, 0),
      if_equal(SYS_ioctl, 1, 0),
      give(SECCOMP_RET_TRAP),
      load(offsetof(seccomp_data, args[0])),
  };
  for (const int file : files) {
    program.push_back(if_equal(static_cast<__u32>(file), 0, 1));
    program.push_back(give(SECCOMP_RET_ALLOW));
  }
  program.push_back(give(SECCOMP_RET_TRAP));
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// Messages there and back between two pairs of VIs, one with a CQ and one without; RDMA as well.
class Traffic {
 public:
  Traffic() {
    for (std::size_t i = 0; i < kSlots; ++i) {
      VipPostRecv(plain_b_, in_.receive(i, kBytes), in_.handle());
      VipPostRecv(queued_b_, in_.receive(kSlots + i, kBytes), in_.handle());
    }
    connect(plain_a_, plain_b_);
    connect(queued_a_, queued_b_);
  }

  // False: something went wrong.
  bool round() {
    bool good = true;
    for (std::size_t i = 0; i < kSlots && good; ++i) {
      VIP_DESCRIPTOR* d;
      good = VipPostSend(plain_a_, out_.send(0, 8), out_.handle()) == VIP_SUCCESS &&
             VipPostSend(queued_a_, out_.send(1, 8), out_.handle()) == VIP_SUCCESS &&
             VipPostSend(
                 plain_a_,
                 out_.rdma(2, 64, VIP_CONTROL_OP_RDMAWRITE, target_.buffer(0), target_.handle()),
                 out_.handle()) == VIP_SUCCESS &&
             sent(plain_a_) == out_.raw(0) && sent(plain_a_) == out_.raw(2) &&
             named(cq_a_, queued_a_, false) && VipSendDone(queued_a_, &d) == VIP_SUCCESS &&
             received(plain_b_) == in_.raw(i) && named(cq_b_, queued_b_, true) &&
             VipRecvDone(queued_b_, &d) == VIP_SUCCESS && d == in_.raw(kSlots + i) &&
             VipPostRecv(plain_b_, in_.raw(i), in_.handle()) == VIP_SUCCESS &&
             VipPostRecv(queued_b_, d, in_.handle()) == VIP_SUCCESS;
    }
    return good;
  }

 private:
  static constexpr std::size_t kSlots = 8, kBytes = 256;
  static constexpr std::uint64_t kPatience = 50'000'000;  // polls

  static VIP_DESCRIPTOR* sent(VIP_VI_HANDLE vi) {
    VIP_DESCRIPTOR* d = nullptr;
    for (std::uint64_t n = 0; n < kPatience && VipSendDone(vi, &d) == VIP_NOT_DONE;) ++n;
    return d;
  }
  static VIP_DESCRIPTOR* received(VIP_VI_HANDLE vi) {
    VIP_DESCRIPTOR* d = nullptr;
    for (std::uint64_t n = 0; n < kPatience && VipRecvDone(vi, &d) == VIP_NOT_DONE;) ++n;
    return d;
  }
  static bool named(VIP_CQ_HANDLE cq, VIP_VI_HANDLE expected, bool expected_receive) {
    VIP_VI_HANDLE vi = nullptr;
    VIP_BOOLEAN receive = VIP_FALSE;
    for (std::uint64_t n = 0; n < kPatience && VipCQDone(cq, &vi, &receive) == VIP_NOT_DONE;) ++n;
    return vi == expected && (receive == VIP_TRUE) == expected_receive;
  }
  static VIP_VI_ATTRIBUTES writable() {
    VIP_VI_ATTRIBUTES out = vi_attributes();
    out.EnableRdmaWrite = VIP_TRUE;
    return out;
  }

  Nic a_{kNicNames[0]}, b_{kNicNames[1]};
  Memory out_{a_, 3, kBytes}, in_{b_, 2 * kSlots, kBytes};
  Memory target_{b_, 1, kBytes, memory_attributes(nullptr, true)};
  Cq cq_a_{a_, kSlots}, cq_b_{b_, kSlots};
  Vi plain_a_{a_}, plain_b_{b_, writable()};
  Vi queued_a_{a_, vi_attributes(), cq_a_, nullptr}, queued_b_{b_, vi_attributes(), nullptr, cq_b_};
};

// traffic ROUNDS: says "ALLOCATIONS SYSTEM-CALLS NUMBER", the number being that of the first call.
// It ends without destructors: the watched thread cannot even end.
int traffic(const Arguments& arguments) {
  struct sigaction action {};
  action.sa_sigaction = on_system_call;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSYS, &action, nullptr);
  Traffic traffic;
  if (!traffic.round()) return 1;  // caches, lazily bound functions
  const int rounds = std::stoi(arguments.at(0));
  const std::vector<int> files = device_files();
  std::atomic<int> result = 0;
  std::thread moving([&] {
    bool good = allow_only(files);
    watched = true;
    for (int i = 0; i < rounds && good; ++i) good = traffic.round();
    watched = false;
    result = good ? 1 : -1;
    for (;;) __builtin_ia32_pause();
  });
  while (result == 0) std::this_thread::sleep_for(std::chrono::milliseconds{5});
  tell(std::to_string(allocations) + " " + std::to_string(system_calls) + " " +
       std::to_string(first_system_call));
  ::_exit(result == 1 && !testing::Test::HasFailure() ? 0 : 1);
}
const Part traffic_part("traffic", traffic);

// allocate: as above, of a thread that does what it must not. The watch sees it.
int allocate(const Arguments&) {
  struct sigaction action {};
  action.sa_sigaction = on_system_call;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSYS, &action, nullptr);
  std::atomic<bool> ended = false;
  std::thread moving([&] {
    if (allow_only({})) {
      watched = true;
      void* volatile memory = std::malloc(10);
      std::free(memory);
      ::syscall(SYS_getppid);
      watched = false;
    }
    ended = true;
    for (;;) __builtin_ia32_pause();
  });
  while (!ended) std::this_thread::sleep_for(std::chrono::milliseconds{5});
  tell(std::to_string(allocations) + " " + std::to_string(system_calls) + " " +
       std::to_string(first_system_call));
  ::_exit(0);
}
const Part allocate_part("allocate", allocate);

TEST(DataPath, AllocatesNothingAndMakesNoSystemCall) {
  if (!kCanWatch) GTEST_SKIP() << "AddressSanitizer makes allocations and system calls of its own";
  Process watched_one("traffic", {"500"});
  EXPECT_EQ("0 0 -1", watched_one.hear());
  EXPECT_EQ(0, watched_one.wait());
}

TEST(DataPath, TheWatchSeesWhatItShould) {
  if (!kCanWatch) GTEST_SKIP() << "AddressSanitizer makes allocations and system calls of its own";
  Process watched_one("allocate", {});
  EXPECT_EQ("2 1 " + std::to_string(SYS_getppid), watched_one.hear());
  EXPECT_EQ(0, watched_one.wait());
}

}  // namespace

}  // namespace viaduct::vipl_test
