"""Every way to insert that clickhouse-driver offers, each into a table of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy
import pandas
from clickhouse_driver import Client, dbapi
from clickhouse_driver.errors import TypeMismatchError
from driver_connection import NOT_WAITING, PINNED_OFF, WAITING, connect, raises, value
from report import Report, equal
from settings import DATABASE, HOST, PASSWORD, PORT, USER
from small_table import NAMES, ROWS, columns_of, create, native_rows

report = Report()
client = connect()
# Ten rows are three blocks.
IN_THREE = {"insert_block_size": 4}
OLD_REVISION = 54455
MANY, MANY_AT_ONCE = 300_000, 50_000
Insert = Callable[[str], object]


def stored(table: str) -> object:
    return equal(native_rows(client.execute(f"SELECT * FROM {table} ORDER BY id")), ROWS)


def stored_eventually(table: str) -> object:
    while value(client, f"SELECT count() FROM {table}") < len(ROWS):
        pass
    return stored(table)


def case(table: str, insert: Insert, check: Callable[[str], object] = stored, inserts: int = 1) -> None:
    """A new table, what is done to it, and what landed there."""

    def body() -> object:
        client.execute(create(report.sends(table, inserts)))
        insert(table)
        return check(table)

    report.run(f"insert {table}", body)


def rows(own: Client, table: str, data: object = ROWS, statement: str = "INSERT INTO {} VALUES", **options: object) -> object:
    return equal(own.execute(statement.format(table), data, **options), len(ROWS))


def rows_with(**options: object) -> Insert:
    return lambda table: rows(client, table, **options)


def by_statement(statement: str, **options: object) -> Insert:
    return lambda table: rows(client, table, statement=statement, **options)


@contextmanager
def connected(**options: object) -> Iterator[Client]:
    with connect(**options) as own:
        yield own


def on_its_own(settings: dict[str, object], **options: object) -> Insert:
    """By a connection of these options; the settings go with every statement of it."""

    def insert(table: str) -> object:
        with connect(settings=settings, **options) as own:
            return rows(own, table)

    return insert


def as_dicts() -> list[dict[str, object]]:
    return [dict(zip(NAMES, row)) for row in ROWS]


def by_driver() -> None:
    """The shapes of data, and what the driver does with them."""
    case("lists", rows_with())
    case("tuples", lambda table: rows(client, table, [tuple(row) for row in ROWS]))
    case("dicts", lambda table: rows(client, table, as_dicts()))
    case("columns", lambda table: rows(client, table, list(columns_of(ROWS).values()), columnar=True))
    case("generator", lambda table: rows(client, table, (row for row in ROWS), settings=IN_THREE))
    case("generator_of_dicts", lambda table: rows(client, table, (row for row in as_dicts()), settings=IN_THREE))
    case("blocks", rows_with(settings=IN_THREE))
    case("blocks_of_columns", lambda table: rows(client, table, list(columns_of(ROWS).values()), columnar=True, settings=IN_THREE))
    case("a_block_a_row", rows_with(settings={"insert_block_size": 1}))
    case("checked_types", rows_with(types_check=True))
    case("no_rows", lambda table: equal(client.execute(f"INSERT INTO {table} VALUES", []), 0), nothing, 0)
    case("as_bytes", as_bytes)
    case("null_as_default", null_as_default, lambda table: equal(client.execute(f"SELECT id, s FROM {table}"), [(1, "")]))
    case("traced", rows_with(settings={"opentelemetry_traceparent": "00-1af7651916cd43dd8448eb211c80319c-b9c7c989f97918e1-01"}))
    case("frame", frame)
    case("arrays", arrays)
    for compression in ("lz4", "lz4hc", "zstd", False):
        case(f"packed_{compression or 'not'}", on_its_own({}, compression=compression))
        case(f"packed_{compression or 'not'}_blocks", on_its_own(IN_THREE, compression=compression))
    case("packed_in_pieces", on_its_own({}, compression="lz4", compress_block_size=100))
    # From revision 54456 on the driver waits for events after each block, which ClickHouse doesn't send to whoever wants none.
    for name, sends, revision in (("none_old", 0, OLD_REVISION), ("sent_old", 1, OLD_REVISION), ("sent_new", 1, None)):
        settings = {**IN_THREE, "send_profile_events": sends}
        case(f"events_{name}", on_its_own(settings, client_revision=revision))
        case(f"events_{name}_waiting", on_its_own({**settings, **WAITING}, client_revision=revision))
        case(f"events_{name}_off", on_its_own({**settings, **PINNED_OFF}, client_revision=revision))
    case("oldest_revision", on_its_own(IN_THREE, client_revision=54429))
    case("logged", on_its_own({**IN_THREE, "send_logs_level": "trace"}))


def as_bytes(table: str) -> object:
    texts = [[number.encode() if isinstance(number, str) else number for number in row] for row in ROWS]
    data = [[*row[:6], [tag.encode() for tag in row[6]]] for row in texts]
    return rows(client, table, data, settings={"strings_as_bytes": True})


def null_as_default(table: str) -> object:
    statement = f"INSERT INTO {table} (id, s) VALUES"
    return equal(client.execute(statement, [(1, None)], settings={"input_format_null_as_default": True}), 1)


def frame(table: str) -> object:
    with connect(settings={"use_numpy": True}) as own:
        data = pandas.DataFrame({"id": range(len(ROWS)), "s": [row[1] for row in ROWS]})
        own.insert_dataframe(f"INSERT INTO {table} (id, s) VALUES", data)
        return own.execute(f"ALTER TABLE {table} UPDATE {the_rest()} WHERE 1 SETTINGS mutations_sync = 1")


def arrays(table: str) -> object:
    with connect(settings={"use_numpy": True, "insert_block_size": 4}) as own:
        data = [numpy.arange(len(ROWS), dtype=numpy.uint64), numpy.array([row[1] for row in ROWS], dtype=object)]
        equal(own.execute(f"INSERT INTO {table} (id, s) VALUES", data, columnar=True), len(ROWS))
        return own.execute(f"ALTER TABLE {table} UPDATE {the_rest()} WHERE 1 SETTINGS mutations_sync = 1")


def the_rest() -> str:
    """What an ALTER puts into the columns behind the first two, so that the rows are all the same ones."""
    return (
        "maybe = if(id % 2, NULL, -toInt32(id)), kind = concat('kind ', toString(id % 3)), price = id + toDecimal64('0.1234', 4),"
        " at = toDateTime64('2024-02-29 12:34:56.789', 3, 'UTC'), tags = arrayMap(n -> concat('tag ', toString(n)), range(id % 4))"
    )


def nothing(table: str) -> object:
    return equal(value(client, f"SELECT count() FROM {table}"), 0)


def by_settings() -> None:
    case("waiting", rows_with(settings=WAITING))
    case("not_waiting", rows_with(settings=NOT_WAITING), stored_eventually)
    case("not_waiting_blocks", rows_with(settings={**NOT_WAITING, **IN_THREE}), stored_eventually)
    case("pinned_off", rows_with(settings=PINNED_OFF))
    case("pinned_off_blocks", rows_with(settings={**PINNED_OFF, **IN_THREE}))
    case("important", on_its_own(WAITING, settings_is_important=True))
    case("unknown_setting", rows_with(settings={"no_such_setting": 1}))
    case("token", with_token, inserts=2)
    case("named", rows_with(query_id="driver_named_insert"))
    case("named_again", named_again, inserts=2)
    case("quota", on_its_own({"quota_key": "a key"}))


def with_token(table: str) -> object:
    """The second is a repeat."""
    client.execute(f"ALTER TABLE {table} MODIFY SETTING non_replicated_deduplication_window = 100")
    rows(client, table, settings={"insert_deduplication_token": "once"})
    return rows(client, table, settings={"insert_deduplication_token": "once"})


def named_again(table: str) -> object:
    """An id is free when its statement is answered."""
    own_half = {"settings": IN_THREE, "query_id": "driver_named_again"}
    equal(client.execute(f"INSERT INTO {table} VALUES", ROWS[:5], **own_half), 5)
    return equal(client.execute(f"INSERT INTO {table} VALUES", ROWS[5:], **own_half), 5)


def by_statements() -> None:
    case("all_named", by_statement(f"INSERT INTO {{}} ({', '.join(NAMES)}) VALUES"))
    case("quoted", by_statement("INSERT INTO `{}` VALUES"))
    case("of_database", by_statement(f"INSERT INTO {DATABASE}.{{}} VALUES"))
    case("in_small_letters", by_statement("insert into table {} values"))
    case("commented", by_statement("/* a */ INSERT INTO {} -- b\n VALUES"))
    case("with_semicolon", by_statement("INSERT INTO {} VALUES;"))
    case("format_native", by_statement("INSERT INTO {} FORMAT Native"))
    case("format_values", by_statement("INSERT INTO {} FORMAT Values"))
    case("format_csv", by_statement("INSERT INTO {} FORMAT CSV"))
    case("settings_clause", by_statement("INSERT INTO {} SETTINGS async_insert = 1, wait_for_async_insert = 1 VALUES"))
    case("settings_clause_off", by_statement("INSERT INTO {} SETTINGS async_insert = 0 VALUES"))
    case("turned", lambda table: rows(client, table, [row[::-1] for row in ROWS], f"INSERT INTO {{}} ({', '.join(NAMES[::-1])}) VALUES"))
    case("some_named", some_named, some_landed)
    case("except", lambda table: some_named(table, "(* EXCEPT(maybe, kind, price, at, tags))"), some_landed)
    case("values", lambda table: client.execute(f"INSERT INTO {table} (id, s) VALUES {literals()}"), some_landed)
    case("values_waiting", lambda table: client.execute(f"INSERT INTO {table} (id, s) VALUES {literals()}", settings=WAITING), some_landed)
    case("values_not_waiting", values_not_waiting, lambda table: (stored_some_eventually(table), some_landed(table)))
    case("values_off", lambda table: client.execute(f"INSERT INTO {table} (id, s) VALUES {literals()}", settings=PINNED_OFF), some_landed)
    case("values_substituted", values_substituted, some_landed, len(ROWS))
    case("values_of_server", values_of_server, some_landed, len(ROWS))
    case("text_of_json", text_of_json, some_landed)
    case("text_of_csv", text_of_csv, some_landed)
    computed("computed_all", "", [(1, "s", "f"), (2, "", "")], [(1, "s", 2, 2, "f"), (2, "", 3, 4, "")])
    computed("computed_id", "(id)", [(1,), (2,)], [(1, "d1", 2, 2, ""), (2, "d2", 3, 4, "")])
    computed("computed_ephemeral", "(e, id)", [("x", 1), ("y", 2)], [(1, "d1", 2, 2, "X"), (2, "d2", 3, 4, "Y")])


def computed(table: str, columns: str, data: list[tuple], landed: list[tuple]) -> None:
    """A table whose columns ClickHouse computes where the insert doesn't name them."""

    def body() -> object:
        kinds = "s String DEFAULT concat('d', toString(id)), m UInt64 MATERIALIZED id + 1, a UInt64 ALIAS id * 2, e String EPHEMERAL"
        client.execute(f"CREATE TABLE {report.sends(table)} (id UInt64, {kinds}, f String DEFAULT upper(e)) ENGINE = MergeTree ORDER BY id")
        equal(client.execute(f"INSERT INTO {table} {columns} VALUES", data), len(data))
        return equal(client.execute(f"SELECT id, s, m, a, f FROM {table} ORDER BY id"), landed)

    report.run(f"insert {table}", body)


