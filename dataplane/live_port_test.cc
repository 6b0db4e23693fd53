// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/live_port.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "dataplane/host_port.h"
#include "dataplane/pfc_accounting.h"
#include "dataplane/testing/eal_environment.h"
#include "dataplane/testing/frame_builder.h"

namespace weft {
namespace {

using testing::Packet;

constexpr std::uint32_t mtu = 1'514;

/// A port on a device whose end is its beginning (net_ring): what it sends, it receives.
struct Looped {
  explicit Looped(std::uint64_t queue_bytes = 1 << 20, PfcAbility pfc = PfcAbility::automatic) {
    static int number = 0;
    config.port = 5;
    config.device = "net_ring" + std::to_string(number++);
    config.queue_bytes = queue_bytes;
    config.pfc = pfc;
    pool = std::make_unique<FramePool>("live" + std::to_string(number), 4'096, mtu + 8);
    device = std::make_unique<EthDevice>(config, "leaf0:p5", *pool, mtu);
    port = std::make_unique<LivePort>(config, "leaf0:p5", *device, ClassesConfig{}, 1);
    for (auto& source : port->make_sources()) host.add_source(std::move(source), pool.get());
  }
  /// As if the peer had sent it.
  void receive(const testing::Bytes& bytes) {
    Frame* frame = pool->take(static_cast<std::uint32_t>(bytes.size()));
    std::copy(bytes.begin(), bytes.end(), bytes_of(frame));
    port->transmit(frame);
    port->flush();
  }
  bool arrive(TimePs until) {
    return port->arrive(
        until,
        [&](Frame* frame, DropReason why) {
          EXPECT_EQ(why, DropReason::host_queue);
          ++dropped;
          free_frame(frame);
        },
        [&](Frame* frame) {
          ++ignored;
          free_frame(frame);
        });
  }
  PortConfig config;
  std::unique_ptr<FramePool> pool;
  std::unique_ptr<EthDevice> device;
  std::unique_ptr<LivePort> port;
  HostPort host{5, {Rate{10'000'000'000}, 1_us}, ClassesConfig{}, 200_ns};
  int dropped = 0, ignored = 0;
};

testing::Bytes in_class_3(std::uint32_t payload = 400) {
  return Packet("RoCE, DSCP 26").eth(2, 1).ipv4(1, 2, 26 << 2).udp(3, 4791).payload(payload).build();
}
testing::Bytes in_class_0() { return Packet("plain UDP").eth(2, 1).ipv4(1, 2).udp(3, 4).payload(400).build(); }
testing::Bytes pause_3() {
  const auto bytes = build_pfc({2, 0, 0, 0, 0, 9}, pfc_for(1 << 3, true));
  return {bytes.begin(), bytes.end()};
}

class LivePortTest : public ::testing::Test {
 protected:
  void SetUp() override { testing::test_eal(); }
};

TEST_F(LivePortTest, AFrameIsReadyWhenItIsPolledAndNoSooner) {
  Looped loop;
  loop.receive(in_class_3());
  EXPECT_EQ(loop.port->earliest(), never);
  loop.port->poll(7_us);
  EXPECT_EQ(loop.port->earliest(), 7_us);
  EXPECT_FALSE(loop.arrive(7_us)) << "the window before";
  EXPECT_TRUE(loop.arrive(8_us));
  loop.host.source_filled(7_us);
  const Frame* frame = loop.host.take();
  EXPECT_EQ(frame->born, 7_us);
  EXPECT_EQ(frame->traffic_class, 3);
  EXPECT_EQ(frame->in_port, 5u);
  EXPECT_EQ(loop.host.next_admission(), never);
}

TEST_F(LivePortTest, ABurstIsSpacedOutByTheLink) {
  Looped loop;
  for (int i = 0; i < 3; ++i) loop.receive(in_class_0());
  loop.port->poll(1_us);
  loop.arrive(2_us);
  loop.host.source_filled(1_us);
  TimePs before = 0;
  for (int i = 0; i < 3; ++i) {
    const Frame* frame = loop.host.take();
    ASSERT_NE(frame, nullptr);
    if (i > 0) {
      EXPECT_EQ(frame->born - before, (frame->length + ethernet_overhead_bytes) * 800u);  // 10G: 0.8 ns a byte
    }
    before = frame->born;
  }
}

TEST_F(LivePortTest, AQueueIsBoundedForEachClass) {
  Looped loop(64 << 10, PfcAbility::none);
  const auto bytes = in_class_3(1'000);
  const int fit = (64 << 10) / static_cast<int>(bytes.size());
  for (int i = 0; i < fit + 10; ++i) {
    loop.receive(bytes);
    loop.port->poll(1_us);
  }
  loop.receive(in_class_0());
  loop.port->poll(1_us);
  loop.arrive(2_us);
  EXPECT_EQ(loop.dropped, 10);
  EXPECT_EQ(loop.port->result().waiting, static_cast<std::uint64_t>(fit) + 1);
  EXPECT_EQ(loop.port->result().rx_frames, static_cast<std::uint64_t>(fit) + 11);
}

TEST_F(LivePortTest, AnEmulatorThatIsLateLeavesFramesInTheDevice) {
  Looped loop;
  const auto bytes = in_class_0();
  for (std::uint32_t taken = 0; taken < LivePort::most_ahead + 512; taken += 16) {
    for (int i = 0; i < 16; ++i) loop.receive(bytes);
    loop.port->poll(1_us);
  }
  EXPECT_LE(loop.port->result().rx_frames, LivePort::most_ahead);
  EXPECT_GT(loop.port->result().rx_frames, LivePort::most_ahead - 2 * LivePort::burst);
  loop.arrive(2_us);
  for (int i = 0; i < 64; ++i) loop.port->poll(3_us);
  EXPECT_EQ(loop.port->result().rx_frames, LivePort::most_ahead + 512u) << "they are had once there is room";
}

TEST_F(LivePortTest, AFullLosslessQueueSendsRealPauseFrames) {
  Looped loop(64 << 10);
  const auto bytes = in_class_3(1'400);
  for (int i = 0; i < 40; ++i) loop.receive(bytes);
  for (int i = 0; i < 2; ++i) loop.port->poll(1_us);  // a burst is 32
  loop.arrive(2_us);
  EXPECT_EQ(loop.port->result().pfc_sent, 0u) << "what has just come in is judged at the next poll";
  loop.port->poll(2_us);
  EXPECT_EQ(loop.port->result().pfc_sent, 1u);
  loop.port->poll(3_us);
  EXPECT_EQ(loop.port->result().pfc_sent, 1u) << "said once, until it has to be said again";
  loop.port->poll(10_ms);  // 65,535 quanta of the device's 10G are 3.4 ms
  EXPECT_EQ(loop.port->result().pfc_sent, 2u);
  loop.host.source_filled(2_us);
  for (int i = 0; i < 35; ++i) free_frame(loop.host.take());
  loop.port->poll(11_ms);
  EXPECT_EQ(loop.port->result().pfc_sent, 3u) << "XON";
}

TEST_F(LivePortTest, PauseFramesOvertakeWhatWaits) {
  Looped loop;
  for (int i = 0; i < 5; ++i) loop.receive(in_class_0());
  loop.receive(pause_3());
  loop.port->poll(1_us);
  loop.arrive(2_us);
  loop.host.source_filled(1_us);
  const Frame* first = loop.host.take();
  EXPECT_EQ(bytes_of(first)[12], 0x88);
  EXPECT_EQ(first->born, 1_us);
  EXPECT_EQ(loop.port->result().pfc_received, 1u);

  Looped deaf(1 << 20, PfcAbility::send);
  deaf.receive(pause_3());
  deaf.port->poll(1_us);
  EXPECT_FALSE(deaf.arrive(2_us));
  EXPECT_EQ(deaf.ignored, 1);
}

TEST_F(LivePortTest, AFrameLongerThanTheMtuIsNotANetworksLoss) {
  Looped loop;
  const std::uint32_t all = loop.pool->available();
  Frame* frame = loop.pool->take(mtu + 8);
  mbuf_of(frame)->pkt_len = mtu + 9;
  loop.port->transmit(frame);
  loop.port->flush();
  loop.port->poll(1_us);
  EXPECT_EQ(loop.port->earliest(), never);
  EXPECT_EQ(loop.port->result().lost[static_cast<std::size_t>(PortLoss::rx_oversize)], 1u);
  EXPECT_EQ(loop.pool->available(), all) << "its memory is back";
}

}  // namespace
}  // namespace weft
