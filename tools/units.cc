// SPDX-License-Identifier: BSD-3-Clause
#include "tools/units.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <system_error>

namespace weft {
namespace {

constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();

struct Unit {
  std::string_view name;
  std::uint64_t scale;
};

constexpr Unit time_units[] = {
    {"ps", 1}, {"ns", 1'000}, {"us", 1'000'000}, {"ms", 1'000'000'000}, {"s", 1'000'000'000'000}};
constexpr Unit rate_units[] = {
    {"k", 1'000}, {"K", 1'000}, {"M", 1'000'000}, {"G", 1'000'000'000}, {"T", 1'000'000'000'000}};
constexpr Unit size_units[] = {{"", 1},
                               {"B", 1},
                               {"KiB", 1ull << 10},
                               {"MiB", 1ull << 20},
                               {"GiB", 1ull << 30},
                               {"TiB", 1ull << 40},
                               {"kB", 1'000},
                               {"KB", 1'000},
                               {"MB", 1'000'000},
                               {"GB", 1'000'000'000},
                               {"TB", 1'000'000'000'000}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// "12.5us": the digits in front and what follows them.
struct Quantity {
  std::string_view whole, fraction, unit;
};

Quantity split(std::string_view text) {
  Quantity quantity;
  std::size_t at = 0;
  while (at < text.size() && is_digit(text[at])) ++at;
  quantity.whole = text.substr(0, at);
  if (at < text.size() && text[at] == '.') {
    const std::size_t start = ++at;
    while (at < text.size() && is_digit(text[at])) ++at;
    quantity.fraction = text.substr(start, at - start);
    if (quantity.fraction.empty()) throw UnitError("ends its number with a point");
  }
  if (quantity.whole.empty()) throw UnitError("does not start with a number");
  while (at < text.size() && text[at] == ' ') ++at;
  quantity.unit = text.substr(at);
  return quantity;
}

/// (whole.fraction) x scale, exact or an error.
std::uint64_t scaled(const Quantity& quantity, std::uint64_t scale) {
  std::uint64_t value = 0;
  for (const char c : quantity.whole) {
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (value > (largest - digit) / 10) throw UnitError("is too large");
    value = value * 10 + digit;
  }
  if (value != 0 && scale > largest / value) throw UnitError("is too large");
  value *= scale;
  // fraction / 10^n x scale, with 10^n / gcd dividing the digits or not.
  std::string_view digits = quantity.fraction;
  while (digits.ends_with('0')) digits.remove_suffix(1);
  if (digits.size() > 18) throw UnitError("is not a whole number of the smallest unit");
  std::uint64_t fraction = 0, power = 1;
  for (const char c : digits) {
    fraction = fraction * 10 + static_cast<std::uint64_t>(c - '0');
    power *= 10;
  }
  const std::uint64_t common = std::gcd(scale, power);
  if (fraction % (power / common) != 0) throw UnitError("is not a whole number of the smallest unit");
  const std::uint64_t part = fraction / (power / common) * (scale / common);
  if (part > largest - value) throw UnitError("is too large");
  value += part;
  return value;
}

const Unit* find(std::span<const Unit> units, std::string_view name) {
  for (const Unit& unit : units)
    if (unit.name == name) return &unit;
  return nullptr;
}

std::string largest_unit(std::uint64_t value, std::span<const Unit> units, std::string_view plain) {
  const Unit* best = nullptr;
  for (const Unit& unit : units)
    if (value != 0 && value % unit.scale == 0 && (best == nullptr || unit.scale > best->scale)) best = &unit;
  return best == nullptr ? std::to_string(value) + std::string(plain)
                         : std::to_string(value / best->scale) + std::string(best->name);
}

double plain_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) throw UnitError("is out of range");
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
    throw UnitError("is not a number");
  return value;
}

}  // namespace

TimePs parse_time(std::string_view text) {
  const Quantity quantity = split(text);
  if (quantity.unit.empty()) throw UnitError("has no unit");
  const Unit* unit = find(time_units, quantity.unit);
  if (unit == nullptr) throw UnitError("is not a time");
  return scaled(quantity, unit->scale);
}

Rate parse_rate(std::string_view text) {
  const Quantity quantity = split(text);
  if (quantity.unit.empty()) throw UnitError("has no unit");
  std::string_view name = quantity.unit;
  for (const std::string_view ending : {"bps", "b/s"}) {
    if (!name.ends_with(ending)) continue;
    name.remove_suffix(ending.size());
    break;
  }
  if (name.empty()) return {scaled(quantity, 1)};
  const Unit* unit = find(rate_units, name);
  if (unit == nullptr) throw UnitError("is not a rate");
  return {scaled(quantity, unit->scale)};
}

std::uint64_t parse_size(std::string_view text) {
  const Quantity quantity = split(text);
  const Unit* unit = find(size_units, quantity.unit);
  if (unit == nullptr) throw UnitError("is not a size");
  return scaled(quantity, unit->scale);
}

double parse_number(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return plain_number(text);
  const double value = plain_number(text.substr(0, slash)) / plain_number(text.substr(slash + 1));
  if (!std::isfinite(value)) throw UnitError("is not a number");
  return value;
}

std::uint64_t parse_integer(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) throw UnitError("is too large");
  if (error != std::errc{} || end != text.data() + text.size()) throw UnitError("is not a whole number");
  return value;
}

std::string format_time(TimePs time) { return largest_unit(time, time_units, "ns"); }

std::string format_rate(Rate rate) { return largest_unit(rate.bits_per_s, std::span(rate_units).subspan(1), "bps"); }

std::string format_size(std::uint64_t bytes) {
  // Binary units where they fit (2KiB), else decimal ones where those do (400KB), else plain bytes.
  constexpr Unit binary[] = {{"KiB", 1ull << 10}, {"MiB", 1ull << 20}, {"GiB", 1ull << 30}, {"TiB", 1ull << 40}};
  constexpr Unit decimal[] = {{"KB", 1'000}, {"MB", 1'000'000}, {"GB", 1'000'000'000}, {"TB", 1'000'000'000'000}};
  if (bytes % 1024 == 0) return largest_unit(bytes, binary, "");
  return largest_unit(bytes, decimal, "");
}

std::string format_number(double number) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, number);
  return error == std::errc{} ? std::string(text, end) : std::string("0");
}

}  // namespace weft
