"""A million rows of ten columns in every form of result, time to the first block, memory while a gigabyte streams, and how
long other tasks on the event loop wait: Windrow's async client beside clickhouse-connect's. Prints Markdown.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from urllib.request import Request, urlopen

from measure import Server, figure, goals, table, verdict
from results_child import QUERY

OURS, PEER = "windrow", "clickhouse_connect"
WORK = [
    ("whole", "query"), ("whole", "query_np"), ("whole", "query_df"), ("whole", "query_arrow"), ("whole", "query_df_arrow"),
    ("first", "query_row_block_stream"), ("first", "query_column_block_stream"), ("first", "query_df_stream"),
    ("stream", "query_row_block_stream"), ("stream", "query_df_stream"), ("stream", "query_arrow_stream"),
]
TITLES = {"whole": "1,000,000 rows", "first": "first block of them", "stream": "1 GB streamed"}
Found = dict[tuple[str, str], dict[str, dict[str, float]]]


def server_alone(server: Server, rounds: int) -> float:
    """Seconds until the whole answer in Native has been read and thrown away: what no client can go below."""
    import time

    headers = {"X-ClickHouse-User": server.user, "X-ClickHouse-Key": server.password}
    took = []
    for _ in range(rounds):
        request = Request(f"http://{server.host}:{server.port}/", f"{QUERY} FORMAT Native".encode(), headers)
        began = time.perf_counter()
        with urlopen(request) as answer:
            while answer.read(1 << 20):
                pass
        took.append(time.perf_counter() - began)
    return statistics.median(took)


def run(module: str, kind: str, method: str, repeats: int) -> dict[str, list[float]]:
    child = Path(__file__).with_name("results_child.py")
    command = [sys.executable, str(child), module, kind, method, str(repeats)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure(rounds: int, seed: int) -> Found:
    chance = random.Random(seed)
    collected: dict[tuple[str, str], dict[str, dict[str, list[float]]]] = {
        work: {OURS: defaultdict(list), PEER: defaultdict(list)} for work in WORK
    }
    for _ in range(rounds):
        for kind, method in chance.sample(WORK, len(WORK)):
            for module in chance.sample([OURS, PEER], 2):
                for name, values in run(module, kind, method, 1 if kind == "stream" else 3).items():
                    collected[kind, method][module][name] += values
    worst = {"delay", "memory"}
    return {
        work: {
            module: {name: (max if name in worst else statistics.median)(values) for name, values in of.items()}
            for module, of in ways.items()
        }
        for work, ways in collected.items()
    }


def report(found: Found, alone: float) -> str:
    rows = []
    for (kind, method), ways in found.items():
        for module, values in ways.items():
            rows.append([
                TITLES[kind], f"`{method}`", module, figure(values["seconds"] * 1000),
                figure(ways[PEER]["seconds"] / values["seconds"]), figure(values["cpu"] * 1000),
                figure(values["delay"] * 1000), figure(values["memory"] / 1e6),
            ])
    head = ["", "method", "client", "ms", "× as fast as connect", "CPU ms", "longest delay of a task, ms", "memory over the start, MB"]
    limit = f"The answer read and thrown away, which is the limit here: {figure(alone * 1000)} ms.\n"
    return table(head, rows, words=3) + "\n" + limit + "\n" + goals(checked(found))


def checked(found: Found) -> list[tuple[str, str, str, str]]:
    def faster(kind: str, method: str) -> float:
        ways = found[kind, method]
        return ways[PEER]["seconds"] / ways[OURS]["seconds"]

    first = found["first", "query_row_block_stream"]
    first_share = first[OURS]["seconds"] / first[PEER]["seconds"]
    first_of_whole = first[OURS]["seconds"] / found["whole", "query"][OURS]["seconds"]
    memory = max(ways[OURS]["memory"] for (kind, _), ways in found.items() if kind == "stream")
    delay = max(ways[OURS]["delay"] for ways in found.values())
    return [
        verdict("to pandas", "≥ 3 × connect", f"{faster('whole', 'query_df'):.2f} ×", faster("whole", "query_df") >= 3),
        verdict("to Arrow", "≥ 3 × connect", f"{faster('whole', 'query_arrow'):.2f} ×", faster("whole", "query_arrow") >= 3),
        verdict("to Python rows", "≥ 1.5 × connect", f"{faster('whole', 'query'):.2f} ×", faster("whole", "query") >= 1.5),
        verdict("first block of rows, beside connect's", "≤ 0.1 ×", f"{first_share:.2f} ×", first_share <= 0.1),
        verdict("first block of rows, of the whole", "≤ 0.1 ×", f"{first_of_whole:.2f} ×", first_of_whole <= 0.1),
        verdict("memory while 1 GB streams", "< 64 MB", f"{memory / 1e6:.1f} MB", memory < 64e6),
        verdict("longest delay of another task", "< 5 ms", f"{delay * 1000:.1f} ms", delay < 0.005),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    server = Server.from_environment()
    print(report(measure(options.rounds, options.seed), server_alone(server, options.rounds)))


if __name__ == "__main__":
    main()
