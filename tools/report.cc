// SPDX-License-Identifier: BSD-3-Clause
#include "tools/report.h"

#include <fmt/format.h>

#include <map>
#include <optional>

#include "tools/json_text.h"
#include "tools/link_balance.h"
#include "tools/text.h"
#include "tools/version.h"

namespace weft {
namespace {

/// Without samples there is no least and no most: null, which no script takes for a good latency.
Json latency_json(const LatencySummary& s) {
  const auto value = [&](TimePs time) { return s.count == 0 ? Json(nullptr) : ns(time); };
  return {{"count", s.count},    {"min", value(s.min)},
          {"p50", value(s.p50)}, {"p90", value(s.p90)},
          {"p99", value(s.p99)}, {"p999", value(s.p999)},
          {"max", value(s.max)}, {"mean", s.count == 0 ? Json(nullptr) : fixed(s.mean / 1000, 3)}};
}

template <typename Names, typename Counts>
Json by_name(const Names& names, const Counts& counts) {
  Json object = Json::object();
  for (std::size_t i = 0; i < names.size(); ++i) object[std::string(names[i])] = counts[i];
  return object;
}

Json frames_json(const RunResult& r) {
  const FrameBooks& f = r.frames;
  return {{"offered", f.offered},
          {"offered_bytes", f.offered_bytes},
          {"replicated", f.replicated},
          {"delivered", f.delivered},
          {"delivered_bytes", f.delivered_bytes},
          {"filtered", by_name(filter_reason_names, f.filtered)},
          {"dropped", by_name(drop_reason_names, f.dropped)},
          {"in_flight", r.in_flight},
          {"no_frame_memory", f.no_frame_memory},
          {"balanced", r.balanced}};
}

Json throughput_json(const RunResult& r) {
  const TimePs time = measured_time(r);
  const std::uint64_t wire = r.delivered_bytes_after_warmup + r.delivered_after_warmup * ethernet_overhead_bytes;
  return {{"measured_ns", ns(time)},
          {"offered_frames", r.offered_after_warmup},
          {"delivered_frames", r.delivered_after_warmup},
          {"offered_gbps", fixed(bits_per_s(r.offered_bytes_after_warmup, time) / 1e9, 6)},
          {"goodput_gbps", fixed(bits_per_s(r.delivered_bytes_after_warmup, time) / 1e9, 6)},
          {"wire_gbps", fixed(bits_per_s(wire, time) / 1e9, 6)}};
}

Json buffers_json(const BufferResult& b) {
  const auto node = [](const std::string& name) { return name.empty() ? Json(nullptr) : Json(name); };
  return {{"switch_max_bytes", b.max_bytes},
          {"switch_max_node", node(b.max_node)},
          {"switch_mean_bytes", fixed(b.mean_bytes, 1)},
          {"switch_mean_node", node(b.mean_node)},
          {"all_mean_bytes", fixed(b.all_mean_bytes, 1)}};
}

Json balance_json(const std::vector<LinkResult>& links, Direction direction) {
  const std::optional<LinkBalance> b = link_balance(links, direction);
  if (!b) return nullptr;
  return {{"max_over_mean", fixed(b->max_over_mean, 4)},
          {"jain", fixed(b->jain, 4)},
          {"busiest", b->busiest},
          {"busiest_load", fixed(b->busiest_load, 9)},
          {"busiest_over_mean", fixed(b->busiest_over_mean, 4)}};
}

Json cells_json(const CellResult& c) {
  return {{"sent", c.sent},
          {"delivered", c.delivered},
          {"lost", c.lost},
          {"in_flight", c.in_flight},
          {"payload_bytes", c.payload_bytes},
          {"wire_bytes", c.wire_bytes},
          {"control_sent", c.control_sent},
          {"marked", c.marked},
          {"hold_backs", c.hold_backs}};
}

Json voq_json(const VoqResult& v) {
  return {{"max_bytes", v.max_bytes},
          {"buffer_max_bytes", v.buffer_max_bytes},
          {"deep_bytes", v.deep_bytes},
          {"deep_max_bytes", v.deep_max_bytes},
          {"used", v.voqs_used},
          {"ecn_marked", v.ecn_marked},
          {"pfc_xoff_sent", v.pfc_xoff_sent},
          {"pfc_xon_sent", v.pfc_xon_sent},
          {"pfc_paused_ns", ns(v.pfc_paused)}};
}

Json grants_json(const GrantResult& g) {
  return {{"requests", g.requests},
          {"grants", g.grants},
          {"returns", g.returns},
          {"requested_bytes", g.requested_bytes},
          {"granted_bytes", g.granted_bytes},
          {"returned_bytes", g.returned_bytes},
          {"control_lost", g.control_lost},
          {"refreshes", g.refreshes},
          {"watchdog_returns", g.watchdog_returns},
          {"round_trip_ns", latency_json(g.round_trip)},
          {"request_to_grant_ns", latency_json(g.request_to_grant)}};
}

Json ethernet_json(const EthernetResult& e) {
  Json pauses = Json::array();
  for (const PauseSpread& p : e.pauses)
    pauses.push_back({{"link", p.link}, {"root", p.root}, {"hops", p.hops}, {"pauses", p.pauses}});
  return {{"frame_hops", e.frame_hops},
          {"buffer_bytes", e.buffer_bytes},
          {"buffer_max_bytes", e.buffer_max_bytes},
          {"headroom_bytes", e.headroom_bytes},
          {"headroom_max_bytes", e.headroom_max_bytes},
          {"ecn_marked", e.ecn_marked},
          {"pfc_xoff_sent", e.pfc_xoff_sent},
          {"pfc_xon_sent", e.pfc_xon_sent},
          {"pfc_received", e.pfc_received},
          {"pfc_paused_ns", ns(e.pfc_paused)},
          {"pfc_hosts_paused_ns", ns(e.pfc_hosts_paused)},
          {"watchdog_storms", e.watchdog_storms},
          {"flowlets", e.flowlets},
          {"pauses", pauses}};
}

Json links_json(const std::vector<LinkResult>& all) {
  Json array = Json::array();
  for (const LinkResult& l : all)
    array.push_back({{"name", l.name},
                     {"rate_bps", static_cast<std::uint64_t>(l.rate_bps)},
                     {"utilisation", fixed(l.utilisation, 6)},
                     {"load", fixed(l.load, 9)},
                     {"wire_bytes", l.wire_bytes},
                     {"control_bytes", l.control_bytes},
                     {"queue_max_bytes", l.queue_max_bytes},
                     {"paused_ns", ns(l.paused)}});
  return array;
}

Json flows_json(const std::vector<FlowResult>& all, const Topology& topology) {
  Json array = Json::array();
  for (const FlowResult& f : all)
    array.push_back({{"source", port_name(topology, f.source)},
                     {"destination", port_name(topology, f.destination)},
                     {"frames", f.frames},
                     {"bytes", f.bytes},
                     {"out_of_order", f.out_of_order},
                     {"first_sent_ns", f.frames == 0 ? Json(nullptr) : ns(f.first_sent)},
                     {"last_delivered_ns", f.frames == 0 ? Json(nullptr) : ns(f.last_delivered)},
                     {"latency_ns", latency_json(f.latency)}});
  return array;
}

Json replays_json(const std::vector<ReplayResult>& all) {
  Json array = Json::array();
  for (const ReplayResult& r : all)
    array.push_back({{"file", r.file},
                     {"frames", r.frames},
                     {"expected", r.expected},
                     {"skipped", r.skipped},
                     {"padded", r.padded},
                     {"gaps_shortened", r.gaps_shortened},
                     {"time_reversed", r.time_reversed},
                     {"notes", r.notes}});
  return array;
}

Json clock_json(const std::optional<ClockResult>& clock) {
  if (!clock) return nullptr;
  return {{"dilation", clock->dilation},
          {"windows", clock->windows},
          {"late", clock->late},
          {"late_share",
           fixed(clock->windows == 0 ? 0 : static_cast<double>(clock->late) / static_cast<double>(clock->windows), 6)},
          {"lag_ns", latency_json(clock->lag)},
          {"behind_ns", ns(clock->behind)}};
}

Json ports_json(const std::vector<PortResult>& all) {
  Json array = Json::array();
  for (const PortResult& p : all)
    array.push_back({{"name", p.name},
                     {"device", p.device},
                     {"driver", p.driver},
                     {"mtu", p.mtu},
                     {"pfc", p.pfc},
                     {"rx_frames", p.rx_frames},
                     {"rx_bytes", p.rx_bytes},
                     {"tx_frames", p.tx_frames},
                     {"tx_bytes", p.tx_bytes},
                     {"waiting", p.waiting},
                     {"completed_checksums", p.completed_checksums},
                     {"pfc_sent", p.pfc_sent},
                     {"pfc_received", p.pfc_received},
                     {"link_up", p.link_up},
                     {"link_losses", p.link_losses},
                     {"lost", by_name(port_loss_names, p.lost)}});
  return array;
}

Json cost_json(const RunResult& r, std::uint32_t workers) {
  const auto a_second = [&](std::uint64_t n) {
    return fixed(r.cost.wall_s > 0 ? static_cast<double>(n) / r.cost.wall_s : 0, 1);
  };
  return {{"workers", workers},
          {"wall_s", fixed(r.cost.wall_s, 6)},
          {"cpu_s", fixed(r.cost.cpu_s, 6)},
          {"cells_per_s", a_second(r.cells.delivered)},
          {"frames_per_s", a_second(r.frames.delivered)},
          {"frame_hops_per_s", a_second(r.ethernet.frame_hops)},
          {"windows", r.cost.windows},
          {"events", r.cost.events}};
}

/// "1,2,...": the columns of a summary, empty without samples.
std::string latency_columns(const LatencySummary& s) {
  if (s.count == 0) return "0,,,,,,,";
  return fmt::format("{},{},{},{},{},{},{},{:.3f}", s.count, as_ns(s.min), as_ns(s.p50), as_ns(s.p90), as_ns(s.p99),
                     as_ns(s.p999), as_ns(s.max), s.mean / 1000);
}

}  // namespace

TimePs measured_time(const RunResult& result) { return result.end > result.warmup ? result.end - result.warmup : 0; }

double bits_per_s(std::uint64_t bytes, TimePs time) {
  return time == 0 ? 0 : static_cast<double>(bytes) * 8e12 / static_cast<double>(time);
}

std::string results_json(const RunResult& result, const Config& config) {
  const Json document{
      {"schema", results_schema_version},
      {"version", version},
      {"fabric", result.fabric},
      {"seed", result.seed},
      {"interrupted", result.interrupted},
      {"error", result.error.empty() ? Json(nullptr) : Json(result.error)},
      {"duration_ns", ns(result.end)},
      {"warmup_ns", ns(result.warmup)},
      {"frames", frames_json(result)},
      {"throughput", throughput_json(result)},
      {"latency_ns", latency_json(result.latency)},
      {"last_delivered_ns", result.frames.delivered == 0 ? Json(nullptr) : ns(result.last_delivered)},
      {"buffers", buffers_json(result.buffers)},
      {"balance",
       {{"up", balance_json(result.links, Direction::up)}, {"down", balance_json(result.links, Direction::down)}}},
      {"cells", cells_json(result.cells)},
      {"voq", voq_json(result.voq)},
      {"grants", grants_json(result.grants)},
      {"reorder", {{"max_depth", result.reorder.max_depth}, {"timeouts", result.reorder.timeouts}}},
      {"egress", {{"buffer_bytes", result.egress.buffer_bytes}, {"buffer_max_bytes", result.egress.buffer_max_bytes}}},
      {"ethernet", ethernet_json(result.ethernet)},
      {"links", links_json(result.links)},
      {"flows", flows_json(result.flows, config.topology)},
      {"replays", replays_json(result.replays)},
      {"clock", clock_json(result.clock)},
      {"ports", ports_json(result.ports)},
      {"warnings", result.warnings},
      {"cost", cost_json(result, config.run.workers)}};
  return json_text(document);
}

std::string flows_csv(const RunResult& result, const Topology& topology) {
  std::string text =
      "source,destination,frames,bytes,out_of_order,first_sent_ns,last_delivered_ns,latency_count,latency_min_ns,"
      "latency_p50_ns,latency_p90_ns,"
      "latency_p99_ns,latency_p999_ns,latency_max_ns,latency_mean_ns\n";
  for (const FlowResult& f : result.flows)
    text += fmt::format("{},{},{},{},{},{},{},{}\n", port_name(topology, f.source), port_name(topology, f.destination),
                        f.frames, f.bytes, f.out_of_order, f.frames == 0 ? "" : as_ns(f.first_sent),
                        f.frames == 0 ? "" : as_ns(f.last_delivered), latency_columns(f.latency));
  return text;
}

std::string series_csv(const RunResult& result) {
  std::string text =
      "time_us,node,offered_bytes,offered_gbps,delivered_bytes,delivered_gbps,dropped_frames,cells,voq_bytes,deep_"
      "bytes,"
      "fabric_queue_bytes,egress_bytes,paused_ports\n";
  std::map<std::string, TimePs, std::less<>> before;  // rates are over the time since the node's last sample
  for (const SeriesRow& row : result.series) {
    TimePs& last = before[row.node];
    const TimePs time = row.at - last;
    last = row.at;
    text += fmt::format("{},{},{},{:.6f},{},{:.6f},{},{},{},{},{},{},{}\n", as_us(row.at), row.node, row.offered_bytes,
                        bits_per_s(row.offered_bytes, time) / 1e9, row.delivered_bytes,
                        bits_per_s(row.delivered_bytes, time) / 1e9, row.dropped_frames, row.cells, row.voq_bytes,
                        row.deep_bytes, row.fabric_queue_bytes, row.egress_bytes, row.paused_ports);
  }
  return text;
}

std::string links_csv(const RunResult& result) {
  std::string text = "time_us";
  for (const LinkResult& link : result.links) text += "," + link.name;
  text += '\n';
  for (const LinkSample& sample : result.link_series) {
    text += as_us(sample.at);
    for (const std::uint64_t bytes : sample.wire_bytes) text += "," + std::to_string(bytes);
    text += '\n';
  }
  return text;
}

std::string latency_csv(const RunResult& result) {
  std::string text = "latency_ns,frames\n";
  for (const LatencyPoint& point : result.latency_curve)
    text += fmt::format("{},{}\n", as_ns(point.at_most), point.frames);
  return text;
}

}  // namespace weft
