"""One-row inserts into PostgreSQL: straight, by PostgreSQL's own pgbench, and through the gateway, with as many connections.

Both write the same six columns, and both end with every acknowledged row in the table.
"""

import re
import subprocess
import tempfile
from argparse import Namespace
from pathlib import Path

from harness.adbc import AdbcGateway
from harness.postgres import Postgres, programs

from bench.base.check import COLUMNS
from bench.base.document import prose
from bench.base.figures import Goals, Rows, columns, count, of
from bench.base.part import Option, part
from bench.base.processes import TICKS_PER_SECOND, descendants, usage
from bench.base.scenario import Scenario, flush, generate, head, tell
from bench.base.stack import Stack

IN_POSTGRES = {"String": "text", "LowCardinality(String)": "text"}
STRAIGHT = "straight, connections that stay open"
ANEW = "straight, a connection for each insert"
MODES = {"stored": "through Windrow, ack stored", "disk": "through Windrow, ack disk"}
# Ticks of the process's own CPU time, and of those of its children that have ended, in /proc/PID/stat.
OWN_AND_ENDED = slice(11, 15)
TPS = re.compile(r"tps = ([0-9.]+)")


def ddl(table: str) -> str:
    named = ", ".join(f"{name} {IN_POSTGRES.get(kind, 'bigint')} NOT NULL" for name, kind, _ in COLUMNS)
    return f"CREATE TABLE {table} ({named})"


def cpu_seconds(postgres: Postgres) -> float:
    """Of all its processes, those included whose connections are gone."""
    of_postmaster = Path(f"/proc/{postgres.child.pid}/stat").read_text().rpartition(")")[2].split()
    ticks = sum(int(ticks) for ticks in of_postmaster[OWN_AND_ENDED])
    return ticks / TICKS_PER_SECOND + sum(usage(pid).cpu_seconds for pid in descendants(postgres.child.pid))


def straight(postgres: Postgres, folder: Path, scenario: Scenario, way: str) -> dict[str, object]:
    values = [f"'{value}'" if isinstance(value, str) and IN_POSTGRES.get(kind) else "1" for _, kind, value in COLUMNS]
    script = folder / "insert.sql"
    script.write_text(f"INSERT INTO straight VALUES ({', '.join(values)})\n")
    command = [
        str(programs() / "pgbench"), "-n", "-M", "prepared", "-f", str(script), "-c", str(scenario.connections), "-j", "2",
        "-T", str(max(1, round(scenario.seconds))), *(["-C"] if way == ANEW else []), postgres.url,
    ]  # fmt: skip
    before = cpu_seconds(postgres)
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    inserts = counted_rows(postgres, "straight")
    return row(way, scenario, float(TPS.search(said).group(1)), (cpu_seconds(postgres) - before) / inserts)


def counted_rows(postgres: Postgres, table: str) -> int:
    """And takes them away."""
    found = postgres.sql(f"SELECT count(*) FROM {table}")[0][0]
    postgres.sql(f"TRUNCATE {table}")
    return found


def row(way: str, scenario: Scenario, per_second: float, cpu: float) -> dict[str, object]:
    return {"way": way, "connections": scenario.connections, "per_second": per_second, "postgres_us": cpu * 1e6, "refused": 0}


def through(postgres: Postgres, gateway: AdbcGateway, scenario: Scenario) -> dict[str, object]:
    before = cpu_seconds(postgres)
    load = generate(f"{gateway.http.host}:{gateway.http.port}", [head(gateway.http, scenario.query("through"))], scenario, {})
    flush(gateway.http)
    cpu = cpu_seconds(postgres) - before
    acknowledged, stored = sum(ids.acknowledged for ids in load["ids"]), counted_rows(postgres, "through")
    if load["first_error"] or stored != acknowledged:
        raise SystemExit(f"{acknowledged} rows were acknowledged, {stored} are stored; first error: {load['first_error']}")
    return row(MODES[scenario.mode], scenario, load["in_window"] / load["window_seconds"], cpu / acknowledged)


@part(
    "adbc", "Small inserts into PostgreSQL", quick={"seconds": 1.0, "rounds": 1},
    seconds=Option(5.0), connections=Option(200), rounds=Option(3),
)  # fmt: skip
def adbc(stack: Stack, options: Namespace) -> str:
    """One-row inserts into PostgreSQL, straight and through the gateway."""
    rows = Rows()
    with tempfile.TemporaryDirectory(prefix="windrow-bench-") as name:
        folder = Path(name)
        postgres = Postgres(folder / "postgres", f"max_connections = {options.connections + 50}")
        gateway = AdbcGateway(folder / "gateway", postgres.url)
        for table in ("straight", "through"):
            postgres.sql(ddl(table))
        for number in range(options.rounds):
            scenarios = [Scenario(mode, options.connections, options.seconds) for mode in MODES]
            found = [straight(postgres, folder, scenarios[0], way) for way in (STRAIGHT, ANEW)]
            for measured in [*found, *(through(postgres, gateway, scenario) for scenario in scenarios)]:
                rows.append(measured)
                tell(f"round {number + 1}", measured)
        gateway.stop()
        postgres.stop()
    by_way = {way: rows.where(way=way) for way in (STRAIGHT, ANEW, *MODES.values())}
    shown = columns(list(by_way.values()), [
        ("way", of("way")), ("connections", of("connections")),
        ("inserts/s", lambda group: count(group.median("per_second") or 0)),
        ("× straight", lambda group: group.ratio(by_way[STRAIGHT], "per_second")), ("PostgreSQL's CPU, us per insert", of("postgres_us")),
    ])  # fmt: skip
    goals = Goals()
    stored = by_way[MODES["stored"]]
    goals.at_least("inserts/s, stored, to connections that stay open", 10, stored.ratio(by_way[STRAIGHT], "per_second"))
    goals.at_least("inserts/s, stored, to a connection for each insert", 10, stored.ratio(by_way[ANEW], "per_second"))
    goals.at_least("PostgreSQL's CPU per insert, straight to stored", 10, by_way[STRAIGHT].ratio(stored, "postgres_us"))
    return f"{prose('adbc')}{shown}\n{goals}"
