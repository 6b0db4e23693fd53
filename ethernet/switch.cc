// SPDX-License-Identifier: BSD-3-Clause
#include "ethernet/switch.h"

#include <rte_prefetch.h>

#include <algorithm>

#include "dataplane/check.h"

namespace weft::ethernet {

namespace {

enum Purpose : std::uint64_t {
  purpose_hash = 0x600,
  purpose_choice = 0x601,
  purpose_ecn = 0x602,
  purpose_turn = 0x603
};

constexpr std::uint32_t header_bytes =
    64 + 8;  // cut-through: preamble, and as much of the frame as the smallest one has

TimePs reaction_of(const EthernetConfig& config, Rate rate) {
  return config.pfc_reaction != 0 ? config.pfc_reaction : default_reaction_time(rate);
}

EcnMarker marker(const EcnConfig& at_100g, Rate rate) {
  EcnConfig scaled = at_100g;
  const auto scale = [&](std::uint64_t bytes) {
    return static_cast<std::uint64_t>(static_cast<Uint128>(bytes) * rate.bits_per_s / 100'000'000'000);
  };
  scaled.kmin_bytes = scale(at_100g.kmin_bytes);
  scaled.kmax_bytes = scale(at_100g.kmax_bytes);
  return EcnMarker(scaled);
}

MmuConfig mmu_config(const std::string& name, std::uint32_t leaf, std::uint32_t hosts, const SwitchConfig& config,
                     const std::vector<FabricPort>& fabric) {
  const EthernetConfig& e = config.ethernet;
  MmuConfig mmu;
  mmu.name = name;
  mmu.buffer_bytes = e.buffer_bytes;
  mmu.alpha = e.alpha;
  mmu.alpha_lossy = e.alpha_lossy;
  mmu.longest_frame_bytes = config.mtu + 8;
  mmu.guaranteed_bytes = e.guaranteed_bytes != 0 ? e.guaranteed_bytes : mmu.longest_frame_bytes;
  mmu.xon_offset_bytes = e.xon_offset_bytes;
  mmu.lossless = config.classes.lossless;
  const auto add = [&](const LinkParams& link, TimePs reaction) {
    const std::uint64_t model = headroom_bytes(link.rate, link.delay, mmu.longest_frame_bytes, reaction, e.latency);
    mmu.headroom_bytes.push_back(e.headroom_bytes != 0 ? e.headroom_bytes : model);
    mmu.refresh_after.push_back(std::max<TimePs>(pause_time(max_quanta, link.rate) / 2, 1));
  };
  for (std::uint32_t p = 0; p < hosts; ++p) {
    const LinkParams& link = config.topology.host_links[leaf * hosts + p];
    add(link, config.classes.pfc_reaction != 0 ? config.classes.pfc_reaction : default_reaction_time(link.rate));
  }
  for (const FabricPort& port : fabric) add(port.params, reaction_of(e, port.params.rate));
  return mmu;
}

std::vector<Rate> rates_of(const std::vector<FabricPort>& ports) {
  std::vector<Rate> rates;
  for (const FabricPort& port : ports) rates.push_back(port.params.rate);
  return rates;
}

bool needs_key(const EthernetConfig& config) { return config.load_balance != LoadBalance::spray; }

constexpr std::uintptr_t pause_tag = 1;

/// What a leaf will read of a frame that comes out of the fabric: where it is from, its headers (learning) and mbuf
/// (freeing).
void prefetch(Frame* frame) {
  rte_prefetch0(frame);
  rte_prefetch0(mbuf_of(frame));
  rte_prefetch0(reinterpret_cast<const std::uint8_t*>(frame + 1) + RTE_PKTMBUF_HEADROOM);
}

}  // namespace

Switch::Switch(std::uint32_t index, std::uint32_t leaf, std::string name, const SwitchConfig& config,
               std::unique_ptr<Forwarder> forwarder, std::vector<FabricPort> fabric_ports,
               std::vector<std::vector<std::uint16_t>> groups, std::vector<LinkNotice> notices, SwitchTaps taps,
               CaptureBuffer* capture, FramePool* copies)
    : index_(index),
      leaf_(leaf),
      hosts_count_(leaf == no_leaf ? 0 : config.topology.hosts_per_leaf),
      all_ports_(hosts_count_ + static_cast<std::uint32_t>(fabric_ports.size())),
      name_(std::move(name)),
      topology_(config.topology),
      config_(config.ethernet),
      latency_(config.ethernet.latency),
      cut_through_(config.ethernet.cut_through),
      forwarder_(std::move(forwarder)),
      capture_(capture),
      taps_(std::move(taps)),
      copies_(copies),
      live_(hosts_count_),
      deliveries_(hosts_count_),
      port_pauses_(hosts_count_),
      fabric_(std::move(fabric_ports)),
      mmu_(mmu_config(name_, leaf, hosts_count_, config, fabric_)),
      balancer_(config.ethernet, rates_of(fabric_),
                stream(config.seed, config.ethernet.hash.shared_seed ? 0 : index, purpose_hash).next(),
                stream(config.seed, index, purpose_choice)),
      needs_key_(needs_key(config.ethernet)),
      notices_(std::move(notices)),
      ecn_chance_(stream(config.seed, index, purpose_ecn)),
      timers_(all_ports_ + 3 * hosts_count_ + 2),
      stalls_(std::size_t{all_ports_} * traffic_classes),
      pause_causes_(all_ports_) {
  // Without a word on ECN the lossless classes are marked: that is where DCQCN lives.
  const bool any = std::find(config.classes.ecn.begin(), config.classes.ecn.end(), true) != config.classes.ecn.end();
  for (std::uint32_t c = 0; c < traffic_classes; ++c)
    ecn_classes_ |= (any ? config.classes.ecn[c] : config.classes.lossless[c]) ? 1u << c : 0u;

  hosts_.reserve(hosts_count_);
  ports_.reserve(all_ports_);
  for (std::uint32_t p = 0; p < hosts_count_; ++p) {
    const std::uint32_t port = leaf * hosts_count_ + p;
    const LinkParams& link = topology_.host_links[port];
    hosts_.emplace_back(port, link, config.classes, latency_, cut_through_ ? header_bytes : 0);
    ports_.emplace_back(link.rate, config.classes, marker(config_.ecn, link.rate));
    rates_.push_back(link.rate.bits_per_s);
    reaction_.push_back(reaction_of(config_, link.rate));
  }
  for (const FabricPort& port : fabric_) {
    ports_.emplace_back(port.params.rate, config.classes, marker(config_.ecn, port.params.rate));
    rates_.push_back(port.params.rate.bits_per_s);
    reaction_.push_back(reaction_of(config_, port.params.rate));
  }
  if (!ports_.empty() && !ports_.front().ecn.enabled()) ecn_classes_ = 0;

  // Turns begin anywhere, so that leaves don't walk over the spines in step.
  Rng turns = stream(config.seed, index, purpose_turn);
  groups_.resize(topology_.leaves);
  for (std::uint32_t l = 0; l < topology_.leaves; ++l) {
    balancer_.set_members(groups_[l], std::move(groups[l]));
    if (!groups_[l].members.empty())
      groups_[l].next = static_cast<std::uint32_t>(turns.below(groups_[l].members.size()));
  }
  for (std::uint32_t port = 0; port < topology_.host_ports(); ++port)
    route_.push_back(topology_.leaf_of(port) == leaf ? topology_.local_of(port) : topology_.leaf_of(port) | remote);
  if (leaf != no_leaf) delivery_ = std::make_unique<DeliveryRecord>(topology_, leaf, config.warmup);
  wire_at_warmup_ = wire_bytes_at(0);
}

// A window.

void Switch::gather(TimePs until) {
  for (std::uint32_t i = 0; i < fabric_.size(); ++i) {
    FabricPort& port = fabric_[i];
    auto& frames = port.in->frames;
    frames.refresh();
    // Added by the time at which the pipeline ends, or the pause takes effect: with one constant for a link the ring
    // stays in order.
    const bool harmless = port.fate.harmless(), leaf = forwarder_ != nullptr;
    frames.take_while([&](FrameOnWire& item) {
      if (item.at + latency_ >= until) return false;
      if (!harmless) [[unlikely]]
        item.fate = static_cast<std::uint8_t>(port.fate.of(item.tail, item.length + ethernet_overhead_bytes, false));
      if (leaf) prefetch(item.frame);
      order_.add(item.at + latency_, &item);
      return true;
    });
    auto& pauses = port.in->pauses;
    pauses.refresh();
    for (; !pauses.empty() && pauses.peek().at + reaction_[hosts_count_ + i] < until; pauses.take()) {
      PauseOnWire& item = pauses.peek();
      constexpr std::uint32_t bytes = pfc_frame_bytes + ethernet_overhead_bytes;
      if (!port.fate.harmless() && port.fate.of(item.at, bytes, true) != LinkFate::Outcome::arrives) continue;
      order_.add(item.at + reaction_[hosts_count_ + i],
                 reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(&item) | pause_tag));
    }
  }
}

void Switch::advance(TimePs from, TimePs until) {
  if (live_.any()) live_arrivals(from, until);
  order_.begin(from, until);
  gather(until);
  order_.sort();
  const std::uint32_t count = order_.size();
  std::uint32_t next = 0;
  for (;;) {
    const TimePs at = next < count ? order_.time(next) : until;
    const TimePs due = timers_.earliest();
    if (due < at) {
      timer(timers_.earliest_slot(), due);
      ++events_;
    } else if (next < count) {
      const auto item = reinterpret_cast<std::uintptr_t>(order_.item(next++));
      if ((item & pause_tag) == 0) [[likely]]
        arrival(*reinterpret_cast<FrameOnWire*>(item), at);
      else
        pause_arrival(*reinterpret_cast<PauseOnWire*>(item & ~pause_tag), at);
    } else {
      break;
    }
  }
  events_ += count;
  for (std::uint32_t p = 0; p < hosts_count_; ++p)
    if (deliveries_[p].end < until) settle(p);
  for (Frame* frame : dropped_) free_frame(frame);
  dropped_.clear();
  std::uint64_t committed = 0;
  for (FabricPort& port : fabric_) {
    port.out->frames.publish();
    port.out->pauses.publish();
    committed += port.out->frames.committed() + port.out->pauses.committed();
    port.in->frames.retire();
    port.in->pauses.retire();
  }
  sent_in_window_ = committed != published_;
  published_ = committed;
}

TimePs Switch::earliest() const {
  TimePs at = std::min(timers_.earliest(), live_.earliest());
  for (const Delivery& delivery : deliveries_) at = std::min(at, delivery.end);
  for (std::uint32_t i = 0; i < fabric_.size(); ++i) {
    EthernetLink& in = *fabric_[i].in;
    if (!in.frames.empty()) at = std::min(at, in.frames.peek().at + latency_);
    if (!in.pauses.empty()) at = std::min(at, in.pauses.peek().at + reaction_[hosts_count_ + i]);
  }
  return at;
}

void Switch::timer(std::uint32_t which, TimePs now) {
  if (which < all_ports_) return output(which, now);
  if (which < slot(slot_port_pause, 0)) {
    const std::uint32_t port = which - slot(slot_host_pause, 0);
    hosts_[port].apply_pause();
    timers_.set(which, hosts_[port].next_pause());
    timers_.set(slot(slot_admission, port), hosts_[port].next_admission());
    return;
  }
  if (which < slot(slot_admission, 0)) {
    const std::uint32_t port = which - slot(slot_port_pause, 0);
    paused(port, port_pauses_[port].take(), {index_ << 16 | port, 0}, now);
    return timers_.set(which, port_pauses_[port].next());
  }
  if (which < slot_refresh()) return admission(which - slot(slot_admission, 0), now);
  if (which == slot_watchdog()) return watchdog(now);
  mmu_.refresh(now, [&](std::uint32_t port, std::uint8_t classes) {
    ports_[port].repeat_pause(classes);
    ++ports_[port].pauses_sent;
    arm(port, now);
  });
  timers_.set(which, mmu_.next_refresh());
}

// The way of a frame.

// Flattened, as output(): one call a frame and not five.
[[gnu::flatten]] void Switch::arrival(const FrameOnWire& item, TimePs now) {
  if (item.fate != 0) [[unlikely]]
    return drop(item.frame,
                item.fate == static_cast<std::uint32_t>(LinkFate::Outcome::link_down) ? DropReason::link_down
                                                                                      : DropReason::link_error,
                now);
  forward(item.ref(), item.port, item.tail, now);
}

void Switch::forward(const FrameRef& frame, std::uint32_t in, TimePs tail, TimePs now) {
  ++frames_forwarded_;
  std::uint32_t out = route_[frame.out_port];
  if ((out & remote) != 0) {
    LoadBalancer::Group& group = groups_[out & ~remote];
    if (group.members.empty()) [[unlikely]]
      return drop(frame.frame, DropReason::unreachable, now);
    std::uint32_t link = group.members.front();
    if (group.members.size() > 1)
      link = balancer_.choose(group, frame.key, frame.length, now, [&](std::uint32_t l) {
        // A frame on the wire counts as a small one: of two empty queues the one whose wire is free is shorter.
        const EgressPort& port = ports_[hosts_count_ + l];
        return port.queued_bytes() + (port.free_at() > now ? 64 : 0);
      });
    out = hosts_count_ + link;
  } else if (in >= hosts_count_) {
    forwarder_->egress(frame.frame, now);
  }
  // A frame may leave while it still comes in, if the wire that it leaves by is not the faster one.
  const TimePs ready = cut_through_ && rates_[in] < rates_[out] ? tail + latency_ : now;
  enqueue(frame, in, out, ready, now);
}

void Switch::enqueue(const FrameRef& frame, std::uint32_t in, std::uint32_t out, TimePs ready, TimePs now) {
  EgressPort& port = ports_[out];
  const std::uint32_t c = frame.traffic_class;
  if ((port.storm >> c & 1) != 0) [[unlikely]]
    if (!storm_over(out, c, now) && config_.watchdog.action == WatchdogAction::drop)
      return drop(frame.frame, DropReason::watchdog, now);
  // What finds the port idle is never buffered.
  if (port.idle(c, now) && ready <= now) return start(frame, out, now);

  if ((ecn_classes_ >> c & 1) != 0 && !config_.ecn.at_dequeue && !judge_ecn(frame.frame, port, port.bytes(c)))
      [[unlikely]]
    return drop(frame.frame, DropReason::not_ect, now);
  const Mmu::Admit admitted = mmu_.admit(in, out, c, frame.length, now);
  if (admitted != Mmu::Admit::ok) [[unlikely]] {
    switch (admitted) {
      case Mmu::Admit::headroom_exceeded:
        return drop(frame.frame, DropReason::headroom_exceeded, now);
      case Mmu::Admit::class_limit:
        return drop(frame.frame, DropReason::class_limit, now);
      case Mmu::Admit::buffer_full:
        return drop(frame.frame, DropReason::buffer_full, now);
      case Mmu::Admit::send_xoff:
      case Mmu::Admit::ok:
        send_xoff(in, out, c, now);
        break;
    }
  }
  buffer_meter_.set(mmu_.used_bytes(), now);
  port.enqueue(c, {frame.frame, ready, frame.out_port, frame.key, frame.length, static_cast<std::uint16_t>(in)});
  if (port.held(c, now)) [[unlikely]]
    stalled(out, c, now);
  arm(out, now);
}

// False: the frame is to be dropped.
bool Switch::judge_ecn(Frame* frame, const EgressPort& port, std::uint64_t depth) {
  switch (port.ecn.mark(frame, depth, ecn_chance_.next32())) {
    case EcnOutcome::none:
    case EcnOutcome::already_ce:
      return true;
    case EcnOutcome::marked:
      ++ecn_marked_;
      return true;
    case EcnOutcome::not_ect:
      return !config_.ecn.drop_not_ect || mmu_.lossless(frame->traffic_class);
  }
  return true;
}

[[gnu::flatten]] void Switch::output(std::uint32_t out, TimePs now) {
  EgressPort& port = ports_[out];
  if (port.free_at() <= now) {
    if (port.pause_pending()) [[unlikely]] {
      transmit_pause(out, now);
    } else if (const std::uint32_t c = port.next(now); c != EgressPort::no_class) {
      const QueuedFrame frame = port.pop(c);
      bool keep = true;
      if ((ecn_classes_ >> c & 1) != 0 && config_.ecn.at_dequeue)
        keep = judge_ecn(frame.frame, port, port.bytes(c) + frame.length);
      if (keep) [[likely]]
        start({frame.frame, frame.out_port, frame.key, frame.length, static_cast<std::uint8_t>(c)}, out, now);
      else
        drop(frame.frame, DropReason::not_ect, now);
      if (stalled_count_ != 0) [[unlikely]]
        moved(out, c);
      if (mmu_.release(frame.in, out, c, frame.length)) [[unlikely]]
        send_xon(frame.in, c, now);
      buffer_meter_.set(mmu_.used_bytes(), now);
    }
  }
  arm(out, now);
}

void Switch::start(const FrameRef& frame, std::uint32_t out, TimePs now) {
  EgressPort& port = ports_[out];
  const TimePs end = port.transmit(frame.traffic_class, frame.length, now);
  if (out < hosts_count_) {
    if (deliveries_[out].frame != nullptr) settle(out);
    deliveries_[out] = {frame.frame, end};
    return;
  }
  FabricPort& fabric = fabric_[out - hosts_count_];
  const std::uint32_t bytes = frame.length + ethernet_overhead_bytes;
  const TimePs tail = end + fabric.params.delay;
  const TimePs at = cut_through_ ? now + port.time_of(std::min(header_bytes, bytes)) + fabric.params.delay : tail;
  fabric.out->frames.append() = {.at = at,
                                 .tail = tail,
                                 .frame = frame.frame,
                                 .out_port = frame.out_port,
                                 .key = frame.key,
                                 .length = frame.length,
                                 .port = static_cast<std::uint16_t>(fabric.far_port),
                                 .traffic_class = frame.traffic_class,
                                 .fate = 0};
  fabric.out->frames.front();  // the one just appended: nothing ever waits in the ring
  fabric.out->frames.commit();
  if (fabric.frame_tap != no_tap) [[unlikely]]
    capture_->frame(fabric.frame_tap, end, frame.frame);
}

void Switch::drop(Frame* frame, DropReason reason, TimePs now) {
  books_.drop(reason);
  if (taps_.drops != no_tap) [[unlikely]]
    capture_->frame(taps_.drops, now, frame, name_of(reason));
  // A frame that has waited is not in the cache any more. It is fetched by the end of the window, when it is given
  // back.
  rte_prefetch0(mbuf_of(frame));
  dropped_.push_back(frame);
}

// At window edges.

void Switch::at_stop(TimePs now, std::uint32_t kinds) {
  if ((kinds & stop_fault) != 0)
    for (; next_notice_ < notices_.size() && notices_[next_notice_].at <= now; ++next_notice_) {
      LinkNotice& notice = notices_[next_notice_];
      if (notice.what == LinkNotice::What::members)
        balancer_.set_members(groups_[notice.group], std::move(notice.members));
      else
        ports_[hosts_count_ + notice.port].set_rate(notice.rate),
            rates_[hosts_count_ + notice.port] = notice.rate.bits_per_s;
    }
  if ((kinds & stop_warmup) != 0) {
    books_at_warmup_ = books_;
    wire_at_warmup_ = wire_bytes_at(now);
    buffer_meter_.start_average(now);
  }
  if ((kinds & stop_sample) != 0) sample(now);
}

Switch::WireBytes Switch::wire_bytes_at(TimePs now) const {
  WireBytes wire;
  for (const EgressPort& port : ports_) wire.sent.push_back(port.sent_by(now));
  for (const HostPort& host : hosts_) wire.host_in.push_back(host.wire_bytes_sent());
  return wire;
}

void Switch::sample(TimePs now) {
  SeriesRow row;
  row.at = now;
  row.node = name_;
  row.offered_bytes = books_.offered_bytes - books_at_sample_.offered_bytes;
  row.delivered_bytes = books_.delivered_bytes - books_at_sample_.delivered_bytes;
  row.dropped_frames = books_.dropped_total() - books_at_sample_.dropped_total();
  books_at_sample_ = books_;
  for (std::uint32_t p = 0; p < all_ports_; ++p)
    (p < hosts_count_ ? row.egress_bytes : row.fabric_queue_bytes) += ports_[p].queued_bytes();
  row.paused_ports = mmu_.paused_ports();
  series_.push_back(std::move(row));
  wire_at_samples_.push_back(wire_bytes_at(now));
}

std::uint64_t Switch::frames_inside() const {
  std::uint64_t frames = 0;
  for (const EgressPort& port : ports_) frames += port.frames_waiting();
  for (const Delivery& delivery : deliveries_) frames += delivery.frame != nullptr;
  return frames;
}

}  // namespace weft::ethernet
