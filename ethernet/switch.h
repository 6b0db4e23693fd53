// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A shared-buffer switch, one node: a spine, or a leaf with its hosts. A frame's way through it reads
//   host port -> forwarding  \                                                      / host
//                             > pipeline -> load balancing -> MMU -> egress port -> <
//   fabric link              /                                                      \ fabric link
//
// Frames are counted where the pipeline ends, `latency` behind their last bit (with cut-through: behind their header).
// Between leaves a frame carries its egress port, found once at the ingress leaf; spines forward by the leaf that it
// belongs to.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/arrival_order.h"
#include "dataplane/buffer_meter.h"
#include "dataplane/capture_buffer.h"
#include "dataplane/delivery.h"
#include "dataplane/forward.h"
#include "dataplane/host_port.h"
#include "dataplane/link_fate.h"
#include "dataplane/live_hosts.h"
#include "dataplane/node.h"
#include "dataplane/timer_tree.h"
#include "dataplane/topology.h"
#include "ethernet/config.h"
#include "ethernet/egress_port.h"
#include "ethernet/link.h"
#include "ethernet/load_balance.h"
#include "ethernet/mmu.h"

namespace weft::ethernet {

/// A port to another switch.
struct FabricPort {
  EthernetLink* out = nullptr;
  EthernetLink* in = nullptr;
  LinkParams params;
  std::uint32_t far_port = 0;                    // its number at the far end
  LinkFate fate;                                 // of what arrives
  TapId frame_tap = no_tap, pause_tap = no_tap;  // of what is sent
};

/// What a switch learns of links, `detection` after it happened.
struct LinkNotice {
  TimePs at = 0;
  enum class What : std::uint8_t { members, rate } what = What::members;
  std::uint32_t group = 0;             // members: the leaf that they lead to
  std::vector<std::uint16_t> members;  // members: fabric ports, counted from the first fabric port
  std::uint32_t port = 0;              // rate: of this fabric port
  Rate rate{};
};

struct SwitchTaps {
  std::vector<TapId> host_in, host_out;  // [local port], or empty
  TapId drops = no_tap;
};

struct SwitchConfig {
  const Topology& topology;
  const ClassesConfig& classes;
  const EthernetConfig& ethernet;
  std::uint32_t mtu;
  TimePs warmup;
  std::uint64_t seed;
};

/// Pauses that a link's sender was told, by where they began.
struct PauseCause {
  PauseRoot root;
  std::uint64_t pauses = 0;
};

class Switch final : public Node {
 public:
  static constexpr std::uint32_t no_leaf = ~std::uint32_t{0};
  /// `index`: of the switch among all, leaves first. `leaf`: its number, or no_leaf for a spine. `groups`: for each
  /// leaf the fabric ports that lead to it. A spine has neither forwarder nor copies. What `config` refers to outlives
  /// the switch. Throws std::invalid_argument where the buffer cannot hold what is set aside of it.
  Switch(std::uint32_t index, std::uint32_t leaf, std::string name, const SwitchConfig& config,
         std::unique_ptr<Forwarder> forwarder, std::vector<FabricPort> fabric_ports,
         std::vector<std::vector<std::uint16_t>> groups, std::vector<LinkNotice> notices, SwitchTaps taps,
         CaptureBuffer* capture, FramePool* copies);

  void advance(TimePs from, TimePs until) override;
  [[nodiscard]] TimePs earliest() const override;
  [[nodiscard]] bool sent_in_window() const override { return sent_in_window_; }
  void at_stop(TimePs now, std::uint32_t kinds) override;
  void poll(TimePs now) override { live_.poll(now); }
  void flush() override { live_.flush(); }
  [[nodiscard]] CaptureBuffer* capture() override { return capture_; }

  void add_source(std::uint32_t local_port, std::unique_ptr<FrameSource> source, FramePool* pool);
  void add_live_port(std::uint32_t local_port, LivePort* live);

  // For the results, when the run is over. Ports: hosts first, then fabric ports.
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const FrameBooks& books() const { return books_; }
  [[nodiscard]] const FrameBooks& books_at_warmup() const { return books_at_warmup_; }
  [[nodiscard]] const Mmu& mmu() const { return mmu_; }
  [[nodiscard]] const BufferMeter& buffer_meter() const { return buffer_meter_; }
  [[nodiscard]] const std::vector<EgressPort>& ports() const { return ports_; }
  [[nodiscard]] const std::vector<HostPort>& hosts() const { return hosts_; }
  [[nodiscard]] const DeliveryRecord* delivery() const { return delivery_.get(); }
  [[nodiscard]] const std::vector<SeriesRow>& series() const { return series_; }
  struct WireBytes {
    std::vector<std::uint64_t> sent;     // [port]
    std::vector<std::uint64_t> host_in;  // [local port]
  };
  [[nodiscard]] const WireBytes& wire_at_warmup() const { return wire_at_warmup_; }
  [[nodiscard]] const std::vector<WireBytes>& wire_at_samples() const { return wire_at_samples_; }
  /// [port]: pauses that made the far end of `port` stop (hosts), or this port (fabric ports).
  [[nodiscard]] const std::vector<std::vector<PauseCause>>& pause_causes() const { return pause_causes_; }
  [[nodiscard]] std::uint64_t events() const { return events_; }
  [[nodiscard]] std::uint64_t frames_forwarded() const { return frames_forwarded_; }
  [[nodiscard]] std::uint64_t ecn_marked() const { return ecn_marked_; }
  [[nodiscard]] std::uint64_t storms() const { return storms_; }
  [[nodiscard]] std::uint64_t flowlets() const { return balancer_.flowlets_begun; }
  /// Frames in queues and on the way to hosts; those on fabric links are counted where the links are.
  [[nodiscard]] std::uint64_t frames_inside() const;

