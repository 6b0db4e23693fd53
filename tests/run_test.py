#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""weft run, from the command line to what lies on the disk."""
import collections
import csv
import json
import os
import shutil
import signal
import subprocess

import end_to_end
from end_to_end import EndToEnd, less_cost, packets

# Small enough to be quick under sanitizers, busy enough that cells are sprayed and put back in order.
SMALL = """\
fabric: voq
topology:
  leaves: 2
  spines: 2
  hosts_per_leaf: 2
  host_link: {rate: 100G, delay: 50ns}
  fabric_link: {rate: 100G, delay: 250ns}
duration: 50us
warmup: 10us
traffic:
  - constant: {pattern: permutation, load: 0.8, frame: 1500}
"""
LONG = SMALL.replace("duration: 50us", "duration: 10000s")
REPLAY = SMALL[:SMALL.index("duration:")]


class Usage(EndToEnd):
    def test_no_arguments_shows_the_help_and_fails(self):
        self.assertIn("run", self.weft(expect=2).stderr)

    def test_help_and_version(self):
        for arguments in (["help"], ["--help"], ["help", "run"], ["run", "--help"], ["check", "--help"]):
            self.assertIn("weft", self.weft(*arguments).stdout)
        self.assertRegex(self.weft("--version").stdout, r"^weft \d+\.\d+\.\d+\n$")

    def test_bad_usage_is_two_and_one_line(self):
        self.write("small.yaml", SMALL)
        for arguments, word in [(["fly"], "fly"), (["run"], "CONFIG"), (["run", "small.yaml", "--nonsense"], "--nonsense"),
                                (["run", "small.yaml", "--workers", "none"], "--workers"),
                                (["run", "small.yaml", "--capture", "everything"], "everything"),
                                (["run", "missing.yaml"], "missing.yaml"), (["check", "missing.yaml"], "missing.yaml")]:
            with self.subTest(arguments=arguments):
                done = self.weft(*arguments, expect=2)
                self.assert_one_line(done.stderr, word)
                self.assertEqual(done.stdout, "")
        self.assertFalse((self.folder / "weft-results").exists())

    def test_bad_config_is_two_and_names_file_line_and_key(self):
        self.write("bad.yaml", SMALL.replace("hosts_per_leaf", "host_per_leaf"))
        for verb in ("run", "check"):
            self.assert_one_line(self.weft(verb, "bad.yaml", expect=2).stderr, "bad.yaml:5", "host_per_leaf")

    def test_bad_capture_is_one_and_names_the_file(self):
        self.write("replay.yaml", REPLAY + "traffic:\n  - replay: {file: a.pcap}\n")
        for name, content in [("empty.pcap", b""), ("text.pcap", b"this is no capture, whatever its name says\n" * 9)]:
            (self.folder / name).write_bytes(content)
            self.assert_one_line(self.weft("run", "replay.yaml", "--replay", name, expect=1).stderr, name)
        self.assert_one_line(self.weft("run", "replay.yaml", "--replay", "gone.pcap", expect=1).stderr, "gone.pcap")
        self.assertFalse((self.folder / "weft-results").exists(), "a run that never started leaves no folder")


