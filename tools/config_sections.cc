// SPDX-License-Identifier: BSD-3-Clause
#include "tools/config_sections.h"

#include <arpa/inet.h>

#include "dataplane/addresses.h"
#include "tools/config_topology.h"

namespace weft {
namespace {

constexpr std::uint64_t size_max = 1ull << 40;
constexpr Limits<TimePs> any_time{0, time_max}, some_time{1_ns, time_max};
constexpr Limits<TimePs> pipeline{0, 1_ms};

std::string mac_problem(const std::string& text) {
  try {
    if ((parse_mac(text)[0] & 1) != 0) return "is a group address";
  } catch (const std::invalid_argument&) {
    return "is not a MAC address";
  }
  return "";
}

std::string prefix_problem(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) return "has no prefix length";
  unsigned char address[16] = {};
  const std::string host = text.substr(0, slash);
  const bool v4 = inet_pton(AF_INET, host.c_str(), address) == 1;
  if (!v4 && inet_pton(AF_INET6, host.c_str(), address) != 1) return "is not an IP prefix";
  const unsigned bits = v4 ? 32 : 128;
  std::uint64_t length = bits + 1;
  try {
    length = parse_integer(text.substr(slash + 1));
  } catch (const UnitError&) {  // stays out of range
  }
  if (length > bits) return "has a prefix length beyond " + std::to_string(bits);
  for (std::uint64_t bit = length; bit < bits; ++bit)
    if ((address[bit / 8] >> (7 - bit % 8) & 1) != 0) return "has bits set beyond its prefix length";
  return "";
}

Section clock_section(ClockConfig& clock) {
  return {
      {"mode", choice<bool>(clock.wall, {{"virtual", false}, {"wall", true}}),
       "virtual: emulated time runs as fast as it can and jumps over idle stretches; wall: it is held to real time, as "
       "live ports need it"},
      {"dilation", count(clock.dilation, {1, 1'000'000}),
       "wall: emulated seconds take so many real ones (1000: a 400 Mb/s host carries a 400G port)"},
      {"idle", time(clock.idle, {1_us, 10_ms}, "spin"),
       "wall: real time that a worker with nothing to do sleeps; spin: it never does, which costs a CPU and gives the "
       "least delay"},
  };
}

/// Devargs are DPDK's own; what is checked here is that there is something, on one line.
std::string device_problem(const std::string& text) {
  if (text.empty()) return "is empty";
  for (const char c : text)
    if (static_cast<unsigned char>(c) <= 0x20) return "holds blanks";
  return "";
}

}  // namespace

Config default_config() {
  Config config;
  config.topology = make_topology({});
  return config;
}

Section config_section(Config& config) {
  RunConfig& run = config.run;
  return {
      {"fabric", choice<FabricKind>(config.fabric, {{"voq", FabricKind::voq}, {"ethernet", FabricKind::ethernet}}),
       "voq: the scheduled fabric; ethernet: shared buffers, PFC, ECN, ECMP"},
      {"topology", topology_value(config.topology), "which switches there are and how they are joined"},
      {"clock", mapping(clock_section(config.clock)), "what paces emulated time"},
      {"workers", count(run.workers, {1, 128}), "threads, each with a core of its own; results do not depend on it"},
      {"seed", count(run.seed, {0, ~std::uint64_t{0}}), "of everything random; the same seed gives the same result"},
      {"warmup", time(run.warmup, any_time),
       "first part of the run, left out of rates and percentiles (counts are of it all)"},
      {"duration", time_or(run.duration, some_time, "drained"),
       "emulated time; drained: until the traffic has been carried, with live ports until Ctrl-C"},
      {"sample_interval", time(run.sample_interval, some_time, "auto"),
       "between rows of series.csv; auto: a 200th of the duration; without one 1ms, and 1s by the wall clock"},
      {"frame_pool", count(run.frame_pool, {64, 1u << 30}, "auto"),
       "frames that may be inside at once, taken from memory at start; auto: from the model's buffers"},
      {"forwarding", mapping(forwarding_section(config.forwarding, config.topology)), "how a leaf finds a frame's way"},
      {"classes", mapping(classes_section(config.classes)), "traffic classes 0 to 7"},
      {"voq", mapping(voq_section(config.voq)), "scheduled fabric, ingress leaf: queues, buffer, requests"},
      {"scheduler", mapping(scheduler_section(config.scheduler)),
       "scheduled fabric, egress leaf: grants, output queues"},
      {"cells", mapping(cells_section(config.cells)), "scheduled fabric, between leaves: the cell fabric"},
      {"ethernet", mapping(ethernet_section(config.ethernet)), "Ethernet fabric: switches, leaf and spine alike"},
      {"ports", ports_value(config.ports, config.topology), "live ports: DPDK devices as hosts (docs/live.md)"},
      {"traffic", traffic_value(config.traffic, config.topology, config.source),
       "one entry or a list that runs together"},
      {"faults", faults_value(config.faults, config.topology), "what happens to fabric links during the run"},
      {"capture", mapping(capture_section(config.capture, config.topology)), "what capture.pcapng shows"},
  };
}

