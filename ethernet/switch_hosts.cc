// SPDX-License-Identifier: BSD-3-Clause
// The side of a leaf that its hosts see.
#include <algorithm>

#include "dataplane/parse.h"
#include "ethernet/switch.h"

namespace weft::ethernet {

void Switch::add_source(std::uint32_t local_port, std::unique_ptr<FrameSource> source, FramePool* pool) {
  hosts_[local_port].add_source(std::move(source), pool);
  timers_.set(slot(slot_admission, local_port), hosts_[local_port].next_admission());
}

void Switch::add_live_port(std::uint32_t local_port, LivePort* live) {
  live_.add(local_port, live, hosts_[local_port]);
}

void Switch::live_arrivals(TimePs from, TimePs until) {
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

void Switch::admission(std::uint32_t port, TimePs now) {
  Frame* frame = hosts_[port].take();
  const TimePs tail = hosts_[port].last_bit();
  timers_.set(slot(slot_admission, port), hosts_[port].next_admission());
  if (frame == nullptr) [[unlikely]] {
    ++books_.no_frame_memory;
    return;
  }
  ++books_.offered;
  books_.offered_bytes += frame->length;
  if (!taps_.host_in.empty() && taps_.host_in[port] != no_tap) [[unlikely]]
    capture_->frame(taps_.host_in[port], tail, frame);
  if (frame->length >= ethernet_header_bytes && bytes_of(frame)[12] == 0x88 && bytes_of(frame)[13] == 0x08) [[unlikely]]
    return mac_control(frame, tail, now);
  const Verdict verdict = forwarder_->ingress(frame, now);
  switch (verdict.kind) {
    case Verdict::Kind::unicast:
      frame->out_port = verdict.port;
      forward(ref_of(frame, needs_key_ && (route_[verdict.port] & remote) != 0), port, tail, now);
      break;
    case Verdict::Kind::flood:
      flood(frame, tail, now);
      break;
    case Verdict::Kind::filter:
      filter(frame, verdict.filter);
      break;
    case Verdict::Kind::drop:
      drop(frame, verdict.drop, now);
      break;
  }
}

FrameRef Switch::ref_of(Frame* frame, bool with_key) const {
  return {frame, frame->out_port, with_key ? flow_key(frame, config_.hash.fields) : 0,
          static_cast<std::uint16_t>(frame->length), frame->traffic_class};
}

void Switch::flood(Frame* frame, TimePs tail, TimePs now) {
  const std::uint32_t all = topology_.host_ports(), in_port = frame->in_port, in = topology_.local_of(in_port);
  if (all == 1) return filter(frame, FilterReason::same_port);
  FrameRef ref = ref_of(frame, needs_key_);
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
    copy->out_port = ref.out_port = port;
    ref.frame = copy;
    forward(ref, in, tail, now);
  }
  frame->out_port = ref.out_port = last;
  ref.frame = frame;
  forward(ref, in, tail, now);
}

// PAUSE and PFC end at the port that receives them.
void Switch::mac_control(Frame* frame, TimePs tail, TimePs now) {
  const MacControl parsed = parse_mac_control({bytes_of(frame), frame->length});
  if (parsed.kind == MacControl::Kind::pfc) {
    // What is taken out at the end of the pipeline was known to the MAC with its last bit: the reaction counts from
    // there.
    const std::uint32_t port = topology_.local_of(frame->in_port);
    port_pauses_[port].add(std::max(now, tail + reaction_[port]), parsed.pfc);
    timers_.set(slot(slot_port_pause, port), port_pauses_[port].next());
  }
  filter(frame, FilterReason::mac_control);
}

void Switch::filter(Frame* frame, FilterReason reason) {
  books_.filter(reason);
  free_frame(frame);
}

// The last bit of what a host port sends has left.
void Switch::settle(std::uint32_t port) {
  Delivery& delivery = deliveries_[port];
  Frame* frame = delivery.frame;
  const TimePs end = delivery.end;
  delivery = {};
  if (DropReason why{}; live_.refuses(port, frame, why)) [[unlikely]]
    return drop(frame, why, end);
  ++books_.delivered;
  books_.delivered_bytes += frame->length;
  delivery_->delivered(frame, end + hosts_[port].link().delay);
  if (!taps_.host_out.empty() && taps_.host_out[port] != no_tap) [[unlikely]]
    capture_->frame(taps_.host_out[port], end, frame);
  live_.finish(port, frame);
}

}  // namespace weft::ethernet
