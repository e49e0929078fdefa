"""Drives a ClickHouse over the native protocol with clickhouse-driver: everything but the ways to insert."""

from __future__ import annotations

import datetime
import logging
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy
import pyarrow
from clickhouse_driver import Client, dbapi
from clickhouse_driver.dbapi.errors import OperationalError
from driver_connection import connect, raises, value
from report import Report, equal
from settings import DATABASE, HOST, PASSWORD, PORT, USER
from values import COLUMNS, create, row

report = Report()
client = connect()
AT_ONCE = 20


def all_types() -> object:
    """The values go there and come back as they were."""
    client.execute(create("kinds"))
    equal(client.execute("INSERT INTO kinds VALUES", [row(number) for number in range(3)]), 3)
    got, columns = client.execute("SELECT * FROM kinds ORDER BY id", with_column_types=True)
    equal(dict(columns), COLUMNS)
    # Strings of a fixed length come as texts.
    fixed = list(COLUMNS).index("fixed")
    expected = [tuple(item.decode() if at == fixed else item for at, item in enumerate(row(number))) for number in range(3)]
    return equal([with_zone(line) for line in got], [with_zone(line) for line in expected])


def with_zone(line: tuple[object, ...]) -> list[object]:
    utc = datetime.timezone.utc
    return [item.astimezone(utc) if isinstance(item, datetime.datetime) else item for item in line]


def streamed() -> object:
    rows = client.execute_iter("SELECT number, toString(number) FROM numbers(100000)", settings={"max_block_size": 10_000})
    return equal(sum(number for number, _ in rows), sum(range(100_000)))


def streamed_in_chunks() -> object:
    chunks = client.execute_iter("SELECT number FROM numbers(1000)", chunk_size=300)
    return equal([len(chunk) for chunk in chunks], [300, 300, 300, 100])


def streamed_with_types() -> object:
    names, *rows = client.execute_iter("SELECT number AS n FROM numbers(3)", with_column_types=True)
    equal(names, [("n", "UInt64")])
    return equal(rows, [(0,), (1,), (2,)])


def with_progress() -> object:
    progress = client.execute_with_progress("SELECT sum(number) FROM numbers(10000000)", settings={"max_block_size": 65_536})
    seen = [rows for rows, _ in progress]
    assert seen, "no progress was told"
    return equal(progress.get_result(), [(sum(range(10_000_000)),)])


def statistics() -> object:
    client.execute("SELECT number FROM numbers(1000) LIMIT 5")
    profile, progress = client.last_query.profile_info, client.last_query.progress
    equal((profile.rows, profile.applied_limit), (5, True))
    return equal(progress.rows > 0, True)


def totals() -> object:
    got = client.execute("SELECT number % 2 AS odd, count() FROM numbers(10) GROUP BY odd WITH TOTALS ORDER BY odd")
    return equal(got, [(0, 5), (1, 5), (0, 10)])


def extremes() -> object:
    got = client.execute("SELECT number FROM numbers(1, 3)", settings={"extremes": 1})
    return equal(got, [(1,), (2,), (3,), (1,), (3,)])


def by_columns() -> object:
    return equal(client.execute("SELECT number, 'x' FROM numbers(3)", columnar=True), [(0, 1, 2), ("x", "x", "x")])


def no_rows() -> object:
    got, columns = client.execute("SELECT number AS n FROM numbers(0)", with_column_types=True)
    return equal((got, columns), ([], [("n", "UInt64")]))


