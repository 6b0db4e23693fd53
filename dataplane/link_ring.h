// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// One direction of a link: descriptors by value, single producer, single consumer, no locks.
//
// The producer's end is in two parts: what its serialiser has committed to (it has an arrival time, and the far end may
// see it once published) and behind it what still waits in the link's queue. Committing moves a mark, not the
// descriptor. Storage is chunks that go round between the two ends, so the memory touched is what is really in flight,
// whatever the bound: on a busy link that is two or three chunks, and they stay in the cache.
//
// publish() and the consumer's retire() are once-a-window calls; nothing inside a window is shared.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "dataplane/check.h"

namespace weft {

template <typename T>
class LinkRing {
 public:
  static constexpr std::uint32_t chunk_items = 1024 / sizeof(T);

  LinkRing() {
    Chunk* first = new_chunk();
    write_chunk_ = commit_chunk_ = read_chunk_ = oldest_chunk_ = first;
  }
  LinkRing(const LinkRing&) = delete;
  LinkRing& operator=(const LinkRing&) = delete;

  // Producer.

  /// A place at the end of the queue. Filled in by the caller, and stable until the consumer has retired it.
  T& append() {
    if (write_index_ == chunk_items) [[unlikely]]
      next_write_chunk();
    ++queued_;
    T* const item = write_chunk_->items + write_index_++;
    __builtin_prefetch(item + 4, 1);  // the far end has had it since: it is not in this worker's cache
    return *item;
  }
  /// The item at the head of the queue; only while queued() > 0.
  T& front() {
    if (commit_index_ == chunk_items) [[unlikely]] {
      commit_chunk_ = commit_chunk_->next;
      commit_index_ = 0;
    }
    return commit_chunk_->items[commit_index_];
  }
  /// The head is on the wire now: it belongs to the consumer from the next publish() on.
  void commit() {
    ++commit_index_;
    --queued_;
    ++committed_;
  }
  /// Commits from the head of the queue for as long as accept(item) says so, or until the queue is empty.
  template <typename Accept>
  void commit_while(Accept&& accept) {
    const std::uint32_t before = queued_;
    std::uint32_t left = queued_;
    while (left != 0) {
      if (commit_index_ == chunk_items) [[unlikely]] {
        commit_chunk_ = commit_chunk_->next;
        commit_index_ = 0;
      }
      T* item = commit_chunk_->items + commit_index_;
      T* const end = item + (left < chunk_items - commit_index_ ? left : chunk_items - commit_index_);
      T* const start = item;
      while (item != end && accept(*item)) ++item;
      const auto done = static_cast<std::uint32_t>(item - start);
      commit_index_ += done;
      left -= done;
      if (item != end) break;
    }
    queued_ = left;
    committed_ += before - left;
  }
  [[nodiscard]] std::uint32_t queued() const { return queued_; }
  [[nodiscard]] std::uint64_t committed() const { return committed_; }
  void publish() { published_.store(committed_, std::memory_order_release); }

  // Consumer.

