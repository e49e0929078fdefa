"""Bodies that unpack to gigabytes, claim 2^60 of anything, are 100,000 deep or name 100,000 things: an answer each, in bounded memory, while a
good client's inserts go on."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import brotli
import lz4.frame
import numpy
import pyarrow
import pyarrow.parquet
import pytest
from backports import zstd

from harness.duckdb import DuckDbGateway
from harness.endpoint import Endpoint
from harness.gateway import Gateway
from harness.good_client import GoodClient
from harness.quick_http import QuickConnection
from harness.raw_http import RawConnection, head
from harness.users import TESTER

MIB = 1 << 20
BUFFERS, BODY, UNPACKED = 32 * MIB, 4 * MIB, 16 * MIB
CONFIG = f"[gather]\nmax_buffer_bytes = {BUFFERS}\n[http]\nmax_body_bytes_gathered = {BODY}\nmax_decompressed_bytes = {UNPACKED}\n"
# Bodies and what they unpack to have as much room as buffers have, and rows are the buffers'. An allocator keeps some of what it gets back.
MOST_GROWTH = 2 * BUFFERS + UNPACKED + 64 * MIB
# Columns of Arrow, Parquet and Avro may expand to a bound of their own before they are found too large; a copy is made of them at times.
MOST_EXPANDED = 2 * 256 * MIB
# What each of these cases takes is far below. A square of the names or fields that a body holds would be far above.
MOST_CPU_SECONDS = 10


class Stage:
    """A gateway with a good client, and the attacker's way to it."""

    def __init__(self, gateway: Gateway, endpoint: Endpoint, text: str, number: str, engine: str):
        self.gateway, self.endpoint = gateway, endpoint
        self.pid = gateway.child.pid
        columns = f"a {number}, s {text}"
        for name, columns in (("t", columns), ("good", columns), ("arrays", f"a Array({number})" if engine else f"a {number}[]")):
            endpoint.sql(f"CREATE TABLE {name} ({columns}) {engine}")
        self.good = GoodClient(endpoint)

    def attack(self, statement: str, body: bytes, growth: int = MOST_GROWTH, headers: dict[str, str] | None = None, **settings: object) -> None:
        self.measured(lambda: self.answered(statement, body, headers, settings), growth)

    def answered(self, statement: str | None, body: bytes, headers: dict[str, str] | None, settings: dict[str, object]) -> None:
        reply = self.endpoint.request(statement, body, {"async_insert": 1, **settings}, headers=headers)
        assert reply.status == 200 or reply.text.strip(), "a refusal says why"

    def measured(self, attack: Callable[[], None], growth: int) -> None:
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")
        before, cpu_before = self.peak_bytes(), self.cpu_seconds()
        attack()
        self.good.goes_on()
        grown, cpu = self.peak_bytes() - before, self.cpu_seconds() - cpu_before
        assert self.gateway.child.running(), self.gateway.child.log()[-3000:]
        assert grown <= growth, f"{grown >> 20} MiB more"
        assert cpu <= MOST_CPU_SECONDS, f"{cpu} s of CPU"

    def peak_bytes(self) -> int:
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.fixture(scope="module", params=["ClickHouse", "DuckDB"])
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("bombs")
    if request.param == "DuckDB":
        gateway: Gateway = DuckDbGateway(folder, config=CONFIG + "[duckdb]\nmemory_limit_bytes = '256MiB'\n")
        stage = Stage(gateway, gateway.http, "VARCHAR", "UBIGINT", "")
    else:
        gateway = Gateway(folder, CONFIG)
        endpoint = gateway.http.as_user(TESTER.name, TESTER.password)
        stage = Stage(gateway, endpoint, "String", "UInt64", "ENGINE = MergeTree ORDER BY tuple()")
    with stage.good:
        yield stage
    print(f"on {request.param}: {stage.good.times()}")
    assert gateway.stop() == 0


