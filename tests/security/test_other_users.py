"""What is another user's stays his: sessions, query ids, repeats, appends, letters, and what the system's tables tell."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.duckdb import READER, DuckDbGateway
from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.gathered import metric
from harness.gateway import Gateway
from harness.inserts import HELD, HELD_NOT_WAITING, INTO_T, Background, ids, make_table, queued_inserts, rows
from harness.ordered import PATH, Append, native
from harness.raw_http import RawConnection, head
from harness.users import ANN, JOE

OWN_TABLES = ("asynchronous_inserts", "asynchronous_insert_log", "windrow_dead_letters", "windrow_kafka")
# Ways to name one, of which each is answered here or refused by ClickHouse, but never shows another one's rows.
SPELLINGS = (
    "SELECT toString(tuple(*)) FROM system.{}", "SELECT toString(tuple(*)) FROM `system`.`{}`", "SELECT toString(tuple(*)) FROM \"system\" . {} AS x",
    "SELECT toString(tuple(*)) FROM (SELECT * FROM system.{})", "WITH x AS (SELECT * FROM system.{}) SELECT toString(tuple(*)) FROM x",
    "SELECT toString(tuple(*)) FROM system.{} FINAL", "SELECT toString(tuple(*)) FROM merge('system', '{}')", "SELECT toString(tuple(*)) FROM remote('127.0.0.1', system.{})",
    "SELECT toString(tuple(*)) FROM numbers(1) AS n, system.{} AS x", "SELECT toString(tuple(*)) FROM system.{} UNION ALL SELECT toString(tuple(*)) FROM system.{}",
    "SELECT toString(tuple(*)) FROM cluster('default', system.{})", "EXPLAIN SELECT * FROM system.{}", "DESCRIBE TABLE system.{}", "SHOW CREATE TABLE system.{}",
)  # fmt: skip


def as_ann(endpoint: Endpoint) -> Endpoint:
    return endpoint.as_user(ANN.name, ANN.password)


def as_joe(endpoint: Endpoint) -> Endpoint:
    return endpoint.as_user(JOE.name, JOE.password)


@pytest.fixture
def secrets(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> Endpoint:
    """Inserts of the tester's in every state, all of which have `hers` in their names."""
    make_table(direct, "a UInt64, CONSTRAINT small CHECK a < 100")
    for number, name in ((1, "stored"), (1000, "letter")):
        assert tested.insert(INTO_T, rows(number), **HELD_NOT_WAITING, query_id=f"hers-{name}-{direct.database}").status == 200
    tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    assert tested.insert(INTO_T, rows(2), **HELD_NOT_WAITING, query_id=f"hers-queued-{direct.database}").status == 200
    yield tested
    tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_system_tables_show_nothing_of_others(secrets: Endpoint, spelling: str) -> None:
    for table in OWN_TABLES:
        query = spelling.format(*[table] * spelling.count("{}"))
        for other in (as_ann(secrets), as_joe(secrets)):
            for reply in (other.request(None, query.encode()), other.request(query, method="GET"), other.using("system").request(query.replace("system.", ""))):
                assert "hers-" not in reply.text and f"{secrets.database}" not in reply.text.replace("Code:", ""), reply.text


@pytest.mark.parametrize("table", OWN_TABLES)
def test_nobody_hears_nothing(secrets: Endpoint, table: str) -> None:
    for stranger in (secrets.as_user("nobody", "x"), secrets.as_user(ANN.name, "wrong"), secrets.as_user("", "")):
        reply = stranger.request(f"SELECT * FROM system.{table}")
        assert reply.status in (401, 403) or not reply.text, reply.text


@pytest.mark.parametrize("statement", [
    "KILL QUERY WHERE query_id = '{id}' SYNC", "KILL QUERY WHERE 1 ASYNC", "KILL QUERY WHERE user = 'tester' SYNC",
    "SELECT * FROM system.processes WHERE query_id = '{id}'",
])  # fmt: skip
def test_a_waiting_insert_of_another_one_is_not_stopped(gateway: Gateway, tested: Endpoint, direct: Endpoint, statement: str) -> None:
    make_table(direct)
    query_id = f"hers-{direct.database}"
    with Background(tested) as background:
        waiting = background.insert(rows(1), query_id=query_id, **HELD)
        eventually(lambda: queued_inserts(tested) == 1, "it waits")
        for other in (as_ann(tested), as_joe(tested), tested.as_user("nobody", "x")):
            reply = other.request(None, statement.format(id=query_id).encode())
            assert query_id not in reply.text, reply.text
            stolen = other.insert(INTO_T, rows(2), query_id=query_id, replace_running_query=1, replace_running_query_max_wait_ms=1)
            assert stolen.status != 200
        assert not waiting.answered()
        tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
        assert waiting.reply().status == 200
    assert ids(direct) == [1]


