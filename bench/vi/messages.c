/* Messages and collectives of skeletons: sent and checked, or only noted. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs.h"

/* ---- Counting ----------------------------------------------------------------------------------
 */

static struct {
  int rank, size; /* size 0: nothing is counted, messages are sent */
  unsigned char* by_message;
  unsigned char* by_collective;
} playing;

void play(int rank, int size) {
  playing.rank = rank;
  playing.size = size;
  free(playing.by_message);
  free(playing.by_collective);
  playing.by_message = calloc((size_t)size, 1);
  playing.by_collective = calloc((size_t)size, 1);
  if (!playing.by_message || !playing.by_collective) fail("no memory for %d ranks", size);
}

Destinations played(void) {
  Destinations found = {0, 0};
  int i;
  for (i = 0; i < playing.size; ++i) {
    if (i == playing.rank) continue;
    found.messages += playing.by_message[i];
    found.with_collectives += playing.by_message[i] | playing.by_collective[i];
  }
  return found;
}

static void note_message(int to) {
  if (playing.size) playing.by_message[to] = 1;
}

/* The ranks below me in a binomial tree with root 0 are mine with one more bit, below my lowest. */
static void note_children(void) {
  int bit;
  for (bit = 1; bit < playing.size && !(playing.rank & bit); bit *= 2)
    if (playing.rank + bit < playing.size) playing.by_collective[playing.rank + bit] = 1;
}

static void note_parent(void) {
  if (playing.size) playing.by_collective[playing.rank & (playing.rank - 1)] = 1;
}

/* ---- Who is there ------------------------------------------------------------------------------
 */

static MPI_Comm everybody = MPI_COMM_NULL; /* none: MPI_COMM_WORLD */

static MPI_Comm all(void) {
  return everybody == MPI_COMM_NULL ? MPI_COMM_WORLD : everybody;
}

