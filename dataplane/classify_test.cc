// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/classify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dataplane/testing/frame_builder.h"

namespace weft {
namespace {

using testing::Bytes;
using testing::Packet;

Packet frame(const char* shows) { return Packet(shows).eth(0x0200'0000'0002, 0x0200'0000'0001); }

TEST(Classify, Precedence) {
  const ClassesConfig classes;
  EXPECT_EQ(classify_bytes(frame("RoCE data").ipv4(1, 2, 26 << 2).udp(1, 4791).bth(1).build(), classes), 3);
  EXPECT_EQ(classify_bytes(frame("CNP").ipv4(1, 2, 48 << 2).udp(1, 4791).bth(1).build(), classes), 6);
  EXPECT_EQ(classify_bytes(frame("IPv6").ipv6(1, 2, 26 << 2).udp(1, 4791).bth(1).build(), classes), 3);
  EXPECT_EQ(classify_bytes(frame("best effort").ipv4(1, 2).udp(1, 2).build(), classes), 0);
  EXPECT_EQ(classify_bytes(frame("PCP set on purpose wins over DSCP").vlan(9, 4).ipv4(1, 2, 26 << 2).udp(1, 2).build(),
                           classes),
            4);
  EXPECT_EQ(classify_bytes(frame("PCP 0 leaves it to DSCP").vlan(9).ipv4(1, 2, 26 << 2).udp(1, 2).build(), classes), 3);
  EXPECT_EQ(classify_bytes(frame("priority tag, not IP").vlan(0, 5).type(0x0806).payload(28).build(), classes), 5);
  EXPECT_EQ(classify_bytes(frame("ARP").type(0x0806).payload(28).build(), classes), 0);
  Bytes broken = frame("broken IP says nothing by DSCP").ipv4(1, 2, 26 << 2).udp(1, 2).build();
  broken[14] = 0x44;
  EXPECT_EQ(classify_bytes(broken, classes), 0);
  broken.resize(9);
  EXPECT_EQ(classify_bytes(broken, classes), 0) << "too short to say";
}

TEST(Classify, TaggedCapture) {  // CASES E30
  const std::string folder = testing::public_captures();
  if (folder.empty()) GTEST_SKIP() << "no public captures here";
  for (const Bytes& b : testing::read_capture(folder + "/derived__roce_vlan100_pcp3.pcap"))
    EXPECT_EQ(classify_bytes(b, ClassesConfig{}), 3);
}

TEST(Classify, SeveralCodePointsOnOneClass) {  // CASES D26
  ClassesConfig classes;
  classes.dscp_to_class[5] = classes.dscp_to_class[46] = classes.dscp_to_class[48] = 5;
  const std::string folder = testing::public_captures();
  Bytes cnp = frame("a CNP").ipv4(1, 2, 48 << 2 | 2).udp(0, 4791).raw({0x81, 0, 0xff, 0xff}).payload(24).build();
  if (!folder.empty()) cnp = testing::read_capture(folder + "/secdev_scapy__roce.uts_real_frames.pcap").at(0);
  const Bytes before = cnp;
  EXPECT_EQ(classify_bytes(cnp, ClassesConfig{}), 6);
  EXPECT_EQ(classify_bytes(cnp, classes), 5);
  EXPECT_EQ(cnp, before) << "classifying leaves the DSCP alone";
}

TEST(Classify, DscpOfClass) {
  ClassesConfig classes;
  EXPECT_EQ(dscp_of_class(classes, 3), 26);
  EXPECT_EQ(dscp_of_class(classes, 6), 48);
  for (std::uint8_t c = 0; c < 8; ++c) EXPECT_EQ(classes.dscp_to_class[dscp_of_class(classes, c)], c);
  classes.dscp_to_class.fill(0);
  EXPECT_THAT([&] { dscp_of_class(classes, 3); },
              ::testing::ThrowsMessage<std::invalid_argument>(::testing::HasSubstr("class 3: no DSCP")));
}

}  // namespace
}  // namespace weft