def test_a_session_of_the_same_name_is_another_one(tested: Endpoint, direct: Endpoint) -> None:
    """With what is set in it, its temporary tables, and its marks here."""
    make_table(direct, "a UInt64, s String")
    session = {"session_id": f"shared {direct.database}", "session_timeout": 60}
    hers = tested.request(None, b"CREATE TEMPORARY TABLE secret AS SELECT 'hers' AS s", session)
    assert hers.status == 200, hers.text
    assert tested.request(None, b"SET max_threads = 37", session).status == 200
    assert as_ann(tested).request(None, b"SELECT * FROM secret", session).code == 60
    threads = [user.request("SELECT getSetting('max_threads') = 37", settings=session).text for user in (tested, as_ann(tested))]
    assert threads == ["1\n", "0\n"]
    assert tested.request("SELECT s FROM secret", settings=session).text == "hers\n"


REPEATED = ("INSERT INTO t FORMAT JSONEachRow", "INSERT INTO t (a) FORMAT JSONEachRow", "INSERT INTO t SELECT 1")
# Who can't be told by what the request says is ClickHouse's to judge; but that is before anything is told.
UNCLEAR = (
    {"Authorization": "Bearer x"}, {"Authorization": "Basic bm9ib2R5Ong=", "X-ClickHouse-User": "joe"}, {"X-ClickHouse-User": "joe", "X-ClickHouse-SSL-Certificate-Auth": "on"}, {"Authorization": "Digest x"},
)  # fmt: skip


@pytest.mark.parametrize("settings", [{"async_insert": 1}, {"async_insert": 0}], ids=["gathered", "forwarded"])
@pytest.mark.parametrize("query", REPEATED, ids=["all", "one", "select"])
def test_who_may_not_insert_does_not_hear_that_others_did(gateway: Gateway, tested: Endpoint, direct: Endpoint, query: str, settings: dict) -> None:
    """A repeat is answered with success, and nothing is stored; not so for him."""
    make_table(direct)
    named = {"insert_deduplication_token": f"guessed {direct.database}", "deduplicate_insert": "enable", **settings}
    body = "" if "SELECT" in query else rows(1)
    for _ in range(2):
        assert tested.insert(query, body, **named).status == 200
        for other in (as_joe(tested), tested.as_user("nobody", "x"), tested.as_user(ANN.name, "wrong")):
            assert other.insert(query, body, **named).status in (401, 403, 500)
        for fields in UNCLEAR:
            with RawConnection(tested) as connection:
                sent = head("POST", tested.target(query, named), (("Host", "x"), *fields.items(), ("Content-Length", str(len(body)))))
                assert connection.exchange(sent + body.encode()).status >= 400, fields
    assert as_ann(tested).insert(query, body, **named).status == 200, "who may insert hears of it"
    assert ids(direct) == [1]


