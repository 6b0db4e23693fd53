// SPDX-License-Identifier: BSD-3-Clause
// Small captures, damaged at random but the same every time: whatever comes, reading and planning give frames that lie
// in the file at times that run forwards, or one line. Sanitizers see what this test can't.
#include <gtest/gtest.h>

#include <random>

#include "dataplane/replay.h"
#include "dataplane/testing/capture_bytes.h"

namespace weft {
namespace {

using testing::Bytes;
using testing::frame_bytes;
using testing::PcapFile;
using testing::PcapngFile;

std::vector<Bytes> seeds() {
  std::vector<Bytes> out;
  for (const bool big_endian : {false, true}) {
    for (const bool nanoseconds : {false, true})
      out.push_back(PcapFile{
          .nanoseconds = nanoseconds,
          .big_endian = big_endian,
          .records = {{1, 5, frame_bytes(1, 2)}, {1, 9, frame_bytes(2, 1, 61), -1, 300}, {2, 0, frame_bytes(3, 1, 20)}}}
                        .bytes());
    PcapngFile ng(big_endian);
    ng.interface("eth0", 1, 6, 3, 64).interface("eth1", 1, 0x80 | 30).interface("any", 113);
    ng.packet(0, 1000, frame_bytes(1, 2)).packet(1, 1 << 30, frame_bytes(2, 1, 61)).packet(2, 5, Bytes(30, 1));
    ng.obsolete_packet(0, 2000, frame_bytes(1, 3)).simple_packet(frame_bytes(1, 2, 33), 90).block(5, Bytes(12, 0));
    ng.section(!big_endian).interface("again", 1, 9).packet(0, 1, frame_bytes(4, 1));
    out.push_back(ng.bytes);
  }
  return out;
}

// Numbers that break arithmetic more often than random ones do.
std::uint32_t awkward(std::mt19937& random) {
  constexpr std::uint32_t values[] = {0,       1,          3,          4,          11,         12,
                                      27,      28,         0x7f,       0x80,       0xff,       0xffff,
                                      0x10000, 0x7fffffff, 0x80000000, 0xfffffff4, 0xfffffffc, 0xffffffff};
  return values[random() % std::size(values)];
}

void damage(Bytes& bytes, std::mt19937& random) {
  for (auto hits = 1 + random() % 4; hits > 0 && !bytes.empty(); --hits) {
    const std::size_t at = random() % bytes.size();
    switch (random() % 6) {
      case 0:
        bytes[at] ^= static_cast<std::uint8_t>(1u << random() % 8);
        break;
      case 1:
        bytes[at] = static_cast<std::uint8_t>(random());
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 4:
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), static_cast<std::uint8_t>(random()));
        break;
      default: {
        const std::uint32_t value = awkward(random);
        const bool big_endian = random() % 2 != 0;
        for (std::size_t i = 0, word = at / 4 * 4; i < 4 && word + i < bytes.size(); ++i)
          bytes[word + i] = static_cast<std::uint8_t>(value >> 8 * (big_endian ? 3 - i : i));
      }
    }
  }
}

TEST(CaptureFuzz, DamagedCapturesAreReadOrRefused) {
  constexpr int rounds = 12'000;
  const std::vector<Bytes> originals = seeds();
  Topology topology;
  topology.leaves = topology.hosts_per_leaf = 2;
  std::mt19937 random(20'240'607);
  int accepted = 0, refused = 0;
  Bytes out(longest_replayed_frame_bytes);
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(round);
    Bytes bytes = originals[static_cast<std::size_t>(round) % originals.size()];
    damage(bytes, random);
    ReplayConfig config;
    config.loop = 1 + round % 3;
    config.speed = round % 2 == 0 ? 1 : 0.3;
    config.strict = round % 7 == 0;
    const std::size_t size = bytes.size();
    try {
      const auto capture = Capture::from_bytes("f", std::move(bytes), config.strict);
      for (const CaptureFrame& frame : capture->frames()) {
        ASSERT_LE(frame.offset + frame.captured, size);
        ASSERT_LE(frame.captured, frame.length);
        ASSERT_GT(frame.length, 0u);
        ASSERT_LE(frame.length, longest_replayed_frame_bytes);
        ASSERT_LT(frame.interface, capture->interfaces().size());
      }
      const ReplayPlan plan = plan_replay(capture, config, topology, [](std::span<const std::uint8_t> b) {
        return static_cast<std::uint8_t>(b.empty() ? 0 : b.back() & 7);
      });
      std::uint64_t frames = 0;
      for (const auto& port : plan.sources) {
        for (const auto& source : port) {
          TimePs before = 0;
          for (; source->ready != never; source->skip(), ++frames) {
            ASSERT_GE(source->ready, before);
            ASSERT_LE(source->ready, plan.last);
            before = source->ready;
            source->copy_to(out.data());
          }
        }
      }
      ASSERT_EQ(frames, plan.frames);
      ++accepted;
    } catch (const std::exception& error) {
      ASSERT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos) << error.what();
      ++refused;
    }
  }
  // Both ways are well trodden; which share takes which depends on the damage.
  EXPECT_GT(accepted, rounds / 10);
  EXPECT_GT(refused, rounds / 10);
}

}  // namespace
}  // namespace weft
