// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Numbers as reports print them. Emulated time is a whole number of picoseconds and is never printed through a double.
#include <cstdint>
#include <string>

#include "dataplane/time.h"

namespace weft {

/// `value` / 10^digits with exactly that many decimals: decimal(1234567, 3) is "1234.567".
std::string decimal(std::uint64_t value, unsigned digits);

/// Picoseconds as nanoseconds or microseconds, every picosecond shown: "1234.567", "1.234567".
inline std::string as_ns(TimePs time) { return decimal(time, 3); }
inline std::string as_us(TimePs time) { return decimal(time, 6); }

/// For people, three or four significant digits: "1.234 us", "12.5 ms", "250 ns", "3 s".
std::string duration_text(TimePs time);
/// "12.3 KiB", "8 GiB"
std::string bytes_text(std::uint64_t bytes);
/// Decimal bits a second: "399.8 Gb/s"
std::string rate_text(double bits_per_s);
/// "1,234,567"
std::string grouped(std::uint64_t value);

}  // namespace weft
