#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What goes wrong in the field when captures are read, replayed and written, end to end on the scheduled fabric: whole kinds of
fault, each named after the public bug report that it is known from. Captures from public projects are read where they lie."""
import collections
import concurrent.futures
import contextlib
import importlib.util
import json
import os
import pathlib
import struct
import subprocess
import sys
import unittest.mock

import end_to_end
from end_to_end import EndToEnd, packets

PUBLIC = pathlib.Path(os.environ.get("WEFT_PUBLIC_CAPTURES", end_to_end.SOURCE / ".." / "shared" / "captures" / "public"))
ICRC = end_to_end.SOURCE / ".." / "shared" / "tools" / "icrc.py"


def records(path):
    """(nanoseconds, bytes, original length) of each packet of a pcap or, as weft writes it, pcapng file."""
    data = pathlib.Path(path).read_bytes()
    if data[:4] == b"\x0a\x0d\x0d\x0a":
        yield from ((time, frame, length) for _, time, frame, length in packets(path))
        return
    order = "<" if data[0] in (0xd4, 0x4d) else ">"
    scale = 1 if struct.unpack_from(order + "I", data)[0] == 0xa1b23c4d else 1000
    at = 24
    while at + 16 <= len(data):
        seconds, fraction, captured, original = struct.unpack_from(order + "IIII", data, at)
        yield seconds * 10 ** 9 + fraction * scale, data[at + 16:at + 16 + captured], original
        at += 16 + captured


class Replays(EndToEnd):
    def public(self, name):
        if not (PUBLIC / name).exists():
            self.skipTest(f"{PUBLIC / name} is not there")
        return (PUBLIC / name).resolve()

    def replay(self, file, *arguments, out="out", leaves=2, expect=0, points=("hosts", "drops"), replay=None, **config):
        self.write(f"{out}.yaml", json.dumps({
            "fabric": "voq", "topology": {"leaves": leaves, "spines": leaves, "hosts_per_leaf": leaves}, "frame_pool": 20_000,
            "traffic": {"replay": {"file": str(file), **(replay or {})}}, "capture": {"points": list(points)}, **config}))
        done = self.weft("run", f"{out}.yaml", "--out", out, *arguments, expect=expect)
        if expect != 0:
            return done.stderr
        results = self.results(out)
        self.assert_balanced(results)
        return results

    def taps(self, out="out"):
        """Packets of the capture that weft wrote, as ("in" or "out", port, nanoseconds, bytes, original length)."""
        for name, time, frame, length in packets(self.folder / out / "capture.pcapng"):
            if name.endswith((" in", " out")):
                port, direction = name.rsplit(" ", 1)
                yield direction, port, time, frame, length

    def dropped(self, results):
        return {reason: n for reason, n in results["frames"]["dropped"].items() if n}

    def icrc_of(self, frame):
        """True, False, None (cut short) or "no" (not RoCE), by a checker that knows nothing of weft."""
        if not ICRC.exists():
            self.skipTest(f"{ICRC} is not there")
        spec = importlib.util.spec_from_file_location("icrc", ICRC)
        module = importlib.util.module_from_spec(spec)
        with unittest.mock.patch.object(sys, "argv", [str(ICRC)]), contextlib.suppress(SystemExit):
            spec.loader.exec_module(module)  # a script: without arguments it checks nothing and exits
        self.__dict__["icrc_of"] = module.check
        return module.check(frame)

    def assert_frames_out_are_frames_in(self, capture, out="out"):
        """Each frame of the capture came out, whole and unchanged, and nothing else did."""
        given = collections.Counter(frame for _, frame, _ in records(capture))
        went_in = collections.Counter(frame for direction, _, _, frame, _ in self.taps(out) if direction == "in")
        came_out = {frame for direction, _, _, frame, _ in self.taps(out) if direction == "out"}
        self.assertTrue(went_in == given, "what went in is not what was captured")
        self.assertTrue(came_out == set(given), "what came out is not what went in")


class Reading(Replays):
    def test_a1_jumbo_frames_cross_whole_and_what_exceeds_the_mtu_is_named(self):
        capture = self.public("synth__roce_mtu4096.pcap")
        self.assertEqual(self.dropped(self.replay(capture)), {})
        self.assert_frames_out_are_frames_in(capture)
        for _, _, _, frame, length in self.taps():
            self.assertEqual(len(frame), length)
            self.assertIs(self.icrc_of(frame), True)
        # 9014 to 9274 bytes: those above the MTU are dropped for that, never shortened.
        capture = self.public("synth__roce_9000_and_9216.pcap")
        lengths = [len(frame) for _, frame, _ in records(capture)]
        results = self.replay(capture, out="jumbo")
        longer = sum(length > 9216 + 8 for length in lengths)  # tags come on top of the MTU
        untagged = sum(length > 9216 for length in lengths)
        self.assertIn(results["frames"]["dropped"]["mtu_exceeded"], (longer, untagged))
        for direction, _, _, frame, length in self.taps("jumbo"):
            self.assertEqual(len(frame), length)
            self.assertIn(length, lengths)
            if direction == "out":
                self.assertIs(self.icrc_of(frame), True)

    def test_a2_over_mtu_is_never_sent_and_never_fragmented(self):
        results = self.replay(self.public("synth__roce_mtu4096.pcap"), forwarding={"mtu": 1500})
        self.assertEqual(self.dropped(results), {"mtu_exceeded": 8})
        self.assertEqual(results["frames"]["delivered"], 0)
        self.assertEqual([tap for tap in self.taps() if tap[0] == "out"], [])

    def test_a3_what_is_not_ethernet_is_left_out_and_said(self):
        results = self.replay(self.public("seladb_PcapPlusPlus__pcapng-example.pcapng"))
        replay = results["replays"][0]
        self.assertEqual((replay["frames"], replay["skipped"]), (59, 100))
        self.assertRegex("\n".join(replay["notes"]), r"100 packets of interface 1 .*LINUX_SLL \(113\)")

    def test_a4_a6_time_stamps_of_every_resolution(self):
        self.replay(self.public("synth__pcapng_tsresol_2pow30_tsoffset_snaplen_ffffffff.pcapng"), out="base2")
        times = [time for direction, _, time, *_ in self.taps("base2") if direction == "in"]
        # Last bits arrive a serialisation later, of frames of one length.
        self.assertEqual([time - times[0] for time in times], [0, 500_000_000, 1_000_000_000])
        capture = self.public("synth__roce_opcode_sweep_be_nsec.pcap")
        self.replay(capture, out="sweep", topology={"leaves": 2, "spines": 2, "hosts_per_leaf": 2, "host_link": {"rate": "8T"}})
        starts = sorted(time - len(frame) * 8 // 8000 for direction, _, time, frame, _ in self.taps("sweep") if direction == "in")
        given = sorted(time for time, *_ in records(capture))
        self.assertEqual(len(starts), 37)
        for n, (start, stamp) in enumerate(zip(starts, given)):
            # 87 ns apart, neither 0 nor 1000: to the ns of the stamps and that of the wire time (24 bytes take 24 ps).
            self.assertLessEqual(abs((start - starts[0]) - (stamp - given[0])), 2, n)

    def test_a5_captures_are_nanosecond_and_never_run_backwards(self):
        for name in ("derived__roce_nsec.pcap", "synth__incast_3ports_100each_ns.pcapng"):
            with self.subTest(capture=name):
                self.replay(self.public(name), out=name[:8])
                capture = self.folder / name[:8] / "capture.pcapng"
                self.assertEqual(self.resolutions(capture), {9})
                times = [time for _, time, _, _ in packets(capture)]
                self.assertEqual(times, sorted(times))
                self.assertTrue(any(time % 1000 for time in times))

    def resolutions(self, path):
        data, at, found = pathlib.Path(path).read_bytes(), 0, set()
        while at + 12 <= len(data):
            kind, length = struct.unpack_from("<II", data, at)
            if kind == 1:
                options = data[at + 16:at + length - 4]
                while len(options) >= 4:
                    code, size = struct.unpack_from("<HH", options)
                    if code == 9:
                        found.add(options[4])
                    options = options[4 + (size + 3) // 4 * 4:]
            at += length
        return found

    def test_a7_replay_in_a_loop_does_not_drift(self):
        capture = self.public("oferby_proxy__roce.pcap")
        given = list(records(capture))
        results = self.replay(capture, replay={"loop": 10})
        self.assertEqual(results["replays"][0]["frames"], 10 * len(given))
        times = [time for direction, _, time, *_ in self.taps() if direction == "in"]
        self.assertEqual(len(times), 10 * len(given))
        ends = [times[(n + 1) * len(given) - 1] - times[0] for n in range(10)]
        span = given[-1][0] - given[0][0]
        self.assertLess(abs(ends[0] - span), 1000)
        periods = [b - a for a, b in zip(ends, ends[1:])]
        self.assertLessEqual(max(periods) - min(periods), 2, "the error grows")  # stamps are whole ns
        # The loop's seam is as long as a gap within the capture at most: nothing else is known of it.
        self.assertLess(abs(periods[0] - span), span / 10)

    def test_a8_rdma_captures_come_out_and_nothing_else_does(self):
        capture = self.public("montybeatnik_rdma-roce-lab__roce_capture_read-write-ecn.pcap")
        results = self.replay(capture)
        self.assertEqual((results["replays"][0]["frames"], results["replays"][0]["expected"]), (12, 12))
        self.assert_frames_out_are_frames_in(capture)
        self.assertEqual({self.icrc_of(frame) for direction, _, _, frame, _ in self.taps() if direction == "out"}, {True})

    def test_a9_odd_lengths_gain_no_byte(self):
        for name, odd in (("srinivaskoritala_rdma-softroce-demo__rdma_traffic_capture.pcap", 8), ("ntop_nDPI__badpackets.pcap", 44)):
            with self.subTest(capture=name):
                out = name[:4]
                results = self.replay(self.public(name), out=out)
                given = [(length, frame) for _, frame, length in records(PUBLIC / name)]
                self.assertEqual(sum(length % 2 for length, _ in given), odd)
                went_in = [(length, frame) for direction, _, _, frame, length in self.taps(out) if direction == "in"]
                # A record that was captured short is sent at its original length, zero-filled.
                whole = collections.Counter((length, frame.ljust(length, b"\0")) for length, frame in given)
                self.assertTrue(collections.Counter(went_in) == whole)
                came_out = {(length, frame) for direction, _, _, frame, length in self.taps(out) if direction == "out"}
                self.assertLessEqual(came_out, set(whole))
                if not self.dropped(results) and not sum(results["frames"]["filtered"].values()):
                    self.assertEqual(came_out, set(whole))

    def test_a10_other_link_types_are_refused_by_name(self):
        for name, link_type in (("the-tcpdump-group_tcpdump__tcp-handshake-nano.pcap", "113"),
                                ("srinivaskoritala_rdma-softroce-demo__infiniband.pcap", "197"),
                                ("the-tcpdump-group_tcpdump__ipoib.pcap", "242")):
            with self.subTest(capture=name):
                self.assert_one_line(self.replay(self.public(name), expect=1), name, link_type)

    def test_a11_frames_captured_short_keep_their_length(self):
        capture = self.public("derived__roce_snap64.pcap")
        results = self.replay(capture)
        given = list(records(capture))
        self.assertEqual(results["replays"][0]["padded"], sum(len(frame) < length for _, frame, length in given))
        self.assertGreater(results["replays"][0]["padded"], 70)
        self.assertEqual(results["frames"]["offered_bytes"], sum(length for *_, length in given))
        lengths = collections.Counter(length for *_, length in given)
        self.assertEqual(collections.Counter(length for direction, *_, length in self.taps() if direction == "in"), lengths)
        self.assert_one_line(self.replay(capture, out="strict", expect=1, replay={"strict": True}), capture.name)


class Writing(Replays):
    def test_b12_b13_snaplen_cuts_the_capture_and_not_the_frames(self):
        results = self.replay(self.public("synth__roce_mtu4096.pcap"), capture={"points": ["hosts"], "snaplen": 64})
        taps = list(self.taps())
        self.assertEqual({len(frame) for *_, frame, _ in taps}, {64})
        self.assertEqual({length for *_, length in taps}, {4170, 4154})
        self.assertEqual(results["frames"]["delivered_bytes"] % results["frames"]["offered_bytes"], 0, "floods deliver whole multiples")

    def test_b14_names_and_counts_of_interfaces(self):
        self.replay(self.public("synth__incast_3ports_100each_ns.pcapng"))
        capture = self.folder / "out/capture.pcapng"
        seen = collections.Counter(name for name, *_ in packets(capture))
        shown = collections.Counter(self.tool("tshark", "-r", capture, "-T", "fields", "-e", "frame.interface_name").splitlines())
        self.assertEqual(shown, seen)
        text = self.tool("capinfos", capture)
        for name, count in seen.items():
            block = text[text.index(f"Name = {name}\n"):]
            self.assertIn(f"Number of packets = {count}\n", block.split("Interface #")[0])

    def test_b15_format_goes_by_content_and_xon_is_no_malformation(self):
        for name in ("seladb_PcapPlusPlus__ipv4-malformed.pcap", "ntop_nDPI__dtls.pcap"):  # pcapng, whatever they are called
            results = self.replay(self.public(name), out=name[:5])
            self.assertGreater(results["replays"][0]["frames"], 0)
        results = self.replay(self.public("synth__pfc_and_pause.pcap"), out="pfc")
        # One is tagged, so that no port takes it for its own; its address is not to be forwarded either.
        filtered = results["frames"]["filtered"]
        self.assertEqual((filtered["mac_control"], filtered["link_local"], results["frames"]["offered"]), (19, 1, 20))
        self.assertEqual(results["frames"]["delivered"], 0, "MAC control frames are never forwarded")
        self.assertEqual(self.dropped(results), {})


class Classes(Replays):
    def test_d26_a_cnp_takes_the_class_that_its_dscp_maps_to(self):
        capture = self.public("secdev_scapy__roce.uts_real_frames.pcap")
        for traffic_class in (5, 6):
            with self.subTest(traffic_class=traffic_class):
                out = f"class-{traffic_class}"
                self.replay(capture, out=out, points=("hosts", "cells"), classes={
                    "dscp": {"5": traffic_class, "46": traffic_class, "48": traffic_class}, "ecn": [3]},
                            voq={"ecn": {"kmin": 1, "kmax": 1, "pmax": 1}})
                frame = next(records(capture))[1]
                self.assertEqual((frame[15] >> 2, frame[15] & 3), (48, 2), "the CNP of the capture")
                out_frames = {frame for direction, _, _, frame, _ in self.taps(out) if direction == "out"}
                self.assertIn(frame, out_frames, "DSCP and ECN unchanged: its class is not one that is marked")
                # The first data cells are the CNP's; docs/cell-format.md: stream = port * 8 + class, behind 22 bytes.
                classes = [data[22 + 1] & 7 for name, _, data, _ in packets(self.folder / out / "capture.pcapng")
                           if name.startswith("leaf") and ">" in name and data[12:14] == b"\x88\xb5" and data[15] == 0]
                self.assertEqual(classes[0], traffic_class)


class SoftRoce(Replays):
    """The project's own captures of two soft-RoCE hosts across a 4x4 fabric."""

    def malformed(self, path, *filters):
        return collections.Counter(self.tool("tshark", "-r", path, "-Y", " && ".join(["_ws.malformed", *filters]), "-T", "fields", "-e",
                                             "frame.len").split())

    def test_each_capture_crosses_once_in_order_and_unchanged(self):
        for name in ("small-messages.pcapng", "verbs-mtu1500.pcapng", "verbs-mtu4200.pcapng"):
            with self.subTest(capture=name):
                capture, out = self.capture_input(name), name.split(".", maxsplit=1)[0]
                results = self.replay(capture, out=out, leaves=4)
                self.assertEqual(self.dropped(results), {})
                self.assertEqual(results["frames"]["in_flight"], 0)
                self.assertEqual(sum(flow["out_of_order"] for flow in results["flows"]), 0)
                given, came_out = collections.defaultdict(list), collections.defaultdict(list)
                port_of = {}
                for direction, port, _, frame, _ in self.taps(out):
                    if direction == "in":
                        port_of[frame[6:12]] = port
                for _, frame, _ in records(capture):
                    if not frame[0] & 1:
                        given[frame[6:12], frame[0:6]].append(frame)
                for direction, port, _, frame, _ in self.taps(out):
                    if direction == "out" and not frame[0] & 1:
                        self.assertEqual(port, port_of[frame[0:6]], "a unicast frame came out elsewhere")
                        came_out[frame[6:12], frame[0:6]].append(frame)
                self.assertGreaterEqual(len(given), 2)
                self.assertTrue(given == came_out, "each pair's frames once, byte for byte, in order")
                right = collections.Counter(self.icrc_of(frame) for direction, _, _, frame, _ in self.taps(out) if direction == "out")
                self.assertEqual((right[False], right[None]), (0, 0))
                self.assertGreater(right[True], 100)
                self.assertEqual(self.malformed(self.folder / out / "capture.pcapng", 'frame.interface_name contains " out"'),
                                 self.malformed(capture))


