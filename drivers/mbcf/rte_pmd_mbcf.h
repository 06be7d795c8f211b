/* MBCF (Memory-Based Communication Facilities) for C: one-sided requests that act on a remote
 * task's memory, over any DPDK port.
 *
 * A task registers segments of its memory, FIFOs and signals. Each has a remote key, which the task
 * hands to others in messages of its own; whoever knows the key may use it until the task
 * deregisters (withdraws) it. A request names a peer, its target, and a key. The target checks the
 * request before it touches anything, and executes it exactly once, inside the target's poll. Each
 * request ends in one completion. docs/mbcf.md tells what each request promises and why.
 *
 * Units: lengths, offsets and sizes are in bytes. Keys, peers, writers and requests are numbers; 0
 * names no key, peer or writer, but may be the number of a request.
 *
 * Thread rule: all calls on one handle come from one thread at a time. No call blocks; nothing
 * moves unless rte_pmd_mbcf_poll() is called often. Other threads may access exported memory at any
 * time, with atomics where requests do.
 *
 * Ownership: exported memory stays the caller's and must stay until it is withdrawn. Structures
 * passed in are copied. Data that fits a frame is copied, too; longer data, and what is read into,
 * must stay as it is until the request's completion (silent: until a later fence has completed).
 * Pointers that calls return belong to the driver; the comment at each call says how long they are
 * valid.
 *
 * Errors: calls that return int return 0, or a negative errno. The same numbers are the status of
 * completions. c: in a completion; i: from a call that issues a request; o: from other calls.
 *   -EINVAL      i o    a null handle or pointer, a number out of its range, one's own address
 *   -EAGAIN      i o    no room now (also: in the FIFO): poll, take completions, try again
 *   -EHOSTDOWN   c i    the peer has ended; in a completion: executed once or not at all
 *   -ENOENT      c i o  no such key or writer, or it was withdrawn long ago; or there is no entry,
 *                       completion or event to take
 *   -ESTALE      c i    withdrawn by its owner
 *   -EACCES      c      the segment does not allow this
 *   -ERANGE      c      bytes outside the segment
 *   -EFAULT      c      an atomic operand or flag that does not lie on a multiple of its size
 *   -EPROTOTYPE  c i    the key names something else: a FIFO where a segment is needed, or the
 *                       like; an entry chained to a write to another peer than the FIFO's
 *   -EDQUOT      c      a FIFO entry without credit: a broken writer
 *   -EMSGSIZE    c i o  an entry larger than its FIFO, than what may ride on a write, or than the
 *                       memory it is to be copied to
 *   -ENOSPC      o      a table is full: max_keys, or the peers of the link
 *   -ENOMEM      i o    no memory. rte_pmd_mbcf_error() tells more
 *   -EMFILE      o      no file descriptor for a FIFO or signal. rte_pmd_mbcf_error() tells more
 *   -EIO         i o    another failure of the system. rte_pmd_mbcf_error() tells more
 * After an error from a call that issues a request nothing was sent and there is no completion.
 */
#ifndef RTE_PMD_MBCF_H_
#define RTE_PMD_MBCF_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A node: one port, its peers, keys and requests. */
struct rte_pmd_mbcf;
/* A FIFO of this task. */
struct rte_pmd_mbcf_fifo;

/* Zero in a field means its default. The tables are made when the node is opened. Also the private
 * part of rte_rawdev_info for rte_rawdev_configure() and rte_rawdev_info_get(). */
struct rte_pmd_mbcf_conf {
  uint32_t max_keys;     /* segments, FIFOs and signals of this task; default 1024, most 65535 */
  uint32_t max_requests; /* without their completion taken; default 1024, most 65535 */
  uint32_t max_writers;  /* open ends of other tasks' FIFOs; default 4096, most 65535 */
  uint64_t job_key;      /* only nodes of one job talk; default: VIADUCT_JOB */
};

/* Opens a node on a port: "0000:3b:02.1", "net_memif0,role=server,socket=x", "port:net_ring0" for
 * an ethdev that the application has. Starts EAL unless it runs. `conf` may be NULL. NULL on
 * failure: rte_errno is set and rte_pmd_mbcf_error() says what, why and what to do about it. */
struct rte_pmd_mbcf* rte_pmd_mbcf_open(const char* port, const struct rte_pmd_mbcf_conf* conf);
/* Withdraws everything and ends all connections; there will be no more completions. Not for a
 * handle from rte_pmd_mbcf_get(), and not from a signal's handler. NULL is fine. */
