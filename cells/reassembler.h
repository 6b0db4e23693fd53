// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Puts the cells of each (source leaf, VOQ) back in order and lets the frames in them fall out whole.
//
// A cell that is next goes straight through. One that is early waits in the stream's reorder ring, which is as large as
// the stream has needed so far, up to the window; the sender never has more outstanding. A cell that was lost on a link
// comes as a descriptor marked cell_lost: hardware sees nothing of it. It counts as missing until `timeout` after it
// was due; then the frames with bytes in it are dropped whole and the stream goes on.
#include <cstdint>
#include <deque>
#include <vector>

#include "cells/cell.h"
#include "dataplane/check.h"

namespace weft::cells {

class Reassembler {
 public:
  /// `streams`: how many (source leaf, stream) pairs there can be; each costs 4 bytes until it is used.
  Reassembler(std::uint32_t streams, std::uint32_t window, TimePs timeout)
      : index_(streams, none), window_(window), timeout_(timeout) {}

  /// A cell of stream number `stream` arrives. released(Frame*, bool whole) is called for each frame that falls out, in
  /// order; not whole: a cell of it was lost.
  template <typename Released>
  void arrive(std::uint32_t stream, const Cell& cell, TimePs now, Released&& released) {
    Stream& s = state_of(stream);
    const std::uint32_t ahead = cell.sequence - s.next;
    if (ahead == 0 && (cell.flags & cell_lost) == 0) [[likely]] {
      ++s.next;
      release(s, {cell.first, cell.sequence, cell.ending, cell.flags, true}, released);
      if (s.waiting != 0) follow(s, released);
      return;
    }
    WEFT_CHECK(ahead < window_, "a cell beyond the reorder window");
    if (ahead >= s.ring.size()) [[unlikely]]
      grow(s, ahead);
    s.ring[cell.sequence & (s.ring.size() - 1)] = {cell.first, cell.sequence, cell.ending, cell.flags, true};
    ++s.waiting;
    if (ahead > max_depth) max_depth = ahead;
    if ((cell.flags & cell_lost) != 0) [[unlikely]]
      overdue_.push_back({now + timeout_, stream, cell.sequence});
  }

  /// The next cell that is to be given up; never: none.
  [[nodiscard]] TimePs next_timeout() const { return overdue_.empty() ? never : overdue_.front().at; }
  template <typename Released>
  void give_up(Released&& released) {
    const Overdue due = overdue_.front();
    overdue_.pop_front();
    Stream& s = state_of(due.stream);
    Slot& slot = s.ring[due.sequence & (s.ring.size() - 1)];
    slot.flags &= static_cast<std::uint8_t>(~cell_lost);
    slot.flags |= given_up;
    if (due.sequence == s.next) ++timeouts;
    follow(s, released);
  }

  /// Next cell awaited of a stream: what the sender may take as received.
  [[nodiscard]] std::uint32_t awaited(std::uint32_t stream) const {
    return index_[stream] == none ? 0 : streams_[index_[stream]].next;
  }
  /// Cells that wait for an earlier one, lost ones included. Frames in them are in flight.
  template <typename Visit>
  void visit_waiting(Visit&& visit) const {
    for (const Stream& s : streams_)
      for (const Slot& slot : s.ring)
        if (slot.used) visit(slot.first, slot.ending);
  }

  std::uint32_t max_depth = 0;
  std::uint64_t timeouts = 0;

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  static constexpr std::uint8_t given_up = 0x80;

  struct Slot {
    Frame* first = nullptr;
    std::uint32_t sequence = 0;
    std::uint8_t ending = 0, flags = 0;
    bool used = false;
  };
  struct Stream {
    std::uint32_t next = 0, waiting = 0;
    bool torn = false;  // the frame that goes on in the next cell has already lost one
    std::vector<Slot> ring;
  };
  struct Overdue {
    TimePs at;
    std::uint32_t stream, sequence;
  };

  Stream& state_of(std::uint32_t stream) {
    std::uint32_t& index = index_[stream];
    if (index == none) [[unlikely]] {
      index = static_cast<std::uint32_t>(streams_.size());
      streams_.emplace_back().ring.resize(64);
    }
    return streams_[index];
  }
  template <typename Released>
  void release(Stream& s, const Slot& slot, Released&& released) {
    const bool lost = (slot.flags & given_up) != 0;
    Frame* frame = slot.first;
    for (std::uint32_t left = slot.ending; left != 0; --left) {
      // Frames are linked as far as they share a cell.
      Frame* const following = left > 1 ? frame->next : nullptr;
      released(frame, !lost && !s.torn);
      s.torn = false;
      frame = following;
    }
    if (lost && (slot.flags & cell_open) != 0) s.torn = true;
  }
  template <typename Released>
  void follow(Stream& s, Released&& released) {
    while (s.waiting != 0) {
      Slot& slot = s.ring[s.next & (s.ring.size() - 1)];
      if (!slot.used || slot.sequence != s.next || (slot.flags & cell_lost) != 0) return;
      slot.used = false;
      --s.waiting;
      ++s.next;
      release(s, slot, released);
    }
  }
  static void grow(Stream& s, std::uint32_t ahead) {
    std::size_t size = s.ring.size();
    while (size <= ahead) size *= 2;
    std::vector<Slot> ring(size);
    for (const Slot& slot : s.ring)
      if (slot.used) ring[slot.sequence & (size - 1)] = slot;
    s.ring = std::move(ring);
  }

  std::vector<std::uint32_t> index_;
  std::vector<Stream> streams_;
  std::uint32_t window_;
  TimePs timeout_;
  std::deque<Overdue> overdue_;  // in time order: the timeout is one constant
};

}  // namespace weft::cells
