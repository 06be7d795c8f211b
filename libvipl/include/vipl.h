/* vipl.h: the Virtual Interface Provider Library, VIPL 1.0, on RDMA devices.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Source-compatible with programs for Intel's, M-VIA's and Giganet's (cLAN) libraries. The comments
 * are short; docs/vipl.md says what each function promises, and what was chosen where the
 * specification is silent. Link with -lvipl (pkg-config vipl).
 *
 * Any thread may call any function at any time. Functions block only where that is said.
 * VIP_INVALID_PARAMETER: a handle is none, a pointer is NULL that must not be, or a value makes no
 * sense. VIP_ERROR_RESOURCE: the device or the system has no room. After fork() all handles belong
 * to the parent. */
#ifndef VIADUCT_VIPL_H
#define VIADUCT_VIPL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Scalars and handles ---- */

/* Direction of parameters: they expand to nothing. */
#ifndef IN
#define IN
#endif
#ifndef OUT
#define OUT
#endif

typedef void* VIP_PVOID;
typedef int VIP_BOOLEAN;
typedef char VIP_CHAR;
typedef unsigned char VIP_UCHAR;
typedef short VIP_SHORT;
typedef unsigned short VIP_USHORT;
typedef long VIP_LONG;
typedef unsigned long VIP_ULONG;
typedef uint8_t VIP_UINT8;
typedef uint16_t VIP_UINT16;
typedef uint32_t VIP_UINT32;
typedef uint64_t VIP_UINT64;

#define VIP_TRUE 1
#define VIP_FALSE 0

/* Opaque. Two VIs connect only if both have a QoS, or neither. */
typedef VIP_PVOID VIP_QOS;
/* Handles are numbers in the guise of pointers; a program must not look behind them. */
typedef VIP_PVOID VIP_NIC_HANDLE;
typedef VIP_PVOID VIP_VI_HANDLE;
typedef VIP_PVOID VIP_CQ_HANDLE;
typedef VIP_PVOID VIP_CONN_HANDLE;
typedef VIP_PVOID VIP_PROTECTION_HANDLE;
/* Registered memory. Never 0. Means the same on both sides of a connection: programs exchange it
 * for RDMA. */
typedef VIP_UINT32 VIP_MEM_HANDLE;

/* Timeouts are in milliseconds. All ones of 32 or of 64 bits mean "for ever". */
#define VIP_INFINITE ((VIP_ULONG)0xFFFFFFFFUL)

/* Bytes. A descriptor that is not aligned cannot be posted. */
#define VIP_DESCRIPTOR_ALIGNMENT 64
/* Data may begin anywhere; buffers that begin with a cache line are the fastest. */
#define VIP_DATA_ALIGNMENT 64

/* ---- Return codes ---- */

typedef enum {
  VIP_SUCCESS = 0,
  VIP_NOT_DONE = 1, /* a poll: not yet complete */
  VIP_INVALID_PARAMETER = 2,
  VIP_ERROR_RESOURCE = 3, /* no room, or still in use */
  VIP_TIMEOUT = 4,
  VIP_REJECT = 5, /* the server rejected the request */
  VIP_INVALID_RELIABILITY_LEVEL = 6,
  VIP_INVALID_MTU = 7, /* MaxTransferSize */
  VIP_INVALID_QOS = 8,
  VIP_INVALID_PTAG = 9,
  VIP_INVALID_RDMAREAD = 10,
  VIP_DESCRIPTOR_ERROR = 11,  /* the descriptor completed with an error, or there is none (NULL) */
  VIP_INVALID_STATE = 12,     /* not in this state of the VI */
  VIP_ERROR_NAMESERVICE = 13, /* name not known, or no VipNSInit */
  VIP_NO_MATCH = 14,          /* no program waits for this discriminator */
  VIP_NOT_REACHABLE = 15,     /* no route, or another version of the protocol */
  VIP_ERROR_NOT_SUPPORTED = 16,
  VIP_ERROR = VIP_DESCRIPTOR_ERROR /* cLAN's name */
} VIP_RETURN;

/* ---- Descriptors ----
 * A descriptor is a control segment and the segments that it counts, one behind the other. The
 * array has no end: allocate sizeof(VIP_DESCRIPTOR) + n * sizeof(VIP_DATA_SEGMENT) for more than
 * two.
 */

