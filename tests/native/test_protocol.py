"""The native port, packet by packet: what it answers is what ClickHouse answers, and rows are stored whole or not at all."""

from __future__ import annotations

import json
import struct
from dataclasses import replace

import pytest

from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.native import (
    CANCEL,
    DATA,
    END_OF_STREAM,
    EXCEPTION,
    NEWEST,
    PING,
    PONG,
    PROFILE_EVENTS,
    QUERY,
    SERVER_DATA,
    TABLE_COLUMNS,
    Column,
    Native,
    frame,
    numbers,
    text,
    varint,
    with_checksum,
)

REVISIONS = (54429, 54447, 54455, 54456, 54459, 54460, 54468, 54470, 54474, 54479, 54480, 54481, 54485, 54488)
ROWS = "SELECT arraySort(groupArray(n)) FROM t"
MANY_COLUMNS = (
    "(n UInt64, `with space` LowCardinality(String) DEFAULT concat('a\\tb', toString(n)), e Enum8('a' = 1, 'b\\'' = 2), m UInt64 "
    "MATERIALIZED n + 1, a UInt64 ALIAS n, x String EPHEMERAL, d DateTime64(3, 'UTC') DEFAULT now64(), t Tuple(a UInt8, b String), "
    "j Nullable(Decimal(9, 2))) ENGINE = MergeTree ORDER BY n"
)


@pytest.fixture
def table(direct: Endpoint) -> str:
    direct.sql("CREATE TABLE t (n UInt64) ENGINE = MergeTree ORDER BY n")
    return "t"


def rows(direct: Endpoint) -> list[int]:
    return json.loads(direct.sql(ROWS))


def ask(endpoint: Endpoint, revision: int = NEWEST, compressed: bool = False, **more: object) -> Native:
    return Native(endpoint, revision, compressed=compressed, **more).start()


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_server_is_the_one_behind(native: Endpoint, direct_native: Endpoint, revision: int) -> None:
    with ask(native, revision) as ours, ask(direct_native, revision) as theirs:
        # But for the revision: nothing newer is spoken here.
        assert min(ours.agreed, revision) == min(theirs.agreed, revision, NEWEST)
        assert ours.greeting == theirs.greeting


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("revision", REVISIONS)
def test_an_insert_is_told_the_same_columns(
    direct: Endpoint, native: Endpoint, direct_native: Endpoint, revision: int, compressed: bool
) -> None:
    direct.sql(f"CREATE TABLE t {MANY_COLUMNS}")
    for sql in ("INSERT INTO t VALUES", "INSERT INTO t (t, n) FORMAT Native", "INSERT INTO t (* EXCEPT (n, e)) VALUES"):
        said = []
        for endpoint in (native, direct_native):
            with ask(endpoint, revision, compressed) as connection:
                said.append([(packet.kind, packet.body) for packet in connection.begin_insert(sql)])
                # ClickHouse 26.7 may abort when a client leaves in the middle of an insert.
                connection.send(connection.data())
                connection.up_to(END_OF_STREAM)
        assert said[0] == said[1]
        assert [kind for kind, _ in said[0]] == [TABLE_COLUMNS, SERVER_DATA]


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("revision", REVISIONS)
def test_rows_arrive(direct: Endpoint, native: Endpoint, table: str, revision: int, compressed: bool) -> None:
    with ask(native, revision, compressed) as connection:
        for attempt in range(2):
            packets = connection.insert("INSERT INTO t VALUES", [numbers("n", [attempt, 10 + attempt])], 2)
            assert packets[-1].kind == END_OF_STREAM, packets[-1]
    assert rows(direct) == [0, 1, 10, 11]


@pytest.mark.parametrize("revision", [54455, 54456, 54468, NEWEST])
def test_each_block_is_counted(direct: Endpoint, native: Endpoint, table: str, revision: int) -> None:
    """clickhouse-driver waits for a packet of counters for each of its blocks, and for one more at the end."""
    with ask(native, revision) as connection:
        connection.begin_insert("INSERT INTO t VALUES", {"send_profile_events": "0"})
        expected = revision >= 54456
        for block in range(3):
            connection.send(connection.data([numbers("n", [block])], 1))
            if expected:
                assert connection.packet().kind == PROFILE_EVENTS
        assert rows(direct) == [], "nothing before the end"
        connection.send(connection.data())
        kinds = [packet.kind for packet in connection.up_to(END_OF_STREAM)]
        assert kinds.count(PROFILE_EVENTS) == expected
    assert rows(direct) == [0, 1, 2]


