#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""weft compare: the same traffic through several fabrics, from the command line to compare.json and the table."""
import collections
import json
import os
import pathlib
import signal
import struct

import end_to_end
from end_to_end import SOURCE, EndToEnd, less_cost, packets
from validate_results import problems

PUBLIC = pathlib.Path(os.environ.get("WEFT_PUBLIC_CAPTURES", SOURCE / ".." / "shared" / "captures" / "public"))

# Two leaves, two links between them: three flows, two of which must share a link if each takes one.
SMALL = """\
topology:
  leaves: 2
  spines: 2
  hosts_per_leaf: 3
  host_link: {rate: 100G, delay: 50ns}
  fabric_link: {rate: 200G, delay: 250ns}
duration: 60us
warmup: 20us
traffic:
  - constant: {pattern: one, from: leaf0:p0, to: leaf1:p0, load: 0.9, frame: 1500}
  - constant: {pattern: one, from: leaf0:p1, to: leaf1:p1, load: 0.9, frame: 1500}
  - constant: {pattern: one, from: leaf0:p2, to: leaf1:p2, load: 0.9, frame: 1500}
"""
REPLAY = """\
topology: {leaves: 4, spines: 2, hosts_per_leaf: 4}
traffic:
  replay: {file: none.pcap}
"""


class Comparison(EndToEnd):
    def compare(self, *arguments, out="out", expect=0):
        self.weft("compare", *arguments, "--out", out, expect=expect)
        comparison = json.loads((self.folder / out / "compare.json").read_text())
        self.assertEqual(problems(comparison, "compare-schema.json"), [])
        return comparison

    def metrics(self, comparison):
        return {run["name"]: run["metrics"] for run in comparison["runs"]}