void rte_pmd_mbcf_close(struct rte_pmd_mbcf* mbcf);
/* Why the last call in this thread that sets something up failed (open, start, create_...), as a
 * sentence. Never NULL. */
const char* rte_pmd_mbcf_error(void);

/* The node of a started rawdev; valid until it is stopped. NULL: rte_errno is ENODEV when there is
 * no such MBCF rawdev, ENETDOWN when it is not started. In the shared
 * library only. */
struct rte_pmd_mbcf* rte_pmd_mbcf_get(uint16_t dev_id);

/* All progress: executes requests of peers, sends what is due (pieces of long requests, credit
 * messages, acknowledgements), retransmits, finds dead peers, calls the handlers of signals. Must
 * not be called from such a handler. */
int rte_pmd_mbcf_poll(struct rte_pmd_mbcf* mbcf);

/* The Ethernet address of the port: 6 bytes. */
int rte_pmd_mbcf_address(const struct rte_pmd_mbcf* mbcf, uint8_t mac[6]);
/* The peer with that address in `*peer`. The connection is made when something is first sent. The
 * number is never used for another: after a peer_down event ask again. -ENOSPC: too many peers. */
int rte_pmd_mbcf_peer(struct rte_pmd_mbcf* mbcf, const uint8_t mac[6], uint32_t* peer);

/* What this task registers (these calls may allocate) ------------------------------------------ */

/* What requests may do with a segment: a sum of these. */
enum rte_pmd_mbcf_rights { RTE_PMD_MBCF_READ = 1, RTE_PMD_MBCF_WRITE = 2, RTE_PMD_MBCF_ATOMIC = 4 };

/* Registers memory under a new key. `rights` 0: the key is valid, but nothing is allowed. */
int rte_pmd_mbcf_export(struct rte_pmd_mbcf* mbcf, void* memory, size_t size, uint32_t rights,
                        uint64_t* key);
/* Deregisters a segment, FIFO or signal: from now on requests find the key withdrawn. Nothing
 * touches the memory after this returns, not even a long request that is under way; a FIFO's
 * entries and a signal's descriptor are gone. May be called from a signal's handler. -ENOENT: no
 * such key of this task. */
int rte_pmd_mbcf_withdraw(struct rte_pmd_mbcf* mbcf, uint64_t key);

/* A queue of at least `bytes` (rounded up to a power of two and to pages; at most 2^36) in memory
 * of its own, that others append to. `*fifo` is valid until `*key` is withdrawn. */
int rte_pmd_mbcf_create_fifo(struct rte_pmd_mbcf* mbcf, size_t bytes,
                             struct rte_pmd_mbcf_fifo** fifo, uint64_t* key);
/* An entry of a FIFO, in place. */
struct rte_pmd_mbcf_entry {
  uint32_t from; /* peer */
  const void* bytes;
  size_t length;
};
/* The oldest entry, valid until it is popped or the FIFO withdrawn; -ENOENT when there is none. */
int rte_pmd_mbcf_fifo_front(const struct rte_pmd_mbcf_fifo* fifo, struct rte_pmd_mbcf_entry* entry);
/* Frees the oldest entry. The next poll gives its room to writers. */
void rte_pmd_mbcf_fifo_pop(struct rte_pmd_mbcf_fifo* fifo);
/* The FIFO's key, 0 for NULL; its size: no entry can be larger. */
uint64_t rte_pmd_mbcf_fifo_key(const struct rte_pmd_mbcf_fifo* fifo);
size_t rte_pmd_mbcf_fifo_capacity(const struct rte_pmd_mbcf_fifo* fifo);

/* Called by rte_pmd_mbcf_poll(), at most once in each, with the number of signals since the last
 * call. May issue requests, create and withdraw; must neither poll nor close. */
typedef void (*rte_pmd_mbcf_handler)(void* user, uint64_t count);
int rte_pmd_mbcf_create_signal(struct rte_pmd_mbcf* mbcf, rte_pmd_mbcf_handler handler, void* user,
                               uint64_t* key);
/* A signal that makes an eventfd(2) readable; reading 8 bytes gives the number of signals. The
 * descriptor does not block and is the driver's: closed when the key is withdrawn. */
int rte_pmd_mbcf_create_signal_fd(struct rte_pmd_mbcf* mbcf, int* fd, uint64_t* key);

/* Requests ------------------------------------------------------------------------------------- */