def some_named(table: str, columns: str = "(id, s)") -> object:
    return equal(client.execute(f"INSERT INTO {table} {columns} VALUES", [row[:2] for row in ROWS]), len(ROWS))


def some_landed(table: str) -> object:
    got = client.execute(f"SELECT id, s, maybe, kind, price, tags FROM {table} ORDER BY id")
    return equal(got, [(row[0], row[1], None, "", 0, []) for row in ROWS])


def stored_some_eventually(table: str) -> None:
    while value(client, f"SELECT count() FROM {table}") < len(ROWS):
        pass


def literals() -> str:
    quoted = (row[1].replace("\\", "\\\\").replace("'", "\\'") for row in ROWS)
    return ", ".join(f"({number}, '{text}')" for number, text in enumerate(quoted))


def values_not_waiting(table: str) -> object:
    return client.execute(f"INSERT INTO {table} (id, s) VALUES {literals()}", settings=NOT_WAITING)


def values_substituted(table: str) -> None:
    """The driver puts the values into the text."""
    for row in ROWS:
        client.execute(f"INSERT INTO {table} (id, s) VALUES (%(id)s, %(s)s)", {"id": row[0], "s": row[1]})


def values_of_server(table: str) -> None:
    """The driver sends the values as parameters of the statement."""
    for row in ROWS:
        statement = f"INSERT INTO {table} (id, s) VALUES ({{id:UInt64}}, {{s:String}})"
        client.execute(statement, {"id": row[0], "s": row[1]}, settings={"server_side_params": True})


