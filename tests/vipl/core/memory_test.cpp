// Tags and regions, and the NICs that have them.
#include <sys/mman.h>

#include <atomic>
#include <functional>
#include <new>
#include <optional>
#include <set>

#include "tests/vipl/core/node.hpp"

namespace {
thread_local bool no_memory = false;      // for this thread
std::atomic<const void*> kept = nullptr;  // is not to be freed
std::atomic<bool> kept_was_freed = false;
}  // namespace

// Not inline, or else gcc takes malloc and operator delete for a mismatch.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  void* const memory = no_memory ? nullptr : std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return no_memory ? nullptr : std::malloc(bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  if (memory != nullptr && memory == kept) kept_was_freed = true;
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  operator delete(memory);
}

namespace viaduct::vipl::test {
namespace {

class Memories : public Core {};

TEST_F(Memories, AttributesCanBeAskedAndChanged) {
  VIP_PROTECTION_HANDLE first = nullptr, second = nullptr;
  ASSERT_EQ(VipCreatePtag(nic, &first), VIP_SUCCESS);
  ASSERT_EQ(VipCreatePtag(nic, &second), VIP_SUCCESS);
  VIP_MEM_ATTRIBUTES attributes{second, VIP_FALSE, VIP_TRUE};
  const Memory region(nic, &attributes);
  EXPECT_NE(region.handle(), 0u);
  VIP_MEM_ATTRIBUTES answer{};
  ASSERT_EQ(VipQueryMem(nic, region.base(), region.handle(), &answer), VIP_SUCCESS);
  EXPECT_EQ(answer.Ptag, second);
  EXPECT_EQ(answer.EnableRdmaWrite, VIP_FALSE);
  EXPECT_EQ(answer.EnableRdmaRead, VIP_TRUE);
  EXPECT_EQ(VipDestroyPtag(nic, second), VIP_ERROR_RESOURCE);
  attributes = {first, VIP_TRUE, VIP_FALSE};
  ASSERT_EQ(VipSetMemAttributes(nic, region.base(), region.handle(), &attributes), VIP_SUCCESS);
  EXPECT_EQ(VipDestroyPtag(nic, second), VIP_SUCCESS);
  EXPECT_EQ(VipDestroyPtag(nic, second), VIP_INVALID_PARAMETER);
  ASSERT_EQ(VipQueryMem(nic, region.base(), region.handle(), &answer), VIP_SUCCESS);
  EXPECT_EQ(answer.Ptag, first);
  // It goes by its old name here.
  const VIP_VI_HANDLE vi = make_vi();  // no tag: the first
  ASSERT_EQ(VipPostRecv(vi, region.message(0, 0, 8), region.handle()), VIP_SUCCESS);
  VIP_DESCRIPTOR* d = nullptr;
  EXPECT_EQ(VipRecvDone(vi, &d), VIP_NOT_DONE);
}

// Elsewhere too, once the connection manager has told the VI there.
TEST_F(Memories, ChangedRegionsKeepTheirNameForRdma) {
  const VIP_VI_HANDLE a = make_vi(), b = make_vi();
  connect(a, b);
  const Memory target(nic, nullptr);
  const VIP_MEM_HANDLE name = target.handle();
  std::uint32_t key = 0;
  VIP_MEM_ATTRIBUTES writable{nullptr, VIP_TRUE, VIP_FALSE};
  ASSERT_EQ(Nic::find(nic)->memory().change(
                target.base(), name, writable, [] { return false; },
                [&](std::uint32_t announced) { key = announced; }),
            VIP_SUCCESS);
  ASSERT_NE(key, 0u);
  Vi::find(a)->alias(name, key);
  std::memcpy(memory->data(), "named", 5);
  VIP_DESCRIPTOR* const write =
      memory->rdma(0, VIP_CONTROL_OP_RDMAWRITE, 0, 5, target.data(), name);
  post_send(a, write);
  expect_sent(a, write);
  EXPECT_EQ(target.text(0, 5), "named");
  // Another region is not affected, and this one no longer when the name is given up.
  VIP_DESCRIPTOR* const other =
      memory->rdma(1, VIP_CONTROL_OP_RDMAWRITE, 0, 5, memory->data(100), memory->handle());
  post_send(a, other);
  expect_sent(a, other);
  Vi::find(a)->alias(name, 0);
  post_send(a, write);
  expect_send_error(a, write, VIP_STATUS_RDMA_PROT_ERROR);
}

// Asks twice whether a region is in use, the second time while posting does not find it. Then
// another is registered in its place, and there is no memory.
class Crowd {
 public:
  explicit Crowd(VIP_NIC_HANDLE nic) : nic_(nic), memory_(Nic::find(nic)->memory()) {}
  ~Crowd() { no_memory = false; }

