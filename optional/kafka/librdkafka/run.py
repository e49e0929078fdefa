"""Starts the tests' broker, fills a topic for each kind of message, and has both consumers read it in turns."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from harness.kafka import Broker
from harness.kafka_topics import Topics
from harness.paths import example_binary

PROGRAM, SETTINGS = sys.argv[1], sys.argv[2:]
ROUNDS = 3
CASES = [(5_000_000, 110, "none"), (5_000_000, 110, "lz4"), (5_000_000, 60, "none"), (20_000, 20_000, "none")]


def ours(broker: str, topic: str, messages: int, group: str) -> str:
    """`consume` says each second how much it has read, and in how long."""
    names = ["quiet=yes", "commit=no", f"prefetch_bytes={20 << 20}"]
    command = [str(example_binary("consume")), broker, group, topic, *names]
    found, seconds = 0, 0.0
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin and child.stdout
        while found < messages:
            words = child.stdout.readline().split("\t")
            if words[0] == "read":
                found, seconds = found + int(words[1]), seconds + float(words[3])
        user, system = Path(f"/proc/{child.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
        cpu = (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
        status = Path(f"/proc/{child.pid}/status").read_text()
        child.stdin.close()
    peak_kb = int(status.split("VmHWM:")[1].split()[0])
    rate = f"{found / seconds / 1e6:.2f} M messages/s, {cpu / found * 1e6:.2f} CPU s for a million"
    return f"ours: {rate}, at most {peak_kb // 1024} MB"


with tempfile.TemporaryDirectory() as folder:
    broker = Broker(Path(folder) / "broker", java=("-Xmx1G", "-XX:+UseSerialGC"))
    try:
        for messages, size, codec in CASES:
            topic = Topics(broker).create(f"{codec}-{size}", 4)
            given = [PROGRAM, broker.address, topic, str(messages)]
            subprocess.run([*given, f"fill:{size}:{codec}"], check=True)
            print(f"{messages} messages of {size} bytes, {codec}; load average {os.getloadavg()[0]:.2f}", flush=True)
            for number in range(ROUNDS):
                print(" ", ours(broker.address, topic, messages, f"{topic}-{number}"), flush=True)
                subprocess.run([*given, "read", *SETTINGS], check=True)
    finally:
        broker.stop()
