"""Where ClickHouse's Distributed stores each row is what `windrow_columns::ShardingKey` says.

Every key is really used: a Distributed table with it, over shards of several weights, gets random rows, and where each
of them landed is compared with what the code says for the same rows. The key is what ClickHouse shows of that table.
Keys that ClickHouse takes and the code does not understand are listed, and so are those that ClickHouse refuses.
"""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from differential.budget import SEED
from harness.endpoint import ClickHouseError, Endpoint
from harness.engine import Engine
from harness.paths import example_binary
from harness.ports import free_port
from harness.users import TESTER

ROWS = 240
TIMEZONE = "Etc/UTC"
# One shard takes nothing: the weights of those beside it meet. By their sum 8, 16, 32 and 64 bits of the same negative number
# leave different remainders.
WEIGHTS = (7, 11, 0, 3, 16)
SHARDS = [f"shard_{number}" for number in range(1, len(WEIGHTS) + 1)]
# ClickHouse warns of LowCardinality of numbers.
SUSPICIOUS = {"allow_suspicious_low_cardinality_types": 1}
REFUSED, UNKNOWN, UNDERSTOOD = "refused by ClickHouse", "not understood", "understood"

INTEGERS = {f"{sign}{bits}": f"{sign.lower()}{bits}" for sign in ("UInt", "Int") for bits in (8, 16, 32, 64)}
TIMES = {
    "Date": "date", "Date32": "date32", "DateTime": "moment", "DateTime('UTC')": "utc",
    "DateTime('Asia/Kathmandu')": "moment_there",
    "DateTime64(3)": "ticks", "DateTime64(9, 'UTC')": "ticks_there",
}  # fmt: skip
OTHERS = {
    "Bool": "bool", "UInt128": "uint128", "UInt256": "uint256", "Int128": "int128", "Int256": "int256", "Float32": "float32",
    "Float64": "float64", "Decimal(7, 2)": "dec32", "Decimal(15, 2)": "dec64", "Decimal(30, 2)": "dec128",
    "Decimal(70, 2)": "dec256", "String": "text", "FixedString(5)": "fixed", "FixedString(70)": "fixed70", "UUID": "uuid",
    "IPv4": "ipv4", "IPv6": "ipv6", "Enum8('a' = -7, 'b' = 3)": "enum8", "Enum16('a' = -700, 'b' = 300)": "enum16",
    "BFloat16": "bfloat", "Time": "time", "Time64(3)": "time64", "IntervalDay": "days",
}  # fmt: skip
INSIDE_OTHERS = {
    "LowCardinality(Int8)": "lc_int8", "LowCardinality(UInt64)": "lc_uint64", "LowCardinality(String)": "lc_text",
    "LowCardinality(FixedString(5))": "lc_fixed", "LowCardinality(Date)": "lc_date", "LowCardinality(DateTime)": "lc_moment",
    "LowCardinality(Nullable(String))": "lc_null", "Nullable(UInt64)": "null_uint64", "Nullable(String)": "null_text",
    "Array(UInt8)": "list", "Tuple(UInt8, String)": "pair", "Map(String, UInt8)": "map",
}  # fmt: skip
TYPES = INTEGERS | TIMES | OTHERS | INSIDE_OTHERS
HASHES = ("cityHash64", "sipHash64", "xxHash32", "xxHash64", "xxh3", "murmurHash3_64")
ODD_NAMES = {"odd, name": "UInt16", "UInt8": "UInt32"}
# ClickHouse makes no random values of these.
UNMADE = {
    "BFloat16": "toBFloat16(rand(1) % 1000)", "IntervalDay": "toIntervalDay(rand(2) % 1000)",
    "Time": "CAST(toInt32(rand(3) % 3600), 'Time')", "Time64(3)": "CAST(toInt32(rand(4) % 3600), 'Time64(3)')",
}  # fmt: skip
# `c` is a column of each type.
KEYS = {
    "itself": ["c"],
    "hash": [*(f"{name}(c)" for name in HASHES), *(f"{name}(text, c, c)" for name in HASHES), "cityHash64(tuple(c))"],
    "hash of an array": ["cityHash64([c])"],
    "intHash": ["intHash32(c)", "intHash64(c)"],
    "text": ["cityHash64(toString(c))"],
    "conversion": [
        *(f"to{name}(c)" for name in INTEGERS), "CAST(c, 'Int16')", "CAST(c, 'UInt64')",
        *(f"cityHash64(to{name}(c))" for name in ("Int8", "Int32", "UInt16")),
    ],
    "remainder": [
        *(f"c % {number}" for number in (1, 7, 8, 200, 256, 65535)), "cityHash64(c % 7)", "modulo(c, 1000)",
        "moduloOrZero(c, 16)", "positiveModulo(c, 100)", "cityHash64(positiveModulo(c, 7))",
    ],
    "quotient": ["intDiv(c, 5)", "intDiv(c, 100)", "cityHash64(intDiv(c, 9))"],
    "sum": [
        "c + 1", "c - 1", "c * 3", "c + c", "c - uint64", "c * int8", "cityHash64(c + 1)", "cityHash64(c - 1)",
        "c + -300", "-c", "cityHash64(-c)",
    ],
    "bits": ["bitAnd(c, 12)", "bitOr(c, 1000)", "bitXor(c, int16)"],
    "part of a date": [f"{name}(c)" for name in ("toYYYYMM", "toYYYYMMDD", "toYear", "toMonth", "toDayOfMonth")],
    "time zone": ["toYYYYMMDD(c, 'UTC')"],
    "Unix time": ["toUnixTimestamp(c)"],
    "toDate": [
        "cityHash64(toDate(c))", "intHash32(toDate(c))", "toDate(c)", "toUInt32(toDate(c))", "toYYYYMM(toDate(c))",
    ],
}  # fmt: skip
# Of these ClickHouse takes some, and none is understood. All others that ClickHouse takes are.
OF_ALL = {"hash of an array"}
OF_NUMBERS = OF_ALL | {"Unix time", "toDate"}
OF_DATES = OF_ALL | {"text", "sum"}
OF_DECIMALS = OF_ALL | {"text", "remainder", "sum"}
OF_BIG_NUMBERS = OF_NUMBERS | {"text", "conversion", "remainder", "quotient", "sum"}
OF_UNKNOWN_TYPES = OF_ALL | {"hash", "text"}
NOT_UNDERSTOOD = {
    **dict.fromkeys((*INTEGERS, "LowCardinality(Int8)", "LowCardinality(UInt64)"), OF_NUMBERS),
    **dict.fromkeys(("Date", "LowCardinality(Date)"), OF_DATES | {"remainder", "Unix time", "time zone"}),
    "Date32": OF_DATES | {"Unix time", "time zone", "toDate"},
    **dict.fromkeys(("DateTime", "DateTime('UTC')", "LowCardinality(DateTime)"), OF_DATES | {"remainder"}),
    "DateTime('Asia/Kathmandu')": OF_DATES | {"remainder", "part of a date", "toDate"},
    **dict.fromkeys(
        ("DateTime64(3)", "DateTime64(9, 'UTC')"),
        OF_DATES | {"conversion", "part of a date", "time zone", "Unix time", "toDate"},
    ),
    "Bool": OF_NUMBERS | {"text"},
    **dict.fromkeys(("Enum8('a' = -7, 'b' = 3)", "Enum16('a' = -700, 'b' = 300)"), OF_NUMBERS | {"text"}),
    **dict.fromkeys(("UInt128", "UInt256", "Int128", "Int256"), OF_BIG_NUMBERS),
    **dict.fromkeys(("Float32", "Float64"), OF_DECIMALS | {"toDate"}),
    "Decimal(7, 2)": OF_DECIMALS | {"intHash", "conversion", "quotient"},
    "Decimal(15, 2)": OF_DECIMALS | {"intHash", "conversion", "quotient"},
    "Decimal(30, 2)": OF_DECIMALS | {"quotient"},
    "Decimal(70, 2)": OF_DECIMALS | {"quotient"},
    **dict.fromkeys(("FixedString(5)", "FixedString(70)", "LowCardinality(FixedString(5))", "UUID"), OF_ALL | {"text"}),
    "IPv4": OF_ALL | {"text", "conversion", "remainder", "quotient", "sum", "bits", "Unix time"},
    "IPv6": OF_ALL | {"text", "remainder", "quotient", "sum"},
    "BFloat16": OF_UNKNOWN_TYPES | {"conversion", "remainder", "quotient", "sum", "Unix time", "toDate"},
    "Time": OF_UNKNOWN_TYPES | {"conversion", "remainder", "sum", "Unix time", "toDate"},
    "Time64(3)": OF_UNKNOWN_TYPES | {"conversion", "sum", "Unix time", "toDate"},
    "IntervalDay": OF_UNKNOWN_TYPES | {"conversion", "sum", "part of a date", "Unix time", "toDate"},
    **dict.fromkeys(("Nullable(UInt64)", "Nullable(String)", "LowCardinality(Nullable(String))"), OF_ALL | {"hash"}),
    "Array(UInt8)": OF_UNKNOWN_TYPES | {"remainder", "quotient"},
    **dict.fromkeys(("Tuple(UInt8, String)", "Map(String, UInt8)"), OF_UNKNOWN_TYPES),
}