  void add_one() {
    VIP_MEM_HANDLE handle = 0;
    EXPECT_EQ(VipRegisterMem(nic_, bytes_, sizeof bytes_, nullptr, &handle), VIP_SUCCESS);
    handles_.push_back(handle);
  }
  std::size_t size() const { return handles_.size(); }
  // What comes of it if the device says in the end whether it is in use; nothing: bad_alloc.
  std::optional<VIP_RETURN> remove(std::size_t place, bool in_use) {
    return unless_it_throws(
        [&] { return memory_.remove(bytes_, handles_[place], second_time(in_use), [] {}); });
  }
  std::optional<VIP_RETURN> change(std::size_t place, bool in_use) {
    return unless_it_throws([&] {
      return memory_.change(bytes_, handles_[place], {nullptr, VIP_TRUE, VIP_FALSE},
                            second_time(in_use), [](std::uint32_t) { no_memory = false; });
    });
  }
  bool has(std::size_t place) const { return memory_.regions().find(handles_[place]) != nullptr; }

 private:
  std::function<bool()> second_time(bool in_use) {
    return [this, in_use, asked = 0]() mutable {
      if (++asked == 1) return false;
      add_one();
      no_memory = true;
      return in_use;
    };
  }
  static std::optional<VIP_RETURN> unless_it_throws(const std::function<VIP_RETURN()>& call) {
    try {
      const VIP_RETURN result = call();
      no_memory = false;
      return result;
    } catch (const std::bad_alloc&) {
      no_memory = false;
      return std::nullopt;
    }
  }

  VIP_NIC_HANDLE nic_;
  vipl::Memory& memory_;
  char bytes_[64];
  std::vector<VIP_MEM_HANDLE> handles_;
};

TEST_F(Memories, ThereIsRoomForWhatWasHiddenForAMoment) {
  Crowd crowd(nic);
  crowd.add_one();
  while (crowd.size() < 600) {
    const std::size_t place = crowd.size() - 1;
    ASSERT_EQ(crowd.remove(place, true), VIP_ERROR_RESOURCE) << place;
    EXPECT_TRUE(crowd.has(place)) << place;
    ASSERT_EQ(crowd.change(place, true), VIP_ERROR_RESOURCE) << place;
    EXPECT_TRUE(crowd.has(place)) << place;
    ASSERT_EQ(crowd.change(place, false), VIP_SUCCESS) << place;
    EXPECT_TRUE(crowd.has(place)) << place;
    if (place % 3 != 0) continue;
    ASSERT_EQ(crowd.remove(place, false), VIP_SUCCESS) << place;
    EXPECT_FALSE(crowd.has(place)) << place;
  }
}

// Somebody may have found it when it was there, and may look at it still.
TEST_F(Memories, WhatPostingHasFoundIsNotFreed) {
  vipl::Memory& memories = Nic::find(nic)->memory();
  {
    const Memory gone(nic, nullptr);
    kept = memories.regions().find(gone.handle());
  }
  EXPECT_EQ(memories.change(
                memory->base(), memory->handle(), {}, [] { return true; }, [](std::uint32_t) {}),
            VIP_ERROR_RESOURCE);
  kept = nullptr;
  EXPECT_FALSE(kept_was_freed.exchange(false));
}

// A page with a receive without data in it.
class Page {
 public:
  explicit Page(VIP_NIC_HANDLE nic) : nic_(nic) {
    base_ = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_EQ(VipRegisterMem(nic, base_, kBytes, nullptr, &handle_), VIP_SUCCESS);
  }
  ~Page() { unmap(); }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;

