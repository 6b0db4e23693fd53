// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/ecn.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "dataplane/checksum.h"
#include "dataplane/rng.h"
#include "dataplane/testing/frame_builder.h"

namespace weft {
namespace {

using testing::Bytes;
using testing::HeapFrame;
using testing::Packet;

EcnMarker marker(std::uint64_t kmin, std::uint64_t kmax, double pmax) {
  EcnConfig config;
  config.kmin_bytes = kmin, config.kmax_bytes = kmax, config.pmax = pmax;
  return EcnMarker(config);
}

TEST(Ecn, ProbabilityFollowsTheProfile) {  // CASES D23
  const EcnMarker m = marker(400'000, 1'600'000, 0.2);
  Rng random = stream(3, 0, 0);
  constexpr int frames = 100'000;
  for (const auto& [depth, p] : {std::pair{0u, 0.0},
                                 {400'000u, 0.0},
                                 {700'000u, 0.05},
                                 {1'000'000u, 0.1},
                                 {1'600'000u, 0.2},
                                 {1'600'001u, 1.0}}) {
    int marked = 0;
    for (int i = 0; i < frames; ++i) marked += m.choose(depth, random.next32());
    // Five standard deviations of a binomial: one false alarm in two million, none in practice since the seed is fixed.
    const double sigma = std::sqrt(frames * p * (1 - p));
    EXPECT_NEAR(marked, frames * p, 5 * sigma) << depth;
  }
}

TEST(Ecn, Edges) {
  const EcnMarker certain = marker(50'000, 51'000, 1.0);
  EXPECT_FALSE(certain.choose(50'000, 0));
  EXPECT_TRUE(certain.choose(51'000, 0xffff'ffff)) << "Pmax = 1 at Kmax";
  EXPECT_TRUE(certain.choose(51'001, 0xffff'ffff));
  const EcnMarker step = marker(1000, 1000, 0.5);
  EXPECT_FALSE(step.choose(1000, 0));
  EXPECT_TRUE(step.choose(1001, 0xffff'ffff));
  EXPECT_FALSE(EcnMarker().choose(~0ull, 0)) << "off";
  EXPECT_FALSE(marker(0, 0, 0).enabled());
  EXPECT_TRUE(marker(1ull << 40, 1ull << 50, 1).choose(1ull << 50, 0xffff'ffff));
  EXPECT_THROW(marker(2, 1, 0.5), std::invalid_argument);
  EXPECT_THROW(marker(1, 2, 0), std::invalid_argument);
  EXPECT_THROW(marker(1, 2, 1.5), std::invalid_argument);
}

TEST(Ecn, MarksWhatCanBeMarkedAndNothingElse) {
  for (const bool six : {false, true})
    for (std::uint8_t ecn = 0; ecn < 4; ++ecn)
      for (std::uint16_t port = 1000; port < 1200; ++port) {
        Packet p("every code point, many checksums");
        p.eth(2, 4).vlan(5);
        const auto tos = static_cast<std::uint8_t>(26 << 2 | ecn);
        if (six)
          p.ipv6(port, 2, tos);
        else
          p.ipv4(port, 2, tos);
        const Bytes before = p.udp(port, 4791).bth(port).payload(20).build();
        const HeapFrame frame(before);
        frame->l3_offset = 18;
        frame->ip_version = six ? 6 : 4;
        const EcnOutcome outcome = set_congestion_experienced(frame.get());
        ASSERT_EQ(outcome, ecn == 0 ? EcnOutcome::not_ect : ecn == 3 ? EcnOutcome::already_ce : EcnOutcome::marked);
        const auto after = frame.bytes();
        const std::uint8_t now = six ? after[19] >> 4 & 3 : after[19] & 3;
        ASSERT_EQ(now, ecn == 0 ? 0 : 3);
        ASSERT_EQ(six ? (after[18] & 15) << 2 | after[19] >> 6 : after[19] >> 2, 26) << "DSCP stays";
        ASSERT_EQ((frame->flags & frame_marked) != 0, outcome == EcnOutcome::marked);
        ASSERT_TRUE(testing::icrc_is_right(after, 18));
        if (!six) {
          ASSERT_EQ(ones_sum(after.data() + 18, 20), 0xffff);
        }
      }
}

TEST(Ecn, NotIp) {
  const HeapFrame frame(Packet("ARP").eth(2, 4).type(0x0806).payload(28).build());
  EXPECT_EQ(set_congestion_experienced(frame.get()), EcnOutcome::not_ect);
}

TEST(Ecn, PublicCodePoints) {
  const std::string folder = testing::public_captures();
  if (folder.empty()) GTEST_SKIP() << "no public captures here";
  for (const Bytes& b : testing::read_capture(folder + "/synth__roce_ecn_codepoints.pcap")) {
    const HeapFrame frame(b);
    frame->l3_offset = 14, frame->ip_version = 4;
    set_congestion_experienced(frame.get());
    EXPECT_EQ(frame.bytes()[15] & 3, (b[15] & 3) == 0 ? 0 : 3);
    EXPECT_TRUE(testing::icrc_is_right(frame.bytes(), 14));
  }
}

}  // namespace
}  // namespace weft
