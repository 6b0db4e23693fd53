// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A frame inside the fabric: one rte_mbuf whose private area holds what the switch knows about it.
// The payload is never copied between ports. The hot path touches this one cache line and the headers.
#include <rte_mbuf.h>

#include <cstdint>

#include "dataplane/time.h"

namespace weft {

inline constexpr std::uint32_t max_frame_bytes = 9216;  // without FCS
inline constexpr std::uint32_t traffic_classes = 8;

struct Frame {
  Frame* next;             // of the frames that share a cell, or in a FrameQueue
  TimePs born;             // its first bit left the source host
  TimePs queued;           // free to the block that holds the frame: when it came to its queue
  std::uint64_t id;        // unique in a run and the same for every worker count: (source port << 40) | ordinal
  std::uint32_t length;    // bytes, as a capture counts them: no FCS
  std::uint32_t in_port;   // host port (fabric-wide number) that it entered by
  std::uint32_t out_port;  // host port that it is to leave by
  std::uint8_t traffic_class;
  std::uint8_t l3_offset;   // of the IPv4 or IPv6 header from the frame's start; 0: not IP
  std::uint8_t ip_version;  // 4, 6, or 0
  std::uint8_t flags;       // FrameFlag
  std::uint32_t source;  // the bridge that it entered by: changes when the source address at in_port does; 0: not said
  std::uint32_t unused[3];  // to the end of the cache line
};
static_assert(sizeof(Frame) == 64);

enum FrameFlag : std::uint8_t {
  frame_copy = 1,    // a flood's copy: counts as replicated, not as offered
  frame_marked = 2,  // CE set inside this fabric
};

inline constexpr std::uint16_t frame_private_bytes = sizeof(Frame);

inline rte_mbuf* mbuf_of(Frame* frame) { return reinterpret_cast<rte_mbuf*>(frame) - 1; }
inline const rte_mbuf* mbuf_of(const Frame* frame) { return reinterpret_cast<const rte_mbuf*>(frame) - 1; }
inline Frame* frame_of(rte_mbuf* mbuf) { return reinterpret_cast<Frame*>(mbuf + 1); }
/// First segment's bytes: at least the headers are there. A flooded copy keeps its payload in a second segment. What
/// no segment holds, up to the frame's length, is zeros: the payload of modelled hosts takes no memory.
inline std::uint8_t* bytes_of(Frame* frame) { return rte_pktmbuf_mtod(mbuf_of(frame), std::uint8_t*); }
inline const std::uint8_t* bytes_of(const Frame* frame) {
  return rte_pktmbuf_mtod(mbuf_of(frame), const std::uint8_t*);
}

/// Bytes on an Ethernet link. Also the currency of credit: a grant of n bytes is n bytes of the egress wire.
inline std::uint32_t wire_bytes(const Frame* frame) { return frame->length + ethernet_overhead_bytes; }

/// A singly linked queue of frames; owns nothing but the order.
struct FrameQueue {
  Frame* head = nullptr;
  Frame* tail = nullptr;
  [[nodiscard]] bool empty() const { return head == nullptr; }
  void push(Frame* frame) {
    frame->next = nullptr;
    (head == nullptr ? head : tail->next) = frame;
    tail = frame;
  }
  Frame* pop() {
    Frame* frame = head;
    head = frame->next;
    return frame;
  }
};

}  // namespace weft
