//! `[otlp]`: OpenTelemetry's logs, traces and metrics.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::backend::Backend;
use crate::entries::Entry;
use crate::kind::Value;
use crate::layers::Layers;
use crate::secret::Secret;
use crate::table_rules::AckRule;

/// The text that stands for the tenant in names of databases and tables.
const TENANT: &str = "{tenant}";
const CLIENT_CA: &str = "otlp.tls_client_ca";

#[derive(Debug, Clone)]
pub struct OtlpSettings {
    /// The port of OTLP over gRPC; `None` where it stays closed.
    pub grpc_listen: Option<SocketAddr>,
    pub http_listen: Option<SocketAddr>,
    /// The file of the authorities that sign the certificates of senders. The ports' own certificate is the
    /// data port's.
    pub tls_client_ca: Option<PathBuf>,
    /// The sites whose pages may send from within a browser; `*` stands for all.
    pub allowed_origins: Vec<String>,
    pub max_grpc_message_bytes: usize,
    pub max_http_body_bytes: usize,
    pub ack: AckRule,
    /// Time for which rows are held that nobody waits for, as the setting `async_insert_busy_timeout_max_ms`
    /// has it. `None`: they are held like those of any insert.
    pub hold_ms: Option<u64>,
    pub tables: OtlpTables,
    /// The header by which a request names itself.
    pub request_id_header: Option<String>,
    pub deduplicate_by_bytes: bool,
    pub tenants: OtlpTenants,
    pub tokens: Vec<OtlpToken>,
    pub mappings: Vec<OtlpMapping>,
}

/// Names of databases and tables, in which `{tenant}` stands for the tenant, and how the tables are made.
#[derive(Debug, Clone)]
pub struct OtlpTables {
    pub database: String,
    pub logs: String,
    pub traces: String,
    pub gauge: String,
    pub sum: String,
    pub summary: String,
    pub histogram: String,
    pub exponential_histogram: String,
    pub create_schema: bool,
    /// Time after which rows are deleted, in seconds; 0 keeps them for ever.
    pub ttl_seconds: u64,
    pub engine: String,
    pub cluster: Option<String>,
    pub json: bool,
}

/// The sources of a row's tenant.
#[derive(Debug, Clone)]
pub struct OtlpTenants {
    pub header: Option<String>,
    pub attribute: Option<String>,
    pub default: Option<String>,
    /// Says whether a name of a table has the tenant in it.
    pub are_used: bool,
}

#[derive(Debug, Clone)]
pub struct OtlpToken {
    pub token: Secret,
    pub user: String,
    pub password: Secret,
}

/// The sources of a table's columns.
#[derive(Debug, Clone)]
pub struct OtlpMapping {
    pub kind: String,
    /// Pairs of a column and its source.
    pub columns: Vec<(String, String)>,
}

const NAMES: [&str; 8] = [
    "otlp.database",
    "otlp.logs_table",
    "otlp.traces_table",
    "otlp.gauge_table",
    "otlp.sum_table",
    "otlp.summary_table",
    "otlp.histogram_table",
    "otlp.exponential_histogram_table",
];

pub(crate) fn assemble(layers: &Layers) -> OtlpSettings {
    let text = |path| layers.text(path).to_owned();
    let optional = |path| layers.optional_text(path).map(str::to_owned);
    OtlpSettings {
        grpc_listen: layers.optional_address("otlp.grpc_listen"),
        http_listen: layers.optional_address("otlp.http_listen"),
        tls_client_ca: layers.path(CLIENT_CA),
        allowed_origins: layers.texts("otlp.allowed_origins"),
        max_grpc_message_bytes: layers.count("otlp.max_grpc_message_bytes"),
        max_http_body_bytes: layers.count("otlp.max_http_body_bytes"),
        ack: AckRule::named(layers.text("otlp.ack")),
        hold_ms: Some(layers.integer("otlp.hold_ms")).filter(|&ms| ms > 0),
        tables: OtlpTables {
            database: text("otlp.database"),
            logs: text("otlp.logs_table"),
            traces: text("otlp.traces_table"),
            gauge: text("otlp.gauge_table"),
            sum: text("otlp.sum_table"),
            summary: text("otlp.summary_table"),
            histogram: text("otlp.histogram_table"),
            exponential_histogram: text("otlp.exponential_histogram_table"),
            create_schema: layers.boolean("otlp.create_schema"),
            ttl_seconds: layers.integer("otlp.ttl_ms") / 1000,
            engine: text("otlp.engine"),
            cluster: optional("otlp.cluster"),
            json: layers.boolean("otlp.json"),
        },
        request_id_header: optional("otlp.request_id_header").map(|name| name.to_ascii_lowercase()),
        deduplicate_by_bytes: layers.boolean("otlp.deduplicate_by_bytes"),
        tenants: OtlpTenants {
            header: optional("otlp.tenant_header").map(|name| name.to_ascii_lowercase()),
            attribute: optional("otlp.tenant_attribute"),
            default: optional("otlp.default_tenant"),
            are_used: names_a_tenant(layers),
        },
        tokens: layers.entries.otlp_tokens.iter().map(token).collect(),
        mappings: layers.entries.otlp_mappings.iter().map(mapping).collect(),
    }
}

