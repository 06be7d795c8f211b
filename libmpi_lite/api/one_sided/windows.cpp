// Windows: how they are made and freed, and what they tell of themselves (MPI 5.0, sections 12.2
// and 7.8). Attributes are in attributes.cpp, error handlers in errhandlers.cpp.
//
// Choices where the standard leaves one: the memory model is MPI_WIN_UNIFIED always. Hints make no
// difference but alloc_shared_noncontig; those that the standard knows are remembered and told.
// MPI_Win_shared_query tells the memory of any window that this process can reach, size 0 for other
// ranks, and is an error for dynamic windows.
#include <algorithm>
#include <array>
#include <string_view>

#include "libmpi_lite/api/arguments/arguments.hpp"
#include "libmpi_lite/api/counted.hpp"
#include "libmpi_lite/api/one_sided/window_argument.hpp"
#include "libmpi_lite/core/keyval.hpp"

using namespace viaduct::mpi;

namespace {

// ---- hints -------------------------------------------------------------------------------------

struct Hint {
  std::string_view key, value;  // unless the program says otherwise
};
constexpr std::array kHints = {
    Hint{"no_locks", "false"},
    Hint{"accumulate_ordering", "rar,raw,war,waw"},
    Hint{"accumulate_ops", "same_op_no_op"},
    Hint{"mpi_accumulate_granularity", "0"},
    Hint{"same_size", "false"},
    Hint{"same_disp_unit", "false"},
};
constexpr Hint kNoncontiguous{"alloc_shared_noncontig", "false"};  // of shared memory only

const std::string* find(const Info* info, std::string_view key) {
  if (!info) return nullptr;
  const auto at = std::ranges::find(info->entries, key,
                                    [](const auto& e) -> std::string_view { return e.first; });
  return at == info->entries.end() ? nullptr : &at->second;
}

void store_hint(Window& window, const Info* hints, const Hint& known) {
  const std::string* const value = find(hints, known.key);
  if (!value) return;
  auto& taken = window.info->entries;
  std::erase_if(taken, [&](const auto& old) { return old.first == known.key; });
  taken.emplace_back(known.key, *value);
}

// ---- creation ----------------------------------------------------------------------------------

void check_part(MPI_Aint size, MPI_Aint unit) {
  if (size < 0)
    fail(MPI_ERR_SIZE, "argument size is %lld; it must not be negative",
         static_cast<long long>(size));
  if (unit <= 0)
    fail(MPI_ERR_DISP, "argument disp_unit is %lld; it must be positive",
         static_cast<long long>(unit));
}

// `baseptr`: gets the address of the memory that is allocated; nullptr: none is.
int create(const char* function, const WindowSpec& spec, MPI_Info info, MPI_Comm comm,
           void* baseptr, MPI_Win* win) {
  if (win) *win = MPI_WIN_NULL;
  return call(function, comm, [&](Comm& c) {
    check_pointer(win, "win");
    if (c.inter()) fail(MPI_ERR_COMM, "argument comm is an intercommunicator");
    check_part(spec.size, spec.unit);
    const bool allocates =
        spec.flavor == MPI_WIN_FLAVOR_ALLOCATE || spec.flavor == MPI_WIN_FLAVOR_SHARED;
    if (allocates) check_pointer(baseptr, "baseptr");
    if (spec.flavor == MPI_WIN_FLAVOR_CREATE && spec.size > 0) check_pointer(spec.base, "base");
    const Info* const hints = check_hints(info);
    WindowSpec with_hints = spec;
    const std::string* const pages = find(hints, kNoncontiguous.key);
    with_hints.noncontiguous = pages && *pages == "true";
    Ref<Window> made = Window::create(c, with_hints);
    for (const Hint& hint : kHints) store_hint(*made, hints, hint);
    if (spec.flavor == MPI_WIN_FLAVOR_SHARED) store_hint(*made, hints, kNoncontiguous);
    if (allocates) *static_cast<void**>(baseptr) = made->memory().base();
    Window& w = *made;
    *win = w.handle = new_handle<MPI_Win>(win_handles, std::move(made));
    w.comm()->handle = reinterpret_cast<MPI_Comm>(w.handle);  // for error handlers: Window::comm()
  });
}

Window& check_dynamic(Window& window) {
  if (window.flavor() != MPI_WIN_FLAVOR_DYNAMIC)
    fail(MPI_ERR_RMA_FLAVOR, "argument win was not made by MPI_Win_create_dynamic");
  return window;
}

// MPI_PROC_NULL asks for the lowest rank that has memory.
int queried_rank(const Window& window, int rank) {
  if (rank != MPI_PROC_NULL) return check_window_rank(window, rank);
  for (int r = 0; r < window.comm()->size(); ++r)
    if (window.size_of(r) > 0) return r;
  return 0;
}

template <class Unit>
int shared_query(const char* function, MPI_Win win, int rank, MPI_Aint* size, Unit* disp_unit,
                 void* baseptr) {
  return call_on_window(function, win, [&](Window& w) {
    check_pointer(size, "size");
    check_pointer(disp_unit, "disp_unit");
    check_pointer(baseptr, "baseptr");
    if (w.flavor() == MPI_WIN_FLAVOR_DYNAMIC)
      fail(MPI_ERR_RMA_FLAVOR, "argument win is a dynamic window, which has no shared memory");
    const int r = queried_rank(w, rank);
    const WindowMemory* const memory = w.reachable(r);
    *size = memory ? memory->size() : 0;
    *disp_unit = static_cast<Unit>(w.unit_of(r));
    *static_cast<void**>(baseptr) = memory && memory->size() > 0 ? memory->base() : nullptr;
  });
}

}  // namespace

