// The PMIx client: the class Pmix, or, without PMIx's headers at build time, a function that says
// so.
#include "libmpi_lite/launch/pmix.hpp"

#include <cstdlib>

#include "drivers/link/types.hpp"

#if __has_include(<pmix.h>)

#include <dlfcn.h>
#include <pmix.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "libmpi_lite/launch/common.hpp"

namespace viaduct::mpi {
namespace {

// Limits of put(), in characters: the library's own choice.
constexpr std::size_t kMaxPmixKey = 200, kMaxPmixValue = 4096;
// How long the server may take to answer a request that depends on it alone.
constexpr int kTimeoutSeconds = 60;
// After so long without an answer to PMIx_Abort the process ends without the server.
constexpr auto kAbortTimeout = std::chrono::seconds(5);

// The functions of libpmix that are used, found with dlopen() and dlsym(). The constructor throws
// SetupError if the library or one of them is missing.
struct Api {
  Api();
  decltype(&PMIx_Init) init;
  decltype(&PMIx_Finalize) finalize;
  decltype(&PMIx_Abort) abort;
  decltype(&PMIx_Put) put;
  decltype(&PMIx_Commit) commit;
  decltype(&PMIx_Fence) fence;
  decltype(&PMIx_Fence_nb) start_fence;
  decltype(&PMIx_Get) get;
  decltype(&PMIx_Register_event_handler) register_event_handler;
  decltype(&PMIx_Error_string) error_string;
};

// Throws SetupError if there is no such function.
template <class Function>
void load(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr)
    throw base::SetupError(std::string("libpmix.so.2 has no ") + name +
                           "; install PMIx 3 or newer (Debian: libpmix2)");
}

// Never closed with dlclose(): libpmix has threads of its own, which go on running its code.
Api::Api() {
  void* library = dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    throw base::SetupError(
        std::string("a PMIx server started this process (PMIX_NAMESPACE is set) and "
                    "its library cannot be loaded: ") +
        dlerror() + "; install it (Debian: apt-get install libpmix2)");
  load(library, "PMIx_Init", init);
  load(library, "PMIx_Finalize", finalize);
  load(library, "PMIx_Abort", abort);
  load(library, "PMIx_Put", put);
  load(library, "PMIx_Commit", commit);
  load(library, "PMIx_Fence", fence);
  load(library, "PMIx_Fence_nb", start_fence);
  load(library, "PMIx_Get", get);
  load(library, "PMIx_Register_event_handler", register_event_handler);
  load(library, "PMIx_Error_string", error_string);
}

// The macros of pmix.h that fill in such structures call functions of libpmix, which is not linked.
// So the few kinds that are used here are filled in by hand.
pmix_info_t directive(const char* key) {
  pmix_info_t info;
  std::memset(&info, 0, sizeof info);
  std::strncpy(info.key, key, sizeof info.key - 1);
  return info;
}

pmix_info_t switched_on(const char* key) {
  pmix_info_t info = directive(key);
  info.value.type = PMIX_BOOL;
  info.value.data.flag = true;
  return info;
}

// For requests that the server might answer late: at most kTimeoutSeconds.
pmix_info_t time_limit() {
  pmix_info_t info = directive(PMIX_TIMEOUT);
  info.value.type = PMIX_INT;
  info.value.data.integer = kTimeoutSeconds;
  return info;
}

// The number in a value, whatever integer type the server has chosen for it; -1: no number.
std::int64_t number_in(const pmix_value_t& value) {
  switch (value.type) {
    case PMIX_UINT16: return value.data.uint16;
    case PMIX_UINT32: return value.data.uint32;
    case PMIX_INT32: return value.data.int32;
    case PMIX_INT: return value.data.integer;
    case PMIX_UINT: return value.data.uint;
    case PMIX_SIZE: return static_cast<std::int64_t>(value.data.size);
    case PMIX_UINT64: return static_cast<std::int64_t>(value.data.uint64);
    case PMIX_PROC_RANK: return value.data.rank;
    default: return -1;
  }
}

// The event handler for PMIX_ERR_LOST_CONNECTION; a thread of libpmix calls it. When the launcher
// has died, nobody else would end a process that computes or waits for messages. Only write() and
// _exit(): the main thread may be anywhere.
void connection_lost(std::size_t, pmix_status_t, const pmix_proc_t*, pmix_info_t*, std::size_t,
                     pmix_info_t*, std::size_t, pmix_event_notification_cbfunc_fn_t, void*) {
  constexpr std::string_view kMessage =
      "viaduct: the job's PMIx server or a process of the job has died; this process ends, too\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, kMessage.data(), kMessage.size());
  _exit(1);
}

class Pmix final : public Launch {
 public:
  Pmix();
  const char* name() const override { return "pmix"; }
  void put(std::string_view key, std::string_view value) override;
  void fence() override;
  void start_fence() override;
  bool fence_passed() override;
  std::string get(int rank, std::string_view key) override;
  void finalize() override;
  [[noreturn]] void abort(int exit_code, std::string_view message) override;

