// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Where a node leaves what its tap points saw. Two halves, used by turns of the window, so that the writer can
// empty one while the node fills the other. Order in the file is (time, tap, order of recording), which no
// worker count changes.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/frame.h"
#include "dataplane/time.h"

namespace weft {

using TapId = std::uint32_t;
inline constexpr TapId no_tap = ~TapId{0};

struct CaptureRecord {
  TimePs at;
  TapId tap;
  std::uint32_t captured, original;              // bytes
  std::uint64_t data_offset;                     // into CaptureHalf::data
  std::uint32_t comment_offset, comment_length;  // into CaptureHalf::comments
};

struct CaptureHalf {
  std::vector<CaptureRecord> records;
  std::vector<std::uint8_t> data;
  std::string comments;
  void clear() { records.clear(), data.clear(), comments.clear(); }
};

class CaptureBuffer {
 public:
  explicit CaptureBuffer(std::uint32_t snaplen) : snaplen_(snaplen == 0 ? ~std::uint32_t{0} : snaplen) {}

  /// All segments of `frame`, cut to the snaplen.
  void frame(TapId tap, TimePs at, const Frame* frame, std::string_view comment = {});
  /// Bytes that the caller materialised (a cell, a control cell).
  void bytes(TapId tap, TimePs at, const std::uint8_t* data, std::uint32_t length, std::string_view comment = {});

  /// Before window w the node's worker says use(w & 1). When all workers have finished w, the writer takes half(w & 1),
  /// and has until they finish w + 1 to empty it. (Parity and not "the other one": the node may be ahead.)
  void use(std::uint64_t half) { current_ = static_cast<std::uint32_t>(half); }
  CaptureHalf& half(std::uint64_t half) { return halves_[half]; }

 private:
  std::uint32_t snaplen_;
  std::uint32_t current_ = 0;
  CaptureHalf halves_[2];
};

}  // namespace weft
