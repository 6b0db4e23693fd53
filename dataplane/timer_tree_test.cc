// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/timer_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "dataplane/rng.h"

namespace weft {
namespace {

/// The first of the least: std::min_element over all slots.
void expect_like(const TimerTree& tree, const std::vector<TimePs>& reference) {
  const auto least = std::min_element(reference.begin(), reference.end());
  ASSERT_EQ(tree.earliest(), *least);
  if (*least != never) {
    ASSERT_EQ(tree.earliest_slot(), static_cast<std::uint32_t>(least - reference.begin()));
  }
}

TEST(TimerTree, StartsIdle) {
  for (std::uint32_t slots = 1; slots <= 300; ++slots) {
    const TimerTree tree(slots);
    EXPECT_EQ(tree.earliest(), never);
    for (std::uint32_t slot = 0; slot < slots; ++slot) EXPECT_EQ(tree.at(slot), never);
  }
}

TEST(TimerTree, AgreesWithALinearSearchForAnyNumberOfSlots) {
  for (std::uint32_t slots = 1; slots <= 300; ++slots) {
    TimerTree tree(slots);
    std::vector<TimePs> reference(slots, never);
    Rng random = stream(slots, 0, 0);
    for (int step = 0; step < 400; ++step) {
      const auto slot = static_cast<std::uint32_t>(random.below(slots));
      switch (random.below(4)) {
        case 0:
          tree.clear(slot);
          reference[slot] = never;
          break;
        case 1:  // few different times: ties everywhere
          reference[slot] = random.below(4);
          tree.set(slot, reference[slot]);
          break;
        default:
          reference[slot] = random.below(1'000'000);
          tree.set(slot, reference[slot]);
          break;
      }
      ASSERT_EQ(tree.at(slot), reference[slot]);
      expect_like(tree, reference);
    }
  }
}

TEST(TimerTree, TiesGoToTheLowerSlotWhateverTheHistory) {
  for (const std::uint32_t slots : {2u, 3u, 64u, 100u, 300u}) {
    Rng random = stream(slots, 0, 1);
    for (int round = 0; round < 20; ++round) {
      TimerTree tree(slots);
      std::vector<std::uint32_t> order(slots);
      for (std::uint32_t i = 0; i < slots; ++i) order[i] = i;
      for (std::uint32_t i = slots; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
      for (const std::uint32_t slot : order) tree.set(slot, 500 + slot);  // a history that is to leave no trace
      for (const std::uint32_t slot : order) tree.set(slot, 1000);
      for (std::uint32_t slot = 0; slot < slots; ++slot) {
        ASSERT_EQ(tree.earliest_slot(), slot);
        tree.clear(slot);
      }
      ASSERT_EQ(tree.earliest(), never);
    }
  }
}

TEST(TimerTree, RunsTimersInOrderOfTime) {
  TimerTree tree(40);
  Rng random = stream(7, 0, 2);
  for (std::uint32_t slot = 0; slot < 40; ++slot) tree.set(slot, random.below(1000));
  TimePs now = 0;
  for (int fired = 0; fired < 10'000; ++fired) {
    ASSERT_GE(tree.earliest(), now);
    now = tree.earliest();
    tree.set(tree.earliest_slot(), now + random.below(50));
  }
}

}  // namespace
}  // namespace weft
