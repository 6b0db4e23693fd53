// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/class_arbiter.h"

#include <gtest/gtest.h>

#include <array>

#include "dataplane/rng.h"

namespace weft {
namespace {

constexpr std::uint32_t quantum = 9'240, largest = 9'240;

ClassesConfig one_group(std::array<std::uint16_t, traffic_classes> weight = {1, 1, 1, 1, 1, 1, 1, 1}) {
  ClassesConfig classes;
  classes.strict_group.fill(0);
  classes.weight = weight;
  return classes;
}

TEST(ClassArbiter, HigherGroupsAreServedFirst) {
  ClassesConfig classes;  // 7 before 6 before the rest
  ClassArbiter arbiter(classes, quantum);
  Rng random = stream(1, 0, 0);
  for (int i = 0; i < 10'000; ++i) {
    const auto candidates = static_cast<std::uint32_t>(1 + random.below(255));
    const std::uint32_t picked = arbiter.pick(candidates);
    ASSERT_NE(candidates >> picked & 1, 0u) << "only who has something to send";
    if ((candidates & 0x80) != 0) {
      ASSERT_EQ(picked, 7u);
    } else if ((candidates & 0x40) != 0) {
      ASSERT_EQ(picked, 6u);
    }
    arbiter.charge(picked, static_cast<std::uint32_t>(84 + random.below(largest - 84)));
  }
}

TEST(ClassArbiter, SharesFollowTheWeightsAtEveryInstant) {
  const ClassesConfig classes = one_group({1, 2, 4, 1, 1, 1, 1, 1});
  ClassArbiter arbiter(classes, quantum);
  Rng random = stream(2, 0, 0);
  std::array<double, 3> served{};
  for (int i = 0; i < 100'000; ++i) {
    const std::uint32_t c = arbiter.pick(0b111);
    const auto bytes =
        static_cast<std::uint32_t>(c == 1 ? largest : 84 + random.below(1'440));  // sizes must not matter
    arbiter.charge(c, bytes);
    served[c] += bytes;
    // A class is at most a round (a quantum for each unit of weight) and one item ahead of its share, or behind it.
    for (std::uint32_t other = 0; other < 3; ++other)
      ASSERT_LE(std::abs(served[c] / classes.weight[c] - served[other] / classes.weight[other]),
                2.0 * (quantum + largest));
  }
}

TEST(ClassArbiter, NobodyInsideAGroupStarves) {
  ClassArbiter arbiter(one_group({100, 1, 1, 1, 1, 1, 1, 1}), quantum);
  std::uint64_t waited = 0;  // bytes of others since class 5 was served
  for (int i = 0; i < 20'000; ++i) {
    const std::uint32_t c = arbiter.pick(0xff);
    arbiter.charge(c, 1'524);
    waited = c == 5 ? 0 : waited + 1'524;
    ASSERT_LE(waited, 107u * quantum + 8 * 1'524) << "a round of everybody's weight, and an overdraft of each";
  }
}

TEST(ClassArbiter, AnIdleClassDoesNotSaveUp) {
  ClassArbiter arbiter(one_group(), quantum);
  for (int i = 0; i < 1'000; ++i) arbiter.charge(arbiter.pick(0b01), 1'524);  // class 0 alone
  std::array<std::uint64_t, 2> served{};
  for (int i = 0; i < 100; ++i) {
    const std::uint32_t c = arbiter.pick(0b11);
    arbiter.charge(c, 1'524);
    served[c] += 1'524;
    const std::uint64_t ahead = served[0] > served[1] ? served[0] - served[1] : served[1] - served[0];
    // The debt of the one that was alone is cut off at a quantum; then they take turns by quanta.
    ASSERT_LE(ahead, 2u * quantum + 2 * 1'524);
  }
}

}  // namespace
}  // namespace weft
