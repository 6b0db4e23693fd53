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
#include "dataplane/frame_ring.h"
#include "dataplane/pfc.h"
#include "dataplane/time.h"
#include "ethernet/link.h"

namespace weft::ethernet {

struct QueuedFrame {  // in the queue of its class
  Frame* frame;
  TimePs ready;  // it may leave from here on
  std::uint32_t out_port, key;
  std::uint16_t length, in;  // `in`: ingress port of this switch
};
static_assert(sizeof(QueuedFrame) == 32);

class alignas(64) EgressPort {
 public:
  static constexpr std::uint32_t no_class = traffic_classes;
  EgressPort(Rate rate, const ClassesConfig& classes, EcnMarker ecn_marker)
      : clock_(rate), ecn(ecn_marker), arbiter_(classes, max_frame_bytes), pauses_(rate, classes.lossless) {}

  // What can be served.

  /// Nothing waits and the wire is free: a frame that is ready may be transmitted without being queued.
  [[nodiscard]] bool idle(std::uint32_t traffic_class, TimePs now) const {
    return waiting_ == 0 && pause_pending_ == 0 && free_at_ <= now && !held(traffic_class, now);
  }
  /// Paused by the far end, and the watchdog has not overruled that.
  [[nodiscard]] bool held(std::uint32_t traffic_class, TimePs now) const {
    return now < pauses_end_ && pauses_.paused(traffic_class, now) && (ignore_pause >> traffic_class & 1) == 0;
  }
  void enqueue(std::uint32_t c, const QueuedFrame& frame) {
    waiting_ |= 1u << c;
    queues_[c].frames.push(frame);
    queues_[c].bytes += frame.length;
    queued_bytes_ += frame.length;
    if (queued_bytes_ > max_bytes) max_bytes = queued_bytes_;
  }
  /// When next() can have something to serve, as things stand; never: nothing waits.
  [[nodiscard]] TimePs next_event(TimePs now) const {
    if ((waiting_ | pause_pending_) == 0) return never;
    if (free_at_ > now) return free_at_;
    return pause_pending_ != 0 ? now : next_ready(now);
  }
  /// The class whose first frame goes next; no_class: none can. Only while the wire is free and no pause frame waits.
  std::uint32_t next(TimePs now) {
    std::uint32_t ready = 0;
    for (std::uint32_t rest = waiting_; rest != 0; rest &= rest - 1) {
      const auto c = static_cast<std::uint32_t>(__builtin_ctz(rest));
      if (queues_[c].frames.front().ready <= now && !held(c, now)) ready |= 1u << c;
    }
    return ready == 0 ? no_class : arbiter_.pick(ready);
  }
  /// The first of one class, whether it may be sent or not.
  QueuedFrame pop(std::uint32_t c) {
    ClassQueue& queue = queues_[c];
    const QueuedFrame frame = queue.frames.front();
    queue.frames.pop();
    if (queue.frames.empty())
      waiting_ &= ~(1u << c);
    else
      __builtin_prefetch(&queue.frames.front());  // half a frame's time until it is read
    queue.bytes -= frame.length;
    queued_bytes_ -= frame.length;
    return frame;
  }
  /// Puts a frame on the wire at `now`; when its last bit leaves.
  TimePs transmit(std::uint32_t c, std::uint32_t length, TimePs now) {
    const std::uint32_t bytes = length + ethernet_overhead_bytes;
    arbiter_.charge(c, bytes);
    sent_bytes += bytes;
    return free_at_ = now + clock_.take(bytes);
  }
  /// Time of a frame's first `bytes` on this wire.
  [[nodiscard]] TimePs time_of(std::uint32_t bytes) const { return clock_.time_of(bytes); }

  /// A pause frame of the far end takes effect; calls in order of time.
  void receive_pause(const PfcFrame& pfc, TimePs now) {
    pauses_.receive(pfc, now);
    pauses_end_ = 0;
    for (std::uint32_t c = 0; c < traffic_classes; ++c) pauses_end_ = std::max(pauses_end_, pauses_.paused_until(c));
  }
  [[nodiscard]] const PauseState& pauses() const { return pauses_; }

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
  [[nodiscard]] std::uint64_t bytes(std::uint32_t traffic_class) const { return queues_[traffic_class].bytes; }
  [[nodiscard]] std::uint64_t queued_bytes() const { return queued_bytes_; }
  [[nodiscard]] std::uint64_t frames_waiting() const {
    std::uint64_t frames = 0;
    for (const ClassQueue& queue : queues_) frames += queue.frames.size();
    return frames;
  }

 private:
  [[nodiscard]] TimePs next_ready(TimePs now) const {
    TimePs next = never;
    for (std::uint32_t rest = waiting_; rest != 0; rest &= rest - 1) {
      const auto c = static_cast<std::uint32_t>(__builtin_ctz(rest));
      TimePs at = std::max(queues_[c].frames.front().ready, now);
      if ((ignore_pause >> c & 1) == 0 && pauses_.paused_until(c) > at) at = pauses_.paused_until(c);
      if (at < next) next = at;
    }
    return next;
  }

  // In the order in which frames touch them: a port has little to itself in the cache.
  TimePs free_at_ = 0;
  WireClock clock_;
  TimePs pauses_end_ = 0;  // of the last class that is paused
  std::uint64_t queued_bytes_ = 0;
  std::uint32_t waiting_ = 0;
  std::uint8_t pause_pending_ = 0, pause_xoff_ = 0;

 public:
  std::uint8_t storm = 0;         // classes that the watchdog has found in a storm
  std::uint8_t ignore_pause = 0;  // of these, those that it serves in spite of pauses
  EcnMarker ecn;
  std::uint64_t max_bytes = 0;                    // most that waited, all classes
  std::uint64_t sent_bytes = 0, pause_bytes = 0;  // on the wire; pause frames are in both

 private:
  struct alignas(64) ClassQueue {
    Ring<QueuedFrame> frames;
    std::uint64_t bytes = 0;
  };
  std::array<ClassQueue, traffic_classes> queues_;
  ClassArbiter arbiter_;
  PauseState pauses_;     // said by the far end
  PauseRoot pause_root_;  // of the pauses that this port sends

 public:
  PauseRoot pause_root;                                                  // of the far end's last pause
  std::uint64_t pauses_sent = 0, resumes_sent = 0, pauses_received = 0;  // frames
};

}  // namespace weft::ethernet
