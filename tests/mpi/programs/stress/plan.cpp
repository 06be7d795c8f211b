#include "plan.hpp"

#include <algorithm>
#include <map>
#include <sstream>
#include <tuple>

#include "random.hpp"

namespace stress {
namespace {

constexpr int kTags = 4;
constexpr std::size_t kLargest = 400000;  // bytes of a message
constexpr std::size_t kBudget = 3 << 20;  // bytes of all receive buffers of a plan, about

int to_int(std::size_t n) {
  return static_cast<int>(n);
}
// How the receives of one process on one communicator name what they want.
enum class Pattern : std::uint8_t { exact, any_source, any_tag, anything, narrow_first };

class Planner {
 public:
  Planner(std::uint64_t seed, const std::vector<Communicator>& comms, int world_size,
          const Avoid& avoid)
      : random_(seed), comms_(comms), avoid_(avoid) {
    plan_.steps.resize(index(world_size));
  }

  Plan make() {
    make_messages();
    for (Class& c : plan_.classes) make_receives(c);
    if (random_.percent(30)) post_early();
    while (!finished()) act();
    for (std::size_t rank = 0; rank < plan_.steps.size(); ++rank) wait_for_some(to_int(rank), true);
    return std::move(plan_);
  }

 private:
  // ---- messages, classes, receives
  // ----------------------------------------------------------------

  int draw_elements(int largest_kind) {
    switch (random_.below(largest_kind + 1)) {
      case 0: return random_.between(0, 2);
      case 1: return random_.between(1, 16);
      case 2: return random_.between(17, 300);
      case 3: return random_.between(300, 4200);
      case 4: return random_.between(4000, 20000);
      default: return random_.between(20000, 400000);
    }
  }

  int class_of(int comm, int dest, int source, int tag) {
    auto [it, fresh] = patterns_.try_emplace({comm, dest}, Pattern::exact);
    if (fresh) it->second = static_cast<Pattern>(random_.below(5));
    const Pattern pattern = it->second;
    const int any = -1;
    const bool by_source = pattern == Pattern::exact || pattern == Pattern::any_tag;
    const bool by_tag = pattern == Pattern::exact || pattern == Pattern::any_source;
    const auto key = std::make_tuple(comm, dest, by_source ? source : any, by_tag ? tag : any);
    auto [found, added] = class_index_.try_emplace(key, to_int(plan_.classes.size()));
    if (added) {
      plan_.classes.push_back({.comm = comm,
                               .dest = dest,
                               .element = static_cast<Element>(random_.below(4)),
                               .one_source = true,
                               .mixed = pattern == Pattern::narrow_first,
                               .messages = {},
                               .receives = {}});
      pattern_of_.push_back(pattern);
    }
    return found->second;
  }

  void make_messages() {
    const int messages = random_.percent(80) ? random_.between(4, 40) : random_.between(40, 100);
    const int largest_kind = random_.percent(70) ? 3 : 5;
    const std::size_t share = kBudget / index(messages);
    for (int i = 0; i < messages; ++i) {
      if (i > 0 && random_.percent(15)) {  // like the one before: a chance for persistent requests
        add_message(plan_.messages.back());
        continue;
      }
      const int comm = random_.below(to_int(comms_.size()));
      const int size = to_int(comms_[index(comm)].members.size());
      const int source = random_.below(size),
                dest = random_.percent(10) ? source : random_.below(size);
      const int tag = random_.below(kTags);
      const int group = class_of(comm, dest, source, tag);
      int elements = draw_elements(largest_kind);
      // Where any message may meet any receive, all buffers are as large as the largest message.
      const Element element = plan_.classes[index(group)].element;
      const std::size_t most =
          pattern_of_[index(group)] == Pattern::exact ? kLargest : std::min(kLargest, 4 * share);
      elements = std::min(elements, to_int(most / size_of(element)));
      if (element == Element::pair) elements = std::min(elements, 2000);
      MessagePlan message;
      message.group = group;
      message.source = source;
      message.tag = tag;
      message.elements = elements;
      message.style = static_cast<SendStyle>(random_.below(3));
      message.mode = static_cast<Mode>(random_.below(3));
      message.layout = random_.bits();
      add_message(message);
    }
  }

  void add_message(const MessagePlan& message) {
    Class& c = plan_.classes[index(message.group)];
    for (const int other : c.messages)
      if (plan_.messages[index(other)].source != message.source) c.one_source = false;
    c.messages.push_back(to_int(plan_.messages.size()));
    plan_.messages.push_back(message);
  }

