#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Live ports and the wall clock: hosts in network namespaces whose traffic crosses the fabric in real time."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import unittest

import end_to_end

FABRICS = ("voq", "ethernet")
TRAFFIC = pathlib.Path(__file__).with_name("live_traffic.py")


def sh(*command, **options):
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True, timeout=60, **options)


def why_no_namespaces():
    """Empty where namespaces and veth pairs can be made."""
    if os.geteuid() != 0:
        return "needs root for network namespaces"
    name = f"weft-probe-{os.getpid()}"
    try:
        sh("ip", "netns", "add", name)
        try:
            sh("ip", "-n", name, "link", "add", "probe0", "type", "veth", "peer", "name", "probe1")
        finally:
            sh("ip", "netns", "del", name)
    except (OSError, subprocess.SubprocessError) as error:
        return f"no network namespaces or veth pairs here: {getattr(error, 'stderr', error)}".strip()
    return ""


class Lab(end_to_end.EndToEnd):
    """weft in a namespace of its own, hosts in others, a veth pair to each."""

    def make(self, hosts, mtu=1500):
        """Namespaces and pairs: host i is 198.18.0.(i + 1) on eth0, its other end vethI in weft's namespace."""
        reason = why_no_namespaces()
        if reason:
            self.skipTest(reason)
        self.space = f"weft{os.getpid()}"
        self.hosts = [f"{self.space}h{i}" for i in range(hosts)]
        for name in [self.space, *self.hosts]:
            sh("ip", "netns", "add", name)
            self.addCleanup(subprocess.run, ["ip", "netns", "del", name], check=False, capture_output=True)
        for i, host in enumerate(self.hosts):
            sh("ip", "-n", self.space, "link", "add", f"veth{i}", "mtu", mtu, "type", "veth",
               "peer", "name", "eth0", "mtu", mtu, "netns", host)
            sh("ip", "-n", self.space, "link", "set", f"veth{i}", "up")
            sh("ip", "-n", host, "link", "set", "lo", "up")
            sh("ip", "-n", host, "link", "set", "eth0", "up")
            sh("ip", "-n", host, "addr", "add", f"198.18.0.{i + 1}/15", "dev", "eth0")
            sh("ip", "-n", host, "addr", "add", f"2001:db8::{i + 1}/64", "dev", "eth0", "nodad")

    def config(self, fabric, hosts, mtu=1500, more="", clock="{mode: wall}", port_more="", rate="10G"):
        ports = "\n".join(f'  - {{at: leaf{i % 2}:p{i // 2}, dev: "net_af_packet{i},iface=veth{i}"{port_more}}}'
                          for i in range(hosts))
        return self.write("live.yaml", f"""
fabric: {fabric}
topology:
  leaves: 2
  spines: 2
  hosts_per_leaf: {max(hosts // 2, 1)}
  host_link: {{rate: {rate}, delay: 1us}}
  fabric_link: {{rate: 10G, delay: 2us}}
clock: {clock}
forwarding: {{mtu: {mtu + 14}}}
ports:
{ports}
{more}
""")

    def start_live(self, config, *arguments, folder="out"):
        """weft in its namespace, ports open."""
        log = self.folder / f"{folder}.log"
        with open(log, "w", encoding="utf-8") as stderr:
            process = subprocess.Popen(["ip", "netns", "exec", self.space, end_to_end.PROGRAM, "run", config, "--out",
                                        folder, *arguments], cwd=self.folder, stdout=subprocess.PIPE, stderr=stderr, text=True)
        self.addCleanup(self.gone, process)
        self.wait_for(lambda: "running" in log.read_text(), process, log)
        return process

    def wait_for(self, condition, process, log=None):
        limit = time.monotonic() + 60
        while not condition():
            if process.poll() is not None or time.monotonic() > limit:
                self.fail(f"never came to be; weft said: {log.read_text() if log else ''}")
            time.sleep(0.02)

    def end(self, process, expect=0, folder="out"):
        """Ctrl-C, as a person ends a live run; the results, with balanced books."""
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, expect, out + (self.folder / f"{folder}.log").read_text())
        results = self.results(folder)
        self.check_books(results)
        return results

    def check_books(self, results):
        self.assert_balanced(results)
        taken = sum(port["rx_frames"] - port["waiting"] for port in results["ports"])
        self.assertEqual(results["frames"]["offered"], taken, "what is taken from devices is offered, or waits")
        sent = sum(port["tx_frames"] + port["lost"]["tx_refused"] - port["pfc_sent"] for port in results["ports"])
        self.assertEqual(results["frames"]["delivered"], sent, "what is delivered goes to devices")

    def in_host(self, number, *command, **options):
        return sh("ip", "netns", "exec", self.hosts[number], *command, **options)

    def background(self, number, *command):
        process = subprocess.Popen(["ip", "netns", "exec", self.hosts[number], *map(str, command)], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.gone, process)
        return process

    @staticmethod
    def gone(process):
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()

    def exchange(self, kind, server, client, *arguments):
        """live_traffic.py between two hosts: its report."""
        address = f"198.18.0.{server + 1}" if kind != "tcp6" else f"2001:db8::{server + 1}"
        receiver = self.background(server, sys.executable, TRAFFIC, kind, "serve", address, *arguments)
        self.assertEqual(receiver.stdout.readline().strip(), "ready")
        self.in_host(client, sys.executable, TRAFFIC, kind, "send", address, *arguments)
        out, err = receiver.communicate(timeout=60)
        self.assertEqual(receiver.returncode, 0, err)
        return json.loads(out)


