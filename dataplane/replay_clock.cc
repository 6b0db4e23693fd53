// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/replay_clock.h"

#include <cmath>

namespace weft {
namespace {

__extension__ using Uint128 = unsigned __int128;

}  // namespace

std::optional<Speed> speed_of(double speed) {
  if (!(speed >= 1e-9 && speed <= 1e9)) return std::nullopt;
  // Convergents of the continued fraction. The first that rounds to `speed` is the number that was written in the
  // config. Each step inverts a rest that is exact to about 2^-52, which is enough for terms of up to 31 bits.
  constexpr std::uint64_t limit = std::uint64_t{1} << 31;
  Speed before{1, 0}, best{static_cast<std::uint64_t>(speed), 1};
  long double rest = static_cast<long double>(speed) - static_cast<long double>(best.numerator);
  while (static_cast<double>(static_cast<long double>(best.numerator) / static_cast<long double>(best.denominator)) !=
         speed) {
    if (rest < 1e-18L) break;
    const long double inverse = 1 / rest;
    if (inverse >= static_cast<long double>(limit)) break;
    const auto whole = static_cast<std::uint64_t>(inverse);
    rest = inverse - static_cast<long double>(whole);
    const Speed next{whole * best.numerator + before.numerator, whole * best.denominator + before.denominator};
    if (next.numerator >= limit || next.denominator >= limit) break;
    before = best;
    best = next;
  }
  if (best.numerator == 0) return std::nullopt;
  return best;
}

TimePs StampUnroller::next(std::int64_t stamp_ns, std::uint16_t stamp_ps) {
  const Int128 stamp = static_cast<Int128>(stamp_ns) * 1000 + stamp_ps;
  if (!started_) {
    started_ = true;
    origin_ = previous_ = stamp;
  }
  reversed = stamp < previous_;
  shortened = false;
  previous_ = stamp;
  const Int128 silence = stamp - origin_ - static_cast<Int128>(now_);
  if (silence > static_cast<Int128>(max_gap_)) {
    shortened = true;
    origin_ += silence - static_cast<Int128>(max_gap_);
    now_ += max_gap_;
  } else if (silence >= 0) {
    now_ += static_cast<TimePs>(silence);
  } else if (-silence > static_cast<Int128>(reordering)) {
    origin_ += silence;
  }
  return now_;
}

std::optional<TimePs> at_speed(TimePs time, std::uint64_t times, Speed speed) {
  const Uint128 total = static_cast<Uint128>(time) * times;
  if (total >> 96 != 0) return std::nullopt;
  const Uint128 scaled = total * speed.denominator / speed.numerator;
  if (scaled >= never) return std::nullopt;
  return static_cast<TimePs>(scaled);
}

}  // namespace weft
