// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The fabric side of a leaf: cuts bursts of frames into cells, sprays them over the links that reach their destination,
// and gives control cells their way out. What is for the leaf itself takes the loopback, unless it is forced through
// the fabric.
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cells/config.h"
#include "cells/link.h"
#include "cells/reachability.h"
#include "cells/spray.h"
#include "dataplane/frame_ring.h"
#include "dataplane/topology.h"

namespace weft::cells {

/// What a leaf says to itself: handled by the leaf in the same instant, without wire time.
struct Loopback {
  std::vector<ControlCell> control;
  FrameQueue frames;
};

class Uplinks {
 public:
  struct Port {  // in order (spine, parallel link)
    CellLink* out;
    TransmitterConfig transmitter;
    TapId data_tap = no_tap, control_tap = no_tap;
  };
  Uplinks(const Topology& topology, std::uint32_t leaf, const CellConfig& config, bool force_fabric,
          const std::vector<Port>& ports, std::uint64_t seed, CaptureBuffer* capture);

  [[nodiscard]] bool reaches(std::uint32_t leaf) const { return is_local(leaf) || sprays_[leaf].reaches(); }
  [[nodiscard]] bool is_local(std::uint32_t leaf) const { return leaf == leaf_ && !force_fabric_; }
  /// Whether a VOQ may send another burst: false while more than `room_cells` a live link wait. Then the caller asks
  /// again after retry_after(). Real chips stop their VOQs in the same way when the queues towards the fabric are long.
  [[nodiscard]] bool has_room(TimePs now);
  [[nodiscard]] TimePs retry_after() const { return retry_after_; }

  /// Sends the frames of `burst`, at least one, as one burst of a VOQ, and counts `sequence` on. Links them by
  /// Frame::next.
  void send(std::uint16_t destination, std::uint16_t stream, std::uint32_t& sequence, std::span<const HeldFrame> burst,
            TimePs now);
  /// To the leaf cell.destination. False: no link reaches it, nothing was sent.
  bool send_control(const ControlCell& cell, TimePs now);

  void hold(const ControlCell& order, std::uint32_t spine, TimePs now);
  void set_rate(std::uint32_t port, Rate rate, TimePs now);
  /// A change of what is reachable, noticed at `now`. Returns true when a leaf has been gained or lost.
  bool apply(const ReachabilityEvent& event);

  /// Everything that starts before `until` goes out.
  void finish_window(TimePs until);
  [[nodiscard]] TimePs earliest() const;
  [[nodiscard]] bool sent_in_window() const { return sent_in_window_; }
  [[nodiscard]] std::uint64_t queued_bytes() const;
  [[nodiscard]] const std::vector<CellTransmitter>& transmitters() const { return out_; }

  Loopback loopback;

 private:
  static constexpr std::uint32_t room_cells = 128;
  void drain(std::uint32_t port, TimePs limit);
  void respray();

  const std::uint32_t leaf_, leaves_, parallel_;
  const bool force_fabric_;
  const std::uint32_t payload_;
  std::vector<CellTransmitter> out_;
  ReachabilityTable table_;
  std::vector<Spray> sprays_;  // [destination leaf]
  std::vector<Spray>
      control_sprays_;  // [destination leaf] a stream of their own, so that control cells do not shift the data's turn
  std::uint32_t queued_ = 0;  // cells that wait, over all links
  std::uint32_t live_ = 0;
  TimePs retry_after_;
  CaptureBuffer* capture_;
  std::vector<std::uint8_t> scratch_;
  bool sent_in_window_ = false;
};

}  // namespace weft::cells