 private:
  // Throws SetupError unless the status is success; `what` says what the server did not do.
  void check(pmix_status_t status, const std::string& what) const;
  // The name of a process of this job; PMIX_RANK_WILDCARD: of the job.
  pmix_proc_t process(pmix_rank_t rank) const;
  // A number that the server knows about a process or, with PMIX_RANK_WILDCARD, about the job; -1:
  // it does not know.
  int query_number(pmix_rank_t rank, const char* key) const;
  // The same for a number that must be known and be at least `min`; throws SetupError.
  int require_number(pmix_rank_t rank, const char* key, int min) const;

  // The end of a fence that start_fence() has begun; a thread of libpmix calls it.
  static void fence_over(pmix_status_t status, void* pmix);

  static constexpr pmix_status_t kUnderWay = 1;  // statuses are 0 or less

  Api api_;           // libpmix
  pmix_proc_t self_;  // name space of the job, and rank
  pmix_proc_t all_;   // of the fence under way
  std::atomic<pmix_status_t> fence_status_ = PMIX_SUCCESS;
};

Pmix::Pmix() {
  std::memset(&self_, 0, sizeof self_);
  check(api_.init(&self_, nullptr, 0),
        "that PMIX_NAMESPACE speaks of does not let this process join");
  identity_.rank = static_cast<int>(self_.rank);
  // Before anything that waits for other processes: the server may die meanwhile.
  pmix_status_t lost = PMIX_ERR_LOST_CONNECTION;
  api_.register_event_handler(&lost, 1, nullptr, 0, connection_lost, nullptr, nullptr);
  identity_.size = require_number(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE, 1);
  identity_.local_rank = require_number(self_.rank, PMIX_LOCAL_RANK, 0);
  identity_.local_size = require_number(PMIX_RANK_WILDCARD, PMIX_LOCAL_SIZE, 1);
  identity_.appnum = query_number(self_.rank, PMIX_APPNUM);
  identity_.universe_size = query_number(PMIX_RANK_WILDCARD, PMIX_UNIV_SIZE);
  identity_.job_key = agree_on_job_key(*this);
}

void Pmix::check(pmix_status_t status, const std::string& what) const {
  if (status != PMIX_SUCCESS)
    throw base::SetupError("the PMIx server " + what + ": " + api_.error_string(status));
}

pmix_proc_t Pmix::process(pmix_rank_t rank) const {
  pmix_proc_t process = self_;
  process.rank = rank;
  return process;
}

int Pmix::query_number(pmix_rank_t rank, const char* key) const {
  const pmix_proc_t about = process(rank);
  pmix_value_t* value = nullptr;
  if (api_.get(&about, key, nullptr, 0, &value) != PMIX_SUCCESS) return -1;
  const std::int64_t number = number_in(*value);
  // libpmix allocates results with malloc().
  std::free(value);
  return number >= 0 && number <= INT32_MAX ? static_cast<int>(number) : -1;
}

int Pmix::require_number(pmix_rank_t rank, const char* key, int min) const {
  const int number = query_number(rank, key);
  if (number < min)
    throw base::SetupError("the PMIx server of job " + std::string(self_.nspace) +
                           " does not say " + key + " of rank " + std::to_string(self_.rank));
  return number;
}

void Pmix::put(std::string_view key, std::string_view value) {
  check_key_value(key, value, kMaxPmixKey, kMaxPmixValue);
  std::string text(value);
  pmix_value_t stored;
  std::memset(&stored, 0, sizeof stored);
  stored.type = PMIX_STRING;
  stored.data.string = text.data();  // copied
  const std::string name(key);
  check(api_.put(PMIX_GLOBAL, name.c_str(), &stored), "does not store key '" + name + "'");
}

// PMIX_COLLECT_DATA: the fence distributes all values. Then get() finds them at the local server,
// and never waits for a process that has put nothing.
void Pmix::fence() {
  check(api_.commit(), "does not accept what this process has put");
  const pmix_info_t collect = switched_on(PMIX_COLLECT_DATA);
  const pmix_proc_t all = process(PMIX_RANK_WILDCARD);
  check(api_.fence(&all, 1, &collect, 1), "could not do a fence");
}

void Pmix::start_fence() {
  all_ = process(PMIX_RANK_WILDCARD);
  fence_status_ = kUnderWay;
  const pmix_status_t status = api_.start_fence(&all_, 1, nullptr, 0, fence_over, this);
  // PMIX_OPERATION_SUCCEEDED: it is over already, and fence_over() is not called.
  if (status == PMIX_OPERATION_SUCCEEDED) return fence_over(PMIX_SUCCESS, this);
  check(status, "could not begin a fence");
}

void Pmix::fence_over(pmix_status_t status, void* pmix) {
  static_cast<Pmix*>(pmix)->fence_status_ = status;
}

bool Pmix::fence_passed() {
  const pmix_status_t status = fence_status_;
  if (status == kUnderWay) return false;
  check(status, "could not do a fence");
  return true;
}

std::string Pmix::get(int rank, std::string_view key) {
  const std::string name(key);
  const pmix_proc_t owner = process(static_cast<pmix_rank_t>(rank));
  // PMIX_IMMEDIATE: do not wait for a value that has not been put.
  const pmix_info_t how[] = {switched_on(PMIX_IMMEDIATE), time_limit()};
  pmix_value_t* value = nullptr;
  check(api_.get(&owner, name.c_str(), how, std::size(how), &value),
        "has no '" + name + "' of rank " + std::to_string(rank));
  const bool text = value->type == PMIX_STRING && value->data.string != nullptr;
  std::string found = text ? value->data.string : "";
  if (text) std::free(value->data.string);
  std::free(value);
  if (!text)
    throw base::SetupError("the PMIx server has a '" + name + "' of rank " + std::to_string(rank) +
                           " that is not a text");
  return found;
}

void Pmix::finalize() {
  // The server takes a process that ends while others still need it for a failed one, so wait for
  // all.
  fence();
  check(api_.finalize(nullptr, 0), "did not let this process leave the job");
}

// PMIx_Abort waits for the server's answer, and the server may hang: a second thread ends the
// process after some seconds.
void Pmix::abort(int exit_code, std::string_view message) {
  const int status = exit_status(exit_code);
  try {
    std::thread([status] {
      std::this_thread::sleep_for(kAbortTimeout);
      _exit(status);
    }).detach();
    api_.abort(status, std::string(message).c_str(), nullptr, 0);
  } catch (...) {  // no memory, or no thread: the process just ends
  }
  _exit(status);
}

}  // namespace

std::unique_ptr<Launch> join_pmix() {
  return std::make_unique<Pmix>();
}

}  // namespace viaduct::mpi

#else

namespace viaduct::mpi {

std::unique_ptr<Launch> join_pmix() {
  throw base::SetupError(
      "a PMIx server started this process (PMIX_NAMESPACE is set) and this library was built "
      "without PMIx's headers; install them (Debian: apt-get install libpmix-dev) and build again, "
      "or start with mpiexec.hydra or srun --mpi=pmi2");
}

}  // namespace viaduct::mpi

#endif

namespace viaduct::mpi {

bool pmix_announced() {
  return std::getenv("PMIX_NAMESPACE") != nullptr;
}

}  // namespace viaduct::mpi