def text_of_json(table: str) -> object:
    lines = value(client, "SELECT arrayStringConcat(groupArray(formatRow('JSONEachRow', id, s))) FROM (SELECT id, s FROM lists ORDER BY id)")
    return client.execute(f"INSERT INTO {table} FORMAT JSONEachRow {lines}")


def text_of_csv(table: str) -> object:
    lines = value(client, "SELECT arrayStringConcat(groupArray(formatRow('CSV', id, s))) FROM (SELECT id, s FROM lists ORDER BY id)")
    return client.execute(f"INSERT INTO {table} (id, s) FORMAT CSV\n{lines}")


def by_many() -> None:
    case("one_by_one", one_by_one, inserts=len(ROWS))
    case("one_by_one_changing", one_by_one_changing, inserts=len(ROWS))
    case("by_threads", by_threads, inserts=len(ROWS))
    case("in_turns", in_turns, stored, 5)
    case("many", many, all_of_many)
    case("many_large", many_large, all_of_many)
    case("many_packed", lambda table: many(table, compression="lz4"), all_of_many)
    case("dbapi_many", dbapi_many)
    case("dbapi_values", dbapi_values, some_landed, len(ROWS))


def one_by_one(table: str) -> None:
    for row in ROWS:
        equal(client.execute(f"INSERT INTO {table} VALUES", [row], settings=WAITING), 1)