class EveryPublicCapture(Replays):
    def outcome(self, capture):
        """None if it ran with balanced books or was refused in one line; else what is wrong."""
        out = f"of-{capture.name}"
        command = [end_to_end.PROGRAM, "run", "any.yaml", "--replay", str(capture), "--out", out, "--json"]
        try:
            done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, errors="replace", timeout=120, check=False)
        except subprocess.TimeoutExpired:
            return "hangs"
        if done.returncode == 1 and not done.stdout:
            lines = done.stderr.splitlines()
            return None if len(lines) == 1 and capture.name in lines[0] else f"refused in other words: {done.stderr}"
        if done.returncode != 0:
            return f"exit {done.returncode}: {done.stderr[-300:]}"
        results = json.loads(done.stdout)
        frames = results["frames"]
        total = frames["delivered"] + sum(frames["filtered"].values()) + sum(frames["dropped"].values()) + frames["in_flight"]
        if not frames["balanced"] or frames["offered"] + frames["replicated"] != total:
            return f"the books do not balance: {frames}"
        if frames["in_flight"] or sum(flow["out_of_order"] for flow in results["flows"]):
            return f"stuck or out of order: {frames}"
        if frames["offered"] == 0 and not results["replays"][0]["notes"]:
            return "nothing sent, and nothing said about it"
        return None

    def test_each_runs_with_balanced_books_or_is_refused_in_one_line(self):
        if not PUBLIC.exists():
            self.skipTest(f"{PUBLIC} is not there")
        self.write("any.yaml", json.dumps({"fabric": "voq", "topology": {"leaves": 2, "spines": 2, "hosts_per_leaf": 2},
                                           "frame_pool": 20_000}))
        captures = sorted(path.resolve() for path in PUBLIC.iterdir() if path.suffix != ".tsv")
        self.assertGreater(len(captures), 100)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for capture, problem in zip(captures, pool.map(self.outcome, captures)):
                with self.subTest(capture=capture.name):
                    self.assertIsNone(problem)


if __name__ == "__main__":
    end_to_end.main()
