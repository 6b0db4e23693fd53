// SPDX-License-Identifier: BSD-3-Clause
#include "cells/link.h"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <vector>

namespace weft::cells {
namespace {

constexpr Rate rate{400'000'000'000};  // 20 ps a byte
constexpr std::uint32_t header = 16, control_bytes = 32;
constexpr TimePs delay = 250_ns;

TransmitterConfig config_of(TimePs keepalive = 0) {
  TransmitterConfig config;
  config.rate = rate;
  config.delay = delay;
  config.header_bytes = header;
  config.control_bytes = control_bytes;
  config.mark_bytes = 32 * 272;
  config.keepalive_interval = keepalive;
  config.keepalive_bytes = 32;
  return config;
}

struct Departure {
  bool control;
  std::uint64_t number;
  TimePs end;
  bool operator==(const Departure&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Departure& d) {
  return out << (d.control ? "control " : "cell ") << d.number << " at " << d.end << " ps";
}

/// A transmitter and what came out of it.
struct Sender {
  explicit Sender(const TransmitterConfig& config) : transmitter(config, &link) {}
  void data(std::uint32_t number, std::uint32_t payload, TimePs ready, std::uint8_t flags = 0) {
    Cell& cell = transmitter.append();
    cell = {};
    cell.sequence = number;
    cell.payload = static_cast<std::uint16_t>(payload);
    cell.flags = flags;
    cell.at = ready;
  }
  void control(std::uint64_t number, TimePs ready) {
    ControlCell cell{};
    cell.total = number;
    transmitter.send_control(cell, ready);
  }
  void drain(TimePs limit) {
    transmitter.drain(
        limit,
        [&](const Cell& cell, TimePs end) {
          EXPECT_EQ(cell.at, end + delay);
          departures.push_back({false, cell.sequence, end});
        },
        [&](const ControlCell& cell, TimePs end) {
          EXPECT_EQ(cell.at, end + delay);
          departures.push_back({true, cell.total, end});
        });
  }
  CellLink link;
  CellTransmitter transmitter;
  std::vector<Departure> departures;
};

/// What the transmitter must amount to: a wire that, whenever it is free, looks at what is ready at that instant and
/// takes a reachability message, else a control cell, else a data cell.
class NaiveSerialiser {
 public:
  struct Item {
    std::uint64_t number;
    std::uint32_t bytes;
    TimePs ready;
  };
  NaiveSerialiser(Rate r, TimePs keepalive)
      : clock_(r), interval_(keepalive), next_keepalive_(keepalive == 0 ? never : 0) {}
  std::deque<Item> data, control;

  std::vector<Departure> run() {
    std::vector<Departure> out;
    TimePs now = 0;
    while (!data.empty() || !control.empty()) {
      const TimePs data_ready = data.empty() ? never : data.front().ready;
      const TimePs control_ready = control.empty() ? never : control.front().ready;
      now = std::max(now, std::min({data_ready, control_ready, next_keepalive_}));
      if (next_keepalive_ <= now) {
        now += clock_.take(32);
        next_keepalive_ += interval_;
      } else {
        const bool is_control = control_ready <= now;
        std::deque<Item>& queue = is_control ? control : data;
        now += clock_.take(queue.front().bytes);
        out.push_back({is_control, queue.front().number, now});
        queue.pop_front();
      }
    }
    return out;
  }

 private:
  WireClock clock_;
  TimePs interval_, next_keepalive_;
};

TEST(CellTransmitter, ACellTakesItsWireTime) {
  Sender sender(config_of());
  sender.data(0, 256, 1'000);
  sender.drain(1'000);
  EXPECT_TRUE(sender.departures.empty()) << "starts at the limit: not before it";
  EXPECT_EQ(sender.transmitter.earliest(), 1'000u);
  sender.drain(1'001);
  EXPECT_EQ(sender.departures, (std::vector<Departure>{{false, 0, 1'000 + 272 * 20}}));
  EXPECT_EQ(sender.transmitter.earliest(), never);
  EXPECT_EQ(sender.transmitter.counters.wire_bytes, 272u);
}

TEST(CellTransmitter, ControlGoesFirstButNeverCutsACellShort) {
  Sender sender(config_of());
  sender.data(0, 256, 0);
  sender.data(1, 256, 0);
  sender.control(7, 100);    // while cell 0 is on the wire
  sender.control(8, 5'440);  // ready in the instant in which the wire becomes free
  sender.drain(never - 1);
  EXPECT_EQ(sender.departures,
            (std::vector<Departure>{{false, 0, 5'440}, {true, 7, 6'080}, {true, 8, 6'720}, {false, 1, 12'160}}));
  EXPECT_EQ(sender.transmitter.counters.control_cells, 2u);
  EXPECT_EQ(sender.transmitter.counters.control_bytes, 64u);
}

TEST(CellTransmitter, LazyCommitsEqualOneDecisionAtATime) {
  for (const TimePs keepalive : {0_ps, 1_us, 50_ns}) {
    for (const Rate r : {rate, Rate{200'000'000'000}, Rate{25'781'250'000}, Rate{7'000'000'000}}) {
      if (keepalive != 0 && r.bits_per_s < 200'000'000'000)
        continue;  // silent messages leave no remainder of a picosecond behind
      Rng random = stream(keepalive, r.bits_per_s, 0);
      for (int round = 0; round < 40; ++round) {
        TransmitterConfig config = config_of(keepalive);
        config.rate = r;
        Sender sender(config);
        NaiveSerialiser naive(r, keepalive);
        const TimePs cell_time = WireClock(r).time_of(272);
        const TimePs gap = 1 + cell_time * (round % 4);  // from overload to mostly idle
        TimePs now = 0;
        for (std::uint32_t i = 0; i < 400; ++i) {
          now += random.below(gap);
          if (random.below(3) == 0) {
            sender.control(i, now);
            naive.control.push_back({i, control_bytes, now});
          } else {
            const auto payload = static_cast<std::uint32_t>(1 + random.below(256));
            sender.data(i, payload, now);
            naive.data.push_back({i, payload + header, now});
          }
          if (random.below(4) == 0) sender.drain(now);  // what is sent later is ready at `now` or later
        }
        sender.drain(never - 1);
        ASSERT_EQ(sender.departures, naive.run())
            << "keep-alives every " << keepalive << " ps, " << r.bits_per_s << " bit/s";
      }
    }
  }
}

TEST(CellTransmitter, KeepAlivesCostBytesAndSilenceCostsNothing) {
  Sender sender(config_of(10_us));
  sender.data(0, 256, 1_s + 1);  // 100001 messages, the last of which began a picosecond ago
  sender.drain(2_s);
  EXPECT_EQ(sender.departures, (std::vector<Departure>{{false, 0, 1_s + 32 * 20 + 272 * 20}}));
  EXPECT_EQ(sender.transmitter.counters.control_bytes, 100'001u * 32);
  EXPECT_EQ(sender.transmitter.counters.wire_bytes, 100'001u * 32 + 272);
  EXPECT_EQ(sender.transmitter.counters.control_cells, 0u);
}

TEST(CellTransmitter, HeldBackItSendsControlOnly) {
  Sender sender(config_of());
  sender.drain(1_us);
  sender.transmitter.hold(true, 1_us);
  sender.data(0, 256, 1_us);
  sender.control(1, 2_us);
  sender.drain(3_us);
  EXPECT_EQ(sender.departures, (std::vector<Departure>{{true, 1, 2_us + 640}}));
  sender.transmitter.hold(false, 3_us);
  sender.drain(4_us);
  ASSERT_EQ(sender.departures.size(), 2u);
  EXPECT_EQ(sender.departures[1], (Departure{false, 0, 3_us + 272 * 20}));
  EXPECT_EQ(sender.transmitter.counters.held, 2_us);
}

TEST(CellTransmitter, AHoldBackWhoseEndIsLostEndsByItself) {
  Sender sender(config_of());
  sender.transmitter.hold(true, 0);
  sender.data(0, 256, 0);
  EXPECT_EQ(sender.transmitter.earliest(), hold_time);
  sender.transmitter.hold(true, 4_us);  // said again
  EXPECT_EQ(sender.transmitter.earliest(), 4_us + hold_time);
  sender.drain(1_s);
  EXPECT_EQ(sender.departures, (std::vector<Departure>{{false, 0, 4_us + hold_time + 272 * 20}}));
  EXPECT_EQ(sender.transmitter.counters.held, 4_us + hold_time);
}

TEST(CellTransmitter, ANewRateHoldsFromTheNextCell) {
  Sender sender(config_of());
  sender.data(0, 256, 0);
  sender.data(1, 256, 0);
  sender.drain(1);
  sender.transmitter.set_rate(Rate{100'000'000'000});
  sender.drain(1_us);
  EXPECT_EQ(sender.departures, (std::vector<Departure>{{false, 0, 5'440}, {false, 1, 5'440 + 272 * 80}}));
}

TEST(CellTransmitter, ALongQueueSetsTheCongestionBit) {
  Sender sender(config_of());
  constexpr std::uint32_t count = 100;
  for (std::uint32_t i = 0; i < count; ++i) sender.data(i, 256, 0);
  sender.drain(1_ms);
  sender.transmitter.publish();
  sender.link.data.refresh();
  std::uint32_t marked = 0, first_marked = count;
  for (; !sender.link.data.empty(); sender.link.data.take()) {
    const Cell& cell = sender.link.data.peek();
    if ((cell.flags & cell_marked) == 0) continue;
    ++marked;
    first_marked = std::min(first_marked, cell.sequence);
  }
  // The threshold is 32 cells: those that find 33 or more before them wait longer than it takes to drain.
  EXPECT_EQ(first_marked, 33u);
  EXPECT_EQ(marked, count - 33);
  EXPECT_EQ(sender.transmitter.counters.marked, marked);
  EXPECT_GE(sender.transmitter.queue_max_bytes(), count * 272u);
}

TEST(CellTransmitter, LostCellsTakeNoWireTimeAndKeepTheOrder) {
  Sender sender(config_of());
  sender.data(0, 256, 0);
  sender.data(1, 256, 0, cell_lost);
  sender.data(2, 256, 0);
  sender.drain(1_us);
  sender.transmitter.publish();
  EXPECT_EQ(sender.departures, (std::vector<Departure>{{false, 0, 5'440}, {false, 2, 10'880}}));
  sender.link.data.refresh();
  TimePs last = 0;
  for (std::uint32_t i = 0; i < 3; ++i, sender.link.data.take()) {
    EXPECT_EQ(sender.link.data.peek().sequence, i);
    EXPECT_GE(sender.link.data.peek().at, last);
    last = sender.link.data.peek().at;
  }
  EXPECT_EQ(sender.transmitter.counters.cells, 2u);
}

TEST(CellTransmitter, SaysWhetherItSentInAWindow) {
  Sender sender(config_of());
  sender.data(0, 256, 0);
  sender.transmitter.publish();
  EXPECT_FALSE(sender.transmitter.sent_in_window());
  sender.drain(1_us);
  sender.transmitter.publish();
  EXPECT_TRUE(sender.transmitter.sent_in_window());
  sender.transmitter.publish();
  EXPECT_FALSE(sender.transmitter.sent_in_window());
}

TEST(CellReceiver, GathersAWindowAndMarksWhatWasLost) {
  Sender sender(config_of());
  for (std::uint32_t i = 0; i < 10; ++i) sender.data(i, 256, 0), sender.control(i, 0);
  sender.drain(1_us);
  sender.transmitter.publish();
  // Down from before the fourth cell's last bit to the end. Ten control cells went first.
  const TimePs first_data = 10 * 640 + delay;
  const std::vector<FaultConfig> faults{{.at = first_data + 4 * 5'440 - 1, .kind = FaultKind::down}};
  CellReceiver receiver(&sender.link, LinkFate(faults, 0, {rate, delay}, Rng(1), Rng(2)), header, control_bytes);
  ArrivalOrder order;
  order.begin(0, first_data + 6 * 5'440);
  receiver.gather(order, first_data + 6 * 5'440);  // the sixth cell arrives at this instant: not in this window
  order.sort();
  ASSERT_EQ(order.size(), 15u);
  for (std::uint32_t i = 0; i < 10; ++i) EXPECT_TRUE(CellReceiver::is_control(order.item(i)));
  for (std::uint32_t i = 10; i < 15; ++i) {
    ASSERT_FALSE(CellReceiver::is_control(order.item(i)));
    const Cell& cell = CellReceiver::cell(order.item(i));
    EXPECT_EQ(cell.sequence, i - 10);
    EXPECT_EQ((cell.flags & cell_lost) != 0, i - 10 >= 3);
  }
  EXPECT_EQ(receiver.cells_lost, 2u);
  EXPECT_EQ(receiver.control_lost, 0u);
  EXPECT_EQ(receiver.earliest(), first_data + 6 * 5'440);
  receiver.retire();
}

}  // namespace
}  // namespace weft::cells
