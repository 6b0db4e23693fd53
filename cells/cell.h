// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What crosses the fabric: cells and control cells, as small descriptors by value. Bytes are made of them only where
// they leave the process (cell_format.h).
#include <cstdint>

#include "dataplane/frame.h"
#include "dataplane/time.h"

namespace weft::cells {

/// Bits of Cell::flags.
enum CellFlag : std::uint8_t {
  cell_marked = 1,  // congestion bit: some queue on the way was over its threshold
  cell_open = 2,    // its last bytes belong to a frame that goes on in the next cell
  cell_lost = 4,  // it died on a link. The descriptor goes on without wire time, so that the frames in it keep an owner
                  // and the egress leaf can write them off; nothing may use it as if it had arrived.
};

/// `stream` names a VOQ at its egress leaf: local port * 8 + class. (source leaf, stream) is one sequence of cells.
struct Cell {
  TimePs at;     // in a queue: ready to be sent; on a link: last bit in at the far end
  Frame* first;  // frame of the cell's first byte; those after it in the cell follow by Frame::next
  std::uint32_t sequence;
  std::uint16_t payload;  // bytes
  std::uint16_t offset;   // of the cell's first byte in `first`
  std::uint16_t stream;
  std::uint16_t source, destination;  // leaves
  std::uint8_t ending;                // frames whose last byte is in this cell: `first` and its followers
  std::uint8_t flags;
};
static_assert(sizeof(Cell) == 32);

enum class ControlKind : std::uint8_t {
  request,    // VOQ -> scheduler: what has been asked for, withdrawn and given back, since the start of time
  give_back,  // the same, sent because credit was given back
  grant,      // scheduler -> VOQ: what has been granted since the start of time, and the next cell awaited
  hold_back,  // spine -> leaf, about one link: stop or go on sending data cells
};

/// Counters are cumulative, so that the loss of a control cell delays and never leaks; the receiver takes the largest.
struct ControlCell {
  TimePs at;                 // as in Cell
  std::uint64_t total;       // request: bytes requested; grant: bytes granted; hold_back: 1 stop, 0 go
  std::uint64_t given_back;  // request: credit given back, bytes
  std::uint64_t
      withdrawn;  // request: bytes requested that will not be sent; grant: next cell awaited by the reassembly
  std::uint16_t source, destination;  // leaves; hold_back: spine, leaf
  std::uint16_t stream;               // at the egress leaf; hold_back: parallel link
  std::uint16_t longest;              // request: longest frame of this VOQ, wire bytes
  ControlKind kind;
  bool refresh;  // said before: counted apart
};

}  // namespace weft::cells
