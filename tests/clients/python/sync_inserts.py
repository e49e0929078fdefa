"""Every way to insert that clickhouse-connect's blocking client offers, each into a table of its own."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import clickhouse_connect
import lz4.frame
import pandas
import pyarrow
from clickhouse_connect.driver.exceptions import DatabaseError
from clickhouse_connect.driver.summary import QuerySummary
from report import Report, equal
from settings import CONNECTION
from small_table import NAMES, RAW_FORMATS, ROWS, arrow_frame, arrow_table, columns_of, create, frame, native_rows

report = Report()
client = clickhouse_connect.get_client(**CONNECTION)
WAITING = {"async_insert": 1, "wait_for_async_insert": 1}
NOT_WAITING = {"async_insert": 1, "wait_for_async_insert": 0}
PINNED_OFF = {"async_insert": 0}
MANY = 250_000


def stored(table: str) -> object:
    return equal(native_rows(client.query(f"SELECT * FROM {table} ORDER BY id").result_rows), ROWS)


def stored_eventually(table: str) -> object:
    while client.command(f"SELECT count() FROM {table}") < len(ROWS):
        pass
    return stored(table)


def case(table: str, insert: Callable[[str], object], check: Callable[[str], object] = stored) -> None:
    """One insert into a new table, and what landed there."""

    def body() -> object:
        client.command(create(report.sends(table)))
        summary = insert(table)
        if check is stored:
            equal(summary.written_rows, len(ROWS))
        return check(table)

    report.run(f"insert {table}", body)


def rows_with(**options: object) -> Callable[[str], QuerySummary]:
    return lambda table: client.insert(table, ROWS, column_names=NAMES, **options)


def packed(compress: object) -> Callable[[str], QuerySummary]:
    def insert(table: str) -> QuerySummary:
        own = clickhouse_connect.get_client(**CONNECTION, compress=compress)
        try:
            return own.insert(table, ROWS, column_names=NAMES)
        finally:
            own.close()

    return insert


def by_threads(table: str) -> object:
    """A thread for each row, all with one client; without a session they don't serialise themselves."""
    shared = clickhouse_connect.get_client(**CONNECTION, autogenerate_session_id=False)
    report.sends(table, len(ROWS) - 1)
    with ThreadPoolExecutor(len(ROWS)) as threads:
        summaries = threads.map(lambda row: shared.insert(table, [row], column_names=NAMES, settings=WAITING), ROWS)
        written = [summary.written_rows for summary in summaries]
    shared.close()
    return equal(written, [1] * len(ROWS))


def by_context(table: str) -> QuerySummary:
    context = client.create_insert_context(table, NAMES, data=ROWS)
    return client.insert(context=context)


def by_columns(table: str) -> QuerySummary:
    return client.insert(table, list(columns_of(ROWS).values()), column_names=NAMES, column_oriented=True)


def by_statement(table: str) -> QuerySummary:
    values = ", ".join(f"({row[0]}, 'x', NULL, 'k', 1.5, '2024-02-29 12:34:56.789', [])" for row in ROWS)
    return client.command(f"INSERT INTO {table} VALUES {values}")


def more_than_is_gathered(table: str) -> QuerySummary:
    """Beyond async_insert_max_data_size: an insert of this size gains nothing by company."""
    return client.insert_df(table, pandas.DataFrame({"id": range(MANY), "s": [f"{'x' * 50} {n}" for n in range(MANY)]}))


def all_of_many(table: str) -> object:
    got = client.query(f"SELECT count(), uniqExact(id), sum(endsWith(s, toString(id))) FROM {table}").first_row
    return equal(got, (MANY, MANY, MANY))


def raw(fmt: str, pack: Callable[[bytes], bytes] = bytes, compression: str | None = None) -> Callable[[str], QuerySummary]:
    def insert(table: str) -> QuerySummary:
        payload = client.raw_query("SELECT * FROM rows_plain ORDER BY id", fmt=fmt)
        return client.raw_insert(table, insert_block=pack(payload), fmt=fmt, compression=compression)

    return insert


