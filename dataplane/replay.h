// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The plan of a replay: which frame of a capture goes out of which host port, and when.
//
// Ports. Each source address of the capture is a host. In order of appearance hosts are dealt round the leaves
// (leaf0:p0, leaf1:p0, ..., leaf0:p1, ...), so that the first two talk across the spines; more hosts than ports share
// ports in the same order. ReplayConfig::ports may say otherwise, first match first: an entry matches a frame by source
// address, by capture interface (name, description or number from 0), or by both. Frames that no entry matches follow
// the rule above over the ports that no entry names (all ports, where the entries name all). A frame without a usable
// source address (a group address, all zeros, captured too short) makes no host: it goes out of the first of the ports
// dealt.
//
// Times. Frame f of loop n goes out at start + (n x span + t(f)) / speed, where t counts from the first frame and span
// is t of the last: loop n + 1 begins with the stamp that loop n ends with, and the error is below 2 ps however many
// loops there are. (A capture of one frame, or of one stamp, has span 0: its loops go out at line rate.) The host
// link's rate is not in the plan: a port sends as soon after that time as its link is free. Silences are measured in
// the capture, before speed.
//
// Repairs, each counted (ReplayResult) and noted, and refused by `strict`: a silence over max_gap is shortened to it;
// time never runs backwards (StampUnroller, replay_clock.h); a frame captured short is sent at its original length,
// zero-filled; and those of the reader (capture_reader.h).
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "dataplane/capture_reader.h"
#include "dataplane/config.h"
#include "dataplane/forward.h"
#include "dataplane/replay_clock.h"
#include "dataplane/results.h"
#include "dataplane/source.h"
#include "dataplane/topology.h"

namespace weft {

/// Traffic class of a frame, from what was captured of it (possibly less than an Ethernet header).
using ClassOf = std::function<std::uint8_t(std::span<const std::uint8_t>)>;

/// The frames of one (port, class), in capture order, loop after loop.
class ReplaySource final : public FrameSource {
 public:
  /// What all sources of a replay share.
  struct Schedule {
    std::shared_ptr<const Capture> capture;
    std::vector<TimePs> at;  // [frame] after the start of its loop, at speed
    TimePs span = 0;         // of the capture, before speed
    Speed speed;
    std::uint32_t loops = 1;
    TimePs start = 0;
  };

  ReplaySource(std::shared_ptr<const Schedule> schedule, std::uint8_t traffic_class, std::vector<std::uint32_t> frames);

  Frame* take(FramePool& pool) override;

  /// The next frame; only while ready != never.
  [[nodiscard]] const CaptureFrame& peek() const;
  /// Its next_length bytes.
  void copy_to(std::uint8_t* bytes) const;
  /// On to the frame after it.
  void skip();

 private:
  void show();

  std::shared_ptr<const Schedule> schedule_;
  std::vector<std::uint32_t> frames_;  // indices into Capture::frames()
  std::size_t position_ = 0;
  std::uint32_t loop_ = 0;
  TimePs loop_start_ = 0;
};

struct ReplayPlan {
  std::vector<std::vector<std::unique_ptr<ReplaySource>>> sources;  // [host port], by class; mostly empty
  std::vector<KnownHost> hosts;                                     // in order of appearance, each address once
  std::uint32_t longest = 0;                                        // bytes of the longest frame
  TimePs first = 0, last = 0;                                       // ready times of the first and the last frame
  std::uint64_t epoch_ns =
      0;  // emulated time 0 in nanoseconds since 1970, for stamps of the capture out (0: before 1970)
  std::uint64_t frames = 0, bytes = 0;  // of all loops
  ReplayResult result;  // but for `frames`, which the run counts. skipped, gaps_shortened and time_reversed are
                        // counted once for the capture, padded for each loop.
};

/// Reads config.file and plans. Throws CaptureError, and std::invalid_argument for a config that can't be (speed,
/// ports, longer than emulated time).
ReplayPlan plan_replay(const ReplayConfig& config, const Topology& topology, const ClassOf& class_of);
ReplayPlan plan_replay(const std::shared_ptr<const Capture>& capture, const ReplayConfig& config,
                       const Topology& topology, const ClassOf& class_of);

}  // namespace weft
