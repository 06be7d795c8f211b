// Sessions (MPI 5.0, section 11.3): process sets, groups of their processes, and communicators that
// are made without a communicator (section 7.4.2).
//
// Choices where the standard leaves one: there are two process sets, those that every MPI has. The
// first session of a process, or MPI_Init, waits until all processes of the job have come as far; a
// process that has used sessions only stays in the job until it exits. After MPI_Finalize, and the
// end of the sessions that were open then, no session begins any more.
#include <strings.h>

#include <algorithm>
#include <numeric>

#include "libmpi_lite/api/arguments/arguments.hpp"
#include "libmpi_lite/api/arguments/hints.hpp"
#include "libmpi_lite/api/messages/attached.hpp"
#include "libmpi_lite/collective/construction.hpp"
#include "libmpi_lite/core/errors.hpp"
#include "libmpi_lite/core/predefined.hpp"

using namespace viaduct::mpi;

namespace {

// ---- errors ------------------------------------------------------------------------------------

// Hands an error to an error handler that is no communicator's. `handle`: of the session; it may be
// null.
int raise_to(const char* function, const Ref<Errhandler>& handler, MPI_Session handle, int code,
             const char* what) {
  const Errhandler::Kind kind = handler ? handler->kind : Errhandler::Kind::fatal;
  if (kind == Errhandler::Kind::user) {
    int given = code;
    const LibraryLock::Unlocked others_turn;
    reinterpret_cast<MPI_Session_errhandler_function*>(handler->function)(&handle, &given);
  } else if (kind != Errhandler::Kind::give_back) {
    Process::self().abort(code,
                          std::string(function) + ": " + what + " (" + error_name(code) + ")");
  }
  return code;
}

// call() for errors that go to `handler`, whose value counts when the error comes.
template <class Body>
int call_with(const char* function, const Ref<Errhandler>& handler, const MPI_Session& handle,
              Body body) {
  try {
    body();
    return MPI_SUCCESS;
  } catch (const Error& e) {
    return raise_to(function, Ref(handler), handle, e.code(), e.what());
  } catch (const std::exception& e) {
    return raise_to(function, Ref(handler), handle, MPI_ERR_OTHER, e.what());
  }
}

// A call on a session: `body(Session&)`. An unknown handle is an error without a communicator.
template <class Body>
int call_on(const char* function, MPI_Session handle, Body body) {
  const LockedEntry entry;
  Ref<Session> session;
  const int found = call(function, [&] {
    session = Ref<Session>(session_handles.find(reinterpret_cast<std::uintptr_t>(handle)));
    if (!session)
      fail(MPI_ERR_SESSION, "argument session (%p) is not a session", static_cast<void*>(handle));
  });
  if (!session) return found;
  return call_with(function, session->errhandler, handle, [&] { body(*session); });
}

// ---- process sets ------------------------------------------------------------------------------

constexpr const char* kSets[] = {"mpi://WORLD", "mpi://SELF"};

// Names are URIs, in which upper and lower case are the same.
Ref<Group> group_of_set(Session& session, const char* name) {
  check_pointer(name, "pset_name");
  const Process& process = Process::self();
  std::vector<int> ranks;
  if (::strcasecmp(name, kSets[0]) == 0) {
    ranks.resize(static_cast<std::size_t>(process.size()));
    std::iota(ranks.begin(), ranks.end(), 0);
  } else if (::strcasecmp(name, kSets[1]) == 0) {
    ranks = {process.rank()};
  } else {
    fail(MPI_ERR_ARG, "argument pset_name is \"%s\"; the process sets are %s and %s", name,
         kSets[0], kSets[1]);
  }
  return make<Group>(std::move(ranks), process.rank(), Ref(&session));
}

MPI_Info new_info(const char* key, std::string value) {
  Ref<Info> info = make<Info>();
  info->entries.emplace_back(key, std::move(value));
  return new_handle<MPI_Info>(info_handles, std::move(info));
}

struct Level {
  const char* name;
  int level;
};
constexpr Level kLevels[] = {{"MPI_THREAD_SINGLE", MPI_THREAD_SINGLE},
                             {"MPI_THREAD_FUNNELED", MPI_THREAD_FUNNELED},
                             {"MPI_THREAD_SERIALIZED", MPI_THREAD_SERIALIZED},
                             {"MPI_THREAD_MULTIPLE", MPI_THREAD_MULTIPLE}};
constexpr const char* kThreadLevel = "thread_level";

// The thread level that the hints ask for. Other values are ignored, as the standard demands.
int level_of(const Info* hints) {
  if (hints)
    for (const auto& [key, value] : hints->entries)
      for (const Level& level : kLevels)
        if (key == kThreadLevel && value == level.name) return level.level;
  return MPI_THREAD_SINGLE;
}

// ---- communicators -----------------------------------------------------------------------------

// Calls under way at the same time are told apart by their string tags, as messages are by numbers.
int tag_of(const char* stringtag) {
  check_pointer(stringtag, "stringtag");
  const std::string_view text = stringtag;
  if (text.size() >= MPI_MAX_STRINGTAG_LEN)
    fail(MPI_ERR_ARG, "argument stringtag has %zu characters, more than MPI_MAX_STRINGTAG_LEN - 1",
         text.size());
  return static_cast<int>(std::hash<std::string_view>()(text) & INT_MAX);
}

// A group that this process is in, or an empty one.
Ref<Group> check_own_group(MPI_Group group, const char* argument) {
  Group& g = check_group(group, argument);
  if (g.size() > 0 && g.rank() == MPI_UNDEFINED)
    fail(MPI_ERR_GROUP, "argument %s does not contain this process", argument);
  return Ref<Group>(&g);
}

// The functions that make a communicator have no communicator to give an error to, but a handler.
template <class Body>
int create_with(const char* function, MPI_Errhandler errhandler, MPI_Comm* made, Body body) {
  const LockedEntry entry;
  if (made) *made = MPI_COMM_NULL;
  Ref<Errhandler> handler;
  const int checked = call(function, [&] {
    check_pointer(made, "newcomm");
    handler = Ref<Errhandler>(&check_errhandler(errhandler));
  });
  if (checked != MPI_SUCCESS) return checked;
  return call_with(function, handler, MPI_SESSION_NULL, [&] {
    Ref<Comm> comm = body();
    if (comm) comm->errhandler = handler;
    *made = new_comm_handle(std::move(comm));
  });
}

Ref<Comm> create_from(const Ref<Group>& group, int tag) {
  return group->size() == 0 ? nullptr : create_from_group(Process::self().world(), group, tag);
}

}  // namespace