  /// Makes what has been published visible to peek().
  void refresh() { visible_ = published_.load(std::memory_order_acquire); }
  [[nodiscard]] bool empty() const { return read_ == visible_; }
  /// Brings what will be visible next into the cache.
  void prefetch() const {
    const T* const next = read_chunk_->items + read_index_;
    for (std::uint32_t line = 0; line < 4; ++line)
      __builtin_prefetch(reinterpret_cast<const char*>(next) + std::size_t{line} * 64);
  }
  /// Items that can be taken.
  [[nodiscard]] std::uint64_t visible() const { return visible_ - read_; }
  /// The oldest item not yet taken; only while !empty().
  T& peek() {
    if (read_index_ == chunk_items) [[unlikely]] {
      read_chunk_ = read_chunk_->next;
      read_index_ = 0;
    }
    return read_chunk_->items[read_index_];
  }
  /// Steps past peek(). The item stays valid until retire().
  void take() {
    ++read_index_;
    ++read_;
  }
  /// Steps past items for as long as accept(item) says so, or until there are no more. They stay valid until retire().
  template <typename Accept>
  void take_while(Accept&& accept) {
    std::uint64_t left = visible_ - read_;
    while (left != 0) {
      if (read_index_ == chunk_items) [[unlikely]] {
        read_chunk_ = read_chunk_->next;
        read_index_ = 0;
      }
      T* item = read_chunk_->items + read_index_;
      T* const start = item;
      T* const end = item + (left < chunk_items - read_index_ ? left : chunk_items - read_index_);
      while (item != end && accept(*item)) ++item;
      read_index_ += static_cast<std::uint32_t>(item - start);
      left -= static_cast<std::uint64_t>(item - start);
      if (item != end) break;
    }
    read_ = visible_ - left;
  }
  /// Everything taken so far may be overwritten.
  void retire() {
    while (oldest_chunk_ != read_chunk_) {
      Chunk* done = oldest_chunk_;
      oldest_chunk_ = done->next;
      give_back(done);
    }
  }

  /// Everything from the oldest item not taken to the last in the queue. Only while both ends stand still.
  template <typename Visit>
  void visit(Visit&& visit_item) {
    Chunk* chunk = read_chunk_;
    std::uint32_t index = read_index_;
    for (std::uint64_t left = committed_ + queued_ - read_; left > 0; --left) {
      if (index == chunk_items) {
        chunk = chunk->next;
        index = 0;
      }
      visit_item(chunk->items[index++]);
    }
  }
  /// What waits in the queue.
  template <typename Visit>
  void visit_queued(Visit&& visit_item) {
    Chunk* chunk = commit_chunk_;
    std::uint32_t index = commit_index_;
    for (std::uint32_t left = queued_; left > 0; --left) {
      if (index == chunk_items) {
        chunk = chunk->next;
        index = 0;
      }
      visit_item(chunk->items[index++]);
    }
  }

 private:
  struct Chunk {
    T items[chunk_items];
    Chunk* next = nullptr;
  };

  Chunk* new_chunk() {
    chunks_.push_back(std::make_unique<Chunk>());
    return chunks_.back().get();
  }
  void next_write_chunk() {
    if (spare_ == nullptr) spare_ = emptied_.exchange(nullptr, std::memory_order_acquire);
    Chunk* chunk = spare_;
    if (chunk != nullptr)
      spare_ = chunk->next;
    else
      chunk = new_chunk();
    chunk->next = nullptr;
    write_chunk_->next = chunk;
    write_chunk_ = chunk;
    write_index_ = 0;
  }
  // A stack of which the producer only ever takes the whole: no chunk can come back under a compare.
  void give_back(Chunk* chunk) {
    chunk->next = emptied_.load(std::memory_order_relaxed);
    while (!emptied_.compare_exchange_weak(chunk->next, chunk, std::memory_order_release, std::memory_order_relaxed)) {
    }
  }

  // Producer's line.
  alignas(64) Chunk* write_chunk_;
  Chunk* commit_chunk_;
  Chunk* spare_ = nullptr;  // emptied, and taken back
  std::uint32_t write_index_ = 0, commit_index_ = 0, queued_ = 0;
  std::uint64_t committed_ = 0;
  std::vector<std::unique_ptr<Chunk>> chunks_;  // owns all; grows only while more is in flight than ever before
  // Consumer's line.
  alignas(64) Chunk* read_chunk_;
  Chunk* oldest_chunk_;
  std::uint32_t read_index_ = 0;
  std::uint64_t read_ = 0, visible_ = 0;
  // Shared, written once a window or once a chunk.
  alignas(64) std::atomic<std::uint64_t> published_{0};
  alignas(64) std::atomic<Chunk*> emptied_{nullptr};  // chunks on their way back
};

}  // namespace weft
