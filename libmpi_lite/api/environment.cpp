// Starting, ending, asking (MPI 5.0, chapters 9 and 11). MPI_Init and MPI_Finalize themselves are
// in runtime/process.cpp.
//
// Choices where the standard leaves one: MPI_Init does not look at argc and argv. MPI_Abort ends
// the whole job whatever its communicator is. MPI_Wtime is CLOCK_MONOTONIC, not synchronised
// between hosts (MPI_WTIME_IS_GLOBAL is false). MPI_Alloc_mem is ordinary memory, aligned to cache
// lines: the channels need no special memory.
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "libmpi_lite/api/arguments/arguments.hpp"

using namespace viaduct::mpi;

namespace {

// Any of the four levels may be asked for; Process::init() provides what it can.
void check_level(int level) {
  for (const int known :
       {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE})
    if (level == known) return;
  fail(MPI_ERR_ARG, "argument required is %d; it must be one of MPI_THREAD_*", level);
}

// MPI_Init is MPI_Init_thread with MPI_THREAD_SINGLE. A second call is an error, after MPI_Finalize
// too.
void init(const char* function, int thread_level) {
  check_level(thread_level);
  if (Process::self().initialized() || Process::phase() == Process::Phase::finalized)
    fail(MPI_ERR_OTHER, "MPI can be initialized only once in a process; %s came too late",
         function);
  Process::self().init(thread_level);
}

double seconds(const timespec& t) {
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Alignment in bytes: what the info key mpi_minimum_memory_alignment asks for (section 9.2), at
// least 64, a cache line. Values above 2^40 are refused.
std::size_t alignment(const Info* info) {
  std::size_t most = 64;
  if (!info) return most;
  for (const auto& [key, value] : info->entries) {
    if (key != "mpi_minimum_memory_alignment") continue;
    char* end = nullptr;
    const unsigned long long asked = std::strtoull(value.c_str(), &end, 10);
    if (*end != 0 || asked == 0 || (asked & (asked - 1)) != 0 || asked > (1ull << 40))
      fail(MPI_ERR_INFO_VALUE, "mpi_minimum_memory_alignment is %s; it must be a power of two",
           value.c_str());
    most = std::max(most, static_cast<std::size_t>(asked));
  }
  return most;
}

}  // namespace

int PMPI_Init(int*, char***) {
  return call_any_time("MPI_Init", [] { init("MPI_Init", MPI_THREAD_SINGLE); });
}
VIADUCT_MPI(Init);

int PMPI_Init_thread(int*, char***, int required, int* provided) {
  return call_any_time("MPI_Init_thread", [&] {
    check_pointer(provided, "provided");
    init("MPI_Init_thread", required);
    *provided = Process::self().thread_level();
  });
}
VIADUCT_MPI(Init_thread);

// Stays true after MPI_Finalize, as the standard has it.
int PMPI_Initialized(int* flag) {
  return call_any_time("MPI_Initialized",
                       [&] { *check_pointer(flag, "flag") = Process::self().initialized(); });
}
VIADUCT_MPI(Initialized);

int PMPI_Finalized(int* flag) {
  return call_any_time("MPI_Finalized",
                       [&] { *check_pointer(flag, "flag") = Process::self().finalized(); });
}
VIADUCT_MPI(Finalized);

int PMPI_Finalize() {
  return call("MPI_Finalize", [] {
    if (!Process::self().initialized() || Process::self().finalized())
      fail(MPI_ERR_OTHER, "MPI_Finalize was called without MPI_Init, or twice");
    Process::self().finalize();
  });
}
VIADUCT_MPI(Finalize);

// Ends the whole job whatever the communicator is, as section 9.7 allows. An invalid communicator
// does not keep it from doing so.
int PMPI_Abort(MPI_Comm comm, int errorcode) {
  return call_any_time("MPI_Abort", [&] {
    check_running("MPI_Abort");
    const Comm* c = comm_handles.find(reinterpret_cast<std::uintptr_t>(comm));
    Process::self().abort(errorcode,
                          "MPI_Abort" + (c && !c->name.empty() ? " on " + c->name : std::string()) +
                              ", rank " + std::to_string(Process::self().rank()) + ": error code " +
                              std::to_string(errorcode));
  });
}
VIADUCT_MPI(Abort);

int PMPI_Query_thread(int* provided) {
  return call("MPI_Query_thread",
              [&] { *check_pointer(provided, "provided") = Process::self().thread_level(); });
}
VIADUCT_MPI(Query_thread);

int PMPI_Is_thread_main(int* flag) {
  return call("MPI_Is_thread_main",
              [&] { *check_pointer(flag, "flag") = Process::self().main_thread(); });
}
VIADUCT_MPI(Is_thread_main);

int PMPI_Get_version(int* version, int* subversion) {
  return call_any_time("MPI_Get_version", [&] {
    *check_pointer(version, "version") = MPI_VERSION;
    *check_pointer(subversion, "subversion") = MPI_SUBVERSION;
  });
}
VIADUCT_MPI(Get_version);

int PMPI_Get_library_version(char* version, int* resultlen) {
  return call_any_time("MPI_Get_library_version", [&] {
    copy_string("Viaduct libmpi_lite, MPI " + std::to_string(MPI_VERSION) + "." +
                    std::to_string(MPI_SUBVERSION) + ", ABI " + std::to_string(MPI_ABI_VERSION) +
                    "." + std::to_string(MPI_ABI_SUBVERSION),
                version, resultlen);
  });
}
VIADUCT_MPI(Get_library_version);

int PMPI_Abi_get_version(int* abi_major, int* abi_minor) {
  return call_any_time("MPI_Abi_get_version", [&] {
    *check_pointer(abi_major, "abi_major") = MPI_ABI_VERSION;
    *check_pointer(abi_minor, "abi_minor") = MPI_ABI_SUBVERSION;
  });
}
VIADUCT_MPI(Abi_get_version);

// The host's name. Emulated hosts on one machine (network namespaces) therefore have the same.
int PMPI_Get_processor_name(char* name, int* resultlen) {
  return call("MPI_Get_processor_name", [&] {
    char host[MPI_MAX_PROCESSOR_NAME] = "";
    if (::gethostname(host, sizeof host - 1) != 0)
      fail(MPI_ERR_OTHER, "the name of this host is not known: %s", std::strerror(errno));
    copy_string(host, name, resultlen);
  });
}
VIADUCT_MPI(Get_processor_name);

double PMPI_Wtime() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return seconds(now);
}
VIADUCT_MPI(Wtime);

