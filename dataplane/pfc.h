// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Priority-based flow control (IEEE 802.1Qbb, now 802.1Q clause 36; frames as in 802.3 annex 31D), for both fabrics:
// frames, what a receiver does with them, and how much headroom a sender of them needs. Pause times are quanta of 512
// bit times.
#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>

#include "dataplane/config.h"
#include "dataplane/forward.h"
#include "dataplane/time.h"

namespace weft {

inline constexpr std::uint32_t pfc_frame_bytes = 60;
inline constexpr std::uint16_t max_quanta = 65'535;
inline constexpr std::uint64_t pause_destination = 0x0180'c200'0001;

struct PfcFrame {
  std::uint8_t enabled = 0;                             // bit n: quanta[n] counts
  std::array<std::uint16_t, traffic_classes> quanta{};  // 0: resume
};

/// The 60 bytes of a PFC frame, padding included. `source` is the sending port's own address.
std::array<std::uint8_t, pfc_frame_bytes> build_pfc(const MacAddress& source, const PfcFrame& pfc);

struct MacControl {
  enum class Kind : std::uint8_t {
    none,   // not a MAC control frame: other EtherType, or tagged
    pfc,    // opcode 0x0101
    pause,  // opcode 0x0001: the whole link; `quanta` holds its time. Not honoured where PFC runs (the two exclude each
            // other)
    other,  // another opcode (EPON, ...), or an address that is not 01:80:c2:00:00:01: ignored
    malformed,  // shorter than its fields
  } kind = Kind::none;
  PfcFrame pfc;
  std::uint16_t quanta = 0;
};

/// Reads a MAC control frame, padded or not. The reserved high byte of the class-enable vector is ignored, so is the
/// source (some hardware sends zero). Whatever the kind, but for `none`, the frame is consumed here: it is neither
/// forwarded nor learnt from.
MacControl parse_mac_control(std::span<const std::uint8_t> frame);

/// Time of `quanta` at `rate`, rounded up: a pause must not end early.
constexpr TimePs pause_time(std::uint16_t quanta, Rate rate) {
  const std::uint64_t numerator = std::uint64_t{quanta} * 512 * 1'000'000;  // microseconds x bits, times 10^6 below
  return static_cast<TimePs>((static_cast<Uint128>(numerator) * 1'000'000 + rate.bits_per_s - 1) / rate.bits_per_s);
}

/// What a sender that obeys PFC remembers: until when each class is paused.
class PauseState {
 public:
  PauseState() = default;
  /// Pauses of classes that are not lossless are counted and not applied.
  PauseState(Rate rate, const std::array<bool, traffic_classes>& lossless);

  /// A frame takes effect at `at` (its last bit plus the receiver's reaction time; calls in order of time).
  /// Returns the classes, a bit each, that it pauses or resumes.
  std::uint8_t receive(const PfcFrame& frame, TimePs at);
  [[nodiscard]] bool paused(std::uint32_t traffic_class, TimePs now) const { return until_[traffic_class] > now; }
  [[nodiscard]] TimePs paused_until(std::uint32_t traffic_class) const { return until_[traffic_class]; }
  /// When a frame that could start at `start` may: then, or at the end of the current pause if it falls into that.
  [[nodiscard]] TimePs may_start(std::uint32_t traffic_class, TimePs start) const {
    return start >= since_[traffic_class] && start < until_[traffic_class] ? until_[traffic_class] : start;
  }
  /// Classes paused at `now`, a bit each.
  [[nodiscard]] std::uint8_t paused_classes(TimePs now) const;
  /// The first time after `now` at which a pause runs out; never if none does.
  [[nodiscard]] TimePs next_change(TimePs now) const;
  /// Time that a class has been paused up to `now`.
  [[nodiscard]] TimePs paused_total(std::uint32_t traffic_class, TimePs now) const;
  [[nodiscard]] std::uint64_t received(std::uint32_t traffic_class) const { return received_[traffic_class]; }

 private:
  Rate rate_{1};
  std::uint8_t lossless_ = 0;
  std::array<TimePs, traffic_classes> since_{}, until_{};  // the current or last pause
  std::array<TimePs, traffic_classes> total_{};            // of the pauses before it
  std::array<std::uint64_t, traffic_classes> received_{};
};

/// Pause frames that have arrived at a port and take effect after its reaction time, in order of time.
class PendingPauses {
 public:
  void add(TimePs at, const PfcFrame& frame) { pending_.push_back({at, frame}); }
  [[nodiscard]] TimePs next() const { return pending_.empty() ? never : pending_.front().at; }
  PfcFrame take() {
    const PfcFrame frame = pending_.front().frame;
    pending_.pop_front();
    return frame;
  }

 private:
  struct Pending {
    TimePs at;
    PfcFrame frame;
  };
  std::deque<Pending> pending_;
};

/// Reaction time of a host's NIC, from the last bit of the pause frame to the last moment at which a frame may start:
/// the peer response times of SONiC's buffer_headroom tables, in quanta. A rate between two of theirs has that of the
/// next higher one.
std::uint32_t peer_response_quanta(Rate rate);
inline TimePs default_reaction_time(Rate rate) {
  return pause_time(static_cast<std::uint16_t>(peer_response_quanta(rate)), rate);
}

/// Most bytes that can still arrive after XOFF was decided (behind the frame that decided it), in this model:
///   2 x delay x rate             what is on the cable now, and what follows until the pause frame is there
///   + reaction x rate            what the host starts before it obeys
///   + 2 x (mtu + 24)             the frame that holds up the pause frame, and the one that the host has begun when it
///   must stop
///   + 84                         the pause frame itself
///   + pipeline x rate            what has arrived but is not yet counted, where frames are counted behind a pipeline
/// `mtu`: longest frame without FCS, tags included. Wire bytes, so an upper bound for frames counted by length.
std::uint64_t headroom_bytes(Rate rate, TimePs delay, std::uint32_t mtu, TimePs reaction, TimePs pipeline = 0);

/// The published formula (SONiC, buffer_headroom_mellanox.lua), for comparison with switches that are configured by it:
///   ceil to KiB(lossless_mtu + (mtu + 2 x cable + 2 x gearbox + mac_phy + response quanta x 64) x occupancy)
/// with occupancy = 1 - s + s x f, s the share of small packets (percent / 100) and f = cell / 64 for cells over 128
/// bytes, else 2 x cell / (1 + cell). Light travels 198,000 km/s. As in the original, the cable's bytes are divided by
/// 1024 where 1000 is meant (2.3% too few); kept, so that values agree with those in the field.
struct PublishedHeadroom {
  Rate rate{};
  double cable_m = 0;
  std::uint32_t mtu = 9100, lossless_mtu = 1024;
  double small_packets_percent = 0;
  std::uint32_t cell_bytes = 144;
  std::uint32_t gearbox_bytes = 0, mac_phy_bytes = 0;
};
std::uint64_t published_headroom_bytes(const PublishedHeadroom& in);

}  // namespace weft
