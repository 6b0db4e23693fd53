// SPDX-License-Identifier: BSD-3-Clause
#include "cells/reachability.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "dataplane/rng.h"

namespace weft::cells {
namespace {

constexpr Rate rate{400'000'000'000};
constexpr TimePs delay = 250_ns, interval = 10_us;
constexpr std::uint32_t misses = 3;
constexpr TimePs flight = 32 * 20 + delay;  // of a message

Topology fabric(std::uint32_t leaves = 3, std::uint32_t spines = 2, std::uint32_t parallel = 1) {
  Topology t;
  t.leaves = leaves, t.spines = spines, t.hosts_per_leaf = 1, t.parallel_links = parallel;
  t.host_links.assign(leaves, {rate, 50_ns});
  for (std::uint32_t l = 0; l < leaves; ++l)
    for (std::uint32_t s = 0; s < spines; ++s)
      for (std::uint32_t k = 0; k < parallel; ++k) t.fabric_links.push_back({l, s, k, {rate, delay}});
  return t;
}
FaultConfig fault(TimePs at, std::uint32_t link, FaultKind kind) {
  FaultConfig f;
  f.at = at, f.link = link, f.kind = kind;
  return f;
}

struct Noticed {
  TimePs at;
  bool alive;
  bool operator==(const Noticed&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Noticed& n) {
  return out << (n.alive ? "alive" : "dead") << " at " << n.at;
}

using What = ReachabilityEvent::What;

std::vector<Noticed> at_leaf(const ReachabilityPlan& plan, std::uint32_t leaf) {
  std::vector<Noticed> noticed;
  for (const ReachabilityEvent& e : plan.leaves[leaf])
    if (e.what == What::lose_uplink || e.what == What::regain_uplink)
      noticed.push_back({e.at, e.what == What::regain_uplink});
  return noticed;
}
std::vector<Noticed> at_spine(const ReachabilityPlan& plan, std::uint32_t spine) {
  std::vector<Noticed> noticed;
  for (const DownlinkEvent& e : plan.spines[spine])
    if (e.what != DownlinkEvent::What::rate) noticed.push_back({e.at, e.what == DownlinkEvent::What::regain});
  return noticed;
}

/// One message after the other: what a receiver notices of a link that is down in [down, up).
std::vector<Noticed> message_by_message(const std::vector<std::pair<TimePs, TimePs>>& outages, TimePs end) {
  std::vector<Noticed> noticed;
  TimePs last = 0;
  bool alive = true;
  for (TimePs sent = 0; sent < end; sent += interval) {
    const TimePs arrival = sent + flight;
    const bool lost = std::any_of(outages.begin(), outages.end(),
                                  [&](const auto& outage) { return sent < outage.second && arrival > outage.first; });
    if (lost) continue;
    if (alive && arrival > last + misses * interval) {
      noticed.push_back({last + misses * interval, false});
      alive = false;
    }
    if (!alive) noticed.push_back({arrival, true});
    alive = true;
    last = arrival;
  }
  if (alive && last + misses * interval < end) noticed.push_back({last + misses * interval, false});
  return noticed;
}

TEST(Reachability, ADeadLinkIsNoticedAfterThreeSilentIntervals) {
  const CellConfig config;
  // The last message left at 100 us and was in at 100 us + flight.
  for (const TimePs died : {100_us + flight, 105_us, 110_us, 110_us + flight - 1}) {
    const std::vector<FaultConfig> faults{fault(died, 0, FaultKind::down)};
    const ReachabilityPlan plan = plan_reachability(fabric(), config, faults);
    const std::vector<Noticed> expected{{100_us + flight + misses * interval, false}};
    EXPECT_EQ(at_leaf(plan, 0), expected);
    EXPECT_EQ(at_spine(plan, 0), expected) << "both ends at the same time";
    EXPECT_TRUE(at_leaf(plan, 1).empty());
    EXPECT_TRUE(at_spine(plan, 1).empty());
    EXPECT_LE(expected[0].at - died, misses * interval);
    EXPECT_GE(expected[0].at - died, (misses - 1) * interval);
  }
}

TEST(Reachability, ARepairedLinkIsTakenBackAtTheFirstMessage) {
  const CellConfig config;
  for (const TimePs repaired : {190_us + 1, 195_us, 200_us}) {
    const std::vector<FaultConfig> faults{fault(repaired, 0, FaultKind::up), fault(105_us, 0, FaultKind::down)};
    const ReachabilityPlan plan = plan_reachability(fabric(), config, faults);
    const std::vector<Noticed> expected{{100_us + flight + misses * interval, false}, {200_us + flight, true}};
    EXPECT_EQ(at_leaf(plan, 0), expected);
    EXPECT_EQ(at_spine(plan, 0), expected);
  }
}

TEST(Reachability, AFlapShorterThanDetectionIsNotNoticed) {
  const CellConfig config;
  const std::vector<FaultConfig> faults{fault(101_us, 0, FaultKind::down), fault(119_us, 0, FaultKind::up)};
  const ReachabilityPlan plan = plan_reachability(fabric(), config, faults);
  EXPECT_TRUE(at_leaf(plan, 0).empty());
  EXPECT_TRUE(at_spine(plan, 0).empty());
}

TEST(Reachability, AgreesWithEveryMessageSentOneByOne) {
  const CellConfig config;
  Rng random = stream(1, 0, 0);
  for (int round = 0; round < 500; ++round) {
    const TimePs scale = round % 2 == 0 ? 8_us : 60_us;  // flaps between two messages, and outages of several
    std::vector<FaultConfig> faults;
    std::vector<std::pair<TimePs, TimePs>> outages;
    TimePs at = 20_us + random.below(20_us);
    for (int i = 0; i < 8; ++i) {
      const TimePs down = at, up = down + 1 + random.below(scale);
      at = up + 1 + random.below(scale);
      outages.emplace_back(down, up);
      faults.push_back(fault(down, 3, FaultKind::down));
      faults.push_back(fault(up, 3, FaultKind::up));
    }
    const ReachabilityPlan plan = plan_reachability(fabric(), config, faults);
    const std::vector<Noticed> expected = message_by_message(outages, at + 200_us);
    ASSERT_EQ(at_leaf(plan, 1), expected) << "round " << round;  // link 3 joins leaf 1 and spine 1
    ASSERT_EQ(at_spine(plan, 1), expected) << "round " << round;
  }
}

TEST(Reachability, ASpineTellsAllLeavesWithItsNextMessage) {
  const CellConfig config;
  const std::vector<FaultConfig> faults{fault(105_us, 0, FaultKind::down), fault(300_us, 0, FaultKind::up)};
  const ReachabilityPlan plan = plan_reachability(fabric(), config, faults);
  const TimePs dead = 100_us + flight + misses * interval, alive = 300_us + flight;
  std::vector<ReachabilityEvent> heard;
  for (const ReachabilityEvent& e : plan.leaves[2])
    if (e.what == What::beyond) heard.push_back(e);
  ASSERT_EQ(heard.size(), 2u);
  EXPECT_EQ(heard[0].at, (dead / interval + 1) * interval + flight);
  EXPECT_EQ(heard[0].spine, 0u);
  EXPECT_EQ(heard[0].leaf, 0u);
  EXPECT_EQ(heard[0].rate.bits_per_s, 0u);
  EXPECT_EQ(heard[1].at, (alive / interval + 1) * interval + flight);
  EXPECT_EQ(heard[1].rate, rate);
  EXPECT_TRUE(std::is_sorted(plan.times.begin(), plan.times.end()));
  for (const auto& events : plan.leaves)
    for (const ReachabilityEvent& e : events)
      EXPECT_TRUE(std::binary_search(plan.times.begin(), plan.times.end(), e.at)) << "the kernel must stop there";
}

TEST(Reachability, AWholeSpineOfParallelLinksAdvertisesWhatIsLeft) {
  const CellConfig config;
  const Topology t = fabric(2, 1, 2);
  const std::vector<FaultConfig> faults{fault(105_us, t.link_index(0, 0, 1), FaultKind::down)};
  const ReachabilityPlan plan = plan_reachability(t, config, faults);
  ReachabilityTable table(t, 1);
  std::vector<std::uint64_t> rates(2);
  table.rates_to(0, rates);
  EXPECT_EQ(rates, (std::vector<std::uint64_t>(2, rate.bits_per_s)));
  for (const ReachabilityEvent& e : plan.leaves[1]) table.apply(e);
  table.rates_to(0, rates);
  EXPECT_EQ(rates, (std::vector<std::uint64_t>(2, rate.bits_per_s / 2))) << "two links share what one can carry beyond";
}

TEST(ReachabilityTable, LeavesOutWhatIsDeadAndWhatDoesNotReach) {
  const Topology t = fabric();
  ReachabilityTable table(t, 0);
  std::vector<std::uint64_t> rates(2);
  EXPECT_EQ(table.live_uplinks(), 2u);
  table.apply({0, What::lose_uplink, 1, 0, 0, {}});
  table.rates_to(1, rates);
  EXPECT_EQ(rates, (std::vector<std::uint64_t>{rate.bits_per_s, 0}));
  EXPECT_EQ(table.live_uplinks(), 1u);
  table.apply({0, What::beyond, 0, 0, 2, Rate{0}});
  table.rates_to(2, rates);
  EXPECT_EQ(rates, (std::vector<std::uint64_t>{0, 0})) << "no way at all";
  table.rates_to(1, rates);
  EXPECT_EQ(rates, (std::vector<std::uint64_t>{rate.bits_per_s, 0})) << "other leaves are not concerned";
  table.apply({0, What::regain_uplink, 1, 0, 0, {}});
  table.apply({0, What::uplink_rate, 1, 0, 0, Rate{100'000'000'000}});
  table.rates_to(2, rates);
  EXPECT_EQ(rates, (std::vector<std::uint64_t>{0, 100'000'000'000}));
}

}  // namespace
}  // namespace weft::cells
