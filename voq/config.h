// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Ingress side of the scheduled fabric. Defaults are argued in docs/scheduled-fabric.md.
#include <cstdint>

#include "dataplane/config.h"

namespace weft::voq {

struct VoqConfig {
  TimePs latency = 200_ns;                          // ingress pipeline: last bit in to admission
  std::uint64_t sram_bytes = 32u << 20;             // on-chip buffer of a leaf
  std::uint64_t deep_bytes = 8ull << 30;            // external buffer of a leaf; 0: none
  std::uint64_t deep_threshold_bytes = 256u << 10;  // a deeper VOQ moves to the external buffer
  Rate deep_rate{0};  // external memory, reads and writes together; 0: twice the sum of the leaf's host links
  TimePs deep_latency = 400_ns;  // of a read
  std::uint64_t request_bytes = 2048;
  TimePs request_delay = 200_ns;
  double alpha = 1.0;                 // lossy: a VOQ may hold alpha x the free buffer
  std::uint64_t voq_limit_bytes = 0;  // lossy: hard limit of one VOQ; 0: none
  std::uint64_t xoff_bytes = 0;       // lossless: per (ingress port, class); 0: by default share, see pfc.h
  std::uint64_t xon_bytes = 0;        // 0: half of xoff
  std::uint64_t headroom_bytes = 0;   // 0: by the formula in pfc.h
  TimePs refresh = 50_us;             // outstanding requests, grants and returns are said again after this
  TimePs credit_watchdog = 500_ms;    // credit held unused for this long is returned (SAI default)
  EcnConfig ecn;
  bool force_fabric = false;   // traffic between hosts of one leaf takes the cells as well
  std::uint32_t max_voqs = 0;  // of one leaf; 0: as many as the topology can ask for
  bool operator==(const VoqConfig&) const = default;
};

}  // namespace weft::voq