Value ports_value(std::vector<PortConfig>& ports, const Topology& topology) {
  const auto section = [&topology](PortConfig& one) -> Section {
    return {
        {"at", port(one.port, topology), "host port that the device is the host of", true},
        {"dev", text(one.device, "DPDK devargs: net_af_packet0,iface=veth0, or a PCI address", device_problem),
         "DPDK device, as DPDK writes it", true},
        {"mtu", count(one.mtu, {68, max_frame_bytes - 14}, "keep"),
         "set on the device, in bytes as IP counts; keep: as it is"},
        {"promiscuous", flag(one.promiscuous), "take frames to any address"},
        {"multicast", flag(one.multicast), "take frames to any group"},
        {"queue", size(one.queue_bytes, {64u << 10, size_max}),
         "of each class, in front of the emulated link: what the host sends faster than that is dropped beyond it"},
        {"pfc",
         choice<PfcAbility>(one.pfc, {{"auto", PfcAbility::automatic},
                                      {"none", PfcAbility::none},
                                      {"send", PfcAbility::send},
                                      {"receive", PfcAbility::receive},
                                      {"both", PfcAbility::both}}),
         "pause frames that pass the device: to the host (send), from it (receive); auto: as the device says"},
    };
  };
  PortConfig example;
  example.device = "net_af_packet0,iface=veth0";
  return list_of<PortConfig>(
      section, [&ports] { return ports; },
      [&ports](PortConfig one, const YamlNode& node) {
        for (const PortConfig& other : ports)
          if (other.port == one.port) refuse(*node.find("at"), "is given twice", "each host port once");
        ports.push_back(std::move(one));
      },
      {example});
}

Section forwarding_section(ForwardingConfig& forwarding, const Topology& topology) {
  using Pair = std::pair<std::uint32_t, std::uint32_t>;
  const auto route = [&topology](RouteEntry& entry) -> Section {
    return {{"prefix", text(entry.prefix, "an IP prefix such as 198.18.1.0/24 or 2001:db8::/64", prefix_problem),
             "longest match wins", true},
            {"port", port(entry.port, topology), "where it leaves the fabric", true},
            {"next_hop",
             text(entry.next_hop_mac, "a MAC address, or \"\"",
                  [](const std::string& mac) { return mac.empty() ? "" : mac_problem(mac); }),
             "destination address of routed frames; \"\": the known address of the port's host"}};
  };
  const auto pair = [&topology](Pair& entry) -> Section {
    return {{"in", port(entry.first, topology), "frames that enter here", true},
            {"out", port(entry.second, topology), "leave there", true}};
  };
  return {
      {"mode",
       choice<ForwardingMode>(
           forwarding.mode,
           {{"bridge", ForwardingMode::bridge}, {"route", ForwardingMode::route}, {"static", ForwardingMode::fixed}}),
       "bridge: by learnt MAC; route: by longest prefix; static: by port"},
      {"ageing", time(forwarding.ageing, some_time),
       "bridge: a learnt address is forgotten after this silence (802.1D: 300 s)"},
      {"learn", choice<bool>(forwarding.learn_only, {{"known", false}, {"learn", true}}),
       "known: modelled and replayed hosts are known from the start; learn: only by their frames"},
      {"router_mac", text(forwarding.router_mac, "a MAC address such as 02:00:00:00:00:01", mac_problem),
       "route: the address that hosts send to"},
      {"routes",
       list_of<RouteEntry>(
           route, [&forwarding] { return forwarding.routes; },
           [&forwarding](RouteEntry entry, const YamlNode&) { forwarding.routes.push_back(std::move(entry)); },
           {{"198.18.1.0/24", 1, "02:00:00:00:00:01"}}),
       "mode route: prefixes and the ports behind which they are"},
      {"static",
       list_of<Pair>(
           pair, [&forwarding] { return forwarding.fixed; },
           [&forwarding](const Pair& entry, const YamlNode& node) {
             for (const Pair& other : forwarding.fixed)
               if (other.first == entry.first) refuse(*node.find("in"), "is given twice", "each port once");
             forwarding.fixed.push_back(entry);
           },
           {{0, topology.hosts_per_leaf}}),
       "mode static: the map of ports"},
      {"mtu", count(forwarding.mtu, {64, max_frame_bytes}),
       "longest frame in bytes, without FCS; up to 8 bytes of VLAN tags come on top"},
  };
}

