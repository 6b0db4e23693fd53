// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Which link the next cell to a leaf takes: round robin over a permutation of the links that reach it, reshuffled now
// and then so that leaves do not fall into step. A link of twice the rate has twice the places. Never by flow.
#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/rng.h"

namespace weft::cells {

class Spray {
 public:
  explicit Spray(Rng random) : random_(random) {}

  /// `rates[i]` is what link i can carry to this destination, in any unit; 0: it does not reach it.
  void set_links(std::span<const std::uint64_t> rates);
  [[nodiscard]] bool reaches() const { return !places_.empty(); }

  std::uint16_t next() {
    if (position_ == places_.size()) [[unlikely]]
      next_round();
    return places_[position_++];
  }

 private:
  static constexpr std::uint32_t rounds_per_shuffle =
      8;  // a shuffle costs as much as a round: an eighth is lost in the noise
  void next_round();
  void shuffle();

  std::vector<std::uint16_t> places_;
  std::uint32_t position_ = 0, rounds_ = 0;
  Rng random_;
};

}  // namespace weft::cells
