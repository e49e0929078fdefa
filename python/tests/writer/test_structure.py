"""Tables that change while a writer is open."""

from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pytest
import windrow
from harness.endpoint import Endpoint

COLUMNS = ["n", "text"]
MOMENT = datetime(2024, 3, 4, 5, 6, 7, 891234, timezone.utc)


def test_a_wider_type_is_converted_to(client: windrow.Client, direct: Endpoint) -> None:
    direct.sql("CREATE TABLE t (n UInt8, text String) ENGINE = MergeTree ORDER BY tuple()")
    with client.writer("t", COLUMNS, flush_interval=0.01) as writer:
        writer.write_row((1, "before"), wait=True)
        direct.sql("ALTER TABLE t MODIFY COLUMN n Int64, MODIFY COLUMN text LowCardinality(Nullable(String))")
        writer.write_row((2, "after"), wait=True)
    assert direct.sql("SELECT n, text FROM t ORDER BY n").splitlines() == ["1\tbefore", "2\tafter"]


@pytest.mark.parametrize(
    ("was", "now", "value"),
    [
        ("Int32", "Float64", 0.5),
        ("Bool", "Float32", 0.25),
        ("Decimal(18, 3)", "Decimal(18, 6)", Decimal("3.141592")),
        ("DateTime('UTC')", "DateTime64(3, 'UTC')", MOMENT),
        ("DateTime64(6, 'UTC')", "DateTime64(3, 'UTC')", MOMENT),
        ("Date", "DateTime", MOMENT),
        ("Float32", "Float64", 0.1),
        ("Array(Int8)", "Array(Float32)", [0.5]),
        ("UUID", "Nullable(UUID)", None),
        ("Enum8('a' = 1, 'b' = 2)", "Enum8('b' = 1, 'a' = 2)", "a"),
    ],
)
def test_what_the_old_type_has_cut_is_an_error(
    client: windrow.Client, direct: Endpoint, was: str, now: str, value: Any
) -> None:
    """The row was encoded for the type that the column had: what is left of it is not what the program gave."""
    direct.sql(f"CREATE TABLE t (v {was}) ENGINE = MergeTree ORDER BY tuple()")
    with client.writer("t", flush_interval=0.01) as writer:
        direct.sql(f"CREATE OR REPLACE TABLE t (v {now}) ENGINE = MergeTree ORDER BY tuple()")
        writer.write_row((value,))
        writer.flush()
        error = writer.take_error()
    assert error is not None and error.reason == "refused"
    assert direct.sql("SELECT count() FROM t").strip() == "0"


def test_what_no_longer_fits_is_an_error_and_the_rest_is_stored(client: windrow.Client, direct: Endpoint) -> None:
    direct.sql("CREATE TABLE t (n Int64, text String) ENGINE = MergeTree ORDER BY tuple()")
    with client.writer("t", COLUMNS, flush_interval=60) as writer:
        writer.write_rows([(1, "fits"), (300, "does not"), (2, "fits")])
        direct.sql("ALTER TABLE t MODIFY COLUMN n UInt8")
        writer.flush()
        error = writer.take_error()
    assert direct.sql("SELECT n FROM t ORDER BY n").split() == ["1", "2"]
    assert error is not None and error.rows == [(300, "does not")]


def test_a_column_that_is_gone_is_an_error(client: windrow.Client, direct: Endpoint) -> None:
    direct.sql("CREATE TABLE t (n Int64, text String) ENGINE = MergeTree ORDER BY tuple()")
    with client.writer("t", COLUMNS, flush_interval=60) as writer:
        writer.write_row((1, "x"))
        direct.sql("ALTER TABLE t DROP COLUMN text")
        writer.flush()
        error = writer.take_error()
    assert error is not None and (error.reason, error.rows) == ("refused", [(1, "x")])


def test_a_new_column_takes_its_default(client: windrow.Client, direct: Endpoint) -> None:
    direct.sql("CREATE TABLE t (n Int64, text String) ENGINE = MergeTree ORDER BY tuple()")
    with client.writer("t", COLUMNS, flush_interval=60) as writer:
        writer.write_row((1, "x"))
        direct.sql("ALTER TABLE t ADD COLUMN more Int8 DEFAULT 5")
        writer.flush()
    assert direct.sql("SELECT * FROM t").strip() == "1\tx\t5"


@pytest.mark.parametrize("table", ["t", "`t`", "DATABASE.t", '"t"'])
def test_names_of_tables(client: windrow.Client, direct: Endpoint, where: dict[str, Any], table: str) -> None:
    direct.sql("CREATE TABLE t (n Int64, text String) ENGINE = Memory")
    with client.writer(table.replace("DATABASE", where["database"]), "n, text") as writer:
        writer.write_row((1, "x"))
    assert direct.sql("SELECT count() FROM t").strip() == "1"
