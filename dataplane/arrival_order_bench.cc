// SPDX-License-Identifier: BSD-3-Clause
// What it costs to put a window's arrivals in order: links of evenly spaced cells, as a busy leaf sees them; and
// std::sort beside it.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <vector>

#include "dataplane/arrival_order.h"
#include "dataplane/rng.h"

namespace weft {
namespace {

constexpr TimePs window = 250_ns, cell_time = 5'440;

/// Many windows, so that no branch predictor learns one by heart; all of the same size.
std::vector<std::vector<TimePs>> arrivals(std::int64_t links) {
  Rng random = stream(1, 0, 0);
  std::vector<std::vector<TimePs>> windows(64);
  for (std::vector<TimePs>& times : windows)
    for (std::int64_t link = 0; link < links; ++link) {
      const TimePs first = random.below(cell_time);
      for (TimePs n = 0; n < window / cell_time; ++n) times.push_back(first + n * cell_time);
    }
  return windows;
}

void ArrivalOrder_Window(benchmark::State& state) {
  const std::vector<std::vector<TimePs>> windows = arrivals(state.range(0));
  std::size_t next = 0;
  ArrivalOrder order;
  for (auto _ : state) {
    const std::vector<TimePs>& times = windows[next++ % windows.size()];
    order.begin(0, window);
    for (const TimePs at : times) order.add(at, &order);
    order.sort();
    for (std::uint32_t i = 0; i < order.size(); ++i) benchmark::DoNotOptimize(order.time(i));
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(windows[0].size()));
}
BENCHMARK(ArrivalOrder_Window)->Arg(1)->Arg(10)->Arg(64);

void ArrivalOrder_StdSort(benchmark::State& state) {
  const std::vector<std::vector<TimePs>> windows = arrivals(state.range(0));
  std::size_t next = 0;
  std::vector<TimePs> keys;
  for (auto _ : state) {
    keys = windows[next++ % windows.size()];
    std::sort(keys.begin(), keys.end());
    benchmark::DoNotOptimize(keys.data());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(windows[0].size()));
}
BENCHMARK(ArrivalOrder_StdSort)->Arg(10);

}  // namespace
}  // namespace weft
