"""Drives a ClickHouse HTTP endpoint with clickhouse-connect's blocking client."""

from __future__ import annotations

import gzip
import uuid

import clickhouse_connect
import pandas
import pyarrow
from clickhouse_connect.driver.exceptions import DatabaseError
from clickhouse_connect.driver.external import ExternalData
from report import Report, equal
from settings import CONNECTION
from values import COLUMNS, aware, create, row

report = Report()
client = clickhouse_connect.get_client(**CONNECTION)
NAMES = list(COLUMNS)


def code_of(call) -> str:
    try:
        call()
    except DatabaseError as error:
        return str(error)
    raise AssertionError("no error was raised")


def raises(call, code: int) -> str:
    text = code_of(call)
    assert f"code {code}" in text or f"Code: {code}." in text, text
    return text


def insert_all_types() -> object:
    client.command(create("kinds"))
    summary = client.insert("kinds", [row(n) for n in range(3)], column_names=NAMES)
    return equal(summary.written_rows, 3)


def read_all_types() -> object:
    got = client.query("SELECT * FROM kinds ORDER BY id").result_rows
    return equal([aware(line) for line in got], [row(n) for n in range(3)])


def insert_one_row_many_times() -> object:
    client.command("CREATE TABLE one (id UInt64, s String) ENGINE = MergeTree ORDER BY id")
    settings = {"async_insert": 1, "wait_for_async_insert": 1}
    for number in range(20):
        equal(client.insert("one", [[number, f"r{number}"]], column_names=["id", "s"], settings=settings).written_rows, 1)
    return equal(client.query("SELECT groupArray(id) FROM (SELECT id FROM one ORDER BY id)").first_row[0], list(range(20)))


def insert_without_waiting() -> object:
    settings = {"async_insert": 1, "wait_for_async_insert": 0}
    client.insert("one", [[100, "later"], [101, "later"]], column_names=["id", "s"], settings=settings)
    return "accepted"


def insert_text_statement() -> object:
    summary = client.command("INSERT INTO one VALUES (200, 'a'), (201, 'b')")
    return equal(summary.written_rows, 2)


def insert_json_raw() -> object:
    rows = b'{"id": 300, "s": "raw"}\n{"id": 301}\n'
    return equal(client.raw_insert("one", insert_block=rows, fmt="JSONEachRow").written_rows, 2)


def insert_compressed_raw() -> object:
    rows = gzip.compress(b'{"id": 310, "s": "zipped"}\n')
    return equal(client.raw_insert("one", insert_block=rows, fmt="JSONEachRow", compression="gzip").written_rows, 1)


def insert_frame() -> object:
    frame = pandas.DataFrame({"id": [400, 401], "s": ["df", "df"]})
    return equal(client.insert_df("one", frame).written_rows, 2)


def insert_arrow() -> object:
    table = pyarrow.table({"id": pyarrow.array([500, 501], pyarrow.uint64()), "s": ["pa", "pa"]})
    return equal(client.insert_arrow("one", table).written_rows, 2)


def insert_with_context() -> object:
    context = client.create_insert_context("one", ["id", "s"])
    for start in (600, 610):
        context.data = [[start + n, "ctx"] for n in range(10)]
        client.insert(context=context)
    return equal(client.command("SELECT count() FROM one WHERE s = 'ctx'"), 20)


def columnar_insert() -> object:
    data = [[700, 701], ["col", "col"]]
    return equal(client.insert("one", data, column_names=["id", "s"], column_oriented=True).written_rows, 2)


def query_forms() -> object:
    query = "SELECT number AS n, toString(number) AS s FROM system.numbers LIMIT 5"
    equal(client.query(query).result_columns[0], [0, 1, 2, 3, 4])
    equal(list(client.query(query).named_results())[1], {"n": 1, "s": "1"})
    equal(client.query_np(query).shape, (5,))
    equal(list(client.query_df(query)["n"]), [0, 1, 2, 3, 4])
    equal(client.query_arrow(query).num_rows, 5)
    equal(client.raw_query(query, fmt="CSV"), b'0,"0"\n1,"1"\n2,"2"\n3,"3"\n4,"4"\n')
    return equal(client.command("SELECT 7"), 7)


def streamed_reads() -> object:
    rows, blocks = 0, 0
    settings = {"max_block_size": 10_000}
    with client.query_row_block_stream("SELECT number, toString(number) FROM numbers(100000)", settings=settings) as stream:
        for block in stream:
            blocks += 1
            rows += len(block)
    assert blocks > 1, "one block is no stream"
    with client.raw_stream("SELECT number FROM numbers(100000)", fmt="RowBinary") as stream:
        assert len(stream.read()) == 800_000
    return equal(rows, 100_000)


