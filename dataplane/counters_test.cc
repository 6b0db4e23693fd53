// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/counters.h"

#include <gtest/gtest.h>

#include "dataplane/topology.h"

namespace weft {
namespace {

TEST(Counters, NamesComeFromTheTable) {
  EXPECT_EQ(name_of(DropReason::runt), "runt");
  EXPECT_EQ(name_of(DropReason::watchdog), "watchdog");
  EXPECT_EQ(name_of(FilterReason::unmapped_port), "unmapped_port");
  EXPECT_EQ(drop_reason_help.size(), drop_reason_names.size());
}

TEST(Counters, BooksAddUp) {
  FrameBooks a, b;
  a.offered = 10, a.offered_bytes = 1000, a.replicated = 2, a.delivered = 7, a.delivered_bytes = 700,
  a.no_frame_memory = 1;
  a.drop(DropReason::runt), a.drop(DropReason::runt), a.filter(FilterReason::same_port);
  b.offered = 5, b.drop(DropReason::watchdog);
  b += a;
  EXPECT_EQ(b.offered, 15u);
  EXPECT_EQ(b.offered_bytes, 1000u);
  EXPECT_EQ(b.replicated, 2u);
  EXPECT_EQ(b.delivered, 7u);
  EXPECT_EQ(b.delivered_bytes, 700u);
  EXPECT_EQ(b.no_frame_memory, 1u);
  EXPECT_EQ(b.dropped_total(), 3u);
  EXPECT_EQ(b.filtered_total(), 1u);
}

TEST(Topology, Names) {
  Topology t;
  t.leaves = 3, t.spines = 2, t.hosts_per_leaf = 4;
  EXPECT_EQ(port_name(t, 9), "leaf2:p1");
  EXPECT_EQ(link_name(t, t.link_index(2, 1, 0)), "leaf2-spine1");
  t.parallel_links = 3;
  EXPECT_EQ(link_name(t, t.link_index(1, 0, 2)), "leaf1-spine0.2");
}

}  // namespace
}  // namespace weft
