"""The dialect for SQLAlchemy: SQLAlchemy's own tests of dialects against ClickHouse, and what only this dialect has."""

from __future__ import annotations

import datetime as dt
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from harness.endpoint import Endpoint
from harness.engine import Engine
from sqlalchemy.dialects import registry
from sqlalchemy.testing.requirements import SuiteRequirements

import windrow
from windrow.sqlalchemy import WindrowDialect, dialect, types

SUITE = Path(__file__).parent / "suite"
PACKAGE = Path(windrow.__file__).parent.parent

# The tree has no entry points, which the installed package has.
if not os.environ.get("WINDROW_TEST_INSTALLED"):
    registry.register("windrow", "windrow.sqlalchemy", "WindrowDialect")


def url_of(endpoint: Endpoint) -> sa.URL:
    where = (endpoint.user, endpoint.password, endpoint.host, endpoint.port, endpoint.database)
    return sa.URL.create("windrow", *where)


@pytest.mark.parametrize(
    ("asked", "passed"), [("ComponentReflectionTest", 250), ("not ComponentReflectionTest", 400)], ids=["reflection", "rest"]
)
def test_sqlalchemys_own_tests(engine: Engine, tmp_path: Path, asked: str, passed: int) -> None:
    """In a process of their own, whose pytest is SQLAlchemy's. dialect_requirements.py says what is left out, and why."""
    databases = ("alchemy", "test_schema")  # SQLAlchemy names the second one
    for name in databases:
        engine.direct.sql(f"DROP DATABASE IF EXISTS {name}")
        engine.direct.sql(f"CREATE DATABASE {name}")
    url = url_of(engine.direct.using(databases[0])).render_as_string(hide_password=False).replace("%", "%%")
    lines = ("[sqla_testing]", "requirement_cls = dialect_requirements:Requirements", "profile_file = none.txt")
    (tmp_path / "setup.cfg").write_text("\n".join([*lines, "[db]", f"default = {url}", ""]))
    command = [sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", str(tmp_path), "--noconftest", "-q", "--tb=short"]
    command += ["-p", "no:cacheprovider", "-p", "no:xdist", "-p", "dialect_plugin", "-W", "ignore", "-k", asked]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    environment = {**inherited, "PYTHONPATH": os.pathsep.join([str(PACKAGE), str(SUITE)])}
    command.append(str(SUITE / "dialect_suite.py"))
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
    for name in databases:
        engine.direct.sql(f"DROP DATABASE {name}")
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]
    counted = re.search(r"(\d+) passed", ran.stdout)
    assert counted is not None and int(counted[1]) >= passed, ran.stdout[-500:]


