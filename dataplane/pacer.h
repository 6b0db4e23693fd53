// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// When a window may start. The virtual clock starts it at once; a wall clock holds it until real time has come. Nodes
// and links know nothing of it: the same code runs under both.
#include <concepts>
#include <cstdint>

#include "dataplane/time.h"

namespace weft {

class Pacer {
 public:
  virtual ~Pacer() = default;
  /// Returns when the window that starts at emulated time `from` may be handled. Called by every worker, so it keeps no
  /// state that is not the caller's own.
  virtual void wait_for(TimePs from) const = 0;
};

class VirtualPacer final : public Pacer {
 public:
  void wait_for(TimePs) const override {}
};

/// Emulated time goes `dilation` times slower than the ticks of `Clock`. `Clock()` gives ticks, which never go back.
template <std::invocable Clock>
class WallPacer final : public Pacer {
 public:
  WallPacer(Clock clock, std::uint64_t ticks_per_s, std::uint32_t dilation)
      : clock_(clock), start_(clock_()), ticks_per_s_(ticks_per_s), dilation_(dilation) {}

  void wait_for(TimePs from) const override {
    const std::uint64_t due = start_ + ticks_until(from);
    while (clock_() < due) {
    }
  }
  /// How far emulated time is behind the clock when a window that starts at `from` is begun; emulated picoseconds.
  [[nodiscard]] TimePs lag(TimePs from) const {
    const std::uint64_t due = start_ + ticks_until(from), now = clock_();
    if (now <= due) return 0;
    return static_cast<TimePs>(static_cast<Uint128>(now - due) * 1'000'000'000'000 / ticks_per_s_ / dilation_);
  }

 private:
  [[nodiscard]] std::uint64_t ticks_until(TimePs from) const {
    return static_cast<std::uint64_t>(static_cast<Uint128>(from) * dilation_ * ticks_per_s_ / 1'000'000'000'000);
  }
  Clock clock_;
  std::uint64_t start_, ticks_per_s_;
  std::uint32_t dilation_;
};

}  // namespace weft
