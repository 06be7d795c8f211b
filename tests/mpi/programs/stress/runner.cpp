#include "runner.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <sstream>

#include "completion.hpp"
#include "random.hpp"

namespace stress {
namespace {

constexpr std::byte kUntouched{0xee};
constexpr int kDeadTag = 77;  // nobody sends with it
constexpr std::size_t kMaxComplaints = 5;

using SendFunction = int(const void*, int, MPI_Datatype, int, int, MPI_Comm);
using StartFunction = int(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
// By Mode.
SendFunction* const kSend[] = {MPI_Send, MPI_Bsend, MPI_Ssend, MPI_Rsend};
StartFunction* const kIsend[] = {MPI_Isend, MPI_Ibsend, MPI_Issend, MPI_Irsend};
StartFunction* const kSendInit[] = {MPI_Send_init, MPI_Bsend_init, MPI_Ssend_init, MPI_Rsend_init};

}  // namespace

Runner::Runner(std::uint64_t seed, const Plan& plan, const std::vector<Communicator>& comms,
               int world_rank)
    : seed_(seed),
      plan_(plan),
      comms_(comms),
      world_rank_(world_rank),
      outgoing_(plan.messages.size()),
      incoming_(plan.receives.size()) {}

MPI_Comm Runner::comm_of(int group) const {
  return comms_[index(class_of(group).comm)].comm;
}

// The bytes of a message: whatever arrives must be this.
std::vector<std::byte> Runner::content(int message) const {
  const MessagePlan& m = plan_.messages[index(message)];
  std::vector<std::byte> bytes(index(m.elements) * size_of(class_of(m.group).element));
  std::uint64_t state = mix(seed_ * 1000003 + static_cast<std::uint64_t>(message));
  for (std::size_t at = 0; at < bytes.size(); at += sizeof state) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const std::uint64_t word = state ^ (state >> 29);
    std::memcpy(bytes.data() + at, &word, std::min(sizeof word, bytes.size() - at));
  }
  return bytes;
}

void Runner::run(int& at) {
  std::vector<std::byte> buffer(plan_.buffered_bytes + MPI_BSEND_OVERHEAD);
  if (plan_.buffered_bytes > 0) MPI_Buffer_attach(buffer.data(), static_cast<int>(buffer.size()));
  const std::vector<Step>& steps = plan_.steps[index(world_rank_)];
  for (at = 0; index(at) < steps.size(); ++at) {
    const Step& step = steps[index(at)];
    switch (step.kind) {
      case StepKind::send: send(step.message); break;
      case StepKind::receive: receive(step.receive); break;
      case StepKind::sendrecv: sendrecv(step); break;
      case StepKind::wait: wait(step); break;
      case StepKind::dead_receive: dead_receive(step); break;
      case StepKind::barrier: MPI_Barrier(comms_.front().comm); break;
    }
  }
  end_dead_receives();
  free_persistent();
  void* detached;
  int size;
  if (plan_.buffered_bytes > 0) MPI_Buffer_detach(&detached, &size);
}

// ---- sending -----------------------------------------------------------------------------------

Runner::Outgoing& Runner::prepare_send(int message) {
  const MessagePlan& m = plan_.messages[index(message)];
  Outgoing& out = outgoing_[index(message)];
  if (m.repeats >= 0) {
    out = std::move(outgoing_[index(m.repeats)]);
    outgoing_[index(m.repeats)].request = MPI_REQUEST_NULL;
  } else {
    out.layout = std::make_shared<Layout>(class_of(m.group).element, m.elements, m.layout);
    out.memory.assign(out.layout->span(), std::byte{0xdd});
  }
  out.layout->scatter(content(message), out.memory.data());
  return out;
}

void Runner::send(int message) {
  const MessagePlan& m = plan_.messages[index(message)];
  const int dest = class_of(m.group).dest;
  const auto mode = static_cast<std::size_t>(m.mode);
  Outgoing& out = prepare_send(message);
  if (m.repeats >= 0) {
    MPI_Start(&out.request);
    return;
  }
  const auto [buffer, count, type] = out.layout->arguments(out.memory.data());
  switch (m.style) {
    case SendStyle::blocking:
      kSend[mode](buffer, count, type, dest, m.tag, comm_of(m.group));
      break;
    case SendStyle::nonblocking:
      kIsend[mode](buffer, count, type, dest, m.tag, comm_of(m.group), &out.request);
      break;
    case SendStyle::persistent:
      kSendInit[mode](buffer, count, type, dest, m.tag, comm_of(m.group), &out.request);
      MPI_Start(&out.request);
      break;
  }
  out.layout->free_type();
}

// ---- receiving ---------------------------------------------------------------------------------

Runner::Incoming& Runner::prepare_receive(int receive) {
  const ReceivePlan& r = plan_.receives[index(receive)];
  Incoming& in = incoming_[index(receive)];
  if (r.repeats >= 0) {
    Incoming& before = incoming_[index(r.repeats)];
    in.layout = before.layout;
    in.memory = std::move(before.memory);
    in.request = before.request;
    before.request = MPI_REQUEST_NULL;
  } else {
    in.layout = std::make_shared<Layout>(class_of(r.group).element, r.capacity, r.layout);
  }
  in.memory.assign(in.layout->span(), kUntouched);
  return in;
}

void Runner::complete(Incoming& in) {
  in.arrived = in.memory;
}

void Runner::receive(int receive) {
  const ReceivePlan& r = plan_.receives[index(receive)];
  const MPI_Comm comm = comm_of(r.group);
  Incoming& in = prepare_receive(receive);
  if (r.repeats >= 0) {
    MPI_Start(&in.request);
    return;
  }
  const auto [buffer, count, type] = in.layout->arguments(in.memory.data());
  switch (r.style) {
    case ReceiveStyle::blocking:
      MPI_Recv(buffer, count, type, r.source, r.tag, comm, &in.status);
      complete(in);
      break;
    case ReceiveStyle::nonblocking:
      MPI_Irecv(buffer, count, type, r.source, r.tag, comm, &in.request);
      break;
    case ReceiveStyle::persistent:
      MPI_Recv_init(buffer, count, type, r.source, r.tag, comm, &in.request);
      MPI_Start(&in.request);
      break;
    case ReceiveStyle::probe:
    case ReceiveStyle::iprobe: receive_probed(r, comm, in); break;
    case ReceiveStyle::matched_probe:
    case ReceiveStyle::matched_iprobe: receive_matched(r, comm, in); break;
    case ReceiveStyle::cancelled: receive_cancelled(r, comm, in); break;
  }
  in.layout->free_type();
}

void Runner::receive_probed(const ReceivePlan& r, MPI_Comm comm, Incoming& in) {
  const auto [buffer, count, type] = in.layout->arguments(in.memory.data());
  MPI_Status found;
  if (r.style == ReceiveStyle::probe) {
    MPI_Probe(r.source, r.tag, comm, &found);
  } else {
    for (int flag = 0; !flag; sched_yield()) MPI_Iprobe(r.source, r.tag, comm, &flag, &found);
  }
  MPI_Recv(buffer, count, type, found.MPI_SOURCE, found.MPI_TAG, comm, &in.status);
  complete(in);
}

void Runner::receive_matched(const ReceivePlan& r, MPI_Comm comm, Incoming& in) {
  const auto [buffer, count, type] = in.layout->arguments(in.memory.data());
  MPI_Message message;
  if (r.style == ReceiveStyle::matched_probe) {
    MPI_Mprobe(r.source, r.tag, comm, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(buffer, count, type, &message, &in.status);
    complete(in);
  } else {
    for (int flag = 0; !flag; sched_yield())
      MPI_Improbe(r.source, r.tag, comm, &flag, &message, MPI_STATUS_IGNORE);
    MPI_Imrecv(buffer, count, type, &message, &in.request);
  }
}

// Either it is cancelled, and then it has received nothing, or it has received a message.
void Runner::receive_cancelled(const ReceivePlan& r, MPI_Comm comm, Incoming& in) {
  const auto [buffer, count, type] = in.layout->arguments(in.memory.data());
  int cancelled;
  MPI_Irecv(buffer, count, type, r.source, r.tag, comm, &in.request);
  MPI_Cancel(&in.request);
  MPI_Wait(&in.request, &in.status);
  MPI_Test_cancelled(&in.status, &cancelled);
  if (cancelled) MPI_Recv(buffer, count, type, r.source, r.tag, comm, &in.status);
  complete(in);
}

void Runner::sendrecv(const Step& step) {
  const MessagePlan& m = plan_.messages[index(step.message)];
  const ReceivePlan& r = plan_.receives[index(step.receive)];
  Outgoing& out = prepare_send(step.message);
  Incoming& in = prepare_receive(step.receive);
  const auto from = out.layout->arguments(out.memory.data());
  const auto into = in.layout->arguments(in.memory.data());
  MPI_Sendrecv(from.buffer, from.count, from.type, class_of(m.group).dest, m.tag, into.buffer,
               into.count, into.type, r.source, r.tag, comm_of(m.group), &in.status);
  complete(in);
  out.layout->free_type();
  in.layout->free_type();
}

void Runner::wait(const Step& step) {
  std::vector<MPI_Request> requests;
  for (const int m : step.sends) requests.push_back(outgoing_[index(m)].request);
  for (const int r : step.receives) requests.push_back(incoming_[index(r)].request);
  std::vector<MPI_Status> statuses(requests.size());
  complete_all(requests, statuses, step.style);
  std::size_t i = 0;
  for (const int m : step.sends) outgoing_[index(m)].request = requests[i++];
  for (const int r : step.receives) {
    Incoming& in = incoming_[index(r)];
    in.request = requests[i];
    in.status = statuses[i++];
    complete(in);
  }
}

void Runner::dead_receive(const Step& step) {
  dead_.emplace_back();
  MPI_Irecv(&dead_buffer_, 1, MPI_INT, MPI_ANY_SOURCE, kDeadTag, comms_[index(step.comm)].comm,
            &dead_.back());
}

void Runner::end_dead_receives() {
  for (MPI_Request& request : dead_) {
    MPI_Status status;
    int cancelled = 0;
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    if (!cancelled) wrong(-1, "a receive that nobody sends to was not cancelled");
  }
}

void Runner::free_persistent() {
  for (Outgoing& out : outgoing_)
    if (out.request != MPI_REQUEST_NULL) MPI_Request_free(&out.request);
  for (Incoming& in : incoming_)
    if (in.request != MPI_REQUEST_NULL) MPI_Request_free(&in.request);
}

// ---- checking ----------------------------------------------------------------------------------

std::vector<std::string> Runner::check() {
  for (const Class& c : plan_.classes)
    if (comms_[index(c.comm)].members[index(c.dest)] == world_rank_) check_class(c);
  return complaints_;
}

void Runner::wrong(int receive, const std::string& what) {
  if (complaints_.size() >= kMaxComplaints) return;
  std::ostringstream out;
  out << "seed " << seed_ << ": rank " << world_rank_ << ": ";
  if (receive >= 0) {
    Step step{.kind = StepKind::receive};
    step.receive = receive;
    out << describe(plan_, step) << ": ";
  }
  complaints_.push_back(out.str() + what);
}

// Messages do not overtake each other (section 3.5): of those from one source that a receive may
// take, it takes the first that no earlier receive has taken. With that, the status of each receive
// tells which message it must have got; and each is received once.
void Runner::check_class(const Class& c) {
  std::vector<int> left = c.messages;
  for (const int r : c.receives) {
    const ReceivePlan& receive = plan_.receives[index(r)];
    const MPI_Status& status = incoming_[index(r)].status;
    const auto taken = std::find_if(left.begin(), left.end(), [&](int m) {
      const MessagePlan& message = plan_.messages[index(m)];
      return message.source == status.MPI_SOURCE &&
             (receive.tag == MPI_ANY_TAG || receive.tag == message.tag);
    });
    if (taken == left.end()) {
      wrong(r, "its status names source " + std::to_string(status.MPI_SOURCE) +
                   ", from which no message is left");
      continue;
    }
    check_receive(c, r, *taken);
    left.erase(taken);
  }
}

void Runner::check_receive(const Class& c, int receive, int message) {
  const MessagePlan& m = plan_.messages[index(message)];
  const Incoming& in = incoming_[index(receive)];
  Step sent{.kind = StepKind::send};
  sent.message = message;
  const std::string expected = "should have got what came by " + describe(plan_, sent);
  if (in.status.MPI_TAG != m.tag)
    return wrong(receive, expected + " with tag " + std::to_string(m.tag) + ", the tag is " +
                              std::to_string(in.status.MPI_TAG));
  const std::vector<std::byte> stream = content(message);
  int count = -1;
  MPI_Get_count(&in.status, MPI_BYTE, &count);
  if (count != static_cast<int>(stream.size()))
    return wrong(receive, expected + " of " + std::to_string(stream.size()) +
                              " bytes, the count is " + std::to_string(count));
  std::vector<std::byte> right(in.arrived.size(), kUntouched);
  in.layout->scatter(stream, right.data());
  for (std::size_t i = 0; i < right.size(); ++i)
    if (right[i] != in.arrived[i])
      return wrong(receive, expected + " (element size " + std::to_string(size_of(c.element)) +
                                "), byte " + std::to_string(i) + " of the buffer differs");
}

}  // namespace stress
