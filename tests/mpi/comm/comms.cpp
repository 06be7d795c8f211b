// Communicators of all kinds but intercommunicators: who is in them, and that their messages do not
// mix.
#include "comm_checks.hpp"

#include <malloc.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>

using namespace job;

namespace {

int compare(MPI_Comm a, MPI_Comm b) {
  int result;
  MPI_Comm_compare(a, b, &result);
  return result;
}

std::string name_of(MPI_Comm comm) {
  char name[MPI_MAX_OBJECT_NAME];
  int length;
  MPI_Comm_get_name(comm, name, &length);
  CHECK_EQ(static_cast<int>(std::strlen(name)), length);
  return name;
}

std::vector<int> iota(int n) {
  std::vector<int> v(n);
  for (int i = 0; i < n; ++i) v[i] = i;
  return v;
}

MPI_Group subgroup(MPI_Comm comm, const std::vector<int>& ranks) {
  MPI_Group all, some;
  MPI_Comm_group(comm, &all);
  MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some);
  MPI_Group_free(&all);
  return some;
}

void predefined() {
  section("MPI_COMM_WORLD and MPI_COMM_SELF");
  CHECK_EQ(size_of(MPI_COMM_SELF), 1);
  CHECK_EQ(rank_in(MPI_COMM_SELF), 0);
  CHECK(members(MPI_COMM_WORLD) == iota(size()));
  CHECK(members(MPI_COMM_SELF) == std::vector{rank()});
  CHECK_EQ(compare(MPI_COMM_WORLD, MPI_COMM_WORLD), MPI_IDENT);
  CHECK_EQ(compare(MPI_COMM_WORLD, MPI_COMM_SELF), size() == 1 ? MPI_CONGRUENT : MPI_UNEQUAL);
  CHECK_EQ(name_of(MPI_COMM_WORLD), "MPI_COMM_WORLD");
  CHECK_EQ(name_of(MPI_COMM_SELF), "MPI_COMM_SELF");
  crossfire(MPI_COMM_WORLD);
  crossfire(MPI_COMM_SELF);
}

