// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/host_port.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "dataplane/rng.h"
#include "dataplane/testing/frame_builder.h"

namespace weft {
namespace {

constexpr Rate rate{100'000'000'000};  // 80 ps a byte
constexpr TimePs delay = 50_ns, latency = 200_ns, reaction = 300_ns;
constexpr std::uint32_t length = 1000;
constexpr TimePs frame_time = (length + ethernet_overhead_bytes) * 80;  // 81.92 ns
constexpr TimePs to_admission = frame_time + delay + latency;

/// The sources of these tests bring their own memory; no pool is touched.
FramePool* no_pool() {
  alignas(FramePool) static std::byte memory[sizeof(FramePool)];
  return reinterpret_cast<FramePool*>(memory);
}

/// Frames that are ready at given times.
class ListSource final : public FrameSource {
 public:
  ListSource(std::vector<TimePs> times, std::uint8_t in_class, std::uint32_t bytes = length)
      : times_(std::move(times)), bytes_(bytes) {
    traffic_class = in_class;
    step();
  }
  Frame* take(FramePool&) override {
    step();
    if (dry) return nullptr;
    frames_.emplace_back(std::vector<std::uint8_t>(64));
    frames_.back()->length = bytes_;
    frames_.back()->traffic_class = traffic_class;
    return frames_.back().get();
  }
  bool dry = false;

 private:
  void step() {
    ready = next_ == times_.size() ? never : times_[next_++];
    next_length = bytes_;
  }
  std::vector<TimePs> times_;
  std::size_t next_ = 0;
  std::uint32_t bytes_;
  std::vector<testing::HeapFrame> frames_;
};

struct Sent {
  TimePs born, admitted;
  std::uint8_t traffic_class;
};

/// Runs the port as a leaf does: pauses and admissions in order of time, pauses first.
std::vector<Sent> run(HostPort& port, TimePs until = never) {
  std::vector<Sent> sent;
  for (;;) {
    const TimePs pause = port.next_pause(), admission = port.next_admission();
    if (std::min(pause, admission) >= until) return sent;
    if (pause <= admission) {
      port.apply_pause();
    } else if (const Frame* frame = port.take()) {
      sent.push_back({frame->born, admission, frame->traffic_class});
    }
  }
}

HostPort make_port(std::uint32_t number = 5) {
  ClassesConfig classes;
  classes.pfc_reaction = reaction;
  return HostPort(number, {rate, delay}, classes, latency);
}
std::unique_ptr<ListSource> source(std::vector<TimePs> times, std::uint8_t in_class, std::uint32_t bytes = length) {
  return std::make_unique<ListSource>(std::move(times), in_class, bytes);
}
PfcFrame pfc(std::uint8_t traffic_class, std::uint16_t quanta) {
  PfcFrame frame;
  frame.enabled = static_cast<std::uint8_t>(1u << traffic_class);
  frame.quanta[traffic_class] = quanta;
  return frame;
}

TEST(HostPort, AFrameIsAdmittedAfterWireAndPipeline) {
  HostPort port = make_port();
  EXPECT_EQ(port.next_admission(), never);
  port.add_source(source({1_us, 1_us}, 3), no_pool());
  EXPECT_EQ(port.next_admission(), 1_us + to_admission);
  const Frame* first = port.take();
  EXPECT_EQ(first->in_port, 5u);
  EXPECT_EQ(first->born, 1_us);
  EXPECT_EQ(first->id, std::uint64_t{5} << 40);
  EXPECT_EQ(port.next_admission(), 1_us + frame_time + to_admission);
  EXPECT_EQ(port.take()->id, (std::uint64_t{5} << 40) + 1);
  EXPECT_EQ(port.next_admission(), never);
  EXPECT_EQ(port.wire_bytes_sent(), 2 * (length + ethernet_overhead_bytes));
}

TEST(HostPort, CutThroughAdmitsAFrameWhenItsHeaderIsThere) {
  ClassesConfig classes;
  HostPort port(5, {rate, delay}, classes, latency, 72);
  port.add_source(source({1_us, 1_us}, 3), no_pool());
  EXPECT_EQ(port.next_admission(), 1_us + 72 * 80 + delay + latency);
  port.take();
  EXPECT_EQ(port.last_bit(), 1_us + frame_time + delay);
  // The second one starts when the first one's last bit has left.
  EXPECT_EQ(port.next_admission(), 1_us + frame_time + 72 * 80 + delay + latency);
  port.take();
  EXPECT_EQ(port.last_bit(), 1_us + 2 * frame_time + delay);

  // A frame shorter than that is taken whole.
  HostPort shorter(5, {rate, delay}, classes, latency, 2000);
  shorter.add_source(source({1_us}, 3), no_pool());
  EXPECT_EQ(shorter.next_admission(), 1_us + to_admission);
}

TEST(HostPort, JoinsItsSourcesFirstComeFirstServedUnderTheLineRate) {
  Rng random = stream(1, 0, 0);
  for (int round = 0; round < 20; ++round) {
    HostPort port = make_port();
    struct Wanted {
      TimePs ready;
      std::uint32_t source, bytes;
    };
    std::vector<Wanted> wanted;
    for (std::uint32_t s = 0; s < 4; ++s) {
      const auto bytes = static_cast<std::uint32_t>(60 + random.below(3'000));
      std::vector<TimePs> times;
      TimePs at = 0;
      for (int i = 0; i < 60; ++i) {
        at += 1 + random.below(round < 10 ? 200'000 : 2'000'000);  // an overloaded line, and one with gaps
        times.push_back(at);
        wanted.push_back({at, s, bytes});
      }
      port.add_source(source(times, static_cast<std::uint8_t>(s), bytes), no_pool());
    }
    std::stable_sort(wanted.begin(), wanted.end(), [](const Wanted& a, const Wanted& b) { return a.ready < b.ready; });
    const std::vector<Sent> sent = run(port);
    ASSERT_EQ(sent.size(), wanted.size());
    TimePs free_at = 0;
    for (std::size_t i = 0; i < sent.size(); ++i) {
      const TimePs start = std::max(free_at, wanted[i].ready);
      free_at = start + TimePs{wanted[i].bytes + ethernet_overhead_bytes} * 80;
      ASSERT_EQ(sent[i].born, start);
      ASSERT_EQ(sent[i].traffic_class, wanted[i].source);
      ASSERT_EQ(sent[i].admitted, free_at + delay + latency);
    }
  }
}

TEST(HostPort, APauseHoldsItsClassOnly) {
  HostPort port = make_port();
  const std::vector<TimePs> always(40, 0);
  port.add_source(source(always, 3), no_pool());
  port.add_source(source(always, 4), no_pool());
  const TimePs sent_at = 500_ns, effect = sent_at + delay + reaction;
  constexpr std::uint16_t quanta = 200;  // 512 bit times each: 1.024 us
  const TimePs end = effect + pause_time(quanta, rate);
  port.pause_sent(pfc(3, quanta), sent_at);
  EXPECT_EQ(port.next_pause(), effect);
  const std::vector<Sent> sent = run(port);
  ASSERT_EQ(sent.size(), 80u);
  int others = 0;
  TimePs expected = 0;
  for (const Sent& frame : sent) {
    EXPECT_EQ(frame.born, expected) << "the line stays busy throughout: the other class has frames";
    expected += frame_time;
    if (frame.born >= effect && frame.born < end) {
      EXPECT_EQ(frame.traffic_class, 4);
      ++others;
    }
  }
  EXPECT_GE(others, 12);  // 1.024 us of 81.92 ns frames: 12.5
}

TEST(HostPort, AFrameOnTheWireIsNotCutShort) {
  // The pause takes effect at every point of a frame, its edges excepted.
  for (const TimePs into : {1_ps, frame_time / 2, frame_time - 1}) {
    HostPort port = make_port();
    port.add_source(source(std::vector<TimePs>(12, 0), 3), no_pool());
    constexpr std::uint64_t begun = 6;  // frames 0 to 5
    const TimePs effect = (begun - 1) * frame_time + into;
    port.pause_sent(pfc(3, 100), effect - delay - reaction);
    ASSERT_EQ(port.next_pause(), effect);
    const TimePs end = effect + pause_time(100, rate);
    const std::vector<Sent> sent = run(port);
    ASSERT_EQ(sent.size(), 12u);
    for (std::size_t i = 0; i < sent.size(); ++i)
      EXPECT_EQ(sent[i].born, i < begun ? i * frame_time : end + (i - begun) * frame_time) << "frame " << i;
  }
}

TEST(HostPort, APauseComesBeforeTheFrameThatTheHostHadDecidedOn) {
  HostPort port = make_port();
  port.add_source(source({2_us}, 3), no_pool());  // decided at once, but not yet begun
  port.pause_sent(pfc(3, 1'000), 1_us);
  const TimePs effect = port.next_pause();
  port.apply_pause();
  EXPECT_EQ(port.next_admission(), effect + pause_time(1'000, rate) + to_admission);
}

TEST(HostPort, XonEndsAPauseEarly) {
  HostPort port = make_port();
  port.add_source(source({2_us, 2_us}, 3), no_pool());
  port.pause_sent(pfc(3, max_quanta), 0);
  port.pause_sent(pfc(3, 0), 10_us);
  const std::vector<Sent> sent = run(port);
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].born, 10_us + delay + reaction);
  EXPECT_EQ(sent[1].born, sent[0].born + frame_time);
}

TEST(HostPort, ARefreshedPauseHoldsUntilTheLastOneRunsOut) {
  HostPort port = make_port();
  port.add_source(source({1_us}, 3), no_pool());
  const TimePs one = pause_time(1'000, rate);
  port.pause_sent(pfc(3, 1'000), 0);
  port.pause_sent(pfc(3, 1'000), one / 2);
  const std::vector<Sent> sent = run(port);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].born, one / 2 + delay + reaction + one);
}

TEST(HostPort, ALossyClassDoesNotObey) {
  HostPort port = make_port();
  port.add_source(source({2_us}, 0), no_pool());
  port.pause_sent(pfc(0, max_quanta), 0);
  EXPECT_EQ(run(port).at(0).born, 2_us);
}

TEST(HostPort, ADryPoolCostsTheFrameAndItsTimeOnTheWire) {
  HostPort port = make_port();
  auto dry = source({0, 0, 0}, 3);
  ListSource* const pool = dry.get();
  port.add_source(std::move(dry), no_pool());
  pool->dry = true;
  EXPECT_EQ(port.take(), nullptr);
  pool->dry = false;
  const Frame* next = port.take();
  ASSERT_NE(next, nullptr);
  EXPECT_EQ(next->born, frame_time);
  EXPECT_EQ(next->id & 0xff'ffff'ffff, 1u) << "the lost frame's number is not used again";
}

}  // namespace
}  // namespace weft