def test_who_may_not_insert_takes_no_token(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    """His insert is under way for as long as he likes, and an insert of the same token does not wait for it."""
    make_table(direct)
    named = {"insert_deduplication_token": "guessed", "deduplicate_insert": "enable", "async_insert": 0}
    for other in (as_joe(tested).basic_auth(), "Bearer x"):
        fields = (("Host", "x"), ("Authorization", other), ("Content-Length", "20000000"))
        with RawConnection(tested) as slow:
            slow.send(head("POST", tested.target("INSERT INTO t FORMAT RowBinary", named), fields) + b"\0" * 12_000_000)
            reply = tested.insert(INTO_T, rows(1), **named, wait_for_async_insert_timeout=5)
            assert reply.status == 200, reply.text
    assert ids(direct) == [1]


@pytest.fixture
def narrow(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> Iterator[Endpoint]:
    """The database where joe may insert into one column, which no grant of a whole table says."""
    # Tests of other files leave it behind: joe's grant names it.
    direct.sql("DROP DATABASE IF EXISTS narrow SYNC")
    direct.sql("CREATE DATABASE narrow")
    yield as_joe(tested).using("narrow")
    direct.sql("DROP DATABASE narrow")


ONE_COLUMN = "INSERT INTO t (a) FORMAT JSONEachRow"
# It is never gathered.
SELECTED = "INSERT INTO t (a) SELECT 1"
NO_WINDOW = "SETTINGS non_replicated_deduplication_window = 0"
MATERIALIZED = "a UInt64 MATERIALIZED 7, b UInt64"
# Columns and settings of a table, a statement and settings.
NARROW = {
    "a parameter": ("a UInt64, b UInt64", NO_WINDOW, "INSERT INTO t (* EXCEPT ({c:Identifier})) SELECT 1", {"param_c": "b"}),
    "a materialized column": (MATERIALIZED, NO_WINDOW, SELECTED, {"insert_allow_materialized_columns": 1}),
    "a materialized column by the statement": (MATERIALIZED, NO_WINDOW, SELECTED.replace("SELECT", "SETTINGS insert_allow_materialized_columns = 1 SELECT"), {}),
    "too many parts": ("a UInt64", NO_WINDOW + ", parts_to_throw_insert = 1", SELECTED, {}),
}


@pytest.mark.parametrize("name", NARROW)
def test_who_may_insert_one_column_is_told_of_his_repeat(narrow: Endpoint, direct: Endpoint, name: str) -> None:
    columns, settings_of_table, query, settings = NARROW[name]
    make_table(direct.using("narrow"), columns, settings=settings_of_table)
    for _ in range(2):
        reply = narrow.insert(query, "", insert_deduplication_token=f"his of {name}", deduplicate_insert="enable", **settings)
        assert reply.status == 200, reply.text
    assert ids(direct.using("narrow")) == [1]


# May insert one column, which no grant of a whole table says, and have so many queries at a time.
KIM = """
[[embedded.users]]
name = "kim"
password = "k"
grants = ["GRANT SELECT, INSERT(a) ON narrow.t"]
settings = {{ max_concurrent_queries_for_user = {} }}
"""


@contextmanager
def both_places_taken(direct: Endpoint) -> Iterator[None]:
    """By inserts of kim's own, past the gateway, which go on until it ends."""
    kim = direct.as_user("kim", "k")
    # ClickHouse begins a query when it has as much as a statement may have.
    first, last = b" " * 300_000, rows(7).encode()
    fields = (("Host", "x"), ("Authorization", kim.basic_auth()), ("Content-Length", str(len(first + last))))
    with RawConnection(kim) as one, RawConnection(kim) as other:
        for connection in (one, other):
            connection.send(head("POST", kim.target(ONE_COLUMN, {"async_insert": 0}), fields) + first)
        eventually(lambda: direct.sql("SELECT count() FROM system.processes WHERE user = 'kim'") == "2", "both are under way")
        yield
        for connection in (one, other):
            connection.send(last)
            assert connection.read_reply().status == 200


def test_an_insert_with_a_token_is_not_forwarded_while_nobody_knows_whose_it_is(start_gateway) -> None:
    """Whether the account is known already makes no difference."""
    gateway: Gateway = start_gateway(KIM.format(2))
    gateway.direct.sql("CREATE DATABASE narrow")
    there = gateway.direct.using("narrow")
    make_table(there)
    kim = gateway.http.as_user("kim", "k").using("narrow")
    named = {"insert_deduplication_token": "hers", "deduplicate_insert": "enable"}
    for _ in range(2):
        with both_places_taken(there):
            reply = kim.insert(SELECTED, "", **named)
            assert (reply.status, reply.headers.get("retry-after")) == (503, "1"), reply.text
            for settings in ({}, {**named, "deduplicate_insert": "disable"}):
                reply = kim.insert(SELECTED, "", **settings)
                assert (reply.status, reply.code) == (500, 202), "it needs no name, so ClickHouse refuses it itself"
        assert kim.insert(SELECTED, "", **named).status == 200
    assert ids(there) == [1, 7, 7, 7, 7]


def test_who_may_have_one_query_at_a_time_is_gathered(start_gateway) -> None:
    """The questions about her don't take each other's place."""
    gateway: Gateway = start_gateway(KIM.format(1))
    gateway.direct.sql("CREATE DATABASE narrow")
    make_table(gateway.direct.using("narrow"))
    kim = gateway.http.as_user("kim", "k").using("narrow")
    assert kim.insert(ONE_COLUMN, rows(1), async_insert=1).status == 200
    assert metric(gateway, "windrow_inserts", "narrow") == 1


def test_who_may_not_flush_holds_nobody_up_and_sends_nothing(tested: Endpoint, direct: Endpoint, gateway: Gateway) -> None:
    make_table(direct)
    assert tested.insert(INTO_T, rows(1), **HELD_NOT_WAITING).status == 200
    for other in (as_joe(tested), tested.as_user("nobody", "x")):
        for statement in ("SYSTEM FLUSH ASYNC INSERT QUEUE", f"SYSTEM FLUSH ASYNC INSERT QUEUE {direct.database}.t"):
            assert other.request(statement).status in (401, 403, 500)
    assert queued_inserts(tested) == 1
    tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")


def check_appends_are_their_openers(hers: Endpoint, others: list[Endpoint], table: str, count: str) -> None:
    append = Append(hers, table)
    assert append.put(0, native(a=[1])).status == 200
    for other in others:
        stolen = Append(other, table, append.id)
        answers = [stolen.ask("GET"), stolen.put(0, native(a=[7])), stolen.put(1, native(a=[8])), stolen.commit(1), stolen.abort()]
        answers += [stolen.ask("POST", "/commit", batches=2, table=f"{other.database}.{table}")]
        assert all(answer.status in (401, 403, 404, 409, 500) for answer in answers if b'"aborted"' not in answer.body), [answer.text for answer in answers]
        assert append.id not in other.request(None, method="GET", headers={}).text
        listing = Append(other, table, "").ask("GET")
        assert append.id not in listing.text, listing.text
    assert append.status()["state"] == "open"
    assert append.commit(1).status == 200
    assert hers.sql(count) == "1"
    for other in others:
        assert Append(other, table, append.id).ask("GET").status in (401, 403, 404, 500), "nor what became of it"


def test_an_append_is_its_openers(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    assert PATH.startswith("/windrow/")
    direct.sql("CREATE TABLE t (a Int64) ENGINE = MergeTree ORDER BY a")
    others = [as_ann(tested), as_joe(tested), tested.as_user("nobody", "x")]
    check_appends_are_their_openers(tested, others, "t", "SELECT count() FROM t")


OWNER, OTHER = ("default", "qJ7 owners"), ("other", "o")


@pytest.fixture(scope="module")
def duck_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDbGateway]:
    other = f'\n[[duckdb.users]]\nname = "{OTHER[0]}"\npassword = "{OTHER[1]}"\n'
    gateway = DuckDbGateway(tmp_path_factory.mktemp("others"), config=f"[duckdb]\ndefault_password = '{OWNER[1]}'\n{other}")
    (gateway.folder / "secret.csv").write_text("qJ7 kept\n")
    gateway.http.as_user(*OWNER).sql("CREATE TABLE t (a BIGINT)")
    yield gateway
    assert gateway.stop() == 0


@pytest.fixture
def duck(duck_server: DuckDbGateway) -> Endpoint:
    return duck_server.http.as_user(*OWNER)


PASSWORDS = ("", f"{OWNER[1]} ", f" {OWNER[1]}", OWNER[1][:-1], OWNER[1].upper(), f"{OWNER[1]}\0", "o", "r", "x" * 100_000)


def test_passwords_of_duckdbs_users(duck: Endpoint) -> None:
    for user in ("default", OTHER[0], READER[0], "", "DEFAULT", "default ", "nobody"):
        for password in PASSWORDS:
            if (user, password) in (OTHER, READER):
                continue
            stranger = duck.as_user(user, password)
            for reply in (stranger.request("SELECT 1"), stranger.insert("INSERT INTO t FORMAT TSV", "9\n"), stranger.request("SELECT a FROM t FORMAT Parquet")):
                assert reply.status in (401, 403), (user, password[:20], reply.text)
    assert duck.sql("SELECT count(*) FROM t WHERE a = 9") == "0"


# What a reader may not do, by any way of asking, and what nobody may: reach the machine's files, or change the server for everyone.
READERS_LIMITS = (
    "INSERT INTO t VALUES (9)", "DELETE FROM t", "UPDATE t SET a = 9", "TRUNCATE t", "CREATE TABLE u (a INT)", "CREATE OR REPLACE VIEW v AS SELECT 1", "DROP TABLE t", "ALTER TABLE t ADD COLUMN b INT",
    "EXPLAIN ANALYZE DELETE FROM t", "WITH x AS (SELECT 1) INSERT INTO t SELECT 9", "SELECT * FROM query('DELETE FROM t')", "PREPARE p AS DELETE FROM t", "CREATE TEMP TABLE x (a INT)",
    "SELECT 1; DELETE FROM t", "BEGIN", "CHECKPOINT", "VACUUM", "MERGE INTO t USING (SELECT 9 AS a) AS s ON false WHEN NOT MATCHED THEN INSERT VALUES (s.a)",
)  # fmt: skip
EVERYBODYS_LIMITS = (
    "SELECT content FROM read_text('{folder}/windrow.toml')", "SELECT * FROM read_csv('{folder}/secret.csv')", "SELECT * FROM '{folder}/secret.csv'", "FROM read_blob('{folder}/*')", "FROM glob('{folder}/*')",
    "SELECT * FROM sniff_csv('{folder}/secret.csv')", "COPY t TO '{folder}/out.csv'", "COPY t FROM '{folder}/secret.csv'", "EXPORT DATABASE '{folder}/out'", "IMPORT DATABASE '{folder}'", "ATTACH '{folder}/out.db'",
    "INSTALL httpfs", "LOAD httpfs", "SET GLOBAL enable_external_access = true", "RESET GLOBAL lock_configuration", "PRAGMA enable_external_access = true", "CREATE PERSISTENT SECRET s (TYPE s3)", "DETACH memory",
    "SELECT getenv('HOME')", "SELECT * FROM read_parquet('http://127.0.0.1:1/x')", "CREATE VIEW leak AS SELECT * FROM read_text('{folder}/windrow.toml')",
)  # fmt: skip


@pytest.mark.parametrize("statement", READERS_LIMITS)
def test_a_reader_changes_nothing(duck: Endpoint, statement: str) -> None:
    duck.sql("CREATE OR REPLACE TABLE t (a BIGINT)")
    duck.sql("INSERT INTO t VALUES (1)")
    reader = duck.as_user(*READER)
    for reply in (reader.request(None, statement.encode()), reader.request(statement, method="GET"), reader.request(statement, settings={"readonly": 0}), reader.request(statement + " FORMAT Parquet")):
        assert reply.status >= 400, reply.text
    assert duck.sql("SELECT a, (SELECT count(*) FROM duckdb_tables() WHERE table_name IN ('u', 'x')) FROM t") == "1\t0"


@pytest.mark.parametrize("statement", EVERYBODYS_LIMITS)
def test_the_machine_is_out_of_reach(duck_server: DuckDbGateway, duck: Endpoint, statement: str) -> None:
    before = sorted(Path(duck_server.folder).iterdir())
    for user in (duck, duck.as_user(*OTHER), duck.as_user(*READER)):
        for end in ("", " FORMAT Parquet"):
            reply = user.request(None, (statement.format(folder=duck_server.folder) + end).encode())
            assert reply.status >= 400 and "qJ7" not in reply.text, reply.text
    assert sorted(Path(duck_server.folder).iterdir()) == before


def test_on_duckdb_an_append_is_its_openers(duck: Endpoint) -> None:
    duck.sql("CREATE OR REPLACE TABLE mine (a BIGINT)")
    others = [duck.as_user(*OTHER), duck.as_user(*READER), duck.as_user("nobody", "x")]
    check_appends_are_their_openers(duck, others, "mine", "SELECT count(*) FROM mine")


def test_on_duckdb_system_tables_tell_a_reader_of_his_own(duck: Endpoint) -> None:
    """Who may write may see all, as with SHOW USERS."""
    assert duck.insert("INSERT INTO t FORMAT TSV", "5\n", query_id="hers-5").status == 200
    eventually(lambda: "hers-5" in duck.sql("SELECT query_id FROM system.asynchronous_insert_log"), "it is in the log")
    reader = duck.as_user(*READER)
    for table in OWN_TABLES[:3]:
        for query in (f"SELECT * FROM system.{table}", f'SELECT * FROM "system"."{table}"', f"WITH x AS (FROM system.{table}) SELECT * FROM x"):
            assert "hers-5" not in reader.request(None, query.encode()).text
