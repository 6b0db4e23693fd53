// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The comparator: a fabric of shared-buffer Ethernet switches, leaf and spine alike. Defaults are what operators and
// the published studies of RoCE fabrics use; each says from where. docs/ethernet-fabric.md argues them.
#include <cstdint>

#include "dataplane/config.h"

namespace weft::ethernet {

enum class LoadBalance : std::uint8_t {
  ecmp,      // by flow, for good
  flowlet,   // by flow, drawn anew after a pause (LetFlow)
  adaptive,  // by flow, after a pause the link that is least loaded
  spray,     // by frame
};
enum class Spray : std::uint8_t { random, round_robin, shortest_queue };
enum class HashFields : std::uint8_t { five_tuple, five_tuple_qp };
enum class WatchdogAction : std::uint8_t { off, drop, forward };

struct HashConfig {
  // The RoCE destination queue pair beside the 5-tuple is what operators of RoCE fabrics hash on (SAI pull request
  // 2144, Meta's RoCE paper). Without it the queue pairs of two hosts that share a UDP source port share a link.
  HashFields fields = HashFields::five_tuple_qp;
  bool shared_seed = false;  // all switches hash alike: tiers polarise
  bool resilient = false;    // a member that leaves moves its own flows only
  bool operator==(const HashConfig&) const = default;
};

struct WatchdogConfig {
  // SONiC's pfcwd defaults: a queue that has stood still for 200 ms is in a storm, over after 200 ms without pause
  // frames, and its frames are dropped meanwhile.
  WatchdogAction action = WatchdogAction::drop;
  TimePs detect = 200_ms, restore = 200_ms;
  bool operator==(const WatchdogConfig&) const = default;
};

struct EthernetConfig {
  std::uint64_t buffer_bytes =
      64u << 20;           // of a switch: what 12.8 to 25.6 Tb/s parts have (Tomahawk 3 to 4: 64 to 113 MB)
  double alpha = 1.0 / 8;  // lossless: a (port, class) may hold alpha x the free pool (Arista 7060 profile, HPCC: 1/8)
  double alpha_lossy = 1.0;  // lossy: an egress queue may hold alpha x the free pool (ConWeave: 1)
  std::uint64_t guaranteed_bytes =
      0;  // of each lossless (ingress port, class), lossy (egress port, class); 0: one longest frame
  std::uint64_t headroom_bytes = 0;  // of each (ingress port, lossless class); 0: the model's worst case, pfc.h
  std::uint64_t xon_offset_bytes =
      3000;  // XON when this far below the threshold again (HPCC: 3 KB; Arista 7060: 2,288 B)
  EcnConfig ecn{400'000, 1'600'000,
                0.2};  // at 100G, in proportion to a port's rate (HPCC's DCQCN set; its scripts scale so, too)
  LoadBalance load_balance = LoadBalance::ecmp;
  Spray spray = Spray::round_robin;
  HashConfig hash;
  TimePs flowlet_idle = 256_us;  // adaptive routing of a switch vendor: flowlets end after 256 µs of silence
  TimePs load_interval =
      16_us;  // adaptive: how far back a link's load is looked at (the same vendor: sampled every 16 µs)
  std::uint32_t flowlet_entries = 4096;  // flowlet table of a switch; flows that collide in it share a fate
  bool cut_through = false;
  TimePs latency =
      400_ns;  // pipeline, last bit (cut-through: header) in to buffer; as the leaf of the scheduled fabric, 2 x 200 ns
  TimePs pfc_reaction = 0;    // of a switch to a pause frame; 0: peer response time of SONiC's headroom tables, by rate
  TimePs detection = 100_us;  // from a link's failure to its leaving the members of both ends and of the leaves beyond
  WatchdogConfig watchdog;
  bool operator==(const EthernetConfig&) const = default;
};

}  // namespace weft::ethernet