class Compare(Comparison):
    def test_each_run_is_a_run_of_its_own_and_the_figures_are_its(self):
        self.write("small.yaml", SMALL)
        comparison = self.compare("small.yaml", "--fabrics", "voq,ethernet,ethernet/spray")
        self.assertEqual([run["name"] for run in comparison["runs"]], ["voq", "ethernet", "ethernet/spray"])
        for run in comparison["runs"]:
            with self.subTest(run=run["name"]):
                results = self.results(f"out/{run['folder']}")
                self.assert_balanced(results)
                self.assertEqual(results["fabric"], run["fabric"])
                metrics = run["metrics"]
                self.assertEqual(metrics["latency_ns"], results["latency_ns"])
                self.assertEqual(metrics["throughput"], results["throughput"])
                self.assertEqual(metrics["frames"]["delivered"], results["frames"]["delivered"])
                self.assertEqual(metrics["out_of_order"], sum(flow["out_of_order"] for flow in results["flows"]))
                self.weft("run", f"out/{run['folder']}/config.yaml", "--out", f"again-{run['folder']}")
                self.assertEqual(less_cost(results), less_cost(self.results(f"again-{run['folder']}")))
        for flow in comparison["flows"]:
            self.assertEqual(len(flow["runs"]), 3)
        metrics = self.metrics(comparison)
        # Two of three flows of 90G share 200G somewhere, or all three do: per frame they are spread evenly.
        # (to a few frames of the 660 that each link carries)
        self.assertAlmostEqual(metrics["ethernet/spray"]["balance"]["up"]["max_over_mean"], 1, delta=0.01)
        self.assertGreaterEqual(metrics["ethernet"]["balance"]["up"]["max_over_mean"], 4 / 3 - 0.01)

    def test_the_config_may_name_either_fabric_and_carry_either_section(self):
        sections = {"voq": "voq: {sram: 16MiB}\n", "ethernet": "ethernet: {buffer: 8MiB, load_balance: spray}\n",
                    "both": "voq: {sram: 16MiB}\nethernet: {buffer: 8MiB, load_balance: spray}\n", "none": ""}
        for fabric in ("voq", "ethernet"):
            for which, section in sections.items():
                with self.subTest(fabric=fabric, sections=which):
                    self.write("any.yaml", f"fabric: {fabric}\n" + SMALL + section)
                    comparison = self.compare("any.yaml", out=f"{fabric}-{which}")
                    for run in comparison["runs"]:
                        self.assertEqual(run["exit_code"], 0)
                        config = (self.folder / f"{fabric}-{which}" / run["folder"] / "config.yaml").read_text()
                        self.assertIn("buffer: 8MiB" if "8MiB" in section else "buffer: 64MiB", config)
                        self.assertIn("load_balance: spray" if "spray" in section else "load_balance: ecmp", config)
                        self.assertIn("sram: 16MiB" if "16MiB" in section else "sram: 32MiB", config)

    def test_classes_to_mark_without_thresholds_for_voq_are_marked_on_ethernet_only(self):
        self.write("ecn.yaml", "fabric: ethernet\nclasses: {ecn: [3]}\n"
                   + SMALL.replace("{rate: 200G, delay: 250ns}", "{rate: 50G, delay: 250ns}")
                   + "ethernet: {ecn: {kmin: 10KB, kmax: 20KB, pmax: 1}}\n")
        comparison = self.compare("ecn.yaml")
        metrics = self.metrics(comparison)
        self.assertGreater(metrics["ethernet"]["ecn_marked"], 0)
        self.assertEqual(metrics["voq"]["ecn_marked"], 0)
        self.assertIn("voq.ecn", comparison["notes"][0])

    def test_the_same_twice_and_with_two_workers(self):
        self.write("small.yaml", SMALL)
        first = self.compare("small.yaml", out="a")
        self.assertEqual(first, self.compare("small.yaml", out="b"))
        self.assertEqual(first, self.compare("small.yaml", "--workers", "2", out="c"))
        self.assertNotEqual(first, self.compare("small.yaml", "--set", "traffic.0.constant.load=0.5", out="d"))

    def test_table_and_json_on_stdout(self):
        self.write("small.yaml", SMALL)
        table = self.weft("compare", "small.yaml", "--out", "a").stdout
        header = next(line for line in table.splitlines() if "ethernet" in line)
        self.assertEqual(header.split(), ["voq", "ethernet"])
        for row in ("offered", "delivered", "dropped", "goodput", "p99.9", "last frame", "up, max/mean", "up, Jain",
                    "buffer needed", "time average", "hosts paused", "spread, hops", "frames marked", "out of order"):
            self.assertIn(f" {row} ", table)
        said = self.weft("compare", "small.yaml", "--out", "b", "--json").stdout
        self.assertEqual(said, (self.folder / "b" / "compare.json").read_text())

    def test_bad_usage_is_two_one_line_and_leaves_nothing(self):
        self.write("small.yaml", SMALL)
        self.write("bad.yaml", SMALL.replace("hosts_per_leaf", "host_per_leaf"))
        self.write("bad-ethernet.yaml", SMALL + "ethernet: {ecn: {kmin: 2MB, kmax: 1MB}}\n")
        for arguments, words in [
                (["small.yaml", "--fabrics", "voq,token-ring"], ["token-ring", "ethernet/spray"]),
                (["small.yaml", "--fabrics", "ethernet/magic"], ["magic", "ethernet/spray"]),
                (["small.yaml", "--fabrics", "voq/spray"], ["voq/spray"]),
                (["small.yaml", "--fabrics", "voq,voq"], ["twice"]),
                (["small.yaml", "--set", "voq.nonsense=1"], ["nonsense"]),
                (["bad.yaml"], ["bad.yaml:4", "host_per_leaf"]),
                (["bad-ethernet.yaml"], ["kmin"]),
                (["missing.yaml"], ["missing.yaml"]),
                (["small.yaml", "--seed", "-1"], ["--seed", "-1"]),
                # Known only when the fabric is built: the run says so, and compare passes it on.
                (["small.yaml", "--fabrics", "ethernet", "--set", "ethernet.buffer=64KiB"], ["ethernet.buffer"]),
                ([], ["CONFIG"])]:
            with self.subTest(arguments=arguments):
                self.assert_one_line(self.weft("compare", *arguments, "--out", "out", expect=2).stderr, *words)
                self.assertFalse((self.folder / "out").exists())

    def test_a_folder_that_holds_something_is_refused(self):
        self.write("small.yaml", SMALL)
        self.compare("small.yaml")
        self.assert_one_line(self.weft("compare", "small.yaml", "--out", "out", expect=2).stderr, "not empty", "--force")
        self.compare("small.yaml", "--force")
        (self.folder / "mine").mkdir()
        (self.folder / "mine" / "letter.txt").write_text("dear")
        self.assert_one_line(self.weft("compare", "small.yaml", "--out", "mine", "--force", expect=2).stderr, "compare.json")

    def test_one_fabric_that_cannot_be_run_does_not_take_the_other_along(self):
        self.write("small.yaml", SMALL)
        done = self.weft("compare", "small.yaml", "--out", "out", "--set", "ethernet.buffer=64KiB", expect=1)
        self.assert_one_line(done.stderr, "ethernet: ", "ethernet.buffer")
        self.assertIn("failed", done.stdout)
        comparison = json.loads((self.folder / "out" / "compare.json").read_text())
        self.assertEqual(problems(comparison, "compare-schema.json"), [])
        self.assertIsNotNone(comparison["runs"][0]["metrics"])
        self.assertIsNone(comparison["runs"][1]["metrics"])
        self.assertEqual(comparison["runs"][1]["exit_code"], 2)

    def test_an_interrupt_ends_it_in_order(self):
        self.write("long.yaml", SMALL.replace("duration: 60us", "duration: 10000s"))
        process = self.start("compare", "long.yaml", "--out", "out")
        self.wait_for((self.folder / "out" / "voq" / "config.yaml").exists, process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, err)
        self.assertIn("interrupted", err)
        comparison = json.loads((self.folder / "out" / "compare.json").read_text())
        self.assertEqual(problems(comparison, "compare-schema.json"), [])
        self.assertTrue(comparison["runs"][0]["interrupted"])
        self.assertIsNone(comparison["runs"][1]["metrics"])
        self.assertIn("failed", out)


