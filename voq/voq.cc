// SPDX-License-Identifier: BSD-3-Clause
#include "voq/voq.h"

namespace weft::voq {

VoqTable::VoqTable(std::uint32_t leaves, std::uint32_t streams, std::uint32_t limit)
    : streams_(streams), limit_(limit), index_(leaves) {
  voqs_.reserve(limit);
}

Voq* VoqTable::get(std::uint16_t destination, std::uint16_t stream) {
  std::vector<std::uint32_t>& row = index_[destination];
  if (row.empty()) [[unlikely]]
    row.assign(streams_, none);
  std::uint32_t& number = row[stream];
  if (number == none) [[unlikely]] {
    if (voqs_.size() == limit_) return nullptr;
    number = static_cast<std::uint32_t>(voqs_.size());
    Voq& voq = voqs_.emplace_back();
    voq.destination = destination;
    voq.stream = stream;
  }
  return &voqs_[number];
}

std::uint32_t VoqTable::number_of(const Voq& voq) const { return static_cast<std::uint32_t>(&voq - voqs_.data()); }

}  // namespace weft::voq
