// Puts, gets and accumulates (MPI 5.0, section 12.3). The functions check arguments and call
// Window::start (rma/operations.cpp). The forms with int and with MPI_Count are the same functions.
//
// Choices where the standard leaves one: ranges are checked at the origin, before anything is sent,
// but for dynamic windows, where only the target knows what is attached: that error is reported by
// the next synchronization, or by the request. Data that does not fit the other side is
// MPI_ERR_TRUNCATE.
#include <algorithm>
#include <optional>

#include "libmpi_lite/api/arguments/arguments.hpp"
#include "libmpi_lite/api/counted.hpp"
#include "libmpi_lite/api/one_sided/window_argument.hpp"

using namespace viaduct::mpi;

namespace {

// Arguments that name memory of the target.
struct TargetArguments {
  int rank;
  MPI_Aint displacement;
  MPI_Count count;
  MPI_Datatype type;
};
// Arguments that name memory of the origin.
struct OriginArguments {
  const void* data;
  MPI_Count count;
  MPI_Datatype type;
};

// The range of bytes that `count` items take from the displacement on must be in the window.
void check_range(const Window& window, const TargetArguments& to, const Datatype& type,
                 MPI_Aint offset) {
  const MPI_Aint size = window.size_of(to.rank);
  // At once where nothing can overflow.
  MPI_Aint bytes;
  if (type.contiguous() && type.true_lb() == 0 && offset <= size &&
      !__builtin_mul_overflow(to.count, type.size(), &bytes) && bytes <= size - offset) [[likely]]
    return;
  if (window.flavor() == MPI_WIN_FLAVOR_DYNAMIC || to.count == 0 || type.size() == 0) return;
  const WideBytes others = WideBytes{to.count - 1} * type.extent();
  const WideBytes low = WideBytes{offset} + type.true_lb() + std::min<WideBytes>(others, 0);
  const WideBytes high = WideBytes{offset} + type.true_ub() + std::max<WideBytes>(others, 0);
  if (low < 0 || high > size)
    fail(MPI_ERR_RMA_RANGE,
         "%lld items at target_disp %lld are not within the %lld bytes of the window at rank %d",
         static_cast<long long>(to.count), static_cast<long long>(to.displacement),
         static_cast<long long>(size), to.rank);
}

// An operation on the target's memory, whose arguments are all checked. Not for MPI_PROC_NULL.
RmaOperation on_target(Window& window, RmaAction action, const TargetArguments& to, bool passive) {
  check_window_rank(window, to.rank, "target_rank");
  check_count(to.count, "target_count");
  Datatype& type = check_committed(to.type, "target_datatype");
  MPI_Aint offset;
  if (to.displacement < 0 ||
      __builtin_mul_overflow(to.displacement, window.unit_of(to.rank), &offset))
    fail(MPI_ERR_DISP, "argument target_disp is %lld", static_cast<long long>(to.displacement));
  check_range(window, to, type, offset);
  if (to.count > INT_MAX) check_length(to.count, type);
  window.check_epoch(to.rank, passive);
  return {action, to.rank, offset, Ref<Datatype>(&type), to.count * type.size()};
}

inline Items check_origin(const OriginArguments& from, const char* argument, int rank) {
  return check_items(from.data, from.count, from.type, argument, rank);
}

void check_fits(MPI_Count bytes, MPI_Count room, const char* what) {
  if (bytes > room)
    fail(MPI_ERR_TRUNCATE, "%lld bytes of data do not fit the %lld bytes of %s",
         static_cast<long long>(bytes), static_cast<long long>(room), what);
}

// ---- accumulates -------------------------------------------------------------------------------

bool is(const Op& op, MPI_Op constant) {
  return op.constant() == reinterpret_cast<std::uintptr_t>(constant);
}

// The predefined type of all elements.
const Datatype& check_elements(const Datatype& type, const char* argument) {
  const Datatype* const basic = type.only_predefined();
  if (!basic || basic->size() == 0)
    fail(MPI_ERR_TYPE, "argument %s is not made of one predefined datatype", argument);
  return *basic;
}

bool equivalent(const Datatype& a, const Datatype& b) {
  return a.constant() == b.constant() ||
         (a.elementary() == b.elementary() && a.size() == b.size() &&
          a.elementary() != Elementary::pair);
}

const Op& check_accumulate_op(MPI_Op handle, const Datatype& basic, bool fetches) {
  const Op& op = check_op(handle);
  if (!op.predefined())
    fail(MPI_ERR_OP, "argument op is user-defined; accumulates take predefined operations only");
  if (is(op, MPI_REPLACE) || (is(op, MPI_NO_OP) && fetches)) return op;
  if (is(op, MPI_NO_OP)) fail(MPI_ERR_OP, "argument op is MPI_NO_OP, which fetches nothing here");
  return check_op(handle, basic);
}

// Fills in what accumulates have besides; `from` is not looked at with MPI_NO_OP.
void add_origin(RmaOperation& operation, const OriginArguments& from, MPI_Op op, bool fetches) {
  const Datatype& basic = check_elements(*operation.target_type, "target_datatype");
  operation.basic = &basic;
  operation.op = &check_accumulate_op(op, basic, fetches);
  if (is(*operation.op, MPI_NO_OP)) return;
  operation.origin = check_origin(from, "origin_addr", operation.rank);
  if (from.count > 0 && operation.origin.type->size() > 0 &&
      !equivalent(check_elements(*operation.origin.type, "origin_datatype"), basic))
    fail(MPI_ERR_TYPE, "arguments origin_datatype and target_datatype have different elements");
  check_fits(operation.origin.bytes(), operation.total, "target_count and target_datatype");
  operation.total = operation.origin.bytes();
}

void add_result(RmaOperation& operation, const OriginArguments& into, const char* argument) {
  operation.result = check_origin(into, argument, operation.rank);
  check_fits(operation.total, operation.result.bytes(), argument);
}

// ---- starting ----------------------------------------------------------------------------------

// The argument `request` of MPI_Rput and its kin; nothing: the function has none.
using RequestArgument = std::optional<MPI_Request*>;

// `prepare(Window&)` checks the arguments and gives the operation. An operation on MPI_PROC_NULL is
// done at once.
template <class Prepare>
[[gnu::noinline]] void start_on(Window& w, int rank, const RequestArgument& request,
                                Prepare prepare) {
  Ref<RmaRequest> made;
  if (request) {
    check_pointer(*request, "request");
    made = make<RmaRequest>(w.comm());
  }
  if (rank == MPI_PROC_NULL) {
    if (made) made->finish();
  } else {
    RmaOperation operation = prepare(w);
    operation.request = made;
    if (operation.total > 0)
      w.start(std::move(operation));
    else if (made)
      made->finish();
  }
  if (made) **request = new_handle<MPI_Request>(request_handles, Ref<Request>(made.get()));
}

template <class Prepare>
int start(const char* function, MPI_Win win, int rank, RequestArgument request, Prepare prepare) {
  return call_on_window(function, win, [&](Window& w) { start_on(w, rank, request, prepare); });
}

// Most puts and gets within a node are of one block, of the same type here and there. false: it is
// another one, or one with a mistake, which start_on() finds.
bool copy_at_once(Window& window, RmaAction action, const OriginArguments& origin,
                  const TargetArguments& to) {
  if (origin.type != to.type || origin.count != to.count || to.rank < 0 ||
      to.rank >= window.comm()->size() || !origin.data || origin.data == MPI_IN_PLACE)
    return false;
  const Datatype* const type = datatype_handles.find(reinterpret_cast<std::uintptr_t>(to.type));
  MPI_Count bytes;
  if (!type || !type->committed() || !type->contiguous() || type->true_lb() != 0 ||
      __builtin_mul_overflow(to.count, type->size(), &bytes) || bytes <= 0)
    return false;
  auto* const mine = static_cast<std::byte*>(const_cast<void*>(origin.data));
  return window.copy_at_once(action, to.rank, to.displacement, mine, bytes);
}

int put_call(const char* function, const OriginArguments& from, const TargetArguments& to,
             MPI_Win win, RequestArgument request = {}) {
  return call_on_window(function, win, [&](Window& w) {
    if (!request && copy_at_once(w, RmaAction::put, from, to)) return;
    start_on(w, to.rank, request, [&](Window&) {
      RmaOperation operation = on_target(w, RmaAction::put, to, request.has_value());
      operation.origin = check_origin(from, "origin_addr", to.rank);
      check_fits(operation.origin.bytes(), operation.total, "target_count and target_datatype");
      operation.total = operation.origin.bytes();
      return operation;
    });
  });
}

int get_call(const char* function, const OriginArguments& into, const TargetArguments& to,
             MPI_Win win, RequestArgument request = {}) {
  return call_on_window(function, win, [&](Window& w) {
    if (!request && copy_at_once(w, RmaAction::get, into, to)) return;
    start_on(w, to.rank, request, [&](Window&) {
      RmaOperation operation = on_target(w, RmaAction::get, to, request.has_value());
      add_result(operation, into, "origin_addr");
      return operation;
    });
  });
}

int accumulate_call(const char* function, const OriginArguments& from, const TargetArguments& to,
                    MPI_Op op, MPI_Win win, RequestArgument request = {}) {
  return start(function, win, to.rank, request, [&](Window& w) {
    RmaOperation operation = on_target(w, RmaAction::accumulate, to, request.has_value());
    add_origin(operation, from, op, false);
    return operation;
  });
}

int get_accumulate_call(const char* function, const OriginArguments& from,
                        const OriginArguments& into, const TargetArguments& to, MPI_Op op,
                        MPI_Win win, RequestArgument request = {}) {
  return start(function, win, to.rank, request, [&](Window& w) {
    RmaOperation operation = on_target(w, RmaAction::get_accumulate, to, request.has_value());
    add_origin(operation, from, op, true);
    add_result(operation, into, "result_addr");
    return operation;
  });
}

const Datatype& check_predefined(MPI_Datatype type) {
  const Datatype& t = check_type(type);
  if (!t.predefined() || t.size() == 0)
    fail(MPI_ERR_TYPE, "argument datatype is not a predefined datatype with data");
  return t;
}

}  // namespace