/* An address, with 64 bits on every machine. */
typedef union {
  VIP_UINT64 AddressBits;
  VIP_PVOID Address;
  struct _VIP_DESCRIPTOR* Descriptor;
} VIP_PVOID64;

/* The first segment of every descriptor: what is to be done, and what came of it. */
typedef struct {
  VIP_PVOID64 Next;          /* the library's while the descriptor is posted */
  VIP_MEM_HANDLE NextHandle; /* likewise */
  VIP_UINT16 SegCount;       /* segments behind this one, the address segment too */
  VIP_UINT16 Control;        /* VIP_CONTROL_... */
  VIP_UINT32 Reserved;
  VIP_UINT32 ImmediateData; /* host's byte order; of a receive: only if VIP_STATUS_IMMEDIATE */
  VIP_UINT32 Length;        /* bytes in all data segments; a completed receive: bytes received */
  VIP_UINT32 Status;        /* VIP_STATUS_...; cleared when posted, DONE is written last */
} VIP_CONTROL_SEGMENT;

/* The second segment of an RDMA descriptor: memory of the other side. */
typedef struct {
  VIP_PVOID64 Data;
  VIP_MEM_HANDLE Handle; /* the other side's */
  VIP_UINT32 Reserved;
} VIP_ADDRESS_SEGMENT;

/* Memory of this side, from which data is gathered or into which it is scattered. */
typedef struct {
  VIP_PVOID64 Data;
  VIP_MEM_HANDLE Handle;
  VIP_UINT32 Length; /* bytes */
} VIP_DATA_SEGMENT;

typedef union {
  VIP_ADDRESS_SEGMENT Remote;
  VIP_DATA_SEGMENT Local;
} VIP_DESCRIPTOR_SEGMENT;

/* Two dialects name the same bytes: CS and DS[] (Intel, M-VIA), Control and Data[] (Giganet). */
#ifdef __GNUC__
__extension__ /* C before C11 has no anonymous unions */
#endif
    typedef struct _VIP_DESCRIPTOR {
  union {
    VIP_CONTROL_SEGMENT CS;
    VIP_CONTROL_SEGMENT Control;
  };
  union {
    VIP_DESCRIPTOR_SEGMENT DS[2];
    VIP_DATA_SEGMENT Data[2];
  };
} VIP_DESCRIPTOR;

/* Bits of Control. IMMEDIATE: the message carries ImmediateData. QFENCE: wait until earlier RDMA
 * reads of this queue are complete. */
#define VIP_CONTROL_OP_SENDRECV 0x0
#define VIP_CONTROL_OP_RDMAWRITE 0x1
#define VIP_CONTROL_OP_RDMAREAD 0x2
#define VIP_CONTROL_OP_RESERVED 0x3
#define VIP_CONTROL_OP_MASK 0x3
#define VIP_CONTROL_IMMEDIATE 0x4
#define VIP_CONTROL_QFENCE 0x8
#define VIP_CONTROL_RESERVED 0xFFF0

/* Bits of Status. The errors: FORMAT, the descriptor makes no sense. PROTECTION, a handle, range or
 * tag of this side. LENGTH, a message longer than its receive, or Length is not the sum.
 * DESC_FLUSHED, not executed, because the connection ended. TRANSPORT, the network or the device.
 * RDMA_PROT, the other side does not allow the RDMA. REMOTE_DESC, the other side's receive was
 * missing or too small. */
#define VIP_STATUS_DONE 0x00001
#define VIP_STATUS_FORMAT_ERROR 0x00002
#define VIP_STATUS_PROTECTION_ERROR 0x00004
#define VIP_STATUS_LENGTH_ERROR 0x00008
#define VIP_STATUS_PARTIAL_ERROR 0x00010
#define VIP_STATUS_DESC_FLUSHED_ERROR 0x00020
#define VIP_STATUS_TRANSPORT_ERROR 0x00040
#define VIP_STATUS_RDMA_PROT_ERROR 0x00080
#define VIP_STATUS_REMOTE_DESC_ERROR 0x00100
#define VIP_STATUS_ERROR_MASK 0x001FE
/* What was executed. REMOTE_RDMA_WRITE: of a receive, an RDMA write with immediate data. */
#define VIP_STATUS_OP_MASK 0x70000
#define VIP_STATUS_OP_SEND 0x00000
#define VIP_STATUS_OP_RECEIVE 0x10000
#define VIP_STATUS_OP_RDMA_WRITE 0x20000
#define VIP_STATUS_OP_REMOTE_RDMA_WRITE 0x30000
#define VIP_STATUS_OP_RDMA_READ 0x40000
#define VIP_STATUS_IMMEDIATE 0x80000
#define VIP_STATUS_RESERVED 0xFFF0FE00

