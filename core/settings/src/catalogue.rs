//! The table of all settings. A new setting is a new row here and a field in `typed.rs`, filled in `assemble.rs`.

use crate::kafka::catalogue::KAFKA;
use crate::kind::Kind;

/// A row of the table.
#[derive(Debug)]
pub(crate) struct Setting {
    /// Section and key, joined by a dot; inside a `[[list]]`, the key alone.
    pub path: &'static str,
    pub kind: Kind,
    pub default: DefaultValue,
    /// One or two sentences for the reference.
    pub help: &'static str,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum DefaultValue {
    /// A text that the setting's kind reads, as it reads a variable.
    Is(&'static str),
    Unset,
    /// No default: every entry of the `[[list]]` must name the key.
    Required,
    /// A share of the machine's memory.
    ShareOfMemory,
}

/// A section that may be repeated, as `[[path]]`.
#[derive(Debug)]
pub(crate) struct ListSection {
    pub path: &'static str,
    pub keys: &'static [Setting],
    pub help: &'static str,
}

use DefaultValue::{Is, Required, ShareOfMemory, Unset};

pub(crate) const fn row(path: &'static str, kind: Kind, default: DefaultValue, help: &'static str) -> Setting {
    Setting { path, kind, default, help }
}

/// One day: longer waits are typing errors.
const MAX_MS: u64 = 86_400_000;
/// Ten years: the limit for times in which acknowledged inserts are kept.
const MAX_KEEPING_MS: u64 = 315_360_000_000;
const MS: Kind = Kind::Milliseconds { min: 1, max: MAX_MS };
const MS_OR_ZERO: Kind = Kind::Milliseconds { min: 0, max: MAX_MS };
const KEEPING_MS: Kind = Kind::Milliseconds { min: 0, max: MAX_KEEPING_MS };
const SIZE: Kind = Kind::Bytes { min: 1, max: u64::MAX };
const FLUSH_POLICIES: Kind = Kind::Choice(&["balanced", "adaptive", "fixed"]);

pub(crate) const SETTINGS: &[Setting] = &[
    row("backend", Kind::Backend, Is("embedded"), "Where rows are stored: a ClickHouse that Windrow starts for itself, the URL of a ClickHouse server (`http[s]://`, or `tcp[s]://` with its native port), a DuckDB in Windrow's own process (`duckdb:///path/file.db`, `duckdb:relative.db` or `duckdb::memory:`), or any database that there is an ADBC driver for: `adbc:postgresql://user:password@host/database`, `adbc:sqlite:///path/file.db`, `adbc:flightsql://host:port` and others, see docs/adbc.md. User and password in the URL are Windrow's own, percent-encoded; clients keep using theirs. Where nobody says, and there is no ClickHouse to embed, it is the DuckDB `rows.duckdb` of the data directory. Several servers that are replicas of each other are named with commas between them, as a list, or as `replicas` in a section `[backend]`, or by an SRV record of the DNS (`srv+http://user:password@_clickhouse._tcp.example.org`): see docs/replicas.md."),
    row("backend.choice", Kind::Choice(&["in_order", "nearest", "round_robin", "least_loaded"]), Is("in_order"), "Which of several replicas is asked, of those that are there: the first in the list, the one whose pings are fastest, each in its turn, or the one with the fewest requests of Windrow's."),
    row("backend.dns_server", Kind::Address, Unset, "The name server that is asked for the SRV record which `backend` names (`srv+http://`), in place of the system's."),
    row("backend.hedge_reads_ms", MS_OR_ZERO, Is("0"), "With several replicas: how long the one that was chosen for a read over HTTP may take to begin its answer before another one is asked as well. The first answer is passed on. It may be one of a replica that has not fetched the latest rows. 0: no read is sent twice. See docs/replicas.md."),
    row("backend.cluster", Kind::Text, Unset, "The cluster, as `system.clusters` names it, whose Distributed tables are cut by shards: their rows go straight to the tables of the shards. See docs/shards.md."),
    row("backend.shards", Kind::TextList, Unset, "Where the cluster's shards are, if not where `system.clusters` says: the addresses of a shard's replicas with spaces between them, and a comma between shards (or a list). User and password are those of `backend`."),
    row("data_dir", Kind::Path, Is("./windrow-data"), "Everything that Windrow keeps. Readable by its owner only; one gateway at a time."),
    row("manage_deduplication_window", Kind::Bool, Unset, "Whether Windrow gives a window of deduplication to MergeTree tables that have none, so that a batch that is sent again after a crash or a lost answer is stored once. The rows of clients are not deduplicated by it. When not set: on for the embedded ClickHouse, off for a server, whose tables it would change by `ALTER TABLE ... MODIFY SETTING`."),
    row("log.format", Kind::Choice(&["text", "json"]), Is("text"), "Log lines for people or for machines."),
    row("log.level", Kind::LogLevel, Is("info"), "What is logged."),
    row("http.listen", Kind::Address, Is("127.0.0.1:8123"), "The data port: ClickHouse's HTTP interface. Port 0 takes a free one."),
    row("http.tls_certificate", Kind::Path, Unset, "PEM file with the certificate chain of the data port. With `http.tls_key`, the data port speaks HTTPS."),
    row("http.tls_key", Kind::Path, Unset, "PEM file with the private key of `http.tls_certificate`."),
    row("http.max_connections", Kind::Count { min: 1, max: 1_000_000 }, Is("10000"), "Connections of the data port at a time. One more takes the place of a connection on which nobody has made a request as a user yet; where there is none, it is closed at once and counted in `windrow_http_connections_refused_total`."),
    row("http.max_header_bytes", Kind::Bytes { min: 4096, max: 64 << 20 }, Is("1MiB"), "Longest request line with headers; more gets 431."),
    row("http.max_body_bytes_gathered", SIZE, Is("10MiB"), "Longest body of an insert that is read into memory to be gathered. Longer ones are streamed to the backend as they come; DuckDB's are read as long as one table's share of `gather.max_buffer_bytes` holds them."),
    row("http.max_decompressed_bytes", SIZE, Is("64MiB"), "Longest body after decompression of an insert to be gathered. A body that unpacks to more goes to the backend still packed; for DuckDB the bound is that of `http.max_body_bytes_gathered`."),
    row("http.headers_read_timeout_ms", MS, Is("30000"), "How long a client may take to send a request's headers."),
    row("http.body_idle_timeout_ms", MS, Is("30000"), "How long a client may pause in the middle of a body."),
    row("http.keep_alive_timeout_ms", MS, Is("30000"), "How long a connection may stay idle between requests."),
    row("admin.listen", Kind::Address, Is("127.0.0.1:8080"), "The admin port: health, metrics, API."),
    row("admin.max_tables_in_metrics", Kind::Count { min: 0, max: 1_000_000 }, Is("1000"), "Tables with series of their own in `/metrics`: the first ones that are inserted into. All others share one series each, under the table `(others)`. A table's series take about 7 kB of memory, as long as Windrow runs."),
    row("admin.token", Kind::Secret, Unset, "What callers of the admin port give as `Authorization: Bearer`. Needed when the port isn't on loopback."),
    row("backend_tls.ca_file", Kind::Path, Unset, "PEM file of the authorities trusted for an https backend, instead of the system's."),
    row("backend_tls.server_name", Kind::Text, Unset, "The name to expect in the backend's certificate when it isn't the URL's host."),
    row("backend_pool.max_connections", Kind::Count { min: 1, max: 100_000 }, Is("256"), "Connections to the backend at a time for forwarded requests, and as many again for flushes and admissions. Who needs one more waits for it, up to `backend_pool.connect_timeout_ms`."),
    row("backend_pool.connect_timeout_ms", MS, Is("5000"), "How long it may take to get a connection to the backend: to open one, and before that to wait for a free one."),
    row("backend_pool.idle_timeout_ms", MS, Is("9000"), "Connections to the backend that were idle for longer aren't used again. A shorter time that the server names in `Keep-Alive` is heeded: two thirds of it."),
    row("embedded.engine", Kind::Path, Unset, "The engine to start: a `clickhouse` binary or a `libchdb` library. Searched for when not set."),
    row("embedded.default_password", Kind::Secret, Unset, "What the user `default` must give on the data port. May be left out only when that port is on loopback."),
    row("embedded.system_logs", Kind::Bool, Is("false"), "Whether the embedded ClickHouse writes `system.query_log` and `system.part_log`."),
    row("duckdb.library", Kind::Path, Unset, "DuckDB's library (`libduckdb.so`, on macOS `libduckdb.dylib`). Searched for when not set: beside the executable, where `make build` puts it, and on the system's paths."),
    row("duckdb.default_password", Kind::Secret, Unset, "What the user `default` must give when DuckDB is the backend. May be left out only when the data port and Flight SQL are on loopback."),
    row("duckdb.memory_limit_bytes", SIZE, Unset, "Memory that DuckDB may use for itself, beside Windrow's own buffers. When not set DuckDB takes up to 80 % of the machine's."),
    row("duckdb.threads", Kind::Count { min: 1, max: 4096 }, Unset, "Threads on which DuckDB works. As many as there are cores when not set."),
    row("duckdb.max_temporary_bytes", SIZE, Is("16GiB"), "Disk space in `<data-dir>/tmp` for what does not fit into DuckDB's memory: large sorts, joins and aggregations. A query that needs more fails (241)."),
    row("duckdb.max_result_connections", Kind::Count { min: 1, max: 10_000 }, Is("16"), "Queries that DuckDB answers at a time, a quarter of them kept from any one user and half of them from Flight SQL. One more waits for 10 seconds and fails then (202); inserts and appends don't, they have connections of their own."),
    row("duckdb.max_result_files_bytes", Kind::Bytes { min: 1 << 20, max: u64::MAX }, Is("16GiB"), "Disk space in the data directory for results that have to be whole before they are sent: Parquet, and with `wait_end_of_query=1`. A result beyond it is an error."),
    row("adbc.driver", Kind::Text, Unset, "The ADBC driver for a backend `adbc:...`: the path of its library or of its manifest, or its name. Searched for by its usual name (`adbc_driver_postgresql` for `adbc:postgresql://`) when not set: beside the executable, as ADBC's driver manager searches, and on the system's paths."),
    row("adbc.options", Kind::Secret, Unset, "Options of the driver's own, as `name=value` with commas between: `adbc.flight.sql.client_option.tls_skip_verify=true`. They go beside, and over, what the address says."),
    row("adbc.max_connections", Kind::Count { min: 1, max: 10_000 }, Is("8"), "Connections to the database that store batches at a time, and as many again that answer queries, and as many again for ordered appends. A query that needs one more waits for 10 seconds and fails then (202)."),
    row("adbc.default_password", Kind::Secret, Unset, "What the user `default` must give when the backend is `adbc:...`. May be left out only when the data port is on loopback."),
    row("gather.async_insert", Kind::Bool, Is("true"), "Whether inserts that don't say are gathered."),
    row("gather.flush_policy", FLUSH_POLICIES, Is("balanced"), "How long a batch is held: see docs/flush-policies.md."),
    row("gather.max_buffer_bytes", Kind::Bytes { min: 1 << 20, max: u64::MAX }, ShareOfMemory, "Memory for all rows that wait to be stored. Beyond it, inserts wait briefly and then get 503."),
    row("gather.max_table_share", Kind::Ratio { max: 1.0 }, Is("0.5"), "The part of `gather.max_buffer_bytes` that one table may take."),
    row("gather.longest_hold_ms", MS, Is("60000"), "How long inserts that nobody waits for (ack levels `disk` and `memory`) may be held for others, beyond `async_insert_busy_timeout_max_ms`, while the tables together have more to flush than the backend should have to bear: see docs/flush-policies.md. It counts from when their table wanted to flush."),
    row("gather.overload_wait_ms", MS_OR_ZERO, Is("1000"), "How long an insert waits for room before it is refused with 503."),
    row("gather.too_many_parts_wait_ms", MS_OR_ZERO, Is("5000"), "How long an insert that waits to be stored goes on waiting while ClickHouse refuses its table for `TOO_MANY_PARTS` (252). Then it gets that error, and nothing of it is stored. Those that nobody waits for stay in the journal until ClickHouse takes them."),
    row("gather.admission_ttl_ms", MS_OR_ZERO, Is("5000"), "How long the backend's yes to a user's password, privileges and profile holds without being confirmed; while they are in use it is confirmed every half of this. What is taken away can work for this long. GRANT, REVOKE and the like that pass through Windrow are noticed at once."),
    row("gather.admission_away_ttl_ms", KEEPING_MS, Is("86400000"), "How long the backend's last yes goes on to hold while it can't be asked, for inserts that are acknowledged before they are stored (ack levels `disk` and `memory`). They are stored as their own user all the same, and become dead letters if that user may no longer insert; only what a crash left in the journal is stored with Windrow's own account."),
    row("gather.admission_kept_ttl_ms", KEEPING_MS, Is("86400000"), "How long such a yes of a ClickHouse server goes on to hold for a gateway that is started while ClickHouse is away, for the same kinds of insert. It stands in the file `admissions` of the data directory, with a slow hash in place of the password. `gather.admission_away_ttl_ms` bounds it as well. 0: there is no such file, and nothing is taken after a start before ClickHouse has answered. See docs/security.md."),
    row("gather.schema_ttl_ms", MS_OR_ZERO, Is("5000"), "How long it holds without being confirmed what a table is; all tables in use are confirmed together, every half of this. DDL that passes through Windrow is noticed at once; other DDL after this time, or when a flush is refused because of it."),
    row("gather.shutdown_timeout_ms", MS, Is("30000"), "How long a shutdown may take to store what is buffered and to end open requests. What was acknowledged as kept on disk and isn't stored by then stays in the journal, and the next start stores it. If something else could not be stored, the exit code is 1."),
    row("gather.retry_for_ms", KEEPING_MS, Is("0"), "How long a flush that fails for a reason that may pass (the backend is away, too many parts, too little memory) is tried again for inserts that nobody waits for. After that they become dead letters. 0: for ever."),
    row("gather.insert_log_entries", Kind::Count { min: 0, max: 10_000_000 }, Is("100000"), "Latest inserts kept in memory for `system.asynchronous_insert_log`."),
    row("gather.async_insert_busy_timeout_min_ms", MS, Is("50"), "ClickHouse's setting, for requests that don't say: the shortest hold of the policies `balanced` and `adaptive`."),
    row("gather.async_insert_busy_timeout_max_ms", MS, Is("200"), "ClickHouse's setting, for requests that don't say: the longest hold, and the only one of the `fixed` policy."),
    row("gather.async_insert_busy_timeout_increase_rate", Kind::Ratio { max: 100.0 }, Is("0.2"), "ClickHouse's setting, for requests that don't say: how fast the hold of `balanced` and `adaptive` grows."),
    row("gather.async_insert_busy_timeout_decrease_rate", Kind::Ratio { max: 100.0 }, Is("0.2"), "ClickHouse's setting, for requests that don't say: how fast the hold of `balanced` and `adaptive` shrinks."),
    row("gather.async_insert_max_data_size", SIZE, Is("10485760"), "ClickHouse's setting, for requests that don't say: a batch of this many bytes is stored at once."),
    row("gather.async_insert_max_query_number", Kind::Count { min: 1, max: 1_000_000 }, Is("450"), "ClickHouse's setting, for tables that deduplicate: a batch of this many inserts is stored at once. For other tables it counts only where the request, the user's profile or `[[tables]]` gives a number; set here alone, it changes nothing for them."),
    row("gather.wait_for_async_insert", Kind::Bool, Is("true"), "ClickHouse's setting, for requests that don't say: whether an insert is answered only when it is stored, or when it is kept on disk."),
    row("gather.wait_for_async_insert_timeout_ms", MS, Is("120000"), "For requests that don't give `wait_for_async_insert_timeout` (in seconds, as in ClickHouse): the longest such wait."),
    row("journal.segment_bytes", Kind::Bytes { min: 64 << 10, max: 1 << 30 }, Is("64MiB"), "Size of the journal's files. Room is given back a file at a time."),
    row("journal.max_bytes", Kind::Bytes { min: 1 << 20, max: u64::MAX }, Is("4GiB"), "Disk space for inserts that were acknowledged as kept on disk and are not stored yet: what comes in while the backend is away. Beyond it such inserts get 503."),
    row("journal.max_table_share", Kind::Ratio { max: 1.0 }, Is("0.5"), "The part of `journal.max_bytes` that one table may take."),
    row("dead_letters.max_bytes", Kind::Bytes { min: 1 << 20, max: u64::MAX }, Is("1GiB"), "Disk space for inserts that were acknowledged and could not be stored. Nothing is thrown away for lack of it: tables that produce dead letters take no inserts of the ack levels `disk` and `memory` until some are retried or discarded."),
    row("dead_letters.max_age_ms", KEEPING_MS, Is("0"), "How long a dead letter is kept; older ones are discarded and counted. 0: for ever."),
    row("append.window_bytes", Kind::Bytes { min: 64 << 10, max: u64::MAX }, Is("64MiB"), "Memory for the batches of one ordered append that have come and can't be stored yet. More of them wait on disk."),
    row("append.max_memory_bytes", Kind::Bytes { min: 64 << 10, max: u64::MAX }, Is("256MiB"), "Memory for such batches of all ordered appends together."),
    row("append.max_spool_bytes", Kind::Bytes { min: 0, max: u64::MAX }, Is("64GiB"), "Disk space in the data directory for such batches of all ordered appends. Beyond it only the batch that an append waits for is taken; others wait, and then get 503."),
    row("append.room_wait_ms", MS_OR_ZERO, Is("10000"), "How long a batch waits for room before it is answered with 503, to be sent again."),
    row("append.idle_timeout_ms", MS, Is("60000"), "How long an ordered append may wait for its next batch before it is dropped. Nothing of it is stored then. An ingest over Flight SQL may wait for longer, while its connection answers the pings that it gets twice in this time."),
    row("append.max_batch_bytes", Kind::Bytes { min: 64 << 10, max: 1 << 30 }, Is("64MiB"), "Longest batch of an ordered append, packed and unpacked."),
    row("append.max_open", Kind::Count { min: 1, max: 100_000 }, Is("1000"), "Ordered appends that may be open at a time. One more gets 503."),
    row("append.max_open_per_user", Kind::Count { min: 1, max: 100_000 }, Is("800"), "Of these, how many one user may have: the others are left for other users."),
    row("native.listen", Kind::AddressOrOff, Is(""), "The port of ClickHouse's native protocol, as in `127.0.0.1:9000`. Port 0 takes a free one; empty: none."),
    row("native.tls_listen", Kind::AddressOrOff, Is(""), "The port of the native protocol inside TLS, as in `0.0.0.0:9440`. It needs `native.tls_certificate` and `native.tls_key`."),
    row("native.tls_certificate", Kind::Path, Unset, "PEM file with the certificate chain of `native.tls_listen`."),
    row("native.tls_key", Kind::Path, Unset, "PEM file with the private key of `native.tls_certificate`."),
    row("native.tls_client_ca", Kind::Path, Unset, "PEM file of authorities: who connects to `native.tls_listen` has to show a certificate that one of them signed, beside user and password. When not set, none is asked for."),
    row("backend_native.address", Kind::Text, Unset, "Where the backend speaks the native protocol, as `host:port`: for what native clients send that is not gathered. When not set: the host of `backend`, port 9000, or 9440 with TLS for an https backend."),
    row("cluster.gateways", Kind::Gateways, Unset, "All gateways in front of one ClickHouse, this one included, each by the address of its data port that the others reach it by: `http[s]://host:port`, as a list or with commas between. An insert that Windrow deduplicates has one of them as its owner, and comes to it by one hop: see docs/gateways.md. All gateways must name the same ones."),
    row("cluster.self", Kind::Gateway, Unset, "Which of `cluster.gateways` this gateway is."),
    row("cluster.secret", Kind::Secret, Unset, "What gateways show each other with each hop: the same for all, of at least 16 letters, digits and signs, without spaces. It goes along in a header field, so gateways that don't share a machine should be https:// ones."),
    row("cluster.secret_file", Kind::Path, Unset, "A file with the secret, instead of `cluster.secret`. Blanks around it don't count."),
    row("cluster.ca_file", Kind::Path, Unset, "PEM file of the authorities trusted for https:// gateways, instead of the system's."),
    row("cluster.hops", Kind::Choice(&["all", "tokens"]), Is("all"), "Which inserts come to their owner: all that Windrow deduplicates, or only those that name themselves by `insert_deduplication_token`. With `tokens`, inserts that are known by their rows, which is the default of ClickHouse for replicated tables, stay at the gateway that they came to: they cost no hop and wait for no other gateway, and a repeat that comes to another gateway is stored again."),
    row("cluster.stretch_holds", Kind::Bool, Is("true"), "Whether the policy `balanced` holds a batch longer when several gateways are up, so that they make hardly more parts than one: its time-outs times (gateways + 1) / 2, but for inserts whose request, profile or `[[tables]]` entry names a time-out of its own. Switched off, each gateway makes as many parts as if it were alone."),
    row("flight.listen", Kind::AddressOrOff, Is("127.0.0.1:8815"), "The port of Arrow Flight SQL. Port 0 takes a free one."),
    row("flight.idle_timeout_ms", MS, Is("600000"), "How long a client of Flight SQL may take nothing of a result. Then its query is ended, with an error, and its place in the database is free."),
    row("otlp.grpc_listen", Kind::AddressOrOff, Is(""), "The port that takes OpenTelemetry's logs, traces and metrics by OTLP over gRPC, as in `127.0.0.1:4317`. Port 0 takes a free one; empty: none. It speaks TLS if the data port does. See docs/otlp.md."),
    row("otlp.http_listen", Kind::AddressOrOff, Is(""), "The same by OTLP over HTTP, in Protobuf or JSON, as in `127.0.0.1:4318`."),
    row("otlp.tls_client_ca", Kind::Path, Unset, "PEM file of authorities: who sends by OTLP has to show a certificate that one of them signed, beside user and password or a token. When not set, none is asked for. The certificate of the ports themselves is the data port's: `http.tls_certificate`."),
    row("otlp.allowed_origins", Kind::TextList, Unset, "The sites whose pages may send by OTLP over HTTP from a browser (CORS), each as the browser names it: `https://shop.example`. `*`: all of them. When not set, none."),
    row("otlp.max_grpc_message_bytes", Kind::Bytes { min: 4096, max: 1 << 30 }, Is("4MiB"), "Longest request over gRPC, also when it is unpacked. A longer one is refused for good."),
    row("otlp.max_http_body_bytes", Kind::Bytes { min: 4096, max: 1 << 30 }, Is("20MiB"), "Longest request over HTTP, also when it is unpacked. A longer one is refused for good."),
    row("otlp.ack", Kind::Choice(&["memory", "disk", "stored"]), Is("disk"), "When a request is answered: once its rows are in memory, once they are kept on disk, or once they are stored. `[[tables]]` may say otherwise for a table."),
    row("otlp.hold_ms", Kind::Milliseconds { min: 0, max: MAX_MS }, Is("1000"), "How long rows that nobody waits for are held for others in their table's buffer: each batch is a part. With ack level `stored` (`otlp.ack`, or that of their table), and with 0, they are held like those of any insert. `[[tables]]` may say otherwise for a table."),
    row("otlp.database", Kind::Text, Is("default"), "The database of the tables. Here and in the names of tables, `{tenant}` stands for the request's tenant: see `otlp.tenant_header`."),
    row("otlp.logs_table", Kind::Text, Is("otel_logs"), "The table of log records."),
    row("otlp.traces_table", Kind::Text, Is("otel_traces"), "The table of spans."),
    row("otlp.gauge_table", Kind::Text, Is("otel_metrics_gauge"), "The table of the points of gauges."),
    row("otlp.sum_table", Kind::Text, Is("otel_metrics_sum"), "The table of the points of sums."),
    row("otlp.summary_table", Kind::Text, Is("otel_metrics_summary"), "The table of the points of summaries."),
    row("otlp.histogram_table", Kind::Text, Is("otel_metrics_histogram"), "The table of the points of histograms."),
    row("otlp.exponential_histogram_table", Kind::Text, Is("otel_metrics_exponential_histogram"), "The table of the points of exponential histograms."),
    row("otlp.create_schema", Kind::Bool, Is("true"), "Whether a table that is missing, and its database, are made when rows come for it: as their sender, who has to have the rights for it."),
    row("otlp.ttl_ms", KEEPING_MS, Is("0"), "How long tables that are made keep their rows, in whole seconds. 0: for ever."),
    row("otlp.engine", Kind::Text, Is("MergeTree()"), "The engine of tables that are made, as ClickHouse writes it."),
    row("otlp.cluster", Kind::Text, Unset, "The cluster on which tables are made (`ON CLUSTER`)."),
    row("otlp.json", Kind::Bool, Is("false"), "Whether tables of logs and traces are made with attributes of the type JSON, instead of Map."),
    row("otlp.request_id_header", Kind::Text, Is("x-windrow-request-id"), "The header, over gRPC the metadata, by which a request names itself. A request with a name that came before is answered as stored, and is not stored again. Empty: none."),
    row("otlp.deduplicate_by_bytes", Kind::Bool, Is("false"), "Whether a request without a name is known by its bytes. Then a sender's retry is stored once; and so are two requests that happen to be equal byte for byte."),
    row("otlp.tenant_header", Kind::Text, Unset, "The header that names the tenant of a request, as in `x-scope-orgid`. A tenant is named by up to 100 letters, digits, `_`, `-` and `.`."),
    row("otlp.tenant_attribute", Kind::Text, Unset, "The attribute of a resource that names the tenant of its rows, as in `service.namespace`, for requests that don't by `otlp.tenant_header`."),
    row("otlp.default_tenant", Kind::Text, Unset, "The tenant of rows for which none is named. When not set, they are refused, if names of tables need one."),
    row("tracing.otlp_endpoint", Kind::Text, Unset, "Where OpenTelemetry traces of inserts are sent: OTLP over gRPC, as in `http://127.0.0.1:4317` or `https://collector.example:4317`. Not set: nothing is traced."),
    row("tracing.sample_ratio", Kind::Share, Is("0.01"), "The part of the requests that is traced when the client doesn't say. A client that sends `traceparent` decides for its requests itself; 0 traces these alone."),
    row("tracing.headers", Kind::Secret, Unset, "What the collector asks for beside, as `name=value`, with commas between: `authorization=Bearer long-and-random`."),
];

pub(crate) const TABLES: ListSection = ListSection {
    path: "tables",
    help: "Overrides for tables and users, stronger than what the request says. Every entry whose `database`, `table` and `user` match is applied, in the order of the file; of two that name the same key, the later one wins. So write general entries first.",
    keys: &[
        row("database", Kind::Text, Is("*"), "Which databases: a name, or a pattern in which `*` stands for any characters."),
        row("table", Kind::Text, Is("*"), "Which tables, likewise."),
        row("user", Kind::Text, Is("*"), "Which users, likewise."),
        row("async_insert", Kind::Choice(&["client", "always", "never"]), Unset, "Who decides whether inserts are gathered: the client, or Windrow whatever the client says."),
        row("flush_policy", FLUSH_POLICIES, Unset, "As `gather.flush_policy`."),
        row("ack", Kind::Choice(&["client", "memory", "disk", "stored"]), Unset, "When inserts are acknowledged: as the client asks, once in memory, once kept on disk, or once stored."),
        row("busy_timeout_min_ms", MS, Unset, "As `gather.async_insert_busy_timeout_min_ms`."),
        row("busy_timeout_max_ms", MS, Unset, "As `gather.async_insert_busy_timeout_max_ms`."),
        row("max_data_size", SIZE, Unset, "As `gather.async_insert_max_data_size`."),
        row("max_query_number", Kind::Count { min: 1, max: 1_000_000 }, Unset, "Inserts at which a batch is stored at once. Given here, it counts for every table that matches."),
    ],
};

pub(crate) const EMBEDDED_USERS: ListSection = ListSection {
    path: "embedded.users",
    help: "Further users of the embedded ClickHouse. They are given here because it knows no CREATE USER.",
    keys: &[
        row("name", Kind::Text, Required, "The user's name."),
        row("password", Kind::Secret, Required, "The user's password. It must not be empty."),
        row("grants", Kind::TextList, Unset, "What the user may do, as GRANT statements without `TO`: `GRANT SELECT ON default.*`. Everything when not set."),
        row("settings", Kind::TextMap, Unset, "ClickHouse settings of the user, such as `{ max_threads = 4 }`."),
    ],
};

pub(crate) const DUCKDB_USERS: ListSection = ListSection {
    path: "duckdb.users",
    help: "Further users when DuckDB is the backend. Without `readonly` they may do everything that `default` may.",
    keys: &[
        row("name", Kind::Text, Required, "The user's name."),
        row("password", Kind::Secret, Required, "The user's password. It must not be empty."),
        row("readonly", Kind::Bool, Is("false"), "Whether the user may only read."),
    ],
};

pub(crate) const ADBC_USERS: ListSection = ListSection {
    path: "adbc.users",
    help: "Further users when the backend is `adbc:...`. Without `readonly` they may do everything that `default` may, and that the database lets Windrow's account do.",
    keys: DUCKDB_USERS.keys,
};

pub(crate) const OTLP_TOKENS: ListSection = ListSection {
    path: "otlp.tokens",
    help: "Tokens that senders of OTLP give as `Authorization: Bearer`, each for a user of ClickHouse.",
    keys: &[
        row("token", Kind::Secret, Required, "What the sender gives."),
        row("user", Kind::Text, Required, "The user whose rows they are."),
        row("password", Kind::Secret, Unset, "The user's password."),
    ],
};

pub(crate) const OTLP_MAPPINGS: ListSection = ListSection {
    path: "otlp.mappings",
    help: "Tables with columns of their own, instead of those of the collector's exporter. Such a table is never made by Windrow.",
    keys: &[
        row("kind", Kind::Choice(OTLP_KINDS), Required, "Whose table it is."),
        row("columns", Kind::TextMap, Required, "What each column is filled with, by the name that it has in the exporter's table, or an attribute: `{ message = \"Body\", pod = \"ResourceAttributes['k8s.pod.name']\" }`."),
    ],
};

const OTLP_KINDS: &[&str] = &["logs", "traces", "gauge", "sum", "summary", "histogram", "exponential_histogram"];

pub(crate) const LIST_SECTIONS: &[&ListSection] =
    &[&TABLES, &EMBEDDED_USERS, &DUCKDB_USERS, &ADBC_USERS, &OTLP_TOKENS, &OTLP_MAPPINGS, &KAFKA];

impl ListSection {
    /// Says whether keys of this section begin with `group.`, so that `group` may be a section within an
    /// entry.
    pub(crate) fn has_group(&self, group: &str) -> bool {
        self.keys.iter().any(|key| key.path.strip_prefix(group).is_some_and(|rest| rest.starts_with('.')))
    }
}

pub(crate) fn list_section(path: &str) -> Option<&'static ListSection> {
    LIST_SECTIONS.iter().copied().find(|list| list.path == path)
}

pub(crate) fn setting(path: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.path == path)
}
