// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/histogram.h"

#include <algorithm>
#include <cmath>

#include "dataplane/results.h"

namespace weft {

void Histogram::merge(const Histogram& other) {
  if (other.counts_.size() > counts_.size()) counts_.resize(other.counts_.size());
  for (std::size_t i = 0; i < other.counts_.size(); ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

TimePs Histogram::last_of(std::uint32_t bucket) {
  if (bucket < (2u << sub_bits)) return bucket;
  const unsigned shift = (bucket >> sub_bits) - 1;
  const TimePs leading = bucket - (shift << sub_bits);
  return ((leading + 1) << shift) - 1;
}

TimePs Histogram::percentile(double fraction) const {
  if (count_ == 0) return 0;
  // Nearest rank. A product such as 0.9 x 10 must not land a rounding error above its whole number.
  const long double exact = static_cast<long double>(fraction) * static_cast<long double>(count_);
  const long double rounded = std::ceil(exact - exact * 1e-15L);
  const auto rank = std::clamp<std::uint64_t>(rounded <= 1 ? 1 : static_cast<std::uint64_t>(rounded), 1, count_);
  std::uint64_t seen = 0;
  for (std::uint32_t bucket = 0; bucket < counts_.size(); ++bucket) {
    seen += counts_[bucket];
    if (seen >= rank) return std::clamp(last_of(bucket), min_, max_);
  }
  return max_;
}

LatencySummary Histogram::summary() const {
  LatencySummary s;
  s.count = count_;
  if (count_ == 0) return s;
  s.min = min();
  s.p50 = percentile(0.5);
  s.p90 = percentile(0.9);
  s.p99 = percentile(0.99);
  s.p999 = percentile(0.999);
  s.max = max();
  s.mean = static_cast<double>(sum_) / static_cast<double>(count_);
  return s;
}

std::vector<LatencyPoint> Histogram::curve(std::uint32_t points) const {
  // A point is worth its place when the curve has gone far enough from the last one, up or to the right. Half of the
  // points for either; the rightward ones by ratio, as latencies are looked at.
  std::vector<LatencyPoint> curve;
  if (count_ == 0) return curve;
  const double span = static_cast<double>(max_) / static_cast<double>(std::max<TimePs>(min_, 1));
  const double ratio = std::pow(std::max(span, 1.0), 2.0 / points);
  const auto step = static_cast<double>(count_) * 2 / points;
  std::uint64_t seen = 0, last_seen = 0;
  double next_value = 0;
  for (std::uint32_t bucket = 0; bucket < counts_.size() && seen < count_; ++bucket) {
    if (counts_[bucket] == 0) continue;
    const TimePs value = std::clamp(last_of(bucket), min_, max_);
    seen += counts_[bucket];
    if (curve.empty() || seen == count_ || static_cast<double>(seen - last_seen) >= step ||
        static_cast<double>(value) >= next_value) {
      curve.push_back({value, seen});
      last_seen = seen;
      next_value = static_cast<double>(value) * ratio;
    }
  }
  return curve;
}

}  // namespace weft