@dataclass
class Sharded:
    engine: Engine
    rows: bytes
    columns: str = ""

    @property
    def direct(self) -> Endpoint:
        return self.engine.direct

    def use(self, columns: Iterable[str]) -> None:
        """The tables have these columns only, for speed."""
        types = {name: data_type for data_type, name in TYPES.items()} | ODD_NAMES
        self.columns = ", ".join(["n", *(f"`{name}`" for name in columns)])
        declared = ", ".join(["n UInt32", *(f"`{name}` {types[name]}" for name in columns)])
        for database in SHARDS:
            self.direct.sql(f"CREATE OR REPLACE TABLE {database}.t ({declared}) ENGINE = Memory", **SUSPICIOUS)

    def landed(self, key: str) -> tuple[str, str]:
        """The key as ClickHouse shows it, and the shard of each row; or why ClickHouse refuses it."""
        try:
            distributed = f"ENGINE = Distributed(weighted, '', t, {key})"
            self.direct.sql(f"CREATE OR REPLACE TABLE d AS {SHARDS[0]}.t {distributed}", **SUSPICIOUS)
            for database in SHARDS:
                self.direct.sql(f"TRUNCATE TABLE {database}.t")
            self.direct.sql(f"INSERT INTO d SELECT {self.columns} FROM source", distributed_foreground_insert=1)
        except ClickHouseError as error:
            return key, f"{REFUSED}: {error.code}"
        shown = self.direct.sql("SELECT engine_full FROM system.tables WHERE database = 'default' AND name = 'd' FORMAT TSVRaw")
        found = re.fullmatch(r"Distributed\('weighted', '', 't', (.*)\)", shown, re.DOTALL)
        assert found, shown
        union = " UNION ALL ".join(
            f"SELECT n, {number} AS shard FROM {database}.t" for number, database in enumerate(SHARDS, start=1)
        )
        rows = self.direct.sql(f"SELECT n, shard FROM ({union}) ORDER BY n FORMAT TSV").splitlines()
        numbers, shards = zip(*(row.split("\t") for row in rows), strict=True)
        assert list(map(int, numbers)) == list(range(1, ROWS + 1)), f"{key}: some rows are nowhere, or twice"
        return found.group(1), ",".join(shards)

    def said(self, keys: list[str]) -> list[str]:
        command = [example_binary("sharding_key"), TIMEZONE, ",".join(map(str, WEIGHTS)), *keys]
        out = subprocess.run(command, input=self.rows, capture_output=True, check=True).stdout.decode()
        return [UNKNOWN if line == "-" else line for line in out.splitlines()]

    def compare(self, keys: list[str]) -> dict[str, str]:
        """Of each key whether it is refused, not understood or understood; a difference fails."""
        shown, landed = zip(*(self.landed(key) for key in keys), strict=True)
        outcomes = {}
        for key, by_clickhouse, by_code in zip(keys, landed, self.said(list(shown)), strict=True):
            if by_clickhouse.startswith(REFUSED):
                assert by_code == UNKNOWN, f"{key}: ClickHouse refuses what the code understands ({by_clickhouse})"
                outcomes[key] = REFUSED
            else:
                assert by_code in (by_clickhouse, UNKNOWN), f"seed {SEED}, {key}:\n{by_code}\n{by_clickhouse}"
                outcomes[key] = UNDERSTOOD if by_code == by_clickhouse else UNKNOWN
        return outcomes


