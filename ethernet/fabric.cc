// SPDX-License-Identifier: BSD-3-Clause
#include "ethernet/fabric.h"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "dataplane/link_samples.h"

namespace weft::ethernet {

namespace {

enum Purpose : std::uint64_t { purpose_frame_fate = 0x700, purpose_pause_fate = 0x710 };

/// Fabric ports by the leaf that they lead to, for a leaf and for a spine, while `alive` holds for some links.
std::vector<std::uint16_t> leaf_members(const Topology& t, std::uint32_t leaf, std::uint32_t to,
                                        const std::vector<bool>& alive) {
  std::vector<std::uint16_t> members;
  if (leaf == to) return members;
  for (std::uint32_t s = 0; s < t.spines; ++s) {
    bool beyond = false;
    for (std::uint32_t k = 0; k < t.parallel_links; ++k) beyond |= alive[t.link_index(to, s, k)];
    for (std::uint32_t k = 0; k < t.parallel_links; ++k)
      if (beyond && alive[t.link_index(leaf, s, k)])
        members.push_back(static_cast<std::uint16_t>(s * t.parallel_links + k));
  }
  return members;
}

std::vector<std::uint16_t> spine_members(const Topology& t, std::uint32_t spine, std::uint32_t to,
                                         const std::vector<bool>& alive) {
  std::vector<std::uint16_t> members;
  for (std::uint32_t k = 0; k < t.parallel_links; ++k)
    if (alive[t.link_index(to, spine, k)]) members.push_back(static_cast<std::uint16_t>(to * t.parallel_links + k));
  return members;
}

}  // namespace

Fabric::Fabric(FabricConfig config, std::span<const KnownHost> known, FramePool* copies) : config_(std::move(config)) {
  const Topology& t = config_.topology;
  for (const FabricLink& link : t.fabric_links) {
    if (link.params.delay == 0)
      throw std::invalid_argument(
          "topology.fabric_link.delay: a fabric link needs a delay above 0 (it is what lets nodes run apart)");
    const std::string suffix = t.parallel_links > 1 ? "." + std::to_string(link.parallel) : "";
    const std::string leaf = "leaf" + std::to_string(link.leaf), spine = "spine" + std::to_string(link.spine);
    up_.push_back(std::make_unique<EthernetLink>());
    up_.back()->name = leaf + ">" + spine + suffix;
    down_.push_back(std::make_unique<EthernetLink>());
    down_.back()->name = spine + ">" + leaf + suffix;
  }
  make_taps();
  plan_notices();
  for (std::uint32_t index = 0; index < t.leaves + t.spines; ++index) make_switch(index, known, copies);
}

Fabric::~Fabric() = default;

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
  switch_taps_.resize(t.leaves + t.spines);
  link_taps_.resize(t.fabric_links.size());
  for (std::uint32_t leaf = 0; leaf < t.leaves && c.hosts; ++leaf)
    for (std::uint32_t p = 0; p < t.hosts_per_leaf; ++p) {
      const std::uint32_t port = leaf * t.hosts_per_leaf + p;
      const bool tapped = wanted(c.host_ports, port);
      const Rate rate = t.host_links[port].rate;
      switch_taps_[leaf].host_in.push_back(tapped ? add(port_name(t, port) + " in", "from the host", rate) : no_tap);
      switch_taps_[leaf].host_out.push_back(tapped ? add(port_name(t, port) + " out", "to the host", rate) : no_tap);
    }
  for (std::uint32_t i = 0; i < t.leaves + t.spines && c.drops; ++i)
    switch_taps_[i].drops =
        add((is_leaf(i) ? "leaf" + std::to_string(i) : "spine" + std::to_string(i - t.leaves)) + " drops",
            "frames dropped here, with the reason", {});
  // What are cells and control cells on the scheduled fabric are frames and pause frames here.
  for (std::uint32_t link = 0; link < t.fabric_links.size(); ++link) {
    if (!(c.cells || c.control) || !wanted(c.links, link)) continue;
    const Rate rate = t.fabric_links[link].params.rate;
    const TapId up = add(up_[link]->name, "towards the spine", rate);
    const TapId down = add(down_[link]->name, "towards the leaf", rate);
    if (c.cells) link_taps_[link].frames_up = up, link_taps_[link].frames_down = down;
    if (c.control) link_taps_[link].pauses_up = up, link_taps_[link].pauses_down = down;
  }
}