def outside_tables() -> object:
    """Two tables that come with the statement."""
    tables = [
        {"name": "one", "structure": [("id", "UInt64"), ("s", "String")], "data": [(1, "a"), (2, "b")]},
        {"name": "other", "structure": [("id", "UInt64")], "data": [{"id": 2}, {"id": 3}]},
    ]
    for own in (client, connect(compression="lz4")):
        equal(own.execute("SELECT s FROM one WHERE id IN (SELECT id FROM other)", external_tables=tables), [("b",)])
        equal(value(own, "SELECT count() FROM one", external_tables=tables), 2)
        equal(value(own, "SELECT 1"), 1)
    large = [{"name": "large", "structure": [("id", "UInt64")], "data": [(number,) for number in range(100_000)]}]
    return equal(value(client, "SELECT sum(id) FROM large", external_tables=large), sum(range(100_000)))


def substituted() -> object:
    text = "it's \\ \n ü"
    got = client.execute("SELECT %(n)s + 1, %(s)s, %(list)s", {"n": 41, "s": text, "list": [1, 2]})
    return equal(got, [(42, text, [1, 2])])


def parameters() -> object:
    text = "it's \\ \n ü"
    query = "SELECT {n:Int32} + 1, {s:String}, {list:Array(Int32)}, {day:Date}, {nothing:Nullable(String)}"
    values = {"n": 41, "s": text, "list": [1, 2], "day": datetime.date(2024, 2, 29), "nothing": None}
    got = client.execute(query, values, settings={"server_side_params": True})
    return equal(got[0][:4], (42, text, [1, 2], datetime.date(2024, 2, 29)))


def settings_apply() -> object:
    return equal(value(client, "SELECT getSetting('max_threads')", settings={"max_threads": 3}), 3)


def session() -> object:
    """SET, USE and temporary tables last as long as their connection, and concern no other."""
    with connect() as own:
        own.execute("SET max_block_size = 4321")
        equal(value(own, "SELECT getSetting('max_block_size')"), 4321)
        own.execute("CREATE TEMPORARY TABLE scratch (n UInt8)")
        equal(own.execute("INSERT INTO scratch VALUES", [(1,), (2,)]), 2)
        own.execute("INSERT INTO scratch VALUES (3)")
        equal(value(own, "SELECT sum(n) FROM scratch"), 6)
        own.execute("USE system")
        equal(value(own, "SELECT currentDatabase()"), "system")
        own.execute("SET ROLE NONE")
        equal(value(own, "SELECT 1"), 1)
    assert value(client, "SELECT getSetting('max_block_size')") != 4321
    raises(60, lambda: client.execute("SELECT * FROM scratch"))
    return equal(value(client, "SELECT currentDatabase()"), DATABASE)


def cancelled() -> object:
    """A query that has begun to answer is cancelled; the connection goes on."""
    with connect(settings={"max_block_size": 10}) as own:
        progress = own.execute_with_progress("SELECT sleepEachRow(0.001), number FROM system.numbers", settings={"interactive_delay": 1000})
        # The first may come before a row was read.
        next(rows for rows, _ in progress if rows)
        own.cancel()
        return equal(value(own, "SELECT 1"), 1)


def cancelled_at_once() -> object:
    with connect() as own:
        own.execute_with_progress("SELECT count() FROM system.numbers")
        own.cancel()
        return equal(value(own, "SELECT 1"), 1)


def query_ids() -> object:
    """The id is the statement's, also for who looks on; a second of the same id is refused."""
    wanted = str(uuid.uuid4())
    equal(value(client, "SELECT query_id()", query_id=wanted), wanted)
    equal(value(client, "SELECT query_id()", query_id=wanted), wanted)
    with connect() as own, connect() as other:
        progress = own.execute_with_progress(
            "SELECT count() FROM system.numbers", settings={"interactive_delay": 1000}, query_id=wanted
        )
        next(progress)
        raises(216, lambda: other.execute("SELECT 1", query_id=wanted))
        equal(value(client, f"SELECT count() FROM system.processes WHERE query_id = '{wanted}'"), 1)
        client.execute(f"KILL QUERY WHERE query_id = '{wanted}' SYNC")
        return raises(394, lambda: list(progress))


