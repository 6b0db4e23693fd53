// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// When a window may start. The virtual clock starts it at once; a wall clock holds it until real time has come. Nodes
// and links know nothing of it: the same code runs under both.
#include <algorithm>
#include <concepts>
#include <cstdint>

#include "dataplane/time.h"

namespace weft {

/// Asked by one thread only.
class Pacer {
 public:
  virtual ~Pacer() = default;
  /// True when the window that starts at emulated time `from` may be handled. False after some milliseconds, so that
  /// the caller can see whether the run is to end, and ask again.
  [[nodiscard]] virtual bool wait_for(TimePs from) const = 0;
  /// Emulated time by this clock.
  [[nodiscard]] virtual TimePs now() const = 0;
  /// Nothing is going on: gives the CPU to others for a while, but not beyond emulated time `until`.
  virtual void rest(TimePs until) const = 0;
};

/// What a WallPacer needs of a clock: ticks that never go back, and sleep that lasts about as long as asked, or longer.
template <typename T>
concept PacingClock = requires(const T& clock, std::uint64_t ticks) {
  { clock() } -> std::convertible_to<std::uint64_t>;
  clock.sleep(ticks);
  clock.pause();  // between two looks at the clock
};

/// Emulated time goes `dilation` times slower than the ticks of `Clock`, from its construction on.
template <PacingClock Clock>
class WallPacer final : public Pacer {
 public:
  /// `rest_ticks`: of one rest; 0: it never sleeps, neither in a rest nor when a window is long in coming.
  WallPacer(Clock clock, std::uint64_t ticks_per_s, std::uint32_t dilation, std::uint64_t rest_ticks)
      : clock_(clock),
        ticks_per_s_(ticks_per_s),
        rest_ticks_(rest_ticks),
        oversleep_ticks_(ticks_per_s / 1'000'000 * oversleep_us),
        slice_ticks_(ticks_per_s / 100),
        dilation_(dilation),
        start_(clock_()) {}

  bool wait_for(TimePs from) const override {
    const std::uint64_t due = due_at(from);
    std::uint64_t now = clock_();
    const std::uint64_t look_around = now + slice_ticks_;
    while (now < due) {
      if (now >= look_around) return false;
      const std::uint64_t left = std::min(due, look_around) - now;
      if (rest_ticks_ != 0 && left > 2 * oversleep_ticks_)
        clock_.sleep(left - oversleep_ticks_);
      else
        clock_.pause();
      now = clock_();
    }
    return true;
  }
  TimePs now() const override {
    const auto ticks = static_cast<Uint128>(clock_() - start_);
    return static_cast<TimePs>(ticks * 1'000'000'000'000 / ticks_per_s_ / dilation_);
  }
  void rest(TimePs until) const override {
    if (rest_ticks_ == 0) return;
    // A time beyond the clock's range is as good as never.
    const std::uint64_t now = clock_();
    const std::uint64_t due = until > never / 2 ? ~std::uint64_t{0} : due_at(until);
    if (due <= now + oversleep_ticks_) return;
    clock_.sleep(std::min(rest_ticks_, due - now - oversleep_ticks_));
  }

 private:
  /// A sleep may last so much longer than asked for: Linux wakes a thread some 50 us late, more on a busy machine.
  static constexpr std::uint64_t oversleep_us = 60;

  [[nodiscard]] std::uint64_t due_at(TimePs from) const {
    return start_ +
           static_cast<std::uint64_t>(static_cast<Uint128>(from) * dilation_ * ticks_per_s_ / 1'000'000'000'000);
  }
  Clock clock_;
  std::uint64_t ticks_per_s_, rest_ticks_, oversleep_ticks_, slice_ticks_;
  std::uint32_t dilation_;
  std::uint64_t start_;
};

}  // namespace weft