def cluster_xml(port: int) -> str:
    login = f"<user>{TESTER.name}</user><password>{escape(TESTER.password)}</password>"
    shards = "".join(
        f"<shard><weight>{weight}</weight><replica><host>127.0.0.1</host><port>{port}</port>{login}"
        f"<default_database>{database}</default_database></replica></shard>"
        for weight, database in zip(WEIGHTS, SHARDS, strict=True)
    )
    return f"<remote_servers><weighted>{shards}</weighted></remote_servers>"


def edges(data_type: str) -> list[str]:
    """Values that random ones miss."""
    if data_type in INTEGERS:
        bits = int(data_type.rpartition("t")[2])
        low, high = (0, (1 << bits) - 1) if data_type.startswith("U") else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        return [str(number) for number in (low, low + 1, high, high - 1, 0, 1, min(high, 127), max(low, -1), max(low, -7))]
    if data_type == "DateTime" or data_type.startswith("DateTime("):
        return ["0", "86399", "86400", "4294967295", "951782400"]
    if data_type == "Date":
        return ["0", "65535", "11016"]
    if data_type == "Date32":
        return ["'1900-01-01'", "'2299-12-31'", "'1970-01-01'", "'1969-12-31'", "'1904-02-29'"]
    if data_type in ("Float32", "Float64"):
        return ["nan", "inf", "-inf", "-0.0", "0.0"]
    if data_type == "String":
        return [f"repeat('a', {length})" for length in (0, 1, 3, 4, 8, 9, 16, 17, 32, 33, 64, 65, 127, 128, 129, 300)]
    return []


