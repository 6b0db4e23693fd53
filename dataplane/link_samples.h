// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// RunResult::link_series, put together link by link in the order of RunResult::links. Nodes note what each link had
// carried in all at each sample; the result holds what it carried since the sample before.
#include <cstdint>
#include <vector>

#include "dataplane/results.h"

namespace weft {

/// The times of the samples, which all nodes share: those of any node's rows.
inline void begin_link_samples(RunResult& result, const std::vector<SeriesRow>& node) {
  result.link_series.clear();
  for (const SeriesRow& row : node) result.link_series.push_back({row.at, {}});
}

/// The next link; `carried(s)`: bytes from the start of the run to sample s.
template <typename Carried>
void add_link_samples(RunResult& result, Carried&& carried) {
  std::uint64_t before = 0;
  for (std::size_t s = 0; s < result.link_series.size(); ++s) {
    const std::uint64_t now = carried(s);
    result.link_series[s].wire_bytes.push_back(now - before);
    before = now;
  }
}

}  // namespace weft