def test_whatever_is_left_out_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requirements that SQLAlchemy leaves closed unless a dialect opens them count, too."""
    monkeypatch.syspath_prepend(SUITE)
    mine = importlib.import_module("dialect_requirements")
    known = {*mine.CAN, *" ".join(mine.CANT.values()).split()}
    every = {name: value for name, value in vars(SuiteRequirements).items() if isinstance(value, property)}
    closed = {name for name, value in every.items() if "exclusions.closed()" in inspect.getsource(value.fget)}
    assert closed - known == set()


@pytest.fixture
def sql_engine(direct: Endpoint) -> Iterator[sa.Engine]:
    made = sa.create_engine(url_of(direct))
    yield made
    made.dispose()


def test_an_engine_by_its_url(direct: Endpoint) -> None:
    url = url_of(direct).update_query_dict({"max_threads": "3", "query_retries": "0"})
    engine = sa.create_engine(url.render_as_string(hide_password=False), pool_pre_ping=True)
    assert isinstance(engine.dialect, WindrowDialect) and engine.dialect.driver == "http"
    with engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT getSetting('max_threads')")) == 3
        asked = sa.text("SELECT getSetting('max_threads')")
        assert connection.execute(asked, execution_options={"settings": {"max_threads": 2}}).scalar() == 2
    with engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT currentDatabase()")) == direct.database
    assert direct.password not in repr(engine) + str(engine.url)
    assert engine.dialect.server_version_info >= (26, 7)
    engine.dispose()


def test_a_table_with_an_engine(sql_engine: sa.Engine, direct: Endpoint) -> None:
    metadata = sa.MetaData()
    made = sa.Table(
        "events",
        metadata,
        sa.Column("id", types.UInt64, primary_key=True),
        sa.Column("kind", types.Other("LowCardinality(String)"), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
        sa.Column("price", sa.Numeric(10, 3), comment="it's in €"),
        sa.Column("tags", sa.ARRAY(sa.String)),
        sa.Column("twice", sa.BigInteger, sa.Computed("id * 2"), nullable=False),
        sa.Index("by_kind", "kind", windrow_type="set(100)"),
        windrow_engine="ReplacingMergeTree",
        windrow_order_by=["kind", "id"],
        windrow_partition_by=sa.func.toYYYYMM(sa.column("at")),
        windrow_ttl="toDateTime(at) + INTERVAL 90 YEAR",
        windrow_settings={"index_granularity": 1024},
        comment="what happened",
    )
    metadata.create_all(sql_engine)
    shown = direct.sql("SELECT create_table_query FROM system.tables WHERE database = currentDatabase() AND name = 'events'")
    for words in (
        "`id` UInt64",
        "`price` Nullable(Decimal(10, 3))",
        "`tags` Array(String)",
        "`twice` Int64 MATERIALIZED id * 2",
        "TYPE set(100)",
        "ENGINE = ReplacingMergeTree",
        "toYYYYMM(at)",
        "ORDER BY (kind, id)",
        "index_granularity = 1024",
        "what happened",
    ):
        assert words in shown, (words, shown)
    found = sa.Table("events", sa.MetaData(), autoload_with=sql_engine)
    assert [(str(column.name), column.nullable) for column in found.columns] == [
        ("id", False), ("kind", False), ("at", False), ("price", True), ("tags", False), ("twice", False),
    ]  # fmt: skip
    assert isinstance(found.c.id.type, types.UInt64) and found.c.kind.type.name == "LowCardinality(String)"
    assert found.comment == "what happened" and found.c.price.comment == "it's in €"
    options = found.dialect_options["windrow"]
    assert (options["engine"], options["order_by"], options["partition_by"]) == (
        "ReplacingMergeTree", "(kind, id)", "(toYYYYMM(at))",
    )  # fmt: skip
    # What was found makes the same table.
    made.drop(sql_engine)
    found.create(sql_engine)
    assert "ReplacingMergeTree" in direct.sql("SHOW CREATE TABLE events")


def test_many_rows_are_one_insert(sql_engine: sa.Engine, direct: Endpoint) -> None:
    table = sa.Table(
        "t",
        sa.MetaData(),
        sa.Column("n", sa.Integer, primary_key=True),
        sa.Column("at", sa.DateTime),
        sa.Column("price", sa.Numeric(20, 6)),
        sa.Column("raw", sa.LargeBinary),
        sa.Column("id", sa.Uuid),
        sa.Column("text", sa.String),
        sa.Column("time", sa.Time),
    )
    table.create(sql_engine)
    at, key = dt.datetime(2024, 5, 1, 12, 0, 0, 123456), uuid.uuid4()
    row = {
        "at": at,
        "price": Decimal("12345678901234.000001"),
        "raw": b"\xff\x00'",
        "id": key,
        "text": "100%\\ it's {a:Int32} %(n)s ;",
        "time": dt.time(1, 2, 3, 4),
    }
    with sql_engine.begin() as connection:
        connection.execute(table.insert(), [{"n": number, **row} for number in range(5000)])
        assert connection.execute(sa.select(table).where(table.c.n == 4321)).one() == (4321, *row.values())
        same = (table.c.at == at, table.c.price == row["price"], table.c.text == row["text"], table.c.id == key)
        assert connection.scalar(sa.select(sa.func.count()).select_from(table).where(*same)) == 5000
        connection.execute(table.update().where(table.c.n < 10).values(text="changed"))
        connection.execute(table.delete().where(table.c.n >= 100))
        assert connection.scalar(sa.select(sa.func.count(table.c.n)).where(table.c.text == "changed")) == 10
    assert direct.sql("SELECT count() FROM t") == "100"


class Reversed(sa.TypeDecorator[Any]):
    """A type of an application, whose values are no texts until they are written."""

    impl, cache_ok = sa.String, True

    def process_bind_param(self, value: Any, _: Any) -> str:
        return "".join(reversed(value))


HOSTILE = "2000-01-01', 1\\' %d %% \\' --"
HELD_TYPES = [sa.String(), sa.Text(), sa.Unicode(), sa.Enum("a", "b"), sa.DateTime(), sa.DateTime(timezone=True), sa.TIMESTAMP(), sa.Interval(),
              sa.Uuid(), sa.Uuid(as_uuid=False), sa.UUID()]  # fmt: skip
OTHER_TYPES = [sa.Time(), sa.Date(), sa.LargeBinary(), sa.Integer(), sa.Boolean(), sa.Numeric(5, 2), sa.Float(), sa.JSON(), types.Int8(), types.UInt256(),
               types.Float64(), types.Other("String")]  # fmt: skip


@pytest.mark.parametrize("kind", HELD_TYPES, ids=repr)
def test_a_text_as_a_literal_ends_where_it_ends(sql_engine: sa.Engine, direct: Endpoint, kind: Any) -> None:
    """Of whatever type it is said to be."""
    for text in (HOSTILE, "'", "\\", "%", "%s", "\\\\'"):
        query = str(sa.select(sa.literal(text, kind)).compile(sql_engine, compile_kwargs={"literal_binds": True}))
        # The driver takes doubled percent signs as one.
        assert json.loads(direct.sql(f"{query % ()} FORMAT JSONCompactEachRow")) == [text]


@pytest.mark.parametrize("kind", OTHER_TYPES, ids=repr)
def test_a_text_is_no_literal_of_a_type_that_has_none(sql_engine: sa.Engine, kind: Any) -> None:
    for text in (HOSTILE, "'", "\\", "%"):
        with pytest.raises(sa.exc.CompileError):
            sa.select(sa.literal(text, kind)).compile(sql_engine, compile_kwargs={"literal_binds": True})


def test_texts_within_literals(sql_engine: sa.Engine, direct: Endpoint) -> None:
    for value, kind, read in (([HOSTILE, "\\"], sa.ARRAY(sa.String), [HOSTILE, "\\"]), (("'", "\\"), Reversed(), "\\'")):
        query = str(sa.select(sa.literal(value, kind)).compile(sql_engine, compile_kwargs={"literal_binds": True}))
        assert json.loads(direct.sql(f"{query % ()} FORMAT JSONCompactEachRow")) == [read]


def test_unions_have_their_order(sql_engine: sa.Engine) -> None:
    """In ClickHouse it would be the last SELECT's."""
    parts = [sa.select(sa.literal(number).label("n")) for number in (3, 1, 2)]
    with sql_engine.connect() as connection:
        ordered = sa.union_all(*parts).order_by("n").limit(2)
        assert connection.execute(ordered).scalars().all() == [1, 2]
        assert connection.scalar(sa.select(sa.func.sum(ordered.subquery().c.n))) == 3
        assert sorted(connection.execute(sa.union(parts[0], parts[0], parts[1])).scalars()) == [1, 3]