def raw_stream(table: str) -> QuerySummary:
    payload = client.raw_query("SELECT * FROM rows_plain ORDER BY id", fmt="JSONEachRow")
    pieces = (payload[start : start + 100] for start in range(0, len(payload), 100))
    return client.raw_insert(table, insert_block=pieces, fmt="JSONEachRow")


def read_frames() -> object:
    query = "SELECT * FROM rows_plain ORDER BY id"
    equal(list(client.query_df(query)["s"]), [row[1] for row in ROWS])
    equal(client.query_arrow(query, use_strings=True).column("tags").to_pylist(), [row[6] for row in ROWS])
    equal(list(client.query_df_arrow(query, use_strings=True)["id"]), [row[0] for row in ROWS])
    # Arrow's reader is at its end before the answer is: with one session for all, ClickHouse might find it locked by the query before.
    free = clickhouse_connect.get_client(**CONNECTION, autogenerate_session_id=False)
    with free.query_arrow_stream(query, use_strings=True) as stream:
        equal(pyarrow.Table.from_batches(list(stream)).num_rows, len(ROWS))
    with free.query_df_stream(query) as stream:
        return equal(sum(len(piece) for piece in stream), len(ROWS))


def refused(table: str, insert: Callable[[], object], code: int) -> object:
    report.sends(table)
    try:
        insert()
    except DatabaseError as error:
        assert f"code {code}" in str(error) or f"Code: {code}." in str(error), str(error)
        return equal(client.command(f"SELECT count() FROM {table}"), 0)
    raise AssertionError("no error was raised")


def inserts() -> None:
    case("rows_plain", rows_with())
    case("rows_waiting", rows_with(settings=WAITING))
    case("rows_not_waiting", rows_with(settings=NOT_WAITING), stored_eventually)
    case("rows_pinned_off", rows_with(settings=PINNED_OFF))
    case("rows_token", rows_with(settings={"insert_deduplication_token": "once"}))
    case("rows_by_threads", by_threads, stored_eventually)
    case("rows_context", by_context)
    case("rows_by_column", by_columns)
    for compress in ("lz4", "zstd", "gzip", "br", False):
        case(f"rows_{compress or 'uncompressed'}".lower(), packed(compress))
    case("frame", lambda table: client.insert_df(table, frame()))
    case("frame_waiting", lambda table: client.insert_df(table, frame(), settings=WAITING))
    case("frame_large", more_than_is_gathered, all_of_many)
    case("frame_arrow", lambda table: client.insert_df_arrow(table, arrow_frame()))
    case("arrow", lambda table: client.insert_arrow(table, arrow_table()))
    case("arrow_waiting", lambda table: client.insert_arrow(table, arrow_table(), settings=WAITING))
    case("statement", by_statement, lambda table: equal(client.command(f"SELECT count() FROM {table}"), len(ROWS)))
    for fmt in RAW_FORMATS:
        case(f"raw_{fmt.lower()}", raw(fmt))
    case("raw_stream", raw_stream)
    case("raw_gzip", raw("JSONEachRow", gzip.compress, "gzip"))
    case("raw_lz4", raw("Native", lz4.frame.compress, "lz4"))


def errors() -> None:
    client.command(create("bad_json"))
    client.command(create("bad_csv"))
    client.command(f"{create('checked')} SETTINGS index_granularity = 8192")
    client.command("ALTER TABLE checked ADD CONSTRAINT small CHECK id < 5")
    bad_json = lambda: client.raw_insert("bad_json", insert_block=b'{"id": "x"}\n', fmt="JSONEachRow")
    bad_csv = lambda: client.raw_insert("bad_csv", insert_block=b"x,y\n", fmt="CSV")
    report.run("bad JSON is 27", lambda: refused("bad_json", bad_json, 27))
    report.run("bad CSV is 27", lambda: refused("bad_csv", bad_csv, 27))
    report.run("constraint is 469", lambda: refused("checked", lambda: client.insert("checked", ROWS, NAMES), 469))


inserts()
errors()
report.run("read as frames and Arrow", read_frames)
client.close()
report.print()
