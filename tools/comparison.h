// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Several runs of the same traffic, side by side: what `weft compare` writes as compare.json (docs/compare-schema.json)
// and prints as a table. All of it comes from the runs' own result folders.
#include <filesystem>
#include <string>
#include <vector>

#include "tools/json_text.h"

namespace weft {

inline constexpr int compare_schema_version = 1;

/// One fabric's run as it ended.
struct ComparedRun {
  std::string name;    // "ethernet/spray"
  std::string folder;  // below the comparison's folder
  int exit_code = 0;
  std::string message;  // why it is not 0, one line; else empty
  Json results;         // its results.json; null: it left none
};

/// results.json of a run's folder; null where there is none that can be read.
Json read_results(const std::filesystem::path& folder);

/// `name`: of the configuration. `notes`: for people.
Json comparison_json(const std::string& name, const std::vector<ComparedRun>& runs,
                     const std::vector<std::string>& notes);

/// The figures of one run that a comparison shows, from its results.json.
Json metrics_of(const Json& results);

/// For the terminal: a row for each figure, a column for each fabric. `folder` is named in its last line.
std::string comparison_table(const Json& comparison, const std::string& folder);

/// A figure by name, for tables: {"Latency", "p50", text of each run}. Rows that say nothing in any run are left out.
struct ComparisonRow {
  std::string group, name;
  std::vector<std::string> values;
};
std::vector<ComparisonRow> comparison_rows(const Json& comparison);

}  // namespace weft
