# SPDX-License-Identifier: BSD-3-Clause
"""What tests of the Ethernet fabric, and of both fabrics side by side, share: small configs, runs whose books balance, readers of their
results, and pause frames of hosts as captures hold them. Configs are written as JSON, which is YAML."""
import csv
import json
import struct

from end_to_end import EndToEnd, SOURCE, packets

OVERHEAD = 24  # wire bytes of an Ethernet frame beyond its length: FCS, preamble, gap
G = 10 ** 9
PAUSE_ADDRESS = bytes.fromhex("0180c2000001")


def link(results, name):
    return next(one for one in results["links"] if one["name"] == name)


def flow(results, source, destination):
    return next(one for one in results["flows"] if (one["source"], one["destination"]) == (source, destination))


def dropped(results):
    return {reason: n for reason, n in results["frames"]["dropped"].items() if n}


def out_of_order(results):
    return sum(one["out_of_order"] for one in results["flows"])


def wire_gbps(results):
    return results["throughput"]["wire_gbps"]


def topology(leaves, spines, hosts, host="100G", fabric="100G", delay="250ns", count=1):
    return {"leaves": leaves, "spines": spines, "hosts_per_leaf": hosts, "host_link": {"rate": host, "delay": "50ns"},
            "fabric_link": {"rate": fabric, "delay": delay, "count": count}}


def constant(**keys):
    return {"constant": {key.rstrip("_"): value for key, value in keys.items()}}


def pause_frame(quanta, source="02aa00000001"):
    """802.1Qbb, 60 bytes: {class: quanta}."""
    enabled = sum(1 << c for c in quanta)
    return (PAUSE_ADDRESS + bytes.fromhex(source) + struct.pack(">HHH8H", 0x8808, 0x0101, enabled, *(quanta.get(c, 0) for c in range(8)))
            + bytes(26))


class Fabric(EndToEnd):
    def run_file(self, name, *settings, out="out", workers=1):
        arguments = [word for setting in settings for word in ("--set", setting)]
        self.weft("run", SOURCE / "configs" / name, "--out", out, "--workers", workers, *arguments)
        return self.checked(out)

    def run_config(self, config, *arguments, out="out", fabric="ethernet"):
        if fabric == "ethernet":
            config = {**config, "ethernet": {"buffer": "4MiB", **config.get("ethernet", {})}}  # memory for frames goes by it
        self.write(f"{out}.yaml", json.dumps({"fabric": fabric, **config}))
        self.said = self.weft("run", f"{out}.yaml", "--out", out, *arguments).stdout
        return self.checked(out)

    def checked(self, out):
        """Whatever a run was: its books balance, and no switch holds more than its buffer."""
        results = self.results(out)
        self.assert_balanced(results)
        self.assertLessEqual(results["ethernet"]["buffer_max_bytes"], results["ethernet"]["buffer_bytes"])
        return results

    def captured(self, out="out"):
        """(interface name, ns, bytes, length) of all that the run captured."""
        return list(packets(self.folder / out / "capture.pcapng"))

    def series(self, out, node):
        """Rows of series.csv of one switch."""
        with (self.folder / out / "series.csv").open(encoding="utf-8") as rows:
            return [row for row in csv.DictReader(rows) if row["node"] == node]

    def write_pcap(self, name, frames):
        """frames: (nanoseconds, bytes)."""
        data = struct.pack("<IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 65535, 1)
        for at_ns, frame in frames:
            data += struct.pack("<IIII", at_ns // G, at_ns % G, len(frame), len(frame)) + frame
        (self.folder / name).write_bytes(data)

    def pausing_host(self, port, frames, name="pause.pcap", mac="02:aa:00:00:00:01"):
        """A traffic entry: the host at `port` sends pause frames, (nanoseconds, {class: quanta})."""
        source = mac.replace(":", "")
        start = frames[0][0]
        self.write_pcap(name, [(at - start, pause_frame(quanta, source)) for at, quanta in frames])
        return {"replay": {"file": name, "start": f"{start}ns", "ports": [{"mac": mac, "port": port}]}}
