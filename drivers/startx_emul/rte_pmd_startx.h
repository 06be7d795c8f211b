/* The StarT-X driver for C: packets in two priorities, cacheable queues, remote DMA.
 *
 * The mechanisms and their units are those of the StarT-X network interface in "MPI-StarT:
 * Delivering Network Performance to Numerical Applications" (SC98), section 2; docs/startx.md tells
 * what is the same and what is not.
 *
 * Thread rule: all calls on one handle come from one thread at a time. No call but
 * rte_pmd_startx_open() blocks; nothing moves unless rte_pmd_startx_poll() is called often.
 *
 * Ownership: packets that peek and reserve return lie in the driver's queues, and the pointers are
 * valid until pop and commit. Memory that is registered for RDMA stays the caller's. Peers, regions
 * and transfers are numbers, so a stale one is an error and not a crash; 0 is none of them.
 *
 * Errors: calls that return int return 0, or a negative errno:
 *   -EINVAL     a null handle or pointer, a number out of its range, one's own address
 *   -EAGAIN     no room now: poll (and take completions), then try again
 *   -EHOSTDOWN  that peer has ended
 *   -EMSGSIZE   packet: not 2 to 22 words. RDMA: the sender has more than the receiver allows
 *   -EFAULT     RDMA: no such region, or the range lies outside it
 *   -ESTALE     RDMA: the right has been revoked or used
 *   -ENOENT     nothing of that kind is there
 *   -EBUSY      in use
 *   -ENOMEM     no memory
 */
#ifndef RTE_PMD_STARTX_H_
#define RTE_PMD_STARTX_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A node: one port, its peers and queues. */
struct rte_pmd_startx;

/* Payload words (of 32 bits) in a packet: least and most. */
#define RTE_PMD_STARTX_MIN_WORDS 2
#define RTE_PMD_STARTX_MAX_WORDS 22

/* Each priority has queues and flow control of its own. High may delay low, never the reverse. */
enum rte_pmd_startx_priority { RTE_PMD_STARTX_HIGH = 0, RTE_PMD_STARTX_LOW = 1 };

/* Both are delivered exactly once; unordered packets as soon as they arrive. */
enum rte_pmd_startx_order { RTE_PMD_STARTX_ORDERED = 0, RTE_PMD_STARTX_UNORDERED = 1 };

/* Queue numbers of the rawdev API (rte_rawdev_enqueue_buffers and _dequeue_buffers take one, cast
 * to a pointer, as `context`). A buffer to send holds a struct rte_pmd_startx_outgoing and is
 * copied; a buffer to receive into has room for a struct rte_pmd_startx_received. Dequeueing polls.
 */
enum rte_pmd_startx_queue {
  RTE_PMD_STARTX_PIO_HIGH = 0,
  RTE_PMD_STARTX_PIO_LOW = 1,
  RTE_PMD_STARTX_QUEUE_HIGH = 2,
  RTE_PMD_STARTX_QUEUE_LOW = 3,
  RTE_PMD_STARTX_QUEUES = 4
};

/* The packets lie in the driver's own queues: reading them in place is no aliasing violation. */
#define RTE_PMD_STARTX_IN_PLACE __attribute__((may_alias))

/* A packet to send. */
struct RTE_PMD_STARTX_IN_PLACE rte_pmd_startx_packet {
  uint32_t tag;  /* header word 1, not interpreted */
  uint8_t words; /* payload words in use */
  uint8_t order; /* enum rte_pmd_startx_order */
  uint32_t payload[RTE_PMD_STARTX_MAX_WORDS];
};

/* An entry of a transmit queue (cacheable queues), and a buffer of rte_rawdev_enqueue_buffers. */
struct RTE_PMD_STARTX_IN_PLACE rte_pmd_startx_outgoing {
  uint32_t to; /* peer */
  struct rte_pmd_startx_packet packet;
};

/* A received packet. Only the words in use are meaningful. */
struct RTE_PMD_STARTX_IN_PLACE rte_pmd_startx_received {
  uint32_t from; /* peer */
  uint32_t tag;  /* header word 1 of the sender */
  uint8_t words; /* payload words in use */
  uint8_t order; /* enum rte_pmd_startx_order */
  uint32_t payload[RTE_PMD_STARTX_MAX_WORDS];
};

/* Zero in a field means its default. Also the private part of rte_rawdev_info for
 * rte_rawdev_configure() and rte_rawdev_info_get(). */
struct rte_pmd_startx_conf {
  uint32_t queue_depth; /* packets in each queue, a power of two; default 1024 */
  uint32_t max_open;    /* transfers open for receiving at once; default 16; 1: they take turns */
  uint32_t max_posted;  /* sends, receives and requests known at once (each); default 1024 */
  uint32_t max_regions; /* default 256 */
  uint64_t job_key;     /* only nodes of one job talk; default: VIADUCT_JOB */
};

