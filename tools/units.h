// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Quantities as people write them: "400G", "1.5us", "64KiB", "1/8". Read exactly, digit by digit, into whole units;
// written in the largest unit that needs no fraction. A quantity that does not come out whole is an error.
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "dataplane/time.h"

namespace weft {

/// What is wrong with the text, as the end of a sentence that starts with it: `has no unit`.
struct UnitError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline constexpr std::string_view time_examples = "a time such as 500ns, 1.5us, 100ms or 2s";
inline constexpr std::string_view rate_examples = "a rate in decimal bits a second such as 400G, 2.5Gb/s or 100Mbps";
inline constexpr std::string_view size_examples = "bytes such as 256, 2KiB, 64MiB (binary) or 100KB, 1MB (decimal)";
inline constexpr std::string_view number_examples = "a number such as 0.125, 1/8 or 1e-4";

// Each throws UnitError.
TimePs parse_time(std::string_view text);            // ps ns us ms s; the unit is not optional
Rate parse_rate(std::string_view text);              // k M G T, then nothing, bps or b/s; or plain bps, b/s
std::uint64_t parse_size(std::string_view text);     // nothing or B; KiB MiB GiB TiB; KB MB GB TB
double parse_number(std::string_view text);          // decimal, exponent or a fraction of two of them; finite
std::uint64_t parse_integer(std::string_view text);  // decimal digits

// The same text read back gives the same value.
std::string format_time(TimePs time);
std::string format_rate(Rate rate);
std::string format_size(std::uint64_t bytes);
std::string format_number(double number);

}  // namespace weft
