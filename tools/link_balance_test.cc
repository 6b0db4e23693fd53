// SPDX-License-Identifier: BSD-3-Clause
#include "tools/link_balance.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

LinkResult link(const char* name, double utilisation) {
  LinkResult result;
  result.name = name;
  result.load = utilisation;
  return result;
}

TEST(LinkBalance, EvenLinksAreOne) {
  const auto balance = link_balance({link("leaf0>spine0", 0.5), link("leaf0>spine1", 0.5)}, Direction::up);
  ASSERT_TRUE(balance);
  EXPECT_DOUBLE_EQ(balance->max_over_mean, 1);
  EXPECT_DOUBLE_EQ(balance->jain, 1);
}

TEST(LinkBalance, OneLinkOfFourIsFourAndAQuarter) {
  const auto balance =
      link_balance({link("leaf0>spine0", 0), link("leaf0>spine1", 1), link("leaf0>spine2", 0), link("leaf0>spine3", 0)},
                   Direction::up);
  ASSERT_TRUE(balance);
  EXPECT_DOUBLE_EQ(balance->max_over_mean, 4);
  EXPECT_DOUBLE_EQ(balance->jain, 0.25);
  EXPECT_EQ(balance->busiest, "leaf0>spine1");
  EXPECT_DOUBLE_EQ(balance->busiest_over_mean, 4);
}

TEST(LinkBalance, LeavesAreWeightedByWhatTheyCarry) {
  // leaf0: even, carries 0.9 in sum; leaf1: uneven (2), carries 0.1. A silent leaf2 has no say.
  const std::vector<LinkResult> links{link("leaf0>spine0", 0.45), link("leaf0>spine1", 0.45), link("leaf1>spine0", 0.1),
                                      link("leaf1>spine1", 0),    link("leaf2>spine0", 0),    link("leaf2>spine1", 0)};
  const auto balance = link_balance(links, Direction::up);
  ASSERT_TRUE(balance);
  EXPECT_DOUBLE_EQ(balance->max_over_mean, 0.9 * 1 + 0.1 * 2);
  EXPECT_DOUBLE_EQ(balance->jain, 0.9 * 1 + 0.1 * 0.5);
  EXPECT_EQ(balance->busiest, "leaf0>spine0");
}

TEST(LinkBalance, DownwardLinksToALeafAreOneGroupWhateverSpineTheyComeFrom) {
  const std::vector<LinkResult> links{link("spine0>leaf1.0", 0.8), link("spine0>leaf1.1", 0),
                                      link("spine1>leaf1.0", 0.8), link("spine1>leaf1.1", 0),
                                      link("leaf1>spine0.0", 0.3), link("leaf1:p0 out", 1)};
  const auto balance = link_balance(links, Direction::down);
  ASSERT_TRUE(balance);
  EXPECT_DOUBLE_EQ(balance->max_over_mean, 2);
  EXPECT_DOUBLE_EQ(balance->jain, 0.5);
  EXPECT_EQ(balance->busiest, "spine0>leaf1.0");
}

TEST(LinkBalance, NothingCarriedIsNoBalance) {
  EXPECT_FALSE(link_balance({link("leaf0>spine0", 0), link("leaf0:p0 in", 1)}, Direction::up));
  EXPECT_FALSE(link_balance({}, Direction::down));
}

}  // namespace
}  // namespace weft
