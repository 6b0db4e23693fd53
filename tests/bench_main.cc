// SPDX-License-Identifier: BSD-3-Clause
// main() of weft-bench; ./dev bench --benchmark_filter=voq runs a part.
#include <benchmark/benchmark.h>

BENCHMARK_MAIN();
