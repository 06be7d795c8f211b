// DPDK's rawdev operations, which StarT-X and MBCF share: a rawdev `--vdev
// rawdev_NAME0,port=net_memif0` on an ethdev of the application. EAL loads the driver with `-d
// librte_raw_NAME.so`, or the program is linked with it. Each driver adds a structure that models
// RawdevDriver (startx_emul/rawdev.cpp, mbcf/rawdev.cpp).
//
// The ethdev is opened when the rawdev is started, so it may be made after EAL's start. One Rawdev
// object belongs to each rawdev, from probe() to close(), and owns the node while the rawdev is
// started.
//
// Thread rule: DPDK's for a rawdev; one thread at a time for each device. No operation blocks, but
// starting may.
#pragma once

#include <bus_vdev_driver.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <rte_rawdev.h>
#include <rte_rawdev_pmd.h>
#include <rte_version.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <concepts>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "drivers/link/counters.hpp"
#include "drivers/link/types.hpp"
#include "drivers/rawdev/c_api.hpp"
#include "drivers/rawdev/vdev_args.hpp"

namespace viaduct::rawdev {

// What a driver must say about its rawdev.
template <class D>
concept RawdevDriver = requires(const typename D::Conf conf, typename D::Handle* handle,
                                std::uintptr_t queue, void* buffer) {
  { D::kDriver } -> std::convertible_to<const char*>;   // "rawdev_startx"
  { D::kName } -> std::convertible_to<std::string>;     // "startx": the xstats are "startx_..."
  { D::kLogName } -> std::convertible_to<const char*>;  // "STARTX"
  { D::kQueues } -> std::convertible_to<std::uint16_t>;
  typename D::Counter;
  { D::kCounterInfo.size() } -> std::convertible_to<std::size_t>;
  { D::log_type() } -> std::same_as<int>;
  { D::parse("") } -> std::same_as<VdevArgs<typename D::Conf>>;
  // nullptr with rte_errno and error() set when that fails.
  { D::open(std::string(), conf) } -> std::same_as<std::unique_ptr<typename D::Handle>>;
  { D::error() } -> std::same_as<const char*>;
  // Zeros replaced by the defaults.
  { D::effective(conf) } -> std::same_as<typename D::Conf>;
  { D::depth(conf) } -> std::same_as<std::uint32_t>;  // of each queue
  // Sends one buffer by queue number `queue`. 0 or a negative errno; -EAGAIN: no room now.
  { D::enqueue(handle, queue, buffer) } -> std::same_as<int>;
  // Receives into one buffer. 1: done; 0: the queue is empty; or a negative errno.
  { D::dequeue(handle, queue, buffer) } -> std::same_as<int>;
  // A table of the C functions, and the name of the rawdev attribute that gives its address, for
  // programs that are not linked with the driver.
  { D::kFunctionsName } -> std::convertible_to<const char*>;
  { D::kFunctions.size } -> std::convertible_to<std::size_t>;
  // Empty when all is well, else what is not.
  { D::selftest() } -> std::same_as<std::string>;
};

// One rawdev, and (static) the operations that DPDK calls on any of them.
template <RawdevDriver Driver>
class Rawdev {
 public:
  using Handle = typename Driver::Handle;
  using Conf = typename Driver::Conf;

  static constexpr rte_rawdev_ops make_ops();
  // For RTE_PMD_REGISTER_VDEV. constexpr, because the constructor function that registers the
  // driver may run before the constructors of C++ objects.
  static constexpr rte_vdev_driver make_driver() {
    rte_vdev_driver driver{};
    driver.probe = probe;
    driver.remove = remove;
    return driver;
  }
  // The handle of a started device, or nullptr with rte_errno ENODEV or ENETDOWN.
  static Handle* handle_of(std::uint16_t dev_id);

 private:
  // xstats ids: the link's counters first, the driver's behind them.
  static constexpr unsigned kStats =
      static_cast<unsigned>(link::kCounters + Driver::kCounterInfo.size());