fn token(entry: &Entry) -> OtlpToken {
    OtlpToken {
        token: Secret::new(entry.text("token").unwrap_or_default()),
        user: entry.text("user").unwrap_or_default().to_owned(),
        password: Secret::new(entry.text("password").unwrap_or_default()),
    }
}

fn mapping(entry: &Entry) -> OtlpMapping {
    let columns = match entry.value("columns") {
        Value::Map(pairs) => pairs.clone(),
        _ => Vec::new(),
    };
    OtlpMapping { kind: entry.text("kind").unwrap_or_default().to_owned(), columns }
}

fn names_a_tenant(layers: &Layers) -> bool {
    NAMES.iter().any(|path| layers.text(path).contains(TENANT))
}

pub(crate) fn problems(layers: &Layers) -> Vec<String> {
    let problems = [backend(layers), client_ca(layers), empty_name(layers), tenant(layers), ttl(layers)];
    let mut problems: Vec<String> = problems.into_iter().flatten().collect();
    problems.extend(tokens(layers));
    problems
}

/// Refuses another backend than ClickHouse where no mapping is given: the exporter's tables have types that
/// no other database has.
fn backend(layers: &Layers) -> Option<String> {
    let named =
        ["otlp.grpc_listen", "otlp.http_listen"].into_iter().find(|path| layers.optional_address(path).is_some())?;
    let is_clickhouse = matches!(layers.backend(), Backend::Embedded | Backend::ClickHouse(_));
    let is_mapped = !layers.entries.otlp_mappings.is_empty();
    (!is_clickhouse && !is_mapped).then(|| {
        format!(
            "`{named}` is set, and `backend` is no ClickHouse, where alone the exporter's tables are made; make tables of \
             your own, and say in `[[otlp.mappings]]` what their columns are filled with"
        )
    })
}

/// Refuses an authority without a certificate of the port: someone who names an authority believes that
/// senders are checked.
fn client_ca(layers: &Layers) -> Option<String> {
    layers.path(CLIENT_CA).filter(|_| layers.path("http.tls_certificate").is_none()).map(|_| {
        format!(
            "`{CLIENT_CA}` is set, and the ports of OTLP speak no TLS; set `http.tls_certificate` and `http.tls_key`"
        )
    })
}

fn empty_name(layers: &Layers) -> Option<String> {
    let empty = NAMES.into_iter().find(|path| layers.text(path).is_empty())?;
    Some(format!("`{empty}` is empty; give it a name"))
}

fn tenant(layers: &Layers) -> Option<String> {
    let sources = ["otlp.tenant_header", "otlp.tenant_attribute", "otlp.default_tenant"];
    let named = sources.into_iter().find(|path| layers.optional_text(path).is_some());
    match (named, names_a_tenant(layers)) {
        (Some(path), false) => Some(format!(
            "`{path}` is set, and no name has {TENANT} in it; write it where it is to stand, as in \
             otlp.database = \"otel_{TENANT}\""
        )),
        (None, true) => Some(format!(
            "a name has {TENANT} in it, and nothing says who that is; set `otlp.tenant_header` or \
             `otlp.tenant_attribute`"
        )),
        _ => None,
    }
}

fn ttl(layers: &Layers) -> Option<String> {
    let ttl_ms = layers.integer("otlp.ttl_ms");
    (!ttl_ms.is_multiple_of(1000))
        .then(|| format!("`otlp.ttl_ms` ({ttl_ms}) must be whole seconds: a multiple of 1000"))
}

fn tokens(layers: &Layers) -> Vec<String> {
    let mut problems = Vec::new();
    let tokens: Vec<&str> = layers.entries.otlp_tokens.iter().filter_map(|entry| entry.text("token")).collect();
    for (index, token) in tokens.iter().enumerate() {
        if token.is_empty() {
            problems.push(format!("[[otlp.tokens]] entry {} has an empty `token`; give it one", index + 1));
        } else if tokens[..index].contains(token) {
            problems.push(format!("[[otlp.tokens]] entry {} has the token of another one; remove it", index + 1));
        }
    }
    problems
}
