// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/capture_buffer.h"

#include <algorithm>

namespace weft {

void CaptureBuffer::frame(TapId tap, TimePs at, const Frame* frame, std::string_view comment) {
  CaptureHalf& half = halves_[current_];
  const std::uint64_t offset = half.data.size();
  std::uint32_t left = std::min(frame->length, snaplen_);
  for (const rte_mbuf* segment = mbuf_of(frame); segment != nullptr && left != 0; segment = segment->next) {
    const std::uint32_t part = std::min<std::uint32_t>(left, segment->data_len);
    const auto* bytes = rte_pktmbuf_mtod(segment, const std::uint8_t*);
    half.data.insert(half.data.end(), bytes, bytes + part);
    left -= part;
  }
  half.data.resize(half.data.size() + left);  // a modelled frame's payload: zeros
  half.records.push_back({.at = at,
                          .tap = tap,
                          .captured = static_cast<std::uint32_t>(half.data.size() - offset),
                          .original = frame->length,
                          .data_offset = offset,
                          .comment_offset = static_cast<std::uint32_t>(half.comments.size()),
                          .comment_length = static_cast<std::uint32_t>(comment.size())});
  half.comments += comment;
}

void CaptureBuffer::bytes(TapId tap, TimePs at, const std::uint8_t* data, std::uint32_t length,
                          std::string_view comment) {
  CaptureHalf& half = halves_[current_];
  const std::uint64_t offset = half.data.size();
  const std::uint32_t captured = std::min(length, snaplen_);
  half.data.insert(half.data.end(), data, data + captured);
  half.records.push_back({.at = at,
                          .tap = tap,
                          .captured = captured,
                          .original = length,
                          .data_offset = offset,
                          .comment_offset = static_cast<std::uint32_t>(half.comments.size()),
                          .comment_length = static_cast<std::uint32_t>(comment.size())});
  half.comments += comment;
}

}  // namespace weft
