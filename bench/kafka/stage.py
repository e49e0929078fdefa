"""What Kafka's benchmarks share: a broker, topics with the article's aggregated views, the tables that they go into, and who moves them
there: ClickHouse's Kafka engine, or a gateway with a pipeline.

The pipeline runs in a gateway of its own, in front of the ClickHouse that also has the Kafka engine; the engine is gone while it
runs, and the other way round. No group and no table is used twice: what a run has left behind is in nobody's way.
"""

import itertools
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from confluent_kafka import ConsumerGroupState
from harness.kafka import Broker
from harness.kafka_offsets import CommittedUnknown, committed
from harness.kafka_topics import Topics

from bench.base.processes import Program, peak_bytes, usage
from bench.base.stack import Server, Stack, binary, read_all

PARTITIONS = 4
ROWS_OF_A_LONG_MESSAGE = 500
SCHEMA = (
    'syntax = "proto3"; message Stats { uint32 event_date = 1; uint32 event_datetime = 2; uint32 property_id = 3; '
    "string video_title = 4; uint64 total_view_count = 5; }"
)
MESSAGE = "Stats"
# What Kafka's own scripts start it with.
JAVA = ("-Xmx1G", "-Xms1G", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35")
# Time for all members to come: each that comes later would stop the others.
BROKER_SETTINGS: dict[str, object] = {"group.initial.rebalance.delay.ms": 1000}
# A steady producer's: how long it gathers a batch, about; how many rounds of batches it makes; the broker takes none above 1 MiB.
TICK_SECONDS, ROUNDS, MAX_BATCH_BYTES = 0.01, 16, 512 << 10


@dataclass(frozen=True)
class Format:
    # As ClickHouse and the settings call it.
    name: str
    # What the topic holds: two formats can read one.
    topic: str
    # How ClickHouse writes the messages.
    written_as: str
    message_bytes: int
    rows_per_message: int = 1
    columns: str = (
        "event_date Date, event_datetime DateTime('UTC'), property_id UInt32, video_title String, total_view_count UInt64"
    )

    @property
    def title(self) -> str:
        return self.name if self.rows_per_message == 1 else f"{self.name}, {self.rows_per_message} rows a message"

    @property
    def needs_schema(self) -> bool:
        return self.name.startswith("Protobuf")


FORMATS = {
    # The messages of `ProtobufSingle`, which nobody looks into.
    "raw-blob": Format("RawBLOB", "protobuf-single", "Protobuf", 44, columns="raw String"),
    "json-each-row": Format("JSONEachRow", "json-each-row", "JSONEachRow", 148),
    "protobuf-single": Format("ProtobufSingle", "protobuf-single", "Protobuf", 44),
    "protobuf": Format("Protobuf", "protobuf", "Protobuf", 45 * ROWS_OF_A_LONG_MESSAGE, ROWS_OF_A_LONG_MESSAGE),
}
# Spreads neighbours, by the multiplier of Knuth's hash.
SPREAD = "bitRotateLeft(number * 11400714819323198485, 29)"
VIEWS = f"toUInt64(1 + bitShiftRight({SPREAD}, 24) % 9)"


def rows_sql(hour: int, rows: int) -> str:
    """All in one hour: the article's table has a partition for each, and drops rows that are a day old. 50 properties have 20 titles
    each, and there are 60 seconds, so that rows of one time, property and title are there to be aggregated."""
    return (
        f"SELECT toDate(toDateTime({hour}, 'UTC')) AS event_date, "
        f"toDateTime({hour} + bitShiftRight({SPREAD}, 16) % 60, 'UTC') AS event_datetime, "
        f"toUInt32({SPREAD} % 50) AS property_id, bitShiftRight({SPREAD}, 8) % 20 AS title, "
        "concat('Show ', toString(property_id), ', season ', toString(intDiv(title, 10) + 1), ', episode ', "
        f"toString(title % 10 + 1)) AS video_title, {VIEWS} AS total_view_count FROM numbers({rows})"
    )


class Stage:
    def __init__(self, stack: Stack, rows: int) -> None:
        self.stack, self.sql, self.rows = stack, stack.clickhouse, rows
        self.folder = tempfile.TemporaryDirectory(prefix="windrow-bench-kafka-")
        self.broker = Broker(Path(self.folder.name), java=JAVA, settings=BROKER_SETTINGS)
        self.topics = Topics(self.broker)
        self.hour = int(time.time()) // 3600 * 3600
        self.filled: dict[str, int] = {}
        self.runs = itertools.count(1)
        self.views_of = cache(self._views_of)

    def close(self) -> None:
        self.broker.stop()
        self.folder.cleanup()

    def cpu(self, reader: "Reader | None" = None, producer: Program | None = None) -> dict[str, float]:
        """Seconds up to now, of all who share the machine."""
        found = {"clickhouse": self.stack.snapshot().clickhouse.cpu_seconds, "broker": usage(self.broker.child.pid).cpu_seconds}
        if reader and reader.pid:
            found["gateway"] = usage(reader.pid).cpu_seconds
        return found | ({"producer": usage(producer.pid).cpu_seconds} if producer else {})

    def committed(self, group: str, topic: str) -> int:
        """How many messages of the topic the group has committed, which is what is stored of them."""
        try:
            known = committed("127.0.0.1", self.broker.ports.plaintext, group, topic, list(range(PARTITIONS)))
        except CommittedUnknown:
            return 0
        return sum(max(0, one.offset) for one in known.values())

    def is_stable(self, group: str) -> bool:
        """It has its members, and each of them knows its partitions."""
        known = self.topics.admin.describe_consumer_groups([group])[group].result(30)
        return known.state == ConsumerGroupState.STABLE and bool(known.members)

    def _views_of(self, rows: int) -> int:
        """As the tables have to add them up."""
        return int(self.sql.sql(f"SELECT sum({VIEWS}) FROM numbers({rows})")) if rows else 0

    def filled_with(self, format: Format) -> int:
        """The format's topic is filled when it is first asked for. Returns how many messages it holds."""
        if format.topic not in self.filled:
            self.topics.create(format.topic, PARTITIONS)
            producer = self.producer(format, format.topic, self.rows, None)
            producer.input.close()
            self.filled[format.topic] = int(producer.answer()["messages"])
            producer.process.wait(60)
            print(f"kafka: {format.topic}: {self.filled[format.topic]} messages", file=sys.stderr)
        return self.filled[format.topic]

    def producer(self, format: Format, topic: str, rows: int, steady: dict[str, float] | None) -> Program:
        """Gets the messages of so many rows, which ClickHouse makes."""
        program = Program([str(binary("windrow-bench")), "produce"])
        program.tell({
            "address": self.broker.address, "topic": topic, "partitions": PARTITIONS, "steady": steady,
            "delimited": format.written_as == "Protobuf", "rows_per_message": format.rows_per_message,
        })  # fmt: skip
        what = "event_date, event_datetime, property_id, video_title, total_view_count"
        query = f"SELECT {what} FROM ({rows_sql(self.hour, rows)}) FORMAT {format.written_as}"
        settings = {"max_threads": 1, "output_format_json_quote_64bit_integers": 0}
        if format.written_as == "Protobuf":
            settings |= {"format_schema": SCHEMA, "format_schema_source": "string", "format_schema_message_name": MESSAGE}
        read_all(self.sql, query, program.input.write, settings)
        program.input.flush()
        return program


@dataclass
class Target:
    """A table with nothing in it, of one of the article's three engines."""

    stage: Stage
    name: str
    engine: str
    format: Format
    # Whether each row keeps its message's timestamp, in a column `ts`.
    stamped: bool = False

    def __post_init__(self) -> None:
        self.drop()
        self.stage.sql.sql(self.ddl())

    def drop(self) -> None:
        self.stage.sql.sql(f"DROP TABLE IF EXISTS {self.name} SYNC")

    def ddl(self) -> str:
        columns = self.format.columns + (", ts DateTime64(3, 'UTC')" if self.stamped else "")
        key = "tuple()" if self.format.name == "RawBLOB" else "(property_id, event_datetime, video_title)"
        # The numbers of blocks are kept through merges: which insert brought a row is looked up by them.
        settings = " SETTINGS enable_block_number_column = 1" if self.stamped else ""
        if self.engine != "AggregatingMergeTree":
            order = f" ORDER BY {key}{settings}" if self.engine == "MergeTree" else ""
            return f"CREATE TABLE {self.name} ({columns}) ENGINE = {self.engine}{order}"
        # The article's, without its replicas and without a column in its key that it doesn't have. ClickHouse wants to be told today that
        # the date, which follows from the time, is in no key.
        return (
            f"CREATE TABLE {self.name} (event_date Date CODEC(DoubleDelta, ZSTD(1)), event_datetime DateTime('UTC') "
            "CODEC(DoubleDelta, ZSTD(1)), property_id UInt32 CODEC(DoubleDelta, ZSTD(1)), video_title String CODEC(ZSTD(1)), "
            "total_view_count SimpleAggregateFunction(sum, UInt64) CODEC(ZSTD(1))) ENGINE = AggregatingMergeTree PARTITION BY "
            "toStartOfInterval(event_datetime, toIntervalHour(1)) PRIMARY KEY (property_id, event_datetime) ORDER BY "
            f"{key} TTL event_datetime + toIntervalDay(1) SETTINGS allow_dimensions_outside_sorting_key = 1"
        )

    def select_from(self, queue: str) -> str:
        """What a view over the engine's queue moves into it: the article's own aggregation where it is its table."""
        if self.engine == "AggregatingMergeTree":
            keys = "event_date, event_datetime, property_id, video_title"
            summed = "sumSimpleState(total_view_count) AS total_view_count"
            return f"SELECT {keys}, {summed} FROM {queue} GROUP BY {keys}"
        return f"SELECT *{', assumeNotNull(_timestamp_ms) AS ts' if self.stamped else ''} FROM {queue}"

    def check(self, rows: int, views: int) -> None:
        """Whether all that was sent is there, and once."""
        if self.engine == "Null":
            return
        of_rows = "sum(total_view_count)" if self.engine == "AggregatingMergeTree" else f"if(count() = {rows}, sum(total_view_count), 0)"
        what, wanted = ("count()", rows) if self.format.name == "RawBLOB" else (of_rows, views)
        if (found := int(self.stage.sql.sql(f"SELECT {what} FROM {self.name}"))) != wanted:
            raise SystemExit(f"{self.engine}, {self.format.name}: {what} is {found} instead of {wanted}")


@dataclass(frozen=True)
class Side:
    title: str
    is_engine: bool = False
    # Behind the engine's consumers: one block of what all have read, or a thread for each. What serves better depends on what they read.
    thread_per_consumer: bool = True
    exactly_once: bool = True
    max_latency: str = "5s"

    @property
    def chosen_as(self) -> str:
        return "engine" if self.is_engine else "windrow"


ENGINE = Side("Kafka engine, a thread per consumer", is_engine=True)
SHARED_ENGINE = Side("Kafka engine", is_engine=True, thread_per_consumer=False)
# What is as it comes, and what the goals of latency are about.
WINDROW = Side("Windrow")
AT_LEAST_ONCE = Side("Windrow, at least once", exactly_once=False)
WITHIN_A_SECOND = Side("Windrow", max_latency="1s")
QUEUE, VIEW = "bench.kafka_queue", "bench.kafka_view"
# The article's, with as many consumers as this machine has CPUs for.
QUEUE_SETTINGS = "kafka_num_consumers = 2, kafka_flush_interval_ms = 2200"


class Reader:
    """Moves a topic's messages into a table from its start on, until it is stopped."""

    def __init__(self, stage: Stage, side: Side, target: Target, topic: str, group: str) -> None:
        self.stage, self.gateway = stage, None
        format, address = target.format, stage.broker.address
        if side.is_engine:
            settings = (
                f"kafka_broker_list = '{address}', kafka_topic_list = '{topic}', kafka_group_name = '{group}', kafka_format = "
                f"'{format.name}', {QUEUE_SETTINGS}, kafka_thread_per_consumer = {int(side.thread_per_consumer)}"
            )
            if format.needs_schema:
                settings += f", format_schema = '{SCHEMA}', format_schema_source = 'string', format_schema_message_name = '{MESSAGE}'"
            stage.sql.sql(f"CREATE TABLE {QUEUE} ({format.columns}) ENGINE = Kafka SETTINGS {settings}")
            stage.sql.sql(f"CREATE MATERIALIZED VIEW {VIEW} TO {target.name} AS {target.select_from(QUEUE)}")
            return
        self.folder = tempfile.TemporaryDirectory(prefix="windrow-bench-")
        schema = Path(self.folder.name) / "stats.proto"
        schema.write_text(SCHEMA)
        # What can be chosen by itself is.
        config = (
            f'[[kafka]]\nbrokers = ["{address}"]\ntopics = ["{topic}"]\ngroup = "{group}"\ntable = "{target.name}"\n'
            f'format = "{format.name}"\nstart = "earliest"\nmax_latency = "{side.max_latency}"\n'
            f"exactly_once = {str(side.exactly_once).lower()}\n"
        )
        config += f'schema_file = "{schema}"\nmessage = "{MESSAGE}"\n' if format.needs_schema else ""
        config += 'columns = { ts = "_timestamp_ms" }\n' if target.stamped else ""
        self.gateway: Server | None = stage.stack.another_gateway(config, Path(self.folder.name))

    @property
    def pid(self) -> int | None:
        """Of its own process; the engine's is ClickHouse's."""
        return self.gateway.child.pid if self.gateway else None

    def peak_mb(self) -> float | None:
        return peak_bytes(self.pid) / 1e6 if self.pid else None

    def stop(self) -> None:
        if self.gateway:
            self.gateway.end()
            self.folder.cleanup()
        else:
            self.stage.sql.sql(f"DROP TABLE IF EXISTS {VIEW} SYNC")
            self.stage.sql.sql(f"DROP TABLE IF EXISTS {QUEUE} SYNC")
