// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// One egress port of a switch: a queue a class, strict priority and weights between them, held class by class by the
// far end's pause frames, and the serialiser. Pause frames of this port's own go before any frame, as the MAC does it;
// those that wait together leave as one.
//
// It decides one frame at a time, when the wire is free: until then a pause frame, or a frame of a higher class, may
// still come first. A frame that finds the port idle starts at once, for one event a hop.
#include <algorithm>
#include <array>
#include <cstdint>

#include "dataplane/class_arbiter.h"
#include "dataplane/config.h"
#include "dataplane/ecn.h"
#include "dataplane/frame.h"
#include "dataplane/pfc.h"
#include "dataplane/time.h"
#include "ethernet/link.h"

namespace weft::ethernet {

class EgressPort {
 public:
  EgressPort(Rate rate, const ClassesConfig& classes, EcnMarker ecn_marker)
      : pauses(rate, classes.lossless), ecn(ecn_marker), clock_(rate), arbiter_(classes, max_frame_bytes) {}

  // What can be served.

  /// Nothing waits and the wire is free: a frame that is ready may be transmitted without being queued.
  [[nodiscard]] bool idle(std::uint32_t traffic_class, TimePs now) const {
    return waiting_ == 0 && pause_pending_ == 0 && free_at_ <= now && !held(traffic_class, now);
  }
  /// Paused by the far end, and the watchdog has not overruled that.
  [[nodiscard]] bool held(std::uint32_t traffic_class, TimePs now) const {
    return pauses.paused(traffic_class, now) && (ignore_pause >> traffic_class & 1) == 0;
  }
  /// The frame may leave from frame->queued on.
  void enqueue(Frame* frame) {
    const std::uint32_t c = frame->traffic_class;
    waiting_ |= 1u << c;
    queues_[c].push(frame);
    bytes_[c] += frame->length;
    queued_bytes_ += frame->length;
    if (queued_bytes_ > max_bytes) max_bytes = queued_bytes_;
  }
  /// When next() can have something to serve, as things stand; never: nothing waits.
  [[nodiscard]] TimePs next_event(TimePs now) const {
    if ((waiting_ | pause_pending_) == 0) return never;
    if (free_at_ > now) return free_at_;
    return pause_pending_ != 0 ? now : next_ready(now);
  }
  /// The frame that goes next, taken from its queue; nullptr: none can. Only while the wire is free and no pause frame
  /// waits.
  Frame* next(TimePs now) {
    std::uint32_t ready = 0;
    for (std::uint32_t rest = waiting_; rest != 0; rest &= rest - 1) {
      const auto c = static_cast<std::uint32_t>(__builtin_ctz(rest));
      if (queues_[c].head->queued <= now && !held(c, now)) ready |= 1u << c;
    }
    return ready == 0 ? nullptr : pop(arbiter_.pick(ready));
  }
  /// The first of one class, whether it may be sent or not; for the watchdog.
  Frame* pop(std::uint32_t c) {
    Frame* frame = queues_[c].pop();
    if (queues_[c].empty()) waiting_ &= ~(1u << c);
    bytes_[c] -= frame->length;
    queued_bytes_ -= frame->length;
    return frame;
  }
  /// Puts the frame on the wire at `now`; when its last bit leaves.
  TimePs transmit(const Frame* frame, TimePs now) {
    const std::uint32_t bytes = weft::wire_bytes(frame);
    arbiter_.charge(frame->traffic_class, bytes);
    sent_bytes += bytes;
    return free_at_ = now + clock_.take(bytes);
  }
  /// Time of a frame's first `bytes` on this wire.
  [[nodiscard]] TimePs time_of(std::uint32_t bytes) const { return clock_.time_of(bytes); }

  // Pause frames of this port's own.

  void send_pause(std::uint8_t classes, bool xoff, const PauseRoot& root) {
    pause_pending_ |= classes;
    pause_xoff_ = static_cast<std::uint8_t>(xoff ? pause_xoff_ | classes : pause_xoff_ & ~classes);
    if (xoff) pause_root_ = root;
  }
  /// XOFF once more, for the same reason as before.
  void repeat_pause(std::uint8_t classes) { send_pause(classes, true, pause_root_); }
  [[nodiscard]] bool pause_pending() const { return pause_pending_ != 0; }
  [[nodiscard]] TimePs free_at() const { return free_at_; }
  /// Puts the pause frame that waits on the wire; `end`: when its last bit leaves.
  PfcFrame transmit_pause(TimePs now, TimePs& end, PauseRoot& root) {
    PfcFrame pfc;
    pfc.enabled = pause_pending_;
    for (std::uint32_t c = 0; c < traffic_classes; ++c)
      if ((pause_pending_ & pause_xoff_) >> c & 1) pfc.quanta[c] = max_quanta;
    pause_pending_ = 0;
    root = pause_root_;
    constexpr std::uint32_t bytes = pfc_frame_bytes + ethernet_overhead_bytes;
    sent_bytes += bytes;
    pause_bytes += bytes;
    end = free_at_ = now + clock_.take(bytes);
    return pfc;
  }

  /// Of sent_bytes, those that have left by `now`: the rest of what is being sent is not yet on the wire.
  [[nodiscard]] std::uint64_t sent_by(TimePs now) const {
    return free_at_ <= now ? sent_bytes : sent_bytes - std::min(sent_bytes, clock_.bytes_in(free_at_ - now));
  }

  void set_rate(Rate rate) { clock_.set_rate(rate); }
  [[nodiscard]] std::uint32_t waiting() const { return waiting_; }
  [[nodiscard]] std::uint64_t bytes(std::uint32_t traffic_class) const { return bytes_[traffic_class]; }
  [[nodiscard]] std::uint64_t queued_bytes() const { return queued_bytes_; }
  [[nodiscard]] std::uint64_t frames_waiting() const {
    std::uint64_t frames = 0;
    for (const FrameQueue& queue : queues_)
      for (const Frame* frame = queue.head; frame != nullptr; frame = frame->next) ++frames;
    return frames;
  }

  PauseState pauses;     // said by the far end
  PauseRoot pause_root;  // of its last pause
  EcnMarker ecn;
  std::uint32_t storm = 0;                        // classes that the watchdog has found in a storm
  std::uint32_t ignore_pause = 0;                 // of these, those that it serves in spite of pauses
  std::uint64_t max_bytes = 0;                    // most that waited, all classes
  std::uint64_t sent_bytes = 0, pause_bytes = 0;  // on the wire; pause frames are in both
  std::uint64_t pauses_sent = 0, resumes_sent = 0, pauses_received = 0;  // frames

 private:
  [[nodiscard]] TimePs next_ready(TimePs now) const {
    TimePs next = never;
    for (std::uint32_t rest = waiting_; rest != 0; rest &= rest - 1) {
      const auto c = static_cast<std::uint32_t>(__builtin_ctz(rest));
      TimePs at = queues_[c].head->queued > now ? queues_[c].head->queued : now;
      if ((ignore_pause >> c & 1) == 0 && pauses.paused_until(c) > at) at = pauses.paused_until(c);
      if (at < next) next = at;
    }
    return next;
  }

  WireClock clock_;
  ClassArbiter arbiter_;
  TimePs free_at_ = 0;
  std::uint32_t waiting_ = 0;
  std::uint8_t pause_pending_ = 0, pause_xoff_ = 0;
  PauseRoot pause_root_;
  std::uint64_t queued_bytes_ = 0;
  std::array<FrameQueue, traffic_classes> queues_;
  std::array<std::uint64_t, traffic_classes> bytes_{};
};

}  // namespace weft::ethernet