Section classes_section(ClassesConfig& classes) {
  return {
      {"lossless", class_set(classes.lossless),
       "classes that are never dropped for want of buffer: PFC pauses their senders"},
      {"dscp", table(classes.dscp_to_class, "DSCP", "class", {0, 7}),
       "class of an untagged IP frame; entries change the default, which is 0 but for 3 and 26: 3, 4 and 34: 4 "
       "(RoCE, AF41), 46: 5 (EF), 48: 6 (CNP), 56: 7, 8: 1 and 16: 2 (CS1, CS2)"},
      {"pcp", table(classes.pcp_to_class, "PCP", "class", {0, 7}), "class of a frame with a VLAN tag"},
      {"strict", table(classes.strict_group, "class", "group", {0, 7}),
       "a higher group is served first; by default 7 before 6 before the rest"},
      {"weights", table(classes.weight, "class", "weight", {1, 1000}), "deficit-weighted round robin within a group"},
      {"ecn", class_set(classes.ecn),
       "classes that voq.ecn and ethernet.ecn mark; where none is named ethernet marks the lossless ones"},
      {"pfc_reaction", time(classes.pfc_reaction, pipeline, "auto"),
       "of a modelled host, from the pause frame's last bit to silence; auto: by rate, as the headroom formula "
       "assumes"},
  };
}

Section ecn_section(EcnConfig& ecn) {
  return {{"kmin", size(ecn.kmin_bytes, {0, size_max}), "no marks at or below this queue depth"},
          {"kmax", size(ecn.kmax_bytes, {0, size_max}), "every frame is marked above it; 0 with kmin 0: no ECN"},
          {"pmax", number(ecn.pmax, {0, 1}, true), "probability of a mark at kmax; in between it rises in a line"},
          {"at", choice<bool>(ecn.at_dequeue, {{"enqueue", false}, {"dequeue", true}}),
           "when the depth is judged; both kinds of switch exist"},
          {"not_ect", choice<bool>(ecn.drop_not_ect, {{"pass", false}, {"drop", true}}),
           "what a mark does to a frame that is not ECN-capable; lossless classes always pass it"}};
}

Section voq_section(voq::VoqConfig& voq) {
  return {
      {"latency", time(voq.latency, pipeline), "ingress pipeline: last bit in to admission"},
      {"sram", size(voq.sram_bytes, {64u << 10, size_max}), "on-chip buffer of a leaf"},
      {"deep", size(voq.deep_bytes, {0, size_max}), "external buffer of a leaf; 0: none"},
      {"deep_threshold", size(voq.deep_threshold_bytes, {0, size_max}),
       "a VOQ deeper than this moves to the external buffer"},
      {"deep_rate", rate(voq.deep_rate, "auto"),
       "external memory, reads and writes together; auto: twice the leaf's host links"},
      {"deep_latency", time(voq.deep_latency, pipeline), "of a read from external memory"},
      {"request_bytes", size(voq.request_bytes, {1, 1u << 30}), "a busy VOQ asks again when it has gathered so much"},
      {"request_delay", time(voq.request_delay, {0, 1_s}), "or when its oldest unasked frame has waited so long"},
      {"alpha", number(voq.alpha, {0, 1024}), "lossy: a VOQ may hold alpha x the free buffer"},
      {"limit", size(voq.voq_limit_bytes, {1, size_max}, "none"), "lossy: hard limit of one VOQ"},
      {"xoff", size(voq.xoff_bytes, {1, size_max}, "auto"),
       "lossless: an (ingress port, class) that holds more pauses its host; auto: its share of the sram"},
      {"xon", size(voq.xon_bytes, {1, size_max}, "auto"),
       "lossless: back below this the host may send; auto: half of xoff"},
      {"headroom", size(voq.headroom_bytes, {1, size_max}, "auto"),
       "lossless: room for what arrives after XOFF, of each (ingress port, class); auto: from rate, delay and mtu"},
      {"refresh", time(voq.refresh, {1_us, 1_s}), "outstanding requests, grants and returns are said again after this"},
      {"credit_watchdog", time(voq.credit_watchdog, {1_us, time_max}),
       "credit that lies unused for so long is returned (SAI: 500 ms)"},
      {"ecn", mapping(ecn_section(voq.ecn)), "ECN marking of classes.ecn"},
      {"force_fabric", flag(voq.force_fabric), "traffic between hosts of one leaf takes the cells as well"},
      {"max_voqs", count(voq.max_voqs, {1, 1u << 27}, "auto"),
       "of one leaf; auto: as many as the topology can ask for"},
  };
}

