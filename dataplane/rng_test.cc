// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/rng.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "dataplane/exponential.h"

namespace weft {
namespace {

TEST(Rng, SplitMixReferenceValues) {  // first outputs of the published generator for seed 0
  std::uint64_t state = 0;
  EXPECT_EQ(Rng::split_mix(state), 0xe220'a839'7b1d'cdafu);
  EXPECT_EQ(Rng::split_mix(state), 0x6e78'9e6a'a1b9'65f4u);
}

TEST(Rng, StreamsDiffer) {
  EXPECT_EQ(stream(1, 2, 3).next(), stream(1, 2, 3).next());
  EXPECT_NE(stream(1, 2, 3).next(), stream(1, 3, 2).next());
  EXPECT_NE(stream(1, 2, 3).next(), stream(2, 2, 3).next());
  EXPECT_NE(stream(0, 0, 0).next(), stream(0, 0, 1).next());
}

TEST(Rng, BelowIsUniform) {
  Rng random = stream(1, 0, 0);
  std::vector<int> seen(7);
  constexpr int draws = 70'000;
  for (int i = 0; i < draws; ++i) ++seen.at(random.below(seen.size()));
  // Chi-square with 6 degrees of freedom: above 33 once in 100,000; the seed is fixed, so never.
  double chi = 0;
  for (const int n : seen) chi += (n - 10'000.0) * (n - 10'000.0) / 10'000.0;
  EXPECT_LT(chi, 33);
}

TEST(Exponential, IsMinusTheLogarithm) {
  Rng random = stream(4, 0, 0);
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t draw = random.next() >> random.below(40);
    const double truth = -std::log(std::ldexp(static_cast<double>(draw | 1), -64));
    // Interpolation between 1024 points of log2: h^2 / 8 x 1 / ln 2, and a few units of 2^-32; plus the double's own
    // rounding.
    ASSERT_NEAR(std::ldexp(static_cast<double>(exponential_q32(draw)), -32), truth, 2e-7) << draw;
  }
  EXPECT_LT(exponential_q32(~0ull), 1000u);
}

TEST(Exponential, MeanAndVarianceAreOne) {
  Rng random = stream(5, 0, 0);
  constexpr int draws = 1'000'000;
  double sum = 0, squares = 0;
  for (int i = 0; i < draws; ++i) {
    const double x = std::ldexp(static_cast<double>(exponential_q32(random.next())), -32);
    sum += x, squares += x * x;
  }
  EXPECT_NEAR(sum / draws, 1, 0.005);       // five standard deviations: 5 / sqrt(10^6)
  EXPECT_NEAR(squares / draws, 2, 0.0224);  // x^2 has a standard deviation of sqrt(20)
}

}  // namespace
}  // namespace weft
