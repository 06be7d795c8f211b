// The public functions of the connection manager, and the bookkeeping of ConnectionTable. They
// lock, run the VI's step, start or find the Session, and wait for its outcome. The protocol itself
// is in session.cpp, active_open.cpp and peer.cpp.
#include "libvipl/connection/manager.hpp"

#include <algorithm>
#include <new>
#include <stdexcept>

#include "libvipl/connection/connection_table.hpp"

namespace viaduct::vipl {
namespace {

// How long announce() waits for acknowledgements. A side that does not answer in this time is
// stopped or dying, and does not use the memory now.
constexpr auto kAckTimeout = std::chrono::seconds(5);

using Lock = std::unique_lock<std::mutex>;

// A thread inside a function that may block. shutdown() waits until the last of them has left.
class BlockingCall {
 public:
  explicit BlockingCall(std::shared_ptr<ConnectionTable> table)
      : table_(std::move(table)), lock(table_->mutex) {
    ++table_->callers_inside;
  }
  ~BlockingCall() {
    if (--table_->callers_inside == 0) table_->all_left.notify_all();
  }

 private:
  const std::shared_ptr<ConnectionTable>
      table_;  // the manager may be gone when the lock is given back

 public:
  Lock lock;
};

// Runs the step, if there is one.
VIP_RETURN run_step(const Step& step) {
  return step ? step() : VIP_SUCCESS;
}

// The step has made the VI Connect Pending; this makes it Idle again.
VIP_RETURN cancel(ConnectionUser& user, VIP_RETURN result) {
  user.on_attempt_failed(false);
  return result;
}

// Runs `function`, which starts a session. If memory runs out, the session and the VI's pending
// state are taken back.
template <typename Function>
VIP_RETURN try_start(ConnectionTable& table, ConnectionUser& user, Function function) {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    table.sessions.erase(&user);
    return cancel(user, VIP_ERROR_RESOURCE);
  }
}

}  // namespace

std::shared_ptr<Session> ConnectionTable::session_of(ConnectionUser& user) const {
  const auto found = sessions.find(&user);
  return found == sessions.end() ? nullptr : found->second;
}

std::shared_ptr<Session> ConnectionTable::start(ConnectionUser& user, Session::Role role) {
  if (const auto old = session_of(user)) old->close(VIP_INVALID_STATE);
  auto session = std::make_shared<Session>(*this, user, role);
  sessions[&user] = session;
  forget_failures(user);
  const std::lock_guard lock(failures_mutex);
  // Room for one failure of each session, so that fail() need not allocate.
  failures.reserve(sessions.size());
  return session;
}

void ConnectionTable::forget_if_finished(ConnectionUser& user) {
  const auto found = sessions.find(&user);
  if (found != sessions.end() && found->second->finished()) sessions.erase(found);
}

void ConnectionTable::take_failures() {
  std::vector<Failure> taken;
  {
    const std::lock_guard lock(failures_mutex);
    if (failures.empty()) return;
    // The swapped-in vector must have the same room, see fail().
    taken.reserve(failures.capacity());
    taken.swap(failures);
  }
  for (const auto& [user, reason] : taken) {
    if (const auto session = session_of(*user)) session->fail(reason);
    forget_if_finished(*user);
  }
}

void ConnectionTable::forget_failures(ConnectionUser& user) {
  const std::lock_guard lock(failures_mutex);
  std::erase_if(failures, [&](const Failure& failure) { return failure.user == &user; });
}

std::shared_ptr<Session> ConnectionTable::unreported_peer(ConnectionUser& user) const {
  const auto session = session_of(user);
  const bool unreported =
      session != nullptr && session->role() == Session::Role::peer && !session->outcome_reported();
  return unreported ? session : nullptr;
}

VIP_RETURN ConnectionTable::report_outcome(ConnectionUser& user, Session& session,
                                           EndpointInfo& remote_card) {
  remote_card = session.remote_card();
  session.set_outcome_reported();
  forget_if_finished(user);
  return *session.outcome();
}

Manager::Manager(const NicAddress& self) {
  raise_descriptor_limit();
  table_ = std::make_shared<ConnectionTable>(self);
}

Manager::~Manager() {
  shutdown();
}

const NicAddress& Manager::self() const {
  return table_->self;
}

int Manager::fd() const {
  return table_->loop.fd();
}

bool Manager::is_unused() const {
  const Lock lock(table_->mutex);
  return !table_->closed && table_->callers_inside == 0 && table_->sessions.empty() &&
         table_->unanswered.empty() && table_->aliases.empty();
}

void Manager::drive_by(Drive drive, bool own_port) {
  if (own_port) {
    NicAddress address = table_->self;
    const UniqueFd holder = port_holder(address);
    if (!holder) throw std::runtime_error(std::string(kNoDescriptors));
    auto table = std::make_shared<ConnectionTable>(address);
    shutdown();
    table_ = std::move(table);
  }
  table_->drive = std::move(drive);
}

