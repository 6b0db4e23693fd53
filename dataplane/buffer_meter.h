// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// How full a packet buffer was: its high-water mark, and its exact average over time (the area under the curve, summed
// up at each change, not sampled).
#include <cstdint>
#include <string>

#include "dataplane/results.h"
#include "dataplane/time.h"

namespace weft {

class BufferMeter {
 public:
  /// It holds `bytes` from `now` on. Times never decrease.
  void set(std::uint64_t bytes, TimePs now) {
    if (bytes == bytes_) return;
    if (now > since_) {
      area_ += static_cast<Area>(bytes_) * (now - since_);
      since_ = now;
    }
    bytes_ = bytes;
    if (bytes > max_) max_ = bytes;
  }
  /// The average leaves out what was before `now`; the high-water mark does not.
  void start_average(TimePs now) {
    area_ = 0;
    started_ = since_ = now;
  }
  [[nodiscard]] std::uint64_t max_bytes() const { return max_; }
  /// Average until `end`; 0 for no time.
  [[nodiscard]] double mean_bytes(TimePs end) const {
    if (end <= started_) return 0;
    const Area area = area_ + (end > since_ ? static_cast<Area>(bytes_) * (end - since_) : 0);
    return static_cast<double>(area) / static_cast<double>(end - started_);
  }
  /// Takes the buffer of switch `node` into the summary of a fabric.
  void add_to(BufferResult& result, const std::string& node, TimePs end) const {
    const double mean = mean_bytes(end);
    if (max_ > result.max_bytes) result.max_bytes = max_, result.max_node = node;
    if (mean > result.mean_bytes) result.mean_bytes = mean, result.mean_node = node;
    result.all_mean_bytes += mean;
  }

 private:
  __extension__ typedef unsigned __int128 Area;  // 64 MiB for a second are 2^66 byte picoseconds

  std::uint64_t bytes_ = 0, max_ = 0;
  TimePs since_ = 0, started_ = 0;
  Area area_ = 0;
};

}  // namespace weft
