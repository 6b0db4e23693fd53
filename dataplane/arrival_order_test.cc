// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/arrival_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "dataplane/rng.h"

namespace weft {
namespace {

struct Arrival {
  TimePs at;
};

/// Adds `arrivals` as they stand, and compares with a stable sort by time.
void expect_stable_order(ArrivalOrder& order, TimePs from, TimePs until, std::vector<Arrival>& arrivals) {
  order.begin(from, until);
  std::vector<Arrival*> reference;
  for (Arrival& arrival : arrivals) {
    order.add(arrival.at, &arrival);
    reference.push_back(&arrival);
  }
  order.sort();
  std::stable_sort(reference.begin(), reference.end(),
                   [](const Arrival* a, const Arrival* b) { return a->at < b->at; });
  ASSERT_EQ(order.size(), arrivals.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    ASSERT_EQ(order.time(i), reference[i]->at) << "place " << i;
    ASSERT_EQ(order.item(i), reference[i]) << "place " << i;
  }
}

/// What in-links deliver: each in its own order, one link after the other.
std::vector<Arrival> links(Rng& random, std::uint32_t count, std::uint32_t per_link, TimePs from, TimePs until) {
  std::vector<Arrival> arrivals;
  for (std::uint32_t link = 0; link < count; ++link) {
    std::vector<Arrival> own(per_link);
    for (Arrival& arrival : own) arrival.at = from + random.below(until - from);
    std::sort(own.begin(), own.end(), [](const Arrival& a, const Arrival& b) { return a.at < b.at; });
    arrivals.insert(arrivals.end(), own.begin(), own.end());
  }
  return arrivals;
}

TEST(ArrivalOrder, EmptyAndSingleWindows) {
  ArrivalOrder order;
  std::vector<Arrival> none, one{{1'234}};
  expect_stable_order(order, 1'000, 2'000, none);
  expect_stable_order(order, 1'000, 2'000, one);
  expect_stable_order(order, 1'000, 2'000, none);
}

TEST(ArrivalOrder, AgreesWithAStableSort) {
  ArrivalOrder order;
  Rng random = stream(1, 0, 0);
  for (int window = 0; window < 300; ++window) {
    const TimePs from = random.below(1_s), until = from + 1 + random.below(2_us);
    std::vector<Arrival> arrivals = links(random, static_cast<std::uint32_t>(1 + random.below(20)),
                                          static_cast<std::uint32_t>(random.below(40)), from, until);
    expect_stable_order(order, from, until, arrivals);
  }
}

TEST(ArrivalOrder, TiesKeepTheOrderOfLinkAndSequence) {
  ArrivalOrder order;
  Rng random = stream(2, 0, 0);
  for (const TimePs length : {1_ps, 2_ps, 5_ps, 600_ps}) {  // far fewer instants than items
    std::vector<Arrival> arrivals = links(random, 16, 50, 777_us, 777_us + length);
    expect_stable_order(order, 777_us, 777_us + length, arrivals);
  }
}

TEST(ArrivalOrder, TheEdgesOfAWindowBelongToIt) {
  ArrivalOrder order;
  for (const TimePs length : {1_ps, 511_ps, 512_ps, 513_ps, 250_ns, 1_us, 1_ms}) {
    std::vector<Arrival> arrivals{{10 + length - 1}, {10}, {10 + length / 2}, {10 + length - 1}, {10}};
    expect_stable_order(order, 10, 10 + length, arrivals);
  }
}

TEST(ArrivalOrder, LongWindowsKeepEveryPicosecond) {
  ArrivalOrder order;
  Rng random = stream(3, 0, 0);
  const TimePs from = 200ull * 86'400 * 1_s, length = 10_s;  // a key has 44 bits for the time inside a window: 17 s
  std::vector<Arrival> arrivals = links(random, 8, 60, from, from + length);
  for (int i = 0; i < 50; ++i) arrivals.push_back({from + length / 2 + random.below(3)});  // neighbours in one bucket
  expect_stable_order(order, from, from + length, arrivals);
}

TEST(ArrivalOrder, GrowsWithTheWindow) {
  ArrivalOrder order;
  Rng random = stream(4, 0, 0);
  for (const std::uint32_t items : {1'000u, 1'024u, 1'025u, 5'000u, 100'000u, 10u}) {
    std::vector<Arrival> arrivals = links(random, 10, items / 10, 5_us, 6_us);
    expect_stable_order(order, 5_us, 6_us, arrivals);
  }
}

TEST(ArrivalOrder, AWindowWhoseItemsAllFallIntoOneBucket) {
  ArrivalOrder order;
  Rng random = stream(5, 0, 0);
  std::vector<Arrival> arrivals;
  for (int i = 0; i < 2'000; ++i) arrivals.push_back({900_ns + random.below(2)});
  expect_stable_order(order, 0, 1_us, arrivals);
}

}  // namespace
}  // namespace weft
