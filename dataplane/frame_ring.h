// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A queue of frames by value: what its owner needs to know of each frame lies beside the pointer, so that queueing,
// scheduling and cutting into cells touch this dense ring and not the frames, which the cache has long given to others.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataplane/frame.h"

namespace weft {

/// Grows to the longest it has been; a power of two.
template <typename Item>
class Ring {
 public:
  [[nodiscard]] bool empty() const { return head_ == tail_; }
  [[nodiscard]] std::uint32_t size() const { return tail_ - head_; }
  void push(const Item& item) {
    if (size() == items_.size()) [[unlikely]]
      grow();
    items_[tail_++ & mask_] = item;
  }
  [[nodiscard]] Item& front() { return items_[head_ & mask_]; }
  [[nodiscard]] const Item& front() const { return items_[head_ & mask_]; }
  /// The n-th from the front; n < size().
  [[nodiscard]] const Item& operator[](std::uint32_t n) const { return items_[(head_ + n) & mask_]; }
  void pop() { ++head_; }

 private:
  void grow() {
    std::vector<Item> larger(items_.empty() ? 16 : items_.size() * 2);
    for (std::uint32_t i = 0, count = size(); i < count; ++i) larger[i] = (*this)[i];
    tail_ = size();
    head_ = 0;
    items_ = std::move(larger);
    mask_ = static_cast<std::uint32_t>(items_.size()) - 1;
  }

  std::vector<Item> items_;
  std::uint32_t head_ = 0, tail_ = 0, mask_ = 0;  // running counts: only their difference and low bits matter
};

/// A frame in a packet buffer.
struct HeldFrame {
  Frame* frame;
  std::uint32_t length;  // as Frame::length
  std::uint16_t port;    // local port that it entered by
  bool deep;             // in the external buffer
};
static_assert(sizeof(HeldFrame) == 16);

}  // namespace weft
