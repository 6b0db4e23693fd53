// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The credit scheduler of a leaf's egress ports. VOQs all over the fabric ask it; it gives each port's rate (times a
// speed-up) out in grants, by strict priority and weight between classes and in turn between VOQs, and never more than
// the class's egress buffer can take: what has been granted and has not left the port is bounded, so the buffer cannot
// overflow.
//
// Bytes are wire bytes (frame + 24), as the VOQs count them. Totals are cumulative since the start, see ControlCell.
#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "cells/reassembler.h"
#include "cells/uplinks.h"
#include "dataplane/class_arbiter.h"
#include "dataplane/histogram.h"
#include "dataplane/topology.h"
#include "scheduler/config.h"

namespace weft::scheduler {

struct SchedulerCounters {
  std::uint64_t grants = 0, granted_bytes = 0, refreshes = 0;
  Histogram round_trip;  // a grant is given -> its bytes have left the port
};

class EgressScheduler {
 public:
  EgressScheduler(const Topology& topology, std::uint32_t leaf, const SchedulerConfig& config,
                  const ClassesConfig& classes, TimePs refresh, cells::Uplinks& uplinks,
                  const cells::Reassembler& reassembler);

  /// Number of the (source leaf, stream) pair, here and in the reassembler.
  [[nodiscard]] std::uint32_t entry_number(std::uint32_t source, std::uint32_t stream) const {
    return source * streams_ + stream;
  }

  void request(const cells::ControlCell& request, TimePs now);
  /// `bytes` of an entry have come out of reassembly: whole frames into the output queue. True: next_grant() may have
  /// come nearer.
  bool arrived(std::uint32_t entry, std::uint32_t bytes, TimePs now) { return account(entry, bytes, 0, now); }
  /// They have left by the port, or were written off.
  void departed(std::uint32_t entry, std::uint32_t bytes, TimePs now) { account(entry, 0, bytes, now); }
  /// A cell of this entry arrived with the congestion bit set: less of it may be outstanding.
  void congested(std::uint32_t entry, std::uint32_t payload);
  /// The port's host paused these classes (a bit each); they get no grants.
  void set_paused(std::uint32_t port, std::uint8_t classes, TimePs now);
  /// No link to `source` any more: its entries are left out until it is back.
  void isolate(std::uint32_t source, bool isolated, TimePs now);

  /// When grant(port) is to be called next.
  [[nodiscard]] TimePs next_grant(std::uint32_t port) const { return ports_[port].timer; }
  void grant(std::uint32_t port, TimePs now);
  [[nodiscard]] TimePs next_refresh() const { return refresh_at_; }
  void refresh(TimePs now);

  /// Bytes granted and not departed, of a (port, class).
  [[nodiscard]] std::uint64_t exposure(std::uint32_t port, std::uint32_t traffic_class) const {
    return ports_[port].classes[traffic_class].exposure;
  }
  SchedulerCounters counters;

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  static constexpr std::uint64_t unlimited = ~std::uint64_t{0};

  struct Entry {  // one VOQ, as seen from here
    std::uint64_t requested = 0, withdrawn = 0, granted = 0, given_back = 0, arrived = 0, departed = 0;
    std::uint64_t exposure = 0;        // its part of the class's
    std::uint64_t window = unlimited;  // most bytes that may be outstanding while the fabric is congested
    std::uint64_t marked = 0;  // share of its cells that came with a congestion bit, smoothed, 32 fractional bits
    TimePs not_before = 0, last_grant = 0;
    TimePs timed_at = never;  // of the grant whose round trip is being timed
    std::uint64_t timed_total = 0;
    TimePs moved = 0;
    std::uint32_t number = 0, next = none;  // next: in the ring of those asking
    std::uint32_t longest = 0;
    std::uint16_t stream = 0, source = 0;
    bool asking = false, isolated = false;

    [[nodiscard]] std::uint64_t demand() const {
      const std::uint64_t wanted = requested - withdrawn, had = granted - given_back;
      return wanted > had ? wanted - had : 0;
    }
    /// Bytes granted that have not arrived; negative after an overdraft.
    [[nodiscard]] std::int64_t outstanding() const { return static_cast<std::int64_t>(granted - given_back - arrived); }
    /// Most bytes that can still come into, or are in, the egress buffer on what has been granted.
    [[nodiscard]] std::uint64_t could_hold() const {
      const std::uint64_t had = granted - given_back;
      if (had <= arrived) return arrived - departed;
      const std::uint64_t wanted = demand(), overdraft = longest == 0 ? 0 : longest - 1;
      return had - departed + (wanted < overdraft ? wanted : overdraft);
    }
  };
  struct ClassState {
    std::uint64_t exposure = 0;
    std::uint32_t last = none;  // of the ring of entries that ask; its next is the first in turn
  };
  struct Port {
    std::array<ClassState, traffic_classes> classes;
    ClassArbiter arbiter;
    WireClock clock;      // at rate x speed-up
    TimePs ready_at = 0;  // the pace allows the next grant
    TimePs timer = never;
    std::uint8_t asking = 0, paused = 0;
    bool blocked = false;  // something asks, and waits for the buffer to drain or the pause to end
  };

  Entry& entry(std::uint32_t number);
  bool widen(Entry& e, std::uint32_t arrived, TimePs now);
  bool account(std::uint32_t number, std::uint32_t arrived, std::uint32_t departed, TimePs now);
  void update_exposure(Entry& e, ClassState& c);
  void join_ring(Entry& e);
  std::uint32_t next_in_ring(Port& port, std::uint32_t traffic_class, TimePs now, TimePs& wait);
  void give(Port& port, Entry& e, std::uint32_t traffic_class, std::uint32_t bytes, TimePs now);
  void say(const Entry& e, bool refresh, TimePs now);
  void kick(Port& port, TimePs now);
  Port& port_of(const Entry& e) { return ports_[e.stream / traffic_classes]; }

  const SchedulerConfig& config_;
  const std::uint32_t leaf_, streams_;
  const TimePs refresh_;
  cells::Uplinks& uplinks_;
  const cells::Reassembler& reassembler_;
  std::vector<std::uint32_t> index_;  // [entry number] -> entries_, none until first used
  std::deque<Entry> entries_;
  std::vector<Port> ports_;
  TimePs refresh_at_ = never;
};

}  // namespace weft::scheduler
