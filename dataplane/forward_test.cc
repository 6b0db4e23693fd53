// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/forward.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "dataplane/addresses.h"
#include "dataplane/checksum.h"
#include "dataplane/parse.h"
#include "dataplane/rng.h"
#include "dataplane/testing/frame_builder.h"

namespace weft {
namespace {

using testing::Bytes;
using ::testing::HasSubstr;
using testing::HeapFrame;
using testing::Packet;
using ::testing::ThrowsMessage;
using Kind = Verdict::Kind;

constexpr std::uint64_t router = 0x0277'6566'7400;

Topology fabric() {
  Topology t;
  t.leaves = 2, t.spines = 1, t.hosts_per_leaf = 4;
  t.host_links.assign(8, {Rate{400'000'000'000}, 50_ns});
  return t;
}

std::unique_ptr<Forwarder> forwarder(const ForwardingConfig& config) {
  return Forwarder::make(fabric(), config, ClassesConfig{}, modelled_hosts(fabric()));
}

ForwardingConfig in_mode(ForwardingMode mode) {
  ForwardingConfig config;
  config.mode = mode;
  return config;
}

TEST(Forward, FillsInClassAndOffsets) {
  const auto bridge = forwarder({});
  const HeapFrame frame(
      Packet("tagged RoCE, PCP 3").eth(host_mac(5), host_mac(1)).vlan(100, 3).ipv4(1, 2).udp(1, 4791).bth(1).build(),
      1);
  frame->traffic_class = 9, frame->ip_version = 9;
  const Verdict v = bridge->ingress(frame.get(), 0);
  EXPECT_EQ(v.kind, Kind::unicast);
  EXPECT_EQ(v.port, 5u);
  EXPECT_EQ(frame->traffic_class, 3);
  EXPECT_EQ(frame->l3_offset, 18);
  EXPECT_EQ(frame->ip_version, 4);
}

TEST(Forward, ShortFrames) {
  const auto bridge = forwarder({});
  Bytes bytes = Packet("a bare header").eth(host_mac(5), host_mac(1)).type(0x0800).build();
  EXPECT_EQ(bridge->ingress(HeapFrame(bytes, 1).get(), 0).kind, Kind::unicast) << "14 bytes pass";
  for (std::size_t length = 0; length < 14; ++length) {
    bytes.resize(length);
    const Verdict v = bridge->ingress(HeapFrame(bytes, 1).get(), 0);
    EXPECT_EQ(v.kind, Kind::drop);
    EXPECT_EQ(v.drop, DropReason::runt);
  }
}

TEST(Forward, MtuLeavesTagsOut) {  // CASES E27: a QinQ frame of exactly MTU + 8 passes
  ForwardingConfig config;
  config.mtu = 1514;
  const auto bridge = forwarder(config);
  const auto passes = [&](std::uint32_t tags, std::uint32_t length) {
    Packet p("a frame near the MTU");
    p.eth(host_mac(5), host_mac(1));
    for (std::uint32_t i = 0; i < tags; ++i) p.vlan(5);
    Bytes b = p.type(0x9999).build();
    b.resize(length);
    const Verdict v = bridge->ingress(HeapFrame(b, 1).get(), 0);
    EXPECT_TRUE(v.kind == Kind::unicast || v.drop == DropReason::mtu_exceeded);
    return v.kind == Kind::unicast;
  };
  EXPECT_TRUE(passes(0, 1514));
  EXPECT_FALSE(passes(0, 1515));
  EXPECT_TRUE(passes(1, 1518));
  EXPECT_FALSE(passes(1, 1519));
  EXPECT_TRUE(passes(2, 1522));
  EXPECT_FALSE(passes(2, 1523));
  EXPECT_FALSE(passes(3, 1523)) << "8 bytes of tags at most";
}

TEST(Forward, BridgeLeavesBrokenIpAlone) {
  const auto bridge = forwarder({});
  Bytes bytes =
      Packet("IPv4 that contradicts the frame").eth(host_mac(5), host_mac(1)).ipv4(1, 2, 26 << 2).udp(1, 2).build();
  bytes[14] = 0x4f;
  const HeapFrame frame(bytes, 1);
  EXPECT_EQ(bridge->ingress(frame.get(), 0).kind, Kind::unicast);
  EXPECT_EQ(frame->traffic_class, 0);
  EXPECT_EQ(frame->ip_version, 0);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), frame.bytes().begin()));
}

TEST(Forward, StaticMap) {
  ForwardingConfig config = in_mode(ForwardingMode::fixed);
  config.fixed = {{0, 4}, {4, 0}};
  const auto map = forwarder(config);
  const Bytes bytes =
      Packet("LLDP: a patch panel carries it").eth(0x0180'c200'000e, host_mac(1)).type(0x88cc).payload(46).build();
  EXPECT_EQ(map->ingress(HeapFrame(bytes, 0).get(), 0).port, 4u);
  EXPECT_EQ(map->ingress(HeapFrame(bytes, 4).get(), 0).port, 0u);
  EXPECT_EQ(map->ingress(HeapFrame(bytes, 1).get(), 0).filter, FilterReason::unmapped_port);
  config.fixed = {{0, 8}};
  EXPECT_THAT([&] { forwarder(config); }, ThrowsMessage<std::invalid_argument>(HasSubstr("host ports are 0 to 7")));
  config.fixed = {{0, 1}, {0, 2}};
  EXPECT_THAT([&] { forwarder(config); }, ThrowsMessage<std::invalid_argument>(HasSubstr("two ports")));
}

TEST(Route, RewritesAndKeepsTheIcrc) {
  const auto route = forwarder(in_mode(ForwardingMode::route));
  for (const bool six : {false, true}) {
    Packet p("RoCEv2 to the router");
    p.eth(router, host_mac(1)).vlan(7, 1);
    if (six)
      p.ipv6(2, 6, 26 << 2 | 2, 64);
    else
      p.ipv4(host_ipv4(1), host_ipv4(5), 26 << 2 | 2, 64);
    const Bytes before = p.udp(49152, 4791).bth(0x11).payload(256, 0x5a).build();
    ASSERT_TRUE(testing::icrc_is_right(before, 18));
    const HeapFrame frame(before, 1);
    const Verdict v = route->ingress(frame.get(), 0);
    ASSERT_EQ(v.kind, Kind::unicast);
    EXPECT_EQ(v.port, 5u);
    const auto after = frame.bytes();
    EXPECT_EQ(load_mac(after.data()), host_mac(5));
    EXPECT_EQ(load_mac(after.data() + 6), router);
    EXPECT_EQ(after[six ? 18 + 7 : 18 + 8], 63);
    if (!six) {
      EXPECT_EQ(ones_sum(after.data() + 18, 20), 0xffff);
    }
    EXPECT_TRUE(testing::icrc_is_right(after, 18));
    EXPECT_TRUE(std::equal(after.begin() + 18 + 12, after.end(), before.begin() + 18 + 12)) << "nothing else changed";
  }
}

TEST(Route, ChecksumStaysRightDownToTheLastHop) {
  const auto route = forwarder(in_mode(ForwardingMode::route));
  for (unsigned ttl = 2; ttl <= 255; ++ttl)
    for (std::uint16_t port = 0; port < 40; ++port) {
      Bytes bytes = Packet("every TTL, many checksums")
                        .eth(router, host_mac(1))
                        .ipv4(host_ipv4(1), host_ipv4(port % 8), 0, static_cast<std::uint8_t>(ttl))
                        .udp(port, 1)
                        .payload(port * 40u)
                        .build();
      const HeapFrame frame(bytes, 1);
      ASSERT_EQ(route->ingress(frame.get(), 0).kind, Kind::unicast);
      ASSERT_EQ(ones_sum(frame.bytes().data() + 14, 20), 0xffff) << ttl;
    }
}

TEST(Route, LongestPrefixAndNextHops) {
  ForwardingConfig config = in_mode(ForwardingMode::route);
  config.routes = {{"10.0.0.0/8", 2, ""},
                   {"10.1.0.0/16", 3, "0a:00:00:00:00:33"},
                   {"2001:db8:9::/48", 4, ""},
                   {"198.18.0.6/32", 7, ""}};
  const auto route = forwarder(config);
  const auto send = [&](std::uint32_t destination, std::uint64_t& mac) {
    const HeapFrame frame(
        Packet("to be routed").eth(router, host_mac(1)).ipv4(host_ipv4(1), destination).udp(1, 2).build(), 1);
    const Verdict v = route->ingress(frame.get(), 0);
    mac = load_mac(frame.bytes().data());
    return v;
  };
  std::uint64_t mac = 0;
  EXPECT_EQ(send(0x0a02'0001, mac).port, 2u);
  EXPECT_EQ(mac, host_mac(2));
  EXPECT_EQ(send(0x0a01'0001, mac).port, 3u);
  EXPECT_EQ(mac, 0x0a00'0000'0033u);
  EXPECT_EQ(send(host_ipv4(5), mac).port, 7u) << "the config routes this host's address elsewhere";
  EXPECT_EQ(send(0x0b00'0001, mac).drop, DropReason::no_route);
  EXPECT_EQ(send(0xe000'0001, mac).drop, DropReason::no_route) << "multicast";
  EXPECT_EQ(send(host_ipv4(1), mac).port, 1u) << "back to where it came from";
}

TEST(Route, WhatItDrops) {
  const auto route = forwarder(in_mode(ForwardingMode::route));
  const auto good = [](std::uint8_t ttl = 64) {
    return Packet("an IPv4 frame")
        .eth(router, host_mac(1))
        .ipv4(host_ipv4(1), host_ipv4(5), 0, ttl)
        .udp(1, 2)
        .payload(8)
        .build();
  };
  const auto reason = [&](const Bytes& bytes) {
    const HeapFrame frame(bytes, 1);
    const Verdict v = route->ingress(frame.get(), 0);
    EXPECT_EQ(v.kind, Kind::drop);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), frame.bytes().begin())) << "a drop leaves the frame as it came";
    return v.drop;
  };
  EXPECT_EQ(reason(good(1)), DropReason::ttl_expired);
  EXPECT_EQ(reason(good(0)), DropReason::ttl_expired);
  EXPECT_EQ(reason(Packet("hop limit 1").eth(router, host_mac(1)).ipv6(2, 6, 0, 1).udp(1, 2).build()),
            DropReason::ttl_expired);
  Bytes b = good();
  b[25] ^= 1;
  EXPECT_EQ(reason(b), DropReason::malformed) << "checksum";
  b = good();
  b[14] = 0x65;
  EXPECT_EQ(reason(b), DropReason::malformed) << "version";
  b = good();
  b[14] = 0x44;
  EXPECT_EQ(reason(b), DropReason::malformed) << "header length";
  b = good();
  b[17] += 1;
  EXPECT_EQ(reason(b), DropReason::malformed) << "total length beyond the frame";
  b = good();
  b[5] ^= 1;
  EXPECT_EQ(reason(b), DropReason::not_routable) << "not the router's address";
  EXPECT_EQ(reason(Packet("not IP").eth(router, host_mac(1)).type(0x8915).payload(46).build()),
            DropReason::not_routable);
  EXPECT_EQ(reason(Packet("broadcast, not ARP").eth(0xffff'ffff'ffff, host_mac(1)).ipv4(1, 2).udp(67, 68).build()),
            DropReason::not_routable);

  ForwardingConfig learn = in_mode(ForwardingMode::route);
  learn.learn_only = true;
  learn.routes = {{"198.18.0.0/15", 5, ""}};
  const auto unknowing = forwarder(learn);
  const HeapFrame frame(good(), 1);
  EXPECT_EQ(unknowing->ingress(frame.get(), 0).drop, DropReason::no_route) << "no next hop is known";
}

TEST(Route, HostsStillFindEachOther) {
  const auto route = forwarder(in_mode(ForwardingMode::route));
  const auto send = [&](const Packet& p, std::uint32_t port) {
    return route->ingress(HeapFrame(p.build(), port).get(), 0);
  };
  EXPECT_EQ(send(Packet("ARP request").eth(0xffff'ffff'ffff, host_mac(1)).type(0x0806).payload(28), 1).kind,
            Kind::flood);
  EXPECT_EQ(send(Packet("ARP reply").eth(host_mac(1), host_mac(5)).type(0x0806).payload(28), 5).port, 1u);
  EXPECT_EQ(send(Packet("neighbour solicitation")
                     .eth(0x3333'ff00'0002, host_mac(1))
                     .ipv6(1, 2, 0, 255, 58)
                     .raw({135, 0, 0, 0})
                     .payload(20),
                 1)
                .kind,
            Kind::flood);
  EXPECT_EQ(
      send(Packet("ARP to the router, which doesn't answer").eth(router, host_mac(1)).type(0x0806).payload(28), 1).drop,
      DropReason::not_routable);
  EXPECT_EQ(send(Packet("LLDP").eth(0x0180'c200'000e, host_mac(1)).type(0x88cc).payload(46), 1).filter,
            FilterReason::link_local);
  EXPECT_EQ(send(Packet("PFC").eth(0x0180'c200'0001, host_mac(1)).type(0x8808).payload(46), 1).filter,
            FilterReason::mac_control);
}

TEST(Route, ConfigErrorsSayWhat) {
  ForwardingConfig config = in_mode(ForwardingMode::route);
  const auto with = [&](std::vector<RouteEntry> routes, std::string mac = "02:77:65:66:74:00") {
    config.routes = std::move(routes);
    config.router_mac = std::move(mac);
    return [&] { forwarder(config); };
  };
  EXPECT_THAT(with({{"10.0.0.0/33", 0, ""}}),
              ThrowsMessage<std::invalid_argument>(HasSubstr("'10.0.0.0/33' is not a prefix")));
  EXPECT_THAT(with({{"10.0.0.0/8", 8, ""}}), ThrowsMessage<std::invalid_argument>(HasSubstr("no host port 8")));
  EXPECT_THAT(with({{"10.0.0.0/8", 0, "zz"}}), ThrowsMessage<std::invalid_argument>(HasSubstr("not a MAC address")));
  EXPECT_THAT(with({{"10.0.0.0/8", 0, ""}, {"10.0.0.0/8", 1, ""}}),
              ThrowsMessage<std::invalid_argument>(HasSubstr("given twice")));
  EXPECT_THAT(with({}, "01:00:00:00:00:00"), ThrowsMessage<std::invalid_argument>(HasSubstr("router_mac")));
}

/// Every way of forwarding takes `bytes` without reading past them, and says something that is allowed.
void survives(Forwarder& way, ForwardingMode mode, const Bytes& bytes, std::uint32_t port, TimePs now) {
  const HeapFrame frame(bytes, port);
  const Verdict v = way.ingress(frame.get(), now);
  ASSERT_LT(frame->traffic_class, traffic_classes);
  if (frame->ip_version != 0) {
    ASSERT_LE(frame->l3_offset + (frame->ip_version == 4 ? 20u : 40u), bytes.size());
  }
  if (v.kind == Kind::unicast) {
    ASSERT_LT(v.port, 8u);
  }
  if (mode != ForwardingMode::route || v.kind != Kind::unicast) {
    ASSERT_TRUE(std::equal(bytes.begin(), bytes.end(), frame.bytes().begin())) << "only routing changes a frame";
  }
  if (v.kind == Kind::unicast || v.kind == Kind::flood) way.egress(frame.get(), now);
}

TEST(ForwardFuzz, RandomAndMutatedFrames) {
  std::vector<Bytes> seeds{Packet("RoCE")
                               .eth(router, host_mac(1))
                               .ipv4(host_ipv4(1), host_ipv4(5), 2)
                               .udp(1, 4791)
                               .bth(1)
                               .payload(32)
                               .build(),
                           Packet("QinQ")
                               .eth(host_mac(5), host_mac(1))
                               .vlan(1, 2, 0x88a8)
                               .vlan(2)
                               .ipv4(1, 2, 0, 64, 17, Bytes(40))
                               .udp(1, 4791)
                               .bth(1)
                               .build(),
                           Packet("v6 chain")
                               .eth(router, host_mac(1))
                               .ipv6(2, 6, 0, 64, 0)
                               .raw({44, 0, 1, 4, 0, 0, 0, 0})
                               .raw({51, 0, 0, 0, 0, 0, 0, 1})
                               .raw({17, 1})
                               .payload(10)
                               .udp(1, 4791)
                               .bth(1)
                               .build(),
                           Packet("SNAP").eth(host_mac(5), host_mac(1)).snap(0x86dd).ipv6(1, 2).udp(1, 2).build(),
                           Packet("ARP").eth(0xffff'ffff'ffff, host_mac(1)).type(0x0806).payload(28).build(),
                           Packet("PFC").eth(0x0180'c200'0001, host_mac(1)).type(0x8808).payload(46).build()};
  for (const ForwardingMode mode : {ForwardingMode::bridge, ForwardingMode::route, ForwardingMode::fixed}) {
    ForwardingConfig config = in_mode(mode);
    config.fixed = {{0, 4}, {1, 5}};
    const auto way = forwarder(config);
    Rng random = stream(1, static_cast<std::uint64_t>(mode), 0);
    for (int i = 0; i < 60'000; ++i) {
      Bytes bytes;
      if (random.below(4) == 0) {
        bytes.resize(random.below(120));
        for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random.next());
      } else {
        bytes = seeds[random.below(seeds.size())];
        for (std::uint64_t n = random.below(6); n > 0; --n)
          bytes[random.below(bytes.size())] =
              static_cast<std::uint8_t>(random.below(2) == 0 ? random.next() : random.below(2) * 255);
        if (random.below(3) == 0) bytes.resize(random.below(bytes.size() + 8));
      }
      survives(*way, mode, bytes, static_cast<std::uint32_t>(random.below(8)), static_cast<TimePs>(i) * 1_us);
      if (HasFatalFailure()) FAIL() << "frame " << i;
    }
  }
}

TEST(ForwardFuzz, PublicCaptures) {
  const std::string folder = testing::public_captures();
  if (folder.empty()) GTEST_SKIP() << "no public captures here";
  std::uint64_t frames = 0;
  for (const ForwardingMode mode : {ForwardingMode::bridge, ForwardingMode::route}) {
    const auto way = forwarder(in_mode(mode));
    for (const auto& file : std::filesystem::directory_iterator(folder))
      for (const Bytes& bytes : testing::read_capture(file.path())) {
        survives(*way, mode, bytes, static_cast<std::uint32_t>(frames % 8), frames * 1_us);
        ++frames;
        if (HasFatalFailure()) FAIL() << file.path();
      }
  }
  EXPECT_GT(frames, 1000u);
}

}  // namespace
}  // namespace weft
