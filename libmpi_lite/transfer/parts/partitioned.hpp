// Partitioned communication (MPI 5.0, chapter 4): persistent requests whose buffer is sent, and
// arrives, in parts.
//
//    sender                                             receiver
//    MPI_Psend_init: setup ---------------------------> MPI_Precv_init waits for it
//    MPI_Start                                          MPI_Start: a receive for each part of the
//    MPI_Pready(i): part i ---------------------------> sender's, once the setup is there
//
// The setup matches as messages do: by rank and tag, in order, among the setups of the communicator
// (kPartitionedSetup). It says how the sender has divided the data, which may be otherwise than the
// receiver has, and the tags of the parts. These are messages in a stream of their own
// (kPartitionedData), so a part takes the same ways as any message, and no run has to wait for the
// receiver's.
//
// Threads: one thread at a time, as everywhere in the library.
#pragma once

#include "libmpi_lite/transfer/parts/composite.hpp"
#include "libmpi_lite/transfer/transfer.hpp"

namespace viaduct::mpi {

// As it goes over the wire.
struct PartitionedSetup {
  MPI_Count partitions;
  MPI_Count bytes;         // of each
  std::int64_t first_tag;  // of the parts' tags, which follow one another
};

class PartitionedSend final : public Composite {
 public:
  // `part`: the first partition; `to`: a rank of the communicator and the tag.
  PartitionedSend(const Items& part, int partitions, const Envelope& to);

  int partitions() const { return partitions_; }
  // Whether it has been marked since the start; only while active.
  bool ready(int partition) const { return ready_[static_cast<std::size_t>(partition)]; }
  // Sends a partition that is not ready yet; only while active.
  void mark_ready(int partition);

 private:
  void start_parts() override;
  void finish_parts() override;

  const Items first_;
  const Ref<Datatype> type_;
  const int partitions_;
  Envelope to_;
  int first_tag_;
  std::vector<bool> ready_;
};

class PartitionedReceive final : public Composite {
 public:
  PartitionedReceive(const Items& part, int partitions, const Envelope& from);
  ~PartitionedReceive() override;

  int partitions() const { return partitions_; }
  // Whether all bytes of the partition have arrived; only while active.
  bool arrived(int partition) const;

 private:
  class Setup;  // the receive of the sender's setup
  struct Staged {
    MPI_Count offset;  // in the packed form of the buffer
    std::vector<std::byte> bytes;
  };

  void start_parts() override;
  void finish_parts() override;
  void on_setup();
  void receive_parts();
  Ref<Request> receive_part(MPI_Count part);

  const Items first_;  // and its bytes times partitions_ are the whole buffer's
  const Ref<Datatype> type_;
  const int partitions_;
  const Envelope from_;
  Ref<Setup> setup_;
  bool waits_for_setup_ = false;
  // Parts that end within an item of a type with gaps: they are unpacked at the end.
  std::vector<Staged> staged_;
};

}  // namespace viaduct::mpi
