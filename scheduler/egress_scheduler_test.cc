// SPDX-License-Identifier: BSD-3-Clause
#include "scheduler/egress_scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "dataplane/rng.h"

namespace weft::scheduler {
namespace {

constexpr Rate rate{400'000'000'000};
constexpr TimePs refresh = 50_us;
constexpr std::uint16_t to_class_3 = 3, to_class_4 = 4;  // streams of port 0

struct Grant {
  TimePs at;
  std::uint16_t source, stream;
  std::uint64_t total;
  bool refresh;
};

/// The scheduler of leaf 0 of five, and what it says to the others.
class Bench {
 public:
  explicit Bench(std::uint64_t buffer = 1 << 20, const ClassesConfig& classes = {}) {
    topology.leaves = 5, topology.spines = 1, topology.hosts_per_leaf = 2;
    topology.host_links.assign(10, {rate, 50_ns});
    for (std::uint32_t l = 0; l < 5; ++l) topology.fabric_links.push_back({l, 0, 0, {rate, 250_ns}});
    config.credit_bytes = 4'096, config.speedup = 1.05, config.egress_buffer_bytes = buffer;
    cells::TransmitterConfig transmitter;
    transmitter.rate = rate;
    uplinks = std::make_unique<cells::Uplinks>(topology, 0, cell_config, true,
                                               std::vector<cells::Uplinks::Port>{{&link, transmitter}}, 1, nullptr);
    reassembler = std::make_unique<cells::Reassembler>(5 * 16, 1'024, 100_us);
    scheduler = std::make_unique<EgressScheduler>(topology, 0, config, classes, refresh, *uplinks, *reassembler);
  }
  void request(std::uint16_t source, std::uint16_t stream, std::uint64_t total, TimePs now,
               std::uint64_t given_back = 0, std::uint64_t withdrawn = 0, bool again = false) {
    cells::ControlCell cell{};
    cell.kind = given_back != 0 ? cells::ControlKind::give_back : cells::ControlKind::request;
    cell.source = source, cell.stream = stream, cell.longest = 1'524;
    cell.total = total, cell.given_back = given_back, cell.withdrawn = withdrawn, cell.refresh = again;
    scheduler->request(cell, now);
  }
  /// Grants of both ports that are due before `until`.
  void run(TimePs until) {
    for (;;) {
      const std::uint32_t port = scheduler->next_grant(1) < scheduler->next_grant(0) ? 1 : 0;
      const TimePs at = scheduler->next_grant(port);
      if (at >= until) return;
      scheduler->grant(port, at);
      hear(at);
    }
  }
  void hear(TimePs at) {
    while (link.control.queued() != 0) {
      const cells::ControlCell cell = link.control.front();
      link.control.commit();
      grants.push_back({at, cell.destination, cell.stream, cell.total, cell.refresh});
      totals[{cell.destination, cell.stream}] = std::max(totals[{cell.destination, cell.stream}], cell.total);
    }
  }
  [[nodiscard]] std::uint64_t total(std::uint16_t source, std::uint16_t stream) { return totals[{source, stream}]; }
  [[nodiscard]] std::uint32_t entry(std::uint16_t source, std::uint16_t stream) const {
    return scheduler->entry_number(source, stream);
  }

  Topology topology;
  SchedulerConfig config;
  cells::CellConfig cell_config;
  cells::CellLink link;
  std::unique_ptr<cells::Uplinks> uplinks;
  std::unique_ptr<cells::Reassembler> reassembler;
  std::unique_ptr<EgressScheduler> scheduler;
  std::vector<Grant> grants;
  std::map<std::pair<std::uint16_t, std::uint16_t>, std::uint64_t> totals;
};

TEST(EgressScheduler, GrantsWhatIsAskedForAndNoMore) {
  Bench bench;
  bench.request(1, to_class_3, 10'000, 1_us);
  bench.run(1_ms);
  EXPECT_EQ(bench.total(1, to_class_3), 10'000u);
  ASSERT_EQ(bench.grants.size(), 3u);  // 4096, 4096, 1808
  EXPECT_EQ(bench.grants[0].at, 1_us) << "an idle port answers at once";
  EXPECT_EQ(bench.scheduler->next_grant(0), never);
  bench.request(1, to_class_3, 10'000, 1_ms);
  bench.run(2_ms);
  EXPECT_EQ(bench.grants.size(), 3u) << "the same again asks for nothing";
  bench.request(1, to_class_3, 9'000, 2_ms);
  bench.request(1, to_class_3, 12'000, 2_ms, 0, 2'000);  // withdrawn meanwhile
  bench.run(3_ms);
  EXPECT_EQ(bench.total(1, to_class_3), 10'000u);
}

TEST(EgressScheduler, NeverMoreThanAskedOverRandomRequests) {
  Bench bench(1 << 30);
  Rng random = stream(1, 0, 0);
  std::map<std::pair<std::uint16_t, std::uint16_t>, std::uint64_t> asked;
  TimePs now = 0;
  for (int i = 0; i < 5'000; ++i) {
    now += random.below(200'000);
    bench.run(now);
    const auto source = static_cast<std::uint16_t>(1 + random.below(4)),
               stream_number = static_cast<std::uint16_t>(random.below(16));
    std::uint64_t& total = asked[{source, stream_number}];
    total += random.below(10'000);
    bench.request(source, stream_number, total, now);
    for (const auto& [voq, granted] : bench.totals) ASSERT_LE(granted, asked[voq]);
  }
  bench.run(1_s);
  for (const auto& [voq, total] : asked) EXPECT_EQ(bench.totals[voq], total) << "and in the end all of it";
}

TEST(EgressScheduler, ThePaceIsRateTimesSpeedup) {
  Bench bench(1 << 30);
  for (std::uint16_t source = 1; source < 5; ++source) bench.request(source, to_class_3, 1 << 28, 0);
  constexpr TimePs time = 100_us;
  bench.run(time);
  const double granted = static_cast<double>(bench.scheduler->counters.granted_bytes);
  EXPECT_NEAR(granted, 400e9 * 1.05 / 8 * 100e-6, 4'096) << "to one credit";
  for (std::size_t i = 1; i < bench.grants.size(); ++i)
    EXPECT_NEAR(static_cast<double>(bench.grants[i].at - bench.grants[i - 1].at), 4'096 * 20 / 1.05, 1.0);
  // In turn: nobody is more than a credit ahead.
  for (std::uint16_t source = 2; source < 5; ++source)
    EXPECT_NEAR(static_cast<double>(bench.total(source, to_class_3)), static_cast<double>(bench.total(1, to_class_3)),
                4'096);
}

TEST(EgressScheduler, PortsDoNotShareAPace) {
  Bench bench(1 << 30);
  bench.request(1, to_class_3, 1 << 28, 0), bench.request(1, 8 + 3, 1 << 28, 0);
  bench.run(100_us);
  EXPECT_NEAR(static_cast<double>(bench.total(1, 8 + 3)), static_cast<double>(bench.total(1, to_class_3)), 4'096);
  EXPECT_GT(bench.total(1, 8 + 3), 5'000'000u);  // 100 us of 420G: 5.25 MB
}

/// VOQs that send whole frames while their balance is positive, a fabric of fixed delay, and the egress port.
class Loop {
 public:
  explicit Loop(Bench& bench, std::uint64_t seed) : bench_(bench), random_(stream(seed, 0, 0)) {}
  /// Frames of random lengths wait in each VOQ without end.
  void run(TimePs duration, TimePs one_way, const std::vector<std::uint16_t>& sources) {
    for (const std::uint16_t source : sources) {
      Voq& voq = voqs_[source];
      while (voq.waiting < 64'000'000) {
        voq.frames.push_back(static_cast<std::uint32_t>(84 + random_.below(1'441)));
        voq.waiting += voq.frames.back();
      }
      bench_.request(source, to_class_3, voq.waiting, 0);
    }
    std::size_t heard = 0;
    while (now < duration) {
      const TimePs grant = bench_.scheduler->next_grant(0),
                   arrival = arrivals_.empty() ? never : arrivals_.begin()->first,
                   departure = queue_.empty() ? never : departs_at_;
      now = std::min({grant, arrival, departure});
      ASSERT_NE(now, never) << "stuck";
      if (now == departure) {
        const Packet packet = queue_.front();
        queue_.pop_front();
        buffered -= packet.bytes;
        departed += packet.bytes;
        bench_.scheduler->departed(bench_.entry(packet.source, to_class_3), packet.bytes, now);
        departs_at_ = queue_.empty() ? never : now + queue_.front().bytes * 20ull;
      } else if (now == arrival) {
        const Packet packet = arrivals_.begin()->second;
        arrivals_.erase(arrivals_.begin());
        bench_.scheduler->arrived(bench_.entry(packet.source, to_class_3), packet.bytes, now);
        buffered += packet.bytes;
        most_buffered = std::max(most_buffered, buffered);
        if (queue_.empty()) departs_at_ = now + packet.bytes * 20ull;
        queue_.push_back(packet);
      } else {
        bench_.scheduler->grant(0, now);
        bench_.hear(now);
      }
      most_exposed = std::max(most_exposed, bench_.scheduler->exposure(0, 3));
      for (; heard < bench_.grants.size(); ++heard) {
        const std::uint16_t source = bench_.grants[heard].source;
        Voq& voq = voqs_[source];
        while (voq.sent < bench_.grants[heard].total && !voq.frames.empty()) {
          const std::uint32_t bytes = voq.frames.front();
          voq.frames.pop_front();
          voq.sent += bytes;
          arrivals_.insert({now + one_way, {source, bytes}});
        }
      }
    }
  }
  TimePs now = 0;
  std::uint64_t buffered = 0, most_buffered = 0, departed = 0, most_exposed = 0;

 private:
  struct Packet {
    std::uint16_t source;
    std::uint32_t bytes;
  };
  struct Voq {
    std::deque<std::uint32_t> frames;
    std::uint64_t waiting = 0, sent = 0;
  };
  Bench& bench_;
  Rng random_;
  std::map<std::uint16_t, Voq> voqs_;
  std::multimap<TimePs, Packet> arrivals_;
  std::deque<Packet> queue_;
  TimePs departs_at_ = never;
};

TEST(EgressScheduler, TheEgressBufferHoldsAndThePortStaysBusy) {
  // Grants go out at 1.05 x rate, so the buffer fills until it gates them.
  constexpr TimePs round_trip = 1'500_ns;
  constexpr std::uint64_t buffer =
      1'500 * 50 * 3 / 2 + 4'096 + 4 * 1'524;  // 1.5 R T, a credit, and an overdraft for each VOQ
  Bench bench(buffer);
  Loop loop(bench, 1);
  loop.run(300_us, round_trip, {1, 2, 3, 4});
  EXPECT_LE(loop.most_exposed, buffer);
  EXPECT_LE(loop.most_buffered, buffer) << "never over its size";
  EXPECT_GT(loop.most_exposed, buffer - 4'096 - 4 * 1'524) << "else it was not put to the test";
  EXPECT_GE(static_cast<double>(loop.departed), 0.99 * 400e9 / 8 * (300e-6 - 1.5e-6));
}

TEST(EgressScheduler, ASmallBufferCapsThroughputAtBOverT) {
  constexpr TimePs round_trip = 4_us;
  constexpr std::uint64_t buffer = 100'000;  // R T / 2
  Bench bench(buffer);
  Loop loop(bench, 2);
  loop.run(400_us, round_trip, {1});
  const double per_s = static_cast<double>(loop.departed) / 400e-6;
  // A grant comes back after the flight and its own time in the queue: B / (T + credit time), less a credit and an
  // overdraft that may just not fit.
  EXPECT_LE(per_s, buffer / 4e-6);
  EXPECT_GE(per_s, (buffer - 4'096 - 1'524) / (4e-6 + 82e-9) * 0.97);
}

TEST(EgressScheduler, APausedClassDoesNotBlockOthers) {
  Bench bench(64 << 10);
  bench.request(1, to_class_3, 1 << 20, 0), bench.request(2, to_class_4, 1 << 15, 0);
  bench.scheduler->set_paused(0, 1u << 3, 0);
  bench.run(100_us);
  EXPECT_EQ(bench.total(1, to_class_3), 0u);
  EXPECT_EQ(bench.total(2, to_class_4), 1u << 15);
  bench.scheduler->set_paused(0, 0, 100_us);
  EXPECT_EQ(bench.scheduler->next_grant(0), 100_us);
  bench.run(200_us);
  EXPECT_GT(bench.total(1, to_class_3), (64u << 10) - 4'096 - 1'524) << "until its share of the buffer is full";
  EXPECT_LE(bench.total(1, to_class_3), 64u << 10);
}

TEST(EgressScheduler, AFullBufferOfOneClassDoesNotBlockOthers) {
  Bench bench(16 << 10);
  bench.request(1, to_class_3, 1 << 20, 0);
  bench.run(50_us);  // nothing departs: class 3 is full
  const std::uint64_t full = bench.total(1, to_class_3);
  bench.request(2, to_class_4, 10'000, 50_us);
  bench.run(100_us);
  EXPECT_EQ(bench.total(2, to_class_4), 10'000u);
  EXPECT_EQ(bench.total(1, to_class_3), full);
  bench.scheduler->arrived(bench.entry(1, to_class_3), 1'524, 100_us);
  bench.scheduler->departed(bench.entry(1, to_class_3), 1'524, 101_us);
  bench.scheduler->arrived(bench.entry(1, to_class_3), 4'096, 102_us);
  bench.scheduler->departed(bench.entry(1, to_class_3), 4'096, 103_us);
  bench.run(200_us);
  EXPECT_GT(bench.total(1, to_class_3), full) << "goes on as it drains";
}

TEST(EgressScheduler, HigherGroupsAreGrantedFirst) {
  Bench bench(1 << 30);
  bench.request(1, 0, 1 << 20, 0), bench.request(1, 6, 20'000, 0), bench.request(2, 7, 20'000, 0);
  bench.run(1_us + 1);  // twelve credits at most
  ASSERT_GE(bench.grants.size(), 11u);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(bench.grants[i].stream, 7);
  for (int i = 5; i < 10; ++i) EXPECT_EQ(bench.grants[i].stream, 6);
  EXPECT_EQ(bench.grants[10].stream, 0);
}

TEST(EgressScheduler, ALostGrantIsSaidAgain) {
  Bench bench;
  bench.request(1, to_class_3, 3'000, 0);
  bench.run(1_us);
  bench.grants.clear();  // lost on its way
  TimePs at = bench.scheduler->next_refresh();
  EXPECT_LE(at, refresh);
  bench.scheduler->refresh(at), bench.hear(at);
  ASSERT_EQ(bench.grants.size(), 1u);
  EXPECT_EQ(bench.grants[0].total, 3'000u) << "the sum since the start: hearing it twice does no harm";
  EXPECT_TRUE(bench.grants[0].refresh);
  EXPECT_EQ(bench.scheduler->counters.granted_bytes, 3'000u);
  bench.scheduler->arrived(bench.entry(1, to_class_3), 3'000, at + 1_us);
  for (int i = 0; i < 3 && (at = bench.scheduler->next_refresh()) != never; ++i)
    bench.scheduler->refresh(at), bench.hear(at);
  EXPECT_EQ(bench.scheduler->next_refresh(), never) << "all is there: silence";
  EXPECT_EQ(bench.grants.size(), 1u);
}

TEST(EgressScheduler, ARepeatedRequestIsAnsweredAgain) {
  Bench bench;
  bench.request(1, to_class_3, 3'000, 0);
  bench.run(1_us);
  bench.grants.clear();  // lost
  bench.request(1, to_class_3, 3'000, 20_us, 0, 0, true);
  bench.hear(20_us);
  ASSERT_EQ(bench.grants.size(), 1u);
  EXPECT_EQ(bench.grants[0].total, 3'000u);
  // A request that was lost is in the next one: totals count from the start.
  bench.request(1, to_class_3, 9'000, 30_us);
  bench.run(40_us);
  EXPECT_EQ(bench.total(1, to_class_3), 9'000u);
  // One that overtook another takes nothing back.
  bench.request(1, to_class_3, 8'000, 50_us);
  bench.run(60_us);
  EXPECT_EQ(bench.total(1, to_class_3), 9'000u);
}

TEST(EgressScheduler, CreditGivenBackFreesTheBuffer) {
  Bench bench(8'192);
  bench.request(1, to_class_3, 6'000, 0);
  bench.run(1_us);
  EXPECT_GT(bench.total(1, to_class_3), 4'000u);
  bench.run(1_us);
  const std::uint64_t granted = bench.total(1, to_class_3);
  EXPECT_GE(bench.scheduler->exposure(0, 3), granted);
  bench.request(2, to_class_3, 6'000, 1_us);
  bench.run(2_us);
  EXPECT_EQ(bench.total(2, to_class_3), 0u) << "no room";
  bench.request(1, to_class_3, 6'000, 2_us, granted, 6'000);  // it dropped its frames: unused, and no longer wanted
  EXPECT_EQ(bench.scheduler->exposure(0, 3), 0u);
  bench.run(10_us);
  EXPECT_EQ(bench.total(2, to_class_3), 6'000u);
}

TEST(EgressScheduler, AnIsolatedLeafIsLeftOutUntilItIsBack) {
  Bench bench(1 << 30);
  for (std::uint16_t source = 1; source < 4; ++source) bench.request(source, to_class_3, 1 << 20, 0);
  bench.run(1_us);
  bench.scheduler->isolate(2, true, 1_us);
  const std::uint64_t before = bench.total(2, to_class_3), other = bench.total(1, to_class_3);
  EXPECT_GT(before, 0u);
  bench.run(5_us);
  EXPECT_EQ(bench.total(2, to_class_3), before);
  EXPECT_GT(bench.total(1, to_class_3), other);
  bench.scheduler->isolate(2, false, 5_us);
  bench.run(1_s);
  for (std::uint16_t source = 1; source < 4; ++source) EXPECT_EQ(bench.total(source, to_class_3), 1u << 20);
}

TEST(EgressScheduler, CongestionMarksSlowTheEntryThatCausedThem) {
  const auto departed = [](bool marks) {
    Bench bench(1 << 20);
    bench.request(1, to_class_3, 1 << 26, 0), bench.request(2, to_class_3, 1 << 26, 0);
    std::size_t heard = 0;
    std::map<std::uint16_t, std::uint64_t> got;
    std::deque<Grant> flying;
    TimePs now = 0;
    while (now < 200_us) {
      const TimePs grant = bench.scheduler->next_grant(0), arrival = flying.empty() ? never : flying.front().at + 1_us;
      now = std::min(grant, arrival);
      if (now == arrival) {
        const Grant g = flying.front();
        flying.pop_front();
        const std::uint64_t bytes = g.total - got[g.source];
        got[g.source] = g.total;
        if (marks && g.source == 1)
          for (int cell = 0; cell < 16; ++cell) bench.scheduler->congested(bench.entry(1, to_class_3), 256);
        bench.scheduler->arrived(bench.entry(g.source, to_class_3), static_cast<std::uint32_t>(bytes), now);
        bench.scheduler->departed(bench.entry(g.source, to_class_3), static_cast<std::uint32_t>(bytes), now);
      } else {
        bench.scheduler->grant(0, now);
        bench.hear(now);
      }
      for (; heard < bench.grants.size(); ++heard) flying.push_back(bench.grants[heard]);
    }
    return got;
  };
  const auto calm = departed(false);
  auto congested = departed(true);
  EXPECT_NEAR(static_cast<double>(calm.at(1)), static_cast<double>(calm.at(2)), 8'192);
  EXPECT_LT(congested[1], calm.at(1) / 2) << "every cell marked: down to its least";
  EXPECT_GT(congested[1], 0u) << "and no further";
  EXPECT_GT(congested[2], calm.at(2)) << "the other takes what it leaves";
}

}  // namespace
}  // namespace weft::scheduler
