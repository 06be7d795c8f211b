// Posting and polling allocate nothing and make no system call: the process is killed by the kernel
// (seccomp) at the first system call, and malloc is watched.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdio>
#include <functional>

#include "tests/vipl/core/null_pair.hpp"

namespace {
thread_local bool watched = false;
thread_local unsigned long allocations = 0;
}  // namespace

// In place of the C library's, which does the work. All ways of allocating end in one of these.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t n) {
  allocations += watched;
  return __libc_malloc(n);
}
void* calloc(std::size_t n, std::size_t bytes) {
  allocations += watched;
  return __libc_calloc(n, bytes);
}
void* realloc(void* old, std::size_t n) {
  allocations += watched;
  return __libc_realloc(old, n);
}
void* aligned_alloc(std::size_t alignment, std::size_t n) {
  allocations += watched;
  return __libc_memalign(alignment, n);
}
}

namespace viaduct::vipl::test {
namespace {

constexpr int kWell = 0, kAllocated = 3;

// From here on this thread may only end the process.
void forbid_system_calls() {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  const sock_fprog program{sizeof rules / sizeof *rules, rules};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    std::perror("prctl");
    std::_Exit(1);
  }
}

// Does `work` under watch and ends the process.
[[noreturn]] void watch(const std::function<void()>& work) {
  forbid_system_calls();
  watched = true;
  work();
  watched = false;
  _exit(allocations == 0 ? kWell : kAllocated);
}

constexpr int kRounds = 10000;
constexpr std::size_t kBatch = 8;

// Sends, RDMA and receives, more at a time than the device is asked for at once.
void post_and_take(NullPair& pair) {
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < kBatch; ++i) {
      VIP_DESCRIPTOR* const d = pair.descriptor(i, 2, i % 2 != 0 ? VIP_CONTROL_OP_RDMAWRITE : 0);
      VIP_DESCRIPTOR* taken = nullptr;
      if (VipPostSend(pair.vi, d, pair.handle) != VIP_SUCCESS) _exit(4);
      if (i % 4 == 3)
        while (VipSendDone(pair.vi, &taken) == VIP_SUCCESS) {
        }
    }
    for (std::size_t i = 0; i < kBatch; ++i) {
      VIP_DESCRIPTOR* const d = pair.descriptor(i, 1, 0);
      if (VipPostRecv(pair.vi, d, pair.handle) != VIP_SUCCESS) _exit(4);
    }
    VIP_DESCRIPTOR* taken = nullptr;
    for (std::size_t i = 0; i < kBatch; ++i)
      if (VipRecvDone(pair.vi, &taken) != VIP_SUCCESS) _exit(4);
    if (VipRecvDone(pair.vi, &taken) != VIP_DESCRIPTOR_ERROR) _exit(4);
  }
}

void post_and_take_from_cq(NullPair& pair) {
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < kBatch; ++i) {
      VIP_DESCRIPTOR* const d = pair.descriptor(i, 1, 0);
      if ((i % 2 != 0 ? VipPostSend : VipPostRecv)(pair.vi, d, pair.handle) != VIP_SUCCESS)
        _exit(4);
    }
    VIP_VI_HANDLE vi = nullptr;
    VIP_BOOLEAN receive = VIP_FALSE;
    VIP_DESCRIPTOR* taken = nullptr;
    for (std::size_t i = 0; i < kBatch; ++i) {
      if (VipCQDone(pair.cq, &vi, &receive) != VIP_SUCCESS) _exit(4);
      if ((receive ? VipRecvDone : VipSendDone)(vi, &taken) != VIP_SUCCESS) _exit(4);
    }
    if (VipCQDone(pair.cq, &vi, &receive) != VIP_NOT_DONE) _exit(4);
  }
}

TEST(NoSystemCallDeathTest, QueuesOfTheirOwn) {
  NullPair pair(false);
  EXPECT_EXIT(watch([&] { post_and_take(pair); }), testing::ExitedWithCode(kWell), "");
}

TEST(NoSystemCallDeathTest, CompletionQueue) {
  NullPair pair(true);
  EXPECT_EXIT(watch([&] { post_and_take_from_cq(pair); }), testing::ExitedWithCode(kWell), "");
}

// In a child: the NIC is opened there. A busy machine may let the interval pass in between, so one
// of many children is enough.
bool early_progress_makes_none() {
  const pid_t child = fork();
  if (child == 0) {
    VIP_NIC_HANDLE nic = nullptr;
    if (VipOpenNic("null0", &nic) != VIP_SUCCESS || VipNicOwnProgress(nic, VIP_TRUE) != VIP_SUCCESS)
      _exit(4);
    usleep(2000);  // the library knows the length of a tick by then
    if (VipNicProgress(nic) != VIP_NOT_DONE) _exit(4);
    watch([&] {
      if (VipNicProgress(nic) != VIP_NOT_DONE) _exit(4);
    });
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == kWell;
}

TEST(NoSystemCall, ProgressThatIsEarly) {
  int well = 0;
  for (int i = 0; i < 50; ++i) well += early_progress_makes_none();
  EXPECT_GE(well, 1);
  std::printf("%d of 50 were early\n", well);
}

// The test sees what it is to see.
TEST(NoSystemCallDeathTest, TheWatchWorks) {
  // Volatile: the compiler may leave out what nobody looks at.
  const auto by_malloc = [] {
    void* volatile p = std::malloc(1);
    std::free(p);
  };
  const auto by_new = [] {
    int* volatile p = new int;
    delete p;
  };
  EXPECT_EXIT(watch(by_malloc), testing::ExitedWithCode(kAllocated), "");
  EXPECT_EXIT(watch(by_new), testing::ExitedWithCode(kAllocated), "");
  EXPECT_EXIT(watch([] { getppid(); }), testing::KilledBySignal(SIGSYS), "");
}

}  // namespace
}  // namespace viaduct::vipl::test
