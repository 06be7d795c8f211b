// The replaced functions, how they are put in place, and the ring in which they leave what they
// have seen. They run inside malloc(): they allocate nothing and take no lock.
#include "libmpi_lite/channel/vi/unmapped.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <utility>

extern "C" void* __curbrk;  // the C library's: the end of the heap as brk() and sbrk() know it

namespace viaduct::mpi {
namespace {

// ---- what was seen ---------------------------------------------------------------------------

constexpr std::size_t kRing = 256;

// A place of the ring. `turn` says who may use it: 2n, the writer of round n; 2n + 1, its reader.
struct Place {
  std::atomic<std::uint64_t> turn{0};
  AddressRange range;
};
std::array<Place, kRing> ring;
std::atomic<std::uint64_t> written{0};  // places taken by writers
std::uint64_t taken = 0;                // by the one reader
std::atomic<bool> overflow{false}, pending{false};
std::atomic<std::uintptr_t> interest_begin{0}, interest_end{0};

void note(std::uintptr_t begin, std::size_t bytes) {
  const AddressRange range{begin, begin + bytes};
  if (!range.overlaps({interest_begin.load(std::memory_order_relaxed),
                       interest_end.load(std::memory_order_relaxed)}))
    return;
  std::uint64_t at = written.load(std::memory_order_relaxed);
  for (;;) {
    Place& place = ring[at % kRing];
    if (place.turn.load(std::memory_order_acquire) != at / kRing * 2) {
      overflow.store(true, std::memory_order_relaxed);  // the ring is full
      break;
    }
    if (!written.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) continue;
    place.range = range;
    place.turn.store(at / kRing * 2 + 1, std::memory_order_release);
    break;
  }
  pending.store(true, std::memory_order_release);
}
void note(const void* begin, std::size_t bytes) {
  note(reinterpret_cast<std::uintptr_t>(begin), bytes);
}

// ---- the functions ---------------------------------------------------------------------------

int unmap(void* address, std::size_t bytes) {
  note(address, bytes);
  return static_cast<int>(::syscall(SYS_munmap, address, bytes));
}

void* map(void* address, std::size_t bytes, int protection, int flags, int fd, off_t offset) {
  if ((flags & MAP_FIXED) != 0) note(address, bytes);
  return reinterpret_cast<void*>(
      ::syscall(SYS_mmap, address, bytes, protection, flags, fd, offset));
}

// The last argument is there with MREMAP_FIXED only.
void* remap(void* address, std::size_t old_bytes, std::size_t bytes, int flags, ...) {
  void* to = nullptr;
  if ((flags & MREMAP_FIXED) != 0) {
    va_list list;
    va_start(list, flags);
    to = va_arg(list, void*);
    va_end(list);
    note(to, bytes);
  }
  note(address, old_bytes);
  return reinterpret_cast<void*>(::syscall(SYS_mremap, address, old_bytes, bytes, flags, to));
}

int advise(void* address, std::size_t bytes, int advice) {
  if (advice == MADV_DONTNEED || advice == MADV_REMOVE || advice == MADV_FREE) note(address, bytes);
  return static_cast<int>(::syscall(SYS_madvise, address, bytes, advice));
}

// The kernel answers with the end of the heap, whether or not that has changed.
int set_break(void* end) {
  const auto now = reinterpret_cast<std::uintptr_t>(__curbrk),
             wanted = reinterpret_cast<std::uintptr_t>(end);
  if (wanted < now) note(wanted, now - wanted);
  __curbrk = reinterpret_cast<void*>(::syscall(SYS_brk, end));
  if (reinterpret_cast<std::uintptr_t>(__curbrk) >= wanted) return 0;
  errno = ENOMEM;
  return -1;
}

// How long the segment is only the kernel knows.
int detach(const void* address) {
  note(address, ~reinterpret_cast<std::uintptr_t>(address));
  return static_cast<int>(::syscall(SYS_shmdt, address));
}

// ---- putting them in place -------------------------------------------------------------------

// jmp *(%rip), and behind it the address: changes no register.
constexpr std::size_t kJump = 14;
using Code = std::array<std::uint8_t, kJump>;

struct Replaced {
  const char* name;
  void* by;
  std::uint8_t* at = nullptr;
  Code original{};
};
std::array<Replaced, 6> replaced{{{"munmap", reinterpret_cast<void*>(&unmap)},
                                  {"mmap", reinterpret_cast<void*>(&map)},
                                  {"mremap", reinterpret_cast<void*>(&remap)},
                                  {"madvise", reinterpret_cast<void*>(&advise)},
                                  {"brk", reinterpret_cast<void*>(&set_break)},
                                  {"shmdt", reinterpret_cast<void*>(&detach)}}};

bool watching = false;  // a watch is open

Code jump_to(void* function) {
  Code code{0xff, 0x25, 0, 0, 0, 0};
  std::memcpy(code.data() + 6, &function, sizeof function);
  return code;
}

// By system calls, as mmap's neighbours may share the page.
bool write_code(std::uint8_t* at, const Code& code) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(at) & ~(page - 1);
  const std::size_t bytes = reinterpret_cast<std::uintptr_t>(at) + kJump - begin;
  if (::syscall(SYS_mprotect, begin, bytes, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return false;
  std::memcpy(at, code.data(), kJump);
  ::syscall(SYS_mprotect, begin, bytes, PROT_READ | PROT_EXEC);
  return true;
}

// Looks all functions up before the first is changed.
bool find_functions() {
  void* const library = ::dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return false;
  bool all = true;
  for (Replaced& r : replaced) {
    r.at = static_cast<std::uint8_t*>(::dlsym(library, r.name));
    Dl_info info{};
    void* entry = nullptr;
    all = all && r.at != nullptr && ::dladdr1(r.at, &info, &entry, RTLD_DL_SYMENT) != 0 &&
          entry != nullptr && static_cast<const ElfW(Sym)*>(entry)->st_size >= kJump;
  }
  ::dlclose(library);
  return all;
}

}  // namespace

UnmappedWatch::UnmappedWatch() {
  // The second one would take the first one's jumps for the originals.
  if (std::exchange(watching, true)) return;
  watching_ = true;
  if (!find_functions()) return;
  for (Replaced& r : replaced) {
    std::memcpy(r.original.data(), r.at, kJump);
    if (!write_code(r.at, jump_to(r.by))) return;  // the first one: then nothing is replaced
  }
  works_ = true;
}

UnmappedWatch::~UnmappedWatch() {
  if (!watching_) return;
  set_interest({});
  watching = false;
  if (!works_) return;
  for (const Replaced& r : replaced) write_code(r.at, r.original);
}

void UnmappedWatch::set_interest(const AddressRange& range) {
  interest_begin.store(range.begin, std::memory_order_relaxed);
  interest_end.store(range.end, std::memory_order_relaxed);
}

bool UnmappedWatch::any() {
  return pending.load(std::memory_order_relaxed);
}

std::span<const AddressRange> UnmappedWatch::take(std::span<AddressRange> room, bool& all) {
  pending.store(false, std::memory_order_relaxed);
  all = overflow.exchange(false, std::memory_order_relaxed);
  std::size_t count = 0;
  for (; count < room.size(); ++count, ++taken) {
    Place& place = ring[taken % kRing];
    if (place.turn.load(std::memory_order_acquire) != taken / kRing * 2 + 1) break;
    room[count] = place.range;
    place.turn.store((taken / kRing + 1) * 2, std::memory_order_release);
  }
  if (count == room.size()) pending.store(true, std::memory_order_relaxed);
  return room.first(count);
}

}  // namespace viaduct::mpi
