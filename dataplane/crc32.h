// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The CRC-32 of IEEE 802.3, which RoCEv2's ICRC is too: as a state that bytes move on, so that it can be taken apart.
// The state is linear: state(a ^ b) = state(a) ^ state(b) for messages of one length, starting from 0. Start from
// `start`; the CRC is ~state.
#include <array>
#include <cstdint>
#include <cstring>

namespace weft::crc32 {

inline constexpr std::uint32_t start = ~std::uint32_t{0};

// tables[n][b]: the state that byte b leads to, n zero bytes later.
inline constexpr auto tables = [] {
  std::array<std::array<std::uint32_t, 256>, 4> t{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t s = b;
    for (int bit = 0; bit < 8; ++bit) s = (s >> 1) ^ ((s & 1) != 0 ? 0xedb8'8320 : 0);
    t[0][b] = s;
  }
  for (std::size_t n = 1; n < t.size(); ++n)
    for (std::uint32_t b = 0; b < 256; ++b) t[n][b] = (t[n - 1][b] >> 8) ^ t[0][t[n - 1][b] & 0xff];
  return t;
}();

/// Four bytes, as they lie in memory read by a little-endian machine.
constexpr std::uint32_t add_word(std::uint32_t state, std::uint32_t word) {
  state ^= word;
  return tables[3][state & 0xff] ^ tables[2][state >> 8 & 0xff] ^ tables[1][state >> 16 & 0xff] ^
         tables[0][state >> 24];
}

inline std::uint32_t add(std::uint32_t state, const std::uint8_t* bytes, std::size_t count) {
  for (; count >= 4; bytes += 4, count -= 4) {
    std::uint32_t word;
    std::memcpy(&word, bytes, sizeof word);
    state = add_word(state, word);
  }
  for (; count > 0; ++bytes, --count) state = (state >> 8) ^ tables[0][(state ^ *bytes) & 0xff];
  return state;
}

/// The state that `count` zero bytes turn into `state`.
constexpr std::uint32_t before_zeros(std::uint32_t state, std::size_t count) {
  std::array<std::uint8_t, 256> from_top{};  // the highest byte of a table entry says which entry it is
  for (std::uint32_t b = 0; b < 256; ++b) from_top[tables[0][b] >> 24] = static_cast<std::uint8_t>(b);
  for (; count > 0; --count) {
    const std::uint8_t b = from_top[state >> 24];
    state = (state ^ tables[0][b]) << 8 | b;
  }
  return state;
}

}  // namespace weft::crc32
