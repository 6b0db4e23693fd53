// SPDX-License-Identifier: BSD-3-Clause
// What a cell costs at the reassembly: in order, and sprayed over links whose delays differ by up to so many cells.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <vector>

#include "cells/reassembler.h"
#include "dataplane/rng.h"

namespace weft::cells {
namespace {

constexpr std::uint32_t cells_a_round = 4'096;

void Reassembler_Spray(benchmark::State& state) {
  const auto reach = static_cast<std::uint64_t>(state.range(0));
  Rng random = stream(1, 0, 0);
  std::vector<std::pair<std::uint64_t, std::uint32_t>> keys(cells_a_round);
  for (std::uint32_t i = 0; i < cells_a_round; ++i) keys[i] = {i + random.below(reach), i};
  std::sort(keys.begin(), keys.end());
  Frame frame{};
  Reassembler reassembler(64, 1'024, 100_us);
  std::uint32_t base = 0;
  std::uint64_t released = 0;
  for (auto _ : state) {
    for (const auto& [key, i] : keys) {
      Cell cell{};
      cell.first = &frame;
      cell.sequence = base + i;
      cell.ending = i % 6 == 5;  // 1500-byte frames
      reassembler.arrive(7, cell, 0, [&](Frame*, bool whole) { released += whole; });
    }
    base += cells_a_round;
  }
  benchmark::DoNotOptimize(released);
  state.SetItemsProcessed(state.iterations() * cells_a_round);
}
BENCHMARK(Reassembler_Spray)->Name("Reassembler_InOrder")->Arg(1);
BENCHMARK(Reassembler_Spray)->Arg(10)->Arg(100);

}  // namespace
}  // namespace weft::cells
