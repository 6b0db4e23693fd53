// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The Internet checksum of an IPv4 header, whole (RFC 1071) and by difference (RFC 1624, equation 3). Changing
// it by difference leaves a header whose checksum was wrong on arrival just as wrong: a switch must not repair it.
#include <cstdint>

#include "dataplane/bytes.h"

namespace weft {

/// One's complement sum of `length` bytes (even), folded to 16 bits. A header with a right checksum sums to 0xffff.
inline std::uint16_t ones_sum(const std::uint8_t* bytes, std::uint32_t length) {
  std::uint32_t sum = 0;
  for (std::uint32_t i = 0; i < length; i += 2) sum += load_be16(bytes + i);
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(sum + (sum >> 16));
}

/// The checksum field `checksum` after one 16-bit word under it changed from `before` to `after`.
constexpr std::uint16_t checksum_after(std::uint16_t checksum, std::uint16_t before, std::uint16_t after) {
  std::uint32_t sum = static_cast<std::uint16_t>(~checksum);
  sum += static_cast<std::uint16_t>(~before);
  sum += after;
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

}  // namespace weft
