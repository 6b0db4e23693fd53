// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A spine: switches cells by destination leaf, one short queue for each link, and knows nothing of frames or VOQs.
//
// It loses no cell to congestion. A link queue over its threshold sets the congestion bit, which slows the grants that
// feed it. An input with too much waiting inside tells its leaf to hold data cells back, and keeps room for what is
// still on the way (2 x delay x rate). Hold-backs are counted; a fabric that is not oversubscribed needs none.
#include <cstdint>
#include <memory>
#include <vector>

#include "cells/config.h"
#include "cells/link.h"
#include "dataplane/node.h"
#include "dataplane/results.h"
#include "dataplane/topology.h"

namespace weft::cells {

/// A change in what a spine sends where: a downlink that has been noticed to be dead, or to be back, or runs at another
/// rate.
struct DownlinkEvent {
  TimePs at;
  std::uint32_t port;  // leaf * parallel links + parallel
  enum class What : std::uint8_t { lose, regain, rate } what;
  Rate rate{};
};

class CellSwitch final : public Node {
 public:
  struct Port {  // one fabric link, both directions; ports are ordered by (leaf, parallel link)
    CellLink* in;
    CellLink* out;
    TransmitterConfig transmitter;
    LinkFate fate;  // of `in`
    TapId data_tap = no_tap, control_tap = no_tap;
  };

  CellSwitch(std::uint32_t spine, const Topology& topology, const CellConfig& config, std::vector<Port> ports,
             std::vector<DownlinkEvent> events, CaptureBuffer* capture);

  void advance(TimePs from, TimePs until) override;
  [[nodiscard]] TimePs earliest() const override;
  [[nodiscard]] bool sent_in_window() const override { return sent_in_window_; }
  void at_stop(TimePs now, std::uint32_t kinds) override;
  [[nodiscard]] CaptureBuffer* capture() override { return capture_; }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::vector<CellTransmitter>& transmitters() const { return out_; }
  [[nodiscard]] const std::vector<CellReceiver>& receivers() const { return in_; }
  [[nodiscard]] std::uint64_t hold_backs() const { return hold_backs_; }
  [[nodiscard]] const std::vector<SeriesRow>& series() const { return series_; }
  [[nodiscard]] const std::vector<std::vector<std::uint64_t>>& cell_bytes_at_samples() const {  // [sample][downlink]
    return cell_bytes_at_samples_;
  }
  [[nodiscard]] const std::vector<std::uint64_t>& wire_bytes_at_warmup() const { return wire_bytes_at_warmup_; }
  /// The same without keep-alives.
  [[nodiscard]] const std::vector<std::uint64_t>& cell_bytes_at_warmup() const { return cell_bytes_at_warmup_; }
  [[nodiscard]] std::uint64_t events() const { return events_; }

 private:
  void switch_data(const Cell& cell, TimePs now);
  void switch_control(const ControlCell& cell, TimePs now);
  void drain(std::uint32_t port, TimePs limit);
  void check_hold(std::uint32_t leaf, TimePs now);
  std::uint32_t downlink(std::uint16_t leaf);

  const std::uint32_t spine_;
  const std::string name_;
  const std::uint32_t parallel_;
  const TimePs latency_;
  const std::uint64_t hold_bytes_;
  const std::uint32_t header_bytes_;
  std::vector<CellReceiver> in_;
  std::vector<CellTransmitter> out_;
  std::vector<std::uint8_t> alive_;           // [port] downlinks not known to be dead
  std::vector<std::uint64_t> waiting_bytes_;  // [leaf] that came from it and have not left
  std::vector<std::uint8_t> holding_;         // [leaf]
  std::vector<TimePs> held_at_;               // [leaf] when that was last said
  std::vector<std::uint32_t> turn_;           // [leaf] parallel link that was used last
  std::vector<DownlinkEvent> events_due_;
  std::size_t next_event_ = 0;
  ArrivalOrder order_;
  CaptureBuffer* capture_;
  std::vector<std::uint8_t> scratch_;
  bool sent_in_window_ = false;
  std::uint64_t hold_backs_ = 0, events_ = 0, cells_at_sample_ = 0;
  std::vector<SeriesRow> series_;
  std::vector<std::vector<std::uint64_t>> cell_bytes_at_samples_;
  std::vector<std::uint64_t> wire_bytes_at_warmup_, cell_bytes_at_warmup_;
};

}  // namespace weft::cells
