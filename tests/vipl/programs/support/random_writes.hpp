// RDMA writes of all sizes and gather lists through several VIs at once. The last write of each
// round has, or is, a flag that the target polls in memory, as one-sided libraries do; by then
// every byte of the round must be there, and none elsewhere.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/vipl/programs/support/bed.hpp"

namespace viaduct::vipl_test {

inline constexpr std::size_t kRandomVis = 4;

VIP_VI_ATTRIBUTES open_to_writes();

// Where one side may be written to. Travels in a message.
struct WriteTarget {
  VIP_UINT64 address = 0;
  VIP_MEM_HANDLE handle = 0;
};

// What both ends of one VI have.
class RandomWrites {
 public:
  static constexpr std::size_t kRounds = 30;

  // `number`: of the VI; both sides make the same writes of it.
  RandomWrites(const Nic& nic, std::size_t number);

  WriteTarget target() const;
  // Takes turns with the other side for all rounds. What went wrong; empty: nothing.
  std::string write(VIP_VI_HANDLE vi, const WriteTarget& to);
  // Looks once, and answers a round that has come in full. False: there was nothing to do.
  bool check(VIP_VI_HANDLE vi, const WriteTarget& from);
  bool checked_all() const { return round_ == kRounds || !wrong_.empty(); }
  const std::string& wrong() const { return wrong_; }

 private:
  struct Write {
    std::size_t offset = 0;
    std::vector<std::size_t> pieces;
    std::vector<std::byte> bytes;  // of all of them
  };
  struct Round {
    std::vector<Write> writes;
    bool flag_is_in_the_last = false;
  };
  Round plan(std::size_t round) const;
  std::string post_round(VIP_VI_HANDLE vi, const WriteTarget& to, std::size_t round);
  void gather(VIP_DESCRIPTOR* d, std::size_t buffer, const Write& write) const;
  std::string wait_for_answer(std::size_t round) const;
  std::string difference(std::size_t round, std::size_t slot) const;

  const std::size_t number_;
  Memory memory_;  // written to by the other side: two slots
  Memory source_;
  std::vector<std::byte> expected_[2];
  std::size_t round_ = 0;
  std::string wrong_;
};

// The target's part for all of them, until the last round or the first error; what it was.
std::string check_all(std::vector<std::unique_ptr<RandomWrites>>& all,
                      const std::vector<VIP_VI_HANDLE>& vis, const std::vector<WriteTarget>& from);
// The other part, a thread for each VI.
std::string write_all(std::vector<std::unique_ptr<RandomWrites>>& all,
                      const std::vector<VIP_VI_HANDLE>& vis, const std::vector<WriteTarget>& to);

}  // namespace viaduct::vipl_test
