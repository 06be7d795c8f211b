// What the layers over VIPL have in common: a NIC, registered memory with descriptors in it, and a
// VI that is connected to the other side's VI. Uses the public C API (vipl.h) only, as a program
// would.
#pragma once

#include <vipl.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "tools/pingpong/layer.hpp"

namespace viaduct::pingpong {

// Owns NIC, memory and VI for one turn. One thread uses it.
class ViplSide {
 public:
  // Registers `descriptors` descriptors and behind them `bytes` for data, page-aligned; `writable`:
  // the other side may write there by RDMA. Throws Failure.
  ViplSide(const TurnConfig& config, std::size_t descriptors, std::size_t bytes, bool writable);
  ~ViplSide();
  ViplSide(const ViplSide&) = delete;
  ViplSide& operator=(const ViplSide&) = delete;

  // One attempt to connect, which blocks: the server for 50 ms, the client for up to 2 s. True when
  // connected.
  bool connect();

  VIP_VI_HANDLE vi() const { return vi_; }
  VIP_MEM_HANDLE memory() const { return memory_; }
  VIP_DESCRIPTOR* descriptor(std::size_t i) const { return descriptors_ + i; }
  std::size_t index(const VIP_DESCRIPTOR* d) const {  // of a descriptor that came back
    return static_cast<std::size_t>(d - descriptors_);
  }
  std::byte* data() const { return data_; }

  // False, and the first reason is kept, if the code is not VIP_SUCCESS. `what` was being done.
  bool good(VIP_RETURN code, const char* what) {
    if (code == VIP_SUCCESS) [[likely]]
      return true;
    fail(code, what);
    return false;
  }
  // The same for a descriptor that a Done function returned; false also when there is none
  // (VIP_NOT_DONE).
  bool done(VIP_RETURN code, const char* what) {
    if (code == VIP_SUCCESS) return true;
    if (code != VIP_NOT_DONE) [[unlikely]]
      fail(code, what);
    return false;
  }
  std::string_view failure() const { return failure_; }

 private:
  struct Free {
    void operator()(void* memory) const;
  };
  void open(const std::string& ip);
  void end();
  void fail(VIP_RETURN code, const char* what);
  VIP_NET_ADDRESS* address(std::byte* room, const std::string& ip);

  const bool client_;
  const std::string ip_, peer_ip_;
  std::unique_ptr<void, Free> bytes_;
  VIP_DESCRIPTOR* descriptors_ = nullptr;
  std::byte* data_ = nullptr;
  VIP_NIC_HANDLE nic_ = nullptr;
  VIP_MEM_HANDLE memory_ = 0;
  VIP_VI_HANDLE vi_ = nullptr;
  std::string failure_;
};

// Fills in a descriptor for `bytes` of data at `data`, in one segment. 0 bytes: no segment.
void describe(VIP_DESCRIPTOR* d, void* data, VIP_MEM_HANDLE memory, std::size_t bytes);

}  // namespace viaduct::pingpong
