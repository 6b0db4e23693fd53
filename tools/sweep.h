// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What a sweep runs, and what it has run: the cross product of the values of some keys, and of fabrics. Each
// combination is a run with a result folder of its own, and a row of sweep.csv (docs/compare.md).
#include <filesystem>
#include <string>
#include <vector>

#include "tools/json_text.h"

namespace weft {

struct SweepKey {
  std::string key;                  // "ethernet.alpha"
  std::vector<std::string> values;  // "1/8", "1"
};

/// `voq.sram=8MiB,16MiB`. Commas within brackets, braces or quotes belong to a value. Throws UsageError.
SweepKey parse_sweep_key(const std::string& text);

struct SweepRun {
  std::string fabric;                  // "ethernet/spray"
  std::vector<std::string> values;     // [key]
  std::vector<std::string> overrides;  // as of --set
  std::string folder;                  // "ethernet-spray_alpha-1_8-3f2a9c41": readable, then a digest of what is run
};

/// All combinations, fabrics slowest and the last key fastest, each checked. `fabrics`: as of --fabrics; empty: as
/// configured. `more`: what else, beside the config, decides the results. Throws UsageError for a key that is there
/// twice or more than 100,000 runs, ConfigError for what a run would refuse.
std::vector<SweepRun> plan_sweep(const std::string& config, const std::vector<SweepKey>& keys,
                                 const std::vector<std::string>& fabrics, const std::string& more);

/// results.json of a run that is finished and can be trusted; null: there is none, or half of one.
Json finished_results(const std::filesystem::path& folder);

// Lines of sweep.csv. A run that failed has a message and no results.
std::string sweep_header(const std::vector<SweepKey>& keys);
std::string sweep_row(const SweepRun& run, const Json& results, const std::string& message);

}  // namespace weft
