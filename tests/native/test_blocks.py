"""Blocks with types that are not read here pass through as they came: those of many inserts stand side by side in one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.gateway import Gateway
from harness.inserts import HELD, HELD_NOT_WAITING, Background, make_table, parts_made, queued_inserts
from harness.native import DATA, END_OF_STREAM, EXCEPTION, NEWEST, SERVER_DATA, Native, Packet, frame, text, varint
from harness.raw_http import RawConnection, head

DOCUMENT = (
    """concat('{"a":', toString(number), ',"b":{"c":"x', toString(number), '"},"list":[', toString(number), """
    """',2],"of":[{"k":1}],"', if(number % 2, 'odd":15}', 'even":"text"}'))"""
)
MIXED = (
    "multiIf(number % 4 = 0, number, number % 4 = 1, 'x', number % 4 = 2, [1, 2], NULL)"
    "::Variant(UInt64, String, Array(UInt8))::Dynamic"
)
WORDS = "if(number % 3 = 0, NULL, 'w' || toString(number % 2))"
# A type, and a value for each number.
TYPES = {
    "json": ("JSON", DOCUMENT),
    "json_typed": ("JSON(max_dynamic_paths=1, a UInt32, `b.c` LowCardinality(String), SKIP list)", DOCUMENT),
    "json_shared": ("JSON(max_dynamic_paths=0)", DOCUMENT),
    "json_array": ("Array(JSON)", f"arraySlice([{DOCUMENT}, '{{}}'], 1, number % 3)"),
    "dynamic": ("Dynamic", MIXED),
    "dynamic_shared": ("Dynamic(max_types=1)", MIXED),
    "dynamic_arrays": ("Array(Array(Dynamic))", f"[emptyArrayString()::Array(Dynamic), [{MIXED}, NULL::Dynamic]]"),
    "variant": ("Variant(JSON, String, Array(Dynamic))", "if(number % 2, 'text', NULL)"),
    "variant_of_json": ("Variant(JSON, UInt8)", f"({DOCUMENT})::JSON"),
    "tuple": (
        "Tuple(j JSON(a UInt8), d Dynamic, w LowCardinality(Nullable(String)))",
        f"tuple({DOCUMENT}, {MIXED}, {WORDS})",
    ),
    "map": ("Map(LowCardinality(String), JSON)", f"map('k', {DOCUMENT}, 'l', '{{}}')"),
    "qbit": ("QBit(Float32, 10)", "arrayMap(x -> number + x, range(10))::Array(Float32)"),
    "qbit_in_a_tuple": ("Tuple(q QBit(Float64, 3), j Array(JSON))", f"([number, 1.5, 2]::Array(Float64), [{DOCUMENT}])"),
    "states_in_an_array": ("Array(AggregateFunction(sum, UInt64))", "[arrayReduce('sumState', [number]), arrayReduce('sumState', [2::UInt64])]"),
    "states_in_a_map": ("Map(String, AggregateFunction(uniq, String))", "map('k', arrayReduce('uniqState', [toString(number)]))"),
    "states_and_json": ("Tuple(s AggregateFunction(count), j JSON)", f"(arrayReduce('countState', range(number)), ({DOCUMENT})::JSON)"),
}  # fmt: skip
FLAT = {"output_format_native_use_flattened_dynamic_and_json_serialization": 1}
AS_TEXT = {"output_format_native_write_json_as_string": 1}
# Over the native protocol: revision, compression and how ClickHouse writes such a block.
NATIVELY = ((NEWEST, False, {}), (54460, True, {}), (54468, False, FLAT), (NEWEST, True, AS_TEXT))


def counted(gateway: Gateway, sample: str) -> int:
    with RawConnection(gateway.admin) as connection:
        lines = connection.exchange(head("GET", "/metrics", (("Host", "x"),)), "GET").text.splitlines()
    return sum(int(line.split()[-1]) for line in lines if line.split(" ")[0] == sample)


def passed(gateway: Gateway) -> int:
    return counted(gateway, "windrow_inserts_passthrough_total")


def forwarded(gateway: Gateway, reason: str) -> int:
    return counted(gateway, f'windrow_forwarded_requests_total{{reason="{reason}"}}')


def blocks(direct: Endpoint, select: str, **settings: object) -> bytes:
    """Rows as ClickHouse writes them, in one block."""
    reply = direct.request(f"{select} FORMAT Native", settings={**settings, "max_threads": 1})
    assert reply.status == 200, reply.text
    return reply.body


@dataclass
class Held:
    """Inserts into a table that wait for the test."""

    tested: Endpoint
    native: Endpoint
    connections: list[Native] = field(default_factory=list)

    def send(self, block: bytes, revision: int = NEWEST, compressed: bool = False, sql: str = "INSERT INTO t FORMAT Native") -> None:
        """`block`: as ClickHouse writes it for that revision."""
        connection = Native(self.native, revision, compressed=compressed).start()
        settings = {name: str(value) for name, value in HELD.items()}
        told = connection.begin_insert(sql, settings)
        assert told[-1].kind == SERVER_DATA, told[-1]
        connection.send(packet(block, compressed) + connection.data())
        self.connections.append(connection)

    def flush(self, inserts: int) -> list[Packet]:
        eventually(lambda: queued_inserts(self.tested) == inserts, f"{inserts} inserts are queued")
        self.tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
        return [connection.up_to(END_OF_STREAM, EXCEPTION)[-1] for connection in self.connections]

    def __enter__(self) -> Held:
        return self

    def __exit__(self, *_: object) -> None:
        self.tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
        for connection in self.connections:
            connection.__exit__()


def packet(block: bytes, compressed: bool = False) -> bytes:
    return varint(DATA) + text("") + (frame(block) if compressed else block)


# What JSON as text would hide.
INSIDE = {"JSON": "JSONAllPathsWithTypes(v)", "Dynamic": "dynamicType(v)", "Variant": "variantType(v)"}


def stored(direct: Endpoint, table: str, shown: str = "*") -> list[str]:
    return direct.sql(f"SELECT {shown} FROM {table} ORDER BY n FORMAT JSONEachRow").splitlines()


@pytest.mark.parametrize("name", TYPES)
def test_inserts_of_every_form_are_one_part(name: str, gateway: Gateway, tested: Endpoint, direct: Endpoint, native: Endpoint) -> None:
    of, value = TYPES[name]
    make_table(direct, f"n UInt64, v {of}, w LowCardinality(String)")
    make_table(direct, f"n UInt64, v {of}, w LowCardinality(String)", "straight")
    escaped = of.replace("\\", "\\\\").replace("'", "\\'")

    def rows(first: int) -> str:
        return f"SELECT number AS n, CAST({value}, '{escaped}') AS v, 'w' || toString(number % 2) AS w FROM numbers({first}, 5)"

    before = passed(gateway)
    with Held(tested, native) as held, Background(tested) as over_http:
        for at, (revision, compressed, form) in enumerate(NATIVELY):
            held.send(blocks(direct, rows(10 * at), client_protocol_version=revision, **form), revision, compressed)
        several = b"".join(blocks(direct, rows(100 + 10 * at), **form) for at, form in enumerate(({}, FLAT, AS_TEXT)))
        waiting = over_http.insert(several, "INSERT INTO t FORMAT Native", **HELD)
        ended = held.flush(len(NATIVELY) + 1)
        assert [end.kind for end in ended] == [END_OF_STREAM] * len(NATIVELY), ended
        assert waiting.reply().status == 200, waiting.reply().text
    for first in (0, 10, 20, 30, 100, 110, 120):
        direct.sql(f"INSERT INTO straight {rows(first)}")
    shown = "*, " + INSIDE.get(of.split("(")[0], "''")
    assert stored(direct, "t", shown) == stored(direct, "straight", shown)
    assert (parts_made(direct), passed(gateway) - before) == (1, len(NATIVELY) + 1)


INTEGERS = ["UInt8", "UInt16", "UInt32", "UInt64", "Int8", "Int16", "Int32", "Int64", "Bool"]
WIDE = ["UInt128", "UInt256", "Int128", "Int256"]
FLOATS = ["Float32", "Float64"]
DECIMALS = ["Decimal(9, 2)", "Decimal(18, 2)", "Decimal(38, 2)", "Decimal(76, 2)"]
ENUMS = ["Enum8('a' = 1, 'b' = 2)", "Enum16('a' = 1, 'b' = 2)"]
TIMES = ["Date", "DateTime", "DateTime64(3)"]
OTHERS = ["Date32", "UUID", "IPv4", "IPv6", "FixedString(5)", "String", "IntervalDay", "BFloat16", "Time", "Time64(3)"]
NUMBERS = [*INTEGERS, *WIDE, *FLOATS, "BFloat16", *DECIMALS]
SCALARS = [*NUMBERS, *ENUMS, *TIMES, *(of for of in OTHERS if of != "BFloat16")]
RANKED = [*INTEGERS, *WIDE, *FLOATS, *DECIMALS, *TIMES]
# The states whose ends are known, and of which types.
FUNCTIONS = {
    "count": SCALARS, "sum": [*NUMBERS, *ENUMS], "sumWithOverflow": [*NUMBERS, *ENUMS], "avg": [*NUMBERS, *TIMES, "Date32", "Time", "Time64(3)"],
    "min": SCALARS, "max": SCALARS, "any": SCALARS, "anyLast": SCALARS, "argMin": SCALARS, "argMax": SCALARS, "uniq": SCALARS,
    "uniqExact": SCALARS, "groupArray": SCALARS, "groupUniqArray": SCALARS, "groupBitmap": INTEGERS, "groupBitOr": [*INTEGERS, *WIDE],
    "groupBitAnd": [*INTEGERS, *WIDE], "quantile(0.5)": RANKED, "quantiles(0.5, 0.9)": RANKED, "quantileExact": RANKED,
    "quantileTDigest": [*INTEGERS, *FLOATS, "Date", "DateTime"],
    "varPop": [*NUMBERS, *ENUMS], "stddevSamp": NUMBERS, "sumIf": NUMBERS, "uniqExactIf": SCALARS, "sumOrNull": NUMBERS, "maxOrDefaultIf": NUMBERS,
}  # fmt: skip
TEXTS = {
    "UUID": "'00000000-0000-0000-0000-00000000000' || toString(x)", "IPv4": "'1.2.3.' || toString(x)", "IPv6": "'::' || toString(x)",
    "Date": "'2020-01-0' || toString(x)", "Date32": "'2020-01-0' || toString(x)", "DateTime": "'2020-01-0' || toString(x) || ' 00:00:00'",
    "DateTime64(3)": "'2020-01-0' || toString(x) || ' 00:00:00'", "Time": "'01:02:0' || toString(x)", "Time64(3)": "'01:02:0' || toString(x)",
    "FixedString(5)": "toString(x)", "String": "repeat('z', x * 70)", "Bool": "x > 1",
}  # fmt: skip


def states(function: str) -> list[str]:
    """An expression for each type, and for NULLs among values of most: states of none, one and two values."""
    name, _, parameters = function.partition("(")
    combinators = next((end for end in ("OrDefaultIf", "OrNull", "If") if name.endswith(end)), "")
    out = []
    for of in FUNCTIONS[function]:
        escaped = of.replace("'", "\\'")
        values = f"arrayMap(x -> CAST({TEXTS.get(of, 'x')}, '{escaped}'), range(1, number % 3 + 1))"
        with_nulls = f"CAST(arrayConcat({values}, [NULL]), 'Array(Nullable({escaped}))')"
        for arguments in (values,) if "Or" in combinators else (values, with_nulls):
            more = f", {arguments}" if name.startswith("arg") else ""
            more += f", arrayMap(x -> 1, {arguments})" if combinators.endswith("If") else ""
            out.append(f"arrayReduce('{name}State{'(' + parameters if parameters else ''}', {arguments}{more})")
    return out


@pytest.mark.parametrize("function", FUNCTIONS)
def test_states_are_one_part(function: str, gateway: Gateway, tested: Endpoint, direct: Endpoint, native: Endpoint) -> None:
    columns = states(function)
    select = "SELECT number AS n, " + ", ".join(f"{column} AS c{at}" for at, column in enumerate(columns)) + " FROM numbers({}, 6)"
    typed = {"enable_time_time64_type": 1}
    direct.sql(f"CREATE TABLE straight ENGINE = MergeTree ORDER BY n AS {select.format(0)}", **typed)
    direct.sql("CREATE TABLE t AS straight", **typed)
    direct.sql(f"INSERT INTO straight {select.format(6)}", **typed)
    before = passed(gateway)
    with Held(tested, native) as held:
        for first, compressed in ((0, False), (6, True)):
            held.send(blocks(direct, select.format(first), client_protocol_version=NEWEST, **typed), NEWEST, compressed)
        ended = held.flush(2)
        assert [end.kind for end in ended] == [END_OF_STREAM] * 2, ended
    shown = "n, " + ", ".join(f"toString(finalizeAggregation(c{at}))" for at in range(len(columns)))
    assert stored(direct, "t", shown) == stored(direct, "straight", shown)
    assert (parts_made(direct), passed(gateway) - before) == (1, 2)


UNKNOWN = {
    "versioned": "arrayReduce('sumMapState', [[number]], [[number]])",
    "sketch": "arrayReduce('uniqCombinedState', [number])",
    "of_arrays": "arrayReduce('anyState', [[number]])",
    "of_tuples": "arrayReduce('groupArrayState', [tuple(number)])",
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_states_without_a_known_end_are_forwarded(name: str, gateway: Gateway, direct: Endpoint, native: Endpoint) -> None:
    select = f"SELECT number AS n, {UNKNOWN[name]} AS s FROM numbers(3)"
    direct.sql(f"CREATE TABLE straight ENGINE = MergeTree ORDER BY n AS {select}")
    direct.sql("CREATE TABLE t AS straight")
    before = forwarded(gateway, "type")
    with Native(native).start() as connection:
        connection.begin_insert("INSERT INTO t FORMAT Native", {"async_insert": "1"})
        connection.send(packet(blocks(direct, select, client_protocol_version=NEWEST)) + connection.data())
        assert connection.up_to(END_OF_STREAM, EXCEPTION)[-1].kind == END_OF_STREAM
    shown = "n, toString(finalizeAggregation(s))"
    assert stored(direct, "t", shown) == stored(direct, "straight", shown)
    assert forwarded(gateway, "type") == before + 1


def documents(direct: Endpoint, first: int, *texts: str) -> bytes:
    """JSON as its sender has it, which nobody has looked into."""
    rows = ", ".join(f"({first + at}, '{of}')" for at, of in enumerate(texts))
    block = blocks(direct, f"SELECT n, j FROM VALUES('n UInt64, j String', {rows})", client_protocol_version=NEWEST)
    return block.replace(text("j") + text("String") + b"\0", text("j") + text("JSON") + b"\0" + (1).to_bytes(8, "little"))


def test_forty_pushes_are_one_part(gateway: Gateway, tested: Endpoint, direct: Endpoint, native: Endpoint) -> None:
    make_table(direct, "n UInt64, j JSON")
    before = passed(gateway)
    with Native(native).start() as connection:
        for push in range(40):
            connection.begin_insert("INSERT INTO t VALUES", {name: str(value) for name, value in HELD_NOT_WAITING.items()})
            connection.send(packet(documents(direct, push, f'{{"k{push % 3}":{push}}}')) + connection.data())
            assert connection.up_to(END_OF_STREAM, EXCEPTION)[-1].kind == END_OF_STREAM
    tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    eventually(lambda: direct.sql("SELECT count() FROM t") == "40", "all rows are there")
    assert direct.sql("SELECT n, j FROM t ORDER BY n FORMAT TSVRaw") == "\n".join(f'{n}\t{{"k{n % 3}":{n}}}' for n in range(40))
    assert (parts_made(direct), passed(gateway) - before) == (1, 40)


def test_one_that_is_refused_fails_alone(tested: Endpoint, direct: Endpoint, native: Endpoint, direct_native: Endpoint) -> None:
    make_table(direct, "n UInt64, j JSON, CONSTRAINT small CHECK n < 100")
    good, bad = '{"a":1}', '{"a":'
    bodies = [documents(direct, first, *texts) for first, *texts in ((0, good), (1, good, bad), (3, good), (200, good), (5, good, good))]
    alone = []
    for at in (1, 3):
        with Native(direct_native).start() as connection:
            connection.begin_insert("INSERT INTO t FORMAT Native")
            connection.send(packet(bodies[at]) + connection.data())
            alone.append(connection.up_to(END_OF_STREAM, EXCEPTION)[-1].code)
    with Held(tested, native) as held:
        for body in bodies:
            held.send(body)
        assert [end.code for end in held.flush(len(bodies))] == [None, alone[0], None, alone[1], None]
    assert None not in alone
    assert direct.sql("SELECT groupArray(n) FROM (SELECT n FROM t ORDER BY n)") == "[0,3,5,6]"


def test_columns_that_are_left_out_get_their_default(gateway: Gateway, tested: Endpoint, direct: Endpoint, native: Endpoint) -> None:
    make_table(direct, "n UInt64, j JSON, d UInt64 DEFAULT n * 10")
    select = "SELECT number AS n, '{}'::JSON AS j FROM numbers({}, 1)"
    whole = "SELECT 7::UInt64 AS d, number AS n, '{}'::JSON AS j FROM numbers({}, 1)"
    before, sent_on = passed(gateway), forwarded(gateway, "columns")
    with Background(tested) as over_http:
        bodies = [blocks(direct, select.replace("({}", "(1")), blocks(direct, whole.replace("({}", "(2"))]
        inserts = [over_http.insert(body, "INSERT INTO t FORMAT Native", **HELD) for body in (*bodies, b"".join(bodies))]
        eventually(lambda: queued_inserts(tested) == 3, "they are queued")
        tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
        assert [insert.reply().status for insert in inserts] == [200] * 3
    assert direct.sql("SELECT n, d FROM t ORDER BY n, d").splitlines() == ["1\t10", "1\t10", "2\t7", "2\t7"]
    assert (passed(gateway) - before, forwarded(gateway, "columns")) == (3, sent_on)
    # Natively ClickHouse fills in zeros.
    with Native(native).start() as connection:
        connection.begin_insert("INSERT INTO t FORMAT Native", {"async_insert": "1"})
        connection.send(packet(blocks(direct, select.replace("({}", "(9"), client_protocol_version=NEWEST)) + connection.data())
        assert connection.up_to(END_OF_STREAM, EXCEPTION)[-1].kind == END_OF_STREAM
    assert direct.sql("SELECT n, d FROM t WHERE n = 9") == "9\t0"
    assert forwarded(gateway, "columns") == sent_on + 1


def test_a_damaged_body_is_nobody_elses(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    """Were it joined, it would swallow the rows behind it."""
    make_table(direct, "n UInt64, j JSON")
    query, body = "INSERT INTO t FORMAT Native", blocks(direct, f"SELECT number AS n, ({DOCUMENT})::JSON AS j FROM numbers(2)")
    ends = sorted({1, 2, 4, 12, 24, len(body) // 2, len(body) - 9, len(body) - 1})
    damaged = [*(body[:end] for end in ends), body + b"\1"]
    alone = [direct.insert(query, each).code for each in damaged]
    before = passed(gateway)
    with Background(tested) as over_http:
        good = over_http.insert(body, query, **HELD)
        assert [tested.insert(query, each, **HELD).code for each in damaged] == alone
        eventually(lambda: queued_inserts(tested) == 1, "the good one waits")
        tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
        assert good.reply().status == 200
    # A block of nothing is the end for ClickHouse, whatever follows.
    assert tested.insert(query, body + b"\0\0" + body, async_insert=1).status == 200
    assert (None in alone, passed(gateway) - before) == (False, 1)
    assert direct.sql("SELECT count() FROM t") == "4"


def test_a_client_that_leaves_has_stored_nothing(tested: Endpoint, direct: Endpoint, native: Endpoint) -> None:
    make_table(direct, "n UInt64, j JSON")
    block = blocks(direct, f"SELECT number AS n, ({DOCUMENT})::JSON AS j FROM numbers(2)", client_protocol_version=NEWEST)
    for end in (9, 40, len(block) // 2, len(block) - 1, len(block)):
        with Native(native).start() as connection:
            connection.begin_insert("INSERT INTO t FORMAT Native", {"async_insert": "1"})
            connection.send(packet(block[:end]))
    with Native(native).start() as connection:
        connection.begin_insert("INSERT INTO t FORMAT Native", {"async_insert": "1"})
        connection.send(packet(block) + connection.data())
        assert connection.up_to(END_OF_STREAM, EXCEPTION)[-1].kind == END_OF_STREAM
    assert direct.sql("SELECT count() FROM t") == "2"


def test_what_was_acknowledged_outlives_a_kill(start_gateway: Callable[..., Gateway]) -> None:
    gateway = start_gateway()
    direct = gateway.direct
    direct.sql("CREATE TABLE t (n UInt64, j JSON) ENGINE = MergeTree ORDER BY n")
    native = Endpoint("127.0.0.1", gateway.native_port, direct.user, direct.password, direct.database)
    with Native(native).start() as connection:
        for form in ({}, FLAT, AS_TEXT):
            block = blocks(direct, f"SELECT number AS n, ({DOCUMENT})::JSON AS j FROM numbers(3)", client_protocol_version=NEWEST, **form)
            connection.begin_insert("INSERT INTO t FORMAT Native", {name: str(value) for name, value in HELD_NOT_WAITING.items()})
            connection.send(packet(block) + connection.data())
            assert connection.up_to(END_OF_STREAM, EXCEPTION)[-1].kind == END_OF_STREAM
    gateway.kill()
    gateway.start()
    eventually(lambda: gateway.direct.sql("SELECT count() FROM t") == "9", "its rows are there")
    assert gateway.direct.sql("SELECT uniqExact(n, toString(j)), count() FROM t") == "3\t9"
