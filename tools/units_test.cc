// SPDX-License-Identifier: BSD-3-Clause
#include "tools/units.h"

#include <gtest/gtest.h>

#include <random>

namespace weft {
namespace {

template <class Parse>
std::string error_of(Parse parse, std::string_view text) {
  try {
    parse(text);
  } catch (const UnitError& error) {
    return error.what();
  }
  return "none";
}

TEST(Units, TimesAreExactPicoseconds) {
  EXPECT_EQ(parse_time("1.5us"), 1'500'000u);
  EXPECT_EQ(parse_time("0.1ns"), 100u);
  EXPECT_EQ(parse_time("250ps"), 250u);
  EXPECT_EQ(parse_time("0us"), 0u);
  EXPECT_EQ(parse_time("2s"), 2'000'000'000'000u);
  EXPECT_EQ(parse_time("3 ms"), 3'000'000'000u);
  EXPECT_EQ(parse_time("1.0000000000000000000000ps"), 1u);
  // A double has 53 bits: it would give ...776.
  EXPECT_EQ(parse_time("9007199.254740993s"), 9'007'199'254'740'993'000u);
  EXPECT_EQ(parse_time("18446744073709551615ps"), never);
}

TEST(Units, TimesThatAreNone) {
  EXPECT_EQ(error_of(parse_time, "100"), "has no unit");
  EXPECT_EQ(error_of(parse_time, "0"), "has no unit");
  EXPECT_EQ(error_of(parse_time, "1.5ps"), "is not a whole number of the smallest unit");
  EXPECT_EQ(error_of(parse_time, "1.0001ns"), "is not a whole number of the smallest unit");
  EXPECT_EQ(error_of(parse_time, "5min"), "is not a time");
  EXPECT_EQ(error_of(parse_time, "1.us"), "ends its number with a point");
  for (const char* text : {"", "us", "-1us", "+1us", ".5us", "fast"})
    EXPECT_EQ(error_of(parse_time, text), "does not start with a number") << text;
  EXPECT_EQ(error_of(parse_time, "18446744073709551616ps"), "is too large");
  EXPECT_EQ(error_of(parse_time, "18446745s"), "is too large");
  EXPECT_EQ(error_of(parse_time, "18446744.9s"), "is too large");
}

TEST(Units, RatesAreDecimalBits) {
  EXPECT_EQ(parse_rate("400G").bits_per_s, 400'000'000'000u);
  EXPECT_EQ(parse_rate("400Gbps").bits_per_s, 400'000'000'000u);
  EXPECT_EQ(parse_rate("2.5Gb/s").bits_per_s, 2'500'000'000u);
  EXPECT_EQ(parse_rate("100M").bits_per_s, 100'000'000u);
  EXPECT_EQ(parse_rate("1.6T").bits_per_s, 1'600'000'000'000u);
  EXPECT_EQ(parse_rate("64k").bits_per_s, 64'000u);
  EXPECT_EQ(parse_rate("7bps").bits_per_s, 7u);
  EXPECT_EQ(error_of(parse_rate, "400"), "has no unit");
  EXPECT_EQ(error_of(parse_rate, "400Gi"), "is not a rate");
  EXPECT_EQ(error_of(parse_rate, "400GB/s"), "is not a rate");
  EXPECT_EQ(error_of(parse_rate, "0.5bps"), "is not a whole number of the smallest unit");
}

TEST(Units, SizesAreBinaryOnlyWhenWrittenSo) {
  EXPECT_EQ(parse_size("256"), 256u);
  EXPECT_EQ(parse_size("2KiB"), 2048u);
  EXPECT_EQ(parse_size("0.5KiB"), 512u);
  EXPECT_EQ(parse_size("1.25MiB"), 1'310'720u);
  EXPECT_EQ(parse_size("8GiB"), 8ull << 30);
  EXPECT_EQ(parse_size("100KB"), 100'000u);
  EXPECT_EQ(parse_size("1.5kB"), 1'500u);
  EXPECT_EQ(parse_size("1MB"), 1'000'000u);
  EXPECT_EQ(error_of(parse_size, "64K"), "is not a size");
  EXPECT_EQ(error_of(parse_size, "64Kib"), "is not a size");
  EXPECT_EQ(error_of(parse_size, "0.1KiB"), "is not a whole number of the smallest unit");
  EXPECT_EQ(error_of(parse_size, "16777216TiB"), "is too large");
}

TEST(Units, NumbersAndFractions) {
  EXPECT_EQ(parse_number("1/8"), 0.125);
  EXPECT_EQ(parse_number("0.125"), 0.125);
  EXPECT_EQ(parse_number("1e-4"), 1e-4);
  for (const char* text : {"", "nan", "inf", "1/0", "0/0", "1/", "/2", "1/2/3", "1.5x", "0x10", " 1"})
    EXPECT_EQ(error_of(parse_number, text), "is not a number") << text;
  EXPECT_EQ(error_of(parse_number, "1e999"), "is out of range");
  EXPECT_EQ(parse_integer("18446744073709551615"), 18446744073709551615u);
  for (const char* text : {"", "-1", "1.0", "1e3", "0x10", "1 "})
    EXPECT_EQ(error_of(parse_integer, text), "is not a whole number") << text;
}

TEST(Units, WhatIsWrittenReadsBack) {
  EXPECT_EQ(format_time(1'500'000), "1500ns");
  EXPECT_EQ(format_time(0), "0ns");
  EXPECT_EQ(format_rate({2'500'000'000}), "2500M");
  EXPECT_EQ(format_rate({400'000'000'000}), "400G");
  EXPECT_EQ(format_size(2048), "2KiB");
  EXPECT_EQ(format_size(400'000), "400KB");
  EXPECT_EQ(format_size(257), "257");
  EXPECT_EQ(format_size(0), "0");
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t value = random() >> (random() % 64);
    EXPECT_EQ(parse_time(format_time(value)), value);
    EXPECT_EQ(parse_rate(format_rate({value})).bits_per_s, value);
    EXPECT_EQ(parse_size(format_size(value)), value);
    const double number = static_cast<double>(value) / 1e9;
    EXPECT_EQ(parse_number(format_number(number)), number);
  }
}

}  // namespace
}  // namespace weft
