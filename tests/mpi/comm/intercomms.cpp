// Intercommunicators; at least 2 processes.
#include "comm_checks.hpp"

#include <algorithm>

using namespace job;

namespace {

int compare(MPI_Comm a, MPI_Comm b) {
  int result;
  MPI_Comm_compare(a, b, &result);
  return result;
}

std::vector<int> remote_members(MPI_Comm comm) {
  MPI_Group group;
  MPI_Comm_remote_group(comm, &group);
  return members_of_group(group);
}

// The processes of MPI_COMM_WORLD whose rank has that remainder.
std::vector<int> parity(int remainder) {
  std::vector<int> ranks;
  for (int r = remainder; r < size(); r += 2) ranks.push_back(r);
  return ranks;
}

// Even and odd processes, each side in its own order: `local` of the even ones is backwards.
struct Sides {
  MPI_Comm local, inter;
  std::vector<int> ours, theirs;

  explicit Sides(int tag = 11) {
    const int odd = rank() % 2;
    MPI_Comm_split(MPI_COMM_WORLD, odd, odd ? rank() : -rank(), &local);
    // The leaders are not the first ones: the last of the even ones (process 0), the last odd one.
    const int last_odd = (size() - 2) / 2 * 2 + 1;
    MPI_Intercomm_create(local, size_of(local) - 1, MPI_COMM_WORLD, odd ? 0 : last_odd, tag,
                         &inter);
    ours = parity(odd);
    theirs = parity(1 - odd);
    std::reverse((odd ? theirs : ours).begin(), (odd ? theirs : ours).end());
  }
  ~Sides() {
    free_comm(inter);
    free_comm(local);
  }
};

void creation() {
  section("two groups, made one intercommunicator by their leaders");
  const Sides s;
  int inter;
  MPI_Comm_test_inter(s.inter, &inter);
  CHECK(inter);
  MPI_Comm_test_inter(s.local, &inter);
  CHECK(!inter);
  CHECK(members(s.inter) == s.ours);
  CHECK(remote_members(s.inter) == s.theirs);
  CHECK_EQ(rank_in(s.inter), rank_in(s.local));
  CHECK_EQ(compare(s.inter, s.inter), MPI_IDENT);
  CHECK_EQ(compare(s.inter, s.local), MPI_UNEQUAL);
  CHECK_EQ(compare(MPI_COMM_WORLD, s.inter), MPI_UNEQUAL);
  Crossfire fire;
  fire.add(s.local);
  fire.add(s.inter);
  fire.add(MPI_COMM_WORLD);
  fire.run();

  // Each side counts the other's ranks, also in a status.
  int in = -1, out = rank();
  MPI_Status status;
  const int peer = rank_in(s.inter);
  if (peer < peers_of(s.inter)) {
    MPI_Request request;
    MPI_Isend(&out, 1, MPI_INT, peer, 3, s.inter, &request);
    MPI_Recv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 3, s.inter, &status);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_EQ(status.MPI_SOURCE, peer);
    CHECK_EQ(in, s.theirs[peer]);
  }
}

void creation_is_private() {
  section("making one does not touch the program's messages");
  int value = -1, mine = 5, flag;
  MPI_Request wildcard;
  MPI_Comm peers, local, inter;
  MPI_Comm_dup(MPI_COMM_WORLD, &peers);
  MPI_Comm_split(MPI_COMM_WORLD, rank() % 2, 0, &local);
  MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, peers, &wildcard);
  MPI_Intercomm_create(local, 0, peers, 1 - rank() % 2, 77, &inter);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Test(&wildcard, &flag, MPI_STATUS_IGNORE);
  CHECK(!flag);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Send(&mine, 1, MPI_INT, (rank() + 1) % size(), 0, peers);
  MPI_Wait(&wildcard, MPI_STATUS_IGNORE);
  CHECK_EQ(value, 5);
  free_comm(inter);
  free_comm(local);
  free_comm(peers);
}

void duplicates() {
  section("duplicates of intercommunicators");
  const Sides s;
  MPI_Comm dup;
  MPI_Comm_dup(s.inter, &dup);
  CHECK_EQ(compare(dup, s.inter), MPI_CONGRUENT);
  CHECK(members(dup) == s.ours);
  CHECK(remote_members(dup) == s.theirs);
  Crossfire fire;
  fire.add(s.inter);
  fire.add(dup);
  fire.run();
  MPI_Comm_free(&dup);
}

