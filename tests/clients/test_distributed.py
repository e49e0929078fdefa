"""ClickHouse as a client: a server whose `remote_servers` name Windrow's native port in place of another ClickHouse's.

A second engine has two clusters of one shard each, the backend straight and through the gateway. Whatever it does by the
one has to come out as by the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from clients.expected_routes import DISTRIBUTED
from clients.routes import Routes
from clients.run_program import ProgramReport
from harness.clusters import CHUNKED, WRONG, cluster_xml, remote_servers
from harness.endpoint import ClickHouseError, Endpoint
from harness.engine import Engine
from harness.eventually import eventually
from harness.gateway import Gateway
from harness.users import TESTER

SIDES = ("straight", "through")
# The sender knows nothing of the last two: their values are the shard's to compute.
SENT = "id UInt64, s String, kind LowCardinality(Nullable(String)), tags Array(Nullable(Int32)), at DateTime64(3, 'UTC')"
COLUMNS = "id, s, kind, tags, at"
STORED = f"{SENT}, added UInt64 DEFAULT id + 1, made String MATERIALIZED concat(s, '!')"
ROWS = (
    "SELECT number AS id, concat('text ', toString(number)) AS s, if(number % 2, NULL, 'k') AS kind, [NULL, number] AS tags,"
    " toDateTime64(number, 3, 'UTC') AS at FROM numbers({})"
)
FEW, MANY = ROWS.format(10), ROWS.format(100_000)
# More than a batch may have (10 MiB).
LARGE = ROWS.replace("concat('text ', toString(number))", "repeat(toString(number), 60)").format(50_000)
# A sender's blocks have sparse columns if its tables do.
SPARSE = "SELECT * FROM sparse_source"
FOREGROUND, BACKGROUND = {"distributed_foreground_insert": 1}, {"distributed_foreground_insert": 0}
WAYS = {
    "foreground": (FEW, FOREGROUND),
    "foreground_waiting": (FEW, {**FOREGROUND, "async_insert": 1}),
    "foreground_not_waiting": (FEW, {**FOREGROUND, "async_insert": 1, "wait_for_async_insert": 0}),
    "foreground_off": (FEW, {**FOREGROUND, "async_insert": 0}),
    "background": (FEW, BACKGROUND),
    "background_waiting": (FEW, {**BACKGROUND, "async_insert": 1}),
    "background_off": (FEW, {**BACKGROUND, "async_insert": 0}),
    "rows_in_text": ("VALUES (1, 'it''s', NULL, [NULL, 7], 1.5), (2, '', 'k', [], 0)", FOREGROUND),
    "many": (MANY, FOREGROUND),
    "many_in_background": (MANY, BACKGROUND),
    "small_blocks": (ROWS.format(1000), {**FOREGROUND, "max_block_size": 10, "min_insert_block_size_rows": 10}),
    "large": (LARGE, FOREGROUND),
    "large_in_background": (LARGE, BACKGROUND),
    "sparse": (SPARSE, FOREGROUND),
    "sparse_in_background": (SPARSE, BACKGROUND),
    "packed_not": (FEW, {**FOREGROUND, "network_compression_method": "NONE"}),
    "packed_zstd": (FEW, {**FOREGROUND, "network_compression_method": "ZSTD"}),
    "traced": (FEW, {**FOREGROUND, "opentelemetry_start_trace_probability": 1}),
    "logged": (FEW, {**FOREGROUND, "send_logs_level": "trace"}),
    # Between two tables of one cluster the shard itself is asked to do it.
    "selected": ("SELECT * FROM {side}_foreground", {**FOREGROUND, "parallel_distributed_insert_select": 2}),
}
TYPED = "id UInt64, j JSON, d Dynamic, v Variant(UInt64, String), few AggregateFunction(uniq, UInt64)"
TYPED_ROWS = (
    "SELECT number AS id, '{{\"a\": 1}}'::JSON AS j, number::Dynamic AS d, number::Variant(UInt64, String) AS v,"
    " initializeAggregation('uniqState', number) AS few FROM numbers(10)"
)
ALL_BUT_STATES = "SELECT id, j, d, v, finalizeAggregation(few) FROM {} ORDER BY id"
READS = (
    "SELECT count() FROM {t}",
    "SELECT * FROM {t} ORDER BY id LIMIT 100",
    "SELECT kind, count(), uniq(s), sum(added) FROM {t} GROUP BY kind ORDER BY kind",
    "SELECT id % 3 AS third, count() FROM {t} GROUP BY third WITH TOTALS ORDER BY third SETTINGS extremes = 1",
    "SELECT sum(id), max(made) FROM {t} WHERE id GLOBAL IN (SELECT number * 7 FROM numbers(1000))",
    "SELECT count() FROM {t} AS t GLOBAL JOIN (SELECT number AS id FROM numbers(10)) AS few USING id",
    "SELECT s FROM {t} WHERE id = (SELECT max(number) FROM numbers(10))",
    "SELECT s FROM {t} WHERE id = (SELECT max(number) FROM numbers(10)) SETTINGS enable_analyzer = 0",
    # What is left of it is cancelled.
    "SELECT 1 FROM {t} LIMIT 1 SETTINGS max_block_size = 10",
    "SELECT quantiles(0.5, 0.9)(id), groupUniqArray(3)(kind) FROM {t} SETTINGS distributed_group_by_no_merge = 1",
    "SELECT throwIf(id = 15000) FROM {t} FORMAT Null",
    "SELECT not_there FROM {t}",
)


@pytest.fixture(scope="module")
def ports(server: Engine | Gateway) -> dict[str, int]:
    straight = server.direct_native_port if isinstance(server, Gateway) else server.native_port
    return {"straight": straight, "through": server.native_port}


@pytest.fixture(scope="module")
def sending_engine(ports: dict[str, int], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    gateway = ports["through"]
    others = [
        cluster_xml("wrong_password", gateway, WRONG),
        cluster_xml("with_secret", gateway, None, "of the cluster"),
        cluster_xml("chunked", gateway, more=CHUNKED),
    ]
    config = remote_servers([*(cluster_xml(side, ports[side]) for side in SIDES), *others])
    engine = Engine(tmp_path_factory.mktemp("sender"), config=config)
    yield engine
    engine.stop()


@pytest.fixture
def sender(sending_engine: Engine, database: str) -> Iterator[Endpoint]:
    """In a database of the same name as the backend's."""
    sending_engine.direct.sql(f"CREATE DATABASE {database}")
    yield sending_engine.direct.using(database)
    sending_engine.direct.sql(f"DROP DATABASE {database} SYNC")


