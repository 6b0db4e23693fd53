// SPDX-License-Identifier: BSD-3-Clause
// A comparison as rows of text, for the terminal and the report.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "tools/comparison.h"
#include "tools/text.h"

namespace weft {
namespace {

using Text = std::function<std::string(const Json& metrics)>;

std::string time_text(const Json& ns) {
  return ns.is_null() ? "-" : duration_text(static_cast<TimePs>(ns.get<double>() * 1000 + 0.5));
}
std::string count_text(const Json& count) { return grouped(count.get<std::uint64_t>()); }
std::string size_text(const Json& bytes) { return bytes_text(static_cast<std::uint64_t>(bytes.get<double>() + 0.5)); }

/// `whole` a pointer such as "/frames/offered".
Text at(const char* pointer, std::string (*text)(const Json&)) {
  return [pointer, text](const Json& m) { return text(m.at(Json::json_pointer(pointer))); };
}

Text balance(const char* direction, const char* key, const char* format) {
  return [=](const Json& m) -> std::string {
    const Json& b = m["balance"][direction];
    return b.is_null() ? "-" : fmt::format(fmt::runtime(format), b[key].get<double>());
  };
}

std::string paused_text(const Json& pfc, const char* count, const char* time) {
  if (pfc[count] == 0) return "0";
  return fmt::format("{}: {}", count_text(pfc[count]), time_text(pfc[time]));
}

class Rows {
 public:
  explicit Rows(const Json& comparison) : runs_(comparison["runs"]) {}

  void group(std::string name) { group_ = std::move(name); }
  void row(std::string name, const Text& text) {
    rows.push_back({group_, std::move(name), {}});
    ComparisonRow& row = rows.back();
    for (const Json& run : runs_) row.values.push_back(run["metrics"].is_null() ? "failed" : text(run["metrics"]));
  }
  /// Only where some run has something there.
  void if_any(std::string name, const char* pointer, const Text& text) {
    const bool any = std::any_of(runs_.begin(), runs_.end(), [&](const Json& run) {
      return !run["metrics"].is_null() && run["metrics"].at(Json::json_pointer(pointer)) != 0;
    });
    if (any) row(std::move(name), text);
  }

  std::vector<ComparisonRow> rows;

 private:
  const Json& runs_;
  std::string group_;
};

void drops(Rows& rows, const Json& comparison) {
  rows.row("dropped", at("/frames/dropped", count_text));
  for (const Json& run : comparison["runs"]) {
    if (run["metrics"].is_null()) continue;
    for (const auto& [reason, count] : run["metrics"]["frames"]["dropped_by"].items())
      rows.if_any("  " + reason, ("/frames/dropped_by/" + reason).c_str(),
                  [reason = reason](const Json& m) { return count_text(m["frames"]["dropped_by"][reason]); });
    return;  // every run names every reason
  }
}

}  // namespace

std::vector<ComparisonRow> comparison_rows(const Json& comparison) {
  Rows rows(comparison);
  rows.group("Frames");
  rows.row("offered", at("/frames/offered", count_text));
  rows.if_any("replicated", "/frames/replicated", at("/frames/replicated", count_text));
  rows.row("delivered", at("/frames/delivered", count_text));
  rows.if_any("filtered", "/frames/filtered", at("/frames/filtered", count_text));
  drops(rows, comparison);
  rows.row("in flight", at("/frames/in_flight", count_text));
  rows.row("out of order", at("/out_of_order", count_text));
  rows.group("Rate");
  const auto rate = [](const char* key) {
    return [key](const Json& m) { return rate_text(m["throughput"][key].get<double>() * 1e9); };
  };
  rows.row("offered", rate("offered_gbps"));
  rows.row("goodput", rate("goodput_gbps"));
  rows.group("Latency");
  for (const char* key : {"min", "p50", "p90", "p99", "p999", "max", "mean"})
    rows.row(key == std::string_view("p999") ? "p99.9" : key,
             [key](const Json& m) { return time_text(m["latency_ns"][key]); });
  rows.group("Completion");
  rows.row("last frame", at("/completion/last_delivered_ns", time_text));
  rows.row("flow, median", at("/completion/flow_p50_ns", time_text));
  rows.row("flow, slowest", at("/completion/flow_max_ns", time_text));
  rows.group("Link load");
  rows.row("busiest uplink", [](const Json& m) -> std::string {
    const Json& up = m["balance"]["up"];
    return up.is_null() ? "-" : fmt::format("{:.1f}%", 100 * up["busiest_load"].get<double>());
  });
  rows.row("up, max/mean", balance("up", "max_over_mean", "{:.2f}"));
  rows.row("up, Jain", balance("up", "jain", "{:.3f}"));
  rows.row("down, max/mean", balance("down", "max_over_mean", "{:.2f}"));
  rows.row("down, Jain", balance("down", "jain", "{:.3f}"));
  rows.group("Queues");
  rows.row("buffer needed", at("/buffer_needed_bytes", size_text));
  rows.row("time average", at("/queues/switch_mean_bytes", size_text));
  rows.row("all switches", at("/queues/all_mean_bytes", size_text));
  rows.row("longest of a link", at("/queues/link_max_bytes", size_text));
  rows.group("PFC");
  rows.row("XOFF sent", at("/pfc/xoff_sent", count_text));
  rows.row("hosts paused", [](const Json& m) { return paused_text(m["pfc"], "hosts_paused", "hosts_paused_ns"); });
  rows.row("links paused",
           [](const Json& m) { return paused_text(m["pfc"], "fabric_links_paused", "fabric_links_paused_ns"); });
  rows.row("spread, hops", at("/pfc/spread_hops", count_text));
  rows.if_any("watchdog storms", "/pfc/watchdog_storms", at("/pfc/watchdog_storms", count_text));
  rows.if_any("hold-backs", "/hold_backs", at("/hold_backs", count_text));
  rows.group("ECN");
  rows.row("frames marked", at("/ecn_marked", count_text));
  return std::move(rows.rows);
}

std::string comparison_table(const Json& comparison, const std::string& folder) {
  const std::vector<ComparisonRow> rows = comparison_rows(comparison);
  std::vector<std::size_t> widths;
  for (const Json& run : comparison["runs"]) widths.push_back(run["name"].get_ref<const std::string&>().size());
  for (const ComparisonRow& row : rows)
    for (std::size_t i = 0; i < row.values.size(); ++i) widths[i] = std::max(widths[i], row.values[i].size());

  const Json& seed = comparison["seed"];
  std::string text =
      fmt::format("{}, the same traffic through each fabric, seed {}\n\n",
                  comparison["config"].get_ref<const std::string&>(), seed.is_null() ? "-" : seed.dump());
  text += fmt::format("{:<30}", "");
  for (std::size_t i = 0; i < widths.size(); ++i)
    text += fmt::format("  {:>{}}", comparison["runs"][i]["name"].get_ref<const std::string&>(), widths[i]);
  text += '\n';
  std::string group;
  for (const ComparisonRow& row : rows) {
    text += fmt::format("{:<11}{:<19}", row.group == group ? "" : row.group, row.name);
    group = row.group;
    for (std::size_t i = 0; i < widths.size(); ++i) text += fmt::format("  {:>{}}", row.values[i], widths[i]);
    text += '\n';
  }
  for (const Json& note : comparison["notes"])
    text += fmt::format("Note       {}\n", note.get_ref<const std::string&>());
  text += fmt::format("Results    {}\n", folder);
  return text;
}

}  // namespace weft
