// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/ecn.h"

#include <cmath>
#include <stdexcept>
#include <string>

#include "dataplane/bytes.h"
#include "dataplane/checksum.h"

namespace weft {

EcnOutcome set_congestion_experienced(Frame* frame) {
  constexpr std::uint8_t ce = 3;
  std::uint8_t* ip = bytes_of(frame) + frame->l3_offset;
  if (frame->ip_version == 4) {
    const std::uint8_t ecn = ip[1] & ce;
    if (ecn == ce) return EcnOutcome::already_ce;
    if (ecn == 0) return EcnOutcome::not_ect;
    const std::uint16_t before = load_be16(ip);
    ip[1] |= ce;
    store_be16(ip + 10, checksum_after(load_be16(ip + 10), before, load_be16(ip)));
  } else if (frame->ip_version == 6) {
    const std::uint8_t ecn = (ip[1] >> 4) & ce;
    if (ecn == ce) return EcnOutcome::already_ce;
    if (ecn == 0) return EcnOutcome::not_ect;
    ip[1] |= static_cast<std::uint8_t>(ce << 4);
  } else {
    return EcnOutcome::not_ect;
  }
  frame->flags |= frame_marked;
  return EcnOutcome::marked;
}

EcnMarker::EcnMarker(const EcnConfig& config) {
  if (config.kmin_bytes == 0 && config.kmax_bytes == 0) return;
  if (config.kmin_bytes > config.kmax_bytes)
    throw std::invalid_argument("ecn: kmin " + std::to_string(config.kmin_bytes) + " is above kmax " +
                                std::to_string(config.kmax_bytes));
  if (!(config.pmax > 0 && config.pmax <= 1))
    throw std::invalid_argument("ecn: thresholds are given, so pmax must be above 0 and at most 1");
  kmin_ = config.kmin_bytes;
  kmax_ = config.kmax_bytes;
  if (kmin_ == kmax_) return;  // a step: choose() never asks for the slope
  // 2^32 x pmax is exact enough to be whole; the rest is integers. Rounded up, so that Pmax = 1 reaches 2^32 at Kmax.
  const auto top = static_cast<std::uint64_t>(std::llround(std::ldexp(config.pmax, 32)));
  const std::uint64_t span = kmax_ - kmin_;
  slope_ = ((static_cast<Uint128>(top) << 64) + span - 1) / span;
}

}  // namespace weft