// ---- beginning and end -------------------------------------------------------------------------

int PMPI_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session) {
  constexpr auto kName = "MPI_Session_init";
  const LockedEntry entry;
  define_errhandlers();
  if (session) *session = MPI_SESSION_NULL;
  Ref<Errhandler> handler;
  const int checked =
      call_any_time(kName, [&] { handler = Ref<Errhandler>(&check_errhandler(errhandler)); });
  if (checked != MPI_SUCCESS) return checked;
  return call_with(kName, handler, MPI_SESSION_NULL, [&] {
    check_pointer(session, "session");
    const int level = level_of(check_hints(info));
    if (Process::phase() == Process::Phase::finalized)
      fail(MPI_ERR_OTHER,
           "this process has left the job by MPI_Finalize, and no session can begin");
    Process::self().begin_session(level);
    *session = new_handle<MPI_Session>(session_handles, make<Session>(handler));
  });
}
VIADUCT_MPI(Session_init);

int PMPI_Session_finalize(MPI_Session* session) {
  return call_on("MPI_Session_finalize", session ? *session : MPI_SESSION_NULL, [&](Session& s) {
    flush_buffer(s.buffer);
    s.buffer = nullptr;
    session_handles.remove(reinterpret_cast<std::uintptr_t>(*session));
    *session = MPI_SESSION_NULL;
    Process::self().end_session();
  });
}
VIADUCT_MPI(Session_finalize);

