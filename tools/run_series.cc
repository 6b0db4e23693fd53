// SPDX-License-Identifier: BSD-3-Clause
#include "tools/run_series.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string_view>

namespace weft {
namespace {

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> cells;
  std::size_t at = 0;
  for (;;) {
    const std::size_t comma = line.find(',', at);
    cells.push_back(line.substr(at, comma - at));
    if (comma == std::string::npos) return cells;
    at = comma + 1;
  }
}

double number(const std::string& text) { return std::strtod(text.c_str(), nullptr); }

/// Calls row(cells) for each line behind the header, whose names it returns.
template <typename Row>
std::vector<std::string> read_csv(const std::filesystem::path& path, Row&& row) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return {};
  const std::vector<std::string> names = split(line);
  while (std::getline(file, line)) {
    const std::vector<std::string> cells = split(line);
    if (cells.size() == names.size()) row(names, cells);
  }
  return names;
}

std::string group_of(const std::string& link) {
  const std::size_t arrow = link.find('>');
  if (link.starts_with("leaf")) return link.substr(0, arrow) + " up";
  const std::string to = link.substr(arrow + 1);
  return to.substr(0, to.find('.')) + " down";
}

/// Adds `amount`, spread evenly over [from, to), to steps of `step`.
void spread(std::vector<double>& bins, double from, double to, double step, double amount) {
  if (to <= from) return;
  const auto last = static_cast<double>(bins.size());
  for (double bin = std::floor(from / step); bin < last && bin * step < to; ++bin) {
    const double part = std::min(to, (bin + 1) * step) - std::max(from, bin * step);
    if (part > 0) bins[static_cast<std::size_t>(bin)] += amount * part / (to - from);
  }
}

}  // namespace

RunSeries read_series(const std::filesystem::path& folder) {
  using Cells = std::vector<std::string>;
  RunSeries series;
  read_csv(folder / "latency.csv",
           [&](const Cells&, const Cells& cells) { series.latency.emplace_back(number(cells[0]), number(cells[1])); });
  const double frames = series.latency.empty() ? 1 : series.latency.back().second;
  for (auto& point : series.latency) point.second /= frames;

  read_csv(folder / "series.csv", [&](const Cells& names, const Cells& cells) {
    const double time = number(cells[0]);
    if (series.times_us.empty() || series.times_us.back() != time) {
      series.times_us.push_back(time);
      series.held_bytes.push_back(0);
    }
    for (std::size_t i = 0; i < names.size(); ++i)  // deep_bytes are part of voq_bytes
      if (names[i] == "voq_bytes" || names[i] == "fabric_queue_bytes" || names[i] == "egress_bytes")
        series.held_bytes.back() += number(cells[i]);
  });

  series.links = read_csv(folder / "links.csv", [&](const Cells&, const Cells& cells) {
    series.link_times_us.push_back(number(cells[0]));
    std::vector<double>& bytes = series.link_bytes.emplace_back();
    for (std::size_t i = 1; i < cells.size(); ++i) bytes.push_back(number(cells[i]));
  });
  if (!series.links.empty()) series.links.erase(series.links.begin());
  return series;
}

LinkLoad link_load(const RunSeries& series, const Json& results, double end_us, std::size_t bins) {
  std::map<std::string, double> rates;
  for (const Json& link : results["links"]) rates[link["name"]] = link["rate_bps"].get<double>();
  std::vector<std::size_t> order;
  for (const bool up : {true, false}) {
    std::vector<std::size_t> some;
    for (std::size_t i = 0; i < series.links.size(); ++i)
      if (series.links[i].find('>') != std::string::npos && series.links[i].starts_with("leaf") == up)
        some.push_back(i);
    // links.csv goes leaf by leaf, so that links down to a leaf are together already.
    order.insert(order.end(), some.begin(), some.end());
  }
  LinkLoad load;
  const double step = end_us / static_cast<double>(bins);
  for (const std::size_t link : order) {
    load.links.push_back(series.links[link]);
    load.groups.push_back(group_of(series.links[link]));
    std::vector<double>& row = load.load.emplace_back(bins, 0.0);
    double before = 0;
    for (std::size_t sample = 0; sample < series.link_times_us.size(); ++sample) {
      spread(row, before, series.link_times_us[sample], step, series.link_bytes[sample][link]);
      before = series.link_times_us[sample];
    }
    const double possible = rates[series.links[link]] / 8 * step * 1e-6;
    for (double& value : row) value = possible > 0 ? value / possible : 0;
  }
  return load;
}

}  // namespace weft
