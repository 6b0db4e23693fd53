// SPDX-License-Identifier: BSD-3-Clause
#include "tools/comparison.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <string_view>
#include <utility>

#include "tools/version.h"

namespace weft {
namespace {

/// Percentiles over flows of the time from a flow's first bit to its last, by nearest rank.
Json completion(const Json& results) {
  std::vector<double> times;
  for (const Json& flow : results["flows"])
    if (!flow["last_delivered_ns"].is_null())
      times.push_back(flow["last_delivered_ns"].get<double>() - flow["first_sent_ns"].get<double>());
  std::ranges::sort(times);
  const auto rank = [&](double fraction) -> Json {
    if (times.empty()) return nullptr;
    const auto n = static_cast<double>(times.size());
    const auto i = static_cast<std::size_t>(std::max(0.0, std::ceil(fraction * n) - 1));
    return fixed(times[std::min(i, times.size() - 1)], 3);
  };
  return {{"last_delivered_ns", results["last_delivered_ns"]},
          {"flow_p50_ns", rank(0.5)},
          {"flow_p99_ns", rank(0.99)},
          {"flow_max_ns", rank(1)}};
}

std::uint64_t sum_of(const Json& counts) {
  std::uint64_t sum = 0;
  for (const Json& count : counts) sum += count.get<std::uint64_t>();
  return sum;
}

Json frames(const Json& results) {
  const Json& f = results["frames"];
  return {{"offered", f["offered"]},           {"replicated", f["replicated"]},   {"delivered", f["delivered"]},
          {"filtered", sum_of(f["filtered"])}, {"dropped", sum_of(f["dropped"])}, {"dropped_by", f["dropped"]},
          {"in_flight", f["in_flight"]}};
}

bool from_host(const Json& link) { return link["name"].get_ref<const std::string&>().ends_with(" in"); }
bool in_fabric(const Json& link) { return link["name"].get_ref<const std::string&>().find('>') != std::string::npos; }

Json queues(const Json& results) {
  const Json* longest = nullptr;
  for (const Json& link : results["links"])
    if (longest == nullptr ||
        link["queue_max_bytes"].get<std::uint64_t>() > (*longest)["queue_max_bytes"].get<std::uint64_t>())
      longest = &link;
  const bool none = longest == nullptr || (*longest)["queue_max_bytes"] == 0;
  Json json{{"link_max_bytes", none ? Json(0) : (*longest)["queue_max_bytes"]},
            {"link_max_name", none ? Json(nullptr) : (*longest)["name"]}};
  json.update(results["buffers"]);
  return json;
}

/// PFC, and what stood still for it. On the scheduled fabric only hosts are paused: its fabric links know hold-backs.
Json pauses(const Json& results) {
  const bool voq = results["fabric"] == "voq";
  const Json& from = results[voq ? "voq" : "ethernet"];
  std::uint64_t hosts = 0, links = 0, hops = 0;
  double hosts_ns = 0, links_ns = 0;
  for (const Json& link : results["links"]) {
    const auto paused = link["paused_ns"].get<double>();
    if (paused <= 0) continue;
    if (from_host(link)) ++hosts, hosts_ns += paused;
    if (in_fabric(link)) ++links, links_ns += paused;
  }
  if (voq) hops = from["pfc_xoff_sent"] != 0 ? 1 : 0;
  for (const Json& spread : results["ethernet"]["pauses"]) hops = std::max(hops, spread["hops"].get<std::uint64_t>());
  return {{"xoff_sent", from["pfc_xoff_sent"]},
          {"xon_sent", from["pfc_xon_sent"]},
          {"hosts_paused", hosts},
          {"hosts_paused_ns", fixed(hosts_ns, 3)},
          {"fabric_links_paused", voq ? 0 : links},
          {"fabric_links_paused_ns", fixed(voq ? 0 : links_ns, 3)},
          {"spread_hops", hops},
          {"watchdog_storms", results["ethernet"]["watchdog_storms"]}};
}

std::uint64_t out_of_order(const Json& results) {
  std::uint64_t sum = 0;
  for (const Json& flow : results["flows"]) sum += flow["out_of_order"].get<std::uint64_t>();
  return sum;
}

/// Every flow of any run, with what became of it in each.
Json flows(const std::vector<ComparedRun>& runs) {
  using Key = std::pair<std::string, std::string>;
  std::map<Key, Json> found;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    if (runs[run].results.is_null()) continue;
    for (const Json& flow : runs[run].results["flows"]) {
      Json& row = found[{flow["source"], flow["destination"]}];
      if (row.is_null()) row = Json::array();
      while (row.size() < runs.size()) row.push_back(nullptr);
      row[run] = {{"frames", flow["frames"]},
                  {"bytes", flow["bytes"]},
                  {"out_of_order", flow["out_of_order"]},
                  {"first_sent_ns", flow["first_sent_ns"]},
                  {"last_delivered_ns", flow["last_delivered_ns"]},
                  {"latency_p50_ns", flow["latency_ns"]["p50"]},
                  {"latency_p99_ns", flow["latency_ns"]["p99"]}};
    }
  }
  Json array = Json::array();
  for (auto& [key, row] : found)
    array.push_back({{"source", key.first}, {"destination", key.second}, {"runs", std::move(row)}});
  return array;
}

}  // namespace

Json read_results(const std::filesystem::path& folder) {
  std::ifstream file(folder / "results.json");
  if (!file) return nullptr;
  Json json = Json::parse(file, nullptr, false);
  return json.is_object() && json.contains("frames") ? json : Json(nullptr);
}

Json metrics_of(const Json& results) {
  const bool voq = results["fabric"] == "voq";
  return {{"frames", frames(results)},
          {"throughput", results["throughput"]},
          {"latency_ns", results["latency_ns"]},
          {"completion", completion(results)},
          {"balance", results["balance"]},
          {"queues", queues(results)},
          {"buffer_needed_bytes", results["buffers"]["switch_max_bytes"]},
          {"pfc", pauses(results)},
          {"hold_backs", results["cells"]["hold_backs"]},
          {"ecn_marked", results[voq ? "voq" : "ethernet"]["ecn_marked"]},
          {"out_of_order", out_of_order(results)}};
}

Json comparison_json(const std::string& name, const std::vector<ComparedRun>& runs,
                     const std::vector<std::string>& notes) {
  Json list = Json::array();
  Json seed = nullptr;
  for (const ComparedRun& run : runs) {
    const Json& r = run.results;
    if (!r.is_null()) seed = r["seed"];
    list.push_back({{"name", run.name},
                    {"fabric", run.name.substr(0, run.name.find('/'))},
                    {"folder", run.folder},
                    {"exit_code", run.exit_code},
                    {"message", run.message.empty() ? Json(nullptr) : Json(run.message)},
                    {"interrupted", r.is_null() ? Json(nullptr) : r["interrupted"]},
                    {"duration_ns", r.is_null() ? Json(nullptr) : r["duration_ns"]},
                    {"warmup_ns", r.is_null() ? Json(nullptr) : r["warmup_ns"]},
                    {"metrics", r.is_null() ? Json(nullptr) : metrics_of(r)}});
  }
  return {{"schema", compare_schema_version},
          {"version", version},
          {"config", name},
          {"seed", seed},
          {"notes", notes},
          {"runs", list},
          {"flows", flows(runs)}};
}

}  // namespace weft
