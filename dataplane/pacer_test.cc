// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/pacer.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

constexpr std::uint64_t three_ghz = 3'000'000'000;

/// A clock that moves `step` ticks each time it is read, and through sleep.
struct FakeClock {
  std::uint64_t* now;
  std::uint64_t step = 0;
  std::uint64_t* slept = nullptr;
  std::uint64_t oversleeps = 0;  // ticks
  std::uint64_t operator()() const { return *now += step; }
  void sleep(std::uint64_t ticks) const {
    *now += ticks + oversleeps;
    if (slept != nullptr) *slept += ticks;
  }
  void pause() const {}
};
using FakePacer = WallPacer<FakeClock>;

TEST(WallPacer, HoldsAWindowUntilItsTimeHasCome) {
  std::uint64_t now = 1'000'000;  // clocks do not start at zero
  const FakePacer pacer(FakeClock{&now, 7}, three_ghz, 1, 0);
  const std::uint64_t start = now;
  EXPECT_TRUE(pacer.wait_for(1_us));
  EXPECT_GE(now, start + 3'000);
  EXPECT_LT(now, start + 3'000 + 7) << "not a reading of the clock longer than needed";
  EXPECT_TRUE(pacer.wait_for(2_us));
  EXPECT_GE(now, start + 6'000);
  EXPECT_LT(now, start + 6'000 + 7);
}

TEST(WallPacer, AWindowThatIsLateStartsAtOnce) {
  std::uint64_t now = 0;
  const FakePacer pacer(FakeClock{&now}, three_ghz, 1, 0);  // it stands still: waiting would never end
  now = 3'000;
  EXPECT_TRUE(pacer.wait_for(1_us));
  EXPECT_TRUE(pacer.wait_for(0));
  EXPECT_EQ(now, 3'000);
}

TEST(WallPacer, ALongWaitLooksAroundNowAndThen) {
  std::uint64_t now = 0;
  const FakePacer pacer(FakeClock{&now, 1'000}, three_ghz, 1, 0);
  int looks = 1;
  while (!pacer.wait_for(1_s)) ++looks;
  EXPECT_GE(looks, 50) << "a stop must not wait for a second";
  EXPECT_GE(now, three_ghz);
}

TEST(WallPacer, DilationStretchesEmulatedTime) {
  std::uint64_t now = 0;
  const FakePacer pacer(FakeClock{&now, 1'000}, three_ghz, 1'000, 0);
  EXPECT_TRUE(pacer.wait_for(1_us));  // takes a millisecond of real time
  EXPECT_GE(now, 3'000'000u);
  EXPECT_LE(now, 3'000'000u + 2'000);
}

TEST(WallPacer, NowIsEmulatedTime) {
  for (const std::uint32_t dilation : {1u, 10u, 1'000u}) {
    std::uint64_t now = 500;
    const FakePacer pacer(FakeClock{&now}, three_ghz, dilation, 0);
    EXPECT_EQ(pacer.now(), 0u);
    now = 500 + 3'000ull * dilation;
    EXPECT_EQ(pacer.now(), 1_us);
  }
}

TEST(WallPacer, DoesNotDriftOrOverflowInALongRun) {
  std::uint64_t now = 12'345;
  const FakePacer pacer(FakeClock{&now}, 2'893'437'000, 1'000, 0);
  const TimePs long_run = 86'400 * 1_s;  // a day, dilated to nearly three years
  now = 12'345 + 2'893'437'000ull * 86'400 * 1'000;
  EXPECT_EQ(pacer.now(), long_run);
  EXPECT_TRUE(pacer.wait_for(long_run));
}

TEST(WallPacer, SleepsThroughMostOfALongWaitWhereItMay) {
  std::uint64_t now = 0, slept = 0;
  // A sleep is longer than asked for, by the 50 us that Linux' timers usually are.
  const FakePacer pacer(FakeClock{&now, 30, &slept, 150'000}, three_ghz, 1, 300'000);
  while (!pacer.wait_for(100_ms)) {
  }
  EXPECT_GE(now, three_ghz / 10);
  EXPECT_LT(now, three_ghz / 10 + 31) << "and not through the end of it";
  EXPECT_GT(slept, three_ghz / 10 * 9 / 10);
}

TEST(WallPacer, ARestEndsBeforeWhatIsKnownToCome) {
  std::uint64_t now = 0, slept = 0;
  const FakePacer pacer(FakeClock{&now, 0, &slept}, three_ghz, 1, 300'000);  // rests of 100 us
  pacer.rest(never);
  EXPECT_EQ(slept, 300'000u);
  pacer.rest(pacer.now() + 10_us);
  EXPECT_EQ(slept, 300'000u) << "too short a time to sleep in";
  pacer.rest(pacer.now() + 100_us);
  EXPECT_LT(slept, 600'000u);
  EXPECT_GT(slept, 300'000u);
  const FakePacer spinning(FakeClock{&now, 0, &slept}, three_ghz, 1, 0);
  slept = 0;
  spinning.rest(never);
  EXPECT_EQ(slept, 0u);
}

}  // namespace
}  // namespace weft
