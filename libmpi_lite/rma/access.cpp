#include "libmpi_lite/rma/access.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace viaduct::mpi {
namespace {

// Calls visit(address, length) for each block of memory, in order.
template <class Visit>
void each_block(const WindowMemory& memory, const Region& region, Visit visit) {
  if (region.strips.empty()) return visit(memory.find(region.offset, region.length), region.length);
  for (const Strip& strip : region.strips) {
    std::byte* at = memory.find(region.offset + strip.displacement, strip.length);
    for (MPI_Count n = 0; n < strip.count; ++n, at += strip.stride) visit(at, strip.length);
  }
}

bool atomic_size(MPI_Count size) {
  return size == 1 || size == 2 || size == 4 || size == 8;
}

bool aligned(const std::byte* at, MPI_Count size) {
  return reinterpret_cast<std::uintptr_t>(at) % static_cast<std::uintptr_t>(size) == 0;
}

// Pairs with padding between or behind value and index: the packed form is shorter than the items.
bool padded(const Datatype& type) {
  return type.size() != type.extent();
}

std::uintptr_t op_constant(MPI_Op op) {
  return reinterpret_cast<std::uintptr_t>(op);
}

// ---- elements in memory that nobody else changes meanwhile -------------------------------------

void combine(const Combination& how, const std::byte* from, std::byte* at, MPI_Count bytes) {
  const std::uintptr_t op = how.op->constant();
  if (op == op_constant(MPI_NO_OP)) return;
  if (op == op_constant(MPI_REPLACE))
    std::memcpy(at, from, static_cast<std::size_t>(bytes));
  else
    how.op->apply(from, at, bytes / how.type->size(), how.type->constant());
}

// Operations need the items as they are in memory, so both sides are laid out with their padding.
void combine_padded(const Combination& how, const WindowMemory& memory, const Region& region,
                    const std::byte* from, std::byte* before) {
  const auto bytes = static_cast<std::size_t>(region.length);
  const MPI_Count count = region.length / how.type->size();
  std::vector<std::byte> packed(bytes);
  read(memory, region, packed.data());
  if (before) std::memcpy(before, packed.data(), bytes);
  if (how.fetches_only()) return;
  if (how.op->constant() == op_constant(MPI_REPLACE)) return write(memory, region, from);
  const auto items = static_cast<std::size_t>(count * how.type->extent());
  std::vector<std::byte> theirs(items), ours(items);
  how.type->unpack(theirs.data(), 0, {from, bytes});
  how.type->unpack(ours.data(), 0, packed);
  how.op->apply(theirs.data(), ours.data(), count, how.type->constant());
  how.type->pack(ours.data(), 0, packed);
  write(memory, region, packed.data());
}

// ---- elements in shared memory -----------------------------------------------------------------

// The elements of a block, each changed by one atomic instruction or a loop of compare-and-swap.
template <class Word>
void combine_atomically(const Combination& how, const std::byte* from, std::byte* at,
                        MPI_Count bytes, std::byte* before) {
  const std::uintptr_t op = how.op->constant();
  const Elementary kind = how.type->elementary();
  const bool integer = kind >= Elementary::int8 && kind <= Elementary::uint64;
  for (MPI_Count i = 0; i < bytes; i += static_cast<MPI_Count>(sizeof(Word))) {
    Word* const element = reinterpret_cast<Word*>(at + i);
    Word operand{}, old;
    if (op != op_constant(MPI_NO_OP)) std::memcpy(&operand, from + i, sizeof operand);
    if (op == op_constant(MPI_NO_OP)) {
      old = __atomic_load_n(element, __ATOMIC_SEQ_CST);
    } else if (op == op_constant(MPI_REPLACE)) {
      old = __atomic_exchange_n(element, operand, __ATOMIC_SEQ_CST);
    } else if (op == op_constant(MPI_SUM) && integer) {
      old = __atomic_fetch_add(element, operand, __ATOMIC_SEQ_CST);
    } else {
      old = __atomic_load_n(element, __ATOMIC_RELAXED);
      Word next;
      do {
        next = old;
        how.op->apply(&operand, &next, 1, how.type->constant());
      } while (!__atomic_compare_exchange_n(element, &old, next, false, __ATOMIC_SEQ_CST,
                                            __ATOMIC_RELAXED));
    }
    if (before) std::memcpy(before + i, &old, sizeof old);
  }
}

void combine_atomically(const Combination& how, const std::byte* from, std::byte* at,
                        MPI_Count bytes, std::byte* before) {
  switch (how.type->size()) {
    case 1: return combine_atomically<std::uint8_t>(how, from, at, bytes, before);
    case 2: return combine_atomically<std::uint16_t>(how, from, at, bytes, before);
    case 4: return combine_atomically<std::uint32_t>(how, from, at, bytes, before);
    default: return combine_atomically<std::uint64_t>(how, from, at, bytes, before);
  }
}

template <class Word>
void swap_atomically(std::byte* at, const std::byte* expected, const std::byte* next,
                     std::byte* before) {
  Word old, wanted;
  std::memcpy(&old, expected, sizeof old);
  std::memcpy(&wanted, next, sizeof wanted);
  __atomic_compare_exchange_n(reinterpret_cast<Word*>(at), &old, wanted, false, __ATOMIC_SEQ_CST,
                              __ATOMIC_SEQ_CST);
  std::memcpy(before, &old, sizeof old);
}

}  // namespace