def fill(direct: Endpoint) -> None:
    columns = ", ".join(f"{name} {data_type}" for data_type, name in TYPES.items())
    odd = ", ".join(f"`{name}` {data_type}" for name, data_type in ODD_NAMES.items())
    direct.sql(f"CREATE TABLE source (n UInt32, {columns}, {odd}) ENGINE = Memory", **SUSPICIOUS)
    for database in SHARDS:
        direct.sql(f"CREATE DATABASE {database}")
    made = ", ".join(f"r_{name} {data_type}" for data_type, name in TYPES.items() if data_type not in UNMADE)
    values = ", ".join(f"{value_of(data_type, name)} AS {name}" for data_type, name in TYPES.items())
    random_rows = f"SELECT rowNumberInAllBlocks() + 1 AS n, * FROM generateRandom($${made}$$, {SEED}, 90, 4) LIMIT {ROWS}"
    direct.sql(f"INSERT INTO source SELECT n, {values}, n * 251, n * 7 FROM ({random_rows})", max_threads=1, **SUSPICIOUS)


def value_of(data_type: str, name: str) -> str:
    """A column's edge values stand in its first rows."""
    random_value = UNMADE.get(data_type, f"r_{name}")
    found = ", ".join(f"CAST({value}, $${data_type}$$)" for value in edges(data_type))
    return f"if(n <= {len(edges(data_type))}, [{found}][n], {random_value})" if found else random_value


@pytest.fixture(scope="module")
def sharded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sharded]:
    port = free_port()
    zone = {"TZ": TIMEZONE}
    engine = Engine(tmp_path_factory.mktemp("sharded"), config=cluster_xml(port), native_port=port, environment=zone)
    fill(engine.direct)
    rows = engine.direct.request("SELECT * FROM source ORDER BY n FORMAT Native").body
    # ClickHouse leaves time zones out here. A gateway knows them from the table.
    for data_type, name in TYPES.items():
        if data_type.startswith("DateTime("):
            known = f"{chr(len(name))}{name}".encode()
            rows = rows.replace(known + b"\x08DateTime", known + f"{chr(len(data_type))}{data_type}".encode())
    yield Sharded(engine, rows)
    engine.stop()


