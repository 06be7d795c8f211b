// The DPDK rawdev of MBCF (`--vdev rawdev_mbcf0,port=net_memif0`, librte_raw_mbcf.so): what
// rawdev/rawdev.hpp, which both drivers share, needs to know of this one. Requests, completions,
// entries and events go through the C API.
#include "drivers/rawdev/rawdev.hpp"

#include <cstring>

#include "drivers/mbcf/c_api.hpp"
#include "drivers/mbcf/selftest.hpp"
#include "drivers/mbcf/vdev_args.hpp"

namespace {

using namespace viaduct;

RTE_LOG_REGISTER(mbcf_log, pmd.raw.mbcf, INFO)

// Meets the concept rawdev::RawdevDriver, which says what each member is.
struct Mbcf {
  using Handle = rte_pmd_mbcf;
  using Conf = rte_pmd_mbcf_conf;
  using Counter = mbcf::Counter;
  static constexpr char kDriver[] = "rawdev_mbcf";
  static constexpr char kName[] = "mbcf";
  static constexpr char kLogName[] = "MBCF";
  static constexpr std::uint16_t kQueues = RTE_PMD_MBCF_QUEUES;
  static constexpr const auto& kCounterInfo = mbcf::kCounterInfo;

  static int log_type() { return mbcf_log; }
  static mbcf::VdevArgs parse(const char* text) { return mbcf::parse_vdev_args(text); }
  static std::unique_ptr<Handle> open(const std::string& port, const Conf& conf) {
    return mbcf::open_handle(port, conf);
  }
  // For programs that are linked with DPDK alone and load this driver at run time. New members go
  // to the end, as older programs know the places of those that are there.
  static constexpr char kFunctionsName[] = RTE_PMD_MBCF_FUNCTIONS;
  static constexpr rte_pmd_mbcf_functions kFunctions{
      .size = sizeof(rte_pmd_mbcf_functions),
      .get = rte_pmd_mbcf_get,
      .open = rte_pmd_mbcf_open,
      .close = rte_pmd_mbcf_close,
      .error = rte_pmd_mbcf_error,
      .poll = rte_pmd_mbcf_poll,
      .address = rte_pmd_mbcf_address,
      .peer = rte_pmd_mbcf_peer,
      .export_memory = rte_pmd_mbcf_export,
      .withdraw = rte_pmd_mbcf_withdraw,
      .create_fifo = rte_pmd_mbcf_create_fifo,
      .fifo_front = rte_pmd_mbcf_fifo_front,
      .fifo_pop = rte_pmd_mbcf_fifo_pop,
      .fifo_key = rte_pmd_mbcf_fifo_key,
      .fifo_capacity = rte_pmd_mbcf_fifo_capacity,
      .create_signal = rte_pmd_mbcf_create_signal,
      .create_signal_fd = rte_pmd_mbcf_create_signal_fd,
      .write = rte_pmd_mbcf_write,
      .read = rte_pmd_mbcf_read,
      .swap = rte_pmd_mbcf_swap,
      .fetch_add = rte_pmd_mbcf_fetch_add,
      .compare_swap = rte_pmd_mbcf_compare_swap,
      .signal = rte_pmd_mbcf_signal,
      .fence = rte_pmd_mbcf_fence,
      .open_writer = rte_pmd_mbcf_open_writer,
      .close_writer = rte_pmd_mbcf_close_writer,
      .append = rte_pmd_mbcf_append,
      .capacity = rte_pmd_mbcf_capacity,
      .issue = rte_pmd_mbcf_issue,
      .completion = rte_pmd_mbcf_completion,
      .event = rte_pmd_mbcf_event,
  };
  static const char* error() { return rte_pmd_mbcf_error(); }
  static std::string selftest() { return mbcf::selftest(); }

  // The configuration in use: zeros replaced by the defaults, for rte_rawdev_info_get().
  static Conf effective(const Conf& conf) {
    const mbcf::EngineConfig engine = mbcf::engine_config(conf);
    return {static_cast<std::uint32_t>(engine.max_keys),
            static_cast<std::uint32_t>(engine.max_requests),
            static_cast<std::uint32_t>(engine.max_writers), conf.job_key};
  }
  static std::uint32_t depth(const Conf& conf) { return conf.max_requests; }

  // Only requests can be enqueued; entries and events come from others.
  static int enqueue(Handle* handle, std::uintptr_t queue, void* buffer) {
    if (queue != RTE_PMD_MBCF_REQUESTS) return -EINVAL;
    return rte_pmd_mbcf_issue(handle, static_cast<rte_pmd_mbcf_request*>(buffer));
  }

  // 1: the buffer is filled; 0: there is nothing to take; or a negative errno.
  static int dequeue(Handle* handle, std::uintptr_t queue, void* buffer) {
    const int error = take(handle, queue, buffer);
    return error == 0 ? 1 : error == -ENOENT ? 0 : error;
  }
  // 0, or a negative errno; -ENOENT: there is nothing to take. Rawdev has checked the queue number.
  static int take(Handle* handle, std::uintptr_t queue, void* buffer) {
    switch (queue) {
      case RTE_PMD_MBCF_REQUESTS:
        return rte_pmd_mbcf_completion(handle,
                                       static_cast<struct rte_pmd_mbcf_completion*>(buffer));
      case RTE_PMD_MBCF_EVENTS:
        return rte_pmd_mbcf_event(handle, static_cast<struct rte_pmd_mbcf_event*>(buffer));
      default: return take_entry(static_cast<rte_pmd_mbcf_taken_entry*>(buffer));
    }
  }
  // Copies the oldest entry of the FIFO that the buffer names, and pops it. An entry that does not
  // fit stays in the FIFO, and the caller learns its length.
  static int take_entry(rte_pmd_mbcf_taken_entry* taken) {
    if (taken->into == nullptr && taken->size != 0) return -EINVAL;
    rte_pmd_mbcf_entry entry;
    const int error = rte_pmd_mbcf_fifo_front(taken->fifo, &entry);
    if (error != 0) return error;
    taken->from = entry.from;
    taken->length = entry.length;
    if (entry.length > taken->size) return -EMSGSIZE;
    if (entry.length != 0) std::memcpy(taken->into, entry.bytes, entry.length);
    rte_pmd_mbcf_fifo_pop(taken->fifo);
    return 0;
  }
};

// constinit: the constructor that RTE_PMD_REGISTER_VDEV makes may run before those of C++ objects.
constinit rte_vdev_driver mbcf_driver = rawdev::Rawdev<Mbcf>::make_driver();

}  // namespace

RTE_PMD_REGISTER_VDEV(rawdev_mbcf, mbcf_driver);
RTE_PMD_REGISTER_PARAM_STRING(rawdev_mbcf,
                              "port=<name or id of an ethdev> max_keys=<int> max_requests=<int> "
                              "max_writers=<int> job=<int>");

extern "C" rte_pmd_mbcf* rte_pmd_mbcf_get(std::uint16_t dev_id) {
  return rawdev::Rawdev<Mbcf>::handle_of(dev_id);
}
