#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What each config in configs/ claims in its comment, checked from its results: on the Ethernet fabric as the file has it, and on what it
is set beside."""
import end_to_end
from ethernet_runs import Fabric, G, OVERHEAD, dropped, flow, link, out_of_order, wire_gbps


def uplinks(results):
    return [one for one in results["links"] if one["name"].startswith("leaf") and ">" in one["name"]]


class Configs(Fabric):
    def test_hash_collision(self):
        """Three 400G flows on one of two 800G links get 800G together; sprayed they get 1200G."""
        results = self.run_file("hash-collision.yaml", out="ecmp")
        busy = sorted(link(results, f"leaf0>spine{s}")["utilisation"] for s in (0, 1))
        self.assertEqual(busy[0], 0)
        self.assertGreater(busy[1], 0.9999)  # full but for the rounding of a frame at either end of 500 us
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
        self.assertEqual(dropped(scheduled), {})
        bystander = flow(scheduled, "leaf1:p4", "leaf2:p4")["frames"]
        # Undisturbed it lacks only what is on its way at the end: some microseconds of 1 ms.
        self.assertGreater(bystander, alone * 0.98)
        # On ethernet it is held up with leaf1's four senders, which get half of 400G over two links once all is paused. How much it
        # gets before that depends on the buffer; less than three quarters of its rate is far from anything but pauses.
        self.assertLess(victim, alone * 0.75)

    def test_permutation_under_ecmp(self):
        """Close to what max-min fair sharing would give: mean 52.4% of line rate over permutations (see load_balance_test.py)."""
        shares = []
        for seed in range(1, 5):
            results = self.run_file("ethernet-permutation.yaml", f"seed={seed}", out=f"ecmp{seed}")
            shares.append(wire_gbps(results) / (64 * 400))
            self.assertEqual(out_of_order(results), 0)
        # Drops share a link in proportion to what arrives and not max-min fairly, and a frame that is dropped at the spine has taken
        # its place on the uplink for nothing. Both cost little: a flow crosses two hashed links. One permutation of 64 flows scatters
        # by some 3 points about the mean, the mean of four by 1.5: 5 points are more than three of these.
        self.assertAlmostEqual(sum(shares) / len(shares), 0.524, delta=0.05)
        results = self.run_file("ethernet-permutation.yaml", "ethernet.load_balance=spray", out="spray")
        self.assertGreater(wire_gbps(results), 64 * 400 * 0.97)
        self.assertGreater(out_of_order(results), 0)

    def test_polarised_hash(self):
        """With one seed for all switches a spine's second choice repeats the leaf's first, and weft says so."""
        names = [f"spine{s}>leaf{l}.{k}" for s in (0, 1) for l in (0, 1) for k in (0, 1)]

        def carried(results):
            return [link(results, name)["wire_bytes"] for name in names]
        shared = self.run_file("polarised-hash.yaml", out="shared")
        self.assertEqual(carried(shared).count(0), 4)  # half of the eight
        self.assertTrue(any("polarise" in warning for warning in shared["warnings"]), shared["warnings"])
        own = self.run_file("polarised-hash.yaml", "ethernet.hash.seed=per_switch", out="own")
        self.assertNotIn(0, carried(own))
        self.assertEqual(own["warnings"], [])
        # In turn, or cell by cell, it makes no difference who hashes how. A link carries some 16 Gb/s of one 12 kbit frame after the
        # other for 50 us: how the turns of 16 hosts fall is a few frames of over 100.
        for setting in ("ethernet.load_balance=spray", "fabric=voq"):
            spread = carried(self.run_file("polarised-hash.yaml", setting, out=setting))
            self.assertLess(max(spread) / min(spread), 1.15, setting)

    def test_oversubscribed(self):
        """2:1: the scheduled fabric is full and shared equally; hashed flows leave a part of it idle, and some get far less than others."""
        capacity = 16 * 400
        hashed = [self.run_file("oversubscribed.yaml", f"seed={seed}", out=f"ecmp-{seed}") for seed in range(1, 5)]
        ecmp = hashed[0]
        spray = self.run_file("oversubscribed.yaml", "ethernet.load_balance=spray", out="spray")
        voq = self.run_file("oversubscribed.yaml", "fabric=voq", out="voq")
        parts = {name: [one["frames"] for one in results["flows"]] for name, results in (("ecmp", ecmp), ("spray", spray), ("voq", voq))}
        for name, results in (("ecmp", ecmp), ("spray", spray), ("voq", voq)):
            self.assertEqual(dropped(results), {}, name)
            self.assertEqual(len(results["flows"]), 32, name)
            self.assertGreater(sum(link(results, f"leaf{l}:p{p} in")["paused_ns"] for l in range(4) for p in range(8)), 0, name)
        # Cells of 256 bytes cost 16 more; control cells and the short last cell of a burst take what is above 93% and below 256/272.
        self.assertGreater(wire_gbps(voq), capacity * 0.92)
        self.assertLess(wire_gbps(voq), capacity * 256 / 272 * (1500 + OVERHEAD) / 1500)
        self.assertGreater(min(one["utilisation"] for one in uplinks(voq)), 0.99)
        self.assertEqual(out_of_order(voq), 0)
        # Equal parts, but for the first 100 us or so of 1 ms, until every sender's own buffer share is full.
        self.assertGreater(min(parts["voq"]) / max(parts["voq"]), 0.9)
        # An uplink that none of 8 flows was hashed onto is idle, (3/4)^8 = 10% of them, as many downlinks, and what flows cannot use
        # since they share the other one. Shared max-min fairly 74.4% of the fabric would be used, scattering by 5.6 points from one
        # permutation to the next (300 draws by hashed_permutation() of load_balance_test.py), by 2.8 for a mean of four; pauses, which
        # hold up those that don't cause them, can only take from that.
        self.assertLess(sum(wire_gbps(each) for each in hashed) / len(hashed), capacity * (0.744 + 2 * 0.028))
        self.assertLess(min(one["utilisation"] for one in uplinks(ecmp)), 0.5)
        self.assertLess(min(parts["ecmp"]) / max(parts["ecmp"]), 0.5)
        self.assertEqual(out_of_order(ecmp), 0)
        self.assertGreater(wire_gbps(spray), capacity * 0.99)
        self.assertGreater(min(parts["spray"]) / max(parts["spray"]), 0.9)
        self.assertGreater(out_of_order(spray), 0)

    def test_dead_link(self):
        """Hashed: the flows on it lose all until it is noticed, the others nothing. Sprayed: those of leaf0 lose a quarter."""
        rate = 0.3 * 400 * G / 8 / (1500 + OVERHEAD)  # frames a second of a flow
        detection = 100e-6
        ecmp = self.run_file("dead-link.yaml", out="ecmp")
        spray = self.run_file("dead-link.yaml", "ethernet.load_balance=spray", out="spray")
        voq = self.run_file("dead-link.yaml", "fabric=voq", out="voq")
        for name, results in (("ecmp", ecmp), ("spray", spray), ("voq", voq)):
            # Behind the warm-up, which covers the failure: everything, on what is left; a few frames are under way at either end.
            self.assertAlmostEqual(wire_gbps(results), 12 * 0.3 * 400, delta=2, msg=name)

        def lost(results):
            """Frames by flow, as those that were not delivered; up to 22 are under way at the end (2 us of latency)."""
            return [round(rate * 700e-6) - one["frames"] for one in results["flows"]
                    if "leaf0" in one["source"] + one["destination"]]
        # Hashed: none, or all of 100 us, and what was on the wire. Frames on the wire, in the pipeline or
        # behind in flight at the end are 2 us and more on either side: 25 of 984.
        self.assertEqual(set(dropped(ecmp)), {"link_down", "unreachable"})  # unreachable: on the way to spine0 as it was noticed
        hit = [n for n in lost(ecmp) if n > 25]
        for n in hit:
            self.assertAlmostEqual(n, rate * detection, delta=50)
        self.assertIn(len(hit), range(1, 6), "some flows of six, not all")
        self.assertAlmostEqual(dropped(ecmp)["link_down"], len(hit) * rate * detection, delta=8 * len(hit))
        self.assertAlmostEqual(dropped(spray)["link_down"], 6 / 4 * rate * detection, delta=8 * 6)
        # How the quarter falls on flows that take turns with each other is another matter: half of one and none of the next may be.
        self.assertAlmostEqual(sum(lost(spray)), 6 / 4 * rate * detection, delta=6 * 50)
        # Scheduled: messages are missed for 3 intervals of 10 us; every flow of leaf0 is touched, and none loses more than the 40 us
        # within which it must be noticed (its last message may have just come).
        self.assertEqual(set(dropped(voq)), {"cell_lost"})
        for n in lost(voq):
            self.assertGreater(n, 0)
            self.assertLess(n, rate * 40e-6 + 50)
        # At 90% three links still carry it all, cell headers and control included; two hashed flows on one link do not.
        voq = self.run_file("dead-link.yaml", "fabric=voq", "traffic.constant.load=0.9", out="voq-90")
        self.assertGreater(wire_gbps(voq), 12 * 0.9 * 400 * 0.999)
        self.assertEqual(out_of_order(voq), 0)
        used = [link(voq, f"leaf0>spine{s}")["utilisation"] for s in (1, 2, 3)]
        self.assertLess(max(used) / min(used), 1.02)  # the spray deals them out in turn
        self.assertLess(link(voq, "leaf0>spine0")["utilisation"], 0.01)  # messages only
        spray = self.run_file("dead-link.yaml", "ethernet.load_balance=spray", "traffic.constant.load=0.9", out="spray-90")
        self.assertGreater(wire_gbps(spray), 12 * 0.9 * 400 * 0.999)
        self.assertGreater(out_of_order(spray), 0)
        ecmp = self.run_file("dead-link.yaml", "traffic.constant.load=0.9", out="ecmp-90")
        self.assertLess(wire_gbps(ecmp), 12 * 0.9 * 400 * 0.9)  # two flows on one link: 400 of 720, and one is more than a tenth

    def test_mixed_frames(self):
        """Small frames wait for large ones on every link of ethernet, for cells on voq; frames in turn load links unevenly, cells evenly."""
        ecmp = self.run_file("mixed-frames.yaml", out="ecmp")
        spray = self.run_file("mixed-frames.yaml", "ethernet.load_balance=spray", out="spray")
        voq = self.run_file("mixed-frames.yaml", "fabric=voq", out="voq")
        large_ns, cell_ns = (9000 + OVERHEAD) * 8 / 400, 272 * 8 / 400

        def scatter(results):
            latency = flow(results, "leaf0:p0", "leaf3:p0")["latency_ns"]
            return latency["max"] - latency["min"]
        # leaf0's uplink, the spine's downlink and the host's link: a large frame may have just begun on each. Among 3,000 frames some
        # meet two that have, at least half of each on average.
        self.assertLessEqual(scatter(ecmp), 3 * large_ns + 1)
        self.assertGreater(scatter(ecmp), 1.5 * large_ns)
        # A large frame at the last port. Before that a request, a grant and a cell cross two fabric links each, where at most
        # a cell is ahead of them at 70% load, now and then two.
        self.assertLessEqual(scatter(voq), large_ns + 6 * 2 * cell_ns)
        offered = 16 * 0.7 * 400 + 0.02 * 400
        self.assertAlmostEqual(wire_gbps(voq), offered, delta=0.01 * offered)
        self.assertEqual((dropped(voq), out_of_order(voq)), ({}, 0))
        busy = [one["utilisation"] for one in uplinks(voq)]
        self.assertLess(max(busy) / min(busy), 1.02)
        # Frames in turn: every fourth is a large one, and there are four links. A quarter less than what is offered is lower than any
        # even spread would give; the even one, at random, carries it all.
        self.assertLess(wire_gbps(spray), 0.75 * offered)
        self.assertGreater(out_of_order(spray), 0)
        self.assertEqual(dropped(spray), {})
        by_chance = self.run_file("mixed-frames.yaml", "ethernet.load_balance=spray", "ethernet.spray=random", out="random")
        self.assertAlmostEqual(wire_gbps(by_chance), offered, delta=0.01 * offered)

    def test_pfc_storm(self):
        """A broken host's pauses stop strangers three hops away until the watchdog ends it; on voq only what is meant for that host waits."""
        rate = 0.4 * 400 * G / 8 / (1500 + OVERHEAD)  # frames a second of a flow
        sender, remote, local = ("leaf1:p0", "leaf0:p0"), ("leaf1:p1", "leaf2:p0"), ("leaf2:p1", "leaf0:p1")

        def delivered_gbps(out, start_us, end_us, node="leaf2"):
            return [float(row["delivered_gbps"]) for row in self.series(out, node) if start_us < float(row["time_us"]) <= end_us]
        storm = self.run_file("pfc-storm.yaml", out="ethernet")
        causes = {(one["link"], one["root"], one["hops"]) for one in storm["ethernet"]["pauses"]}
        self.assertTrue(any(name.endswith(">leaf0") and (root, hops) == ("leaf0:p0 out", 1) for name, root, hops in causes))
        self.assertTrue(any(name.startswith("leaf1>") and (root, hops) == ("leaf0:p0 out", 2) for name, root, hops in causes))
        self.assertIn(("leaf1:p1 in", "leaf0:p0 out", 3), causes)
        # The storm begins at 100 us and stands for 400 us before the watchdog acts. A switch pauses once alpha = 1/8 of its free pool
        # is full, that is 1/9 of 8 MiB at most, or 47 us of 160 Gb/s; at the spine and at leaf1 again: all stands by 250 us at the latest.
        self.assertEqual(storm["ethernet"]["watchdog_storms"], 1)
        self.assertEqual(set(delivered_gbps("ethernet", 300, 500)), {0.0})
        self.assertEqual(set(dropped(storm)), {"watchdog"})
        self.assertLess(flow(storm, *sender)["frames"], rate * 102e-6)
        # Afterwards the bystander gets what it had to wait for as well: by the end nothing is missing but what is under way.
        self.assertGreater(flow(storm, *remote)["frames"], rate * 2e-3 * 0.995)
        self.assertGreater(flow(storm, *remote)["latency_ns"]["max"], 250e3)  # from 250 us to 500 us it stood in a switch
        spray = self.run_file("pfc-storm.yaml", "ethernet.load_balance=spray", out="spray")
        for bystander in (remote, local):
            self.assertGreater(flow(spray, *bystander)["latency_ns"]["max"], 200e3)
        voq = self.run_file("pfc-storm.yaml", "fabric=voq", out="voq")
        self.assertEqual(dropped(voq), {})
        self.assertLess(flow(voq, *sender)["frames"], rate * 102e-6)
        self.assertGreater(link(voq, "leaf1:p0 in")["paused_ns"], 0)
        for bystander in (remote, local):
            self.assertGreater(flow(voq, *bystander)["frames"], rate * 2e-3 * 0.995)
            latency = flow(voq, *bystander)["latency_ns"]
            self.assertLess(latency["max"] - latency["min"], (1500 + OVERHEAD) * 8 / 400 * 4)  # a few frames: nothing stood still
        still = delivered_gbps("voq", 100, 2000)
        # A sample of 50 us holds 656 frames of the bystander: one more or less.
        self.assertLess(max(still) - min(still), 2 * 1500 * 8 / 50e3)
        for host in ("leaf1:p1 in", "leaf2:p1 in"):
            self.assertEqual(link(voq, host)["paused_ns"], 0)


if __name__ == "__main__":
    end_to_end.main()
