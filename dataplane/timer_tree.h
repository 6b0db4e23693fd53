// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A node's timers: a fixed set of slots, each with at most one time, and the earliest of them at hand. A tournament
// tree: setting one slot replays its matches up to the root, log2(slots) compares, and stops where nothing changes.
// At equal times the lower slot wins: the fixed rank that makes order independent of history.
#include <bit>
#include <cstdint>
#include <vector>

#include "dataplane/time.h"

namespace weft {

class TimerTree {
 public:
  explicit TimerTree(std::uint32_t slots)
      : width_(std::bit_ceil(slots < 2 ? 2u : slots)), times_(width_, never), winner_(width_) {
    for (std::uint32_t i = width_ - 1; i > 0; --i) winner_[i] = i >= width_ / 2 ? (i - width_ / 2) * 2 : winner_[2 * i];
  }

  [[nodiscard]] TimePs earliest() const { return earliest_; }
  [[nodiscard]] std::uint32_t earliest_slot() const { return winner_[1]; }
  [[nodiscard]] TimePs at(std::uint32_t slot) const { return times_[slot]; }

  void set(std::uint32_t slot, TimePs time) {
    if (times_[slot] == time) return;
    times_[slot] = time;
    std::uint32_t node = (slot + width_) / 2;
    std::uint32_t best = times_[slot | 1] < times_[slot & ~1u] ? slot | 1 : slot & ~1u;
    for (;;) {
      // Where another slot had won and wins again, nothing changes further up.
      if (winner_[node] == best && best != slot) return;
      winner_[node] = best;
      if (node == 1) break;
      const std::uint32_t rival = winner_[node ^ 1];
      // The left child holds the lower slots, and wins ties.
      const std::uint32_t lower = best < rival ? best : rival, higher = best < rival ? rival : best;
      best = times_[higher] < times_[lower] ? higher : lower;
      node /= 2;
    }
    earliest_ = times_[best];
  }
  void clear(std::uint32_t slot) { set(slot, never); }

 private:
  std::uint32_t width_;
  TimePs earliest_ = never;
  std::vector<TimePs> times_;
  std::vector<std::uint32_t> winner_;  // heap order, root at 1; leaves' parents start at width / 2
};

}  // namespace weft
