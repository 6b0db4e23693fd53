// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A host at the end of its link, as the leaf sees it: a sender that obeys PFC. It joins its streams under the link's
// rate, first come first served; a stream whose class is paused waits alone.
//
// One event a frame: the host decides what it sends next when the frame before has been admitted at the leaf. A pause
// that takes effect before that next frame has started makes it decide again.
#include <cstdint>
#include <memory>
#include <vector>

#include "dataplane/frame.h"
#include "dataplane/frame_pool.h"
#include "dataplane/pfc.h"
#include "dataplane/source.h"
#include "dataplane/topology.h"

namespace weft {

class HostPort {
 public:
  /// `port` is the fabric-wide number. `latency`: from a frame's last bit at the leaf to its admission to the buffer;
  /// with `cut_through_bytes` from when so much of it, preamble included, has come in.
  HostPort(std::uint32_t port, const LinkParams& link, const ClassesConfig& classes, TimePs latency,
           std::uint32_t cut_through_bytes = 0);
  HostPort(HostPort&&) = default;

  void add_source(std::unique_ptr<FrameSource> source, FramePool* pool);
  /// A source has got frames by itself, which are ready at `now` or later; what it showed before is still there.
  void source_filled(TimePs now) {
    if (start_ > now) choose();
  }

  /// When the next frame is admitted at the leaf; never: the host has nothing to send, or all of it is paused without
  /// end.
  [[nodiscard]] TimePs next_admission() const { return admission_; }
  /// That frame, with id, born, in_port set; nullptr: the frame pool was dry. Moves on to the next.
  Frame* take();
  /// When the last bit of the frame just taken is at the leaf.
  [[nodiscard]] TimePs last_bit() const { return free_at_ + link_.delay; }

  /// The leaf's pause frame has left it at `sent` (last bit); it takes effect after the link and the host's reaction.
  void pause_sent(const PfcFrame& frame, TimePs sent);
  [[nodiscard]] TimePs next_pause() const { return pending_.next(); }
  void apply_pause();

  [[nodiscard]] std::uint32_t port() const { return port_; }
  [[nodiscard]] const LinkParams& link() const { return link_; }
  [[nodiscard]] const PauseState& pauses() const { return pauses_; }
  [[nodiscard]] TimePs reaction() const { return reaction_; }
  [[nodiscard]] std::uint64_t wire_bytes_sent() const { return wire_bytes_sent_; }

 private:
  struct Source {
    std::unique_ptr<FrameSource> source;
    FramePool* pool;
  };
  void choose();

  std::uint32_t port_;
  LinkParams link_;
  TimePs latency_, reaction_;
  std::uint32_t cut_through_bytes_;
  std::vector<Source> sources_;
  WireClock clock_;
  PauseState pauses_;
  PendingPauses pending_;
  TimePs free_at_ = 0;  // the host's serialiser
  std::uint32_t chosen_ = 0;
  TimePs start_ = never, admission_ = never;
  std::uint64_t ordinal_ = 0, wire_bytes_sent_ = 0;
};

}  // namespace weft
