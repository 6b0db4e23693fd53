#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""ECN and classes on the Ethernet fabric: who is marked, how often, judged when, and what marks change in a frame."""
import json
import struct

import end_to_end
from ethernet_runs import Fabric, OVERHEAD, constant, dropped, flow, link, topology

LENGTH = 1000
FRAME_NS = (LENGTH + OVERHEAD) * 8 / 100


def ones_sum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total


class Marking(Fabric):
    def standing_queue(self, frames, ecn, out, duration_us, **config):
        """A queue of about `frames` that neither grows nor drains: one host sends at the receiver's rate, another added so many at once."""
        stop_ns = 1000 + frames * FRAME_NS
        return self.run_config({
            "topology": {"leaves": 1, "spines": 0, "hosts_per_leaf": 3, "host_link": {"rate": "100G"}}, "duration": f"{duration_us}us",
            "ethernet": {"buffer": "16MiB", "ecn": ecn}, "traffic": [
                constant(pattern="one", from_=0, to=2, load=1, frame=LENGTH, class_=3, start="1us"),
                constant(pattern="one", from_=1, to=2, load=1, frame=LENGTH, class_=3, start="1us", stop=f"{stop_ns:.3f}ns")], **config},
                               out=out)

    def test_sonic_buildimage_4545_marks_follow_the_profile(self):
        """Over 100,000 frames at a standing depth: none below Kmin, Pmax at Kmax, all above, a straight line between."""
        kmin, kmax, pmax, count = 50_000, 150_000, 0.4, 100_000
        for frames in (40, 100, 149, 160):
            with self.subTest(frames=frames):
                results = self.standing_queue(frames, {"kmin": kmin, "kmax": kmax, "pmax": pmax}, f"depth-{frames}",
                                              count * FRAME_NS / 1e3)
                self.assertEqual(dropped(results), {})
                # The most that waited was an arriving frame and what it found; the same is found ever after.
                depth = link(results, "leaf0:p2 out")["queue_max_bytes"] - LENGTH
                self.assertAlmostEqual(depth, frames * LENGTH, delta=2 * LENGTH)  # one is being sent; a phase more or less
                chance = 0 if depth <= kmin else 1 if depth > kmax else pmax * (depth - kmin) / (kmax - kmin)
                marked, seen = results["ethernet"]["ecn_marked"], results["frames"]["offered"]
                self.assertAlmostEqual(seen, count, delta=200)
                # Four sigma of a binomial law, and the frames that came while the queue was still growing.
                self.assertAlmostEqual(marked, chance * seen, delta=4 * (seen * chance * (1 - chance)) ** 0.5 + (2 * frames if chance else 0))

    def test_a_mark_changes_two_bits_and_the_checksum(self):
        results = self.standing_queue(50, {"kmin": 1, "kmax": 100_000, "pmax": 0.5}, "out", 200,
                                      capture={"points": ["hosts"]})
        sent, marked = {}, 0
        for name, _, data, _ in self.captured():
            key = data[26:34], data[42:54]  # addresses; BTH with queue pair and PSN
            if name.endswith(" in"):
                sent[key] = data
                continue
            self.assertEqual(ones_sum(data[14:34]), 0xffff, "the IPv4 checksum is right")
            before = sent[key]
            if data[15] & 3 == 3:
                marked += 1
                self.assertEqual(before[15] & 3, 2)
                before = before[:15] + bytes([before[15] | 3]) + before[16:24] + data[24:26] + before[26:]
            self.assertEqual(data, before)
        # Marked at enqueue: some wait or are on the wire at the end.
        self.assertGreater(marked, 0)
        self.assertAlmostEqual(marked, results["ethernet"]["ecn_marked"], delta=60)

    def test_depth_is_judged_at_enqueue_or_at_dequeue(self):
        """101 frames gather behind a pause and drain: at enqueue those that found more than Kmax are marked, the last ones; at dequeue those
        that leave more behind, the first ones."""
        for at in ("enqueue", "dequeue"):
            with self.subTest(at=at):
                config = {"topology": topology(2, 1, 1, fabric="400G"), "duration": "120us", "capture": {"points": ["hosts"], "snaplen": 64},
                          "ethernet": {"ecn": {"kmin": 50_000, "kmax": 51_000, "pmax": 1, "at": at}, "pfc_reaction": "100ns"},
                          "traffic": [self.pausing_host("leaf1:p0", [(1_000, {3: 10000}), (40_000, {3: 0})]),
                                      constant(pattern="one", from_=0, to=1, load=0.9, frame=1024, class_=3, start="5us",
                                               stop=f"{5000 + 101 * (1024 + OVERHEAD) * 8 / 90:.3f}ns")]}
                self.run_config(config, out=at)
                marks = [data[15] & 3 == 3 for name, _, data, _ in self.captured(at) if name == "leaf1:p0 out"]
                self.assertEqual(len(marks), 101)
                # Of 1024 bytes: 48 are below Kmin, 50 above Kmax, 49 in between, where chance decides.
                first, last = marks.index(True), 100 - marks[::-1].index(True)
                if at == "enqueue":  # frame n, from 0, finds n
                    self.assertIn(first, (49, 50))
                    self.assertEqual(last, 100)
                else:  # it leaves with 101 - n, itself included
                    self.assertEqual(first, 0)
                    self.assertIn(last, (100 - 49, 101 - 49))
                self.assertTrue(all(marks[first:last + 1][1:-1]))

    def test_frames_that_cannot_be_marked_pass_or_are_dropped(self):
        """`not_ect: drop` drops them where they are lossy; a lossless class loses nothing by it."""
        for at in ("enqueue", "dequeue"):
            for traffic_class, not_ect, ect in ((0, "pass", False), (0, "drop", False), (3, "drop", False), (0, "drop", True)):
                with self.subTest(at=at, traffic_class=traffic_class, not_ect=not_ect, ect=ect):
                    results = self.run_config({
                        "topology": topology(2, 2, 2), "duration": "200us", "classes": {"ecn": [0, 3]},
                        "ethernet": {"ecn": {"kmin": 20_000, "kmax": 20_000, "pmax": 1, "at": at, "not_ect": not_ect}},
                        "traffic": constant(pattern="incast", receiver="leaf1:p0", load=0.5, frame=LENGTH, class_=traffic_class, ect=ect)},
                                              out=f"{at}-{traffic_class}-{not_ect}-{ect}")
                    lost = dropped(results)
                    self.assertEqual(set(lost), {"not_ect"} if (traffic_class, not_ect, ect) == (0, "drop", False) else set())
                    self.assertEqual(results["ethernet"]["ecn_marked"] > 0, ect)
                    if lost:  # and so the queue never grows beyond the threshold by more than a frame
                        self.assertLess(link(results, "leaf1:p0 out")["queue_max_bytes"], 20_000 + (2 if at == "enqueue" else 60) * LENGTH)

    def test_sonic_buildimage_21891_a_profile_that_marks_nothing_is_refused(self):
        for ecn, word in (({"kmin": "400KB", "kmax": "1600KB", "pmax": 0}, "pmax"), ({"kmin": 10, "kmax": 5}, "kmin")):
            self.write("bad.yaml", json.dumps({"fabric": "ethernet", "duration": "10us", "ethernet": {"ecn": ecn},
                                               "traffic": constant(pattern="permutation", load=0.1)}))
            self.assert_one_line(self.weft("run", "bad.yaml", expect=2).stderr, f"ethernet.ecn.{word}")


