// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A result in which every field has a value of its own, for tests of what is made of results.
#include "dataplane/results.h"
#include "tools/config.h"

namespace weft::testing {

inline Config sample_config() {
  Config config;
  config.topology.leaves = 2;
  config.topology.spines = 2;
  config.topology.hosts_per_leaf = 2;
  config.topology.host_links.assign(4, LinkParams{Rate{400'000'000'000}, 50'000});
  for (std::uint32_t leaf = 0; leaf < 2; ++leaf)
    for (std::uint32_t spine = 0; spine < 2; ++spine)
      config.topology.fabric_links.push_back(FabricLink{leaf, spine, 0, LinkParams{Rate{400'000'000'000}, 250'000}});
  config.run.workers = 2;
  return config;
}

inline LatencySummary sample_latency(TimePs least) {
  return LatencySummary{100,       least,     least + 1, least + 2,
                        least + 3, least + 4, least + 5, static_cast<double>(least) + 1.5};
}

/// The books balance: 100 offered + 2 replicated = 90 delivered + 4 filtered + 7 dropped + 1 in flight.
inline RunResult sample_result() {
  RunResult r;
  r.fabric = "voq";
  r.seed = 7;
  r.end = 1'000'000'000;
  r.warmup = 200'000'000;
  r.frames.offered = 100, r.frames.offered_bytes = 150'000;
  r.frames.replicated = 2;
  r.frames.delivered = 90, r.frames.delivered_bytes = 135'000;
  r.frames.filter(FilterReason::link_local);
  for (int i = 0; i < 3; ++i) r.frames.filter(FilterReason::same_port);
  for (int i = 0; i < 5; ++i) r.frames.drop(DropReason::cell_lost);
  for (int i = 0; i < 2; ++i) r.frames.drop(DropReason::mtu_exceeded);
  r.in_flight = 1;
  r.balanced = true;
  r.offered_after_warmup = 80, r.offered_bytes_after_warmup = 120'000;
  r.delivered_after_warmup = 70, r.delivered_bytes_after_warmup = 105'000;
  r.latency = sample_latency(1'234'567);
  r.cells = {600, 590, 8, 2, 140'000, 153'600, 300, 11, 12};
  r.voq = {9'000, 18'000, 27'000, 36'000, 3, 4, 5, 6, 7'654'321};
  r.grants = {31, 32, 33, 64'000, 63'000, 1'000, 34, 35, 36, sample_latency(900'000)};
  r.reorder = {23, 2};
  r.egress = {32'768, 30'000};
  r.links = {{"leaf0:p0 in", 4e11, 0.5, 75'000, 0, 1'500, 1'000'001},
             {"leaf1:p0 out", 4e11, 0.45, 70'000, 64, 3'000, 0},
             {"leaf0>spine1", 4e11, 0.25, 38'400, 960, 512, 0, 0.25},
             {"spine1>leaf1", 4e11, 0.75, 38'400, 960, 1'024, 5, 0.75}};
  r.flows = {{0, 2, 60, 90'000, 0, sample_latency(2'000'000), 1'000, 900'000'001},
             {1, 3, 30, 45'000, 1, {}, 2'000, 800'000'000}};
  r.last_delivered = 900'000'001;
  r.latency_curve = {{1'234'567, 1}, {2'000'000, 60}, {2'345'678, 100}};
  r.buffers = {40'000, "leaf1", 1'234.56, "leaf0", 2'345.67};
  r.series = {{500'000'000, "leaf0", 50'000, 40'000, 1, 300, 100, 200, 300, 400, 1},
              {1'000'000'000, "leaf0", 25'000, 20'000, 0, 150, 0, 0, 0, 0, 0}};
  r.link_series = {{500'000'000, {50'000, 40'000, 20'000, 21'000}}, {1'000'000'000, {25'000, 20'000, 10'000, 9'000}}};
  r.clock = ClockResult{1000, 50, 5, sample_latency(3'000'000), 12'000};
  PortResult port;
  port.name = "leaf0:p1", port.device = "net_tap0,iface=\"a\"", port.driver = "net_tap", port.pfc = "neither";
  port.mtu = 1500;
  port.rx_frames = 31, port.rx_bytes = 3100, port.tx_frames = 32, port.tx_bytes = 3200, port.waiting = 2;
  port.completed_checksums = 7, port.pfc_sent = 3, port.pfc_received = 4, port.link_losses = 1;
  port.lost = {11, 12, 13, 14, 15, 16, 17};
  r.ports = {port};
  r.replays = {{"/captures/a \"b\".pcapng", 99, 100, 1, 2, 3, 4, {"record 7: 64 of 1500 bytes captured"}}};
  r.warnings = {"ports were shared by several hosts"};
  r.cost = {2.0, 3.5, 1'000, 5'000};
  return r;
}

}  // namespace weft::testing
