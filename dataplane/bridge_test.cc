// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/bridge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "dataplane/addresses.h"
#include "dataplane/rng.h"
#include "dataplane/testing/frame_builder.h"

namespace weft {
namespace {

using testing::Bytes;
using testing::HeapFrame;
using testing::Packet;
using Kind = Verdict::Kind;

Topology fabric(std::uint32_t leaves = 2, std::uint32_t hosts = 4) {
  Topology t;
  t.leaves = leaves, t.spines = 1, t.hosts_per_leaf = hosts;
  t.host_links.assign(leaves * hosts, {Rate{400'000'000'000}, 50_ns});
  return t;
}

struct Leaf {
  explicit Leaf(const std::vector<KnownHost>& known = {}, const ForwardingConfig& config = {})
      : bridge(fabric(), config, known) {}
  Verdict send(std::uint64_t destination, std::uint64_t source, std::uint32_t port, TimePs now,
               std::uint16_t vlan = 0) {
    Packet p("any frame");
    p.eth(destination, source);
    if (vlan != 0) p.vlan(vlan);
    const HeapFrame frame(p.type(0x9999).payload(46).build(), port);
    return bridge.ingress(frame.get(), parse(frame.bytes()), now);
  }
  void leaves(std::uint64_t destination, std::uint64_t source, std::uint32_t in_port, TimePs now) {
    const HeapFrame frame(Packet("on its way out").eth(destination, source).type(0x9999).payload(46).build(), in_port);
    bridge.egress(frame.get(), now);
  }
  Bridge bridge;
};

// What an egress leaf learns does not depend on whether it is told by Frame::source that it need not look: another leaf
// gets the same frames without that word. Sources move between ports, share them, and age.
TEST(Bridge, LearnsTheSameAtEgressWithAndWithoutLooking) {
  Rng random = stream(3, 0, 0);
  ForwardingConfig config;
  config.ageing = 50_us;
  Leaf ingress({}, config), told({}, config), looking({}, config);
  TimePs now = 1_us;
  for (int step = 0; step < 20'000; ++step, now += random.below(4) * 1_us) {
    const std::uint64_t source = 0x5254'0000'1000 + random.below(6), destination = 0x5254'0000'1000 + random.below(6);
    const auto port = static_cast<std::uint32_t>(random.below(4));
    Packet p("any frame");
    p.eth(destination, source);
    if (random.below(4) == 0) p.vlan(static_cast<std::uint16_t>(random.below(2)));
    const HeapFrame frame(p.type(0x9999).payload(46).build(), port);
    ingress.bridge.ingress(frame.get(), parse(frame.bytes()), now);
    ASSERT_NE(frame.get()->source, 0u);
    told.bridge.egress(frame.get(), now);
    frame.get()->source = 0;
    looking.bridge.egress(frame.get(), now);
    for (std::uint64_t mac = 0x5254'0000'1000; mac < 0x5254'0000'1006; ++mac)
      for (std::uint16_t vlan = 0; vlan < 2; ++vlan)
        ASSERT_EQ(told.bridge.find(mac, vlan, now), looking.bridge.find(mac, vlan, now)) << "step " << step;
  }
}

constexpr std::uint64_t a = 0x5254'0000'0001, b = 0x5254'0000'0002;

TEST(Bridge, FloodsUntilItHasLearnt) {
  Leaf leaf;
  EXPECT_EQ(leaf.send(b, a, 0, 1_us).kind, Kind::flood);
  const Verdict back = leaf.send(a, b, 3, 2_us);
  EXPECT_EQ(back.kind, Kind::unicast);
  EXPECT_EQ(back.port, 0u);
  EXPECT_EQ(leaf.send(b, a, 0, 3_us).port, 3u);
}

TEST(Bridge, LearnsAtEgressFromWhereTheFrameEntered) {
  Leaf leaf;
  leaf.leaves(a, b, 6, 1_us);  // port 6 belongs to the other leaf
  EXPECT_EQ(leaf.send(b, a, 0, 2_us).port, 6u);
}

TEST(Bridge, VlansLearnApart) {
  Leaf leaf;
  leaf.send(b, a, 1, 1_us, 10);
  EXPECT_EQ(leaf.send(a, b, 2, 2_us, 10).kind, Kind::unicast);
  EXPECT_EQ(leaf.send(a, b, 2, 2_us, 11).kind, Kind::flood);
  EXPECT_EQ(leaf.send(a, b, 2, 2_us).kind, Kind::flood);
}

TEST(Bridge, ForgetsAfterSilenceOnly) {
  ForwardingConfig config;
  config.ageing = 10_ms;
  Leaf leaf({}, config);
  leaf.send(b, a, 1, 0);
  EXPECT_EQ(leaf.send(a, b, 2, 10_ms).kind, Kind::unicast);
  // Kept by frames every 8 ms, all of which take the same-source short way.
  for (TimePs t = 8_ms; t <= 80_ms; t += 8_ms) leaf.send(b, a, 1, t);
  EXPECT_EQ(leaf.send(a, b, 2, 89_ms).kind, Kind::unicast);
  EXPECT_EQ(leaf.send(a, b, 2, 91_ms).kind, Kind::flood) << "a tick of 1 us after 80 + 10 ms at the latest";
  EXPECT_EQ(leaf.send(a, b, 2, 100_s).kind, Kind::flood) << "a jump over idle time";
  leaf.send(b, a, 1, 100_s);
  EXPECT_EQ(leaf.send(a, b, 2, 100_s).kind, Kind::unicast);
}

TEST(Bridge, StationsMove) {
  Leaf leaf;
  leaf.send(b, a, 1, 1_us);
  leaf.send(b, a, 2, 2_us);
  EXPECT_EQ(leaf.send(a, b, 3, 3_us).port, 2u);
  EXPECT_EQ(leaf.bridge.learnt().moves(), 1u);
  leaf.send(b, a, 1, 4_us);  // and back, where the short way of port 1 still remembers the address
  EXPECT_EQ(leaf.send(a, b, 3, 5_us).port, 1u);
  EXPECT_EQ(leaf.bridge.learnt().moves(), 2u);
}

TEST(Bridge, KnownHostsStay) {
  for (const bool modelled : {true, false}) {
    const std::vector<KnownHost> known =
        modelled ? modelled_hosts(fabric())
                 : std::vector<KnownHost>{{to_mac(a), 1}, {to_mac(b), 6}, {to_mac(0x5254'0000'0003), 1}};
    const std::uint64_t first = modelled ? host_mac(1) : a, second = modelled ? host_mac(6) : b;
    Leaf leaf(known);
    EXPECT_EQ(leaf.send(second, first, 1, 0).port, 6u) << "known from the start";
    EXPECT_EQ(leaf.send(second, first, 1, 0, 77).port, 6u) << "in every VLAN";
    leaf.send(second, first, 3, 1_us);
    EXPECT_EQ(leaf.send(first, second, 6, 1000_s).port, 1u) << "never aged, never moved";
    EXPECT_EQ(leaf.bridge.learnt().used_slots(), 0u);
    EXPECT_EQ(leaf.send(0x5254'ffff'ffff, first, 1, 0).kind, Kind::flood);
    leaf.send(first, 0x5254'ffff'ffff, 2, 1_us);
    EXPECT_EQ(leaf.send(0x5254'ffff'ffff, first, 1, 2_us).port, 2u) << "others are learnt beside them";
  }
  ForwardingConfig learn_only;
  learn_only.learn_only = true;
  Leaf leaf(modelled_hosts(fabric()), learn_only);
  EXPECT_EQ(leaf.send(host_mac(6), host_mac(1), 1, 0).kind, Kind::flood);
}

TEST(Bridge, FiltersWhatNoBridgeForwards) {
  Leaf leaf;
  leaf.send(b, a, 1, 0);
  const Verdict same = leaf.send(a, b, 1, 0);
  EXPECT_EQ(same.kind, Kind::filter);
  EXPECT_EQ(same.filter, FilterReason::same_port);
  for (const std::uint64_t last : {0x0, 0xe, 0xf})
    EXPECT_EQ(leaf.send(0x0180'c200'0000 + last, a, 1, 0).filter, FilterReason::link_local);
  EXPECT_EQ(leaf.send(0x0180'c200'0010, a, 1, 0).kind, Kind::flood);
  EXPECT_EQ(leaf.send(0xffff'ffff'ffff, a, 1, 0).kind, Kind::flood);

  const HeapFrame pfc(
      Packet("PFC that nobody consumed").eth(0x0180'c200'0001, 0x5254'0000'0009).type(0x8808).payload(46).build(), 2);
  const Verdict v = leaf.bridge.ingress(pfc.get(), parse(pfc.bytes()), 0);
  EXPECT_EQ(v.kind, Kind::filter);
  EXPECT_EQ(v.filter, FilterReason::mac_control);
  EXPECT_EQ(leaf.send(0x5254'0000'0009, a, 1, 0).kind, Kind::flood) << "MAC control teaches nothing";
}

TEST(Bridge, GroupAndZeroSourcesAreNotLearnt) {
  Leaf leaf;
  for (const std::uint64_t source :
       {std::uint64_t{0}, std::uint64_t{0xffff'ffff'ffff}, std::uint64_t{0x0100'5e00'0001}}) {
    leaf.send(b, source, 1, 0);
    leaf.send(b, source, 1, 0);
  }
  EXPECT_EQ(leaf.bridge.learnt().used_slots(), 0u);
  EXPECT_EQ(leaf.send(0, a, 2, 0).kind, Kind::flood);
}

TEST(LearntHosts, FullMeansNoMoreLearningUntilSomethingAges) {
  LearntHosts table(1_s, 100);
  for (std::uint64_t mac = 1; mac <= 150; ++mac) table.learn(LearntHosts::key_of(0, mac), 7, 0);
  EXPECT_EQ(table.used_slots(), 100u);
  EXPECT_EQ(table.not_learnt(), 50u);
  EXPECT_EQ(table.find(LearntHosts::key_of(0, 100), 0), 7u);
  EXPECT_EQ(table.find(LearntHosts::key_of(0, 101), 0), no_port);
  table.learn(LearntHosts::key_of(0, 1), 7, 3_s);    // refreshed
  table.learn(LearntHosts::key_of(0, 101), 8, 3_s);  // now the other 99 may go
  EXPECT_EQ(table.find(LearntHosts::key_of(0, 101), 3_s), 8u);
  EXPECT_EQ(table.find(LearntHosts::key_of(0, 1), 3_s), 7u);
}

TEST(LearntHosts, AgreesWithAMap) {
  // A table near its limit, so that chains are long and sweeps frequent, against an ordered map that forgets by the
  // same rule.
  constexpr TimePs tick = 1u << 20, ageing = 1000 * tick;
  LearntHosts table(ageing, 64);
  std::map<std::uint64_t, std::pair<std::uint32_t, TimePs>> model;
  Rng random = stream(5, 0, 0);
  TimePs now = 0;
  std::uint64_t refused = 0;
  for (int step = 0; step < 200'000; ++step) {
    now += random.below(40) * tick;
    const std::uint64_t key = LearntHosts::key_of(static_cast<std::uint16_t>(random.below(3)), 1 + random.below(60));
    if (random.below(2) == 0) {
      const auto port = static_cast<std::uint32_t>(random.below(8));
      if (table.learn(key, port, now) == LearntHosts::no_slot) {
        ++refused;
        const auto it = model.find(key);
        ASSERT_TRUE(it == model.end() || it->second.second + ageing < now) << "a live address was refused";
      } else {
        model[key] = {port, now};
      }
    } else {
      const auto it = model.find(key);
      const bool live = it != model.end() && it->second.second + ageing >= now;
      ASSERT_EQ(table.find(key, now), live ? it->second.first : no_port) << step;
    }
    ASSERT_LE(table.used_slots(), 64u);
  }
  EXPECT_EQ(refused, table.not_learnt());
}

TEST(KnownHosts, RefusesContradictions) {
  const std::vector<KnownHost> twice{{to_mac(a), 1}, {to_mac(a), 2}}, group{{to_mac(0x0100'0000'0000), 1}};
  EXPECT_THAT([&] { KnownHosts{twice}; },
              ::testing::ThrowsMessage<std::invalid_argument>(::testing::HasSubstr("two ports")));
  EXPECT_THROW(KnownHosts{group}, std::invalid_argument);
}

}  // namespace
}  // namespace weft