  VdevArgs<Conf> args_;                       // as parsed, then as configure() set them
  std::unique_ptr<Handle> handle_;            // while started
  std::array<std::uint64_t, kStats> base_{};  // counters at their last reset

  std::uint64_t count(unsigned id) const {
    if (!handle_) return 0;
    if (id < link::kCounters) return handle_->node->link().counters()[link::Counter(id)];
    return handle_->node->driver().counters()[typename Driver::Counter(id - link::kCounters)];
  }
  // The node's counters only grow; a reset moves the base that is subtracted.
  std::uint64_t stat(unsigned id) const { return count(id) - base_[id]; }
  static std::string stat_name(unsigned id) {
    if (id < link::kCounters) return "link_" + std::string(link::kCounterInfo[id].name);
    return std::string(Driver::kName) + "_" +
           std::string(Driver::kCounterInfo[id - link::kCounters].name);
  }
  static void log(std::uint32_t level, const std::string& text) {
    rte_log(level, static_cast<std::uint32_t>(Driver::log_type()), "%s: %s\n", Driver::kLogName,
            text.c_str());
  }

  // DPDK allocates dev_private and frees it as plain memory, so it holds a pointer to our object.
  static Rawdev*& slot_of(const rte_rawdev* dev) {
    return *static_cast<Rawdev**>(dev->dev_private);
  }
  static Rawdev& self(const rte_rawdev* dev) { return *slot_of(dev); }

  // EAL calls it for each --vdev of this driver's name. Defined below, behind kOps.
  static int probe(rte_vdev_device* vdev);

  // rte_rawdev_pmd_release() calls close().
  static int remove(rte_vdev_device* vdev) {
    rte_rawdev* dev = rte_rawdev_pmd_get_named_dev(rte_vdev_device_name(vdev));
    if (dev == nullptr) return -ENODEV;
    if (dev->started) rte_rawdev_stop(dev->dev_id);
    return rte_rawdev_pmd_release(dev);
  }

  static int info_get(rte_rawdev* dev, rte_rawdev_obj_t info, std::size_t size) {
    if (info == nullptr) return 0;
    if (size != sizeof(Conf)) return -EINVAL;
    *static_cast<Conf*>(info) = Driver::effective(self(dev).args_.conf);
    return 0;
  }

  // Replaces all that the --vdev arguments said, but the port. rte_rawdev_start() refuses
  // impossible values, because only the node checks them.
  static int configure(const rte_rawdev* dev, rte_rawdev_obj_t config, std::size_t size) {
    if (config == nullptr) return 0;
    if (size != sizeof(Conf)) return -EINVAL;
    self(dev).args_.conf = *static_cast<const Conf*>(config);
    return 0;
  }

  static int start(rte_rawdev* dev) {
    Rawdev& d = self(dev);
    d.handle_ = Driver::open(d.args_.port, d.args_.conf);
    if (!d.handle_) {
      const int error = rte_errno;
      log(RTE_LOG_ERR, std::string(dev->name) + " does not start: " + Driver::error());
      return -error;
    }
    log(RTE_LOG_INFO, std::string(dev->name) + " is " + d.handle_->node->address().text() + " on " +
                          d.args_.port);
    return 0;
  }
  static void stop(rte_rawdev* dev) {
    self(dev).handle_.reset();
    self(dev).base_.fill(0);  // without a node all counters read 0
  }
  static int close(rte_rawdev* dev) {
    delete slot_of(dev);
    slot_of(dev) = nullptr;
    return 0;
  }

  static int queue_conf_get(rte_rawdev* dev, std::uint16_t queue, rte_rawdev_obj_t depth,
                            std::size_t size) {
    if (queue >= Driver::kQueues || depth == nullptr || size != sizeof(std::uint32_t))
      return -EINVAL;
    *static_cast<std::uint32_t*>(depth) = Driver::depth(Driver::effective(self(dev).args_.conf));
    return 0;
  }
  // All queues exist from the start, and configure() sets their depth, so there is nothing to set
  // up.
  static int queue_setup(rte_rawdev*, std::uint16_t queue, rte_rawdev_obj_t config, std::size_t) {
    return queue < Driver::kQueues && config == nullptr ? 0 : -EINVAL;
  }
  static std::uint16_t queue_count(rte_rawdev*) { return Driver::kQueues; }

