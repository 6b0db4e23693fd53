// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A virtual output queue: the frames of one leaf that are for one (egress leaf, egress port, class), and what has been
// said about them to the scheduler there. All counters are cumulative wire bytes (frame + 24), so they survive lost
// control cells.
#include <cstdint>
#include <deque>
#include <vector>

#include "dataplane/frame_ring.h"
#include "dataplane/time.h"

namespace weft::voq {

struct Voq {
  Ring<HeldFrame> frames;
  std::uint64_t bytes = 0;       // depth, frame bytes
  std::uint64_t enqueued = 0;    // ever admitted
  std::uint64_t requested = 0;   // asked for; a request always asks for all there is
  std::uint64_t withdrawn = 0;   // asked for and then dropped here
  std::uint64_t granted = 0;     // the largest total that a grant has said
  std::uint64_t given_back = 0;  // credit that was not used
  std::uint64_t sent = 0;

  std::uint64_t deep_bytes = 0;  // of `bytes`, in the external buffer
  std::uint32_t deep_frames = 0;
  std::uint32_t deep_reads = 0;     // bursts on their way from external memory; later ones wait behind them
  std::uint32_t reading_cells = 0;  // that these will make
  bool deep = false;                // new frames go to the external buffer

  std::uint16_t destination = 0;   // leaf
  std::uint16_t stream = 0;        // local port * 8 + class there
  std::uint16_t longest = 0;       // wire bytes of the longest frame so far
  bool stalled = false;            // waits in the list of those that the uplinks had no room for
  bool news = false;               // something withdrawn or given back that could not be said
  std::uint32_t sequence = 0;      // of the next cell
  std::uint32_t acknowledged = 0;  // next cell that the egress leaf awaits, as last heard

  TimePs said = 0;          // last request
  TimePs moved = 0;         // last grant or departure
  TimePs asked_at = never;  // of the request whose grant is being timed
  std::uint64_t asked_from = 0;

  [[nodiscard]] std::uint8_t traffic_class() const { return static_cast<std::uint8_t>(stream % traffic_classes); }
  /// Credit: negative after an overdraft, which the next grant pays back.
  [[nodiscard]] std::int64_t balance() const { return static_cast<std::int64_t>(granted - given_back - sent); }
  [[nodiscard]] bool outstanding() const { return requested - withdrawn > granted - given_back; }
};

/// The VOQs of one leaf: taken from a pool on first use, found by (egress leaf, stream).
class VoqTable {
 public:
  /// `limit`: how many there may be. `streams`: (local ports * 8) of a leaf.
  VoqTable(std::uint32_t leaves, std::uint32_t streams, std::uint32_t limit);
  /// nullptr: the pool is exhausted.
  Voq* get(std::uint16_t destination, std::uint16_t stream);
  /// nullptr: not in use.
  [[nodiscard]] const Voq* find(std::uint16_t destination, std::uint16_t stream) const {
    const std::vector<std::uint32_t>& row = index_[destination];
    return row.empty() || row[stream] == none ? nullptr : &voqs_[row[stream]];
  }
  [[nodiscard]] std::uint32_t number_of(const Voq& voq) const;
  [[nodiscard]] Voq& at(std::uint32_t number) { return voqs_[number]; }
  [[nodiscard]] std::vector<Voq>& all() { return voqs_; }
  [[nodiscard]] const std::vector<Voq>& all() const { return voqs_; }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  std::uint32_t streams_, limit_;
  std::vector<std::vector<std::uint32_t>> index_;  // [egress leaf][stream], a row made on first use
  std::vector<Voq> voqs_;                          // reserved once: pointers stay good
};

}  // namespace weft::voq
