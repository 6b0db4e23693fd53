// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Ingress side of a leaf: admits frames to the packet buffer and their VOQ, asks the egress scheduler for credit, and
// sends what has been granted as bursts of cells.
#include <cstdint>
#include <deque>
#include <vector>

#include "cells/uplinks.h"
#include "dataplane/counters.h"
#include "dataplane/ecn.h"
#include "dataplane/histogram.h"
#include "dataplane/pfc_accounting.h"
#include "dataplane/rng.h"
#include "dataplane/topology.h"
#include "voq/config.h"
#include "voq/packet_buffer.h"
#include "voq/voq.h"

namespace weft::voq {

/// What the ingress side wants of the leaf around it.
class IngressEvents {
 public:
  /// Say XOFF or XON for classes (a bit each) to the host at local port `port`.
  virtual void send_pfc(std::uint32_t port, std::uint8_t classes, bool xoff, TimePs now) = 0;
  /// A frame is dropped: count it, capture it, free it.
  virtual void drop(Frame* frame, DropReason reason, TimePs now) = 0;

 protected:
  ~IngressEvents() = default;
};

struct IngressCounters {
  std::uint64_t requests = 0, give_backs = 0, refreshes = 0, watchdog_returns = 0;
  std::uint64_t requested_bytes = 0, given_back_bytes = 0;
  std::uint64_t ecn_marked = 0;
  std::uint64_t voq_max_bytes = 0;
  Histogram request_to_grant;  // a request leaves the VOQ -> the first grant after it is there
};

class Ingress {
 public:
  /// `pfc` has a port for each local port, thresholds set.
  Ingress(const Topology& topology, std::uint32_t leaf, const VoqConfig& config, const ClassesConfig& classes,
          std::uint32_t reorder_window, std::uint32_t cell_payload, std::uint64_t seed, PfcAccounting& pfc,
          cells::Uplinks& uplinks, IngressEvents& events);

  /// frame->out_port and traffic_class are set.
  void admit(Frame* frame, TimePs now);
  void grant(const cells::ControlCell& grant, TimePs now);
  /// A grant for this VOQ will come soon: brings its first frames, which are to be linked, into the cache.
  void prefetch(std::uint16_t destination, std::uint16_t stream) const {
    const Voq* voq = voqs_.find(destination, stream);
    if (voq == nullptr) return;
    const std::uint32_t count = voq->frames.size() < prefetched ? voq->frames.size() : prefetched;
    for (std::uint32_t n = 0; n < count; ++n) __builtin_prefetch(voq->frames[n].frame, 1);
  }
  /// Nothing reaches `leaf` any more: what waits for it is dropped, and credit for it given back.
  void lose(std::uint32_t leaf, TimePs now);
  /// It is reachable again: says what could not be said.
  void regain(std::uint32_t leaf, TimePs now);

  /// The next time at which run_timers() has something to do.
  [[nodiscard]] TimePs next_timer() const { return next_timer_; }
  void run_timers(TimePs now);

  [[nodiscard]] std::uint64_t voq_bytes() const { return voq_bytes_; }
  [[nodiscard]] const PacketBuffer& buffer() const { return buffer_; }
  [[nodiscard]] const VoqTable& voqs() const { return voqs_; }
  [[nodiscard]] std::uint64_t frames_inside() const;
  IngressCounters counters;

 private:
  struct Due {
    TimePs at;
    std::uint32_t voq;
    std::uint64_t requested;
  };
  struct DeepRead {
    TimePs done;
    std::uint32_t voq, cells;
    std::vector<HeldFrame> frames;
  };
  static constexpr std::uint32_t prefetched = 4;  // frames: a credit of 4 to 6 KB in frames of 1500 bytes
  bool store(HeldFrame& held, Voq& voq, TimePs now);
  void ask(Voq& voq, TimePs now);
  void say(Voq& voq, cells::ControlKind kind, bool refresh, TimePs now);
  void serve(Voq& voq, TimePs now);
  void send(Voq& voq, const std::vector<HeldFrame>& burst, TimePs now);
  void take_out(const HeldFrame& held, Voq& voq, TimePs now);
  void judge_ecn(Frame* frame, const Voq& voq);
  void refresh_all(TimePs now);
  void arm(TimePs at) { next_timer_ = at < next_timer_ ? at : next_timer_; }
  void rearm();

  const Topology& topology_;
  const std::uint32_t leaf_;
  const VoqConfig& config_;
  const ClassesConfig& classes_;
  const std::uint32_t window_, payload_;
  PfcAccounting& pfc_;
  cells::Uplinks& uplinks_;
  IngressEvents& events_;
  VoqTable voqs_;
  PacketBuffer buffer_;
  EcnMarker ecn_;
  Rng ecn_chance_;
  std::uint64_t alpha_q16_;
  std::uint64_t voq_bytes_ = 0;
  std::deque<Due> due_;              // requests by age: one constant delay, so in time order
  std::deque<DeepRead> deep_reads_;  // external memory answers in order
  std::deque<std::uint32_t> stalled_;
  std::vector<HeldFrame> burst_;  // that one grant releases
  TimePs retry_at_ = never, refresh_at_ = never, next_timer_ = never;
};

}  // namespace weft::voq