  // A narrow receive for some of the (source, tag) of the class; they come first, so that the wild
  // ones cannot take what they wait for.
  void add_narrow(const Class& c, std::vector<ReceivePlan>& receives) {
    for (const int m : c.messages) {
      const MessagePlan& message = plan_.messages[index(m)];
      if (!random_.percent(40)) continue;
      ReceivePlan narrow = make_receive(c, to_int(&c - plan_.classes.data()));
      narrow.source = message.source;
      narrow.tag = message.tag;
      receives.push_back(narrow);
    }
    random_.shuffle(receives);
  }

  ReceivePlan make_receive(const Class& c, int group) {
    const Pattern pattern = pattern_of_[index(group)];
    const MessagePlan& example = plan_.messages[index(c.messages.front())];
    const bool any_source = pattern != Pattern::exact && pattern != Pattern::any_tag;
    const bool any_tag = pattern != Pattern::exact && pattern != Pattern::any_source;
    ReceivePlan receive;
    receive.group = group;
    receive.source = any_source ? MPI_ANY_SOURCE : example.source;
    receive.tag = any_tag ? MPI_ANY_TAG : example.tag;
    receive.capacity = 0;
    receive.style = random_.percent(50) ? static_cast<ReceiveStyle>(random_.below(3))
                                        : static_cast<ReceiveStyle>(random_.below(8));
    receive.layout = random_.bits();
    return receive;
  }

  void make_receives(Class& c) {
    const int group = to_int(&c - plan_.classes.data());
    std::vector<ReceivePlan> receives;
    if (c.mixed) add_narrow(c, receives);
    while (receives.size() < c.messages.size()) {
      const bool alike = !receives.empty() && random_.percent(20) && !c.mixed;
      receives.push_back(alike ? receives.back() : make_receive(c, group));
    }
    int most = 0;
    for (const int m : c.messages) most = std::max(most, plan_.messages[index(m)].elements);
    for (std::size_t i = 0; i < receives.size(); ++i) {
      ReceivePlan& receive = receives[i];
      const int room = c.in_step() ? plan_.messages[index(c.messages[i])].elements : most;
      const bool like_before = i > 0 && receive.layout == receives[i - 1].layout;
      if (!like_before || receives[i - 1].capacity < room)
        receive.capacity = room + (random_.percent(30) ? random_.below(9) : 0);
      else
        receive.capacity = receives[i - 1].capacity;
      c.receives.push_back(to_int(plan_.receives.size()));
      plan_.receives.push_back(receive);
    }
  }

  // ---- the global order
  // -----------------------------------------------------------------------------

  int world_rank(int comm, int rank) const { return comms_[index(comm)].members[index(rank)]; }
  int sender(const Class& c) const {  // of its next message
    return world_rank(c.comm, plan_.messages[index(c.messages[index(c.sent)])].source);
  }
  int receiver(const Class& c) const { return world_rank(c.comm, c.dest); }
  bool all_sent(const Class& c) const { return c.sent == to_int(c.messages.size()); }
  bool all_posted(const Class& c) const { return c.posted == to_int(c.receives.size()); }

  void add_step(int rank, Step step) { plan_.steps[index(rank)].push_back(std::move(step)); }

  bool finished() const {
    return std::all_of(plan_.classes.begin(), plan_.classes.end(),
                       [&](const Class& c) { return all_sent(c) && all_posted(c); });
  }

  // Receives that are surely posted before anything is sent: only then may ready mode be used.
  void post_early() {
    for (Class& c : plan_.classes) {
      if (!random_.percent(60)) continue;
      const int count = random_.percent(50) ? to_int(c.receives.size())
                                            : random_.below(to_int(c.receives.size()) + 1);
      while (c.posted < count) start_receive(c, true);
      c.posted_early = c.posted;
    }
    for (std::size_t rank = 0; rank < plan_.steps.size(); ++rank)
      add_step(to_int(rank), {.kind = StepKind::barrier});
  }

  bool may_be_ready(const Class& c) const {
    return c.in_step() ? c.sent < c.posted_early : c.posted_early == to_int(c.receives.size());
  }

  // The next message of the class. `joint`: its receive is started in the same breath and may
  // block.
  void start_send(Class& c, bool joint) {
    const int m = c.messages[index(c.sent)], rank = sender(c);
    MessagePlan& message = plan_.messages[index(m)];
    if (may_be_ready(c) && random_.percent(50)) message.mode = Mode::ready;
    if (message.mode == Mode::buffered && c.element == Element::pair && avoid_.buffered_pairs)
      message.mode = Mode::standard;
    const bool never_blocks = message.mode == Mode::buffered;
    if (message.style == SendStyle::blocking && !joint && !never_blocks && !c.complete_send(c.sent))
      message.style = SendStyle::nonblocking;
    const bool may_restart = message.mode != Mode::buffered || !avoid_.buffered_restarts;
    if (message.style == SendStyle::persistent && may_restart)
      reuse(c.messages, c.sent, plan_.messages);
    if (message.mode == Mode::buffered)
      plan_.buffered_bytes += 2 * index(message.elements) * size_of(c.element) + 4096;
    ++c.sent;
    add_step(rank, {.kind = StepKind::send, .message = m});
    if (message.style != SendStyle::blocking) open_sends_.push_back({m, c.sent - 1, rank});
  }

