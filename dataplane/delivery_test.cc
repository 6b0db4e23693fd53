// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/delivery.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

Topology two_leaves(std::uint32_t hosts_per_leaf) {
  Topology topology;
  topology.leaves = 2;
  topology.spines = 1;
  topology.hosts_per_leaf = hosts_per_leaf;
  return topology;
}

Frame frame(std::uint32_t from, std::uint32_t to, std::uint64_t ordinal, TimePs born, std::uint8_t traffic_class = 3) {
  Frame f{};
  f.in_port = from;
  f.out_port = to;
  f.id = (std::uint64_t{from} << 40) | ordinal;
  f.born = born;
  f.length = 1000;
  f.traffic_class = traffic_class;
  return f;
}

struct Collected {
  RunResult result;
  Histogram all;
  explicit Collected(const DeliveryRecord& record) { record.add_to(result, all); }
};

TEST(DeliveryRecord, CountsByFlow) {
  DeliveryRecord record(two_leaves(4), 1, 0);  // ports 4 to 7
  const Frame a = frame(0, 4, 0, 100), b = frame(0, 4, 1, 200), c = frame(1, 4, 0, 100), d = frame(5, 7, 0, 50);
  record.delivered(&a, 1'100);
  record.delivered(&c, 1'300);
  record.delivered(&b, 1'500);
  record.delivered(&d, 2'050);
  const Collected got(record);
  ASSERT_EQ(got.result.flows.size(), 3u);
  const FlowResult& first = got.result.flows[0];
  EXPECT_EQ(first.source, 0u);
  EXPECT_EQ(first.destination, 4u);
  EXPECT_EQ(first.frames, 2u);
  EXPECT_EQ(first.bytes, 2'000u);
  EXPECT_EQ(first.out_of_order, 0u);
  EXPECT_EQ(first.latency.count, 2u);
  EXPECT_EQ(first.latency.min, 1'000u);
  EXPECT_EQ(first.latency.max, 1'300u);
  EXPECT_EQ(first.first_sent, 100u);
  EXPECT_EQ(first.last_delivered, 1'500u);
  EXPECT_EQ(got.result.last_delivered, 2'050u);
  EXPECT_EQ(got.result.flows[1].source, 1u);
  EXPECT_EQ(got.result.flows[2].destination, 7u);
  EXPECT_EQ(got.all.count(), 4u);
  EXPECT_EQ(got.all.min(), 1'000u);
  EXPECT_EQ(got.all.max(), 2'000u);
}

TEST(DeliveryRecord, AFrameThatALaterOneOvertookIsOutOfOrder) {
  DeliveryRecord record(two_leaves(1), 1, 0);
  for (const std::uint64_t ordinal : {0u, 1u, 4u, 2u, 3u, 5u}) {
    const Frame f = frame(0, 1, ordinal, 0);
    record.delivered(&f, 1'000);
  }
  EXPECT_EQ(Collected(record).result.flows[0].out_of_order, 2u);  // 2 and 3, which 4 had overtaken
}

TEST(DeliveryRecord, ClassesMayOvertakeEachOther) {
  DeliveryRecord record(two_leaves(1), 1, 0);
  const Frame slow = frame(0, 1, 0, 0, 0), fast = frame(0, 1, 1, 0, 6), next = frame(0, 1, 2, 0, 0);
  record.delivered(&fast, 1'000);
  record.delivered(&slow, 1'000);
  record.delivered(&next, 1'000);
  EXPECT_EQ(Collected(record).result.flows[0].out_of_order, 0u);
}

TEST(DeliveryRecord, LatencyLeavesOutTheWarmup) {
  DeliveryRecord record(two_leaves(1), 1, 1_us);
  const Frame before = frame(0, 1, 0, 1_us - 1), at = frame(0, 1, 1, 1_us);
  record.delivered(&before, 5_us);
  record.delivered(&at, 1_us + 700);
  const Collected got(record);
  EXPECT_EQ(got.result.flows[0].frames, 2u) << "counts are of the whole run";
  EXPECT_EQ(got.result.flows[0].latency.count, 1u);
  EXPECT_EQ(got.all.max(), 700u);
}

TEST(DeliveryRecord, ManyFlowsShareAHistogramAndLoseNothing) {
  constexpr std::uint32_t ports = 20;
  DeliveryRecord record(two_leaves(ports), 1, 0);
  for (std::uint32_t from = 0; from < 2 * ports; ++from)
    for (std::uint32_t to = ports; to < 2 * ports; ++to) {
      const Frame f = frame(from, to, 0, 0);
      record.delivered(&f, 1'000 + from);
    }
  const Collected got(record);
  ASSERT_EQ(got.result.flows.size(), 2 * ports * ports);
  std::uint64_t with_latency = 0;
  for (const FlowResult& flow : got.result.flows) with_latency += flow.latency.count;
  EXPECT_EQ(with_latency, 256u) << "so many flows of a leaf have percentiles of their own";
  EXPECT_EQ(got.all.count(), 2 * ports * ports) << "all of them are in the fabric's";
  EXPECT_EQ(got.all.max(), 1'000u + 2 * ports - 1);
}

}  // namespace
}  // namespace weft