/* Opens a node on a port: "0000:3b:02.1", "net_memif0,role=server,socket=x", "port:net_ring0" for
 * an ethdev that the application has. Starts EAL unless it runs. `conf` may be NULL. NULL on
 * failure: rte_errno is set and rte_pmd_startx_error() says what, why and what to do about it. */
struct rte_pmd_startx* rte_pmd_startx_open(const char* port,
                                           const struct rte_pmd_startx_conf* conf);
/* Ends all connections and frees the handle. Not for a handle from rte_pmd_startx_get(), which the
 * rawdev owns. NULL is fine. */
void rte_pmd_startx_close(struct rte_pmd_startx* startx);
/* Why the last open or start in this thread failed, as a sentence. Never NULL. */
const char* rte_pmd_startx_error(void);

/* The node of a started rawdev; valid until it is stopped. NULL: rte_errno is ENODEV when there is
 * no such StarT-X rawdev, ENETDOWN when it is not started. In the shared
 * library only. */
struct rte_pmd_startx* rte_pmd_startx_get(uint16_t dev_id);

/* All progress: sends what was committed, receives, acknowledges, retransmits, finds dead peers.
 * -ENOMEM: a peer that is connecting found no memory. */
int rte_pmd_startx_poll(struct rte_pmd_startx* startx);

/* The Ethernet address of the port: 6 bytes. */
int rte_pmd_startx_address(const struct rte_pmd_startx* startx, uint8_t mac[6]);
/* The peer with that address in `*peer`. The connection is made when something is first sent. The
 * number names one incarnation of the peer and is never used for another: after an event with up =
 * 0 ask again. -ENOSPC: too many peers. */
int rte_pmd_startx_peer(struct rte_pmd_startx* startx, const uint8_t mac[6], uint32_t* peer);

/* PIO: puts one packet on the wire before it returns, or into a frame that leaves with the next
 * poll while four frames of that priority are unacknowledged. */
int rte_pmd_startx_send(struct rte_pmd_startx* startx, uint32_t to, enum rte_pmd_startx_priority,
                        const struct rte_pmd_startx_packet* packet);
/* The oldest received PIO packet of that priority, in place until popped, or NULL. A queue that is
 * not popped fills up; then its senders in that priority must wait (flow control). */
const struct rte_pmd_startx_received* rte_pmd_startx_peek(struct rte_pmd_startx* startx,
                                                          enum rte_pmd_startx_priority);
void rte_pmd_startx_pop(struct rte_pmd_startx* startx, enum rte_pmd_startx_priority);

/* Cacheable queues: the next free entry of the transmit queue, or NULL when the queue is full. Fill
 * in every field, then commit; the next polls send the entries in order. queue_peek and queue_pop
 * are as peek and pop, for the packets that were sent so. */
struct rte_pmd_startx_outgoing* rte_pmd_startx_reserve(struct rte_pmd_startx* startx,
                                                       enum rte_pmd_startx_priority);
void rte_pmd_startx_commit(struct rte_pmd_startx* startx, enum rte_pmd_startx_priority);
const struct rte_pmd_startx_received* rte_pmd_startx_queue_peek(struct rte_pmd_startx* startx,
                                                                enum rte_pmd_startx_priority);
void rte_pmd_startx_queue_pop(struct rte_pmd_startx* startx, enum rte_pmd_startx_priority);

/* Remote DMA ----------------------------------------------------------------------------------- */

/* A transfer is a rendezvous: the receiver posts, the sender requests, the driver grants the right
 * to write, sends the data and tells both sides by a completion. Each started transfer has exactly
 * one completion at its side, unless it is cancelled or revoked. */

/* A range of registered memory, in bytes. */
struct rte_pmd_startx_bytes {
  uint32_t region; /* from rte_pmd_startx_register() */
  uint64_t offset; /* from the start of the region */
  uint64_t length;
};

/* The right to write up to `length` bytes into a receiver, once. May travel in a packet. */
struct rte_pmd_startx_right {
  uint32_t slot;
  uint32_t key; /* remote key */
  uint64_t length;
};

struct rte_pmd_startx_completion {
  uint32_t transfer; /* as given when it was started */
  uint32_t peer;
  int32_t status;    /* 0, -EHOSTDOWN (received bytes are undefined), -EMSGSIZE (none written) or
                        -ESTALE (some may have been written) */
  uint8_t receiving; /* 1: a post or grant; 0: a request or write */
  uint64_t length;   /* bytes transferred */
};

/* Registers `size` bytes of memory, which must stay until they are deregistered. -ENOSPC: too many
 * regions. */
int rte_pmd_startx_register(struct rte_pmd_startx* startx, void* memory, size_t size,
                            uint32_t* region);
/* -EBUSY while a transfer uses the region; -ENOENT: no such region. */
int rte_pmd_startx_deregister(struct rte_pmd_startx* startx, uint32_t region);

