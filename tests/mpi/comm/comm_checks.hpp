// What several of these programs check about a communicator.
#pragma once

#include <vector>

#include "job.hpp"

namespace job {

inline int peers_of(MPI_Comm comm) {
  int inter, n;
  MPI_Comm_test_inter(comm, &inter);
  if (inter)
    MPI_Comm_remote_size(comm, &n);
  else
    n = size_of(comm);
  return n;
}

// The ranks in MPI_COMM_WORLD of the members of a group, which is freed.
inline std::vector<int> members_of_group(MPI_Group group) {
  MPI_Group world;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  int n;
  MPI_Group_size(group, &n);
  std::vector<int> ranks(n), in_world(n);
  for (int i = 0; i < n; ++i) ranks[i] = i;
  MPI_Group_translate_ranks(group, n, ranks.data(), world, in_world.data());
  MPI_Group_free(&world);
  MPI_Group_free(&group);
  return in_world;
}
inline std::vector<int> members(MPI_Comm comm) {
  MPI_Group group;
  MPI_Comm_group(comm, &group);
  return members_of_group(group);
}

// A round of messages from everybody to everybody with the same tag, in as many communicators as
// there are: all receives are posted before anything is sent. Each message must arrive where it was
// sent, although in other communicators the same processes send with the same tag and rank.
class Crossfire {
 public:
  // Processes that are not in the communicator add MPI_COMM_NULL: it has the same number for all.
  void add(MPI_Comm comm) {
    if (comm != MPI_COMM_NULL) all_.push_back({comm, number_, {}, {}});
    ++number_;
  }
  void run() {
    std::vector<MPI_Request> requests;
    for (One& one : all_) {
      one.in.assign(peers_of(one.comm), -1);
      for (int peer = 0; peer < peers_of(one.comm); ++peer)
        MPI_Irecv(&one.in[peer], 1, MPI_INT, peer, 5, one.comm, &requests.emplace_back());
    }
    // In the other order than the receives, so that order alone cannot pair them.
    for (std::size_t c = all_.size(); c-- > 0;) {
      One& one = all_[c];
      for (int peer = 0; peer < peers_of(one.comm); ++peer)
        one.out.push_back(stamp(one, rank_in(one.comm), peer));
      for (int peer = 0; peer < peers_of(one.comm); ++peer)
        MPI_Isend(&one.out[peer], 1, MPI_INT, peer, 5, one.comm, &requests.emplace_back());
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    for (const One& one : all_)
      for (int peer = 0; peer < peers_of(one.comm); ++peer)
        CHECK_EQ(one.in[peer], stamp(one, peer, rank_in(one.comm)));
  }

 private:
  struct One {
    MPI_Comm comm;
    int number;
    std::vector<int> in, out;
  };
  static int stamp(const One& one, int from, int to) {
    return one.number * 10000 + from * 100 + to;
  }
  std::vector<One> all_;
  int number_ = 0;
};

inline void crossfire(MPI_Comm comm) {
  Crossfire fire;
  fire.add(comm);
  fire.run();
}

inline void free_comm(MPI_Comm comm) {
  if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
}

}  // namespace job
