// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Emulated time and wire arithmetic. Time is whole picoseconds in 64 bits (213 days); never a double.
#include <cstdint>

namespace weft {

using TimePs = std::uint64_t;

inline constexpr TimePs never = ~TimePs{0};

/// Products of times and rates; a type that GCC and Clang have beyond the standard.
__extension__ using Uint128 = unsigned __int128;

inline namespace literals {
constexpr TimePs operator""_ps(unsigned long long v) { return v; }
constexpr TimePs operator""_ns(unsigned long long v) { return v * 1'000; }
constexpr TimePs operator""_us(unsigned long long v) { return v * 1'000'000; }
constexpr TimePs operator""_ms(unsigned long long v) { return v * 1'000'000'000; }
constexpr TimePs operator""_s(unsigned long long v) { return v * 1'000'000'000'000; }
}  // namespace literals

/// Bytes that a frame costs on an Ethernet link beyond its captured length: FCS 4, preamble and SFD 8, gap 12.
inline constexpr std::uint32_t ethernet_overhead_bytes = 24;

/// Decimal bits a second, as on the wire.
struct Rate {
  std::uint64_t bits_per_s = 0;
  friend constexpr bool operator==(Rate, Rate) = default;
};

/// Serialisation times at one rate. A rate that is not whole picoseconds a byte carries its remainder from
/// one frame to the next, so a long run of frames takes exactly bytes x 8 / rate, rounded down once.
class WireClock {
 public:
  WireClock() = default;
  explicit constexpr WireClock(Rate rate) { set_rate(rate); }

  /// A zero rate is not allowed. The remainder starts at zero.
  constexpr void set_rate(Rate rate) {
    std::uint64_t numerator = 8'000'000'000'000, denominator = rate.bits_per_s;
    std::uint64_t a = numerator, b = denominator;
    while (b != 0) {
      const std::uint64_t r = a % b;
      a = b;
      b = r;
    }
    ps_numerator_ = numerator / a;
    ps_denominator_ = denominator / a;
    remainder_ = 0;
  }

  /// Time on the wire of the next `bytes` (at most 1 MiB), remainder carried.
  constexpr TimePs take(std::uint32_t bytes) {
    const std::uint64_t scaled = bytes * ps_numerator_;
    if (ps_denominator_ == 1) [[likely]]
      return scaled;
    const std::uint64_t total = scaled + remainder_;
    remainder_ = total % ps_denominator_;
    return total / ps_denominator_;
  }

  /// Time of `bytes` from a clean start, rounded up; changes nothing. For bounds and closed forms.
  [[nodiscard]] constexpr TimePs time_of(std::uint64_t bytes) const {
    const auto total = static_cast<Uint128>(bytes) * ps_numerator_;
    return static_cast<TimePs>((total + ps_denominator_ - 1) / ps_denominator_);
  }

  /// Whole bytes that pass in `time`.
  [[nodiscard]] constexpr std::uint64_t bytes_in(TimePs time) const {
    return static_cast<std::uint64_t>(static_cast<Uint128>(time) * ps_denominator_ / ps_numerator_);
  }

 private:
  std::uint64_t ps_numerator_ = 1, ps_denominator_ = 1, remainder_ = 0;
};

}  // namespace weft
