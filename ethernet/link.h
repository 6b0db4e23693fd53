// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// One direction of a fabric link between two switches. Frames and pause frames have a ring each: they take effect after
// different times (pipeline, PFC reaction), and a ring is in order only within its kind.
#include <cstdint>
#include <string>

#include "dataplane/frame.h"
#include "dataplane/link_ring.h"
#include "dataplane/pfc.h"

namespace weft::ethernet {

/// What switches go by, beside the pointer: a spine touches no frame, unless it marks or drops it, and a frame that
/// waits long does not have to be fetched to be sent.
struct FrameRef {
  Frame* frame;
  std::uint32_t out_port;  // host port that it is to leave by
  std::uint32_t key;       // flow_key(), where the load balancing needs one
  std::uint16_t length;    // without FCS
  std::uint8_t traffic_class;
};

struct FrameOnWire {
  TimePs at;     // the switch may begin to work on it: last bit in, or with cut-through its header
  TimePs tail;   // last bit in
  Frame* frame;  // this and what follows: as in FrameRef
  std::uint32_t out_port;
  std::uint32_t key;
  std::uint16_t length;
  std::uint16_t port;  // of the receiving switch
  std::uint8_t traffic_class;
  std::uint8_t fate;  // LinkFate::Outcome

  [[nodiscard]] FrameRef ref() const { return {frame, out_port, key, length, traffic_class}; }
};
static_assert(sizeof(FrameOnWire) == 40);

/// Where a pause began: the egress port whose queue grew, and how many pauses lie between. Real frames don't carry it;
/// results do.
struct PauseRoot {
  std::uint32_t port = 0;  // fabric-wide: switch << 16 | port
  std::uint32_t hops = 0;  // 1: the switch that paused has the queue itself
};

struct PauseOnWire {
  TimePs at;  // last bit in
  PfcFrame pfc;
  std::uint32_t port;
  PauseRoot root;
};

struct EthernetLink {
  std::string name;  // "leaf0>spine1"
  LinkRing<FrameOnWire> frames;
  LinkRing<PauseOnWire> pauses;
};

}  // namespace weft::ethernet
