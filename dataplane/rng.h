// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Random numbers that are the same on every machine: xoshiro256** (Blackman and Vigna), seeded through SplitMix64.
// Integers only: no std:: distribution, whose results differ between libraries. One stream a node and purpose, so that
// what one node draws never depends on what another did.
#include <bit>
#include <cstdint>

#include "dataplane/time.h"

namespace weft {

class Rng {
 public:
  explicit constexpr Rng(std::uint64_t seed) {
    for (auto& word : state_) word = split_mix(seed);
  }

  constexpr std::uint64_t next() {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  constexpr std::uint32_t next32() { return static_cast<std::uint32_t>(next() >> 32); }

  /// Uniform in [0, bound), without bias; bound is not 0.
  constexpr std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t least = (0 - bound) % bound;  // 2^64 mod bound: products below it would be drawn once too often
    for (;;) {
      const auto product = static_cast<Uint128>(next()) * bound;
      if (static_cast<std::uint64_t>(product) >= least) return static_cast<std::uint64_t>(product >> 64);
    }
  }

  /// True with probability `threshold` / 2^32; a threshold of 2^32 is always true.
  constexpr bool chance(std::uint64_t threshold) { return next32() < threshold; }

  /// One step of SplitMix64; also a good mixer of small numbers.
  static constexpr std::uint64_t split_mix(std::uint64_t& state) {
    state += 0x9e37'79b9'7f4a'7c15;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58'476d'1ce4'e5b9;
    z = (z ^ (z >> 27)) * 0x94d0'49bb'1331'11eb;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_[4]{};
};

/// The stream of one purpose at one node of a run. `purpose` is any constant that is unique at that node.
constexpr Rng stream(std::uint64_t seed, std::uint64_t node, std::uint64_t purpose) {
  std::uint64_t state = seed;
  std::uint64_t mixed = Rng::split_mix(state);
  state = mixed ^ node;
  mixed = Rng::split_mix(state);
  state = mixed ^ purpose;
  return Rng(Rng::split_mix(state));
}

}  // namespace weft
