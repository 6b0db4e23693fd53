// SPDX-License-Identifier: BSD-3-Clause
#include "tools/text.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Text, DecimalsAreExact) {
  EXPECT_EQ(decimal(0, 3), "0.000");
  EXPECT_EQ(decimal(1, 3), "0.001");
  EXPECT_EQ(decimal(1'234'567, 3), "1234.567");
  EXPECT_EQ(decimal(never, 3), "18446744073709551.615");  // a double would show ...616
  EXPECT_EQ(as_us(1'000'001), "1.000001");
}

TEST(Text, DurationsPickTheirUnit) {
  EXPECT_EQ(duration_text(0), "0");
  EXPECT_EQ(duration_text(999), "999 ps");
  EXPECT_EQ(duration_text(1'500), "1.5 ns");
  EXPECT_EQ(duration_text(1'234'567), "1.235 us");
  EXPECT_EQ(duration_text(20'000'000'000), "20 ms");
  EXPECT_EQ(duration_text(21'299'678'000'000), "21.3 s");
  EXPECT_EQ(duration_text(105'000'000'000'000'000), "105,000 s");
}

TEST(Text, BytesAreBinaryAndRatesDecimal) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text(8ull << 30), "8 GiB");
  EXPECT_EQ(rate_text(0), "0 b/s");
  EXPECT_EQ(rate_text(399.84e9), "399.8 Gb/s");
  EXPECT_EQ(rate_text(25.6e12), "25.6 Tb/s");
}

TEST(Text, ThousandsAreGrouped) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1'000), "1,000");
  EXPECT_EQ(grouped(12'345'678), "12,345,678");
}

}  // namespace
}  // namespace weft