class TwoHosts(Lab):
    def test_ping_as_a_newcomer_does_it(self):
        """ARP, ping, neighbour discovery and ping6; the capture shows them; nothing is lost."""
        self.make(2)
        for fabric in FABRICS:
            with self.subTest(fabric=fabric):
                for host in range(2):  # which may still know each other from the fabric before
                    self.in_host(host, "ip", "neigh", "flush", "all")
                process = self.start_live(self.config(fabric, 2, more="capture: {points: [hosts]}"), folder=fabric)
                out = self.in_host(0, "ping", "-c", "5", "-i", "0.2", "-W", "5", "198.18.0.2").stdout
                self.assertIn("5 received", out)
                out = self.in_host(1, "ping", "-6", "-c", "3", "-i", "0.2", "-W", "5", "2001:db8::1").stdout
                self.assertIn("3 received", out)
                results = self.end(process, folder=fabric)
                self.assertEqual(sum(results["frames"]["dropped"].values()), 0)
                self.assertFalse(results["interrupted"], "Ctrl-C is how a live run ends")
                self.assertEqual(sum(sum(port["lost"].values()) for port in results["ports"]), 0)
                shown = self.tool("tshark", "-r", self.folder / fabric / "capture.pcapng", "-Y", "icmp", "-T", "fields",
                                  "-e", "frame.interface_name")
                # A request and a reply, each seen going in and coming out.
                self.assertEqual(len(shown.split("\n")) - 1, 5 * 2 * 2)
                self.assertIn("leaf0:p0 in", shown)
                arp = self.tool("tshark", "-r", self.folder / fabric / "capture.pcapng", "-Y", "arp")
                self.assertTrue(arp)

    def test_checksums_and_segments_that_the_kernel_leaves_to_the_device(self):
        """TCP and UDP over veth pairs as they are made, without ethtool -K: partial checksums, segmentation offload."""
        self.make(2)
        for fabric in FABRICS:
            with self.subTest(fabric=fabric):
                process = self.start_live(self.config(fabric, 2, more="capture: {points: [hosts]}"), folder=fabric)
                for kind in ("tcp", "tcp6", "udp"):
                    size = 2_000_000 if kind != "udp" else 200_000
                    report = self.exchange(kind, 1, 0, size)
                    self.assertEqual(report["bytes"], size, kind)
                    self.assertTrue(report["intact"], kind)
                results = self.end(process, folder=fabric)
                self.assertGreater(results["ports"][0]["completed_checksums"], 100, "this kernel left nothing to do")
                self.assertEqual(results["ports"][0]["lost"]["rx_oversize"], 0)
                capture = self.folder / fabric / "capture.pcapng"
                longest = max(len(frame) for _, _, frame, _ in end_to_end.packets(capture))
                self.assertLessEqual(longest, 1514)
                bad = self.tool("tshark", "-r", capture, "-o", "tcp.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE",
                                "-Y", "tcp.checksum.status == 0 || udp.checksum.status == 0")
                self.assertEqual(bad, "")

    def test_jumbo_frames(self):
        self.make(2, mtu=9000)
        for fabric in FABRICS:
            with self.subTest(fabric=fabric):
                process = self.start_live(self.config(fabric, 2, mtu=9000), folder=fabric)
                out = self.in_host(0, "ping", "-c", "3", "-i", "0.2", "-M", "do", "-s", "8972", "198.18.0.2").stdout
                self.assertIn("3 received", out)
                self.assertEqual(self.exchange("tcp", 1, 0, 3_000_000)["bytes"], 3_000_000)
                self.end(process, folder=fabric)

    def test_a_frame_too_long_for_the_far_port_is_dropped_by_name(self):
        self.make(2, mtu=9000)
        sh("ip", "-n", self.space, "link", "set", "veth1", "mtu", 1500)
        process = self.start_live(self.config("voq", 2, mtu=9000))
        done = subprocess.run(["ip", "netns", "exec", self.hosts[0], "ping", "-c", "3", "-i", "0.2", "-W", "1", "-s", "5000",
                               "198.18.0.2"], capture_output=True, text=True, check=False)
        self.assertIn("0 received", done.stdout)
        results = self.end(process)
        self.assertEqual(results["frames"]["dropped"]["host_mtu"], 3)

    def test_a_host_faster_than_its_link_fills_its_queue(self):
        """A 1 Mb/s link and a host that knows nothing of it: what passes is the link's rate, the rest has a name."""
        self.make(2)
        process = self.start_live(self.config("voq", 2, port_more=", queue: 64KiB", rate="1M"))
        self.in_host(0, "ping", "-c", "1", "-W", "5", "198.18.0.2")
        self.in_host(0, sys.executable, TRAFFIC, "flood", "send", "198.18.0.2", 1000)
        time.sleep(0.3)
        results = self.end(process)
        self.assertGreater(results["frames"]["dropped"]["host_queue"], 500)
        passed = sum(f["bytes"] + 24 * f["frames"] for f in results["flows"] if f["source"] == "leaf0:p0")
        self.assertLess(passed * 8, 1e6 * results["duration_ns"] / 1e9, "more than the link carries")

    def test_pause_frames_pass_both_ways(self):
        """A host's PFC frame pauses its class towards it, and no other."""
        self.make(2)
        for fabric in FABRICS:
            with self.subTest(fabric=fabric):
                # The comparator's watchdog would take so long a pause for a storm, and drop.
                config = self.config(fabric, 2, rate="100M", more='ethernet: {watchdog: {action: "off"}}')
                process = self.start_live(config, folder=fabric)
                self.in_host(0, "ping", "-c", "1", "-W", "5", "198.18.0.2")
                # Host 1 pauses class 3 for 65,535 quanta of 100M, 336 ms, again and again.
                pauser = self.background(1, sys.executable, TRAFFIC, "pfc", "send", "eth0", 3, 100_000)
                self.assertEqual(pauser.stdout.readline().strip(), "ready")
                paused = subprocess.run(["ip", "netns", "exec", self.hosts[0], "ping", "-Q", str(26 << 2), "-c", "1", "-W",
                                         "0.2", "198.18.0.2"], capture_output=True, text=True, check=False)
                free = self.in_host(0, "ping", "-c", "2", "-i", "0.1", "-W", "5", "198.18.0.2").stdout
                self.assertIn("0 received", paused.stdout, "class 3 was not held")
                self.assertIn("2 received", free, "another class was held")
                self.gone(pauser)
                time.sleep(0.6)
                again = self.in_host(0, "ping", "-Q", str(26 << 2), "-c", "2", "-i", "0.1", "-W", "5", "198.18.0.2").stdout
                self.assertIn("2 received", again, "the pause did not end")
                results = self.end(process, folder=fabric)
                self.assertGreater(results["ports"][1]["pfc_received"], 10)
                self.assertEqual(sum(results["frames"]["dropped"].values()), 0)

    def test_a_host_is_sent_pause_frames_for_a_lossless_class(self):
        """A 1 Mb/s link and a lossless class: the host sees XOFF for it while its queue is full, and XON after."""
        self.make(2)
        for fabric in FABRICS:
            with self.subTest(fabric=fabric):
                process = self.start_live(self.config(fabric, 2, rate="1M", port_more=", queue: 256KiB"), folder=fabric)
                self.in_host(0, "ping", "-c", "1", "-W", "5", "198.18.0.2")
                ears = self.background(0, sys.executable, TRAFFIC, "pfc", "serve", "eth0", 4)
                self.assertEqual(ears.stdout.readline().strip(), "ready")
                # 150 datagrams of 1.4 KB: over half of the queue, and not all of it. They take 1.7 s on the link.
                self.in_host(0, sys.executable, TRAFFIC, "flood", "send", "198.18.0.2", 150, 26)
                heard = [bytes.fromhex(line) for line in ears.communicate(timeout=30)[0].split()]
                results = self.end(process, folder=fabric)
                self.assertTrue(heard)
                for frame in heard:
                    self.assertEqual(frame[:6].hex(), "0180c2000001")
                    self.assertEqual(frame[12:18].hex(), "880801010008", "PFC for class 3 alone")
                    self.assertEqual(len(frame), 60)
                quanta = [int.from_bytes(frame[24:26], "big") for frame in heard]
                self.assertEqual(quanta[0], 0xffff)
                self.assertIn(0, quanta, "no XON")
                self.assertEqual(len(heard), results["ports"][0]["pfc_sent"])
                self.assertEqual(sum(results["frames"]["dropped"].values()), 0, "nothing is lost in a lossless class")

    def test_a_second_instance_on_a_port_is_told_so(self):
        self.make(2)
        config = self.config("voq", 2)
        process = self.start_live(config)
        second = subprocess.run(["ip", "netns", "exec", self.space, end_to_end.PROGRAM, "run", config, "--out", "second"],
                                cwd=self.folder, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(second.returncode, 2, second.stderr)
        self.assertIn("veth0 is in use by another instance of weft", second.stderr.splitlines()[-1])
        self.assertFalse((self.folder / "second").exists())
        self.end(process)
        # Killed hard, it leaves nothing that stops the next one.
        process = self.start_live(config, folder="third")
        process.kill()
        process.wait()
        process = self.start_live(config, folder="fourth")
        self.assertIn("1 received", self.in_host(0, "ping", "-c", "1", "-W", "5", "198.18.0.2").stdout)
        self.end(process, folder="fourth")

    def test_a_link_that_goes_down_and_comes_back(self):
        self.make(2)
        process = self.start_live(self.config("voq", 2))
        self.in_host(0, "ping", "-c", "1", "-W", "5", "198.18.0.2")
        sh("ip", "-n", self.hosts[1], "link", "set", "eth0", "down")
        time.sleep(0.5)
        down = subprocess.run(["ip", "netns", "exec", self.hosts[0], "ping", "-c", "2", "-i", "0.2", "-W", "1", "198.18.0.2"],
                              capture_output=True, text=True, check=False)
        self.assertIn("0 received", down.stdout)
        sh("ip", "-n", self.hosts[1], "link", "set", "eth0", "up")
        time.sleep(0.5)
        self.assertIn("1 received", self.in_host(0, "ping", "-c", "1", "-W", "5", "198.18.0.2").stdout)
        results = self.end(process)
        self.assertGreater(results["frames"]["dropped"]["host_down"], 0)
        self.assertEqual(results["ports"][1]["link_losses"], 1)
        self.assertTrue(results["ports"][1]["link_up"])


class NoPrivilege(end_to_end.EndToEnd):
    def test_somebody_who_is_not_root(self):
        """In a user namespace, without huge pages: the same ping."""
        if os.geteuid() != 0:
            self.skipTest("needs root, to become somebody else")
        nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        if subprocess.run([*nobody, "unshare", "--map-root-user", "--net", "true"], capture_output=True,
                          check=False).returncode != 0:
            self.skipTest("no user namespaces here")
        if subprocess.run([*nobody, "test", "-x", end_to_end.PROGRAM], check=False).returncode != 0:
            self.skipTest(f"others may not run {end_to_end.PROGRAM}")
        self.folder.chmod(0o777)
        self.write("live.yaml", """
topology: {leaves: 2, spines: 1, hosts_per_leaf: 1, host_link: {rate: 10G}, fabric_link: {rate: 10G, delay: 2us}}
clock: {mode: wall}
forwarding: {mtu: 1514}
ports: [{at: 0, dev: "net_af_packet0,iface=veth0"}, {at: 1, dev: "net_af_packet1,iface=veth1"}]
""")
        script = f"""
set -e
trap 'kill $(cat h0 h1) 2>/dev/null' EXIT
for i in 0 1; do
    unshare --net sleep 100 & echo $! > h$i
    until [ "$(readlink /proc/$(cat h$i)/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
    ip link add veth$i type veth peer name eth0 netns $(cat h$i)
    ip link set veth$i up
    nsenter -t $(cat h$i) -n ip addr add 198.18.0.$((i + 1))/15 dev eth0
    nsenter -t $(cat h$i) -n ip link set eth0 up
done
'{end_to_end.PROGRAM}' run live.yaml --out out 2> log > table & weft=$!
until grep -q running log; do kill -0 $weft; sleep 0.05; done
nsenter -t $(cat h0) -n ping -c 3 -i 0.2 -W 5 198.18.0.2 > ping
kill -INT $weft
wait $weft
"""
        done = subprocess.run([*nobody, "unshare", "--map-root-user", "--net", "bash", "-c", script], cwd=self.folder,
                              capture_output=True, text=True, timeout=90, check=False)
        log = self.folder / "log"
        self.assertEqual(done.returncode, 0, done.stderr + (log.read_text() if log.exists() else ""))
        self.assertIn("3 received", (self.folder / "ping").read_text())
        self.assert_balanced(self.results("out"))


class FourHosts(Lab):
    def test_all_pairs_at_once(self):
        self.make(4)
        for fabric in FABRICS:
            with self.subTest(fabric=fabric):
                process = self.start_live(self.config(fabric, 4), folder=fabric)
                for i in range(4):
                    out = self.in_host(i, "ping", "-c", "2", "-i", "0.2", "-W", "5", f"198.18.0.{(i + 1) % 4 + 1}").stdout
                    self.assertIn("2 received", out)
                reports, threads = {}, []
                for i in range(4):
                    def one(i=i):
                        reports[i] = self.exchange("tcp", (i + 1) % 4, i, 1_000_000)
                    threads.append(threading.Thread(target=one))
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                self.assertEqual([reports[i]["bytes"] for i in range(4)], [1_000_000] * 4)
                results = self.end(process, folder=fabric)
                self.assertGreater(results["frames"]["replicated"], 0, "broadcasts reach everyone")
                self.assertEqual(results["frames"]["dropped"]["host_mtu"], 0)


class WallClock(end_to_end.EndToEnd):
    def test_a_paced_run_gives_the_results_of_a_free_running_one(self):
        config = self.write("paced.yaml", """
topology: {leaves: 2, spines: 2, hosts_per_leaf: 2}
duration: 20us
traffic: {constant: {pattern: permutation, load: 0.5}}
""")
        for fabric in FABRICS:
            self.weft("run", config, "--set", f"fabric={fabric}", "--out", f"{fabric}-virtual")
            started = time.monotonic()
            self.weft("run", config, "--set", f"fabric={fabric}", "--set", "clock.mode=wall", "--set", "clock.dilation=20000",
                      "--out", f"{fabric}-wall")
            self.assertGreater(time.monotonic() - started, 0.4, "20 us took less than 20,000 times as long")
            free, paced = self.results(f"{fabric}-virtual"), self.results(f"{fabric}-wall")
            self.assertIsNone(free["clock"])
            self.assertEqual(paced["clock"]["dilation"], 20000)
            self.assertGreater(paced["clock"]["windows"], 10)
            for results in (free, paced):
                del results["cost"], results["clock"]
            self.assertEqual({k: v for k, v in free.items() if k != "warnings"},
                             {k: v for k, v in paced.items() if k != "warnings"})

    def test_a_machine_that_cannot_keep_up_says_by_how_much(self):
        config = self.write("hard.yaml", """
clock: {mode: wall}
topology: {leaves: 4, spines: 4, hosts_per_leaf: 4}
duration: 200us
traffic: {constant: {pattern: permutation, load: 0.9, frame: 64}}
""")
        self.weft("run", config, "--out", "out")
        results = self.results("out")
        # 16 hosts x 400G x 0.9 in frames of 64 bytes are 8 thousand million frames a second: no machine does that.
        self.assertTrue(any("could not keep up" in warning for warning in results["warnings"]), results["warnings"])
        self.assertGreater(results["clock"]["behind_ns"], 10e6)  # 1.6 million frames take more than 10 ms
        self.assertGreater(results["clock"]["late_share"], 0.9)

    def test_ctrl_c_ends_a_wait(self):
        config = self.write("slow.yaml", """
clock: {mode: wall}
topology: {leaves: 2, spines: 1, hosts_per_leaf: 1}
duration: 1000s
traffic: {constant: {pattern: one, from: 0, to: 1, start: 500s}}
""")
        process = self.start("run", config, "--out", "out")
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 1, err)
        self.assertTrue(self.results("out")["interrupted"])
        self.assertLess(self.results("out")["duration_ns"], 20e9)


