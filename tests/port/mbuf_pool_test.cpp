// The pool that counts a frame's owners by itself: on its own thread, and when others return
// frames.
#include "drivers/port/mbuf_pool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rte_mempool.h>
#include <sys/resource.h>

#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "drivers/port/eal.hpp"
#include "drivers/port/port.hpp"
#include "tests/support/isolated.hpp"

namespace viaduct::link {
namespace {

constexpr unsigned kFrames = 1023;

rte_mempool* make_pool(const char* name) {
  port::ensure_eal({});
  rte_mempool* const pool = port::create_frame_pool(name, kFrames, 2048, SOCKET_ID_ANY);
  EXPECT_NE(pool, nullptr);
  return pool;
}

std::vector<rte_mbuf*> take_all(rte_mempool* pool) {
  std::vector<rte_mbuf*> frames;
  while (rte_mbuf* const f = rte_pktmbuf_alloc(pool)) frames.push_back(f);
  return frames;
}

// KiB of this process's memory that it has written to and shares with nobody.
std::size_t dirty_memory() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  for (std::string line; std::getline(rollup, line);)
    if (line.starts_with("Private_Dirty:")) return std::stoul(line.substr(sizeof "Private_Dirty:"));
  ADD_FAILURE() << "no Private_Dirty";
  return 0;
}

// The kernel's count of pages that this process has touched for the first time.
long page_faults() {
  rusage usage{};
  EXPECT_EQ(::getrusage(RUSAGE_SELF, &usage), 0);
  return usage.ru_minflt;
}

// 8191 frames take 4000 pages and more.
TEST(FramePool, TouchesNoFrameWhenItGoes) {
  EXPECT_TRUE(succeeds([] {
    setenv("VIADUCT_MEMORY", "nohuge", 1);
    port::ensure_eal({});
    rte_mempool* const pool =
        port::create_frame_pool("untouched", 8191, 2048, SOCKET_ID_ANY, port::PoolKind::copied);
    ASSERT_NE(pool, nullptr);
    rte_mbuf* const frame = rte_pktmbuf_alloc(pool);
    ASSERT_NE(frame, nullptr);
    std::memset(rte_pktmbuf_mtod(frame, void*), 1, 1500);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(frame) % RTE_CACHE_LINE_SIZE, 0u);
    rte_pktmbuf_free(frame);
    EXPECT_EQ(rte_mempool_avail_count(pool), 8191u);
    const long before = page_faults();
    rte_mempool_free(pool);
    EXPECT_LT(page_faults() - before, 500);
  }));
}

// 8191 frames take 16 MiB and more once all are touched.
TEST(FramePool, TouchesTheFramesThatAreTaken) {
  EXPECT_TRUE(succeeds([] {
    setenv("VIADUCT_MEMORY", "nohuge", 1);
    port::ensure_eal({});
    const std::size_t before = dirty_memory();
    rte_mempool* const pool = port::create_frame_pool("touched", 8191, 2048, SOCKET_ID_ANY);
    ASSERT_NE(pool, nullptr);
    EXPECT_LT(dirty_memory() - before, 1024u);
    std::vector<rte_mbuf*> frames(64);
    for (int round = 0; round < 1000; ++round) {
      ASSERT_EQ(rte_pktmbuf_alloc_bulk(pool, frames.data(), 64), 0);
      for (rte_mbuf* f : frames) {
        std::memset(rte_pktmbuf_mtod(f, void*), round, 1500);
        rte_pktmbuf_free(f);
      }
    }
    EXPECT_LT(dirty_memory() - before, 2048u) << "the same few are taken again and again";
    EXPECT_EQ(rte_mempool_avail_count(pool), 8191u);
    const auto all = take_all(pool);
    EXPECT_EQ(std::set(all.begin(), all.end()).size(), 8191u);
    EXPECT_GT(dirty_memory() - before, 8u << 10) << "or the test has seen nothing";
    rte_mempool_free(pool);
  }));
}

