// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Brings what the nodes captured into one file, in the order (time, tap, order of recording within the tap). A tap
// belongs to one node, so that order, and with it every byte of the file, is the same for every number of workers.
#include <cstdint>
#include <vector>

#include "dataplane/capture_buffer.h"
#include "dataplane/pcapng_writer.h"

namespace weft {

class CaptureMerger {
 public:
  explicit CaptureMerger(PcapngWriter& writer) : writer_(writer) {}

  /// At a window's end, of each node: takes the records over. `half` is left empty, with memory to fill again.
  void collect(CaptureHalf& half);
  /// Nothing earlier than `horizon` will be recorded any more: all that is earlier is written, the rest kept (a node
  /// may record what it has committed to for later). The same horizons must be given for every number of workers.
  void write_until(TimePs horizon);
  /// Everything, then the end of the file. False where the writer lost anything.
  bool finish();

  [[nodiscard]] std::size_t kept() const { return waiting_.size(); }
  /// Records that came after a horizon had passed their time: in the file, but behind their place. Must stay 0.
  [[nodiscard]] std::uint64_t late() const { return late_; }

 private:
  struct Batch {
    CaptureHalf half;
    std::size_t waiting = 0;  // records not written yet
  };
  struct Waiting {
    TimePs at;
    TapId tap;
    std::uint32_t batch, record;
    std::uint64_t order;  // of collecting
  };

  void write(const Waiting& waiting);

  PcapngWriter& writer_;
  std::vector<Batch> batches_;
  std::vector<std::uint32_t> free_batches_;
  std::vector<Waiting> waiting_;
  std::uint64_t collected_ = 0, late_ = 0;
  TimePs horizon_ = 0;
};

}  // namespace weft
