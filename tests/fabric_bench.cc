// SPDX-License-Identifier: BSD-3-Clause
// A whole fabric on one core: configs/permutation.yaml's 8 leaves, 10 spines and 64 hosts at 95% load.
// Items are delivered cells. Building the fabric is not timed.
#include <benchmark/benchmark.h>

#include <array>
#include <memory>

#include "dataplane/addresses.h"
#include "dataplane/constant.h"
#include "dataplane/frame_pool.h"
#include "dataplane/kernel.h"
#include "dataplane/testing/eal_environment.h"
#include "voq/fabric.h"

namespace weft {
namespace {

constexpr std::uint32_t frame_bytes = 1'500, frames_inside = 24'000;

voq::FabricConfig fabric_of(std::uint32_t spines) {
  constexpr Rate rate{400'000'000'000};
  voq::FabricConfig config;
  Topology& t = config.topology;
  t.leaves = 8, t.spines = spines, t.hosts_per_leaf = 8;
  t.host_links.assign(t.host_ports(), {rate, 50_ns});
  for (std::uint32_t leaf = 0; leaf < t.leaves; ++leaf)
    for (std::uint32_t spine = 0; spine < t.spines; ++spine) t.fabric_links.push_back({leaf, spine, 0, {rate, 250_ns}});
  config.voq.request_bytes = 4'096;
  config.scheduler.credit_bytes = 4'096;
  return config;
}

void run_permutation(benchmark::State& state, std::uint32_t spines, TimePs duration) {
  testing::test_eal();
  std::uint64_t cells = 0, frames = 0, events = 0;
  for (auto _ : state) {
    state.PauseTiming();
    RunResult result;
    {
      FramePool pool("bench", frames_inside, frame_bytes);  // a new one: what is in flight at the end is not given back
      const voq::FabricConfig config = fabric_of(spines);
      ConstantConfig traffic;
      traffic.pattern = Pattern::permutation;
      traffic.load = 0.95;
      traffic.frames = {frame_bytes};
      voq::Fabric fabric(config, modelled_hosts(config.topology), &pool);
      for (PlacedSource& placed :
           make_constant_sources(std::array{traffic}, config.topology, config.forwarding, config.classes, config.seed))
        fabric.add_source(placed.port, std::move(placed.source), &pool);
      KernelConfig kernel_config;
      kernel_config.window = fabric.window();
      kernel_config.duration = duration;
      kernel_config.fault_times = fabric.fault_times();
      Kernel kernel(kernel_config, fabric.nodes(), fabric.placement(1), 1, nullptr, nullptr);
      state.ResumeTiming();
      kernel.work(0);
      state.PauseTiming();
      fabric.collect(result, kernel.end());
    }
    if (!result.balanced) state.SkipWithError("the books do not balance");
    cells += result.cells.delivered;
    frames += result.frames.delivered;
    events += result.cost.events;
    state.ResumeTiming();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(cells));
  state.counters["frames/s"] = benchmark::Counter(static_cast<double>(frames), benchmark::Counter::kIsRate);
  state.counters["events/cell"] = static_cast<double>(events) / static_cast<double>(cells);
}

void Fabric_Permutation(benchmark::State& state) { run_permutation(state, 10, 200_us); }
BENCHMARK(Fabric_Permutation)->Unit(benchmark::kMillisecond)->MinTime(3);

}  // namespace
}  // namespace weft
