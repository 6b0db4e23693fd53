// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A leaf of the scheduled fabric with its hosts: one node, advanced as one piece. A frame's way through it reads
//   host port -> forwarding -> ingress (VOQ) -> uplinks (cells) ... downlinks -> reassembly -> output port -> host,
// with requests going out beside the cells and grants coming back.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cells/reassembler.h"
#include "cells/uplinks.h"
#include "dataplane/arrival_order.h"
#include "dataplane/buffer_meter.h"
#include "dataplane/delivery.h"
#include "dataplane/forward.h"
#include "dataplane/host_port.h"
#include "dataplane/live_hosts.h"
#include "dataplane/node.h"
#include "dataplane/timer_tree.h"
#include "scheduler/egress_scheduler.h"
#include "scheduler/output_port.h"
#include "voq/ingress.h"

namespace weft::voq {

struct LeafTaps {
  std::vector<TapId> host_in, host_out;  // [local port]
  TapId drops = no_tap;
};

struct LeafConfig {
  const Topology& topology;
  const ClassesConfig& classes;
  const VoqConfig& voq;
  const scheduler::SchedulerConfig& scheduler;
  const cells::CellConfig& cells;
  TimePs warmup;
  std::uint64_t seed;
};

class Leaf final : public Node, private IngressEvents {
 public:
  struct Downlink {  // in order (spine, parallel link)
    cells::CellLink* in;
    LinkFate fate;
  };

  /// `config` and what it refers to outlive the leaf. `copies`: memory for flood copies.
  Leaf(std::uint32_t leaf, const LeafConfig& config, std::unique_ptr<Forwarder> forwarder,
       const std::vector<cells::Uplinks::Port>& uplinks, std::vector<Downlink> downlinks,
       std::vector<cells::ReachabilityEvent> reachability, LeafTaps taps, CaptureBuffer* capture, FramePool* copies);

  void advance(TimePs from, TimePs until) override;
  [[nodiscard]] TimePs earliest() const override;
  [[nodiscard]] bool sent_in_window() const override { return uplinks_.sent_in_window(); }
  void at_stop(TimePs now, std::uint32_t kinds) override;
  void poll(TimePs now) override { live_.poll(now); }
  void flush() override { live_.flush(); }
  [[nodiscard]] CaptureBuffer* capture() override { return capture_; }

  void add_source(std::uint32_t local_port, std::unique_ptr<FrameSource> source, FramePool* pool);
  void add_live_port(std::uint32_t local_port, LivePort* live);

  // For the results, when the run is over.
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const FrameBooks& books() const { return books_; }
  [[nodiscard]] const FrameBooks& books_at_warmup() const { return books_at_warmup_; }
  [[nodiscard]] const Ingress& ingress() const { return ingress_; }
  [[nodiscard]] const scheduler::EgressScheduler& scheduler() const { return scheduler_; }
  [[nodiscard]] const cells::Reassembler& reassembler() const { return reassembler_; }
  [[nodiscard]] const cells::Uplinks& uplinks() const { return uplinks_; }
  [[nodiscard]] const std::vector<cells::CellReceiver>& downlinks() const { return downlinks_; }
  [[nodiscard]] const std::vector<HostPort>& hosts() const { return hosts_; }
  [[nodiscard]] const std::vector<scheduler::OutputPort>& outputs() const { return outputs_; }
  [[nodiscard]] const DeliveryRecord& delivery() const { return delivery_; }
  [[nodiscard]] const std::vector<SeriesRow>& series() const { return series_; }
  [[nodiscard]] std::uint64_t events() const { return events_; }
  [[nodiscard]] std::uint64_t cells_delivered() const { return cells_delivered_; }
  [[nodiscard]] std::uint64_t cells_lost() const { return cells_lost_; }
  [[nodiscard]] std::uint64_t pfc_sent(bool xoff) const { return xoff ? xoff_sent_ : xon_sent_; }
  /// Frames in VOQs, reassembly and output queues; those in cells on links are counted where the links are.
  [[nodiscard]] std::uint64_t frames_inside() const;
  struct WireBytes {
    std::vector<std::uint64_t> host_in, host_out, uplinks;
    std::vector<std::uint64_t> uplink_cells;  // of `uplinks`, without keep-alives
  };
  [[nodiscard]] const WireBytes& wire_at_warmup() const { return wire_at_warmup_; }
  /// [sample]
  [[nodiscard]] const std::vector<WireBytes>& wire_at_samples() const { return wire_at_samples_; }
  [[nodiscard]] const BufferMeter& buffer_meter() const { return buffer_meter_; }