def make(sender: Endpoint, shard: Endpoint, way: str, sent: str = SENT, stored: str = STORED) -> None:
    """A table at the shard for each side, and what sends there."""
    for side in SIDES:
        shard.sql(f"CREATE TABLE {shard_table(side, way)} ({stored}) ENGINE = MergeTree ORDER BY id")
        target = f"{side}, {shard.database}, {shard_table(side, way)}"
        sender.sql(f"CREATE TABLE {side}_{way} ({sent}) ENGINE = Distributed({target})")


def shard_table(side: str, way: str) -> str:
    """The gateway counts by table: what comes straight is in others."""
    return way if side == "through" else f"straight_{way}"


def digest(shard: Endpoint, side: str, way: str) -> str:
    everything = {"asterisk_include_materialized_columns": 1}
    return shard.sql(f"SELECT count(), sum(cityHash64(toString(tuple(*)))) FROM {shard_table(side, way)}", **everything)


def same_rows(shard: Endpoint, way: str) -> None:
    expected = digest(shard, "straight", way)
    assert not expected.startswith("0\t"), "nothing came straight"
    eventually(lambda: digest(shard, "through", way) == expected, f"the rows of {way} are those that came straight")


def test_inserts(server, sender: Endpoint, direct: Endpoint, subtests: pytest.Subtests) -> None:
    routes = Routes(server, direct)
    few_values = "ENGINE = MergeTree ORDER BY id SETTINGS ratio_of_defaults_for_sparse_serialization = 0.5"
    sender.sql(f"CREATE TABLE sparse_source ({SENT}) {few_values}")
    sender.sql("INSERT INTO sparse_source (id, s) SELECT number, if(number % 50 = 0, 'x', '') FROM numbers(2000)")
    for way, (source, settings) in WAYS.items():
        make(sender, direct, way)
        with subtests.test(way):
            for side in SIDES:
                sender.sql(f"INSERT INTO {side}_{way} {source.format(side=side)}", **settings)
                sender.sql(f"SYSTEM FLUSH DISTRIBUTED {side}_{way}")
            same_rows(direct, way)
    routes.expect(ProgramReport([], dict.fromkeys(WAYS, 1)), {way: DISTRIBUTED[way] for way in WAYS}, subtests)