int my_rank(void) {
  int rank = playing.rank;
  if (!playing.size) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int ranks(void) {
  int size = playing.size;
  if (!size) MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

/* As MPI_Allreduce and MPI_Allgather do, a split takes all ranks' choices up a tree and down again.
 */
static void adopt(MPI_Comm made) {
  int same;
  MPI_Comm_compare(made, MPI_COMM_WORLD, &same);
  if (same != MPI_CONGRUENT) fail("the new communicator has other ranks");
  if (everybody != MPI_COMM_NULL) MPI_Comm_free(&everybody);
  everybody = made;
}

void split_all(void) {
  MPI_Comm made;
  note_parent();
  note_children();
  if (playing.size) return;
  MPI_Comm_split(all(), 0, my_rank(), &made);
  adopt(made);
}

void duplicate_all(void) {
  MPI_Comm made;
  note_parent();
  note_children();
  if (playing.size) return;
  MPI_Comm_dup(all(), &made);
  adopt(made);
}

/* ---- What a message holds ----------------------------------------------------------------------
 */

/* Says by whom it is sent, to whom, and which one it is. */
static uint64_t content(int from, int to, int tag, int bytes) {
  uint64_t x = (uint64_t)from << 48 ^ (uint64_t)to << 32 ^ (uint64_t)tag << 24 ^ (uint64_t)bytes;
  x *= 0x9e3779b97f4a7c15u; /* every bit of it counts */
  return x ^ x >> 32;
}

static void fill(char* data, int bytes, uint64_t x) {
  int at;
  for (at = 0; at < bytes; at += (int)sizeof x, ++x) {
    const size_t rest = (size_t)(bytes - at);
    memcpy(data + at, &x, rest < sizeof x ? rest : sizeof x);
  }
}

static int holds(const char* data, int bytes, uint64_t x) {
  int at;
  for (at = 0; at < bytes; at += (int)sizeof x, ++x) {
    const size_t rest = (size_t)(bytes - at);
    if (memcmp(data + at, &x, rest < sizeof x ? rest : sizeof x) != 0) return 0;
  }
  return 1;
}

static void* allocate(int bytes) {
  void* const data = malloc(bytes > 0 ? (size_t)bytes : 1);
  if (!data) fail("no memory for %d bytes", bytes);
  return data;
}

/* ---- Messages ----------------------------------------------------------------------------------
 */

enum { kMaxPosted = 64 };
typedef struct {
  char* data;
  int bytes, tag;
  int sender; /* of a receive; -1: this is a send */
} Posted;
static Posted posted[kMaxPosted];
static MPI_Request requests[kMaxPosted];
static int posted_count;

static Posted* new_posted(int sender, int tag, int bytes) {
  Posted* const p = &posted[posted_count];
  if (posted_count == kMaxPosted) fail("more than %d messages are posted", kMaxPosted);
  p->data = allocate(bytes);
  p->bytes = bytes;
  p->tag = tag;
  p->sender = sender;
  return p;
}

void post_send(int to, int tag, int bytes) {
  Posted* p;
  note_message(to);
  if (playing.size) return;
  p = new_posted(-1, tag, bytes);
  fill(p->data, bytes, content(my_rank(), to, tag, bytes));
  MPI_Isend(p->data, bytes, MPI_BYTE, to, tag, all(), &requests[posted_count++]);
}

static void post_receive_of(int sender, int source, int tag, int bytes) {
  Posted* p;
  if (playing.size) return;
  p = new_posted(sender, tag, bytes);
  MPI_Irecv(p->data, bytes, MPI_BYTE, source, tag, all(), &requests[posted_count++]);
}

void post_receive(int from, int tag, int bytes) {
  post_receive_of(from, from, tag, bytes);
}

void post_receive_from_any(int sender, int tag, int bytes) {
  post_receive_of(sender, MPI_ANY_SOURCE, tag, bytes);
}

static void check(const Posted* p, const MPI_Status* status) {
  int bytes;
  MPI_Get_count(status, MPI_BYTE, &bytes);
  if (status->MPI_SOURCE != p->sender || bytes != p->bytes)
    fail("%d bytes from %d with tag %d, where %d bytes from %d were due", bytes, status->MPI_SOURCE,
         p->tag, p->bytes, p->sender);
  if (!holds(p->data, bytes, content(p->sender, my_rank(), p->tag, bytes)))
    fail("the message from %d with tag %d is not what was sent", p->sender, p->tag);
}

void complete(void) {
  MPI_Status statuses[kMaxPosted];
  int i;
  if (playing.size) return;
  MPI_Waitall(posted_count, requests, statuses);
  for (i = 0; i < posted_count; ++i) {
    if (posted[i].sender >= 0) check(&posted[i], &statuses[i]);
    free(posted[i].data);
  }
  posted_count = 0;
}

/* ---- Collectives -------------------------------------------------------------------------------
 */

void synchronize(void) {
  note_parent();
  note_children();
  if (!playing.size) MPI_Barrier(all());
}

void broadcast(int bytes) {
  const uint64_t x = content(0, 0, 0, bytes);
  char* data;
  note_children();
  if (playing.size) return;
  data = allocate(bytes);
  if (my_rank() == 0) fill(data, bytes, x);
  MPI_Bcast(data, bytes, MPI_BYTE, 0, all());
  if (!holds(data, bytes, x)) fail("a broadcast of %d bytes is wrong", bytes);
  free(data);
}

/* Element i of rank r is r + i. */
static int* make_summands(int elements) {
  int* const mine = allocate(elements * kInt);
  int i;
  for (i = 0; i < elements; ++i) mine[i] = my_rank() + i;
  return mine;
}

static void check_sums(const int* sums, int elements) {
  const int n = ranks();
  int i;
  for (i = 0; i < elements; ++i)
    if (sums[i] != n * (n - 1) / 2 + n * i) fail("a reduction of %d elements is wrong", elements);
}

void reduce(int bytes) {
  int *mine, *sums;
  note_parent();
  if (playing.size) return;
  mine = make_summands(bytes / kInt);
  sums = allocate(bytes);
  MPI_Reduce(mine, sums, bytes / kInt, MPI_INT, MPI_SUM, 0, all());
  if (my_rank() == 0) check_sums(sums, bytes / kInt);
  free(mine);
  free(sums);
}

void reduce_all(int bytes) {
  int *mine, *sums;
  note_parent();
  note_children();
  if (playing.size) return;
  mine = make_summands(bytes / kInt);
  sums = allocate(bytes);
  MPI_Allreduce(mine, sums, bytes / kInt, MPI_INT, MPI_SUM, all());
  check_sums(sums, bytes / kInt);
  free(mine);
  free(sums);
}

/* What was collected, a piece from each rank. */
static void check_pieces(const char* pieces, int bytes, int to, const char* what) {
  int from;
  for (from = 0; from < ranks(); ++from)
    if (!holds(pieces + (size_t)from * (size_t)bytes, bytes, content(from, to, 0, bytes)))
      fail("what %s of %d bytes brought from %d is wrong", what, bytes, from);
}

void gather_all(int bytes) {
  char *mine, *pieces;
  note_parent();
  note_children();
  if (playing.size) return;
  mine = allocate(bytes);
  pieces = allocate(bytes * ranks());
  fill(mine, bytes, content(my_rank(), 0, 0, bytes));
  MPI_Allgather(mine, bytes, MPI_BYTE, pieces, bytes, MPI_BYTE, all());
  check_pieces(pieces, bytes, 0, "MPI_Allgather");
  free(mine);
  free(pieces);
}

static void note_everybody(void) {
  if (playing.size) memset(playing.by_collective, 1, (size_t)playing.size);
}

static char* make_pieces(int bytes) {
  char* const pieces = allocate(bytes * ranks());
  int to;
  for (to = 0; to < ranks(); ++to)
    fill(pieces + (size_t)to * (size_t)bytes, bytes, content(my_rank(), to, 0, bytes));
  return pieces;
}

void exchange_all(int bytes) {
  char *mine, *theirs;
  note_everybody();
  if (playing.size) return;
  mine = make_pieces(bytes);
  theirs = allocate(bytes * ranks());
  MPI_Alltoall(mine, bytes, MPI_BYTE, theirs, bytes, MPI_BYTE, all());
  check_pieces(theirs, bytes, my_rank(), "MPI_Alltoall");
  free(mine);
  free(theirs);
}

void exchange_all_v(int bytes) {
  char *mine, *theirs;
  int *counts, *places, i;
  note_everybody();
  if (playing.size) return;
  mine = make_pieces(bytes);
  theirs = allocate(bytes * ranks());
  counts = allocate(ranks() * (int)sizeof *counts);
  places = allocate(ranks() * (int)sizeof *places);
  for (i = 0; i < ranks(); ++i) {
    counts[i] = bytes;
    places[i] = i * bytes;
  }
  MPI_Alltoallv(mine, counts, places, MPI_BYTE, theirs, counts, places, MPI_BYTE, all());
  check_pieces(theirs, bytes, my_rank(), "MPI_Alltoallv");
  free(mine);
  free(theirs);
  free(counts);
  free(places);
}
