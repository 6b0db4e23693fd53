// SPDX-License-Identifier: BSD-3-Clause
#include "cells/uplinks.h"

#include <algorithm>

#include "cells/cell_format.h"

namespace weft::cells {

namespace {
enum SprayPurpose : std::uint64_t { spray_data = 0x100, spray_control = 0x200 };
}

Uplinks::Uplinks(const Topology& topology, std::uint32_t leaf, const CellConfig& config, bool force_fabric,
                 const std::vector<Port>& ports, std::uint64_t seed, CaptureBuffer* capture)
    : leaf_(leaf),
      leaves_(topology.leaves),
      parallel_(topology.parallel_links),
      force_fabric_(force_fabric),
      payload_(config.payload_bytes),
      table_(topology, leaf),
      capture_(capture) {
  out_.reserve(ports.size());
  TimePs slowest_cell = 1;
  for (const Port& port : ports) {
    CellTransmitter& out = out_.emplace_back(port.transmitter, port.out);
    out.data_tap = port.data_tap;
    out.control_tap = port.control_tap;
    slowest_cell =
        std::max(slowest_cell, WireClock(port.transmitter.rate).time_of(config.payload_bytes + config.header_bytes));
  }
  retry_after_ = 16 * slowest_cell;
  for (std::uint32_t d = 0; d < leaves_; ++d) {
    sprays_.emplace_back(stream(seed, leaf, spray_data + (std::uint64_t{d} << 32)));
    control_sprays_.emplace_back(stream(seed, leaf, spray_control + (std::uint64_t{d} << 32)));
  }
  respray();
}

void Uplinks::respray() {
  std::vector<std::uint64_t> rates(out_.size());
  for (std::uint32_t d = 0; d < leaves_; ++d) {
    table_.rates_to(d, rates);
    sprays_[d].set_links(rates);
    control_sprays_[d].set_links(rates);
  }
  live_ = table_.live_uplinks();
}

bool Uplinks::apply(const ReachabilityEvent& event) {
  std::vector<bool> before(leaves_);
  for (std::uint32_t d = 0; d < leaves_; ++d) before[d] = sprays_[d].reaches();
  table_.apply(event);
  respray();
  for (std::uint32_t d = 0; d < leaves_; ++d)
    if (before[d] != sprays_[d].reaches()) return true;
  return false;
}

void Uplinks::drain(std::uint32_t port, TimePs limit) {
  CellTransmitter& out = out_[port];
  const std::uint32_t queued = out.queued_cells();
  if (out.data_tap == no_tap && out.control_tap == no_tap) [[likely]] {
    out.drain(
        limit, [](const Cell&, TimePs) {}, [](const ControlCell&, TimePs) {});
  } else {
    const auto record = [&](TapId tap, const auto& cell, TimePs end) {
      if (tap == no_tap) return;
      materialise(cell, scratch_);
      capture_->bytes(tap, end, scratch_.data(), static_cast<std::uint32_t>(scratch_.size()));
    };
    out.drain(
        limit, [&](const Cell& cell, TimePs end) { record(out.data_tap, cell, end); },
        [&](const ControlCell& cell, TimePs end) { record(out.control_tap, cell, end); });
  }
  queued_ -= queued - out.queued_cells();
}

// What has gone out in this window is only reckoned when it matters.
bool Uplinks::has_room(TimePs now) {
  if (queued_ < room_cells * live_) [[likely]]
    return true;
  for (std::uint32_t port = 0; port < out_.size(); ++port) drain(port, now);
  return queued_ < room_cells * live_;
}

void Uplinks::send(std::uint16_t destination, std::uint16_t stream, std::uint32_t& sequence,
                   std::span<const HeldFrame> burst, TimePs now) {
  Spray& spray = sprays_[destination];
  CellTransmitter* const out = out_.data();
  const HeldFrame* held = burst.data();
  const HeldFrame* const end = held + burst.size();
  const std::uint32_t payload = payload_;
  std::uint32_t left = held->length, number = sequence;  // left: of the frame that is being cut
  do {
    // A link whose queue stays long (held back, or slower than it says) is passed over, as long as another has room.
    std::uint32_t port = spray.next();
    for (std::uint32_t tries = 0; out[port].queued_cells() >= 2 * room_cells && tries < out_.size(); ++tries)
      port = spray.next();
    Cell& cell = out[port].append();
    cell.at = now;
    cell.first = held->frame;
    cell.sequence = number++;
    cell.offset = static_cast<std::uint16_t>(held->length - left);
    cell.stream = stream;
    cell.source = static_cast<std::uint16_t>(leaf_);
    cell.destination = destination;
    std::uint32_t room = payload, ending = 0;
    std::uint8_t flags = 0;
    while (left <= room) {
      room -= left;
      ++ending;
      Frame* const ended = held->frame;
      if (++held == end) break;
      ended->next = held->frame;
      left = held->length;
      if (room == 0) break;
    }
    if (held != end && room != 0 && left > room) {
      left -= room;
      room = 0;
      flags = cell_open;
    }
    cell.ending = static_cast<std::uint8_t>(ending);
    cell.payload = static_cast<std::uint16_t>(payload - room);
    cell.flags = flags;
  } while (held != end);
  queued_ += number - sequence;
  sequence = number;
}

bool Uplinks::send_control(const ControlCell& cell, TimePs now) {
  if (is_local(cell.destination)) {
    loopback.control.push_back(cell);
    return true;
  }
  Spray& spray = control_sprays_[cell.destination];
  if (!spray.reaches()) return false;
  out_[spray.next()].send_control(cell, now);
  return true;
}

void Uplinks::hold(const ControlCell& order, std::uint32_t spine, TimePs now) {
  const std::uint32_t port = spine * parallel_ + order.stream;
  drain(port, now);
  out_[port].hold(order.total != 0, now);
}

void Uplinks::set_rate(std::uint32_t port, Rate rate, TimePs now) {
  drain(port, now);
  out_[port].set_rate(rate);
}

void Uplinks::finish_window(TimePs until) {
  sent_in_window_ = false;
  for (std::uint32_t port = 0; port < out_.size(); ++port) {
    drain(port, until);
    out_[port].publish();
    sent_in_window_ |= out_[port].sent_in_window();
  }
}

TimePs Uplinks::earliest() const {
  TimePs at = never;
  for (const CellTransmitter& out : out_) at = std::min(at, out.earliest());
  return at;
}

std::uint64_t Uplinks::queued_bytes() const {
  std::uint64_t bytes = 0;
  for (const CellTransmitter& out : out_) bytes += out.queued_bytes();
  return bytes;
}

}  // namespace weft::cells
