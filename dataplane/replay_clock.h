// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// From the stamps of a capture to emulated time: whole picoseconds throughout, so that nothing drifts over loops.
#include <cstdint>
#include <optional>

#include "dataplane/time.h"

namespace weft {

/// A speed as a fraction. 0.1 means a tenth, and not the binary number beside it.
struct Speed {
  std::uint64_t numerator = 1, denominator = 1;
  friend constexpr bool operator==(Speed, Speed) = default;
};

/// The simplest fraction (terms below 2^31) that rounds to `speed`, or the nearest such fraction. nullopt: not in 1e-9
/// to 1e9.
std::optional<Speed> speed_of(double speed);

/// Puts stamps, one after the other, on one time axis that starts at 0 and never runs backwards.
class StampUnroller {
 public:
  explicit StampUnroller(TimePs max_gap) : max_gap_(max_gap) {}

  /// Time of the next frame. A silence longer than max_gap becomes max_gap, and all that follows moves up.
  /// A stamp before the last one means one of two things. Up to `reordering` back, records were written out of order
  /// (capture queues do that): the frame goes right after the one before it, and later frames keep their places.
  /// Further back, the recording clock was set: the frame goes right after the one before it, and time runs on from
  /// there.
  TimePs next(std::int64_t stamp_ns, std::uint16_t stamp_ps);

  static constexpr TimePs reordering = 1'000'000'000'000;  // 1 s

  bool reversed = false;   // of the last stamp: earlier than the one before it
  bool shortened = false;  // of the last stamp: its silence was longer than max_gap

 private:
  __extension__ using Int128 = __int128;
  TimePs max_gap_;
  bool started_ = false;
  Int128 origin_ = 0;    // the stamp that is time 0, in ps since 1970
  Int128 previous_ = 0;  // stamp
  TimePs now_ = 0;
};

/// time / speed, rounded down; nullopt past the end of emulated time (213 days).
std::optional<TimePs> at_speed(TimePs time, std::uint64_t times, Speed speed);

}  // namespace weft
