// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What happens to one direction of a fabric link in a run, by time; nothing on most links. Judged at the receiving end.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/config.h"
#include "dataplane/rng.h"
#include "dataplane/time.h"

namespace weft {

class LinkFate {
 public:
  enum class Outcome : std::uint8_t { arrives, link_down, corrupted };

  LinkFate() = default;
  /// `faults` of all links; those of `link` count. Data and control have a stream of chance each.
  LinkFate(std::span<const FaultConfig> faults, std::uint32_t link, const LinkParams& params, Rng data_chance,
           Rng control_chance)
      : delay_(params.delay), chance_{data_chance, control_chance} {
    std::vector<FaultConfig> mine;
    for (const FaultConfig& fault : faults)
      if (fault.link == link) mine.push_back(fault);
    if (mine.empty()) return;
    std::stable_sort(mine.begin(), mine.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
    changes_.push_back({0, false, 0, 0, WireClock(params.rate)});
    for (const FaultConfig& fault : mine) {
      Change next = changes_.back();
      next.at = fault.at;
      switch (fault.kind) {
        case FaultKind::down:
          next.down = true;
          break;
        case FaultKind::up:
          next.down = false;
          break;
        case FaultKind::data_loss:
          next.data_loss = threshold(fault.probability);
          break;
        case FaultKind::control_loss:
          next.control_loss = threshold(fault.probability);
          break;
        case FaultKind::rate:
          next.clock.set_rate(fault.rate);
          break;
      }
      changes_.push_back(next);
    }
  }

  [[nodiscard]] bool harmless() const { return changes_.empty(); }

  /// What becomes of `bytes` whose last bit arrives at `arrival`: lost if the link was down at some time from their
  /// first bit to their last, or by chance. Called in order of arrival for each kind, which makes the chance
  /// repeatable.
  Outcome of(TimePs arrival, std::uint32_t bytes, bool control) {
    std::size_t i = changes_.size() - 1;
    while (changes_[i].at > arrival) --i;
    const std::uint64_t chance = control ? changes_[i].control_loss : changes_[i].data_loss;
    const TimePs flight = delay_ + changes_[i].clock.time_of(bytes);
    const TimePs start = arrival > flight ? arrival - flight : 0;
    for (;; --i) {
      if (changes_[i].down) return Outcome::link_down;
      if (changes_[i].at <= start) break;  // up since before the first bit
    }
    return chance != 0 && chance_[control ? 1 : 0].next() < chance ? Outcome::corrupted : Outcome::arrives;
  }

 private:
  struct Change {  // holds from `at` until the next one
    TimePs at;
    bool down;
    std::uint64_t data_loss, control_loss;  // probability, times 2^64
    WireClock clock;
  };
  static std::uint64_t threshold(double probability) {
    return probability >= 1 ? ~std::uint64_t{0} : static_cast<std::uint64_t>(std::ldexp(probability, 64));
  }

  std::vector<Change> changes_;
  TimePs delay_ = 0;
  Rng chance_[2]{Rng(0), Rng(0)};
};

}  // namespace weft