/* Order: requests to one peer that fit a frame are executed in the order in which they were issued;
 * so are long writes among each other, and the entries of a FIFO of each writer. Otherwise fence.
 *
 * `request` in all calls: where its number goes, which its completion repeats; may be NULL. Numbers
 * from 0x80000000 on, of silent requests, are unique among those to one peer only. */

/* The bytes from `offset` on in a segment of a peer. */
struct rte_pmd_mbcf_remote {
  uint32_t peer;
  uint64_t key;
  uint64_t offset;
};

/* Flags of a request: a sum of these. */
enum rte_pmd_mbcf_flags {
  RTE_PMD_MBCF_BATCH = 1, /* leaves with the next poll and shares frames: a higher rate */
  RTE_PMD_MBCF_SILENT = 2 /* no completion on success, only one on failure */
};
/* NULL in a call: neither flag, context 0. */
struct rte_pmd_mbcf_options {
  uint32_t flags;   /* enum rte_pmd_mbcf_flags */
  uint64_t context; /* given back in the completion; not with numbers from 0x80000000 on */
};

/* The second part of a write: becomes visible only after the data of the write. */
enum rte_pmd_mbcf_then_kind {
  RTE_PMD_MBCF_THEN_NOTHING = 0,
  RTE_PMD_MBCF_THEN_ENTRY = 1,  /* appends an entry: writer, entry, length */
  RTE_PMD_MBCF_THEN_SIGNAL = 2, /* raises a signal: key */
  RTE_PMD_MBCF_THEN_FLAG = 3    /* stores a word: key, offset, value, width */
};
/* The largest FIFO entry that rides on a write; also the largest `head` of an append. */
#define RTE_PMD_MBCF_MOST_CARRIED 128
struct rte_pmd_mbcf_then {
  uint8_t kind;      /* enum rte_pmd_mbcf_then_kind */
  uint8_t width;     /* flag: 4 or 8 bytes */
  uint16_t length;   /* entry: bytes in it */
  uint32_t writer;   /* entry: into that FIFO, which must be the same peer's */
  const void* entry; /* entry: copied at once */
  uint64_t key;      /* signal, flag */
  uint64_t offset;   /* flag */
  uint64_t value;    /* flag */
};

/* A write of 4 or 8 bytes to a multiple of that is one store: no reader sees half of it. `then`:
 * the second part of a write with notify (a chained operation), or NULL. */
int rte_pmd_mbcf_write(struct rte_pmd_mbcf* mbcf, const struct rte_pmd_mbcf_remote* to,
                       const void* data, size_t length, const struct rte_pmd_mbcf_then* then,
                       const struct rte_pmd_mbcf_options* options, uint32_t* request);
int rte_pmd_mbcf_read(struct rte_pmd_mbcf* mbcf, const struct rte_pmd_mbcf_remote* from, void* into,
                      size_t length, const struct rte_pmd_mbcf_options* options, uint32_t* request);
/* Atomic operations on a word of `width` (4 or 8) bytes. Its former value is in the completion. */
int rte_pmd_mbcf_swap(struct rte_pmd_mbcf* mbcf, const struct rte_pmd_mbcf_remote* at,
                      uint32_t width, uint64_t value, const struct rte_pmd_mbcf_options* options,
                      uint32_t* request);
int rte_pmd_mbcf_fetch_add(struct rte_pmd_mbcf* mbcf, const struct rte_pmd_mbcf_remote* at,
                           uint32_t width, uint64_t value,
                           const struct rte_pmd_mbcf_options* options, uint32_t* request);
/* Stores `value` if the word is `expected`. */
int rte_pmd_mbcf_compare_swap(struct rte_pmd_mbcf* mbcf, const struct rte_pmd_mbcf_remote* at,
                              uint32_t width, uint64_t expected, uint64_t value,
                              const struct rte_pmd_mbcf_options* options, uint32_t* request);
/* Raises a peer's signal. */
int rte_pmd_mbcf_signal(struct rte_pmd_mbcf* mbcf, uint32_t peer, uint64_t key,
                        const struct rte_pmd_mbcf_options* options, uint32_t* request);
/* Completes when everything issued to that peer before has been executed. Never silent. */
int rte_pmd_mbcf_fence(struct rte_pmd_mbcf* mbcf, uint32_t peer,
                       const struct rte_pmd_mbcf_options* options, uint32_t* request);