TEST(FramePool, AnOpenPortHasTouchedFewFrames) {
  EXPECT_TRUE(succeeds([] {
    setenv("VIADUCT_MEMORY", "nohuge", 1);
    port::ensure_eal({});
    const std::size_t before = dirty_memory();
    const auto port =
        port::Port::open({.devargs = "net_memif0,role=server,socket=viaduct-touched"});
    EXPECT_LT(dirty_memory() - before, 4096u);
    EXPECT_EQ(port->frames_in_use(), 0u);
  }));
}

TEST(FramePool, EveryFrameComesBack) {
  EXPECT_TRUE(succeeds([] {
    rte_mempool* const pool = make_pool("back");
    EXPECT_EQ(rte_mempool_avail_count(pool), kFrames);
    const auto frames = take_all(pool);
    EXPECT_EQ(frames.size(), kFrames);
    EXPECT_EQ(rte_mempool_avail_count(pool), 0u);
    EXPECT_EQ(rte_pktmbuf_alloc(pool), nullptr);
    for (rte_mbuf* f : frames) rte_pktmbuf_free(f);
    EXPECT_NE(rte_mempool_full(pool), 0);
    EXPECT_EQ(take_all(pool).size(), kFrames);
    rte_mempool_free(pool);
  }));
}

TEST(FramePool, ARetainedFrameWaitsForItsLastOwner) {
  EXPECT_TRUE(succeeds([] {
    rte_mempool* const pool = make_pool("retained");
    rte_mbuf* const f = rte_pktmbuf_alloc(pool);
    port::Port::retain(f);
    port::Port::retain(f);
    EXPECT_EQ(rte_mbuf_refcnt_read(f), 1) << "to a driver it is singly owned";
    rte_pktmbuf_free(f);
    rte_pktmbuf_free(f);
    EXPECT_EQ(rte_mempool_in_use_count(pool), 1u);
    rte_pktmbuf_free(f);
    EXPECT_EQ(rte_mempool_in_use_count(pool), 0u);
    rte_mempool_free(pool);
  }));
}

TEST(FramePool, OtherThreadsReturnFramesWhileTheOwnerGoesOn) {
  EXPECT_TRUE(succeeds([] {
    rte_mempool* const pool = make_pool("threads");
    // Each frame has three owners: this thread and two others, who let go at the same time.
    for (int round = 0; round < 50; ++round) {
      const auto frames = take_all(pool);
      ASSERT_EQ(frames.size(), kFrames) << "round " << round;
      for (rte_mbuf* f : frames) {
        port::Port::retain(f);
        port::Port::retain(f);
      }
      const auto let_go = [&frames] {
        for (rte_mbuf* f : frames) port::Port::release(f);
      };
      std::thread first(let_go), second(let_go);
      let_go();
      first.join();
      second.join();
      ASSERT_NE(rte_mempool_full(pool), 0) << "round " << round;
    }
    rte_mempool_free(pool);
  }));
}

TEST(FramePool, AnExhaustedPoolFindsWhatOthersReturned) {
  EXPECT_TRUE(succeeds([] {
    rte_mempool* const pool = make_pool("exhausted");
    const auto frames = take_all(pool);
    std::thread([&frames] { port::Port::release(frames[7]); }).join();
    EXPECT_EQ(rte_pktmbuf_alloc(pool), frames[7]);
    EXPECT_EQ(rte_pktmbuf_alloc(pool), nullptr);
    rte_mempool_free(pool);
  }));
}

TEST(FramePool, TheThreadThatReceivesOwnsIt) {
  EXPECT_TRUE(succeeds([] {
    rte_mempool* const pool = make_pool("owner");
    std::thread([pool] {
      port::own_frame_pool(pool);
      const auto frames = take_all(pool);
      EXPECT_EQ(frames.size(), kFrames);
      for (rte_mbuf* f : frames) port::Port::release(f);
      EXPECT_NE(rte_mempool_full(pool), 0);
    }).join();
    port::own_frame_pool(pool);
    EXPECT_EQ(take_all(pool).size(), kFrames);
    rte_mempool_free(pool);
  }));
}

}  // namespace
}  // namespace viaduct::link
