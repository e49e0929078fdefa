"""Every type that clickhouse-connect reads and writes: what it read from one table it inserts into another."""

from __future__ import annotations

import clickhouse_connect
from kinds import TYPES
from report import Report, equal
from settings import CONNECTION

report = Report()
client = clickhouse_connect.get_client(**CONNECTION, settings={"allow_suspicious_low_cardinality_types": 1})


def copied(name: str, kind: str, values: list[str]) -> object:
    rows = " UNION ALL ".join(f"SELECT toUInt64({number}) AS id, CAST({value} AS {kind}) AS v" for number, value in enumerate(values))
    client.command(f"CREATE TABLE from_{name} (id UInt64, v {kind}) ENGINE = MergeTree ORDER BY id AS {rows}")
    client.command(f"CREATE TABLE {name} (id UInt64, v {kind}) ENGINE = MergeTree ORDER BY id")
    read = client.query(f"SELECT * FROM from_{name} ORDER BY id").result_rows
    client.insert(report.sends(name), read, column_names=["id", "v"])
    text = "SELECT toString(groupArray((id, toString(v)))) FROM (SELECT * FROM {} ORDER BY id)"
    return equal(client.command(text.format(name)), client.command(text.format(f"from_{name}")))


for name, (kind, values) in TYPES.items():
    report.run(f"insert {kind}", lambda: copied(name, kind, values))
client.close()
report.print()