def test_other_inserts(
    server, sender: Endpoint, direct: Endpoint, ports: dict[str, int], subtests: pytest.Subtests
) -> None:
    routes = Routes(server, direct)
    login = f"'{TESTER.name}', '{TESTER.password}'"
    with subtests.test("by the table function"):
        make(sender, direct, "by_function")
        for side in SIDES:
            where = f"'127.0.0.1:{ports[side]}', {direct.database}, {shard_table(side, 'by_function')}, {login}"
            sender.sql(f"INSERT INTO FUNCTION remote({where}) (id, s) SELECT number, 'x' FROM numbers(10)")
        same_rows(direct, "by_function")
    with subtests.test("computed by the sender"):
        make(sender, direct, "computed", sent=STORED)
        for side in SIDES:
            sender.sql(f"INSERT INTO {side}_computed (id, s, kind, tags, at) {FEW}", **FOREGROUND)
        same_rows(direct, "computed")
    with subtests.test("other types than the shard's"):
        make(sender, direct, "other_types", sent="id UInt64, n String", stored="id Int32, n UInt8, more String DEFAULT 'm'")
        for side in SIDES:
            sender.sql(f"INSERT INTO {side}_other_types VALUES (1, '7'), (70000, '255')", **FOREGROUND)
        same_rows(direct, "other_types")
    with subtests.test("types that nobody but ClickHouse reads"):
        make(sender, direct, "typed", TYPED, TYPED)
        for settings in (FOREGROUND, BACKGROUND):
            for side in SIDES:
                sender.sql(f"INSERT INTO {side}_typed {TYPED_ROWS.format()}", **settings)
                sender.sql(f"SYSTEM FLUSH DISTRIBUTED {side}_typed")
        rows = {side: direct.sql(ALL_BUT_STATES.format(shard_table(side, "typed"))) for side in SIDES}
        assert rows["straight"] == rows["through"] != ""
        assert sender.sql(ALL_BUT_STATES.format("through_typed")) == rows["through"]
    with subtests.test("a constraint of the shard is 469, and what was inserted in between is not there"):
        make(sender, direct, "checked", "id UInt64", "id UInt64, CONSTRAINT few CHECK id < 1000")
        for side in SIDES:
            assert code_of(sender, f"INSERT INTO {side}_checked SELECT number + 995 FROM numbers(10)", **FOREGROUND) == 469
            # The connection that said so is taken again.
            sender.sql(f"INSERT INTO {side}_checked VALUES (7)", **FOREGROUND)
        same_rows(direct, "checked")
    with subtests.test("a table that isn't there is 60"):
        for side in SIDES:
            sender.sql(f"CREATE TABLE {side}_nowhere (id UInt64) ENGINE = Distributed({side}, {direct.database}, nowhere)")
            assert code_of(sender, f"INSERT INTO {side}_nowhere VALUES (1)", **FOREGROUND) == 60
    sent = {"by_function": 1, "computed": 1, "other_types": 1, "typed": 2, "checked": 2, "nowhere": 1}
    routes.expect(ProgramReport([], sent), {way: DISTRIBUTED[way] for way in sent}, subtests)


