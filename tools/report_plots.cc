// SPDX-License-Identifier: BSD-3-Clause
// The plots of a comparison, and what each of them shows in words.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "tools/compare_report.h"
#include "tools/svg_plot.h"
#include "tools/text.h"

namespace weft {
namespace {

constexpr double wide = 860, narrow = 350;
constexpr std::size_t bins = 150;

/// The runs that left results, with their place among all, which is their colour.
struct Shown {
  std::size_t series;
  std::string name;
  const Json* metrics;
  const Json* results;
  const RunSeries* over_time;
};

std::string nanoseconds(double ns) { return duration_text(static_cast<TimePs>(std::max(ns, 0.0) * 1000 + 0.5)); }
std::string microseconds(double us) { return us <= 0 ? "0" : nanoseconds(us * 1000); }
std::string bytes(double count) { return bytes_text(static_cast<std::uint64_t>(std::max(count, 0.0) + 0.5)); }
std::string percent(double share) {
  if (share <= 0) return "0%";
  if (share >= 0.0995) return fmt::format("{:.0f}%", 100 * share);
  return fmt::format("{:.{}f}%", 100 * share, share >= 0.00995 ? 1 : share >= 0.000995 ? 2 : 4);
}
std::string times(double factor) { return fmt::format("{:.{}f}", factor, factor < 9.95 ? 1 : 0); }

/// "a on voq, b on ethernet and c on ethernet/spray"
std::string each(const std::vector<Shown>& runs, const std::function<std::string(const Shown&)>& text) {
  std::string out;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (i > 0) out += i + 1 == runs.size() ? " and " : ", ";
    out += text(runs[i]) + " on " + runs[i].name;
  }
  return out;
}

std::vector<Legend> legend_of(const std::vector<Shown>& runs) {
  std::vector<Legend> legend;
  for (const Shown& run : runs) legend.push_back({run.series, run.name, false});
  return legend;
}

template <typename Plot>
ReportPlot drawn(std::string name, std::string heading, std::string sentence, const Plot& plot,
                 std::string (*draw)(const Plot&, double)) {
  return {std::move(name), std::move(heading), std::move(sentence), draw(plot, wide), draw(plot, narrow)};
}

double end_us(const std::vector<Shown>& runs) {
  double end = 0;
  for (const Shown& run : runs) end = std::max(end, (*run.results)["duration_ns"].get<double>() / 1000);
  return end;
}

Axis time_axis(double end) { return {"emulated time", microseconds, end, 0, false, true, false}; }

void add_latency(std::vector<ReportPlot>& plots, const std::vector<Shown>& all) {
  std::vector<Shown> runs;
  for (const Shown& run : all)
    if (!run.over_time->latency.empty()) runs.push_back(run);
  if (runs.empty()) return;
  LinePlot plot;
  plot.title = "Cumulative distribution of latency";
  double least = std::numeric_limits<double>::max(), most = 0;
  for (const Shown& run : runs) {
    const auto& curve = run.over_time->latency;
    least = std::min(least, curve.front().first);
    most = std::max(most, curve.back().first);
    Curve& line = plot.curves.emplace_back();
    line.series = run.series;
    line.steps = true;
    line.points.emplace_back(curve.front().first, 0);
    line.points.insert(line.points.end(), curve.begin(), curve.end());
  }
  // Some room on both sides, so that a step at the edge is seen.
  least *= 0.8, most *= 1.25;
  for (Curve& line : plot.curves) {
    line.points.insert(line.points.begin(), {least, 0});
    line.points.emplace_back(most, 1);
  }
  plot.x = {"first bit sent to last bit received", nanoseconds, most, least, true, true, false};
  plot.y = {"share of frames that took no longer", percent, 1, 0, false, true, false};
  plot.legend = legend_of(runs);
  const auto value = [](const Shown& run, const char* key) { return (*run.metrics)["latency_ns"][key].get<double>(); };
  std::string sentence = fmt::format("Half of the frames arrived within {}; 99% within {}.",
                                     each(runs, [&](const Shown& run) { return nanoseconds(value(run, "p50")); }),
                                     each(runs, [&](const Shown& run) { return nanoseconds(value(run, "p99")); }));
  const auto by_p99 = [&](const Shown& a, const Shown& b) { return value(a, "p99") < value(b, "p99"); };
  const auto [quick, slow] = std::minmax_element(runs.begin(), runs.end(), by_p99);
  const double ratio = value(*slow, "p99") / std::max(value(*quick, "p99"), 1e-3);
  if (runs.size() > 1 && ratio >= 1.05)
    sentence +=
        fmt::format(" At the 99th percentile {} took {} times as long as {}.", slow->name, times(ratio), quick->name);
  plots.push_back(drawn("latency", "Latency", sentence, plot, line_plot));
}

/// The highest value in each of some steps: peaks are what buffers are built for.
std::vector<std::pair<double, double>> peaks(const std::vector<double>& at, const std::vector<double>& values) {
  std::vector<std::pair<double, double>> out;
  const std::size_t step = std::max<std::size_t>(1, (at.size() + 399) / 400);
  for (std::size_t i = 0; i < at.size(); i += step) {
    const std::size_t end = std::min(i + step, at.size());
    double most = 0;
    for (std::size_t k = i; k < end; ++k) most = std::max(most, values[k]);
    out.emplace_back(at[end - 1], most);
  }
  return out;
}

void add_queues(std::vector<ReportPlot>& plots, const std::vector<Shown>& runs) {
  LinePlot plot;
  plot.title = "Bytes held in all switches over time";
  double most = 0;
  for (const Shown& run : runs) {
    Curve& line = plot.curves.emplace_back();
    line.series = run.series;
    line.points = peaks(run.over_time->times_us, run.over_time->held_bytes);
    line.points.insert(line.points.begin(), {0, 0});
    for (const auto& point : line.points) most = std::max(most, point.second);
  }
  plot.x = time_axis(end_us(runs));
  plot.y = {"bytes that wait, in all switches",
            [](double n) { return n <= 0 ? "0" : bytes(n); },
            most,
            0,
            false,
            false,
            true};
  plot.legend = legend_of(runs);
  const auto needed = [](const Shown& run) { return bytes((*run.metrics)["buffer_needed_bytes"].get<double>()); };
  const auto average = [](const Shown& run) { return bytes((*run.metrics)["queues"]["all_mean_bytes"].get<double>()); };
  plots.push_back(drawn("queues", "Queues",
                        fmt::format("The fullest switch held {}; all switches together, averaged over time, {}.",
                                    each(runs, needed), each(runs, average)),
                        plot, line_plot));
}

struct Loads {
  std::vector<LinkLoad> of;  // [shown]
  double end = 0;
};

Loads loads_of(const std::vector<Shown>& runs) {
  Loads loads;
  loads.end = end_us(runs);
  for (const Shown& run : runs) loads.of.push_back(link_load(*run.over_time, *run.results, loads.end, bins));
  return loads;
}

void add_link_load(std::vector<ReportPlot>& plots, const std::vector<Shown>& all, const Loads& loads) {
  LinePlot plot;
  plot.title = "Load of uplinks over time: the busiest and the mean";
  std::vector<Shown> runs;
  double most = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const LinkLoad& load = loads.of[i];
    const Json& up = (*all[i].metrics)["balance"]["up"];
    if (up.is_null()) continue;
    // The leaf whose link is the busiest of all: its busiest link, and the mean of its links.
    const std::string leaf = up["busiest"].get<std::string>().substr(0, up["busiest"].get<std::string>().find('>'));
    Curve highest, mean;
    highest.series = mean.series = all[i].series;
    mean.thin = true;
    for (std::size_t bin = 0; bin < bins; ++bin) {
      double top = 0, sum = 0, links = 0;
      for (std::size_t link = 0; link < load.links.size(); ++link) {
        if (load.groups[link] != leaf + " up") continue;
        top = std::max(top, load.load[link][bin]);
        sum += load.load[link][bin];
        ++links;
      }
      const double at = loads.end * (static_cast<double>(bin) + 0.5) / bins;
      highest.points.emplace_back(at, top);
      mean.points.emplace_back(at, links > 0 ? sum / links : 0);
      most = std::max(most, top);
    }
    runs.push_back(all[i]);
    plot.legend.push_back({all[i].series, all[i].name + ", busiest of " + leaf, false});
    plot.legend.push_back({all[i].series, all[i].name + ", mean", true});
    plot.curves.push_back(std::move(highest));
    plot.curves.push_back(std::move(mean));
  }
  if (runs.empty()) return;
  plot.x = time_axis(loads.end);
  plot.y = {"load of uplinks, overhead included", percent, most, 0, false, false, false};
  std::string sentence;
  for (const Shown& run : runs) {
    const Json& up = (*run.metrics)["balance"]["up"];
    const auto over_mean = up["busiest_over_mean"].get<double>();
    sentence +=
        fmt::format("{}n {} the busiest uplink, {}, was busy {} of the time and carried {} times the mean of its leaf",
                    sentence.empty() ? "O" : "; o", run.name, up["busiest"].get<std::string>(),
                    percent(up["busiest_load"].get<double>()), fmt::format("{:.1f}", over_mean));
  }
  plots.push_back(drawn("link-load", "Link load", sentence + ".", plot, line_plot));
}