  // Hands buffers to `one` until it moves no more (returns 0 or an error). The number of buffers
  // moved; an error is returned only if the first buffer met it.
  template <class One>
  static int for_each_buffer(rte_rawdev_buf** buffers, unsigned count, One one) {
    for (unsigned n = 0; n < count; ++n) {
      const bool there = buffers[n] != nullptr && buffers[n]->buf_addr != nullptr;
      const int moved = there ? one(buffers[n]->buf_addr) : -EINVAL;
      if (moved != 1) return n > 0 || moved == 0 ? static_cast<int>(n) : moved;
    }
    return static_cast<int>(count);
  }
  static int enqueue(rte_rawdev* dev, rte_rawdev_buf** buffers, unsigned count,
                     rte_rawdev_obj_t context) {
    const auto queue = reinterpret_cast<std::uintptr_t>(context);
    Handle* handle = self(dev).handle_.get();
    if (handle == nullptr) return -ENETDOWN;
    if (queue >= Driver::kQueues || buffers == nullptr) return -EINVAL;
    return for_each_buffer(buffers, count, [&](void* buffer) {
      const int error = Driver::enqueue(handle, queue, buffer);
      return error == 0 ? 1 : error == -EAGAIN ? 0 : error;
    });
  }
  // Polls first: a rawdev has no operation for that alone, and a receiving program calls this
  // often.
  static int dequeue(rte_rawdev* dev, rte_rawdev_buf** buffers, unsigned count,
                     rte_rawdev_obj_t context) {
    const auto queue = reinterpret_cast<std::uintptr_t>(context);
    Handle* handle = self(dev).handle_.get();
    if (handle == nullptr) return -ENETDOWN;
    if (queue >= Driver::kQueues || buffers == nullptr) return -EINVAL;
    if (const int error = poll(handle); error != 0) return error;
    return for_each_buffer(buffers, count,
                           [&](void* buffer) { return Driver::dequeue(handle, queue, buffer); });
  }

  static int dump(rte_rawdev* dev, std::FILE* file) {
    const Rawdev& d = self(dev);
    std::fprintf(file, "%s on %s: %s\n", dev->name, d.args_.port.c_str(),
                 d.handle_ ? d.handle_->node->address().text().c_str() : "not started");
    for (unsigned id = 0; id < kStats; ++id)
      if (d.stat(id) != 0)
        std::fprintf(file, "  %-32s %" PRIu64 "\n", stat_name(id).c_str(), d.stat(id));
    return 0;
  }

  static int xstats_get(const rte_rawdev* dev, const unsigned ids[], std::uint64_t values[],
                        unsigned n) {
    unsigned filled = 0;
    for (; filled < n && ids[filled] < kStats; ++filled)
      values[filled] = self(dev).stat(ids[filled]);
    return static_cast<int>(filled);
  }
  static int xstats_get_names(const rte_rawdev*, rte_rawdev_xstats_name* names, unsigned size) {
    if (names != nullptr && size >= kStats)
      for (unsigned id = 0; id < kStats; ++id)
        std::snprintf(names[id].name, sizeof names[id].name, "%s", stat_name(id).c_str());
    return static_cast<int>(kStats);
  }
  static std::uint64_t xstats_get_by_name(const rte_rawdev* dev, const char* name, unsigned* id) {
    for (unsigned i = 0; i < kStats; ++i)
      if (stat_name(i) == name) {
        if (id != nullptr) *id = i;
        return self(dev).stat(i);
      }
    if (id != nullptr) *id = ~0u;
    return ~std::uint64_t{0};
  }
  // Without ids all counters are reset. With a wrong id none is.
  static int xstats_reset(rte_rawdev* dev, const std::uint32_t ids[], std::uint32_t count) {
    Rawdev& d = self(dev);
    if (ids == nullptr) {
      for (unsigned id = 0; id < kStats; ++id) d.base_[id] = d.count(id);
      return 0;
    }
    if (!std::all_of(ids, ids + count, [](std::uint32_t id) { return id < kStats; }))
      return -EINVAL;
    for (std::uint32_t n = 0; n < count; ++n) d.base_[ids[n]] = d.count(ids[n]);
    return 0;
  }