int PMPI_Session_get_info(MPI_Session session, MPI_Info* info_used) {
  return call_on("MPI_Session_get_info", session, [&](Session&) {
    check_pointer(info_used, "info_used");
    const int provided = Process::self().thread_level();
    const Level* const level = std::ranges::find(kLevels, provided, &Level::level);
    *info_used = new_info(kThreadLevel, level->name);
  });
}
VIADUCT_MPI(Session_get_info);

// ---- process sets ------------------------------------------------------------------------------

int PMPI_Session_get_num_psets(MPI_Session session, MPI_Info info, int* npset_names) {
  return call_on("MPI_Session_get_num_psets", session, [&](Session&) {
    check_hints(info);
    *check_pointer(npset_names, "npset_names") = static_cast<int>(std::size(kSets));
  });
}
VIADUCT_MPI(Session_get_num_psets);

// `*pset_len` counts the final zero: room on the way in, what would be needed on the way out. 0
// asks for the length only, and then `pset_name` is not used.
int PMPI_Session_get_nth_pset(MPI_Session session, MPI_Info info, int n, int* pset_len,
                              char* pset_name) {
  return call_on("MPI_Session_get_nth_pset", session, [&](Session&) {
    check_hints(info);
    if (n < 0 || static_cast<std::size_t>(n) >= std::size(kSets))
      fail(MPI_ERR_ARG, "argument n is %d; there are %zu process sets", n, std::size(kSets));
    if (*check_pointer(pset_len, "pset_len") < 0)
      fail(MPI_ERR_ARG, "argument pset_len is %d; it must not be negative", *pset_len);
    const std::string_view name = kSets[n];
    if (*pset_len > 0) {
      const std::size_t copied = std::min(name.size(), static_cast<std::size_t>(*pset_len) - 1);
      name.copy(check_pointer(pset_name, "pset_name"), copied);
      pset_name[copied] = 0;
    }
    *pset_len = static_cast<int>(name.size()) + 1;
  });
}
VIADUCT_MPI(Session_get_nth_pset);

int PMPI_Session_get_pset_info(MPI_Session session, const char* pset_name, MPI_Info* info) {
  return call_on("MPI_Session_get_pset_info", session, [&](Session& s) {
    check_pointer(info, "info");
    *info = new_info("mpi_size", std::to_string(group_of_set(s, pset_name)->size()));
  });
}
VIADUCT_MPI(Session_get_pset_info);

int PMPI_Group_from_session_pset(MPI_Session session, const char* pset_name, MPI_Group* newgroup) {
  return call_on("MPI_Group_from_session_pset", session, [&](Session& s) {
    check_pointer(newgroup, "newgroup");
    *newgroup = new_group_handle(group_of_set(s, pset_name));
  });
}
VIADUCT_MPI(Group_from_session_pset);

// ---- communicators -----------------------------------------------------------------------------

int PMPI_Comm_create_from_group(MPI_Group group, const char* stringtag, MPI_Info info,
                                MPI_Errhandler errhandler, MPI_Comm* newcomm) {
  return create_with("MPI_Comm_create_from_group", errhandler, newcomm, [&] {
    const Ref<Group> members = check_own_group(group, "group");
    const int tag = tag_of(stringtag);
    const Info* const hints = check_hints(info);
    Ref<Comm> made = create_from(members, tag);
    if (made && hints) store_hints(*made, *hints);
    return made;
  });
}
VIADUCT_MPI(Comm_create_from_group);