@pytest.mark.parametrize("data_type", TYPES)
def test_every_type_in_every_key(sharded: Sharded, data_type: str) -> None:
    sharded.use(sorted({TYPES[data_type], "text", "uint64", "int8", "int16"}))
    unknown = NOT_UNDERSTOOD.get(data_type, OF_ALL)
    for group, keys in KEYS.items():
        outcomes = sharded.compare([re.sub(r"\bc\b", TYPES[data_type], key) for key in keys])
        taken = [outcome for outcome in outcomes.values() if outcome != REFUSED]
        if group in unknown:
            assert taken and set(taken) == {UNKNOWN}, f"{group} of {data_type}: {outcomes}"
        else:
            assert set(taken) <= {UNDERSTOOD}, f"{group} of {data_type}: {outcomes}"


MORE_KEYS = [
    "(uint32)", "`odd, name`", "UInt8", "UInt8 % 5",
    "cityHash64(uint64) % 16", "intHash64(int64) % 1000", "(uint8 + 1) % 7", "(int32 % 100) % 7", "-(int32 % 9)",
    "(uint16 * uint8) + (int8 - 3)", "intDiv(toUInt32(moment), 3600)", "toUInt64(cityHash64(uuid)) % 5",
    "bitXor(cityHash64(text), sipHash64(uuid))", "bitAnd(intHash32(int64), 255)", "toUInt8(cityHash64(text))",
    "cityHash64(text, 'salt', 7, -7, 70000, uint8)", "cityHash64(1, uint8)", "sipHash64('', text)",
    "murmurHash3_64(-1, 'x', text)",
    "xxHash32(300, text, 'x')", "xxHash64(text, -70000)", "xxh3(uuid, 5)",
    "cityHash64((uint8, text))", "cityHash64(tuple(uint8, (text, uuid)), fixed)", "sipHash64((1, 'x'), text)",
    "cityHash64(uint64, text, fixed, uuid, date, moment, ticks, float64, ipv4, ipv6, dec32, enum8, bool, int256, lc_text)",
    "sipHash64(uint64, text, fixed, uuid, date, moment, ticks, float64, ipv4, ipv6, dec32, enum8, bool, int256, lc_text)",
    "cityHash64(cityHash64(text), intHash32(uint8))", "cityHash64(toString(uint64 % 100), text)",
    "cityHash64(intDiv(int16, 7), date)", "cityHash64(toYYYYMM(date), uint8)", "toYYYYMM(date) + uint8",
    "uint64 % 18446744073709551615", "uint32 % 100000", "intDiv(int32, 100000)", "18446744073709551615 - uint64",
    *(f"toYYYYMMDD(moment_there, '{zone}')" for zone in ("UTC", "Etc/UTC", "UCT", "Etc/UCT", "GMT", "Etc/GMT")),
]  # fmt: skip


def test_keys_of_several_parts(sharded: Sharded) -> None:
    sharded.use([*TYPES.values(), *ODD_NAMES])
    outcomes = sharded.compare(MORE_KEYS)
    assert {key for key, outcome in outcomes.items() if outcome != UNDERSTOOD} == set()


