// SPDX-License-Identifier: BSD-3-Clause
#include "cells/reassembler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "dataplane/rng.h"

namespace weft::cells {
namespace {

constexpr TimePs timeout = 100_us;

/// Frames of random lengths, cut into cells burst by burst as an ingress leaf does.
class Traffic {
 public:
  Traffic(std::size_t frames, std::uint64_t seed, std::uint32_t payload = 256) : frames_(frames) {
    Rng random = stream(seed, 0, 0);
    for (std::size_t i = 0; i < frames; ++i) {
      frames_[i].id = i;
      frames_[i].length =
          static_cast<std::uint32_t>(random.below(3) == 0 ? 60 + random.below(9'157) : 60 + random.below(200));
    }
    for (std::size_t i = 0; i < frames;) {
      const std::size_t end = std::min(frames, i + 1 + random.below(12));
      for (std::size_t j = i; j < end; ++j) frames_[j].next = j + 1 == end ? nullptr : &frames_[j + 1];
      cut(i, end, payload);
      i = end;
    }
  }
  std::vector<Cell> cells;
  /// Frames that have a byte in cell i.
  std::vector<std::vector<std::uint64_t>> touched;
  [[nodiscard]] std::size_t frame_count() const { return frames_.size(); }

 private:
  void cut(std::size_t from, std::size_t to, std::uint32_t payload) {
    std::uint64_t bytes = 0;  // of the burst
    for (std::size_t i = from; i < to; ++i) bytes += frames_[i].length;
    std::size_t frame = from;
    std::uint64_t frame_begin = 0;
    for (std::uint64_t begin = 0; begin < bytes; begin += payload) {
      const std::uint64_t end = std::min(bytes, begin + payload);
      Cell cell{};
      cell.sequence = static_cast<std::uint32_t>(cells.size());
      cell.first = &frames_[frame];
      cell.offset = static_cast<std::uint16_t>(begin - frame_begin);
      cell.payload = static_cast<std::uint16_t>(end - begin);
      auto& here = touched.emplace_back();
      while (frame < to && frame_begin + frames_[frame].length <= end) {
        here.push_back(frame);
        frame_begin += frames_[frame].length;
        ++cell.ending;
        ++frame;
      }
      if (frame < to && frame_begin < end) {
        cell.flags = cell_open;
        here.push_back(frame);
      }
      cells.push_back(cell);
    }
  }
  std::vector<Frame> frames_;
};

struct Out {
  std::vector<std::uint64_t> ids;
  std::set<std::uint64_t> torn;
  auto released() {
    return [this](Frame* frame, bool whole) {
      if (!whole) torn.insert(frame->id);
      ids.push_back(frame->id);
      frame->next = nullptr;  // the next block links it anew
    };
  }
  void expect_all_in_order(std::size_t count) const {
    ASSERT_EQ(ids.size(), count);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(ids[i], i);
  }
};

/// A random order in which no cell comes `reach` or more places early.
std::vector<std::size_t> shuffled(std::size_t count, std::size_t reach, Rng& random) {
  std::vector<std::pair<std::uint64_t, std::size_t>> keys(count);
  for (std::size_t i = 0; i < count; ++i) keys[i] = {i + random.below(reach), i};
  std::sort(keys.begin(), keys.end());
  std::vector<std::size_t> order;
  for (const auto& [key, i] : keys) order.push_back(i);
  return order;
}

TEST(Reassembler, CellsInOrderGoStraightThrough) {
  Traffic traffic(200, 1);
  Reassembler reassembler(1, 1024, timeout);
  Out out;
  for (const Cell& cell : traffic.cells) {
    reassembler.arrive(0, cell, 0, out.released());
    EXPECT_EQ(reassembler.awaited(0), cell.sequence + 1);
  }
  out.expect_all_in_order(200);
  EXPECT_TRUE(out.torn.empty());
  EXPECT_EQ(reassembler.max_depth, 0u);
  EXPECT_EQ(reassembler.next_timeout(), never);
}

TEST(Reassembler, AnyOrderInsideTheWindowGivesFramesWholeAndInOrder) {
  for (const std::uint32_t window : {16u, 64u, 65u, 1024u}) {
    Rng random = stream(window, 0, 1);
    for (int round = 0; round < 15; ++round) {
      Traffic traffic(300, random.next());
      Reassembler reassembler(1, window, timeout);
      Out out;
      for (const std::size_t i : shuffled(traffic.cells.size(), window, random))
        reassembler.arrive(0, traffic.cells[i], 0, out.released());
      out.expect_all_in_order(300);
      EXPECT_TRUE(out.torn.empty());
      EXPECT_GT(reassembler.max_depth, 0u);
      EXPECT_LT(reassembler.max_depth, window);
      EXPECT_EQ(reassembler.awaited(0), traffic.cells.size());
    }
  }
}

TEST(Reassembler, TheLastPlaceOfTheWindowCanBeUsed) {
  Traffic traffic(2'000, 3);
  constexpr std::uint32_t window = 512;
  ASSERT_GT(traffic.cells.size(), window);
  Reassembler reassembler(1, window, timeout);
  Out out;
  for (std::uint32_t i = window - 1; i > 0; --i) reassembler.arrive(0, traffic.cells[i], 0, out.released());
  EXPECT_TRUE(out.ids.empty());
  std::uint64_t waiting = 0;
  reassembler.visit_waiting([&](const Frame*, std::uint32_t ending) { waiting += ending; });
  reassembler.arrive(0, traffic.cells[0], 0, out.released());
  EXPECT_EQ(out.ids.size(), waiting + traffic.cells[0].ending);
  EXPECT_EQ(reassembler.max_depth, window - 1);
}

TEST(ReassemblerDeathTest, ACellBeyondTheWindowBreaksAPromise) {
  Traffic traffic(200, 4);
  EXPECT_DEATH(
      {
        Reassembler reassembler(1, 64, timeout);
        Out out;
        reassembler.arrive(0, traffic.cells[64], 0, out.released());
      },
      "beyond the reorder window");
}

TEST(Reassembler, StreamsDoNotSeeEachOther) {
  constexpr std::uint32_t streams = 20;
  std::vector<Traffic> traffic;
  traffic.reserve(streams);  // cells point into their Traffic's frames
  for (std::uint32_t s = 0; s < streams; ++s) traffic.emplace_back(100, 100 + s);
  Reassembler reassembler(1'000, 256, timeout);
  std::vector<Out> out(streams);
  Rng random = stream(5, 0, 0);
  std::vector<std::vector<std::size_t>> order;
  for (auto& t : traffic) order.push_back(shuffled(t.cells.size(), 100, random));
  std::vector<std::size_t> next(streams);
  for (bool more = true; more;) {
    more = false;
    for (std::uint32_t s = 0; s < streams; ++s) {
      if (next[s] == order[s].size()) continue;
      more = true;
      reassembler.arrive(s * 50, traffic[s].cells[order[s][next[s]++]], 0, out[s].released());
    }
  }
  for (const Out& o : out) o.expect_all_in_order(100);
  EXPECT_EQ(reassembler.awaited(1), 0u) << "never used";
}

TEST(Reassembler, LostCellsTearTheFramesThatTheyTouchAndNothingElse) {
  for (const std::uint32_t payload : {64u, 256u, 1'024u}) {
    Rng random = stream(payload, 0, 2);
    for (int round = 0; round < 25; ++round) {
      Traffic traffic(400, random.next(), payload);
      Reassembler reassembler(1, 1024, timeout);
      Out out;
      std::set<std::uint64_t> expected;
      TimePs now = 0;
      const std::uint64_t one_in = 2 + random.below(60);
      const auto run_timeouts = [&](TimePs until) {
        while (reassembler.next_timeout() <= until) reassembler.give_up(out.released());
      };
      for (const std::size_t i : shuffled(traffic.cells.size(), 100, random)) {
        now += 300_ns;
        run_timeouts(now);
        Cell cell = traffic.cells[i];
        if (random.below(one_in) == 0) {
          cell.flags |= cell_lost;
          expected.insert(traffic.touched[i].begin(), traffic.touched[i].end());
        }
        reassembler.arrive(0, cell, now, out.released());
      }
      run_timeouts(now + timeout);
      EXPECT_EQ(reassembler.next_timeout(), never);
      out.expect_all_in_order(400);
      EXPECT_EQ(out.torn, expected);
      EXPECT_EQ(reassembler.awaited(0), traffic.cells.size());
    }
  }
}

TEST(Reassembler, TheStreamWaitsForTheTimeoutAndThenGoesOn) {
  Traffic traffic(50, 6);
  Reassembler reassembler(1, 1024, timeout);
  Out out;
  Cell lost = traffic.cells[3];
  lost.flags |= cell_lost;
  for (std::size_t i = 0; i < 3; ++i) reassembler.arrive(0, traffic.cells[i], 1_us, out.released());
  reassembler.arrive(0, lost, 2_us, out.released());
  const std::size_t before = out.ids.size();
  for (std::size_t i = 4; i < 40; ++i) reassembler.arrive(0, traffic.cells[i], 3_us, out.released());
  EXPECT_EQ(out.ids.size(), before);
  EXPECT_EQ(reassembler.awaited(0), 3u);
  EXPECT_EQ(reassembler.next_timeout(), 2_us + timeout);
  reassembler.give_up(out.released());
  EXPECT_EQ(reassembler.awaited(0), 40u);
  EXPECT_EQ(reassembler.timeouts, 1u);
  const std::size_t after = out.ids.size();
  EXPECT_GT(after, before);
  for (std::size_t i = 40; i < traffic.cells.size(); ++i)
    reassembler.arrive(0, traffic.cells[i], 200_us, out.released());
  out.expect_all_in_order(50);
}

}  // namespace
}  // namespace weft::cells
