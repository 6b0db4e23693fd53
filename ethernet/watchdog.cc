// SPDX-License-Identifier: BSD-3-Clause
// The PFC watchdog: a (port, class) that has frames, is paused and has sent none for `detect` is in a storm (a broken
// host, a cyclic dependency of buffers). Until `restore` has passed without a pause frame for it, its frames are
// dropped, or sent in spite of pauses.
#include "ethernet/switch.h"

namespace weft::ethernet {

void Switch::stalled(std::uint32_t port, std::uint32_t traffic_class, TimePs now) {
  if (config_.watchdog.action == WatchdogAction::off) return;
  Stall& stall = stalls_[port * traffic_classes + traffic_class];
  if (stall.since != never) return;
  stall.since = now;
  ++stalled_count_;
  const TimePs due = now + config_.watchdog.detect;
  if (due < timers_.at(slot_watchdog())) timers_.set(slot_watchdog(), due);
}

void Switch::moved(std::uint32_t port, std::uint32_t traffic_class) {
  Stall& stall = stalls_[port * traffic_classes + traffic_class];
  if (stall.since == never) return;
  stall.since = never;
  // A timer that is too early does no harm while something is stalled; with nothing stalled it must not keep the run
  // alive.
  if (--stalled_count_ == 0) timers_.clear(slot_watchdog());
}

// Nobody needs to know when a storm ends before the next frame or pause frame comes, so no timer waits for it.
bool Switch::storm_over(std::uint32_t port, std::uint32_t traffic_class, TimePs now) {
  if (now < stalls_[port * traffic_classes + traffic_class].last_pause + config_.watchdog.restore) return false;
  const auto keep = static_cast<std::uint8_t>(~(1u << traffic_class));
  ports_[port].storm = ports_[port].storm & keep;
  ports_[port].ignore_pause = ports_[port].ignore_pause & keep;
  return true;
}

void Switch::watchdog(TimePs now) {
  timers_.clear(slot_watchdog());
  TimePs due = never;
  for (std::uint32_t p = 0; p < all_ports_; ++p)
    for (std::uint32_t c = 0; c < traffic_classes; ++c) {
      Stall& stall = stalls_[p * traffic_classes + c];
      if (stall.since == never) continue;
      if (stall.since + config_.watchdog.detect > now) {
        due = std::min(due, stall.since + config_.watchdog.detect);
        continue;
      }
      EgressPort& port = ports_[p];
      moved(p, c);
      if (!port.held(c, now)) continue;
      ++storms_;
      port.storm |= static_cast<std::uint8_t>(1u << c);
      stall.last_pause = now;
      if (config_.watchdog.action == WatchdogAction::forward) {
        port.ignore_pause |= static_cast<std::uint8_t>(1u << c);
      } else {
        while (port.bytes(c) != 0) {
          const QueuedFrame frame = port.pop(c);
          drop(frame.frame, DropReason::watchdog, now);
          if (mmu_.release(frame.in, p, c, frame.length)) send_xon(frame.in, c, now);
          buffer_meter_.set(mmu_.used_bytes(), now);
        }
      }
      arm(p, now);
    }
  if (stalled_count_ != 0) timers_.set(slot_watchdog(), due);
}

}  // namespace weft::ethernet