void duplicates() {
  section("a duplicate has the same processes and other messages");
  MPI_Comm dup, again;
  MPI_Comm_dup(MPI_COMM_WORLD, &dup);
  MPI_Comm_dup(dup, &again);
  CHECK_EQ(compare(dup, MPI_COMM_WORLD), MPI_CONGRUENT);
  CHECK_EQ(compare(dup, again), MPI_CONGRUENT);
  CHECK_EQ(compare(dup, dup), MPI_IDENT);
  CHECK_EQ(name_of(dup), "");
  Crossfire fire;
  fire.add(MPI_COMM_WORLD);
  fire.add(dup);
  fire.add(again);
  fire.run();

  // A wildcard receive in one is not satisfied by a message in the other.
  const int next = (rank() + 1) % size(), previous = (rank() + size() - 1) % size();
  int in_dup = -1, in_world = -1, one = 1, two = 2, flag = 0;
  MPI_Request receive, sends[2];
  MPI_Irecv(&in_dup, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, dup, &receive);
  MPI_Isend(&one, 1, MPI_INT, next, 1, MPI_COMM_WORLD, &sends[0]);
  MPI_Recv(&in_world, 1, MPI_INT, previous, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Barrier(again);
  MPI_Test(&receive, &flag, MPI_STATUS_IGNORE);
  CHECK(!flag);
  MPI_Barrier(again);
  MPI_Isend(&two, 1, MPI_INT, next, 1, dup, &sends[1]);
  MPI_Wait(&receive, MPI_STATUS_IGNORE);
  MPI_Waitall(2, sends, MPI_STATUSES_IGNORE);
  CHECK_EQ(in_world, 1);
  CHECK_EQ(in_dup, 2);
  MPI_Comm_free(&dup);
  CHECK(dup == MPI_COMM_NULL);
  crossfire(again);  // does not need its parent
  MPI_Comm_free(&again);
}

void splits() {
  section("split: colors, keys, ties, MPI_UNDEFINED");
  MPI_Comm part;
  MPI_Comm_split(MPI_COMM_WORLD, rank() % 2, -rank(), &part);  // backwards
  std::vector<int> expected;
  for (int r = size() - 1; r >= 0; --r)
    if (r % 2 == rank() % 2) expected.push_back(r);
  CHECK(members(part) == expected);
  crossfire(part);

  MPI_Comm ties;
  MPI_Comm_split(part, 7, 0, &ties);  // ties keep the order of the old ranks, here: backwards
  CHECK(members(ties) == expected);
  CHECK_EQ(compare(part, ties), MPI_CONGRUENT);
  MPI_Comm_free(&ties);

  MPI_Comm forwards;
  MPI_Comm_split(part, 0x7fffffff, rank(), &forwards);
  CHECK_EQ(compare(part, forwards), expected.size() > 1 ? MPI_SIMILAR : MPI_CONGRUENT);
  MPI_Comm_free(&forwards);
  MPI_Comm_free(&part);

  MPI_Comm some;
  MPI_Comm_split(MPI_COMM_WORLD, rank() == 0 ? MPI_UNDEFINED : 3, 0, &some);
  CHECK_EQ(some == MPI_COMM_NULL, rank() == 0);
  if (some != MPI_COMM_NULL) {
    CHECK_EQ(size_of(some), size() - 1);
    CHECK_EQ(rank_in(some), rank() - 1);
    crossfire(some);
    MPI_Comm_free(&some);
  }
}

void creates() {
  section("create: any order, empty groups, several groups at once");
  std::vector<int> backwards = iota(size());
  std::reverse(backwards.begin(), backwards.end());
  MPI_Group group = subgroup(MPI_COMM_WORLD, backwards);
  MPI_Comm comm;
  MPI_Comm_create(MPI_COMM_WORLD, group, &comm);
  MPI_Group_free(&group);
  CHECK(members(comm) == backwards);
  CHECK_EQ(rank_in(comm), size() - 1 - rank());
  crossfire(comm);
  MPI_Comm_free(&comm);

  MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &comm);
  CHECK(comm == MPI_COMM_NULL);

  // Each half passes its own group.
  const int half = (size() + 1) / 2;
  std::vector<int> mine;
  for (int r = 0; r < size(); ++r)
    if ((r < half) == (rank() < half)) mine.push_back(r);
  group = subgroup(MPI_COMM_WORLD, mine);
  MPI_Comm_create(MPI_COMM_WORLD, group, &comm);
  MPI_Group_free(&group);
  CHECK(members(comm) == mine);
  crossfire(comm);
  MPI_Comm_free(&comm);

  // Only the last one is in it; the others pass the group, too.
  group = subgroup(MPI_COMM_WORLD, {size() - 1});
  MPI_Comm_create(MPI_COMM_WORLD, group, &comm);
  MPI_Group_free(&group);
  CHECK_EQ(comm != MPI_COMM_NULL, rank() == size() - 1);
  free_comm(comm);
}

void create_groups() {
  section("create_group: only the members take part");
  // For each number of members; those that are not in it do not even call.
  for (int n = 1; n <= size(); ++n) {
    if (rank() < size() - n) continue;
    std::vector<int> ranks;
    for (int r = size() - 1; r >= size() - n; --r) ranks.push_back(r);
    MPI_Group group = subgroup(MPI_COMM_WORLD, ranks);
    MPI_Comm comm;
    MPI_Comm_create_group(MPI_COMM_WORLD, group, n, &comm);
    CHECK(members(comm) == ranks);
    crossfire(comm);
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
  }
  // Pairs around the ring, with tags at the end of their range: every process is in two groups.
  if (size() > 1) {
    std::vector<MPI_Comm> pairs;
    for (int first = 0; first < size(); ++first) {
      const int second = (first + 1) % size();
      if (rank() != first && rank() != second) continue;
      MPI_Group group = subgroup(MPI_COMM_WORLD, {first, second});
      MPI_Comm_create_group(MPI_COMM_WORLD, group, 32767 - first, &pairs.emplace_back());
      MPI_Group_free(&group);
      CHECK(members(pairs.back()) == std::vector({first, second}));
    }
    CHECK_EQ(pairs.size(), 2u);
    for (const MPI_Comm pair : pairs) {
      int mine = rank(), theirs = -1;
      MPI_Sendrecv(&mine, 1, MPI_INT, 1 - rank_in(pair), 0, &theirs, 1, MPI_INT, 1 - rank_in(pair),
                   0, pair, MPI_STATUS_IGNORE);
      CHECK_EQ(theirs, members(pair)[1 - rank_in(pair)]);
    }
    for (const MPI_Comm pair : pairs) free_comm(pair);
  }
}

