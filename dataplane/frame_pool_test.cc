// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/frame_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "dataplane/testing/eal_environment.h"

namespace weft {
namespace {

class FramePoolTest : public ::testing::Test {
 protected:
  FramePoolTest() { testing::test_eal(); }
};

std::string contents(Frame* frame) {
  std::string bytes;
  for (const rte_mbuf* segment = mbuf_of(frame); segment != nullptr; segment = segment->next)
    bytes.append(rte_pktmbuf_mtod(segment, const char*), segment->data_len);
  return bytes;
}

std::string numbered(std::size_t length) {
  std::string bytes(length, '\0');
  for (std::size_t i = 0; i < length; ++i) bytes[i] = static_cast<char>(i * 7 + (i >> 8));
  return bytes;
}

Frame* filled(FramePool& pool, std::uint32_t length) {
  Frame* const frame = pool.take(length);
  const std::string bytes = numbered(length);
  std::memcpy(bytes_of(frame), bytes.data(), length);
  return frame;
}

TEST_F(FramePoolTest, AFreshFrameIsZeroAndHasItsLength) {
  FramePool pool("fresh", 16, 2000);
  Frame* const frame = pool.take(2000);
  ASSERT_NE(frame, nullptr);
  EXPECT_EQ(frame->length, 2000u);
  EXPECT_EQ(frame->flags, 0);
  EXPECT_EQ(mbuf_of(frame)->pkt_len, 2000u);
  EXPECT_EQ(mbuf_of(frame)->data_len, 2000u);
  EXPECT_EQ(contents(frame), std::string(2000, '\0'));
  free_frame(frame);
}

TEST_F(FramePoolTest, DataIsZeroInMemoryThatAnotherPoolHasUsed) {
  {
    FramePool pool("before", 64, 2000);
    std::vector<Frame*> frames;
    while (Frame* const frame = pool.take(2000)) {
      std::memset(bytes_of(frame), 0xee, 2000);
      frames.push_back(frame);
    }
    for (Frame* const frame : frames) free_frame(frame);
  }
  FramePool pool("after", 64, 1500);
  std::vector<Frame*> frames;
  while (Frame* const frame = pool.take(1500)) {
    EXPECT_EQ(contents(frame), std::string(1500, '\0'));
    frames.push_back(frame);
  }
  for (Frame* const frame : frames) free_frame(frame);
}

TEST_F(FramePoolTest, WhatTheLastUserLeftInTheFrameIsGone) {
  FramePool pool("reuse", 1, 100);
  Frame* frame = pool.take(100);
  std::memset(static_cast<void*>(frame), 0xee, sizeof *frame);
  rte_pktmbuf_adj(mbuf_of(frame), 14);  // as a router might that strips a header
  mbuf_of(frame)->ol_flags = RTE_MBUF_F_RX_VLAN;
  free_frame(frame);
  frame = pool.take(60);
  EXPECT_EQ(frame->length, 60u);
  EXPECT_EQ(frame->id, 0u);
  EXPECT_EQ(frame->next, nullptr);
  EXPECT_EQ(mbuf_of(frame)->ol_flags, 0u);
  EXPECT_EQ(mbuf_of(frame)->data_off, RTE_PKTMBUF_HEADROOM);
  free_frame(frame);
}

// With and without an lcore cache: the pool says when it is dry, gives nothing twice, and has all back at the end.
TEST_F(FramePoolTest, GivesEveryFrameOnceAndSaysWhenItIsDry) {
  for (const std::uint32_t frames : {1u, 255u, 256u, 5000u}) {
    FramePool pool("dry", frames, 128);
    const std::uint32_t before = pool.available();
    EXPECT_GE(before, frames);
    std::set<Frame*> taken;
    while (Frame* const frame = pool.take(64)) EXPECT_TRUE(taken.insert(frame).second);
    EXPECT_EQ(taken.size(), before);
    EXPECT_EQ(pool.available(), 0u);
    for (Frame* const frame : taken) free_frame(frame);
    EXPECT_EQ(pool.available(), before);
  }
}

// The promise that `frames` can be had by any one worker whatever lies in the caches of the others.
TEST_F(FramePoolTest, OtherWorkersCachesDoNotStarveOne) {
  constexpr std::uint32_t frames = 4096;
  FramePool pool("caches", frames, 64);
  Eal& eal = testing::test_eal();
  eal.run_workers([&](std::uint32_t worker) {
    if (worker == 0) return;
    std::vector<Frame*> taken;
    for (int i = 0; i < 1000; ++i)
      if (Frame* const frame = pool.take(64)) taken.push_back(frame);
    for (Frame* const frame : taken) free_frame(frame);
  });
  std::vector<Frame*> taken;
  for (std::uint32_t i = 0; i < frames; ++i)
    if (Frame* const frame = pool.take(64)) taken.push_back(frame);
  EXPECT_EQ(taken.size(), frames);
  for (Frame* const frame : taken) free_frame(frame);
}

TEST_F(FramePoolTest, FramesTakenByOneWorkerAreFreedByAnother) {
  FramePool pool("handed over", 4096, 64);
  const std::uint32_t before = pool.available();
  std::vector<std::atomic<Frame*>> slots(64);
  testing::test_eal().run_workers([&](std::uint32_t worker) {
    if (worker > 1) return;
    for (std::size_t i = 0; i < 50'000; ++i) {
      std::atomic<Frame*>& slot = slots[i % slots.size()];
      if (worker == 0) {
        Frame* const frame = pool.take(64);
        std::memcpy(bytes_of(frame), &i, sizeof i);
        while (slot.load(std::memory_order_acquire) != nullptr) sched_yield();
        slot.store(frame, std::memory_order_release);
      } else {
        Frame* frame = nullptr;
        while ((frame = slot.load(std::memory_order_acquire)) == nullptr) sched_yield();
        std::size_t carried = 0;
        std::memcpy(&carried, bytes_of(frame), sizeof carried);
        EXPECT_EQ(carried, i);
        free_frame(frame);
        slot.store(nullptr, std::memory_order_release);
      }
    }
  });
  EXPECT_EQ(pool.available(), before);
}

TEST_F(FramePoolTest, ACopyHasItsOwnHeadersAndSharesTheRest) {
  for (const std::uint32_t length : {14u, 127u, 128u, 129u, 1500u, 9216u}) {
    FramePool pool("originals", 4, 9216), copies("copies", 4, header_bytes);
    Frame* const original = filled(pool, length);
    original->in_port = 7;
    original->id = 42;
    Frame* const copy = clone_frame(original, copies);
    ASSERT_NE(copy, nullptr);
    EXPECT_EQ(pool.available(), 3u) << "a copy needs no full-size buffer";
    EXPECT_EQ(copy->in_port, 7u);
    EXPECT_EQ(copy->id, 42u);
    EXPECT_EQ(copy->length, length);
    EXPECT_EQ(copy->flags, frame_copy);
    EXPECT_EQ(mbuf_of(copy)->pkt_len, length);
    EXPECT_EQ(contents(copy), numbered(length));
    // A header rewritten in one is not rewritten in the other, neither way.
    bytes_of(copy)[0] = 0xaa;
    bytes_of(original)[13] = 0xbb;
    EXPECT_EQ(bytes_of(original)[0], static_cast<std::uint8_t>(numbered(length)[0]));
    EXPECT_EQ(bytes_of(copy)[13], static_cast<std::uint8_t>(numbered(length)[13]));
    if (length > 128) {
      EXPECT_EQ(rte_pktmbuf_mtod(mbuf_of(copy)->next, std::uint8_t*), bytes_of(original) + 128);
    }
    free_frame(original);
    free_frame(copy);
    EXPECT_EQ(pool.available(), 4u);
    EXPECT_EQ(copies.available(), 4u);
  }
}

TEST_F(FramePoolTest, TheLastOfManyCopiesReturnsTheOriginalsMemory) {
  FramePool pool("originals", 64, 1500), small("copies", 64, header_bytes);
  for (int order = 0; order < 2; ++order) {
    Frame* const original = filled(pool, 1500);
    std::vector<Frame*> copies;
    for (int i = 0; i < 20; ++i) copies.push_back(clone_frame(original, small));
    copies.push_back(clone_frame(copies.front(), small));  // a copy of a copy
    ASSERT_EQ(std::count(copies.begin(), copies.end(), nullptr), 0);
    if (order == 0) std::reverse(copies.begin(), copies.end());
    free_frame(original);
    EXPECT_EQ(pool.available(), 63u);
    for (Frame* const copy : copies) {
      EXPECT_EQ(contents(copy), numbered(1500));
      free_frame(copy);
    }
    EXPECT_EQ(pool.available(), 64u);
    EXPECT_EQ(small.available(), 64u);
  }
  // What was shared is whole again.
  Frame* const next = filled(pool, 1500);
  EXPECT_EQ(contents(next), numbered(1500));
  EXPECT_EQ(mbuf_of(next)->nb_segs, 1);
  free_frame(next);
}

TEST_F(FramePoolTest, ACopyThatFindsThePoolDryLeavesNothingBehind) {
  FramePool pool("originals", 2, 1500), small("copies", 3, header_bytes);
  Frame* const original = filled(pool, 1500);
  Frame* const first = clone_frame(original, small);  // two of the three
  EXPECT_EQ(clone_frame(original, small), nullptr);   // its header would be the third, then none is left
  Frame* const tiny = filled(pool, 60);
  Frame* const copy = clone_frame(tiny, small);  // so the third is there again
  EXPECT_NE(copy, nullptr);
  for (Frame* const frame : {original, first, tiny, copy}) free_frame(frame);
  EXPECT_EQ(pool.available(), 2u);
  EXPECT_EQ(small.available(), 3u);
}

TEST_F(FramePoolTest, WhatIsNotStoredTakesNoMemory) {
  FramePool pool("headers", 4, 9216, header_bytes), small("copies", 4, header_bytes);
  Frame* const frame = pool.take(9216);
  EXPECT_EQ(frame->length, 9216u);
  EXPECT_EQ(mbuf_of(frame)->pkt_len, 9216u);
  EXPECT_EQ(mbuf_of(frame)->data_len, header_bytes);
  Frame* const copy = clone_frame(frame, small);
  EXPECT_EQ(copy->length, 9216u);
  EXPECT_EQ(mbuf_of(copy)->nb_segs, 1);
  Frame* const shorter = pool.take(100);
  EXPECT_EQ(mbuf_of(shorter)->data_len, 100u);
  for (Frame* const each : {frame, copy, shorter}) free_frame(each);
  EXPECT_EQ(pool.available(), 4u);
  EXPECT_LT(FramePool::memory_bytes(100'000, header_bytes, 1), FramePool::memory_bytes(100'000, 9216, 1) / 8);
}

TEST_F(FramePoolTest, MoreMemoryThanThereIsIsOneClearLine) {
  try {
    FramePool pool("too large", 4'000'000, 9216);  // 38 GB of the test's 1 GiB
    FAIL() << "no exception";
  } catch (const std::runtime_error& e) {
    EXPECT_NE(std::string(e.what()).find("frame pool 'too large'"), std::string::npos) << e.what();
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos) << e.what();
  }
  FramePool pool("too large", 16, 9216);  // and the name is free again
  EXPECT_THROW(FramePool("longer than an mbuf", 1, 70'000), std::runtime_error);
}

}  // namespace
}  // namespace weft