class Folder(EndToEnd):
    def test_results_are_whole_and_valid(self):
        self.write("small.yaml", SMALL)
        done = self.weft("run", "small.yaml")
        out = "weft-results/small-1"
        self.assertIn(out, done.stdout)
        results = self.results(out)
        self.assert_balanced(results)
        self.assertGreater(results["frames"]["delivered"], 100)
        self.assertGreater(results["cost"]["frames_per_s"], 0)
        rows = (self.folder / out / "flows.csv").read_text().splitlines()
        self.assertEqual(len(rows) - 1, len(results["flows"]))
        for name in ("flows.csv", "series.csv", "links.csv", "latency.csv"):
            header, *rows = (self.folder / out / name).read_text().splitlines()
            self.assertGreater(len(rows), 0, name)
            self.assertEqual({row.count(",") for row in rows}, {header.count(",")}, name)
        self.weft("run", "small.yaml")
        self.assertTrue((self.folder / "weft-results/small-2/results.json").exists())

    def test_results_validate_against_the_schema(self):
        try:
            import validate_results
        except ImportError as missing:
            self.skipTest(str(missing))
        self.write("small.yaml", SMALL)
        self.weft("run", "small.yaml", "--out", "out")
        self.assertEqual(validate_results.problems(self.results("out")), [])

    def test_links_over_time_add_up_to_the_links(self):
        self.write("small.yaml", SMALL)
        for fabric in ("voq", "ethernet"):
            with self.subTest(fabric=fabric):
                self.weft("run", "small.yaml", "--out", fabric, "--set", f"fabric={fabric}")
                with (self.folder / fabric / "links.csv").open(encoding="utf-8") as file:
                    samples = list(csv.DictReader(file))
                self.assertEqual(float(samples[-1]["time_us"]), 50, "the last sample is the end of the run")
                for link in self.results(fabric)["links"]:
                    total = sum(int(sample[link["name"]]) for sample in samples)
                    # Keep-alives are left out of the samples; nothing else is control on a link to or from a host.
                    self.assertLessEqual(total, link["wire_bytes"], link["name"])
                    self.assertGreaterEqual(total, link["wire_bytes"] - link["control_bytes"], link["name"])

    def test_the_average_depth_is_that_of_the_samples(self):
        # Three hosts send 80G each to one of 100G in a lossless class: the buffers fill, then PFC holds their level.
        self.write("incast.yaml", SMALL.replace("pattern: permutation", "pattern: incast, receiver: leaf1:p0")
                   .replace("duration: 50us", "duration: 400us\nsample_interval: 100ns")
                   + "ethernet: {buffer: 4MiB}\nvoq: {sram: 4MiB}\n")
        for fabric, columns in (("voq", ("voq_bytes", "egress_bytes")), ("ethernet", ("fabric_queue_bytes", "egress_bytes"))):
            with self.subTest(fabric=fabric):
                self.weft("run", "incast.yaml", "--out", fabric, "--set", f"fabric={fabric}")
                buffers = self.results(fabric)["buffers"]
                depth = collections.Counter()
                with (self.folder / fabric / "series.csv").open(encoding="utf-8") as file:
                    for row in csv.DictReader(file):
                        if float(row["time_us"]) > 10:
                            depth[row["node"]] += sum(int(row[column]) for column in columns)
                samples = 3900
                self.assertGreater(buffers["all_mean_bytes"], 100_000, "something waits")
                # Samples are 100 ns apart, in which three senders of 80G add 3 KB at most, a frame each on top; output
                # queues of voq are sampled with the 24 bytes that a frame of 1500 costs on the wire.
                allowed = 3_000 + 3 * 1_500 + 0.017 * buffers["all_mean_bytes"]
                self.assertAlmostEqual(buffers["all_mean_bytes"], sum(depth.values()) / samples, delta=allowed)
                node, most = max(depth.items(), key=lambda item: item[1])
                self.assertEqual(buffers["switch_mean_node"], node)
                self.assertAlmostEqual(buffers["switch_mean_bytes"], most / samples, delta=allowed)
                self.assertGreaterEqual(buffers["switch_max_bytes"], buffers["switch_mean_bytes"])

    def test_completion_is_that_of_the_last_flow(self):
        self.write("small.yaml", SMALL.replace("duration: 50us", "duration: drained")
                   .replace("load: 0.8", "load: 0.4, stop: 30us"))  # two flows fit one link
        for fabric in ("voq", "ethernet"):
            with self.subTest(fabric=fabric):
                self.weft("run", "small.yaml", "--out", fabric, "--set", f"fabric={fabric}")
                results = self.results(fabric)
                last = [flow["last_delivered_ns"] for flow in results["flows"]]
                self.assertEqual(results["last_delivered_ns"], max(last))
                self.assertGreater(min(last), 29_000, "the hosts send until 30 us")
                self.assertLess(max(last), 40_000, "and what is inside then takes a few us")
                for flow in results["flows"]:
                    self.assertLess(flow["first_sent_ns"], 1_000)

    def test_json_on_stdout_is_the_file(self):
        self.write("small.yaml", SMALL)
        done = self.weft("run", "small.yaml", "--out", "out", "--json")
        self.assertEqual(done.stdout, (self.folder / "out/results.json").read_text())

    def test_a_folder_that_holds_something_is_refused(self):
        self.write("small.yaml", SMALL)
        (self.folder / "out").mkdir()
        self.write("out/thesis.tex", "years of work")
        self.assert_one_line(self.weft("run", "small.yaml", "--out", "out", expect=2).stderr, "out", "not empty")
        self.weft("run", "small.yaml", "--out", "out", "--force", expect=2)
        self.assertEqual([p.name for p in (self.folder / "out").iterdir()], ["thesis.tex"])

    def test_stdout_that_cannot_be_written_is_one(self):
        self.write("small.yaml", SMALL)
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([end_to_end.PROGRAM, "run", "small.yaml", "--out", "out"], cwd=self.folder, stdout=full,
                                  stderr=subprocess.PIPE, text=True, timeout=end_to_end.TIME_LIMIT_S, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assert_balanced(self.results("out"))


class SameResults(EndToEnd):
    """One model, one result: whoever computes it, however often."""

    FILES = ("flows.csv", "series.csv", "links.csv", "latency.csv", "capture.pcapng")

    def assert_same(self, one, other):
        self.assertEqual(less_cost(self.results(one)), less_cost(self.results(other)))
        for name in self.FILES:  # not assertEqual, which would print megabytes
            same = (self.folder / one / name).read_bytes() == (self.folder / other / name).read_bytes()
            self.assertTrue(same, f"{one}/{name} and {other}/{name} differ")

    def test_from_the_folders_own_config(self):
        self.write("small.yaml", SMALL)
        self.weft("run", "small.yaml", "--out", "first", "--seed", 5, "--set", "voq.request_bytes=4KiB",
                  "--capture", "hosts,cells,control,drops")
        self.weft("run", "first/config.yaml", "--out", "second")
        self.assert_same("first", "second")
        self.assertEqual((self.folder / "first/config.yaml").read_text(), (self.folder / "second/config.yaml").read_text())

    def test_with_one_and_with_two_workers(self):
        self.write("small.yaml", SMALL)
        for traffic in ("permutation", "incast", "all-to-all"):
            with self.subTest(traffic=traffic):
                self.write("small.yaml", SMALL.replace("permutation", traffic))
                for workers in (1, 2):
                    self.weft("run", "small.yaml", "--out", f"{traffic}-{workers}", "--workers", workers,
                              "--capture", "hosts,cells,control,drops")
                self.assert_same(f"{traffic}-1", f"{traffic}-2")

    def test_a_replay_with_one_and_with_two_workers_from_another_folder(self):
        capture = self.capture_input("small-messages.pcapng")
        shutil.copy(capture, self.folder / "a.pcapng")
        self.write("replay.yaml", REPLAY + "traffic:\n  - replay: {file: a.pcapng}\n")
        self.weft("run", "replay.yaml", "--out", "first", "--capture", "hosts")
        self.weft("run", "first/config.yaml", "--out", "second", "--workers", 2)
        self.assert_same("first", "second")

    def test_another_seed_sprays_otherwise_and_delivers_the_same(self):
        # One flow: the permutation itself depends on the seed.
        self.write("one.yaml", SMALL.replace("pattern: permutation", "pattern: one, from: 0, to: 2, stop: 30us"))
        frames, sprays = [], []
        for seed in (1, 2):
            self.weft("run", "one.yaml", "--out", f"seed-{seed}", "--seed", seed, "--capture", "hosts,cells")
            records = list(packets(self.folder / f"seed-{seed}/capture.pcapng"))
            frames.append(collections.Counter(data for name, _, data, _ in records if name.endswith(" out")))
            sprays.append([name for name, *_ in records if ">" in name])
        self.assertGreater(len(frames[0]), 10)
        self.assertTrue(frames[0] == frames[1], "two seeds, two sets of frames delivered")
        self.assertTrue(sprays[0] != sprays[1], "two seeds, one spray")


class Captures(EndToEnd):
    def test_a_real_capture_crosses_whole(self):
        for name in ("small-messages.pcapng", "verbs-mtu1500.pcapng", "verbs-mtu4200.pcapng"):
            with self.subTest(capture=name):
                capture = self.capture_input(name)
                self.write("replay.yaml", REPLAY + f"traffic:\n  - replay: {{file: {json.dumps(str(capture))}}}\n")
                out = name.split(".", maxsplit=1)[0]
                self.weft("run", "replay.yaml", "--out", out, "--capture", "hosts,drops")
                results = self.results(out)
                self.assert_balanced(results)
                records = list(packets(self.folder / out / "capture.pcapng"))
                went_in = [data for tap, _, data, _ in records if tap.endswith(" in")]
                captured = collections.Counter(data for _, _, data, _ in packets(capture))
                self.assertTrue(collections.Counter(went_in) == captured, "what went in is not what was captured")
                # Each is delivered once; a flood delivers more copies of the same bytes.
                came_out = collections.Counter(data for tap, _, data, _ in records if tap.endswith(" out"))
                self.assertTrue(set(came_out) == set(went_in), "what came out is not what went in")
                self.assertEqual(sum(results["frames"]["dropped"].values()), 0)
                self.assertEqual(sum(came_out.values()), results["frames"]["delivered"])
                self.assertEqual(results["frames"]["delivered"], len(went_in) + results["frames"]["replicated"])
                self.assertEqual(sum(flow["out_of_order"] for flow in results["flows"]), 0)

    def test_wireshark_reads_it(self):
        self.write("small.yaml", SMALL)
        self.weft("run", "small.yaml", "--out", "out", "--capture", "hosts,cells,control,drops")
        capture = self.folder / "out/capture.pcapng"
        names = self.tool("tshark", "-r", capture, "-T", "fields", "-e", "frame.interface_name").splitlines()
        for tap in ("leaf0:p0 in", "leaf0:p0 out", "leaf0>spine0", "spine1>leaf1"):
            self.assertIn(tap, names)
        self.assertEqual(len(names), len(list(packets(capture))))
        self.assertEqual(self.tool("tshark", "-r", capture, "-Y", "_ws.malformed"), "")
        deltas = self.tool("tshark", "-r", capture, "-T", "fields", "-e", "frame.time_delta").split()
        self.assertGreaterEqual(min(map(float, deltas)), 0, "time never runs backwards")


class Interrupted(EndToEnd):
    """What had been collected until then is on the disk and readable."""

    def assert_readable(self, out):
        results = self.results(out)
        self.assertTrue(results["interrupted"])
        self.assert_balanced(results)
        self.assertGreater(results["frames"]["delivered"], 0)
        capture = self.folder / out / "capture.pcapng"
        self.assertGreater(len(list(packets(capture))), 0)
        self.tool("capinfos", capture)
        self.assertFalse((self.folder / out / ".reserve").exists())

    def test_a_signal_ends_the_run_in_order(self):
        self.write("long.yaml", LONG)
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number.name):
                capture = self.folder / number.name / "capture.pcapng"
                process = self.start("run", "long.yaml", "--out", number.name, "--capture", "hosts")
                self.wait_for(lambda: capture.exists() and capture.stat().st_size > 100_000, process)
                process.send_signal(number)
                out, err = process.communicate(timeout=60)
                self.assertEqual(process.returncode, 1, err)
                self.assertIn("interrupted", err)
                self.assertIn("offered", out)
                self.assert_readable(number.name)

    def test_two_runs_at_once_but_not_in_one_folder(self):
        self.write("long.yaml", LONG)
        self.write("small.yaml", SMALL)
        process = self.start("run", "long.yaml", "--out", "out")
        self.wait_for((self.folder / "out/config.yaml").exists, process)
        self.assert_one_line(self.weft("run", "small.yaml", "--out", "out", expect=2).stderr, "out", "another run")
        self.weft("run", "small.yaml", "--out", "other")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1)

    def test_a_full_disk_leaves_a_readable_capture_and_results(self):
        # A file system of 3 MiB in a mount namespace of its own: the reports' reserve takes 1.2 of them.
        enter = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
        if shutil.which("unshare") is None or subprocess.run(
                [*enter, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False).returncode != 0:
            self.skipTest("this user cannot mount")
        self.write("long.yaml", LONG)
        (self.folder / "disk").mkdir()
        script = ('mount -t tmpfs -o size=3m none disk || exit 77; "$0" run long.yaml --out disk/out --capture hosts,cells;'
                  ' status=$?; cp -r disk/out kept; exit $status')
        done = subprocess.run([*enter, "sh", "-c", script, end_to_end.PROGRAM], cwd=self.folder, capture_output=True,
                              text=True, timeout=end_to_end.TIME_LIMIT_S, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assert_one_line(done.stderr, "capture.pcapng", "No space left on device")
        self.assertIn("offered", done.stdout)
        self.assert_readable("kept")
        self.assertGreater((self.folder / "kept/capture.pcapng").stat().st_size, 1 << 20)
        self.assertIn("No space left", self.results("kept")["error"])

    def test_a_disk_that_is_full_from_the_start_is_one_line(self):
        enter = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
        if shutil.which("unshare") is None or subprocess.run(
                [*enter, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False).returncode != 0:
            self.skipTest("this user cannot mount")
        self.write("small.yaml", SMALL)
        (self.folder / "disk").mkdir()
        script = 'mount -t tmpfs -o size=512k none disk || exit 77; "$0" run small.yaml --out disk/out; s=$?; ls -A disk; exit $s'
        done = subprocess.run([*enter, "sh", "-c", script, end_to_end.PROGRAM], cwd=self.folder, capture_output=True,
                              text=True, timeout=end_to_end.TIME_LIMIT_S, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assert_one_line(done.stderr, "disk/out", "No space left on device")
        self.assertEqual(done.stdout, "", "and no folder is left")


if __name__ == "__main__":
    end_to_end.main()