 private:
  void send_pfc(std::uint32_t port, std::uint8_t classes, bool xoff, TimePs now) override;
  void drop(Frame* frame, DropReason reason, TimePs now) override;

  static constexpr std::uint32_t look_ahead = 16;  // items; some 400 ns of work, more than a miss costs
  void prefetch(void* item) const;

  // One function for each kind of event.
  void admission(std::uint32_t port, TimePs now);
  void cell(const cells::Cell& cell, TimePs now);
  void control(const cells::ControlCell& control, TimePs now);
  void output(std::uint32_t port, TimePs now);
  void timer(std::uint32_t slot, TimePs now);

  void deliver(Frame* frame, std::uint32_t port, TimePs now);
  void live_arrivals(TimePs from, TimePs until);
  void flood(Frame* frame, TimePs now);
  void mac_control(Frame* frame, TimePs now);
  void filter(Frame* frame, FilterReason reason);
  void leave(Frame* frame, bool whole, TimePs now);
  void pauses_changed(std::uint32_t port, TimePs now);
  void run_loopback(TimePs now);
  void apply_reachability(TimePs now);
  void sample(TimePs now);
  WireBytes wire_bytes_now() const;
  void measure_buffer(TimePs now) { buffer_meter_.set(ingress_.voq_bytes() + output_bytes_, now); }

  // Timer slots: six for each port, then one for each block. Lower slots go first at equal times.
  enum PortSlot : std::uint32_t {
    slot_host_pause,
    slot_port_pause,
    slot_admission,
    slot_output,
    slot_grant,
    slot_pause_end,
    port_slots
  };
  enum BlockSlot : std::uint32_t { slot_ingress, slot_reassembly, slot_scheduler, slot_pfc, block_slots };
  [[nodiscard]] std::uint32_t slot(PortSlot kind, std::uint32_t port) const { return kind * ports_ + port; }
  [[nodiscard]] std::uint32_t slot(BlockSlot kind) const { return port_slots * ports_ + kind; }

  const std::string name_;
  const std::uint32_t leaf_, ports_;
  const Topology& topology_;
  const TimePs ingress_latency_, egress_latency_;
  std::unique_ptr<Forwarder> forwarder_;
  CaptureBuffer* capture_;
  LeafTaps taps_;
  FramePool* copies_;
  std::vector<HostPort> hosts_;
  LiveHosts live_;
  std::vector<scheduler::OutputPort> outputs_;
  std::vector<PendingPauses> port_pauses_;  // [local port] of its host, not in effect yet
  PfcAccounting pfc_;
  cells::Uplinks uplinks_;
  std::vector<cells::CellReceiver> downlinks_;
  cells::Reassembler reassembler_;
  Ingress ingress_;
  scheduler::EgressScheduler scheduler_;
  DeliveryRecord delivery_;
  std::vector<cells::ReachabilityEvent> reachability_;
  std::size_t next_reachability_ = 0;
  ArrivalOrder order_;
  TimerTree timers_;
  std::vector<std::uint32_t> downlink_spine_;

  FrameBooks books_, books_at_warmup_, books_at_sample_;
  WireBytes wire_at_warmup_;
  std::vector<WireBytes> wire_at_samples_;
  BufferMeter buffer_meter_;
  std::uint64_t output_bytes_ = 0;  // frames in output queues, the one being sent included
  std::uint64_t events_ = 0, cells_delivered_ = 0, cells_lost_ = 0, cells_at_sample_ = 0;
  std::uint64_t xoff_sent_ = 0, xon_sent_ = 0;
  std::vector<SeriesRow> series_;
};

}  // namespace weft::voq
