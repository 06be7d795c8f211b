// See partitioned.hpp for the messages. The receiver lets a part arrive in its place where the
// place is bytes in a row or whole items, and else in memory in between.
#include "libmpi_lite/transfer/parts/partitioned.hpp"

#include "libmpi_lite/core/error.hpp"

namespace viaduct::mpi {
namespace {

Items raw_bytes(void* data, MPI_Count bytes) {
  return {data, bytes, &datatype(MPI_BYTE)};
}

// A stream of messages beside that of the communicator's messages.
Envelope beside(const Envelope& envelope, std::uint32_t stream, int tag) {
  return {envelope.comm, envelope.context | stream, envelope.rank, tag};
}

// So many tags in a row. After 2^31 partitions they come again, to requests of another time.
int take_tags(int partitions) {
  static int next = 0;
  if (next > INT32_MAX - partitions) next = 0;
  const int first = next;
  next += partitions;
  return first;
}

// The setup on its way: holds itself, as the program may free its request meanwhile.
class SentSetup final : public Composite {
 public:
  SentSetup(Comm* comm, const PartitionedSetup& setup) : Composite(comm, false), setup_(setup) {}
  void send(const Envelope& to) {
    run({start_send(raw_bytes(&setup_, sizeof setup_), to, SendMode::standard)});
  }

 private:
  void start_parts() override {}
  PartitionedSetup setup_;
};

}  // namespace

// ---- sending -----------------------------------------------------------------------------------

PartitionedSend::PartitionedSend(const Items& part, int partitions, const Envelope& to)
    : Composite(to.comm, true),
      first_(part),
      type_(part.type),
      partitions_(partitions),
      to_(to),
      first_tag_(take_tags(partitions)),
      ready_(static_cast<std::size_t>(partitions)) {
  if (to.rank == MPI_PROC_NULL) return;
  const auto setup =
      make<SentSetup>(to.comm, PartitionedSetup{partitions, part.bytes(), first_tag_});
  setup->send(beside(to, kPartitionedSetup, to.tag));
}

void PartitionedSend::start_parts() {
  ready_.assign(ready_.size(), false);
  expect(ready_.size());
}

void PartitionedSend::mark_ready(int partition) {
  ready_[static_cast<std::size_t>(partition)] = true;
  const MPI_Count offset = partition * first_.count * first_.type->extent();
  const Items items{byte_at(first_.data, offset), first_.count, first_.type};
  add(start_send(items, beside(to_, kPartitionedData, first_tag_ + partition), SendMode::standard));
}

void PartitionedSend::finish_parts() {
  Composite::finish_parts();
  status = empty_status();
  status.MPI_ERROR = error;
}

// ---- receiving ---------------------------------------------------------------------------------

// Holds itself until the setup has come, as the program may free its request before.
class PartitionedReceive::Setup final : public Composite {
 public:
  explicit Setup(Comm* comm) : Composite(comm, false) {}
  void receive(const Envelope& from) {
    run({start_receive(raw_bytes(&values, sizeof values), from)});
  }

  PartitionedSetup values{};
  PartitionedReceive* owner = nullptr;  // nullptr: it has been freed

 private:
  void start_parts() override {}
  void finish_parts() override {
    Composite::finish_parts();
    complete = true;  // on_setup() asks for it
    if (owner) owner->on_setup();
  }
};

PartitionedReceive::PartitionedReceive(const Items& part, int partitions, const Envelope& from)
    : Composite(from.comm, true),
      first_(part),
      type_(part.type),
      partitions_(partitions),
      from_(from) {
  if (from.rank == MPI_PROC_NULL) return;
  setup_ = make<Setup>(from.comm);
  setup_->owner = this;
  setup_->receive(beside(from, kPartitionedSetup, from.tag));
}

PartitionedReceive::~PartitionedReceive() {
  if (setup_) setup_->owner = nullptr;
}

// One part more is expected than there are, until all are known.
void PartitionedReceive::start_parts() {
  staged_.clear();
  waits_for_setup_ = false;
  expect(1);
  if (!setup_)
    part_complete();
  else if (setup_->complete)
    receive_parts();
  else
    waits_for_setup_ = true;
}

void PartitionedReceive::on_setup() {
  if (std::exchange(waits_for_setup_, false)) receive_parts();
}

void PartitionedReceive::receive_parts() {
  const PartitionedSetup& setup = setup_->values;
  MPI_Count sent = 0;
  const bool fits = setup_->error == MPI_SUCCESS &&
                    !__builtin_mul_overflow(setup.partitions, setup.bytes, &sent) &&
                    sent == partitions_ * first_.bytes();
  if (!fits) error = setup_->error != MPI_SUCCESS ? setup_->error : MPI_ERR_TRUNCATE;
  if (fits) {
    expect_more(static_cast<std::size_t>(setup.partitions));
    staged_.reserve(static_cast<std::size_t>(setup.partitions));
    for (MPI_Count part = 0; part < setup.partitions; ++part) add(receive_part(part));
  }
  part_complete();
}

Ref<Request> PartitionedReceive::receive_part(MPI_Count part) {
  const PartitionedSetup& setup = setup_->values;
  const Envelope from = beside(from_, kPartitionedData, static_cast<int>(setup.first_tag + part));
  const MPI_Count offset = part * setup.bytes;
  Datatype& type = *type_;
  if (type.contiguous())
    return start_receive(raw_bytes(first_.first_byte() + offset, setup.bytes), from);
  if (type.size() > 0 && setup.bytes % type.size() == 0) {
    const MPI_Count item = offset / type.size();
    return start_receive(
        {byte_at(first_.data, item * type.extent()), setup.bytes / type.size(), &type}, from);
  }
  Staged& staged = staged_.emplace_back(
      Staged{offset, std::vector<std::byte>(static_cast<std::size_t>(setup.bytes))});
  return start_receive(raw_bytes(staged.bytes.data(), setup.bytes), from);
}

void PartitionedReceive::finish_parts() {
  const int refused = error;  // of receive_parts()
  Composite::finish_parts();
  if (refused != MPI_SUCCESS) error = refused;
  for (const Staged& staged : staged_)
    if (error == MPI_SUCCESS)
      type_->unpack(const_cast<void*>(first_.data), staged.offset, staged.bytes);
  status = empty_status(from_.rank);
  if (setup_) status.MPI_TAG = from_.tag;
  if (setup_ && error == MPI_SUCCESS) set_status_bytes(status, partitions_ * first_.bytes());
  status.MPI_ERROR = error;
}

// Parts that are staged count as arrived only with the whole.
bool PartitionedReceive::arrived(int partition) const {
  if (complete) return true;
  const MPI_Count bytes = setup_->values.bytes;
  if (parts().empty() || !staged_.empty() || bytes == 0) return false;
  const MPI_Count from = partition * first_.bytes(), to = from + first_.bytes();
  for (MPI_Count part = from / bytes; part * bytes < to; ++part)
    if (!parts()[static_cast<std::size_t>(part)]->complete) return false;
  return true;
}

}  // namespace viaduct::mpi
