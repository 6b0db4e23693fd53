// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A node: a switch ASIC with its hosts, or a switch alone. It does one thing, advance(): handle
// everything that happens to it before the emulated time `until`. Nodes meet only through links, and what one
// sends in a window reaches another in a later one, so nodes can be advanced in any order and by any worker.
#include <cstdint>

#include "dataplane/time.h"

namespace weft {

class CaptureBuffer;

class Node {
 public:
  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  virtual ~Node() = default;

  /// Handles everything in [from, until). `from` is where the last window ended, or later where idle time was jumped
  /// over: nothing happens to any node in between. One worker at a time.
  virtual void advance(TimePs from, TimePs until) = 0;

  /// After advance(): the earliest thing still to be done, of its own timers and of what its in-links hold; `never`
  /// where idle. A node that put anything on an out-link during the window says so by sent_in_window() and need not
  /// look further.
  [[nodiscard]] virtual TimePs earliest() const = 0;
  [[nodiscard]] virtual bool sent_in_window() const = 0;

  /// Emulated time is exactly `now`, and everything before has been handled: faults that are due, the end of the
  /// warm-up, a row of the time series. The kernel cuts windows so that these fall on a window's edge.
  virtual void at_stop(TimePs now, std::uint32_t stop_kinds) = 0;

  /// Live ports, if it has any. By the wall clock it is emulated time `now`: takes what has come in from their devices,
  /// none of it ready before `now`. Only between windows, and `now` is not before what has been handled.
  virtual void poll(TimePs /*now*/) {}
  /// Gives devices what has been delivered to live ports since the last time.
  virtual void flush() {}

  /// Where tap points write; nullptr: this node records nothing.
  [[nodiscard]] virtual CaptureBuffer* capture() { return nullptr; }
};

/// Bits of at_stop's `stop_kinds`.
enum StopKind : std::uint32_t { stop_warmup = 1, stop_sample = 2, stop_fault = 4, stop_end = 8 };

}  // namespace weft