  VIP_DESCRIPTOR* receive() const { return static_cast<VIP_DESCRIPTOR*>(base_); }
  VIP_MEM_HANDLE handle() const { return handle_; }
  VIP_RETURN deregister() const { return VipDeregisterMem(nic_, base_, handle_); }
  VIP_RETURN change() const {
    VIP_MEM_ATTRIBUTES attributes{nullptr, VIP_TRUE, VIP_FALSE};
    return VipSetMemAttributes(nic_, base_, handle_, &attributes);
  }
  void unmap() const { ::munmap(base_, kBytes); }

 private:
  static constexpr std::size_t kBytes = 4096;
  VIP_NIC_HANDLE nic_;
  void* base_;
  VIP_MEM_HANDLE handle_ = 0;
};

TEST_F(Memories, WhatTheDeviceNeedsStays) {
  const VIP_VI_HANDLE a = make_vi(), b = make_vi();
  connect(a, b);
  const Page page(nic);
  ASSERT_EQ(VipPostRecv(b, page.receive(), page.handle()), VIP_SUCCESS);
  EXPECT_EQ(page.deregister(), VIP_ERROR_RESOURCE);
  EXPECT_EQ(page.change(), VIP_ERROR_RESOURCE);
  VIP_DESCRIPTOR* const empty = memory->message(0, 0, 0);
  post_send(a, empty);
  expect_sent(a, empty);
  // It is done, although nobody has asked for it yet.
  EXPECT_EQ(page.change(), VIP_SUCCESS);
  EXPECT_EQ(page.deregister(), VIP_SUCCESS);
  expect_received(b, page.receive());
  EXPECT_EQ(state(b), VIP_STATE_CONNECTED);
}

// The data lies elsewhere than the descriptor.
TEST_F(Memories, WhatTheDeviceNeedsForDataStays) {
  const VIP_VI_HANDLE a = make_vi(), b = make_vi();
  const Memory data(nic, nullptr);
  VIP_DESCRIPTOR* const receive = memory->message(0, 0, 10);
  receive->DS[0].Local.Data.Address = data.data();
  receive->DS[0].Local.Handle = data.handle();
  post_receive(b, receive);  // not connected yet
  EXPECT_EQ(VipDeregisterMem(nic, data.base(), data.handle()), VIP_ERROR_RESOURCE);
  EXPECT_EQ(VipSetMemAttributes(nic, data.base(), data.handle(), &rdma_allowed),
            VIP_ERROR_RESOURCE);
  connect(a, b);
  post_send(a, memory->send(1, 100, "kept"));
  expect_received(b, receive);
  EXPECT_EQ(data.text(0, 4), "kept");
  // A handle of the other side is another thing.
  Fabric::get().hold();
  post_send(a, memory->rdma(2, VIP_CONTROL_OP_RDMAWRITE, 0, 1, memory->data(), data.handle()));
  EXPECT_EQ(VipDeregisterMem(nic, data.base(), data.handle()), VIP_SUCCESS);
}

TEST_F(Memories, DataInSeveralRegions) {
  const VIP_VI_HANDLE vi = make_vi();
  const Memory first(nic, nullptr), second(nic, nullptr), other(nic, nullptr);
  VIP_DESCRIPTOR* const receive = memory->message(0, 0, 10);
  receive->CS.SegCount = 2;
  receive->DS[0].Local.Data.Address = first.data();
  receive->DS[0].Local.Handle = first.handle();
  receive->DS[1].Local.Data.Address = second.data();
  receive->DS[1].Local.Handle = second.handle();
  receive->DS[1].Local.Length = 10;
  post_receive(vi, receive);
  EXPECT_EQ(VipDeregisterMem(nic, first.base(), first.handle()), VIP_ERROR_RESOURCE);
  EXPECT_EQ(VipDeregisterMem(nic, second.base(), second.handle()), VIP_ERROR_RESOURCE);
  EXPECT_EQ(VipDeregisterMem(nic, other.base(), other.handle()), VIP_SUCCESS);
  disconnect(vi);
  EXPECT_EQ(VipDeregisterMem(nic, first.base(), first.handle()), VIP_SUCCESS);
  EXPECT_EQ(VipDeregisterMem(nic, second.base(), second.handle()), VIP_SUCCESS);
}

// What was flushed does not need its memory, whether it has been taken or not.
TEST_F(Memories, WhatIsFlushedNeedsNothing) {
  const VIP_VI_HANDLE a = make_vi(), b = make_vi(), idle = make_vi();
  connect(a, b);
  const Page first(nic), second(nic);
  ASSERT_EQ(VipPostRecv(idle, first.receive(), first.handle()), VIP_SUCCESS);
  ASSERT_EQ(VipPostRecv(b, second.receive(), second.handle()), VIP_SUCCESS);
  disconnect(idle);
  Vi::find(b)->on_connection_lost(CloseReason::disconnected);
  EXPECT_EQ(first.deregister(), VIP_SUCCESS);
  EXPECT_EQ(second.deregister(), VIP_SUCCESS);
  first.unmap();
  second.unmap();
  VIP_DESCRIPTOR* d = nullptr;
  EXPECT_EQ(VipRecvDone(idle, &d), VIP_DESCRIPTOR_ERROR);
  EXPECT_EQ(d, first.receive());
  EXPECT_EQ(VipRecvDone(b, &d), VIP_DESCRIPTOR_ERROR);
  EXPECT_EQ(d, second.receive());
}

// A queue that has used a region before does not know it any more than others do.
TEST_F(Memories, GoneAfterItWasUsed) {
  const VIP_VI_HANDLE vi = make_vi();
  const Page page(nic);
  const Memory data(nic, nullptr);
  VIP_DESCRIPTOR* const receive = memory->message(0, 0, 10);
  receive->DS[0].Local.Data.Address = data.data();
  receive->DS[0].Local.Handle = data.handle();
  ASSERT_EQ(VipPostRecv(vi, page.receive(), page.handle()), VIP_SUCCESS);
  post_receive(vi, receive);
  disconnect(vi);
  VIP_DESCRIPTOR* d = nullptr;
  while (VipRecvDone(vi, &d), d != nullptr) EXPECT_NE(d->CS.Status & VIP_STATUS_DONE, 0u);
  EXPECT_EQ(page.deregister(), VIP_SUCCESS);
  EXPECT_EQ(VipDeregisterMem(nic, data.base(), data.handle()), VIP_SUCCESS);
  page.unmap();
  EXPECT_EQ(VipPostRecv(vi, page.receive(), page.handle()), VIP_INVALID_PARAMETER);
  post_receive(vi, receive);
  const VIP_VI_HANDLE other = make_vi();
  connect(vi, other);
  post_send(other, memory->send(1, 0, "x"));
  expect_receive_error(vi, receive, VIP_STATUS_PROTECTION_ERROR);
}

// Programs that end free their memory in any order, whatever they are told.
TEST_F(Memories, GoneBeforeItsDescriptors) {
  const VIP_NIC_HANDLE closed = open();
  VIP_VI_ATTRIBUTES attributes = vi_attributes();
  VIP_VI_HANDLE of_closed = nullptr;
  ASSERT_EQ(VipCreateVi(closed, &attributes, nullptr, nullptr, &of_closed), VIP_SUCCESS);
  const VIP_VI_HANDLE destroyed = make_vi();
  const Page first(nic), second(closed);
  ASSERT_EQ(VipPostRecv(destroyed, first.receive(), first.handle()), VIP_SUCCESS);
  ASSERT_EQ(VipPostRecv(of_closed, second.receive(), second.handle()), VIP_SUCCESS);
  first.unmap();
  second.unmap();
  // Other regions are deregistered meanwhile, and what is theirs is known without looking.
  const Page third(nic);
  EXPECT_EQ(third.deregister(), VIP_SUCCESS);
  EXPECT_EQ(VipDestroyVi(destroyed), VIP_SUCCESS);
  EXPECT_EQ(VipCloseNic(closed), VIP_SUCCESS);
}

// A VI that is made where another was knows nothing of the other's regions.
TEST_F(Memories, OfANicThatIsClosed) {
  const VIP_NIC_HANDLE closed = open();
  VIP_VI_ATTRIBUTES attributes = vi_attributes();
  VIP_VI_HANDLE before = nullptr;
  ASSERT_EQ(VipCreateVi(closed, &attributes, nullptr, nullptr, &before), VIP_SUCCESS);
  const Page page(closed);
  ASSERT_EQ(VipPostRecv(before, page.receive(), page.handle()), VIP_SUCCESS);
  const Vi* const place = Vi::find(before);
  ASSERT_EQ(VipCloseNic(closed), VIP_SUCCESS);
  const VIP_VI_HANDLE after = make_vi();
  ASSERT_EQ(Vi::find(after), place);
  EXPECT_EQ(VipPostRecv(after, page.receive(), page.handle()), VIP_INVALID_PARAMETER);
}

TEST_F(Memories, TheSameMemoryManyTimes) {
  char bytes[100];
  std::set<VIP_MEM_HANDLE> handles;
  for (int i = 0; i < 500; ++i) {
    VIP_MEM_HANDLE handle = 0;
    VIP_MEM_ATTRIBUTES attributes{nullptr, i % 2, i % 3};
    ASSERT_EQ(VipRegisterMem(nic, bytes + i % 7, 50, &attributes, &handle), VIP_SUCCESS);
    EXPECT_TRUE(handles.insert(handle).second);
    EXPECT_NE(handle, 0u);
  }
  int i = 0;
  for (const VIP_MEM_HANDLE handle : handles) {
    EXPECT_EQ(VipDeregisterMem(nic, bytes + 8, handle), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipDeregisterMem(nic, bytes + i++ % 7, handle), VIP_SUCCESS);
  }
}

TEST_F(Memories, Parameters) {
  char bytes[100];
  VIP_MEM_HANDLE handle = 0;
  VIP_MEM_ATTRIBUTES attributes{};
  EXPECT_EQ(VipRegisterMem(nullptr, bytes, 1, &attributes, &handle), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipRegisterMem(nic, nullptr, 1, &attributes, &handle), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipRegisterMem(nic, bytes, 0, &attributes, &handle), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipRegisterMem(nic, bytes, ~VIP_ULONG{0}, &attributes, &handle), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipRegisterMem(nic, bytes, 1, &attributes, nullptr), VIP_INVALID_PARAMETER);
  attributes.Ptag = bytes;
  EXPECT_EQ(VipRegisterMem(nic, bytes, 1, &attributes, &handle), VIP_INVALID_PTAG);
  VIP_PROTECTION_HANDLE of_other = nullptr;
  ASSERT_EQ(VipCreatePtag(open(), &of_other), VIP_SUCCESS);
  attributes.Ptag = of_other;
  EXPECT_EQ(VipRegisterMem(nic, bytes, 1, &attributes, &handle), VIP_INVALID_PTAG);
  ASSERT_EQ(VipRegisterMem(nic, bytes, 1, nullptr, &handle), VIP_SUCCESS);
  EXPECT_EQ(VipSetMemAttributes(nic, bytes, handle, &attributes), VIP_INVALID_PTAG);
  EXPECT_EQ(VipSetMemAttributes(nic, bytes, handle, nullptr), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipSetMemAttributes(nic, bytes + 1, handle, &rdma_allowed), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipQueryMem(nic, bytes, handle + 1, &attributes), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipQueryMem(nic, bytes, handle, nullptr), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipDeregisterMem(nic, bytes, handle), VIP_SUCCESS);
  EXPECT_EQ(VipDeregisterMem(nic, bytes, handle), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipCreatePtag(nic, nullptr), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipDestroyPtag(nic, nullptr), VIP_INVALID_PARAMETER);
  Fabric::get().refusals = 1;
  EXPECT_EQ(VipRegisterMem(nic, bytes, 1, nullptr, &handle), VIP_ERROR_RESOURCE);
}

TEST_F(Memories, DeviceWithoutRdmaRead) {
  Fabric::get().limits.reads_served = 0;
  const VIP_NIC_HANDLE plain = open();
  Fabric::get().limits.reads_served = 16;
  VIP_NIC_ATTRIBUTES nic_attributes{};
  ASSERT_EQ(VipQueryNic(plain, &nic_attributes), VIP_SUCCESS);
  EXPECT_EQ(nic_attributes.RDMAReadSupport, 0);
  char bytes[8];
  VIP_MEM_HANDLE handle = 0;
  EXPECT_EQ(VipRegisterMem(plain, bytes, 8, &rdma_allowed, &handle), VIP_INVALID_RDMAREAD);
  VIP_VI_ATTRIBUTES attributes = vi_attributes();
  VIP_VI_HANDLE vi = nullptr;
  EXPECT_EQ(VipCreateVi(plain, &attributes, nullptr, nullptr, &vi), VIP_INVALID_RDMAREAD);
}

// The limit is good for them too.
TEST_F(Memories, DeviceThatReadsIntoFewSegments) {
  Fabric::get().limits.read_segments = 3;
  const VIP_NIC_HANDLE plain = open();
  Fabric::get().limits.read_segments = 32;
  VIP_NIC_ATTRIBUTES attributes{};
  ASSERT_EQ(VipQueryNic(plain, &attributes), VIP_SUCCESS);
  EXPECT_EQ(attributes.MaxSegmentsPerDesc, 4u);  // one is the address
}

TEST_F(Memories, Nics) {
  VIP_NIC_HANDLE handle = nullptr;
  EXPECT_EQ(VipOpenNic("no such device", &handle), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipOpenNic(nullptr, &handle), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipOpenNic("fake0", nullptr), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipCloseNic(nullptr), VIP_INVALID_PARAMETER);
  EXPECT_NE(open(), nic) << "each call makes one of its own";
  VIP_NIC_ATTRIBUTES attributes{};
  ASSERT_EQ(VipQueryNic(nic, &attributes), VIP_SUCCESS);
  EXPECT_EQ(attributes.NicAddressLen, 6);
  EXPECT_EQ(attributes.LocalNicAddress[0], 127);
  EXPECT_EQ(attributes.ThreadSafe, VIP_TRUE);
  EXPECT_GE(attributes.MaxTransferSize, 32768u);
  EXPECT_GE(attributes.MaxDiscriminatorLen, 16);
  EXPECT_EQ(VipQueryNic(nic, nullptr), VIP_INVALID_PARAMETER);
  VIP_AUTODISCOVERY_LIST list{};
  EXPECT_EQ(VipQuerySystemManagementInfo(nic, VIP_SMI_AUTODISCOVERY, &list),
            VIP_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(VipQuerySystemManagementInfo(nic, 7, &list), VIP_INVALID_PARAMETER);
}

// The user chose devices that this host does not have.
TEST_F(Memories, NicsThatWereChosenAndAreNone) {
  ASSERT_EQ(setenv("VIADUCT_VIPL_DEVICES", "rxe8,rxe9", 1), 0);
  testing::internal::CaptureStderr();
  VIP_NIC_HANDLE handle = nullptr;
  EXPECT_EQ(VipOpenNic("nic0", &handle), VIP_ERROR_RESOURCE);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("VIADUCT_VIPL_DEVICES=rxe8,rxe9"), std::string::npos) << said;
  EXPECT_NE(said.find("fake0, fake1"), std::string::npos) << said;
  // Set to nothing is not set.
  ASSERT_EQ(setenv("VIADUCT_VIPL_DEVICES", "", 1), 0);
  open();
  unsetenv("VIADUCT_VIPL_DEVICES");
}

}  // namespace
}  // namespace viaduct::vipl::test