// The three objects are destroyed in reverse order: blocked threads are woken after the lock has
// been given back.
void Manager::progress() {
  Wakeups::Later woken_later;
  const Lock lock(table_->mutex);
  const Wakeups::Holding holding(table_->wakeups, woken_later);
  table_->take_failures();
  table_->loop.run();
  // One in each call, because making a queue pair takes the device its time.
  if (table_->put_off.empty()) return;
  const auto session = table_->put_off.front()->shared_from_this();
  session->begin_put_off();
  if (!table_->put_off.empty()) table_->loop.wake();
}

bool Manager::listening() const {
  const Lock lock(table_->mutex);
  return table_->acceptor.listening();
}

std::string Manager::drops() const {
  const Lock lock(table_->mutex);
  return table_->drops.text();
}

void Manager::shutdown(Clock::duration tally_timeout) {
  Lock lock(table_->mutex);
  table_->closed = true;
  for (const auto& [user, session] : table_->sessions) session->close(VIP_ERROR_RESOURCE);
  table_->listen_queue.wake();
  // Waits for the blocked threads. Functions that begin from now on see `closed` and do not block.
  table_->all_left.wait(lock, [&] { return table_->callers_inside == 0; });
  table_->sessions.clear();
  ClosingConnections& closing = table_->closing;
  table_->block(lock, closing.changed(), Clock::now() + tally_timeout,
                [&] { return !closing.is_waiting(); });
  table_->listen_queue.clear();
  table_->peer_listeners.clear();
  for (const auto& incoming : table_->unanswered) incoming->take_stream();
  table_->unanswered.clear();
  table_->acceptor.close();
  table_->router.clear();
  closing.clear();
}

VIP_RETURN Manager::wait(const Discriminator& local, Deadline deadline,
                         std::shared_ptr<ReceivedRequest>& request) {
  BlockingCall call(table_);
  if (table_->closed) return VIP_ERROR_RESOURCE;
  const VIP_RETURN result = table_->listen_queue.wait(call.lock, local, deadline, request);
  if (result == VIP_SUCCESS) table_->unanswered.insert(request);
  return result;
}

const Caller& Manager::caller(const ReceivedRequest& request) {
  return request.caller();
}

bool Manager::is_from_here(const ReceivedRequest& request) const {
  return request.table() == table_;
}

VIP_RETURN Manager::accept(const std::shared_ptr<ReceivedRequest>& request, ConnectionUser& user,
                           const Step& begin) {
  const std::shared_ptr<ConnectionTable> table = request->table();
  if (table == nullptr) return VIP_INVALID_PARAMETER;
  BlockingCall call(table);
  if (table->closed) return VIP_ERROR_RESOURCE;
  if (!table->unanswered.contains(request)) return VIP_INVALID_PARAMETER;
  // The client closed the connection while the program was deciding.
  if (!request->waiting()) return VIP_TIMEOUT;
  if (const VIP_RETURN wrong = run_step(begin); wrong != VIP_SUCCESS) return wrong;
  return try_start(*table, user, [&] {
    const auto session = table->start(user, Session::Role::server);
    session->open_passive(request);
    const VIP_RETURN result = session->wait(call.lock);
    if (result == VIP_SUCCESS) table->unanswered.erase(request);
    table->forget_if_finished(user);
    return result;
  });
}

VIP_RETURN Manager::reject(const std::shared_ptr<ReceivedRequest>& request) {
  const std::shared_ptr<ConnectionTable> table = request->table();
  if (table == nullptr || !table->is_ours()) return VIP_INVALID_PARAMETER;
  const Lock lock(table->mutex);
  if (table->unanswered.erase(request) == 0) return VIP_INVALID_PARAMETER;
  if (request->waiting()) table->closing.refuse(request->take_stream(), Refusal::rejected);
  return VIP_SUCCESS;
}

VIP_RETURN Manager::request(ConnectionUser& user, const Discriminator& local,
                            const Endpoint& remote, Deadline deadline, EndpointInfo& remote_card,
                            const Step& begin) {
  BlockingCall call(table_);
  if (table_->closed) return VIP_ERROR_RESOURCE;
  if (const VIP_RETURN wrong = run_step(begin); wrong != VIP_SUCCESS) return wrong;
  return try_start(*table_, user, [&] {
    const auto session = table_->start(user, Session::Role::client);
    session->open_active(local, remote, deadline);
    const VIP_RETURN result = session->wait(call.lock);
    remote_card = session->remote_card();
    table_->forget_if_finished(user);
    return result;
  });
}

VIP_RETURN Manager::peer_request(ConnectionUser& user, const Discriminator& local,
                                 const Endpoint& remote, Deadline deadline, const Step& begin) {
  const Lock lock(table_->mutex);
  if (table_->closed) return VIP_ERROR_RESOURCE;
  if (const VIP_RETURN wrong = run_step(begin); wrong != VIP_SUCCESS) return wrong;
  return try_start(*table_, user, [&] {
    const auto session = table_->start(user, Session::Role::peer);
    if (table_->drive == nullptr)
      session->open_active(local, remote, deadline);
    else
      session->open_later(local, remote, deadline);
    return VIP_SUCCESS;
  });
}

