// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What every fabric needs to be told, as plain data. tools/config.cc fills it from YAML and is the only
// place that knows keys, units and defaults' spelling; the values below are the defaults.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "dataplane/frame.h"
#include "dataplane/time.h"
#include "dataplane/topology.h"

namespace weft {

enum class ForwardingMode : std::uint8_t { bridge, route, fixed };

struct RouteEntry {
  std::string prefix;        // "198.18.1.0/24" or "2001:db8::/64"
  std::uint32_t port = 0;    // host port that the prefix is behind
  std::string next_hop_mac;  // "02:00:00:00:00:01"; empty: the known address of the port's host
  bool operator==(const RouteEntry&) const = default;
};

struct ForwardingConfig {
  ForwardingMode mode = ForwardingMode::bridge;
  TimePs ageing = 300_s;                         // a learnt address is forgotten after this silence (802.1D: 300 s)
  bool learn_only = false;                       // true: modelled and replayed hosts are not known from the start
  std::string router_mac = "02:77:65:66:74:00";  // route mode: the address that hosts send to
  std::vector<RouteEntry> routes;                // route mode
  std::vector<std::pair<std::uint32_t, std::uint32_t>> fixed;  // fixed ("static") mode: in port -> out port
  std::uint32_t mtu = max_frame_bytes;  // longest frame, without FCS, 802.1Q/ad tags not counted (8 bytes at most)
  bool operator==(const ForwardingConfig&) const = default;
};

/// Everything on class 0 but what operators of RoCE mark: 26 (and 3, 34, 4) on the lossless classes 3 and 4, EF (46) on
/// 5, CNP and CS6 (48) on 6, CS7 (56) on 7. CS1 (8) and CS2 (16) reach classes 1 and 2, so every class has a code
/// point.
constexpr std::array<std::uint8_t, 64> default_dscp_map() {
  std::array<std::uint8_t, 64> map{};
  map[8] = 1, map[16] = 2, map[3] = 3, map[26] = 3, map[4] = 4, map[34] = 4, map[46] = 5, map[48] = 6, map[56] = 7;
  return map;
}

struct ClassesConfig {
  std::array<bool, traffic_classes> lossless{false, false, false, true, true, false, false, false};
  std::array<std::uint8_t, 64> dscp_to_class = default_dscp_map();
  std::array<std::uint8_t, 8> pcp_to_class{0, 1, 2, 3, 4, 5, 6, 7};
  std::array<std::uint8_t, traffic_classes> strict_group{0, 0, 0, 0, 0, 0, 1, 2};  // higher is served first
  std::array<std::uint16_t, traffic_classes> weight{1, 1, 1, 1, 1, 1, 1, 1};       // DRR inside a group
  std::array<bool, traffic_classes> ecn{};                                         // classes that are marked
  TimePs pfc_reaction = 0;  // of a modelled host, from the pause frame's last bit; 0: by rate, see pfc.h
  bool operator==(const ClassesConfig&) const = default;
};

struct EcnConfig {
  std::uint64_t kmin_bytes = 0, kmax_bytes = 0;  // 0, 0: off
  double pmax = 0;
  bool at_dequeue = false;    // depth judged when the frame leaves and not when it enters
  bool drop_not_ect = false;  // lossy classes only: a Not-ECT frame chosen for a mark is dropped
  bool operator==(const EcnConfig&) const = default;
};

struct ReplayPort {       // which frames enter where; the first entry that matches a frame wins
  std::string mac;        // source address, or empty
  std::string interface;  // capture interface by name or number, or empty
  std::uint32_t port = 0;
  bool operator==(const ReplayPort&) const = default;
};

struct ReplayConfig {
  std::string file;
  double speed = 1.0;
  std::uint32_t loop = 1;
  TimePs start = 0;               // emulated time of the first frame
  TimePs max_gap = 60_s;          // a longer silence is shortened to this, and counted
  bool strict = false;            // refuse what would otherwise be repaired and counted
  std::vector<ReplayPort> ports;  // empty: each new source MAC gets the next host port, dealt round the leaves
  bool operator==(const ReplayConfig&) const = default;
};

enum class Pattern : std::uint8_t { permutation, incast, all_to_all, one };

struct ConstantConfig {
  Pattern pattern = Pattern::permutation;
  double load = 0.5;                        // share of each sender's line rate, wire overhead included
  std::vector<std::uint32_t> frames{1500};  // lengths without FCS, sent in turn (imix: 7 x 60, 4 x 566, 1 x 1514)
  std::uint8_t traffic_class = 3;
  bool ect = true;  // ECT(0), else Not-ECT
  std::uint16_t udp_source = 49152, udp_destination = 4791;
  bool poisson = false;                // exponential gaps, else fixed
  std::uint32_t receiver = 0;          // incast
  std::vector<std::uint32_t> senders;  // incast: empty is everyone else
  std::uint32_t from = 0, to = 1;      // one
  TimePs start = 0, stop = never;
  bool operator==(const ConstantConfig&) const = default;
};

using TrafficConfig = std::variant<ReplayConfig, ConstantConfig>;

enum class FaultKind : std::uint8_t { down, up, data_loss, control_loss, rate };

struct FaultConfig {
  TimePs at = 0;
  std::uint32_t link = 0;  // index into Topology::fabric_links
  FaultKind kind = FaultKind::down;
  double probability = 0;  // data_loss, control_loss: of each cell
  Rate rate{};             // rate
  bool operator==(const FaultConfig&) const = default;
};

struct CaptureConfig {
  bool hosts = false, cells = false, control = false, drops = false;
  std::vector<std::uint32_t> host_ports;  // empty: all of them
  std::vector<std::uint32_t> links;       // empty: all of them
  std::uint32_t snaplen = 0;              // 0: whole frames
  bool operator==(const CaptureConfig&) const = default;
};

struct ClockConfig {
  bool wall = false;           // emulated time is held to real time, dilated
  std::uint32_t dilation = 1;  // emulated seconds take so many real ones
  TimePs idle = 50_us;         // real time that an idle worker sleeps between looks at its ports; 0: it spins
  bool operator==(const ClockConfig&) const = default;
};

/// What a live port can do about 802.1Qbb pause frames.
enum class PfcAbility : std::uint8_t { automatic, none, send, receive, both };

struct PortConfig {        // a DPDK device at the end of a host link
  std::uint32_t port = 0;  // host port that it is the host of
  std::string device;      // devargs: "net_af_packet0,iface=veth0", "0000:3b:00.0"
  std::uint32_t mtu = 0;   // of the device, as IP counts; 0: as the device has it
  bool promiscuous = true, multicast = true;
  std::uint64_t queue_bytes = 1 << 20;  // of each class, in front of the emulated link
  PfcAbility pfc = PfcAbility::automatic;
  bool operator==(const PortConfig&) const = default;
};

struct RunConfig {
  std::uint64_t seed = 1;
  std::uint32_t workers = 1;
  TimePs warmup = 0;
  std::optional<TimePs> duration;  // none: until the traffic has drained
  TimePs sample_interval = 0;      // of series.csv; 0: a 200th of the duration, or 1 ms where there is none
  std::uint64_t frame_pool = 0;    // frames that may be inside at once; 0: by the model, see frame_pool.h
  bool operator==(const RunConfig&) const = default;
};

}  // namespace weft