/* ---- States and attributes ---- */

/* VipConnect... leads from Idle through Connect Pending to Connected, an error from Connected to
 * Error, and VipDisconnect from everywhere to Idle. */
typedef enum {
  VIP_STATE_IDLE = 0,
  VIP_STATE_CONNECTED = 1,
  VIP_STATE_CONNECT_PENDING = 2,
  VIP_STATE_ERROR = 3
} VIP_VI_STATE;

typedef VIP_USHORT VIP_RELIABILITY_LEVEL; /* one bit, or a mask of them */
/* Unreliable: messages may be lost. Reliable Delivery: each arrives once and in order, or the
 * connection breaks. Reliable Reception: a send also completes with the reason if it failed on the
 * other side. */
#define VIP_SERVICE_UNRELIABLE 0x01
#define VIP_SERVICE_RELIABLE_DELIVERY 0x02
#define VIP_SERVICE_RELIABLE_RECEPTION 0x04

/* HostAddressLen bytes of address, then at once DiscriminatorLen bytes of discriminator. The array
 * has no end: allocate sizeof(VIP_NET_ADDRESS) and both lengths. */
typedef struct _VIP_NET_ADDRESS {
  VIP_UINT16 HostAddressLen;
  VIP_UINT16 DiscriminatorLen;
  VIP_UINT8 HostAddress[1];
} VIP_NET_ADDRESS;

/* What a NIC is and can do; constant while it is open. */
typedef struct _VIP_NIC_ATTRIBUTES {
  VIP_CHAR Name[64]; /* as given to VipOpenNic */
  VIP_ULONG HardwareVersion;
  VIP_ULONG ProviderVersion;
  VIP_UINT16 NicAddressLen;         /* 6 */
  const VIP_UINT8* LocalNicAddress; /* the library's; lives as long as the NIC handle */
  VIP_BOOLEAN ThreadSafe;           /* VIP_TRUE, unless the program drives the NIC */
  VIP_UINT16 MaxDiscriminatorLen;   /* bytes */
  VIP_ULONG MaxRegisterBytes;       /* of all regions together */
  VIP_ULONG MaxRegisterRegions;
  VIP_ULONG MaxRegisterBlockBytes; /* of one region */
  VIP_ULONG MaxVI;
  VIP_ULONG MaxDescriptorsPerQueue; /* posted and not yet dequeued */
  VIP_ULONG MaxSegmentsPerDesc;     /* SegCount */
  VIP_ULONG MaxCQ;
  VIP_ULONG MaxCQEntries;
  VIP_ULONG MaxTransferSize; /* bytes of a message */
  VIP_ULONG NativeMTU;       /* bytes of a packet */
  VIP_ULONG MaxPtags;
  VIP_RELIABILITY_LEVEL ReliabilityLevelSupport; /* all that it has */
  VIP_RELIABILITY_LEVEL RDMAReadSupport;         /* the levels on which RDMA Read works */
} VIP_NIC_ATTRIBUTES;

/* ReliabilityLevel, MaxTransferSize and QoS must be equal on both sides of a connection. */
typedef struct _VIP_VI_ATTRIBUTES {
  VIP_RELIABILITY_LEVEL ReliabilityLevel; /* exactly one bit */
  VIP_ULONG MaxTransferSize;              /* bytes of a message, at most the NIC's */
  VIP_QOS QoS;
  VIP_PROTECTION_HANDLE Ptag;  /* NULL: the default tag */
  VIP_BOOLEAN EnableRdmaWrite; /* the other side may write here */
  VIP_BOOLEAN EnableRdmaRead;  /* the other side may read here */
} VIP_VI_ATTRIBUTES;

/* A VI uses memory of its own tag only. RDMA needs the permission of the VI and of the region. */
typedef struct _VIP_MEM_ATTRIBUTES {
  VIP_PROTECTION_HANDLE Ptag;  /* NULL: the default tag */
  VIP_BOOLEAN EnableRdmaWrite; /* may be the target of the other side's writes */
  VIP_BOOLEAN EnableRdmaRead;  /* ... of the other side's reads */
} VIP_MEM_ATTRIBUTES;

