// SPDX-License-Identifier: BSD-3-Clause
// Every kind of mistake in a configuration, with the exact line that names it.
#include <gtest/gtest.h>

#include <fstream>

#include "tools/config.h"

namespace weft {
namespace {

std::string error_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    parse_config(text, "run.yaml", overrides);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "none";
}

TEST(ConfigErrors, UnknownKeys) {
  EXPECT_EQ(error_of("seed: 1\nvoq:\n  sram: 1MiB\n  requst_bytes: 2KiB\n").substr(0, 75),
            "run.yaml:4: voq.requst_bytes: unknown key; did you mean request_bytes? acce");
  EXPECT_EQ(error_of("scheduler: {colour: red}"),
            "run.yaml:1: scheduler.colour: unknown key; accepted: credit_bytes, speedup, egress_buffer, latency");
  EXPECT_EQ(
      error_of("scheduler:\n  credit_byte:\n    2KiB\n"),
      "run.yaml:2: scheduler.credit_byte: unknown key; did you mean credit_bytes? accepted: credit_bytes, speedup, "
      "egress_buffer, latency");
  // Sections of fabrics to come are no keys yet.
  for (const char* key : {"roce", "guests"})
    EXPECT_EQ(error_of(std::string(key) + ": {}\n").find(std::string("run.yaml:1: ") + key + ": unknown key; "), 0u)
        << key;
  EXPECT_EQ(error_of("traffic: [{workload: {}}]"),
            "run.yaml:1: traffic.0.workload: unknown key; accepted: replay, constant");
}

TEST(ConfigErrors, KeysGivenTwice) {
  EXPECT_EQ(error_of("seed: 1\nworkers: 1\nseed: 2\n"),
            "run.yaml:3: seed: given twice, first at run.yaml:1; accepted: once");
  EXPECT_EQ(error_of("classes:\n  dscp: {26: 3, 48: 6,\n    26: 4}\n"),
            "run.yaml:3: classes.dscp.26: given twice; accepted: once");
  EXPECT_EQ(error_of("classes: {dscp: {26: 3, 026: 4}}\n"),
            "run.yaml:1: classes.dscp.026: given twice; accepted: once");
}

TEST(ConfigErrors, Units) {
  EXPECT_EQ(error_of("topology:\n  host_link: {rate: 400, delay: 50ns}\n"),
            "run.yaml:2: topology.host_link.rate: \"400\" has no unit; accepted: a rate in decimal bits a second such "
            "as 400G, "
            "2.5Gb/s or 100Mbps, from 1K to 8T");
  EXPECT_EQ(error_of("warmup: 50"),
            "run.yaml:1: warmup: \"50\" has no unit; accepted: a time such as 500ns, 1.5us, 100ms or 2s, from 0ns to "
            "10000000s");
  EXPECT_EQ(
      error_of("voq: {sram: 64K}"),
      "run.yaml:1: voq.sram: \"64K\" is not a size; accepted: bytes such as 256, 2KiB, 64MiB (binary) or 100KB, 1MB "
      "(decimal), from 64KiB to 1TiB");
  EXPECT_EQ(error_of("voq: {alpha: half}"),
            "run.yaml:1: voq.alpha: \"half\" is not a number; accepted: a number such as 0.125, 1/8 or 1e-4, above 0, "
            "at most 1024");
  EXPECT_EQ(error_of("duration: 1.0005ps")
                .find("run.yaml:1: duration: \"1.0005ps\" is not a whole number of the smallest unit"),
            0u);
}

TEST(ConfigErrors, Ranges) {
  EXPECT_EQ(error_of("topology: {leaves: 0}"),
            "run.yaml:1: topology.leaves: \"0\" is too small; accepted: a whole number, from 1 to 4096");
  EXPECT_EQ(error_of("workers: 129"),
            "run.yaml:1: workers: \"129\" is too large; accepted: a whole number, from 1 to 128");
  EXPECT_EQ(error_of("voq: {alpha: 0}"),
            "run.yaml:1: voq.alpha: \"0\" is too small; accepted: a number such as 0.125, 1/8 or 1e-4, above 0, at "
            "most 1024");
  EXPECT_EQ(error_of("traffic:\n- constant:\n    load: 1.01\n"),
            "run.yaml:3: traffic.0.constant.load: \"1.01\" is too large; accepted: a number such as 0.125, 1/8 or "
            "1e-4, above 0, at most 1");
  EXPECT_NE(error_of("topology: {fabric_link: {delay: 0ns}}").find("\"0ns\" is too small"), std::string::npos);
  // Where zero inside means a word outside, a written zero is refused and not taken for the word.
  EXPECT_EQ(error_of("voq: {headroom: 0}"),
            "run.yaml:1: voq.headroom: \"0\" is too small; accepted: auto, or bytes such as 256, 2KiB, 64MiB (binary) "
            "or 100KB, 1MB "
            "(decimal), from 1 to 1TiB");
  EXPECT_EQ(error_of("topology: {leaves: 4096, hosts_per_leaf: 33}"),
            "run.yaml:1: topology.hosts_per_leaf: 135168 host ports in all; accepted: up to 131070");
  EXPECT_EQ(error_of("topology: {leaves: 2049, spines: 512}")
                .find("run.yaml:1: topology: 1049088 fabric links in all; accepted"),
            0u);
}

TEST(ConfigErrors, Types) {
  EXPECT_EQ(error_of("voq: 3"),
            "run.yaml:1: voq: not a mapping; accepted: a mapping with the keys latency, sram, deep, deep_threshold, "
            "deep_rate, deep_latency, request_bytes, request_delay, alpha, limit, xoff, xon, headroom, refresh, "
            "credit_watchdog, ecn, force_fabric, max_voqs");
  EXPECT_EQ(error_of("seed: [1]"),
            "run.yaml:1: seed: a list where a single value belongs; accepted: a whole number, from 0 to "
            "18446744073709551615");
  EXPECT_EQ(error_of("workers: {a: 1}"),
            "run.yaml:1: workers: a mapping where a single value belongs; accepted: a whole number, from 1 to 128");
  EXPECT_EQ(error_of("seed: 1\nworkers:\n\nwarmup: 0us\n"),
            "run.yaml:2: workers: no value where a single value belongs; accepted: a whole number, from 1 to 128");
  EXPECT_EQ(error_of("classes: {lossless: 3}"),
            "run.yaml:1: classes.lossless: not a list; accepted: a list of traffic classes such as [3, 4]");
  EXPECT_EQ(error_of("classes: {dscp: [3]}"),
            "run.yaml:1: classes.dscp: not a mapping; accepted: a mapping of DSCP 0 to 63 to class 0 to 7");
  EXPECT_EQ(error_of("voq: {force_fabric: yes}"),
            "run.yaml:1: voq.force_fabric: \"yes\" is not known here; accepted: false | true");
  EXPECT_EQ(error_of("traffic: lots"),
            "run.yaml:1: traffic: \"lots\" is not a list; accepted: a list of mappings, or one mapping");
  EXPECT_EQ(
      error_of("- 1\n- 2\n").find("run.yaml:1: not a mapping; accepted: a mapping with the keys fabric, topology"), 0u);
  EXPECT_EQ(error_of("hello").find("run.yaml:1: not a mapping"), 0u);
  EXPECT_EQ(error_of("seed: -1"),
            "run.yaml:1: seed: \"-1\" is not a whole number; accepted: a whole number, from 0 to 18446744073709551615");
}

TEST(ConfigErrors, NotYaml) {
  EXPECT_EQ(error_of("seed: 1\nvoq: {sram: 1MiB\nworkers: 2\n").find("run.yaml:3: not YAML: "), 0u);
  EXPECT_EQ(error_of("a: b: c\n").find("run.yaml:1: not YAML: "), 0u);
  EXPECT_EQ(error_of("seed: 1\n---\nseed: 2\n"), "run.yaml:3: a second document; a config is one document");
  EXPECT_EQ(error_of("voq: &a {ecn: *a}\n"), "run.yaml:1: an alias inside what it stands for; write the value out");
  EXPECT_EQ(error_of("voq: {ecn: *nothing}\n").find("run.yaml:1: not YAML: "), 0u);
  EXPECT_EQ(error_of("? [1, 2]\n: 3\n"), "run.yaml:1: a key must be a plain word");
  // Ten aliases of ten aliases of ...: named a billion times, written nine.
  std::string bomb = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (int i = 1; i < 9; ++i) {
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 10; ++k) bomb += (k == 0 ? "*a" : ", *a") + std::to_string(i - 1);
    bomb += "]\n";
  }
  EXPECT_NE(error_of(bomb).find("more than 200000 values, aliases counted"), std::string::npos);
  EXPECT_NE(error_of(std::string(100'000, '[')).find("not YAML"), std::string::npos);
}

TEST(ConfigErrors, DanglingReferences) {
  EXPECT_EQ(error_of("traffic:\n  constant: {pattern: one, from: leaf9:p0, to: 1}\n"),
            "run.yaml:2: traffic.constant.from: \"leaf9:p0\" is no host port; accepted: a host port, leaf0:p0 to "
            "leaf3:p3 or 0 to 15");
  for (const char* name : {"leaf0:p4", "16", "leaf0", "leaf0:p", "leaf00:p0", "leaf0:p0x", "p0", "-1",
                           "leaf99999999999:p0", "leaf0-spine1"})
    EXPECT_NE(error_of("capture: {ports: [\"" + std::string(name) + "\"]}").find("is no host port"), std::string::npos)
        << name;
  EXPECT_EQ(error_of("faults: [{at: 1us, link: leaf0-spine4, do: down}]"),
            "run.yaml:1: faults.0.link: \"leaf0-spine4\" is no fabric link; accepted: a fabric link, leaf0-spine0 to "
            "leaf3-spine3");
  for (const char* name : {"leaf4-spine0", "leaf0-spine0.1", "leaf0-spine", "leaf0:p0", "spine0-leaf0", "0"})
    EXPECT_NE(error_of("capture: {links: [\"" + std::string(name) + "\"]}").find("is no fabric link"),
              std::string::npos)
        << name;
  EXPECT_EQ(error_of("topology: {fabric_link: {count: 2}}\nfaults: [{at: 1us, link: leaf0-spine0.2, do: up}]"),
            "run.yaml:2: faults.0.link: \"leaf0-spine0.2\" is no fabric link; accepted: a fabric link, leaf0-spine0 to "
            "leaf3-spine3, or "
            "one of its parallel links, .0 to .1");
  EXPECT_EQ(error_of("topology:\n  links:\n  - {at: leaf7-spine1, rate: 100G}\n"),
            "run.yaml:3: topology.links.0.at: \"leaf7-spine1\" is no link; accepted: a fabric link, leaf0-spine0 to "
            "leaf3-spine3, or a "
            "host port, leaf0:p0 to leaf3:p3 or 0 to 15");
  EXPECT_NE(error_of("topology: {links: [{at: \"3\"}]}").find("\"3\" is no link"), std::string::npos);
  EXPECT_EQ(error_of("topology: {leaves: 1, spines: 0}\nfaults: [{at: 1us, link: leaf0-spine0, do: up}]"),
            "run.yaml:2: faults.0.link: \"leaf0-spine0\" is no fabric link; accepted: nothing, this topology has no "
            "fabric links");
  EXPECT_EQ(error_of("classes: {lossless: [3,\n   9]}"),
            "run.yaml:2: classes.lossless.1: \"9\" is not a traffic class; accepted: a traffic class, 0 to 7");
  EXPECT_EQ(error_of("classes: {dscp: {26: 8}}"),
            "run.yaml:1: classes.dscp.26: \"8\" is too large; accepted: class 0 to 7");
  EXPECT_EQ(
      error_of("classes: {dscp: {64: 1}}"),
      "run.yaml:1: classes.dscp.64: not one of DSCP 0 to 63; accepted: a mapping of DSCP 0 to 63 to class 0 to 7");
  EXPECT_EQ(error_of("traffic: {constant: {class: 8}}"),
            "run.yaml:1: traffic.constant.class: \"8\" is too large; accepted: a whole number, from 0 to 7");
}

TEST(ConfigErrors, GivenTwiceInLists) {
  EXPECT_EQ(error_of("topology:\n  links:\n  - {at: leaf0-spine1, rate: 100G}\n  - {at: leaf0-spine1, delay: 1us}\n"),
            "run.yaml:4: topology.links.1.at: \"leaf0-spine1\" is given twice; accepted: each link once");
  EXPECT_EQ(error_of("capture: {ports: [leaf0:p1, 1]}"),
            "run.yaml:1: capture.ports.1: \"1\" is given twice; accepted: each once");
  EXPECT_EQ(error_of("forwarding:\n  mode: static\n  static: [{in: 0, out: 1},\n   {in: leaf0:p0, out: 2}]"),
            "run.yaml:4: forwarding.static.1.in: \"leaf0:p0\" is given twice; accepted: each port once");
}

TEST(ConfigErrors, MissingOrMixedKeys) {
  EXPECT_EQ(error_of("traffic:\n- replay: {speed: 2}\n"),
            "run.yaml:2: traffic.0.replay: file is missing; accepted: path, relative to this file");
  EXPECT_EQ(error_of("traffic: [{}]"),
            "run.yaml:1: traffic.0: one entry is one kind of traffic; accepted: exactly one of replay, constant");
  EXPECT_EQ(error_of("traffic: {replay: {file: a}, constant: {}}"),
            "run.yaml:1: traffic: one entry is one kind of traffic; accepted: exactly one of replay, constant");
  EXPECT_EQ(error_of("faults: [{at: 1us, link: leaf0-spine0}]"),
            "run.yaml:1: faults.0: one fault does one thing; accepted: exactly one of do, loss, control_loss, rate");
  EXPECT_EQ(error_of("faults: [{at: 1us, link: leaf0-spine0, do: down, rate: 1G}]"),
            "run.yaml:1: faults.0: one fault does one thing; accepted: exactly one of do, loss, control_loss, rate");
  EXPECT_EQ(error_of("faults: [{at: 1us, do: down}]"),
            "run.yaml:1: faults.0: link is missing; accepted: list of fabric links, leaf0-spine1");
  EXPECT_EQ(error_of("traffic: {replay: {file: a, ports: [{port: 1}]}}"),
            "run.yaml:1: traffic.replay.ports.0: matches nothing; accepted: mac, interface or both");
}

TEST(ConfigErrors, Addresses) {
  EXPECT_EQ(error_of("forwarding: {router_mac: 02:00}"),
            "run.yaml:1: forwarding.router_mac: \"02:00\" is not a MAC address; accepted: a MAC address such as "
            "02:00:00:00:00:01");
  EXPECT_NE(error_of("forwarding: {router_mac: 01:00:5e:00:00:01}").find("is a group address"), std::string::npos);
  const auto prefix = [](const std::string& text) {
    return error_of("forwarding: {mode: route, routes: [{prefix: \"" + text + "\", port: 0}]}");
  };
  EXPECT_EQ(prefix("10.0.0.0/8"), "none");
  EXPECT_EQ(prefix("0.0.0.0/0"), "none");
  EXPECT_EQ(prefix("2001:db8::/64"), "none");
  EXPECT_NE(prefix("10.0.0.1/8").find("has bits set beyond its prefix length"), std::string::npos);
  EXPECT_NE(prefix("10.0.0.0/33").find("has a prefix length beyond 32"), std::string::npos);
  EXPECT_NE(prefix("10.0.0.0/").find("has a prefix length beyond 32"), std::string::npos);
  EXPECT_NE(prefix("10.0.0.0").find("has no prefix length"), std::string::npos);
  EXPECT_NE(prefix("10.0.0/8").find("is not an IP prefix"), std::string::npos);
  EXPECT_NE(prefix("2001:db8::1/64").find("has bits set"), std::string::npos);
}

TEST(ConfigErrors, Contradictions) {
  EXPECT_EQ(error_of("classes: {ecn: [3]}\nvoq:\n  ecn:\n    kmax: 100KB\n    kmin: 200KB\n"),
            "run.yaml:5: voq.ecn.kmin: kmin 200KB is above kmax 100KB; accepted: kmin up to kmax");
  EXPECT_EQ(error_of("voq: {ecn: {kmin: 1KB, kmax: 2KB}}"),
            "run.yaml:1: voq.ecn.kmax: thresholds, but classes.ecn names no class to mark; accepted: classes: {ecn: "
            "[3]}, or kmin 0 and kmax 0");
  EXPECT_EQ(
      error_of("classes: {ecn: [3]}").find("run.yaml:1: classes.ecn: classes to mark, but voq.ecn has no thresholds"),
      0u);
  EXPECT_EQ(error_of("voq:\n  xoff: 10KiB\n  xon: 11KiB\n"),
            "run.yaml:3: voq.xon: xon 11KiB is above xoff 10KiB; accepted: xon up to xoff");
  EXPECT_EQ(error_of("topology: {spines: 0}"),
            "run.yaml:1: topology.spines: 0 spines cannot join 4 leaves; accepted: 1 or more, or a single leaf");
  EXPECT_EQ(error_of("duration: 100us\nwarmup: 100us\n"),
            "run.yaml:2: warmup: warmup 100us leaves nothing of duration 100us; accepted: a shorter warmup or a longer "
            "duration");
  EXPECT_EQ(error_of("voq:\n  sram: 1MiB\n  xoff: 64KiB\n  headroom: 100KiB\n"),
            "run.yaml:4: voq.headroom: xoff + headroom = 164KiB for each of 4 ports x 2 lossless classes overcommit "
            "the sram of 1MiB; accepted: "
            "up to 128KiB together");
  EXPECT_EQ(error_of("scheduler: {egress_buffer: 300KiB}"),
            "run.yaml:1: scheduler.egress_buffer: 1024 cells of 256 cannot hold an egress_buffer of 300KiB; accepted: "
            "1200 cells or more");
  EXPECT_EQ(error_of("scheduler: {egress_buffer: 10KiB}"),
            "run.yaml:1: scheduler.egress_buffer: egress_buffer 10KiB cannot hold one credit and a frame of the mtu; "
            "accepted: auto, or 11288 or more");
  EXPECT_EQ(error_of("scheduler: {egress_buffer: 10KiB}\nforwarding: {mtu: 1514}"), "none");
  EXPECT_EQ(error_of("forwarding: {mode: static}").find("run.yaml:1: forwarding.mode: mode static without a port map"),
            0u);
  EXPECT_EQ(error_of("forwarding:\n  routes: [{prefix: 10.0.0.0/8, port: 1}]"),
            "run.yaml:2: forwarding.routes: routes are used in mode route only; accepted: mode: route, or no routes");
  EXPECT_EQ(error_of("topology: {leaves: 1, spines: 0}\nvoq: {force_fabric: true}"),
            "run.yaml:2: voq.force_fabric: there are no spines to force traffic over; accepted: false, or spines");
  EXPECT_EQ(error_of("topology: {links: [{at: leaf0-spine1, delay: 0ns}]}"),
            "run.yaml:1: topology.links.0.delay: too short for a fabric link; accepted: 1ns or more");
}

TEST(ConfigErrors, TrafficThatMakesNoSense) {
  EXPECT_EQ(error_of("topology: {leaves: 1}\ntraffic:\n  constant:\n    load: 1\n"),
            "run.yaml:3: traffic.constant: a permutation crosses leaves and there is one; accepted: all-to-all, "
            "incast, one, or more "
            "leaves");
  EXPECT_EQ(error_of("traffic:\n- constant: {pattern: one, from: 2,\n   to: leaf0:p2}"),
            "run.yaml:3: traffic.0.constant.to: from and to are both leaf0:p2; accepted: two ports");
  EXPECT_EQ(error_of("traffic: {constant: {pattern: incast, receiver: 3, senders: [2, 3]}}"),
            "run.yaml:1: traffic.constant.senders: leaf0:p3 is the receiver; accepted: other ports");
  EXPECT_EQ(error_of("traffic: {constant: {start: 2us, stop: 1us}}"),
            "run.yaml:1: traffic.constant.stop: stop 1us is not after start 2us; accepted: never, or a later stop");
  EXPECT_EQ(
      error_of("classes: {dscp: {8: 0}}\ntraffic: {constant: {class: 1}}"),
      "run.yaml:2: traffic.constant.class: no DSCP maps to class 1; accepted: a class that classes.dscp leads to");
  EXPECT_EQ(error_of("traffic: {constant: {frame: [64, 59]}}"),
            "run.yaml:1: traffic.constant.frame.1: \"59\" is too short; accepted: a length from 60 to 9216, imix, or a "
            "list of lengths");
  EXPECT_NE(error_of("traffic: {constant: {frame: []}}").find("a list of 0 lengths"), std::string::npos);
  EXPECT_NE(error_of("traffic: {constant: {senders: []}}").find("an empty list; accepted: all, or a host port"),
            std::string::npos);
}

TEST(ConfigErrors, LivePortsAndTheClock) {
  EXPECT_EQ(error_of("clock: {mode: wall, dilation: 1000, idle: spin}"), "none");
  EXPECT_NE(error_of("clock: {dilation: 1000}").find("clock.dilation: only a wall clock can be slowed; accepted: 1"),
            std::string::npos);
  EXPECT_NE(error_of("clock: {mode: sometimes}").find("accepted: virtual | wall"), std::string::npos);
  const std::string port = "ports: [{at: leaf0:p0, dev: net_null0}";
  EXPECT_EQ(error_of("clock: {mode: wall}\n" + port + "]"), "none");
  EXPECT_EQ(error_of(port + "]"),
            "run.yaml:1: ports: live ports run by real time; accepted: clock: {mode: wall}, or no ports");
  EXPECT_NE(error_of("clock: {mode: wall}\n" + port + ", {at: 0, dev: net_null1}]").find("is given twice"),
            std::string::npos);
  EXPECT_NE(error_of("clock: {mode: wall}\nports: [{at: leaf0:p0}]").find("dev"), std::string::npos);
  EXPECT_NE(error_of("clock: {mode: wall}\nports: [{at: leaf0:p0, dev: \"\"}]").find("is empty"), std::string::npos);
}

TEST(ConfigErrors, WhatIsNotBuiltYet) {
  EXPECT_EQ(error_of("fabric: infiniband"),
            "run.yaml:1: fabric: \"infiniband\" is not known here; accepted: voq | ethernet");
  EXPECT_EQ(error_of("fabric: ethernet"), "none");
}

TEST(ConfigErrors, OverridesAreNamedAsWritten) {
  EXPECT_EQ(error_of("seed: 1", {"voq.sram=64K"}).find("--set voq.sram=64K: voq.sram: \"64K\" is not a size"), 0u);
  EXPECT_EQ(
      error_of("seed: 1", {"voq.srm=64KiB"}).find("--set voq.srm=64KiB: voq.srm: unknown key; did you mean sram?"), 0u);
  EXPECT_EQ(error_of("voq:\n  xoff: 10KiB\n", {"voq.xon=11KiB"}),
            "--set voq.xon=11KiB: voq.xon: xon 11KiB is above xoff 10KiB; accepted: xon up to xoff");
  EXPECT_EQ(error_of("seed: 1", {"classes.lossless=[3, 9]"})
                .find("--set classes.lossless=[3, 9]: classes.lossless.1: \"9\" is not a"),
            0u);
  EXPECT_EQ(error_of("seed: 1", {"seed"}), "--set seed: not a setting; accepted: key.path=value");
  EXPECT_EQ(error_of("seed: 1", {"=1"}), "--set =1: not a setting; accepted: key.path=value");
  EXPECT_EQ(error_of("seed: 1", {"voq..sram=1MiB"}), "--set voq..sram=1MiB: not a key; accepted: key.path=value");
  EXPECT_EQ(error_of("seed: 1", {"voq.=1"}), "--set voq.=1: not a key; accepted: key.path=value");
  EXPECT_EQ(error_of("seed: 1", {"seed.a=1"}), "--set seed.a=1: seed: has the value \"1\" and no keys below");
  EXPECT_EQ(error_of("traffic: [{constant: {}}]", {"traffic.1.constant.load=1"}),
            "--set traffic.1.constant.load=1: traffic: no item 1; accepted: 0 to 0");
  EXPECT_EQ(error_of("seed: 1", {"seed=[1"}).find("--set seed=[1: not YAML: "), 0u);
  EXPECT_NE(error_of("seed: 1", {"seed="}).find("--set seed=: seed: no value where"), std::string::npos);
  // A mistake in the file stays the file's, whatever else is set.
  EXPECT_EQ(error_of("seed: 1\nworkers: 0\n", {"seed=2"}),
            "run.yaml:2: workers: \"0\" is too small; accepted: a whole number, from 1 to 128");
}

TEST(ConfigErrors, AreOneLine) {
  EXPECT_EQ(
      error_of("seed: \"a\\nb\\x1bc\""),
      "run.yaml:1: seed: \"a b c\" is not a whole number; accepted: a whole number, from 0 to 18446744073709551615");
  EXPECT_EQ(error_of("\"a\\nb\": 1").find('\n'), std::string::npos);
  EXPECT_EQ(error_of("seed: 1", {"a\nb=1"}).find('\n'), std::string::npos);
}

TEST(ConfigErrors, FilesThatCannotBeRead) {
  const auto load = [](const std::string& path) -> std::string {
    try {
      load_config(path);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_EQ(load("/nowhere/run.yaml"), "/nowhere/run.yaml: cannot be read: No such file or directory");
  EXPECT_EQ(load("/tmp"), "/tmp: a folder; accepted: a YAML file");
  const std::string path = testing::TempDir() + "weft_config_test.yaml";
  std::ofstream(path) << "seed: 1\nsede: 2\n";
  EXPECT_EQ(load(path).find(path + ":2: sede: unknown key; did you mean seed?"), 0u);
  std::ofstream(path) << std::string("seed: \0 1\n", 10);
  EXPECT_NE(load(path), "none");
  std::remove(path.c_str());
}

}  // namespace
}  // namespace weft
