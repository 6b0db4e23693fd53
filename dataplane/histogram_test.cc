// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "dataplane/results.h"
#include "dataplane/rng.h"

namespace weft {
namespace {

TEST(Histogram, NearestRankWithinABucket) {
  Rng random = stream(2, 0, 0);
  for (int round = 0; round < 50; ++round) {
    Histogram h;
    std::vector<TimePs> values(1 + random.below(3000));
    for (auto& v : values) h.add(v = random.next() >> random.below(64));
    std::sort(values.begin(), values.end());
    for (const double f : {0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
      const auto rank = std::clamp<std::size_t>(
          static_cast<std::size_t>(std::ceil(f * static_cast<double>(values.size()))), 1, values.size());
      const TimePs truth = values[rank - 1], said = h.percentile(f);
      EXPECT_GE(said, truth) << f;
      EXPECT_LE(said - truth, truth >> Histogram::sub_bits) << f;  // a bucket is 2^-sub_bits wide
    }
    EXPECT_EQ(h.min(), values.front());
    EXPECT_EQ(h.max(), values.back());
    EXPECT_EQ(h.percentile(1), values.back());
  }
}

TEST(Histogram, SmallValuesAreExact) {
  Histogram h;
  for (TimePs v = 1; v <= 1000; ++v) h.add(v);
  const LatencySummary s = h.summary();
  EXPECT_EQ(s.count, 1000u);
  EXPECT_EQ(s.min, 1u);
  EXPECT_EQ(s.p50, 500u);
  EXPECT_EQ(s.p90, 900u);
  EXPECT_EQ(s.p99, 990u);
  EXPECT_EQ(s.p999, 999u);
  EXPECT_EQ(s.max, 1000u);
  EXPECT_DOUBLE_EQ(s.mean, 500.5);
}

TEST(Histogram, MergeIsTheSameAsOne) {
  Histogram one, a, b;
  Rng random = stream(3, 0, 0);
  for (int i = 0; i < 5000; ++i) {
    const TimePs v = random.next() >> random.below(60);
    one.add(v);
    (i % 3 == 0 ? a : b).add(v);
  }
  a.merge(b);
  a.merge(Histogram{});
  for (const double f : {0.1, 0.5, 0.999}) EXPECT_EQ(a.percentile(f), one.percentile(f));
  EXPECT_EQ(a.min(), one.min());
  EXPECT_EQ(a.max(), one.max());
  EXPECT_DOUBLE_EQ(a.summary().mean, one.summary().mean);
}

TEST(Histogram, Empty) {
  const LatencySummary s = Histogram{}.summary();
  EXPECT_EQ(s.count, 0u);
  EXPECT_EQ(s.p99, 0u);
  EXPECT_EQ(s.min, 0u);
  EXPECT_EQ(s.mean, 0);
}

TEST(Histogram, CurveIsTheDistribution) {
  Histogram histogram;
  for (TimePs value = 1; value <= 100'000; ++value) histogram.add(value * 1'000);
  const std::vector<LatencyPoint> curve = histogram.curve(400);
  ASSERT_FALSE(curve.empty());
  EXPECT_LE(curve.size(), 402u);
  EXPECT_GE(curve.size(), 200u) << "half a percent apart where samples are even";
  EXPECT_EQ(curve.back().at_most, histogram.max());
  EXPECT_EQ(curve.back().frames, 100'000u);
  TimePs before = 0;
  for (const LatencyPoint& point : curve) {
    EXPECT_GT(point.at_most, before);
    before = point.at_most;
    // value / 1000 samples are no greater; a bucket is 1/1024 of its value wide.
    EXPECT_NEAR(static_cast<double>(point.frames), static_cast<double>(point.at_most) / 1'000,
                static_cast<double>(point.at_most) / 1'000 / 1024 + 1);
  }
}

TEST(Histogram, CurveShowsAThinTail) {
  Histogram histogram;
  for (int i = 0; i < 1'000'000; ++i) histogram.add(2'000'000);
  histogram.add(900'000'000);
  const std::vector<LatencyPoint> curve = histogram.curve(400);
  ASSERT_EQ(curve.size(), 2u);
  EXPECT_EQ(curve[0].frames, 1'000'000u);
  EXPECT_EQ(curve[1].at_most, 900'000'000u);
  EXPECT_TRUE(Histogram().curve(400).empty());
}

}  // namespace
}  // namespace weft
