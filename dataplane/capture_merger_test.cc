// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/capture_merger.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include "dataplane/capture_reader.h"
#include "dataplane/testing/capture_bytes.h"

namespace weft {
namespace {

using testing::Bytes;
using ::testing::ElementsAre;
using testing::frame_bytes;

std::vector<TapPoint> some_taps(std::size_t count) {
  std::vector<TapPoint> taps;
  for (std::size_t i = 0; i < count; ++i) taps.push_back({.name = "tap " + std::to_string(i), .description = {}});
  return taps;
}

struct Seen {
  std::int64_t ns;
  std::uint32_t tap;
  std::uint8_t mark;  // last byte of the frame
  friend bool operator==(const Seen&, const Seen&) = default;
};

std::vector<Seen> read_back(const std::string& path) {
  const auto capture = Capture::read(path, true);
  std::vector<Seen> out;
  for (const CaptureFrame& f : capture->frames()) out.push_back({f.stamp_ns, f.interface, capture->bytes(f).back()});
  return out;
}

void record(CaptureBuffer& buffer, TapId tap, std::uint64_t ns, std::uint8_t mark) {
  const Bytes bytes = frame_bytes(1, 2, 60, mark);
  buffer.bytes(tap, ns * 1000, bytes.data(), 60);
}

TEST(CaptureMerger, OrderIsTimeThenTapThenRecording) {
  const testing::ScratchFolder folder;
  const auto taps = some_taps(3);
  PcapngWriter writer(folder.file("a"), taps);
  CaptureMerger merger(writer);
  CaptureBuffer a(0), b(0);
  record(b, 2, 5, 1);
  record(b, 2, 5, 2);
  record(b, 2, 3, 3);
  record(a, 1, 5, 4);
  record(a, 0, 9, 5);         // committed beyond the window
  merger.collect(b.half(0));  // whatever the order of the nodes
  merger.collect(a.half(0));
  merger.write_until(9'000);
  EXPECT_EQ(merger.kept(), 1u) << "a record at the horizon waits: others of its time may come";
  record(a, 0, 9, 6);
  record(a, 1, 9, 7);
  record(b, 2, 10, 8);
  merger.collect(a.half(0));
  merger.collect(b.half(0));
  EXPECT_TRUE(merger.finish());
  EXPECT_EQ(merger.late(), 0u);
  EXPECT_THAT(read_back(folder.file("a")), ElementsAre(Seen{3, 2, 3}, Seen{5, 1, 4}, Seen{5, 2, 1}, Seen{5, 2, 2},
                                                       Seen{9, 0, 5}, Seen{9, 0, 6}, Seen{9, 1, 7}, Seen{10, 2, 8}));
}

TEST(CaptureMerger, LateRecordsAreCountedAndNotLost) {
  const testing::ScratchFolder folder;
  const auto taps = some_taps(1);
  PcapngWriter writer(folder.file("a"), taps);
  CaptureMerger merger(writer);
  merger.write_until(10'000);
  CaptureBuffer a(0);
  record(a, 0, 9, 1);
  record(a, 0, 10, 2);
  merger.collect(a.half(0));
  EXPECT_EQ(merger.late(), 1u);
  EXPECT_TRUE(merger.finish());
  EXPECT_EQ(read_back(folder.file("a")).size(), 2u);
}

// The order in which workers happen to hand their nodes in must not show, and nothing gets lost or doubled over many
// windows.
TEST(CaptureMerger, BytesDoNotDependOnWhoComesFirst) {
  const testing::ScratchFolder folder;
  constexpr std::uint32_t nodes = 5, windows = 200;
  constexpr std::uint64_t window_ns = 100;
  const auto taps = some_taps(2 * nodes);
  std::uint64_t recorded = 0;
  const auto run = [&](const std::string& path, unsigned order_seed) {
    std::mt19937 model(7), order(order_seed);
    PcapngWriter writer(path, taps);
    CaptureMerger merger(writer);
    std::vector<CaptureBuffer> buffers(nodes, CaptureBuffer(0));
    std::vector<std::uint32_t> turn(nodes);
    for (std::uint32_t i = 0; i < nodes; ++i) turn[i] = i;
    recorded = 0;
    for (std::uint64_t w = 0; w < windows; ++w) {
      for (std::uint32_t n = 0; n < nodes; ++n) {
        buffers[n].use(w & 1);
        for (auto count = model() % 6; count > 0; --count) {
          const std::uint64_t at = w * window_ns + model() % (3 * window_ns);  // up to two windows ahead
          record(buffers[n], 2 * n + model() % 2, at, static_cast<std::uint8_t>(recorded++));
        }
      }
      std::shuffle(turn.begin(), turn.end(), order);
      for (const std::uint32_t n : turn) merger.collect(buffers[n].half(w & 1));
      merger.write_until((w + 1) * window_ns * 1000);
    }
    EXPECT_TRUE(merger.finish());
    EXPECT_EQ(merger.late(), 0u);
    EXPECT_EQ(writer.packets(), recorded);
  };
  run(folder.file("a"), 1);
  run(folder.file("b"), 2);
  EXPECT_EQ(testing::read_file(folder.file("a")), testing::read_file(folder.file("b")));
  const std::vector<Seen> seen = read_back(folder.file("a"));
  EXPECT_EQ(seen.size(), recorded);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end(), [](const Seen& x, const Seen& y) {
    return std::tie(x.ns, x.tap) < std::tie(y.ns, y.tap);
  }));
}

}  // namespace
}  // namespace weft
