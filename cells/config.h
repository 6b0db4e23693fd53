// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The cell fabric. Defaults are argued in docs/scheduled-fabric.md.
#include <cstdint>

#include "dataplane/time.h"

namespace weft::cells {

struct CellConfig {
  std::uint32_t payload_bytes = 256;
  std::uint32_t header_bytes = 16;
  std::uint32_t control_bytes = 32;       // a request, grant or return on the wire, header included
  TimePs spine_latency = 100_ns;          // cell switch: last bit in to output queue
  std::uint32_t reorder_window = 1024;    // cells of one (source leaf, VOQ) that may be outstanding
  TimePs timeout = 100_us;                // a cell that is this late is given up
  std::uint64_t mark_bytes = 0;           // a longer fabric queue sets the congestion bit; 0: 32 cells
  std::uint64_t hold_back_bytes = 0;      // a spine input that queues more holds its upstream back; 0: 64 KiB
  TimePs reachability_interval = 10_us;   // of the messages on each link direction
  std::uint32_t reachability_misses = 3;  // a link is dead after so many silent intervals
  std::uint32_t reachability_bytes = 32;  // wire cost of a message
  bool operator==(const CellConfig&) const = default;
};

}  // namespace weft::cells
