// SPDX-License-Identifier: BSD-3-Clause
#include "scheduler/output_port.h"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

namespace weft::scheduler {
namespace {

constexpr Rate rate{100'000'000'000};  // 80 ps a byte
constexpr TimePs frame_time = 1'024 * 80, pfc_time = (pfc_frame_bytes + ethernet_overhead_bytes) * 80;

struct Sent {
  std::uint64_t id;
  TimePs end;
  bool operator==(const Sent&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Sent& sent) { return out << sent.id << " at " << sent.end; }
constexpr std::uint64_t pfc_id = 1'000;

struct Bench {
  explicit Bench(const ClassesConfig& classes = {}) : port(rate, classes) {}
  void enqueue(std::uint64_t id, std::uint8_t traffic_class, TimePs ready) {
    Frame& frame = frames.emplace_back();
    frame.id = id, frame.traffic_class = traffic_class, frame.length = 1'000;
    port.enqueue({&frame, ready, wire_bytes(&frame), static_cast<std::uint32_t>(id)}, traffic_class);
  }
  void run(TimePs until) {
    while (port.next_event() < until) {
      now = port.next_event();
      const OutputPort::Event event = port.run(now);
      if (event.finished.frame != nullptr) sent.push_back({event.finished.frame->id, now});
      if (event.pfc != nullptr) sent.push_back({pfc_id + event.pfc->enabled, now});
    }
  }
  OutputPort port;
  std::deque<Frame> frames;
  std::vector<Sent> sent;
  TimePs now = 0;
};
PfcFrame pfc(std::uint8_t classes, std::uint16_t quanta) {
  PfcFrame frame;
  frame.enabled = classes;
  frame.quanta.fill(quanta);
  return frame;
}

TEST(OutputPort, SendsBackToBackInOrder) {
  Bench bench;
  for (std::uint64_t i = 0; i < 4; ++i) bench.enqueue(i, 3, 1'000);
  EXPECT_EQ(bench.port.next_event(), 1'000u);
  bench.run(1_s);
  std::vector<Sent> expected;
  for (std::uint64_t i = 0; i < 4; ++i) expected.push_back({i, 1'000 + (i + 1) * frame_time});
  EXPECT_EQ(bench.sent, expected);
  EXPECT_EQ(bench.port.wire_bytes_sent, 4 * 1'024u);
  EXPECT_EQ(bench.port.max_bytes, 4 * 1'024u);
  EXPECT_EQ(bench.port.bytes(), 0u);
  EXPECT_EQ(bench.port.next_event(), never);
}

TEST(OutputPort, AFrameInThePipelineIsNotSentEarly) {
  Bench bench;
  bench.enqueue(0, 0, 500'000);
  bench.enqueue(1, 3, 300'000);  // another class, ready before it
  bench.run(1_s);
  EXPECT_EQ(bench.sent, (std::vector<Sent>{{1, 300'000 + frame_time}, {0, 500'000 + frame_time}}));
}

TEST(OutputPort, HigherGroupsPassAndNothingIsCutShort) {
  Bench bench;
  for (std::uint64_t i = 0; i < 3; ++i) bench.enqueue(i, 0, 0);
  bench.run(1);  // the first is on the wire
  bench.enqueue(6, 6, 100), bench.enqueue(7, 7, 200);
  bench.run(1_s);
  std::vector<std::uint64_t> order;
  for (const Sent& sent : bench.sent) order.push_back(sent.id);
  EXPECT_EQ(order, (std::vector<std::uint64_t>{0, 7, 6, 1, 2}));
  EXPECT_EQ(bench.sent.back().end, 5 * frame_time) << "no time is lost";
}

TEST(OutputPort, PauseFramesGoBeforeAnyFrame) {
  Bench bench;
  for (std::uint64_t i = 0; i < 2; ++i) bench.enqueue(i, 7, 0);
  bench.run(1);
  bench.port.send_pfc(pfc(8, 100), 10);
  bench.port.send_pfc(pfc(16, 100), 20);
  bench.run(1_s);
  EXPECT_EQ(bench.sent, (std::vector<Sent>{{0, frame_time},
                                           {pfc_id + 8, frame_time + pfc_time},
                                           {pfc_id + 16, frame_time + 2 * pfc_time},
                                           {1, 2 * frame_time + 2 * pfc_time}}));
}

TEST(OutputPort, APausedClassWaitsAndOthersDoNot) {
  Bench bench;
  EXPECT_EQ(bench.port.pause(pfc(8, 1'000), 0), 8);
  const TimePs end = pause_time(1'000, rate);
  bench.enqueue(0, 3, 0);
  bench.enqueue(1, 4, 0);
  bench.run(1_s);
  EXPECT_EQ(bench.sent, (std::vector<Sent>{{1, frame_time}, {0, end + frame_time}}));
}

TEST(OutputPort, APauseDoesNotCutAFrameShortAndXonEndsItEarly) {
  Bench bench;
  bench.enqueue(0, 3, 0), bench.enqueue(1, 3, 0);
  bench.run(frame_time / 2);
  bench.port.pause(pfc(8, max_quanta), frame_time / 2);
  bench.run(10 * frame_time);
  EXPECT_EQ(bench.sent, (std::vector<Sent>{{0, frame_time}}));
  EXPECT_EQ(bench.port.frames_inside(), 1u);
  EXPECT_EQ(bench.port.pause(pfc(8, 0), 10 * frame_time), 0);
  bench.run(1_s);
  EXPECT_EQ(bench.sent.back(), (Sent{1, 11 * frame_time}));
}

TEST(OutputPort, ClassesOfAGroupShareByWeight) {
  ClassesConfig classes;
  classes.weight[1] = 1, classes.weight[2] = 3;
  Bench bench(classes);
  for (std::uint64_t i = 0; i < 2'000; ++i) bench.enqueue(1, 1, 0), bench.enqueue(2, 2, 0);
  bench.run(2'000 * frame_time);
  std::uint64_t heavy = 0;
  for (const Sent& sent : bench.sent) heavy += sent.id == 2;
  // Three of four, to a round of the heavier class: 3 x 9216 bytes are 27 frames.
  EXPECT_NEAR(static_cast<double>(heavy), 0.75 * static_cast<double>(bench.sent.size()), 28);
}

}  // namespace
}  // namespace weft::scheduler
