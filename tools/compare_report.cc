// SPDX-License-Identifier: BSD-3-Clause
#include "tools/compare_report.h"

#include <fmt/format.h>

#include <string_view>

#include "tools/svg_plot.h"
#include "tools/text.h"

namespace weft {
namespace {

constexpr std::string_view page_style = R"css(
*{box-sizing:border-box}
:root{color-scheme:light dark}
body{margin:0;background:var(--bg);color:var(--ink);font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;overflow-wrap:break-word}
main{max-width:892px;margin:0 auto;padding:24px 16px 48px}
h1{font-size:26px;line-height:1.25;margin:0 0 4px}
h2{font-size:19px;margin:40px 0 8px}
p{margin:8px 0}
.sub,footer{color:var(--muted);font-size:14px}
.note{border-left:3px solid var(--c1);padding-left:10px}
figure{margin:0}
figcaption{margin-top:6px}
svg.plot{display:block;max-width:100%;height:auto}
.narrow{display:none}
table{border-collapse:collapse;width:100%;font-size:14px;font-variant-numeric:tabular-nums}
th,td{padding:3px 8px;text-align:right;font-weight:400;vertical-align:top}
td{white-space:nowrap}
tbody th{text-align:left}
thead th{font-weight:600;border-bottom:1px solid var(--axis)}
tr.group th{font-weight:600;padding-top:12px;border-bottom:1px solid var(--grid)}
code{font-size:14px}
@media (max-width:640px){
 .wide{display:none}.narrow{display:block}
 main{padding:16px 16px 40px}
 h1{font-size:22px}
 table{font-size:13px}
 th,td{padding:3px 4px}
}
@media (max-width:640px){
 table.many,table.many tbody{display:block}
 table.many thead{display:none}
 table.many tr{display:flex;flex-wrap:wrap;border-bottom:1px solid var(--grid);padding:4px 0}
 table.many tr.group{border:0;padding:8px 0 0}
 table.many th{flex:0 0 100%}
 table.many td{flex:0 0 var(--part);text-align:left}
 table.many td::before{content:attr(data-of);display:block;font-size:11px;color:var(--muted)}
}
)css";

std::string table(const Json& comparison) {
  const Json& runs = comparison["runs"];
  // Three columns of figures fit a phone beside the names; more are stacked there.
  std::string html =
      fmt::format("<table{}>\n<thead><tr><td></td>", runs.size() <= 3       ? ""
                                                     : runs.size() % 2 == 0 ? " class=\"many\" style=\"--part:50%\""
                                                                            : " class=\"many\" style=\"--part:33%\"");
  for (std::size_t i = 0; i < runs.size(); ++i)
    html += fmt::format("<th scope=\"col\" style=\"color:var(--c{})\">{}</th>", i % 6,
                        escaped(runs[i]["name"].get<std::string>()));
  html += "</tr></thead>\n<tbody>\n";
  std::string group;
  for (const ComparisonRow& row : comparison_rows(comparison)) {
    if (row.group != group)
      html += fmt::format("<tr class=\"group\"><th colspan=\"{}\">{}</th></tr>\n", runs.size() + 1, escaped(row.group));
    group = row.group;
    html += fmt::format("<tr><th scope=\"row\">{}</th>", escaped(row.name));
    for (std::size_t i = 0; i < row.values.size(); ++i)
      html += fmt::format("<td data-of=\"{}\">{}</td>", escaped(runs[i]["name"].get<std::string>()),
                          escaped(row.values[i]));
    html += "</tr>\n";
  }
  return html + "</tbody></table>\n";
}

std::string heading(const Json& comparison) {
  std::string names, emulated;
  for (const Json& run : comparison["runs"]) {
    names += (names.empty() ? "" : ", ") + run["name"].get<std::string>();
    if (emulated.empty() && !run["duration_ns"].is_null()) {
      emulated = duration_text(static_cast<TimePs>(run["duration_ns"].get<double>() * 1000 + 0.5)) + " emulated";
      if (run["warmup_ns"].get<double>() > 0)
        emulated += fmt::format(", rates and latency after {}",
                                duration_text(static_cast<TimePs>(run["warmup_ns"].get<double>() * 1000 + 0.5)));
    }
  }
  std::string html = fmt::format("<h1>{}</h1>\n<p class=\"sub\">The same traffic through {}. Seed {}, {}.</p>\n",
                                 escaped(comparison["config"].get<std::string>()), escaped(names),
                                 comparison["seed"].dump(), emulated);
  for (const Json& run : comparison["runs"])
    if (!run["message"].is_null())
      html += fmt::format("<p class=\"note\">{}: {}</p>\n", escaped(run["name"].get<std::string>()),
                          escaped(run["message"].get<std::string>()));
  for (const Json& note : comparison["notes"])
    html += fmt::format("<p class=\"note\">{}</p>\n", escaped(note.get<std::string>()));
  return html;
}

}  // namespace

std::string report_html(const Json& comparison, const std::vector<ReportPlot>& plots) {
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>weft compare: {}</title>\n"
      "<link rel=\"icon\" href=\"data:,\">\n<style>\n{}{}</style>\n</head>\n<body>\n<main>\n",
      escaped(comparison["config"].get<std::string>()), plot_style(":root"), page_style);
  html += heading(comparison);
  for (const ReportPlot& plot : plots)
    html += fmt::format(
        "<h2 id=\"{}\">{}</h2>\n<figure>\n<div class=\"wide\">{}</div>\n<div class=\"narrow\">{}</div>\n"
        "<figcaption>{}</figcaption>\n</figure>\n",
        plot.name, escaped(plot.heading), plot.wide, plot.narrow, escaped(plot.sentence));
  html += "<h2 id=\"figures\">All figures</h2>\n" + table(comparison);
  html += fmt::format(
      "<footer><p>weft {}. Each fabric's own results are in the folders beside this file; <code>compare.json</code> "
      "has "
      "the figures.</p></footer>\n</main>\n</body>\n</html>\n",
      escaped(comparison["version"].get<std::string>()));
  return html;
}

}  // namespace weft
