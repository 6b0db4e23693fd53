#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""report.html of a comparison, as a browser shows it: on a desk and on a phone, light and dark."""
import html
import json
import re
import struct
import subprocess
import unittest
import zlib

import end_to_end
from end_to_end import EndToEnd

SMALL = """\
topology:
  leaves: 2
  spines: 2
  hosts_per_leaf: 4
  host_link: {rate: 100G, delay: 50ns}
  fabric_link: {rate: 200G, delay: 250ns}
duration: 200us
warmup: 20us
ethernet: {buffer: 4MiB, ecn: {kmin: 0, kmax: 0}}
voq: {sram: 4MiB}
traffic:
  - constant: {pattern: incast, receiver: leaf0:p0, load: 1, senders: [leaf1:p0, leaf1:p1, leaf1:p2]}
  - constant: {pattern: one, from: leaf1:p3, to: leaf0:p3, load: 0.5}
"""
SIZES = {"desk": (1440, 900), "phone": (390, 844)}
SCHEMES = {"dark": 0, "light": 1}  # as of Chromium's setting
BACKGROUND = {"dark": (0x14, 0x18, 0x1d), "light": (0xff, 0xff, 0xff)}
SERIES = {"dark": [(0x74, 0xaa, 0xff), (0xff, 0xa2, 0x4d)], "light": [(0x18, 0x64, 0xd6), (0xd9, 0x48, 0x0f)]}
PLOTS = ("latency", "flows", "queues", "link-load", "links", "pauses")

# Says what no screenshot tells: whether the page scrolls sideways, and which texts of a plot touch or leave it.
MEASURE = """<script>
const visible = [...document.querySelectorAll('svg.plot')].filter(s => s.getBoundingClientRect().width > 0);
const found = {scroll: document.documentElement.scrollWidth, width: innerWidth, height: document.documentElement.scrollHeight,
               plots: visible.length, outside: [], touching: [], wide: []};
for (const svg of visible) {
  const frame = svg.getBoundingClientRect(), texts = [...svg.querySelectorAll('text')];
  const boxes = texts.map(t => t.getBoundingClientRect());
  boxes.forEach((a, i) => {
    if (a.left < frame.left - 1 || a.right > frame.right + 1 || a.top < frame.top - 2 || a.bottom > frame.bottom + 2)
      found.outside.push(texts[i].textContent);
    // Boxes hold the room above capitals and below the line, so neighbours may share a third of it.
    for (let k = 0; k < i; ++k) {
      const b = boxes[k], across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (across > 1 && down > 0.34 * Math.min(a.height, b.height))
        found.touching.push(texts[k].textContent + ' / ' + texts[i].textContent);
    }
  });
}
for (const cell of document.querySelectorAll('td,th,h1,p,figcaption'))
  if (cell.getBoundingClientRect().right > innerWidth + 1) found.wide.push(cell.textContent);
const told = document.createElement('pre');
told.id = 'measured';
told.textContent = JSON.stringify(found);
document.body.append(told);
</script></body>"""
FRAME = """<body style="margin:0"><iframe id="page" style="border:0" width="{}" height="{}" srcdoc="{}"></iframe>
<pre id="told"></pre><script>
document.getElementById('page').onload = event =>
  document.getElementById('told').textContent = event.target.contentDocument.getElementById('measured').textContent;
</script></body>"""


def pixels(path):
    """Rows of (red, green, blue) tuples of an 8-bit PNG without interlacing."""
    data, at, packed = path.read_bytes(), 8, b""
    while at < len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack_from(">IIBB", data, at + 8)
        elif kind == b"IDAT":
            packed += data[at + 8:at + 8 + length]
        at += length + 12
    assert depth == 8 and colour in (2, 6)
    step = {2: 3, 6: 4}[colour]
    raw, stride = zlib.decompress(packed), width * step
    before = bytearray(stride)
    for y in range(height):
        kind, row = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        if kind == 2:
            row = bytearray(map(lambda pair: (pair[0] + pair[1]) & 255, zip(row, before)))
        elif kind:
            for i in range(stride):
                left, up = row[i - step] if i >= step else 0, before[i]
                corner = before[i - step] if i >= step else 0
                if kind == 1:
                    guess = left
                elif kind == 3:
                    guess = (left + up) // 2
                else:
                    estimate = left + up - corner
                    guess = min((left, up, corner), key=lambda value: abs(estimate - value))  # ties: in this order
                row[i] = (row[i] + guess) & 255
        before = row
        yield [tuple(row[i:i + 3]) for i in range(0, stride, step)]


