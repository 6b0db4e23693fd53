// SPDX-License-Identifier: BSD-3-Clause
#include "tools/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace weft {
namespace {

/// Four significant digits, no trailing zeros.
std::string short_number(double value) { return fmt::format("{:.4g}", value); }

}  // namespace

std::string decimal(std::uint64_t value, unsigned digits) {
  std::string text = fmt::format("{:0{}}", value, digits + 1);
  text.insert(text.size() - digits, 1, '.');
  return text;
}

std::string duration_text(TimePs time) {
  struct Unit {
    TimePs ps;
    std::string_view name;
  };
  constexpr std::array units{Unit{1'000'000'000'000, "s"}, Unit{1'000'000'000, "ms"}, Unit{1'000'000, "us"},
                             Unit{1'000, "ns"}};
  for (const Unit& unit : units) {
    // Anything of 10,000 or more of a unit would need an exponent; seconds are the last resort.
    if (time >= unit.ps && unit.ps == units.front().ps && time / unit.ps >= 10'000)
      return fmt::format("{} s", grouped(time / unit.ps));
    if (time >= unit.ps)
      return fmt::format("{} {}", short_number(static_cast<double>(time) / static_cast<double>(unit.ps)), unit.name);
  }
  return time == 0 ? "0" : fmt::format("{} ps", time);
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 5> units{"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{} {}", short_number(value), units[unit]);
}

std::string rate_text(double bits_per_s) {
  constexpr std::array<std::string_view, 5> units{"b/s", "Kb/s", "Mb/s", "Gb/s", "Tb/s"};
  std::size_t unit = 0;
  for (; bits_per_s >= 1000 && unit + 1 < units.size(); ++unit) bits_per_s /= 1000;
  return fmt::format("{} {}", short_number(bits_per_s), units[unit]);
}

std::string grouped(std::uint64_t value) {
  std::string text = fmt::format("{}", value);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

}  // namespace weft