 private:
  // What happens, one function for each kind.
  void gather(TimePs until);
  void arrival(const FrameOnWire& item, TimePs now);
  void pause_arrival(const PauseOnWire& item, TimePs now) { paused(item.port, item.pfc, item.root, now); }
  void admission(std::uint32_t port, TimePs now);
  void output(std::uint32_t port, TimePs now);
  void timer(std::uint32_t slot, TimePs now);

  // The way of a frame.
  void forward(const FrameRef& frame, std::uint32_t in, TimePs tail, TimePs now);
  void enqueue(const FrameRef& frame, std::uint32_t in, std::uint32_t out, TimePs ready, TimePs now);
  void start(const FrameRef& frame, std::uint32_t out, TimePs now);
  void settle(std::uint32_t port);
  void live_arrivals(TimePs from, TimePs until);
  bool judge_ecn(Frame* frame, const EgressPort& port, std::uint64_t depth);
  [[nodiscard]] FrameRef ref_of(Frame* frame, bool with_key) const;
  void flood(Frame* frame, TimePs tail, TimePs now);
  void mac_control(Frame* frame, TimePs tail, TimePs now);
  void drop(Frame* frame, DropReason reason, TimePs now);
  void filter(Frame* frame, FilterReason reason);

  // Pauses.
  void paused(std::uint32_t port, const PfcFrame& pfc, const PauseRoot& root, TimePs now);
  void send_xoff(std::uint32_t in, std::uint32_t out, std::uint32_t traffic_class, TimePs now);
  void send_xon(std::uint32_t in, std::uint32_t traffic_class, TimePs now);
  void transmit_pause(std::uint32_t port, TimePs now);
  void note_cause(std::uint32_t port, const PauseRoot& root);
  void arm(std::uint32_t port, TimePs now) { timers_.set(slot(slot_output, port), ports_[port].next_event(now)); }

  // Watchdog (watchdog.cc).
  void stalled(std::uint32_t port, std::uint32_t traffic_class, TimePs now);
  void moved(std::uint32_t port, std::uint32_t traffic_class);
  bool storm_over(std::uint32_t port, std::uint32_t traffic_class, TimePs now);
  void watchdog(TimePs now);

  void sample(TimePs now);
  [[nodiscard]] WireBytes wire_bytes_at(TimePs now) const;

  // Timer slots. Lower ones go first at equal times.
  enum SlotKind : std::uint32_t { slot_output, slot_host_pause, slot_port_pause, slot_admission };
  [[nodiscard]] std::uint32_t slot(SlotKind kind, std::uint32_t port) const {
    return kind == slot_output ? port : all_ports_ + (kind - 1) * hosts_count_ + port;
  }
  [[nodiscard]] std::uint32_t slot_refresh() const { return all_ports_ + 3 * hosts_count_; }
  [[nodiscard]] std::uint32_t slot_watchdog() const { return slot_refresh() + 1; }

  struct Delivery {  // a frame on its way to a host
    Frame* frame = nullptr;
    TimePs end = never;
  };
  struct Stall {            // of a (port, class)
    TimePs since = never;   // it has frames, is paused, and sends nothing
    TimePs last_pause = 0;  // in a storm: the last XOFF
  };

  const std::uint32_t index_, leaf_, hosts_count_, all_ports_;
  const std::string name_;
  const Topology& topology_;
  const EthernetConfig& config_;
  const TimePs latency_;
  const bool cut_through_;
  std::uint32_t ecn_classes_ = 0;
  std::unique_ptr<Forwarder> forwarder_;
  CaptureBuffer* capture_;
  SwitchTaps taps_;
  FramePool* copies_;
  std::vector<HostPort> hosts_;
  LiveHosts live_;
  std::vector<Delivery> deliveries_;        // [local port]
  std::vector<PendingPauses> port_pauses_;  // [local port] of its host, not in effect yet
  std::vector<FabricPort> fabric_;
  std::vector<TimePs> reaction_;  // [port] to pause frames
  std::vector<EgressPort> ports_;
  std::vector<std::uint64_t> rates_;  // [port]
  Mmu mmu_;
  BufferMeter buffer_meter_;
  LoadBalancer balancer_;
  bool needs_key_;
  std::vector<LoadBalancer::Group> groups_;  // [leaf]
  std::vector<std::uint32_t> route_;         // [host port of the fabric]: local port, or group | remote
  static constexpr std::uint32_t remote = 1u << 31;
  std::vector<LinkNotice> notices_;
  std::size_t next_notice_ = 0;
  Rng ecn_chance_;
  ArrivalOrder order_;
  TimerTree timers_;
  std::vector<Stall> stalls_;  // [port * classes + class]
  std::uint32_t stalled_count_ = 0;

  std::unique_ptr<DeliveryRecord> delivery_;
  FrameBooks books_, books_at_warmup_, books_at_sample_;
  WireBytes wire_at_warmup_;
  std::vector<WireBytes> wire_at_samples_;
  std::vector<std::vector<PauseCause>> pause_causes_;
  std::uint64_t events_ = 0, frames_forwarded_ = 0, ecn_marked_ = 0, storms_ = 0;
  std::uint64_t published_ = 0;
  std::vector<Frame*> dropped_;  // in this window
  bool sent_in_window_ = false;
  std::vector<SeriesRow> series_;
};

}  // namespace weft::ethernet
