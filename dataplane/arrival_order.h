// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Puts what a window's in-links deliver in the order (time, link, sequence). Items are added link by link, each link in
// its own order, so the running number breaks ties. A bucket pass places each item within a few of where it belongs,
// and an insertion pass makes it exact: linear, and two sweeps over 8-byte keys; the descriptors stay where they are.
#include <cstdint>
#include <cstring>
#include <vector>

#include "dataplane/check.h"
#include "dataplane/time.h"

namespace weft {

class ArrivalOrder {
 public:
  static constexpr unsigned index_bits = 20;
  static constexpr std::uint32_t max_items = 1u << index_bits;

  /// Starts a window whose items all arrive in [from, until).
  void begin(TimePs from, TimePs until) {
    from_ = from;
    count_ = 0;
    shift_ = 0;
    while (((until - from) >> shift_) >= buckets) ++shift_;
  }
  void add(TimePs time, void* item) {
    if (count_ == items_.size()) [[unlikely]]
      grow();
    WEFT_CHECK(time >= from_, "an arrival before the window that it comes in");
    items_[count_] = item;
    keys_[count_] = ((time - from_) << index_bits) | count_;
    ++count_;
  }
  [[nodiscard]] std::uint32_t size() const { return count_; }

  void sort() {
    if (count_ < 2) {
      if (count_ == 1) sorted_[0] = keys_[0];
      return;
    }
    std::memset(starts_, 0, sizeof starts_);
    const unsigned shift = shift_ + index_bits;
    const std::uint64_t* const keys = keys_.data();
    std::uint64_t* const sorted = sorted_.data();
    const std::uint32_t count = count_;
    for (std::uint32_t i = 0; i < count; ++i) ++starts_[keys[i] >> shift];
    std::uint32_t sum = 0;
    for (std::uint32_t& start : starts_) {
      const std::uint32_t n = start;
      start = sum;
      sum += n;
    }
    for (std::uint32_t i = 0; i < count; ++i) sorted[starts_[keys[i] >> shift]++] = keys[i];
    std::uint64_t previous = sorted[0];
    for (std::uint32_t i = 1; i < count; ++i) {
      const std::uint64_t key = sorted[i];
      if (key >= previous) [[likely]] {
        previous = key;
        continue;
      }
      std::uint32_t j = i;
      for (; j > 0 && sorted[j - 1] > key; --j) sorted[j] = sorted[j - 1];
      sorted[j] = key;
    }
  }
  /// After sort(): the i-th in order.
  [[nodiscard]] TimePs time(std::uint32_t i) const { return from_ + (sorted_[i] >> index_bits); }
  [[nodiscard]] void* item(std::uint32_t i) const { return items_[sorted_[i] & (max_items - 1)]; }

 private:
  static constexpr std::uint32_t buckets = 256;
  void grow() {
    const std::size_t size = items_.empty() ? 1024 : items_.size() * 2;
    WEFT_CHECK(size <= max_items, "too many arrivals in one window");
    items_.resize(size);
    keys_.resize(size);
    sorted_.resize(size);
  }

  TimePs from_ = 0;
  std::uint32_t count_ = 0;
  unsigned shift_ = 0;
  std::vector<void*> items_;
  std::vector<std::uint64_t> keys_, sorted_;
  std::uint32_t starts_[buckets];
};

}  // namespace weft