def test_a_block_of_no_rows_is_not_the_end(direct: Endpoint, native: Endpoint, table: str) -> None:
    with ask(native) as connection:
        connection.begin_insert("INSERT INTO t VALUES")
        connection.send(connection.data([numbers("n", [])], 0) + connection.data([numbers("n", [5])], 1) + connection.data())
        assert connection.up_to(END_OF_STREAM, EXCEPTION)[-1].kind == END_OF_STREAM
    assert rows(direct) == [5]


def test_the_addendum_may_come_with_the_first_packet(direct: Endpoint, native: Endpoint, table: str) -> None:
    with Native(native) as connection:
        connection.send(connection.hello())
        connection.packet(greeting=True)
        connection.send(connection.addendum() + varint(PING))
        assert connection.packet().kind == PONG


@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
@pytest.mark.parametrize("framing", [("chunked", "notchunked"), ("notchunked", "chunked"), ("chunked", "chunked")])
def test_packets_may_come_in_chunks(
    direct: Endpoint, native: Endpoint, table: str, framing: tuple[str, str], chunk: int
) -> None:
    with ask(native, framing=framing) as connection:
        assert connection.offered_framing == ("notchunked_optional", "notchunked_optional")
        connection.begin_insert("INSERT INTO t VALUES")
        for packet in (connection.data([numbers("n", [1, 2])], 2), varint(PING), connection.data()):
            connection.send(packet, chunk)
        kinds = [packet.kind for packet in connection.up_to(END_OF_STREAM)]
        assert PONG in kinds
        assert rows(direct) == [1, 2]
        # What is passed on: a statement, an insert, an error.
        for sql in ("SELECT number FROM numbers(100000)", "CREATE TABLE u AS t", "INSERT INTO u SELECT n + 10 FROM t"):
            connection.send(connection.query(sql), chunk)
            connection.send(connection.data(), chunk)
            assert connection.up_to(END_OF_STREAM, EXCEPTION)[-1].kind == END_OF_STREAM
        assert connection.begin_insert("INSERT INTO nowhere VALUES")[-1].code == 60
        assert connection.insert("INSERT INTO u VALUES", [numbers("n", [5])], 1, {"async_insert": "0"})[-1].kind == END_OF_STREAM
    assert json.loads(direct.sql("SELECT arraySort(groupArray(n)) FROM u")) == [5, 11, 12]


def test_a_chunked_packet_has_bytes(native: Endpoint) -> None:
    with ask(native, framing=("chunked", "notchunked")) as connection:
        connection.socket.sendall(bytes(4))
        assert connection.closed()


@pytest.mark.parametrize("end", ["close", "cancel"])
def test_without_its_end_nothing_is_stored(direct: Endpoint, native: Endpoint, table: str, end: str) -> None:
    with ask(native) as connection:
        connection.begin_insert("INSERT INTO t VALUES")
        connection.send(connection.data([numbers("n", [1, 2])], 2))
        assert connection.packet().kind == PROFILE_EVENTS
        if end == "cancel":
            connection.send(varint(CANCEL))
            assert connection.up_to(END_OF_STREAM, EXCEPTION)[-1].kind == END_OF_STREAM
            assert connection.insert("INSERT INTO t VALUES", [numbers("n", [3])], 1)[-1].kind == END_OF_STREAM
    with ask(native) as connection:
        connection.insert("INSERT INTO t VALUES", [numbers("n", [4])], 1)
    assert rows(direct) == ([3, 4] if end == "cancel" else [4])


def test_pings_are_answered_at_any_time(direct: Endpoint, native: Endpoint, table: str) -> None:
    with ask(native) as connection:
        connection.begin_insert("INSERT INTO t VALUES")
        connection.send(varint(PING))
        assert connection.packet().kind == PONG
        connection.send(connection.data([numbers("n", [1])], 1) + varint(PING))
        assert [connection.packet().kind for _ in range(2)] == [PROFILE_EVENTS, PONG]
        connection.send(connection.data() + varint(PING))
        kinds = [packet.kind for packet in connection.up_to(END_OF_STREAM)]
        if PONG not in kinds:
            kinds.append(connection.packet().kind)
        assert PONG in kinds
    assert rows(direct) == [1]


