"""Tables that change while a writer is open."""

from __future__ import annotations

from typing import Any

import pytest
import windrow
from harness.endpoint import Endpoint

COLUMNS = ["n", "text"]


def test_a_wider_type_is_converted_to(client: windrow.Client, direct: Endpoint) -> None:
    direct.sql("CREATE TABLE t (n UInt8, text String) ENGINE = MergeTree ORDER BY tuple()")
    with client.writer("t", COLUMNS, flush_interval=0.01) as writer:
        writer.write_row((1, "before"), wait=True)
        direct.sql("ALTER TABLE t MODIFY COLUMN n Int64, MODIFY COLUMN text LowCardinality(Nullable(String))")
        writer.write_row((2, "after"), wait=True)
    assert direct.sql("SELECT n, text FROM t ORDER BY n").splitlines() == ["1\tbefore", "2\tafter"]


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
