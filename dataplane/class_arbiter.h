// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Which class is served next: strict priority between groups, deficit-weighted round robin between the classes of a
// group. The deficit may be overdrawn by less than one item, which the next round pays back (surplus round robin): no
// look-ahead.
#include <array>
#include <bit>
#include <cstdint>

#include "dataplane/config.h"

namespace weft {

class ClassArbiter {
 public:
  ClassArbiter() = default;
  /// `quantum_bytes` is what a class of weight 1 may take in a round; at least the largest item keeps rounds short.
  ClassArbiter(const ClassesConfig& classes, std::uint32_t quantum_bytes) {
    for (std::uint32_t c = 0; c < traffic_classes; ++c) {
      group_[c] = classes.strict_group[c];
      quantum_[c] = static_cast<std::int64_t>(classes.weight[c]) * quantum_bytes;
    }
  }

  /// `candidates`: a bit for each class that could be served now; not zero.
  std::uint32_t pick(std::uint32_t candidates) {
    if (std::has_single_bit(candidates)) [[likely]]
      return static_cast<std::uint32_t>(std::countr_zero(candidates));
    std::uint32_t highest = 0, mask = 0;
    for (std::uint32_t rest = candidates; rest != 0; rest &= rest - 1) {
      const auto c = static_cast<std::uint32_t>(std::countr_zero(rest));
      if (mask == 0 || group_[c] > highest) {
        highest = group_[c];
        mask = 0;
      }
      if (group_[c] == highest) mask |= 1u << c;
    }
    // A class that had nothing to send does not save up for later.
    for (std::uint32_t c = 0; c < traffic_classes; ++c)
      if ((candidates >> c & 1) == 0 && deficit_[c] > 0) deficit_[c] = 0;
    while ((mask >> turn_ & 1) == 0 || deficit_[turn_] <= 0) {
      turn_ = (turn_ + 1) % traffic_classes;
      if ((mask >> turn_ & 1) != 0) deficit_[turn_] += quantum_[turn_];
    }
    return turn_;
  }
  void charge(std::uint32_t c, std::uint32_t bytes) {
    deficit_[c] -= bytes;
    // A class alone for a long time must not find itself deep in debt when others come.
    if (deficit_[c] < -quantum_[c]) deficit_[c] = -quantum_[c];
  }

 private:
  std::array<std::int64_t, traffic_classes> deficit_{}, quantum_{};
  std::array<std::uint8_t, traffic_classes> group_{};
  std::uint32_t turn_ = 0;
};

}  // namespace weft