def test_every_truncation_ends_without_a_row(direct: Endpoint, native: Endpoint, table: str) -> None:
    with ask(native) as whole:
        start = whole.query("INSERT INTO t VALUES", {"log_comment": "x"}) + whole.data()
        blocks = whole.data([numbers("n", [1, 2, 3])], 3) + whole.data()
        hello, addendum = whole.hello(), whole.addendum()
    for end in range(len(hello)):
        with Native(native) as connection:
            connection.send(hello[:end])
    said = addendum + start + blocks
    for end in range(len(said)):
        with Native(native) as connection:
            connection.send(hello)
            connection.packet(greeting=True)
            connection.send(said[:end])
    with ask(native) as connection:
        assert connection.insert("INSERT INTO t VALUES", [numbers("n", [9])], 1)[-1].kind == END_OF_STREAM
    assert rows(direct) == [9]


def test_a_statement_inside_an_insert_is_unexpected(direct: Endpoint, native: Endpoint, table: str) -> None:
    with ask(native) as connection:
        connection.begin_insert("INSERT INTO t VALUES")
        connection.send(connection.query("SELECT 1"))
        assert connection.up_to(EXCEPTION)[-1].code == 101
        assert connection.closed()


@pytest.mark.parametrize(("fault", "code"), [("checksum", 40), ("codec", 432), ("size", 271)])
def test_damaged_frames_are_refused(direct: Endpoint, native: Endpoint, table: str, fault: str, code: int) -> None:
    with ask(native, compressed=True) as connection:
        connection.begin_insert("INSERT INTO t VALUES")
        block = connection.block([numbers("n", [1])], 1)
        match fault:
            case "checksum":
                packed = bytearray(frame(block))
                packed[-1] ^= 1
            case "codec":
                packed = frame(block, 0x91)
            case "size":
                checked = bytes([2]) + struct.pack("<II", len(block) + 9, len(block) + 1) + block
                packed = with_checksum(checked)
        connection.send(varint(DATA) + text("") + bytes(packed))
        assert connection.up_to(EXCEPTION)[-1].code == code
    assert rows(direct) == []


