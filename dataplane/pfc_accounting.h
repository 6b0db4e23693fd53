// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Bytes that each (ingress port, lossless class) holds in a switch's buffer, and the PFC that follows from them. The
// frame that rises above `xoff_bytes` is kept and the host told to pause; what still arrives then uses the headroom,
// counted from there, and what exceeds that too is refused. At or below `xon_bytes` the host may go on. A class so
// holds at most xoff_bytes + a frame + headroom_bytes. While a class stays paused the pause is said again before it can
// run out at the host.
#include <array>
#include <cstdint>
#include <vector>

#include "dataplane/check.h"
#include "dataplane/frame.h"
#include "dataplane/pfc.h"
#include "dataplane/time.h"

namespace weft {

class PfcAccounting {
 public:
  struct Thresholds {
    std::uint64_t xoff_bytes = 0, xon_bytes = 0, headroom_bytes = 0;
  };
  enum class Admit : std::uint8_t { ok, ok_send_xoff, over_headroom };
  enum class Release : std::uint8_t { nothing, send_xon };

  /// Ports are counted from 0 as the caller likes (a leaf: its own ports).
  explicit PfcAccounting(std::uint32_t ports) : ports_(ports) {}

  /// Same thresholds for every class of the port. `rate`: of its link, for the length of a pause.
  /// Throws std::invalid_argument unless xon_bytes <= xoff_bytes.
  void set_port(std::uint32_t port, const Thresholds& thresholds, Rate rate);

  /// `ok_send_xoff`: counted, and an XOFF is to be sent now. `over_headroom`: nothing is counted, the frame is lost.
  Admit admit(std::uint32_t port, std::uint32_t traffic_class, std::uint32_t bytes, TimePs now) {
    Port& p = ports_[port];
    const std::uint64_t held = p.bytes[traffic_class] + bytes;
    if (held <= p.thresholds.xoff_bytes) [[likely]] {
      p.bytes[traffic_class] = held;
      return Admit::ok;
    }
    return admit_above(p, traffic_class, held, now);
  }
  Release release(std::uint32_t port, std::uint32_t traffic_class, std::uint32_t bytes) {
    Port& p = ports_[port];
    WEFT_CHECK(p.bytes[traffic_class] >= bytes, "more bytes released than were admitted");
    p.bytes[traffic_class] -= bytes;
    if ((p.paused >> traffic_class & 1) == 0 || p.bytes[traffic_class] > p.thresholds.xon_bytes) [[likely]]
      return Release::nothing;
    p.paused &= static_cast<std::uint8_t>(~(1u << traffic_class));
    --paused_classes_;
    return Release::send_xon;
  }

  /// When refresh() is to be called next; may be early, never late. `never` while nothing is paused.
  [[nodiscard]] TimePs next_refresh() const { return paused_classes_ == 0 ? never : next_refresh_; }
  /// Calls send(port, classes) for each port whose pause is to be said again at `now`, in order of ports.
  template <typename Send>
  void refresh(TimePs now, Send&& send) {
    next_refresh_ = never;
    for (std::uint32_t port = 0; port < ports_.size(); ++port) {
      Port& p = ports_[port];
      if (p.paused == 0) continue;
      std::uint8_t due = 0;
      for (std::uint32_t c = 0; c < traffic_classes; ++c) {
        if ((p.paused >> c & 1) == 0) continue;
        if (p.said[c] + p.refresh_after <= now) {
          due |= static_cast<std::uint8_t>(1u << c);
          p.said[c] = now;
        }
        next_refresh_ = std::min(next_refresh_, p.said[c] + p.refresh_after);
      }
      if (due != 0) send(port, due);
    }
  }

  [[nodiscard]] std::uint64_t bytes(std::uint32_t port, std::uint32_t traffic_class) const {
    return ports_[port].bytes[traffic_class];
  }
  [[nodiscard]] bool paused(std::uint32_t port, std::uint32_t traffic_class) const {
    return ports_[port].paused >> traffic_class & 1;
  }
  [[nodiscard]] std::uint32_t paused_ports() const;
  /// Deepest use of headroom, of any port and class.
  [[nodiscard]] std::uint64_t headroom_max_bytes() const { return headroom_max_bytes_; }

 private:
  struct Port {
    std::array<std::uint64_t, traffic_classes> bytes{};
    Thresholds thresholds;
    TimePs refresh_after = 1;
    std::uint8_t paused = 0;
    std::array<TimePs, traffic_classes> said{};              // when XOFF was sent last
    std::array<std::uint64_t, traffic_classes> xoff_held{};  // bytes held when the pause began: headroom starts there
  };
  Admit admit_above(Port& p, std::uint32_t traffic_class, std::uint64_t held, TimePs now);

  std::vector<Port> ports_;
  std::uint32_t paused_classes_ = 0;
  TimePs next_refresh_ = never;
  std::uint64_t headroom_max_bytes_ = 0;
};

/// XOFF (pause for as long as a frame can say) or XON for `classes`, a bit each.
constexpr PfcFrame pfc_for(std::uint8_t classes, bool xoff) {
  PfcFrame frame;
  frame.enabled = classes;
  for (std::uint32_t c = 0; c < traffic_classes; ++c)
    if (xoff && (classes >> c & 1) != 0) frame.quanta[c] = max_quanta;
  return frame;
}

}  // namespace weft
