// SPDX-License-Identifier: BSD-3-Clause
// One turn of the request-grant loop for a 4 KiB credit: frames into a VOQ, request, grant, frames out, arrival and
// departure. No cells.
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "cells/reassembler.h"
#include "cells/uplinks.h"
#include "scheduler/egress_scheduler.h"
#include "voq/voq.h"

namespace weft::scheduler {
namespace {

constexpr std::uint32_t frame_bytes = 1'500, frames_a_turn = 3;

void EgressScheduler_CreditLoop(benchmark::State& state) {
  const auto voqs = static_cast<std::uint32_t>(state.range(0));  // that ask one port in turn
  Topology topology;
  topology.leaves = voqs + 1, topology.spines = 1, topology.hosts_per_leaf = 8;
  topology.host_links.assign(topology.host_ports(), {Rate{400'000'000'000}, 50_ns});
  for (std::uint32_t l = 0; l < topology.leaves; ++l)
    topology.fabric_links.push_back({l, 0, 0, {Rate{400'000'000'000}, 250_ns}});
  SchedulerConfig config;
  config.credit_bytes = 4'096, config.egress_buffer_bytes = 1 << 20;
  const ClassesConfig classes;
  const cells::CellConfig cell_config;
  cells::CellLink link;
  cells::TransmitterConfig transmitter;
  transmitter.rate = Rate{400'000'000'000};
  cells::Uplinks uplinks(topology, 0, cell_config, true, {{&link, transmitter}}, 1, nullptr);
  const cells::Reassembler reassembler(topology.leaves * 64, 1'024, 100_us);
  EgressScheduler scheduler(topology, 0, config, classes, 50_us, uplinks, reassembler);

  std::vector<std::unique_ptr<voq::VoqTable>> tables;
  for (std::uint32_t v = 0; v < voqs; ++v) tables.push_back(std::make_unique<voq::VoqTable>(1, 64, 64));
  Frame frame{};
  constexpr std::uint16_t stream_number = 3;
  TimePs now = 0;
  std::uint32_t turn = 0;
  for (auto _ : state) {
    const auto source = static_cast<std::uint16_t>(turn + 1);
    voq::Voq& voq = *tables[turn]->get(0, stream_number);
    for (std::uint32_t i = 0; i < frames_a_turn; ++i) {
      voq.frames.push({&frame, frame_bytes, 0, false});
      voq.enqueued += frame_bytes + ethernet_overhead_bytes;
    }
    voq.requested = voq.enqueued;
    cells::ControlCell request{};
    request.source = source, request.stream = stream_number, request.longest = frame_bytes + 24,
    request.total = voq.requested;
    scheduler.request(request, now);
    while (scheduler.next_grant(0) != never) {
      now = std::max(now, scheduler.next_grant(0));
      scheduler.grant(0, now);
    }
    while (link.control.queued() != 0) {
      voq.granted = std::max(voq.granted, link.control.front().total);
      link.control.commit();
    }
    link.control.publish();
    link.control.refresh();
    while (!link.control.empty()) link.control.take();
    link.control.retire();
    while (voq.balance() > 0 && !voq.frames.empty()) {
      const std::uint32_t bytes = voq.frames.front().length + ethernet_overhead_bytes;
      voq.frames.pop();
      voq.sent += bytes;
      const std::uint32_t entry = scheduler.entry_number(source, stream_number);
      scheduler.arrived(entry, bytes, now);
      scheduler.departed(entry, bytes, now);
    }
    turn = turn + 1 == voqs ? 0 : turn + 1;
  }
  state.SetItemsProcessed(state.iterations() * frames_a_turn);  // frames
}
BENCHMARK(EgressScheduler_CreditLoop)->Arg(1)->Arg(64);

}  // namespace
}  // namespace weft::scheduler
