#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""weft sweep: combinations, rows, folders; what a second call does; what becomes of runs that fail or are cut off."""
import csv
import os
import pathlib
import signal

import end_to_end
from end_to_end import EndToEnd, less_cost

SMALL = """\
topology:
  leaves: 2
  spines: 2
  hosts_per_leaf: 2
  host_link: {rate: 100G, delay: 50ns}
  fabric_link: {rate: 100G, delay: 250ns}
duration: 20us
traffic:
  - constant: {pattern: permutation, load: 0.8, frame: 1500}
"""
LONG = "10000s"  # never ends by itself


class Sweep(EndToEnd):
    def setUp(self):
        super().setUp()
        self.write("small.yaml", SMALL)

    def rows(self, out="out"):
        with (self.folder / out / "sweep.csv").open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def sweep(self, *arguments, expect=0):
        return self.weft("sweep", "small.yaml", *arguments, "--out", "out", expect=expect)

    def test_each_combination_is_a_row_and_a_run(self):
        self.sweep("--set", "traffic.0.constant.load=0.2,0.5", "--set", "seed=1,2,3", "--fabrics", "voq,ethernet/spray")
        rows = self.rows()
        self.assertEqual([(row["fabric"], row["traffic.0.constant.load"], row["seed"]) for row in rows],
                         [(fabric, load, seed) for fabric in ("voq", "ethernet/spray") for load in ("0.2", "0.5")
                          for seed in ("1", "2", "3")])
        self.assertEqual(len({row["folder"] for row in rows}), 12)
        for row in rows:
            results = self.results(f"out/{row['folder']}")
            self.assert_balanced(results)
            self.assertEqual(row["message"], "")
            self.assertEqual(results["seed"], int(row["seed"]))
            self.assertEqual(results["fabric"], row["fabric"].split("/")[0])
            self.assertEqual(int(row["delivered"]), results["frames"]["delivered"])
            self.assertEqual(float(row["latency_p99_ns"]), results["latency_ns"]["p99"])
            self.assertEqual(float(row["goodput_gbps"]), results["throughput"]["goodput_gbps"])
        # The same as that run by itself.
        self.weft("run", "small.yaml", "--set", "traffic.0.constant.load=0.5", "--set", "seed=3", "--set",
                  "fabric=voq", "--out", "alone")
        self.assertEqual(less_cost(self.results("alone")), less_cost(self.results(f"out/{rows[5]['folder']}")))

    def test_a_second_call_does_only_what_is_missing(self):
        self.sweep("--set", "seed=1,2,3,4")
        before = self.rows()
        stamps = {row["folder"]: (self.folder / "out" / row["folder"] / "results.json").stat().st_mtime_ns for row in before}
        first, second, third, fourth = (self.folder / "out" / row["folder"] for row in before)
        (first / "results.json").unlink()                           # cut off before its results
        text = (second / "results.json").read_text()
        (second / "results.json").write_text(text[:len(text) // 2])  # half of a file
        (third / "latency.csv").unlink()                            # cut off between its reports
        said = self.sweep("--set", "seed=1,2,3,4")
        self.assertIn("4 done (1 of them before)", said.stdout)
        self.assertEqual(self.rows(), before, "rows keep their order and their figures")
        for folder in (first, second, third, fourth):
            stamp = (folder / "results.json").stat().st_mtime_ns
            (self.assertEqual if folder == fourth else self.assertNotEqual)(stamp, stamps[folder.name])
        self.sweep("--set", "seed=0,1,2,3,4,5")
        self.assertEqual([row["seed"] for row in self.rows()], list("012345"))
        self.assertEqual(self.rows()[1:5], before)
        self.assertEqual((fourth / "results.json").stat().st_mtime_ns, stamps[fourth.name])

    def test_another_config_is_another_run(self):
        self.sweep("--set", "seed=1,2")
        before = self.rows()
        self.write("small.yaml", SMALL.replace("load: 0.8", "load: 0.3"))
        self.assertNotIn("before", self.sweep("--set", "seed=1,2").stdout)
        self.assertFalse({row["folder"] for row in before} & {row["folder"] for row in self.rows()})

    def test_rows_do_not_depend_on_jobs(self):
        self.weft("sweep", "small.yaml", "--set", "seed=1,2,3", "--jobs", "1", "--out", "one")
        self.weft("sweep", "small.yaml", "--set", "seed=1,2,3", "--jobs", "3", "--workers", "2", "--out", "three")
        self.assertEqual(self.rows("one"), self.rows("three"))

    def test_bad_keys_and_values_are_one_line_before_anything_runs(self):
        for arguments, word in [
                (["--set", "sed=1,2"], "sed"), (["--set", "seed=1,two"], "two"), (["--set", "seed"], "seed"),
                (["--set", "seed="], "seed"), (["--set", "seed=1,,2"], "empty"), (["--set", "seed=1,1"], "twice"),
                (["--set", "seed=1,2", "--set", "seed=3"], "twice"), (["--set", "seed=1", "--fabrics", "vow"], "vow"),
                (["--set", "fabric=voq,ethernet", "--fabrics", "voq"], "fabric"), (["--set", "seed=1", "--jobs", "0"], "--jobs"),
                (["--set", "duration=10us,20us,5"], "unit"), ([], "--set")]:
            with self.subTest(arguments=arguments):
                self.assert_one_line(self.sweep(*arguments, expect=2).stderr, word)
                self.assertFalse((self.folder / "out").exists())

    def test_values_may_hold_commas_in_brackets(self):
        self.sweep("--set", "classes.lossless=[3],[3, 4],[]")
        self.assertEqual([row["classes.lossless"] for row in self.rows()], ["[3]", "[3, 4]", "[]"])

    def test_a_run_that_fails_does_not_take_the_others_along(self):
        done = self.sweep("--set", "ethernet.buffer=64KiB,32MiB", "--fabrics", "ethernet", expect=1)
        bad, good = self.rows()
        self.assertIn("ethernet.buffer", bad["message"])
        self.assertEqual(bad["delivered"], "")
        self.assertGreater(int(good["delivered"]), 0)
        self.assertIn("ethernet.buffer", done.stderr)
        self.assertIn("1 done, 1 failed", done.stdout)
        again = self.sweep("--set", "ethernet.buffer=64KiB,32MiB", "--fabrics", "ethernet", expect=1)
        self.assertIn("1 done (1 of them before), 1 failed", again.stdout, "what failed is tried again")

    def children(self, process):
        return [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and self.parent(pid) == process.pid]

    @staticmethod
    def parent(pid):
        try:
            return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            return 0

    def start_long(self, seeds="1,2"):
        """Short runs, which finish, then one that does not."""
        return self.start("sweep", "small.yaml", "--set", f"duration=20us,{LONG}", "--set", f"seed={seeds}", "--jobs", "1",
                          "--out", "out")

    def long_run_started(self):
        return any("10000s" in folder.name and (folder / "config.yaml").exists()
                   for folder in (self.folder / "out").glob("*"))

    def test_a_run_that_is_killed_is_one_failed_row(self):
        process = self.start_long(seeds="1")
        self.wait_for(self.long_run_started, process)
        child, = self.children(process)
        os.kill(child, signal.SIGSEGV)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, err)
        self.assertIn("1 done, 1 failed", out)
        good, bad = self.rows()
        self.assertEqual(good["message"], "")
        self.assertIn("signal 11", bad["message"])

    def test_an_interrupt_leaves_the_finished_rows_and_the_next_call_does_the_rest(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number):
                process = self.start_long()
                self.wait_for(self.long_run_started, process)
                child, = self.children(process)
                process.send_signal(number)
                _, err = process.communicate(timeout=60)
                self.assertEqual(process.returncode, 1, err)
                self.assertIn("interrupted: 2 of 4", err)
                self.assertEqual([(row["duration"], row["seed"]) for row in self.rows()], [("20us", "1"), ("20us", "2")])
                self.assertFalse(pathlib.Path(f"/proc/{child}").exists(), "no run goes on alone")
                self.assertFalse(self.long_run_started(), "nothing half done stays")
        self.assertIn("2 of them before", self.sweep("--set", "duration=20us,21us", "--set", "seed=1,2").stdout)

    def test_two_sweeps_do_not_share_a_folder(self):
        process = self.start_long()
        self.wait_for(self.long_run_started, process)
        self.assert_one_line(self.sweep("--set", "seed=7", expect=2).stderr, "another sweep")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)

    def test_a_folder_of_something_else_is_refused(self):
        (self.folder / "out").mkdir()
        (self.folder / "out" / "letter.txt").write_text("dear")
        self.assert_one_line(self.sweep("--set", "seed=1", expect=2).stderr, "no sweep")


if __name__ == "__main__":
    end_to_end.main()