NEVER_UNDERSTOOD = [
    # Constants, whose sign ClickHouse handles otherwise.
    "1", "-5", "cityHash64('x')", "3 + 4",
    # Random numbers that are no key by themselves: their remainders need not be in proportion to the weights.
    "rand() % 2", "cityHash64(rand())", "randConstant()", "rowNumberInAllBlocks()",
    # Divisors of which ClickHouse makes something of its own.
    "int8 % 100000", "int32 % -7", "uint32 % -7", "intDiv(int8, 200)", "intDiv(uint8, 1000)", "intDiv(int32, -3)",
    "uint32 % (3 + 4)", "uint32 % (uint8 + 1)", "positiveModulo(int64, 1000000000000)",
    # Values that were NULL once.
    "ifNull(null_uint64, 0)", "coalesce(null_uint64, 0)", "assumeNotNull(null_uint64)", "cityHash64((null_text, 1))",
    "cityHash64(assumeNotNull(null_text))",
    # Zones of which the server may know other rules.
    "toYYYYMM(moment, 'Africa/Casablanca')", "toYear(utc, 'Etc/GMT+1')", "toYYYYMM(date, 'UTC')",
    # Other functions, operators and constants.
    "halfMD5(text)", "farmHash64(text)", "metroHash64(text)", "murmurHash2_64(text)", "murmurHash3_32(text)", "javaHash(text)",
    "CRC32(text)", "jumpConsistentHash(uint64, 3)", "sipHash64(lower(text))", "sipHash64(concat(text, 'x'))", "length(text)",
    "uint8 > 3", "if(uint8 > 3, 1, 2)", "abs(int8)", "bitShiftRight(uint32, 3)", "bitNot(uint8)", "toUInt64OrZero(text)",
    "now()", "toRelativeDayNum(date)", "toMonday(date)", "identity(uint8)", "cityHash64(uint8 AS other)",
    "cityHash64(text, 1.5)",
    "cityHash64(text, 'a\\'b')", "cityHash64(pair.1)", "cityHash64(list[1])", "cityHash64(map['x'])", "cityHash64(uint8, true)",
]  # fmt: skip


def test_keys_that_are_not_understood(sharded: Sharded) -> None:
    sharded.use([*TYPES.values(), *ODD_NAMES])
    outcomes = sharded.compare(NEVER_UNDERSTOOD)
    refused = {"now()", "toMonday(date)"}
    assert {key for key, outcome in outcomes.items() if outcome != UNKNOWN} == refused
    assert {outcomes[key] for key in refused} == {REFUSED}


@pytest.mark.parametrize("key", ["rand()", "rand(uint8)", "rand32()", "rand64()", "rand(1)"])
def test_random_keys(sharded: Sharded, key: str) -> None:
    sharded.use(["uint8"])
    shown, landed = sharded.landed(key)
    # ClickHouse draws for each row, the code for all at once; neither ever hits the shard whose weight is 0.
    assert set(landed.split(",")) == {"1", "2", "4", "5"}
    assert set(sharded.said([shown])[0].split(",")) == {"1"}


def test_shards_and_their_weights(sharded: Sharded) -> None:
    question = "SELECT shard_num, shard_weight FROM system.clusters WHERE cluster = 'weighted' ORDER BY 1 FORMAT TSV"
    shown = sharded.direct.sql(question)
    assert [tuple(map(int, line.split())) for line in shown.splitlines()] == list(enumerate(WEIGHTS, start=1))


def test_what_is_left_out_takes_the_default_of_the_distributed_table(sharded: Sharded) -> None:
    """So a row without its key can't be placed here: the code says nothing of a column that isn't there."""
    direct = sharded.direct
    for database in SHARDS:
        direct.sql(f"CREATE TABLE {database}.late (a UInt32, b UInt32 DEFAULT 30) ENGINE = Memory")
    direct.sql("CREATE TABLE late (a UInt32, b UInt32 DEFAULT 7) ENGINE = Distributed(weighted, '', late, b)")
    direct.sql("INSERT INTO late (a) VALUES (1)", distributed_foreground_insert=1)
    assert [direct.sql(f"SELECT a, b FROM {database}.late FORMAT TSV") for database in SHARDS] == ["", "1\t7", "", "", ""]


def test_the_time_zone_is_the_servers(sharded: Sharded) -> None:
    """Not the session's, which changes what moments in text mean."""
    direct = sharded.direct
    for database in SHARDS:
        direct.sql(f"CREATE TABLE {database}.times (moment DateTime) ENGINE = Memory")
    direct.sql("CREATE TABLE times (moment DateTime) ENGINE = Distributed(weighted, '', times, toYYYYMMDD(moment))")
    # A quarter to midnight of the 8th of July in UTC, the 9th in Tokyo: the last remainder of the first shard, and its next.
    direct.sql("INSERT INTO times SELECT 1720482300", distributed_foreground_insert=1, session_timezone="Asia/Tokyo")
    counts = [direct.sql(f"SELECT count() FROM {database}.times") for database in SHARDS]
    assert counts == [str(int(number == 0)) for number in range(len(SHARDS))]
