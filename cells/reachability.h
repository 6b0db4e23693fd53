// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Who can be reached over what. Both ends of a link send a reachability message every interval; a link is taken for
// dead when `misses` intervals have been silent, and for alive at the first message after. A spine's messages say which
// leaves it reaches and at what rate, so a leaf learns of a dead link beyond the spine with the next message.
//
// The messages have fixed times, and faults are known by time, so what each node learns and when follows in closed
// form. It is reckoned once, and silence costs no events. The messages' wire time is charged by the transmitters.
#include <cstdint>
#include <span>
#include <vector>

#include "cells/cell_switch.h"
#include "cells/config.h"
#include "dataplane/config.h"
#include "dataplane/topology.h"

namespace weft::cells {

/// Something that a leaf learns.
struct ReachabilityEvent {
  enum class What : std::uint8_t {
    lose_uplink,    // its own link is dead
    regain_uplink,  // and back
    uplink_rate,    // its own link runs at `rate` now
    beyond,         // the spine reaches `leaf` at `rate` in all (0: not at all)
  };
  TimePs at;
  What what;
  std::uint32_t spine, parallel;  // beyond: parallel is unused
  std::uint32_t leaf;             // beyond
  Rate rate;
};

struct ReachabilityPlan {
  std::vector<std::vector<ReachabilityEvent>> leaves;  // [leaf], in time order
  std::vector<std::vector<DownlinkEvent>> spines;      // [spine], in time order
  std::vector<TimePs> times;                           // of all of them
};

ReachabilityPlan plan_reachability(const Topology& topology, const CellConfig& config,
                                   std::span<const FaultConfig> faults);

/// What one leaf believes.
class ReachabilityTable {
 public:
  explicit ReachabilityTable(const Topology& topology, std::uint32_t leaf);
  void apply(const ReachabilityEvent& event);
  /// Rates towards `destination` by uplink (spine * parallel + parallel link), 0 where it cannot be reached that way.
  void rates_to(std::uint32_t destination, std::vector<std::uint64_t>& rates) const;
  [[nodiscard]] std::uint32_t live_uplinks() const;

 private:
  std::uint32_t leaves_, spines_, parallel_;
  std::vector<std::uint8_t> alive_;      // [uplink]
  std::vector<std::uint64_t> own_rate_;  // [uplink]
  std::vector<std::uint64_t> beyond_;    // [spine * leaves + leaf] bits a second
};

}  // namespace weft::cells
