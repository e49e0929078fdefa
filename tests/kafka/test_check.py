"""`windrow kafka check`: what fits, what doesn't and how, and what can't be asked. It leaves no trace."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.avro import avro_file, blocks, long, text
from harness.duckdb import DuckDbGateway, duckdb_library
from harness.endpoint import Endpoint
from harness.kafka import Broker
from harness.kafka_check import Checked, backend_of, check, settings_file
from harness.kafka_topics import Message, Topics
from harness.pipelines import Seen, pipeline
from harness.ports import free_port
from harness.protobuf import field

FITS, DOES_NOT_FIT, UNKNOWN = 0, 1, 2
COLUMNS = "id UInt64, name String, at DateTime64(3), n Nullable(Int32)"


def send(topics: Topics, topic: str, *values: object, partitions: int = 1) -> None:
    topics.create(topic, partitions)
    texts = [value if isinstance(value, str) else json.dumps(value) for value in values]
    topics.send(topic, [Message(value=text.encode(), partition=at % partitions) for at, text in enumerate(texts)])


@pytest.fixture
def table(direct: Endpoint) -> Callable[[str], str]:
    """Makes a table of these columns that recognises a batch which comes again."""

    def make(columns: str = COLUMNS, engine: str = "MergeTree ORDER BY tuple()") -> str:
        window = " SETTINGS non_replicated_deduplication_window = 100" if "MergeTree" in engine else ""
        direct.sql(f"CREATE TABLE checked ({columns}) ENGINE = {engine}{window}")
        return f"{direct.database}.checked"

    return make


@pytest.fixture
def checked(tmp_path: Path, direct: Endpoint) -> Callable[..., Checked]:
    def run(*pipelines: dict[str, object], arguments: tuple[str, ...] = ("--json",), **variables: str) -> Checked:
        return check("--config", settings_file(tmp_path, backend_of(direct), *pipelines), *arguments, **variables)

    return run


def row(at: int) -> dict:
    return {"id": at, "name": f"name {at}", "at": "2026-01-31 12:00:00.5", "n": None}


def test_what_fits_is_shown(broker: Broker, topics: Topics, topic_name: str, table, checked, direct: Endpoint) -> None:
    send(topics, topic_name, *map(row, range(10)), partitions=2)
    found = checked(pipeline(broker, table(f"{COLUMNS}, o UInt64, made Date DEFAULT today()"), topic_name, columns={"o": "_offset"}))
    assert found.code == FITS, found
    report = found.report
    assert (report["verdict"], report["guarantee"], report["not_exactly_once"]) == ("fits", "exactly once", None)
    assert (report["messages"], report["rows"], report["refused_messages"], report["problems"]) == (10, 10, 0, [])
    assert found.column("name")["sample"][0].startswith("name ")
    assert found.column("name")["from"] == "the field name" and found.column("name")["messages_with_field"] == 10
    assert (found.column("o")["from"], found.column("o")["field"]) == ("_offset", None)
    assert found.column("n")["sample"][0] == "NULL" and found.column("at")["sample"][0] == "2026-01-31 12:00:00.500"
    assert any("no message of the sample has the field made" in note for note in report["notes"])
    partitions = report["topics"][0]["partitions"]
    assert [(each["partition"], each["earliest"], each["latest"], each["committed"], each["lag"]) for each in partitions] == [
        (0, 0, 5, None, 5),
        (1, 0, 5, None, 5),
    ]
    # It has stored nothing and committed nothing.
    assert direct.sql("SELECT count() FROM checked").strip() == "0"
    assert all(known.offset < 0 for known in topics.committed(topic_name, topic_name).values())


def test_people_can_read_it(broker: Broker, topics: Topics, topic_name: str, table, checked) -> None:
    send(topics, topic_name, {**row(1), "extra": "e"}, {**row(2), "id": "many\x1b[31m"})
    found = checked(pipeline(broker, table(), topic_name), arguments=())
    assert found.code == DOES_NOT_FIT
    lines = found.out.splitlines()
    assert lines[0].startswith(f"pipeline {topic_name}: JSONEachRow from {broker.address} into ")
    assert any(line.split()[:6] == [topic_name, "0", "0", "2", "-", "2"] for line in lines), found.out
    assert any(line.startswith("column id: UInt64 can't take the value \"many") for line in lines), found.out
    assert any(line.split() == ["extra", "1", '"e"'] for line in lines), found.out
    assert any(line.startswith(f"{topic_name}:0:1") and "id" in line for line in lines), found.out
    assert lines[-1] == "It does not fit: 1 of 2 messages would be refused."
    assert "\x1b" not in found.out, "what somebody sent is not for the terminal to obey"


def test_a_field_of_another_type_is_named(broker: Broker, topics: Topics, topic_name: str, table, checked) -> None:
    send(topics, topic_name, row(0), {**row(1), "n": "seven"}, {**row(2), "at": "yesterday", "n": [1]}, row(3))
    found = checked(pipeline(broker, table(), topic_name))
    assert (found.code, found.report["verdict"]) == (DOES_NOT_FIT, "does not fit")
    assert (found.report["refused_messages"], found.report["rows"]) == (2, 2)
    first, second = found.report["refused"]
    assert (first["topic"], first["partition"], first["offset"], first["row"], first["columns"]) == (topic_name, 0, 1, 1, ["n"])
    assert (second["offset"], sorted(second["columns"])) == (2, ["at", "n"])
    column = found.column("n")
    assert column["problem"] == f'Nullable(Int32) can\'t take the value "seven" (at {topic_name}:0:1)'
    assert column["refused_messages"] == 2
    assert found.column("at")["refused_messages"] == 1 and found.column("id")["problem"] is None


@pytest.mark.parametrize("format, good, bad", [("CSV", '1,x,2026-01-31 12:00:00,5\n', '2,y,never,5\n'), ("TSV", "1\tx\t2026-01-31 12:00:00\t5\n", "2\ty\tnever\t5\n")])
def test_a_field_without_a_name_is_found(
    broker: Broker, topics: Topics, topic_name: str, table, checked, format: str, good: str, bad: str
) -> None:
    send(topics, topic_name, good, bad)
    found = checked(pipeline(broker, table(), topic_name, format))
    assert found.code == DOES_NOT_FIT, found
    assert [(each["offset"], each["columns"]) for each in found.report["refused"]] == [(1, ["at"])]
    assert '"never"' in found.column("at")["problem"]


def test_fields_and_columns_that_miss_each_other_are_told(broker: Broker, topics: Topics, topic_name: str, table, checked) -> None:
    send(topics, topic_name, {"id": 1, "Name": "x", "at": 0, "more": {"a": 1}}, {"id": 2, "Name": "y", "at": 0})
    found = checked(pipeline(broker, table(), topic_name))
    assert found.code == FITS, found
    unused = [(each["field"], each["messages"], each["example"]) for each in found.report["unused_fields"]]
    assert unused == [("Name", 2, '"x"'), ("more", 1, '{"a":1}')]
    assert found.column("name")["messages_with_field"] == 0
    assert any('did you mean columns = { name = "Name" }?' in note for note in found.report["notes"]), found.report["notes"]


LISTS_SCHEMA = """syntax = "proto3"; import "place.proto";
message Event { uint64 id = 1; repeated Part parts = 2; other.Place place = 3; string first_name = 4; }
message Part { string name = 1; uint32 size = 2; }
"""


def test_what_of_a_schema_goes_nowhere_is_told(broker: Broker, topics: Topics, topic_name: str, table, checked, tmp_path: Path) -> None:
    topics.create(topic_name, 1)
    topics.send(topic_name, [Message(b"\x08\x01" + field(2, field(1, b"a") + b"\x10\x05") + field(2, b""), partition=0)])
    (tmp_path / "event.proto").write_text(LISTS_SCHEMA)
    schema = {"schema_file": str(tmp_path / "event.proto"), "message": "Event"}
    where = table("id UInt64, `parts.name` Array(String), `place.city` String, firstname String")
    found = checked(pipeline(broker, where, topic_name, "ProtobufSingle", **schema))
    assert found.code == DOES_NOT_FIT and "`place.city` may be a field of place" in found.report["problems"][0], found
    left_out = pipeline(broker, where, topic_name, "ProtobufSingle", columns={"place.city": ""}, **schema)
    found = checked(left_out)
    assert (found.code, found.column("parts.name")["sample"]) == (FITS, ['["a",""]']), found
    assert [each["field"] for each in found.report["unused_fields"]] == ["parts.size", "place", "first_name"]
    assert found.report["warnings"] == ["no column takes these fields of the messages, which are stored nowhere: parts.size, place, first_name"]
    assert any('did you mean columns = { firstname = "first_name" }?' in note for note in found.report["notes"]), found.report["notes"]
    assert "\nwarning: no column takes these fields" in checked(left_out, arguments=()).out


def test_what_of_an_avro_schema_goes_nowhere_is_told(broker: Broker, topics: Topics, topic_name: str, table, checked) -> None:
    inner = {"type": "record", "name": "C", "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "string"}]}
    fields = [{"name": "id", "type": "long"}, {"name": "c", "type": {"type": "array", "items": inner}}, {"name": "more", "type": "int"}]
    row = long(1) + blocks(long(7) + text(b"x")) + long(3)
    topics.create(topic_name, 1)
    topics.send(topic_name, [Message(avro_file({"type": "record", "name": "R", "fields": fields}, row), partition=0)] * 2)
    found = checked(pipeline(broker, table("id UInt64, `c.a` Array(Int32)"), topic_name, "Avro"))
    assert (found.code, found.column("c.a")["sample"]) == (FITS, ["[7]", "[7]"]), found
    unused = [(each["field"], each["messages"], each["example"]) for each in found.report["unused_fields"]]
    assert unused == [("c.b", 2, None), ("more", 2, None)]
    assert found.report["warnings"], found


def test_a_column_that_is_not_there(broker: Broker, topics: Topics, topic_name: str, table, checked) -> None:
    send(topics, topic_name, row(1))
    found = checked(pipeline(broker, table(), topic_name, columns={"nmae": "name"}))
    assert found.code == DOES_NOT_FIT
    assert found.report["problems"] == ["there is no column `nmae` in the table, but columns names it"]


def test_rubbish_in_the_sample(broker: Broker, topics: Topics, topic_name: str, table, checked) -> None:
    send(topics, topic_name, *map(row, range(3)), '{"id":', "no json at all", partitions=1)
    found = checked(pipeline(broker, table(), topic_name))
    assert (found.code, found.report["refused_messages"], found.report["rows"]) == (DOES_NOT_FIT, 2, 3)
    assert [(each["offset"], each["columns"]) for each in found.report["refused"]] == [(3, []), (4, [])]
    assert all(column["problem"] is None for column in found.report["columns"])


def test_tombstones_make_no_rows(broker: Broker, topics: Topics, topic_name: str, table, checked) -> None:
    topics.create(topic_name, 1)
    topics.send(topic_name, [Message(value=None, key=b"k"), Message(value=json.dumps(row(1)).encode())])
    found = checked(pipeline(broker, table(), topic_name))
    assert (found.code, found.report["messages"], found.report["tombstones"], found.report["rows"]) == (FITS, 2, 1, 1)


def test_an_empty_topic_fits_as_far_as_can_be_said(broker: Broker, topics: Topics, topic_name: str, table, checked) -> None:
    topics.create(topic_name, 1)
    found = checked(pipeline(broker, table(), topic_name), arguments=())
    assert found.code == FITS, found
    assert found.out.splitlines()[-1] == "It fits, as far as can be said without a message to try."


def test_a_table_that_is_not_there(broker: Broker, topics: Topics, topic_name: str, checked, direct: Endpoint) -> None:
    send(topics, topic_name, row(1))
    found = checked(pipeline(broker, f"{direct.database}.nothing", topic_name))
    assert (found.code, found.report["guarantee"]) == (DOES_NOT_FIT, None)
    assert "Code: 60" in found.report["problems"][0] and "nothing" in found.report["problems"][0]
    assert found.report["topics"][0]["partitions"][0]["latest"] == 1, "the topic is looked at all the same"


def test_a_topic_that_is_not_there(broker: Broker, topic_name: str, table, checked) -> None:
    where = table()
    found = checked(pipeline(broker, where, topic_name))
    assert (found.code, len(found.report["problems"])) == (DOES_NOT_FIT, 1)
    assert topic_name in found.report["problems"][0]
    pattern = checked(pipeline(broker, where, topic_name, topic_pattern=f"{topic_name}-[0-9]+"))
    assert pattern.report["problems"] == [f"no topic's whole name matches the pattern {topic_name}-[0-9]+"]


def test_a_pattern_finds_its_topics(broker: Broker, topics: Topics, topic_name: str, table, checked) -> None:
    for end in ("1", "2", "x"):
        send(topics, f"{topic_name}-{end}", row(1))
    found = checked(pipeline(broker, table(), topic_name, topic_pattern=f"{topic_name}-[0-9]"))
    assert [each["topic"] for each in found.report["topics"]] == [f"{topic_name}-1", f"{topic_name}-2"]
    assert (found.code, found.report["messages"]) == (FITS, 2)


def test_a_table_without_a_window_gets_messages_at_least_once(broker: Broker, topics: Topics, topic_name: str, table, checked) -> None:
    send(topics, topic_name, row(1))
    found = checked(pipeline(broker, table(engine="Memory"), topic_name))
    assert (found.code, found.report["guarantee"]) == (FITS, "at least once")
    assert found.report["not_exactly_once"] == "its engine has no window of deduplication"


def test_a_broker_that_is_not_there(topic_name: str, table, checked) -> None:
    port = free_port()
    settings = {"brokers": [f"127.0.0.1:{port}"], "topics": [topic_name], "table": table(), "format": "CSV"}
    found = checked(settings)
    assert (found.code, found.report["verdict"]) == (UNKNOWN, "unknown")
    assert f"127.0.0.1:{port}" in found.report["unreachable"][0]
    assert [column["column"] for column in found.report["columns"]] == ["id", "name", "at", "n"], "the table is looked at all the same"


def test_a_backend_that_is_not_there(broker: Broker, topics: Topics, topic_name: str, tmp_path: Path) -> None:
    send(topics, topic_name, row(1))
    file = settings_file(tmp_path, f"http://u:p@127.0.0.1:{free_port()}", pipeline(broker, "d.t", topic_name))
    found = check("--config", file, "--json")
    assert found.code == UNKNOWN and "the table's backend can't be asked" in found.report["unreachable"][0], found
    assert found.report["topics"][0]["topic"] == topic_name


def test_a_wrong_password(broker: Broker, topic_name: str, table, checked) -> None:
    login = {"mechanism": "SCRAM-SHA-256", "user": "nobody", "password": "geheim"}
    where = table()
    wrong = {**pipeline(broker, where, topic_name), "brokers": [broker.secured("SASL_PLAINTEXT")["bootstrap.servers"]], "sasl": login}
    found = checked(wrong)
    assert found.code == UNKNOWN and "Authentication failed" in found.report["unreachable"][0], found
    assert "geheim" not in found.out + found.errors


def test_settings_that_are_wrong(checked, tmp_path: Path) -> None:
    found = checked({"brokers": ["b:1"], "topics": ["t"], "table": "t", "format": "Protobuf"})
    assert found.code == UNKNOWN and "the format Protobuf needs `schema_file`" in found.errors, found
    assert check("--json").code == UNKNOWN, "there is no pipeline to check"
    named = checked({"brokers": ["b:1"], "topics": ["t"], "table": "t", "format": "CSV", "name": "one"}, arguments=("two",))
    assert named.code == UNKNOWN and "no [[kafka]] entry is called `two`; there are: one" in named.errors


def test_a_pipeline_of_flags_alone(broker: Broker, topics: Topics, topic_name: str, table, direct: Endpoint, tmp_path: Path) -> None:
    send(topics, topic_name, {"number": 1, "name": "x", "at": 0})
    flags = {
        "--backend": backend_of(direct),
        "--data-dir": tmp_path / "data",
        "--brokers": broker.address,
        "--topics": topic_name,
        "--table": table(),
        "--format": "JSONEachRow",
        "--columns": "id=number",
        "--set": f"group={topic_name}",
    }
    found = check(*(word for flag in flags.items() for word in flag), "--json")
    assert (found.code, found.column("id")["from"], found.report["group"]) == (FITS, "the field number", topic_name), found
    secret = check(*(word for flag in flags.items() for word in flag), "--set", "sasl.password=geheim")
    assert secret.code == UNKNOWN and "everybody can see the arguments of a process" in secret.errors


def test_a_table_of_duckdb(broker: Broker, topics: Topics, topic_name: str, start_duckdb: Callable[..., Seen], tmp_path: Path) -> None:
    send(topics, topic_name, row(1), {**row(2), "n": "seven"})
    seen = start_duckdb()
    gateway = seen.gateway
    assert isinstance(gateway, DuckDbGateway)
    gateway.http.sql('CREATE TABLE checked (id UBIGINT, name VARCHAR, "at" TIMESTAMP, n INTEGER)')
    where = ["--config", gateway.config_path, "--backend", gateway.place, "--data-dir", gateway.data_dir]
    flags = ["--brokers", broker.address, "--topics", topic_name, "--table", "checked", "--format", "JSONEachRow", "--json"]
    library = {"WINDROW_DUCKDB_LIBRARY": str(duckdb_library())}
    # Its gateway has the file to itself, and is asked.
    beside = check(*where, "--http", f"{gateway.http.host}:{gateway.http.port}", *flags, **library)
    assert (beside.code, beside.report["guarantee"], beside.report["database"]) == (DOES_NOT_FIT, "exactly once", "default"), beside
    assert [each["columns"] for each in beside.report["refused"]] == [["n"]]
    assert gateway.stop() == 0
    alone = check(*where, *flags, **library)
    assert (alone.code, alone.report["refused"]) == (DOES_NOT_FIT, beside.report["refused"]), alone
