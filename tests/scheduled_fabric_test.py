#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What must come out of the scheduled fabric's model and not be put in: each figure is measured in a run and held against the
formula that it has to follow. Configs are written as JSON, which is YAML."""
import csv
import json
import math
import struct

import end_to_end
from end_to_end import EndToEnd, less_cost

OVERHEAD = 24     # wire bytes of an Ethernet frame beyond its length: FCS, preamble, gap
PAYLOAD, HEADER, CONTROL = 256, 16, 32  # the cell format's defaults
G = 10 ** 9


def topology(leaves, spines, hosts, host="400G", fabric="400G", host_delay="50ns", delay="250ns", count=1, **more):
    return {"leaves": leaves, "spines": spines, "hosts_per_leaf": hosts, "host_link": {"rate": host, "delay": host_delay},
            "fabric_link": {"rate": fabric, "delay": delay, "count": count}, **more}


def constant(**keys):
    return {"constant": {key.rstrip("_"): value for key, value in keys.items()}}


def wire_ps(length, rate_g):
    """A frame or cell of `length` wire bytes at `rate_g` Gb/s."""
    return length * 8000 // rate_g


def links(results, kind):
    """Those of one kind: "in", "out" (host ports), "up" (leaf to spine) or "down"."""
    def kind_of(name):
        if ">" in name:
            return "up" if name.startswith("leaf") else "down"
        return name.split()[1]
    return [link for link in results["links"] if kind_of(link["name"]) == kind]


def link(results, name):
    return next(one for one in results["links"] if one["name"] == name)


def flow(results, source, destination):
    return next(one for one in results["flows"] if (one["source"], one["destination"]) == (source, destination))


class Fabric(EndToEnd):
    def run_config(self, config, *arguments, out="out", check_order=True):
        """results.json of a run; whatever it was, the books balance, order holds and the egress buffers are not overrun."""
        self.write(f"{out}.yaml", json.dumps({"fabric": "voq", **config}))
        results = json.loads(self.weft("run", f"{out}.yaml", "--out", out, "--json", *arguments).stdout)
        self.assert_balanced(results)
        if check_order:
            self.assertEqual(sum(one["out_of_order"] for one in results["flows"]), 0)
        self.assertLessEqual(results["egress"]["buffer_max_bytes"], results["egress"]["buffer_bytes"])
        return results

    def series(self, out):
        with (self.folder / out / "series.csv").open(encoding="utf-8") as rows:
            return list(csv.DictReader(rows))

    def assert_nothing_dropped(self, results):
        self.assertEqual({reason: n for reason, n in results["frames"]["dropped"].items() if n}, {})

    def assert_within(self, value, expected, share, message=""):
        self.assertLessEqual(abs(value / expected - 1), share, f"{message}: {value:.6g}, expected {expected:.6g}")


class LeastLatency(Fabric):
    """A lone frame in an idle fabric takes the pipelines, serialisations, propagations and one request-grant round trip; to the
    picosecond, since nothing else may be in the model. The least of many frames, as reachability messages delay some."""

    HOST_DELAY, DELAY, INGRESS, EGRESS, SPINE = 50_000, 250_000, 200_000, 200_000, 100_000

    def cells_ps(self, length, uplinks, rate_g):
        """From the grant's arrival until the last cell of a frame has arrived. Cells go out in turn over all links; on each they
        follow each other, in the leaf and again in the spine."""
        sizes = [PAYLOAD] * (length // PAYLOAD) + ([length % PAYLOAD] if length % PAYLOAD else [])
        up_free, down_free, last = [0] * uplinks, [0] * uplinks, 0
        for number, size in enumerate(sizes):
            n, time = number % uplinks, wire_ps(size + HEADER, rate_g)
            up_free[n] += time
            down_free[n] = max(down_free[n], up_free[n] + self.DELAY + self.SPINE) + time
            last = max(last, down_free[n] + self.DELAY)
        return last

    def closed_form_ps(self, length, host_g, fabric_g, uplinks, local):
        host = wire_ps(length + OVERHEAD, host_g) + self.HOST_DELAY
        control = 2 * (wire_ps(CONTROL, fabric_g) + self.DELAY) + self.SPINE
        across = 0 if local else 2 * control + self.cells_ps(length, uplinks, fabric_g)
        return host + self.INGRESS + across + self.EGRESS + host

    def measure(self, expected_ps, shape, length, to, **config):
        # So far apart that each frame finds the fabric empty: 40 us, not a multiple of the 10 us between reachability messages.
        host_g = int(shape["host_link"]["rate"][:-1])
        load = wire_ps(length + OVERHEAD, host_g) / 39_700_000
        results = self.run_config({"topology": shape, "duration": "2ms", "traffic": constant(
            pattern="one", from_=0, to=to, load=load, frame=length), **config}, out=f"out-{self.runs}")
        self.runs += 1
        self.assertGreater(results["latency_ns"]["count"], 40)
        self.assert_nothing_dropped(results)
        self.assertEqual(round(results["latency_ns"]["min"] * 1000), expected_ps)

    def setUp(self):
        super().setUp()
        self.runs = 0

    def test_between_leaves(self):
        for host, fabric, spines, count in [(400, 400, 4, 1), (100, 100, 3, 1), (800, 400, 2, 2), (400, 800, 1, 3), (100, 400, 5, 1)]:
            for length in (60, 1500, 9000):
                with self.subTest(host=host, fabric=fabric, spines=spines, count=count, length=length):
                    shape = topology(2, spines, 2, host=f"{host}G", fabric=f"{fabric}G", count=count)
                    self.measure(self.closed_form_ps(length, host, fabric, spines * count, False), shape, length, 2)

    def test_within_a_leaf(self):
        shape = topology(2, 2, 2)
        for length in (60, 1500, 9000):
            with self.subTest(length=length):
                self.measure(self.closed_form_ps(length, 400, 400, 2, True), shape, length, 1)
                self.measure(self.closed_form_ps(length, 400, 400, 2, False), shape, length, 1, voq={"force_fabric": True})


class Permutation(Fabric):
    """64 hosts of 400G at 95%: every host sends to one of another leaf."""

    def permutation(self, spines, length=1500, duration="150us", hosts=8, leaves=8, out="out", **more):
        return self.run_config({
            "topology": topology(leaves, spines, hosts), "warmup": "50us", "duration": duration,
            "voq": {"request_bytes": "4KiB"}, "scheduler": {"credit_bytes": "4KiB"},
            "traffic": constant(pattern="permutation", load=0.95, frame=length, class_=3), **more}, out=out)

    def test_a_fabric_with_room_delivers_what_is_offered(self):
        results = self.permutation(10)
        self.assert_nothing_dropped(results)
        # The 1% is what is under way when the run ends: 5 us of a measured 100 would be 5%, but as much was under way when it began.
        self.assert_within(results["throughput"]["goodput_gbps"], results["throughput"]["offered_gbps"], 0.01, "delivered")
        self.assert_within(results["throughput"]["wire_gbps"], 64 * 400 * 0.95, 0.01, "offered rate")
        self.assertEqual(results["cells"]["hold_backs"], 0)

    def test_a_fabric_without_room_is_full(self):
        results = self.permutation(8, duration="250us")
        self.assert_nothing_dropped(results)
        # The fabric's rate less headers, control cells and keep-alives, as the run itself counted them on the leaves' uplinks.
        up = links(results, "up")
        control = sum(one["control_bytes"] for one in up) / sum(one["wire_bytes"] for one in up)
        useful = results["cells"]["payload_bytes"] / results["cells"]["wire_bytes"]
        # wire_bytes of cells holds everything sent on uplinks; the share of payload follows from the format.
        self.assert_within(useful, (1 - control) * 1500 / (1500 + 6 * HEADER), 0.02, "share of the frames' bytes on the wire")
        self.assert_within(results["throughput"]["goodput_gbps"], 64 * 400 * useful, 0.01, "delivered")
        # Marked cells slow the grants: queues towards the fabric stay at a few dozen cells, far from where spines hold back.
        self.assertEqual(results["cells"]["hold_backs"], 0)
        self.assertLess(max(one["queue_max_bytes"] for one in links(results, "down")), 256 * (PAYLOAD + HEADER))

    def test_small_frames_waste_no_more_of_the_fabric(self):
        """Frames are packed back to back into cells, so the share of a fabric link's data bytes that are frames depends on the
        length of a burst and not of a frame."""
        share = {}
        for length in (64, 1500):
            results = self.permutation(6, length=length, hosts=4, leaves=4, duration="80us", out=f"of-{length}")
            data = results["cells"]["sent"] * HEADER + results["cells"]["payload_bytes"]
            share[length] = results["cells"]["payload_bytes"] / data
            self.assert_nothing_dropped(results)
        self.assertLess(abs(share[64] - share[1500]), 0.01, share)


class Incast(Fabric):
    def incast(self, load, out, **more):
        senders = [f"leaf{leaf}:p{p}" for leaf in range(4) for p in range(4)][1:]
        traffic = [constant(pattern="one", load=0.5, frame=1500, class_=3, from_="leaf4:p0", to="leaf1:p4")]
        if load:
            traffic.append(constant(pattern="incast", load=load, frame=1500, class_=3, receiver="leaf0:p0", senders=senders))
        return self.run_config({"topology": topology(5, 5, 5), "warmup": "100us", "duration": "500us", "traffic": traffic, **more},
                               out=out)

    def test_fifteen_to_one(self):
        with_incast, alone = self.incast(1, "incast"), self.incast(0, "alone")
        self.assert_nothing_dropped(with_incast)
        self.assertGreaterEqual(link(with_incast, "leaf0:p0 out")["utilisation"], 0.99)
        # One credit (2 KiB at 400G) and a cell time for each spine.
        allowed_ns = (2048 * 8 / 400) + 5 * wire_ps(PAYLOAD + HEADER, 400) / 1000
        p99 = [flow(run, "leaf4:p0", "leaf1:p4")["latency_ns"]["p99"] for run in (with_incast, alone)]
        self.assertLess(p99[0] - p99[1], allowed_ns, p99)
        self.assertEqual(link(with_incast, "leaf4:p0 in")["paused_ns"], 0)
        self.assertEqual(flow(with_incast, "leaf4:p0", "leaf1:p4")["frames"], flow(alone, "leaf4:p0", "leaf1:p4")["frames"])
        # Those who do not send are not paused; those who do, all of them in the end.
        paused = {one["name"]: one["paused_ns"] for one in links(with_incast, "in")}
        for name, time in paused.items():
            sends = name.split(":")[0] != "leaf4" and name not in ("leaf0:p0 in",) and not name.split()[0].endswith("p4")
            self.assertEqual(time > 0, sends, name)

    def test_nobody_is_paused_before_the_buffers_are_full(self):
        # XOFF is at 1 MiB; a sender at 400G, drained at a fifteenth of that, fills it in 22.5 us.
        self.assertEqual(self.incast(1, "short", duration="20us", warmup="0us")["voq"]["pfc_xoff_sent"], 0)
        self.assertGreater(self.incast(1, "long", duration="30us", warmup="0us")["voq"]["pfc_xoff_sent"], 0)

    def test_every_sender_gets_its_share(self):
        results = self.incast(1, "incast")
        shares = [one["frames"] for one in results["flows"] if one["destination"] == "leaf0:p0"]
        self.assertEqual(len(shares), 15)
        # Round robin is between VOQs, one for each leaf; a VOQ is shared by its hosts, 3 on leaf0 and 4 on the others.
        by_leaf = {leaf: sum(one["frames"] for one in results["flows"] if one["destination"] == "leaf0:p0" and
                             one["source"].startswith(leaf)) for leaf in ("leaf0", "leaf1", "leaf2", "leaf3")}
        for frames in by_leaf.values():
            self.assert_within(frames, sum(by_leaf.values()) / 4, 0.02, by_leaf)


class EgressBuffer(Fabric):
    """A buffer smaller than rate x grant round trip caps throughput at buffer / round trip."""

    MTU = 1500

    def one_flow(self, load, buffer="auto", out="out", duration="300us"):
        # A long fabric link, so that the buffers in question hold many frames and a frame more or less is less than the tolerance.
        return self.run_config({
            "topology": topology(2, 4, 1, delay="2us"), "warmup": "100us", "duration": duration, "forwarding": {"mtu": self.MTU},
            "scheduler": {"egress_buffer": buffer}, "cells": {"reorder_window": 4096},
            "traffic": constant(pattern="one", from_=0, to=1, load=load, frame=self.MTU, class_=3)}, out=out)

    def test_throughput_is_capped_by_it(self):
        rate = 400 * G / 8  # bytes a second
        round_trip_s = self.one_flow(0.05, out="idle")["grants"]["round_trip_ns"]["p50"] * 1e-9
        half = int(rate * round_trip_s / 2)
        results = self.one_flow(1, half, out="half")
        self.assert_within(results["throughput"]["wire_gbps"] * G / 8, half / round_trip_s, 0.10, "B = RT/2")
        ample = int(1.2 * rate * round_trip_s) + 2048 + self.MTU + OVERHEAD
        results = self.one_flow(1, ample, out="ample")
        self.assertGreaterEqual(results["throughput"]["wire_gbps"], 0.99 * 400)


class Faults(Fabric):
    """Links that die, return, lose cells or run slower. Only what was on a dead or lossy wire is lost, and it is counted."""

    LINK = "leaf0-spine0"

    def permutation(self, faults, out="out", load=0.7, **more):
        traffic = {"pattern": "permutation", "load": load, "frame": 1500, "class": 3}
        if "duration" not in more:
            traffic["stop"] = "200us"
        return self.run_config({"topology": topology(4, 4, 4, **more.pop("shape", {})), "faults": faults,
                                "traffic": {"constant": traffic}, **more}, out=out)

    def assert_only_cell_losses(self, results):
        dropped = {reason for reason, n in results["frames"]["dropped"].items() if n}
        self.assertEqual(dropped, {"cell_lost"})
        # A frame of 1500 bytes has 6 or 7 cells, and a cell holds bytes of at most two frames.
        self.assertLessEqual(results["frames"]["dropped"]["cell_lost"], 2 * results["cells"]["lost"])
        self.assertGreaterEqual(results["frames"]["dropped"]["cell_lost"] * 7, results["cells"]["lost"])

    def test_a_link_dies_and_returns(self):
        faults = [{"at": "60us", "link": self.LINK, "do": "down"}, {"at": "140us", "link": self.LINK, "do": "up"}]
        results, whole = self.permutation(faults, out="drained"), self.permutation([], out="whole")
        self.assert_only_cell_losses(results)
        self.assertEqual(results["frames"]["in_flight"], 0)
        # Lost is what was sent into the dead link until, after 3 silent intervals of 10 us, leaf0 and its spine, and with the next
        # message the others, leave it out: at most 41 us of a quarter of 4 hosts' 70% in each direction, and what was on the wire.
        cells_a_us = 0.7 * 400e9 / 8 / (1524 / 6.2) / 1e6
        self.assertLess(results["cells"]["lost"], 2 * 43 * cells_a_us)
        self.assertGreater(results["cells"]["lost"], 100)
        # All others flow on: between leaves that the link has nothing to do with, nothing is missing.
        for one in whole["flows"]:
            if "leaf0" not in one["source"] + one["destination"]:
                self.assertEqual(flow(results, one["source"], one["destination"])["frames"], one["frames"], one)

    def test_a_dead_link_is_left_out_and_a_repaired_one_used_again(self):
        # Quicker to notice and to give up than by default, so that the run is short.
        down, up = {"at": "20us", "link": self.LINK, "do": "down"}, {"at": "60us", "link": self.LINK, "do": "up"}
        quick = {"cells": {"reachability_interval": "2us", "timeout": "10us"}}
        dead = self.permutation([down], out="dead", warmup="45us", duration="100us", **quick)
        for name in ("leaf0>spine0", "spine0>leaf0"):
            # Only reachability messages are sent into it: 32 bytes every 2 us.
            self.assertLess(link(dead, name)["utilisation"], 0.001, name)
        back = self.permutation([down, up], out="back", warmup="90us", duration="170us", **quick)
        for name in ("leaf0>spine0", "spine0>leaf0"):
            beside = link(back, name.replace("spine0", "spine1"))["utilisation"]
            self.assert_within(link(back, name)["utilisation"], beside, 0.05, name)
        # What had gathered while the link was dead may come on top.
        self.assertGreater(back["throughput"]["goodput_gbps"], 0.99 * back["throughput"]["offered_gbps"])

    def test_a_lossy_fabric_loses_the_frames_touched_and_no_more(self):
        every = [f"leaf{leaf}-spine{spine}" for leaf in range(4) for spine in range(4)]
        results = self.permutation([{"at": "0us", "link": every, "loss": 1e-4}, {"at": "0us", "link": every, "control_loss": 1e-2}])
        self.assert_only_cell_losses(results)
        self.assertEqual(results["frames"]["in_flight"], 0)
        self.assertGreater(results["grants"]["control_lost"], 100)
        expected = 2e-4 * results["cells"]["sent"]  # each cell crosses two links
        self.assertLess(abs(results["cells"]["lost"] - expected), 5 * math.sqrt(expected))

    def test_a_slow_link_carries_its_share(self):
        shape = {"links": [{"at": self.LINK, "rate": "100G"}]}
        for out, more in (("slow", {"shape": shape, "faults": []}),
                          ("slowed", {"faults": [{"at": "1us", "link": self.LINK, "rate": "100G"}]})):
            with self.subTest(out):
                results = self.permutation(out=out, load=0.6, warmup="20us", duration="120us", **more)
                self.assert_nothing_dropped(results)
                self.assertEqual(results["cells"]["hold_backs"], 0)
                for name in ("leaf0>spine0", "spine0>leaf0"):
                    beside = link(results, name.replace("spine0", "spine1"))
                    share = link(results, name)["utilisation"] * link(results, name)["rate_bps"] / (
                        beside["utilisation"] * beside["rate_bps"])
                    # A quarter; the tolerance is for how permutations of 13 places divide bursts.
                    self.assert_within(share, 0.25, 0.10, name)
                # What had gathered before all leaves knew of the new rate may come on top.
                self.assertGreater(results["throughput"]["goodput_gbps"], 0.99 * results["throughput"]["offered_gbps"])

    def test_an_oversubscribed_fabric_is_full_and_lossless_with_short_queues(self):
        results = self.run_config({"topology": topology(4, 2, 8), "warmup": "200us", "duration": "500us", "frame_pool": 200_000,
                                   "traffic": constant(pattern="permutation", load=1, frame=1500, class_=3)})
        self.assert_nothing_dropped(results)
        control = sum(one["control_bytes"] for one in links(results, "up")) / sum(one["wire_bytes"] for one in links(results, "up"))
        useful = (1 - control) * results["cells"]["payload_bytes"] / (results["cells"]["payload_bytes"] + HEADER * results["cells"]["sent"])
        self.assert_within(results["throughput"]["goodput_gbps"], 4 * 2 * 400 * useful, 0.02, "the fabric's rate")
        # A leaf stops its VOQs at 128 waiting cells a link, a last burst of each of its 56 VOQs on top; a spine's queues are bounded by
        # where it holds back. After warm-up marked cells keep both well below that: a round trip's worth at the very most.
        for row in self.series("out"):
            if float(row["time_us"]) > 200:
                limit = 2 * 100_000 if row["node"].startswith("leaf") else 4 * 100_000
                self.assertLess(int(row["fabric_queue_bytes"]), limit / 2, row)
        self.assertLess(max(one["queue_max_bytes"] for one in links(results, "down")), 4 * 256 * (PAYLOAD + HEADER))

    def test_the_fabric_holds_back_and_lets_go(self):
        """Far more than the spine's links carry, from many leaves at once, with hold-back orders lost on the way."""
        config = {"topology": topology(5, 1, 3, host="800G", fabric="40G", delay="2us"),
                  "traffic": constant(pattern="incast", receiver=6, load=1, frame=5787, class_=3, stop="20us")}
        results = self.run_config(config, out="held")
        self.assert_nothing_dropped(results)
        self.assertEqual(results["frames"]["in_flight"], 0)
        every = [f"leaf{leaf}-spine0" for leaf in range(5)]
        results = self.run_config({**config, "faults": [{"at": "0us", "link": every, "control_loss": 0.3}]}, out="lossy")
        self.assert_nothing_dropped(results)
        self.assertEqual(results["frames"]["in_flight"], 0)


