// SPDX-License-Identifier: BSD-3-Clause
#include "tools/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tools/text.h"
#include "tools/units.h"

namespace weft {
namespace {

std::string line(std::string_view what, const std::string& text) { return fmt::format("{:<14}{}\n", what, text); }

std::string size_or(std::uint64_t bytes, std::string_view word) {
  return bytes == 0 ? std::string(word) : bytes_text(bytes);
}

/// "400G 50ns x 15, 100G 50ns x 1": how many links there are of each kind.
std::string kinds(const std::vector<LinkParams>& links) {
  std::map<std::pair<std::uint64_t, TimePs>, std::size_t> counts;
  for (const LinkParams& link : links) ++counts[{link.rate.bits_per_s, link.delay}];
  std::string text;
  std::size_t shown = 0;
  for (const auto& [params, count] : counts) {
    if (++shown > 4) return text + fmt::format(", and {} more kinds", counts.size() - 4);
    text += fmt::format("{}{} x {} {}", text.empty() ? "" : ", ", count, format_rate({params.first}),
                        format_time(params.second));
  }
  return text;
}

/// "3, 4", or "none"
template <class Array>
std::string classes_in(const Array& set) {
  std::string text;
  for (std::size_t i = 0; i < set.size(); ++i)
    if (set[i]) text += (text.empty() ? "" : ", ") + std::to_string(i);
  return text.empty() ? "none" : text;
}

/// "7, then 6, then 0 to 5 by weight": who is served first at an egress port.
std::string service_order(const ClassesConfig& classes) {
  std::map<unsigned, std::array<bool, traffic_classes>, std::greater<>> groups;
  for (std::size_t i = 0; i < traffic_classes; ++i) groups[classes.strict_group[i]][i] = true;
  std::string text;
  for (const auto& [group, members] : groups)
    text += (text.empty() ? "" : ", then ") + ("{" + classes_in(members) + "}");
  return text;
}

std::string describe_topology(const Topology& topology) {
  std::string text =
      line("topology",
           fmt::format("{} leaves, {} spines, {} hosts a leaf: {} host ports, {} fabric links", topology.leaves,
                       topology.spines, topology.hosts_per_leaf, topology.host_ports(), topology.fabric_links.size()));
  text += line("host links", kinds(topology.host_links));
  if (topology.fabric_links.empty()) return text;
  std::vector<LinkParams> fabric;
  for (const FabricLink& link : topology.fabric_links) fabric.push_back(link.params);
  text += line("fabric links", kinds(fabric));
  const double ratio = oversubscription(topology);
  return text + line("", fmt::format("oversubscription {:.3f}:1 at the worst leaf, cell headers not counted{}", ratio,
                                     ratio > 1 ? ": hosts can offer more than the fabric carries" : ""));
}

std::string describe_voq(const Config& config) {
  const voq::VoqConfig& voq = config.voq;
  std::string text = line("buffers", fmt::format("a leaf has {} on chip and {} external memory",
                                                 bytes_text(voq.sram_bytes), size_or(voq.deep_bytes, "no")));
  text +=
      line("", fmt::format("lossless, of each (port, class): xoff {}, headroom {}; egress, of each (port, class): {}",
                           size_or(voq.xoff_bytes, "auto"), size_or(voq.headroom_bytes, "auto"),
                           size_or(config.scheduler.egress_buffer_bytes, "auto")));
  text += line("credit", fmt::format("grants of {} at {} x the port's rate; requests at {} or after {}",
                                     bytes_text(config.scheduler.credit_bytes), format_number(config.scheduler.speedup),
                                     bytes_text(voq.request_bytes), duration_text(voq.request_delay)));
  const cells::CellConfig& cells = config.cells;
  return text +
         line("cells", fmt::format("{} + {} bytes; {} of a VOQ may be outstanding; late after {}", cells.payload_bytes,
                                   cells.header_bytes, cells.reorder_window, duration_text(cells.timeout)));
}

std::string describe_ethernet(const Config& config) {
  const ethernet::EthernetConfig& e = config.ethernet;
  static constexpr std::string_view balances[] = {"ecmp", "flowlet", "adaptive", "spray"};
  static constexpr std::string_view sprays[] = {"random", "round_robin", "shortest_queue"};
  std::string balance(balances[static_cast<std::size_t>(e.load_balance)]);
  if (e.load_balance == ethernet::LoadBalance::spray)
    balance += fmt::format(", {}", sprays[static_cast<std::size_t>(e.spray)]);
  std::string text = line(
      "buffers", fmt::format("a switch has {}; lossless, of each (port, class): alpha {}, headroom {}",
                             bytes_text(e.buffer_bytes), format_number(e.alpha), size_or(e.headroom_bytes, "auto")));
  text += line("switches", fmt::format("{}, pipeline {}", e.cut_through ? "cut-through" : "store and forward",
                                       duration_text(e.latency)));
  return text + line("load balance", balance);
}

std::string describe_traffic(const TrafficConfig& traffic, const Topology& topology) {
  if (const auto* replay = std::get_if<ReplayConfig>(&traffic))
    return fmt::format("replay of {}, speed {}, {} time{}", replay->file, format_number(replay->speed), replay->loop,
                       replay->loop == 1 ? "" : "s");
  const auto& constant = std::get<ConstantConfig>(traffic);
  std::string pattern;
  switch (constant.pattern) {
    case Pattern::permutation:
      pattern = "permutation of all hosts";
      break;
    case Pattern::all_to_all:
      pattern = "all to all";
      break;
    case Pattern::incast:
      pattern = fmt::format("incast {}:1 into {}",
                            constant.senders.empty() ? topology.host_ports() - 1 : constant.senders.size(),
                            port_name(topology, constant.receiver));
      break;
    case Pattern::one:
      pattern = fmt::format("{} to {}", port_name(topology, constant.from), port_name(topology, constant.to));
      break;
  }
  const std::string frames = constant.frames.size() == 1 ? fmt::format("{} bytes", constant.frames.front())
                                                         : fmt::format("{} lengths in turn", constant.frames.size());
  return fmt::format("{} at {:g}% of line rate, {}, class {}, {} gaps", pattern, constant.load * 100, frames,
                     constant.traffic_class, constant.poisson ? "Poisson" : "fixed");
}

std::string describe_port(const PortConfig& port, const Topology& topology) {
  return fmt::format("{} is {}{}, queue {} a class", port_name(topology, port.port), port.device,
                     port.mtu == 0 ? "" : fmt::format(", mtu {}", port.mtu), bytes_text(port.queue_bytes));
}

std::string describe_fault(const FaultConfig& fault, const Topology& topology) {
  std::string what;
  switch (fault.kind) {
    case FaultKind::down:
      what = "goes down";
      break;
    case FaultKind::up:
      what = "comes up";
      break;
    case FaultKind::data_loss:
      what = "loses data cells with probability " + format_number(fault.probability);
      break;
    case FaultKind::control_loss:
      what = "loses control cells with probability " + format_number(fault.probability);
      break;
    case FaultKind::rate:
      what = "runs at " + format_rate(fault.rate);
      break;
  }
  return fmt::format("{}: {} {}", format_time(fault.at), link_name(topology, fault.link), what);
}

std::string describe_capture(const CaptureConfig& capture) {
  std::string points;
  const auto add = [&points](bool on, std::string_view name) {
    if (on) points += fmt::format("{}{}", points.empty() ? "" : ", ", name);
  };
  add(capture.hosts, "hosts");
  add(capture.cells, "cells");
  add(capture.control, "control");
  add(capture.drops, "drops");
  if (points.empty()) return "nothing";
  if (!capture.host_ports.empty()) points += fmt::format("; {} host ports only", capture.host_ports.size());
  if (!capture.links.empty()) points += fmt::format("; {} fabric links only", capture.links.size());
  if (capture.snaplen != 0) points += fmt::format("; first {} bytes of each frame", capture.snaplen);
  return points;
}

}  // namespace

double oversubscription(const Topology& topology) {
  std::vector<double> hosts(topology.leaves), fabric(topology.leaves);
  for (std::uint32_t port = 0; port < topology.host_ports(); ++port)
    hosts[topology.leaf_of(port)] += static_cast<double>(topology.host_links[port].rate.bits_per_s);
  for (const FabricLink& link : topology.fabric_links)
    fabric[link.leaf] += static_cast<double>(link.params.rate.bits_per_s);
  double worst = 0;
  for (std::uint32_t leaf = 0; leaf < topology.leaves; ++leaf)
    if (fabric[leaf] > 0) worst = std::max(worst, hosts[leaf] / fabric[leaf]);
  return worst;
}

std::string describe(const Config& config) {
  const RunConfig& run = config.run;
  static constexpr std::size_t shown_max = 8;  // of a list
  std::string text = line("config", fmt::format("{} is valid", config.source));
  text +=
      line("fabric", config.fabric == FabricKind::voq ? "voq: scheduled, cells" : "ethernet: shared-buffer switches");
  text += describe_topology(config.topology);
  if (config.clock.wall)
    text += line("clock",
                 fmt::format("wall{}; an idle worker {}",
                             config.clock.dilation == 1 ? "" : fmt::format(", slowed {} times", config.clock.dilation),
                             config.clock.idle == 0 ? "spins" : "sleeps " + duration_text(config.clock.idle)));
  text += line("run", fmt::format("{}, warm-up {}, seed {}, {} worker{}",
                                  run.duration           ? duration_text(*run.duration)
                                  : config.ports.empty() ? "until the traffic has drained"
                                                         : "until Ctrl-C",
                                  duration_text(run.warmup), run.seed, run.workers, run.workers == 1 ? "" : "s"));
  static constexpr std::string_view modes[] = {"bridging", "routing", "static port map"};
  text += line("forwarding", fmt::format("{}, frames up to {} bytes", modes[static_cast<int>(config.forwarding.mode)],
                                         config.forwarding.mtu));
  text +=
      line("classes", fmt::format("lossless {}; ECN {}; served in the order {}", classes_in(config.classes.lossless),
                                  classes_in(config.classes.ecn), service_order(config.classes)));
  text += config.fabric == FabricKind::voq ? describe_voq(config) : describe_ethernet(config);

  const auto list = [&text](std::string_view name, std::string_view none, std::size_t size, auto&& item) {
    if (size == 0) text += line(name, std::string(none));
    for (std::size_t i = 0; i < std::min(size, shown_max); ++i) text += line(i == 0 ? name : "", item(i));
    if (size > shown_max) text += line("", fmt::format("and {} more", size - shown_max));
  };
  list("traffic", "none: give `traffic:`, or --replay", config.traffic.size(),
       [&](std::size_t i) { return describe_traffic(config.traffic[i], config.topology); });
  if (!config.ports.empty())
    list("live ports", "", config.ports.size(),
         [&](std::size_t i) { return describe_port(config.ports[i], config.topology); });
  list("faults", "none", config.faults.size(), [&](std::size_t i) {
    const FaultConfig& fault = config.faults[i];
    return describe_fault(fault, config.topology) +
           (run.duration && fault.at >= *run.duration ? " (after the run's end)" : "");
  });
  return text + line("capture", describe_capture(config.capture));
}

}  // namespace weft