Section scheduler_section(scheduler::SchedulerConfig& scheduler) {
  return {
      {"credit_bytes", size(scheduler.credit_bytes, {64, 1u << 20}), "of one grant"},
      {"speedup", number(scheduler.speedup, {1, 16}), "grants are given at so many times the port's rate"},
      {"egress_buffer", size(scheduler.egress_buffer_bytes, {64, size_max}, "auto"),
       "of each (port, class): what may be granted and not have left; auto: from rate x grant round trip"},
      {"latency", time(scheduler.latency, pipeline), "egress pipeline: last cell in to output queue"},
  };
}

Section cells_section(cells::CellConfig& cells) {
  return {
      {"payload", size(cells.payload_bytes, {32, 16384}), "bytes of frames in a full cell"},
      {"header", size(cells.header_bytes, {0, 1024}), "wire cost of each cell"},
      {"control", size(cells.control_bytes, {1, 1024}), "a request, grant or return on the wire, header included"},
      {"spine_latency", time(cells.spine_latency, pipeline), "cell switch: last bit in to output queue"},
      {"reorder_window", count(cells.reorder_window, {2, 1u << 20}),
       "cells of one (source leaf, VOQ) that may be outstanding"},
      {"timeout", time(cells.timeout, {1_us, 1_s}), "a cell that is this late is given up"},
      {"mark", size(cells.mark_bytes, {1, 1u << 30}, "auto"),
       "a longer fabric queue sets the congestion bit; auto: 32 cells"},
      {"hold_back", size(cells.hold_back_bytes, {1, 1u << 30}, "auto"),
       "a spine input that queues more holds its upstream back; auto: 64KiB"},
      {"reachability_interval", time(cells.reachability_interval, {100_ns, 1_s}),
       "between messages on each link direction"},
      {"reachability_misses", count(cells.reachability_misses, {1, 1000}),
       "a link is dead after so many silent intervals"},
      {"reachability_bytes", size(cells.reachability_bytes, {1, 1024}), "wire cost of a message"},
  };
}