// What each switch learns, and when: of rates at once, of failures and repairs after `detection`.
void Fabric::plan_notices() {
  const Topology& t = config_.topology;
  notices_.resize(t.leaves + t.spines);
  std::vector<FaultConfig> faults = config_.faults;
  std::stable_sort(faults.begin(), faults.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
  std::vector<bool> alive(t.fabric_links.size(), true);
  for (const FaultConfig& fault : faults) {
    const FabricLink& link = t.fabric_links[fault.link];
    const std::uint32_t spine = t.leaves + link.spine;
    const std::uint32_t up = link.spine * t.parallel_links + link.parallel,
                        down = link.leaf * t.parallel_links + link.parallel;
    if (fault.kind == FaultKind::rate) {
      LinkNotice notice{.at = fault.at, .what = LinkNotice::What::rate, .port = up, .rate = fault.rate};
      notices_[link.leaf].push_back(notice);
      notice.port = down;
      notices_[spine].push_back(notice);
      fault_times_.push_back(fault.at);
    }
    if (fault.kind != FaultKind::down && fault.kind != FaultKind::up) continue;
    alive[fault.link] = fault.kind == FaultKind::up;
    const TimePs at = fault.at + config_.ethernet.detection;
    fault_times_.push_back(at);
    for (std::uint32_t leaf = 0; leaf < t.leaves; ++leaf)
      for (std::uint32_t to = 0; to < t.leaves; ++to)
        if (leaf != to && (leaf == link.leaf || to == link.leaf))
          notices_[leaf].push_back({.at = at, .group = to, .members = leaf_members(t, leaf, to, alive)});
    notices_[spine].push_back(
        {.at = at, .group = link.leaf, .members = spine_members(t, link.spine, link.leaf, alive)});
  }
  for (auto& notices : notices_)
    std::stable_sort(notices.begin(), notices.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
}

void Fabric::make_switch(std::uint32_t index, std::span<const KnownHost> known, FramePool* copies) {
  const Topology& t = config_.topology;
  const std::vector<bool> all(t.fabric_links.size(), true);
  std::vector<FabricPort> ports;
  std::vector<std::vector<std::uint16_t>> groups;
  const auto add = [&](std::uint32_t link, bool upward) {
    const FabricLink& l = t.fabric_links[link];
    FabricPort& port = ports.emplace_back();
    port.out = (upward ? up_ : down_)[link].get();
    port.in = (upward ? down_ : up_)[link].get();
    port.params = l.params;
    port.far_port =
        upward ? l.leaf * t.parallel_links + l.parallel : t.hosts_per_leaf + l.spine * t.parallel_links + l.parallel;
    const std::uint64_t incoming = upward ? 1 : 0;
    port.fate = LinkFate(config_.faults, link, l.params, stream(config_.seed, link, purpose_frame_fate + incoming),
                         stream(config_.seed, link, purpose_pause_fate + incoming));
    port.frame_tap = upward ? link_taps_[link].frames_up : link_taps_[link].frames_down;
    port.pause_tap = upward ? link_taps_[link].pauses_up : link_taps_[link].pauses_down;
  };
  std::uint32_t leaf = Switch::no_leaf;
  std::string name;
  std::unique_ptr<Forwarder> forwarder;
  if (is_leaf(index)) {
    leaf = index;
    name = "leaf" + std::to_string(leaf);
    for (std::uint32_t s = 0; s < t.spines; ++s)
      for (std::uint32_t k = 0; k < t.parallel_links; ++k) add(t.link_index(leaf, s, k), true);
    for (std::uint32_t to = 0; to < t.leaves; ++to) groups.push_back(leaf_members(t, leaf, to, all));
    forwarder = Forwarder::make(t, config_.forwarding, config_.classes, known);
  } else {
    const std::uint32_t spine = index - t.leaves;
    name = "spine" + std::to_string(spine);
    for (std::uint32_t l = 0; l < t.leaves; ++l)
      for (std::uint32_t k = 0; k < t.parallel_links; ++k) add(t.link_index(l, spine, k), false);
    for (std::uint32_t to = 0; to < t.leaves; ++to) groups.push_back(spine_members(t, spine, to, all));
  }
  captures_.push_back(taps_.empty() ? nullptr : std::make_unique<CaptureBuffer>(config_.capture.snaplen));
  const SwitchConfig config{t, config_.classes, config_.ethernet, config_.forwarding.mtu, config_.warmup, config_.seed};
  switches_.push_back(std::make_unique<Switch>(index, leaf, std::move(name), config, std::move(forwarder),
                                               std::move(ports), std::move(groups), std::move(notices_[index]),
                                               switch_taps_[index], captures_.back().get(), copies));
}

std::vector<Node*> Fabric::nodes() const {
  std::vector<Node*> nodes;
  for (const auto& one : switches_) nodes.push_back(one.get());
  return nodes;
}

std::vector<std::uint32_t> Fabric::placement(std::uint32_t workers) const {
  // Leaves in turn, and spines from where they left off, so that an odd leaf is made up for by an odd spine.
  std::vector<std::uint32_t> worker_of;
  for (std::uint32_t i = 0; i < switches_.size(); ++i) worker_of.push_back(i % workers);
  return worker_of;
}

TimePs Fabric::window() const { return longest_window(config_.topology); }

void Fabric::add_source(std::uint32_t port, std::unique_ptr<FrameSource> source, FramePool* pool) {
  switches_[config_.topology.leaf_of(port)]->add_source(config_.topology.local_of(port), std::move(source), pool);
}

void Fabric::add_live_port(std::uint32_t port, LivePort* live) {
  switches_[config_.topology.leaf_of(port)]->add_live_port(config_.topology.local_of(port), live);
}

std::uint64_t Fabric::delivered() const {
  std::uint64_t frames = 0;
  for (const auto& one : switches_) frames += one->books().delivered;
  return frames;
}

/// "leaf0:p3 out", "leaf0>spine1": the egress port where a queue grew.
std::string Fabric::port_of_root(std::uint32_t root) const {
  const Topology& t = config_.topology;
  const std::uint32_t index = root >> 16, port = root & 0xffff;
  if (is_leaf(index)) {
    if (port < t.hosts_per_leaf) return port_name(t, index * t.hosts_per_leaf + port) + " out";
    return up_[index * t.spines * t.parallel_links + port - t.hosts_per_leaf]->name;
  }
  return down_[t.link_index(port / t.parallel_links, index - t.leaves, port % t.parallel_links)]->name;
}

void Fabric::collect_links(RunResult& result, TimePs end) const {
  const Topology& t = config_.topology;
  const TimePs span = end > config_.warmup ? end - config_.warmup : 0;
  // Bytes of hosts are counted a pipeline late and whole, so that a busy link could come out a frame above 1.
  const auto add = [&](std::string name, Rate rate, std::uint64_t wire, std::uint64_t wire_at_warmup) -> LinkResult& {
    LinkResult& link = result.links.emplace_back();
    link.name = std::move(name);
    link.rate_bps = static_cast<double>(rate.bits_per_s);
    link.wire_bytes = wire;
    const double possible = link.rate_bps / 8 * static_cast<double>(span) * 1e-12;
    link.load = link.utilisation =
        possible > 0 ? std::min(1.0, static_cast<double>(wire - wire_at_warmup) / possible) : 0;
    return link;
  };
  const auto paused = [&](const PauseState& pauses) {
    TimePs sum = 0;
    for (std::uint32_t c = 0; c < traffic_classes; ++c) sum += pauses.paused_total(c, end);
    return sum;
  };
  const auto causes = [&](const std::string& link, const std::vector<PauseCause>& list) {
    for (const PauseCause& cause : list)
      result.ethernet.pauses.push_back({link, port_of_root(cause.root.port), cause.root.hops, cause.pauses});
  };
  const auto add_sender = [&](std::string name, Rate rate, const Switch& from, std::uint32_t port) -> LinkResult& {
    const EgressPort& egress = from.ports()[port];
    LinkResult& link = add(std::move(name), rate, egress.sent_by(end), from.wire_at_warmup().sent[port]);
    add_link_samples(result, [&](std::size_t s) { return from.wire_at_samples()[s].sent[port]; });
    link.control_bytes = egress.pause_bytes;
    link.queue_max_bytes = egress.max_bytes;
    link.paused = paused(egress.pauses());
    return link;
  };
  begin_link_samples(result, switches_.front()->series());
  for (std::uint32_t port = 0; port < t.host_ports(); ++port) {
    const Switch& leaf = *switches_[t.leaf_of(port)];
    const std::uint32_t p = t.local_of(port);
    const HostPort& host = leaf.hosts()[p];
    const Rate rate = t.host_links[port].rate;
    const std::string in = port_name(t, port) + " in";
    add(in, rate, host.wire_bytes_sent(), leaf.wire_at_warmup().host_in[p]).paused = paused(host.pauses());
    add_link_samples(result, [&](std::size_t s) { return leaf.wire_at_samples()[s].host_in[p]; });
    causes(in, leaf.pause_causes()[p]);
    add_sender(port_name(t, port) + " out", rate, leaf, p);
  }
  for (std::uint32_t i = 0; i < t.fabric_links.size(); ++i) {
    const FabricLink& link = t.fabric_links[i];
    const Switch &leaf = *switches_[link.leaf], &spine = *switches_[t.leaves + link.spine];
    const std::uint32_t up = t.hosts_per_leaf + link.spine * t.parallel_links + link.parallel;
    const std::uint32_t down = link.leaf * t.parallel_links + link.parallel;
    add_sender(up_[i]->name, link.params.rate, leaf, up);
    causes(up_[i]->name, leaf.pause_causes()[up]);
    add_sender(down_[i]->name, link.params.rate, spine, down);
    causes(down_[i]->name, spine.pause_causes()[down]);
  }
}

void Fabric::warn(RunResult& result) const {
  warn_of_polarisation(result);
  warn_of_headroom(result);
}

// Two choices by one hash: of a spine's links to a leaf a frame takes the one that its uplink implies. With one spine
// that is still all of them.
void Fabric::warn_of_polarisation(RunResult& result) const {
  const Topology& t = config_.topology;
  const EthernetConfig& e = config_.ethernet;
  if (e.load_balance != LoadBalance::ecmp || !e.hash.shared_seed || t.spines < 2 || t.parallel_links < 2) return;
  result.warnings.push_back(
      "ethernet.hash.seed: shared by leaves and spines, both of which choose between links: tiers "
      "polarise, and some links carry nothing; per_switch cures it");
}

void Fabric::warn_of_headroom(RunResult& result) const {
  const Topology& t = config_.topology;
  const EthernetConfig& e = config_.ethernet;
  const bool lossless = std::find(config_.classes.lossless.begin(), config_.classes.lossless.end(), true) !=
                        config_.classes.lossless.end();
  if (e.headroom_bytes == 0 || !lossless) return;
  std::uint64_t needed = 0;
  const auto look = [&](const LinkParams& link, TimePs reaction) {
    if (reaction == 0) reaction = default_reaction_time(link.rate);
    needed = std::max(needed, headroom_bytes(link.rate, link.delay, config_.forwarding.mtu + 8, reaction, e.latency));
  };
  for (const LinkParams& link : t.host_links) look(link, config_.classes.pfc_reaction);
  for (const FabricLink& link : t.fabric_links) look(link.params, e.pfc_reaction);
  if (e.headroom_bytes < needed)
    result.warnings.push_back("ethernet.headroom: " + std::to_string(e.headroom_bytes) +
                              " bytes are less than can arrive after XOFF (" + std::to_string(needed) +
                              " on the longest link): lossless frames can be lost");
}

void Fabric::collect(RunResult& result, TimePs end) const {
  result.fabric = "ethernet";
  result.end = end;
  result.warmup = config_.warmup;
  FrameBooks at_warmup;
  Histogram latency;
  EthernetResult& ethernet = result.ethernet;
  ethernet.buffer_bytes = config_.ethernet.buffer_bytes;
  for (const auto& one : switches_) {
    result.frames += one->books();
    at_warmup += one->books_at_warmup();
    result.in_flight += one->frames_inside();
    if (one->delivery() != nullptr) one->delivery()->add_to(result, latency);
    result.cost.events += one->events();
    result.series.insert(result.series.end(), one->series().begin(), one->series().end());
    one->buffer_meter().add_to(result.buffers, one->name(), end);
    ethernet.frame_hops += one->frames_forwarded();
    ethernet.ecn_marked += one->ecn_marked();
    ethernet.watchdog_storms += one->storms();
    ethernet.flowlets += one->flowlets();
    ethernet.buffer_max_bytes = std::max(ethernet.buffer_max_bytes, one->mmu().used_max_bytes());
    ethernet.headroom_max_bytes = std::max(ethernet.headroom_max_bytes, one->mmu().headroom_max_bytes());
    for (std::uint32_t p = 0; p < one->ports().size(); ++p) {
      const EgressPort& port = one->ports()[p];
      ethernet.headroom_bytes = std::max(ethernet.headroom_bytes, one->mmu().headroom_bytes(p));
      ethernet.pfc_xoff_sent += port.pauses_sent;
      ethernet.pfc_xon_sent += port.resumes_sent;
      ethernet.pfc_received += port.pauses_received;
      for (std::uint32_t c = 0; c < traffic_classes; ++c) ethernet.pfc_paused += port.pauses().paused_total(c, end);
    }
    for (const HostPort& host : one->hosts())
      for (std::uint32_t c = 0; c < traffic_classes; ++c)
        ethernet.pfc_hosts_paused += host.pauses().paused_total(c, end);
  }
  for (const auto* links : {&up_, &down_})
    for (const auto& link : *links) link->frames.visit([&](const FrameOnWire&) { ++result.in_flight; });
  result.latency = latency.summary();
  result.latency_curve = latency.curve(latency_curve_points);
  const FrameBooks& b = result.frames;
  result.offered_after_warmup = b.offered - at_warmup.offered;
  result.offered_bytes_after_warmup = b.offered_bytes - at_warmup.offered_bytes;
  result.delivered_after_warmup = b.delivered - at_warmup.delivered;
  result.delivered_bytes_after_warmup = b.delivered_bytes - at_warmup.delivered_bytes;
  result.balanced = b.offered + b.replicated == b.delivered + b.filtered_total() + b.dropped_total() + result.in_flight;
  collect_links(result, end);
  warn(result);
  std::sort(result.flows.begin(), result.flows.end(), [](const FlowResult& x, const FlowResult& y) {
    return std::pair(x.source, x.destination) < std::pair(y.source, y.destination);
  });
  std::stable_sort(result.series.begin(), result.series.end(),
                   [](const SeriesRow& x, const SeriesRow& y) { return x.at < y.at; });
}

}  // namespace weft::ethernet