def test_what_clickhouse_does_not_do_is_refused(sql_engine: sa.Engine) -> None:
    one, other = (sa.Table(name, sa.MetaData(), sa.Column("n", sa.Integer)) for name in ("one", "other"))
    for statement in (
        one.update().values(n=other.c.n).where(one.c.n == other.c.n),
        one.delete().where(one.c.n == other.c.n),
        sa.schema.CreateIndex(sa.Index("i", one.c.n, unique=True)),
    ):
        with pytest.raises(sa.exc.CompileError):
            statement.compile(dialect=sql_engine.dialect)
    with sql_engine.connect() as connection, pytest.raises(sa.exc.StatementError, match="RETURNING"):
        connection.execute(one.insert().returning(one.c.n), {"n": 1})


@pytest.mark.parametrize(
    ("name", "kind", "nullable"),
    [
        ("UInt8", types.UInt8, False),
        ("Nullable(Int128)", types.Int128, True),
        ("LowCardinality(Nullable(String))", types.Other, True),
        ("Array(Nullable(UInt64))", sa.ARRAY, False),
        ("Array(Array(String))", types.Other, False),
        ("Map(String, Array(UInt8))", types.Other, False),
        ("Enum8('a' = 1, 'b, c' = 2)", types.Other, False),
        ("DateTime64(3, 'Europe/Berlin')", sa.DateTime, False),
        ("Tuple(a UInt8, b String)", types.Other, False),
        ("Float32", types.Float32, False),
        ("FixedString(4)", types.Other, False),
        ("JSON", types.Other, False),
        ("Date", sa.Date, False),
        ("Bool", sa.Boolean, False),
    ],
)
def test_types_are_found(sql_engine: sa.Engine, direct: Endpoint, name: str, kind: Any, nullable: bool) -> None:
    direct.sql(f"CREATE TABLE t (c {name}) ORDER BY tuple()")
    (column,) = sa.inspect(sql_engine).get_columns("t")
    assert (type(column["type"]), column["nullable"]) == (kind, nullable)
    if kind is types.Other:
        again = sa.Table("again", sa.MetaData(), sa.Column("c", column["type"], nullable=nullable))
        again.create(sql_engine)
        assert direct.sql("SELECT type FROM system.columns WHERE database = currentDatabase() AND table = 'again'") == direct.sql(
            "SELECT type FROM system.columns WHERE database = currentDatabase() AND table = 't'"
        )