class ClassesAndPauses(Fabric):
    def two_into_one(self, one, other, out="out", **more):
        return self.run_config({"topology": topology(3, 4, 1), "warmup": "50us", "duration": "250us", "traffic": [
            constant(pattern="one", from_=0, to=2, frame=1500, **one), constant(pattern="one", from_=1, to=2, frame=1500, **other)],
                                **more}, out=out)

    def share(self, results, source):
        """Of the receiver's link, over the whole run; the ramp of some us at its start is within the tolerances."""
        return flow(results, f"leaf{source}:p0", "leaf2:p0")["frames"] * (1500 + OVERHEAD) * 8 / 400e9 / 250e-6

    def test_a_higher_group_goes_first(self):
        results = self.two_into_one({"class_": 6, "load": 0.6}, {"class_": 3, "load": 0.8})
        self.assert_nothing_dropped(results)
        # The 3 us that the first frames take are 1.2% of the run.
        self.assertLess(abs(self.share(results, 0) - 0.6), 0.015)
        self.assertLess(abs(self.share(results, 1) - 0.4), 0.015)

    def test_weights_divide_a_group(self):
        results = self.two_into_one({"class_": 3, "load": 1}, {"class_": 4, "load": 1}, classes={"weights": {"3": 3, "4": 1}})
        self.assert_nothing_dropped(results)
        self.assert_within(self.share(results, 0) / self.share(results, 1), 3, 0.05)
        self.assertGreaterEqual(link(results, "leaf2:p0 out")["utilisation"], 0.99)

    def write_pause(self, name, classes, quanta, at_us):
        frame = (bytes.fromhex("0180c2000001" "02000000000a" "8808" "0101") + bytes([0, sum(1 << c for c in classes)]) +
                 b"".join((quanta if c in classes else 0).to_bytes(2, "big") for c in range(8))).ljust(60, b"\0")
        header = struct.pack("<IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 65535, 1)
        (self.folder / name).write_bytes(header + struct.pack("<IIII", 0, 0, 60, 60) + frame)
        return {"replay": {"file": name, "start": f"{at_us}us", "ports": [{"mac": "02:00:00:00:00:0a", "port": "leaf2:p0"}]}}

    def test_a_host_that_pauses_a_class_stops_that_class_only(self):
        # At 400G 65535 quanta are 83.9 us.
        pause_us = 65535 * 512 / 400e3
        flows = [constant(pattern="one", from_=0, to=2, frame=1500, class_=3, load=0.3),
                 constant(pattern="one", from_=1, to=2, frame=1500, class_=4, load=0.3)]
        results = self.run_config({"topology": topology(3, 4, 1), "duration": "100us",
                                   "traffic": [*flows, self.write_pause("pause.pcap", [3], 65535, 10)]})
        self.assert_nothing_dropped(results)
        self.assertEqual(results["frames"]["filtered"]["mac_control"], 1)
        paused, free = (flow(results, f"leaf{n}:p0", "leaf2:p0")["frames"] for n in (0, 1))
        self.assertAlmostEqual(link(results, "leaf2:p0 out")["paused_ns"], pause_us * 1000, delta=1)
        # 0.3 x 100 us less the 3 us that the first takes to come: 3 frames of 1524 bytes a 100 ns at 100%.
        per_us = 0.3 * 400e3 / 8 / (1500 + OVERHEAD)
        self.assertLess(abs(free / per_us - 97), 1.5)
        # Before the pause, and after it; what had gathered follows at line rate until the end, 6 us later, two thirds of which
        # it gets at most beside the other's 30%.
        self.assertLess(paused / per_us, 7.5 + 6 / 0.3)
        self.assertGreater(paused / per_us, 6)

    def test_a_lossy_class_is_dropped_at_the_ingress_by_name(self):
        results = self.two_into_one({"class_": 0, "load": 1}, {"class_": 0, "load": 1}, voq={"limit": "64KiB"})
        self.assertEqual({reason for reason, n in results["frames"]["dropped"].items() if n}, {"voq_limit"})
        self.assertLessEqual(results["voq"]["max_bytes"], 65536)
        self.assertEqual(results["voq"]["pfc_xoff_sent"], 0)
        self.assertGreaterEqual(link(results, "leaf2:p0 out")["utilisation"], 0.99)


class DeepBuffer(Fabric):
    def test_queues_move_out_and_back_in_order(self):
        results = self.run_config({
            "topology": topology(5, 5, 1), "voq": {"deep_threshold": "32KiB", "xoff": "8MiB", "xon": "4MiB"},
            "traffic": constant(pattern="incast", receiver=0, load=1, frame=[1500, 60, 9000], class_=3, stop="60us")})
        self.assert_nothing_dropped(results)
        self.assertEqual(results["frames"]["in_flight"], 0)
        self.assertGreater(results["voq"]["deep_bytes"], 1 << 20)
        # What is on chip is a VOQ below its threshold and what waits to be written.
        self.assertLess(results["voq"]["buffer_max_bytes"], 128 << 10)
        busy = link(results, "leaf0:p0 out")
        # 4 x 60 us of line rate leave by one link; the deep buffer's bandwidth is enough, so it is never idle but at the ends.
        self.assertGreater(busy["utilisation"], 0.95)

    def test_bursts_that_are_still_being_read_count_for_the_reorder_window(self):
        # Long links and little window: a VOQ has many bursts on their way from external memory when a lost cell holds the stream up.
        results = self.run_config({
            "topology": topology(4, 5, 4, fabric="100G", delay="2us", count=2), "voq": {"deep_threshold": "8KiB"},
            "faults": [{"at": "15us", "link": "leaf3-spine4.0", "do": "down"}, {"at": "92us", "link": "leaf3-spine4.0", "do": "up"}],
            "traffic": constant(pattern="permutation", load=1, frame=1500, class_=0, stop="20us")})
        self.assertEqual({reason for reason, n in results["frames"]["dropped"].items() if n}, {"cell_lost"})
        self.assertEqual(results["frames"]["in_flight"], 0)
        self.assertLess(results["reorder"]["max_depth"], 1024)

    def test_its_bandwidth_is_a_limit(self):
        # Writes and reads share 100G, of 400G that arrive at each leaf.
        results = self.run_config({
            "topology": topology(5, 5, 1), "classes": {"lossless": []},
            "voq": {"deep_threshold": "32KiB", "deep_rate": "100G", "sram": "1MiB"},
            "traffic": constant(pattern="incast", receiver=0, load=1, frame=1500, class_=0, stop="200us")})
        self.assertEqual({reason for reason, n in results["frames"]["dropped"].items() if n}, {"deep_bandwidth"})
        # Four leaves, each with one memory.
        self.assertLessEqual(results["voq"]["deep_bytes"], 4 * (100e9 / 8 * 200e-6 + (1 << 20)))
        self.assertEqual(results["frames"]["in_flight"], 0)


class SameForAllWorkers(Fabric):
    def test_one_two_and_three_workers(self):
        every = [f"leaf{leaf}-spine{spine}" for leaf in range(3) for spine in range(3)]
        config = {"topology": topology(3, 3, 2, fabric="200G"), "capture": {"points": ["hosts", "cells", "control", "drops"]},
                  "voq": {"deep_threshold": "16KiB"}, "duration": "40us", "frame_pool": 20_000,
                  "traffic": [constant(pattern="permutation", load=0.6, frame="imix", class_=3, gaps="poisson"),
                              constant(pattern="incast", receiver=1, load=0.3, frame=9000, class_=0)],
                  "faults": [{"at": "0us", "link": every, "loss": 1e-3}, {"at": "0us", "link": every, "control_loss": 1e-2},
                             {"at": "20us", "link": "leaf1-spine0", "do": "down"}, {"at": "30us", "link": "leaf1-spine0", "do": "up"},
                             {"at": "10us", "link": "leaf0-spine2", "rate": "100G"}]}
        runs = [self.run_config(config, "--workers", workers, out=f"workers-{workers}") for workers in (1, 2, 3)]
        for workers, run in zip((2, 3), runs[1:]):
            self.assertEqual(less_cost(run), less_cost(runs[0]))
            for name in ("capture.pcapng", "flows.csv", "series.csv", "links.csv", "latency.csv"):
                same = (self.folder / f"workers-{workers}" / name).read_bytes() == (self.folder / "workers-1" / name).read_bytes()
                self.assertTrue(same, f"{name} of {workers} workers")


class VirtualOutputQueues(Fabric):
    def test_uniform_traffic_is_not_held_up_by_any_head_of_line(self):
        """Input queues with one FIFO would carry 58.6% (Karol, Hluchyj, Morgan 1987); VOQs carry all of it."""
        results = self.run_config({"topology": topology(4, 6, 4), "warmup": "60us", "duration": "160us",
                                   "traffic": constant(pattern="all-to-all", load=1, frame=1500, class_=3)})
        self.assert_nothing_dropped(results)
        self.assert_within(results["throughput"]["wire_gbps"], 16 * 400, 0.02)


if __name__ == "__main__":
    end_to_end.main()
