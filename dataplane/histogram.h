// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Latency histogram: exact least and most, log-linear buckets between (2^sub_bits a factor of two), so a
// percentile is at most 2^-sub_bits above the truth. Adding is a shift and an increment.
#include <bit>
#include <cstdint>
#include <vector>

#include "dataplane/time.h"

namespace weft {

struct LatencyPoint;
struct LatencySummary;

class Histogram {
 public:
  static constexpr unsigned sub_bits = 10;

  void add(TimePs value) {
    const std::uint32_t bucket = bucket_of(value);
    if (bucket >= counts_.size()) [[unlikely]]
      counts_.resize(bucket + 256);
    ++counts_[bucket];
    ++count_;
    sum_ += value;
    min_ = value < min_ ? value : min_;
    max_ = value > max_ ? value : max_;
  }
  void merge(const Histogram& other);
  [[nodiscard]] std::uint64_t count() const { return count_; }
  /// Least value that at least `fraction` of the samples do not exceed (nearest rank), rounded up to its bucket's end.
  [[nodiscard]] TimePs percentile(double fraction) const;
  [[nodiscard]] LatencySummary summary() const;
  /// The distribution as at most `points` + 2 points of it, spread over samples and over values alike; the first is the
  /// least sample's bucket, the last the greatest sample.
  [[nodiscard]] std::vector<LatencyPoint> curve(std::uint32_t points) const;
  [[nodiscard]] TimePs min() const { return count_ == 0 ? 0 : min_; }
  [[nodiscard]] TimePs max() const { return max_; }

 private:
  // Values below 2^sub_bits have a bucket each; above, an octave has 2^sub_bits buckets.
  static std::uint32_t bucket_of(TimePs value) {
    const unsigned width = static_cast<unsigned>(std::bit_width(value));
    const unsigned shift = width > sub_bits + 1 ? width - (sub_bits + 1) : 0;
    return static_cast<std::uint32_t>((shift << sub_bits) + (value >> shift));
  }
  static TimePs last_of(std::uint32_t bucket);

  std::vector<std::uint32_t> counts_;
  std::uint64_t count_ = 0, sum_ = 0;
  TimePs min_ = never, max_ = 0;
};

}  // namespace weft
