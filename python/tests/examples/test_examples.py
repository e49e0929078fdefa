"""The examples do what they say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
from examples.running import EXAMPLES, dsn_of, environment, run, start

from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.ports import free_port
from harness.process import Child
from harness.redis import Redis


class Service:
    """The web service under uvicorn."""

    def __init__(self, where: dict[str, Any], folder: Path) -> None:
        self.port = free_port()
        command = [sys.executable, "-m", "uvicorn", "--app-dir", str(EXAMPLES), "--port", str(self.port), "python_fastapi:app"]
        settings = environment(CLICKHOUSE_DSN=dsn_of(where), CLICKS_FOLDER=str(folder / "buffer"))
        self.child = Child(command, folder / "service.log", settings)
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=30)
        eventually(lambda: self.healthy() or not self.child.running(), "the service answers", 120)
        assert self.child.running(), self.child.log()

    def healthy(self) -> bool:
        try:
            return self.http.get("/health").json() == {"clickhouse": True}
        except httpx.TransportError:
            return False


def test_the_service_takes_clicks_and_counts_them(where: dict[str, Any], direct: Endpoint, tmp_path: Path) -> None:
    service = Service(where, tmp_path)
    for number in range(30):
        answer = service.http.post("/clicks", json={"visitor": number % 10, "page": f"/{number % 3}"})
        assert answer.status_code == 202, answer.text
    refused = service.http.post("/clicks", json={"visitor": -1, "page": "/"})
    assert refused.status_code == 422 and "visitor" in refused.text
    eventually(lambda: direct.sql("SELECT count() FROM clicks") == "30", "the clicks are stored")
    pages = service.http.get("/pages", params={"limit": 2}).json()
    assert pages == [{"page": "/0", "clicks": 10, "visitors": 10}, {"page": "/1", "clicks": 10, "visitors": 10}]
    assert service.child.stop() in (0, -15), service.child.log()
    assert "Traceback" not in service.child.log()


def test_a_killed_service_loses_no_click(where: dict[str, Any], direct: Endpoint, tmp_path: Path) -> None:
    service = Service(where, tmp_path)
    for number in range(20):
        assert service.http.post("/clicks", json={"visitor": number, "page": "/"}).status_code == 202
    service.child.process.kill()
    service.child.wait()
    again = Service(where, tmp_path)
    eventually(lambda: direct.sql("SELECT count(), uniqExact(visitor) FROM clicks") == "20\t20", "the clicks are stored once")
    again.child.stop()


def test_the_log_shipper_follows_a_file(where: dict[str, Any], direct: Endpoint, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text("".join(f"line {number} ü\n" for number in range(2500)))
    shipper = start("python_log_shipper.py", str(log), dsn_of(where), stderr=subprocess.PIPE)
    count = "SELECT count(), uniqExact(position), countIf(line LIKE 'line % ü') FROM log_lines FINAL"
    eventually(lambda: table_has(direct, "log_lines", count, "2500\t2500\t2500"), "the lines are stored")
    shipper.kill()
    shipper.wait()
    with log.open("a") as file:
        file.write("line 2500 ü\nline 2501 ü\nhalf a line")
    run("python_log_shipper.py", str(log), dsn_of(where), "--until-end")
    assert direct.sql(count) == "2502\t2502\t2502"


def table_has(direct: Endpoint, table: str, query: str, answer: str) -> bool:
    return direct.sql(f"EXISTS TABLE {table}") == "1" and direct.sql(query) == answer


def test_the_loader_loads_a_file(where: dict[str, Any], direct: Endpoint, tmp_path: Path) -> None:
    measured = tmp_path / "measurements.csv"
    lines = [f"S{number % 2},2024-07-01 12:{number % 60:02}:00,{'' if number % 10 == 0 else number % 7}" for number in range(60_000)]
    measured.write_text("\n".join(["station,at,celsius", *lines, ""]))
    said = run("python_pandas_loader.py", str(measured), dsn_of(where)).split("\n")
    assert said[0].split() == ["station", "readings", "missing", "mean", "latest"]
    assert said[1].split()[:3] == ["S0", "30000", "6000"] and said[2].split()[:3] == ["S1", "30000", "0"]
    assert direct.sql("SELECT count(), sum(celsius) FROM measurements") == direct.sql(
        "SELECT 60000, sumIf(toFloat32(number % 7), number % 10 != 0) FROM numbers(60000)"
    )


def test_what_a_killed_worker_leaves_behind_is_stored(where: dict[str, Any], direct: Endpoint, redis: Redis) -> None:
    arguments = ("python_redis_worker.py", f"{redis.address}/0", dsn_of(where))
    workers = [start(*arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)]
    for number in range(2, 202):
        workers[number % 2].stdin.write(f"{number}\n")
    for worker in workers:
        worker.stdin.flush()
    taken = {int(workers[number % 2].stdout.readline()) for number in range(2, 202)}
    assert taken == set(range(2, 202))
    workers[0].kill()
    workers[0].wait()
    # Its lease has to end first.
    stored = "SELECT count(), uniqExact(number), sum(arrayProduct(factors)) FROM factors"
    eventually(lambda: direct.sql(stored) == f"200\t200\t{sum(taken)}", "the other worker stores every result once", 90)
    workers[1].stdin.close()
    assert workers[1].wait(60) == 0
    assert json.loads(direct.sql("SELECT factors FROM factors WHERE number = 60")) == [2, 2, 3, 5]
