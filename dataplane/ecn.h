// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// ECN marking by queue depth (RFC 3168 marks, WRED-like profile of DCQCN): nothing below Kmin, rising in a straight
// line to Pmax at Kmax, always above Kmax. Depth is instantaneous, not averaged, as data-centre switches are configured
// for DCQCN. Marking sets CE in IPv4 (checksum by difference) or IPv6; RoCEv2's ICRC leaves these bits out and stays
// right.
#include <cstdint>

#include "dataplane/config.h"
#include "dataplane/frame.h"

namespace weft {

enum class EcnOutcome : std::uint8_t {
  none,        // not chosen
  marked,      // chosen, CE is now set
  already_ce,  // chosen, CE had been set before
  not_ect,     // chosen, but not IP or not ECN-capable: the caller drops it or lets it pass
};

/// Sets CE where the frame can carry it.
EcnOutcome set_congestion_experienced(Frame* frame);

class EcnMarker {
 public:
  EcnMarker() = default;  // off
  /// Throws std::invalid_argument where kmin > kmax, or pmax is not within 0 to 1, or is 0 although thresholds are
  /// given.
  explicit EcnMarker(const EcnConfig& config);

  [[nodiscard]] bool enabled() const { return kmax_ != 0; }

  /// Whether a frame that finds `depth` bytes is chosen, given 32 random bits. A draw is needed only between the
  /// thresholds, but draw for every frame of an ECN class: then one queue's depth does not shift the random numbers of
  /// another.
  [[nodiscard]] bool choose(std::uint64_t depth, std::uint32_t random) const {
    if (depth <= kmin_) [[likely]]
      return false;
    if (depth > kmax_) return true;
    return random < static_cast<std::uint64_t>((static_cast<Uint128>(depth - kmin_) * slope_) >> 64);
  }

  EcnOutcome mark(Frame* frame, std::uint64_t depth, std::uint32_t random) const {
    return choose(depth, random) ? set_congestion_experienced(frame) : EcnOutcome::none;
  }

 private:
  std::uint64_t kmin_ = ~std::uint64_t{0}, kmax_ = 0;
  Uint128 slope_ = 0;  // 2^96 x probability a byte
};

}  // namespace weft