Section ethernet_section(ethernet::EthernetConfig& ethernet) {
  using namespace ethernet;
  return {
      {"buffer", size(ethernet.buffer_bytes, {64u << 10, size_max}), "packet buffer of a switch"},
      {"alpha", number(ethernet.alpha, {1.0 / 4096, 1024}),
       "lossless: an (ingress port, class) may hold alpha x the free pool before it pauses"},
      {"alpha_lossy", number(ethernet.alpha_lossy, {1.0 / 4096, 1024}),
       "lossy: an (egress port, class) may hold alpha x the free pool before it drops"},
      {"guaranteed", size(ethernet.guaranteed_bytes, {64, size_max}, "auto"),
       "set aside of the buffer for each of these; auto: a frame of the mtu"},
      {"headroom", size(ethernet.headroom_bytes, {1, size_max}, "auto"),
       "room for what arrives after XOFF, of each (ingress port, lossless class); auto: from rate, delay and mtu"},
      {"xon_offset", size(ethernet.xon_offset_bytes, {0, size_max}),
       "XON when an (ingress port, class) is so far below its threshold again"},
      {"ecn", mapping(ecn_section(ethernet.ecn)),
       "ECN marking by depth of the egress queue; thresholds of a 100G port, others have them in proportion"},
      {"load_balance",
       choice<LoadBalance>(ethernet.load_balance, {{"ecmp", LoadBalance::ecmp},
                                                   {"flowlet", LoadBalance::flowlet},
                                                   {"adaptive", LoadBalance::adaptive},
                                                   {"spray", LoadBalance::spray}}),
       "ecmp: by flow, hashed; flowlet: drawn anew after a pause of the flow; adaptive: after a pause the least loaded "
       "link; spray: by frame"},
      {"spray",
       choice<Spray>(
           ethernet.spray,
           {{"random", Spray::random}, {"round_robin", Spray::round_robin}, {"shortest_queue", Spray::shortest_queue}}),
       "how load_balance: spray chooses"},
      {"hash",
       mapping({{"fields",
                 choice<HashFields>(ethernet.hash.fields,
                                    {{"5tuple", HashFields::five_tuple}, {"5tuple+qp", HashFields::five_tuple_qp}}),
                 "what makes a flow; qp: the destination queue pair of RoCEv2"},
                {"seed", choice<bool>(ethernet.hash.shared_seed, {{"per_switch", false}, {"shared", true}}),
                 "shared: all switches hash alike, and tiers polarise"},
                {"resilient", flag(ethernet.hash.resilient), "a link that leaves moves no flows but its own"}}),
       "of ecmp, flowlet and adaptive"},
      {"flowlet_idle", time(ethernet.flowlet_idle, some_time), "a flowlet ends after this silence"},
      {"flowlet_entries", count(ethernet.flowlet_entries, {1, 1u << 24}), "of a switch's flowlet table"},
      {"load_interval", time(ethernet.load_interval, some_time),
       "adaptive: what a link has sent counts half after this"},
      {"cut_through", flag(ethernet.cut_through),
       "a switch sends a frame on when its header is in, where the outgoing link is not the faster one"},
      {"latency", time(ethernet.latency, pipeline), "pipeline: last bit in to admission"},
      {"pfc_reaction", time(ethernet.pfc_reaction, pipeline, "auto"),
       "of a switch, from the pause frame's last bit to silence; auto: by rate, as the headroom formula assumes"},
      {"detection", time(ethernet.detection, some_time),
       "from a link's failure or repair to its leaving or joining the links that frames are spread over"},
      {"watchdog",
       mapping({{"action",
                 choice<WatchdogAction>(ethernet.watchdog.action, {{"drop", WatchdogAction::drop},
                                                                   {"forward", WatchdogAction::forward},
                                                                   {"off", WatchdogAction::off}}),
                 "what becomes of a queue that stays paused: its frames are dropped, or sent all the same"},
                {"detect", time(ethernet.watchdog.detect, some_time), "so long it must have stood still"},
                {"restore", time(ethernet.watchdog.restore, some_time),
                 "so long no pause frame must have come for it to be over"}}),
       "PFC watchdog, of each (egress port, class)"},
  };
}

Section capture_section(CaptureConfig& capture, const Topology& topology) {
  Value points;
  points.accepts = points.unit = "list of hosts, cells, control, drops";
  points.read = [&capture, accepts = points.accepts](const YamlNode& node) {
    capture.hosts = capture.cells = capture.control = capture.drops = false;
    const auto take = [&](const YamlNode& item) {
      const std::string& name = scalar_of(item, accepts);
      if (name == "hosts")
        capture.hosts = true;
      else if (name == "cells")
        capture.cells = true;
      else if (name == "control")
        capture.control = true;
      else if (name == "drops")
        capture.drops = true;
      else
        refuse(item, "is no capture point", accepts);
    };
    if (node.kind != YamlNode::Kind::sequence) return take(node);
    for (const YamlNode& item : node.items) take(item);
  };
  points.write = [&capture] {
    std::vector<std::string> names;
    if (capture.hosts) names.emplace_back("hosts");
    if (capture.cells) names.emplace_back("cells");
    if (capture.control) names.emplace_back("control");
    if (capture.drops) names.emplace_back("drops");
    return "[" + join(names) + "]";
  };
  return {
      {"points", points,
       "hosts: frames at host ports; cells, control: what fabric links carry; drops: with their reason"},
      {"ports", port_list(capture.host_ports, topology, "all"), "host ports that are captured"},
      {"links", link_list(capture.links, topology, "all"), "fabric links that are captured"},
      {"snaplen", size(capture.snaplen, {0, 262'144}), "bytes kept of a frame; 0: all"},
  };
}

}  // namespace weft