// Only the first and the last block of a strip are looked at: a block that is attached to a dynamic
// window is one piece, and so are those of all others. In dynamic windows all blocks are looked at.
bool Region::inside(const WindowMemory& memory) const {
  if (strips.empty()) return memory.find(offset, length) != nullptr;
  MPI_Count sum = 0;
  for (const Strip& strip : strips) {
    MPI_Count bytes, last, first;
    if (strip.length <= 0 || strip.count <= 0 ||
        __builtin_mul_overflow(strip.length, strip.count, &bytes) ||
        __builtin_add_overflow(sum, bytes, &sum) ||
        __builtin_add_overflow(offset, strip.displacement, &first) ||
        __builtin_mul_overflow(strip.stride, strip.count - 1, &last) ||
        __builtin_add_overflow(first, last, &last) || !memory.find(first, strip.length) ||
        !memory.find(last, strip.length))
      return false;
    if (!memory.dynamic()) continue;
    for (MPI_Count n = 1; n + 1 < strip.count; ++n)
      if (!memory.find(first + n * strip.stride, strip.length)) return false;
  }
  return sum == length;
}

bool Combination::valid(const Region& region) const {
  const bool defined = op->constant() == op_constant(MPI_REPLACE) || fetches_only() ||
                       (op->predefined() && op->allows(*type));
  if (!defined || region.length % type->size() != 0) return false;
  // Blocks of padded pairs may be smaller than a pair; others have whole elements.
  return padded(*type) || std::ranges::all_of(region.strips, [&](const Strip& strip) {
           return strip.length % type->size() == 0;
         });
}

bool Combination::by_cpu_atomics(const WindowMemory& memory, const Region& region) const {
  const MPI_Count size = type->size();
  if (!atomic_size(size) || padded(*type)) return false;
  bool all = true;
  each_block(memory, region, [&](const std::byte* at, MPI_Count) { all &= aligned(at, size); });
  return all;
}

void write(const WindowMemory& memory, const Region& region, const std::byte* from) {
  each_block(memory, region, [&](std::byte* at, MPI_Count length) {
    if (length > 0) std::memmove(at, from, static_cast<std::size_t>(length));
    from += length;
  });
}

void read(const WindowMemory& memory, const Region& region, std::byte* into) {
  each_block(memory, region, [&](const std::byte* at, MPI_Count length) {
    if (length > 0) std::memmove(into, at, static_cast<std::size_t>(length));
    into += length;
  });
}

void accumulate(const WindowMemory& memory, const Region& region, const Combination& how,
                const std::byte* from, std::byte* before) {
  if (padded(*how.type)) return combine_padded(how, memory, region, from, before);
  const MPI_Count size = how.type->size();
  each_block(memory, region, [&](std::byte* at, MPI_Count length) {
    if (memory.shared() && atomic_size(size) && aligned(at, size)) {
      combine_atomically(how, from, at, length, before);
    } else {
      if (before) std::memcpy(before, at, static_cast<std::size_t>(length));
      combine(how, from, at, length);
    }
    if (from) from += length;
    if (before) before += length;
  });
}

void compare_and_swap(const WindowMemory& memory, const Region& region, const std::byte* expected,
                      const std::byte* next, std::byte* before) {
  std::byte* const at = memory.find(region.offset, region.length);
  const auto size = static_cast<std::size_t>(region.length);
  if (memory.shared() && atomic_size(region.length) && aligned(at, region.length)) {
    switch (size) {
      case 1: return swap_atomically<std::uint8_t>(at, expected, next, before);
      case 2: return swap_atomically<std::uint16_t>(at, expected, next, before);
      case 4: return swap_atomically<std::uint32_t>(at, expected, next, before);
      default: return swap_atomically<std::uint64_t>(at, expected, next, before);
    }
  }
  std::memcpy(before, at, size);
  if (std::memcmp(before, expected, size) == 0) std::memcpy(at, next, size);
}

}  // namespace viaduct::mpi