def one_by_one_changing(table: str) -> None:
    """Alike, but for the settings and the way that the rows are cut."""
    for number, row in enumerate(ROWS):
        settings = {"log_comment": f"insert {number}", "insert_block_size": 1 + number}
        equal(client.execute(f"INSERT INTO {table} VALUES", [row], settings=settings, query_id=f"{table}_{number}"), 1)


def by_threads(table: str) -> None:
    """A thread and a connection for each row."""

    def one(row: list[object]) -> int:
        with connect(settings=WAITING) as own:
            return own.execute(f"INSERT INTO {table} VALUES", [row])

    with ThreadPoolExecutor(len(ROWS)) as threads:
        equal(list(threads.map(one, ROWS)), [1] * len(ROWS))


def in_turns(table: str) -> None:
    """Inserts and questions on one connection."""
    with connect() as own:
        for start in range(0, len(ROWS), 2):
            equal(own.execute(f"INSERT INTO {table} VALUES", ROWS[start : start + 2]), 2)
            equal(value(own, f"SELECT count() FROM {table}"), start + 2)
            equal(own.execute("SELECT number FROM system.numbers LIMIT 100000")[-1], (99_999,))


def many(table: str, **options: object) -> object:
    with connect(settings={"insert_block_size": MANY_AT_ONCE}, **options) as own:
        return equal(own.execute(f"INSERT INTO {table} (id) VALUES", [(number,) for number in range(MANY)]), MANY)


def many_large(table: str) -> object:
    """Beyond async_insert_max_data_size: some blocks have come before that is known."""
    data = ((number, f"{'x' * 60} {number}") for number in range(MANY))
    with connect(settings={"insert_block_size": MANY_AT_ONCE}) as own:
        return equal(own.execute(f"INSERT INTO {table} (id, s) VALUES", data), MANY)


def all_of_many(table: str) -> object:
    return equal(client.execute(f"SELECT count(), uniqExact(id), max(id) FROM {table}"), [(MANY, MANY, MANY - 1)])


def dbapi_many(table: str) -> object:
    with dbapi.connect(host=HOST, port=PORT, user=USER, password=PASSWORD, database=DATABASE) as own, own.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {table} VALUES", ROWS)
        return equal(cursor.rowcount, len(ROWS))


def dbapi_values(table: str) -> None:
    with dbapi.connect(host=HOST, port=PORT, user=USER, password=PASSWORD, database=DATABASE) as own, own.cursor() as cursor:
        for row in ROWS:
            cursor.execute(f"INSERT INTO {table} (id, s) VALUES (%(id)s, %(s)s)", {"id": row[0], "s": row[1]})


def by_sessions() -> None:
    """What a connection has changed for itself concerns its inserts."""
    case("after_set", after_set)
    case("of_temporary", of_temporary)
    case("after_use", after_use)
    case("selected", lambda table: client.execute(f"INSERT INTO {table} SELECT * FROM lists"))
    case("selected_from_tables", selected_from_tables, some_landed)
    case("through_input", through_input, some_landed)


def after_set(table: str) -> object:
    with connect() as own:
        own.execute("SET max_insert_threads = 1")
        return rows(own, table, settings=IN_THREE)


