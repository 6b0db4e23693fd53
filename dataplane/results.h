// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What a run found out, as plain data. The fabric fills it, tools/report writes it (docs/results-schema.json).
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/counters.h"
#include "dataplane/histogram.h"
#include "dataplane/time.h"

namespace weft {

struct LatencySummary {  // picoseconds; percentiles within 1/1024 of the value, least and most exact
  std::uint64_t count = 0;
  TimePs min = 0, p50 = 0, p90 = 0, p99 = 0, p999 = 0, max = 0;
  double mean = 0;
};

/// Points of a run's latency distribution, about: steps of half a percent of its samples, and of its range.
inline constexpr std::uint32_t latency_curve_points = 400;

struct LatencyPoint {  // of the distribution, in rising order
  TimePs at_most = 0;
  std::uint64_t frames = 0;  // that took no longer
};

struct LinkResult {
  std::string name;  // "leaf0>spine1", "spine1>leaf0", "leaf0:p3 in" (from the host), "leaf0:p3 out"
  double rate_bps = 0;
  double utilisation = 0;           // busy share of the time after warm-up, overhead included
  std::uint64_t wire_bytes = 0;     // whole run
  std::uint64_t control_bytes = 0;  // of these, control cells and keep-alives
  std::uint64_t queue_max_bytes = 0;
  TimePs paused = 0;  // held back by the far end (hold-back, PFC)
  double load = 0;    // of utilisation, what is no keep-alive: 0 on a link that carries nothing
};

struct FlowResult {
  std::uint32_t source = 0, destination = 0;  // host ports
  std::uint64_t frames = 0, bytes = 0;        // delivered, whole run
  std::uint64_t out_of_order = 0;             // frames that a later one of the same class had overtaken
  LatencySummary latency;                     // after warm-up
  TimePs first_sent = never;                  // first bit of the earliest frame out of the source
  TimePs last_delivered = 0;                  // last bit of the last frame into the destination
};

struct SeriesRow {  // one node at one sampling time; counts since the sample before, depths as they are
  TimePs at = 0;
  std::string node;
  std::uint64_t offered_bytes = 0, delivered_bytes = 0, dropped_frames = 0;
  std::uint64_t cells = 0;
  std::uint64_t voq_bytes = 0, deep_bytes = 0, fabric_queue_bytes = 0, egress_bytes = 0;
  std::uint32_t paused_ports = 0;
};

struct LinkSample {  // all links at one sampling time
  TimePs at = 0;
  std::vector<std::uint64_t>
      wire_bytes;  // [link, as in RunResult::links]: since the sample before, keep-alives left out
};

struct BufferResult {           // frames held in the packet buffers of switches (voq: VOQs and output queues of a leaf)
  std::uint64_t max_bytes = 0;  // most that any held at one time, whole run
  std::string max_node;
  double mean_bytes = 0;  // average over time after warm-up, of the switch where it is highest
  std::string mean_node;
  double all_mean_bytes = 0;  // the same, summed over all switches
};

struct VoqResult {
  std::uint64_t max_bytes = 0;         // deepest single VOQ
  std::uint64_t buffer_max_bytes = 0;  // fullest on-chip buffer of a leaf
  std::uint64_t deep_bytes = 0;        // written to external memory, whole run
  std::uint64_t deep_max_bytes = 0;
  std::uint64_t voqs_used = 0;
  std::uint64_t ecn_marked = 0;
  std::uint64_t pfc_xoff_sent = 0, pfc_xon_sent = 0;
  TimePs pfc_paused = 0;  // summed over (host port, class)
};

struct GrantResult {
  std::uint64_t requests = 0, grants = 0, returns = 0;  // control cells said, refreshes included
  std::uint64_t requested_bytes = 0, granted_bytes = 0, returned_bytes = 0;
  std::uint64_t control_lost = 0, refreshes = 0, watchdog_returns = 0;
  LatencySummary round_trip;        // a grant is given -> its bytes have left the egress port
  LatencySummary request_to_grant;  // a request leaves the VOQ -> the first grant after it is there
};

struct CellResult {
  std::uint64_t sent = 0, delivered = 0, lost = 0, in_flight = 0;
  std::uint64_t payload_bytes = 0, wire_bytes = 0;
  std::uint64_t control_sent = 0;
  std::uint64_t marked = 0;
  std::uint64_t hold_backs = 0;
};

struct ReorderResult {
  std::uint64_t max_depth = 0;  // cells between the one awaited and the newest, in any stream
  std::uint64_t timeouts = 0;
};

struct EgressResult {
  std::uint64_t buffer_bytes = 0;      // size, each (port, class)
  std::uint64_t buffer_max_bytes = 0;  // fullest that any was
};

struct PauseSpread {         // who was paused, and why
  std::string link;          // whose sender was told to stop: "leaf1>spine0", "leaf0:p3 in" (the host)
  std::string root;          // egress port whose queue began it: "leaf0:p0 out", "spine1>leaf0"
  std::uint32_t hops = 0;    // pauses from there to here; 1: that queue is in the switch at the end of `link`
  std::uint64_t pauses = 0;  // XOFF, refreshes on fabric links included
};

struct EthernetResult {
  std::uint64_t frame_hops = 0;  // frames that a switch forwarded or dropped, one for each switch
  std::uint64_t buffer_bytes = 0, buffer_max_bytes = 0;  // of one switch; fullest that any was
  std::uint64_t headroom_bytes = 0,
                headroom_max_bytes = 0;  // largest of any (ingress port, lossless class); most that any used
  std::uint64_t ecn_marked = 0;
  std::uint64_t pfc_xoff_sent = 0, pfc_xon_sent = 0;  // by switches, to hosts and to each other; refreshes included
  std::uint64_t pfc_received = 0;                     // by switches, hosts' own included
  TimePs pfc_paused = 0;                              // summed over (egress port, class) of switches
  TimePs pfc_hosts_paused = 0;                        // summed over (host, class)
  std::uint64_t watchdog_storms = 0;
  std::uint64_t flowlets = 0;  // begun (load_balance flowlet and adaptive)
  std::vector<PauseSpread> pauses;
};

struct ReplayResult {
  std::string file;
  std::uint64_t frames = 0;    // put on the emulated wire
  std::uint64_t expected = 0;  // readable Ethernet frames x loops
  std::uint64_t skipped = 0;   // of other link types, runts that no wire carries, ...: see notes
  std::uint64_t padded = 0;    // captured short, sent at the original length, zero-filled
  std::uint64_t gaps_shortened = 0;
  std::uint64_t time_reversed = 0;  // stamps earlier than the frame before
  std::vector<std::string> notes;   // one line each, for people
};

/// A run by the wall clock: how well the machine kept up. All times are emulated ones.
struct ClockResult {
  std::uint32_t dilation = 1;
  std::uint64_t windows = 0;  // in which something happened
  std::uint64_t late = 0;     // of these, begun later than their own length
  LatencySummary lag;         // of these, at their start: emulated behind wall time
  TimePs behind = 0;          // at the end of the run
};

struct PortResult {    // a live port, whole run
  std::string name;    // "leaf0:p3"
  std::string device;  // as in the config
  std::string driver;  // DPDK's name of it
  std::string pfc;     // what it does about 802.1Qbb frames, for people
  std::uint32_t mtu = 0;
  std::uint64_t rx_frames = 0, rx_bytes = 0;  // taken from the device
  std::uint64_t tx_frames = 0, tx_bytes = 0;  // given to the device
  std::uint64_t waiting = 0;                  // taken, and not yet on the emulated link at the end
  std::uint64_t completed_checksums = 0;      // frames whose sender had left the TCP or UDP checksum to its device
  std::uint64_t pfc_sent = 0, pfc_received = 0;
  std::uint64_t link_losses = 0;  // times that the link went down
  bool link_up = false;           // at the end
  std::array<std::uint64_t, port_losses> lost{};
};

struct CostResult {  // the only part that may differ between two runs of one model
  double wall_s = 0, cpu_s = 0;
  std::uint64_t windows = 0, events = 0;
};

struct RunResult {
  std::string fabric;
  std::uint64_t seed = 0;
  bool interrupted = false;  // ended before its time: a signal, or `error`
  std::string error;         // what ended it early (a capture that could not be written), one line; empty: nothing
  TimePs end = 0;            // emulated time at which the run ended
  TimePs warmup = 0;
  FrameBooks frames;
  std::uint64_t in_flight = 0;  // counted one by one where they are, not by subtraction
  bool balanced = false;
  std::uint64_t delivered_after_warmup = 0, delivered_bytes_after_warmup = 0;
  std::uint64_t offered_after_warmup = 0, offered_bytes_after_warmup = 0;
  LatencySummary latency;
  std::vector<LatencyPoint> latency_curve;
  TimePs last_delivered = 0;  // last bit of the last frame that reached its host; with none delivered, 0
  BufferResult buffers;
  CellResult cells;
  VoqResult voq;
  GrantResult grants;
  ReorderResult reorder;
  EgressResult egress;
  EthernetResult ethernet;
  std::vector<LinkResult> links;
  std::vector<FlowResult> flows;  // ordered by (source, destination)
  std::vector<SeriesRow> series;  // ordered by (time, node)
  std::vector<LinkSample> link_series;
  std::vector<ReplayResult> replays;
  std::optional<ClockResult> clock;  // none: virtual
  std::vector<PortResult> ports;     // live ones, as configured
  std::vector<std::string> warnings;
  CostResult cost;
};

}  // namespace weft