bool Manager::has_events() const {
  const Lock lock(table_->mutex);
  return table_->has_events();
}

bool Manager::is_busy() const {
  const Lock lock(table_->mutex);
  return table_->has_events() || !table_->put_off.empty();
}

VIP_RETURN Manager::next_event(ConnectEvent& event) {
  const Lock lock(table_->mutex);
  if (table_->drive == nullptr) return VIP_INVALID_STATE;
  event = {};
  if (table_->outcomes.empty()) {
    const auto request = table_->peer_listeners.next();
    if (request == nullptr) return VIP_NOT_DONE;
    event.is_outcome = false;
    event.local = request->request().callee;
    event.remote = request->request().caller;
    event.card = request->request().card;
    return VIP_SUCCESS;
  }
  const auto session = table_->outcomes.front()->shared_from_this();
  event.vi = session->user().name();
  event.local = session->local();
  event.remote = session->remote();
  event.outcome = table_->report_outcome(session->user(), *session, event.card);
  return VIP_SUCCESS;
}

VIP_RETURN Manager::peer_listen(const Discriminator& prefix, std::span<const std::uint8_t> key) {
  const Lock lock(table_->mutex);
  if (table_->drive == nullptr) return VIP_INVALID_STATE;
  if (table_->closed) return VIP_ERROR_RESOURCE;
  return table_->peer_listeners.open(prefix, key);
}

VIP_RETURN Manager::peer_stop_listening(const Discriminator& prefix) {
  const Lock lock(table_->mutex);
  if (table_->drive == nullptr) return VIP_INVALID_STATE;
  return table_->peer_listeners.close(prefix) ? VIP_SUCCESS : VIP_NO_MATCH;
}

VIP_RETURN Manager::peer_refuse(const Discriminator& local, const Endpoint& remote) {
  const Lock lock(table_->mutex);
  if (table_->drive == nullptr) return VIP_INVALID_STATE;
  return table_->peer_listeners.refuse(local, remote) ? VIP_SUCCESS : VIP_NO_MATCH;
}

std::optional<PeerCounts> Manager::peer_counts(const Discriminator& prefix) const {
  const Lock lock(table_->mutex);
  return table_->peer_listeners.counts(prefix);
}

VIP_RETURN Manager::peer_done(ConnectionUser& user, EndpointInfo& remote_card, const Step& check) {
  const Lock lock(table_->mutex);
  if (const VIP_RETURN wrong = run_step(check); wrong != VIP_SUCCESS) return wrong;
  const auto session = table_->unreported_peer(user);
  if (session == nullptr) return VIP_INVALID_STATE;
  return session->outcome() ? table_->report_outcome(user, *session, remote_card) : VIP_NOT_DONE;
}

VIP_RETURN Manager::peer_wait(ConnectionUser& user, EndpointInfo& remote_card, const Step& check) {
  BlockingCall call(table_);
  if (const VIP_RETURN wrong = run_step(check); wrong != VIP_SUCCESS) return wrong;
  const auto session = table_->unreported_peer(user);
  if (session == nullptr) return VIP_INVALID_STATE;
  session->wait(call.lock);
  return table_->report_outcome(user, *session, remote_card);
}

// After `end` the user queues no more failures, and take_failures() executes those it has queued.
// So none is left that could hit the user's next connection.
VIP_RETURN Manager::disconnect(ConnectionUser& user, const Step& end) {
  const Lock lock(table_->mutex);
  if (const VIP_RETURN wrong = run_step(end); wrong != VIP_SUCCESS) return wrong;
  table_->take_failures();
  if (const auto session = table_->session_of(user)) {
    session->close(VIP_INVALID_STATE);
    table_->sessions.erase(&user);
  }
  return VIP_SUCCESS;
}

// Only queues, because the caller may hold locks of the VI, which come after the manager's. The
// event thread executes the queue.
void Manager::fail(ConnectionUser& user, CloseReason reason) {
  {
    const std::lock_guard lock(table_->failures_mutex);
    table_->failures.push_back({&user, reason});
  }
  table_->loop.wake();
}

void Manager::announce(std::uint32_t name, std::uint32_t key) {
  BlockingCall call(table_);
  if (key == 0)
    table_->aliases.erase(name);
  else
    table_->aliases[name] = key;
  // Sessions may end and be forgotten while this thread waits.
  std::vector<std::shared_ptr<Session>> notified;
  for (const auto& [user, session] : table_->sessions) {
    session->announce(name, key);
    notified.push_back(session);
  }
  table_->block(call.lock, table_->aliases_acked, Clock::now() + kAckTimeout, [&] {
    return table_->closed || std::all_of(notified.begin(), notified.end(),
                                         [](const auto& session) { return session->all_acked(); });
  });
}

}  // namespace viaduct::vipl