/* ---- Asynchronous errors ---- */

/* What an asynchronous error is about. */
typedef enum _VIP_RESOURCE_CODE {
  VIP_RESOURCE_NIC = 0,
  VIP_RESOURCE_VI = 1,
  VIP_RESOURCE_CQ = 2,
  VIP_RESOURCE_DESCRIPTOR = 3
} VIP_RESOURCE_CODE;

/* This library reports CONN_LOST, RECVQ_EMPTY, RDMAW_PROT, RDMAR_PROT and CATASTROPHIC. */
typedef enum _VIP_ERROR_CODE {
  VIP_ERROR_POST_DESC = 0,
  VIP_ERROR_CONN_LOST = 1,
  VIP_ERROR_RECVQ_EMPTY = 2,
  VIP_ERROR_VI_OVERRUN = 3,
  VIP_ERROR_RDMAW_PROT = 4,
  VIP_ERROR_RDMAW_DATA = 5,
  VIP_ERROR_RDMAW_ABORT = 6,
  VIP_ERROR_RDMAR_PROT = 7,
  VIP_ERROR_COMP_PROT = 8,
  VIP_ERROR_RDMA_TRANSPORT = 9,
  VIP_ERROR_CATASTROPHIC = 10
} VIP_ERROR_CODE;

/* An asynchronous error. Handles that do not apply are NULL. Valid during the handler's call. */
typedef struct _VIP_ERROR_DESCRIPTOR {
  VIP_NIC_HANDLE NicHandle;
  VIP_VI_HANDLE ViHandle;
  VIP_CQ_HANDLE CQHandle;
  VIP_DESCRIPTOR* DescriptorPtr;
  VIP_ULONG OpCode;
  VIP_RESOURCE_CODE ResourceCode;
  VIP_ERROR_CODE ErrorCode;
} VIP_ERROR_DESCRIPTOR;

/* ---- System management ---- */

#define VIP_SMI_AUTODISCOVERY ((VIP_ULONG)1)

typedef struct {
  VIP_ULONG NumberOfHops;
  VIP_NET_ADDRESS** ADAddrArray;
  VIP_ULONG NumAdAddrs;
} VIP_AUTODISCOVERY_LIST;

/* ---- Handlers ---- */

/* Handlers run one at a time on a thread of the library, which holds no lock meanwhile: they may
 * call any function. (On a NIC that its program drives they run in VipNicProgress and VipNicArm.) A
 * handler of VIP_VI_CALLBACK gets the descriptor, dequeued; one of VIP_CQ_CALLBACK dequeues it
 * itself. */
typedef void (*VIP_ERROR_HANDLER)(VIP_PVOID Context, VIP_ERROR_DESCRIPTOR* ErrorDesc);
typedef void (*VIP_VI_CALLBACK)(VIP_PVOID Context, VIP_NIC_HANDLE NicHandle, VIP_VI_HANDLE ViHandle,
                                VIP_DESCRIPTOR* Descriptor);
typedef void (*VIP_CQ_CALLBACK)(VIP_PVOID Context, VIP_NIC_HANDLE NicHandle, VIP_VI_HANDLE ViHandle,
                                VIP_BOOLEAN RecvQueue);

/* ---- NIC ---- */

/* Opens a NIC by name; viaduct-info prints the names. Each call gives another handle. An error that
 * has a remedy is explained on standard error. */
VIP_RETURN VipOpenNic(IN const VIP_CHAR* DeviceName, OUT VIP_NIC_HANDLE* NicHandle);
/* Reclaims all that belongs to the handle. Blocked calls of other threads return. Waits for a
 * handler that is running, unless the handler makes this call. */
VIP_RETURN VipCloseNic(IN VIP_NIC_HANDLE NicHandle);
VIP_RETURN VipQueryNic(IN VIP_NIC_HANDLE NicHandle, OUT VIP_NIC_ATTRIBUTES* Attributes);
/* Registers the handler of asynchronous errors; NULL: they are printed on standard error, except
 * CONN_LOST. */
VIP_RETURN VipErrorCallback(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID Context,
                            IN VIP_ERROR_HANDLER Handler);