double PMPI_Wtick() {
  timespec tick;
  ::clock_getres(CLOCK_MONOTONIC, &tick);
  return seconds(tick);
}
VIADUCT_MPI(Wtick);

// Does nothing, as the standard allows. Profiling libraries define their own.
int PMPI_Pcontrol(const int, ...) {
  return MPI_SUCCESS;
}
VIADUCT_MPI(Pcontrol);

int PMPI_Alloc_mem(MPI_Aint size, MPI_Info info, void* baseptr) {
  return call("MPI_Alloc_mem", [&] {
    check_pointer(baseptr, "baseptr");
    if (size < 0)
      fail(MPI_ERR_ARG, "argument size is %lld; it must not be negative",
           static_cast<long long>(size));
    const std::size_t align = alignment(check_hints(info));
    void* memory = nullptr;
    // posix_memalign() of 0 bytes may give a null pointer, which a program would take for a
    // failure.
    if (::posix_memalign(&memory, align, std::max<std::size_t>(static_cast<std::size_t>(size), 1)))
      fail(MPI_ERR_NO_MEM, "there are no %lld bytes of memory", static_cast<long long>(size));
    *static_cast<void**>(baseptr) = memory;
  });
}
VIADUCT_MPI(Alloc_mem);

// free() takes any pointer of MPI_Alloc_mem, and a null pointer.
int PMPI_Free_mem(void* base) {
  return call("MPI_Free_mem", [&] { std::free(base); });
}
VIADUCT_MPI(Free_mem);