def logs() -> object:
    """Those that the server sends with a statement reach the client's log."""
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    log = logging.getLogger("clickhouse_driver.log")
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        client.execute("SELECT 1", settings={"send_logs_level": "debug"})
    finally:
        log.removeHandler(handler)
    assert any("SELECT 1" in line for line in lines), lines
    return len(lines)


def by_dbapi() -> object:
    with dbapi.connect(host=HOST, port=PORT, user=USER, password=PASSWORD, database=DATABASE) as own, own.cursor() as cursor:
        cursor.execute("CREATE TABLE by_dbapi (id UInt64, s String) ENGINE = MergeTree ORDER BY id")
        cursor.executemany("INSERT INTO by_dbapi VALUES", [(1, "a"), (2, "b"), (3, "c")])
        equal(cursor.rowcount, 3)
        cursor.execute("SELECT * FROM by_dbapi WHERE id > %(least)s ORDER BY id", {"least": 1})
        equal([column.name for column in cursor.description], ["id", "s"])
        equal((cursor.fetchone(), cursor.fetchall()), ((2, "b"), [(3, "c")]))
        cursor.set_stream_results(True, 1)
        cursor.execute("SELECT number FROM numbers(5)")
        equal(cursor.fetchmany(2), [(0,), (1,)])
        equal(cursor.fetchall(), [(2,), (3,), (4,)])
        cursor.set_external_table("beside", [("x", "UInt8")], [(1,), (2,)])
        cursor.set_stream_results(False, 0)
        cursor.execute("SELECT sum(x) FROM beside")
        equal(cursor.fetchone(), (3,))
        try:
            cursor.execute("SELECT * FROM nowhere")
        except OperationalError as error:
            return equal(error.args[0].code, 60)
        raise AssertionError("no error was raised")


def compressions() -> object:
    for name in ("lz4", "lz4hc", "zstd", True, False):
        for method in ("LZ4", "ZSTD"):
            with connect(compression=name, settings={"network_compression_method": method}) as own:
                equal(len(own.execute("SELECT number, repeat('x', 100) FROM numbers(100000)")), 100_000)
                equal(own.execute("SELECT 1"), [(1,)])
    return "both ways"


def revisions() -> object:
    """Old revisions leave out fields; each is answered in its own."""
    for revision in (54429, 54441, 54447, 54453, 54455, 54456, 54458, 54459, 54462, 54463, 54464, 54465, 54468):
        with connect(client_revision=revision, settings={"insert_block_size": 2}) as own:
            own.execute("CREATE TABLE IF NOT EXISTS revisions (r UInt32, n UInt64, s LowCardinality(String)) ENGINE = MergeTree ORDER BY r")
            equal(own.execute("INSERT INTO revisions VALUES", [(revision, n, f"s{n}") for n in range(5)]), 5)
            got = own.execute(f"SELECT n, s FROM revisions WHERE r = {revision} ORDER BY n")
            equal(got, [(n, f"s{n}") for n in range(5)])
            equal(own.connection.server_info.used_revision, revision)
    return "13 of them"


def arrays() -> object:
    with connect(settings={"use_numpy": True}) as own:
        ids, texts = own.execute("SELECT number, toString(number) FROM numbers(1000)", columnar=True)
        assert isinstance(ids, numpy.ndarray), type(ids)
        equal(int(ids.sum()), sum(range(1000)))
        equal(list(texts[:2]), ["0", "1"])
        frame = own.query_dataframe("SELECT number AS n, number % 2 = 0 AS even FROM numbers(10)")
        return equal((list(frame.columns), int(frame["n"].sum())), (["n", "even"], 45))


def arrow() -> object:
    with connect(settings={"use_numpy": True}) as own:
        table = own.query_arrow("SELECT number AS n, toString(number) AS s FROM numbers(1000)")
        equal((table.num_rows, table.column("s")[-1].as_py()), (1000, "999"))
        reader = own.query_arrow_stream("SELECT number AS n FROM system.numbers", settings={"max_block_size": 100})
        equal(reader.read_next_batch().num_rows, 100)
        # What is not read to its end is cancelled by the next statement.
        equal(value(own, "SELECT 1"), 1)
        return equal(isinstance(table, pyarrow.Table), True)


