// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A comparison as report.html: one file that needs nothing else, neither to be made nor to be opened. Below each plot a
// sentence says what it shows in this case, with its figures.
#include <string>
#include <vector>

#include "tools/comparison.h"
#include "tools/run_series.h"

namespace weft {

struct ReportPlot {
  std::string name;      // of its file: "latency"
  std::string heading;   // "Latency"
  std::string sentence;  // plain text
  std::string wide, narrow;
};

/// `runs` and `series` in the order of `comparison["runs"]`. Plots that have nothing to show are left out.
std::vector<ReportPlot> report_plots(const Json& comparison, const std::vector<ComparedRun>& runs,
                                     const std::vector<RunSeries>& series);

std::string report_html(const Json& comparison, const std::vector<ReportPlot>& plots);

}  // namespace weft