  void start_receive(Class& c, bool must_not_block) {
    const int r = c.receives[index(c.posted)], rank = receiver(c);
    ReceivePlan& receive = plan_.receives[index(r)];
    const bool open =
        receive.style == ReceiveStyle::nonblocking || receive.style == ReceiveStyle::persistent;
    if (!open && (must_not_block || !c.complete_receive(c.posted)))
      receive.style = ReceiveStyle::nonblocking;
    if (receive.style == ReceiveStyle::persistent) reuse(c.receives, c.posted, plan_.receives);
    ++c.posted;
    add_step(rank, {.kind = StepKind::receive, .receive = r});
    if (receive.style == ReceiveStyle::nonblocking || receive.style == ReceiveStyle::persistent ||
        receive.style == ReceiveStyle::matched_iprobe)
      open_receives_.push_back({r, c.posted - 1, rank});
  }

  static bool alike(const MessagePlan& a, const MessagePlan& b) {
    return a.source == b.source && a.tag == b.tag && a.elements == b.elements && a.mode == b.mode &&
           a.style == b.style && a.layout == b.layout;
  }
  static bool alike(const ReceivePlan& a, const ReceivePlan& b) {
    return a.source == b.source && a.tag == b.tag && a.capacity == b.capacity &&
           a.style == b.style && a.layout == b.layout;
  }

  // A persistent request of the same kind that is inactive is started once more.
  template <class Item>
  void reuse(const std::vector<int>& started, int now, std::vector<Item>& items) {
    Item& item = items[index(started[index(now)])];
    for (int i = now - 1; i >= 0; --i) {
      Item& before = items[index(started[index(i)])];
      if (!before.waited || before.reused || !alike(before, item)) continue;
      before.reused = true;
      item.repeats = started[index(i)];
      return;
    }
  }

  // A blocking send that meets a blocking receive.
  bool meet(Class& c) {
    if (!c.in_step() || c.sent != c.posted || sender(c) == receiver(c)) return false;
    MessagePlan& message = plan_.messages[index(c.messages[index(c.sent)])];
    message.style = SendStyle::blocking;
    start_send(c, true);
    start_receive(c, false);
    return true;
  }

  // A class of that communicator whose next message `rank` sends and which may meet its receive
  // now.
  Class* simple_class_from(int rank, int comm) {
    std::vector<Class*> found;
    for (Class& c : plan_.classes)
      if (c.in_step() && c.comm == comm && !all_sent(c) && c.sent == c.posted && sender(c) == rank)
        found.push_back(&c);
    return found.empty() ? nullptr : random_.one_of(found);
  }

  // A ring of ranks each of which calls MPI_Sendrecv (or sendrecv with itself).
  bool sendrecv_ring(Class& first) {
    if (!first.in_step() || first.sent != first.posted) return false;
    std::vector<Class*> ring{&first};
    const int home = sender(first);
    while (receiver(*ring.back()) != home) {
      Class* next = simple_class_from(receiver(*ring.back()), first.comm);
      if (!next || ring.size() > plan_.steps.size() ||
          std::any_of(ring.begin(), ring.end(),
                      [&](Class* c) { return c == next || receiver(*c) == receiver(*next); }))
        return false;
      ring.push_back(next);
    }
    for (std::size_t i = 0; i < ring.size(); ++i) {
      Class& out = *ring[i];
      Class& in = *ring[(i + ring.size() - 1) % ring.size()];
      add_step(sender(out), {.kind = StepKind::sendrecv,
                             .message = out.messages[index(out.sent)],
                             .receive = in.receives[index(in.posted)]});
    }
    for (Class* c : ring) {
      MessagePlan& message = plan_.messages[index(c->messages[index(c->sent++)])];
      message.style = SendStyle::blocking;
      message.mode = Mode::standard;
      plan_.receives[index(c->receives[index(c->posted++)])].style = ReceiveStyle::blocking;
    }
    return true;
  }

  // ---- waiting
  // ----------------------------------------------------------------------------------------

  struct Open {
    int item, at, rank;  // at: its place in the class
  };

