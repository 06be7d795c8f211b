#include "libvipl/connection/manager.hpp"

#include <algorithm>
#include <new>

#include "libvipl/connection/desk.hpp"

namespace viaduct::vipl {
namespace {

// The other side is stopped, or dying: it does not use the memory now.
constexpr auto kKnownPatience = std::chrono::seconds(5);

using Lock = std::unique_lock<std::mutex>;

// A thread in a function that may block; shutdown() waits until it has left.
class Visit {
 public:
  explicit Visit(std::shared_ptr<Desk> desk) : desk_(std::move(desk)), lock(desk_->mutex) {
    ++desk_->inside;
  }
  ~Visit() {
    if (--desk_->inside == 0) desk_->left.notify_all();
  }

 private:
  const std::shared_ptr<Desk> desk_;  // the manager may be gone when the lock is given back

 public:
  Lock lock;
};

VIP_RETURN take(const Step& step) {
  return step ? step() : VIP_SUCCESS;
}

VIP_RETURN give_up(Party& party, VIP_RETURN result) {
  party.abandoned(false);
  return result;
}

template <typename Function>
VIP_RETURN attempt(Desk& desk, Party& party, Function function) {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    desk.sessions.erase(&party);
    return give_up(party, VIP_ERROR_RESOURCE);
  }
}

}  // namespace

std::shared_ptr<Session> Desk::session_of(Party& party) const {
  const auto found = sessions.find(&party);
  return found == sessions.end() ? nullptr : found->second;
}

std::shared_ptr<Session> Desk::start(Party& party, Session::Role role) {
  if (const auto old = session_of(party)) old->leave(VIP_INVALID_STATE);
  auto session = std::make_shared<Session>(*this, party, role);
  sessions[&party] = session;
  forget_failures(party);
  const std::lock_guard lock(failures_mutex);
  failures.reserve(sessions.size());
  return session;
}

void Desk::forget_if_finished(Party& party) {
  const auto found = sessions.find(&party);
  if (found != sessions.end() && found->second->finished()) sessions.erase(found);
}

void Desk::take_failures() {
  std::vector<Failure> taken;
  {
    const std::lock_guard lock(failures_mutex);
    if (failures.empty()) return;
    taken.reserve(failures.capacity());
    taken.swap(failures);
  }
  for (const auto& [party, loss] : taken) {
    if (const auto session = session_of(*party)) session->fail(loss);
    forget_if_finished(*party);
  }
}

void Desk::forget_failures(Party& party) {
  const std::lock_guard lock(failures_mutex);
  std::erase_if(failures, [&](const Failure& failure) { return failure.party == &party; });
}

std::shared_ptr<Session> Desk::untold_peer(Party& party) const {
  const auto session = session_of(party);
  const bool untold =
      session != nullptr && session->role() == Session::Role::peer && !session->told();
  return untold ? session : nullptr;
}

VIP_RETURN Desk::tell(Party& party, Session& session, Card& remote_card) {
  remote_card = session.remote_card();
  session.set_told();
  forget_if_finished(party);
  return *session.outcome();
}

Manager::Manager(const NicAddress& self) {
  raise_descriptor_limit();
  desk_ = std::make_shared<Desk>(self);
}

Manager::~Manager() {
  shutdown();
}

const NicAddress& Manager::self() const {
  return desk_->self;
}

int Manager::fd() const {
  return desk_->loop.fd();
}

void Manager::progress() {
  Bells::Later woken_later;
  const Lock lock(desk_->mutex);
  const Bells::Holding holding(desk_->bells, woken_later);
  desk_->take_failures();
  desk_->loop.run();
}

bool Manager::listening() const {
  const Lock lock(desk_->mutex);
  return desk_->reception.listening();
}

std::string Manager::drops() const {
  const Lock lock(desk_->mutex);
  return desk_->drops.text();
}

void Manager::shutdown(Clock::duration patience) {
  Lock lock(desk_->mutex);
  desk_->closed = true;
  for (const auto& [party, session] : desk_->sessions) session->leave(VIP_ERROR_RESOURCE);
  desk_->waiting_room.wake();
  desk_->left.wait(lock, [&] { return desk_->inside == 0; });
  desk_->sessions.clear();
  desk_->farewells.wait(lock, patience);
  desk_->waiting_room.clear();
  for (const auto& incoming : desk_->given) incoming->take_stream();
  desk_->given.clear();
  desk_->reception.close();
  desk_->usher.clear();
  desk_->farewells.clear();
}

VIP_RETURN Manager::wait(const Discriminator& local, Deadline deadline,
                         std::shared_ptr<Incoming>& request) {
  Visit visit(desk_);
  if (desk_->closed) return VIP_ERROR_RESOURCE;
  const VIP_RETURN result = desk_->waiting_room.wait(visit.lock, local, deadline, request);
  if (result == VIP_SUCCESS) desk_->given.insert(request);
  return result;
}

const Caller& Manager::caller(const Incoming& request) {
  return request.caller();
}

