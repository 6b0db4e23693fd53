// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The output queues of one egress port and its serialiser: a queue a class, strict priority and weights between them,
// each class held by the host's PFC. Pause frames that this port sends go before any frame, as the MAC does it.
#include <array>
#include <cstdint>
#include <vector>

#include "dataplane/class_arbiter.h"
#include "dataplane/config.h"
#include "dataplane/frame_ring.h"
#include "dataplane/pfc.h"
#include "dataplane/time.h"

namespace weft::scheduler {

class OutputPort {
 public:
  /// A whole frame in the egress buffer.
  struct Departure {
    Frame* frame = nullptr;
    TimePs ready = 0;         // it may leave from then on; these times never decrease for a class
    std::uint32_t wire = 0;   // bytes
    std::uint32_t entry = 0;  // the owner's: whose credit it used
  };

  OutputPort(Rate rate, const ClassesConfig& classes)
      : clock_(rate), pauses_(rate, classes.lossless), arbiter_(classes, max_frame_bytes) {}

  void enqueue(const Departure& departure, std::uint32_t traffic_class) {
    const std::uint32_t c = traffic_class;
    waiting_ |= static_cast<std::uint8_t>(1u << c);
    queues_[c].push(departure);
    bytes_[c] += departure.wire;
    if (bytes_[c] > max_bytes) max_bytes = bytes_[c];
    const TimePs at = departure.ready > busy_until_ ? departure.ready : busy_until_;
    if (at < timer_) timer_ = at;
  }
  /// A pause frame is to go out as soon as the wire is free.
  void send_pfc(const PfcFrame& frame, TimePs now) {
    pfc_.push_back(frame);
    const TimePs at = now > busy_until_ ? now : busy_until_;
    if (at < timer_) timer_ = at;
  }
  /// The host's pause frame takes effect. Returns the classes that are paused now.
  std::uint8_t pause(const PfcFrame& frame, TimePs now) {
    pauses_.receive(frame, now);
    timer_ = now > busy_until_ ? now : busy_until_;
    return pauses_.paused_classes(now);
  }

  /// What ends at next_event(), if anything: at most one of these is set.
  struct Event {
    Departure finished;             // its last bit has left; no frame: none
    const PfcFrame* pfc = nullptr;  // a pause frame has left; good until the next call of send_pfc
  };
  [[nodiscard]] TimePs next_event() const { return timer_; }
  /// Handles the end of what was being sent and the start of what comes next.
  Event run(TimePs now) {
    Event event;
    if (now >= busy_until_) {
      event.finished = sending_;
      bytes_[sending_class_] -= sending_.wire;
      sending_ = {};
      if (sending_pfc_) {
        sending_pfc_ = false;
        sent_pfc_ = pfc_.front();
        pfc_.erase(pfc_.begin());
        event.pfc = &sent_pfc_;
      }
      start(now);
    }
    return event;
  }
  [[nodiscard]] std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t b : bytes_) sum += b;
    return sum;
  }
  [[nodiscard]] const PauseState& pauses() const { return pauses_; }
  [[nodiscard]] std::uint64_t frames_inside() const {
    std::uint64_t frames = sending_.frame != nullptr ? 1 : 0;
    for (const Ring<Departure>& queue : queues_) frames += queue.size();
    return frames;
  }

  std::uint64_t max_bytes = 0;  // fullest that one class's queue was, the frame being sent included
  std::uint64_t wire_bytes_sent = 0;

 private:
  void start(TimePs now) {
    timer_ = never;
    if (!pfc_.empty()) {
      sending_pfc_ = true;
      busy(now, pfc_frame_bytes + ethernet_overhead_bytes);
      return;
    }
    std::uint32_t ready = 0;
    for (std::uint32_t rest = waiting_; rest != 0; rest &= rest - 1) {
      const auto c = static_cast<std::uint32_t>(__builtin_ctz(rest));
      TimePs at = queues_[c].front().ready;
      if (pauses_.paused(c, now)) at = std::max(at, pauses_.paused_until(c));
      if (at <= now)
        ready |= 1u << c;
      else if (at < timer_)
        timer_ = at;
    }
    if (ready == 0) return;
    const std::uint32_t c = arbiter_.pick(ready);
    sending_ = queues_[c].front();
    sending_class_ = c;
    queues_[c].pop();
    if (queues_[c].empty()) waiting_ &= static_cast<std::uint8_t>(~(1u << c));
    arbiter_.charge(c, sending_.wire);
    // Delivered and freed when its last bit has left.
    __builtin_prefetch(sending_.frame);
    __builtin_prefetch(mbuf_of(sending_.frame), 1);
    busy(now, sending_.wire);
  }
  void busy(TimePs now, std::uint32_t bytes) {
    wire_bytes_sent += bytes;
    busy_until_ = now + clock_.take(bytes);
    timer_ = busy_until_;
  }

  WireClock clock_;
  PauseState pauses_;
  ClassArbiter arbiter_;
  std::array<Ring<Departure>, traffic_classes> queues_;
  std::array<std::uint64_t, traffic_classes> bytes_{};
  std::vector<PfcFrame> pfc_;
  PfcFrame sent_pfc_;
  std::uint8_t waiting_ = 0;
  Departure sending_;
  std::uint32_t sending_class_ = 0;
  bool sending_pfc_ = false;
  TimePs busy_until_ = 0, timer_ = never;
};

}  // namespace weft::scheduler