def packed(pack: Callable[[bytes], bytes], unit: bytes, times: int, mib: int = 16) -> bytes:
    """Streams of most encodings can be put one behind the other."""
    return pack(unit * (mib * MIB // len(unit))) * times


ZEROS, ROWS = b"\0" * MIB, (b'{"a":1,"s":"' + b"x" * 1000 + b'"}\n') * 1000
# Two gigabytes where that costs little to make, else more than may be taken of memory.
PACKED = {
    "gzip": lambda unit: packed(lambda data: gzip.compress(data, 1), unit, 32),
    "zstd": lambda unit: packed(zstd.compress, unit, 128),
    "lz4": lambda unit: packed(lz4.frame.compress, unit, 32),
    "xz": lambda unit: packed(lambda data: lzma.compress(data, preset=0), unit, 128),
    "br": lambda unit: packed(lambda data: brotli.compress(data, quality=1), unit, 1, 256),
    "deflate": lambda unit: packed(lambda data: zlib.compress(data, 1), unit, 1, 256),
}


@pytest.mark.parametrize("encoding", PACKED)
def test_what_unpacks_to_gigabytes(stage: Stage, encoding: str) -> None:
    stage.attack("INSERT INTO t FORMAT JSONEachRow", PACKED[encoding](ZEROS), headers={"Content-Encoding": encoding})


@pytest.mark.parametrize("encoding", ["br", "zstd"])
def test_rows_that_unpack_to_more_than_is_gathered(stage: Stage, encoding: str) -> None:
    body = {"br": lambda: packed(lambda data: brotli.compress(data, quality=1), ROWS, 1, 128), "zstd": lambda: packed(zstd.compress, ROWS, 8)}[encoding]()
    stage.attack("INSERT INTO t FORMAT JSONEachRow", body, headers={"Content-Encoding": encoding})


TWICE = gzip.compress(gzip.compress(b"\0" * 16 * MIB, 1) * 32)


@pytest.mark.parametrize("encoding", ["gzip, gzip", "gzip,zstd", "gzip;q=1", "GZIP", "x-gzip"])
def test_encodings_of_encodings(stage: Stage, encoding: str) -> None:
    stage.attack("INSERT INTO t FORMAT JSONEachRow", TWICE, headers={"Content-Encoding": encoding})


@pytest.mark.parametrize("dictionary", [22, 30, 40])
def test_xz_that_wants_a_large_dictionary(stage: Stage, dictionary: int) -> None:
    """The number stands in the block's head: 40 is 4 GiB."""
    body = bytearray(lzma.compress(b'{"a":1}', preset=0))
    at = body.index(b"\x21\x01", 12) + 2
    body[at] = dictionary
    # The block's head is checked.
    length = (body[12] + 1) * 4
    body[12 + length - 4 : 12 + length] = struct.pack("<I", zlib.crc32(body[12 : 12 + length - 4]))
    stage.attack("INSERT INTO t FORMAT JSONEachRow", bytes(body), headers={"Content-Encoding": "xz"})


@pytest.mark.parametrize("method", [0x82, 0x90, 0x02, 0x91])
@pytest.mark.parametrize("sizes", [(1009, 0xFFFFFFFF), (0x7FFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (9, 0xFFFFFFFF), (0, 0), (1009, 1 << 30)])
def test_clickhouses_blocks_that_claim(stage: Stage, method: int, sizes: tuple[int, int]) -> None:
    body = b"\x5a" * 16 + struct.pack("<BII", method, *sizes) + b"\0" * 1000
    stage.attack("INSERT INTO t FORMAT JSONEachRow", body, decompress=1)


def leb(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def sized(text: bytes) -> bytes:
    return leb(len(text)) + text


def zigzag(number: int) -> bytes:
    return leb(number << 1)


def avro(fields: object, rows: int, data: bytes, codec: bytes = b"null") -> bytes:
    schema, sync = fields if isinstance(fields, bytes) else json.dumps({"type": "record", "name": "r", "fields": fields}).encode(), b"0123456789abcdef"
    said = b"".join(zigzag(len(text)) + text for text in (b"avro.schema", schema, b"avro.codec", codec))
    return b"Obj\1" + zigzag(2) + said + zigzag(0) + sync + zigzag(rows) + zigzag(len(data)) + data + sync


def arrow(table: pyarrow.Table, compression: str | None = None) -> bytes:
    out = io.BytesIO()
    with pyarrow.ipc.new_stream(out, table.schema, options=pyarrow.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table)
    return out.getvalue()


def parquet(table: pyarrow.Table, **options: object) -> bytes:
    out = io.BytesIO()
    pyarrow.parquet.write_table(table, out, row_group_size=table.num_rows, **options)
    return out.getvalue()


HUGE = leb(1 << 60)
A_COLUMN = b"\1\1" + sized(b"a")
LONG = [{"name": "a", "type": "long"}]
TEXT = [{"name": "s", "type": "string"}]
CLAIMS = {
    "Native: columns": ("t FORMAT Native", HUGE + b"\1"),
    "Native: rows": ("t FORMAT Native", b"\1" + HUGE + sized(b"a") + sized(b"UInt64")),
    "Native: rows of strings": ("t FORMAT Native", b"\1" + HUGE + sized(b"s") + sized(b"String")),
    "Native: rows of nothing": ("t FORMAT Native", b"\1" + leb(100_000_000) + sized(b"a") + sized(b"Nothing")),
    "Native: rows of empty tuples": ("t FORMAT Native", b"\1" + leb(100_000_000) + sized(b"a") + sized(b"Tuple()")),
    "Native: empty blocks": ("t FORMAT Native", b"\0\0" * 1_000_000),
    "Native: a string": ("t FORMAT Native", A_COLUMN + sized(b"String") + HUGE),
    "Native: a fixed string": ("t FORMAT Native", A_COLUMN + sized(b"FixedString(1152921504606846976)")),
    "Native: an array": ("arrays FORMAT Native", A_COLUMN + sized(b"Array(UInt64)") + struct.pack("<Q", 1 << 60)),
    "Native: a dictionary": ("t FORMAT Native", A_COLUMN + sized(b"LowCardinality(String)") + struct.pack("<QQQ", 1, 0x600, 1 << 60)),
    "RowBinary: a string": ("t FORMAT RowBinary", b"\1" * 8 + HUGE),
    "RowBinary: an array": ("arrays FORMAT RowBinary", HUGE),
    "RowBinary: names": ("t FORMAT RowBinaryWithNames", HUGE),
    "MsgPack: an array": ("arrays FORMAT MsgPack", b"\xdd\xff\xff\xff\xff"),
    "MsgPack: a map": ("t FORMAT MsgPack", b"\xdf\xff\xff\xff\xff"),
    "MsgPack: a string": ("t FORMAT MsgPack", b"\1\xdb\xff\xff\xff\xff"),
    "MsgPack: bytes": ("t FORMAT MsgPack", b"\1\xc6\xff\xff\xff\xff"),
    "BSON: a document": ("t FORMAT BSONEachRow", b"\xff\xff\xff\x7f\x02s\0\xff\xff\xff\x7f"),
    "Avro: rows": ("t (a) FORMAT Avro", avro(LONG, 1 << 60, b"\2")),
    "Avro: a string": ("t (s) FORMAT Avro", avro(TEXT, 1, zigzag(1 << 60))),
    "Avro: a fixed string": ("t (s) FORMAT Avro", avro([{"name": "s", "type": {"type": "fixed", "name": "f", "size": 1 << 60}}], 1, b"")),
    "Avro: a snappy block": ("t (a) FORMAT Avro", avro(LONG, 1, leb(1 << 30) + b"\0" * 5, b"snappy")),
    "Protobuf: a message": ("t FORMAT ProtobufSingle", b"\x0a\xff\xff\xff\xff\x7f"),
    "JSON: a number": ("t FORMAT JSONEachRow", b'{"a":1e999999999}'),
    "JSON: a number of digits": ("t FORMAT JSONEachRow", b'{"a":' + b"9" * 3_000_000 + b"}"),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_what_claims_more_than_there_is(stage: Stage, claim: str) -> None:
    into, body = CLAIMS[claim]
    stage.attack(f"INSERT INTO {into}", body)


@pytest.mark.parametrize("place", ["row count", "sizes of pages", "length of the footer"])
def test_parquet_that_claims(stage: Stage, place: str) -> None:
    """Each byte that could be a length is made the largest one: those of the pages, of the footer, and the footer's own."""
    whole = parquet(pyarrow.table({"a": pyarrow.array([1, 2, 3], pyarrow.uint64())}), compression="snappy")
    footer = struct.unpack("<I", whole[-8:-4])[0]
    ends = {"row count": range(len(whole) - 8 - footer, len(whole) - 8, 7), "sizes of pages": range(4, 44, 3), "length of the footer": range(len(whole) - 8, len(whole) - 4)}
    for at in ends[place]:
        stage.answered("INSERT INTO t (a) FORMAT Parquet", whole[:at] + b"\xff\xff\xff\xff\x7f" + whole[at + 5 :], None, {})
    stage.attack("INSERT INTO t (a) FORMAT Parquet", whole)


# Larger than what is held for one table, which is half of the buffers.
ZERO_NUMBERS = pyarrow.table({"a": numpy.zeros(3_000_000, dtype=numpy.uint64)})
# More than columns may expand to.
LONG_TEXTS = pyarrow.table({"s": pyarrow.DictionaryArray.from_arrays(numpy.zeros(30_000, dtype=numpy.int32), pyarrow.array(["x" * 10_000]))})
EXPANDING = {
    "Arrow in zstd": lambda: ("t (a) FORMAT ArrowStream", arrow(ZERO_NUMBERS, "zstd")),
    "Arrow with a dictionary": lambda: ("t (s) FORMAT ArrowStream", arrow(LONG_TEXTS)),
    "Parquet with a dictionary": lambda: ("t (s) FORMAT Parquet", parquet(LONG_TEXTS)),
    "Parquet in zstd": lambda: ("t (a) FORMAT Parquet", parquet(ZERO_NUMBERS, use_dictionary=False, compression="zstd")),
    "Avro in zstd": lambda: ("t (a) FORMAT Avro", avro(LONG, 1, zstd.compress(b"\0" * 257 * MIB), b"zstandard")),
    "Avro in deflate": lambda: ("t (a) FORMAT Avro", avro(LONG, 1, zlib.compress(b"\0" * 257 * MIB, 1)[2:-4], b"deflate")),
}


@pytest.mark.parametrize("bomb", EXPANDING)
def test_columns_that_expand(stage: Stage, bomb: str) -> None:
    into, body = EXPANDING[bomb]()
    stage.attack(f"INSERT INTO {into}", body, MOST_GROWTH + MOST_EXPANDED)


DEEP = 100_000
LISTS, OBJECTS = b"[" * DEEP + b"]" * DEEP, b'{"a":' * DEEP + b"1" + b"}" * DEEP
DEEP_TYPE = b"Array(" * (DEEP // 10) + b"UInt8" + b")" * (DEEP // 10)
DEEP_SCHEMA = b'{"type":"array","items":' * DEEP + b'"int"' + b"}" * DEEP
NESTED = {
    "JSON lists": ("arrays FORMAT JSONEachRow", b'{"a":' + LISTS + b"}"),
    "JSON lists in a field that is not there": ("t SETTINGS input_format_skip_unknown_fields = 1 FORMAT JSONEachRow", b'{"zork":' + LISTS + b"}"),
    "JSON objects in a field that is not there": ("t SETTINGS input_format_skip_unknown_fields = 1 FORMAT JSONEachRow", b'{"zork":' + OBJECTS + b"}"),
    "JSON objects into text": ("t FORMAT JSONEachRow", b'{"s":' + OBJECTS + b"}"),
    "JSON metadata": ("t FORMAT JSON", b'{"meta":' + LISTS + b"}"),
    "JSONCompactEachRow": ("arrays FORMAT JSONCompactEachRow", LISTS),
    "Values: lists": ("arrays FORMAT Values", b"(" + LISTS + b")"),
    "Values: parentheses": ("t FORMAT Values", b"(" * DEEP + b")" * DEEP),
    "TSV": ("arrays FORMAT TSV", LISTS + b"\n"),
    "CSV": ("arrays FORMAT CSV", b'"' + LISTS + b'"\n'),
    "MsgPack lists": ("arrays FORMAT MsgPack", b"\x91" * DEEP),
    "MsgPack maps": ("t FORMAT MsgPack", b"\x81" * DEEP),
    "BSON": ("arrays FORMAT BSONEachRow", b"\xff\xff\xff\x7f\x04a\0" * DEEP),
    "a type in Native": ("arrays FORMAT Native", A_COLUMN + sized(DEEP_TYPE) + b"\0" * 100),
    "a type in RowBinary": ("arrays FORMAT RowBinaryWithNamesAndTypes", b"\1" + sized(b"a") + sized(DEEP_TYPE)),
    "a type in CSV": ("arrays FORMAT CSVWithNamesAndTypes", b'a\n"' + DEEP_TYPE + b'"\n"[1]"\n'),
    "a schema in Avro": ("arrays FORMAT Avro", avro(b'{"type":"record","name":"r","fields":[{"name":"a","type":' + DEEP_SCHEMA + b"}]}", 1, b"")),
    "JSON in Avro": ("arrays FORMAT Avro", avro(LISTS, 1, b"")),
    "a record in itself in Avro": ("t FORMAT Avro", avro([{"name": "a", "type": ["null", "r"]}], 1, b"\2" * 1_000_000)),
    "a statement's parentheses": ("t SELECT " + "(" * 10_000, b""),
    "a statement's comments": ("t " + "/*" * 20_000, b""),
}


@pytest.mark.parametrize("form", NESTED)
def test_what_is_a_hundred_thousand_deep(stage: Stage, form: str) -> None:
    into, body = NESTED[form]
    stage.attack(f"INSERT INTO {into}", body)


NAMES = [f"k{number}" for number in range(100_000)]
MANY = {
    "fields of JSON": ("t FORMAT JSONEachRow", ("{" + ",".join(f'"{name}":1' for name in NAMES) + "}").encode()),
    "one field of JSON again and again": ("t FORMAT JSONEachRow", ("{" + ",".join(['"a":1'] * 100_000) + "}").encode()),
    "names in CSV": ("t FORMAT CSVWithNames", (",".join(NAMES) + "\n1\n").encode()),
    "names in TSV": ("t FORMAT TSVWithNamesAndTypes", ("\t".join(NAMES) + "\n" + "\t".join(["UInt64"] * len(NAMES)) + "\n1\n").encode()),
    "names in JSONCompactEachRow": ("t FORMAT JSONCompactEachRowWithNames", ("[" + ",".join(f'"{name}"' for name in NAMES) + "]\n[1]\n").encode()),
    "names in RowBinary": ("t FORMAT RowBinaryWithNames", leb(len(NAMES)) + b"".join(sized(name.encode()) for name in NAMES)),
    "columns in Native": ("t FORMAT Native", leb(len(NAMES)) + b"\1" + b"".join(sized(name.encode()) + sized(b"UInt8") + b"\1" for name in NAMES)),
    "columns in Arrow": ("t FORMAT ArrowStream", arrow(pyarrow.table({name: pyarrow.array([1], pyarrow.int8()) for name in NAMES[:10_000]}))),
    "fields in Avro": ("t (a) FORMAT Avro", avro([{"name": name, "type": "long"} for name in NAMES], 1, b"\2" * len(NAMES))),
    "rows of nothing": ("t FORMAT JSONEachRow", b"{}\n" * 1_000_000),
}


@pytest.mark.parametrize("things", MANY)
def test_a_hundred_thousand_names(stage: Stage, things: str) -> None:
    into, body = MANY[things]
    stage.attack(f"INSERT INTO {into}", body)


# As much as a statement in a body may have.
STATEMENTS = {
    "columns": "INSERT INTO t (" + ",".join(NAMES[:25_000]) + ') FORMAT JSONEachRow {"a":1}',
    "one column": "INSERT INTO t (" + ",".join(["a"] * 100_000) + ') FORMAT JSONEachRow {"a":1}',
    "settings": "INSERT INTO t SETTINGS " + ",".join(f"{name}=1" for name in NAMES[:25_000]) + ' FORMAT JSONEachRow {"a":1}',
    "one setting": "INSERT INTO t SETTINGS " + ",".join(["max_threads=1"] * 15_000) + ' FORMAT JSONEachRow {"a":1}',
    "parts of a name": "INSERT INTO " + "a." * 100_000 + 't FORMAT JSONEachRow {"a":1}',
    "changes": "ALTER TABLE t " + "ADD COLUMN x UInt8, " * 12_000,
    "queries": "WITH " + "x AS (SELECT " * 15_000,
}


@pytest.mark.parametrize("things", STATEMENTS)
def test_statements_of_many_things(stage: Stage, things: str) -> None:
    stage.measured(lambda: stage.answered(None, STATEMENTS[things].encode(), None, {}), MOST_GROWTH)


@pytest.mark.parametrize("parameter", ["&a", "&max_threads=1", "&k{}=1", "&role=a", "&param_x=1", "&query_id=x", "&user=joe", "&{}=1"])
@pytest.mark.parametrize("user", ["known", "stranger"])
def test_urls_of_many_parameters(stage: Stage, parameter: str, user: str) -> None:
    """As many as ClickHouse takes, and no more. Nobody has to be known for this, so it has to cost little."""
    asked = stage.endpoint if user == "known" else stage.endpoint.as_user("nobody", "x")
    target = asked.target("INSERT INTO t FORMAT JSONEachRow")

    def ask() -> None:
        for number in (1000, 900_000 // len(parameter.format(10_000))):
            with RawConnection(asked) as connection:
                more = "".join(parameter.format(at) for at in range(number))
                reply = connection.exchange(head("POST", target + more, (("Host", "x"), ("Authorization", asked.basic_auth()), ("Content-Length", "0"))))
            assert (reply.status, "too many parameters" in reply.text) == (431, True), reply.text

    stage.measured(ask, MOST_GROWTH)


def test_inserts_of_many_shapes(stage: Stage) -> None:
    """Each with an id and a comment of its own, and from nobody."""

    def ask() -> None:
        connection = QuickConnection(stage.endpoint)
        for number in range(100):
            target = stage.endpoint.target("INSERT INTO t FORMAT JSONEachRow", {"async_insert": 1, "query_id": f"{number}{'x' * 1000}", "log_comment": str(number)})
            assert connection.post(target, b'{"a":1}').status == 200
        connection.close()
        for number in range(30):
            stranger = stage.endpoint.as_user(f"nobody {number}", "x")
            connection = QuickConnection(stranger)
            assert connection.post(stranger.target("INSERT INTO t FORMAT JSONEachRow"), b'{"a":1}').status in (401, 403)
            connection.close()

    stage.measured(ask, MOST_GROWTH)
