// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The live ports of one leaf, and what both fabrics' leaves do with them.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "dataplane/host_port.h"
#include "dataplane/live_port.h"

namespace weft {

class LiveHosts {
 public:
  /// `leaf_ports`: host ports of the leaf.
  explicit LiveHosts(std::uint32_t leaf_ports) : by_port_(leaf_ports, nullptr) {}

  void add(std::uint32_t local_port, LivePort* live, HostPort& host) {
    by_port_[local_port] = live;
    ports_.emplace_back(local_port, live);
    for (auto& source : live->make_sources()) host.add_source(std::move(source), live->pool());
  }
  [[nodiscard]] bool any() const { return !ports_.empty(); }
  [[nodiscard]] LivePort* at(std::uint32_t local_port) const { return by_port_[local_port]; }

  void poll(TimePs now) {
    for (const auto& [local, live] : ports_) live->poll(now);
  }
  void flush() {
    for (const auto& [local, live] : ports_) live->flush();
  }
  [[nodiscard]] TimePs earliest() const {
    TimePs at = never;
    for (const auto& [local, live] : ports_) at = std::min(at, live->earliest());
    return at;
  }
  /// At the start of a window: frames that are ready in it enter their hosts' queues. drop(frame, reason) and
  /// ignore(frame) as of LivePort::arrive; changed(local port): its next admission may be another.
  template <typename Drop, typename Ignore, typename Changed>
  void arrive(std::vector<HostPort>& hosts, TimePs from, TimePs until, Drop&& drop, Ignore&& ignore,
              Changed&& changed) {
    for (const auto& [local, live] : ports_) {
      if (live->earliest() >= until) continue;
      const auto enter = [&, port = live->port()](Frame* frame, auto&& do_this, auto... why) {
        frame->in_port = port;
        do_this(frame, why...);
      };
      const bool moved = live->arrive(
          until, [&](Frame* frame, DropReason why) { enter(frame, drop, why); },
          [&](Frame* frame) { enter(frame, ignore); });
      if (!moved) continue;
      hosts[local].source_filled(from);
      changed(local);
    }
  }

  /// Why a frame cannot leave by the live port `local_port`; false: it can, or the port is not a live one.
  [[nodiscard]] bool refuses(std::uint32_t local_port, const Frame* frame, DropReason& why) const {
    const LivePort* live = by_port_[local_port];
    if (live == nullptr) return false;
    if (!live->link_up()) {
      why = DropReason::host_down;
      return true;
    }
    why = DropReason::host_mtu;
    return frame->length > live->longest();
  }
  /// A delivered frame's end: on the wire of a live port, else back in its pool.
  void finish(std::uint32_t local_port, Frame* frame) {
    LivePort* live = by_port_[local_port];
    if (live != nullptr) [[unlikely]]
      live->transmit(frame);
    else
      free_frame(frame);
  }
  void pfc(std::uint32_t local_port, const PfcFrame& frame) {
    if (LivePort* live = by_port_[local_port]) live->transmit_pfc(frame);
  }

 private:
  std::vector<LivePort*> by_port_;
  std::vector<std::pair<std::uint32_t, LivePort*>> ports_;
};

}  // namespace weft
