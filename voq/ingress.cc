// SPDX-License-Identifier: BSD-3-Clause
#include "voq/ingress.h"

#include <algorithm>

#include "dataplane/check.h"

namespace weft::voq {

namespace {

constexpr std::uint64_t ecn_purpose = 0x300;

Rate deep_rate(const Topology& topology, std::uint32_t leaf, const VoqConfig& config) {
  if (config.deep_rate.bits_per_s != 0) return config.deep_rate;
  Rate sum;  // every byte is written and read
  for (std::uint32_t p = 0; p < topology.hosts_per_leaf; ++p)
    sum.bits_per_s += 2 * topology.host_links[leaf * topology.hosts_per_leaf + p].rate.bits_per_s;
  return sum;
}

std::uint32_t voq_limit(const Topology& topology, const VoqConfig& config) {
  const std::uint32_t all = topology.host_ports() * traffic_classes;
  return config.max_voqs == 0 ? all : std::min(all, config.max_voqs);
}

}  // namespace

Ingress::Ingress(const Topology& topology, std::uint32_t leaf, const VoqConfig& config, const ClassesConfig& classes,
                 std::uint32_t reorder_window, std::uint32_t cell_payload, std::uint64_t seed, PfcAccounting& pfc,
                 cells::Uplinks& uplinks, IngressEvents& events)
    : topology_(topology),
      leaf_(leaf),
      config_(config),
      classes_(classes),
      window_(reorder_window),
      payload_(cell_payload),
      pfc_(pfc),
      uplinks_(uplinks),
      events_(events),
      voqs_(topology.leaves, topology.hosts_per_leaf * traffic_classes, voq_limit(topology, config)),
      buffer_(config.sram_bytes, config.deep_bytes, deep_rate(topology, leaf, config), config.deep_latency),
      ecn_(config.ecn),
      ecn_chance_(stream(seed, leaf, ecn_purpose)),
      alpha_q16_(static_cast<std::uint64_t>(config.alpha * 65536)) {}

void Ingress::admit(Frame* frame, TimePs now) {
  const auto destination = static_cast<std::uint16_t>(topology_.leaf_of(frame->out_port));
  const auto stream_number =
      static_cast<std::uint16_t>(topology_.local_of(frame->out_port) * traffic_classes + frame->traffic_class);
  if (!uplinks_.reaches(destination)) [[unlikely]]
    return events_.drop(frame, DropReason::unreachable, now);
  Voq* voq = voqs_.get(destination, stream_number);
  if (voq == nullptr) [[unlikely]]
    return events_.drop(frame, DropReason::voqs_exhausted, now);

  const bool was_empty = voq->frames.empty();
  if (!config_.ecn.at_dequeue && ecn_.enabled()) judge_ecn(frame, *voq);
  HeldFrame held{frame, frame->length, static_cast<std::uint16_t>(topology_.local_of(frame->in_port)), false};
  if (!store(held, *voq, now)) return;
  voq->frames.push(held);
  const std::uint32_t wire = held.length + ethernet_overhead_bytes;
  voq->enqueued += wire;
  voq->bytes += held.length;
  voq_bytes_ += held.length;
  if (wire > voq->longest) voq->longest = static_cast<std::uint16_t>(wire);
  if (voq->bytes > counters.voq_max_bytes) counters.voq_max_bytes = voq->bytes;

  // An empty VOQ asks at once; a busy one when enough has gathered, or when the oldest frame not asked for has waited
  // long enough.
  const std::uint64_t gathered = voq->enqueued - voq->requested;
  if (was_empty || gathered >= config_.request_bytes) {
    ask(*voq, now);
  } else if (gathered == wire) {
    due_.push_back({now + config_.request_delay, voqs_.number_of(*voq), voq->requested});
    arm(due_.front().at);
  }
  if (voq->balance() > 0) [[unlikely]]
    serve(*voq, now);
}

// Finds room for the frame in one of the two tiers, or drops it with the reason.
bool Ingress::store(HeldFrame& held, Voq& voq, TimePs now) {
  Frame* const frame = held.frame;
  const std::uint8_t traffic_class = voq.traffic_class();
  const bool lossless = classes_.lossless[traffic_class];
  const std::uint32_t bytes = held.length;
  if (!lossless) {
    const std::uint64_t limit = (buffer_.free_bytes() >> 16) * alpha_q16_;
    if (voq.bytes + bytes > limit || (config_.voq_limit_bytes != 0 && voq.bytes + bytes > config_.voq_limit_bytes)) {
      events_.drop(frame, DropReason::voq_limit, now);
      return false;
    }
  }
  const bool deep = config_.deep_bytes != 0 && (voq.deep || voq.bytes + bytes > config_.deep_threshold_bytes);
  // While external memory is behind with its writes, frames for it pile up on chip; lossy ones give way at a quarter.
  if (deep && !lossless && buffer_.writing() > config_.sram_bytes / 4) {
    events_.drop(frame, DropReason::deep_bandwidth, now);
    return false;
  }
  if (!buffer_.sram_fits(bytes) || (deep && !buffer_.deep_fits(bytes))) {
    events_.drop(frame, DropReason::buffer_full, now);
    return false;
  }
  if (lossless) {
    switch (pfc_.admit(held.port, traffic_class, bytes, now)) {
      case PfcAccounting::Admit::ok:
        break;
      case PfcAccounting::Admit::ok_send_xoff:
        events_.send_pfc(held.port, static_cast<std::uint8_t>(1u << traffic_class), true, now);
        break;
      case PfcAccounting::Admit::over_headroom:
        events_.drop(frame, DropReason::headroom_exceeded, now);
        return false;
    }
  }
  if (deep) {
    voq.deep = true;
    voq.deep_bytes += bytes;
    ++voq.deep_frames;
    held.deep = true;
    buffer_.store_deep(bytes, now);
    arm(buffer_.next_write_done());
  } else {
    buffer_.store(bytes);
  }
  return true;
}

void Ingress::judge_ecn(Frame* frame, const Voq& voq) {
  if (!classes_.ecn[frame->traffic_class]) return;
  const EcnOutcome outcome = ecn_.mark(frame, voq.bytes, ecn_chance_.next32());
  if (outcome == EcnOutcome::marked) {
    frame->flags |= frame_marked;
    ++counters.ecn_marked;
  }
}

void Ingress::ask(Voq& voq, TimePs now) {
  counters.requested_bytes += voq.enqueued - voq.requested;
  voq.requested = voq.enqueued;
  if (voq.asked_at == never) {
    voq.asked_at = now;
    voq.asked_from = voq.granted;
  }
  say(voq, cells::ControlKind::request, false, now);
}

void Ingress::say(Voq& voq, cells::ControlKind kind, bool refresh, TimePs now) {
  cells::ControlCell cell{};
  cell.kind = kind;
  cell.refresh = refresh;
  cell.source = static_cast<std::uint16_t>(leaf_);
  cell.destination = voq.destination;
  cell.stream = voq.stream;
  cell.longest = voq.longest;
  cell.total = voq.requested;
  cell.given_back = voq.given_back;
  cell.withdrawn = voq.withdrawn;
  voq.news = !uplinks_.send_control(cell, now);
  voq.said = now;
  if (kind == cells::ControlKind::request)
    ++counters.requests;
  else
    ++counters.give_backs;
  counters.refreshes += refresh;
  if (refresh_at_ == never) {
    refresh_at_ = now + config_.refresh;
    arm(refresh_at_);
  }
}

void Ingress::grant(const cells::ControlCell& grant, TimePs now) {
  Voq* voq = voqs_.get(grant.source, grant.stream);
  WEFT_CHECK(voq != nullptr, "a grant for a VOQ that never asked");
  const auto awaited = static_cast<std::uint32_t>(grant.withdrawn);
  if (static_cast<std::int32_t>(awaited - voq->acknowledged) > 0) voq->acknowledged = awaited;
  if (grant.total > voq->granted) {
    voq->granted = grant.total;
    voq->moved = now;
    if (voq->asked_at != never && voq->granted > voq->asked_from) {
      counters.request_to_grant.add(now - voq->asked_at);
      voq->asked_at = never;
    }
  }
  if (voq->balance() > 0 && !voq->frames.empty()) serve(*voq, now);
}

// Whole frames leave while the balance is positive; what one grant releases is one burst of cells.
void Ingress::serve(Voq& voq, TimePs now) {
  if (voq.stalled) return;
  if (!uplinks_.is_local(voq.destination)) {
    if (!uplinks_.reaches(voq.destination)) return;
    if (!uplinks_.has_room(now)) [[unlikely]] {
      voq.stalled = true;
      stalled_.push_back(voqs_.number_of(voq));
      if (retry_at_ == never) {
        retry_at_ = now + uplinks_.retry_after();
        arm(retry_at_);
      }
      return;
    }
  }
  burst_.clear();
  std::uint32_t deep_bytes = 0, burst_bytes = 0;
  const std::uint32_t window_left = window_ - (voq.sequence + voq.reading_cells - voq.acknowledged);
  while (voq.balance() > 0 && !voq.frames.empty()) {
    const HeldFrame held = voq.frames.front();
    if ((burst_bytes + held.length) / payload_ + 1 >= window_left) [[unlikely]]
      break;  // the egress leaf could not keep them apart: goes on when it has said what it awaits
    voq.frames.pop();
    burst_bytes += held.length;
    if (held.deep) deep_bytes += held.length;
    if (config_.ecn.at_dequeue && ecn_.enabled()) judge_ecn(held.frame, voq);
    take_out(held, voq, now);
    voq.sent += held.length + ethernet_overhead_bytes;
    burst_.push_back(held);
  }
  if (burst_.empty()) return;
  voq.moved = now;
  if (deep_bytes != 0 || voq.deep_reads != 0) [[unlikely]] {
    TimePs done = buffer_.read_deep(deep_bytes, now);
    if (!deep_reads_.empty()) done = std::max(done, deep_reads_.back().done);
    const std::uint32_t cells = (burst_bytes + payload_ - 1) / payload_;
    deep_reads_.push_back({done, voqs_.number_of(voq), cells, burst_});
    ++voq.deep_reads;
    voq.reading_cells += cells;
    arm(done);
  } else {
    send(voq, burst_, now);
  }
}

void Ingress::send(Voq& voq, const std::vector<HeldFrame>& burst, TimePs now) {
  if (uplinks_.is_local(voq.destination))
    for (const HeldFrame& held : burst) uplinks_.loopback.frames.push(held.frame);
  else
    uplinks_.send(voq.destination, voq.stream, voq.sequence, burst, now);
}

// A frame leaves the packet buffer, to be sent or dropped.
void Ingress::take_out(const HeldFrame& held, Voq& voq, TimePs now) {
  voq.bytes -= held.length;
  voq_bytes_ -= held.length;
  if (held.deep) {
    buffer_.release_deep(held.length);
    voq.deep_bytes -= held.length;
    if (--voq.deep_frames == 0) voq.deep = false;
  } else {
    buffer_.release(held.length);
  }
  const std::uint8_t traffic_class = voq.traffic_class();
  if (classes_.lossless[traffic_class] &&
      pfc_.release(held.port, traffic_class, held.length) == PfcAccounting::Release::send_xon)
    events_.send_pfc(held.port, static_cast<std::uint8_t>(1u << traffic_class), false, now);
}

void Ingress::lose(std::uint32_t leaf, TimePs now) {
  for (Voq& voq : voqs_.all()) {
    if (voq.destination != leaf) continue;
    while (!voq.frames.empty()) {
      const HeldFrame held = voq.frames.front();
      voq.frames.pop();
      take_out(held, voq, now);
      events_.drop(held.frame, DropReason::unreachable, now);
    }
    // What was never asked for is forgotten; of what was, the scheduler must hear.
    voq.enqueued = voq.requested;
    const std::uint64_t withdrawn = voq.requested - voq.sent;
    voq.news |= withdrawn != voq.withdrawn;
    voq.withdrawn = withdrawn;
    if (voq.balance() > 0) {
      counters.given_back_bytes += static_cast<std::uint64_t>(voq.balance());
      voq.given_back += static_cast<std::uint64_t>(voq.balance());
      voq.news = true;
    }
    voq.asked_at = never;
  }
}

void Ingress::regain(std::uint32_t leaf, TimePs now) {
  for (Voq& voq : voqs_.all())
    if (voq.destination == leaf && (voq.news || voq.outstanding())) say(voq, cells::ControlKind::give_back, true, now);
}

void Ingress::run_timers(TimePs now) {
  while (!due_.empty() && due_.front().at <= now) {
    const Due due = due_.front();
    due_.pop_front();
    Voq& voq = voqs_.at(due.voq);
    if (voq.requested == due.requested && voq.enqueued != voq.requested) ask(voq, now);
  }
  while (buffer_.next_write_done() <= now) buffer_.write_done();
  while (!deep_reads_.empty() && deep_reads_.front().done <= now) {
    const DeepRead read = std::move(deep_reads_.front());
    deep_reads_.pop_front();
    Voq& voq = voqs_.at(read.voq);
    --voq.deep_reads;
    voq.reading_cells -= read.cells;
    if (uplinks_.reaches(voq.destination)) {
      send(voq, read.frames, now);
      continue;
    }
    for (const HeldFrame& held : read.frames) {
      const std::uint32_t wire = held.length + ethernet_overhead_bytes;
      voq.withdrawn += wire;
      voq.given_back += wire;
      voq.sent -= wire;
      voq.news = true;
      events_.drop(held.frame, DropReason::unreachable, now);
    }
  }
  if (retry_at_ <= now) {
    retry_at_ = never;
    for (std::size_t n = stalled_.size(); n > 0; --n) {
      Voq& voq = voqs_.at(stalled_.front());
      stalled_.pop_front();
      voq.stalled = false;
      if (voq.balance() > 0 && !voq.frames.empty()) serve(voq, now);
    }
  }
  if (refresh_at_ <= now) refresh_all(now);
  rearm();
}

// Says again what has not been answered, and gives back credit that has been held too long.
void Ingress::refresh_all(TimePs now) {
  refresh_at_ = never;
  bool pending = false;
  for (Voq& voq : voqs_.all()) {
    if (!uplinks_.reaches(voq.destination)) continue;  // regain() will say it
    if (voq.balance() > 0 && now - voq.moved >= config_.credit_watchdog) {
      const auto unused = static_cast<std::uint64_t>(voq.balance());
      voq.given_back += unused;
      counters.given_back_bytes += unused;
      ++counters.watchdog_returns;
      voq.moved = now;
      say(voq, cells::ControlKind::give_back, false, now);
    } else if (voq.outstanding() && now - std::max(voq.said, voq.moved) >= config_.refresh) {
      say(voq, cells::ControlKind::request, true, now);
    }
    // A balance that nothing can use (the VOQ is empty, or cannot send) waits for the watchdog.
    pending |= voq.outstanding() || voq.balance() > 0;
  }
  refresh_at_ = pending ? now + config_.refresh : never;
}

void Ingress::rearm() {
  next_timer_ = std::min({due_.empty() ? never : due_.front().at, buffer_.next_write_done(),
                          deep_reads_.empty() ? never : deep_reads_.front().done, retry_at_, refresh_at_});
}

std::uint64_t Ingress::frames_inside() const {
  std::uint64_t frames = 0;
  for (const Voq& voq : voqs_.all()) frames += voq.frames.size();
  for (const DeepRead& read : deep_reads_) frames += read.frames.size();
  return frames;
}

}  // namespace weft::voq
