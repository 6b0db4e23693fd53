#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Many small random runs of the scheduled fabric: whatever the topology, the traffic and the faults, the books balance, nothing is
overtaken, the egress buffers hold, and nothing is left when the traffic has drained.

WEFT_PROPERTY_RUNS sets how many (default 200), WEFT_PROPERTY_SEED the first seed; a failure names the seed that shows it, and
WEFT_PROPERTY_SEED=n WEFT_PROPERTY_RUNS=1 WEFT_KEEP=1 runs it again and keeps its folder.
"""
import concurrent.futures
import json
import os
import random
import subprocess

import end_to_end
from end_to_end import EndToEnd

RUNS = int(os.environ.get("WEFT_PROPERTY_RUNS", "200"))
SEED = int(os.environ.get("WEFT_PROPERTY_SEED", "1"))
TIME_LIMIT_S = 120  # such a run takes a tenth of a second; what takes this long hangs


FRAMES = 9_000      # of a run at most
FRAME_POOL = 16_000  # memory for all of them; the default is reckoned from the buffers and takes long to set up


def port(draw, topology):
    return draw.randrange(topology["leaves"] * topology["hosts_per_leaf"])


def fabric_links(topology):
    count = topology["fabric_link"]["count"]
    return [f"leaf{leaf}-spine{spine}" + (f".{k}" if count > 1 else "")
            for leaf in range(topology["leaves"]) for spine in range(topology["spines"]) for k in range(count)]


def random_topology(draw):
    rates = ["40G", "100G", "200G", "400G", "800G"]
    topology = {
        "leaves": draw.randint(1, 5), "spines": draw.randint(1, 5), "hosts_per_leaf": draw.randint(1, 4),
        "host_link": {"rate": draw.choice(rates), "delay": draw.choice(["0ns", "5ns", "50ns", "1us"])},
        "fabric_link": {"rate": draw.choice(rates), "delay": draw.choice(["20ns", "250ns", "2us"]),
                        "count": draw.choice([1, 1, 1, 2, 3])}}
    if topology["leaves"] * topology["hosts_per_leaf"] == 1:
        topology["hosts_per_leaf"] = 2
    topology["links"] = [{"at": at, "rate": draw.choice(rates)}
                         for at in draw.sample(fabric_links(topology), draw.choice([0, 0, 0, 1]))]
    return topology


def frames_a_us(traffic, topology):
    """Upper bound of what the traffic offers."""
    hosts = topology["leaves"] * topology["hosts_per_leaf"]
    total = 0
    for entry in (one["constant"] for one in traffic):
        senders = 1 if entry["pattern"] == "one" else len(entry["senders"]) if "senders" in entry else hosts
        sizes = {"imix": [60] * 7 + [566] * 4 + [1514]}.get(str(entry["frame"]), entry["frame"])
        mean = sum(sizes) / len(sizes) if isinstance(sizes, list) else sizes
        total += senders * entry["load"] * int(topology["host_link"]["rate"][:-1]) * 125 / (mean + 24)
    return total


def random_traffic(draw, topology):
    hosts = topology["leaves"] * topology["hosts_per_leaf"]
    traffic = []
    for _ in range(draw.choice([1, 1, 2, 3])):
        entry = {"pattern": draw.choice(["incast", "all-to-all", "one"] + ["permutation"] * (topology["leaves"] > 1)),
                 "load": draw.choice([1, 0.95, 0.5, round(draw.uniform(0.01, 1), 3)]),
                 "frame": draw.choice([60, 64, 1500, 4096, 9216, "imix", draw.randint(60, 9216),
                                       [draw.randint(60, 9216) for _ in range(3)]]),
                 "class": draw.randrange(8), "gaps": draw.choice(["fixed", "poisson"]),
                 "start": f"{draw.choice([0, 0, draw.randint(0, 400)])}ns"}
        if entry["pattern"] == "incast":
            entry["receiver"] = port(draw, topology)
            if hosts > 2 and draw.random() < 0.3:
                others = [n for n in range(hosts) if n != entry["receiver"]]
                entry["senders"] = draw.sample(others, draw.randint(1, len(others)))
        if entry["pattern"] == "one":
            entry["from"], entry["to"] = draw.sample(range(hosts), 2)
        traffic.append({"constant": entry})
    last_ns = min(draw.choice([6, 20, 40, 200]) * 1000, 500 + int(1000 * FRAMES / frames_a_us(traffic, topology) / 1.1))
    for one in traffic:
        one["constant"]["stop"] = f"{last_ns}ns"
    return traffic, last_ns


def random_faults(draw, topology, last_ns):
    faults = []
    for link in draw.sample(fabric_links(topology), draw.randint(0, min(3, len(fabric_links(topology))))):
        kind = draw.choice(["down", "down", "loss", "control_loss", "rate"])
        at = draw.randint(0, last_ns)
        if kind == "down":
            faults.append({"at": f"{at}ns", "link": link, "do": "down"})
            if draw.random() < 0.8:  # else it stays dead, and what it alone could reach is unreachable
                faults.append({"at": f"{at + draw.randint(1, 80_000)}ns", "link": link, "do": "up"})
        elif kind == "rate":
            faults.append({"at": f"{at}ns", "link": link, "rate": draw.choice(["40G", "100G", "800G"])})
        else:
            faults.append({"at": f"{at}ns", "link": link, kind: draw.choice([1e-3, 1e-2, 0.2])})
    return faults


def random_config(seed):
    draw = random.Random(seed)
    topology = random_topology(draw)
    traffic, last_ns = random_traffic(draw, topology)
    config = {"fabric": "voq", "seed": seed, "frame_pool": FRAME_POOL, "topology": topology, "traffic": traffic}
    if topology["leaves"] > 1:
        config["faults"] = random_faults(draw, topology, last_ns)
    if draw.random() < 0.4:
        config["duration"] = f"{last_ns}ns"
        config["warmup"] = f"{last_ns // 4}ns"
    voq, scheduler, cells, classes = {}, {}, {}, {}
    if draw.random() < 0.25:
        voq |= {"deep_threshold": draw.choice(["0", "8KiB", "64KiB"]), "deep": draw.choice(["64KiB", "1MiB", "64MiB"]),
                "deep_rate": draw.choice(["100G", "1000G", "auto"])}
    if draw.random() < 0.2:
        voq |= {"deep": "0"}
    if draw.random() < 0.2:
        voq |= {"sram": draw.choice(["16MiB", "64MiB"]), "limit": "64KiB", "alpha": draw.choice([0.01, 0.125, 1])}
    if draw.random() < 0.2:
        voq |= {"force_fabric": True}
    if draw.random() < 0.3:
        voq |= {"request_bytes": draw.choice(["1", "512", "8KiB"]), "request_delay": draw.choice(["0ns", "20ns", "2us"])}
    if draw.random() < 0.2:
        voq |= {"credit_watchdog": draw.choice(["20us", "200us"])}
    if draw.random() < 0.3:
        scheduler |= {"egress_buffer": draw.choice([11296, 12288, 32768])}  # the least is a credit and a frame
    if draw.random() < 0.3:
        scheduler |= {"credit_bytes": draw.choice([64, 512, 2048]), "speedup": draw.choice([1, 1.2, 2])}
    if draw.random() < 0.3:
        cells |= {"payload": draw.choice([64, 128, 256, 512]), "header": draw.choice([0, 8, 16])}
        cells |= {"reorder_window": draw.choice([1024, 4096, 16384])}
    if draw.random() < 0.3:
        cells |= {"timeout": draw.choice(["5us", "20us"]), "reachability_interval": draw.choice(["1us", "10us"])}
    if draw.random() < 0.3:
        classes |= {"lossless": draw.sample(range(8), draw.randint(0, 4)), "weights": {str(draw.randrange(8)): draw.randint(1, 9)},
                    "strict": {str(draw.randrange(8)): draw.randrange(8)}}
    if draw.random() < 0.3:
        classes |= {"ecn": [3], }
        voq |= {"ecn": {"kmin": "16KiB", "kmax": "64KiB", "pmax": 0.2, "at": draw.choice(["enqueue", "dequeue"])}}
    for name, section in (("voq", voq), ("scheduler", scheduler), ("cells", cells), ("classes", classes)):
        if section:
            config[name] = section
    return config


class Properties(EndToEnd):
    def problem(self, seed):
        """What is wrong with the run of this seed, or None; "refused" where the config asks for what cannot be."""
        config = random_config(seed)
        name = f"seed-{seed}"
        self.write(f"{name}.yaml", json.dumps(config, indent=1))
        workers = 1 + seed % 7 // 6  # results do not depend on it: another test; here, that two neither hang nor crash
        command = [end_to_end.PROGRAM, "run", f"{name}.yaml", "--out", name, "--json", "--workers", str(workers)]
        try:
            done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False)
        except subprocess.TimeoutExpired:
            return "hangs"
        if done.returncode == 2 and len(done.stderr.splitlines()) == 1:
            return "refused " + done.stderr
        if done.returncode != 0:
            return f"exit {done.returncode}: {done.stderr.strip()[-500:]}"
        results = json.loads(done.stdout)
        frames, egress = results["frames"], results["egress"]
        into = frames["offered"] + frames["replicated"]
        out = frames["delivered"] + sum(frames["filtered"].values()) + sum(frames["dropped"].values()) + frames["in_flight"]
        wrong = []
        if into != out or not frames["balanced"]:
            wrong.append(f"books: {into} in, {out} out")
        if frames["no_frame_memory"] != 0:
            wrong.append(f"{frames['no_frame_memory']} times no frame memory")
        if sum(flow["out_of_order"] for flow in results["flows"]) != 0:
            wrong.append("out of order")
        if egress["buffer_max_bytes"] > egress["buffer_bytes"]:
            wrong.append(f"egress buffer {egress['buffer_max_bytes']} of {egress['buffer_bytes']}")
        cells = results["cells"]
        if cells["sent"] != cells["delivered"] + cells["lost"] + cells["in_flight"]:
            wrong.append(f"cells: {cells}")
        if "duration" not in config and (frames["in_flight"] != 0 or cells["in_flight"] != 0):
            wrong.append(f"{frames['in_flight']} frames and {cells['in_flight']} cells stuck")
        if not config.get("faults") and (cells["lost"] or frames["dropped"]["cell_lost"] or frames["dropped"]["unreachable"]):
            wrong.append(f"losses without faults: {frames['dropped']}")
        if frames["dropped"]["headroom_exceeded"]:
            wrong.append(f"{frames['dropped']['headroom_exceeded']} frames beyond the headroom")
        return "; ".join(wrong) or None

    def test_random_runs(self):
        refused = 0
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for seed, problem in zip(range(SEED, SEED + RUNS), pool.map(self.problem, range(SEED, SEED + RUNS))):
                if problem is not None and problem.startswith("refused"):
                    refused += 1
                    if "WEFT_KEEP" in os.environ:
                        print(seed, problem, flush=True)
                    continue
                if problem is not None:
                    print(f"seed {seed}: {problem}", flush=True)
                with self.subTest(seed=seed):
                    self.assertIsNone(problem)
        self.assertLess(refused, RUNS / 5 + 1, "the generator makes too many configs that are refused")


if __name__ == "__main__":
    end_to_end.main()
