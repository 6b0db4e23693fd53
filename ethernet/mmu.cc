// SPDX-License-Identifier: BSD-3-Clause
#include "ethernet/mmu.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace weft::ethernet {

namespace {

std::uint64_t q12(double alpha) {
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::llround(alpha * 4096)));
}

}  // namespace

Mmu::Mmu(const MmuConfig& config)
    : guaranteed_(config.guaranteed_bytes),
      xon_offset_(config.xon_offset_bytes),
      alpha_q12_(q12(config.alpha)),
      alpha_lossy_q12_(q12(config.alpha_lossy)),
      buffer_size_(config.buffer_bytes),
      accounts_(config.headroom_bytes.size() * traffic_classes),
      headroom_(config.headroom_bytes),
      refresh_after_(config.refresh_after) {
  std::uint64_t classes = 0;
  for (std::uint32_t c = 0; c < traffic_classes; ++c) {
    lossless_ |= config.lossless[c] ? 1u << c : 0u;
    classes += config.lossless[c];
  }
  std::uint64_t reserved = accounts_.size() * guaranteed_;
  for (const std::uint64_t headroom : headroom_) reserved += classes * (headroom + config.longest_frame_bytes);
  // The pool must be worth sharing: with none, every frame beyond its guarantee pauses its sender.
  const std::uint64_t least = reserved + headroom_.size() * config.longest_frame_bytes;
  if (config.buffer_bytes < least)
    throw std::invalid_argument("ethernet.buffer: " + std::to_string(config.buffer_bytes) +
                                " bytes do not hold the guarantees and headroom of " +
                                std::to_string(headroom_.size()) + " ports of " + config.name + " (" +
                                std::to_string(reserved) + ") and a frame of each port; at least " +
                                std::to_string(least));
  shared_size_ = config.buffer_bytes - reserved;
}

void Mmu::pause(Account& account, std::uint32_t port, TimePs now) {
  account.paused = 1;
  account.base = account.bytes;
  account.said = now;
  ++paused_accounts_;
  next_refresh_ = std::min(paused_accounts_ == 1 ? never : next_refresh_, now + refresh_after_[port]);
}

Mmu::Admit Mmu::admit_paused(Account& account, std::uint32_t port, std::uint32_t bytes) {
  const std::uint64_t held = account.bytes + bytes, above = held > account.base ? held - account.base : 0;
  if (above > headroom_[port]) return Admit::headroom_exceeded;
  const std::uint64_t before = shared_of(account);
  account.bytes = held;
  take(bytes, shared_of(account) - before);
  headroom_max_ = std::max(headroom_max_, above);
  WEFT_CHECK(used_ <= buffer_size_, "a switch holds more than its buffer");
  return Admit::ok;
}

bool Mmu::try_resume(Account& account) {
  const std::uint64_t shared = beyond_guarantee(account.bytes);
  // Nothing in headroom, and the pool gives room again; or nothing in the pool.
  if (shared != 0 && (account.bytes > account.base || shared + xon_offset_ > threshold(alpha_q12_))) return false;
  account.paused = 0;
  --paused_accounts_;
  return true;
}

std::uint32_t Mmu::paused_ports() const {
  std::uint32_t ports = 0;
  for (std::size_t port = 0; port < headroom_.size(); ++port)
    ports += std::any_of(accounts_.begin() + static_cast<std::ptrdiff_t>(port * traffic_classes),
                         accounts_.begin() + static_cast<std::ptrdiff_t>((port + 1) * traffic_classes),
                         [](const Account& a) { return a.paused != 0; });
  return ports;
}

}  // namespace weft::ethernet
