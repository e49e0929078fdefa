"""Which moments the database API stores: those of clickhouse-connect, whatever zones column, server and machine are in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.engine import Engine

import windrow

PACKAGE = Path(windrow.__file__).parent.parent
# In a process of its own, for the machine's zone.
PROGRAM = """
import importlib, itertools, json, sys
from datetime import date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

package, where = sys.argv[1], json.loads(sys.argv[2])
dbapi = importlib.import_module(package + ".dbapi")
VALUES = {
    "naive": datetime(2024, 7, 1, 12, 30, 15),
    "UTC": datetime(2024, 7, 1, 12, 30, 15, tzinfo=timezone.utc),
    "an offset": datetime(2024, 7, 1, 12, 30, 15, tzinfo=timezone(timedelta(hours=5))),
    "a zone": datetime(2024, 1, 1, 12, 30, 15, tzinfo=ZoneInfo("America/New_York")),
    "twice": datetime(2024, 11, 3, 1, 30),
    "never": datetime(2024, 3, 10, 2, 30),
    "a day": date(2024, 7, 1),
}
COLUMNS = ["DateTime", "DateTime('UTC')", "DateTime('Asia/Tokyo')", "DateTime64(3, 'America/New_York')", "Nullable(DateTime64(6))"]
COLUMNS += ["Date", "Array(DateTime('Asia/Tokyo'))", "Tuple(DateTime('Asia/Tokyo'), String)"]

stored = {}
connection = dbapi.connect(**where)
cursor = connection.cursor()
for kind in COLUMNS:
    cursor.execute(f"CREATE OR REPLACE TABLE t (way String, x {kind}) ORDER BY way")
    for told, value in VALUES.items():
        if kind.startswith("Array"):
            value = [value]
        if kind.startswith("Tuple"):
            value = (value, "x")
        ways = {
            "execute": lambda way: cursor.execute("INSERT INTO t VALUES (%s, %s)", [way, value]),
            "execute by name": lambda way: cursor.execute("INSERT INTO t (x, way) VALUES (%(x)s, %(y)s)", {"x": value, "y": way}),
            "many": lambda way: cursor.executemany("INSERT INTO t VALUES (%s, %s)", [(way, value)] * 2),
            "many by name": lambda way: cursor.executemany("INSERT INTO t (x, way) VALUES (%(a)s, %(b)s)", [{"a": value, "b": way}]),
            "bare": lambda way: cursor.executemany("INSERT INTO t (way, x) VALUES", [(way, value)]),
        }
        for way, insert in ways.items():
            case = f"{kind}, {told}, {way}"
            try:
                insert(case)
            except Exception as error:
                stored[case] = "refused"
    cursor.execute("SELECT way, toString(x), count() FROM t GROUP BY ALL")
    stored.update({case: rest for case, *rest in cursor.fetchall()})
print(json.dumps(stored))
"""


@pytest.fixture(scope="module", params=["UTC", "Asia/Kolkata"])
def zoned(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = Engine(tmp_path_factory.mktemp("zoned"), environment={"TZ": request.param})
    yield engine
    engine.stop()


def stored_by(package: str, server: Engine, zone: str) -> dict[str, object]:
    direct = server.direct
    where = {"host": direct.host, "port": direct.port, "username": direct.user, "password": direct.password}
    environment = {**os.environ, "TZ": zone, "PYTHONPATH": str(PACKAGE)}
    command = [sys.executable, "-c", PROGRAM, package, json.dumps(where)]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr
    found: dict[str, object] = json.loads(ran.stdout)
    return found


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_moments_are_those_of_clickhouse_connect(zoned: Engine, zone: str) -> None:
    theirs, ours = (stored_by(package, zoned, zone) for package in ("clickhouse_connect", "windrow"))
    different = {case: (told, ours.get(case)) for case, told in theirs.items() if ours.get(case) != told}
    assert different == {} and len(theirs) > 200
