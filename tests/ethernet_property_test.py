#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Many small random runs of the Ethernet fabric: whatever the topology, the traffic, the switches' settings and the faults, the books
balance, no lossless frame is lost to congestion, flows that keep to a path keep their order, and nothing is left when the traffic has
drained.

WEFT_PROPERTY_RUNS sets how many (default 100), WEFT_PROPERTY_SEED the first seed; a failure names the seed that shows it, and
WEFT_PROPERTY_SEED=n WEFT_PROPERTY_RUNS=1 WEFT_KEEP=1 runs it again and keeps its folder.
"""
import concurrent.futures
import json
import os
import random
import re
import subprocess

import end_to_end
from ethernet_runs import Fabric
from property_test import FRAME_POOL, SEED, TIME_LIMIT_S, port, random_faults, random_topology, random_traffic

RUNS = int(os.environ.get("WEFT_PROPERTY_RUNS", "100"))
PAUSER = "02:aa:00:00:00:01"


def random_switches(draw):
    ethernet = {"buffer": draw.choice(["2MiB", "4MiB", "16MiB"]), "load_balance": draw.choice(["ecmp", "flowlet", "adaptive", "spray"]),
                "spray": draw.choice(["random", "round_robin", "shortest_queue"]), "cut_through": draw.random() < 0.4,
                "alpha": draw.choice([0.01, 0.125, 1, 8]), "alpha_lossy": draw.choice([0.05, 1, 16]),
                "xon_offset": draw.choice([0, 3000, 20_000]), "latency": draw.choice(["0ns", "400ns", "1us"]),
                "detection": draw.choice(["1us", "20us", "100us"]), "flowlet_idle": draw.choice(["500ns", "50us"]),
                "flowlet_entries": draw.choice([1, 64, 4096]),
                "hash": {"fields": draw.choice(["5tuple", "5tuple+qp"]), "resilient": draw.random() < 0.3}}
    if draw.random() < 0.5:
        kmin = draw.choice([0, 5_000, 100_000])
        ethernet["ecn"] = {"kmin": kmin, "kmax": kmin + draw.choice([0, 50_000]) + 1, "pmax": draw.choice([0.1, 1]),
                           "at": draw.choice(["enqueue", "dequeue"]), "not_ect": draw.choice(["pass", "drop"])}
    if draw.random() < 0.4:
        ethernet["pfc_reaction"] = draw.choice(["1ns", "500ns", "5us"])
    if draw.random() < 0.5:
        ethernet["watchdog"] = {"action": draw.choice(["off", "drop", "forward"]), "detect": draw.choice(["20us", "200us"]),
                                "restore": draw.choice(["20us", "200us"])}
    return ethernet


def random_config(seed):
    draw = random.Random(seed)
    topology = random_topology(draw)
    traffic, last_ns = random_traffic(draw, topology)
    for entry in traffic:
        entry["constant"]["ect"] = draw.random() < 0.8
        if draw.random() < 0.6:
            entry["constant"]["class"] = draw.choice([3, 4])  # lossless, in most configs
    config = {"fabric": "ethernet", "seed": seed, "frame_pool": FRAME_POOL, "topology": topology, "traffic": traffic,
              "ethernet": random_switches(draw)}
    if topology["leaves"] > 1:
        config["faults"] = random_faults(draw, topology, last_ns)
    if draw.random() < 0.4:
        config["duration"] = f"{last_ns}ns"
        config["warmup"] = f"{last_ns // 4}ns"
    if draw.random() < 0.4:
        config["classes"] = {"lossless": draw.sample(range(8), draw.randint(0, 4)), "ecn": draw.sample(range(8), 2),
                             "weights": {str(draw.randrange(8)): draw.randint(1, 9)}, "strict": {str(draw.randrange(8)): draw.randrange(8)}}
    pauses = []
    if draw.random() < 0.4:  # a host that pauses now and then
        pauses = [(draw.randrange(last_ns), {draw.randrange(8): draw.choice([0, 50, 2000, 65535]) for _ in range(draw.randint(1, 3))})
                  for _ in range(draw.randint(1, 6))]
        pauses.sort(key=lambda one: one[0])
    return config, pauses, f"h{port(draw, topology)}"


class Properties(Fabric):
    def problem(self, seed):
        """What is wrong with the run of this seed, or None; "refused" where the config asks for what cannot be."""
        config, pauses, where = random_config(seed)
        name = f"seed-{seed}"
        if pauses:
            config["traffic"] = [*config["traffic"], self.pausing_host(int(where[1:]), pauses, name=f"{name}.pcap", mac=PAUSER)]
        self.write(f"{name}.yaml", json.dumps(config, indent=1))
        command = [end_to_end.PROGRAM, "run", f"{name}.yaml", "--out", name, "--json", "--workers", str(1 + seed % 7 // 6)]

        def run(*more):
            return subprocess.run([*command, *more], cwd=self.folder, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False)
        try:
            done = run()
            while least := re.search(r"ethernet\.buffer: .*; at least (\d+)", done.stderr):
                # As small as it may be, for one switch after the other: all that is not set aside is a frame of each port.
                done = run("--set", f"ethernet.buffer={least[1]}")
        except subprocess.TimeoutExpired:
            return "hangs"
        if done.returncode == 2 and len(done.stderr.splitlines()) == 1:
            return "refused " + done.stderr
        if done.returncode != 0:
            return f"exit {done.returncode}: {done.stderr.strip()[-500:]}"
        return "; ".join(self.wrong(config, pauses, json.loads(done.stdout))) or None

    def wrong(self, config, pauses, results):
        frames, ethernet, settings = results["frames"], results["ethernet"], config["ethernet"]
        lost = frames["dropped"]
        into = frames["offered"] + frames["replicated"]
        out = frames["delivered"] + sum(frames["filtered"].values()) + sum(lost.values()) + frames["in_flight"]
        faults = config.get("faults", [])
        if into != out or not frames["balanced"]:
            yield f"books: {into} in, {out} out"
        if frames["no_frame_memory"] != 0:
            yield f"{frames['no_frame_memory']} times no frame memory"
        if frames["filtered"]["mac_control"] != len(pauses):
            if "duration" not in config or frames["filtered"]["mac_control"] > len(pauses):
                yield f"{frames['filtered']['mac_control']} of {len(pauses)} pauses taken out"
        if ethernet["buffer_max_bytes"] > ethernet["buffer_bytes"]:
            yield f"buffer {ethernet['buffer_max_bytes']} of {ethernet['buffer_bytes']}"
        # A pause frame that is lost, and a link that has become faster than its headroom was made for, may cost lossless frames.
        if lost["headroom_exceeded"] and not any("control_loss" in one or "rate" in one for one in faults):
            yield f"{lost['headroom_exceeded']} frames beyond the headroom"
        if ethernet["headroom_max_bytes"] > ethernet["headroom_bytes"]:
            yield f"headroom {ethernet['headroom_max_bytes']} of {ethernet['headroom_bytes']}"
        if not faults and (lost["link_down"] or lost["link_error"] or lost["unreachable"]):
            yield f"losses without faults: {lost}"
        if lost["watchdog"] and ethernet["watchdog_storms"] == 0:
            yield "dropped by a watchdog that saw nothing"
        if lost["not_ect"] and settings.get("ecn", {}).get("not_ect") != "drop":
            yield "dropped as not ECN-capable, unasked"
        # Members change, and with them flows' paths, when links die or return; and two flows of a pair of hosts and a class, which have
        # queue pairs of their own, may take different paths.
        classes = [one["constant"]["class"] for one in config["traffic"] if "constant" in one]
        moves = any(one.get("do") for one in faults) or len(set(classes)) < len(classes)
        if settings["load_balance"] == "ecmp" and not moves and any(flow["out_of_order"] for flow in results["flows"]):
            yield "out of order"
        if "duration" not in config and frames["in_flight"] != 0:
            yield f"{frames['in_flight']} frames stuck"
        if ethernet["pfc_xoff_sent"] < ethernet["pfc_xon_sent"] and "duration" not in config:
            yield f"{ethernet['pfc_xon_sent']} resumes for {ethernet['pfc_xoff_sent']} pauses"

    def test_random_runs(self):
        refused, paused = 0, 0
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for seed, problem in zip(range(SEED, SEED + RUNS), pool.map(self.problem, range(SEED, SEED + RUNS))):
                if problem is not None and problem.startswith("refused"):
                    refused += 1
                    if "WEFT_KEEP" in os.environ:
                        print(seed, problem, flush=True)
                    continue
                if problem is not None:
                    print(f"seed {seed}: {problem}", flush=True)
                elif (self.folder / f"seed-{seed}" / "results.json").exists():
                    paused += self.results(f"seed-{seed}")["ethernet"]["pfc_xoff_sent"] > 0
                with self.subTest(seed=seed):
                    self.assertIsNone(problem)
        self.assertLess(refused, RUNS / 10 + 1, "the generator makes too many configs that are refused")
        self.assertGreater(paused, RUNS / 10 - 1, "it is worth something only if PFC is at work")


if __name__ == "__main__":
    end_to_end.main()
