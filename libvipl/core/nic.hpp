// An open NIC: what VipOpenNic makes. Everything that belongs to it is reclaimed by close().
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "drivers/vi_over_verbs/verbs.hpp"
#include "libvipl/connection/fork.hpp"
#include "libvipl/connection/manager.hpp"
#include "libvipl/core/event_thread.hpp"
#include "libvipl/core/handlers.hpp"
#include "libvipl/core/memory.hpp"
#include "libvipl/core/object_table.hpp"

namespace viaduct::vipl {

class Completions;
class Cq;
class Vi;

class Nic : public std::enable_shared_from_this<Nic> {
 public:
  // A NIC of its own for each call, in the table. Throws vi::SetupError, std::runtime_error.
  static std::shared_ptr<Nic> open(const std::string& name, std::unique_ptr<vi::Device> device,
                                   const NicAddress& address);
  // nullptr: there is none of that name.
  static std::shared_ptr<Nic> find(VIP_NIC_HANDLE handle);
  // False: there is none.
  static bool close(VIP_NIC_HANDLE handle);

  ~Nic();

  // Not the NIC of a process that this one is a child of.
  bool is_ours() const { return forks_ == forks(); }
  VIP_NIC_HANDLE handle() const { return handle_; }
  const VIP_NIC_ATTRIBUTES& attributes() const { return attributes_; }
  vi::Device& device() { return *device_; }
  Memory& memory() { return memory_; }
  Manager& manager() { return manager_; }
  Handlers& handlers() { return handlers_; }

  // How long Wait functions look without sleeping.
  std::chrono::nanoseconds spin_time() const { return spin_time_; }
  // Of the packets of connections, in their IP headers.
  std::uint8_t traffic_class() const { return traffic_class_; }

  // Whether a device has work that needs this region. Without locks.
  bool uses(VIP_MEM_HANDLE memory);

  // A VI is connected: from now on its sends are looked after.
  void look_after_sends();
  // ... at once: one has failed, and perhaps nobody has looked at it.
  void look_after_sends_now();

  // What belongs to it. False: it is being closed. Any lock may be held.
  bool add(Vi& vi);
  void remove(Vi& vi);
  bool add(Cq& cq);
  void remove(Cq& cq);

 private:
  Nic(const std::string& name, std::unique_ptr<vi::Device> device, const NicAddress& address);
  void start(VIP_NIC_HANDLE handle);
  void end();
  void take_completion_events();
  void take_async_events();
  Deadline take_unseen_completions();
  std::vector<Vi*> vis_with_sends(bool& any_connected);
  std::vector<Vi*> vis();
  void end_connections(const Completions* broken);
  void report_device_error(VIP_RESOURCE_CODE resource);

  const unsigned forks_ = forks();
  std::array<VIP_UINT8, NicAddress::kBytes> address_bytes_;
  VIP_NIC_ATTRIBUTES attributes_{};
  std::unique_ptr<vi::Device> device_;
  VIP_NIC_HANDLE handle_ = nullptr;
  Memory memory_;
  Handlers handlers_;
  Manager manager_;
  std::mutex mutex_;
  bool ended_ = false;
  std::unordered_set<Vi*> vis_;
  std::unordered_set<Cq*> cqs_;
  // For the event thread: there may be connected VIs; their sends are looked at next then, or now.
  std::atomic<bool> some_connected_{false}, look_now_{false};
  Clock::time_point next_look_;
  const bool prints_drops_;
  const std::chrono::nanoseconds spin_time_;
  const std::uint8_t traffic_class_;
  std::optional<EventThread> events_;  // last: it uses all the others
};

}  // namespace viaduct::vipl
