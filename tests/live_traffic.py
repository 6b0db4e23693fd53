#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What hosts of the live tests say to each other, run inside their namespaces.

live_traffic.py tcp|tcp6|udp serve|send ADDRESS BYTES    a stream; the server reports bytes and whether all were right
live_traffic.py flood send ADDRESS COUNT [DSCP]          UDP datagrams of 1400 bytes as fast as they go
live_traffic.py pfc send INTERFACE CLASS COUNT           pause frames for the class, one every millisecond
live_traffic.py pfc serve INTERFACE SECONDS              prints the MAC control frames that come in, in hexadecimal
"""
import hashlib
import json
import socket
import struct
import sys
import time

PORT = 18515
CHUNK = 1400


def pattern(size):
    """Bytes whose order shows."""
    return (b"".join(struct.pack(">I", i) for i in range(size // 4 + 1)))[:size]


def stream(family, role, address, size):
    expected = pattern(size)
    if role == "serve":
        with socket.create_server((address, PORT), family=family) as server:
            print("ready", flush=True)
            connection, _ = server.accept()
            data = bytearray()
            while block := connection.recv(1 << 16):
                data += block
            connection.sendall(b"done")
            connection.close()
        print(json.dumps({"bytes": len(data), "intact": hashlib.sha256(data).digest() == hashlib.sha256(expected).digest()}))
    else:
        with socket.create_connection((address, PORT), timeout=30) as connection:
            connection.sendall(expected)
            connection.shutdown(socket.SHUT_WR)
            if connection.recv(4) != b"done":
                sys.exit("the server did not confirm")


def datagrams(role, address, size):
    expected = pattern(size)
    chunks = [expected[i:i + CHUNK] for i in range(0, size, CHUNK)]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        if role == "serve":
            udp.bind((address, PORT))
            udp.settimeout(10)
            print("ready", flush=True)
            got = {}
            while len(got) < len(chunks):
                data = udp.recv(1 << 16)
                got[struct.unpack_from(">I", data)[0]] = data[4:]
            whole = b"".join(got[i] for i in sorted(got))
            print(json.dumps({"bytes": len(whole), "intact": whole == expected}))
        else:
            for i, chunk in enumerate(chunks):
                udp.sendto(struct.pack(">I", i) + chunk, (address, PORT))
                time.sleep(0.0005)  # the receiver's socket buffer is not what is tested


def flood(address, count, dscp=0):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, dscp << 2)
        for _ in range(count):
            try:
                udp.sendto(bytes(CHUNK), (address, PORT))
            except ConnectionRefusedError:  # nobody listens there, as the other side says
                pass


def pfc(interface, traffic_class, count):
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw:
        raw.bind((interface, 0))
        quanta = [0xffff if c == traffic_class else 0 for c in range(8)]
        frame = (bytes.fromhex("0180c2000001") + raw.getsockname()[4] +
                 struct.pack(">HHH8H", 0x8808, 0x0101, 1 << traffic_class, *quanta)).ljust(60, b"\0")
        for i in range(count):
            raw.send(frame)
            if i == 0:
                print("ready", flush=True)
            time.sleep(0.001)


def mac_control(interface, seconds):
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x8808)) as raw:
        raw.bind((interface, 0x8808))
        raw.settimeout(0.1)
        end = time.monotonic() + seconds
        print("ready", flush=True)
        while time.monotonic() < end:
            try:
                print(raw.recv(2048).hex(), flush=True)
            except TimeoutError:
                pass


def main(kind, role, target, *numbers):
    numbers = [int(n) for n in numbers]
    if kind == "tcp":
        stream(socket.AF_INET, role, target, *numbers)
    elif kind == "tcp6":
        stream(socket.AF_INET6, role, target, *numbers)
    elif kind == "udp":
        datagrams(role, target, *numbers)
    elif kind == "flood":
        flood(target, *numbers)
    elif kind == "pfc" and role == "serve":
        mac_control(target, *numbers)
    elif kind == "pfc":
        pfc(target, *numbers)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
