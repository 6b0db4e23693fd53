#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The Ethernet fabric from configs/ and small configs of its own: what each config claims, and what must hold for all of them.
Configs are written as JSON, which is YAML."""
import json
import struct

import end_to_end
from end_to_end import EndToEnd, SOURCE, less_cost, packets

OVERHEAD = 24  # wire bytes of an Ethernet frame beyond its length: FCS, preamble, gap
G = 10 ** 9
PAUSE_ADDRESS = bytes.fromhex("0180c2000001")


def link(results, name):
    return next(one for one in results["links"] if one["name"] == name)


def flow(results, source, destination):
    return next(one for one in results["flows"] if (one["source"], one["destination"]) == (source, destination))


def dropped(results):
    return {reason: n for reason, n in results["frames"]["dropped"].items() if n}


def wire_gbps(results):
    return results["throughput"]["wire_gbps"]


class Fabric(EndToEnd):
    def run_file(self, name, *settings, out="out", workers=1):
        arguments = [word for setting in settings for word in ("--set", setting)]
        self.weft("run", SOURCE / "configs" / name, "--out", out, "--workers", workers, *arguments)
        return self.checked(out)

    def run_config(self, config, *arguments, out="out"):
        config["ethernet"] = {"buffer": "4MiB", **config.get("ethernet", {})}  # memory for frames goes by it
        self.write(f"{out}.yaml", json.dumps({"fabric": "ethernet", **config}))
        self.weft("run", f"{out}.yaml", "--out", out, *arguments)
        return self.checked(out)

    def checked(self, out):
        """Whatever a run was: its books balance, and lossless frames are dropped for no want of buffer."""
        results = self.results(out)
        self.assert_balanced(results)
        self.assertLessEqual(results["ethernet"]["buffer_max_bytes"], results["ethernet"]["buffer_bytes"])
        return results


def topology(leaves, spines, hosts, host="100G", fabric="100G", delay="250ns"):
    return {"leaves": leaves, "spines": spines, "hosts_per_leaf": hosts, "host_link": {"rate": host, "delay": "50ns"},
            "fabric_link": {"rate": fabric, "delay": delay}}


def constant(**keys):
    return {"constant": {key.rstrip("_"): value for key, value in keys.items()}}


class Configs(Fabric):
    def test_hash_collision(self):
        """Three 400G flows on one of two 800G links get 800G together; sprayed they get 1200G."""
        results = self.run_file("hash-collision.yaml", out="ecmp")
        uplinks = sorted(link(results, f"leaf0>spine{s}")["utilisation"] for s in (0, 1))
        self.assertEqual(uplinks[0], 0)
        self.assertGreater(uplinks[1], 0.9999)  # full but for the rounding of a frame at either end of 500 µs
        # What leaves the leaf at 800G is delivered; a frame at either end of the time measured is 1 in 30,000.
        self.assertAlmostEqual(wire_gbps(results), 800, delta=0.1)
        self.assertEqual(dropped(results), {})
        for setting in ("ethernet.load_balance=spray", "fabric=voq"):
            results = self.run_file("hash-collision.yaml", setting, out=setting)
            self.assertGreater(wire_gbps(results), 1200 * 0.999, setting)
            self.assertEqual(dropped(results), {})

    def test_incast_bystander(self):
        """PFC head-of-line blocking: the bystander of an incast is its victim on ethernet, not on voq."""
        results = self.run_file("incast-bystander.yaml", out="ethernet")
        self.assertEqual(dropped(results), {})
        self.assertGreater(link(results, "leaf0:p0 out")["utilisation"], 0.99)
        alone = 0.5 * 1e-3 * 400 * G / 8 / (1500 + OVERHEAD)  # frames of a whole run, undisturbed
        victim = flow(results, "leaf1:p4", "leaf2:p4")["frames"]
        causes = {(one["link"], one["root"], one["hops"]) for one in results["ethernet"]["pauses"]}
        for name in ("leaf1>spine0", "leaf1>spine1"):  # the spine's queue, itself paused by leaf0, made the spine pause leaf1
            self.assertIn((name, "leaf0:p0 out", 2), causes)
        scheduled = self.run_file("incast-bystander.yaml", "fabric=voq", out="voq")
        bystander = flow(scheduled, "leaf1:p4", "leaf2:p4")["frames"]
        # Undisturbed it lacks only what is on its way at the end: some microseconds of 1 ms.
        self.assertGreater(bystander, alone * 0.98)
        # On ethernet it is held up with leaf1's four senders, which get half of 400G over two links once all is paused. How much it
        # gets before that depends on the buffer; less than three quarters of its rate is far from anything but pauses.
        self.assertLess(victim, alone * 0.75)

    def test_permutation_under_ecmp(self):
        """Close to what max-min fair sharing would give (FACTS V13: mean 52.4% of line rate over permutations)."""
        shares = []
        for seed in range(1, 5):
            results = self.run_file("ethernet-permutation.yaml", f"seed={seed}", out=f"ecmp{seed}")
            shares.append(wire_gbps(results) / (64 * 400))
            self.assertEqual(sum(one["out_of_order"] for one in results["flows"]), 0)
        # Drops share a link in proportion to what arrives and not max-min fairly, and a frame that is dropped at the spine has taken
        # its place on the uplink for nothing. Both cost little: a flow crosses two hashed links. One permutation of 64 flows scatters
        # by some 3 points about the mean, the mean of four by 1.5: 5 points are more than three of these.
        self.assertAlmostEqual(sum(shares) / len(shares), 0.524, delta=0.05)
        results = self.run_file("ethernet-permutation.yaml", "ethernet.load_balance=spray", out="spray")
        self.assertGreater(wire_gbps(results), 64 * 400 * 0.97)
        self.assertGreater(sum(one["out_of_order"] for one in results["flows"]), 0)

    def test_polarised_hash(self):
        """With one seed for all switches a spine's second choice repeats the leaf's first."""
        def idle(results):
            return [name for name in (f"spine{s}>leaf{l}.{k}" for s in (0, 1) for l in (0, 1) for k in (0, 1))
                    if link(results, name)["wire_bytes"] == 0]
        self.assertEqual(len(idle(self.run_file("polarised-hash.yaml", out="shared"))), 4)  # half of the eight
        self.assertEqual(idle(self.run_file("polarised-hash.yaml", "ethernet.hash.seed=per_switch", out="own")), [])


class Determinism(Fabric):
    def test_workers_do_not_change_results(self):
        for name, setting in [("incast-bystander.yaml", "duration=600us"), ("ethernet-permutation.yaml", "ethernet.load_balance=spray"),
                              ("ethernet-permutation.yaml", "ethernet.load_balance=adaptive")]:
            with self.subTest(name=name, setting=setting):
                outs = [f"{setting.split('=')[-1]}-{workers}" for workers in (1, 2)]
                one, two = (self.run_file(name, setting, "ethernet.buffer=8MiB", out=out, workers=out[-1]) for out in outs)
                self.assertEqual(less_cost(one), less_cost(two))
                for file in ("flows.csv", "series.csv", "links.csv", "latency.csv"):
                    self.assertEqual(*((self.folder / out / file).read_bytes() for out in outs))


class Pauses(Fabric):
    def test_pause_frames_on_the_wire(self):
        """802.1Qbb as a capture shows it, on host and fabric links, and as tshark reads it."""
        self.run_config({"topology": topology(2, 1, 3), "duration": "600us", "ethernet": {"buffer": "1MiB"},
                         "capture": {"points": ["hosts", "control"], "snaplen": 64},
                         "traffic": constant(pattern="incast", receiver="leaf0:p0", load=1, frame=1500, class_=3)})
        pauses = [(name, data) for name, _, data, _ in packets(self.folder / "out" / "capture.pcapng") if data[:6] == PAUSE_ADDRESS]
        self.assertTrue(any(name.endswith(" out") for name, _ in pauses), "to hosts")
        self.assertTrue(any(">" in name for name, _ in pauses), "between switches")
        quanta_seen = set()
        for name, data in pauses:
            self.assertEqual(len(data), 60)
            self.assertNotEqual(data[6:12], bytes(6), name)
            ether_type, opcode, enabled = struct.unpack_from(">HHH", data, 12)
            self.assertEqual((ether_type, opcode, enabled), (0x8808, 0x0101, 1 << 3))
            quanta = struct.unpack_from(">8H", data, 18)
            quanta_seen.add(quanta[3])
            self.assertEqual([q for c, q in enumerate(quanta) if c != 3], [0] * 7)
            self.assertEqual(data[34:], bytes(26))
        self.assertEqual(quanta_seen, {0, 65535})
        shown = self.tool("tshark", "-r", self.folder / "out" / "capture.pcapng", "-Y", "macc.opcode == 0x0101", "-T", "fields",
                          "-e", "macc.cbfc.pause_time.c3")
        self.assertEqual({int(word, 0) for word in shown.split()}, {0, 65535})

    def test_lossy_and_lossless_beside_each_other(self):
        """sonic-buildimage 20590: pauses for the lossless classes only, drops of the lossy ones only."""
        results = self.run_config({"topology": topology(2, 2, 3), "duration": "500us", "ethernet": {"buffer": "1MiB"},
                                   "traffic": [constant(pattern="incast", receiver="leaf0:p0", load=0.3, frame=1500, class_=c)
                                               for c in (0, 1, 3, 4)]})
        self.assertEqual(set(dropped(results)) - {"class_limit", "buffer_full"}, set())
        self.assertGreater(sum(dropped(results).values()), 0)
        self.assertGreater(results["ethernet"]["pfc_xoff_sent"], 0)

    def test_headroom_too_small_warns_and_drops(self):
        """SONiC 480: loss although PFC is on."""
        config = {"topology": topology(2, 1, 3), "duration": "500us", "ethernet": {"buffer": "1MiB", "headroom": 1},
                  "traffic": constant(pattern="incast", receiver="leaf0:p0", load=1, frame=1500, class_=3)}
        results = self.run_config(config)
        self.assertGreater(dropped(results).get("headroom_exceeded", 0), 0)
        self.assertTrue(any("ethernet.headroom" in warning for warning in results["warnings"]))

    def test_buffer_that_headroom_overcommits_is_an_error(self):
        self.write("bad.yaml", json.dumps({"fabric": "ethernet", "topology": topology(2, 1, 3), "duration": "10us",
                                           "ethernet": {"buffer": "64KiB"},
                                           "traffic": constant(pattern="permutation", load=0.1)}))
        self.assert_one_line(self.weft("run", "bad.yaml", expect=2).stderr, "ethernet.buffer", "leaf0")

    def test_pause_of_a_replayed_host_stops_its_class_for_its_quanta(self):
        """A host's own PFC frame, in a replayed capture, holds its class for quanta x 512 bit times and no other."""
        results, times = {}, {}
        pause = PAUSE_ADDRESS + bytes.fromhex("02aa00000001 8808 0101 0008") + struct.pack(">8H", 0, 0, 0, 2000, 0, 0, 0, 0) + bytes(26)
        self.write_pcap("pause.pcap", [(20_000, pause)])
        config = {"topology": topology(2, 1, 2), "duration": "100us", "capture": {"points": ["hosts"], "snaplen": 64},
                  "traffic": [{"replay": {"file": "pause.pcap", "ports": [{"mac": "02:aa:00:00:00:01", "port": "leaf1:p0"}],
                                          "start": "20us"}},
                              constant(pattern="one", from_="leaf0:p0", to="leaf1:p0", load=0.4, frame=1500, class_=3),
                              constant(pattern="one", from_="leaf0:p1", to="leaf1:p0", load=0.4, frame=1500, class_=5)]}
        results = self.run_config(config)
        self.assertEqual(results["frames"]["filtered"]["mac_control"], 1)
        for name, at, data, _ in packets(self.folder / "out" / "capture.pcapng"):
            if name == "leaf1:p0 out":
                times.setdefault(data[15] >> 2, []).append(at)
        gaps = {dscp: max(b - a for a, b in zip(all_times, all_times[1:])) for dscp, all_times in times.items()}
        self.assertEqual(len(gaps), 2, gaps)
        paused_ns, frame_ns = 2000 * 512 / 100, (1500 + OVERHEAD) * 8 / 100
        between_ns = frame_ns / 0.4
        # The frames before and after the pause are up to a frame's spacing away from it, and two flows share the wire.
        self.assertGreater(gaps[26], paused_ns - frame_ns)
        self.assertLess(gaps[26], paused_ns + between_ns + 2 * frame_ns)
        # The other class goes on all the while; afterwards it shares the wire with what had gathered, by turns of 9216 bytes, which a
        # frame may overdraw.
        self.assertLess(gaps[46], between_ns + 2 * frame_ns + (9216 + 1500 + OVERHEAD) * 8 / 100)
        self.assertEqual(link(results, "leaf1:p0 out")["paused_ns"], paused_ns)

    def test_pause_of_a_lossy_class_is_counted_and_not_applied(self):
        """sonic-buildimage 23441."""
        pause = PAUSE_ADDRESS + bytes.fromhex("02aa00000001 8808 0101 0001") + struct.pack(">8H", 65535, 0, 0, 0, 0, 0, 0, 0) + bytes(26)
        self.write_pcap("pause.pcap", [(0, pause)])
        results = self.run_config({"topology": topology(2, 1, 2), "duration": "100us", "traffic": [
            {"replay": {"file": "pause.pcap", "ports": [{"mac": "02:aa:00:00:00:01", "port": "leaf1:p0"}]}},
            constant(pattern="one", from_="leaf0:p0", to="leaf1:p0", load=0.4, frame=1500, class_=0)]})
        self.assertEqual(results["ethernet"]["pfc_received"], 1)
        self.assertEqual(link(results, "leaf1:p0 out")["paused_ns"], 0)
        self.assertEqual(dropped(results), {})

    def write_pcap(self, name, frames):
        data = struct.pack("<IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 65535, 1)
        for at_ns, frame in frames:
            data += struct.pack("<IIII", 0, at_ns, len(frame), len(frame)) + frame
        (self.folder / name).write_bytes(data)

    def storm(self, action):
        """A host that pauses class 3 for ever, from 10 µs on, and frames for it in classes 3 and 4."""
        pause = PAUSE_ADDRESS + bytes.fromhex("02aa00000001 8808 0101 0008") + struct.pack(">8H", 0, 0, 0, 65535, 0, 0, 0, 0) + bytes(26)
        # 65535 quanta at 100G are 335.5 µs; said again every 100 µs until 1000 µs.
        self.write_pcap("storm.pcap", [(i * 100_000, pause) for i in range(10)])
        return self.run_config({"topology": topology(2, 1, 2), "duration": "1ms",
                                "ethernet": {"watchdog": {"action": action, "detect": "200us", "restore": "500us"}},
                                "traffic": [{"replay": {"file": "storm.pcap", "start": "10us",
                                                        "ports": [{"mac": "02:aa:00:00:00:01", "port": "leaf1:p0"}]}},
                                            constant(pattern="one", from_="leaf0:p0", to="leaf1:p0", load=0.1, frame=1500, class_=3),
                                            constant(pattern="one", from_="leaf0:p1", to="leaf1:p0", load=0.1, frame=1500, class_=4)]},
                               out=action)

    def test_watchdog(self):
        rate = 0.1 * 100 * G / 8 / (1500 + OVERHEAD)  # frames a second of a flow
        off, drop, forward = (self.storm(action) for action in ("off", "drop", "forward"))
        class4 = flow(off, "leaf0:p1", "leaf1:p0")["frames"]
        self.assertAlmostEqual(class4, rate * 1e-3, delta=10)  # some are on their way; class 4 never waits
        self.assertLess(flow(off, "leaf0:p0", "leaf1:p0")["frames"], rate * 20e-6)
        self.assertEqual((off["ethernet"]["watchdog_storms"], dropped(off)), (0, {}))
        # Found 200 µs after the first frame stood still (10 µs and some spacing and flight): what came until then and after is dropped.
        self.assertEqual(drop["ethernet"]["watchdog_storms"], 1)
        self.assertAlmostEqual(drop["frames"]["dropped"]["watchdog"], rate * 990e-6, delta=10)
        self.assertEqual(dropped(forward), {})
        self.assertAlmostEqual(flow(forward, "leaf0:p0", "leaf1:p0")["frames"], rate * 1e-3, delta=10)
        for results in (drop, forward):
            self.assertEqual(flow(results, "leaf0:p1", "leaf1:p0")["frames"], class4)


class Traffic(Fabric):
    def test_real_captures_come_out_as_they_went_in(self):
        """Bytes change in ECN and checksum only, and frames are delivered as the scheduled fabric delivers them."""
        capture = self.capture_input("small-messages.pcapng")
        delivered = {}
        for fabric in ("ethernet", "voq"):
            config = {"topology": topology(2, 2, 2), "ethernet": {"buffer": "4MiB"}, "capture": {"points": ["hosts"]}, "traffic": {"replay": {"file": str(capture)}}}
            self.write(f"{fabric}.yaml", json.dumps({"fabric": fabric, **config}))
            self.weft("run", f"{fabric}.yaml", "--out", fabric)
            results = self.results(fabric)
            self.assert_balanced(results)
            seen = list(packets(self.folder / fabric / "capture.pcapng"))
            delivered[fabric] = sorted((name, data) for name, _, data, _ in seen if name.endswith(" out"))
            self.assertEqual(results["frames"]["in_flight"], 0)
        self.assertEqual(delivered["ethernet"], delivered["voq"])

    def test_one_queue_pair_after_another_on_one_udp_port(self):
        """Captures of 256 queue pairs that share a UDP source port: one link by the 5-tuple, all with the queue pair."""
        capture = self.capture_input("../../../shared/captures/public/synth__roce_entropy_256_qp_one_sport_49152.pcap")
        used = {}
        for fields in ("5tuple", "5tuple+qp"):
            results = self.run_config({"topology": topology(2, 4, 1), "ethernet": {"hash": {"fields": fields}},
                                       "traffic": {"replay": {"file": str(capture)}}}, out=fields)
            used[fields] = sum(link(results, f"leaf0>spine{s}")["wire_bytes"] > 0 for s in range(4))
        self.assertEqual(used, {"5tuple": 1, "5tuple+qp": 4})

    def test_dead_link(self):
        """What is on the link is lost, and what is sent to it until both ends know; then nothing."""
        results = self.run_config({"topology": topology(2, 2, 2), "duration": "400us",
                                   "faults": [{"at": "100us", "link": "leaf0-spine0", "do": "down"}],
                                   "ethernet": {"load_balance": "spray", "detection": "50us"},
                                   "traffic": constant(pattern="one", from_="leaf0:p0", to="leaf1:p0", load=0.5, frame=1500, class_=3)})
        expected = 0.5 * 100 * G / 8 / (1500 + OVERHEAD) * 50e-6 / 2
        self.assertEqual(set(dropped(results)), {"link_down"})
        self.assertAlmostEqual(dropped(results)["link_down"], expected, delta=5)  # those on the wire or in the pipeline at either end


if __name__ == "__main__":
    end_to_end.main()