/* This task's writing end of a FIFO of a peer's; the same one if it is open. Asks the FIFO's owner
 * for credit. May allocate. -EAGAIN: all max_writers are open, or this one is still being closed:
 * poll, try again. */
int rte_pmd_mbcf_open_writer(struct rte_pmd_mbcf* mbcf, uint32_t peer, uint64_t fifo,
                             uint32_t* writer);
/* Gives the credit back. Entries that were issued still arrive. */
int rte_pmd_mbcf_close_writer(struct rte_pmd_mbcf* mbcf, uint32_t writer);
/* Appends head ++ body as one entry; head at most RTE_PMD_MBCF_MOST_CARRIED bytes, copied at once;
 * either may be NULL with length 0. -EAGAIN while the writer has no credit for the entry, because
 * the FIFO is full, or while the entry before it is not wholly sent. A writer whose FIFO is gone
 * returns the reason with each append (-ENOENT, -ESTALE, -EPROTOTYPE, -EHOSTDOWN). */
int rte_pmd_mbcf_append(struct rte_pmd_mbcf* mbcf, uint32_t writer, const void* head,
                        size_t head_length, const void* body, size_t length,
                        const struct rte_pmd_mbcf_options* options, uint32_t* request);
/* The largest entry of that FIFO. -EAGAIN: not known yet, or no such writer. */
int rte_pmd_mbcf_capacity(const struct rte_pmd_mbcf* mbcf, uint32_t writer, uint64_t* bytes);

/* A request as data: what the calls above take, for the rawdev API and for programs that keep
 * requests in queues of their own. Fields that an operation does not use are ignored. */
enum rte_pmd_mbcf_op {
  RTE_PMD_MBCF_OP_WRITE = 0,        /* at, local, length, then */
  RTE_PMD_MBCF_OP_READ = 1,         /* at, local, length */
  RTE_PMD_MBCF_OP_SWAP = 2,         /* at, width, value */
  RTE_PMD_MBCF_OP_FETCH_ADD = 3,    /* at, width, value */
  RTE_PMD_MBCF_OP_COMPARE_SWAP = 4, /* at, width, expected, value */
  RTE_PMD_MBCF_OP_APPEND = 5,       /* writer, head, head_length, local, length */
  RTE_PMD_MBCF_OP_SIGNAL = 6,       /* at.peer, at.key */
  RTE_PMD_MBCF_OP_FENCE = 7         /* at.peer */
};
struct rte_pmd_mbcf_request {
  uint32_t op;      /* enum rte_pmd_mbcf_op */
  uint32_t request; /* out: its number, when it was issued */
  struct rte_pmd_mbcf_options options;
  struct rte_pmd_mbcf_remote at;
  void* local; /* what is written, appended (neither is changed) or read into */
  size_t length;
  struct rte_pmd_mbcf_then then;
  uint32_t width;
  uint64_t value;
  uint64_t expected;
  uint32_t writer;
  uint32_t head_length;
  const void* head;
};
int rte_pmd_mbcf_issue(struct rte_pmd_mbcf* mbcf, struct rte_pmd_mbcf_request* request);

/* The end of a request. */
struct rte_pmd_mbcf_completion {
  uint32_t request; /* as given when it was issued; silent: together with the peer */
  uint32_t peer;
  int32_t status;   /* 0, or why it was not done: see the table above */
  uint64_t context; /* as in its options */
  uint64_t value;   /* swap, fetch_add, compare_swap: what the word held before */
};
/* Takes the oldest completion out of the completion queue; refusals of short silent requests come
 * before all others. -ENOENT when there is none. */
int rte_pmd_mbcf_completion(struct rte_pmd_mbcf* mbcf, struct rte_pmd_mbcf_completion* completion);

/* Connections ---------------------------------------------------------------------------------- */

/* A connection that came or went. */
struct rte_pmd_mbcf_event {
  uint32_t peer;
  uint8_t mac[6];
  uint8_t up;         /* 1: connected; 0: ended */
  const char* reason; /* why it ended, or NULL */
};
/* Takes the oldest event; -ENOENT when there is none. A program that never asks loses the oldest
 * events (counter events_lost). */
int rte_pmd_mbcf_event(struct rte_pmd_mbcf* mbcf, struct rte_pmd_mbcf_event* event);

/* The rawdev API ------------------------------------------------------------------------------ */

/* Queue numbers (rte_rawdev_enqueue_buffers and _dequeue_buffers take one, cast to a pointer, as
 * `context`). Enqueueing takes as many as there is room for; dequeueing polls. Keys are made and
 * given back by the calls above, on the handle that rte_pmd_mbcf_get() gives. */
