// SPDX-License-Identifier: BSD-3-Clause
#include "tools/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "tools/report.h"

namespace weft {
namespace {

/// Lines of "Heading   name   value  remark": the heading stands at the first line of its group only.
class Page {
 public:
  void group(std::string_view heading) { heading_ = heading; }
  /// A count, right-aligned, and what there is to say about it.
  void count(std::string_view name, std::uint64_t value, std::string_view remark = {}) {
    line(fmt::format("{:<11}{:>15}{}{}", name, grouped(value), remark.empty() ? "" : "   ", remark));
  }
  void line(std::string_view text) {
    text_ += fmt::format("{:<9}{}\n", heading_, text);
    heading_ = {};
  }
  void title(std::string_view text) { text_ += fmt::format("{}\n\n", text); }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::string_view heading_;
};

/// "voq_limit 12, cell_lost 3": those that happened.
template <typename Names, typename Counts>
std::string happened(const Names& names, const Counts& counts) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (counts[i] > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", names[i], grouped(counts[i]));
  return text;
}

std::string percentiles(const LatencySummary& s) {
  if (s.count == 0) return "no samples";
  return fmt::format("min {}  p50 {}  p90 {}  p99 {}  p99.9 {}  max {}", duration_text(s.min), duration_text(s.p50),
                     duration_text(s.p90), duration_text(s.p99), duration_text(s.p999), duration_text(s.max));
}

void frames(Page& page, const RunResult& r) {
  const FrameBooks& f = r.frames;
  const TimePs time = measured_time(r);
  const auto volume = [&](std::uint64_t bytes, std::uint64_t measured_bytes) {
    return fmt::format("{}, {}", bytes_text(bytes), rate_text(bits_per_s(measured_bytes, time)));
  };
  page.group("Frames");
  page.count("offered", f.offered, volume(f.offered_bytes, r.offered_bytes_after_warmup));
  if (f.replicated > 0) page.count("replicated", f.replicated, "copies made by floods");
  page.count("delivered", f.delivered, volume(f.delivered_bytes, r.delivered_bytes_after_warmup));
  if (f.filtered_total() > 0) page.count("filtered", f.filtered_total(), happened(filter_reason_names, f.filtered));
  page.count("dropped", f.dropped_total(), happened(drop_reason_names, f.dropped));
  page.count("in flight", r.in_flight, r.balanced ? "the books balance" : "THE BOOKS DO NOT BALANCE");
  if (f.no_frame_memory > 0) page.count("no memory", f.no_frame_memory, "the emulator's own failure");
}

void scheduled_fabric(Page& page, const RunResult& r) {
  const CellResult& c = r.cells;
  const GrantResult& g = r.grants;
  page.group("Cells");
  page.count("sent", c.sent,
             c.wire_bytes == 0
                 ? ""
                 : fmt::format("frames are {:.1f}% of the bytes on uplinks; keep-alives count",
                               100 * static_cast<double>(c.payload_bytes) / static_cast<double>(c.wire_bytes)));
  page.count("delivered", c.delivered,
             fmt::format("{} lost, {} in flight, {} marked, {} hold-backs", grouped(c.lost), grouped(c.in_flight),
                         grouped(c.marked), grouped(c.hold_backs)));
  page.count("control", c.control_sent,
             fmt::format("{} requests, {} grants, {} returns, {} lost", grouped(g.requests), grouped(g.grants),
                         grouped(g.returns), grouped(g.control_lost)));
  page.group("Credit");
  page.line(fmt::format("requested {}, granted {}, returned {}", bytes_text(g.requested_bytes),
                        bytes_text(g.granted_bytes), bytes_text(g.returned_bytes)));
  page.line("round trip " + percentiles(g.round_trip));
  page.group("Reorder");
  page.line(fmt::format("deepest {} cells, {} timeouts", grouped(r.reorder.max_depth), grouped(r.reorder.timeouts)));
}

void buffers(Page& page, const RunResult& r) {
  const VoqResult& v = r.voq;
  page.group("Buffers");
  page.line(fmt::format("{} VOQs used, deepest {}; fullest leaf {} on chip, {} deep", grouped(v.voqs_used),
                        bytes_text(v.max_bytes), bytes_text(v.buffer_max_bytes), bytes_text(v.deep_max_bytes)));
  page.line(fmt::format("egress at most {} of {} a port and class", bytes_text(r.egress.buffer_max_bytes),
                        bytes_text(r.egress.buffer_bytes)));
  if (v.pfc_xoff_sent > 0 || v.ecn_marked > 0)
    page.line(fmt::format("PFC: {} XOFF, {} XON, {} paused in sum; ECN: {} frames marked", grouped(v.pfc_xoff_sent),
                          grouped(v.pfc_xon_sent), duration_text(v.pfc_paused), grouped(v.ecn_marked)));
}

void ethernet_fabric(Page& page, const RunResult& r) {
  const EthernetResult& e = r.ethernet;
  page.group("Switches");
  page.count("forwarded", e.frame_hops, "frame-hops");
  page.line(fmt::format("fullest buffer {} of {}; headroom used at most {} of {}", bytes_text(e.buffer_max_bytes),
                        bytes_text(e.buffer_bytes), bytes_text(e.headroom_max_bytes), bytes_text(e.headroom_bytes)));
  page.line(fmt::format("PFC: {} XOFF, {} XON, {} received; paused in sum: hosts {}, switches {}",
                        grouped(e.pfc_xoff_sent), grouped(e.pfc_xon_sent), grouped(e.pfc_received),
                        duration_text(e.pfc_hosts_paused), duration_text(e.pfc_paused)));
  page.line(fmt::format("ECN: {} frames marked", grouped(e.ecn_marked)));
  if (e.watchdog_storms > 0) page.line(fmt::format("watchdog: {} storms", grouped(e.watchdog_storms)));
}

/// Utilisation of the links that `belongs` picks: an idle one and an overloaded one both show.
template <typename Belongs>
void link_group(Page& page, std::string_view name, const std::vector<LinkResult>& links, Belongs belongs) {
  std::uint64_t count = 0, queue = 0;
  double least = 0, most = 0, sum = 0;
  TimePs paused = 0;
  for (const LinkResult& l : links) {
    if (!belongs(std::string_view{l.name})) continue;
    least = count == 0 ? l.utilisation : std::min(least, l.utilisation);
    most = std::max(most, l.utilisation);
    sum += l.utilisation;
    queue = std::max(queue, l.queue_max_bytes);
    paused += l.paused;
    ++count;
  }
  if (count == 0) return;
  page.line(fmt::format("{:<11}{:>6}   busy min {:.1f}%  mean {:.1f}%  max {:.1f}%, longest queue {}{}", name, count,
                        100 * least, 100 * sum / static_cast<double>(count), 100 * most, bytes_text(queue),
                        paused == 0 ? "" : fmt::format(", paused {} in sum", duration_text(paused))));
}

void links(Page& page, const std::vector<LinkResult>& all) {
  page.group("Links");
  link_group(page, "from hosts", all, [](std::string_view n) { return n.ends_with(" in"); });
  link_group(page, "to hosts", all, [](std::string_view n) { return n.ends_with(" out"); });
  link_group(page, "fabric", all, [](std::string_view n) { return n.find('>') != n.npos; });
}

void replays(Page& page, const std::vector<ReplayResult>& all) {
  page.group("Replay");
  for (const ReplayResult& r : all) {
    std::string text = fmt::format("{} of {} frames of {}", grouped(r.frames), grouped(r.expected), r.file);
    const auto also = [&](std::uint64_t n, std::string_view what) {
      if (n > 0) text += fmt::format(", {} {}", grouped(n), what);
    };
    also(r.skipped, "skipped");
    also(r.padded, "captured short and padded");
    also(r.gaps_shortened, "silences shortened");
    also(r.time_reversed, "out of time order");
    page.line(text);
    for (const std::string& note : r.notes) page.line("  " + note);
  }
}

void clock(Page& page, const RunResult& r) {
  if (!r.clock) return;
  const ClockResult& c = *r.clock;
  page.group("Clock");
  page.line(fmt::format("wall{}; {} behind at the end; {} of {} windows late ({:.2f}%)",
                        c.dilation == 1 ? "" : fmt::format(", dilated {} times", grouped(c.dilation)),
                        duration_text(c.behind), grouped(c.late), grouped(c.windows),
                        c.windows == 0 ? 0 : 100 * static_cast<double>(c.late) / static_cast<double>(c.windows)));
  page.line("lag   " + percentiles(c.lag));
}

void ports(Page& page, const std::vector<PortResult>& all) {
  page.group("Ports");
  for (const PortResult& p : all) {
    std::string text = fmt::format("{:<11} in {}, {}; out {}, {}", p.name, grouped(p.rx_frames), bytes_text(p.rx_bytes),
                                   grouped(p.tx_frames), bytes_text(p.tx_bytes));
    if (p.waiting > 0) text += fmt::format("; {} waiting", grouped(p.waiting));
    if (p.pfc_sent + p.pfc_received > 0)
      text += fmt::format("; pause frames: {} sent, {} received", grouped(p.pfc_sent), grouped(p.pfc_received));
    if (!p.link_up) text += "; link down";
    const std::string lost = happened(port_loss_names, p.lost);
    page.line(text + (lost.empty() ? "" : "; lost by the emulator: " + lost));
  }
}

void speed(Page& page, const RunResult& r) {
  const double wall = r.cost.wall_s;
  const auto rate = [&](std::uint64_t n) { return wall > 0 ? static_cast<double>(n) / wall / 1e6 : 0; };
  page.group("Speed");
  const bool hops = r.fabric == "ethernet";
  page.line(fmt::format("{:.3f} s wall, {:.3f} s CPU: {:.2f} M {}/s, {:.3f} M frames/s", wall, r.cost.cpu_s,
                        rate(hops ? r.ethernet.frame_hops : r.cells.delivered), hops ? "frame-hops" : "cells",
                        rate(r.frames.delivered)));
}

/// As a shell takes it.
std::string quoted(const std::string& path) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,:@";
  if (path.find_first_not_of(plain) == std::string::npos) return path;
  std::string text = "'";
  for (const char c : path) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace

std::string result_table(const RunResult& result, const Config& config, const std::string& folder) {
  const Topology& t = config.topology;
  Page page;
  page.title(
      fmt::format("{} fabric, {} leaves x {} spines, {} hosts, seed {}: {} emulated{}{}", result.fabric, t.leaves,
                  t.spines, t.host_ports(), result.seed, duration_text(result.end),
                  result.warmup > 0 ? fmt::format(", rates and latency after {}", duration_text(result.warmup)) : "",
                  result.interrupted ? " (interrupted)" : ""));
  frames(page, result);
  page.group("Latency");
  page.line(percentiles(result.latency));
  if (config.fabric == FabricKind::voq) {
    scheduled_fabric(page, result);
    buffers(page, result);
  } else {
    ethernet_fabric(page, result);
  }
  links(page, result.links);
  replays(page, result.replays);
  clock(page, result);
  ports(page, result.ports);
  speed(page, result);
  page.group("Results");
  page.line(folder);
  const CaptureConfig& c = config.capture;
  if (c.hosts || c.cells || c.control || c.drops) {
    page.group("Capture");
    page.line(fmt::format("tshark -r {}", quoted(folder + "/capture.pcapng")));
  }
  page.group("Warnings");
  for (const std::string& warning : result.warnings) page.line(warning);
  return page.text();
}

}  // namespace weft
