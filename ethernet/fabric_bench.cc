// SPDX-License-Identifier: BSD-3-Clause
// The Ethernet fabric on one core: 8 leaves, 8 spines and 64 hosts at 400G, a permutation at 95% load of 1500-byte
// frames, with PFC, ECN and the shared buffer at work. Items are frame-hops: a frame that a switch forwarded or
// dropped. Building the fabric is not timed.
//
// Hashed, a third of the links carry two flows and more: queues fill, lossless hosts are paused, lossy frames dropped,
// and what waits outgrows the cache. Sprayed, queues stay short.
#include <benchmark/benchmark.h>

#include <array>

#include "dataplane/addresses.h"
#include "dataplane/constant.h"
#include "dataplane/frame_pool.h"
#include "dataplane/kernel.h"
#include "dataplane/testing/eal_environment.h"
#include "ethernet/fabric.h"

namespace weft::ethernet {
namespace {

constexpr std::uint32_t frame_bytes = 1'500, frames_inside = 150'000;

FabricConfig fabric_of(LoadBalance balance) {
  constexpr Rate rate{400'000'000'000};
  FabricConfig config;
  Topology& t = config.topology;
  t.leaves = 8, t.spines = 8, t.hosts_per_leaf = 8;
  t.host_links.assign(t.host_ports(), {rate, 50_ns});
  for (std::uint32_t leaf = 0; leaf < t.leaves; ++leaf)
    for (std::uint32_t spine = 0; spine < t.spines; ++spine) t.fabric_links.push_back({leaf, spine, 0, {rate, 250_ns}});
  config.ethernet.buffer_bytes = 12u << 20;
  config.ethernet.load_balance = balance;
  return config;
}

void run_permutation(benchmark::State& state, LoadBalance balance, std::uint8_t traffic_class) {
  testing::test_eal();
  std::uint64_t hops = 0, events = 0;
  for (auto _ : state) {
    state.PauseTiming();
    RunResult result;
    {
      FramePool pool("bench", frames_inside, frame_bytes);  // a new one: what is in flight at the end is not given back
      const FabricConfig config = fabric_of(balance);
      ConstantConfig traffic;
      traffic.pattern = Pattern::permutation;
      traffic.load = 0.95;
      traffic.frames = {frame_bytes};
      traffic.traffic_class = traffic_class;
      Fabric fabric(config, modelled_hosts(config.topology), &pool);
      for (PlacedSource& placed :
           make_constant_sources(std::array{traffic}, config.topology, config.forwarding, config.classes, config.seed))
        fabric.add_source(placed.port, std::move(placed.source), &pool);
      KernelConfig kernel_config;
      kernel_config.window = fabric.window();
      kernel_config.duration = 400_us;
      Kernel kernel(kernel_config, fabric.nodes(), fabric.placement(1), 1, nullptr, nullptr);
      state.ResumeTiming();
      kernel.work(0);
      state.PauseTiming();
      fabric.collect(result, kernel.end());
    }
    if (!result.balanced || result.frames.no_frame_memory != 0) state.SkipWithError("the result cannot be trusted");
    hops += result.ethernet.frame_hops;
    events += result.cost.events;
    state.ResumeTiming();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(hops));
  state.counters["events/hop"] = static_cast<double>(events) / static_cast<double>(hops);
}

void Ethernet_EcmpLossless(benchmark::State& state) { run_permutation(state, LoadBalance::ecmp, 3); }
BENCHMARK(Ethernet_EcmpLossless)->Unit(benchmark::kMillisecond)->MinTime(2);
void Ethernet_EcmpLossy(benchmark::State& state) { run_permutation(state, LoadBalance::ecmp, 0); }
BENCHMARK(Ethernet_EcmpLossy)->Unit(benchmark::kMillisecond)->MinTime(2);
void Ethernet_SprayLossless(benchmark::State& state) { run_permutation(state, LoadBalance::spray, 3); }
BENCHMARK(Ethernet_SprayLossless)->Unit(benchmark::kMillisecond)->MinTime(2);

}  // namespace
}  // namespace weft::ethernet
