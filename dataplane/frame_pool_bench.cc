// SPDX-License-Identifier: BSD-3-Clause
// What a frame's memory costs. `depth` frames are held at a time, as queues hold them: past the lcore cache (768) the
// pool's backing store is in the way.
#include <benchmark/benchmark.h>

#include <vector>

#include "dataplane/frame_pool.h"
#include "dataplane/testing/eal_environment.h"

namespace weft {
namespace {

void take_and_free(benchmark::State& state) {
  testing::test_eal();
  FramePool pool("bench", 16'384, 1518);
  std::vector<Frame*> held(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    for (Frame*& frame : held) frame = pool.take(1500);
    for (Frame* const frame : held) free_frame(frame);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(take_and_free)->Name("frame_pool/take_and_free")->ArgName("depth")->Arg(1)->Arg(32)->Arg(512)->Arg(8192);

void flood_copy(benchmark::State& state) {
  testing::test_eal();
  FramePool pool("originals", 16, 1518), copies("copies", 16'384, header_bytes);
  Frame* const original = pool.take(1500);
  for (auto _ : state) free_frame(clone_frame(original, copies));
  free_frame(original);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(flood_copy)->Name("frame_pool/flood_copy");

}  // namespace
}  // namespace weft
