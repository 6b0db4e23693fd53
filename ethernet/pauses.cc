// SPDX-License-Identifier: BSD-3-Clause
// Pause frames, as a switch receives and sends them, and what is known of why.
#include "dataplane/addresses.h"
#include "ethernet/switch.h"

namespace weft::ethernet {

void Switch::paused(std::uint32_t p, const PfcFrame& pfc, const PauseRoot& root, TimePs now) {
  EgressPort& port = ports_[p];
  ++port.pauses_received;
  port.receive_pause(pfc, now);
  bool pausing = false;
  for (std::uint32_t c = 0; c < traffic_classes; ++c) {
    if ((pfc.enabled >> c & 1) == 0) continue;
    pausing |= pfc.quanta[c] != 0;
    if ((port.storm >> c & 1) != 0 && !storm_over(p, c, now) && pfc.quanta[c] != 0)
      stalls_[p * traffic_classes + c].last_pause = now;
    if (port.bytes(c) != 0 && port.held(c, now))
      stalled(p, c, now);
    else
      moved(p, c);
  }
  if (pausing) {
    port.pause_root = root;
    if (p >= hosts_count_) note_cause(p, root);
  }
  arm(p, now);
}

void Switch::send_xoff(std::uint32_t in, std::uint32_t out, std::uint32_t traffic_class, TimePs now) {
  const EgressPort& cause = ports_[out];
  PauseRoot root{index_ << 16 | out, 1};
  if (cause.held(traffic_class, now)) root = {cause.pause_root.port, cause.pause_root.hops + 1};
  ports_[in].send_pause(static_cast<std::uint8_t>(1u << traffic_class), true, root);
  ++ports_[in].pauses_sent;
  if (in < hosts_count_) note_cause(in, root);
  arm(in, now);
  timers_.set(slot_refresh(), mmu_.next_refresh());
}

void Switch::send_xon(std::uint32_t in, std::uint32_t traffic_class, TimePs now) {
  ports_[in].send_pause(static_cast<std::uint8_t>(1u << traffic_class), false, {});
  ++ports_[in].resumes_sent;
  arm(in, now);
  timers_.set(slot_refresh(), mmu_.next_refresh());
}

void Switch::transmit_pause(std::uint32_t p, TimePs now) {
  TimePs end = 0;
  PauseRoot root;
  const PfcFrame pfc = ports_[p].transmit_pause(now, end, root);
  TapId tap = no_tap;
  if (p < hosts_count_) {
    hosts_[p].pause_sent(pfc, end);
    live_.pfc(p, pfc);
    timers_.set(slot(slot_host_pause, p), hosts_[p].next_pause());
    if (!taps_.host_out.empty()) tap = taps_.host_out[p];
  } else {
    FabricPort& fabric = fabric_[p - hosts_count_];
    PauseOnWire& item = fabric.out->pauses.append();
    item.at = end + fabric.params.delay;
    item.pfc = pfc;
    item.port = fabric.far_port;
    item.root = root;
    fabric.out->pauses.front();
    fabric.out->pauses.commit();
    tap = fabric.pause_tap;
  }
  if (tap == no_tap) return;
  const auto bytes = build_pfc(port_mac(index_, p), pfc);
  capture_->bytes(tap, end, bytes.data(), static_cast<std::uint32_t>(bytes.size()));
}

void Switch::note_cause(std::uint32_t port, const PauseRoot& root) {
  for (PauseCause& cause : pause_causes_[port])
    if (cause.root.port == root.port && cause.root.hops == root.hops) {
      ++cause.pauses;
      return;
    }
  pause_causes_[port].push_back({root, 1});
}

}  // namespace weft::ethernet
