// SPDX-License-Identifier: BSD-3-Clause
#include "voq/leaf.h"

#include <algorithm>

#include "dataplane/addresses.h"
#include "dataplane/check.h"

namespace weft::voq {

Leaf::Leaf(std::uint32_t leaf, const LeafConfig& config, std::unique_ptr<Forwarder> forwarder,
           const std::vector<cells::Uplinks::Port>& uplinks, std::vector<Downlink> downlinks,
           std::vector<cells::ReachabilityEvent> reachability, LeafTaps taps, CaptureBuffer* capture, FramePool* copies)
    : name_("leaf" + std::to_string(leaf)),
      leaf_(leaf),
      ports_(config.topology.hosts_per_leaf),
      topology_(config.topology),
      ingress_latency_(config.voq.latency),
      egress_latency_(config.scheduler.latency),
      forwarder_(std::move(forwarder)),
      capture_(capture),
      taps_(std::move(taps)),
      copies_(copies),
      live_(ports_),
      port_pauses_(ports_),
      pfc_(ports_),
      uplinks_(config.topology, leaf, config.cells, config.voq.force_fabric, uplinks, config.seed, capture),
      reassembler_(config.topology.leaves * ports_ * traffic_classes, config.cells.reorder_window,
                   config.cells.timeout),
      ingress_(config.topology, leaf, config.voq, config.classes, config.cells.reorder_window,
               config.cells.payload_bytes, config.seed, pfc_, uplinks_, *this),
      scheduler_(config.topology, leaf, config.scheduler, config.classes, config.voq.refresh, uplinks_, reassembler_),
      delivery_(config.topology, leaf, config.warmup),
      reachability_(std::move(reachability)),
      timers_(port_slots * ports_ + block_slots) {
  hosts_.reserve(ports_);
  outputs_.reserve(ports_);
  for (std::uint32_t p = 0; p < ports_; ++p) {
    const std::uint32_t port = leaf * ports_ + p;
    const LinkParams& link = topology_.host_links[port];
    hosts_.emplace_back(port, link, config.classes, ingress_latency_);
    outputs_.emplace_back(link.rate, config.classes);
    pfc_.set_port(p, {config.voq.xoff_bytes, config.voq.xon_bytes, config.voq.headroom_bytes}, link.rate);
  }
  downlinks_.reserve(downlinks.size());
  for (Downlink& link : downlinks)
    downlinks_.emplace_back(link.in, std::move(link.fate), config.cells.header_bytes, config.cells.control_bytes);
  wire_at_warmup_ = wire_bytes_now();
}

void Leaf::add_source(std::uint32_t local_port, std::unique_ptr<FrameSource> source, FramePool* pool) {
  hosts_[local_port].add_source(std::move(source), pool);
  timers_.set(slot(slot_admission, local_port), hosts_[local_port].next_admission());
}

void Leaf::add_live_port(std::uint32_t local_port, LivePort* live) { live_.add(local_port, live, hosts_[local_port]); }

void Leaf::live_arrivals(TimePs from, TimePs until) {
  const auto offered = [this](const Frame* frame) {
    ++books_.offered;
    books_.offered_bytes += frame->length;
  };
  live_.arrive(
      hosts_, from, until,
      [&](Frame* frame, DropReason why) {
        offered(frame);
        drop(frame, why, from);
      },
      [&](Frame* frame) {
        offered(frame);
        filter(frame, FilterReason::mac_control);
      },
      [&](std::uint32_t p) { timers_.set(slot(slot_admission, p), hosts_[p].next_admission()); });
}

// Frames wait in memory that the cache has long given to others. What an item will touch is known some items ahead: the
// frame that ends in a cell, the first frames of a VOQ that is granted.
inline void Leaf::prefetch(void* item) const {
  if (!cells::CellReceiver::is_control(item)) [[likely]] {
    const cells::Cell& cell = cells::CellReceiver::cell(item);
    if (cell.ending != 0) __builtin_prefetch(cell.first, 1);
    return;
  }
  const cells::ControlCell& control = cells::CellReceiver::control(item);
  if (control.kind == cells::ControlKind::grant) ingress_.prefetch(control.source, control.stream);
}

void Leaf::advance(TimePs from, TimePs until) {
  if (live_.any()) live_arrivals(from, until);
  order_.begin(from, until);
  for (const cells::CellReceiver& link : downlinks_) link.prefetch();
  for (cells::CellReceiver& link : downlinks_) link.gather(order_, until);
  order_.sort();
  const std::uint32_t count = order_.size();
  std::uint32_t next = 0;
  for (;;) {
    const TimePs arrival = next < count ? order_.time(next) : until;
    const TimePs due = timers_.earliest();
    if (due < arrival) {
      timer(timers_.earliest_slot(), due);
      measure_buffer(due);
      ++events_;
    } else if (next < count) {
      void* item = order_.item(next++);
      if (next + look_ahead < count) prefetch(order_.item(next + look_ahead));
      if (cells::CellReceiver::is_control(item)) [[unlikely]]
        control(cells::CellReceiver::control(item), arrival), measure_buffer(arrival);
      else
        cell(cells::CellReceiver::cell(item), arrival);
    } else {
      break;
    }
  }
  events_ += count;
  uplinks_.finish_window(until);
  for (cells::CellReceiver& link : downlinks_) link.retire();
}

TimePs Leaf::earliest() const {
  TimePs at = std::min({timers_.earliest(), uplinks_.earliest(), live_.earliest()});
  for (const cells::CellReceiver& link : downlinks_) at = std::min(at, link.earliest());
  return at;
}

void Leaf::timer(std::uint32_t which, TimePs now) {
  const std::uint32_t kind = which / ports_, port = which % ports_;
  switch (kind < port_slots ? kind : port_slots) {
    case slot_host_pause:
      hosts_[port].apply_pause();
      timers_.set(which, hosts_[port].next_pause());
      timers_.set(slot(slot_admission, port), hosts_[port].next_admission());
      return;
    case slot_port_pause:
      outputs_[port].pause(port_pauses_[port].take(), now);
      timers_.set(which, port_pauses_[port].next());
      timers_.set(slot(slot_output, port), outputs_[port].next_event());
      pauses_changed(port, now);
      return;
    case slot_admission:
      admission(port, now);
      return;
    case slot_output:
      output(port, now);
      return;
    case slot_grant:
      scheduler_.grant(port, now);
      timers_.set(which, scheduler_.next_grant(port));
      timers_.set(slot(slot_scheduler), scheduler_.next_refresh());
      run_loopback(now);
      return;
    case slot_pause_end:
      pauses_changed(port, now);
      return;
    default:
      break;
  }
  switch (which - port_slots * ports_) {
    case slot_ingress:
      ingress_.run_timers(now);
      run_loopback(now);
      break;
    case slot_reassembly: {
      reassembler_.give_up([&](Frame* frame, bool whole) { leave(frame, whole, now); });
      timers_.set(which, reassembler_.next_timeout());
      break;
    }
    case slot_scheduler:
      scheduler_.refresh(now);
      timers_.set(which, scheduler_.next_refresh());
      run_loopback(now);
      break;
    case slot_pfc:
      pfc_.refresh(now, [&](std::uint32_t p, std::uint8_t classes) { send_pfc(p, classes, true, now); });
      timers_.set(which, pfc_.next_refresh());
      break;
    default:
      break;
  }
  timers_.set(slot(slot_ingress), ingress_.next_timer());
}

// From the host.

void Leaf::admission(std::uint32_t port, TimePs now) {
  Frame* frame = hosts_[port].take();
  timers_.set(slot(slot_admission, port), hosts_[port].next_admission());
  if (frame == nullptr) [[unlikely]] {
    ++books_.no_frame_memory;
    return;
  }
  ++books_.offered;
  books_.offered_bytes += frame->length;
  if (!taps_.host_in.empty() && taps_.host_in[port] != no_tap) [[unlikely]]
    capture_->frame(taps_.host_in[port], now - ingress_latency_, frame);
  if (frame->length >= 14 && bytes_of(frame)[12] == 0x88 && bytes_of(frame)[13] == 0x08) [[unlikely]]
    return mac_control(frame, now);
  const Verdict verdict = forwarder_->ingress(frame, now);
  switch (verdict.kind) {
    case Verdict::Kind::unicast:
      frame->out_port = verdict.port;
      ingress_.admit(frame, now);
      break;
    case Verdict::Kind::flood:
      flood(frame, now);
      break;
    case Verdict::Kind::filter:
      filter(frame, verdict.filter);
      break;
    case Verdict::Kind::drop:
      drop(frame, verdict.drop, now);
      break;
  }
  run_loopback(now);
  timers_.set(slot(slot_ingress), ingress_.next_timer());
}

void Leaf::flood(Frame* frame, TimePs now) {
  const std::uint32_t all = topology_.host_ports(), in_port = frame->in_port;
  if (all == 1) return filter(frame, FilterReason::same_port);
  // The last copy is the original: nothing is copied that need not be.
  const std::uint32_t last = in_port == all - 1 ? all - 2 : all - 1;
  for (std::uint32_t port = 0; port < last; ++port) {
    if (port == in_port) continue;
    Frame* copy = clone_frame(frame, *copies_);
    if (copy == nullptr) [[unlikely]] {
      ++books_.no_frame_memory;
      continue;
    }
    ++books_.replicated;
    copy->out_port = port;
    ingress_.admit(copy, now);
  }
  frame->out_port = last;
  ingress_.admit(frame, now);
}

// PAUSE and PFC end at the port that receives them. The classes are held in the output queue and get no grants.
void Leaf::mac_control(Frame* frame, TimePs now) {
  const MacControl parsed = parse_mac_control({bytes_of(frame), frame->length});
  if (parsed.kind == MacControl::Kind::pfc) {
    // The reaction time counts from the frame's last bit, a pipeline ago.
    const std::uint32_t port = topology_.local_of(frame->in_port);
    const TimePs reaction = default_reaction_time(hosts_[port].link().rate);
    port_pauses_[port].add(std::max(now, now - ingress_latency_ + reaction), parsed.pfc);
    timers_.set(slot(slot_port_pause, port), port_pauses_[port].next());
  }
  filter(frame, FilterReason::mac_control);
}

void Leaf::pauses_changed(std::uint32_t port, TimePs now) {
  const PauseState& pauses = outputs_[port].pauses();
  scheduler_.set_paused(port, pauses.paused_classes(now), now);
  timers_.set(slot(slot_grant, port), scheduler_.next_grant(port));
  timers_.set(slot(slot_pause_end, port), pauses.next_change(now));
}

// From the fabric.

void Leaf::cell(const cells::Cell& cell, TimePs now) {
  const std::uint32_t entry = scheduler_.entry_number(cell.source, cell.stream);
  if ((cell.flags & (cells::cell_lost | cells::cell_marked)) != 0) [[unlikely]] {
    if ((cell.flags & cells::cell_lost) != 0)
      ++cells_lost_;
    else
      scheduler_.congested(entry, cell.payload);
  }
  cells_delivered_ += (cell.flags & cells::cell_lost) == 0;
  reassembler_.arrive(entry, cell, now, [&](Frame* frame, bool whole) { leave(frame, whole, now); });
  if ((cell.flags & cells::cell_lost) != 0) [[unlikely]]
    timers_.set(slot(slot_reassembly), reassembler_.next_timeout());
}

void Leaf::control(const cells::ControlCell& control, TimePs now) {
  switch (control.kind) {
    case cells::ControlKind::request:
    case cells::ControlKind::give_back: {
      const std::uint32_t port = control.stream / traffic_classes;
      scheduler_.request(control, now);
      timers_.set(slot(slot_grant, port), scheduler_.next_grant(port));
      timers_.set(slot(slot_scheduler), scheduler_.next_refresh());
      break;
    }
    case cells::ControlKind::grant:
      ingress_.grant(control, now);
      timers_.set(slot(slot_ingress), ingress_.next_timer());
      break;
    case cells::ControlKind::hold_back:
      uplinks_.hold(control, control.source, now);
      break;
  }
  run_loopback(now);
}

// What a leaf says to itself is handled at once. Frames come out of the VOQ as they would come out of reassembly.
void Leaf::run_loopback(TimePs now) {
  cells::Loopback& loop = uplinks_.loopback;
  if (loop.control.empty() && loop.frames.empty()) [[likely]]
    return;
  while (!loop.control.empty() || !loop.frames.empty()) {
    while (!loop.frames.empty()) leave(loop.frames.pop(), true, now);
    if (loop.control.empty()) break;
    const std::vector<cells::ControlCell> said = std::move(loop.control);
    loop.control.clear();
    for (const cells::ControlCell& cell : said) {
      if (cell.kind == cells::ControlKind::grant) {
        ingress_.grant(cell, now);
      } else {
        const std::uint32_t port = cell.stream / traffic_classes;
        scheduler_.request(cell, now);
        timers_.set(slot(slot_grant, port), scheduler_.next_grant(port));
        timers_.set(slot(slot_scheduler), scheduler_.next_refresh());
      }
    }
  }
  timers_.set(slot(slot_ingress), ingress_.next_timer());
}

// A frame is complete at its egress leaf (or torn: a cell of it was lost).
void Leaf::leave(Frame* frame, bool whole, TimePs now) {
  const std::uint32_t port = topology_.local_of(frame->out_port);
  const std::uint32_t wire = wire_bytes(frame);
  const std::uint32_t entry =
      scheduler_.entry_number(topology_.leaf_of(frame->in_port), port * traffic_classes + frame->traffic_class);
  if (scheduler_.arrived(entry, wire, now)) [[unlikely]]
    timers_.set(slot(slot_grant, port), scheduler_.next_grant(port));
  if (!whole) [[unlikely]] {
    scheduler_.departed(entry, wire, now);
    timers_.set(slot(slot_grant, port), scheduler_.next_grant(port));
    return drop(frame, DropReason::cell_lost, now);
  }
  forwarder_->egress(frame, now);
  outputs_[port].enqueue({frame, now + egress_latency_, wire, entry}, frame->traffic_class);
  output_bytes_ += frame->length;
  measure_buffer(now);
  timers_.set(slot(slot_output, port), outputs_[port].next_event());
}

// To the host.

void Leaf::output(std::uint32_t port, TimePs now) {
  const scheduler::OutputPort::Event event = outputs_[port].run(now);
  timers_.set(slot(slot_output, port), outputs_[port].next_event());
  if (Frame* frame = event.finished.frame) {
    scheduler_.departed(event.finished.entry, event.finished.wire, now);
    timers_.set(slot(slot_grant, port), scheduler_.next_grant(port));
    output_bytes_ -= frame->length;
    deliver(frame, port, now);
  }
  if (event.pfc != nullptr) [[unlikely]] {
    hosts_[port].pause_sent(*event.pfc, now);
    live_.pfc(port, *event.pfc);
    timers_.set(slot(slot_host_pause, port), hosts_[port].next_pause());
    if (!taps_.host_out.empty() && taps_.host_out[port] != no_tap) {
      const auto bytes = build_pfc(port_mac(leaf_, port), *event.pfc);
      capture_->bytes(taps_.host_out[port], now, bytes.data(), static_cast<std::uint32_t>(bytes.size()));
    }
  }
}

void Leaf::deliver(Frame* frame, std::uint32_t port, TimePs now) {
  if (DropReason why{}; live_.refuses(port, frame, why)) [[unlikely]]
    return drop(frame, why, now);
  ++books_.delivered;
  books_.delivered_bytes += frame->length;
  delivery_.delivered(frame, now + hosts_[port].link().delay);
  if (!taps_.host_out.empty() && taps_.host_out[port] != no_tap) [[unlikely]]
    capture_->frame(taps_.host_out[port], now, frame);
  live_.finish(port, frame);
}

void Leaf::send_pfc(std::uint32_t port, std::uint8_t classes, bool xoff, TimePs now) {
  outputs_[port].send_pfc(pfc_for(classes, xoff), now);
  ++(xoff ? xoff_sent_ : xon_sent_);
  timers_.set(slot(slot_output, port), outputs_[port].next_event());
  timers_.set(slot(slot_pfc), pfc_.next_refresh());
}

void Leaf::drop(Frame* frame, DropReason reason, TimePs now) {
  books_.drop(reason);
  if (taps_.drops != no_tap) [[unlikely]] {
    const std::string_view name = name_of(reason);
    capture_->frame(taps_.drops, now, frame, name);
  }
  free_frame(frame);
}

void Leaf::filter(Frame* frame, FilterReason reason) {
  books_.filter(reason);
  free_frame(frame);
}

// At window edges.

void Leaf::apply_reachability(TimePs now) {
  const auto reached = [&] {
    std::vector<bool> now_reached(topology_.leaves);
    for (std::uint32_t l = 0; l < topology_.leaves; ++l) now_reached[l] = uplinks_.reaches(l);
    return now_reached;
  };
  for (; next_reachability_ < reachability_.size() && reachability_[next_reachability_].at <= now;
       ++next_reachability_) {
    const cells::ReachabilityEvent& event = reachability_[next_reachability_];
    const std::vector<bool> before = reached();
    if (event.what == cells::ReachabilityEvent::What::uplink_rate)
      uplinks_.set_rate(event.spine * topology_.parallel_links + event.parallel, event.rate, now);
    if (!uplinks_.apply(event)) continue;
    for (std::uint32_t l = 0; l < topology_.leaves; ++l) {
      if (uplinks_.reaches(l) == before[l]) continue;
      if (before[l])
        ingress_.lose(l, now);
      else
        ingress_.regain(l, now);
      scheduler_.isolate(l, before[l], now);
    }
    for (std::uint32_t p = 0; p < ports_; ++p) timers_.set(slot(slot_grant, p), scheduler_.next_grant(p));
    timers_.set(slot(slot_ingress), ingress_.next_timer());
    run_loopback(now);
  }
}

void Leaf::at_stop(TimePs now, std::uint32_t kinds) {
  if ((kinds & stop_fault) != 0) apply_reachability(now), measure_buffer(now);
  if ((kinds & stop_warmup) != 0) {
    books_at_warmup_ = books_;
    wire_at_warmup_ = wire_bytes_now();
    buffer_meter_.start_average(now);
  }
  if ((kinds & stop_sample) != 0) sample(now);
}

Leaf::WireBytes Leaf::wire_bytes_now() const {
  WireBytes wire;
  for (const HostPort& host : hosts_) wire.host_in.push_back(host.wire_bytes_sent());
  for (const scheduler::OutputPort& output : outputs_) wire.host_out.push_back(output.wire_bytes_sent);
  for (const cells::CellTransmitter& link : uplinks_.transmitters()) {
    wire.uplinks.push_back(link.counters.wire_bytes);
    wire.uplink_cells.push_back(link.cell_bytes_sent());
  }
  return wire;
}

void Leaf::sample(TimePs now) {
  SeriesRow row;
  row.at = now;
  row.node = name_;
  row.offered_bytes = books_.offered_bytes - books_at_sample_.offered_bytes;
  row.delivered_bytes = books_.delivered_bytes - books_at_sample_.delivered_bytes;
  row.dropped_frames = books_.dropped_total() - books_at_sample_.dropped_total();
  books_at_sample_ = books_;
  std::uint64_t cells_sent = 0;
  for (const cells::CellTransmitter& link : uplinks_.transmitters()) cells_sent += link.counters.cells;
  row.cells = cells_sent - cells_at_sample_;
  cells_at_sample_ = cells_sent;
  row.voq_bytes = ingress_.voq_bytes();
  row.deep_bytes = ingress_.buffer().deep_used();
  row.fabric_queue_bytes = uplinks_.queued_bytes();
  for (const scheduler::OutputPort& output : outputs_) row.egress_bytes += output.bytes();
  row.paused_ports = pfc_.paused_ports();
  series_.push_back(std::move(row));
  wire_at_samples_.push_back(wire_bytes_now());
}

std::uint64_t Leaf::frames_inside() const {
  std::uint64_t frames = ingress_.frames_inside();
  for (const scheduler::OutputPort& output : outputs_) frames += output.frames_inside();
  reassembler_.visit_waiting([&](const Frame*, std::uint8_t ending) { frames += ending; });
  return frames;
}

}  // namespace weft::voq