class Classes(Fabric):
    def test_sonic_mgmt_25347_a_cnp_goes_by_its_own_class(self):
        """A real CNP (DSCP 48, UDP source port 0) beside congestion in class 3: never marked, never held by class 3's pauses, in the class
        that the table says, be it alone there or with others."""
        capture = self.capture_input("../../../shared/captures/public/secdev_scapy__roce.uts_real_frames.pcap")
        for held in (3, 5):
            results = self.run_config({
                "topology": topology(2, 2, 2), "duration": "200us", "classes": {"lossless": [3, 5], "dscp": {"5": 5, "46": 5, "48": 5},
                                                                                "ecn": [3]},
                "ethernet": {"ecn": {"kmin": 1, "kmax": 1, "pmax": 1}}, "capture": {"points": ["hosts"]},
                # Every host but the sender of the capture's frames pauses one class for longer than the run lasts.
                "traffic": [*(self.pausing_host(port, [(1_000, {held: 65535})], name=f"{port[-1]}{port[4]}.pcap", mac=f"02:bb:00:00:00:0{n}")
                              for n, port in enumerate(("leaf0:p1", "leaf1:p0", "leaf1:p1"))),
                            {"replay": {"file": str(capture), "start": "20us", "speed": 1e6, "ports": [
                                {"interface": "0", "port": "leaf0:p0"}]}}]}, out=f"held-{held}")
            cnps = [(name, data) for name, _, data, _ in self.captured(f"held-{held}") if len(data) > 46 and data[42] == 0x81]
            went_in = {data for name, data in cnps if name.endswith(" in")}
            came_out = {data for name, data in cnps if name.endswith(" out")}
            self.assertEqual({data[15] >> 2 for data in went_in}, {48})
            self.assertEqual(came_out, went_in if held == 3 else set(), f"class {held} held")
            self.assertEqual(results["frames"]["filtered"]["mac_control"], 3)

    def test_dscps_that_share_a_class_share_its_pause(self):
        """5, 46 and 48 in class 5; what the table leaves alone is in class 0 and goes on."""
        frames = []
        for n, dscp in enumerate((5, 46, 48, 1)):
            ip = bytes([0x45, dscp << 2]) + struct.pack(">HHHBBH4s4s", 46, 0, 0, 64, 17, 0, b"\xc6\x12\0\1", b"\xc6\x12\0\2")
            ip = ip[:10] + struct.pack(">H", 0xffff ^ ones_sum(ip)) + ip[12:]
            frames.append((n * 1000, bytes.fromhex("020000000001 020000000000 0800") + ip + struct.pack(">HHHH", 7, 9, 26, 0) + bytes(18)))
        self.write_pcap("four.pcap", frames)
        results = self.run_config({
            "topology": topology(2, 1, 1), "duration": "100us", "classes": {"lossless": [5], "dscp": {"5": 5, "46": 5, "48": 5}},
            "traffic": [self.pausing_host("leaf1:p0", [(1_000, {5: 65535})], mac="02:00:00:00:00:01"),
                        {"replay": {"file": "four.pcap", "start": "20us", "ports": [{"mac": "02:00:00:00:00:00", "port": "leaf0:p0"}]}}]})
        self.assertEqual((results["frames"]["delivered"], results["frames"]["in_flight"]), (1, 3))
        self.assertEqual(flow(results, "leaf0:p0", "leaf1:p0")["frames"], 1)


if __name__ == "__main__":
    end_to_end.main()