VIADUCT_MPI_COUNTED(Put,
                    (const void* origin_addr, Count origin_count, MPI_Datatype origin_datatype,
                     int target_rank, MPI_Aint target_disp, Count target_count,
                     MPI_Datatype target_datatype, MPI_Win win),
                    put_call(function, {origin_addr, origin_count, origin_datatype},
                             {target_rank, target_disp, target_count, target_datatype}, win));
VIADUCT_MPI_COUNTED(Rput,
                    (const void* origin_addr, Count origin_count, MPI_Datatype origin_datatype,
                     int target_rank, MPI_Aint target_disp, Count target_count,
                     MPI_Datatype target_datatype, MPI_Win win, MPI_Request* request),
                    put_call(function, {origin_addr, origin_count, origin_datatype},
                             {target_rank, target_disp, target_count, target_datatype}, win,
                             request));
VIADUCT_MPI_COUNTED(Get,
                    (void* origin_addr, Count origin_count, MPI_Datatype origin_datatype,
                     int target_rank, MPI_Aint target_disp, Count target_count,
                     MPI_Datatype target_datatype, MPI_Win win),
                    get_call(function, {origin_addr, origin_count, origin_datatype},
                             {target_rank, target_disp, target_count, target_datatype}, win));
VIADUCT_MPI_COUNTED(Rget,
                    (void* origin_addr, Count origin_count, MPI_Datatype origin_datatype,
                     int target_rank, MPI_Aint target_disp, Count target_count,
                     MPI_Datatype target_datatype, MPI_Win win, MPI_Request* request),
                    get_call(function, {origin_addr, origin_count, origin_datatype},
                             {target_rank, target_disp, target_count, target_datatype}, win,
                             request));