// Communicators are made of communicators at random, used all at once, and some of them freed.
void many() {
  section("many communicators at once");
  std::mt19937 shared(4711);  // the same in all processes
  std::vector<MPI_Comm> comms{MPI_COMM_WORLD};
  for (int made = 0; made < 150; ++made) {
    const MPI_Comm parent = comms[shared() % comms.size()];
    const unsigned how = shared() % 3, colors = shared() % 3 + 1, seed = shared();
    MPI_Comm comm = MPI_COMM_NULL;
    if (parent != MPI_COMM_NULL) {
      const int r = rank_in(parent), n = size_of(parent);
      if (how == 0) {
        MPI_Comm_dup(parent, &comm);
      } else if (how == 1) {
        MPI_Comm_split(parent, static_cast<int>((r + seed) % colors),
                       static_cast<int>(r * seed % 5), &comm);
      } else {
        std::vector<int> ranks;
        for (int i = 0; i < n; ++i)
          if ((seed >> i % 8) & 1) ranks.push_back(i);
        MPI_Group group = subgroup(parent, ranks);
        int in;
        MPI_Group_rank(group, &in);
        if (in != MPI_UNDEFINED) MPI_Comm_create_group(parent, group, made, &comm);
        MPI_Group_free(&group);
      }
    }
    comms.push_back(comm);
    // Some go again: their numbers must not confuse the others.
    const std::size_t victim = 1 + shared() % (comms.size() - 1);
    if (shared() % 4 == 0) {
      free_comm(comms[victim]);
      comms[victim] = MPI_COMM_NULL;
    }
  }
  Crossfire fire;
  std::size_t alive = 0;
  for (const MPI_Comm comm : comms) {
    fire.add(comm);
    alive += comm != MPI_COMM_NULL;
  }
  CHECK(alive > 20 || rank() > 0);
  fire.run();
  for (const MPI_Comm comm : comms)
    if (comm != MPI_COMM_WORLD) free_comm(comm);
}

void no_interference() {
  section("making communicators does not touch the program's messages");
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  int value = -1, mine = 42;
  MPI_Request wildcard;
  MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &wildcard);
  MPI_Comm made[4];
  MPI_Comm_dup(comm, &made[0]);
  MPI_Comm_split(comm, 0, 0, &made[1]);
  MPI_Group group;
  MPI_Comm_group(comm, &group);
  MPI_Comm_create(comm, group, &made[2]);
  MPI_Comm_create_group(comm, group, 0, &made[3]);
  MPI_Group_free(&group);
  MPI_Barrier(MPI_COMM_WORLD);
  int flag;
  MPI_Test(&wildcard, &flag, MPI_STATUS_IGNORE);
  CHECK(!flag);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Send(&mine, 1, MPI_INT, (rank() + 1) % size(), 3, comm);
  MPI_Wait(&wildcard, MPI_STATUS_IGNORE);
  CHECK_EQ(value, 42);
  for (const MPI_Comm c : made) free_comm(c);
  free_comm(comm);
}

void freed_with_pending() {
  section("a communicator that is freed finishes what it has begun");
  std::vector<int> in(100000, -1), out(100000, rank());  // too long for an eager message
  const int next = (rank() + 1) % size(), previous = (rank() + size() - 1) % size();
  MPI_Comm dup;
  MPI_Comm_dup(MPI_COMM_WORLD, &dup);
  MPI_Request requests[2];
  MPI_Irecv(in.data(), 100000, MPI_INT, previous, 0, dup, &requests[0]);
  MPI_Isend(out.data(), 100000, MPI_INT, next, 0, dup, &requests[1]);
  MPI_Comm_free(&dup);
  // Others come in its place meanwhile.
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  crossfire(other);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  CHECK(in == std::vector<int>(100000, previous));
  MPI_Comm_free(&other);
}