def test_what_may_not_be_set_is_left_out(direct: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user may be kept from any of the dialect's settings, and then does without."""
    monkeypatch.setitem(dialect.SETTINGS, "allow_ddl_of_nobody", 1)
    engine = sa.create_engine(url_of(direct))
    with engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT getSetting('join_use_nulls')")) is True
    engine.dispose()


KINDS_OF_DICTS = {
    "Map(String, UInt8)": {"a": 1, "b'c": 2},
    "Map(UInt8, Array(Map(String, String)))": {5: [{"a": "x"}, {}]},
    "Array(Map(String, UInt8))": [{"a": 1}, {}],
    "Array(Array(Map(String, Nullable(UInt8))))": [[{"a": None}], []],
    "Tuple(a UInt8, `b c` String)": {"b c": "x", "a": 1},
    "Tuple(UInt8, Map(String, UInt8))": (1, {"a": 2}),
    "Array(Tuple(a UInt8, m Map(String, UInt8)))": [{"a": 1, "m": {"x": 2}}],
    "LowCardinality(String)": "x",
    "JSON": {"a": {"b": [1, 2]}},
}


@pytest.mark.parametrize("kind", KINDS_OF_DICTS)
def test_dicts_are_what_the_columns_type_says(sql_engine: sa.Engine, direct: Endpoint, kind: str) -> None:
    """Declared or found, in one row, in several, and in an UPDATE's condition of one's own: as the client stores them."""
    value = KINDS_OF_DICTS[kind]
    direct.sql(f"CREATE TABLE t (n UInt8, v {kind}) ORDER BY n")
    declared = [types.Other(kind)]
    if kind.startswith("Array("):
        declared.append(sa.ARRAY(types.Other(kind[len("Array(") : -1])))
    tables = [sa.Table("t", sa.MetaData(), sa.Column("n", types.UInt8), sa.Column("v", each)) for each in declared]
    tables.append(sa.Table("t", sa.MetaData(), autoload_with=sql_engine))
    with sql_engine.connect() as connection:
        for number, table in enumerate(tables):
            connection.execute(table.insert(), {"n": number, "v": value})
            connection.execute(table.insert(), [{"n": number, "v": value}, {"n": number, "v": value}])
            connection.execute(table.insert().values(n=number, v=value))
    client = windrow.get_client(
        host=direct.host, port=direct.port, username=direct.user, password=direct.password, database=direct.database
    )
    client.insert("t", [(9, value)])
    client.close()
    assert direct.sql("SELECT uniqExact(toString(v)), count() FROM t") == f"1\t{4 * len(tables) + 1}"
