# SPDX-License-Identifier: BSD-3-Clause
"""What end-to-end tests share: a folder of their own, the built program, readers of what it leaves behind.

A test script ends in `end_to_end.main()` and is called with the path of the program; see tests/meson.build.
"""
import inspect
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree as ElementTree

SOURCE = pathlib.Path(os.environ.get("WEFT_SOURCE", pathlib.Path(__file__).resolve().parent.parent))
TIME_LIMIT_S = 300  # of one run: a run that hangs fails its test, not the whole suite
PROGRAM = None      # set by main()


class EndToEnd(unittest.TestCase):
    """Each test runs in an empty folder, which goes afterwards unless WEFT_KEEP is set."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="weft-test-"))
        if "WEFT_KEEP" in os.environ:
            print(f"{self.id()}: {self.folder}", file=sys.stderr)
        else:
            self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return name

    def weft(self, *arguments, expect=0, **options):
        """Runs the program to its end; fails with its messages if it ends otherwise than expected."""
        done = subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True,
                              errors="replace", timeout=TIME_LIMIT_S, check=False, **options)
        self.assertEqual(done.returncode, expect, f"weft {' '.join(map(str, arguments))}\n{done.stdout}\n{done.stderr}")
        return done

    def start(self, *arguments):
        """Starts the program; whatever happens, it is gone when the test ends."""
        process = subprocess.Popen([PROGRAM, *map(str, arguments)], cwd=self.folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)

        def end():
            process.kill()
            process.communicate()
        self.addCleanup(end)
        return process

    def wait_for(self, condition, process):
        """Until `condition` holds, while the process runs."""
        limit = time.monotonic() + 60
        while not condition():
            if process.poll() is not None or time.monotonic() > limit:
                self.fail(f"never came to be; weft said: {process.communicate()[1] if process.poll() is not None else ''}")
            time.sleep(0.02)

    def assert_one_line(self, text, *words):
        self.assertEqual(len(text.splitlines()), 1, text)
        self.assertTrue(text.startswith("weft: "), text)
        for word in words:
            self.assertIn(word, text)

    def assert_balanced(self, results):
        frames = results["frames"]
        out = frames["delivered"] + sum(frames["filtered"].values()) + sum(frames["dropped"].values()) + frames["in_flight"]
        self.assertEqual(frames["offered"] + frames["replicated"], out)
        self.assertTrue(frames["balanced"])

    def results(self, out):
        return json.loads((self.folder / out / "results.json").read_text())

    def capture_input(self, name):
        """A capture that belongs to the project."""
        for folder in (SOURCE / "tests" / "captures", SOURCE / ".." / "shared" / "captures"):
            if (folder / name).exists():
                return (folder / name).resolve()
        self.skipTest(f"{name} is not in tests/captures")

    def tool(self, *command):
        """Output of another program, which may be missing."""
        if shutil.which(command[0]) is None:
            self.skipTest(f"{command[0]} is not installed")
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, errors="replace",
                              timeout=TIME_LIMIT_S, check=False)
        self.assertEqual(done.returncode, 0, f"{command}: {done.stderr}")
        return done.stdout


def less_cost(results):
    """The part of results.json that no run of one model may change."""
    return json.dumps({key: value for key, value in results.items() if key != "cost"}, indent=1)


def packets(path):
    """(interface name, nanoseconds, frame bytes, original length) of each packet of a little-endian pcapng file of one
    section, with time stamps of 10^-n s. Reads what weft writes and what dumpcap wrote for tests/captures."""
    data = pathlib.Path(path).read_bytes()
    interfaces, at = [], 0
    while at + 12 <= len(data):
        kind, length = struct.unpack_from("<II", data, at)
        body = data[at + 8:at + length - 4]
        if kind == 1:  # interface description
            name, resolution = str(len(interfaces)), 6
            options = body[8:]
            while len(options) >= 4:
                code, size = struct.unpack_from("<HH", options)
                if code == 2:
                    name = options[4:4 + size].decode()
                elif code == 9:
                    resolution = options[4]
                options = options[4 + (size + 3) // 4 * 4:]
            interfaces.append((name, 10 ** (9 - resolution)))
        elif kind == 6:  # enhanced packet
            interface, high, low, captured, original = struct.unpack_from("<IIIII", body)
            name, scale = interfaces[interface]
            yield name, ((high << 32) | low) * scale, body[20:20 + captured], original
        at += length


class _Cases(unittest.TextTestResult):
    """Keeps the outcome of each case, as tests/run reads it from GoogleTest reports."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.suite = ElementTree.Element("testsuite")

    def _case(self, test, outcome=None, message=""):
        case = ElementTree.SubElement(self.suite, "testcase", status="run", classname=type(test).__name__,
                                      name=getattr(test, "_testMethodName", str(test)))
        if outcome:
            # A skip's message starts with its place, on a line of its own.
            ElementTree.SubElement(case, outcome, message=f"\n{message}" if outcome == "skipped" else message)

    def addSuccess(self, test):
        super().addSuccess(test)
        self._case(test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._case(test, "failure", str(err[1]))

    def addError(self, test, err):
        super().addError(test, err)
        self._case(test, "error", str(err[1]))

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:  # a test whose subtests all pass is a success of its own
            self._case(test, "failure", f"{subtest}: {err[1]}")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._case(test, "skipped", reason)


def main():
    """script PROGRAM [unittest arguments]. Leaves SCRIPT.xml beside the program for tests/run to count."""
    global PROGRAM  # pylint: disable=global-statement
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} PATH_OF_WEFT [TEST...]")
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    script = inspect.getmodule(inspect.stack()[1][0])
    runner = unittest.TextTestRunner(verbosity=2, resultclass=_Cases)
    result = unittest.main(module=script, testRunner=runner, exit=False).result
    report = pathlib.Path(PROGRAM).parent / f"{pathlib.Path(sys.argv[0]).stem}.xml"
    ElementTree.ElementTree(result.suite).write(report)
    sys.exit(0 if result.wasSuccessful() else 1)