def at_once() -> object:
    def one(number: int) -> object:
        with connect() as own:
            return value(own, f"SELECT {number} * 2")

    with ThreadPoolExecutor(AT_ONCE) as threads:
        return equal(list(threads.map(one, range(AT_ONCE))), [2 * number for number in range(AT_ONCE)])


def by_address() -> object:
    own = Client.from_url(f"clickhouse://{USER}:{PASSWORD.replace('&', '%26').replace(' ', '%20')}@{HOST}:{PORT}/{DATABASE}?compression=lz4")
    return equal(value(own, "SELECT currentDatabase()"), DATABASE)


def error_within() -> object:
    """An error behind blocks of an answer, on a connection that goes on."""
    with connect() as own:
        said = raises(395, lambda: own.execute("SELECT throwIf(number = 90000) FROM numbers(100000)", settings={"max_block_size": 1000}))
        equal(value(own, "SELECT 1"), 1)
        return said


def server_said() -> object:
    info = client.connection.server_info
    version = value(client, "SELECT version()")
    equal(f"{info.version_major}.{info.version_minor}.{info.version_patch}", ".".join(version.split(".")[:3]))
    equal(info.name, "ClickHouse")
    return equal(info.get_timezone(), value(client, "SELECT serverTimezone()"))


def statements() -> object:
    client.execute("CREATE TABLE renamed_from (id UInt64) ENGINE = MergeTree ORDER BY id")
    client.execute("INSERT INTO renamed_from VALUES", [(1,)])
    client.execute("ALTER TABLE renamed_from ADD COLUMN s String DEFAULT 'new'")
    equal(client.execute("INSERT INTO renamed_from VALUES", [(2, "own")]), 1)
    client.execute("RENAME TABLE renamed_from TO renamed")
    equal(client.execute("INSERT INTO renamed (id) VALUES", [(3,)]), 1)
    equal(client.execute("SELECT * FROM renamed ORDER BY id"), [(1, "new"), (2, "own"), (3, "new")])
    client.execute("TRUNCATE TABLE renamed")
    equal(client.execute("INSERT INTO renamed VALUES", [(4, "x")]), 1)
    equal(client.execute("SELECT * FROM renamed"), [(4, "x")])
    client.execute("ALTER TABLE renamed DROP COLUMN s")
    equal(client.execute("INSERT INTO renamed VALUES", [(5,)]), 1)
    client.execute("DROP TABLE renamed")
    return raises(60, lambda: client.execute("INSERT INTO renamed VALUES", [(6,)]))


CHECKS: tuple[Callable[[], object], ...] = (
    all_types,
    streamed,
    streamed_in_chunks,
    streamed_with_types,
    with_progress,
    statistics,
    totals,
    extremes,
    by_columns,
    no_rows,
    outside_tables,
    substituted,
    parameters,
    settings_apply,
    session,
    cancelled,
    cancelled_at_once,
    query_ids,
    logs,
    by_dbapi,
    compressions,
    revisions,
    arrays,
    arrow,
    at_once,
    by_address,
    error_within,
    server_said,
    statements,
)

for check in CHECKS:
    report.run(check.__name__.replace("_", " "), check)
report.run("unknown table is 60", lambda: raises(60, lambda: client.execute("SELECT * FROM nowhere")))
report.run("syntax error is 62", lambda: raises(62, lambda: client.execute("SELEC 1")))
report.run("unknown setting is 115", lambda: raises(115, lambda: client.execute("SET no_such_setting = 1")))
report.run("unknown database is 81", lambda: raises(81, lambda: client.execute("USE no_such_database")))
client.disconnect()
report.print()
