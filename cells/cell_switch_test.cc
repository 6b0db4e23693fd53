// SPDX-License-Identifier: BSD-3-Clause
#include "cells/cell_switch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "dataplane/rng.h"

namespace weft::cells {
namespace {

constexpr Rate rate{400'000'000'000};  // 20 ps a byte
constexpr TimePs delay = 250_ns, latency = 100_ns, cell_time = 272 * 20;

struct Received {
  TimePs at;
  Cell cell;
};

/// A spine and the near ends of its links, as leaves have them. A leaf obeys hold-backs.
class Bench {
 public:
  Bench(std::uint32_t leaves, std::uint32_t parallel, const CellConfig& config, std::vector<Rate> down_rates = {},
        std::vector<DownlinkEvent> events = {}) {
    topology_.leaves = leaves, topology_.spines = 1, topology_.hosts_per_leaf = 1, topology_.parallel_links = parallel;
    const std::uint32_t ports = leaves * parallel;
    down_rates.resize(ports, rate);
    TransmitterConfig transmitter;
    transmitter.rate = rate, transmitter.delay = delay;
    transmitter.header_bytes = config.header_bytes, transmitter.control_bytes = config.control_bytes;
    transmitter.mark_bytes = config.mark_bytes;
    std::vector<CellSwitch::Port> of_spine;
    for (std::uint32_t p = 0; p < ports; ++p) {
      up_.push_back(std::make_unique<CellLink>());
      down_.push_back(std::make_unique<CellLink>());
      leaf_out_.emplace_back(transmitter, up_.back().get());
      leaf_in_.emplace_back(down_.back().get(), LinkFate{}, config.header_bytes, config.control_bytes);
      TransmitterConfig downward = transmitter;
      downward.rate = down_rates[p];
      of_spine.push_back({up_.back().get(), down_.back().get(), downward, {}});
    }
    received.resize(ports), control_received.resize(ports);
    spine = std::make_unique<CellSwitch>(7, topology_, config, std::move(of_spine), std::move(events), nullptr);
  }
  void send(std::uint32_t port, std::uint16_t from, std::uint16_t to, std::uint32_t sequence, TimePs ready) {
    Cell& cell = leaf_out_[port].append();
    cell = {};
    cell.at = ready, cell.sequence = sequence, cell.payload = 256, cell.source = from, cell.destination = to;
  }
  void send_control(std::uint32_t port, std::uint16_t to, std::uint64_t total, TimePs ready) {
    ControlCell cell{};
    cell.destination = to, cell.total = total;
    leaf_out_[port].send_control(cell, ready);
  }
  /// Windows of the link delay, as the kernel cuts them. After each, `look` is called.
  template <typename Look>
  void run(TimePs until, Look&& look) {
    for (; now_ < until; now_ += delay) {
      const TimePs end = now_ + delay;
      ArrivalOrder order;
      for (std::size_t p = 0; p < leaf_in_.size(); ++p) {
        order.begin(now_, end);
        leaf_in_[p].gather(order, end);
        order.sort();
        for (std::uint32_t i = 0; i < order.size(); ++i) {
          if (CellReceiver::is_control(order.item(i))) {
            const ControlCell& control = CellReceiver::control(order.item(i));
            control_received[p].push_back({order.time(i), control});
            if (control.kind == ControlKind::hold_back) {
              drain(p, order.time(i));
              leaf_out_[p].hold(control.total != 0, order.time(i));
            }
          } else {
            received[p].push_back({order.time(i), CellReceiver::cell(order.item(i))});
          }
        }
        drain(p, end);
        leaf_out_[p].publish();
        leaf_in_[p].retire();
      }
      spine->advance(now_, end);
      look();
    }
  }
  void run(TimePs until) {
    run(until, [] {});
  }
  std::unique_ptr<CellSwitch> spine;
  std::vector<std::vector<Received>> received;  // [port]
  struct ReceivedControl {
    TimePs at;
    ControlCell cell;
  };
  std::vector<std::vector<ReceivedControl>> control_received;

 private:
  void drain(std::size_t p, TimePs limit) {
    leaf_out_[p].drain(
        limit, [](const Cell&, TimePs) {}, [](const ControlCell&, TimePs) {});
  }
  Topology topology_;
  std::vector<std::unique_ptr<CellLink>> up_, down_;
  std::vector<CellTransmitter> leaf_out_;
  std::vector<CellReceiver> leaf_in_;
  TimePs now_ = 0;
};

CellConfig config_of() {
  CellConfig config;
  config.spine_latency = latency;
  config.mark_bytes = 32 * 272;
  config.hold_back_bytes = 64 << 10;
  return config;
}

TEST(CellSwitch, ACellGoesToItsLeafInTheLeastTime) {
  Bench bench(3, 1, config_of());
  bench.send(0, 0, 2, 42, 1'000);
  bench.run(5_us);
  ASSERT_EQ(bench.received[2].size(), 1u);
  EXPECT_EQ(bench.received[2][0].cell.sequence, 42u);
  EXPECT_EQ(bench.received[2][0].at, 1'000 + 2 * (cell_time + delay) + latency);  // stored and forwarded cell by cell
  EXPECT_TRUE(bench.received[0].empty());
  EXPECT_TRUE(bench.received[1].empty());
  EXPECT_EQ(bench.spine->earliest(), never);
  EXPECT_EQ(bench.spine->hold_backs(), 0u);
}

TEST(CellSwitch, EveryCellArrivesAndThoseOfOneLinkInOrder) {
  Bench bench(4, 1, config_of());
  Rng random = stream(1, 0, 0);
  constexpr std::uint32_t count = 4'000;
  for (std::uint16_t leaf = 0; leaf < 4; ++leaf)
    for (std::uint32_t i = 0; i < count; ++i)
      bench.send(leaf, leaf, static_cast<std::uint16_t>(random.below(4)), i, i * cell_time);
  bench.run(200_us);
  std::size_t total = 0;
  for (const auto& at_leaf : bench.received) {
    std::vector<std::int64_t> last(4, -1);
    TimePs previous = 0;
    for (const Received& r : at_leaf) {
      EXPECT_GT(std::int64_t{r.cell.sequence}, last[r.cell.source]);
      last[r.cell.source] = r.cell.sequence;
      EXPECT_GE(r.at, previous + cell_time) << "no faster than the link";
      previous = r.at;
    }
    total += at_leaf.size();
  }
  EXPECT_EQ(total, 4u * count);
}

TEST(CellSwitch, ControlCellsPassTheQueue) {
  Bench bench(3, 1, config_of());
  for (std::uint32_t i = 0; i < 100; ++i) bench.send(0, 0, 2, i, 0), bench.send(1, 1, 2, i, 0);
  bench.send_control(0, 2, 5, 50 * cell_time);  // by then some fifty cells wait for leaf 2
  bench.run(10_us);
  ASSERT_EQ(bench.control_received[2].size(), 1u);
  const TimePs unhindered = 50 * cell_time + 2 * (32 * 20 + delay) + latency;
  EXPECT_GE(bench.control_received[2][0].at, unhindered);
  EXPECT_LE(bench.control_received[2][0].at, unhindered + 2 * cell_time)
      << "at most the cell on each wire is in its way";
}

TEST(CellSwitch, AQueueOverItsThresholdSetsTheCongestionBit) {
  Bench bench(3, 1, config_of());
  for (std::uint32_t i = 0; i < 60; ++i) bench.send(0, 0, 2, i, 0), bench.send(1, 1, 2, i, 0);
  bench.run(10_us);
  ASSERT_EQ(bench.received[2].size(), 120u);
  // Two links into one: cells n and n + 1 come together and n leaves after n cell times. The threshold is 32 of them.
  for (std::size_t n = 0; n < 120; ++n)
    EXPECT_EQ((bench.received[2][n].cell.flags & cell_marked) != 0, n - n / 2 > 32) << "cell " << n;
  EXPECT_EQ(bench.spine->transmitters()[2].counters.marked, 120u - 65);
}

TEST(CellSwitch, HoldBackBoundsWhatWaitsAndLosesNothing) {
  // One leaf sends at 400G to a link of 100G.
  CellConfig config = config_of();
  Bench bench(2, 1, config, {rate, Rate{rate.bits_per_s / 4}});
  constexpr std::uint32_t count = 10'000;
  for (std::uint32_t i = 0; i < count; ++i) bench.send(0, 0, 1, i, 0);
  std::uint64_t most = 0;
  bench.run(count * 4 * cell_time + 50_us,
            [&] { most = std::max(most, bench.spine->transmitters()[1].queued_bytes()); });
  ASSERT_EQ(bench.received[1].size(), count) << "the fabric loses no cell to congestion";
  for (std::uint32_t i = 0; i < count; ++i) ASSERT_EQ(bench.received[1][i].cell.sequence, i);
  EXPECT_GT(bench.spine->hold_backs(), 0u);
  EXPECT_GT(most, config.hold_back_bytes);
  // Over the threshold comes what arrives until it is judged (a window), until the order is on the wire (pipeline, and
  // a cell before it), in its flight, and what is then on the cable: 2 x delay x rate and these.
  const TimePs until_obeyed = delay + latency + cell_time + 32 * 20 + delay + delay;
  EXPECT_LE(most, config.hold_back_bytes + WireClock(rate).bytes_in(until_obeyed) + 2 * 272);
  // The link stays busy: hold-back with half the threshold left starves nobody.
  const TimePs took = bench.received[1].back().at - bench.received[1].front().at;
  EXPECT_LE(took, (count - 1) * 4 * cell_time + 1_ns);
}

TEST(CellSwitch, AHoldBackIsForTheLeafThatFillsTheSpine) {
  Bench bench(3, 1, config_of(), {rate, rate, Rate{rate.bits_per_s / 8}});
  for (std::uint32_t i = 0; i < 2'000; ++i) bench.send(0, 0, 2, i, 0), bench.send(1, 1, 0, i, 0);
  bench.run(30_us);
  std::size_t held = 0;
  for (const auto& control : bench.control_received[0]) held += control.cell.kind == ControlKind::hold_back;
  EXPECT_GT(held, 0u);
  EXPECT_TRUE(bench.control_received[1].empty()) << "an innocent leaf is not held";
  EXPECT_EQ(bench.received[0].size(), 2'000u);
}

TEST(CellSwitch, ParallelLinksShareAndDeadOnesAreAvoided) {
  const DownlinkEvent lose{20_us, 2, DownlinkEvent::What::lose, {}}, regain{40_us, 2, DownlinkEvent::What::regain, {}};
  Bench bench(2, 2, config_of(), {}, {lose, regain});
  for (std::uint32_t i = 0; i < 1'000; ++i) bench.send(0, 0, 1, i, i * cell_time * 10);  // ports 2 and 3 lead to leaf 1
  bench.run(20_us);
  const std::size_t before_2 = bench.received[2].size(), before_3 = bench.received[3].size();
  EXPECT_GT(before_2, 150u);
  EXPECT_LE(before_2 > before_3 ? before_2 - before_3 : before_3 - before_2, 1u);
  bench.spine->at_stop(20_us, stop_fault);
  bench.run(40_us);
  EXPECT_LE(bench.received[2].size() - before_2, 10u) << "only what was already inside or on the wire";
  const std::size_t between = bench.received[2].size();
  bench.spine->at_stop(40_us, stop_fault);
  bench.run(60_us);
  EXPECT_GT(bench.received[2].size(), between + 100);  // half of 14.4 us at a cell in 54.4 ns: 132
  EXPECT_EQ(bench.received[2].size() + bench.received[3].size(), 1'000u);
}

TEST(CellSwitch, EarliestSeesWhatWaitsInside) {
  Bench bench(2, 1, config_of(), {rate, Rate{1'000'000'000}});
  bench.send(0, 0, 1, 0, 0), bench.send(0, 0, 1, 1, 0);
  bench.run(1_us);
  EXPECT_NE(bench.spine->earliest(), never) << "the second cell waits for a slow link";
  bench.run(20_us);
  EXPECT_EQ(bench.spine->earliest(), never);
}

}  // namespace
}  // namespace weft::cells
