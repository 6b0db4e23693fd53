// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A RunResult as files: results.json, flows.csv, series.csv, links.csv and latency.csv (docs/results.md,
// docs/results-schema.json).
// Byte for byte a function of its arguments: key order is fixed, times are exact to the picosecond.
#include <string>

#include "dataplane/results.h"
#include "tools/config.h"

namespace weft {

inline constexpr int results_schema_version = 1;

std::string results_json(const RunResult& result, const Config& config);
std::string flows_csv(const RunResult& result, const Topology& topology);
std::string series_csv(const RunResult& result);
std::string links_csv(const RunResult& result);
std::string latency_csv(const RunResult& result);

/// Bits a second of `bytes` in `time`; 0 for no time.
double bits_per_s(std::uint64_t bytes, TimePs time);
/// Emulated time that rates and percentiles cover.
TimePs measured_time(const RunResult& result);

}  // namespace weft