def code_of(sender: Endpoint, query: str, **settings: object) -> int | None:
    with pytest.raises(ClickHouseError) as error:
        sender.sql(query, **settings)
    return error.value.code


def test_an_insert_that_breaks_off_leaves_nothing(gateway: Gateway, sender: Endpoint, direct: Endpoint) -> None:
    """Straight, the blocks before the error stay."""
    make(sender, direct, "broken", "id UInt64", "id UInt64")
    broken = "INSERT INTO through_broken SELECT if(throwIf(number = 5000), 0, number) FROM numbers(10000)"
    blocks = {"max_block_size": 100, "min_insert_block_size_rows": 100, "max_threads": 1, "max_insert_threads": 1}
    assert code_of(sender, broken, **blocks, **FOREGROUND) == 395
    sender.sql("INSERT INTO through_broken VALUES (1)", **FOREGROUND)
    assert direct.sql("SELECT id FROM broken") == "1"


def test_a_sender_that_is_refused_is_told_why(gateway: Gateway, sender: Endpoint) -> None:
    """Not asked straight: a ClickHouse 26.7 that runs as a library aborts when it refuses one."""
    for cluster, why in (("wrong_password", "password is incorrect"), ("with_secret", "let remote_servers name a user and a password")):
        reply = sender.request(f"SELECT count() FROM cluster({cluster}, system.one)")
        assert (reply.code, why in reply.text) == (516, True), reply.text


def test_packets_in_chunks(gateway: Gateway, sender: Endpoint, direct: Endpoint) -> None:
    """A ClickHouse that insists on them. Straight, one that does not has to be configured as well."""
    direct.sql(f"CREATE TABLE t ({STORED}) ENGINE = MergeTree ORDER BY id")
    sender.sql(f"CREATE TABLE chunked ({SENT}) ENGINE = Distributed(chunked, {direct.database}, t)")
    for rows in (FEW, LARGE):
        sender.sql(f"INSERT INTO chunked {rows}", **FOREGROUND)
        assert sender.sql("SELECT * FROM chunked ORDER BY id, s") == direct.sql(f"SELECT {COLUMNS} FROM t ORDER BY id, s")
    assert sender.sql("SELECT count(), uniq(s) FROM chunked") == direct.sql("SELECT count(), uniq(s) FROM t")
    # What is left of it is cancelled.
    assert sender.sql("SELECT 1 FROM chunked LIMIT 1 SETTINGS max_block_size = 10") == "1"
    assert code_of(sender, "SELECT throwIf(id = 9) FROM chunked FORMAT Null") == 395
    assert sender.sql("SELECT count() FROM chunked") == "50010"


def test_reads(sender: Endpoint, direct: Endpoint, ports: dict[str, int], subtests: pytest.Subtests) -> None:
    direct.sql(f"CREATE TABLE t ({STORED}) ENGINE = MergeTree ORDER BY id")
    direct.sql(f"INSERT INTO t (id, s, kind, tags, at) {ROWS.format(30_000)}")
    for side in SIDES:
        sender.sql(f"CREATE TABLE {side} ({STORED}) ENGINE = Distributed({side}, {direct.database}, t)")
    login = f"'{TESTER.name}', '{TESTER.password}'"
    sources = {
        "table": "{side}",
        "remote": f"remote('127.0.0.1:{{port}}', {direct.database}, t, {login})",
        "cluster": f"cluster({{side}}, {direct.database}.t)",
    }
    for read in READS:
        for kind, source in sources.items():
            with subtests.test(read, source=kind):
                said = [outcome(sender, read.format(t=source.format(side=side, port=ports[side])), ports) for side in SIDES]
                assert said[0] == said[1]


def outcome(sender: Endpoint, query: str, ports: dict[str, int]) -> str:
    reply = sender.request(query)
    return re.sub("|".join([*map(str, ports.values()), *SIDES]), "_", reply.text)