  template <class May, class Mark>
  std::vector<int> take(std::vector<Open>& open, int rank, bool all, May may, Mark mark) {
    std::vector<int> taken;
    for (std::size_t i = 0; i < open.size();) {
      if (open[i].rank == rank && may(open[i]) && (all || random_.percent(50))) {
        taken.push_back(open[i].item);
        mark(open[i].item);
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
    return taken;
  }

  void wait_for_some(int rank, bool all) {
    Step step{.kind = StepKind::wait};
    step.style = static_cast<WaitStyle>(random_.below(8));
    step.sends = take(
        open_sends_, rank, all,
        [&](const Open& o) {
          const MessagePlan& m = plan_.messages[index(o.item)];
          return m.mode == Mode::buffered || plan_.classes[index(m.group)].complete_send(o.at);
        },
        [&](int m) { plan_.messages[index(m)].waited = true; });
    step.receives = take(
        open_receives_, rank, all,
        [&](const Open& o) {
          return plan_.classes[index(plan_.receives[index(o.item)].group)].complete_receive(o.at);
        },
        [&](int r) { plan_.receives[index(r)].waited = true; });
    if (!step.sends.empty() || !step.receives.empty()) add_step(rank, std::move(step));
  }

  void add_dead_receive() {
    Step step{.kind = StepKind::dead_receive};
    step.comm = random_.below(to_int(comms_.size()));
    add_step(random_.one_of(comms_[index(step.comm)].members), std::move(step));
  }

  void act() {
    Class& c = random_.one_of(plan_.classes);
    const int what = random_.below(20);
    if (what < 7) {
      if (!all_sent(c)) start_send(c, false);
    } else if (what < 14) {
      if (!all_posted(c)) start_receive(c, false);
    } else if (what < 16) {
      if (!all_sent(c) && !all_posted(c)) meet(c);
    } else if (what < 17) {
      if (!all_sent(c) && !all_posted(c)) sendrecv_ring(c);
    } else if (what < 19 || random_.percent(70)) {
      wait_for_some(random_.below(to_int(plan_.steps.size())), false);
    } else {
      add_dead_receive();
    }
  }

  Random random_;
  const std::vector<Communicator>& comms_;
  const Avoid& avoid_;
  Plan plan_;
  std::map<std::pair<int, int>, Pattern> patterns_;
  std::map<std::tuple<int, int, int, int>, int> class_index_;
  std::vector<Pattern> pattern_of_;  // by class
  std::vector<Open> open_sends_, open_receives_;
};

}  // namespace

Plan make_plan(std::uint64_t seed, const std::vector<Communicator>& comms, int world_size,
               const Avoid& avoid) {
  return Planner(seed, comms, world_size, avoid).make();
}

std::string describe(const Plan& plan, const Step& step) {
  static const char* const kKinds[] = {"send",     "receive",      "wait",
                                       "sendrecv", "dead receive", "barrier"};
  static const char* const kModes[] = {"standard", "buffered", "synchronous", "ready"};
  static const char* const kSends[] = {"blocking", "nonblocking", "persistent"};
  static const char* const kReceives[] = {"blocking",       "nonblocking", "persistent",
                                          "probe",          "iprobe",      "matched probe",
                                          "matched iprobe", "cancelled"};
  static const char* const kWaits[] = {"wait", "waitall", "waitany", "waitsome",
                                       "test", "testall", "testany", "testsome"};
  std::ostringstream out;
  out << kKinds[static_cast<int>(step.kind)];
  if (step.message >= 0) {
    const MessagePlan& m = plan.messages[index(step.message)];
    const Class& c = plan.classes[index(m.group)];
    out << " [message " << step.message << ", communicator " << c.comm << ", " << m.source << " to "
        << c.dest << ", tag " << m.tag << ", " << index(m.elements) * size_of(c.element)
        << " bytes, " << kModes[static_cast<int>(m.mode)] << ", "
        << kSends[static_cast<int>(m.style)] << (m.repeats >= 0 ? ", once more]" : "]");
  }
  if (step.receive >= 0) {
    const ReceivePlan& r = plan.receives[index(step.receive)];
    const Class& c = plan.classes[index(r.group)];
    out << " [receive " << step.receive << ", communicator " << c.comm << ", at " << c.dest
        << " from " << r.source << ", tag " << r.tag << ", room for "
        << index(r.capacity) * size_of(c.element) << " bytes, "
        << kReceives[static_cast<int>(r.style)] << (r.repeats >= 0 ? ", once more]" : "]");
  }
  if (step.kind == StepKind::wait) {
    out << " (" << kWaits[static_cast<int>(step.style)] << ") for messages";
    for (const int m : step.sends) out << " " << m;
    out << " and receives";
    for (const int r : step.receives) out << " " << r;
  }
  return out.str();
}

}  // namespace stress