class Report(EndToEnd):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.made = None

    def setUp(self):
        super().setUp()
        self.write("incast.yaml", SMALL)
        self.weft("compare", "incast.yaml", "--fabrics", "voq,ethernet", "--out", "out")
        self.page = self.folder / "out" / "report.html"

    def browser(self, page, size, scheme, *arguments):
        """Opens the page without a network; what the browser said, and its document. No error may be on its console."""
        width, height = size
        done = subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
             f"--user-data-dir={self.folder}/browser", f"--window-size={width},{height}", "--proxy-server=127.0.0.1:1",
             f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}", "--enable-logging=stderr", "--log-level=0",
             *arguments, page.as_uri()],
            capture_output=True, text=True, errors="replace", timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [line for line in done.stderr.splitlines() if "CONSOLE" in line], done.stdout

    def test_it_looks_right_on_a_desk_and_on_a_phone(self):
        inner = html.escape(self.page.read_text().replace("</body>", MEASURE))
        measured = self.folder / "measured.html"
        for device, size in SIZES.items():
            with self.subTest(device=device):
                # A frame has the size that is meant, where a window may have a least one.
                measured.write_text(FRAME.format(*size, inner))
                console, document = self.browser(measured, SIZES["desk"], "light", "--dump-dom")
                self.assertEqual(console, [])
                found = json.loads(html.unescape(re.search(r'<pre id="told">(.*?)</pre>', document, re.S)[1]))
                self.assertEqual(found["width"], size[0], "the browser has the width that is meant")
                self.assertEqual(found["scroll"], size[0], "no scrolling sideways")
                self.assertEqual(found["plots"], len(PLOTS))
                self.assertEqual(found["outside"], [], "texts are cut off")
                self.assertEqual(found["touching"], [], "texts overlap")
                self.assertEqual(found["wide"], [], "the page is cut off")
                for scheme in SCHEMES:
                    with self.subTest(scheme=scheme):
                        self.check_picture((size[0], found["height"]), scheme)

    def check_picture(self, size, scheme):
        """Each plot draws both fabrics in their colours, on the scheme's background."""
        picture = self.folder / "page.png"
        console, _ = self.browser(self.page, size, scheme, f"--screenshot={picture}")
        self.assertEqual(console, [])
        rows = list(pixels(picture))
        self.assertEqual((len(rows[0]), len(rows)), size)
        seen = {colour: 0 for colour in SERIES[scheme]}
        background = 0
        for row in rows:
            background += row.count(BACKGROUND[scheme])
            for colour in seen:
                seen[colour] += row.count(colour)
        total = size[0] * size[1]
        self.assertGreater(background, total / 2)
        self.assertLess(background, total * 0.97, "the page is blank")
        for colour, count in seen.items():
            self.assertGreater(count, 500, f"nothing is drawn in {colour}")

    def test_a_console_error_would_be_seen(self):
        page = self.folder / "broken.html"
        page.write_text("<script>nonsense()</script>")
        console, _ = self.browser(page, SIZES["desk"], "light", "--dump-dom")
        self.assertEqual(len(console), 1, "else the tests above prove nothing")

    def test_it_is_one_file(self):
        text = self.page.read_text()
        for address in re.findall(r'(?:src|href)="([^"]*)"', text) + re.findall(r"url\(([^)]*)\)", text):
            self.assertTrue(address.startswith("data:"), address)
        self.assertNotIn("<script", text)
        self.assertNotIn("@import", text)

    def test_sentences_hold_the_figures_of_the_comparison(self):
        text = self.page.read_text()
        comparison = json.loads((self.folder / "out" / "compare.json").read_text())
        sentences = dict(re.findall(r'<h2 id="([a-z-]+)">.*?<figcaption>(.*?)</figcaption>', text, re.S))
        self.assertEqual(set(sentences), set(PLOTS))
        voq, ethernet = (run["metrics"] for run in comparison["runs"])

        def microseconds(ns):
            return f"{float(f'{ns / 1000:.4g}'):g} us"
        self.assertIn(f"{microseconds(voq['latency_ns']['p50'])} on voq", sentences["latency"])
        self.assertIn(f"{microseconds(ethernet['latency_ns']['p99'])} on ethernet", sentences["latency"])
        for name, metrics in (("voq", voq), ("ethernet", ethernet)):
            up = metrics["balance"]["up"]
            words = re.search(rf"n {name} the busiest uplink, (\S+), was busy (\S+)% of the time and carried (\S+) times",
                              sentences["link-load"].replace("&gt;", ">"))
            self.assertEqual(words[1], up["busiest"])
            self.assertAlmostEqual(float(words[2]), 100 * up["busiest_load"], delta=0.51)  # whole per cents
            self.assertAlmostEqual(float(words[3]), up["busiest_over_mean"], delta=0.051)  # one decimal
            self.assertRegex(sentences["pauses"], rf"[Oo]n {name} {metrics['pfc']['hosts_paused']} hosts stood still")
        self.assertIn("leaf1:p3 to leaf0:p3 differs most" if self.bystander_suffers(comparison) else " differs most",
                      sentences["flows"])

    @staticmethod
    def bystander_suffers(comparison):
        def difference(flow):
            got = [run["bytes"] for run in flow["runs"]]
            return (max(got) - min(got)) / max(got)
        return max(comparison["flows"], key=difference)["source"] == "leaf1:p3"

    def test_plots_are_files_too(self):
        for name in PLOTS:
            with self.subTest(name=name):
                plot = self.folder / "out" / f"{name}.svg"
                console, document = self.browser(plot, SIZES["desk"], "dark", "--dump-dom")
                self.assertEqual(console, [])
                self.assertIn("<text", document)
                self.assertNotIn("parsererror", document)

    def test_names_from_outside_are_text(self):
        self.write("a&b<i>.yaml", SMALL)
        self.weft("compare", "a&b<i>.yaml", "--out", "named")
        self.assertIn("<h1>a&amp;b&lt;i&gt;</h1>", (self.folder / "named" / "report.html").read_text())

    def test_a_run_that_failed_is_said_and_the_rest_shown(self):
        self.weft("compare", "incast.yaml", "--out", "half", "--set", "ethernet.buffer=64KiB", expect=1)
        text = (self.folder / "half" / "report.html").read_text()
        self.assertRegex(text, r'class="note">ethernet: .*ethernet\.buffer')
        self.assertIn('<h2 id="latency">', text)


if __name__ == "__main__":
    unittest.util._MAX_LENGTH = 2000  # pylint: disable=protected-access
    end_to_end.main()
