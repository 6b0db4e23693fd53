// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/pacer.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

constexpr std::uint64_t three_ghz = 3'000'000'000;

/// A clock that moves `step` ticks each time it is read.
struct FakeClock {
  std::uint64_t* now;
  std::uint64_t step = 0;
  std::uint64_t operator()() const { return *now += step; }
};

TEST(WallPacer, HoldsAWindowUntilItsTimeHasCome) {
  std::uint64_t now = 1'000'000;  // clocks do not start at zero
  const WallPacer pacer(FakeClock{&now, 7}, three_ghz, 1);
  const std::uint64_t start = now;
  pacer.wait_for(1_us);
  EXPECT_GE(now, start + 3'000);
  EXPECT_LT(now, start + 3'000 + 7) << "not a reading of the clock longer than needed";
  pacer.wait_for(2_us);
  EXPECT_GE(now, start + 6'000);
  EXPECT_LT(now, start + 6'000 + 7);
}

TEST(WallPacer, AWindowThatIsLateStartsAtOnce) {
  std::uint64_t now = 0;
  const WallPacer pacer(FakeClock{&now}, three_ghz, 1);  // it stands still: waiting would never end
  now = 3'000;
  pacer.wait_for(1_us);
  pacer.wait_for(0);
  EXPECT_EQ(now, 3'000);
}

TEST(WallPacer, DilationStretchesEmulatedTime) {
  std::uint64_t now = 0;
  const WallPacer pacer(FakeClock{&now, 1'000}, three_ghz, 1'000);
  pacer.wait_for(1_us);  // takes a millisecond of real time
  EXPECT_GE(now, 3'000'000u);
  EXPECT_LE(now, 3'000'000u + 2'000);
}

TEST(WallPacer, LagIsInEmulatedTime) {
  for (const std::uint32_t dilation : {1u, 10u, 1'000u}) {
    std::uint64_t now = 500;
    const WallPacer pacer(FakeClock{&now}, three_ghz, dilation);
    now = 500 + 3'000ull * dilation;  // the time of emulated 1 us
    EXPECT_EQ(pacer.lag(2_us), 0u) << "early";
    EXPECT_EQ(pacer.lag(1_us), 0u) << "on time";
    EXPECT_EQ(pacer.lag(250_ns), 750_ns) << "late";
    EXPECT_EQ(pacer.lag(0), 1_us);
  }
}

TEST(WallPacer, DoesNotDriftOrOverflowInALongRun) {
  std::uint64_t now = 12'345;
  const WallPacer pacer(FakeClock{&now}, 2'893'437'000, 1'000);
  const TimePs long_run = 86'400 * 1_s;  // a day, dilated to nearly three years
  now = 12'345 + 2'893'437'000ull * 86'400 * 1'000;
  EXPECT_EQ(pacer.lag(long_run), 0u);
  EXPECT_EQ(pacer.lag(long_run - 1_ms), 1_ms);
}

TEST(VirtualPacer, NeverWaits) { VirtualPacer().wait_for(never); }

}  // namespace
}  // namespace weft