VIADUCT_MPI_COUNTED(Accumulate,
                    (const void* origin_addr, Count origin_count, MPI_Datatype origin_datatype,
                     int target_rank, MPI_Aint target_disp, Count target_count,
                     MPI_Datatype target_datatype, MPI_Op op, MPI_Win win),
                    accumulate_call(function, {origin_addr, origin_count, origin_datatype},
                                    {target_rank, target_disp, target_count, target_datatype}, op,
                                    win));
VIADUCT_MPI_COUNTED(Raccumulate,
                    (const void* origin_addr, Count origin_count, MPI_Datatype origin_datatype,
                     int target_rank, MPI_Aint target_disp, Count target_count,
                     MPI_Datatype target_datatype, MPI_Op op, MPI_Win win, MPI_Request* request),
                    accumulate_call(function, {origin_addr, origin_count, origin_datatype},
                                    {target_rank, target_disp, target_count, target_datatype}, op,
                                    win, request));
VIADUCT_MPI_COUNTED(Get_accumulate,
                    (const void* origin_addr, Count origin_count, MPI_Datatype origin_datatype,
                     void* result_addr, Count result_count, MPI_Datatype result_datatype,
                     int target_rank, MPI_Aint target_disp, Count target_count,
                     MPI_Datatype target_datatype, MPI_Op op, MPI_Win win),
                    get_accumulate_call(function, {origin_addr, origin_count, origin_datatype},
                                        {result_addr, result_count, result_datatype},
                                        {target_rank, target_disp, target_count, target_datatype},
                                        op, win));