void merges() {
  section("merge: who comes first");
  const Sides s;
  const bool odd = rank() % 2;
  for (int even_high = 0; even_high <= 1; ++even_high) {
    const bool high = odd != static_cast<bool>(even_high);
    MPI_Comm merged;
    MPI_Intercomm_merge(s.inter, high, &merged);
    std::vector<int> expected = high ? s.theirs : s.ours;
    const std::vector<int>& second = high ? s.ours : s.theirs;
    expected.insert(expected.end(), second.begin(), second.end());
    CHECK(members(merged) == expected);
    int inter;
    MPI_Comm_test_inter(merged, &inter);
    CHECK(!inter);
    Crossfire fire;
    fire.add(merged);
    fire.add(s.inter);
    fire.run();
    MPI_Comm_free(&merged);

    // Both say the same: any order, but the same for all, and each group stays together.
    MPI_Intercomm_merge(s.inter, even_high, &merged);
    const std::vector<int> all = members(merged);
    CHECK_EQ(size_of(merged), size());
    CHECK(std::search(all.begin(), all.end(), s.ours.begin(), s.ours.end()) != all.end());
    CHECK(std::search(all.begin(), all.end(), s.theirs.begin(), s.theirs.end()) != all.end());
    crossfire(merged);
    MPI_Comm_free(&merged);
  }
}

void subsets() {
  section("create and split of intercommunicators");
  const Sides s;
  // The first of each side; all others are left out.
  MPI_Group local, first;
  MPI_Comm_group(s.inter, &local);
  const int zero = 0;
  MPI_Group_incl(local, 1, &zero, &first);
  MPI_Comm pair;
  MPI_Comm_create(s.inter, first, &pair);
  CHECK_EQ(pair != MPI_COMM_NULL, rank_in(s.inter) == 0);
  if (pair != MPI_COMM_NULL) {
    CHECK(members(pair) == std::vector{s.ours[0]});
    CHECK(remote_members(pair) == std::vector{s.theirs[0]});
    crossfire(pair);
    MPI_Comm_free(&pair);
  }
  // One side gives nobody: there is nothing for the other side either.
  MPI_Comm none;
  MPI_Comm_create(s.inter, rank() % 2 ? MPI_GROUP_EMPTY : local, &none);
  CHECK(none == MPI_COMM_NULL);
  MPI_Group_free(&first);
  MPI_Group_free(&local);

  // Colors 0 and 1 by rank, in reverse order; color 9 exists on the even side only.
  const auto color = [](int r, bool odd) { return r == 2 && !odd ? 9 : r % 2; };
  MPI_Comm part;
  const int mine = color(rank_in(s.inter), rank() % 2);
  MPI_Comm_split(s.inter, mine, -rank_in(s.inter), &part);
  std::vector<int> ours, theirs;
  for (std::size_t r = s.ours.size(); r-- > 0;)
    if (color(static_cast<int>(r), rank() % 2) == mine) ours.push_back(s.ours[r]);
  for (std::size_t r = s.theirs.size(); r-- > 0;)
    if (color(static_cast<int>(r), 1 - rank() % 2) == mine) theirs.push_back(s.theirs[r]);
  CHECK_EQ(part == MPI_COMM_NULL, theirs.empty());
  if (part != MPI_COMM_NULL) {
    CHECK(members(part) == ours);
    CHECK(remote_members(part) == theirs);
    crossfire(part);
    MPI_Comm_free(&part);
  }
}

// Three groups in a row, each with an intercommunicator to the next: at once in all processes.
void chain() {
  section("a chain of groups");
  if (size() < 3) return;
  const int mine = rank() % 3;
  MPI_Comm local, to_lower = MPI_COMM_NULL, to_upper = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, mine, 0, &local);
  if (mine > 0) MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, mine - 1, mine, &to_lower);
  if (mine < 2) MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, mine + 1, mine + 1, &to_upper);
  for (const MPI_Comm inter : {to_lower, to_upper})
    if (inter != MPI_COMM_NULL) {
      CHECK(members(inter) == members(local));
      const int other = inter == to_lower ? mine - 1 : mine + 1;
      for (const int r : remote_members(inter)) CHECK_EQ(r % 3, other);
    }
  if (to_lower != MPI_COMM_NULL) crossfire(to_lower);
  if (to_upper != MPI_COMM_NULL) crossfire(to_upper);
  free_comm(to_lower);
  free_comm(to_upper);
  free_comm(local);
}

void pairs_of_selves() {
  section("an intercommunicator of two MPI_COMM_SELF");
  const int partner = rank() ^ 1;
  if (partner >= size()) return;
  MPI_Comm inter, merged;
  MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, partner, 1, &inter);
  CHECK(remote_members(inter) == std::vector{partner});
  crossfire(inter);
  MPI_Intercomm_merge(inter, rank() % 2 == 0, &merged);  // odd ones first
  CHECK_EQ(rank_in(merged), 1 - rank() % 2);
  crossfire(merged);
  MPI_Comm_free(&merged);
  MPI_Comm_free(&inter);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  creation();
  creation_is_private();
  duplicates();
  merges();
  subsets();
  chain();
  pairs_of_selves();
  return report();
}
