// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The packet memory of an ingress leaf, in two tiers: on-chip (fast, small) and external (large, with a bandwidth that
// writes and reads share, and a read latency). A frame on its way to external memory stays on chip until it has been
// written.
#include <cstdint>
#include <deque>

#include "dataplane/time.h"

namespace weft::voq {

class PacketBuffer {
 public:
  PacketBuffer(std::uint64_t sram_bytes, std::uint64_t deep_bytes, Rate deep_rate, TimePs deep_latency)
      : sram_bytes_(sram_bytes), deep_bytes_(deep_bytes), deep_latency_(deep_latency) {
    if (deep_bytes != 0) deep_clock_.set_rate(deep_rate);
  }

  [[nodiscard]] bool sram_fits(std::uint32_t bytes) const { return sram_used_ + bytes <= sram_bytes_; }
  [[nodiscard]] bool deep_fits(std::uint32_t bytes) const { return deep_used_ + bytes <= deep_bytes_; }
  [[nodiscard]] std::uint64_t free_bytes() const {
    return sram_bytes_ + deep_bytes_ - sram_used_ - deep_used_ + writing_;
  }

  void store(std::uint32_t bytes) {
    sram_used_ += bytes;
    if (sram_used_ > sram_max) sram_max = sram_used_;
  }
  void release(std::uint32_t bytes) { sram_used_ -= bytes; }

  /// A frame goes to external memory: it takes its place there at once, and leaves its place on chip when written.
  void store_deep(std::uint32_t bytes, TimePs now) {
    store(bytes);
    deep_used_ += bytes;
    if (deep_used_ > deep_max) deep_max = deep_used_;
    deep_written += bytes;
    writing_ += bytes;
    writes_.push_back({transfer(bytes, now), bytes});
  }
  void release_deep(std::uint32_t bytes) { deep_used_ -= bytes; }
  /// When `bytes` of external memory will have been read, if asked for now. Never earlier than an earlier read.
  TimePs read_deep(std::uint32_t bytes, TimePs now) { return transfer(bytes, now) + deep_latency_; }

  [[nodiscard]] TimePs next_write_done() const { return writes_.empty() ? never : writes_.front().done; }
  void write_done() {
    sram_used_ -= writes_.front().bytes;
    writing_ -= writes_.front().bytes;
    writes_.pop_front();
  }
  /// On-chip bytes that wait to be written to external memory.
  [[nodiscard]] std::uint64_t writing() const { return writing_; }
  [[nodiscard]] std::uint64_t deep_used() const { return deep_used_; }

  std::uint64_t sram_max = 0, deep_max = 0, deep_written = 0;

 private:
  struct Write {
    TimePs done;
    std::uint32_t bytes;
  };
  TimePs transfer(std::uint32_t bytes, TimePs now) {
    deep_free_at_ = (deep_free_at_ > now ? deep_free_at_ : now) + deep_clock_.take(bytes);
    return deep_free_at_;
  }
  std::uint64_t sram_bytes_, deep_bytes_;
  TimePs deep_latency_;
  std::uint64_t sram_used_ = 0, deep_used_ = 0, writing_ = 0;
  WireClock deep_clock_{Rate{1}};
  TimePs deep_free_at_ = 0;
  std::deque<Write> writes_;
};

}  // namespace weft::voq