bool Manager::is_from_here(const Incoming& request) const {
  return request.desk() == desk_;
}

VIP_RETURN Manager::accept(const std::shared_ptr<Incoming>& request, Party& party,
                           const Step& begin) {
  const std::shared_ptr<Desk> desk = request->desk();
  if (desk == nullptr) return VIP_INVALID_PARAMETER;
  Visit visit(desk);
  if (desk->closed) return VIP_ERROR_RESOURCE;
  if (!desk->given.contains(request)) return VIP_INVALID_PARAMETER;
  if (!request->waiting()) return VIP_TIMEOUT;
  if (const VIP_RETURN wrong = take(begin); wrong != VIP_SUCCESS) return wrong;
  return attempt(*desk, party, [&] {
    const auto session = desk->start(party, Session::Role::server);
    session->answer(request);
    const VIP_RETURN result = session->wait(visit.lock);
    if (result == VIP_SUCCESS) desk->given.erase(request);
    desk->forget_if_finished(party);
    return result;
  });
}

VIP_RETURN Manager::reject(const std::shared_ptr<Incoming>& request) {
  const std::shared_ptr<Desk> desk = request->desk();
  if (desk == nullptr || !desk->is_ours()) return VIP_INVALID_PARAMETER;
  const Lock lock(desk->mutex);
  if (desk->given.erase(request) == 0) return VIP_INVALID_PARAMETER;
  if (request->waiting()) desk->farewells.refuse(request->take_stream(), Refusal::rejected);
  return VIP_SUCCESS;
}

VIP_RETURN Manager::request(Party& party, const Discriminator& local, const Endpoint& remote,
                            Deadline deadline, Card& remote_card, const Step& begin) {
  Visit visit(desk_);
  if (desk_->closed) return VIP_ERROR_RESOURCE;
  if (const VIP_RETURN wrong = take(begin); wrong != VIP_SUCCESS) return wrong;
  return attempt(*desk_, party, [&] {
    const auto session = desk_->start(party, Session::Role::client);
    session->ask(local, remote, deadline);
    const VIP_RETURN result = session->wait(visit.lock);
    remote_card = session->remote_card();
    desk_->forget_if_finished(party);
    return result;
  });
}

VIP_RETURN Manager::peer_request(Party& party, const Discriminator& local, const Endpoint& remote,
                                 Deadline deadline, const Step& begin) {
  const Lock lock(desk_->mutex);
  if (desk_->closed) return VIP_ERROR_RESOURCE;
  if (const VIP_RETURN wrong = take(begin); wrong != VIP_SUCCESS) return wrong;
  return attempt(*desk_, party, [&] {
    desk_->start(party, Session::Role::peer)->ask(local, remote, deadline);
    return VIP_SUCCESS;
  });
}

VIP_RETURN Manager::peer_done(Party& party, Card& remote_card, const Step& check) {
  const Lock lock(desk_->mutex);
  if (const VIP_RETURN wrong = take(check); wrong != VIP_SUCCESS) return wrong;
  const auto session = desk_->untold_peer(party);
  if (session == nullptr) return VIP_INVALID_STATE;
  return session->outcome() ? desk_->tell(party, *session, remote_card) : VIP_NOT_DONE;
}

VIP_RETURN Manager::peer_wait(Party& party, Card& remote_card, const Step& check) {
  Visit visit(desk_);
  if (const VIP_RETURN wrong = take(check); wrong != VIP_SUCCESS) return wrong;
  const auto session = desk_->untold_peer(party);
  if (session == nullptr) return VIP_INVALID_STATE;
  session->wait(visit.lock);
  return desk_->tell(party, *session, remote_card);
}

// After `end` nothing is added to the failures of this connection, so none is left for the next.
VIP_RETURN Manager::disconnect(Party& party, const Step& end) {
  const Lock lock(desk_->mutex);
  if (const VIP_RETURN wrong = take(end); wrong != VIP_SUCCESS) return wrong;
  desk_->take_failures();
  if (const auto session = desk_->session_of(party)) {
    session->leave(VIP_INVALID_STATE);
    desk_->sessions.erase(&party);
  }
  return VIP_SUCCESS;
}

void Manager::fail(Party& party, Loss loss) {
  {
    const std::lock_guard lock(desk_->failures_mutex);
    desk_->failures.push_back({&party, loss});
  }
  desk_->loop.wake();
}

void Manager::announce(std::uint32_t name, std::uint32_t key) {
  Visit visit(desk_);
  if (key == 0)
    desk_->aliases.erase(name);
  else
    desk_->aliases[name] = key;
  std::vector<std::shared_ptr<Session>> told;
  for (const auto& [party, session] : desk_->sessions) {
    session->announce(name, key);
    told.push_back(session);
  }
  desk_->aliases_known.wait_for(visit.lock, kKnownPatience, [&] {
    return desk_->closed || std::all_of(told.begin(), told.end(),
                                        [](const auto& session) { return session->all_known(); });
  });
}

}  // namespace viaduct::vipl
