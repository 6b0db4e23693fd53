#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The Ethernet fabric as a whole: results do not depend on workers, real captures come out as they went in, links die."""
import json

import end_to_end
from end_to_end import less_cost, packets
from ethernet_runs import Fabric, G, OVERHEAD, constant, dropped, topology


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
