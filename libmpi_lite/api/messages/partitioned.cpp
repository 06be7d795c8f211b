// Partitioned communication (MPI 5.0, chapter 4). Messages and matching are in
// transfer/parts/partitioned.cpp.
//
// Choices where the standard leaves one: each partition that is ready is sent at once, as a
// message. MPI_Parrived makes progress. The info object has no hint that the library knows.
#include "libmpi_lite/transfer/parts/partitioned.hpp"
#include "libmpi_lite/api/arguments/arguments.hpp"
#include "libmpi_lite/api/completion.hpp"
#include "libmpi_lite/api/counted.hpp"

using namespace viaduct::mpi;

namespace {

// The whole buffer must be one that can be sent, so that no partition is anywhere else.
Items check_partition(const void* buf, int partitions, MPI_Count count, MPI_Datatype datatype,
                      int rank) {
  if (partitions <= 0)
    fail(MPI_ERR_ARG, "argument partitions is %d; it must be positive", partitions);
  const Items part = check_items(buf, count, datatype, "buf", rank);
  MPI_Count all;
  if (__builtin_mul_overflow(count, MPI_Count{partitions}, &all)) all = INT64_MAX;
  if (all > INT_MAX) check_length(all, *part.type);
  return part;
}

// The source of a partitioned receive, which must not be a wildcard.
Envelope check_only_source(Comm& comm, int rank, int tag) {
  if (rank == MPI_ANY_SOURCE)
    fail(MPI_ERR_RANK, "argument source is MPI_ANY_SOURCE, which is not allowed here");
  if (tag == MPI_ANY_TAG)
    fail(MPI_ERR_TAG, "argument tag is MPI_ANY_TAG, which is not allowed here");
  return check_source(comm, rank, tag);
}

// `check` is that of the other process and the tag.
template <class Made, class Check>
int init(const char* function, const void* buf, int partitions, MPI_Count count,
         MPI_Datatype datatype, int rank, int tag, MPI_Comm comm, MPI_Info info,
         MPI_Request* request, Check check) {
  return call(function, comm, [&](Comm& c) {
    const Items part = check_partition(buf, partitions, count, datatype, rank);
    const Envelope with = check(c, rank, tag);
    check_hints(info);
    check_pointer(request, "request");
    *request =
        new_handle<MPI_Request>(request_handles, Ref<Request>(make<Made>(part, partitions, with)));
  });
}

template <class Kind>
Kind& check_partitioned(MPI_Request handle, const char* what) {
  auto* const partitioned = dynamic_cast<Kind*>(check_request(handle));
  if (!partitioned)
    fail(MPI_ERR_REQUEST, "argument request (%p) is not a partitioned %s",
         static_cast<void*>(handle), what);
  return *partitioned;
}
void check_partition_number(int partition, int partitions, const char* argument) {
  if (partition < 0 || partition >= partitions)
    fail(MPI_ERR_ARG, "argument %s is %d; partitions go from 0 to %d", argument, partition,
         partitions - 1);
}

// The send of that partition. `argument` names where the partition comes from.
void mark_ready(PartitionedSend& send, int partition, const char* argument) {
  check_partition_number(partition, send.partitions(), argument);
  if (send.ready(partition))
    fail(MPI_ERR_ARG, "argument %s: partition %d is ready already", argument, partition);
  send.mark_ready(partition);
}
PartitionedSend& check_active_send(MPI_Request request) {
  auto& send = check_partitioned<PartitionedSend>(request, "send");
  if (!send.active || send.complete)
    fail(MPI_ERR_REQUEST, "argument request has not been started, or all its partitions are ready");
  return send;
}

}  // namespace

VIADUCT_MPI_COUNTED(Psend_init,
                    (const void* buf, int partitions, Count count, MPI_Datatype datatype, int dest,
                     int tag, MPI_Comm comm, MPI_Info info, MPI_Request* request),
                    init<PartitionedSend>(function, buf, partitions, count, datatype, dest, tag,
                                          comm, info, request, check_destination));

VIADUCT_MPI_COUNTED(Precv_init,
                    (void* buf, int partitions, Count count, MPI_Datatype datatype, int source,
                     int tag, MPI_Comm comm, MPI_Info info, MPI_Request* request),
                    init<PartitionedReceive>(function, buf, partitions, count, datatype, source,
                                             tag, comm, info, request, check_only_source));

int PMPI_Pready(int partition, MPI_Request request) {
  return call_on_requests("MPI_Pready",
                          [&] { mark_ready(check_active_send(request), partition, "partition"); });
}
VIADUCT_MPI(Pready);

// Both ends of the range belong to it.
int PMPI_Pready_range(int partition_low, int partition_high, MPI_Request request) {
  return call_on_requests("MPI_Pready_range", [&] {
    const Ref<PartitionedSend> send(&check_active_send(request));
    check_partition_number(partition_low, send->partitions(), "partition_low");
    check_partition_number(partition_high, send->partitions(), "partition_high");
    for (int i = partition_low; i <= partition_high; ++i) mark_ready(*send, i, "partition_low");
  });
}
VIADUCT_MPI(Pready_range);

int PMPI_Pready_list(int length, const int array_of_partitions[], MPI_Request request) {
  return call_on_requests("MPI_Pready_list", [&] {
    const Ref<PartitionedSend> send(&check_active_send(request));
    for (const int i : check_array(array_of_partitions, length, "array_of_partitions", "length"))
      mark_ready(*send, i, "array_of_partitions");
  });
}
VIADUCT_MPI(Pready_list);

// A request that is inactive has received all there was to receive.
int PMPI_Parrived(MPI_Request request, int partition, int* flag) {
  return call_on_requests("MPI_Parrived", [&] {
    check_pointer(flag, "flag");
    const auto& receive = check_partitioned<PartitionedReceive>(request, "receive");
    check_partition_number(partition, receive.partitions(), "partition");
    if (receive.active && !receive.arrived(partition)) progress();
    *flag = !receive.active || receive.arrived(partition);
  });
}
VIADUCT_MPI(Parrived);
