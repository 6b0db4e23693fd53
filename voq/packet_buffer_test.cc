// SPDX-License-Identifier: BSD-3-Clause
#include "voq/packet_buffer.h"

#include <gtest/gtest.h>

#include <deque>

#include "dataplane/rng.h"

namespace weft::voq {
namespace {

constexpr Rate rate{800'000'000'000};  // 10 ps a byte
constexpr TimePs read_latency = 400_ns;

TEST(PacketBuffer, OnChipFillsToTheByte) {
  PacketBuffer buffer(10'000, 0, rate, read_latency);
  EXPECT_TRUE(buffer.sram_fits(10'000));
  EXPECT_FALSE(buffer.sram_fits(10'001));
  buffer.store(4'000);
  EXPECT_EQ(buffer.free_bytes(), 6'000u);
  EXPECT_TRUE(buffer.sram_fits(6'000));
  EXPECT_FALSE(buffer.sram_fits(6'001));
  buffer.release(1'000);
  buffer.store(500);
  EXPECT_EQ(buffer.sram_max, 4'000u);
  EXPECT_EQ(buffer.free_bytes(), 6'500u);
  EXPECT_EQ(buffer.next_write_done(), never);
}

TEST(PacketBuffer, AFrameStaysOnChipUntilItIsWritten) {
  PacketBuffer buffer(10'000, 100'000, rate, read_latency);
  buffer.store_deep(9'000, 1_us);
  EXPECT_FALSE(buffer.sram_fits(1'001));
  EXPECT_EQ(buffer.writing(), 9'000u);
  EXPECT_EQ(buffer.deep_used(), 9'000u);
  EXPECT_EQ(buffer.free_bytes(), 110'000u - 9'000) << "it is there once, though it has a place in both tiers";
  EXPECT_EQ(buffer.next_write_done(), 1_us + 90_ns);
  buffer.write_done();
  EXPECT_TRUE(buffer.sram_fits(10'000));
  EXPECT_EQ(buffer.writing(), 0u);
  EXPECT_EQ(buffer.deep_used(), 9'000u);
  buffer.release_deep(9'000);
  EXPECT_EQ(buffer.deep_used(), 0u);
  EXPECT_EQ(buffer.deep_max, 9'000u);
  EXPECT_EQ(buffer.deep_written, 9'000u);
}

TEST(PacketBuffer, WritesAndReadsShareTheBandwidthInTurn) {
  PacketBuffer buffer(100'000, 1'000'000, rate, read_latency);
  buffer.store_deep(1'000, 0);
  EXPECT_EQ(buffer.read_deep(2'000, 0), 30_ns + read_latency) << "behind the write";
  buffer.store_deep(1'000, 5_ns);
  buffer.write_done();
  EXPECT_EQ(buffer.next_write_done(), 40_ns) << "behind the read, whose latency holds nobody up";
  EXPECT_EQ(buffer.read_deep(1'000, 1_us), 1_us + 10_ns + read_latency) << "idle in between";
}

TEST(PacketBuffer, DeepFillsToTheByte) {
  PacketBuffer buffer(100'000, 5'000, rate, read_latency);
  EXPECT_TRUE(buffer.deep_fits(5'000));
  buffer.store_deep(3'000, 0);
  EXPECT_TRUE(buffer.deep_fits(2'000));
  EXPECT_FALSE(buffer.deep_fits(2'001));
}

TEST(PacketBuffer, BooksBalanceAndReadsKeepTheirOrderOverRandomTraffic) {
  PacketBuffer buffer(1 << 20, 8 << 20, Rate{25'781'250'000}, read_latency);
  Rng random = stream(1, 0, 0);
  std::deque<std::uint32_t> on_chip, deep;
  TimePs now = 0, last_read = 0;
  std::uint64_t held = 0;
  for (int i = 0; i < 20'000; ++i) {
    now += random.below(600'000);
    while (buffer.next_write_done() <= now) buffer.write_done();
    const auto bytes = static_cast<std::uint32_t>(60 + random.below(9'000));
    switch (random.below(4)) {
      case 0:
        if (buffer.sram_fits(bytes)) buffer.store(bytes), on_chip.push_back(bytes), held += bytes;
        break;
      case 1:
        if (buffer.sram_fits(bytes) && buffer.deep_fits(bytes))
          buffer.store_deep(bytes, now), deep.push_back(bytes), held += bytes;
        break;
      case 2:
        if (!on_chip.empty()) buffer.release(on_chip.front()), held -= on_chip.front(), on_chip.pop_front();
        break;
      default:
        if (!deep.empty()) {
          const TimePs done = buffer.read_deep(deep.front(), now);
          EXPECT_GE(done, last_read);
          last_read = done;
          buffer.release_deep(deep.front()), held -= deep.front(), deep.pop_front();
        }
        break;
    }
  }
  while (buffer.next_write_done() != never) buffer.write_done();
  EXPECT_EQ(buffer.free_bytes(), (1u << 20) + (8u << 20) - held);
  EXPECT_LE(buffer.sram_max, 1u << 20);
  EXPECT_LE(buffer.deep_max, 8u << 20);
}

}  // namespace
}  // namespace weft::voq
