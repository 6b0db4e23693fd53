// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/time.h"

#include <gtest/gtest.h>

#include <vector>

#include "dataplane/rng.h"

namespace weft {
namespace {

// Rates that are not whole picoseconds a byte, and some that are.
const std::vector<std::uint64_t> rates{1,
                                       10'000'000,
                                       3'000'000'000,
                                       7'000'000'000,
                                       25'781'250'000,
                                       100'000'000'000,
                                       400'000'000'000,
                                       999'999'999'989,  // prime: no factor in common with a byte
                                       1'600'000'000'000};

TEST(WireClock, IsExactOverAMillionFrames) {
  for (const std::uint64_t rate : rates) {
    if (rate < 1'000'000) continue;  // a million frames at 1 bit/s do not fit into 64 bits of picoseconds
    WireClock clock(Rate{rate});
    Rng random = stream(rate, 0, 0);
    std::uint64_t bytes = 0;
    TimePs time = 0;
    for (int i = 0; i < 1'000'000; ++i) {
      const auto frame = static_cast<std::uint32_t>(84 + random.below(9217));
      bytes += frame;
      time += clock.take(frame);
      const auto exact = static_cast<TimePs>(static_cast<Uint128>(bytes) * 8'000'000'000'000 / rate);
      ASSERT_EQ(time, exact) << rate << " bit/s after " << i + 1 << " frames";
    }
  }
}

TEST(WireClock, TakesTheLargestBlockAtTheOddestRate) {
  WireClock clock(Rate{999'999'999'989});
  for (int i = 0; i < 3; ++i) clock.take((1 << 20) - 1);  // leaves a remainder behind
  const TimePs third = clock.take(1 << 20),
               floor = static_cast<TimePs>(Uint128{1 << 20} * 8'000'000'000'000 / 999'999'999'989);
  EXPECT_GE(third, floor);
  EXPECT_LE(third, floor + 1);  // the remainder carried is below one picosecond
}

TEST(WireClock, TimeOfRoundsUpAndChangesNothing) {
  for (const std::uint64_t rate : rates) {
    WireClock clock(Rate{rate}), untouched(Rate{rate});
    for (const std::uint64_t bytes : {0u, 1u, 7u, 84u, 272u, 1524u, 9240u, 1u << 20}) {
      const Uint128 bits = static_cast<Uint128>(bytes) * 8'000'000'000'000;
      const TimePs time = clock.time_of(bytes);
      EXPECT_GE(static_cast<Uint128>(time) * rate, bits);
      if (time > 0) {
        EXPECT_LT(static_cast<Uint128>(time - 1) * rate, bits) << "a picosecond less is too short";
      }
    }
    EXPECT_EQ(clock.take(1500), untouched.take(1500));
  }
}

TEST(WireClock, BytesInIsTheInverseOfTimeOf) {
  for (const std::uint64_t rate : rates) {
    const WireClock clock(Rate{rate});
    for (const std::uint64_t bytes : {1u, 84u, 1524u, 1u << 20}) {
      EXPECT_GE(clock.bytes_in(clock.time_of(bytes)), bytes);
      EXPECT_LT(clock.bytes_in(clock.time_of(bytes) - 1), bytes);
    }
  }
  EXPECT_EQ(WireClock(Rate{400'000'000'000}).bytes_in(213ull * 86'400 * 1_s), 213ull * 86'400 * 50'000'000'000);
}

TEST(WireClock, ANewRateStartsClean) {
  WireClock clock(Rate{7'000'000'000});
  clock.take(1);
  clock.set_rate(Rate{400'000'000'000});
  EXPECT_EQ(clock.take(1500), 30'000);
  clock.set_rate(Rate{7'000'000'000});
  EXPECT_EQ(clock.take(1), WireClock(Rate{7'000'000'000}).take(1));
}

TEST(Time, LiteralsAreWholePicoseconds) {
  EXPECT_EQ(1_s, 1'000_ms);
  EXPECT_EQ(1_ms, 1'000_us);
  EXPECT_EQ(1_us, 1'000_ns);
  EXPECT_EQ(1_ns, 1'000_ps);
}

}  // namespace
}  // namespace weft
