#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""PFC on both fabrics: what pause frames look like, what they stop and for how long, who is paused and why, headroom, and the watchdog.
Tests that begin with a project and a number are named after the public bug report that they are known from."""
import struct

import end_to_end
from ethernet_runs import Fabric, G, OVERHEAD, PAUSE_ADDRESS, constant, dropped, flow, link, out_of_order, topology

FABRICS = ("ethernet", "voq")
HOST = "02aa00000001"  # address of a host that sends pause frames


def wire_ns(length, gbps=100):
    return (length + OVERHEAD) * 8 / gbps


def frames_a_second(load, length=1500, gbps=100):
    return load * gbps * G / 8 / (length + OVERHEAD)


class OnTheWire(Fabric):
    def pauses(self, out="out"):
        return [(name, data) for name, _, data, _ in self.captured(out) if data[:6] == PAUSE_ADDRESS and data[6:12].hex() != HOST]

    def shown_by_tshark(self, out, *fields):
        """Values of fields, by lines, of the pause frames that switches sent."""
        names = [word for field in ("frame.interface_name", "macc.opcode", *fields) for word in ("-e", field)]
        shown = self.tool("tshark", "-r", self.folder / out / "capture.pcapng", "-Y", f"macc && eth.src != {HOST[:2]}:aa:00:00:00:01",
                          "-T", "fields", *names)
        return [line.split("\t") for line in shown.splitlines()]

    def test_pause_frames_are_right_to_the_byte_and_decode(self):
        """sonic-net/SONiC 418, and as tshark reads it: an incast in class 3, one in class 4 to another host."""
        for fabric in FABRICS:
            with self.subTest(fabric=fabric):
                self.run_config({
                    "topology": topology(2, 2, 3), "duration": "600us", "ethernet": {"buffer": "1MiB"},
                    "voq": {"xoff": "64KiB", "xon": "32KiB", "sram": "4MiB"}, "capture": {"points": ["hosts", "control"], "snaplen": 64},
                    "traffic": [constant(pattern="incast", receiver="leaf0:p0", senders=["leaf0:p1", "leaf1:p0"], load=1, class_=3),
                                constant(pattern="incast", receiver="leaf1:p1", senders=["leaf0:p2", "leaf1:p2"], load=1, class_=4)]},
                                out=fabric, fabric=fabric)
                pauses = self.pauses(fabric)
                class_of = {"leaf0:p1 out": 3, "leaf1:p0 out": 3, "leaf0:p2 out": 4, "leaf1:p2 out": 4}  # by what the host sends
                self.assertLessEqual(set(class_of), {name for name, _ in pauses})
                self.assertEqual(any(">" in name for name, _ in pauses), fabric == "ethernet", "cells are held back otherwise")
                sources = {}
                for name, data in pauses:
                    self.assertEqual(len(data), 60)
                    sources.setdefault(name, set()).add(data[6:12])
                    ether_type, opcode, enabled = struct.unpack_from(">HHH", data, 12)
                    self.assertEqual((ether_type, opcode), (0x8808, 0x0101))
                    if name in class_of:
                        self.assertEqual(enabled, 1 << class_of[name])
                    quanta = struct.unpack_from(">8H", data, 18)
                    for c, q in enumerate(quanta):
                        self.assertIn(q, (0, 65535) if enabled >> c & 1 else (0,))
                    self.assertEqual(data[34:], bytes(26))
                # A port has one address, no two have the same, and it is a locally administered one of a single station.
                self.assertEqual({len(each) for each in sources.values()}, {1})
                every = [next(iter(each)) for each in sources.values()]
                self.assertEqual(len(set(every)), len(every))
                self.assertEqual({address[0] & 3 for address in every}, {2})

                times = [f"macc.cbfc.pause_time.c{c}" for c in range(8)]
                shown = self.shown_by_tshark(fabric, "macc.cbfc.enbv", *times, "macc.dst_address_invalid", "_ws.malformed")
                self.assertEqual(len(shown), len(pauses))
                for (name, data), (interface, opcode, enabled, *fields) in zip(pauses, shown):
                    self.assertEqual((interface, int(opcode, 0), int(enabled, 0)), (name, 0x0101, data[17]))
                    self.assertEqual([int(field, 0) for field in fields[:8]], list(struct.unpack_from(">8H", data, 18)))
                    self.assertEqual(fields[8:], ["", ""])

    def test_sonic_buildimage_20590_the_class_that_is_congested_to_the_port_that_sends_it(self):
        """Two senders into one port, all 100G: A sends 30G each of classes 3 and 0, B of 4 and 1."""
        for fabric in FABRICS:
            with self.subTest(fabric=fabric):
                flows = [constant(pattern="one", from_=sender, to="leaf1:p0", load=0.3, frame=1500, class_=c)
                         for sender, c in (("leaf0:p0", 3), ("leaf0:p0", 0), ("leaf0:p1", 4), ("leaf0:p1", 1))]
                results = self.run_config({"topology": topology(2, 2, 2, fabric="200G"), "duration": "2ms", "traffic": flows,
                                           "ethernet": {"buffer": "2MiB"},
                                           "voq": {"sram": "2MiB", "deep": "0", "xoff": "64KiB", "xon": "32KiB"},
                                           "capture": {"points": ["hosts", "drops"], "snaplen": 64}}, out=fabric, fabric=fabric)
                paused = {(name, data[17]) for name, data in self.pauses(fabric) if " out" in name}
                self.assertEqual(paused, {("leaf0:p0 out", 1 << 3), ("leaf0:p1 out", 1 << 4)})
                self.assertLessEqual(set(dropped(results)), {"class_limit", "buffer_full", "voq_limit"})
                lost = {data[15] >> 2 for name, _, data, _ in self.captured(fabric) if name.endswith("drops")}
                self.assertEqual(lost, {0, 8}, "DSCP of classes 0 and 1; class 3 has 26, class 4 has 34")


class Obeyed(Fabric):
    """Pause frames of a host, replayed."""

    def starts(self, out, port):
        """{DSCP: [first bit on the wire to the host, ns]}; stamps are of the last bit, frames have one length."""
        times = {}
        for name, at, data, length in self.captured(out):
            if name == f"{port} out" and data[:6] != PAUSE_ADDRESS:
                times.setdefault(data[15] >> 2, []).append(at - (length + OVERHEAD) * 8 / 100)
        return times

    def test_quanta_stop_their_class_for_their_time_and_no_other(self):
        reaction_ns = 394 * 512 / 100  # SONiC's peer response time at 100G, which the model takes for a switch
        for fabric in FABRICS:
            for quanta in (100, 2000, 20000):
                with self.subTest(fabric=fabric, quanta=quanta):
                    out = f"{fabric}-{quanta}"
                    results = self.run_config({
                        "topology": topology(2, 2, 2), "duration": "200us", "capture": {"points": ["hosts"], "snaplen": 64},
                        "traffic": [self.pausing_host("leaf1:p0", [(20_000, {3: quanta})]),
                                    constant(pattern="one", from_="leaf0:p0", to="leaf1:p0", load=0.45, frame=1500, class_=3),
                                    constant(pattern="one", from_="leaf0:p1", to="leaf1:p0", load=0.45, frame=1500, class_=5)]},
                                              out=out, fabric=fabric)
                    self.assertEqual(results["frames"]["filtered"]["mac_control"], 1)
                    self.assertEqual(dropped(results), {})
                    said = next(at for name, at, data, _ in self.captured(out) if name == "leaf1:p0 in" and data[:6] == PAUSE_ADDRESS)
                    begin, frame_ns = said + reaction_ns, wire_ns(1500)
                    end = begin + quanta * 512 / 100
                    times = self.starts(out, "leaf1:p0")
                    paused, free = times[26], times[46]
                    # Stamps are whole ns.
                    self.assertEqual([at for at in paused if begin + 1 < at < end - 1], [])
                    # Before it the class goes on until it is obeyed, at 45% a frame each 271 ns, and one of the other class may
                    # hold that up; after it the first goes as soon as the wire is free.
                    self.assertGreater(max(at for at in paused if at <= begin + 1), begin - frame_ns / 0.45 - 2 * frame_ns)
                    self.assertLess(min(at for at in paused if at >= end - 1), end + frame_ns + 1)
                    self.assertAlmostEqual(link(results, "leaf1:p0 out")["paused_ns"], quanta * 512 / 100, delta=0.001)
                    # The other class never stops for long: while the first is paused it has the wire for itself, and afterwards it
                    # waits for no more than a turn of what gathered, 9216 bytes and the frame that overdraws them.
                    longest = max(b - a for a, b in zip(free, free[1:]))
                    self.assertLess(longest, frame_ns / 0.45 + wire_ns(9216 + 1500 + OVERHEAD) + 2 * frame_ns)
                    self.assertAlmostEqual(len(free), frames_a_second(0.45) * 200e-6, delta=15)  # 3 us and a turn are under way

    def test_sonic_mgmt_8239_a_pause_without_a_source_address_counts(self):
        for fabric in FABRICS:
            with self.subTest(fabric=fabric):
                results = self.run_config({"topology": topology(2, 2, 2), "duration": "100us", "traffic": [
                    self.pausing_host("leaf1:p0", [(20_000, {3: 2000})], mac="00:00:00:00:00:00"),
                    constant(pattern="one", from_="leaf0:p0", to="leaf1:p0", load=0.4, frame=1500, class_=3)]}, out=fabric, fabric=fabric)
                self.assertAlmostEqual(link(results, "leaf1:p0 out")["paused_ns"], 2000 * 512 / 100, delta=0.001)
                self.assertEqual(results["frames"]["filtered"]["mac_control"], 1)

    def test_sonic_buildimage_23441_a_pause_of_lossy_classes_is_counted_and_not_applied(self):
        """A storm of XOFF for all lossy classes while classes 0 to 6 flow: nothing is lost, nothing waits."""
        storm = [(at, {c: 65535 for c in (0, 1, 2, 5, 6, 7)}) for at in range(10_000, 90_000, 10_000)]
        for fabric in FABRICS:
            with self.subTest(fabric=fabric):
                results = self.run_config({"topology": topology(2, 2, 7), "duration": "100us", "traffic": [
                    self.pausing_host("leaf1:p0", storm),
                    *(constant(pattern="one", from_=f"leaf0:p{c}", to="leaf1:p0", load=0.1, frame=1500, class_=c) for c in range(7))]},
                                          out=fabric, fabric=fabric)
                self.assertEqual(dropped(results), {})
                self.assertEqual(link(results, "leaf1:p0 out")["paused_ns"], 0)
                self.assertEqual(results["frames"]["filtered"]["mac_control"], len(storm))
                if fabric == "ethernet":
                    self.assertEqual(results["ethernet"]["pfc_received"], len(storm))
                for c in range(7):  # 3 us are under way at the end
                    self.assertAlmostEqual(flow(results, f"leaf0:p{c}", "leaf1:p0")["frames"], frames_a_second(0.1) * 97e-6, delta=3)

    def test_astra_sim_simai_286_many_pauses_and_resumes_gate_their_class_only(self):
        """Two flows in class 3 share a port, XON is due as soon as XOFF was, and class 4 passes beside them."""
        results = self.run_config({
            "topology": topology(2, 1, 3), "duration": "2ms", "ethernet": {"buffer": "1MiB", "xon_offset": 0, "alpha": 0.01},
            "traffic": [constant(pattern="incast", receiver="leaf1:p0", senders=["leaf0:p0", "leaf0:p1"], load=0.9, frame=1000, class_=3),
                        constant(pattern="one", from_="leaf1:p2", to="leaf1:p1", load=0.3, frame=1000, class_=4)]})
        self.assertEqual((dropped(results), out_of_order(results)), ({}, 0))
        self.assertGreater(results["ethernet"]["pfc_xoff_sent"], 200)
        self.assertGreater(results["ethernet"]["pfc_xon_sent"], 200)
        one, other = (flow(results, f"leaf0:p{n}", "leaf1:p0")["frames"] for n in (0, 1))
        self.assertLess(abs(one - other) / (one + other), 0.02)
        self.assertEqual(link(results, "leaf1:p2 in")["paused_ns"], 0)
        latency = flow(results, "leaf1:p2", "leaf1:p1")["latency_ns"]
        self.assertEqual(latency["max"], latency["min"], "alone on its wires, it never waits")


class Spreading(Fabric):
    def test_htsim_ndp_figure_18_an_incast_beside_a_long_flow(self):
        """64 senders of 900 KB each to one host, a long flow to its neighbour on the same leaf: on ethernet pauses cut holes into the long
        flow, again and again; on voq none. (The paper's hosts adapt; these do not, which hurts the more and shows the same.)"""
        senders = [f"leaf{leaf}:p{p}" for leaf in range(1, 9) for p in range(8)]
        burst_us = 900e3 / 1500 * wire_ns(1500) / 1e3  # at line rate
        config = {"topology": topology(10, 8, 8), "duration": "3ms", "frame_pool": 120_000,
                  "voq": {"sram": "128MiB"}, "ethernet": {"buffer": "16MiB"},
                  "capture": {"points": ["hosts"], "ports": ["leaf0:p1"], "snaplen": 64},
                  "traffic": [constant(pattern="incast", receiver="leaf0:p0", senders=senders, load=1, frame=1500, class_=3,
                                       start="100us", stop=f"{100 + burst_us:.3f}us"),
                              constant(pattern="one", from_="leaf9:p0", to="leaf0:p1", load=0.9, frame=1500, class_=3)]}
        gaps, results = {}, {}
        for fabric in FABRICS:
            results[fabric] = self.run_config(config, out=fabric, fabric=fabric)
            self.assertEqual(dropped(results[fabric]), {})
            times = [at for name, at, _, _ in self.captured(fabric) if name == "leaf0:p1 out"]
            gaps[fabric] = [b - a for a, b in zip(times, times[1:])]
        # A hole: ten frames' time without one. Back to back but for 10%, frames are 135 ns apart.
        holes = {fabric: sum(gap > 10 * wire_ns(1500) for gap in each) for fabric, each in gaps.items()}
        self.assertGreater(holes["ethernet"], 10)
        self.assertEqual(holes["voq"], 0)
        self.assertEqual(link(results["voq"], "leaf9:p0 in")["paused_ns"], 0)
        whole = frames_a_second(0.9) * 3e-3
        self.assertLess(flow(results["ethernet"], "leaf9:p0", "leaf0:p1")["frames"], 0.9 * whole)
        self.assertGreater(flow(results["voq"], "leaf9:p0", "leaf0:p1")["frames"], 0.998 * whole)  # 4 us of 3 ms are under way

    def test_simai_12_pauses_where_hardware_has_them(self):
        """100G into 25G without anybody slowing down: pauses must appear. At the slower rate none may. Thresholds are bytes."""
        shape = topology(2, 1, 1, fabric="400G")
        shape["links"] = [{"at": "leaf1:p0", "rate": "25G"}]
        for load, pauses in ((1, True), (0.24, False)):
            for fabric in FABRICS:
                results = self.run_config({"topology": shape, "duration": "4ms", "frame_pool": 60_000, "ethernet": {"buffer": "9MB"},
                                           "voq": {"sram": "9MB", "deep": "0"},
                                           "traffic": constant(pattern="one", from_=0, to=1, load=load, frame=1000, class_=3)},
                                          out=f"{fabric}-{load}", fabric=fabric)
                self.assertEqual(link(results, "leaf0:p0 in")["paused_ns"] > 0, pauses, f"{fabric} at {load}")
                self.assertEqual(dropped(results), {})


class Headroom(Fabric):
    def test_sonic_480_headroom_too_small_warns_and_drops(self):
        """Loss although PFC is on."""
        config = {"topology": topology(2, 1, 3), "duration": "500us", "ethernet": {"buffer": "1MiB", "headroom": 1},
                  "traffic": constant(pattern="incast", receiver="leaf0:p0", load=1, frame=1500, class_=3)}
        results = self.run_config(config)
        self.assertGreater(dropped(results).get("headroom_exceeded", 0), 0)
        self.assertTrue(any("ethernet.headroom" in warning for warning in results["warnings"]))
        self.assertIn("ethernet.headroom", self.said)
        config["ethernet"].pop("headroom")
        results = self.run_config(config, out="default")
        self.assertEqual((dropped(results), results["warnings"]), ({}, []))

    def test_hpcc_15_a_hundred_hosts_and_a_thousand_flows_into_one(self):
        """144 hosts, 1000 flows, 8 MB of buffer: nothing is lost, and the receiver's link is full."""
        entry = {"pattern": "incast", "receiver": "leaf0:p0", "load": 0.14, "frame": 1000, "class_": 3}
        results = self.run_config({"topology": topology(12, 6, 12), "warmup": "200us", "duration": "600us",
                                   "forwarding": {"mtu": 1500}, "ethernet": {"buffer": "8MB"},
                                   "traffic": [constant(**entry, udp_source=49152 + n) for n in range(7)]})
        self.assertEqual(dropped(results), {})
        self.assertEqual(len(results["flows"]), 143)
        self.assertGreater(results["ethernet"]["pfc_hosts_paused_ns"], 0)
        self.assertGreater(link(results, "leaf0:p0 out")["utilisation"], 0.999)

    def test_a_buffer_that_headroom_overcommits_is_an_error(self):
        self.write("bad.yaml", '{"fabric": "ethernet", "topology": {"leaves": 2, "spines": 1, "hosts_per_leaf": 3}, "duration": "10us", '
                               '"ethernet": {"buffer": "64KiB"}, "traffic": {"constant": {"pattern": "permutation", "load": 0.1}}}')
        self.assert_one_line(self.weft("run", "bad.yaml", expect=2).stderr, "ethernet.buffer", "leaf0")


class Watchdog(Fabric):
    def storm(self, action, traffic, out, until_us=1000, duration="1ms"):
        """A host that pauses class 3 for ever, from 10 us on: 65535 quanta at 100G are 335.5 us, said again every 100 us."""
        return self.run_config({"topology": topology(2, 1, 2), "duration": duration,
                                "ethernet": {"watchdog": {"action": action, "detect": "200us", "restore": "500us"}},
                                "traffic": [self.pausing_host("leaf1:p0", [(at * 1000, {3: 65535}) for at in range(10, until_us, 100)]),
                                            *traffic]}, out=out)

    def test_actions(self):
        rate = frames_a_second(0.1)
        traffic = [constant(pattern="one", from_="leaf0:p0", to="leaf1:p0", load=0.1, frame=1500, class_=3),
                   constant(pattern="one", from_="leaf0:p1", to="leaf1:p0", load=0.1, frame=1500, class_=4)]
        off, drop, forward = (self.storm(action, traffic, out=action) for action in ("off", "drop", "forward"))
        class4 = flow(off, "leaf0:p1", "leaf1:p0")["frames"]
        self.assertAlmostEqual(class4, rate * 1e-3, delta=10)  # some are on their way; class 4 never waits
        self.assertLess(flow(off, "leaf0:p0", "leaf1:p0")["frames"], rate * 20e-6)
        self.assertEqual((off["ethernet"]["watchdog_storms"], dropped(off)), (0, {}))
        # Found 200 us after the first frame stood still (10 us and some spacing and flight): what came until then and after is dropped.
        self.assertEqual(drop["ethernet"]["watchdog_storms"], 1)
        self.assertAlmostEqual(drop["frames"]["dropped"]["watchdog"], rate * 988e-6, delta=10)
        self.assertEqual(dropped(forward), {})
        self.assertAlmostEqual(flow(forward, "leaf0:p0", "leaf1:p0")["frames"], rate * 1e-3, delta=10)
        for results in (drop, forward):
            self.assertEqual(flow(results, "leaf0:p1", "leaf1:p0")["frames"], class4)

    def test_sonic_buildimage_19067_its_counters_are_the_frames(self):
        """Exactly 10,000 frames into a storm: 10,000 dropped and none sent, or all sent; pause frames are in no such count."""
        start_us, count = 50, 10_000
        stop_us = start_us + count * wire_ns(1000) / 0.5 / 1e3
        # One gap shorter by a rounding: the phase of the source lies within the first gap, so that there are `count` of them.
        traffic = [constant(pattern="one", from_="leaf0:p0", to="leaf1:p0", load=0.5, frame=1000, class_=3, start=f"{start_us}us",
                            stop=f"{stop_us:.6f}us")]
        storm_us = int(stop_us) + 300
        for action, expected in (("drop", ({"watchdog": count}, 0)), ("forward", ({}, count))):
            with self.subTest(action=action):
                results = self.storm(action, traffic, out=action, until_us=storm_us, duration=f"{storm_us}us")
                frames = results["frames"]
                self.assertEqual(frames["offered"] - frames["filtered"]["mac_control"], count)
                self.assertEqual((dropped(results), frames["delivered"]), expected)
                self.assertEqual(frames["filtered"]["mac_control"], len(range(10, storm_us, 100)))
                self.assertEqual(results["ethernet"]["watchdog_storms"], 1)

    def test_it_ends_and_begins_again(self):
        """`restore` without pause frames ends a storm; what comes afterwards is sent, and a second storm is found like the first."""
        pauses = [(at * 1000, {3: 65535}) for at in (*range(10, 500, 100), *range(2000, 2500, 100))]
        results = self.run_config({"topology": topology(2, 1, 2), "duration": "3.5ms",
                                   "ethernet": {"watchdog": {"action": "drop", "detect": "200us", "restore": "400us"}},
                                   "traffic": [self.pausing_host("leaf1:p0", pauses),
                                               constant(pattern="one", from_="leaf0:p0", to="leaf1:p0", load=0.1, frame=1500, class_=3)]})
        self.assertEqual(results["ethernet"]["watchdog_storms"], 2)
        # Dropped from the pause at 10 us to 400 us behind the last one at 410 us, and from 2000 us to 2800 us: 1600 us. The reaction
        # time of 2 us moves both ends alike; a frame each 1.2 us, and those between the switch and the queue.
        self.assertAlmostEqual(dropped(results)["watchdog"], frames_a_second(0.1) * 1600e-6, delta=8)
        self.assertAlmostEqual(results["frames"]["delivered"], frames_a_second(0.1) * 1900e-6, delta=12)


if __name__ == "__main__":
    end_to_end.main()