  static int attr_get(rte_rawdev*, const char* name, std::uint64_t* value) {
    if (name == nullptr || value == nullptr) return -EINVAL;
    if (std::strcmp(name, Driver::kFunctionsName) != 0) return -ENOENT;
    *value = reinterpret_cast<std::uintptr_t>(&Driver::kFunctions);
    return 0;
  }

  // The reason goes to the log: the rawdev API has no room for a sentence.
  static int selftest(std::uint16_t) {
    const std::string wrong = Driver::selftest();
    if (wrong.empty()) return 0;
    log(RTE_LOG_ERR, "selftest: " + wrong);
    return -EIO;
  }
};

template <RawdevDriver Driver>
constexpr rte_rawdev_ops Rawdev<Driver>::make_ops() {
  rte_rawdev_ops ops{};
  ops.dev_info_get = info_get;
  ops.dev_configure = configure;
  ops.dev_start = start;
  ops.dev_stop = stop;
  ops.dev_close = close;
  ops.queue_def_conf = queue_conf_get;
  ops.queue_setup = queue_setup;
  ops.queue_count = queue_count;
  ops.enqueue_bufs = enqueue;
  ops.dequeue_bufs = dequeue;
  ops.attr_get = attr_get;
  ops.dump = dump;
  ops.xstats_get = xstats_get;
  ops.xstats_get_names = xstats_get_names;
  ops.xstats_get_by_name = xstats_get_by_name;
  ops.xstats_reset = xstats_reset;
  ops.dev_selftest = selftest;
  return ops;
}

// One for each driver; its address also tells this driver's rawdevs from all others (handle_of).
template <RawdevDriver Driver>
inline constexpr rte_rawdev_ops kOps = Rawdev<Driver>::make_ops();

template <RawdevDriver Driver>
int Rawdev<Driver>::probe(rte_vdev_device* vdev) {
  const std::string name = rte_vdev_device_name(vdev);
  // The layout of DPDK's driver structures (driver_sdk/) is that of the version that this driver
  // was compiled for, and may differ in any other.
  if (rte_version_year() != RTE_VER_YEAR || rte_version_month() != RTE_VER_MONTH) {
    log(RTE_LOG_ERR, name +
                         ": this driver was built for DPDK " RTE_STR(RTE_VER_YEAR) "." RTE_STR(
                             RTE_VER_MONTH) " and runs with " +
                         rte_version() + ": rebuild it");
    return -ENOTSUP;
  }
  try {
    auto device = std::make_unique<Rawdev>();
    device->args_ = Driver::parse(rte_vdev_device_args(vdev));
    rte_rawdev* dev =
        rte_rawdev_pmd_allocate(name.c_str(), sizeof(void*), static_cast<int>(rte_socket_id()));
    if (dev == nullptr) return -ENOMEM;
    dev->dev_ops = &kOps<Driver>;
    dev->device = &vdev->device;
    dev->driver_name = Driver::kDriver;
    slot_of(dev) = device.release();
    return 0;
  } catch (const base::SetupError& error) {
    log(RTE_LOG_ERR, name + ": " + error.what());
    return -EINVAL;
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  }
}

template <RawdevDriver Driver>
auto Rawdev<Driver>::handle_of(std::uint16_t dev_id) -> Handle* {
  const rte_rawdev* dev = dev_id < RTE_RAWDEV_MAX_DEVS ? &rte_rawdevs[dev_id] : nullptr;
  if (dev == nullptr || dev->attached != RTE_RAWDEV_ATTACHED || dev->dev_ops != &kOps<Driver> ||
      slot_of(dev) == nullptr) {
    rte_errno = ENODEV;
    return nullptr;
  }
  if (!self(dev).handle_) rte_errno = ENETDOWN;
  return self(dev).handle_.get();
}

}  // namespace viaduct::rawdev
