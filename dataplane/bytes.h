// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Big-endian fields of headers, at any alignment.
#include <bit>
#include <cstdint>
#include <cstring>

namespace weft {

static_assert(std::endian::native == std::endian::little, "weft runs on little-endian machines");

inline std::uint16_t load_be16(const std::uint8_t* at) {
  std::uint16_t v;
  std::memcpy(&v, at, sizeof v);
  return __builtin_bswap16(v);
}
inline std::uint32_t load_be32(const std::uint8_t* at) {
  std::uint32_t v;
  std::memcpy(&v, at, sizeof v);
  return __builtin_bswap32(v);
}
inline std::uint64_t load_be64(const std::uint8_t* at) {
  std::uint64_t v;
  std::memcpy(&v, at, sizeof v);
  return __builtin_bswap64(v);
}
inline void store_be16(std::uint8_t* at, std::uint16_t v) {
  v = __builtin_bswap16(v);
  std::memcpy(at, &v, sizeof v);
}
inline void store_be32(std::uint8_t* at, std::uint32_t v) {
  v = __builtin_bswap32(v);
  std::memcpy(at, &v, sizeof v);
}

/// The six bytes of a MAC address as a number; the first byte on the wire is the most significant.
inline std::uint64_t load_mac(const std::uint8_t* at) {
  return (std::uint64_t{load_be32(at)} << 16) | load_be16(at + 4);
}
inline void store_mac(std::uint8_t* at, std::uint64_t mac) {
  store_be32(at, static_cast<std::uint32_t>(mac >> 16));
  store_be16(at + 4, static_cast<std::uint16_t>(mac));
}

}  // namespace weft
