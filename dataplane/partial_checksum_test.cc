// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/partial_checksum.h"

#include <gtest/gtest.h>

#include "dataplane/bytes.h"
#include "dataplane/rng.h"
#include "dataplane/testing/frame_builder.h"

namespace weft {
namespace {

using testing::Bytes;
using testing::Packet;

struct Layout {
  std::uint32_t l3, l4, field, end;
  bool v4;
};

/// One's complement sum, written apart from the code under test.
std::uint32_t ones(const Bytes& bytes, std::uint32_t from, std::uint32_t to, std::uint32_t sum) {
  for (std::uint32_t i = from; i < to; ++i) {
    sum += (i - from) % 2 == 0 ? std::uint32_t{bytes[i]} << 8 : bytes[i];
    sum = (sum & 0xffff) + (sum >> 16);
  }
  return sum;
}

std::uint32_t pseudo_sum(const Bytes& bytes, const Layout& at, std::uint8_t protocol) {
  const std::uint32_t length = at.end - at.l4;
  std::uint32_t sum = at.v4 ? ones(bytes, at.l3 + 12, at.l3 + 20, 0) : ones(bytes, at.l3 + 8, at.l3 + 40, 0);
  sum += protocol + length;
  return (sum & 0xffff) + (sum >> 16);
}

/// A receiver's check: everything sums to 0xffff.
bool is_right(const Bytes& bytes, const Layout& at, std::uint8_t protocol) {
  return ones(bytes, at.l4, at.end, pseudo_sum(bytes, at, protocol)) == 0xffff;
}

TEST(PartialChecksum, IsCompletedAndNothingElseChanges) {
  Rng random = stream(1, 2, 3);
  for (int round = 0; round < 2'000; ++round) {
    const bool v4 = random.below(2) == 0, udp = random.below(2) == 0, tagged = random.below(3) == 0;
    const auto payload = static_cast<std::uint32_t>(random.below(1'400));
    const std::uint8_t protocol = udp ? 17 : 6;
    Packet packet("a frame as a kernel gives it to a device that computes checksums");
    packet.eth(0x020000000002, 0x020000000001);
    if (tagged) packet.vlan(100, 3);
    if (v4)
      packet.ipv4(0xc6120001, 0xc6120002, 0, 64, protocol);
    else
      packet.ipv6(1, 2, 0, 64, protocol);
    if (udp)
      packet.udp(1'000, 2'000);
    else
      packet.tcp(1'000, 2'000);
    Bytes bytes = packet.payload(payload).build();
    Layout at{14u + (tagged ? 4u : 0u), 0, 0, 0, v4};
    at.l4 = at.l3 + (v4 ? 20 : 40);
    at.field = at.l4 + (udp ? 6 : 16);
    at.end = static_cast<std::uint32_t>(bytes.size());
    for (std::uint32_t i = at.l4 + (udp ? 8 : 20); i < at.end; ++i)
      bytes[i] = static_cast<std::uint8_t>(random.below(256));
    bytes.resize(bytes.size() + random.below(4));  // padding behind the datagram is not of it

    store_be16(&bytes[at.field], static_cast<std::uint16_t>(pseudo_sum(bytes, at, protocol)));
    Bytes before = bytes;
    ASSERT_TRUE(complete_checksum(bytes));
    EXPECT_TRUE(is_right(bytes, at, protocol)) << "round " << round;
    before[at.field] = bytes[at.field], before[at.field + 1] = bytes[at.field + 1];
    EXPECT_EQ(bytes, before) << "only the field may change";

    // Whole by now: it stays as it is, or is computed to the same.
    const Bytes whole = bytes;
    complete_checksum(bytes);
    EXPECT_EQ(bytes, whole);
    // A wrong one is the receiver's to find.
    bytes[at.field] ^= 0x55;
    const Bytes wrong = bytes;
    EXPECT_FALSE(complete_checksum(bytes));
    EXPECT_EQ(bytes, wrong);
  }
}

TEST(PartialChecksum, LeavesAloneWhatHasNone) {
  for (Bytes bytes : {Packet("ARP").eth(~0ull >> 16, 1).type(0x0806).payload(28).build(),
                      Packet("ICMP").eth(2, 1).ipv4(1, 2, 0, 64, 1).payload(40).build(), Bytes{}, Bytes(13, 0)}) {
    const Bytes before = bytes;
    EXPECT_FALSE(complete_checksum(bytes));
    EXPECT_EQ(bytes, before);
  }
}

TEST(PartialChecksum, ReadsNothingBehindAFrameThatLies) {
  Rng random = stream(4, 5, 6);
  for (int round = 0; round < 20'000; ++round) {
    Bytes bytes = Packet("cut and bent").eth(2, 1).ipv4(1, 2, 0, 64, 6).tcp(1, 2).payload(8).build();
    bytes.resize(random.below(bytes.size() + 1));
    for (int i = 0; i < 4 && !bytes.empty(); ++i)
      bytes[random.below(bytes.size())] = static_cast<std::uint8_t>(random.below(256));
    const auto exact = std::make_unique<std::uint8_t[]>(bytes.size());  // a sanitizer sees the first byte too far
    std::copy(bytes.begin(), bytes.end(), exact.get());
    complete_checksum({exact.get(), bytes.size()});
  }
}

}  // namespace
}  // namespace weft