VIADUCT_MPI_COUNTED(Win_create,
                    (void* base, MPI_Aint size, Disp disp_unit, MPI_Info info, MPI_Comm comm,
                     MPI_Win* win),
                    create(function, {MPI_WIN_FLAVOR_CREATE, base, size, disp_unit}, info, comm,
                           nullptr, win));
VIADUCT_MPI_COUNTED(Win_allocate,
                    (MPI_Aint size, Disp disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr,
                     MPI_Win* win),
                    create(function, {MPI_WIN_FLAVOR_ALLOCATE, nullptr, size, disp_unit}, info,
                           comm, baseptr, win));
VIADUCT_MPI_COUNTED(Win_allocate_shared,
                    (MPI_Aint size, Disp disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr,
                     MPI_Win* win),
                    create(function, {MPI_WIN_FLAVOR_SHARED, nullptr, size, disp_unit}, info, comm,
                           baseptr, win));
VIADUCT_MPI_COUNTED(Win_shared_query,
                    (MPI_Win win, int rank, MPI_Aint* size, Disp* disp_unit, void* baseptr),
                    shared_query(function, win, rank, size, disp_unit, baseptr));

int PMPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  return create("MPI_Win_create_dynamic", {MPI_WIN_FLAVOR_DYNAMIC}, info, comm, nullptr, win);
}
VIADUCT_MPI(Win_create_dynamic);

int PMPI_Win_attach(MPI_Win win, void* base, MPI_Aint size) {
  return call_on_window("MPI_Win_attach", win, [&](Window& w) {
    check_dynamic(w);
    if (size < 0)
      fail(MPI_ERR_SIZE, "argument size is %lld; it must not be negative",
           static_cast<long long>(size));
    if (size > 0) check_pointer(base, "base");
    if (!w.memory().attach(base, size))
      fail(MPI_ERR_RMA_ATTACH, "%lld bytes at %p overlap with memory that is attached already",
           static_cast<long long>(size), base);
  });
}
VIADUCT_MPI(Win_attach);

int PMPI_Win_detach(MPI_Win win, const void* base) {
  return call_on_window("MPI_Win_detach", win, [&](Window& w) {
    if (!check_dynamic(w).memory().detach(base))
      fail(MPI_ERR_BASE, "argument base (%p) is not where attached memory begins", base);
  });
}
VIADUCT_MPI(Win_detach);

// A window whose processes do not all reach the barrier is gone here nevertheless.
int PMPI_Win_free(MPI_Win* win) {
  return call_on_window("MPI_Win_free", win ? *win : MPI_WIN_NULL, [&](Window& w) {
    if (!w.closed()) fail(MPI_ERR_RMA_SYNC, "argument win has an epoch that has not ended");
    win_keyvals.delete_all(w.attributes, *win);
    win_handles.remove(reinterpret_cast<std::uintptr_t>(*win));
    *win = MPI_WIN_NULL;
    w.free();
  });
}
VIADUCT_MPI(Win_free);

// ---- what it is --------------------------------------------------------------------------------

int PMPI_Win_get_group(MPI_Win win, MPI_Group* group) {
  return call_on_window("MPI_Win_get_group", win, [&](Window& w) {
    check_pointer(group, "group");
    *group = new_group_handle(w.comm()->group());
  });
}
VIADUCT_MPI(Win_get_group);

int PMPI_Win_set_info(MPI_Win win, MPI_Info info) {
  return call_on_window("MPI_Win_set_info", win, [&](Window& w) {
    const Info& hints = check_info(info);
    for (const Hint& hint : kHints) store_hint(w, &hints, hint);
  });
}
VIADUCT_MPI(Win_set_info);

int PMPI_Win_get_info(MPI_Win win, MPI_Info* info_used) {
  return call_on_window("MPI_Win_get_info", win, [&](Window& w) {
    check_pointer(info_used, "info_used");
    Ref<Info> copy = make<Info>();
    const auto tell = [&](const Hint& hint) {
      const std::string* const set = find(w.info.get(), hint.key);
      copy->entries.emplace_back(hint.key, set ? *set : std::string(hint.value));
    };
    std::ranges::for_each(kHints, tell);
    if (w.flavor() == MPI_WIN_FLAVOR_SHARED) tell(kNoncontiguous);
    *info_used = new_handle<MPI_Info>(info_handles, std::move(copy));
  });
}
VIADUCT_MPI(Win_get_info);

int PMPI_Win_set_name(MPI_Win win, const char* win_name) {
  return call_on_window("MPI_Win_set_name", win, [&](Window& w) {
    w.name = checked_name(win_name, "win_name");
    w.comm()->name = w.name.empty() ? "a window" : w.name;
  });
}
VIADUCT_MPI(Win_set_name);

// The null handle has a name, too.
int PMPI_Win_get_name(MPI_Win win, char* win_name, int* resultlen) {
  if (win == MPI_WIN_NULL)
    return call("MPI_Win_get_name", [&] { copy_string("MPI_WIN_NULL", win_name, resultlen); });
  return call_on_window("MPI_Win_get_name", win,
                        [&](Window& w) { copy_string(w.name, win_name, resultlen); });
}
VIADUCT_MPI(Win_get_name);
