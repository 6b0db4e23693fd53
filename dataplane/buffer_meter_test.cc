// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/buffer_meter.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(BufferMeter, AveragesOverTimeAndNotOverChanges) {
  BufferMeter meter;
  meter.set(100, 10_ns);
  meter.set(300, 20_ns);  // 10 ns of 100
  meter.set(0, 25_ns);    // 5 ns of 300
  EXPECT_EQ(meter.max_bytes(), 300u);
  EXPECT_DOUBLE_EQ(meter.mean_bytes(50_ns), (10 * 100 + 5 * 300) / 50.0);
  EXPECT_DOUBLE_EQ(meter.mean_bytes(100_ns), (10 * 100 + 5 * 300) / 100.0) << "silence counts";
}

TEST(BufferMeter, WhatIsHeldAtTheEndCounts) {
  BufferMeter meter;
  meter.set(100, 10_ns);
  EXPECT_DOUBLE_EQ(meter.mean_bytes(20_ns), 50);
  EXPECT_DOUBLE_EQ(meter.mean_bytes(0), 0) << "no time, no average";
}

TEST(BufferMeter, WarmUpIsLeftOutOfTheAverageOnly) {
  BufferMeter meter;
  meter.set(1'000, 1_ns);
  meter.set(100, 9_ns);
  meter.start_average(10_ns);
  meter.set(200, 15_ns);
  EXPECT_DOUBLE_EQ(meter.mean_bytes(20_ns), 150);
  EXPECT_EQ(meter.max_bytes(), 1'000u);
}

TEST(BufferMeter, ChangesAtOneInstantLeaveTheLast) {
  BufferMeter meter;
  meter.set(500, 10_ns);
  meter.set(0, 10_ns);
  EXPECT_EQ(meter.max_bytes(), 500u);
  EXPECT_DOUBLE_EQ(meter.mean_bytes(20_ns), 0);
}

TEST(BufferMeter, DaysOfAFullBufferDoNotOverflow) {
  BufferMeter meter;
  meter.set(8ull << 30, 0);
  EXPECT_DOUBLE_EQ(meter.mean_bytes(10'000'000_s), static_cast<double>(8ull << 30));
}

TEST(BufferMeter, AFabricIsItsFullestSwitchAndTheSumOfAll) {
  BufferMeter a, b;
  a.set(100, 0), a.set(0, 5_ns);   // mean 50
  b.set(40, 0), b.set(70, 10_ns);  // mean 40
  b.set(0, 10_ns);
  BufferResult result;
  a.add_to(result, "leaf0", 10_ns);
  b.add_to(result, "leaf1", 10_ns);
  EXPECT_EQ(result.max_bytes, 100u);
  EXPECT_EQ(result.max_node, "leaf0");
  EXPECT_EQ(result.mean_node, "leaf0");
  EXPECT_DOUBLE_EQ(result.all_mean_bytes, 90);
}

}  // namespace
}  // namespace weft