/* VIP_ERROR_NOT_SUPPORTED. */
VIP_RETURN VipQuerySystemManagementInfo(IN VIP_NIC_HANDLE NicHandle, IN VIP_ULONG InfoType,
                                        OUT VIP_PVOID SysManInfo);

/* ---- Protection and memory ---- */

/* VipDestroyPtag: VIP_ERROR_RESOURCE while a VI or a region uses the tag. */
VIP_RETURN VipCreatePtag(IN VIP_NIC_HANDLE NicHandle, OUT VIP_PROTECTION_HANDLE* Ptag);
VIP_RETURN VipDestroyPtag(IN VIP_NIC_HANDLE NicHandle, IN VIP_PROTECTION_HANDLE Ptag);
/* Length is in bytes. MemAttribs NULL: the default tag, no RDMA. The same memory may be registered
 * several times. */
VIP_RETURN VipRegisterMem(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID VirtualAddress,
                          IN VIP_ULONG Length, IN VIP_MEM_ATTRIBUTES* MemAttribs,
                          OUT VIP_MEM_HANDLE* MemoryHandle);
/* VirtualAddress must be the registered one. VIP_ERROR_RESOURCE: the device has a descriptor that
 * uses the memory. */
VIP_RETURN VipDeregisterMem(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID VirtualAddress,
                            IN VIP_MEM_HANDLE MemoryHandle);
/* The handle stays the same. Returns when the other sides of all connections know of the change.
 * VIP_ERROR_RESOURCE: the device has a descriptor that uses the memory. */
VIP_RETURN VipSetMemAttributes(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID Address,
                               IN VIP_MEM_HANDLE MemHandle, IN VIP_MEM_ATTRIBUTES* MemAttribs);
VIP_RETURN VipQueryMem(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID Address,
                       IN VIP_MEM_HANDLE MemHandle, OUT VIP_MEM_ATTRIBUTES* MemAttribs);

/* ---- VI ---- */

/* Makes an Idle VI. A CQ handle may be NULL: then completions of that queue have no entries in any
 * CQ. Both may be the same CQ. */
VIP_RETURN VipCreateVi(IN VIP_NIC_HANDLE NicHandle, IN VIP_VI_ATTRIBUTES* ViAttribs,
                       IN VIP_CQ_HANDLE SendCQHandle, IN VIP_CQ_HANDLE RecvCQHandle,
                       OUT VIP_VI_HANDLE* ViHandle);
/* VIP_INVALID_STATE unless the VI is Idle. Descriptors that are still in its queues are the
 * program's again. */
VIP_RETURN VipDestroyVi(IN VIP_VI_HANDLE ViHandle);
/* In the state Idle only. */
VIP_RETURN VipSetViAttributes(IN VIP_VI_HANDLE ViHandle, IN VIP_VI_ATTRIBUTES* ViAttribs);
/* OUT pointers may be NULL. */
VIP_RETURN VipQueryVi(IN VIP_VI_HANDLE ViHandle, OUT VIP_VI_STATE* State,
                      OUT VIP_VI_ATTRIBUTES* ViAttribs, OUT VIP_BOOLEAN* SendQEmpty,
                      OUT VIP_BOOLEAN* RecvQEmpty);

/* ---- Connections: client and server ---- */

/* The server's: blocks until a client asks for the discriminator of LocalAddr, at most Timeout (0:
 * does not block). RemoteAddr and RemoteViAttribs may be NULL; RemoteAddr needs room for a
 * discriminator of MaxDiscriminatorLen. */
VIP_RETURN VipConnectWait(IN VIP_NIC_HANDLE NicHandle, IN VIP_NET_ADDRESS* LocalAddr,
                          IN VIP_ULONG Timeout, OUT VIP_NET_ADDRESS* RemoteAddr,
                          OUT VIP_VI_ATTRIBUTES* RemoteViAttribs, OUT VIP_CONN_HANDLE* ConnHandle);
/* Connects an Idle VI with the client; blocks until the client is connected as well. If the
 * attributes differ the client is not told: change the VI and accept again, or reject. */
VIP_RETURN VipConnectAccept(IN VIP_CONN_HANDLE ConnHandle, IN VIP_VI_HANDLE ViHandle);
/* The client's VipConnectRequest returns VIP_REJECT. */
VIP_RETURN VipConnectReject(IN VIP_CONN_HANDLE ConnHandle);
/* The client's: connects an Idle VI; blocks until the server answers, at most Timeout (not 0). Of
 * LocalAddr only the discriminator counts. After a failure the VI is Idle and its receives stay
 * posted. */
