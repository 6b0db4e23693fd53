// SPDX-License-Identifier: BSD-3-Clause
#include "voq/fabric.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "dataplane/link_samples.h"

namespace weft::voq {

namespace {

enum Purpose : std::uint64_t { purpose_data_fate = 0x400, purpose_control_fate = 0x500 };

TimePs longest(const std::vector<FabricLink>& links, TimePs (*time)(const LinkParams&, std::uint32_t),
               std::uint32_t bytes) {
  TimePs most = 0;
  for (const FabricLink& link : links) most = std::max(most, time(link.params, bytes));
  return most;
}

TimePs flight(const LinkParams& link, std::uint32_t bytes) { return WireClock(link.rate).time_of(bytes) + link.delay; }

Rate fastest_host(const Topology& topology) {
  Rate most;
  for (const LinkParams& link : topology.host_links) most.bits_per_s = std::max(most.bits_per_s, link.rate.bits_per_s);
  return most;
}

}  // namespace

TimePs grant_round_trip(const FabricConfig& config) {
  const auto& links = config.topology.fabric_links;
  TimePs credit_time = 0;
  for (const LinkParams& link : config.topology.host_links)
    credit_time = std::max(credit_time, WireClock(link.rate).time_of(config.scheduler.credit_bytes));
  if (links.empty()) return config.scheduler.latency + credit_time;
  const TimePs control = 2 * longest(links, flight, config.cells.control_bytes) + config.cells.spine_latency;
  const TimePs data =
      2 * longest(links, flight, config.cells.payload_bytes + config.cells.header_bytes) + config.cells.spine_latency;
  return control + data + config.scheduler.latency + credit_time;
}

void resolve_defaults(FabricConfig& config) {
  const Topology& topology = config.topology;
  const std::uint64_t frame =
      config.forwarding.mtu + 8 + ethernet_overhead_bytes;  // longest on the wire, tags included
  for (const FabricLink& link : topology.fabric_links)
    if (link.params.delay == 0)
      throw std::invalid_argument(
          "topology.fabric_link.delay: a fabric link needs a delay above 0 (it is what lets nodes run apart)");

  // Room for half as much again as leaves the port between a grant and its bytes, and for a frame's overdraft of each
  // leaf.
  auto& scheduler = config.scheduler;
  if (scheduler.egress_buffer_bytes == 0) {
    const std::uint64_t in_flight = WireClock(fastest_host(topology)).bytes_in(grant_round_trip(config));
    scheduler.egress_buffer_bytes = in_flight * 3 / 2 + scheduler.credit_bytes + topology.leaves * frame;
  }
  if (scheduler.egress_buffer_bytes < scheduler.credit_bytes + frame)
    throw std::invalid_argument("scheduler.egress_buffer: " + std::to_string(scheduler.egress_buffer_bytes) +
                                " bytes cannot hold one credit and one frame; at least " +
                                std::to_string(scheduler.credit_bytes + frame) + " (credit_bytes + mtu + 32)");

  auto& voq = config.voq;
  const auto lossless =
      static_cast<std::uint64_t>(std::count(config.classes.lossless.begin(), config.classes.lossless.end(), true));
  const std::uint64_t groups = std::max<std::uint64_t>(1, topology.hosts_per_leaf * lossless);
  if (voq.headroom_bytes == 0)
    for (const LinkParams& link : topology.host_links) {
      const TimePs reaction =
          config.classes.pfc_reaction != 0 ? config.classes.pfc_reaction : default_reaction_time(link.rate);
      voq.headroom_bytes = std::max(
          voq.headroom_bytes, headroom_bytes(link.rate, link.delay, config.forwarding.mtu + 8, reaction, voq.latency));
    }
  if (voq.xoff_bytes == 0) {
    // Half of what is left of the on-chip buffer beside all headroom, shared by the (port, lossless class) pairs; 1 MiB
    // is ample.
    const std::uint64_t reserved = groups * voq.headroom_bytes;
    const std::uint64_t shared = voq.sram_bytes > reserved ? voq.sram_bytes - reserved : 0;
    voq.xoff_bytes = std::min<std::uint64_t>(1 << 20, shared / 2 / groups);
  }
  if (voq.xon_bytes == 0) voq.xon_bytes = voq.xoff_bytes / 2;
  if (lossless != 0 && groups * (voq.xoff_bytes + voq.headroom_bytes) > voq.sram_bytes)
    throw std::invalid_argument("voq.sram: " + std::to_string(voq.sram_bytes) +
                                " bytes do not hold XOFF and headroom of " + std::to_string(groups) +
                                " (port, lossless class) pairs; at least " +
                                std::to_string(groups * (voq.xoff_bytes + voq.headroom_bytes)));

  auto& cells = config.cells;
  const std::uint32_t cell = cells.payload_bytes + cells.header_bytes;
  if (cells.mark_bytes == 0) cells.mark_bytes = std::uint64_t{32} * cell;
  if (cells.hold_back_bytes == 0) cells.hold_back_bytes = std::max<std::uint64_t>(64 << 10, std::uint64_t{256} * cell);
}

LinkFate Fabric::fate(std::uint32_t link, bool upward) const {
  const std::uint64_t direction = upward ? 0 : 1;
  return LinkFate(config_.faults, link, config_.topology.fabric_links[link].params,
                  stream(config_.seed, link, purpose_data_fate + direction),
                  stream(config_.seed, link, purpose_control_fate + direction));
}

void Fabric::make_taps() {
  const Topology& t = config_.topology;
  const CaptureConfig& c = config_.capture;
  const auto wanted = [](const std::vector<std::uint32_t>& list, std::uint32_t n) {
    return list.empty() || std::find(list.begin(), list.end(), n) != list.end();
  };
  const auto add = [&](std::string name, std::string description, Rate rate) {
    taps_.push_back({std::move(name), std::move(description), rate});
    return static_cast<TapId>(taps_.size() - 1);
  };
  leaf_taps_.resize(t.leaves);
  link_taps_.resize(t.fabric_links.size());
  for (std::uint32_t leaf = 0; leaf < t.leaves; ++leaf) {
    if (c.hosts)
      for (std::uint32_t p = 0; p < t.hosts_per_leaf; ++p) {
        const std::uint32_t port = leaf * t.hosts_per_leaf + p;
        const bool tapped = wanted(c.host_ports, port);
        const Rate rate = t.host_links[port].rate;
        leaf_taps_[leaf].host_in.push_back(tapped ? add(port_name(t, port) + " in", "from the host", rate) : no_tap);
        leaf_taps_[leaf].host_out.push_back(tapped ? add(port_name(t, port) + " out", "to the host", rate) : no_tap);
      }
    if (c.drops)
      leaf_taps_[leaf].drops =
          add("leaf" + std::to_string(leaf) + " drops", "frames dropped here, with the reason", {});
  }
  for (std::uint32_t link = 0; link < t.fabric_links.size(); ++link) {
    if (!(c.cells || c.control) || !wanted(c.links, link)) continue;
    const Rate rate = t.fabric_links[link].params.rate;
    const TapId up = add(up_[link]->name, "cells towards the spine", rate);
    const TapId down = add(down_[link]->name, "cells towards the leaf", rate);
    if (c.cells) link_taps_[link].data_up = up, link_taps_[link].data_down = down;
    if (c.control) link_taps_[link].control_up = up, link_taps_[link].control_down = down;
  }
}

Fabric::Fabric(FabricConfig config, std::span<const KnownHost> known, FramePool* copies) : config_(std::move(config)) {
  resolve_defaults(config_);
  const Topology& t = config_.topology;
  for (const FabricLink& link : t.fabric_links) {
    const std::string suffix = t.parallel_links > 1 ? "." + std::to_string(link.parallel) : "";
    const std::string leaf = "leaf" + std::to_string(link.leaf), spine = "spine" + std::to_string(link.spine);
    up_.push_back(std::make_unique<cells::CellLink>());
    up_.back()->name = leaf + ">" + spine + suffix;
    down_.push_back(std::make_unique<cells::CellLink>());
    down_.back()->name = spine + ">" + leaf + suffix;
  }
  make_taps();
  cells::ReachabilityPlan plan = cells::plan_reachability(t, config_.cells, config_.faults);
  fault_times_ = plan.times;

  const auto transmitter = [&](std::uint32_t link) {
    const LinkParams& params = t.fabric_links[link].params;
    const cells::CellConfig& c = config_.cells;
    return cells::TransmitterConfig{params.rate,         params.delay, c.header_bytes,
                                    c.control_bytes,     c.mark_bytes, c.reachability_interval,
                                    c.reachability_bytes};
  };
  const bool captures = !taps_.empty();
  const auto capture_buffer = [&]() -> CaptureBuffer* {
    captures_.push_back(captures ? std::make_unique<CaptureBuffer>(config_.capture.snaplen) : nullptr);
    return captures_.back().get();
  };
  const LeafConfig leaf_config{
      t, config_.classes, config_.voq, config_.scheduler, config_.cells, config_.warmup, config_.seed};
  for (std::uint32_t leaf = 0; leaf < t.leaves; ++leaf) {
    std::vector<cells::Uplinks::Port> uplinks;
    std::vector<Leaf::Downlink> downlinks;
    for (std::uint32_t spine = 0; spine < t.spines; ++spine)
      for (std::uint32_t k = 0; k < t.parallel_links; ++k) {
        const std::uint32_t link = t.link_index(leaf, spine, k);
        uplinks.push_back({up_[link].get(), transmitter(link), link_taps_[link].data_up, link_taps_[link].control_up});
        downlinks.push_back({down_[link].get(), fate(link, false)});
      }
    leaves_.push_back(std::make_unique<Leaf>(
        leaf, leaf_config, Forwarder::make(t, config_.forwarding, config_.classes, known), std::move(uplinks),
        std::move(downlinks), std::move(plan.leaves[leaf]), leaf_taps_[leaf], capture_buffer(), copies));
  }
  for (std::uint32_t spine = 0; spine < t.spines; ++spine) {
    std::vector<cells::CellSwitch::Port> ports;
    for (std::uint32_t leaf = 0; leaf < t.leaves; ++leaf)
      for (std::uint32_t k = 0; k < t.parallel_links; ++k) {
        const std::uint32_t link = t.link_index(leaf, spine, k);
        ports.push_back({up_[link].get(), down_[link].get(), transmitter(link), fate(link, true),
                         link_taps_[link].data_down, link_taps_[link].control_down});
      }
    spines_.push_back(std::make_unique<cells::CellSwitch>(spine, t, config_.cells, std::move(ports),
                                                          std::move(plan.spines[spine]), capture_buffer()));
  }
}

Fabric::~Fabric() = default;

std::vector<Node*> Fabric::nodes() const {
  std::vector<Node*> nodes;
  for (const auto& leaf : leaves_) nodes.push_back(leaf.get());
  for (const auto& spine : spines_) nodes.push_back(spine.get());
  return nodes;
}

std::vector<std::uint32_t> Fabric::placement(std::uint32_t workers) const {
  std::vector<std::uint32_t> worker_of;
  for (std::uint32_t i = 0; i < leaves_.size(); ++i) worker_of.push_back(i % workers);
  // Spines start where the leaves left off, so that an odd leaf is made up for by an odd spine.
  for (std::uint32_t i = 0; i < spines_.size(); ++i)
    worker_of.push_back((static_cast<std::uint32_t>(leaves_.size()) + i) % workers);
  return worker_of;
}

TimePs Fabric::window() const { return longest_window(config_.topology); }

void Fabric::add_source(std::uint32_t port, std::unique_ptr<FrameSource> source, FramePool* pool) {
  leaves_[config_.topology.leaf_of(port)]->add_source(config_.topology.local_of(port), std::move(source), pool);
}

void Fabric::add_live_port(std::uint32_t port, LivePort* live) {
  leaves_[config_.topology.leaf_of(port)]->add_live_port(config_.topology.local_of(port), live);
}

std::uint64_t Fabric::delivered() const {
  std::uint64_t frames = 0;
  for (const auto& leaf : leaves_) frames += leaf->books().delivered;
  return frames;
}

std::uint64_t Fabric::frames_on_links() const {
  std::uint64_t frames = 0;
  for (const auto* links : {&up_, &down_})
    for (const auto& link : *links) link->data.visit([&](const cells::Cell& cell) { frames += cell.ending; });
  return frames;
}

void Fabric::collect_links(RunResult& result, TimePs end) const {
  const Topology& t = config_.topology;
  const TimePs span = end > config_.warmup ? end - config_.warmup : 0;
  // A frame counts when it is started, so that a busy link could come out a frame above 1.
  const auto busy = [span](Rate rate, std::uint64_t bytes) {
    const double possible = static_cast<double>(rate.bits_per_s) / 8 * static_cast<double>(span) * 1e-12;
    return possible > 0 ? std::min(1.0, static_cast<double>(bytes) / possible) : 0;
  };
  const auto add = [&](std::string name, Rate rate, std::uint64_t wire, std::uint64_t wire_at_warmup) -> LinkResult& {
    LinkResult& link = result.links.emplace_back();
    link.name = std::move(name);
    link.rate_bps = static_cast<double>(rate.bits_per_s);
    link.wire_bytes = wire;
    link.load = link.utilisation = busy(rate, wire - wire_at_warmup);
    return link;
  };
  begin_link_samples(result, leaves_.front()->series());
  for (std::uint32_t port = 0; port < t.host_ports(); ++port) {
    const Leaf& leaf = *leaves_[t.leaf_of(port)];
    const std::uint32_t p = t.local_of(port);
    const Rate rate = t.host_links[port].rate;
    add_link_samples(result, [&](std::size_t s) { return leaf.wire_at_samples()[s].host_in[p]; });
    add_link_samples(result, [&](std::size_t s) { return leaf.wire_at_samples()[s].host_out[p]; });
    LinkResult& in =
        add(port_name(t, port) + " in", rate, leaf.hosts()[p].wire_bytes_sent(), leaf.wire_at_warmup().host_in[p]);
    const scheduler::OutputPort& output = leaf.outputs()[p];
    LinkResult& out = add(port_name(t, port) + " out", rate, output.wire_bytes_sent, leaf.wire_at_warmup().host_out[p]);
    out.queue_max_bytes = output.max_bytes;
    for (std::uint32_t c = 0; c < traffic_classes; ++c) {
      result.links[result.links.size() - 2].paused += leaf.hosts()[p].pauses().paused_total(c, end);
      out.paused += output.pauses().paused_total(c, end);
    }
    (void)in;
  }
  const auto add_fabric = [&](const cells::CellTransmitter& from, Rate rate, std::uint64_t at_warmup,
                              std::uint64_t cells_at_warmup) {
    LinkResult& link = add(from.link().name, rate, from.counters.wire_bytes, at_warmup);
    link.load = busy(rate, from.cell_bytes_sent() - cells_at_warmup);
    link.control_bytes = from.counters.control_bytes;
    link.queue_max_bytes = from.queue_max_bytes();
    link.paused = from.counters.held;
  };
  for (std::uint32_t i = 0; i < t.fabric_links.size(); ++i) {
    const FabricLink& link = t.fabric_links[i];
    const std::uint32_t up = link.spine * t.parallel_links + link.parallel,
                        down = link.leaf * t.parallel_links + link.parallel;
    add_fabric(leaves_[link.leaf]->uplinks().transmitters()[up], link.params.rate,
               leaves_[link.leaf]->wire_at_warmup().uplinks[up], leaves_[link.leaf]->wire_at_warmup().uplink_cells[up]);
    add_link_samples(result, [&](std::size_t s) { return leaves_[link.leaf]->wire_at_samples()[s].uplink_cells[up]; });
    add_fabric(spines_[link.spine]->transmitters()[down], link.params.rate,
               spines_[link.spine]->wire_bytes_at_warmup()[down], spines_[link.spine]->cell_bytes_at_warmup()[down]);
    add_link_samples(result, [&](std::size_t s) { return spines_[link.spine]->cell_bytes_at_samples()[s][down]; });
  }
}

void Fabric::collect(RunResult& result, TimePs end) const {
  result.fabric = "voq";
  result.end = end;
  result.warmup = config_.warmup;
  FrameBooks at_warmup;
  Histogram latency, request_to_grant, round_trip;
  std::uint64_t control_lost = 0;
  for (const auto& leaf : leaves_) {
    result.frames += leaf->books();
    at_warmup += leaf->books_at_warmup();
    result.in_flight += leaf->frames_inside();
    leaf->delivery().add_to(result, latency);
    leaf->buffer_meter().add_to(result.buffers, leaf->name(), end);
    result.cost.events += leaf->events();
    result.series.insert(result.series.end(), leaf->series().begin(), leaf->series().end());

    const Ingress& in = leaf->ingress();
    VoqResult& voq = result.voq;
    voq.max_bytes = std::max(voq.max_bytes, in.counters.voq_max_bytes);
    voq.buffer_max_bytes = std::max(voq.buffer_max_bytes, in.buffer().sram_max);
    voq.deep_bytes += in.buffer().deep_written;
    voq.deep_max_bytes = std::max(voq.deep_max_bytes, in.buffer().deep_max);
    voq.voqs_used += in.voqs().all().size();
    voq.ecn_marked += in.counters.ecn_marked;
    voq.pfc_xoff_sent += leaf->pfc_sent(true);
    voq.pfc_xon_sent += leaf->pfc_sent(false);
    for (const HostPort& host : leaf->hosts())
      for (std::uint32_t c = 0; c < traffic_classes; ++c) voq.pfc_paused += host.pauses().paused_total(c, end);

    GrantResult& grants = result.grants;
    const scheduler::SchedulerCounters& given = leaf->scheduler().counters;
    grants.requests += in.counters.requests;
    grants.returns += in.counters.give_backs;
    grants.requested_bytes += in.counters.requested_bytes;
    grants.returned_bytes += in.counters.given_back_bytes;
    grants.refreshes += in.counters.refreshes + given.refreshes;
    grants.watchdog_returns += in.counters.watchdog_returns;
    grants.grants += given.grants;
    grants.granted_bytes += given.granted_bytes;
    request_to_grant.merge(in.counters.request_to_grant);
    round_trip.merge(given.round_trip);

    for (const cells::CellTransmitter& link : leaf->uplinks().transmitters()) {
      result.cells.sent += link.counters.cells;
      result.cells.payload_bytes += link.counters.payload_bytes;
      result.cells.wire_bytes += link.counters.wire_bytes;
      result.cells.control_sent += link.counters.control_cells;
      result.cells.marked += link.counters.marked;
    }
    result.cells.delivered += leaf->cells_delivered();
    result.cells.lost += leaf->cells_lost();
    for (const cells::CellReceiver& link : leaf->downlinks()) control_lost += link.control_lost;
    result.reorder.max_depth = std::max<std::uint64_t>(result.reorder.max_depth, leaf->reassembler().max_depth);
    result.reorder.timeouts += leaf->reassembler().timeouts;
    for (const scheduler::OutputPort& output : leaf->outputs())
      result.egress.buffer_max_bytes = std::max(result.egress.buffer_max_bytes, output.max_bytes);
  }
  for (const auto& spine : spines_) {
    result.cost.events += spine->events();
    result.cells.hold_backs += spine->hold_backs();
    result.series.insert(result.series.end(), spine->series().begin(), spine->series().end());
    for (const cells::CellReceiver& link : spine->receivers()) control_lost += link.control_lost;
    for (const cells::CellTransmitter& link : spine->transmitters()) result.cells.marked += link.counters.marked;
  }
  // On a wire or inside a spine; those that wait at their own leaf have not been sent yet.
  for (const auto& link : up_) {
    link->data.visit([&](const cells::Cell&) { ++result.cells.in_flight; });
    result.cells.in_flight -= link->data.queued();
  }
  for (const auto& link : down_) link->data.visit([&](const cells::Cell&) { ++result.cells.in_flight; });
  result.grants.control_lost = control_lost;
  result.in_flight += frames_on_links();
  result.latency = latency.summary();
  result.latency_curve = latency.curve(latency_curve_points);
  result.grants.round_trip = round_trip.summary();
  result.grants.request_to_grant = request_to_grant.summary();
  result.egress.buffer_bytes = config_.scheduler.egress_buffer_bytes;
  const FrameBooks& b = result.frames;
  result.offered_after_warmup = b.offered - at_warmup.offered;
  result.offered_bytes_after_warmup = b.offered_bytes - at_warmup.offered_bytes;
  result.delivered_after_warmup = b.delivered - at_warmup.delivered;
  result.delivered_bytes_after_warmup = b.delivered_bytes - at_warmup.delivered_bytes;
  result.balanced = b.offered + b.replicated == b.delivered + b.filtered_total() + b.dropped_total() + result.in_flight;
  collect_links(result, end);
  std::sort(result.flows.begin(), result.flows.end(), [](const FlowResult& a, const FlowResult& b2) {
    return std::pair(a.source, a.destination) < std::pair(b2.source, b2.destination);
  });
  std::stable_sort(result.series.begin(), result.series.end(),
                   [](const SeriesRow& a, const SeriesRow& b2) { return a.at < b2.at; });
}

}  // namespace weft::voq
