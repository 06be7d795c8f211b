/* A client that writes into the memory of a server, and says so with immediate data.
 *   cc rdma_write.c $(pkg-config --cflags --libs vipl) -o rdma_write
 *   rdma_write NIC           the server; viaduct-info prints the names of NICs
 *   rdma_write NIC HOST      the client, here or elsewhere; HOST is the server's
 * Both in a guest, without RDMA hardware:
 *   viaduct-vm sh -c './rdma_write nic1 & ./rdma_write nic0 host2; wait'
 */
#include "example.h"

/* What the server tells the client: where it may write. A memory handle means the same on both
 * sides, so it can be sent as it is. */
struct target {
  VIP_UINT64 address;
  VIP_MEM_HANDLE handle;
};

/* Posts a receive for the notification, sends the address of a text, and waits. */
static void server(const char* device) {
  struct station s = open_station(device, VIP_TRUE);
  struct message* written = &s.messages[2];
  struct target target;
  VIP_DESCRIPTOR* d;

  target.address = (VIP_UINT64)(uintptr_t)written->text;
  target.handle = s.memory;
  post_receive(&s, 0);
  serve(&s, "target");
  memcpy(s.messages[1].text, &target, sizeof(target));
  must("VipPostSend", VipPostSend(s.vi, prepare(&s, 1, sizeof(target)), s.memory));
  must("VipSendWait", VipSendWait(s.vi, VIP_INFINITE, &d));
  /* An RDMA write with immediate data completes a receive descriptor, but not into its buffer. */
  must("VipRecvWait", VipRecvWait(s.vi, VIP_INFINITE, &d));
  if (d->CS.Status & VIP_STATUS_IMMEDIATE)
    printf("%u bytes were written: %s\n", (unsigned)d->CS.ImmediateData, written->text);
  close_station(&s);
}

/* Learns the address, and writes a text there together with its length as immediate data. */
static void client(const char* device, const char* host) {
  struct station s = open_station(device, VIP_FALSE);
  const char* text = "without asking";
  struct target target;
  VIP_DESCRIPTOR* d;

  post_receive(&s, 0);
  call(&s, host, "target");
  memcpy(&target, receive_text(&s), sizeof(target));
  snprintf(s.messages[1].text, kTextBytes, "%s", text);
  d = prepare(&s, 1, strlen(text) + 1);
  /* An RDMA descriptor has an address segment (memory of the other side) in front of its data
   * segments, and SegCount counts both. */
  d->DS[1] = d->DS[0]; /* the other side's memory comes first */
  d->DS[0].Remote.Data.AddressBits = target.address;
  d->DS[0].Remote.Handle = target.handle;
  d->CS.SegCount = 2;
  d->CS.Control = VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE;
  d->CS.ImmediateData = d->CS.Length;
  must("VipPostSend", VipPostSend(s.vi, d, s.memory));
  must("VipSendWait", VipSendWait(s.vi, VIP_INFINITE, &d));
  printf("written\n");
  close_station(&s);
}

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    fprintf(stderr, "usage: rdma_write NIC [HOST]\n");
    return 2;
  }
  if (argc == 2)
    server(argv[1]);
  else
    client(argv[1], argv[2]);
  return 0;
}
