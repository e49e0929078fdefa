"""The article's eight scenarios: Windrow's async client beside clickhouse-connect's, async and in 32 threads.

Prints Markdown. Every client has a process of its own; scenarios and, within a scenario, clients run in random order.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import Request, urlopen

from client_child import WAYS
from measure import Server, deviation, figure, geometric_mean, goals, percentile, table, verdict
from scenarios import SCENARIOS, SETUP, Scenario

TITLES = {
    "windrow": "windrow, async",
    "connect": "clickhouse-connect, async",
    "connect_uncompressed": "the same, compress=False",
    "connect_threads": "clickhouse-connect, 32 threads",
}
OURS, PEER = "windrow", "connect"


def execute(server: Server, statement: str) -> None:
    headers = {"X-ClickHouse-User": server.user, "X-ClickHouse-Key": server.password}
    with urlopen(Request(f"http://{server.host}:{server.port}/", statement.encode(), headers)) as answer:
        answer.read()


class Child:
    """A client's process, and the conversation with it."""

    def __init__(self, way: str) -> None:
        command = [sys.executable, str(Path(__file__).with_name("client_child.py")), way]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.line()

    def line(self) -> str:
        line = self.process.stdout.readline() if self.process.stdout else ""
        if not line:
            raise SystemExit(f"a client ended with {self.process.wait()}")
        return line

    def run(self, scenario: Scenario) -> dict[str, float | list[float]]:
        assert self.process.stdin is not None
        self.process.stdin.write(scenario.name + "\n")
        self.process.stdin.flush()
        return json.loads(self.line())

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=30)


@dataclass
class Measured:
    """Of one client in one scenario, a value per round."""

    rates: list[float] = field(default_factory=list)
    p95_ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)

    def add(self, scenario: Scenario, answer: dict) -> None:
        self.rates.append(scenario.operations / answer["seconds"])
        self.p95_ms.append(percentile(answer["took"], 0.95) * 1000)
        self.cpu_ms.append(answer["cpu"] * 1000 / scenario.operations)

    @property
    def rate(self) -> float:
        return statistics.median(self.rates)

    @property
    def p95(self) -> float:
        return statistics.median(self.p95_ms)

    @property
    def cpu(self) -> float:
        return statistics.median(self.cpu_ms)


def measure(server: Server, rounds: int, seed: int) -> dict[str, dict[str, Measured]]:
    chance = random.Random(seed)
    children = {way: Child(way) for way in WAYS}
    measured: dict[str, dict[str, Measured]] = defaultdict(lambda: defaultdict(Measured))
    for round_number in range(rounds + 1):
        for scenario in chance.sample(SCENARIOS, len(SCENARIOS)):
            for way in chance.sample(list(children), len(children)):
                execute(server, f"TRUNCATE TABLE bench.inserts_{way} SYNC")
                answer = children[way].run(scenario)
                # The first round warms up: caches of the server, connections, imports.
                if round_number > 0:
                    measured[scenario.name][way].add(scenario, answer)
    for child in children.values():
        child.close()
    return measured


def plus_minus(middle: float, values: list[float]) -> str:
    return f"{figure(middle)} ± {figure(deviation(values))}"


def report(measured: dict[str, dict[str, Measured]]) -> str:
    rows = []
    for scenario in SCENARIOS:
        for way, title in TITLES.items():
            of = measured[scenario.name][way]
            peer = measured[scenario.name][PEER]
            rows.append([
                scenario.title, title, str(scenario.in_flight), plus_minus(of.rate, of.rates), figure(of.rate / peer.rate),
                plus_minus(of.p95, of.p95_ms), figure(of.cpu), figure(of.cpu / peer.cpu),
            ])
    head = ["scenario", "client", "in flight", "op/s", "× connect", "p95 ms", "CPU ms/op", "× connect"]
    return table(head, rows, words=2) + "\n" + goals(checked(measured))


def checked(measured: dict[str, dict[str, Measured]]) -> list[tuple[str, str, str, str]]:
    pairs = {scenario.name: (measured[scenario.name][OURS], measured[scenario.name][PEER]) for scenario in SCENARIOS}
    speed = {name: ours.rate / peer.rate for name, (ours, peer) in pairs.items()}
    plain = geometric_mean(
        measured[name][OURS].rate / measured[name]["connect_uncompressed"].rate for name in speed
    )
    cpu = {name: ours.cpu / peer.cpu for name, (ours, peer) in pairs.items()}
    p95 = {name: ours.p95 / peer.p95 for name, (ours, peer) in pairs.items()}
    spread = {name: deviation(ours.p95_ms) / max(deviation(peer.p95_ms), 1e-9) for name, (ours, peer) in pairs.items()}
    mean = geometric_mean(speed.values())

    def worst(ratios: dict[str, float], lowest: bool) -> tuple[str, float]:
        return (min if lowest else max)(ratios.items(), key=lambda pair: pair[1])

    slowest, most_cpu, latest, widest = worst(speed, True), worst(cpu, False), worst(p95, False), worst(spread, False)
    return [
        verdict("op/s, geometric mean", "≥ 1.5 × connect", f"{mean:.2f} ×", mean >= 1.5),
        verdict("the same beside compress=False", "–", f"{plain:.2f} ×", True),
        verdict("op/s in every scenario", "≥ 1.0 ×", f"{slowest[1]:.2f} × ({slowest[0]})", slowest[1] >= 1.0),
        verdict("CPU per operation in every scenario", "≤ 0.5 ×", f"{most_cpu[1]:.2f} × ({most_cpu[0]})", most_cpu[1] <= 0.5),
        verdict("p95 in every scenario", "≤ 1.0 ×", f"{latest[1]:.2f} × ({latest[0]})", latest[1] <= 1.0),
        verdict("deviation of p95 between rounds", "≤ 1.0 ×", f"{widest[1]:.2f} × ({widest[0]})", widest[1] <= 1.0),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    server = Server.from_environment()
    for statement in SETUP:
        execute(server, statement)
    for way in WAYS:
        execute(server, f"DROP TABLE IF EXISTS bench.inserts_{way} SYNC")
        execute(server, f"CREATE TABLE bench.inserts_{way} AS bench.events ENGINE = MergeTree ORDER BY id")
    print(report(measure(server, options.rounds, options.seed)))


if __name__ == "__main__":
    main()