VIADUCT_MPI_COUNTED(Rget_accumulate,
                    (const void* origin_addr, Count origin_count, MPI_Datatype origin_datatype,
                     void* result_addr, Count result_count, MPI_Datatype result_datatype,
                     int target_rank, MPI_Aint target_disp, Count target_count,
                     MPI_Datatype target_datatype, MPI_Op op, MPI_Win win, MPI_Request* request),
                    get_accumulate_call(function, {origin_addr, origin_count, origin_datatype},
                                        {result_addr, result_count, result_datatype},
                                        {target_rank, target_disp, target_count, target_datatype},
                                        op, win, request));

int PMPI_Fetch_and_op(const void* origin_addr, void* result_addr, MPI_Datatype datatype,
                      int target_rank, MPI_Aint target_disp, MPI_Op op, MPI_Win win) {
  return start("MPI_Fetch_and_op", win, target_rank, {}, [&](Window& w) {
    check_predefined(datatype);
    RmaOperation operation =
        on_target(w, RmaAction::get_accumulate, {target_rank, target_disp, 1, datatype}, false);
    add_origin(operation, {origin_addr, 1, datatype}, op, true);
    add_result(operation, {result_addr, 1, datatype}, "result_addr");
    return operation;
  });
}
VIADUCT_MPI(Fetch_and_op);

int PMPI_Compare_and_swap(const void* origin_addr, const void* compare_addr, void* result_addr,
                          MPI_Datatype datatype, int target_rank, MPI_Aint target_disp,
                          MPI_Win win) {
  return start("MPI_Compare_and_swap", win, target_rank, {}, [&](Window& w) {
    const Datatype& type = check_predefined(datatype);
    const Elementary kind = type.elementary();
    if (!(kind >= Elementary::int8 && kind <= Elementary::int128) && kind != Elementary::logical &&
        kind != Elementary::byte)
      fail(MPI_ERR_TYPE, "argument datatype is %s, which is not an integer, logical or byte type",
           type.name.c_str());
    RmaOperation operation =
        on_target(w, RmaAction::compare_and_swap, {target_rank, target_disp, 1, datatype}, false);
    add_result(operation, {result_addr, 1, datatype}, "result_addr");
    operation.basic = &type;
    operation.expected_value =
        static_cast<const std::byte*>(check_pointer(compare_addr, "compare_addr"));
    operation.swap_value = static_cast<const std::byte*>(check_pointer(origin_addr, "origin_addr"));
    return operation;
  });
}
VIADUCT_MPI(Compare_and_swap);
