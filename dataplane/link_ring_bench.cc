// SPDX-License-Identifier: BSD-3-Clause
// What a descriptor costs on its way through a link, both ends on one core.
#include <benchmark/benchmark.h>

#include "cells/cell.h"
#include "dataplane/link_ring.h"

namespace weft {
namespace {

void LinkRing_Window(benchmark::State& state) {
  const auto cells = static_cast<std::uint32_t>(state.range(0));  // a window's worth: 46 cells are 250 ns at 400G
  LinkRing<cells::Cell> ring;
  TimePs at = 0;
  for (auto _ : state) {
    for (std::uint32_t i = 0; i < cells; ++i) ring.append().at = at++;
    ring.commit_while([](const cells::Cell&) { return true; });
    ring.publish();
    ring.refresh();
    std::uint64_t sum = 0;
    ring.take_while([&](const cells::Cell& cell) {
      sum += cell.at;
      return true;
    });
    benchmark::DoNotOptimize(sum);
    ring.retire();
  }
  state.SetItemsProcessed(state.iterations() * cells);
}
BENCHMARK(LinkRing_Window)->Arg(4)->Arg(46)->Arg(512);

/// A queue that stays long: memory goes round in a circle of that size.
void LinkRing_LongQueue(benchmark::State& state) {
  LinkRing<cells::Cell> ring;
  for (std::int64_t i = 0; i < state.range(0); ++i) ring.append().at = 0;
  for (auto _ : state) {
    for (int i = 0; i < 46; ++i) {
      ring.append().at = 1;
      benchmark::DoNotOptimize(ring.front().at);
      ring.commit();
    }
    ring.publish();
    ring.refresh();
    for (; !ring.empty(); ring.take()) benchmark::DoNotOptimize(ring.peek().at);
    ring.retire();
  }
  state.SetItemsProcessed(state.iterations() * 46);
}
BENCHMARK(LinkRing_LongQueue)->Arg(1'000)->Arg(100'000);

}  // namespace
}  // namespace weft
