// SPDX-License-Identifier: BSD-3-Clause
#include "voq/voq.h"

#include <gtest/gtest.h>

#include <set>

namespace weft::voq {
namespace {

TEST(VoqTable, MakesAVoqOnFirstUseAndFindsItAgain) {
  VoqTable table(4, 16, 64);
  EXPECT_TRUE(table.all().empty());
  Voq* const first = table.get(2, 11);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->destination, 2);
  EXPECT_EQ(first->stream, 11);
  EXPECT_NE(table.get(2, 10), first);
  EXPECT_NE(table.get(3, 11), first);
  EXPECT_EQ(table.get(2, 11), first);
  EXPECT_EQ(table.all().size(), 3u);
  EXPECT_EQ(&table.at(table.number_of(*first)), first);
}

TEST(VoqTable, FindMakesNothing) {
  VoqTable table(4, 16, 64);
  EXPECT_EQ(table.find(1, 3), nullptr);
  const Voq* const made = table.get(1, 3);
  EXPECT_EQ(table.find(1, 3), made);
  EXPECT_EQ(table.find(1, 4), nullptr) << "its row is there, the VOQ is not";
  EXPECT_EQ(table.find(2, 3), nullptr);
  EXPECT_EQ(table.all().size(), 1u);
}

TEST(VoqTable, ThePoolRunsOutAndThoseInUseStay) {
  VoqTable table(8, 64, 10);
  std::set<Voq*> made;
  for (std::uint16_t i = 0; i < 10; ++i) made.insert(table.get(i % 8, i));
  EXPECT_EQ(made.size(), 10u);
  EXPECT_EQ(made.count(nullptr), 0u);
  EXPECT_EQ(table.get(7, 63), nullptr);
  EXPECT_EQ(table.get(0, 63), nullptr) << "nor in a row that exists";
  for (std::uint16_t i = 0; i < 10; ++i) EXPECT_EQ(made.count(table.get(i % 8, i)), 1u) << "no pointer has moved";
  EXPECT_EQ(table.get(7, 63), nullptr) << "a failure is no use";
}

TEST(Voq, BalanceGoesBelowZeroByAnOverdraftAndIsPaidBack) {
  Voq voq;
  EXPECT_EQ(voq.balance(), 0);
  EXPECT_FALSE(voq.outstanding());
  voq.requested = 3'048;
  EXPECT_TRUE(voq.outstanding());
  voq.granted = 2'048;
  EXPECT_EQ(voq.balance(), 2'048);
  voq.sent = 3'048;
  EXPECT_EQ(voq.balance(), -1'000);
  EXPECT_TRUE(voq.outstanding()) << "the overdraft is still asked for";
  voq.granted = 3'048;
  EXPECT_EQ(voq.balance(), 0);
  EXPECT_FALSE(voq.outstanding());
}

TEST(Voq, WhatIsGivenBackOrWithdrawnNeedsNoGrant) {
  Voq voq;
  voq.requested = 5'000, voq.granted = 5'000, voq.sent = 1'000;
  voq.given_back = 4'000;  // credit that it could not use
  EXPECT_EQ(voq.balance(), 0);
  EXPECT_TRUE(voq.outstanding()) << "it still wants to send those bytes";
  voq.withdrawn = 4'000;  // unless they were dropped
  EXPECT_FALSE(voq.outstanding());
}

}  // namespace
}  // namespace weft::voq
