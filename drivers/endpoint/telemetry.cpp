// What the owner thread copies, and what DPDK's telemetry threads make of it.
#include "drivers/endpoint/telemetry.hpp"

#include <rte_telemetry.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "drivers/port/config_vars.hpp"

namespace viaduct::endpoint {
namespace {

using Clock = std::chrono::steady_clock;
using Values = std::vector<std::pair<std::string, std::uint64_t>>;

constexpr auto kPatience = std::chrono::milliseconds{100};

void add_counters(Values& to, const std::string& prefix, const link::Counters& counters) {
  for (std::size_t c = 0; c < link::kCounters; ++c)
    if (const std::uint64_t value = counters[link::Counter(c)]; value != 0)
      to.emplace_back(prefix + std::string(link::kCounterInfo[c].name), value);
}

}  // namespace

struct Telemetry::Source {
  struct Report {
    Values counters, peers;
    Clock::time_point taken;
  };
  static Report report_on(const link::Link<port::Port>& link);

  explicit Source(std::string names_begin) : prefix(std::move(names_begin)) {}

  const std::string prefix;  // of its names
  std::atomic<bool> asked = false;
  std::mutex mutex;
  std::condition_variable answered;  // `asked` is false
  Report report;

  void answer(Report with) {
    const std::lock_guard lock(mutex);
    report = std::move(with);
    asked.store(false, std::memory_order_relaxed);
    answered.notify_all();
  }

  struct Open {
    std::mutex mutex;
    std::vector<std::shared_ptr<Source>> sources;
  };
  // Never destroyed: DPDK's threads run until the process has ended.
  static Open& open() {
    static auto* const instance = new Open;
    return *instance;
  }
  static int give_out(const char* prefix, rte_tel_data* data, Values Report::*what);
};

auto Telemetry::Source::report_on(const link::Link<port::Port>& link) -> Report {
  Report report;
  add_counters(report.counters, "", link.counters());
  for (const link::PeerId peer : link.peers()) {
    const link::PeerView view = link.view(peer);
    std::string prefix = view.address.text() + "/";
    std::erase(prefix, ':');  // names in telemetry have letters, digits, '_' and '/'
    Values& to = report.peers;
    to.emplace_back(prefix + "up", view.state == link::PeerState::up);
    to.emplace_back(prefix + "mtu", view.mtu);
    to.emplace_back(prefix + "round_trip_ns", view.round_trip.count());
    for (std::size_t lane = 0; lane < link::kLanes; ++lane) {
      const std::string of = prefix + std::string(link::kLaneNames[lane]) + "_";
      to.emplace_back(of + "backlog", view.lanes[lane].backlog);
      to.emplace_back(of + "in_flight", view.lanes[lane].in_flight);
      to.emplace_back(of + "credit", view.lanes[lane].credit);
    }
    add_counters(to, prefix, link.counters(peer));
  }
  report.taken = Clock::now();
  return report;
}

// In a thread of DPDK's.
int Telemetry::Source::give_out(const char* wanted, rte_tel_data* data, Values Report::*what) try {
  rte_tel_data_start_dict(data);
  std::vector<std::shared_ptr<Source>> sources;
  {
    const std::lock_guard lock(open().mutex);
    sources = open().sources;
  }
  const auto until = Clock::now() + kPatience;
  for (const auto& source : sources) source->asked.store(true, std::memory_order_relaxed);
  for (const auto& source : sources) {
    std::unique_lock lock(source->mutex);
    source->answered.wait_until(lock, until, [&] { return !source->asked.load(); });
    const auto add = [&](const std::string& name, std::uint64_t value) {
      const std::string whole = source->prefix + name;
      if (wanted == nullptr || whole.starts_with(wanted))
        rte_tel_data_add_dict_u64(data, whole.c_str(), value);
    };
    const auto age = Clock::now() - source->report.taken;
    add("age_us", std::chrono::duration_cast<std::chrono::microseconds>(age).count());
    for (const auto& [name, value] : source->report.*what) add(name, value);
  }
  return 0;
} catch (const std::exception&) {  // no memory
  return -1;
}

Telemetry::Telemetry(port::Port& port, const link::Link<port::Port>& link) : port_(port) {
  if (!port::config_vars().on("VIADUCT_TELEMETRY")) return;
  source_ = std::make_shared<Source>("port" + std::to_string(port.port_number()) + "/");
  source_->report = Source::report_on(link);
  {
    const std::lock_guard lock(Source::open().mutex);
    Source::open().sources.push_back(source_);
  }
  port_.on_idle([source = source_.get(), &link] {
    if (!source->asked.load(std::memory_order_relaxed)) return;
    try {
      source->answer(Source::report_on(link));
    } catch (const std::bad_alloc&) {  // a poll does not throw; the last copy is given out
    }
  });
  static std::once_flag once;
  std::call_once(once, [] {
    rte_telemetry_register_cmd(
        "/viaduct/link/counters",
        [](const char*, const char* wanted, rte_tel_data* data) {
          return Source::give_out(wanted, data, &Source::Report::counters);
        },
        "Counters of each link. Parameter: how names begin");
    rte_telemetry_register_cmd(
        "/viaduct/link/peers",
        [](const char*, const char* wanted, rte_tel_data* data) {
          return Source::give_out(wanted, data, &Source::Report::peers);
        },
        "State and counters of each peer. Parameter: how names begin");
  });
}

Telemetry::~Telemetry() {
  if (source_ == nullptr) return;
  port_.on_idle(nullptr);
  {
    const std::lock_guard lock(Source::open().mutex);
    std::erase(Source::open().sources, source_);
  }
  source_->answer({});  // to whom is waiting for one
}

}  // namespace viaduct::endpoint
