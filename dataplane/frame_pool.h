// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Memory for frames: an rte_mempool of mbufs with a Frame in front of the data, all of one size, taken at start.
// Every worker takes and gives through its own lcore cache. A pool that runs dry is the emulator's failure.
//
// Taking and giving are on the hot path of every fabric, so they are here and touch as little as can be: the mbuf's
// first cache line, the Frame, and the lcore's cache. They rely on what DPDK keeps true of an mbuf in a pool: one
// reference, one segment, no next.
#include <rte_mempool.h>

#include <cstdint>
#include <string>

#include "dataplane/frame.h"

#if defined(__SANITIZE_THREAD__)
extern "C" void __tsan_acquire(void*);
extern "C" void __tsan_release(void*);
#endif

namespace weft {

class FramePool {
 public:
  /// `frames` buffers for frames of up to `longest` bytes; all of them can be had by any one worker, whatever the
  /// others' caches hold. Data starts zeroed. Only the first `stored` bytes of a frame have memory: what lies beyond
  /// them is zeros (see bytes_of). Throws std::runtime_error where memory is short. Needs the EAL (eal.h).
  FramePool(const std::string& name, std::uint32_t frames, std::uint32_t longest, std::uint32_t stored);
  FramePool(const std::string& name, std::uint32_t frames, std::uint32_t longest)
      : FramePool(name, frames, longest, longest) {}
  ~FramePool();
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;

  /// Memory that such a pool takes with `workers` lcores, to size EalOptions::memory_bytes; a little more than true.
  static std::uint64_t memory_bytes(std::uint32_t frames, std::uint32_t stored, std::uint32_t workers);

  /// A frame of `length` bytes (at most longest()), contents as the last user left them, every field of its Frame zero
  /// but the length; nullptr when the pool is dry.
  Frame* take(std::uint32_t length);

  [[nodiscard]] std::uint32_t longest() const { return longest_; }
  /// Frames that could be taken now. Walks the caches: not for the hot path.
  [[nodiscard]] std::uint32_t available() const { return rte_mempool_avail_count(pool_); }
  [[nodiscard]] rte_mempool* raw() const { return pool_; }

 private:
  rte_mempool* pool_;
  std::uint32_t longest_, stored_;
};

/// Returns a frame, all its segments, to where they came from.
void free_frame(Frame* frame);

/// Ethernet, two tags, IPv6, UDP, BTH and more: all that is ever rewritten.
inline constexpr std::uint32_t header_bytes = 128;

/// A flood's copy: headers (up to header_bytes) of its own, the rest shared with the original, which is only read from
/// then on past its headers. Its Frame is the original's, with frame_copy set. Takes one buffer of `pool`, whose frames
/// are at least header_bytes long, and one more for each segment shared. nullptr when the pool is dry.
Frame* clone_frame(Frame* original, FramePool& pool);

inline Frame* FramePool::take(std::uint32_t length) {
  rte_mempool* const pool = pool_;
  void* object = nullptr;
  rte_mempool_cache* const cache = rte_mempool_default_cache(pool, rte_lcore_id());
  if (cache != nullptr && cache->len != 0) [[likely]] {
    object = cache->objs[--cache->len];
    if (cache->len > 1) {  // the next but one to be taken: its mbuf, its Frame and its headers
      const auto* const soon = static_cast<const char*>(cache->objs[cache->len - 2]);
      __builtin_prefetch(soon, 1);
      __builtin_prefetch(soon + sizeof(rte_mbuf), 1);
      __builtin_prefetch(soon + sizeof(rte_mbuf) + frame_private_bytes + RTE_PKTMBUF_HEADROOM, 1);
    }
  } else if (rte_mempool_get(pool, &object) != 0)
    return nullptr;
  auto* const mbuf = static_cast<rte_mbuf*>(object);
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(mbuf);
#endif
  mbuf->data_off = RTE_PKTMBUF_HEADROOM;
  mbuf->ol_flags = 0;
  mbuf->pkt_len = length;
  mbuf->data_len = static_cast<std::uint16_t>(length < stored_ ? length : stored_);
  Frame* const frame = frame_of(mbuf);
  *frame = Frame{};
  frame->length = length;
  return frame;
}

/// Back into the pool: an mbuf with one reference, one segment and no next.
inline void give_back(rte_mbuf* mbuf) {
  rte_mempool* const pool = mbuf->pool;
#if defined(__SANITIZE_THREAD__)
  __tsan_release(mbuf);
#endif
  rte_mempool_cache* const cache = rte_mempool_default_cache(pool, rte_lcore_id());
  if (cache != nullptr && cache->len < cache->flushthresh) [[likely]]
    cache->objs[cache->len++] = mbuf;
  else
    rte_mempool_put(pool, mbuf);
}

inline void free_frame(Frame* frame) {
  rte_mbuf* segment = mbuf_of(frame);
  // One segment, all its own: no look at the mbuf's second cache line.
  if (segment->nb_segs == 1 && rte_mbuf_refcnt_read(segment) == 1 && RTE_MBUF_DIRECT(segment)) [[likely]] {
    give_back(segment);
    return;
  }
  while (segment != nullptr) {
    rte_mbuf* const next = segment->next;
    rte_mbuf* const unshared = rte_pktmbuf_prefree_seg(segment);
    if (unshared != nullptr) give_back(unshared);
    segment = next;
  }
}

}  // namespace weft