def internet_checksum(header):
    total = sum(struct.unpack(f">{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total


class Frame:
    """What a switch may touch of a frame, and the rest, which it may not."""

    def __init__(self, data):
        rest = bytearray(data)
        at = 12
        while len(data) >= at + 2 and struct.unpack_from(">H", data, at)[0] in (0x8100, 0x88a8):
            at += 4
        kind = struct.unpack_from(">H", data, at)[0] if len(data) >= at + 2 else 0
        ip = at + 2
        self.macs, self.ecn, self.ttl, self.sound = bytes(data[:12]), None, None, None
        rest[:12] = bytes(12)
        if kind == 0x0800 and len(data) >= ip + 20:
            self.ecn, self.ttl = data[ip + 1] & 3, data[ip + 8]
            length = (data[ip] & 15) * 4
            self.sound = len(data) >= ip + length >= ip + 20 and internet_checksum(data[ip:ip + length]) == 0xffff
            rest[ip + 1] &= 0xfc
            rest[ip + 8] = 0
            rest[ip + 10:ip + 12] = bytes(2)
        elif kind == 0x86dd and len(data) >= ip + 8:
            self.ecn, self.ttl = data[ip + 1] >> 4 & 3, data[ip + 7]
            rest[ip + 1] &= 0xcf
            rest[ip + 7] = 0
        self.rest = bytes(rest)


class Bytes(Comparison):
    """Bytes go in, and the same bytes come out, but for the fields that a switch may touch."""

    def hosts_in_and_out(self, folder):
        """Frames as hosts sent them and as hosts got them, pause frames of the switches left out."""
        sent, got = [], []
        for name, _, data, _ in packets(self.folder / folder / "capture.pcapng"):
            if data[12:14] == b"\x88\x08" and data[6:10] == b"\x02wef":
                continue
            (sent if name.endswith(" in") else got).append(Frame(data))
        return sent, got

    def check(self, folder, routed=False):
        """Counts of frames got, and of those marked on the way."""
        sent, got = self.hosts_in_and_out(folder)
        before = collections.defaultdict(list)
        for frame in sent:
            before[frame.rest].append(frame)
        marked = 0
        for frame in got:
            self.assertIn(frame.rest, before, "a frame came out that never went in, or was changed on the way")
            # Frames that differ in nothing else may stand for each other: one of them must explain what is seen.
            same = [s for s in before[frame.rest] if
                    frame.ecn in (s.ecn, 3 if s.ecn in (1, 2) else s.ecn)
                    and frame.ttl == (s.ttl - 1 if routed and s.ttl is not None else s.ttl)
                    and (routed or frame.macs == s.macs)
                    and (frame.sound or not s.sound)]
            self.assertTrue(same, "only ECN to CE, a TTL less by one and a checksum that holds are allowed")
            marked += all(s.ecn != frame.ecn for s in same)
            if routed:
                self.assertNotIn(frame.macs, [s.macs for s in same], "a router writes its own addresses")
        return len(got), marked

    def test_each_capture_through_both_fabrics(self):
        self.write("replay.yaml", REPLAY)
        captures = sorted((SOURCE / "tests" / "captures").glob("*.pcapng"))
        self.assertEqual(len(captures), 3)
        captures += sorted(PUBLIC.glob("synth__*"))
        for capture in captures:
            with self.subTest(capture=capture.name):
                comparison = self.compare("replay.yaml", "--replay", capture, "--capture", "hosts", out=capture.name)
                counts = []
                for run in comparison["runs"]:
                    results = self.results(f"{capture.name}/{run['folder']}")
                    self.assert_balanced(results)
                    frames, _ = self.check(f"{capture.name}/{run['folder']}")
                    self.assertEqual(frames, results["frames"]["delivered"])
                    self.assertEqual(results["replays"][0]["frames"], results["replays"][0]["expected"])
                    counts.append((results["frames"]["offered"], frames, results["frames"]["dropped"]))
                self.assertEqual(*counts, "nothing is congested: both carry the same")
                self.assertGreater(counts[0][0], 0, "hosts send something")

    def test_marked_and_routed_frames(self):
        # Three senders to one: its queues grow past thresholds of a few frames, and every frame is marked there.
        ecn = "{kmin: 3KB, kmax: 6KB, pmax: 1}"
        base = SMALL[:SMALL.index("traffic:")] + "traffic:\n  - constant: {pattern: incast, receiver: leaf1:p0, load: 0.5}\n"
        base += f"classes: {{ecn: [3]}}\nvoq: {{ecn: {ecn}}}\nethernet: {{ecn: {ecn}}}\n"
        routes = "".join(f"    - {{prefix: 198.18.0.{port + 1}/32, port: leaf{port // 3}:p{port % 3}}}\n" for port in range(6))
        for mode, forwarding in (("bridge", ""), ("route", f"forwarding:\n  mode: route\n  routes:\n{routes}")):
            with self.subTest(mode=mode):
                self.write(f"{mode}.yaml", base + forwarding)
                comparison = self.compare(f"{mode}.yaml", "--capture", "hosts", out=mode)
                for run in comparison["runs"]:
                    frames, marked = self.check(f"{mode}/{run['folder']}", routed=mode == "route")
                    self.assertEqual(frames, run["metrics"]["frames"]["delivered"])
                    self.assertGreater(frames, 200)
                    self.assertGreater(marked, 100)


if __name__ == "__main__":
    end_to_end.main()
