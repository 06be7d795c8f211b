// StarT-X as a DPDK rawdev: `--vdev rawdev_startx0,port=net_memif0`, librte_raw_startx.so. This
// file says what is StarT-X's own; drivers/rawdev/rawdev.hpp has the rawdev operations themselves.
#include "drivers/rawdev/rawdev.hpp"

#include <cstring>

#include "drivers/startx_emul/c_api.hpp"
#include "drivers/startx_emul/selftest.hpp"
#include "drivers/startx_emul/vdev_args.hpp"

namespace {

using namespace viaduct;

RTE_LOG_REGISTER(startx_log, pmd.raw.startx, INFO)

// Models rawdev::RawdevDriver, where the members are described.
struct StartX {
  using Handle = rte_pmd_startx;
  using Conf = rte_pmd_startx_conf;
  using Counter = startx::Counter;
  static constexpr char kDriver[] = "rawdev_startx";
  static constexpr char kName[] = "startx";
  static constexpr char kLogName[] = "STARTX";
  static constexpr std::uint16_t kQueues = RTE_PMD_STARTX_QUEUES;
  static constexpr const auto& kCounterInfo = startx::kCounterInfo;

  static int log_type() { return startx_log; }
  static startx::VdevArgs parse(const char* text) { return startx::parse_vdev_args(text); }
  static std::unique_ptr<Handle> open(const std::string& port, const Conf& conf) {
    return startx::open_handle(port, conf);
  }
  static constexpr char kFunctionsName[] = RTE_PMD_STARTX_FUNCTIONS;
  static constexpr rte_pmd_startx_functions kFunctions{
      .size = sizeof(rte_pmd_startx_functions),
      .get = rte_pmd_startx_get,
      .open = rte_pmd_startx_open,
      .close = rte_pmd_startx_close,
      .error = rte_pmd_startx_error,
      .poll = rte_pmd_startx_poll,
      .address = rte_pmd_startx_address,
      .peer = rte_pmd_startx_peer,
      .send = rte_pmd_startx_send,
      .peek = rte_pmd_startx_peek,
      .pop = rte_pmd_startx_pop,
      .reserve = rte_pmd_startx_reserve,
      .commit = rte_pmd_startx_commit,
      .queue_peek = rte_pmd_startx_queue_peek,
      .queue_pop = rte_pmd_startx_queue_pop,
      .register_memory = rte_pmd_startx_register,
      .deregister_memory = rte_pmd_startx_deregister,
      .post = rte_pmd_startx_post,
      .cancel = rte_pmd_startx_cancel,
      .request = rte_pmd_startx_request,
      .grant = rte_pmd_startx_grant,
      .revoke = rte_pmd_startx_revoke,
      .write = rte_pmd_startx_write,
      .completion = rte_pmd_startx_completion,
      .event = rte_pmd_startx_event,
  };
  static const char* error() { return rte_pmd_startx_error(); }
  static std::string selftest() { return startx::selftest(); }

  static Conf effective(const Conf& conf) {
    const startx::NiuConfig niu = startx::niu_config(conf);
    return {static_cast<std::uint32_t>(niu.queue_depth),
            static_cast<std::uint32_t>(niu.rdma.max_open),
            static_cast<std::uint32_t>(niu.rdma.max_posted),
            static_cast<std::uint32_t>(niu.rdma.max_regions), conf.job_key};
  }
  static std::uint32_t depth(const Conf& conf) { return conf.queue_depth; }

  static rte_pmd_startx_priority priority_of(std::uintptr_t queue) {
    return queue == RTE_PMD_STARTX_PIO_HIGH || queue == RTE_PMD_STARTX_QUEUE_HIGH
               ? RTE_PMD_STARTX_HIGH
               : RTE_PMD_STARTX_LOW;
  }

  // PIO queues send at once; the others copy the packet into the transmit queue.
  static int enqueue(Handle* handle, std::uintptr_t queue, void* buffer) {
    const auto packet = static_cast<const rte_pmd_startx_outgoing*>(buffer);
    const auto priority = priority_of(queue);
    if (queue <= RTE_PMD_STARTX_PIO_LOW)
      return rte_pmd_startx_send(handle, packet->to, priority, &packet->packet);
    rte_pmd_startx_outgoing* entry = rte_pmd_startx_reserve(handle, priority);
    if (entry == nullptr) return -EAGAIN;
    *entry = *packet;
    rte_pmd_startx_commit(handle, priority);
    return 0;
  }

  static int dequeue(Handle* handle, std::uintptr_t queue, void* buffer) {
    const bool pio = queue <= RTE_PMD_STARTX_PIO_LOW;
    const auto priority = priority_of(queue);
    const rte_pmd_startx_received* packet =
        pio ? rte_pmd_startx_peek(handle, priority) : rte_pmd_startx_queue_peek(handle, priority);
    if (packet == nullptr) return 0;
    // Only the words in use: behind them the entry holds those of an older packet.
    std::memcpy(buffer, packet,
                offsetof(rte_pmd_startx_received, payload) + packet->words * sizeof(std::uint32_t));
    pio ? rte_pmd_startx_pop(handle, priority) : rte_pmd_startx_queue_pop(handle, priority);
    return 1;
  }
};

constinit rte_vdev_driver startx_driver = rawdev::Rawdev<StartX>::make_driver();

}  // namespace

RTE_PMD_REGISTER_VDEV(rawdev_startx, startx_driver);
RTE_PMD_REGISTER_PARAM_STRING(
    rawdev_startx,
    "port=<name or id of an ethdev> queue_depth=<int> max_open=<int> max_posted=<int> "
    "max_regions=<int> job=<int>");

extern "C" rte_pmd_startx* rte_pmd_startx_get(std::uint16_t dev_id) {
  return rawdev::Rawdev<StartX>::handle_of(dev_id);
}