// A program that makes communicators again and again does not run out of memory.
void made_and_freed() {
  section("a communicator that is freed gives back its memory");
  constexpr int kTimes = 150;
  std::size_t at_first = 0;
  for (int i = 0; i < 2 * kTimes; ++i) {
    if (i == kTimes) at_first = mallinfo2().uordblks;
    MPI_Comm comm;
    int in = -1;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Sendrecv(&i, 1, MPI_INT, (rank() + 1) % size(), 0, &in, 1, MPI_INT, MPI_ANY_SOURCE, 0, comm,
                 MPI_STATUS_IGNORE);
    MPI_Barrier(comm);
    CHECK_EQ(in, i);
    MPI_Comm_free(&comm);
  }
  const std::size_t in_the_end = mallinfo2().uordblks;
  CHECK(in_the_end < at_first + kTimes * 500);
}

void nodes() {
  section("split_type: processes that share memory");
  MPI_Comm node;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -rank(), MPI_INFO_NULL, &node);
  CHECK(node != MPI_COMM_NULL);
  char mine[MPI_MAX_PROCESSOR_NAME] = {}, root[MPI_MAX_PROCESSOR_NAME];
  int length;
  MPI_Get_processor_name(mine, &length);
  CHECK_EQ(static_cast<int>(std::strlen(mine)), length);
  std::memcpy(root, mine, sizeof root);
  MPI_Bcast(root, sizeof root, MPI_CHAR, 0, node);
  CHECK_EQ(std::string(mine), std::string(root));
  const std::vector<int> ranks = members(node);
  CHECK(std::is_sorted(ranks.rbegin(), ranks.rend()));  // by key
  MPI_Comm_free(&node);

  MPI_Comm_split_type(MPI_COMM_WORLD, rank() ? MPI_COMM_TYPE_SHARED : MPI_UNDEFINED, 0,
                      MPI_INFO_NULL, &node);
  CHECK_EQ(node == MPI_COMM_NULL, rank() == 0);
  free_comm(node);

#ifdef MPI_COMM_TYPE_HW_GUIDED
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, MPI_INFO_NULL, &node);
  CHECK(node == MPI_COMM_NULL);
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "mpi_hw_resource_type", "mpi_shared_memory");
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, info, &node);
  CHECK(node != MPI_COMM_NULL);
  free_comm(node);
  MPI_Info_set(info, "mpi_hw_resource_type", "no such thing");
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, info, &node);
  CHECK(node == MPI_COMM_NULL);
  MPI_Info_free(&info);
  // A strict part of a communicator of one process there cannot be.
  MPI_Comm_split_type(MPI_COMM_SELF, MPI_COMM_TYPE_HW_UNGUIDED, 0, MPI_INFO_NULL, &node);
  CHECK(node == MPI_COMM_NULL);
  // One that takes no part leaves a strict part to the others, and nobody out of step.
  MPI_Comm_split_type(MPI_COMM_WORLD, rank() ? MPI_COMM_TYPE_HW_UNGUIDED : MPI_UNDEFINED, 0,
                      MPI_INFO_NULL, &node);
  CHECK_EQ(node == MPI_COMM_NULL, rank() == 0);
  free_comm(node);
  crossfire(MPI_COMM_WORLD);
#endif
}

void names() {
  section("names");
  MPI_Comm dup, second;
  MPI_Comm_dup(MPI_COMM_WORLD, &dup);
  MPI_Comm_set_name(dup, "ocean");
  CHECK_EQ(name_of(dup), "ocean");
  MPI_Comm_dup(dup, &second);
  CHECK_EQ(name_of(second), "");  // not inherited
  MPI_Comm_set_name(dup, std::string(MPI_MAX_OBJECT_NAME - 1, 'x').c_str());
  CHECK_EQ(name_of(dup), std::string(MPI_MAX_OBJECT_NAME - 1, 'x'));
  MPI_Comm_set_name(dup, "");
  CHECK_EQ(name_of(dup), "");
#ifdef VIADUCT_MPI_H
  CHECK_EQ(name_of(MPI_COMM_NULL), "MPI_COMM_NULL");
  MPI_Comm_set_name(dup, std::string(1000, 'y').c_str());
  CHECK_EQ(name_of(dup), std::string(MPI_MAX_OBJECT_NAME - 1, 'y'));
#endif
  MPI_Comm_free(&dup);
  MPI_Comm_free(&second);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  predefined();
  duplicates();
  splits();
  creates();
  create_groups();
  many();
  no_interference();
  freed_with_pending();
  made_and_freed();
  nodes();
  names();
  return report();
}