def of_temporary(table: str) -> object:
    """Rows go into a temporary table of the same name, and from there to where they are looked for."""
    with connect() as own:
        own.execute(f"CREATE TEMPORARY TABLE scratch AS {table} ENGINE = Memory")
        rows(own, report.sends("scratch"), settings=IN_THREE)
        own.execute(f"INSERT INTO {table} SELECT * FROM scratch")
        return equal(value(client, f"SELECT count() FROM system.tables WHERE name = 'scratch' AND database = '{DATABASE}'"), 0)


def after_use(table: str) -> object:
    with connect() as own:
        own.execute("USE system")
        return rows(own, f"{DATABASE}.{table}")


def selected_from_tables(table: str) -> object:
    """The rows come as a table beside the statement."""
    beside = [{"name": "beside", "structure": [("id", "UInt64"), ("s", "String")], "data": [tuple(row[:2]) for row in ROWS]}]
    return client.execute(f"INSERT INTO {table} (id, s) SELECT * FROM beside", external_tables=beside)


def through_input(table: str) -> object:
    statement = f"INSERT INTO {table} (id, s) SELECT a, b FROM input('a UInt64, b String') FORMAT Native"
    return equal(client.execute(statement, [row[:2] for row in ROWS]), len(ROWS))


def refused(table: str, code: int, insert: Insert, *, rows_left: int = 0) -> None:
    """Its code comes as the driver's error, and nothing of it is stored. The same client goes on behind it."""

    def body() -> object:
        client.execute(create(report.sends(table)))
        client.execute(f"ALTER TABLE {table} ADD CONSTRAINT small CHECK id < 5")
        said = raises(code, lambda: insert(table))
        equal(value(client, f"SELECT count() FROM {table}"), rows_left)
        return said

    report.run(f"{table} is {code}", body)


def errors() -> None:
    refused("constraint", 469, rows_with())
    refused("constraint_blocks", 469, rows_with(settings=IN_THREE))
    refused("constraint_waiting", 469, rows_with(settings=WAITING))
    refused("constraint_off", 469, rows_with(settings=PINNED_OFF))
    refused("constraint_packed", 469, on_its_own(IN_THREE, compression="lz4"))
    refused("constraint_values", 469, lambda table: client.execute(f"INSERT INTO {table} (id, s) VALUES {literals()}"))
    refused("bad_value", 6, lambda table: client.execute(f"INSERT INTO {table} (id) VALUES ('x')"))
    refused("bad_json", 27, lambda table: client.execute(f'INSERT INTO {table} FORMAT JSONEachRow {{"id": "x"}}'))
    refused("unknown_column", 16, by_statement("INSERT INTO {} (id, nobody) VALUES"))
    refused("important_setting", 115, important_unknown)
    refused("bad_setting", 27, rows_with(settings={"max_block_size": "many"}))


def important_unknown(table: str) -> object:
    with connect(settings_is_important=True, settings={"no_such_setting": 1}) as own:
        return rows(own, table)


def other_errors() -> None:
    """Those of which nobody knows a table."""
    into = lambda table: client.execute(f"INSERT INTO {table} VALUES", [(1,)])
    report.run("unknown table is 60", lambda: raises(60, lambda: into(report.sends("nowhere"))))
    report.sends("no_table")
    report.run("no table is 62", lambda: raises(62, lambda: into("")))
    report.run("given up within", given_up_within)
    report.run("goes on behind an error", goes_on)


def given_up_within() -> object:
    """The driver finds out in its second block that a value doesn't fit, and goes."""
    client.execute("CREATE TABLE given_up (id UInt8) ENGINE = MergeTree ORDER BY id")
    try:
        client.execute("INSERT INTO given_up VALUES", [(1,), (2,), (300,)], settings={"insert_block_size": 2})
    except TypeMismatchError:
        return equal(value(client, "SELECT count() FROM given_up"), 0)
    raise AssertionError("no error was raised")


def goes_on() -> object:
    """The driver closes the connection behind an error, and makes another."""
    with connect() as own:
        for _ in range(3):
            raises(60, lambda: own.execute(f"INSERT INTO {report.sends('nowhere')} VALUES", [(1,)]))
            equal(value(own, "SELECT 1"), 1)
    return "three times"


by_driver()
by_settings()
by_statements()
by_many()
by_sessions()
errors()
other_errors()
client.disconnect()
report.print()
