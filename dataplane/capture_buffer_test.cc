// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/capture_buffer.h"

#include <gtest/gtest.h>

#include <numeric>

#include "dataplane/frame_pool.h"
#include "dataplane/testing/eal_environment.h"

namespace weft {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes data_of(const CaptureHalf& half, std::size_t record) {
  const CaptureRecord& r = half.records.at(record);
  return {half.data.begin() + static_cast<std::ptrdiff_t>(r.data_offset),
          half.data.begin() + static_cast<std::ptrdiff_t>(r.data_offset + r.captured)};
}

std::string comment_of(const CaptureHalf& half, std::size_t record) {
  const CaptureRecord& r = half.records.at(record);
  return half.comments.substr(r.comment_offset, r.comment_length);
}

Bytes counting(std::size_t length) {
  Bytes bytes(length);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
  return bytes;
}

TEST(CaptureBuffer, HalvesTakeTurns) {
  CaptureBuffer buffer(0);
  const Bytes a = counting(60), b = counting(61);
  buffer.bytes(1, 10, a.data(), 60, "first");  // half 0 is in use from the start
  EXPECT_TRUE(buffer.half(1).records.empty());
  buffer.use(1);
  buffer.bytes(2, 20, b.data(), 61);
  ASSERT_EQ(buffer.half(0).records.size(), 1u);
  EXPECT_EQ(data_of(buffer.half(0), 0), a);
  EXPECT_EQ(comment_of(buffer.half(0), 0), "first");
  buffer.half(0).clear();
  buffer.use(0);
  ASSERT_EQ(buffer.half(1).records.size(), 1u);
  EXPECT_EQ(data_of(buffer.half(1), 0), b);
  EXPECT_EQ(comment_of(buffer.half(1), 0), "");
  EXPECT_EQ(buffer.half(1).records[0].tap, 2u);
  EXPECT_EQ(buffer.half(1).records[0].at, 20u);
}

TEST(CaptureBuffer, SnaplenCutsTheBytesAndNotTheLength) {
  CaptureBuffer buffer(64);
  const Bytes longer = counting(4170), shorter = counting(63);
  buffer.bytes(0, 0, longer.data(), 4170);
  buffer.bytes(0, 0, shorter.data(), 63);
  EXPECT_EQ(data_of(buffer.half(0), 0), counting(64));
  EXPECT_EQ(buffer.half(0).records[0].original, 4170u);
  EXPECT_EQ(data_of(buffer.half(0), 1), counting(63));
  EXPECT_EQ(buffer.half(0).records[1].original, 63u);
}

// A flooded copy has its headers in one segment and its payload in another: both belong into the capture.
TEST(CaptureBuffer, FramesOfSeveralSegments) {
  testing::test_eal();
  FramePool pool("capture", 4, 9216), copies("copies", 4, header_bytes);
  Frame* original = pool.take(4170);
  ASSERT_NE(original, nullptr);
  const Bytes bytes = counting(4170);
  std::copy(bytes.begin(), bytes.end(), bytes_of(original));
  Frame* copy = clone_frame(original, copies);
  ASSERT_NE(copy, nullptr);
  for (const std::uint32_t snaplen : {0u, 64u, 128u, 129u, 4169u, 4170u, 4171u}) {
    for (const Frame* frame : {original, copy}) {
      CaptureBuffer buffer(snaplen);
      buffer.frame(3, 7, frame, "drop");
      EXPECT_EQ(data_of(buffer.half(0), 0), counting(snaplen == 0 ? 4170 : std::min(snaplen, 4170u))) << snaplen;
      EXPECT_EQ(buffer.half(0).records[0].original, 4170u);
      EXPECT_EQ(comment_of(buffer.half(0), 0), "drop");
    }
  }
  free_frame(copy);
  free_frame(original);
}

// A modelled frame's payload has no memory, and is zeros in a capture.
TEST(CaptureBuffer, PayloadWithoutMemory) {
  testing::test_eal();
  FramePool pool("modelled", 4, 9216, header_bytes);
  Frame* frame = pool.take(1500);
  ASSERT_NE(frame, nullptr);
  const Bytes headers = counting(header_bytes);
  std::copy(headers.begin(), headers.end(), bytes_of(frame));
  for (const std::uint32_t snaplen : {0u, 64u, 128u, 129u, 1500u}) {
    CaptureBuffer buffer(snaplen);
    buffer.frame(3, 7, frame, "");
    Bytes expected = headers;
    expected.resize(snaplen == 0 ? 1500 : snaplen);
    EXPECT_EQ(data_of(buffer.half(0), 0), expected) << snaplen;
    EXPECT_EQ(buffer.half(0).records[0].original, 1500u);
  }
  free_frame(frame);
}

}  // namespace
}  // namespace weft
