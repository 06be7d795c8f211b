// The DPDK face: a rawdev `--vdev rawdev_startx0,port=net_memif0` on an ethdev of the application.
// Loaded with `-d librte_raw_startx.so` or linked into the program.
//
// The ethdev is opened when the device is started, so it may be made after EAL's start.
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
#include <cstring>
#include <new>

#include "drivers/startx_emul/c_face.hpp"
#include "drivers/startx_emul/selftest.hpp"
#include "drivers/startx_emul/vdev_args.hpp"

namespace {

using namespace viaduct;
using namespace viaduct::startx;

constexpr char kDriver[] = "rawdev_startx";

RTE_LOG_REGISTER(startx_log, pmd.raw.startx, INFO)
#define STARTX_LOG(level, ...) rte_log(RTE_LOG_##level, startx_log, "STARTX: " __VA_ARGS__)

// Link's counters first, the NIU's behind them.
constexpr unsigned kStats = static_cast<unsigned>(link::kCounters + startx::kCounters);

struct Rawdev {
  VdevArgs args;
  std::unique_ptr<rte_pmd_startx> handle;    // while started
  std::array<std::uint64_t, kStats> base{};  // what was reset

  std::uint64_t count(unsigned id) const {
    if (!handle) return 0;
    if (id < link::kCounters) return handle->node->link().counters()[link::Counter(id)];
    return handle->node->niu().counters()[startx::Counter(id - link::kCounters)];
  }
  std::uint64_t stat(unsigned id) const { return count(id) - base[id]; }
};

std::string stat_name(unsigned id) {
  if (id < link::kCounters) return "link_" + std::string(link::kCounterInfo[id].name);
  return "startx_" + std::string(startx::kCounterInfo[id - link::kCounters].name);
}

// DPDK keeps one pointer for us in memory of its own.
Rawdev*& slot_of(const rte_rawdev* dev) {
  return *static_cast<Rawdev**>(dev->dev_private);
}
Rawdev& self(const rte_rawdev* dev) {
  return *slot_of(dev);
}

int info_get(rte_rawdev* dev, rte_rawdev_obj_t info, std::size_t size) {
  if (info == nullptr) return 0;
  if (size != sizeof(rte_pmd_startx_conf)) return -EINVAL;
  const NiuConfig niu = niu_config(self(dev).args.conf);
  const auto conf = static_cast<rte_pmd_startx_conf*>(info);
  *conf = {static_cast<std::uint32_t>(niu.queue_depth),
           static_cast<std::uint32_t>(niu.rdma.max_open),
           static_cast<std::uint32_t>(niu.rdma.max_posted),
           static_cast<std::uint32_t>(niu.rdma.max_regions), self(dev).args.conf.job_key};
  return 0;
}

// Replaces what the --vdev arguments said; rte_rawdev_start() refuses what is impossible.
int configure(const rte_rawdev* dev, rte_rawdev_obj_t config, std::size_t size) {
  if (config == nullptr) return 0;
  if (size != sizeof(rte_pmd_startx_conf)) return -EINVAL;
  self(dev).args.conf = *static_cast<const rte_pmd_startx_conf*>(config);
  return 0;
}

int start(rte_rawdev* dev) {
  Rawdev& d = self(dev);
  d.handle = open_handle(d.args.port, d.args.conf);
  if (!d.handle) {
    STARTX_LOG(ERR, "%s does not start: %s\n", dev->name, rte_pmd_startx_error());
    return -rte_errno;
  }
  d.base.fill(0);
  STARTX_LOG(INFO, "%s is %s on %s\n", dev->name, d.handle->node->address().text().c_str(),
             d.args.port.c_str());
  return 0;
}

void stop(rte_rawdev* dev) {
  self(dev).handle.reset();
}

int close_device(rte_rawdev* dev) {
  delete slot_of(dev);
  slot_of(dev) = nullptr;
  return 0;
}

int queue_conf_get(rte_rawdev* dev, std::uint16_t queue, rte_rawdev_obj_t depth, std::size_t size) {
  if (queue >= RTE_PMD_STARTX_QUEUES || depth == nullptr || size != sizeof(std::uint32_t))
    return -EINVAL;
  *static_cast<std::uint32_t*>(depth) =
      static_cast<std::uint32_t>(niu_config(self(dev).args.conf).queue_depth);
  return 0;
}

// All four queues are there from the start and have one depth, which configure() sets.
int queue_setup(rte_rawdev*, std::uint16_t queue, rte_rawdev_obj_t config, std::size_t) {
  return queue < RTE_PMD_STARTX_QUEUES && config == nullptr ? 0 : -EINVAL;
}

std::uint16_t queue_count(rte_rawdev*) {
  return RTE_PMD_STARTX_QUEUES;
}

rte_pmd_startx_priority priority_of(std::uintptr_t queue) {
  return queue == RTE_PMD_STARTX_PIO_HIGH || queue == RTE_PMD_STARTX_QUEUE_HIGH
             ? RTE_PMD_STARTX_HIGH
             : RTE_PMD_STARTX_LOW;
}

int enqueue_one(rte_pmd_startx* handle, std::uintptr_t queue,
                const rte_pmd_startx_outgoing* packet) {
  const auto priority = priority_of(queue);
  if (queue <= RTE_PMD_STARTX_PIO_LOW)
    return rte_pmd_startx_send(handle, packet->to, priority, &packet->packet);
  rte_pmd_startx_outgoing* entry = rte_pmd_startx_reserve(handle, priority);
  if (entry == nullptr) return -EAGAIN;
  *entry = *packet;
  rte_pmd_startx_commit(handle, priority);
  return 0;
}

// How many were taken; an error only when the first one was refused for good.
int enqueue(rte_rawdev* dev, rte_rawdev_buf** buffers, unsigned count, rte_rawdev_obj_t context) {
  const auto queue = reinterpret_cast<std::uintptr_t>(context);
  rte_pmd_startx* handle = self(dev).handle.get();
  if (handle == nullptr) return -ENETDOWN;
  if (queue >= RTE_PMD_STARTX_QUEUES || buffers == nullptr) return -EINVAL;
  for (unsigned n = 0; n < count; ++n) {
    if (buffers[n] == nullptr || buffers[n]->buf_addr == nullptr)
      return n > 0 ? static_cast<int>(n) : -EINVAL;
    const int error = enqueue_one(
        handle, queue, static_cast<const rte_pmd_startx_outgoing*>(buffers[n]->buf_addr));
    if (error != 0) return n > 0 || error == -EAGAIN ? static_cast<int>(n) : error;
  }
  return static_cast<int>(count);
}

int dequeue(rte_rawdev* dev, rte_rawdev_buf** buffers, unsigned count, rte_rawdev_obj_t context) {
  const auto queue = reinterpret_cast<std::uintptr_t>(context);
  rte_pmd_startx* handle = self(dev).handle.get();
  if (handle == nullptr) return -ENETDOWN;
  if (queue >= RTE_PMD_STARTX_QUEUES || buffers == nullptr) return -EINVAL;
  const bool pio = queue <= RTE_PMD_STARTX_PIO_LOW;
  const auto priority = priority_of(queue);
  rte_pmd_startx_poll(handle);
  unsigned n = 0;
  for (; n < count; ++n) {
    const rte_pmd_startx_received* packet =
        pio ? rte_pmd_startx_peek(handle, priority) : rte_pmd_startx_queue_peek(handle, priority);
    if (packet == nullptr) break;
    if (buffers[n] == nullptr || buffers[n]->buf_addr == nullptr)
      return n > 0 ? static_cast<int>(n) : -EINVAL;
    // Only what is in use: the entry behind it is an old packet's.
    std::memcpy(buffers[n]->buf_addr, packet,
                offsetof(rte_pmd_startx_received, payload) + packet->words * sizeof(std::uint32_t));
    pio ? rte_pmd_startx_pop(handle, priority) : rte_pmd_startx_queue_pop(handle, priority);
  }
  return static_cast<int>(n);
}

int dump(rte_rawdev* dev, std::FILE* file) {
  const Rawdev& d = self(dev);
  std::fprintf(file, "%s on %s: %s\n", dev->name, d.args.port.c_str(),
               d.handle ? d.handle->node->address().text().c_str() : "not started");
  for (unsigned id = 0; id < kStats; ++id)
    if (d.stat(id) != 0)
      std::fprintf(file, "  %-32s %" PRIu64 "\n", stat_name(id).c_str(), d.stat(id));
  return 0;
}

int xstats_get(const rte_rawdev* dev, const unsigned ids[], std::uint64_t values[], unsigned n) {
  unsigned filled = 0;
  for (; filled < n && ids[filled] < kStats; ++filled) values[filled] = self(dev).stat(ids[filled]);
  return static_cast<int>(filled);
}

int xstats_get_names(const rte_rawdev*, rte_rawdev_xstats_name* names, unsigned size) {
  if (names != nullptr && size >= kStats)
    for (unsigned id = 0; id < kStats; ++id)
      std::snprintf(names[id].name, sizeof names[id].name, "%s", stat_name(id).c_str());
  return static_cast<int>(kStats);
}

std::uint64_t xstats_get_by_name(const rte_rawdev* dev, const char* name, unsigned* id) {
  for (unsigned i = 0; i < kStats; ++i)
    if (stat_name(i) == name) {
      if (id != nullptr) *id = i;
      return self(dev).stat(i);
    }
  if (id != nullptr) *id = ~0u;
  return ~std::uint64_t{0};
}

// No ids: all of them.
int xstats_reset(rte_rawdev* dev, const std::uint32_t ids[], std::uint32_t count) {
  Rawdev& d = self(dev);
  if (ids == nullptr) {
    for (unsigned id = 0; id < kStats; ++id) d.base[id] = d.count(id);
    return 0;
  }
  if (!std::all_of(ids, ids + count, [](std::uint32_t id) { return id < kStats; })) return -EINVAL;
  for (std::uint32_t n = 0; n < count; ++n) d.base[ids[n]] = d.count(ids[n]);
  return 0;
}

int run_selftest(std::uint16_t) {
  const std::string wrong = selftest();
  if (wrong.empty()) return 0;
  STARTX_LOG(ERR, "selftest: %s\n", wrong.c_str());
  return -EIO;
}

constexpr rte_rawdev_ops kOps = [] {
  rte_rawdev_ops ops{};
  ops.dev_info_get = info_get;
  ops.dev_configure = configure;
  ops.dev_start = start;
  ops.dev_stop = stop;
  ops.dev_close = close_device;
  ops.queue_def_conf = queue_conf_get;
  ops.queue_setup = queue_setup;
  ops.queue_count = queue_count;
  ops.enqueue_bufs = enqueue;
  ops.dequeue_bufs = dequeue;
  ops.dump = dump;
  ops.xstats_get = xstats_get;
  ops.xstats_get_names = xstats_get_names;
  ops.xstats_get_by_name = xstats_get_by_name;
  ops.xstats_reset = xstats_reset;
  ops.dev_selftest = run_selftest;
  return ops;
}();

int probe(rte_vdev_device* vdev) {
  const char* name = rte_vdev_device_name(vdev);
  // The driver structures are those of the DPDK we were compiled for and of no other.
  if (rte_version_year() != RTE_VER_YEAR || rte_version_month() != RTE_VER_MONTH) {
    STARTX_LOG(ERR, "%s: this driver was built for DPDK %d.%02d and runs with %s: rebuild it\n",
               name, RTE_VER_YEAR, RTE_VER_MONTH, rte_version());
    return -ENOTSUP;
  }
  try {
    auto device = std::make_unique<Rawdev>();
    device->args = parse_vdev_args(rte_vdev_device_args(vdev));
    rte_rawdev* dev =
        rte_rawdev_pmd_allocate(name, sizeof(Rawdev*), static_cast<int>(rte_socket_id()));
    if (dev == nullptr) return -ENOMEM;
    dev->dev_ops = &kOps;
    dev->device = &vdev->device;
    dev->driver_name = kDriver;
    slot_of(dev) = device.release();
    return 0;
  } catch (const link::SetupError& error) {
    STARTX_LOG(ERR, "%s: %s\n", name, error.what());
    return -EINVAL;
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  }
}

int remove_device(rte_vdev_device* vdev) {
  rte_rawdev* dev = rte_rawdev_pmd_get_named_dev(rte_vdev_device_name(vdev));
  if (dev == nullptr) return -ENODEV;
  if (dev->started) rte_rawdev_stop(dev->dev_id);
  return rte_rawdev_pmd_release(dev);
}

// A constant: the constructor that registers it may run before those of C++ objects.
constinit rte_vdev_driver startx_driver = [] {
  rte_vdev_driver driver{};
  driver.probe = probe;
  driver.remove = remove_device;
  return driver;
}();

}  // namespace

RTE_PMD_REGISTER_VDEV(rawdev_startx, startx_driver);
RTE_PMD_REGISTER_PARAM_STRING(
    rawdev_startx,
    "port=<name or id of an ethdev> queue_depth=<int> max_open=<int> max_posted=<int> "
    "max_regions=<int> job=<int>");

extern "C" rte_pmd_startx* rte_pmd_startx_get(std::uint16_t dev_id) {
  const rte_rawdev* dev = dev_id < RTE_RAWDEV_MAX_DEVS ? &rte_rawdevs[dev_id] : nullptr;
  if (dev == nullptr || dev->attached != RTE_RAWDEV_ATTACHED || dev->dev_ops != &kOps ||
      slot_of(dev) == nullptr) {
    rte_errno = ENODEV;
    return nullptr;
  }
  if (!self(dev).handle) rte_errno = ENETDOWN;
  return self(dev).handle.get();
}
