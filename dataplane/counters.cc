// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/counters.h"

#include <numeric>

namespace weft {

std::uint64_t FrameBooks::filtered_total() const {
  return std::accumulate(filtered.begin(), filtered.end(), std::uint64_t{0});
}

std::uint64_t FrameBooks::dropped_total() const {
  return std::accumulate(dropped.begin(), dropped.end(), std::uint64_t{0});
}

FrameBooks& FrameBooks::operator+=(const FrameBooks& other) {
  offered += other.offered;
  offered_bytes += other.offered_bytes;
  replicated += other.replicated;
  delivered += other.delivered;
  delivered_bytes += other.delivered_bytes;
  for (std::size_t i = 0; i < filtered.size(); ++i) filtered[i] += other.filtered[i];
  for (std::size_t i = 0; i < dropped.size(); ++i) dropped[i] += other.dropped[i];
  no_frame_memory += other.no_frame_memory;
  return *this;
}

}  // namespace weft
