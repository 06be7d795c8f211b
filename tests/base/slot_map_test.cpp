#include "drivers/base/slot_map.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <utility>

namespace viaduct::base {
namespace {

struct NameId {
  std::uint32_t value = 0;
  auto operator<=>(const NameId&) const = default;
};
using Map = SlotMap<int, NameId>;

TEST(SlotMap, FindsWhatWasInserted) {
  Map map(3);
  const Slot a = map.insert(), b = map.insert();
  map[a] = 10;
  map[b] = 20;
  EXPECT_EQ(map.size(), 2u);
  EXPECT_EQ(map.find(map.id(a)), a);
  EXPECT_EQ(std::as_const(map)[map.find(map.id(b))], 20);
  EXPECT_NE(map.id(a), map.id(b));
}

TEST(SlotMap, StaleIdsFindNothing) {
  Map map(1);
  const Slot slot = map.insert();
  const NameId first = map.id(slot);
  map.erase(slot);
  EXPECT_EQ(map.find(first), kNoSlot);
  EXPECT_EQ(map.insert(), slot);
  EXPECT_EQ(map.find(first), kNoSlot);
  EXPECT_EQ(map.find(map.id(slot)), slot);
}

TEST(SlotMap, NumbersThatAreNoIdsFindNothing) {
  Map map(2);
  const Slot kept = map.insert(), freed = map.insert();
  map.erase(freed);
  for (std::uint32_t generation = 0; generation <= 0xffff; ++generation)
    for (const std::uint32_t slot : {0u, 1u, 2u, 3u, 0xffffu}) {
      const NameId id{generation << 16 | slot};
      ASSERT_EQ(map.find(id), id == map.id(kept) ? kept : kNoSlot) << generation << ' ' << slot;
    }
  EXPECT_EQ(Map(0).find({0}), kNoSlot);
}

TEST(SlotMap, RefusesMoreThanItsCapacity) {
  Map map(2);
  const Slot first = map.insert();
  map.insert();
  EXPECT_EQ(map.insert(), kNoSlot);
  EXPECT_EQ(map.size(), 2u);
  map.erase(first);
  EXPECT_EQ(map.insert(), first);
}

TEST(SlotMap, UsesAllSlotsThatAnIdCanName) {
  Map map(Map::kMaxCapacity);
  for (std::size_t i = 0; i < Map::kMaxCapacity; ++i) {
    const Slot slot = map.insert();
    ASSERT_EQ(map.find(map.id(slot)), slot);
  }
  EXPECT_EQ(map.insert(), kNoSlot);
}

TEST(SlotMap, GenerationsBeginAgainAndSkipZero) {
  SlotMap<int, NameId, 2> map(1);  // generations 1, 2, 3
  std::set<std::uint32_t> values;
  const NameId first = map.id(map.insert());
  for (int i = 0; i < 3; ++i) {
    const NameId id = map.id(0);
    EXPECT_NE(id.value, 0u);
    EXPECT_TRUE(values.insert(id.value).second);
    map.erase(0);
    EXPECT_EQ(map.find(id), kNoSlot);
    map.insert();
  }
  EXPECT_EQ(map.id(0), first) << "the first id comes again after three objects";
}

TEST(SlotMap, SixteenBitsOfGenerationsWrapAround) {
  Map map(1);
  const NameId first = map.id(map.insert());
  for (int i = 1; i < 0xffff; ++i) {
    map.erase(0);
    map.insert();
    ASSERT_NE(map.id(0), first);
    ASSERT_EQ(map.find(first), kNoSlot);
  }
  map.erase(0);
  map.insert();
  EXPECT_EQ(map.id(0), first);
}

TEST(SlotMap, TheSlotThatIsFreeForLongestComesFirst) {
  Map map(3);
  for (int i = 0; i < 3; ++i) map.insert();
  for (const Slot slot : {2u, 0u, 1u}) map.erase(slot);
  for (const Slot slot : {2u, 0u, 1u}) EXPECT_EQ(map.insert(), slot);
}

TEST(SlotMap, MakesSlotsWhenTheyAreNeeded) {
  Map map(3, 1);
  const Slot first = map.insert(), second = map.insert();
  map.erase(first);
  EXPECT_EQ(map.insert(), first) << "a free slot comes before a new one";
  EXPECT_NE(map.insert(), kNoSlot);
  EXPECT_EQ(map.insert(), kNoSlot);
  EXPECT_EQ(map.find(map.id(second)), second);
}

TEST(SlotMap, VisitsEachObjectAndLetsItGo) {
  Map map(5);
  for (int i = 0; i < 5; ++i) map[map.insert()] = i;
  map.erase(1);
  std::set<int> seen;
  map.for_each([&](Slot slot, int& object) {
    seen.insert(object);
    if (object == 2) map.erase(slot);
    if (object == 2) map.erase(4);  // not yet visited, and not to be
  });
  EXPECT_EQ(seen, (std::set{0, 2, 3}));
  EXPECT_EQ(map.size(), 2u);
}

// Against a plain list of the ids that are valid and those that no longer are.
TEST(SlotMap, AgreesWithAModel) {
  std::mt19937 random(1);
  SlotMap<std::uint32_t, NameId> map(16, 4);
  std::vector<NameId> valid, stale;
  for (std::uint32_t step = 0; step < 20000; ++step) {
    if (random() % 2 == 0) {
      const Slot slot = map.insert();
      ASSERT_EQ(slot == kNoSlot, valid.size() == 16);
      if (slot == kNoSlot) continue;
      valid.push_back(map.id(slot));
      map[slot] = valid.back().value;
    } else if (!valid.empty()) {
      const std::size_t at = random() % valid.size();
      map.erase(map.find(valid[at]));
      stale.push_back(valid[at]);
      valid.erase(valid.begin() + static_cast<std::ptrdiff_t>(at));
    }
    ASSERT_EQ(map.size(), valid.size());
    for (const NameId id : valid) ASSERT_EQ(map[map.find(id)], id.value);
    for (std::size_t i = stale.size() < 8 ? 0 : stale.size() - 8; i < stale.size(); ++i)
      ASSERT_EQ(map.find(stale[i]), kNoSlot);
  }
}

}  // namespace
}  // namespace viaduct::base
