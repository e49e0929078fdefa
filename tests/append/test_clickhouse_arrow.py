"""Batches as Arrow IPC streams: what lands is what ClickHouse itself reads, or an error where values would change."""

from __future__ import annotations

import datetime
import decimal
import io

import pyarrow as pa
import pytest

from harness.endpoint import Endpoint
from harness.ordered import Append

COLUMNS = (
    "i Int16, u UInt64, f Float32, b Bool, s String, l LowCardinality(String), n Nullable(Int32), d Date32, "
    "t DateTime64(6, 'UTC'), m Decimal(18, 4), a Array(Nullable(String)), x UUID, v String, e Enum8('a' = 1, 'b' = 2)"
)

# All batches of a stream have the same dictionary.
KINDS = pa.array(["kind 0", "kind 1", "kind 2"])


def stream(*batches: pa.RecordBatch) -> bytes:
    out = io.BytesIO()
    with pa.ipc.new_stream(out, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return out.getvalue()


def batch(start: int) -> pa.RecordBatch:
    numbers = range(start, start + 20)
    start_of_time = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
    moments = [start_of_time + datetime.timedelta(hours=n) for n in numbers]
    return pa.record_batch(
        {
            "u": pa.array(numbers, pa.uint32()),
            "i": pa.array([n - 30 for n in numbers], pa.int64()),
            "f": pa.array([n / 4 for n in numbers], pa.float32()),
            "b": pa.array([n % 2 == 0 for n in numbers]),
            "s": pa.array([f"row {n} é" for n in numbers], pa.large_string()),
            "l": pa.DictionaryArray.from_arrays(pa.array([n % 3 for n in numbers], pa.int32()), KINDS),
            "n": pa.array([n if n % 3 else None for n in numbers], pa.int32()),
            "d": pa.array([moment.date() for moment in moments], pa.date32()),
            "t": pa.array(moments, pa.timestamp("us", "UTC")),
            "m": pa.array([decimal.Decimal(n) / 8 for n in numbers], pa.decimal128(18, 4)),
            "a": pa.array([[f"{n}", None][: n % 3] for n in numbers]),
            "x": pa.array([n.to_bytes(16, "big") for n in numbers], pa.binary(16)),
            "v": pa.array([f"a text that is longer than twelve bytes {n}" for n in numbers], pa.string_view()),
            "e": pa.array(["ab"[n % 2] for n in numbers]),
        }
    )


def test_rows_are_those_that_clickhouse_reads(tested: Endpoint, direct: Endpoint) -> None:
    for table in ("t", "expected"):
        direct.sql(f"CREATE TABLE {table} ({COLUMNS}) ENGINE = MergeTree ORDER BY tuple()")
    payloads = [stream(batch(0), batch(20)), stream(batch(40)), stream(batch(60), batch(80), batch(100))]
    for payload in payloads:
        assert direct.insert("INSERT INTO expected FORMAT ArrowStream", payload).status == 200
    append = Append(tested, "t")
    for number in (2, 0, 1):
        reply = append.put(number, payloads[number], format="ArrowStream")
        assert reply.status == 200, reply.text
    assert append.commit(3).status == 200
    query = "SELECT * FROM {} FORMAT TSVWithNamesAndTypes"
    rows = [direct.sql(query.format(table), max_threads=1) for table in ("t", "expected")]
    assert rows[0] == rows[1]
    assert rows[0].count("\n") == 121


@pytest.mark.parametrize(
    ("column_type", "values"),
    [
        ("UInt8", pa.array([1, 2, 256])),
        ("UInt64", pa.array([-1])),
        ("Int64", pa.array([1, None])),
        ("Int32", pa.array([1.5])),
        ("DateTime", pa.array([1_700_000_000_500], pa.timestamp("ms"))),
        ("DateTime64(3)", pa.array([1_700_000_000_500_001], pa.timestamp("us"))),
        ("Float32", pa.array([0.1])),
        ("Float64", pa.array([2**53 + 1])),
        ("Date", pa.array([datetime.date(1950, 1, 1)])),
        ("Decimal(9, 1)", pa.array([decimal.Decimal("1.25")])),
        ("Array(UInt8)", pa.array([[1, 300]])),
        ("UUID", pa.array(["no uuid"])),
    ],
)
def test_what_would_be_changed_names_its_column(
    tested: Endpoint, direct: Endpoint, column_type: str, values: pa.Array
) -> None:
    direct.sql(f"CREATE TABLE t (good Int64, bad {column_type}) ENGINE = MergeTree ORDER BY tuple()")
    append = Append(tested, "t")
    payload = stream(pa.record_batch({"good": pa.array(range(len(values))), "bad": values}))
    reply = append.put(0, payload, format="ArrowStream")
    reply = reply if reply.status != 200 else append.commit(1)
    assert reply.status == 400, reply.text
    assert "olumn bad" in reply.text and "good" not in reply.text, reply.text
    assert reply.headers["x-windrow-batch"] == "0"


def test_batches_have_the_columns_of_the_first(tested: Endpoint, direct: Endpoint) -> None:
    direct.sql("CREATE TABLE t (a Int64, b Int64) ENGINE = MergeTree ORDER BY tuple()")
    append = Append(tested, "t")
    assert append.put(0, stream(pa.record_batch({"a": pa.array([1])})), format="ArrowStream").status == 200
    reply = append.put(1, stream(pa.record_batch({"b": pa.array([1])})), format="ArrowStream")
    reply = reply if reply.status != 200 else append.commit(2)
    assert reply.status == 400 and reply.code == 117, reply.text


def test_every_cut_of_a_stream_is_refused(tested: Endpoint, direct: Endpoint) -> None:
    direct.sql("CREATE TABLE t (a Int64) ENGINE = MergeTree ORDER BY tuple()")
    payload = stream(pa.record_batch({"a": pa.array([1, 2, 3])}))
    for end in range(0, len(payload) - 8, 16):
        append = Append(tested, "t")
        reply = append.put(0, payload[:end], format="ArrowStream")
        assert reply.status == 400, (end, reply.status, reply.text)
        append.abort()
    assert direct.sql("SELECT count() FROM t") == "0"
