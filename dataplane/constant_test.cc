// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/constant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pcap/pcap.h>

#include <cmath>
#include <map>
#include <set>

#include "dataplane/addresses.h"
#include "dataplane/checksum.h"
#include "dataplane/classify.h"
#include "dataplane/parse.h"
#include "dataplane/testing/frame_builder.h"

namespace weft {
namespace {

using testing::Bytes;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Topology fabric(std::uint32_t leaves, std::uint32_t hosts, Rate rate = Rate{400'000'000'000}) {
  Topology t;
  t.leaves = leaves, t.spines = 1, t.hosts_per_leaf = hosts;
  t.host_links.assign(leaves * hosts, {rate, 50_ns});
  return t;
}

std::vector<PlacedSource> sources(const ConstantConfig& config, const Topology& topology, std::uint64_t seed = 1,
                                  const ForwardingConfig& forwarding = {}) {
  return make_constant_sources({&config, 1}, topology, forwarding, ClassesConfig{}, seed);
}

ConstantConfig one(std::uint32_t from, std::uint32_t to, double load = 0.5,
                   std::vector<std::uint32_t> frames = {1500}) {
  ConstantConfig config;
  config.pattern = Pattern::one;
  config.from = from, config.to = to, config.load = load;
  config.frames = std::move(frames);
  return config;
}

Bytes next_frame(FrameSource& source) {
  Bytes b(std::max(source.next_length, ConstantSource::header_bytes));
  const std::uint32_t length = source.next_length;
  static_cast<ConstantSource&>(source).write(b.data());
  b.resize(length);
  return b;
}

TEST(Constant, FramesAreRight) {
  const Topology t = fabric(2, 4);
  std::vector<std::uint32_t> lengths;
  for (std::uint32_t length = 60; length <= 9216; length = length < 80 ? length + 1 : length + 211)
    lengths.push_back(length);
  for (const Pattern pattern : {Pattern::one, Pattern::all_to_all}) {
    ConstantConfig config = one(1, 6, 0.5, lengths);
    config.pattern = pattern;
    auto placed = sources(config, t);
    for (std::size_t i = 0; i < 3 * lengths.size(); ++i) {
      const Bytes b = next_frame(*placed[pattern == Pattern::one ? 0 : 1].source);
      ASSERT_EQ(b.size(), lengths[i % lengths.size()]);
      const ParsedHeaders h = parse(b);
      EXPECT_EQ(h.dscp, 26);
      EXPECT_EQ(h.ecn, 2);
      EXPECT_TRUE(h.has_qp);
      EXPECT_EQ(load_mac(b.data() + 6), host_mac(1));
      const auto to = static_cast<std::uint32_t>(load_mac(b.data()) - first_host_mac);
      EXPECT_EQ(to, pattern == Pattern::one ? 6 : (2 + i % 7) % 8);
      EXPECT_EQ(load_be32(&b[26]), host_ipv4(1));
      EXPECT_EQ(load_be32(&b[30]), host_ipv4(to));
      EXPECT_EQ(ones_sum(&b[14], 20), 0xffff);
      EXPECT_EQ(load_be16(&b[38]), load_be16(&b[16]) - 20);
      EXPECT_LT(b.size() - 14 - load_be16(&b[16]), 4u) << "padding, for a multiple of four";
      EXPECT_EQ(load_be32(&b[50]), pattern == Pattern::one ? i : i / 7) << "PSN";
      EXPECT_TRUE(testing::icrc_is_right(b, 14)) << b.size();
      EXPECT_EQ(classify_bytes(b, ClassesConfig{}), 3);
    }
  }
}

TEST(Constant, OtherPortsArePlainUdp) {
  ConstantConfig config = one(0, 5, 0.5, {60, 61, 1514});
  config.udp_source = 1234, config.udp_destination = 9, config.ect = false, config.traffic_class = 0;
  const auto placed = sources(config, fabric(2, 4));
  for (const std::uint32_t length : config.frames) {
    const Bytes b = next_frame(*placed[0].source);
    const ParsedHeaders h = parse(b);
    EXPECT_EQ(load_be16(&b[16]), length - 14) << "no padding";
    EXPECT_EQ(h.source_port, 1234);
    EXPECT_EQ(h.destination_port, 9);
    EXPECT_EQ(h.ecn, 0);
    EXPECT_TRUE(std::all_of(b.begin() + 42, b.end(), [](std::uint8_t byte) { return byte == 0; }));
  }
}

TEST(Constant, RouteModeSendsToTheRouter) {
  ForwardingConfig routed;
  routed.mode = ForwardingMode::route;
  EXPECT_EQ(load_mac(next_frame(*sources(one(0, 5), fabric(2, 4), 1, routed)[0].source).data()), 0x0277'6566'7400u);
}

TEST(Constant, FixedGapsNeverDrift) {
  // 1500 + 24 bytes at 400G x 0.95: 32084.2105... ps, which no whole number of picoseconds carries.
  const auto placed = sources(one(0, 5, 0.95, {1500, 60}), fabric(2, 4));
  FrameSource& source = *placed[0].source;
  const TimePs phase = source.ready;
  EXPECT_LT(phase, 32'085u);
  Bytes b(9216);
  std::uint64_t bytes = 0;
  for (std::uint64_t n = 0; n < 100'000; ++n) {
    const auto exact =
        static_cast<TimePs>(static_cast<Uint128>(bytes) * 8'000'000 * 100 / (400'000 * std::uint64_t{95}));
    ASSERT_EQ(source.ready, phase + exact) << n;
    bytes += source.next_length + 24;
    static_cast<ConstantSource&>(source).write(b.data());
  }
}

TEST(Constant, OddRatesAndLoads) {
  const auto placed = sources(one(0, 1, 0.123'456'789, {777}), fabric(1, 2, Rate{99'999'999'977}));
  FrameSource& source = *placed[0].source;
  const TimePs phase = source.ready;
  Bytes b(9216);
  for (int n = 0; n < 10'000; ++n) static_cast<ConstantSource&>(source).write(b.data());
  const long double exact = 801.0L * 8e12L / (99'999'999'977.0L * 0.123'456'789L) * 10'000;
  EXPECT_NEAR(static_cast<double>(source.ready - phase), static_cast<double>(exact), 1.0);
}

TEST(Constant, PoissonKeepsTheRate) {
  ConstantConfig config = one(0, 5, 0.5);
  config.poisson = true;
  const auto placed = sources(config, fabric(2, 4));
  FrameSource& source = *placed[0].source;
  constexpr int frames = 200'000;
  constexpr double mean = 1524 * 8 / 400e9 / 0.5 * 1e12;
  Bytes b(9216);
  double squares = 0;
  const TimePs first = source.ready;
  for (int n = 0; n < frames; ++n) {
    const TimePs before = source.ready;
    static_cast<ConstantSource&>(source).write(b.data());
    const double gap = static_cast<double>(source.ready - before) / mean;
    squares += gap * gap;
  }
  // Five standard deviations of a mean of exponentials, and of their squares.
  EXPECT_NEAR(static_cast<double>(source.ready - first) / mean / frames, 1, 5 / std::sqrt(frames));
  EXPECT_NEAR(squares / frames, 2, 5 * std::sqrt(20.0 / frames));
}

TEST(Constant, StartStopAndPhase) {
  ConstantConfig config = one(0, 5, 1.0);
  config.pattern = Pattern::permutation;
  config.start = 10_us, config.stop = 11_us;
  const auto placed = sources(config, fabric(2, 8));
  std::set<TimePs> phases;
  Bytes b(9216);
  for (const PlacedSource& p : placed) {
    phases.insert(p.source->ready);
    EXPECT_GE(p.source->ready, 10_us);
    EXPECT_LT(p.source->ready, 10_us + 30'480) << "within a gap of the start";
    std::uint64_t frames = 0;
    for (; p.source->ready != never; ++frames) {
      EXPECT_LT(p.source->ready, 11_us);
      static_cast<ConstantSource&>(*p.source).write(b.data());
    }
    EXPECT_NEAR(static_cast<double>(frames), 1e6 / 30'480, 1);
  }
  EXPECT_GT(phases.size(), 14u) << "hosts are not in lockstep";
}

TEST(Constant, PermutationCrossesLeavesOnce) {
  for (const auto& [leaves, hosts] : {std::pair{2u, 1u}, {2u, 8u}, {3u, 5u}, {8u, 8u}, {16u, 64u}})
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      const Topology t = fabric(leaves, hosts);
      const std::vector<std::uint32_t> to = make_permutation(t, stream(seed, 0, 0));
      EXPECT_EQ(std::set<std::uint32_t>(to.begin(), to.end()).size(), to.size());
      for (std::uint32_t host = 0; host < to.size(); ++host) EXPECT_NE(t.leaf_of(host), t.leaf_of(to[host]));
    }
  const Topology t = fabric(8, 8);
  EXPECT_NE(make_permutation(t, stream(1, 0, 0)), make_permutation(t, stream(2, 0, 0)));
  EXPECT_EQ(make_permutation(t, stream(1, 0, 0)), make_permutation(t, stream(1, 0, 0)));
}

TEST(Constant, PermutationIsMixed) {
  // Over many seeds each of the 24 hosts on other leaves is host 0's receiver equally often: chi-square with 23 degrees
  // of freedom is above 60 less than once in 30,000; the seeds are fixed, so the outcome is too.
  const Topology t = fabric(4, 8);
  std::map<std::uint32_t, int> seen;
  constexpr int draws = 2400;
  for (std::uint64_t seed = 0; seed < draws; ++seed) ++seen[make_permutation(t, stream(seed, 0, 0))[0]];
  EXPECT_EQ(seen.size(), 24u);
  double chi = 0;
  for (const auto& [host, n] : seen) chi += (n - 100.0) * (n - 100.0) / 100;
  EXPECT_LT(chi, 60);
}

TEST(Constant, PatternsAndEntries) {
  ConstantConfig incast;
  incast.pattern = Pattern::incast;
  incast.receiver = 2;
  const auto all = sources(incast, fabric(2, 4));
  EXPECT_EQ(all.size(), 7u);
  incast.senders = {7, 0};
  const std::vector<ConstantConfig> entries{incast, one(0, 5)};
  const auto placed = make_constant_sources(entries, fabric(2, 4), {}, ClassesConfig{}, 1);
  ASSERT_EQ(placed.size(), 3u);
  EXPECT_EQ(placed[0].port, 0u);
  EXPECT_EQ(placed[1].port, 7u);
  EXPECT_EQ(placed[2].port, 0u) << "a second stream of host 0";
  EXPECT_EQ(load_mac(next_frame(*placed[1].source).data()), host_mac(2));
  EXPECT_NE(parse(next_frame(*placed[0].source)).destination_qp, parse(next_frame(*placed[2].source)).destination_qp);
}

TEST(Constant, ErrorsNameTheEntryAndTheKey) {
  const Topology t = fabric(2, 4);
  const auto wrong = [&](auto change, const Topology& topology, const char* message) {
    ConstantConfig config = one(0, 5);
    change(config);
    EXPECT_THAT([&] { sources(config, topology); }, ThrowsMessage<std::invalid_argument>(HasSubstr(message)));
  };
  wrong([](auto& c) { c.load = 0; }, t, "constant traffic 1: load");
  wrong([](auto& c) { c.load = 1.01; }, t, "load");
  wrong([](auto& c) { c.load = std::nan(""); }, t, "load");
  wrong([](auto& c) { c.frames = {59}; }, t, "frame 59");
  wrong([](auto& c) { c.frames = {9217}; }, t, "60 to 9216");
  wrong([](auto& c) { c.frames = {}; }, t, "frame");
  wrong([](auto& c) { c.to = 8; }, t, "to 8: host ports are 0 to 7");
  wrong([](auto& c) { c.to = 0; }, t, "same port");
  wrong([](auto& c) { c.traffic_class = 8; }, t, "class 8");
  wrong([](auto& c) { c.pattern = Pattern::permutation; }, fabric(1, 4), "one leaf");
  wrong([](auto& c) { c.pattern = Pattern::incast, c.receiver = 9; }, t, "receiver 9");
  wrong([](auto& c) { c.pattern = Pattern::incast, c.senders = {0}; }, t, "is the receiver");
  wrong([](auto& c) { c.pattern = Pattern::incast, c.senders = {1, 1}; }, t, "named twice");
  wrong([](auto& c) { c.pattern = Pattern::all_to_all; }, fabric(1, 1), "one host");
}

TEST(Constant, WritesACaptureForOtherTools) {
  // With WEFT_TEST_CAPTURE=FILE: frames to look at in Wireshark, and for tools/icrc.py.
  const char* path = std::getenv("WEFT_TEST_CAPTURE");
  if (path == nullptr) GTEST_SKIP() << "WEFT_TEST_CAPTURE is not set";
  pcap_t* dead = pcap_open_dead(DLT_EN10MB, 65535);
  pcap_dumper_t* out = pcap_dump_open(dead, path);
  ASSERT_NE(out, nullptr);
  const auto placed = sources(one(1, 6, 0.5, {60, 61, 62, 64, 566, 1500, 1514, 9216}), fabric(2, 4));
  for (int i = 0; i < 16; ++i) {
    pcap_pkthdr header{};
    header.ts.tv_usec = i;
    const Bytes b = next_frame(*placed[0].source);
    header.caplen = header.len = static_cast<bpf_u_int32>(b.size());
    pcap_dump(reinterpret_cast<std::uint8_t*>(out), &header, b.data());
  }
  pcap_dump_close(out);
  pcap_close(dead);
}

TEST(Addresses, TextAndBack) {
  EXPECT_EQ(to_string(parse_mac("02:77:65:66:74:00")), "02:77:65:66:74:00");
  EXPECT_EQ(to_number(parse_mac("02-aB-65-66-74-00")), 0x02ab'6566'7400u);
  for (const char* text : {"", "02:77:65:66:74", "02:77:65:66:74:0g", "02:77:65:66:74:000", "0277:65:66:74:00 "})
    EXPECT_THROW(parse_mac(text), std::invalid_argument) << text;
  EXPECT_EQ(to_string(to_mac(host_mac(0x1234))), "02:00:00:00:12:34");
  EXPECT_EQ(host_ipv4(0), 0xc612'0001u);
  EXPECT_EQ(modelled_hosts(fabric(2, 4)).at(7).port, 7u);
}

}  // namespace
}  // namespace weft
