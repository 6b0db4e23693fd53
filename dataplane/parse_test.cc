// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/parse.h"

#include <gtest/gtest.h>

#include "dataplane/testing/frame_builder.h"

namespace weft {
namespace {

using testing::Bytes;
using testing::Packet;

constexpr std::uint64_t host_a = 0x0200'0000'000a, host_b = 0x0200'0000'000b;
constexpr std::uint32_t ip_a = 0x0a00'0001, ip_b = 0x0a00'0002;

Packet roce(const char* shows) {
  return Packet(shows).eth(host_b, host_a).ipv4(ip_a, ip_b, 26 << 2 | 2).udp(49152, 4791).bth(0x11).payload(64);
}

TEST(Parse, PlainRoce) {
  const ParsedHeaders h = parse(roce("untagged RoCEv2, the inline path").build());
  EXPECT_EQ(h.ether_type, ether_type::ipv4);
  EXPECT_EQ(h.ip_version, 4);
  EXPECT_EQ(h.l3_offset, 14);
  EXPECT_EQ(h.l4_offset, 34);
  EXPECT_EQ(h.dscp, 26);
  EXPECT_EQ(h.ecn, 2);
  EXPECT_TRUE(h.has_ports && h.rocev2 && h.has_qp);
  EXPECT_EQ(h.source_port, 49152);
  EXPECT_EQ(h.destination_port, 4791);
  EXPECT_EQ(h.destination_qp, 0x11u);
}

TEST(Parse, InlinePathAgreesWithTheGeneralOne) {
  for (const Bytes& b :
       {roce("RoCE").build(), Packet("TCP").eth(host_b, host_a).ipv4(ip_a, ip_b, 0, 64, 6).tcp(5, 6).build(),
        Packet("ICMP").eth(host_b, host_a).ipv4(ip_a, ip_b, 0, 64, 1).payload(40).build()}) {
    const auto length = static_cast<std::uint32_t>(b.size());
    const ParsedHeaders fast = parse(b), general = parse_any(b.data(), length, length);
    EXPECT_EQ(fast.l4_offset, general.l4_offset);
    EXPECT_EQ(fast.has_ports, general.has_ports);
    EXPECT_EQ(fast.source_port, general.source_port);
    EXPECT_EQ(fast.destination_qp, general.destination_qp);
    EXPECT_EQ(fast.protocol, general.protocol);
  }
}

TEST(Parse, TagStacks) {
  const ParsedHeaders one =
      parse(Packet("802.1Q").eth(host_b, host_a).vlan(100, 3).ipv4(ip_a, ip_b).udp(1, 4791).bth(7).build());
  EXPECT_EQ(one.tags, 1);
  EXPECT_EQ(one.vlan, 100);
  EXPECT_EQ(one.pcp, 3);
  EXPECT_EQ(one.l3_offset, 18);
  EXPECT_EQ(one.destination_qp, 7u);

  const ParsedHeaders two = parse(Packet("QinQ: the outer tag is the one that counts")
                                      .eth(host_b, host_a)
                                      .vlan(200, 5, 0x88a8)
                                      .vlan(100, 3)
                                      .ipv4(ip_a, ip_b)
                                      .udp(1, 2)
                                      .build());
  EXPECT_EQ(two.tags, 2);
  EXPECT_EQ(two.vlan, 200);
  EXPECT_EQ(two.pcp, 5);
  EXPECT_EQ(two.l3_offset, 22);

  Packet deep("eight tags are read");
  deep.eth(host_b, host_a);
  for (int i = 0; i < 8; ++i) deep.vlan(1);
  Packet too_deep = deep;
  EXPECT_EQ(parse(deep.ipv4(ip_a, ip_b).udp(1, 2).build()).ip_version, 4);
  const ParsedHeaders nine = parse(too_deep.vlan(1).ipv4(ip_a, ip_b).udp(1, 2).build());
  EXPECT_EQ(nine.tags, 8) << "a ninth is not";
  EXPECT_EQ(nine.ip_version, 0);
  EXPECT_FALSE(nine.ip_broken);
}

TEST(Parse, SnapAndLengthFrames) {
  const ParsedHeaders snap =
      parse(Packet("IPv4 in LLC/SNAP").eth(host_b, host_a).snap(0x0800).ipv4(ip_a, ip_b).udp(1, 2).build());
  EXPECT_EQ(snap.ether_type, ether_type::ipv4);
  EXPECT_EQ(snap.l3_offset, 22);
  const ParsedHeaders stp =
      parse(Packet("802.3 with LLC alone").eth(host_b, host_a).type(38).raw({0x42, 0x42, 3}).payload(43).build());
  EXPECT_EQ(stp.ether_type, 0);
  EXPECT_FALSE(stp.ip_broken);
}

TEST(Parse, Ipv4OptionsAndFragments) {
  const ParsedHeaders options = parse(Packet("options move the ports")
                                          .eth(host_b, host_a)
                                          .ipv4(ip_a, ip_b, 0, 64, 17, {1, 1, 1, 0})
                                          .udp(7, 4791)
                                          .bth(3)
                                          .build());
  EXPECT_EQ(options.l4_offset, 38);
  EXPECT_EQ(options.destination_qp, 3u);
  for (const std::uint16_t field : std::initializer_list<std::uint16_t>{0x2000, 0x0010, 0x2010}) {
    Bytes b = roce("a fragment, first, last or between").build();
    store_be16(&b[20], field);
    const ParsedHeaders h = parse(b);
    EXPECT_TRUE(h.fragment);
    EXPECT_FALSE(h.has_ports) << "or the fragments of a datagram would hash apart";
    EXPECT_EQ(h.ip_version, 4);
  }
}

TEST(Parse, Ipv4ThatContradictsTheFrame) {
  const auto broken = [](const char* shows, std::size_t at, std::uint8_t value) {
    Bytes b = roce(shows).build();
    b[at] = value;
    const ParsedHeaders h = parse(b);
    EXPECT_TRUE(h.ip_broken) << shows;
    EXPECT_EQ(h.ip_version, 0) << shows;
    EXPECT_EQ(h.l3_offset, 0) << shows;
    EXPECT_FALSE(h.has_ports) << shows;
  };
  broken("version 5", 14, 0x55);
  broken("header length 16", 14, 0x44);
  broken("total length beyond the frame", 16, 0x40);
  Bytes beyond = roce("header beyond total length").build();
  beyond[14] = 0x4f;
  store_be16(&beyond[16], 40);
  EXPECT_TRUE(parse(beyond).ip_broken);
  Bytes b = roce("total length 0, as segmentation offload leaves it").build();
  store_be16(&b[16], 0);
  EXPECT_TRUE(parse(b).ip_broken);
  b = roce("total length one too long").build();
  store_be16(&b[16], static_cast<std::uint16_t>(b.size() - 14 + 1));
  EXPECT_TRUE(parse(b).ip_broken);
  b.push_back(0);
  EXPECT_FALSE(parse(b).ip_broken) << "with that byte there, it is whole";
}

TEST(Parse, TheFirstSegmentIsAllThatIsRead) {
  const Bytes b = roce("a clone: headers in the first segment, length of the whole").build();
  const ParsedHeaders h = parse(b.data(), 54, static_cast<std::uint32_t>(b.size()));
  EXPECT_TRUE(h.has_qp);
  const ParsedHeaders shorter = parse(b.data(), 50, static_cast<std::uint32_t>(b.size()));
  EXPECT_TRUE(shorter.has_ports);
  EXPECT_FALSE(shorter.has_qp);
}

TEST(Parse, Ipv6AndItsExtensionHeaders) {
  const ParsedHeaders plain =
      parse(Packet("IPv6 RoCE").eth(host_b, host_a).ipv6(1, 2, 26 << 2 | 1).udp(9, 4791).bth(0x77).build());
  EXPECT_EQ(plain.ip_version, 6);
  EXPECT_EQ(plain.dscp, 26);
  EXPECT_EQ(plain.ecn, 1);
  EXPECT_EQ(plain.l4_offset, 54);
  EXPECT_EQ(plain.destination_qp, 0x77u);

  const ParsedHeaders chained = parse(Packet("hop-by-hop, destination options, then UDP")
                                          .eth(host_b, host_a)
                                          .ipv6(1, 2, 0, 64, 0)
                                          .raw({60, 0, 1, 4, 0, 0, 0, 0})
                                          .raw({17, 0, 1, 4, 0, 0, 0, 0})
                                          .udp(9, 10)
                                          .build());
  EXPECT_TRUE(chained.has_ports);
  EXPECT_EQ(chained.destination_port, 10);
  EXPECT_EQ(chained.l4_offset, 70);

  const ParsedHeaders fragment = parse(Packet("second fragment")
                                           .eth(host_b, host_a)
                                           .ipv6(1, 2, 0, 64, 44)
                                           .raw({17, 0, 0, 8, 0, 0, 0, 1})
                                           .payload(32)
                                           .build());
  EXPECT_TRUE(fragment.fragment);
  EXPECT_FALSE(fragment.has_ports);
  EXPECT_EQ(fragment.protocol, 17);
  const ParsedHeaders atomic = parse(Packet("atomic fragment: a whole datagram")
                                         .eth(host_b, host_a)
                                         .ipv6(1, 2, 0, 64, 44)
                                         .raw({17, 0, 0, 0, 0, 0, 0, 1})
                                         .udp(3, 4)
                                         .build());
  EXPECT_FALSE(atomic.fragment);
  EXPECT_TRUE(atomic.has_ports);

  Packet endless("a chain longer than anybody needs");
  endless.eth(host_b, host_a).ipv6(1, 2, 0, 64, 0);
  for (int i = 0; i < 9; ++i) endless.raw({0, 0, 1, 4, 0, 0, 0, 0});
  const ParsedHeaders long_chain = parse(endless.payload(16).build());
  EXPECT_EQ(long_chain.ip_version, 6);
  EXPECT_FALSE(long_chain.has_ports);

  const ParsedHeaders past = parse(Packet("an extension header that says it is longer than the datagram")
                                       .eth(host_b, host_a)
                                       .ipv6(1, 2, 0, 64, 0)
                                       .raw({17, 200, 1, 4, 0, 0, 0, 0})
                                       .build());
  EXPECT_FALSE(past.has_ports);

  Bytes b = Packet("payload length beyond the frame").eth(host_b, host_a).ipv6(1, 2).udp(1, 2).build();
  b[19] = 9;
  EXPECT_TRUE(parse(b).ip_broken);
}

TEST(Parse, NeighbourDiscoveryAndArp) {
  EXPECT_TRUE(parse(Packet("neighbour solicitation")
                        .eth(0x3333'ff00'0002, host_a)
                        .ipv6(1, 2, 0, 255, 58)
                        .raw({135, 0, 0, 0})
                        .payload(20)
                        .build())
                  .neighbour_discovery);
  EXPECT_FALSE(parse(Packet("ICMPv6 echo").eth(host_b, host_a).ipv6(1, 2, 0, 255, 58).raw({128, 0, 0, 0}).build())
                   .neighbour_discovery);
  EXPECT_EQ(
      parse(Packet("42-byte ARP, from before padding").eth(0xffff'ffff'ffff, host_a).type(0x0806).payload(28).build())
          .ether_type,
      ether_type::arp);
}

TEST(Parse, OnlyTheDestinationPortMakesRoce) {  // CASES A8, D25
  const ParsedHeaders source_only = parse(Packet("source port 4791 alone is not RoCE")
                                              .eth(host_b, host_a)
                                              .ipv4(ip_a, ip_b)
                                              .udp(4791, 9)
                                              .payload(40)
                                              .build());
  EXPECT_TRUE(source_only.has_ports);
  EXPECT_FALSE(source_only.rocev2);
  for (const std::uint16_t port : std::initializer_list<std::uint16_t>{0, 69, 72})
    EXPECT_TRUE(parse(Packet("odd source ports are RoCE like any other")
                          .eth(host_b, host_a)
                          .ipv4(ip_a, ip_b)
                          .udp(port, 4791)
                          .bth(5)
                          .build())
                    .has_qp);
  const ParsedHeaders tcp =
      parse(Packet("TCP to 4791").eth(host_b, host_a).ipv4(ip_a, ip_b, 0, 64, 6).tcp(1, 4791).payload(20).build());
  EXPECT_FALSE(tcp.rocev2);
}

TEST(Parse, MacControlIsUntagged) {
  EXPECT_TRUE(parse(Packet("PFC").eth(0x0180'c200'0001, host_a).type(0x8808).payload(46).build()).mac_control);
  EXPECT_FALSE(parse(Packet("tagged 0x8808").eth(0x0180'c200'0001, host_a).vlan(1).type(0x8808).payload(46).build())
                   .mac_control);
}

TEST(Parse, EveryPrefixOfEveryFrame) {
  // Exact-size heap copies: under ASan the first byte read too far is an error.
  for (const Bytes& b : {roce("RoCE").build(),
                         Packet("QinQ")
                             .eth(host_b, host_a)
                             .vlan(1, 2, 0x88a8)
                             .vlan(2)
                             .ipv4(ip_a, ip_b, 0, 64, 17, Bytes(40))
                             .udp(1, 4791)
                             .bth(1)
                             .build(),
                         Packet("v6")
                             .eth(host_b, host_a)
                             .ipv6(1, 2, 0, 64, 0)
                             .raw({44, 0, 1, 4, 0, 0, 0, 0})
                             .raw({51, 0, 0, 0, 0, 0, 0, 1})
                             .raw({17, 1})
                             .payload(10)
                             .udp(1, 4791)
                             .bth(1)
                             .build(),
                         Packet("SNAP").eth(host_b, host_a).snap(0x86dd).ipv6(1, 2).udp(1, 2).build()}) {
    for (std::size_t length = 0; length <= b.size(); ++length) {
      const auto copy = std::make_unique<std::uint8_t[]>(length);
      std::copy_n(b.begin(), length, copy.get());
      const ParsedHeaders h = parse(copy.get(), static_cast<std::uint32_t>(length), static_cast<std::uint32_t>(length));
      if (length < b.size() && h.ip_version != 0) ADD_FAILURE() << "a cut datagram passed for whole at " << length;
      (void)parse(copy.get(), static_cast<std::uint32_t>(length), static_cast<std::uint32_t>(b.size()));
    }
  }
}

TEST(Parse, PublicMalformedFrames) {
  const std::string folder = testing::public_captures();
  if (folder.empty()) GTEST_SKIP() << "no public captures here";
  const std::vector<Bytes> frames = testing::read_capture(folder + "/synth__roce_malformed_30.pcap");
  ASSERT_EQ(frames.size(), 30u);
  EXPECT_FALSE(parse(frames[17]).rocev2) << "frame 18: only the source port is 4791";
  EXPECT_TRUE(parse(frames[17]).has_ports);
  EXPECT_TRUE(parse(frames[0]).has_qp);
  EXPECT_TRUE(parse(frames[11]).fragment && parse(frames[12]).fragment);
  EXPECT_EQ(parse(frames[23]).tags, 3);
  for (const char* name : {"derived__roce_vlan100_pcp3.pcap", "derived__roce_qinq_88a8.pcap"}) {
    const std::vector<Bytes> tagged = testing::read_capture(folder + "/" + name);
    ASSERT_EQ(tagged.size(), 105u);
    for (const Bytes& b : tagged) {
      const ParsedHeaders h = parse(b);
      EXPECT_TRUE(h.has_qp) << name;
      EXPECT_TRUE(testing::icrc_is_right(b, h.l3_offset)) << name;
    }
  }
}

}  // namespace
}  // namespace weft
