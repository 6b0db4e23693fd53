// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/link_fate.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft {
namespace {

constexpr TimePs delay = 250_ns;
const LinkParams link{Rate{400'000'000'000}, delay};  // 20 ps a byte

bool lost(LinkFate& fate, TimePs arrival, std::uint32_t bytes, bool control) {
  return fate.of(arrival, bytes, control) != LinkFate::Outcome::arrives;
}

TEST(LinkFate, WhatIsOnTheWireWhenALinkDiesIsLost) {
  const std::vector<FaultConfig> faults{{.at = 10_us, .kind = FaultKind::down},
                                        {.at = 20_us, .kind = FaultKind::up},
                                        {.at = 30_us, .kind = FaultKind::down},
                                        {.at = 30_us + 1, .kind = FaultKind::up}};
  LinkFate fate(faults, 0, link, Rng(1), Rng(2));
  const TimePs flight = 272 * 20 + delay;
  EXPECT_FALSE(fate.harmless());
  for (const bool control : {false, true}) {
    const std::uint32_t bytes = control ? 32 : 272;
    const TimePs own_flight = bytes * 20 + delay;
    EXPECT_FALSE(lost(fate, 5_us, bytes, control));
    EXPECT_FALSE(lost(fate, 10_us - 1, bytes, control)) << "its last bit was in";
    EXPECT_TRUE(lost(fate, 10_us + 1, bytes, control));
    EXPECT_TRUE(lost(fate, 10_us + own_flight, bytes, control)) << "sent while it was up, but the wire died";
    EXPECT_TRUE(lost(fate, 15_us, bytes, control));
    EXPECT_TRUE(lost(fate, 20_us + own_flight - 1, bytes, control)) << "its first bit met a dead link";
    EXPECT_FALSE(lost(fate, 20_us + own_flight, bytes, control));
  }
  EXPECT_TRUE(lost(fate, 30_us + flight / 2, 272, false)) << "one picosecond of darkness is enough";
  EXPECT_FALSE(lost(fate, 30_us + 1 + flight, 272, false));
}

TEST(LinkFate, ChanceIsRepeatableAndAsOftenAsAsked) {
  const auto losses = [](double data, double control, bool is_control) {
    const std::vector<FaultConfig> faults{{.kind = FaultKind::data_loss, .probability = data},
                                          {.kind = FaultKind::control_loss, .probability = control}};
    LinkFate fate(faults, 0, link, stream(1, 0, 0), stream(1, 0, 1));
    std::vector<bool> outcomes;
    for (TimePs i = 0; i < 100'000; ++i)
      outcomes.push_back(lost(fate, 1_us + i * 5'440, is_control ? 32 : 272, is_control));
    return outcomes;
  };
  const std::vector<bool> data = losses(0.25, 0, false);
  EXPECT_NEAR(static_cast<double>(std::count(data.begin(), data.end(), true)), 25'000, 700);  // 5 x sqrt(n p q) = 685
  EXPECT_EQ(data, losses(0.25, 0.5, false)) << "control cells have a stream of chance of their own";
  const std::vector<bool> none = losses(0.25, 0, true);
  EXPECT_EQ(std::count(none.begin(), none.end(), true), 0);
}

}  // namespace
}  // namespace weft
