// SPDX-License-Identifier: BSD-3-Clause
// Values that are fine one by one and make no sense together.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "tools/config_sections.h"

namespace weft {
namespace {

/// Fails at the first of the keys that the file or a --set gives: a default is seldom what is wrong.
[[noreturn]] void fail(const YamlNode& root, std::initializer_list<std::string> paths, const std::string& problem) {
  const std::string* blamed = &*paths.begin();
  for (const std::string& path : paths) {
    if (root.nearest(path).path != path) continue;
    blamed = &path;
    break;
  }
  YamlNode at;
  at.where = root.nearest(*blamed).where;
  at.path = *blamed;
  at.fail(problem);
}

void check_run(const Config& config, const YamlNode& root) {
  const RunConfig& run = config.run;
  if (run.duration && run.warmup >= *run.duration)
    fail(root, {"warmup", "duration"},
         fmt::format("warmup {} leaves nothing of duration {}; accepted: a shorter warmup or a longer duration",
                     format_time(run.warmup), format_time(*run.duration)));
}

void check_clock(const Config& config, const YamlNode& root) {
  if (config.clock.wall) return;
  if (!config.ports.empty())
    fail(root, {"clock.mode", "ports"}, "live ports run by real time; accepted: clock: {mode: wall}, or no ports");
  if (config.clock.dilation != 1)
    fail(root, {"clock.dilation"}, "only a wall clock can be slowed; accepted: 1, or mode: wall");
}

void check_forwarding(const Config& config, const YamlNode& root) {
  const ForwardingConfig& forwarding = config.forwarding;
  if (!forwarding.routes.empty() && forwarding.mode != ForwardingMode::route)
    fail(root, {"forwarding.routes"}, "routes are used in mode route only; accepted: mode: route, or no routes");
  if (!forwarding.fixed.empty() && forwarding.mode != ForwardingMode::fixed)
    fail(root, {"forwarding.static"}, "the port map is used in mode static only; accepted: mode: static, or no map");
  if (forwarding.fixed.empty() && forwarding.mode == ForwardingMode::fixed)
    fail(root, {"forwarding.mode"},
         "mode static without a port map; accepted: static: [{in: leaf0:p0, out: leaf1:p0}], or another mode");
}

void check_ethernet(const Config& config, const YamlNode& root) {
  const EcnConfig& ecn = config.ethernet.ecn;
  if (ecn.kmin_bytes > ecn.kmax_bytes)
    fail(root, {"ethernet.ecn.kmin", "ethernet.ecn.kmax"},
         fmt::format("kmin {} is above kmax {}; accepted: kmin up to kmax", format_size(ecn.kmin_bytes),
                     format_size(ecn.kmax_bytes)));
  if (ecn.kmax_bytes != 0 && ecn.pmax <= 0)
    fail(root, {"ethernet.ecn.pmax", "ethernet.ecn.kmax"},
         "thresholds, but nothing is ever marked between them; accepted: pmax above 0, or kmin 0 and kmax 0");
}

void check_ecn(const Config& config, const YamlNode& root) {
  const EcnConfig& ecn = config.voq.ecn;
  if (ecn.kmin_bytes > ecn.kmax_bytes)
    fail(root, {"voq.ecn.kmin", "voq.ecn.kmax"},
         fmt::format("kmin {} is above kmax {}; accepted: kmin up to kmax", format_size(ecn.kmin_bytes),
                     format_size(ecn.kmax_bytes)));
  const bool any_class = std::ranges::find(config.classes.ecn, true) != config.classes.ecn.end();
  if (ecn.kmax_bytes != 0 && !any_class)
    fail(root, {"voq.ecn.kmax", "voq.ecn.kmin"},
         "thresholds, but classes.ecn names no class to mark; accepted: classes: {ecn: [3]}, or kmin 0 and kmax 0");
  if (ecn.kmax_bytes == 0 && any_class && config.fabric == FabricKind::voq)
    fail(root, {"classes.ecn"},
         "classes to mark, but voq.ecn has no thresholds; accepted: voq: {ecn: {kmin: 400KB, kmax: 1600KB, pmax: "
         "0.2}}, or no class");
}

void check_buffer(const Config& config, const YamlNode& root) {
  const voq::VoqConfig& voq = config.voq;
  if (voq.xoff_bytes != 0 && voq.xon_bytes > voq.xoff_bytes)
    fail(root, {"voq.xon", "voq.xoff"},
         fmt::format("xon {} is above xoff {}; accepted: xon up to xoff", format_size(voq.xon_bytes),
                     format_size(voq.xoff_bytes)));
  // What `auto` comes to is known where the fabric is built, and checked there.
  const auto classes = static_cast<std::uint64_t>(std::ranges::count(config.classes.lossless, true));
  const std::uint64_t accounts = classes * config.topology.hosts_per_leaf;
  const std::uint64_t each = voq.xoff_bytes + voq.headroom_bytes;
  if (accounts != 0 && each > voq.sram_bytes / accounts)
    fail(root, {"voq.headroom", "voq.xoff", "voq.sram"},
         fmt::format("xoff + headroom = {} for each of {} ports x {} lossless classes overcommit the sram of {}; "
                     "accepted: up to {} together",
                     format_size(each), config.topology.hosts_per_leaf, classes, format_size(voq.sram_bytes),
                     format_size(voq.sram_bytes / accounts)));
  if (voq.force_fabric && config.topology.spines == 0)
    fail(root, {"voq.force_fabric"}, "there are no spines to force traffic over; accepted: false, or spines");
}

void check_egress(const Config& config, const YamlNode& root) {
  const std::uint64_t buffer = config.scheduler.egress_buffer_bytes;
  if (buffer == 0) return;
  // A grant waits until it fits together with its VOQ's overdraft of up to a frame; in less than that none ever would.
  const std::uint64_t least = config.scheduler.credit_bytes + config.forwarding.mtu + ethernet_overhead_bytes;
  if (buffer < least)
    fail(root, {"scheduler.egress_buffer", "scheduler.credit_bytes", "forwarding.mtu"},
         fmt::format("egress_buffer {} cannot hold one credit and a frame of the mtu; accepted: auto, or {} or more",
                     format_size(buffer), least));
  const std::uint64_t window = std::uint64_t{config.cells.reorder_window} * config.cells.payload_bytes;
  if (buffer > window)
    fail(root, {"cells.reorder_window", "scheduler.egress_buffer", "cells.payload"},
         fmt::format("{} cells of {} cannot hold an egress_buffer of {}; accepted: {} cells or more",
                     config.cells.reorder_window, format_size(config.cells.payload_bytes), format_size(buffer),
                     (buffer + config.cells.payload_bytes - 1) / config.cells.payload_bytes));
}

void check_constant(const Config& config, const ConstantConfig& constant, const YamlNode& root,
                    const std::string& path) {
  const auto key = [&path](const char* name) { return path + "." + name; };
  const Topology& topology = config.topology;
  if (constant.pattern == Pattern::permutation && topology.leaves < 2)
    fail(root, {key("pattern"), path},
         "a permutation crosses leaves and there is one; accepted: all-to-all, incast, one, or more leaves");
  if (topology.host_ports() < 2)
    fail(root, {key("pattern"), path}, "one host has nobody to send to; accepted: a topology of two hosts or more");
  if (constant.pattern == Pattern::one && constant.from == constant.to)
    fail(root, {key("to"), key("from"), path},
         fmt::format("from and to are both {}; accepted: two ports", port_name(topology, constant.to)));
  if (constant.pattern == Pattern::incast &&
      std::ranges::find(constant.senders, constant.receiver) != constant.senders.end())
    fail(root, {key("senders")},
         fmt::format("{} is the receiver; accepted: other ports", port_name(topology, constant.receiver)));
  if (constant.start >= constant.stop)
    fail(root, {key("stop"), key("start")},
         fmt::format("stop {} is not after start {}; accepted: never, or a later stop", format_time(constant.stop),
                     format_time(constant.start)));
  const auto& dscp = config.classes.dscp_to_class;
  if (std::ranges::find(dscp, constant.traffic_class) == dscp.end())
    fail(root, {key("class"), path},
         fmt::format("no DSCP maps to class {}; accepted: a class that classes.dscp leads to", constant.traffic_class));
}

}  // namespace

void check_together(const Config& config, const YamlNode& root) {
  check_run(config, root);
  check_clock(config, root);
  check_forwarding(config, root);
  check_ecn(config, root);
  check_ethernet(config, root);
  check_buffer(config, root);
  check_egress(config, root);
  const YamlNode* list = root.find("traffic");
  for (std::size_t i = 0; i < config.traffic.size(); ++i) {
    const bool single = list != nullptr && list->kind == YamlNode::Kind::mapping;
    const std::string path = single ? "traffic.constant" : fmt::format("traffic.{}.constant", i);
    if (const auto* constant = std::get_if<ConstantConfig>(&config.traffic[i]))
      check_constant(config, *constant, root, path);
  }
}

}  // namespace weft
