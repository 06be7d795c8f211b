/* What the three examples have in common: opening a NIC with one VI, connecting, and sending and
 * receiving short texts. Every error ends the program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vipl.h>

/* Descriptors of a station, and bytes of the text that each of them sends or receives. */
enum { kMessages = 4, kTextBytes = 64 };

/* A descriptor and its buffer. VIPL wants descriptors aligned to VIP_DESCRIPTOR_ALIGNMENT and in
 * registered memory; both hold here, because the size is a multiple of the alignment. */
struct message {
  VIP_DESCRIPTOR descriptor;
  char text[kTextBytes];
};

/* Everything that a program has of VIPL here. */
struct station {
  VIP_NIC_HANDLE nic;
  struct message* messages;
  VIP_MEM_HANDLE memory;
  VIP_VI_HANDLE vi;
};

/* Ends the program unless `code` is VIP_SUCCESS. */
static inline void must(const char* what, VIP_RETURN code) {
  if (code == VIP_SUCCESS) return;
  fprintf(stderr, "%s: VIPL code %d\n", what, (int)code);
  exit(1);
}

/* Opens a NIC, registers memory and makes a VI. `writable`: the other side may write into the
 * memory; both the region and the VI must allow that. */
static inline struct station open_station(const char* device, VIP_BOOLEAN writable) {
  struct station s;
  VIP_MEM_ATTRIBUTES memory = {NULL, writable, VIP_FALSE};
  VIP_VI_ATTRIBUTES vi = {VIP_SERVICE_RELIABLE_DELIVERY, 32768, NULL, NULL, writable, VIP_FALSE};
  const size_t bytes = kMessages * sizeof(struct message);

  must("VipOpenNic", VipOpenNic(device, &s.nic));
  s.messages = aligned_alloc(VIP_DESCRIPTOR_ALIGNMENT, bytes);
  if (s.messages == NULL) exit(1);
  memset(s.messages, 0, bytes);
  must("VipRegisterMem", VipRegisterMem(s.nic, s.messages, bytes, &memory, &s.memory));
  /* Without completion queues: the program asks the VI itself. */
  must("VipCreateVi", VipCreateVi(s.nic, &vi, NULL, NULL, &s.vi));
  return s;
}

/* Gives back what open_station() made, in the opposite order. */
static inline void close_station(struct station* s) {
  VIP_DESCRIPTOR* d;
  must("VipDisconnect", VipDisconnect(s->vi));
  do VipRecvDone(s->vi, &d); /* what was not used comes back */
  while (d != NULL);
  must("VipDestroyVi", VipDestroyVi(s->vi));
  must("VipDeregisterMem", VipDeregisterMem(s->nic, s->messages, s->memory));
  must("VipCloseNic", VipCloseNic(s->nic));
  free(s->messages);
}

/* The address of a listener: the NIC address of `host` (NULL: this host), and a discriminator,
 * which tells the listeners of one host apart. The caller frees it. */
static inline VIP_NET_ADDRESS* address_of(struct station* s, const char* host,
                                          const char* discriminator) {
  const size_t length = strlen(discriminator);
  VIP_NIC_ATTRIBUTES nic;
  VIP_NET_ADDRESS* address;

  must("VipQueryNic", VipQueryNic(s->nic, &nic));
  address = calloc(1, sizeof(*address) + nic.NicAddressLen + length);
  if (address == NULL) exit(1);
  address->HostAddressLen = nic.NicAddressLen;
  if (host == NULL) {
    memcpy(address->HostAddress, nic.LocalNicAddress, nic.NicAddressLen);
  } else {
    must("VipNSInit", VipNSInit(s->nic, NULL));
    must(host, VipNSGetHostByName(s->nic, (VIP_CHAR*)host, address, 0));
    must("VipNSShutdown", VipNSShutdown(s->nic));
  }
  address->DiscriminatorLen = (VIP_UINT16)length;
  memcpy(address->HostAddress + address->HostAddressLen, discriminator, length);
  return address;
}

/* Waits for one client and accepts its request, for the VI of the station. */
static inline void serve(struct station* s, const char* discriminator) {
  VIP_NET_ADDRESS* local = address_of(s, NULL, discriminator);
  /* Room for the client's address, with its discriminator. */
  char client[sizeof(VIP_NET_ADDRESS) + 64];
  VIP_VI_ATTRIBUTES attributes;
  VIP_CONN_HANDLE connection;

  must("VipConnectWait", VipConnectWait(s->nic, local, VIP_INFINITE, (VIP_NET_ADDRESS*)client,
                                        &attributes, &connection));
  must("VipConnectAccept", VipConnectAccept(connection, s->vi));
  free(local);
}

/* Connects to a server. VIP_NO_MATCH: no program waits there yet, so try again. */
static inline void call(struct station* s, const char* host, const char* discriminator) {
  VIP_NET_ADDRESS *local = address_of(s, NULL, ""), *remote = address_of(s, host, discriminator);
  VIP_VI_ATTRIBUTES attributes;
  VIP_RETURN code;

  while ((code = VipConnectRequest(s->vi, local, remote, 10000, &attributes)) == VIP_NO_MATCH)
    usleep(100000);
  must("VipConnectRequest", code);
  free(local);
  free(remote);
}

/* Fills in descriptor `i` for one segment: the first `bytes` of its text. */
static inline VIP_DESCRIPTOR* prepare(struct station* s, int i, size_t bytes) {
  struct message* m = &s->messages[i];
  memset(&m->descriptor, 0, sizeof(m->descriptor));
  m->descriptor.CS.SegCount = 1;
  m->descriptor.CS.Length = (VIP_UINT32)bytes;
  m->descriptor.DS[0].Local.Data.Address = m->text;
  m->descriptor.DS[0].Local.Handle = s->memory;
  m->descriptor.DS[0].Local.Length = (VIP_UINT32)bytes;
  return &m->descriptor;
}

/* VIPL has no flow control: a receive must be posted before the other side sends. */
static inline void post_receive(struct station* s, int i) {
  must("VipPostRecv", VipPostRecv(s->vi, prepare(s, i, kTextBytes), s->memory));
}

/* Sends a text with descriptor `i`, and waits until the descriptor has completed. */
static inline void send_text(struct station* s, int i, const char* text) {
  VIP_DESCRIPTOR* d;
  snprintf(s->messages[i].text, kTextBytes, "%s", text);
  must("VipPostSend", VipPostSend(s->vi, prepare(s, i, strlen(text) + 1), s->memory));
  must("VipSendWait", VipSendWait(s->vi, VIP_INFINITE, &d));
}

/* Waits for a message. Receives complete in the order in which they were posted. */
static inline const char* receive_text(struct station* s) {
  VIP_DESCRIPTOR* d;
  must("VipRecvWait", VipRecvWait(s->vi, VIP_INFINITE, &d));
  return ((struct message*)d)->text; /* the descriptor is its first member */
}
