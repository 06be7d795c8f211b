// Handles: a freed one is never taken for a later object, as long as its slot has not been used 63
// times since.
#include "libmpi_lite/core/handle.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace viaduct::mpi {
namespace {

struct Thing : Counted {
  explicit Thing(int number) : number(number) { ++alive; }
  ~Thing() { --alive; }
  const int number;
  static inline int alive = 0;
};
using Table = HandleTable<Thing, HandleKind::message>;

TEST(HandleTable, FindsWhatWasAddedUntilItIsRemoved) {
  Table table;
  std::vector<std::uintptr_t> handles;
  for (int i = 0; i < 100; ++i) handles.push_back(table.add(make<Thing>(i)));
  for (int i = 0; i < 100; i += 2) EXPECT_EQ(table.remove(handles[i])->number, i);
  EXPECT_EQ(Thing::alive, 50);
  for (int i = 0; i < 100; ++i) {
    Thing* const found = table.find(handles[i]);
    EXPECT_EQ(found ? found->number : -1, i % 2 == 1 ? i : -1);
  }
  EXPECT_FALSE(table.remove(handles[0])) << "twice";
  table.clear();
  EXPECT_EQ(Thing::alive, 0);
}

TEST(HandleTable, ReusesSlotsButNotHandles) {
  Table table;
  const std::uintptr_t keeps = table.add(make<Thing>(-1));
  std::set<std::uintptr_t> seen{keeps};
  for (int i = 0; i < 63; ++i) {
    const std::uintptr_t handle = table.add(make<Thing>(i));
    EXPECT_TRUE(seen.insert(handle).second) << "use " << i;
    EXPECT_LT(handle, std::uintptr_t{1} << 31) << "MPI_Comm_toint and its kin";
    EXPECT_GE(handle, kPredefinedHandles);
    ASSERT_EQ(table.find(handle)->number, i);
    table.remove(handle);
    EXPECT_EQ(table.find(handle), nullptr);
  }
  // The 64th has the first one's name again: 6 bits of generation.
  EXPECT_FALSE(seen.insert(table.add(make<Thing>(63))).second);
  EXPECT_EQ(table.find(keeps)->number, -1);
}

TEST(HandleTable, NothingBehindValuesThatWereNeverGiven) {
  Table table;
  const std::uintptr_t handle = table.add(make<Thing>(1));
  EXPECT_EQ(table.find(0), nullptr);
  EXPECT_EQ(table.find(kPredefinedHandles), nullptr);
  EXPECT_EQ(table.find(handle + 1), nullptr) << "the next slot";
  EXPECT_EQ(table.find(handle + (std::uintptr_t{1} << 21)), nullptr) << "the next generation";
  EXPECT_EQ(table.find(handle | std::uintptr_t{1} << 32), nullptr);
  EXPECT_EQ(table.find(~std::uintptr_t{0}), nullptr);
  EXPECT_FALSE(table.remove(handle + 1));
  EXPECT_EQ(table.find(handle)->number, 1);
}

}  // namespace
}  // namespace viaduct::mpi