@pytest.mark.parametrize(
    ("first", "answer"),
    [(b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.0 400 Bad Request"), (b"POST / HTTP/1.1\r\n\r\n", b"HTTP/1.0 400 Bad Request")],
)
def test_http_is_told_the_right_port(server, native: Endpoint, first: bytes, answer: bytes) -> None:
    with Native(native) as connection:
        connection.send(first)
        said = b""
        while more := connection.socket.recv(4096):
            said += more
    assert said.startswith(answer)
    assert f"You must use port {server.http.port} for HTTP.".encode() in said


@pytest.mark.parametrize("first", [b"\x16\x03\x01\x02\x00\x01", b"\x01\x02\x03\x04", b"hello\r\n", b"\xff" * 64])
def test_rubbish_is_refused(native: Endpoint, first: bytes) -> None:
    with Native(native) as connection:
        connection.send(first)
        packet = connection.packet()
        assert (packet.kind, packet.code) in ((EXCEPTION, 101), (EXCEPTION, 117))
        assert connection.closed()


def test_long_names_are_refused(native: Endpoint) -> None:
    with Native(native) as connection:
        connection.send(varint(0) + varint(1 << 40))
        assert connection.packet().kind == EXCEPTION
        assert connection.closed()


# As ClickHouse 26.7 words them. It is not asked here: as a library it aborts when it refuses a native client.
WRONG_PASSWORD = "DB::Exception: {}: Authentication failed: password is incorrect, or there is no user with such name"
UNKNOWN_DATABASE = "DB::Exception: Database not_there does not exist"


@pytest.mark.parametrize("who", [{"user": "tester", "password": "wrong"}, {"user": "nobody_of_this_name", "password": ""}])
def test_a_wrong_password_is_refused_as_clickhouse_does(server, native: Endpoint, who: dict[str, str]) -> None:
    with Native(native, **who) as connection:
        connection.send(connection.hello())
        packet = connection.packet(greeting=True)
        assert (packet.kind, packet.code, packet.message) == (EXCEPTION, 516, WRONG_PASSWORD.format(who["user"]))
        assert connection.closed()
    assert server.direct.answers()


def test_an_unknown_database_is_refused_as_clickhouse_does(server, native: Endpoint) -> None:
    with Native(replace(native, database="not_there")) as connection:
        connection.send(connection.hello())
        packet = connection.packet(greeting=True)
        assert (packet.kind, packet.code, packet.message) == (EXCEPTION, 81, UNKNOWN_DATABASE)
        assert connection.closed()
    assert server.direct.answers()


@pytest.mark.parametrize(("user", "word"), [(" SSH KEY AUTHENTICATION joe", "SSH"), (" INTERSERVER SECRET ", "remote_servers")])
def test_other_proofs_are_refused_with_a_sentence(native: Endpoint, user: str, word: str) -> None:
    with Native(native, user=user, password="") as connection:
        connection.send(connection.hello())
        packet = connection.packet()
        assert (packet.kind, packet.code) == (EXCEPTION, 516)
        assert word in packet.message


def test_errors_are_the_ones_of_clickhouse(direct: Endpoint, native: Endpoint, direct_native: Endpoint, table: str) -> None:
    direct.sql("CREATE TABLE narrow (n UInt64, CONSTRAINT few CHECK n < 5) ENGINE = MergeTree ORDER BY n")
    said = []
    for endpoint in (native, direct_native):
        with ask(endpoint) as connection:
            errors = []
            for sql in ("INSERT INTO nowhere VALUES", "INSERT INTO t (z) VALUES", "INSERT INTO system.one VALUES", "INSERT INTO"):
                packet = connection.begin_insert(sql)[-1]
                errors.append((packet.kind, packet.code, packet.message))
            packet = connection.insert("INSERT INTO narrow VALUES", [numbers("n", [9])], 1)[-1]
            errors.append((packet.kind, packet.code, packet.message))
            # The connection goes on.
            assert connection.insert("INSERT INTO t VALUES", [numbers("n", [1])], 1)[-1].kind == END_OF_STREAM
            said.append(errors)
    assert said[0] == said[1]


@pytest.mark.parametrize("important", [False, True])
def test_an_unknown_setting_counts_if_it_is_important(
    native: Endpoint, direct_native: Endpoint, direct: Endpoint, table: str, important: bool
) -> None:
    said = []
    for endpoint in (native, direct_native):
        with ask(endpoint) as connection:
            packet = connection.begin_insert("INSERT INTO t VALUES", {"no_such_setting": "1"}, important=important)[-1]
            said.append((packet.kind, packet.code))
            if packet.kind == SERVER_DATA:
                connection.send(connection.data())
                connection.up_to(END_OF_STREAM)
    assert said[0] == said[1] == ((EXCEPTION, 115) if important else (SERVER_DATA, None))


#: They say something in a URL, and nothing among a statement's settings.
OF_A_URL = ("role", "database", "query", "query_id", "session_id", "user", "password", "quota_key", "default_format", "param_x")


@pytest.mark.parametrize("important", [False, True])
@pytest.mark.parametrize("name", OF_A_URL)
def test_a_setting_with_the_name_of_a_parameter(
    native: Endpoint, direct_native: Endpoint, direct: Endpoint, table: str, name: str, important: bool
) -> None:
    said = []
    for endpoint in (native, direct_native):
        with ask(endpoint) as connection:
            packet = connection.begin_insert("INSERT INTO t VALUES", {name: "nobody"}, important=important)[-1]
            told = (packet.kind, packet.code)
            if packet.kind == SERVER_DATA:
                connection.send(connection.data([numbers("n", [1])], 1) + connection.data())
                told = (connection.up_to(END_OF_STREAM, EXCEPTION)[-1].kind, None)
            said.append((told, rows(direct)))
            direct.sql("TRUNCATE TABLE t")
    assert said[0] == said[1]


def test_one_shape_one_batch(server, tested: Endpoint, native: Endpoint, direct: Endpoint, table: str) -> None:
    """A native insert and one over HTTP are stored in the same part."""
    settings = {"async_insert_busy_timeout_min_ms": "400", "async_insert_busy_timeout_max_ms": "400", "wait_for_async_insert": "0"}
    settings["async_insert_use_adaptive_busy_timeout"] = "0"
    with ask(native) as connection:
        assert connection.insert("INSERT INTO t VALUES", [numbers("n", [1])], 1, settings)[-1].kind == END_OF_STREAM
        assert tested.insert("INSERT INTO t FORMAT JSONEachRow", '{"n": 2}', **settings).status == 200
    eventually(lambda: rows(direct) == [1, 2], "both are stored")
    assert direct.sql("SELECT count() FROM system.parts WHERE database = currentDatabase() AND table = 't'") == "1"


def test_a_token_is_known_whatever_it_came_by(native: Endpoint, tested: Endpoint, direct: Endpoint) -> None:
    direct.sql(
        "CREATE TABLE t (n UInt64) ENGINE = MergeTree ORDER BY n SETTINGS non_replicated_deduplication_window = 100"
    )
    token = {"insert_deduplication_token": "one"}
    with ask(native) as connection:
        for _ in range(3):
            assert connection.insert("INSERT INTO t VALUES", [numbers("n", [1])], 1, token)[-1].kind == END_OF_STREAM
        assert tested.insert("INSERT INTO t FORMAT JSONEachRow", '{"n": 1}', **token).status == 200
    assert rows(direct) == [1]


def test_types_that_differ_are_cast_as_clickhouse_casts_them(
    native: Endpoint, direct_native: Endpoint, direct: Endpoint
) -> None:
    stored = []
    for endpoint in (native, direct_native):
        direct.sql("CREATE OR REPLACE TABLE t (n UInt64, s LowCardinality(String)) ENGINE = MergeTree ORDER BY n")
        with ask(endpoint) as connection:
            columns = [
                Column("s", "String", text("a") + text("bc")),
                Column("n", "Int16", struct.pack("<hh", 3, 4)),
                Column("not_there", "UInt8", b"\x00\x01"),
            ]
            last = connection.insert("INSERT INTO t VALUES", columns, 2)[-1]
            only_n = connection.insert("INSERT INTO t VALUES", [numbers("n", [7])], 1)[-1]
            stored.append(((last.kind, last.code), (only_n.kind, only_n.code), direct.sql("SELECT * FROM t ORDER BY n")))
    assert stored[0] == stored[1]


def test_sparse_columns_are_taken(native: Endpoint, direct: Endpoint, table: str) -> None:
    with ask(native) as connection:
        connection.begin_insert("INSERT INTO t VALUES")
        offsets = varint(2) + varint(0) + varint(1 | 1 << 62)
        column = text("n") + text("UInt64") + b"\x01\x01" + offsets + struct.pack("<QQ", 7, 8)
        connection.send(varint(DATA) + text("") + connection.block()[:-2] + varint(1) + varint(5) + column + connection.data())
        assert connection.up_to(END_OF_STREAM, EXCEPTION)[-1].kind == END_OF_STREAM
    assert rows(direct) == [0, 0, 0, 7, 8]


def test_packets_that_nobody_sends(native: Endpoint) -> None:
    for kind, code in ((0, 101), (DATA, 101), (6, 99), (77, 99)):
        with ask(native) as connection:
            connection.send(varint(kind))
            packet = connection.packet()
            assert (packet.kind, packet.code) == (EXCEPTION, code)
            assert connection.closed()
    with ask(native) as connection:
        connection.send(varint(CANCEL) + varint(PING))
        assert connection.packet().kind == PONG, "there was nothing to cancel"


def test_a_query_that_can_not_be_read_is_refused(native: Endpoint) -> None:
    with ask(native) as connection:
        connection.send(varint(QUERY) + text("") + b"\x09")
        packet = connection.packet()
        assert (packet.kind, packet.code) == (EXCEPTION, 117)
        assert connection.closed()


def test_a_large_insert_that_is_stored_already_is_acknowledged(tested: Endpoint, native: Endpoint, direct: Endpoint) -> None:
    """Too large to be gathered, it is read to its end, and nothing of it is kept. (The table itself knows no repeats.)"""
    direct.sql("CREATE TABLE t (n UInt64) ENGINE = MergeTree ORDER BY n")
    token = {"insert_deduplication_token": "large"}
    blocks = [range(start, start + 1000) for start in range(0, 5000, 1000)]
    assert tested.insert("INSERT INTO t SELECT number FROM numbers(5000)", b"", **token).status == 200
    with ask(native) as connection:
        for _ in range(2):
            connection.begin_insert("INSERT INTO t VALUES", {**token, "async_insert_max_data_size": "1000"})
            for block in blocks:
                connection.send(connection.data([numbers("n", block)], len(block)))
            connection.send(connection.data())
            kinds = [packet.kind for packet in connection.up_to(END_OF_STREAM, EXCEPTION)]
            assert kinds[-1] == END_OF_STREAM
            assert kinds.count(PROFILE_EVENTS) == len(blocks) + 1
    assert direct.sql("SELECT count(), uniqExact(n) FROM t") == "5000\t5000"


def test_the_log_tells_blocks_from_text(native: Endpoint, tested: Endpoint, table: str) -> None:
    with ask(native) as connection:
        assert connection.insert("INSERT INTO t VALUES", [numbers("n", [1])], 1, query_id="of blocks")[-1].kind == END_OF_STREAM
        connection.send(connection.query("INSERT INTO t VALUES (2)", query_id="of text") + connection.data())
        connection.up_to(END_OF_STREAM)
    assert tested.insert("INSERT INTO t FORMAT Native", b"\1\1\1n\6UInt64" + bytes(8), query_id="over http").status == 200
    log = tested.sql(
        "SELECT query_id, data_kind, format, query FROM system.asynchronous_insert_log WHERE query_id IN ('of blocks', 'of text', "
        "'over http') ORDER BY query_id"
    )
    shown = [line.split("\t") for line in log.splitlines()]
    assert [line[:3] for line in shown] == [
        ["of blocks", "Preprocessed", "Native"],
        ["of text", "Parsed", "Values"],
        ["over http", "Parsed", "Native"],
    ]
    assert shown[0][3].upper().endswith("FORMAT VALUES"), "the statement is the client's"


@pytest.mark.parametrize("compressed", [False, True])
def test_own_tables_are_read_natively(native: Endpoint, tested: Endpoint, table: str, compressed: bool) -> None:
    with ask(native, compressed=compressed) as connection:
        assert connection.insert("INSERT INTO t VALUES", [numbers("n", [7])], 1, query_id=f"q{compressed}")[-1].kind == END_OF_STREAM
        sql = f"SELECT count() FROM system.asynchronous_insert_log WHERE query_id = 'q{compressed}'"
        connection.send(connection.query(sql) + connection.data())
        blocks = [packet.body for packet in connection.up_to(END_OF_STREAM, EXCEPTION) if packet.kind == SERVER_DATA]
        assert struct.pack("<Q", 1) == blocks[-1][-8:]
        # The session goes on.
        assert connection.insert("INSERT INTO t VALUES", [numbers("n", [8])], 1)[-1].kind == END_OF_STREAM
    assert rows(tested) == [7, 8]


@pytest.mark.parametrize(("kind", "code"), [(QUERY, 101), (8, 101), (77, 99)])
def test_packets_among_the_blocks_that_are_none(native: Endpoint, direct: Endpoint, table: str, kind: int, code: int) -> None:
    with ask(native) as connection:
        connection.begin_insert("INSERT INTO t VALUES")
        connection.send(connection.data([numbers("n", [1])], 1) + varint(kind))
        assert connection.up_to(EXCEPTION)[-1].code == code
        assert connection.closed()
    assert rows(direct) == []


def test_own_tables_are_read_whatever_format_is_named(native: Endpoint, tested: Endpoint) -> None:
    """What stands behind FORMAT is a native client's own business."""
    with ask(native) as connection:
        for tail in ("", " FORMAT Vertical", " SETTINGS max_threads = 1 FORMAT JSON ;"):
            connection.send(connection.query(f"SELECT count() AS id FROM system.windrow_dead_letters{tail}") + connection.data())
            packets = connection.up_to(END_OF_STREAM, EXCEPTION)
            assert packets[-1].kind == END_OF_STREAM, packets[-1]
            assert any(b"\x02id" in packet.body for packet in packets if packet.kind == SERVER_DATA)


def test_own_tables_are_not_read_where_names_mean_something_else(native: Endpoint, tested: Endpoint) -> None:
    with ask(native) as connection:
        connection.send(connection.query("CREATE TEMPORARY TABLE kept (id String)") + connection.data())
        connection.up_to(END_OF_STREAM)
        connection.send(connection.query("INSERT INTO kept SELECT id FROM system.windrow_dead_letters") + connection.data())
        assert connection.up_to(END_OF_STREAM, EXCEPTION)[-1].code == 60


def test_a_ping_right_behind_a_statement_that_is_waited_for(native: Endpoint, tested: Endpoint) -> None:
    with ask(native) as connection:
        for statement in ("SET max_threads = 1", "CREATE TABLE p (n UInt64) ENGINE = Null", "SET max_threads = 2"):
            connection.send(connection.query(statement) + connection.data() + varint(PING))
            packets = connection.up_to(PONG)
            # Both are answered, in whichever order, and nothing is left over.
            connection.send(varint(PING))
            packets += connection.up_to(PONG)
            assert [packet.kind for packet in packets].count(END_OF_STREAM) == 1
