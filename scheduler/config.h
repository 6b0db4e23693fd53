// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Egress side of the scheduled fabric. Defaults are argued in docs/scheduled-fabric.md.
#include <cstdint>

#include "dataplane/time.h"

namespace weft::scheduler {

struct SchedulerConfig {
  std::uint64_t credit_bytes = 2048;
  double speedup = 1.05;
  std::uint64_t egress_buffer_bytes = 0;  // of each (port, class); 0: from rate x grant round trip, see fabric.cc
  TimePs latency = 200_ns;                // egress pipeline: last cell in to output queue
  bool operator==(const SchedulerConfig&) const = default;
};

}  // namespace weft::scheduler
