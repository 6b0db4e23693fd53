// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/frame_pool.h"

#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_malloc.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "dataplane/check.h"

namespace weft {
namespace {

/// DPDK lets a cache grow to one and a half times its size before it gives back; what lies in the caches of other
/// lcores cannot be taken by this one, so a pool is larger by that much. A tiny pool does without caches.
struct Shape {
  static constexpr std::uint32_t most_cached = RTE_MEMPOOL_CACHE_MAX_SIZE, least_frames = 256;
  std::uint32_t count, cache;
  Shape(std::uint32_t frames, std::uint32_t workers)
      : count(frames), cache(frames < least_frames ? 0 : std::min(most_cached, frames / 8)) {
    count += workers * (cache + cache / 2);
  }
};

/// What DPDK's heap has left. Huge pages it can still ask the kernel for. Asked first because a pool that does not fit
/// would otherwise fail only after all that is left has been written to.
std::uint64_t free_heap_bytes() {
  if (rte_eal_has_hugepages() != 0) return ~std::uint64_t{0};
  std::uint64_t bytes = 0;
  for (unsigned i = 0; i < rte_socket_count(); ++i) {
    rte_malloc_socket_stats stats;
    if (rte_malloc_get_socket_stats(rte_socket_id_by_idx(i), &stats) == 0) bytes += stats.heap_freesz_bytes;
  }
  return bytes;
}

/// The last frame given back is the next one taken, and still in the CPU's caches: the pool's backing store is a stack.
/// DPDK's usual ring would walk through all of the pool's memory in turn.
rte_mempool* make_pool(const std::string& name, const Shape& shape, std::uint32_t room) {
  const auto data_room = static_cast<std::uint16_t>(RTE_PKTMBUF_HEADROOM + room);
  const std::uint64_t least = std::uint64_t{shape.count} * (sizeof(rte_mbuf) + frame_private_bytes + data_room);
  rte_mempool* pool = nullptr;
  if (least <= free_heap_bytes())
    pool = rte_pktmbuf_pool_create_by_ops(name.c_str(), shape.count, shape.cache, frame_private_bytes, data_room,
                                          SOCKET_ID_ANY, "stack");
  if (pool == nullptr)
    throw std::runtime_error(fmt::format("no memory for frame pool '{}': {} frames of up to {} bytes take {} MiB", name,
                                         shape.count, room, least >> 20));
  rte_mempool_obj_iter(
      pool,
      [](rte_mempool*, void*, void* object, unsigned) {
        auto* const mbuf = static_cast<rte_mbuf*>(object);
        std::memset(mbuf->buf_addr, 0, mbuf->buf_len);
      },
      nullptr);
  return pool;
}

std::uint64_t pool_bytes(const Shape& shape, std::uint32_t room) {
  const std::uint64_t object =
      sizeof(rte_mempool_objhdr) + sizeof(rte_mbuf) + frame_private_bytes + RTE_PKTMBUF_HEADROOM + room;
  // Object and header are rounded up to cache lines and spread over memory channels by up to two lines more. Ordinary
  // pages: as many as fit share a page, larger ones have pages of their own. (Huge pages waste less.)
  constexpr std::uint64_t line = RTE_CACHE_LINE_SIZE, page = 4096;
  const std::uint64_t lines = (object + line - 1) / line * line + 2 * line;
  const std::uint64_t each = lines <= page ? page / (page / lines) : (lines + page - 1) / page * page;
  return shape.count * each * 129 / 128 + (4u << 20);
}

}  // namespace

FramePool::FramePool(const std::string& name, std::uint32_t frames, std::uint32_t longest, std::uint32_t stored)
    : pool_(nullptr), longest_(longest), stored_(std::min(stored, longest)) {
  if (longest > UINT16_MAX - RTE_PKTMBUF_HEADROOM)
    throw std::runtime_error(fmt::format("frame pool '{}': frames of {} bytes; {} is the most", name, longest,
                                         UINT16_MAX - RTE_PKTMBUF_HEADROOM));
  pool_ = make_pool(name, Shape(frames, rte_lcore_count()), stored_);
}

FramePool::~FramePool() { rte_mempool_free(pool_); }

std::uint64_t FramePool::memory_bytes(std::uint32_t frames, std::uint32_t stored, std::uint32_t workers) {
  return pool_bytes(Shape(frames, workers), stored);
}

Frame* clone_frame(Frame* original, FramePool& pool) {
  rte_mbuf* const source = mbuf_of(original);
  const std::uint32_t own = std::min<std::uint32_t>(source->data_len, header_bytes);
  Frame* const copy = pool.take(own);
  if (copy == nullptr) return nullptr;
  rte_mbuf* const head = mbuf_of(copy);
  std::memcpy(rte_pktmbuf_mtod(head, void*), rte_pktmbuf_mtod(source, const void*), own);

  rte_mbuf* last = head;
  std::uint32_t skip = own;
  for (rte_mbuf* segment = source; segment != nullptr; segment = segment->next, skip = 0) {
    if (segment->data_len == skip) continue;
    Frame* const shared = pool.take(0);
    if (shared == nullptr) {
      free_frame(copy);
      return nullptr;
    }
    rte_mbuf* const part = mbuf_of(shared);
    rte_pktmbuf_attach(part, segment);
    part->data_off = static_cast<std::uint16_t>(part->data_off + skip);
    part->data_len = static_cast<std::uint16_t>(part->data_len - skip);
    last->next = part;
    last = part;
    ++head->nb_segs;
  }
  head->pkt_len = source->pkt_len;
  *copy = *original;
  copy->next = nullptr;
  copy->flags |= frame_copy;
  return copy;
}

}  // namespace weft
