// SPDX-License-Identifier: BSD-3-Clause
#include "scheduler/egress_scheduler.h"

#include <algorithm>

#include "dataplane/check.h"

namespace weft::scheduler {

namespace {

// How congestion bits slow grants: an entry whose cells come marked may have only a window of bytes outstanding
// (granted and not yet arrived), so its grants follow its arrivals, which come at the rate that the congested link
// gives it. A rate alone would let a queue grow for as long as it is a little too high, and a round trip late swing
// between full and idle links; a window bounds the queue itself. Each marked cell takes a share of its size off the
// window, in proportion to how many cells are marked; arrivals widen it by a part of a credit each round trip, for
// every entry alike, which is what makes them fair. This is DCTCP's law with the roles turned round: the receiver holds
// the window.
constexpr unsigned marked_shift = 18;  // the share of marked cells is smoothed over some 256 KiB
constexpr std::uint64_t marked_one = std::uint64_t{1} << 32;
constexpr unsigned cut_shift = 2;           // a marked cell takes off its size x marked share / 4
constexpr std::uint64_t widen_credits = 4;  // a round trip widens the window by credit / 4 ...
constexpr std::uint64_t widen_clear = 16;   // ... and by so many times that when hardly a cell is marked any more
constexpr std::uint64_t narrowest = 16;     // of a credit: such an entry has one credit under way in 16 round trips

}  // namespace

EgressScheduler::EgressScheduler(const Topology& topology, std::uint32_t leaf, const SchedulerConfig& config,
                                 const ClassesConfig& classes, TimePs refresh, cells::Uplinks& uplinks,
                                 const cells::Reassembler& reassembler)
    : config_(config),
      leaf_(leaf),
      streams_(topology.hosts_per_leaf * traffic_classes),
      refresh_(refresh),
      uplinks_(uplinks),
      reassembler_(reassembler),
      index_(std::size_t{topology.leaves} * streams_, none),
      ports_(topology.hosts_per_leaf) {
  for (std::uint32_t p = 0; p < ports_.size(); ++p) {
    const Rate rate = topology.host_links[leaf * topology.hosts_per_leaf + p].rate;
    ports_[p].clock.set_rate(Rate{static_cast<std::uint64_t>(static_cast<double>(rate.bits_per_s) * config.speedup)});
    ports_[p].arbiter = ClassArbiter(classes, static_cast<std::uint32_t>(config.credit_bytes));
  }
}

EgressScheduler::Entry& EgressScheduler::entry(std::uint32_t number) {
  std::uint32_t& index = index_[number];
  if (index == none) [[unlikely]] {
    index = static_cast<std::uint32_t>(entries_.size());
    Entry& e = entries_.emplace_back();
    e.number = index;
    e.source = static_cast<std::uint16_t>(number / streams_);
    e.stream = static_cast<std::uint16_t>(number % streams_);
  }
  return entries_[index];
}

void EgressScheduler::request(const cells::ControlCell& request, TimePs now) {
  Entry& e = entry(entry_number(request.source, request.stream));
  e.requested = std::max(e.requested, request.total);
  e.withdrawn = std::max(e.withdrawn, request.withdrawn);
  e.given_back = std::max(e.given_back, request.given_back);
  e.longest = std::max<std::uint32_t>(e.longest, request.longest);
  ClassState& c = port_of(e).classes[e.stream % traffic_classes];
  update_exposure(e, c);
  if (port_of(e).blocked)
    kick(port_of(e), now);  // what was given back or withdrawn may be the room that another waits for
  if (e.demand() == 0) {
    // Nothing new: the VOQ repeats what it wants because it has not heard the answer.
    if (request.refresh) say(e, true, now);
    return;
  }
  if (!e.asking && !e.isolated) join_ring(e);
  kick(port_of(e), now);
}

void EgressScheduler::join_ring(Entry& e) {
  Port& port = port_of(e);
  const std::uint32_t traffic_class = e.stream % traffic_classes;
  ClassState& c = port.classes[traffic_class];
  e.asking = true;
  if (c.last == none) {
    e.next = e.number;
  } else {
    e.next = entries_[c.last].next;
    entries_[c.last].next = e.number;
  }
  c.last = e.number;
  port.asking |= static_cast<std::uint8_t>(1u << traffic_class);
}

// Wakes the port's grants, unless they are already timed.
void EgressScheduler::kick(Port& port, TimePs now) {
  if (port.timer == never || port.timer > std::max(now, port.ready_at)) port.timer = std::max(now, port.ready_at);
}

void EgressScheduler::update_exposure(Entry& e, ClassState& c) {
  const std::uint64_t could_hold = e.could_hold();
  if (!e.isolated) c.exposure += could_hold - e.exposure;
  e.exposure = could_hold;
}

bool EgressScheduler::account(std::uint32_t number, std::uint32_t arrived, std::uint32_t departed, TimePs now) {
  Entry& e = entry(number);
  Port& port = port_of(e);
  e.arrived += arrived;
  e.departed += departed;
  e.moved = now;
  update_exposure(e, port.classes[e.stream % traffic_classes]);
  if (departed == 0) return e.window != unlimited && widen(e, arrived, now);
  if (e.departed >= e.timed_total && e.timed_at != never) {
    counters.round_trip.add(now - e.timed_at);
    e.timed_at = never;
  }
  if (port.blocked) kick(port, now);
  return true;
}

void EgressScheduler::congested(std::uint32_t number, std::uint32_t payload) {
  Entry& e = entry(number);
  const std::uint64_t least = std::max<std::uint64_t>(1, config_.credit_bytes / narrowest);
  // Slowing starts from what is under way, which may be a small share of what the port could have.
  if (e.window == unlimited)
    e.window = static_cast<std::uint64_t>(
        std::max<std::int64_t>(e.outstanding(), static_cast<std::int64_t>(config_.credit_bytes)));
  e.marked += ((marked_one - e.marked) * payload) >> marked_shift;
  const std::uint64_t cut = ((payload * e.marked) >> 32) >> cut_shift;
  e.window = std::max(least, e.window - std::min(e.window, cut + 1));
}

bool EgressScheduler::widen(Entry& e, std::uint32_t arrived, TimePs now) {
  e.marked -= std::min(e.marked, (e.marked * arrived) >> marked_shift);
  const std::uint64_t step = config_.credit_bytes / widen_credits * (e.marked < marked_one / 64 ? widen_clear : 1);
  e.window += std::min<std::uint64_t>(arrived, std::max<std::uint64_t>(1, arrived * step / e.window));
  if (e.window >= config_.egress_buffer_bytes) {
    e.window = unlimited;
    e.marked = 0;
  } else if (e.window < config_.credit_bytes && e.outstanding() <= 0) {
    // Less than a credit a round trip: the round trips between two credits are waited out.
    e.not_before = now + (now - e.last_grant) * (config_.credit_bytes - e.window) / e.window;
  }
  if (e.asking) kick(port_of(e), now);
  return e.asking;
}

// The next entry of a class in turn whose pace allows a grant. The ring's `last` moves so that its next is that entry.
std::uint32_t EgressScheduler::next_in_ring(Port& port, std::uint32_t traffic_class, TimePs now, TimePs& wait) {
  ClassState& c = port.classes[traffic_class];
  const std::uint32_t stop = c.last;
  std::uint32_t before = c.last;
  do {
    Entry& e = entries_[entries_[before].next];
    const bool narrow = e.window != unlimited && e.outstanding() > 0 &&
                        static_cast<std::uint64_t>(e.outstanding()) + config_.credit_bytes > e.window;
    if (e.not_before <= now && !narrow) [[likely]] {
      c.last = before;
      return e.number;
    }
    if (!narrow) wait = std::min(wait, e.not_before);  // a narrow one is waked by its arrivals
    before = e.number;
  } while (before != stop);
  return none;
}

void EgressScheduler::grant(std::uint32_t number, TimePs now) {
  Port& port = ports_[number];
  port.timer = never;
  port.blocked = false;
  TimePs wait = never;
  std::uint32_t candidates = port.asking & static_cast<std::uint32_t>(~port.paused);
  while (candidates != 0) {
    const std::uint32_t traffic_class = port.arbiter.pick(candidates);
    ClassState& c = port.classes[traffic_class];
    const std::uint32_t chosen = next_in_ring(port, traffic_class, now, wait);
    if (chosen == none) {
      candidates &= ~(1u << traffic_class);
      continue;
    }
    Entry& e = entries_[chosen];
    const auto bytes = static_cast<std::uint32_t>(std::min(config_.credit_bytes, e.demand()));
    if (bytes != 0) {
      e.granted += bytes;
      const std::uint64_t would = c.exposure - e.exposure + e.could_hold();
      if (would > config_.egress_buffer_bytes) {
        e.granted -= bytes;
        port.blocked = true;
        candidates &= ~(1u << traffic_class);
        continue;
      }
      give(port, e, traffic_class, bytes, now);
    }
    // It goes to the end of the ring, or leaves it.
    if (e.demand() != 0) {
      c.last = e.number;
    } else {
      e.asking = false;
      if (c.last == e.number) {
        c.last = none;
        port.asking &= static_cast<std::uint8_t>(~(1u << traffic_class));
      } else {
        entries_[c.last].next = e.next;
      }
    }
    if (bytes != 0) {
      if (port.asking != 0) port.timer = port.ready_at;
      return;
    }
    candidates = port.asking & static_cast<std::uint32_t>(~port.paused);
  }
  // Nothing could be granted: a paced entry is waited for, all else wakes the port when it changes.
  if (wait != never) port.timer = wait;
}

void EgressScheduler::give(Port& port, Entry& e, std::uint32_t traffic_class, std::uint32_t bytes, TimePs now) {
  update_exposure(e, port.classes[traffic_class]);
  port.arbiter.charge(traffic_class, bytes);
  port.ready_at = now + port.clock.take(bytes);
  e.last_grant = now;
  e.moved = now;
  ++counters.grants;
  counters.granted_bytes += bytes;
  if (e.timed_at == never) {
    e.timed_at = now;
    e.timed_total = e.granted - e.given_back;
  }
  say(e, false, now);
}

void EgressScheduler::say(const Entry& e, bool refresh, TimePs now) {
  cells::ControlCell cell{};
  cell.kind = cells::ControlKind::grant;
  cell.refresh = refresh;
  cell.source = static_cast<std::uint16_t>(leaf_);
  cell.destination = e.source;
  cell.stream = e.stream;
  cell.total = e.granted;
  cell.withdrawn = reassembler_.awaited(entry_number(e.source, e.stream));
  uplinks_.send_control(cell, now);
  counters.refreshes += refresh;
  if (refresh_at_ == never) refresh_at_ = now + refresh_;
}

void EgressScheduler::set_paused(std::uint32_t number, std::uint8_t classes, TimePs now) {
  Port& port = ports_[number];
  const bool freed = (port.paused & ~classes) != 0;
  port.paused = classes;
  if (freed) kick(port, now);
}

void EgressScheduler::isolate(std::uint32_t source, bool isolated, TimePs now) {
  for (Entry& e : entries_) {
    if (e.source != source || e.isolated == isolated) continue;
    Port& port = port_of(e);
    const std::uint32_t traffic_class = e.stream % traffic_classes;
    ClassState& c = port.classes[traffic_class];
    if (isolated) {
      c.exposure -= e.exposure;
      if (e.asking) {  // out of the ring, wherever it stands
        std::uint32_t before = c.last;
        while (entries_[before].next != e.number) before = entries_[before].next;
        if (before == e.number) {
          c.last = none;
          port.asking &= static_cast<std::uint8_t>(~(1u << traffic_class));
        } else {
          entries_[before].next = e.next;
          if (c.last == e.number) c.last = before;
        }
        e.asking = false;
      }
      e.isolated = true;
    } else {
      e.isolated = false;
      c.exposure += e.exposure;
      if (e.demand() != 0) join_ring(e);
    }
    kick(port, now);
  }
}

// What was granted and has not arrived for a whole interval is said again: the grant may have been lost, or the VOQ
// waits to hear which cells have arrived.
void EgressScheduler::refresh(TimePs now) {
  refresh_at_ = never;
  bool pending = false;
  for (const Entry& e : entries_) {
    if (e.isolated || e.granted - e.given_back <= e.arrived) continue;
    pending = true;
    if (now - e.moved >= refresh_) say(e, true, now);
  }
  refresh_at_ = pending ? now + refresh_ : never;
}

}  // namespace weft::scheduler