void add_heat_map(std::vector<ReportPlot>& plots, const std::vector<Shown>& runs, const Loads& loads) {
  HeatMap map;
  map.title = "Load of each fabric link over time";
  map.x = time_axis(loads.end);
  map.text = percent;
  map.value_label = "load of each link between switches";
  map.most = 0;
  std::string sentence;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const LinkLoad& load = loads.of[i];
    if (load.links.empty()) continue;
    map.panels.push_back({runs[i].name, runs[i].series, load.links, load.groups, load.load});
    for (const auto& row : load.load) map.most = std::max(map.most, *std::ranges::max_element(row));
    double busiest = 0;
    std::size_t idle = 0, links = 0;
    for (const Json& link : (*runs[i].results)["links"])
      if (link["name"].get_ref<const std::string&>().find('>') != std::string::npos)
        busiest = std::max(busiest, link["load"].get<double>()), ++links;
    for (const Json& link : (*runs[i].results)["links"])
      idle += link["name"].get_ref<const std::string&>().find('>') != std::string::npos &&
              link["load"].get<double>() <= busiest / 100;
    sentence +=
        fmt::format("{}n {} {} of {} directions of links carried less than a hundredth of the busiest",
                    sentence.empty() ? "O" : "; o", runs[i].name, idle == 0 ? "none" : std::to_string(idle), links);
  }
  if (map.panels.empty() || map.most <= 0) return;
  map.most = std::min(1.0, map.most);
  plots.push_back(drawn("links", "Every link", sentence + ".", map, heat_map));
}