class SoftwareDevices(end_to_end.EndToEnd):
    """Devices that need neither root nor a network."""

    def live(self, fabric, ports, more=""):
        return self.write("devices.yaml", f"""
fabric: {fabric}
clock: {{mode: wall}}
duration: 200ms
topology:
  leaves: 2
  spines: 1
  hosts_per_leaf: 1
  host_link: {{rate: 10G, delay: 1us}}
  fabric_link: {{rate: 10G, delay: 2us}}
forwarding: {{mode: static, static: [{{in: leaf0:p0, out: leaf1:p0}}, {{in: leaf1:p0, out: leaf0:p0}}]}}
ports: {ports}
{more}
""")

    def test_a_capture_in_and_a_capture_out(self):
        """net_pcap: every frame of a file goes in at one port and out at the other, byte for byte."""
        source = self.capture_input("small-messages.pcapng")
        for fabric in FABRICS:
            frames = [frame for _, _, frame, _ in end_to_end.packets(source)][:100]
            # Classic pcap, as net_pcap writes it, too.
            self.write_pcap("in.pcap", frames)
            config = self.live(fabric, f'[{{at: 0, dev: "net_pcap0,rx_pcap={self.folder}/in.pcap,tx_pcap={self.folder}/a.pcap"}},'
                                       f' {{at: 1, dev: "net_pcap1,tx_pcap={self.folder}/out.pcap"}}]')
            self.weft("run", config, "--out", fabric)
            results = self.results(fabric)
            self.assert_balanced(results)
            self.assertEqual(results["frames"]["delivered"], len(frames))
            self.assertEqual(self.read_pcap("out.pcap"), frames)

    def test_a_device_that_always_has_more(self):
        """net_null: neither the run nor its books suffer from a host without end; the loss has a name."""
        for fabric in FABRICS:
            self.weft("run", self.live(fabric, "[{at: 0, dev: net_null0}, {at: 1, dev: net_null1}]"), "--out", fabric)
            results = self.results(fabric)
            self.assert_balanced(results)
            self.assertGreater(results["frames"]["delivered"], 1000)
            self.assertEqual(results["frames"]["offered"], sum(p["rx_frames"] - p["waiting"] for p in results["ports"]))

    def test_a_device_that_does_not_open(self):
        for device, words in (("net_af_packet0,iface=nosuch0", "no network interface 'nosuch0'"),
                              ("net_nosuch0", "net_nosuch0"), ("net_pcap0,rx_pcap=/nonexistent/x.pcap", "port leaf0:p0")):
            done = self.weft("run", self.live("voq", f'[{{at: 0, dev: "{device}"}}]'), "--out", "out", expect=2)
            self.assert_one_line(done.stderr, words)
            self.assertFalse((self.folder / "out").exists())

    def test_a_vhost_guest_leaves_and_returns(self):
        """net_vhost, and as its guest virtio-user in another weft: what the guest sends comes back to it."""
        socket = self.folder / "guest.sock"
        config = self.live("voq", f'[{{at: 0, dev: "net_vhost0,iface={socket}"}}, {{at: 1, dev: net_ring0}}]')
        (self.folder / config).write_text((self.folder / config).read_text().replace("duration: 200ms\n", ""))
        log = self.folder / "log"
        with open(log, "w", encoding="utf-8") as stderr:
            process = subprocess.Popen([end_to_end.PROGRAM, "run", config, "--out", "out"], cwd=self.folder,
                                       stdout=subprocess.DEVNULL, stderr=stderr)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.wait_for(lambda: "running" in log.read_text(), process)
        self.assertIn("link down", log.read_text(), "no guest yet")
        self.write("guest.yaml", f"""
clock: {{mode: wall}}
duration: 500ms
topology:
  leaves: 2
  spines: 1
  hosts_per_leaf: 1
  host_link: {{rate: 10G, delay: 1us}}
  fabric_link: {{rate: 10G, delay: 2us}}
forwarding: {{mode: static, static: [{{in: leaf0:p0, out: leaf1:p0}}, {{in: leaf1:p0, out: leaf0:p0}}]}}
ports: [{{at: leaf1:p0, dev: "net_virtio_user0,path={socket}"}}]
traffic: {{constant: {{pattern: one, from: 0, to: 1, load: 0.001, frame: 1000, start: 100ms, stop: 400ms}}}}
""")
        sent = 0
        for guest in ("first", "second"):
            self.weft("run", "guest.yaml", "--out", guest)
            results = self.results(guest)
            self.assert_balanced(results)
            self.assertGreater(results["ports"][0]["tx_frames"], 100)
            # All but what was under way when it ended.
            self.assertGreater(results["ports"][0]["rx_frames"], results["ports"][0]["tx_frames"] * 0.9)
            sent += results["ports"][0]["tx_frames"]
            time.sleep(0.5)
        # A guest that dies with frames in its rings.
        dying = self.start("run", "guest.yaml", "--out", "dying")
        time.sleep(1.5)
        dying.kill()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=60), 0, log.read_text())
        results = self.results("out")
        self.assert_balanced(results)
        self.assertGreaterEqual(results["ports"][0]["rx_frames"], sent * 0.95)
        self.assertGreaterEqual(results["ports"][0]["link_losses"], 2)
        self.assertFalse(results["ports"][0]["link_up"])

    def write_pcap(self, name, frames):
        import struct  # pylint: disable=import-outside-toplevel
        with open(self.folder / name, "wb") as out:
            out.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
            for frame in frames:
                out.write(struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame)

    def read_pcap(self, name):
        import struct  # pylint: disable=import-outside-toplevel
        data, at, frames = (self.folder / name).read_bytes(), 24, []
        while at + 16 <= len(data):
            length = struct.unpack_from("<I", data, at + 8)[0]
            frames.append(data[at + 16:at + 16 + length])
            at += 16 + length
        return frames


if __name__ == "__main__":
    end_to_end.main()