VIP_RETURN VipConnectRequest(IN VIP_VI_HANDLE ViHandle, IN VIP_NET_ADDRESS* LocalAddr,
                             IN VIP_NET_ADDRESS* RemoteAddr, IN VIP_ULONG Timeout,
                             OUT VIP_VI_ATTRIBUTES* RemoteViAttribs);
/* Ends the connection or the attempt, in any state: the VI is Idle afterwards, and all descriptors
 * complete. The other side's VI goes to Error. */
VIP_RETURN VipDisconnect(IN VIP_VI_HANDLE ViHandle);

/* ---- Connections: peer to peer ---- */

/* Begins to connect to a peer that does the same with the addresses exchanged, in any order; does
 * not block. Timeout counts from here. */
VIP_RETURN VipConnectPeerRequest(IN VIP_VI_HANDLE ViHandle, IN VIP_NET_ADDRESS* LocalAddr,
                                 IN VIP_NET_ADDRESS* RemoteAddr, IN VIP_ULONG Timeout);
/* The outcome, told once: Done polls (VIP_NOT_DONE), Wait blocks. */
VIP_RETURN VipConnectPeerDone(IN VIP_VI_HANDLE ViHandle, OUT VIP_VI_ATTRIBUTES* RemoteAttribs);
VIP_RETURN VipConnectPeerWait(IN VIP_VI_HANDLE ViHandle, OUT VIP_VI_ATTRIBUTES* RemoteAttribs);

/* ---- Data transfer ---- */

/* Appends a descriptor to the send queue: a send, an RDMA write or an RDMA read. The descriptor and
 * its buffers are the library's until it completes. What is wrong with its contents is told in its
 * Status, not by the return code. */
VIP_RETURN VipPostSend(IN VIP_VI_HANDLE ViHandle, IN VIP_DESCRIPTOR* DescriptorPtr,
                       IN VIP_MEM_HANDLE MemoryHandle);
/* Dequeues the oldest descriptor if it has completed. VIP_DESCRIPTOR_ERROR: it has an error, or
 * (NULL) the queue is empty. VIP_NOT_DONE: not yet, and the pointer is NULL. */
VIP_RETURN VipSendDone(IN VIP_VI_HANDLE ViHandle, OUT VIP_DESCRIPTOR** DescriptorPtr);
/* The same, but blocks until the oldest descriptor has completed, at most Timeout. An empty queue
 * is not waited for. */
VIP_RETURN VipSendWait(IN VIP_VI_HANDLE ViHandle, IN VIP_ULONG Timeout,
                       OUT VIP_DESCRIPTOR** DescriptorPtr);
/* When the oldest descriptor has completed it is dequeued, and Callback is called with it, once.
 * Several registrations are served in their order. */
VIP_RETURN VipSendNotify(IN VIP_VI_HANDLE ViHandle, IN VIP_PVOID Context,
                         IN VIP_VI_CALLBACK Callback);
/* The receive queue: the same. Receives may be posted before the VI is connected. */
VIP_RETURN VipPostRecv(IN VIP_VI_HANDLE ViHandle, IN VIP_DESCRIPTOR* DescriptorPtr,
                       IN VIP_MEM_HANDLE MemoryHandle);
VIP_RETURN VipRecvDone(IN VIP_VI_HANDLE ViHandle, OUT VIP_DESCRIPTOR** DescriptorPtr);
VIP_RETURN VipRecvWait(IN VIP_VI_HANDLE ViHandle, IN VIP_ULONG Timeout,
                       OUT VIP_DESCRIPTOR** DescriptorPtr);
VIP_RETURN VipRecvNotify(IN VIP_VI_HANDLE ViHandle, IN VIP_PVOID Context,
                         IN VIP_VI_CALLBACK Callback);

/* ---- Completion queues ---- */

/* EntryCount entries can be in use at once; the CQ grows if more descriptors are posted. */
VIP_RETURN VipCreateCQ(IN VIP_NIC_HANDLE NicHandle, IN VIP_ULONG EntryCount,
                       OUT VIP_CQ_HANDLE* CQHandle);
