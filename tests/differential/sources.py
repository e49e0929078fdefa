"""Tables full of values, one for each type, out of which ClickHouse renders payloads in any format."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from differential.composites import COMPOSITES
from differential.kind import Kind
from differential.language import Language
from differential.payloads import encoded
from differential.scalars import SCALARS
from differential.times import DATES, TIMES
from harness.endpoint import ClickHouseError, Endpoint

PLAIN_ROWS, RANDOM_ROWS = 40, 24
ALLOWED = {
    "allow_suspicious_low_cardinality_types": 1, "allow_experimental_time_time64_type": 1, "enable_time_time64_type": 1,
    "allow_suspicious_variant_types": 1, "allow_experimental_bfloat16_type": 1, "flatten_nested": 0,
}  # fmt: skip


@dataclass(frozen=True)
class Source:
    """A type with values. `values` are SQL expressions over `number`, if no Kind knows how its literals look."""

    type: str
    kind: Kind | None = None
    values: str = ""
    # How the documentation's table names it; types of one label share a line.
    label: str = ""


def of_kind(kind: Kind, label: str = "") -> Source:
    return Source(kind.name, kind, label=label or kind.name.split("(")[0])


INTERVALS = ("Nanosecond", "Millisecond", "Second", "Minute", "Day", "Month", "Year")
OTHERS = (
    Source("BFloat16", values="toBFloat16((number - 20) * 1.75)"),
    Source("Time", values="toTime(number * 1000)"),
    Source("Time64(3)", values="toTime64(number * 1000 + 0.125, 3)"),
    *(Source(f"Interval{unit}", values=f"toInterval{unit}(number - 5)", label="Interval") for unit in INTERVALS),
    Source("Point", values="(number / 4, -number)::Point", label="Geo"),
    Source("Ring", values="[(number, 0), (1.5, number)]::Ring", label="Geo"),
    Source("LineString", values="[(number, 0), (1.5, number)]::LineString", label="Geo"),
    Source("Polygon", values="[[(number, 0), (1.5, number)]]::Polygon", label="Geo"),
    Source("MultiPolygon", values="[[[(number, 0), (1.5, number)]], []]::MultiPolygon", label="Geo"),
    Source("Nested(a UInt8, b String)", values="[(number % 100, 'x'), (1, toString(number))]", label="Nested"),
    Source("SimpleAggregateFunction(sum, UInt64)", values="number", label="SimpleAggregateFunction"),
    Source("SimpleAggregateFunction(anyLast, Nullable(String))", values="if(number % 3 = 0, NULL, toString(number))",
        label="SimpleAggregateFunction"),
    Source("AggregateFunction(count)", values="arrayReduce('countState', range(number))", label="AggregateFunction"),
    Source("AggregateFunction(uniq, UInt64)", values="arrayReduce('uniqState', range(number))",
        label="AggregateFunction"),
    Source("Variant(String, UInt64)", values="if(number % 3 = 0, 'text'::Variant(String, UInt64), "
        "if(number % 3 = 1, number::UInt64::Variant(String, UInt64), NULL))", label="Variant"),
    Source("Dynamic", values="if(number % 2 = 0, 'text'::Dynamic, number::Dynamic)"),
    Source("JSON", values="concat('{\"a\":', toString(number), ',\"b\":{\"c\":\"x\"}}')::JSON"),
    Source("JSON(a UInt32)", values="concat('{\"a\":', toString(number), ',\"b\":[1,2]}')::JSON(a UInt32)",
        label="JSON"),
)  # fmt: skip

SOURCES = (
    *(of_kind(kind, "Int, UInt") for kind in SCALARS if kind.name.lstrip("U").startswith("Int")),
    *(of_kind(kind) for kind in SCALARS if not kind.name.lstrip("U").startswith("Int")),
    *(of_kind(kind) for kind in (*DATES, *TIMES)),
    *(of_kind(kind) for kind in COMPOSITES),
    *OTHERS,
)


def table(index: int) -> str:
    return f"s_{index}"


def fill(endpoint: Endpoint, index: int, rng: Random) -> None:
    """Everyday values first, then random ones as ClickHouse makes them up, where it does."""
    source = SOURCES[index]
    create(endpoint, table(index), source.type)
    if source.kind is None:
        endpoint.sql(f"INSERT INTO {table(index)} SELECT number, {source.values} FROM numbers({PLAIN_ROWS})", **ALLOWED)
    else:
        rows = (f"({n}, {source.kind.plain(rng, Language.SQL)})" for n in range(PLAIN_ROWS))
        query = f"INSERT INTO {table(index)} VALUES "
        reply = endpoint.request(query, encoded(",".join(rows)), ALLOWED)
        assert reply.status == 200, f"{source.type}: {reply.text}"
    made_up = f"generateRandom('v {source.type.replace(chr(92), chr(92) * 2).replace(chr(39), chr(92) + chr(39))}', {rng.randrange(1000)}, 12, 3)"
    try:
        endpoint.sql(f"INSERT INTO {table(index)} SELECT {PLAIN_ROWS} + rowNumberInAllBlocks(), v FROM {made_up} "
            f"LIMIT {RANDOM_ROWS}", **ALLOWED)  # fmt: skip
    except ClickHouseError as error:
        # It makes up no values of this type.
        assert error.code in (10, 36, 43, 44, 48, 50, 53), error


def create(endpoint: Endpoint, name: str, type_name: str, more: str = "") -> None:
    settings = "SETTINGS allow_suspicious_low_cardinality_types = 1"
    endpoint.sql(f"CREATE TABLE {name} (n UInt32, v {type_name}{more}) ENGINE = Memory {settings}", **ALLOWED)
