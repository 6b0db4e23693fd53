// SPDX-License-Identifier: BSD-3-Clause
#include "tools/config.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tools/describe.h"
#include "tools/testing/random_config.h"

namespace weft {
namespace {

const ConstantConfig& constant_of(const Config& config, std::size_t i = 0) {
  return std::get<ConstantConfig>(config.traffic.at(i));
}
const ReplayConfig& replay_of(const Config& config, std::size_t i = 0) {
  return std::get<ReplayConfig>(config.traffic.at(i));
}

TEST(Config, AnEmptyFileGivesTheDefaults) {
  for (const char* text : {"", "# nothing\n", "{}", "voq:\ncells: {}\ntraffic: []\n"}) {
    const Config config = parse_config(text, "run.yaml");
    EXPECT_EQ(config.topology.leaves, 4u);
    EXPECT_EQ(config.topology.spines, 4u);
    EXPECT_EQ(config.topology.host_links.size(), 16u);
    EXPECT_EQ(config.topology.fabric_links.size(), 16u);
    EXPECT_EQ(config.topology.host_links[5], (LinkParams{Rate{400'000'000'000}, 50_ns}));
    EXPECT_EQ(config.topology.fabric_links[5].params, (LinkParams{Rate{400'000'000'000}, 250_ns}));
    EXPECT_EQ(config.voq, voq::VoqConfig{});
    EXPECT_EQ(config.scheduler, scheduler::SchedulerConfig{});
    EXPECT_EQ(config.cells, cells::CellConfig{});
    EXPECT_EQ(config.run, RunConfig{});
    EXPECT_EQ(config.forwarding, ForwardingConfig{});
    EXPECT_EQ(config.classes, ClassesConfig{});
    EXPECT_EQ(config.capture, CaptureConfig{});
    EXPECT_TRUE(config.traffic.empty());
  }
}

TEST(Config, EveryValueOfTheOutlineArrives) {
  const Config config = parse_config(R"(
fabric: voq
topology:
  leaves: 3
  spines: 2
  hosts_per_leaf: 2
  host_link:   {rate: 100G, delay: 25ns}
  fabric_link: {rate: 2.5Gb/s, delay: 1.5us, count: 2}
  links: [{at: leaf0-spine1, rate: 1G}, {at: leaf2-spine0.1, delay: 2us}, {at: leaf1:p1, rate: 50G, delay: 0ns}]
workers: 2
seed: 7
warmup: 1us
duration: 1ms
classes: {lossless: [2], dscp: {26: 2, 48: 7}, pcp: {0: 1}, strict: {5: 3}, weights: {2: 10}, ecn: [2, 3], pfc_reaction: 1us}
voq: {sram: 16MiB, deep: 0, request_bytes: 4KiB, alpha: 1/8, limit: 1MB, xoff: 30KiB, xon: 20KiB, headroom: 40KiB, deep_rate: 3.2T,
      ecn: {kmin: 400KB, kmax: 1600KB, pmax: 0.2, at: dequeue, not_ect: drop}, force_fabric: true}
scheduler: {credit_bytes: 4KiB, speedup: 1.1, egress_buffer: 128KiB, latency: 0ns}
cells: {payload: 240, header: 8, mark: 4KiB, hold_back: 32KiB}
traffic:
  - replay: {file: a.pcapng, speed: 0.5, loop: 3, ports: [{mac: "02:00:00:00:00:01", port: leaf2:p1}, {interface: eth0, port: 1}]}
  - constant: {pattern: incast, load: 0.25, frame: [64, 1500], class: 2, ect: false, gaps: poisson, receiver: leaf1:p0, senders: [0, leaf2:p1], stop: 5us}
  - constant: {pattern: one, frame: imix, from: 1, to: 2}
faults: [{at: 200us, link: leaf0-spine1.1, do: down}, {at: 3us, link: leaf0-spine0, loss: 1e-4}, {at: 4us, link: leaf1-spine0.0, rate: 10G}]
capture: {points: [hosts, drops], ports: [leaf0:p1], links: [leaf0-spine0.1], snaplen: 128}
)",
                                     "/configs/run.yaml");
  const Topology& t = config.topology;
  EXPECT_EQ(t.parallel_links, 2u);
  EXPECT_EQ(t.fabric_links.size(), 12u);
  // A pair's name stands for all of its parallel links.
  EXPECT_EQ(t.fabric_links[t.link_index(0, 1, 0)].params, (LinkParams{Rate{1'000'000'000}, 1'500_ns}));
  EXPECT_EQ(t.fabric_links[t.link_index(0, 1, 1)].params, (LinkParams{Rate{1'000'000'000}, 1'500_ns}));
  EXPECT_EQ(t.fabric_links[t.link_index(2, 0, 0)].params, (LinkParams{Rate{2'500'000'000}, 1'500_ns}));
  EXPECT_EQ(t.fabric_links[t.link_index(2, 0, 1)].params, (LinkParams{Rate{2'500'000'000}, 2_us}));
  EXPECT_EQ(t.host_links[3], (LinkParams{Rate{50'000'000'000}, 0}));
  EXPECT_EQ(config.run.workers, 2u);
  EXPECT_EQ(config.run.seed, 7u);
  EXPECT_EQ(config.run.duration, 1_ms);
  // Entries of a table change the default, the others stay; a list of classes replaces it.
  EXPECT_EQ(config.classes.dscp_to_class[26], 2);
  EXPECT_EQ(config.classes.dscp_to_class[48], 7);
  EXPECT_EQ(config.classes.dscp_to_class[46], 5);
  EXPECT_EQ(config.classes.strict_group[5], 3);
  EXPECT_EQ(config.classes.strict_group[7], 2);
  EXPECT_EQ(config.classes.weight[2], 10);
  EXPECT_TRUE(config.classes.lossless[2]);
  EXPECT_FALSE(config.classes.lossless[3]);
  EXPECT_EQ(config.classes.pfc_reaction, 1_us);
  EXPECT_EQ(config.voq.sram_bytes, 16u << 20);
  EXPECT_EQ(config.voq.deep_bytes, 0u);
  EXPECT_EQ(config.voq.alpha, 0.125);
  EXPECT_EQ(config.voq.voq_limit_bytes, 1'000'000u);
  EXPECT_EQ(config.voq.deep_rate.bits_per_s, 3'200'000'000'000u);
  EXPECT_EQ(config.voq.ecn, (EcnConfig{400'000, 1'600'000, 0.2, true, true}));
  EXPECT_TRUE(config.voq.force_fabric);
  EXPECT_EQ(config.scheduler, (scheduler::SchedulerConfig{4096, 1.1, 131'072, 0}));
  EXPECT_EQ(config.cells.hold_back_bytes, 32'768u);
  EXPECT_EQ(replay_of(config).file, "/configs/a.pcapng");
  EXPECT_EQ(replay_of(config).ports.size(), 2u);
  EXPECT_EQ(replay_of(config).ports[0].port, 5u);
  EXPECT_EQ(replay_of(config).ports[1].interface, "eth0");
  EXPECT_EQ(constant_of(config, 1).frames, (std::vector<std::uint32_t>{64, 1500}));
  EXPECT_EQ(constant_of(config, 1).senders, (std::vector<std::uint32_t>{0, 5}));
  EXPECT_EQ(constant_of(config, 1).stop, 5_us);
  EXPECT_TRUE(constant_of(config, 1).poisson);
  EXPECT_EQ(constant_of(config, 2).frames.size(), 12u);
  ASSERT_EQ(config.faults.size(), 4u);
  EXPECT_EQ(config.faults[0], (FaultConfig{200_us, t.link_index(0, 1, 1), FaultKind::down, 0, {}}));
  EXPECT_EQ(config.faults[2], (FaultConfig{3_us, t.link_index(0, 0, 1), FaultKind::data_loss, 1e-4, {}}));
  EXPECT_EQ(config.faults[3], (FaultConfig{4_us, t.link_index(1, 0, 0), FaultKind::rate, 0, Rate{10'000'000'000}}));
  EXPECT_TRUE(config.capture.hosts && config.capture.drops && !config.capture.cells);
  EXPECT_EQ(config.capture.host_ports, (std::vector<std::uint32_t>{1}));
  EXPECT_EQ(config.capture.links, (std::vector<std::uint32_t>{1}));
  EXPECT_EQ(config.capture.snaplen, 128u);
  EXPECT_EQ(parse_config(to_yaml(config), config.source), config);
}

TEST(Config, RoutesAndPortMaps) {
  const Config routes = parse_config(
      "forwarding: {mode: route, learn: learn, routes: [{prefix: 10.0.0.0/8, port: leaf1:p0}, {prefix: "
      "\"2001:db8::/64\", port: 2, "
      "next_hop: 02:00:00:00:00:09}]}",
      "a.yaml");
  EXPECT_EQ(routes.forwarding.mode, ForwardingMode::route);
  EXPECT_TRUE(routes.forwarding.learn_only);
  EXPECT_EQ(routes.forwarding.routes,
            (std::vector<RouteEntry>{{"10.0.0.0/8", 4, ""}, {"2001:db8::/64", 2, "02:00:00:00:00:09"}}));
  EXPECT_EQ(parse_config(to_yaml(routes), routes.source), routes);
  const Config fixed =
      parse_config("forwarding: {mode: static, static: [{in: leaf0:p0, out: leaf1:p0}, {in: 4, out: 0}]}", "a.yaml");
  EXPECT_EQ(fixed.forwarding.fixed, (std::vector<std::pair<std::uint32_t, std::uint32_t>>{{0, 4}, {4, 0}}));
  EXPECT_EQ(parse_config(to_yaml(fixed), fixed.source), fixed);
}

TEST(Config, OverridesChangeTheDocument) {
  const std::string text = "traffic:\n- constant: {load: 0.9}\n- constant: &b {load: 0.8}\n- constant: *b\n";
  const Config config = parse_config(
      text, "run.yaml",
      {"traffic.1.constant.load=0.5", "voq.ecn={kmin: 1KB, kmax: 2KB}", "voq.ecn.kmin=1500", "classes.ecn=[3]",
       "classes.dscp.26=4", "seed=2", "seed=3", "capture.points=[hosts, drops]", "duration=1ms"});
  EXPECT_EQ(constant_of(config, 0).load, 0.9);
  EXPECT_EQ(constant_of(config, 1).load, 0.5);
  EXPECT_EQ(constant_of(config, 2).load, 0.8);  // an alias is a copy
  EXPECT_EQ(config.voq.ecn.kmin_bytes, 1500u);
  EXPECT_EQ(config.voq.ecn.kmax_bytes, 2000u);
  EXPECT_EQ(config.classes.dscp_to_class[26], 4);
  EXPECT_EQ(config.run.seed, 3u);
  EXPECT_EQ(config.run.duration, 1_ms);
  EXPECT_TRUE(config.capture.drops);
  EXPECT_EQ(
      parse_config("", "run.yaml", {"traffic={constant: {load: 1/4}}", "traffic.constant.class=4"}).traffic.size(), 1u);
  EXPECT_EQ(parse_config("duration: 1ms", "run.yaml", {"duration=drained"}).run.duration, std::nullopt);
}

TEST(Config, PathsAreRelativeToTheConfig) {
  const std::string here = std::filesystem::current_path();
  const auto file = [](const std::string& text, const std::string& name,
                       const std::vector<std::string>& overrides = {}) {
    return replay_of(parse_config(text, name, overrides)).file;
  };
  EXPECT_EQ(file("traffic: {replay: {file: ../a.pcapng}}", "/x/y/run.yaml"), "/x/a.pcapng");
  EXPECT_EQ(file("traffic: {replay: {file: /b.pcapng}}", "/x/y/run.yaml"), "/b.pcapng");
  EXPECT_EQ(file("traffic: {replay: {file: a.pcapng}}", "sub/run.yaml"), here + "/sub/a.pcapng");
  EXPECT_EQ(file("traffic: {replay: {file: a.pcapng}}", "run.yaml"), here + "/a.pcapng");
  // What is typed at a shell is meant from where the shell is.
  EXPECT_EQ(file("traffic: {replay: {file: a.pcapng}}", "/x/run.yaml", {"traffic.replay.file=b.pcapng"}),
            here + "/b.pcapng");
  const Config odd = parse_config("traffic: {replay: {file: \"a b: \\\"c\\\" #\\t\\u00e9.pcapng\"}}", "/x/run.yaml");
  EXPECT_EQ(replay_of(odd).file, "/x/a b: \"c\" #\t\u00e9.pcapng");
  EXPECT_EQ(parse_config(to_yaml(odd), odd.source), odd);
}

TEST(Config, ToYamlIsReadBackTheSame) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const Config config = random_config(seed);
    const std::string text = to_yaml(config);
    const Config back = parse_config(text, config.source);
    ASSERT_EQ(back, config) << "seed " << seed << "\n" << text;
    ASSERT_EQ(to_yaml(back), text);
  }
}

TEST(Config, ManyLinksAreReadInReasonableTime) {
  // 4096 x 16 hosts and 65,536 fabric links: a test that hangs here would take minutes, not the second it needs.
  const Config config = parse_config("topology: {leaves: 4096, spines: 16, hosts_per_leaf: 16}", "a.yaml");
  EXPECT_EQ(config.topology.fabric_links.size(), 65'536u);
  EXPECT_EQ(parse_config(to_yaml(config), "a.yaml"), config);
}

TEST(Describe, SaysWhatARunWouldBe) {
  const Config config = parse_config(
      "topology: {spines: 2, links: [{at: leaf1-spine0, rate: 100G}]}\ntraffic: {constant: {pattern: incast, load: "
      "1}}\n"
      "duration: 1ms\nfaults: [{at: 2ms, link: leaf0-spine1, do: down}]\ncapture: {points: [hosts, drops]}",
      "run.yaml");
  EXPECT_DOUBLE_EQ(oversubscription(config.topology), 3.2);  // 4 x 400G over 400G + 100G
  const std::string text = describe(config);
  for (const char* part :
       {"run.yaml is valid", "4 leaves, 2 spines, 4 hosts a leaf: 16 host ports, 8 fabric links", "16 x 400G 50ns",
        "1 x 100G 250ns, 7 x 400G 250ns", "oversubscription 3.200:1", "lossless 3, 4",
        "{7}, then {6}, then {0, 1, 2, 3, 4, 5}", "incast 15:1 into leaf0:p0 at 100% of line rate, 1500 bytes, class 3",
        "leaf0-spine1 goes down (after the run's end)", "hosts, drops"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

}  // namespace
}  // namespace weft