enum rte_pmd_mbcf_queue {
  /* Enqueue: a struct rte_pmd_mbcf_request, issued. Dequeue: room for a struct
   * rte_pmd_mbcf_completion. */
  RTE_PMD_MBCF_REQUESTS = 0,
  /* Dequeue: a struct rte_pmd_mbcf_taken_entry with `fifo`, `into` and `size` filled in. */
  RTE_PMD_MBCF_ENTRIES = 1,
  /* Dequeue: room for a struct rte_pmd_mbcf_event. */
  RTE_PMD_MBCF_EVENTS = 2,
  RTE_PMD_MBCF_QUEUES = 3
};

/* An entry copied out of a FIFO and popped. The entries of each FIFO come in their order; each
 * buffer may name another FIFO, and the first that finds its FIFO empty ends the call. An entry
 * larger than `size` stays: -EMSGSIZE, with `length` filled in. */
struct rte_pmd_mbcf_taken_entry {
  struct rte_pmd_mbcf_fifo* fifo; /* in */
  void* into;                     /* in */
  size_t size;                    /* in */
  size_t length;                  /* out */
  uint32_t from;                  /* out: peer */
};

/* Programs that are not linked with the driver ------------------------------------------------- */

/* The functions above, for programs that load the driver at run time (EAL's `-d
 * librte_raw_mbcf.so`) and are linked with DPDK alone. The rawdev itself hands them out:
 *
 *   uint64_t address;
 *   if (rte_rawdev_get_attr(dev_id, RTE_PMD_MBCF_FUNCTIONS, &address) != 0) ...no such device
 *   const struct rte_pmd_mbcf_functions* mbcf = (const void*)(uintptr_t)address;
 *   struct rte_pmd_mbcf* node = mbcf->get(dev_id);
 *
 * Members are only ever added, at the end: those of later versions are there if `size` says so. */
#define RTE_PMD_MBCF_FUNCTIONS "rte_pmd_mbcf_functions"
struct rte_pmd_mbcf_functions {
  size_t size; /* of this structure, in bytes */
  __typeof__(rte_pmd_mbcf_get)* get;
  __typeof__(rte_pmd_mbcf_open)* open;
  __typeof__(rte_pmd_mbcf_close)* close;
  __typeof__(rte_pmd_mbcf_error)* error;
  __typeof__(rte_pmd_mbcf_poll)* poll;
  __typeof__(rte_pmd_mbcf_address)* address;
  __typeof__(rte_pmd_mbcf_peer)* peer;
  __typeof__(rte_pmd_mbcf_export)* export_memory;
  __typeof__(rte_pmd_mbcf_withdraw)* withdraw;
  __typeof__(rte_pmd_mbcf_create_fifo)* create_fifo;
  __typeof__(rte_pmd_mbcf_fifo_front)* fifo_front;
  __typeof__(rte_pmd_mbcf_fifo_pop)* fifo_pop;
  __typeof__(rte_pmd_mbcf_fifo_key)* fifo_key;
  __typeof__(rte_pmd_mbcf_fifo_capacity)* fifo_capacity;
  __typeof__(rte_pmd_mbcf_create_signal)* create_signal;
  __typeof__(rte_pmd_mbcf_create_signal_fd)* create_signal_fd;
  __typeof__(rte_pmd_mbcf_write)* write;
  __typeof__(rte_pmd_mbcf_read)* read;
  __typeof__(rte_pmd_mbcf_swap)* swap;
  __typeof__(rte_pmd_mbcf_fetch_add)* fetch_add;
  __typeof__(rte_pmd_mbcf_compare_swap)* compare_swap;
  __typeof__(rte_pmd_mbcf_signal)* signal;
  __typeof__(rte_pmd_mbcf_fence)* fence;
  __typeof__(rte_pmd_mbcf_open_writer)* open_writer;
  __typeof__(rte_pmd_mbcf_close_writer)* close_writer;
  __typeof__(rte_pmd_mbcf_append)* append;
  __typeof__(rte_pmd_mbcf_capacity)* capacity;
  __typeof__(rte_pmd_mbcf_issue)* issue;
  __typeof__(rte_pmd_mbcf_completion)* completion;
  __typeof__(rte_pmd_mbcf_event)* event;
};

#ifdef __cplusplus
}
#endif

#endif /* RTE_PMD_MBCF_H_ */
