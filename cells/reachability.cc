// SPDX-License-Identifier: BSD-3-Clause
#include "cells/reachability.h"

#include <algorithm>
#include <map>

namespace weft::cells {

namespace {

struct LinkHistory {  // of one fabric link, from its faults
  struct Span {
    TimePs from;
    bool down;
    Rate rate;
  };
  std::vector<Span> spans;  // in time order, the first at 0
};

struct Noticed {
  TimePs at;
  bool alive;
};

class Planner {
 public:
  Planner(const Topology& topology, const CellConfig& config) : topology_(topology), config_(config) {}

  ReachabilityPlan plan(std::span<const FaultConfig> faults) {
    plan_.leaves.resize(topology_.leaves);
    plan_.spines.resize(topology_.spines);
    std::vector<FaultConfig> sorted(faults.begin(), faults.end());
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
    std::map<std::uint32_t, LinkHistory> histories;
    for (const FaultConfig& fault : sorted) {
      if (fault.kind != FaultKind::down && fault.kind != FaultKind::up && fault.kind != FaultKind::rate) continue;
      LinkHistory& history = histories[fault.link];
      if (history.spans.empty()) history.spans.push_back({0, false, topology_.fabric_links[fault.link].params.rate});
      LinkHistory::Span next = history.spans.back();
      next.from = fault.at;
      if (fault.kind == FaultKind::rate)
        next.rate = fault.rate;
      else
        next.down = fault.kind == FaultKind::down;
      history.spans.push_back(next);
    }
    for (const auto& [link, history] : histories) follow(link, history);
    advertise();
    for (auto& events : plan_.leaves) by_time(events);
    for (auto& events : plan_.spines) by_time(events);
    std::sort(plan_.times.begin(), plan_.times.end());
    plan_.times.erase(std::unique(plan_.times.begin(), plan_.times.end()), plan_.times.end());
    return std::move(plan_);
  }

 private:
  template <typename Event>
  static void by_time(std::vector<Event>& events) {
    std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.at < b.at; });
  }
  [[nodiscard]] TimePs flight(const LinkParams& link) const {
    return WireClock(link.rate).time_of(config_.reachability_bytes) + link.delay;
  }

  // Both ends lose and find the link at the same times: messages leave both at the same instants.
  void follow(std::uint32_t link, const LinkHistory& history) {
    const FabricLink& cable = topology_.fabric_links[link];
    const TimePs interval = config_.reachability_interval, flight_time = flight(cable.params);
    for (std::size_t i = 1; i < history.spans.size(); ++i)
      if (history.spans[i].rate.bits_per_s != history.spans[i - 1].rate.bits_per_s)
        set_rate(cable, history.spans[i].from, history.spans[i].rate);

    // Of each time that the link is up: the first and the last message that gets across whole. Between the last of one
    // and the first of another there is silence; a link that was up for less than a message's flight breaks none.
    std::vector<Noticed> noticed;
    TimePs heard = 0;
    bool alive = true;
    const auto silence_until = [&](TimePs next) {
      const TimePs dead = heard + config_.reachability_misses * interval;
      if (alive && next > dead) {
        noticed.push_back({dead, false});
        alive = false;
      }
    };
    for (std::size_t i = 0; i < history.spans.size();) {
      if (history.spans[i].down) {
        ++i;
        continue;
      }
      const TimePs up = history.spans[i].from;
      while (i < history.spans.size() && !history.spans[i].down) ++i;
      const TimePs first = (up + interval - 1) / interval * interval + flight_time;
      const TimePs down = i == history.spans.size() ? never : history.spans[i].from;
      if (down < first) continue;
      silence_until(first);
      if (!alive) noticed.push_back({first, true});
      alive = true;
      if (down != never) heard = (down - flight_time) / interval * interval + flight_time;
    }
    if (history.spans.back().down) silence_until(never);
    for (const Noticed& n : noticed) {
      const std::uint32_t port = cable.leaf * topology_.parallel_links + cable.parallel;
      plan_.spines[cable.spine].push_back(
          {n.at, port, n.alive ? DownlinkEvent::What::regain : DownlinkEvent::What::lose, {}});
      plan_.leaves[cable.leaf].push_back(
          {n.at,
           n.alive ? ReachabilityEvent::What::regain_uplink : ReachabilityEvent::What::lose_uplink,
           cable.spine,
           cable.parallel,
           0,
           {}});
      plan_.times.push_back(n.at);
    }
  }
  void set_rate(const FabricLink& cable, TimePs at, Rate rate) {
    const std::uint32_t port = cable.leaf * topology_.parallel_links + cable.parallel;
    plan_.spines[cable.spine].push_back({at, port, DownlinkEvent::What::rate, rate});
    plan_.leaves[cable.leaf].push_back(
        {at, ReachabilityEvent::What::uplink_rate, cable.spine, cable.parallel, 0, rate});
    plan_.times.push_back(at);
  }

