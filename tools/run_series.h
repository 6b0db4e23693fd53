// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What a run's folder says over time and over latencies, read back for a report: series.csv, links.csv, latency.csv.
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tools/json_text.h"

namespace weft {

struct RunSeries {
  std::vector<std::pair<double, double>> latency;  // (ns, share of frames that took no longer)
  std::vector<double> times_us;                    // of samples
  std::vector<double> held_bytes;                  // [sample]: in all switches, queues of fabric links included
  std::vector<double> link_times_us;               // of samples of links
  std::vector<std::string> links;
  std::vector<std::vector<double>> link_bytes;  // [sample][link]: since the sample before
};

/// What is missing or cannot be read stays empty.
RunSeries read_series(const std::filesystem::path& folder);

/// Load of fabric links over time, in `bins` equal steps of [0, end_us]: busy share of each link. A sample that lies
/// across a step's edge is divided.
struct LinkLoad {
  std::vector<std::string> links;         // up by leaf, then down by leaf
  std::vector<std::string> groups;        // "leaf0 up"
  std::vector<std::vector<double>> load;  // [link][bin]
};
LinkLoad link_load(const RunSeries& series, const Json& results, double end_us, std::size_t bins);

}  // namespace weft
