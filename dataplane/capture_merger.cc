// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/capture_merger.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

namespace weft {

void CaptureMerger::collect(CaptureHalf& half) {
  if (half.records.empty()) return;
  std::uint32_t place;
  if (free_batches_.empty()) {
    place = static_cast<std::uint32_t>(batches_.size());
    batches_.emplace_back();
  } else {
    place = free_batches_.back();
    free_batches_.pop_back();
  }
  Batch& batch = batches_[place];
  std::swap(batch.half, half);  // the node gets the memory of a batch that is through
  batch.waiting = batch.half.records.size();
  for (std::size_t i = 0; i < batch.half.records.size(); ++i) {
    const CaptureRecord& record = batch.half.records[i];
    late_ += record.at < horizon_;
    waiting_.push_back({record.at, record.tap, place, static_cast<std::uint32_t>(i), collected_++});
  }
}

void CaptureMerger::write_until(TimePs horizon) {
  horizon_ = std::max(horizon_, horizon);
  const auto rest = std::partition(waiting_.begin(), waiting_.end(), [&](const Waiting& w) { return w.at < horizon; });
  std::sort(waiting_.begin(), rest, [](const Waiting& a, const Waiting& b) {
    return std::tie(a.at, a.tap, a.order) < std::tie(b.at, b.tap, b.order);
  });
  for (auto w = waiting_.begin(); w != rest; ++w) write(*w);
  waiting_.erase(waiting_.begin(), rest);
}

void CaptureMerger::write(const Waiting& waiting) {
  Batch& batch = batches_[waiting.batch];
  const CaptureHalf& half = batch.half;
  const CaptureRecord& record = half.records[waiting.record];
  writer_.packet(record.tap, record.at, {half.data.data() + record.data_offset, record.captured}, record.original,
                 std::string_view(half.comments).substr(record.comment_offset, record.comment_length));
  if (--batch.waiting == 0) {
    batch.half.clear();
    free_batches_.push_back(waiting.batch);
  }
}

bool CaptureMerger::finish() {
  write_until(never);
  // `never` itself is no time at which anything happens, but what was recorded is not to be lost either.
  for (const Waiting& w : waiting_) write(w);
  waiting_.clear();
  return writer_.finish();
}

}  // namespace weft
