// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What a host would like to send: one stream of frames of one traffic class. A host port joins several of
// them under its link's rate; a paused class holds only its own streams back.
#include <cstdint>

#include "dataplane/frame.h"
#include "dataplane/time.h"

namespace weft {

class FramePool;

class FrameSource {
 public:
  FrameSource() = default;
  FrameSource(const FrameSource&) = delete;
  FrameSource& operator=(const FrameSource&) = delete;
  virtual ~FrameSource() = default;

  /// Builds the next frame into memory of `pool`: bytes and length; the port fills in the rest.
  /// Moves `ready` and `next_length` on to the frame after it. nullptr: the pool is dry, and the frame is gone.
  virtual Frame* take(FramePool& pool) = 0;

  TimePs ready = never;           // the next frame may start at this time, not before; never: no more frames
  std::uint32_t next_length = 0;  // of the next frame, without FCS
  std::uint8_t traffic_class = 0;
  bool urgent = false;  // goes before all that waits for the wire: MAC control
};

}  // namespace weft