/* VIP_ERROR_RESOURCE while a VI uses it. */
VIP_RETURN VipDestroyCQ(IN VIP_CQ_HANDLE CQHandle);
VIP_RETURN VipResizeCQ(IN VIP_CQ_HANDLE CQHandle, IN VIP_ULONG EntryCount);
/* Takes the oldest entry: RecvQueue says which queue of the VI has a completed descriptor, which
 * the program then dequeues with VipRecvDone or VipSendDone. Done polls, Wait blocks. */
VIP_RETURN VipCQDone(IN VIP_CQ_HANDLE CQHandle, OUT VIP_VI_HANDLE* ViHandle,
                     OUT VIP_BOOLEAN* RecvQueue);
VIP_RETURN VipCQWait(IN VIP_CQ_HANDLE CQHandle, IN VIP_ULONG Timeout, OUT VIP_VI_HANDLE* ViHandle,
                     OUT VIP_BOOLEAN* RecvQueue);
/* Callback is called with the next entry, once. Several registrations are served in their order. */
VIP_RETURN VipCQNotify(IN VIP_CQ_HANDLE CQHandle, IN VIP_PVOID Context,
                       IN VIP_CQ_CALLBACK Callback);

/* ---- Name service ---- */

/* Before any look-up; counted, so every VipNSInit may have its VipNSShutdown. NSInitInfo is
 * ignored. */
VIP_RETURN VipNSInit(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID NSInitInfo);
/* Address number NameIndex of a host. HostAddressLen on entry: the room there is; 0: enough. */
VIP_RETURN VipNSGetHostByName(IN VIP_NIC_HANDLE NicHandle, IN VIP_CHAR* Name,
                              OUT VIP_NET_ADDRESS* Address, IN VIP_ULONG NameIndex);
/* NameLen: the room in Name, in; the bytes needed with the final zero, out. */
VIP_RETURN VipNSGetHostByAddr(IN VIP_NIC_HANDLE NicHandle, IN VIP_NET_ADDRESS* Address,
                              OUT VIP_CHAR* Name, IN OUT VIP_ULONG* NameLen);
VIP_RETURN VipNSShutdown(IN VIP_NIC_HANDLE NicHandle);

/* ---- Extensions of cLAN: a word of the program's own for each VI ---- */

VIP_PVOID VipGetUserData(IN VIP_VI_HANDLE ViHandle);
void VipSetUserData(IN VIP_VI_HANDLE ViHandle, IN VIP_PVOID UserData);

/* ---- Extensions of this library; docs/vipl.md. #ifdef tells whether it has one ---- */

/* A VI that is to be small: how many descriptors may be outstanding in each queue, and how many
 * segments one may have (SegCount), from the next connection on. */
#define VIP_HAS_VI_CAPACITY 1
VIP_RETURN VipSetViCapacity(IN VIP_VI_HANDLE ViHandle, IN VIP_ULONG SendDescriptors,
                            IN VIP_ULONG RecvDescriptors, IN VIP_ULONG SegmentsPerDesc);

/* Own progress: a program that calls this right after VipOpenNic, before any other function with
 * the handle, drives the NIC itself. The library has no thread for it then, and the program uses it
 * with one thread at a time. OwnPort: what LocalNicAddress points to changes to an address of this
 * handle alone, so that requests do not go through other processes, which may be busy; peers must
 * be told that address. VIP_INVALID_STATE: the NIC is in use, or the program drives it already. */
#define VIP_HAS_OWN_PROGRESS 1
VIP_RETURN VipNicOwnProgress(IN VIP_NIC_HANDLE NicHandle, IN VIP_BOOLEAN OwnPort);
/* Does what is due for connections, the device's events and timers, and calls the handlers that are
 * due, on this thread. Never blocks. To be called in every turn of a polling loop: as long as the
 * last look is not long ago (some 50 us) it makes no system call. The handler of VipErrorCallback
 * tells lost connections, even if nothing is posted. VIP_SUCCESS: VipConnectEvent has an event.
 * VIP_NOT_DONE: it has none. VIP_INVALID_STATE: the NIC's threads drive it, here and below. */
VIP_RETURN VipNicProgress(IN VIP_NIC_HANDLE NicHandle);
/* The file descriptor to sleep on, with poll() or epoll: readable when a CQ that VipNicArm has
 * armed gets an entry, and when VipNicProgress has work to do, timers included. It is the
 * library's, and is neither to be read nor closed. */