// The leaders talk to each other in MPI_COMM_WORLD, whose ranks are the processes.
int PMPI_Intercomm_create_from_groups(MPI_Group local_group, int local_leader,
                                      MPI_Group remote_group, int remote_leader,
                                      const char* stringtag, MPI_Info info,
                                      MPI_Errhandler errhandler, MPI_Comm* newintercomm) {
  return create_with("MPI_Intercomm_create_from_groups", errhandler, newintercomm, [&] {
    const Ref<Group> members = check_own_group(local_group, "local_group");
    const int tag = tag_of(stringtag);
    check_hints(info);
    if (members->size() == 0) return Ref<Comm>();
    check_rank(local_leader, members->size(), "local_leader");
    int other = MPI_PROC_NULL;  // significant at the leader only
    if (members->rank() == local_leader) {
      const Group& others = check_group(remote_group, "remote_group");
      other = others.world_rank(check_rank(remote_leader, others.size(), "remote_leader"));
    }
    const Ref<Comm> local = create_from(members, tag);
    return create_intercomm(*local, local_leader, &Process::self().world(), other, tag);
  });
}
VIADUCT_MPI(Intercomm_create_from_groups);

// ---- error handlers ----------------------------------------------------------------------------

int PMPI_Session_create_errhandler(MPI_Session_errhandler_function* session_errhandler_fn,
                                   MPI_Errhandler* errhandler) {
  return call_any_time("MPI_Session_create_errhandler", [&] {
    check_pointer(session_errhandler_fn, "session_errhandler_fn");
    check_pointer(errhandler, "errhandler");
    const Ref<Errhandler> made =
        make<Errhandler>(Errhandler::Kind::user,
                         reinterpret_cast<MPI_Comm_errhandler_function*>(session_errhandler_fn));
    *errhandler = give_errhandler(*made);
  });
}
VIADUCT_MPI(Session_create_errhandler);

int PMPI_Session_set_errhandler(MPI_Session session, MPI_Errhandler errhandler) {
  return call_on("MPI_Session_set_errhandler", session, [&](Session& s) {
    s.errhandler = Ref<Errhandler>(&check_errhandler(errhandler));
  });
}
VIADUCT_MPI(Session_set_errhandler);

int PMPI_Session_get_errhandler(MPI_Session session, MPI_Errhandler* errhandler) {
  return call_on("MPI_Session_get_errhandler", session, [&](Session& s) {
    check_pointer(errhandler, "errhandler");
    *errhandler = give_errhandler(*s.errhandler);
  });
}
VIADUCT_MPI(Session_get_errhandler);

// The result is MPI_SUCCESS if the arguments are valid, whatever `errorcode` is (section 9.6).
int PMPI_Session_call_errhandler(MPI_Session session, int errorcode) {
  return call_on("MPI_Session_call_errhandler", session, [&](Session& s) {
    const std::string text = "the program has called the error handler: " +
                             (is_error_code(errorcode) ? error_text(errorcode) : std::string());
    raise_to("MPI_Session_call_errhandler", Ref(s.errhandler), session, errorcode, text.c_str());
  });
}
VIADUCT_MPI(Session_call_errhandler);

// ---- buffers -----------------------------------------------------------------------------------

VIADUCT_MPI_COUNTED(Session_attach_buffer, (MPI_Session session, void* buffer, Count size),
                    call_on(function, session,
                            [&](Session& s) { attach_buffer(s.buffer, buffer, size); }));
VIADUCT_MPI_COUNTED(Session_detach_buffer, (MPI_Session session, void* buffer_addr, Count* size),
                    call_on(function, session,
                            [&](Session& s) { detach_buffer(s.buffer, buffer_addr, size); }));

int PMPI_Session_flush_buffer(MPI_Session session) {
  return call_on("MPI_Session_flush_buffer", session, [](Session& s) { flush_buffer(s.buffer); });
}
VIADUCT_MPI(Session_flush_buffer);

int PMPI_Session_iflush_buffer(MPI_Session session, MPI_Request* request) {
  return call_on("MPI_Session_iflush_buffer", session,
                 [&](Session& s) { start_flush(s.buffer, request); });
}
VIADUCT_MPI(Session_iflush_buffer);