/// Links that were paused the longest, in any run.
void add_pauses(std::vector<ReportPlot>& plots, const std::vector<Shown>& runs) {
  constexpr std::size_t rows = 12;
  std::map<std::string, std::vector<double>> paused;
  for (std::size_t i = 0; i < runs.size(); ++i)
    for (const Json& link : (*runs[i].results)["links"]) {
      const auto ns = link["paused_ns"].get<double>();
      const auto& name = link["name"].get_ref<const std::string&>();
      // Hold-backs of cell links are another thing.
      if (ns <= 0 || ((*runs[i].results)["fabric"] == "voq" && name.find('>') != std::string::npos)) continue;
      auto& values = paused[name];
      values.resize(runs.size());
      values[i] = ns;
    }
  if (paused.empty()) return;
  std::vector<std::pair<std::string, std::vector<double>>> sorted(paused.begin(), paused.end());
  const auto longest = [](const auto& entry) { return *std::ranges::max_element(entry.second); };
  std::ranges::stable_sort(sorted, [&](const auto& a, const auto& b) { return longest(a) > longest(b); });
  const std::size_t left_out = sorted.size() - std::min(sorted.size(), rows);
  sorted.resize(sorted.size() - left_out);
  BarPlot plot;
  plot.title = "Time that links were paused";
  plot.text = nanoseconds;
  plot.legend = legend_of(runs);
  for (const auto& [name, values] : sorted) plot.rows.push_back({name, values});
  for (BarPlot::Row& row : plot.rows)
    for (double& value : row.values)
      if (value <= 0) value = 0;
  plot.text = [](double ns) { return ns <= 0 ? "0" : nanoseconds(ns); };
  std::string sentence;
  for (const Shown& run : runs) {
    const Json& pfc = (*run.metrics)["pfc"];
    const auto hosts = pfc["hosts_paused"].get<std::uint64_t>(),
               links = pfc["fabric_links_paused"].get<std::uint64_t>();
    sentence += fmt::format("{}n {} ", sentence.empty() ? "O" : ". O", run.name);
    if (hosts + links == 0) {
      sentence += "nothing was paused";
      continue;
    }
    const std::string spread =
        links == 0 ? "no link between switches"
                   : fmt::format("{} direction{} of links between switches, for {}", links, links == 1 ? "" : "s",
                                 nanoseconds(pfc["fabric_links_paused_ns"].get<double>()));
    sentence +=
        fmt::format("{} host{} stood still, for {} in sum, and {}; pauses went {} hop{} from the queue that began them",
                    hosts, hosts == 1 ? "" : "s", nanoseconds(pfc["hosts_paused_ns"].get<double>()), spread,
                    pfc["spread_hops"].get<std::uint64_t>(), pfc["spread_hops"] == 1 ? "" : "s");
  }
  sentence += ".";
  if (left_out > 0) sentence += fmt::format(" {} more that were paused for less are not shown.", left_out);
  plots.push_back(drawn("pauses", "Pauses", sentence, plot, bar_plot));
}