VIP_RETURN VipNicDescriptor(IN VIP_NIC_HANDLE NicHandle, OUT int* FileDescriptor);
/* Before each sleep: does what VipNicProgress does, and arms these CQs of the NIC. VIP_SUCCESS: the
 * program may sleep. VIP_NOT_DONE: it must not, because there is something for it to take, or a
 * handler has been called. */
VIP_RETURN VipNicArm(IN VIP_NIC_HANDLE NicHandle, IN VIP_CQ_HANDLE* CQHandles,
                     IN VIP_ULONG CQCount);

/* An address with all the room that one needs. */
typedef union _VIP_ADDRESS_ROOM {
  VIP_NET_ADDRESS Address;
  VIP_UINT8 Room[32];
} VIP_ADDRESS_ROOM;

/* Events of connections on a NIC that its program drives. OUTCOME: what became of a peer request.
 * PEER_ASKS: a peer asks, and no VI here has asked for it, see VipPeerListen. */
#define VIP_HAS_CONNECT_EVENTS 1
typedef enum _VIP_CONNECT_EVENT_CODE {
  VIP_EVENT_OUTCOME = 0,
  VIP_EVENT_PEER_ASKS = 1
} VIP_CONNECT_EVENT_CODE;
typedef struct _VIP_CONNECT_EVENT {
  VIP_CONNECT_EVENT_CODE Code;
  VIP_VI_HANDLE ViHandle;            /* OUTCOME: of the request */
  VIP_RETURN Outcome;                /* OUTCOME: as VipConnectPeerDone would have returned it */
  VIP_VI_ATTRIBUTES RemoteViAttribs; /* PEER_ASKS; OUTCOME: if connected */
  VIP_ADDRESS_ROOM LocalAddr;        /* as in the request of this side, or in its answer */
  VIP_ADDRESS_ROOM RemoteAddr;
} VIP_CONNECT_EVENT;
/* The oldest outcome that the program has not got, of all VIs; it counts as returned. The cost does
 * not depend on the number of VIs. VIP_NOT_DONE: there is none. */
VIP_RETURN VipConnectEvent(IN VIP_NIC_HANDLE NicHandle, OUT VIP_CONNECT_EVENT* Event);

/* On a NIC that its program drives: from now on, until VipPeerStopListening, a peer that asks for a
 * discriminator with the prefix that LocalAddr has as its discriminator, and for which no VI here
 * has asked, is an event (PEER_ASKS), once. Its request waits for the program, which answers with
 * VipConnectPeerRequest for the event's two addresses, or with VipPeerRefuse. Requests for
 * discriminators that do not have the KeyLength bytes of Key behind the prefix, and for which no VI
 * here has asked, are unauthorized: refused and counted. VIP_ERROR_RESOURCE: another listener at
 * this NIC address has the prefix. */
#define VIP_HAS_PEER_LISTENER 1
VIP_RETURN VipPeerListen(IN VIP_NIC_HANDLE NicHandle, IN VIP_NET_ADDRESS* LocalAddr,
                         IN VIP_UINT8* Key, IN VIP_ULONG KeyLength);
/* The prefix is free again. Peers whose requests wait for that listener get VIP_REJECT; whoever
 * asks later finds nobody. VIs that have asked, or have an answer under way, go on. LocalAddr as it
 * was given to VipPeerListen, else VIP_NO_MATCH. Closing the NIC does the same, without the answer.
 */
VIP_RETURN VipPeerStopListening(IN VIP_NIC_HANDLE NicHandle, IN VIP_NET_ADDRESS* LocalAddr);
/* The peer gets VIP_REJECT. VIP_NO_MATCH: its request no longer waits. */
VIP_RETURN VipPeerRefuse(IN VIP_NIC_HANDLE NicHandle, IN VIP_NET_ADDRESS* LocalAddr,
                         IN VIP_NET_ADDRESS* RemoteAddr);
/* How many requests wait now, and how many unauthorized ones were refused so far. LocalAddr as it
 * was given to VipPeerListen, else VIP_NO_MATCH. OUT pointers may be NULL. */
VIP_RETURN VipPeerQuery(IN VIP_NIC_HANDLE NicHandle, IN VIP_NET_ADDRESS* LocalAddr,
                        OUT VIP_ULONG* Waiting, OUT VIP_ULONG* Unauthorized);

#ifdef __cplusplus
}
#endif

#endif /* VIADUCT_VIPL_H */
