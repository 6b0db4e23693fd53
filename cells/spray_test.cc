// SPDX-License-Identifier: BSD-3-Clause
#include "cells/spray.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

namespace weft::cells {
namespace {

Spray spray_over(const std::vector<std::uint64_t>& rates, std::uint64_t seed = 1) {
  Spray spray(stream(seed, 0, 0));
  spray.set_links(rates);
  return spray;
}
std::vector<std::uint16_t> round_of(Spray& spray, std::size_t places) {
  std::vector<std::uint16_t> round;
  for (std::size_t i = 0; i < places; ++i) round.push_back(spray.next());
  return round;
}
std::map<std::uint16_t, int> counts_of(Spray& spray, std::size_t draws) {
  std::map<std::uint16_t, int> counts;
  for (std::size_t i = 0; i < draws; ++i) ++counts[spray.next()];
  return counts;
}

TEST(Spray, EachRoundUsesEveryLinkOnce) {
  for (const std::size_t links : {1u, 2u, 10u, 33u}) {
    Spray spray = spray_over(std::vector<std::uint64_t>(links, 400));
    for (int round = 0; round < 100; ++round) {
      const std::vector<std::uint16_t> used = round_of(spray, links);
      EXPECT_EQ(std::set<std::uint16_t>(used.begin(), used.end()).size(), links);
    }
  }
}

TEST(Spray, OrderIsShuffledNowAndThen) {
  Spray spray = spray_over(std::vector<std::uint64_t>(10, 400));
  std::set<std::vector<std::uint16_t>> orders;
  for (int round = 0; round < 160; ++round) orders.insert(round_of(spray, 10));
  EXPECT_GE(orders.size(), 15u);  // 160 rounds of 8 a shuffle are 20 of 10! orders; that many equal ones do not happen
}

TEST(Spray, PlacesFollowTheRate) {
  Spray spray = spray_over({800, 400, 400, 200});
  for (int round = 0; round < 50; ++round) {
    const auto counts = counts_of(spray, 9);
    EXPECT_EQ(counts, (std::map<std::uint16_t, int>{{0, 4}, {1, 2}, {2, 2}, {3, 1}}));
  }
}

TEST(Spray, OddRatiosAreRoundedToA64thOfTheFastest) {
  Spray spray = spray_over({1'000'003, 500'000, 7});
  const auto counts = counts_of(spray, 97 * 50);  // 64 + 32 + 1 places: a slow link keeps one
  EXPECT_EQ(counts, (std::map<std::uint16_t, int>{{0, 64 * 50}, {1, 32 * 50}, {2, 50}}));
}

TEST(Spray, DeadLinksAreNotUsed) {
  Spray spray = spray_over({400, 0, 400, 0});
  EXPECT_EQ(counts_of(spray, 1'000), (std::map<std::uint16_t, int>{{0, 500}, {2, 500}}));
  spray.set_links(std::vector<std::uint64_t>{0, 0, 0, 400});
  EXPECT_EQ(counts_of(spray, 10), (std::map<std::uint16_t, int>{{3, 10}}));
  spray.set_links(std::vector<std::uint64_t>{0, 0, 0, 0});
  EXPECT_FALSE(spray.reaches());
  spray.set_links(std::vector<std::uint64_t>{0, 400, 0, 0});
  EXPECT_TRUE(spray.reaches());
  EXPECT_EQ(spray.next(), 1);
}

TEST(Spray, SeedsDifferAndRepeat) {
  const std::vector<std::uint64_t> rates(10, 400);
  Spray one = spray_over(rates, 1), again = spray_over(rates, 1), other = spray_over(rates, 2);
  const auto first = round_of(one, 1'000);
  EXPECT_EQ(first, round_of(again, 1'000));
  EXPECT_NE(first, round_of(other, 1'000));
}

}  // namespace
}  // namespace weft::cells
