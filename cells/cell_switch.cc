// SPDX-License-Identifier: BSD-3-Clause
#include "cells/cell_switch.h"

#include <algorithm>

#include "cells/cell_format.h"

namespace weft::cells {

CellSwitch::CellSwitch(std::uint32_t spine, const Topology& topology, const CellConfig& config, std::vector<Port> ports,
                       std::vector<DownlinkEvent> events, CaptureBuffer* capture)
    : spine_(spine),
      name_("spine" + std::to_string(spine)),
      parallel_(topology.parallel_links),
      latency_(config.spine_latency),
      hold_bytes_(config.hold_back_bytes),
      header_bytes_(config.header_bytes),
      alive_(ports.size(), 1),
      waiting_bytes_(topology.leaves),
      holding_(topology.leaves),
      held_at_(topology.leaves),
      turn_(topology.leaves),
      events_due_(std::move(events)),
      capture_(capture),
      wire_bytes_at_warmup_(ports.size()),
      cell_bytes_at_warmup_(ports.size()) {
  in_.reserve(ports.size());
  out_.reserve(ports.size());
  for (Port& port : ports) {
    in_.emplace_back(port.in, std::move(port.fate), config.header_bytes, config.control_bytes);
    CellTransmitter& out = out_.emplace_back(port.transmitter, port.out);
    out.data_tap = port.data_tap;
    out.control_tap = port.control_tap;
  }
}

void CellSwitch::drain(std::uint32_t port, TimePs limit) {
  CellTransmitter& out = out_[port];
  std::uint64_t* const waiting = waiting_bytes_.data();
  const std::uint32_t header = header_bytes_;
  if (out.data_tap == no_tap && out.control_tap == no_tap) [[likely]] {
    out.drain(
        limit, [=](const Cell& cell, TimePs) { waiting[cell.source] -= cell.payload + header; },
        [](const ControlCell&, TimePs) {});
    return;
  }
  const auto record = [&](TapId tap, const auto& cell, TimePs end) {
    if (tap == no_tap) return;
    materialise(cell, scratch_);
    capture_->bytes(tap, end, scratch_.data(), static_cast<std::uint32_t>(scratch_.size()));
  };
  out.drain(
      limit,
      [&](const Cell& cell, TimePs end) {
        waiting[cell.source] -= cell.payload + header;
        record(out.data_tap, cell, end);
      },
      [&](const ControlCell& cell, TimePs end) { record(out.control_tap, cell, end); });
}

// Links to the same leaf take turns. Those known to be dead are passed over; with none alive the first carries the
// cell, and the far end of the dead link loses it: reachability has not yet told the leaves.
std::uint32_t CellSwitch::downlink(std::uint16_t leaf) {
  const std::uint32_t first = leaf * parallel_;
  if (parallel_ == 1) return first;
  for (std::uint32_t tries = 0; tries < parallel_; ++tries) {
    turn_[leaf] = (turn_[leaf] + 1) % parallel_;
    if (alive_[first + turn_[leaf]] != 0) return first + turn_[leaf];
  }
  return first;
}

void CellSwitch::switch_data(const Cell& cell, TimePs now) {
  Cell& queued = out_[downlink(cell.destination)].append();
  queued = cell;
  queued.at = now + latency_;
  if ((cell.flags & cell_lost) == 0) [[likely]]
    waiting_bytes_[cell.source] += cell.payload + header_bytes_;
}

void CellSwitch::switch_control(const ControlCell& cell, TimePs now) {
  out_[downlink(cell.destination)].send_control(cell, now + latency_);
}

// Judged once a window, as hardware samples its thresholds; the room kept above the threshold covers a window as well.
// Stop above it, go on below half of it. A stop goes to every link of the leaf: what it sprays it sprays on all.
void CellSwitch::check_hold(std::uint32_t leaf, TimePs now) {
  const bool hold = waiting_bytes_[leaf] > (holding_[leaf] != 0 ? hold_bytes_ / 2 : hold_bytes_);
  const bool held = holding_[leaf] != 0;
  if (hold == held && (!hold || now - held_at_[leaf] < hold_time / 2)) return;
  holding_[leaf] = hold ? 1 : 0;
  held_at_[leaf] = now;
  if (hold && !held) ++hold_backs_;
  for (std::uint32_t k = 0; k < parallel_; ++k) {
    ControlCell order{};
    order.kind = ControlKind::hold_back;
    order.total = hold ? 1 : 0;
    order.source = static_cast<std::uint16_t>(spine_);
    order.destination = static_cast<std::uint16_t>(leaf);
    order.stream = static_cast<std::uint16_t>(k);
    out_[leaf * parallel_ + k].send_control(order, now + latency_);
  }
}

void CellSwitch::advance(TimePs from, TimePs until) {
  order_.begin(from, until);
  for (const CellReceiver& in : in_) in.prefetch();
  for (CellReceiver& in : in_) in.gather(order_, until);
  order_.sort();
  const std::uint32_t count = order_.size();
  for (std::uint32_t i = 0; i < count; ++i) {
    void* item = order_.item(i);
    if (CellReceiver::is_control(item)) [[unlikely]]
      switch_control(CellReceiver::control(item), order_.time(i));
    else
      switch_data(CellReceiver::cell(item), order_.time(i));
  }
  events_ += count;
  sent_in_window_ = false;
  // All that arrives before `until` is known, and with it all that is ready before `until` + latency.
  for (std::uint32_t port = 0; port < out_.size(); ++port) {
    drain(port, until + latency_);
    out_[port].publish();
    sent_in_window_ |= out_[port].sent_in_window();
  }
  for (std::uint32_t leaf = 0; leaf < waiting_bytes_.size(); ++leaf) check_hold(leaf, until);
  for (CellReceiver& in : in_) in.retire();
}

TimePs CellSwitch::earliest() const {
  TimePs at = never;
  for (const CellReceiver& in : in_) at = std::min(at, in.earliest());
  for (const CellTransmitter& out : out_) {
    const TimePs ready = out.earliest();
    at = std::min(at, ready == never ? never : ready - std::min(ready, latency_));
  }
  return at;
}

void CellSwitch::at_stop(TimePs now, std::uint32_t kinds) {
  if ((kinds & stop_fault) != 0)
    for (; next_event_ < events_due_.size() && events_due_[next_event_].at <= now; ++next_event_) {
      const DownlinkEvent& event = events_due_[next_event_];
      if (event.what == DownlinkEvent::What::rate)
        out_[event.port].set_rate(event.rate);
      else
        alive_[event.port] = event.what == DownlinkEvent::What::regain ? 1 : 0;
    }
  if ((kinds & stop_warmup) != 0)
    for (std::size_t i = 0; i < out_.size(); ++i) {
      wire_bytes_at_warmup_[i] = out_[i].counters.wire_bytes;
      cell_bytes_at_warmup_[i] = out_[i].cell_bytes_sent();
    }
  if ((kinds & stop_sample) != 0) {
    SeriesRow row;
    row.at = now;
    row.node = name_;
    std::uint64_t cells = 0;
    std::vector<std::uint64_t>& sent = cell_bytes_at_samples_.emplace_back();
    for (const CellTransmitter& out : out_) {
      cells += out.counters.cells;
      sent.push_back(out.cell_bytes_sent());
      row.fabric_queue_bytes += out.queued_bytes();
    }
    row.cells = cells - cells_at_sample_;
    cells_at_sample_ = cells;
    series_.push_back(std::move(row));
  }
}

}  // namespace weft::cells
