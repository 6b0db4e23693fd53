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
  static constexpr std::uint32_t max_items = 1u << index_bits, buckets = 1024;

  /// Starts a window whose items all arrive in [from, until).
  void begin(TimePs from, TimePs until) {
    from_ = from;
    length_ = until - from;
    count_ = 0;
    shift_ = index_bits;
    while ((length_ >> (shift_ - index_bits)) >= buckets) ++shift_;
    std::memset(starts_, 0, sizeof starts_);
  }

  /// Takes the arrivals of one link, in their order. Kept in registers while it is filled.
  class Link {
   public:
    void add(TimePs time, void* item) {
      *item_++ = item;
      const std::uint64_t key = ((time - from_) << index_bits) | count_++;
      ++starts_[key >> shift_ & (buckets - 1)];
      *key_++ = key;
    }

   private:
    friend ArrivalOrder;
    void** item_;
    std::uint64_t* key_;
    std::uint32_t* starts_;
    TimePs from_;
    std::uint32_t count_;
    unsigned shift_;
  };
  /// For a link that has at most `most` arrivals. Nothing else is added before finish().
  [[nodiscard]] Link start(std::uint64_t most) {
    if (count_ + most > items_.size()) [[unlikely]]
      grow(count_ + most);
    Link link;
    link.item_ = items_.data() + count_;
    link.key_ = keys_.data() + count_;
    link.starts_ = starts_;
    link.from_ = from_;
    link.count_ = count_;
    link.shift_ = shift_;
    return link;
  }
  void finish(const Link& link) {
    // A link is in order, so its first arrival tells.
    WEFT_CHECK(link.count_ == count_ || keys_[count_] >> index_bits < length_,
               "an arrival outside the window that it comes in");
    WEFT_CHECK(link.count_ <= max_items, "too many arrivals in one window");
    count_ = link.count_;
  }
  void add(TimePs time, void* item) {
    WEFT_CHECK(time >= from_, "an arrival before the window that it comes in");
    Link link = start(1);
    link.add(time, item);
    finish(link);
  }
  [[nodiscard]] std::uint32_t size() const { return count_; }

  void sort() {
    if (count_ < 2) {
      if (count_ == 1) sorted_[0] = keys_[0];
      return;
    }
    const unsigned shift = shift_;
    const std::uint64_t* const keys = keys_.data();
    std::uint64_t* const sorted = sorted_.data();
    const std::uint32_t count = count_;
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
  void grow(std::uint64_t least) {
    std::size_t size = items_.empty() ? 1024 : items_.size();
    while (size < least) size *= 2;
    items_.resize(size);
    keys_.resize(size);
    sorted_.resize(size);
  }

  TimePs from_ = 0, length_ = 0;
  std::uint32_t count_ = 0;
  unsigned shift_ = index_bits;
  std::vector<void*> items_;
  std::vector<std::uint64_t> keys_, sorted_;
  std::uint32_t starts_[buckets];
};

}  // namespace weft
