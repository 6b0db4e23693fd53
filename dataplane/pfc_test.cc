// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/pfc.h"

#include <gtest/gtest.h>

#include "dataplane/addresses.h"
#include "dataplane/pfc_accounting.h"
#include "dataplane/rng.h"
#include "dataplane/testing/frame_builder.h"

namespace weft {
namespace {

using testing::Bytes;
using Kind = MacControl::Kind;

constexpr Rate gbit(std::uint64_t n) { return Rate{n * 1'000'000'000}; }

TEST(Pfc, BytesOnTheWire) {  // CASES C16: SA = port MAC, DA 01:80:c2:00:00:01, 60 bytes, reserved byte 0
  const auto frame = build_pfc(to_mac(host_mac(3)), pfc_for(1 << 3 | 1 << 4, true));
  const Bytes head{0x01, 0x80, 0xc2, 0,    0, 1, 2, 0, 0, 0, 0,    3,    0x88, 0x08,
                   1,    1,    0,    0x18, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff};
  EXPECT_TRUE(std::equal(head.begin(), head.end(), frame.begin()));
  EXPECT_TRUE(std::all_of(frame.begin() + head.size(), frame.end(), [](std::uint8_t b) { return b == 0; }));
  const MacControl back = parse_mac_control(frame);
  EXPECT_EQ(back.kind, Kind::pfc);
  EXPECT_EQ(back.pfc.enabled, 0x18);
  EXPECT_EQ(back.pfc.quanta[3], max_quanta);
  EXPECT_EQ(back.pfc.quanta[2], 0);
}

TEST(Pfc, PublicMacControlFrames) {  // CASES B15, C15, C16
  const std::string folder = testing::public_captures();
  if (folder.empty()) GTEST_SKIP() << "no public captures here";
  const std::vector<Bytes> frames = testing::read_capture(folder + "/synth__pfc_and_pause.pcap");
  ASSERT_EQ(frames.size(), 20u);
  const auto pfc = [&](std::size_t number, std::uint8_t enabled, std::uint16_t quanta_of_first) {
    const MacControl c = parse_mac_control(frames[number - 1]);
    EXPECT_EQ(c.kind, Kind::pfc) << number;
    EXPECT_EQ(c.pfc.enabled, enabled) << number;
    for (std::uint32_t i = 0; i < 8; ++i)
      if (enabled >> i & 1) {
        EXPECT_EQ(c.pfc.quanta[i], quanta_of_first) << number;
        break;
      }
  };
  pfc(1, 0x08, 0xffff);
  pfc(2, 0x08, 0);  // enabled with quanta 0: a resume, not malformed
  pfc(3, 0x18, 0xffff);
  EXPECT_EQ(parse_mac_control(frames[2]).pfc.quanta[4], 0x1fff);
  pfc(4, 0x10, 0);
  pfc(5, 0xff, 0xffff);
  pfc(6, 0xff, 0);
  pfc(7, 0x00, 0);  // nothing enabled
  pfc(8, 0x08, 1);
  pfc(9, 0x08, 0xffff);  // source address zero: honoured
  EXPECT_EQ(load_mac(frames[8].data() + 6), 0u);
  EXPECT_EQ(parse_mac_control(frames[9]).kind, Kind::pfc);
  EXPECT_NE(frames[9][16], 0) << "frame 10 has a reserved byte that is not zero, and is read all the same";
  pfc(11, 0x01, 0xffff);
  EXPECT_EQ(parse_mac_control(frames[11]).kind, Kind::other) << "unicast destination";
  EXPECT_EQ(parse_mac_control(frames[12]).kind, Kind::none) << "tagged";
  EXPECT_EQ(frames[13].size(), 34u);
  EXPECT_EQ(parse_mac_control(frames[13]).kind, Kind::pfc) << "unpadded";
  EXPECT_EQ(parse_mac_control(frames[14]).kind, Kind::malformed) << "24 bytes";
  EXPECT_EQ(parse_mac_control(frames[15]).kind, Kind::malformed) << "16 bytes";
  EXPECT_EQ(parse_mac_control(frames[16]).kind, Kind::pause);
  EXPECT_EQ(parse_mac_control(frames[16]).quanta, 0xffff);
  EXPECT_EQ(parse_mac_control(frames[17]).kind, Kind::pause);
  EXPECT_EQ(parse_mac_control(frames[17]).quanta, 0);
  EXPECT_EQ(parse_mac_control(frames[18]).kind, Kind::other) << "EPON gate";
  EXPECT_EQ(parse_mac_control(frames[19]).kind, Kind::malformed) << "15 bytes";
}

TEST(Pfc, QuantaAreTime) {
  EXPECT_EQ(pause_time(1, gbit(400)), 1280u);                 // 512 bits at 2.5 ps
  EXPECT_EQ(pause_time(max_quanta, gbit(40)), 838'848'000u);  // FACTS: 838.84 us
  EXPECT_EQ(pause_time(0, gbit(40)), 0u);
  EXPECT_EQ(pause_time(1, Rate{3}), 170'666'666'666'667u) << "rounded up";
}

TEST(Pfc, PauseRunsOutOrIsEnded) {
  const ClassesConfig classes;
  PauseState state(gbit(400), classes.lossless);
  PfcFrame xoff;
  xoff.enabled = 0x08;
  xoff.quanta[3] = 100;
  EXPECT_EQ(state.receive(xoff, 1_us), 0x08);
  const TimePs end = 1_us + 100 * 1280;
  EXPECT_FALSE(state.paused(4, 1_us));
  EXPECT_TRUE(state.paused(3, end - 1));
  EXPECT_FALSE(state.paused(3, end));
  EXPECT_EQ(state.next_change(1_us), end);
  EXPECT_EQ(state.next_change(end), never);
  EXPECT_EQ(state.paused_total(3, end + 1_s), end - 1_us);

  state.receive(xoff, 2_us);
  EXPECT_EQ(state.receive(xoff, 2_us + 50 * 1280), 0x08) << "a refresh moves the end";
  EXPECT_EQ(state.paused_until(3), 2_us + 150 * 1280);
  EXPECT_EQ(state.receive(pfc_for(0x08, false), 2_us + 60 * 1280), 0x08);
  EXPECT_FALSE(state.paused(3, 2_us + 60 * 1280));
  EXPECT_EQ(state.paused_total(3, 1_s), 160 * 1280u);
  EXPECT_EQ(state.receive(pfc_for(0x08, false), 1_s), 0) << "a resume of what is not paused";
  EXPECT_EQ(state.received(3), 5u);
}

TEST(Pfc, LossyClassesAreNotPaused) {  // CASES C17
  PauseState state(gbit(100), ClassesConfig{}.lossless);
  EXPECT_EQ(state.receive(pfc_for(0xff, true), 0), 0x18);
  EXPECT_EQ(state.paused_classes(1), 0x18);
  EXPECT_EQ(state.received(0), 1u);
}

TEST(Pfc, HeadroomAsPublished) {  // FACTS.md: MTU 9100, lossless MTU 1024, no small packets
  const auto at = [](std::uint64_t gigabits, double metres) {
    PublishedHeadroom in;
    in.rate = gbit(gigabits);
    in.cable_m = metres;
    return published_headroom_bytes(in);
  };
  EXPECT_EQ(at(100, 40), 40'960u);
  EXPECT_EQ(at(400, 40), 88'064u);
  EXPECT_EQ(at(400, 100), 117'760u);
  EXPECT_EQ(at(800, 100), 166'912u);
}

TEST(Pfc, HeadroomOfTheModel) {
  // 400G: 50 bytes a ns. 2 x 50 ns delay 5000, reaction 100 ns 5000, pipeline 200 ns 10000, 2 x 1524, 84.
  EXPECT_EQ(headroom_bytes(gbit(400), 50_ns, 1500, 100_ns, 200_ns), 5000u + 5000 + 10000 + 3048 + 84);
  EXPECT_EQ(default_reaction_time(gbit(400)), 905u * 1280);
  EXPECT_EQ(default_reaction_time(gbit(100)), 394u * 5120);
  EXPECT_EQ(peer_response_quanta(gbit(1)), 67u);
  EXPECT_EQ(peer_response_quanta(gbit(75)), 394u) << "between two entries: the higher";
  EXPECT_EQ(peer_response_quanta(gbit(800)), 905u);
}

TEST(PfcAccounting, XoffHeadroomXon) {
  using Admit = PfcAccounting::Admit;
  using Release = PfcAccounting::Release;
  PfcAccounting a(2);
  a.set_port(1, {10'000, 4000, 3000}, gbit(400));
  EXPECT_EQ(a.admit(1, 3, 10'000, 0), Admit::ok) << "at the threshold, not above";
  EXPECT_EQ(a.next_refresh(), never);
  EXPECT_EQ(a.admit(1, 3, 1000, 5), Admit::ok_send_xoff);
  EXPECT_EQ(a.admit(1, 3, 3000, 6), Admit::ok) << "said once; headroom counts from where XOFF was decided";
  EXPECT_EQ(a.admit(1, 3, 1, 7), Admit::over_headroom);
  EXPECT_EQ(a.bytes(1, 3), 14'000u);
  EXPECT_EQ(a.headroom_max_bytes(), 3000u);
  EXPECT_EQ(a.admit(1, 4, 10'000, 8), Admit::ok) << "classes are apart";
  EXPECT_EQ(a.paused_ports(), 1u);

  const TimePs half = pause_time(max_quanta, gbit(400)) / 2;
  EXPECT_EQ(a.next_refresh(), 5 + half);
  int said = 0;
  a.refresh(4 + half, [&](auto, auto) { ++said; });
  EXPECT_EQ(said, 0);
  a.refresh(5 + half, [&](std::uint32_t port, std::uint8_t classes) {
    ++said;
    EXPECT_EQ(port, 1u);
    EXPECT_EQ(classes, 0x08);
  });
  EXPECT_EQ(said, 1);
  EXPECT_EQ(a.next_refresh(), 5 + 2 * half);

  EXPECT_EQ(a.release(1, 3, 9999), Release::nothing);
  EXPECT_EQ(a.release(1, 3, 1), Release::send_xon);
  EXPECT_EQ(a.release(1, 3, 4000), Release::nothing) << "said once";
  EXPECT_EQ(a.next_refresh(), never);
  EXPECT_THROW(a.set_port(0, {1, 2, 3}, gbit(1)), std::invalid_argument);
  EXPECT_DEATH(a.release(1, 3, 1), "more bytes released");
}

TEST(PfcAccounting, NoHeadroomLosesButStillPauses) {  // CASES C19
  using Admit = PfcAccounting::Admit;
  PfcAccounting a(1);
  a.set_port(0, {10'000, 5000, 0}, gbit(100));
  EXPECT_EQ(a.admit(0, 3, 9000, 0), Admit::ok);
  EXPECT_EQ(a.admit(0, 3, 1500, 0), Admit::ok_send_xoff);
  EXPECT_EQ(a.admit(0, 3, 1500, 0), Admit::over_headroom);
  EXPECT_EQ(a.bytes(0, 3), 10'500u);
  EXPECT_EQ(a.release(0, 3, 5500), PfcAccounting::Release::send_xon);
  // Even thresholds of zero can't leave a host paused for good: the frame that paused it also ends the pause.
  PfcAccounting none(1);
  none.set_port(0, {0, 0, 0}, gbit(100));
  EXPECT_EQ(none.admit(0, 3, 100, 0), Admit::ok_send_xoff);
  EXPECT_EQ(none.release(0, 3, 100), PfcAccounting::Release::send_xon);
}

TEST(PfcAccounting, NoLossWithTheModelsHeadroom) {
  // One host at line rate into a switch that serves nothing until long after XOFF. Bytes in flight are those the
  // formula counts: whatever the frame lengths, the headroom must hold them. Time is counted in bytes of the wire,
  // 400G.
  Rng random = stream(8, 0, 0);
  for (int round = 0; round < 500; ++round) {
    const Rate rate = gbit(400);
    const TimePs delay = random.below(2000) * 1000, reaction = random.below(2000) * 1000,
                 pipeline = random.below(500) * 1000;
    constexpr std::uint32_t mtu = 9216;
    PfcAccounting a(1);
    a.set_port(0, {100'000, 50'000, headroom_bytes(rate, delay, mtu, reaction, pipeline)}, rate);
    WireClock host(rate);
    TimePs sends = 0, stop = never;
    while (sends < stop) {
      // A frame that may start does: last bit, propagation, pipeline, then it is counted.
      const auto length = static_cast<std::uint32_t>(60 + random.below(mtu - 59));
      sends += host.take(length + ethernet_overhead_bytes);
      const TimePs counted = sends + delay + pipeline;
      const auto outcome = a.admit(0, 3, length, counted);
      ASSERT_NE(outcome, PfcAccounting::Admit::over_headroom) << round;
      if (outcome == PfcAccounting::Admit::ok_send_xoff)  // behind a longest frame on the reverse link
        stop = counted + WireClock(rate).time_of(mtu + 24 + pfc_frame_bytes + 24) + delay + reaction;
    }
    EXPECT_GT(a.headroom_max_bytes(), 0u);
  }
}

}  // namespace
}  // namespace weft