  // What a spine notices of a downlink, it says to all leaves in its next message to each.
  void advertise() {
    for (std::uint32_t spine = 0; spine < topology_.spines; ++spine) {
      by_time(plan_.spines[spine]);
      std::vector<std::uint64_t> rate(topology_.leaves * topology_.parallel_links);
      std::vector<bool> alive(rate.size(), true);
      for (std::uint32_t leaf = 0; leaf < topology_.leaves; ++leaf)
        for (std::uint32_t k = 0; k < topology_.parallel_links; ++k)
          rate[leaf * topology_.parallel_links + k] =
              topology_.fabric_links[topology_.link_index(leaf, spine, k)].params.rate.bits_per_s;
      for (const DownlinkEvent& event : plan_.spines[spine]) {
        if (event.what == DownlinkEvent::What::rate)
          rate[event.port] = event.rate.bits_per_s;
        else
          alive[event.port] = event.what == DownlinkEvent::What::regain;
        const std::uint32_t changed = event.port / topology_.parallel_links;
        std::uint64_t total = 0;
        for (std::uint32_t k = 0; k < topology_.parallel_links; ++k) {
          const std::uint32_t port = changed * topology_.parallel_links + k;
          if (alive[port]) total += rate[port];
        }
        const TimePs interval = config_.reachability_interval;
        for (std::uint32_t leaf = 0; leaf < topology_.leaves; ++leaf) {
          const LinkParams& own = topology_.fabric_links[topology_.link_index(leaf, spine, 0)].params;
          const TimePs at = (event.at + interval - 1) / interval * interval + flight(own);
          plan_.leaves[leaf].push_back({at, ReachabilityEvent::What::beyond, spine, 0, changed, Rate{total}});
          plan_.times.push_back(at);
        }
      }
    }
  }

  const Topology& topology_;
  const CellConfig& config_;
  ReachabilityPlan plan_;
};

}  // namespace

ReachabilityPlan plan_reachability(const Topology& topology, const CellConfig& config,
                                   std::span<const FaultConfig> faults) {
  return Planner(topology, config).plan(faults);
}

ReachabilityTable::ReachabilityTable(const Topology& topology, std::uint32_t leaf)
    : leaves_(topology.leaves),
      spines_(topology.spines),
      parallel_(topology.parallel_links),
      alive_(spines_ * parallel_, 1),
      own_rate_(spines_ * parallel_),
      beyond_(std::size_t{spines_} * leaves_) {
  for (std::uint32_t spine = 0; spine < spines_; ++spine)
    for (std::uint32_t k = 0; k < parallel_; ++k) {
      own_rate_[spine * parallel_ + k] =
          topology.fabric_links[topology.link_index(leaf, spine, k)].params.rate.bits_per_s;
      for (std::uint32_t other = 0; other < leaves_; ++other)
        beyond_[spine * leaves_ + other] +=
            topology.fabric_links[topology.link_index(other, spine, k)].params.rate.bits_per_s;
    }
}

void ReachabilityTable::apply(const ReachabilityEvent& event) {
  const std::uint32_t uplink = event.spine * parallel_ + event.parallel;
  switch (event.what) {
    case ReachabilityEvent::What::lose_uplink:
      alive_[uplink] = 0;
      break;
    case ReachabilityEvent::What::regain_uplink:
      alive_[uplink] = 1;
      break;
    case ReachabilityEvent::What::uplink_rate:
      own_rate_[uplink] = event.rate.bits_per_s;
      break;
    case ReachabilityEvent::What::beyond:
      beyond_[event.spine * leaves_ + event.leaf] = event.rate.bits_per_s;
      break;
  }
}

void ReachabilityTable::rates_to(std::uint32_t destination, std::vector<std::uint64_t>& rates) const {
  for (std::uint32_t spine = 0; spine < spines_; ++spine) {
    std::uint64_t live = 0;
    for (std::uint32_t k = 0; k < parallel_; ++k) live += alive_[spine * parallel_ + k];
    const std::uint64_t share = live == 0 ? 0 : beyond_[spine * leaves_ + destination] / live;
    for (std::uint32_t k = 0; k < parallel_; ++k) {
      const std::uint32_t uplink = spine * parallel_ + k;
      rates[uplink] = alive_[uplink] == 0 ? 0 : std::min(own_rate_[uplink], share);
    }
  }
}

std::uint32_t ReachabilityTable::live_uplinks() const {
  return static_cast<std::uint32_t>(std::count(alive_.begin(), alive_.end(), 1));
}

}  // namespace weft::cells