/// The flows that fare most differently: by what they got in the time, or, where all got the same, by how long it took.
void add_flows(std::vector<ReportPlot>& plots, const Json& comparison, const std::vector<Shown>& runs) {
  constexpr std::size_t rows = 12;
  struct Flow {
    std::string name;
    std::vector<double> values;
    double least = 0, most = 0;
  };
  const auto measure = [&](bool rate) {
    std::vector<Flow> flows;
    for (const Json& row : comparison["flows"]) {
      Flow& flow = flows.emplace_back();
      flow.name = row["source"].get<std::string>() + " to " + row["destination"].get<std::string>();
      for (const Shown& run : runs) {
        const Json& cell = row["runs"][run.series];
        double value = rate ? 0 : -1;
        if (!cell.is_null())
          value = rate ? cell["bytes"].get<double>() * 8 / (*run.results)["duration_ns"].get<double>()
                       : cell["last_delivered_ns"].get<double>() - cell["first_sent_ns"].get<double>();
        flow.values.push_back(value);
      }
      flow.least = *std::ranges::min_element(flow.values);
      flow.most = *std::ranges::max_element(flow.values);
    }
    return flows;
  };
  bool same_bytes = true;
  for (const Json& row : comparison["flows"])
    for (const Shown& run : runs) {
      const Json &cell = row["runs"][run.series], &first = row["runs"][runs.front().series];
      same_bytes &= !cell.is_null() && !first.is_null() && cell["bytes"] == first["bytes"];
    }
  std::vector<Flow> flows = measure(!same_bytes);
  if (flows.empty()) return;
  const std::size_t count = flows.size();
  const auto difference = [](const Flow& f) { return f.most <= 0 ? 0 : (f.most - f.least) / f.most; };
  std::ranges::stable_sort(flows, [&](const Flow& a, const Flow& b) { return difference(a) > difference(b); });
  const Flow worst = flows.front();
  flows.resize(std::min(count, rows));
  BarPlot plot;
  plot.title = same_bytes ? "Completion time by flow" : "Rate by flow";
  plot.text = same_bytes ? NumberText([](double ns) { return nanoseconds(ns); })
                         : NumberText([](double gbps) { return rate_text(gbps * 1e9); });
  plot.legend = legend_of(runs);
  for (const Flow& flow : flows) plot.rows.push_back({flow.name, flow.values});
  std::string sentence = same_bytes ? "All flows delivered the same; shown is the time from first bit to last. "
                                    : "Frame bytes delivered over the whole run. ";
  if (runs.size() > 1 && difference(worst) >= 0.01)
    sentence += fmt::format("{} differs most: {}.", worst.name, each(runs, [&](const Shown& run) {
                              for (std::size_t i = 0; i < runs.size(); ++i)
                                if (runs[i].series == run.series) return plot.text(worst.values[i]);
                              return std::string();
                            }));
  else if (runs.size() > 1)
    sentence += "No flow fared differently by as much as a hundredth.";
  if (count > rows) sentence += fmt::format(" {} of {} flows are shown: those that differ most.", rows, count);
  plots.push_back(drawn("flows", "Flows", sentence, plot, bar_plot));
}

}  // namespace

std::vector<ReportPlot> report_plots(const Json& comparison, const std::vector<ComparedRun>& runs,
                                     const std::vector<RunSeries>& series) {
  std::vector<Shown> shown;
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (!runs[i].results.is_null())
      shown.push_back({i, runs[i].name, &comparison["runs"][i]["metrics"], &runs[i].results, &series[i]});
  std::vector<ReportPlot> plots;
  if (shown.empty()) return plots;
  add_latency(plots, shown);
  add_flows(plots, comparison, shown);
  add_queues(plots, shown);
  const Loads loads = loads_of(shown);
  add_link_load(plots, shown, loads);
  add_heat_map(plots, shown, loads);
  add_pauses(plots, shown);
  return plots;
}

}  // namespace weft
