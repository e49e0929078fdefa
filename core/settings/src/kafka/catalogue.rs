//! The keys of `[[kafka]]`.

use crate::catalogue::DefaultValue::{Is, Required, Unset};
use crate::catalogue::{row, ListSection};
use crate::kind::Kind;

/// One day: longer times are typing errors.
const MAX_MS: u64 = 86_400_000;
const DURATION: Kind = Kind::Duration { min_ms: 1, max_ms: MAX_MS };

/// Names of formats as ClickHouse writes them.
pub(crate) const FORMATS: &[&str] = &[
    "JSONEachRow",
    "JSONStringsEachRow",
    "JSONCompactEachRow",
    "JSONAsString",
    "Protobuf",
    "ProtobufSingle",
    "Avro",
    "AvroConfluent",
    "CSV",
    "CSVWithNames",
    "CSVWithNamesAndTypes",
    "TSV",
    "TabSeparated",
    "TabSeparatedWithNames",
    "TabSeparatedWithNamesAndTypes",
    "TSKV",
    "RowBinary",
    "RowBinaryWithDefaults",
    "RowBinaryWithNames",
    "RowBinaryWithNamesAndTypes",
    "MsgPack",
    "LineAsString",
    "RawBLOB",
    "Native",
    "Values",
];

pub(crate) const KAFKA: ListSection = ListSection {
    path: "kafka",
    help: "A pipeline from topics of Kafka into a table; [kafka.md](kafka.md) is about them. A variable overrides a key of the pipeline that it names: `WINDROW_KAFKA_EVENTS_SASL_PASSWORD` is `sasl.password` of the pipeline `events`; lists are separated by commas there. Keys with a dot may stand in sections of their own behind the entry: `[kafka.tls]`, `[kafka.sasl]`.",
    keys: &[
        row("name", Kind::Text, Unset, "What the pipeline is called in metrics, in the log and in `system.windrow_kafka`. Every pipeline has another. When not set: the group."),
        row("brokers", Kind::TextList, Required, "Addresses `host:port` of some brokers; the others are learned from them."),
        row("topics", Kind::TextList, Unset, "The topics to read. Either these or `topic_pattern`."),
        row("topic_pattern", Kind::Text, Unset, "A regular expression; topics whose whole name it matches are read, also those that are made later."),
        row("group", Kind::Text, Unset, "The consumer group, whose offsets say what is stored. Several instances of Windrow with one group share the partitions. When not set: `windrow-` and the table's name."),
        row("table", Kind::Text, Required, "Where the rows go: `database.table`, or a table of the database `default` (on DuckDB: of the schema `main`). Names with dots in them stand in backquotes."),
        row("format", Kind::Choice(FORMATS), Required, "The format of the messages, by ClickHouse's name."),
        row("start", Kind::KafkaStart, Is("earliest"), "Where a partition is begun of which the group has no offset."),
        row("max_latency", DURATION, Is("5s"), "How late rows may be: from a message's timestamp until it is stored. Batches are held for as long as this allows, so that there are few parts, and no longer."),
        row("on_error", Kind::Choice(&["dead_letter", "skip", "stop"]), Is("dead_letter"), "What becomes of a message that the table can't take: it is kept as a dead letter, or only counted, or the pipeline stops before it."),
        row("exactly_once", Kind::Bool, Is("true"), "Whether a batch is recorded in the group before it is stored, so that it is stored once whatever crashes. Needs a table that deduplicates; without one, or with `false`, rows may come twice after a crash (at least once)."),
        row("columns", Kind::TextMap, Unset, "Which field a column takes where their names differ: `{ ts = \"event.time\", k = \"_key\" }`. A column with `\"\"` gets its default."),
        row("schema_file", Kind::Path, Unset, "The `.proto` file of `Protobuf` and `ProtobufSingle`."),
        row("message", Kind::Text, Unset, "The message type in `schema_file`, with its package if it has one."),
        row("schema_registry", Kind::Text, Unset, "The URL of the schema registry of `AvroConfluent`."),
        row("schema_registry_user", Kind::Text, Unset, "The user at the schema registry."),
        row("schema_registry_password", Kind::Secret, Unset, "The password of `schema_registry_user`."),
        row("format_settings", Kind::TextMap, Unset, "ClickHouse's settings of reading, such as `{ input_format_skip_unknown_fields = 0 }`."),
        row("consumers", Kind::Count { min: 1, max: 64 }, Is("1"), "Members of the group in this process. One reads all partitions at the same time; more are of use only where one connection to each broker is too slow."),
        row("flush_interval", DURATION, Unset, "A batch is stored after this time at the latest. Chosen from `max_latency` when not set."),
        row("max_batch_rows", Kind::Count { min: 1, max: 100_000_000 }, Unset, "Rows at which a batch is stored at once. Chosen by what is seen when not set."),
        row("max_batch_bytes", Kind::Bytes { min: 1 << 10, max: 4 << 30 }, Unset, "Bytes at which a batch is stored at once. Chosen by what is seen when not set."),
        row("max_memory", Kind::Bytes { min: 4 << 20, max: 1 << 40 }, Is("80MiB"), "Memory for what this pipeline has fetched and not stored. At this bound partitions are paused."),
        row("fetch_min_bytes", Kind::Bytes { min: 1, max: 1 << 30 }, Unset, "What a broker waits for before it answers a fetch. Chosen by what is seen when not set."),
        row("fetch_max_bytes", Kind::Bytes { min: 1 << 10, max: 1 << 30 }, Unset, "What a broker sends at the most in one answer. Chosen by what is seen when not set."),
        row("fetch_max_wait", DURATION, Unset, "How long a broker waits for `fetch_min_bytes`. Chosen from `max_latency` when not set."),
        row("session_timeout", Kind::Duration { min_ms: 1000, max_ms: 1_800_000 }, Is("10s"), "After how long the group gives the partitions of a member that died to the others. Heartbeats come three times as often. Brokers have bounds of their own for it (`group.min.session.timeout.ms`: 6 s)."),
        row("metadata_refresh", Kind::Duration { min_ms: 100, max_ms: MAX_MS }, Is("10s"), "How often it is asked for new partitions, and for new topics of a pattern."),
        row("tls.enabled", Kind::Bool, Unset, "Whether connections to the brokers are encrypted. True when `[kafka.tls]` is there."),
        row("tls.ca_file", Kind::Path, Unset, "PEM file of the authorities that are trusted, instead of the system's."),
        row("tls.certificate_file", Kind::Path, Unset, "PEM file of the certificate that the brokers are shown, if they ask for one."),
        row("tls.key_file", Kind::Path, Unset, "PEM file with the private key of `tls.certificate_file`."),
        row("sasl.mechanism", Kind::Choice(&["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]), Unset, "How the brokers learn who this is."),
        row("sasl.user", Kind::Text, Unset, "The user of `PLAIN` and `SCRAM`."),
        row("sasl.password", Kind::Secret, Unset, "The password of `sasl.user`."),
        row("sasl.token", Kind::Secret, Unset, "The token of `OAUTHBEARER`, if it never changes."),
        row("sasl.token_file", Kind::Path, Unset, "A file with the token of `OAUTHBEARER`. It is read for every connection, so whoever renews it has nothing to tell."),
        row("sasl.token_command", Kind::TextList, Unset, "A program with its arguments that prints the token of `OAUTHBEARER`. It is run for every connection."),
        row("sasl.extensions", Kind::TextMap, Unset, "Extensions of `OAUTHBEARER` that some providers ask for, such as `{ logicalCluster = \"lkc-1\" }`."),
    ],
};
