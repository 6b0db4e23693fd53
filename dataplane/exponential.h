// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Exponential random numbers in fixed point: -ln(U) by a table of logarithms, without floating point, so that every
// machine and every C library draws the same Poisson process. Interpolation is off by at most 1.8e-7 x the mean.
#include <array>
#include <bit>
#include <cstdint>

#include "dataplane/time.h"

namespace weft {
namespace exponential_detail {

inline constexpr unsigned index_bits = 10;

/// log2 of 1 + i / 2^index_bits, times 2^32.
inline constexpr auto log2_table = [] {
  std::array<std::uint64_t, (1u << index_bits) + 1> table{};
  for (std::uint64_t i = 0; i < (1u << index_bits); ++i) {
    std::uint64_t y = ((1u << index_bits) + i) << (63 - index_bits);  // in [1, 2), times 2^63
    for (int bit = 31; bit >= 0; --bit) {                             // squaring doubles the logarithm
      const Uint128 square = static_cast<Uint128>(y) * y >> 63;
      const bool carry = (square >> 64) != 0;
      y = static_cast<std::uint64_t>(carry ? square >> 1 : square);
      table[i] |= std::uint64_t{carry} << bit;
    }
  }
  table[1u << index_bits] = std::uint64_t{1} << 32;
  return table;
}();

}  // namespace exponential_detail

/// Exponentially distributed with mean 1, times 2^32, from 64 random bits.
constexpr std::uint64_t exponential_q32(std::uint64_t random) {
  using namespace exponential_detail;
  constexpr std::uint64_t ln2_q32 = 2'977'044'472;
  random |= 1;
  const auto zeros = static_cast<unsigned>(std::countl_zero(random));
  const std::uint64_t mantissa = random << zeros;  // U = mantissa / 2^(64 + zeros)
  const auto index = static_cast<std::size_t>(mantissa >> (63 - index_bits)) & ((1u << index_bits) - 1);
  const std::uint64_t between = mantissa >> (31 - index_bits) & 0xffff'ffff;
  const std::uint64_t low = log2_table[index], high = log2_table[index + 1];
  const std::uint64_t log2 = low + ((high - low) * between >> 32);
  const std::uint64_t minus_log2 = (std::uint64_t{zeros + 1} << 32) - log2;
  return static_cast<std::uint64_t>(static_cast<Uint128>(minus_log2) * ln2_q32 >> 32);
}

}  // namespace weft