def parameters() -> object:
    query = "SELECT {a:Int32} + 1, {s:String}, {list:Array(Int32)}, {day:Date}"
    values = {"a": 41, "s": "it's \\ \n", "list": [1, 2], "day": "2024-02-29"}
    got = client.query(query, parameters=values).first_row
    return equal(list(got[:3]), [42, "it's \\ \n", [1, 2]])


def settings_apply() -> object:
    return equal(client.command("SELECT getSetting('max_threads')", settings={"max_threads": 3}), 3)


def sessions() -> object:
    own = clickhouse_connect.get_client(**CONNECTION, session_id=str(uuid.uuid4()))
    own.command("CREATE TEMPORARY TABLE scratch (n UInt8)")
    own.command("INSERT INTO scratch VALUES (1), (2)")
    own.insert("scratch", [[3]], column_names=["n"])
    equal(own.command("SELECT sum(n) FROM scratch"), 6)
    own.command("SET max_block_size = 4321")
    equal(own.command("SELECT getSetting('max_block_size')"), 4321)
    own.close()
    return "temporary table and SET"


def without_session() -> object:
    free = clickhouse_connect.get_client(**CONNECTION, autogenerate_session_id=False)
    free.insert("one", [[800, "free"]], column_names=["id", "s"])
    return equal(free.command("SELECT s FROM one WHERE id = 800"), "free")


def compressions() -> object:
    for number, name in enumerate(["lz4", "zstd", "gzip", "br", False]):
        packed = clickhouse_connect.get_client(**CONNECTION, compress=name)
        rows = [[1000 * (number + 1) + n, f"c{name}" * 20] for n in range(500)]
        equal(packed.insert("packed", rows, column_names=["id", "s"]).written_rows, 500)
        equal(len(packed.query("SELECT * FROM packed WHERE s = {s:String}", parameters={"s": f"c{name}" * 20}).result_rows), 500)
    return "lz4, zstd, gzip, br, none"


def query_id_echo() -> object:
    wanted = str(uuid.uuid4())
    return equal(client.query("SELECT 1", settings={"query_id": wanted}).query_id, wanted)


def external_data() -> object:
    external = ExternalData(file_name="people.csv", data=b"1,ann\n2,bob\n", fmt="CSV", structure="id UInt8, name String")
    got = client.query("SELECT name FROM people ORDER BY id", external_data=external).result_columns[0]
    return equal(got, ["ann", "bob"])


def error_in_the_middle() -> object:
    query = "SELECT throwIf(number = 300000, 'too far'), repeat('x', 100) FROM numbers(1000000)"

    def read() -> None:
        with client.query_row_block_stream(query, settings={"max_block_size": 1000, "wait_end_of_query": 0}) as stream:
            for _ in stream:
                pass

    return code_of(read)


def bad_row() -> object:
    call = lambda: client.raw_insert("one", insert_block=b'{"id": "x"}\n', fmt="JSONEachRow")
    text = code_of(call)
    assert any(f"ode{mark}{code}" in text for mark in (" ", ": ") for code in (26, 27, 72)), text
    return text


def main() -> None:
    client.command("CREATE TABLE packed (id UInt64, s String) ENGINE = MergeTree ORDER BY id")
    report.run("ping", lambda: equal(client.ping(), True))
    report.run("server version is known", lambda: equal(client.server_version.split(".")[0].isdigit(), True))
    for check in (
        insert_all_types,
        read_all_types,
        insert_one_row_many_times,
        insert_without_waiting,
        insert_text_statement,
        insert_json_raw,
        insert_compressed_raw,
        insert_frame,
        insert_arrow,
        insert_with_context,
        columnar_insert,
        query_forms,
        streamed_reads,
        parameters,
        settings_apply,
        sessions,
        without_session,
        compressions,
        query_id_echo,
        external_data,
        error_in_the_middle,
        bad_row,
    ):
        report.run(check.__name__.replace("_", " "), check)
    report.run("unknown table is 60", lambda: raises(lambda: client.query("SELECT * FROM nowhere"), 60))
    report.run("insert into unknown table is 60", lambda: raises(lambda: client.insert("nowhere", [[1]]), 60))
    report.run("syntax error is 62", lambda: raises(lambda: client.command("SELEC 1"), 62))
    report.print()


main()