/* Receiver: accepts one transfer with this tag, from the peer `from`, or from any peer if that is
 * 0. `transfer`, here and below, gets the name that the completion will have; it may be NULL. */
int rte_pmd_startx_post(struct rte_pmd_startx* startx, uint32_t from, uint32_t tag,
                        const struct rte_pmd_startx_bytes* into, uint32_t* transfer);
/* Takes back a post that no request has met (else -ENOENT): there will be no completion. */
int rte_pmd_startx_cancel(struct rte_pmd_startx* startx, uint32_t transfer);
/* Sender: transfers to the oldest post with that tag at the peer `to`, made before or later. */
int rte_pmd_startx_request(struct rte_pmd_startx* startx, uint32_t to, uint32_t tag,
                           const struct rte_pmd_startx_bytes* from, uint32_t* transfer);
/* The same for callers that carry the right to the sender in a message of their own. -EAGAIN: as
 * many transfers as `max_open` are open already. */
int rte_pmd_startx_grant(struct rte_pmd_startx* startx, uint32_t to,
                         const struct rte_pmd_startx_bytes* into,
                         struct rte_pmd_startx_right* right, uint32_t* transfer);
/* Takes back a right that has not been used up (else -ENOENT): there will be no completion here,
 * and nothing is written any more. A write with it ends with -ESTALE. */
int rte_pmd_startx_revoke(struct rte_pmd_startx* startx, uint32_t transfer);
/* Writes with a right from the peer `to`; may be shorter than the right (else -EMSGSIZE). */
int rte_pmd_startx_write(struct rte_pmd_startx* startx, uint32_t to,
                         const struct rte_pmd_startx_right* right,
                         const struct rte_pmd_startx_bytes* from, uint32_t* transfer);
/* The oldest finished transfer; -ENOENT when there is none. */
int rte_pmd_startx_completion(struct rte_pmd_startx* startx,
                              struct rte_pmd_startx_completion* completion);

/* Connections ---------------------------------------------------------------------------------- */

struct rte_pmd_startx_event {
  uint32_t peer;
  uint8_t mac[6];
  uint8_t up;         /* 1: connected; 0: ended */
  const char* reason; /* why it ended, or NULL; a constant, never to be freed */
};

/* Takes the oldest event of a peer that connected or ended; -ENOENT when there is none. Events that
 * are not taken are lost, oldest first, and take no memory. */
int rte_pmd_startx_event(struct rte_pmd_startx* startx, struct rte_pmd_startx_event* event);

/* Programs that are not linked with the driver ------------------------------------------------- */

/* The functions above, for programs that load the driver at run time (EAL's `-d
 * librte_raw_startx.so`) and are linked with DPDK alone. The rawdev itself hands them out:
 *
 *   uint64_t address;
 *   if (rte_rawdev_get_attr(dev_id, RTE_PMD_STARTX_FUNCTIONS, &address) != 0) ...no such device
 *   const struct rte_pmd_startx_functions* startx = (const void*)(uintptr_t)address;
 *   struct rte_pmd_startx* node = startx->get(dev_id);
 *
 * Members are only ever added, at the end: those of later versions are there if `size` says so. */
#define RTE_PMD_STARTX_FUNCTIONS "rte_pmd_startx_functions"
struct rte_pmd_startx_functions {
  size_t size; /* of this structure, in bytes */
  __typeof__(rte_pmd_startx_get)* get;
  __typeof__(rte_pmd_startx_open)* open;
  __typeof__(rte_pmd_startx_close)* close;
  __typeof__(rte_pmd_startx_error)* error;
  __typeof__(rte_pmd_startx_poll)* poll;
  __typeof__(rte_pmd_startx_address)* address;
  __typeof__(rte_pmd_startx_peer)* peer;
  __typeof__(rte_pmd_startx_send)* send;
  __typeof__(rte_pmd_startx_peek)* peek;
  __typeof__(rte_pmd_startx_pop)* pop;
  __typeof__(rte_pmd_startx_reserve)* reserve;
  __typeof__(rte_pmd_startx_commit)* commit;
  __typeof__(rte_pmd_startx_queue_peek)* queue_peek;
  __typeof__(rte_pmd_startx_queue_pop)* queue_pop;
  __typeof__(rte_pmd_startx_register)* register_memory;
  __typeof__(rte_pmd_startx_deregister)* deregister_memory;
  __typeof__(rte_pmd_startx_post)* post;
  __typeof__(rte_pmd_startx_cancel)* cancel;
  __typeof__(rte_pmd_startx_request)* request;
  __typeof__(rte_pmd_startx_grant)* grant;
  __typeof__(rte_pmd_startx_revoke)* revoke;
  __typeof__(rte_pmd_startx_write)* write;
  __typeof__(rte_pmd_startx_completion)* completion;
  __typeof__(rte_pmd_startx_event)* event;
};

#ifdef __cplusplus
}
#endif

#endif /* RTE_PMD_STARTX_H_ */
