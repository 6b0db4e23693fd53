// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/pfc_accounting.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace weft {

void PfcAccounting::set_port(std::uint32_t port, const Thresholds& thresholds, Rate rate) {
  if (thresholds.xon_bytes > thresholds.xoff_bytes)
    throw std::invalid_argument("pfc: xon " + std::to_string(thresholds.xon_bytes) + " bytes is above xoff " +
                                std::to_string(thresholds.xoff_bytes));
  Port& p = ports_[port];
  p.thresholds = thresholds;
  p.refresh_after = std::max<TimePs>(pause_time(max_quanta, rate) / 2, 1);
}

PfcAccounting::Admit PfcAccounting::admit_above(Port& p, std::uint32_t traffic_class, std::uint64_t held, TimePs now) {
  const auto bit = static_cast<std::uint8_t>(1u << traffic_class);
  if ((p.paused & bit) != 0) {
    const std::uint64_t base = p.xoff_held[traffic_class], above = held > base ? held - base : 0;
    if (above > p.thresholds.headroom_bytes) return Admit::over_headroom;
    p.bytes[traffic_class] = held;
    headroom_max_bytes_ = std::max(headroom_max_bytes_, above);
    return Admit::ok;
  }
  p.bytes[traffic_class] = p.xoff_held[traffic_class] = held;
  p.paused |= bit;
  ++paused_classes_;
  p.said[traffic_class] = now;
  next_refresh_ = std::min(paused_classes_ == 1 ? never : next_refresh_, now + p.refresh_after);
  return Admit::ok_send_xoff;
}

std::uint32_t PfcAccounting::paused_ports() const {
  return static_cast<std::uint32_t>(
      std::count_if(ports_.begin(), ports_.end(), [](const Port& p) { return p.paused != 0; }));
}

}  // namespace weft
