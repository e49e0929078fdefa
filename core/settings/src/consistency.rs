//! Rules that must hold between several settings.

use crate::backend::Backend;
use crate::catalogue::{ListSection, ADBC_USERS, DUCKDB_USERS, EMBEDDED_USERS};
use crate::cluster;
use crate::entries::Entry;
use crate::errors::SettingsError;
use crate::kafka;
use crate::kind::Value;
use crate::layers::Layers;
use crate::otlp;
use crate::units::show_size_bytes;

pub(crate) fn check(layers: &Layers, errors: &mut Vec<SettingsError>) {
    let mut conflict = |reason: String| errors.push(SettingsError::Conflict { reason });
    let problems = [
        tls_pair(layers),
        admin_token(layers),
        default_password(layers),
        pinned_certificate(layers),
        native_port_of_replicas(layers),
        dns_server(layers),
        cluster(layers),
        journal(layers),
        otlp_endpoint(layers),
        pairs(layers, "tracing.headers"),
        pairs(layers, "adbc.options"),
    ];
    for problem in problems {
        problem.into_iter().for_each(&mut conflict);
    }
    let users = [
        (&EMBEDDED_USERS, &layers.entries.embedded_users),
        (&DUCKDB_USERS, &layers.entries.duckdb_users),
        (&ADBC_USERS, &layers.entries.adbc_users),
    ];
    for (list, users) in users {
        users_of(list, users).into_iter().for_each(&mut conflict);
    }
    cluster::problems(layers).into_iter().for_each(&mut conflict);
    otlp::problems(layers).into_iter().for_each(&mut conflict);
    patterns(layers).into_iter().for_each(&mut conflict);
    kafka::consistency::check(&layers.entries.kafka).into_iter().for_each(&mut conflict);
}

/// Refuses an endpoint with a secret in it: the address is shown, and secrets have a setting of their own.
fn otlp_endpoint(layers: &Layers) -> Option<String> {
    let endpoint = layers.optional_text("tracing.otlp_endpoint")?;
    let address = endpoint.strip_prefix("http://").or_else(|| endpoint.strip_prefix("https://"));
    let is_plain = address.is_some_and(|address| !address.is_empty() && !address.contains(['@', '?', '#']));
    let text = "`tracing.otlp_endpoint` is http://host:port or https://host:port, without a password or a query: \
                what the collector asks for goes into `tracing.headers`";
    (!is_plain).then(|| text.to_owned())
}

/// Checks a setting that is `name=value` pairs with commas between. The error names the pair by its number
/// alone, as the value itself may be secret.
fn pairs(layers: &Layers, setting: &str) -> Option<String> {
    let pairs = layers.optional_text(setting)?;
    let wrong = pairs.split(',').position(|pair| !pair.trim().is_empty() && !pair.contains('='))?;
    Some(format!("`{setting}`: number {} is no `name=value`", wrong + 1))
}

fn tls_pair(layers: &Layers) -> Option<String> {
    let given = |path| layers.optional_text(path).is_some();
    let missing = match (given("http.tls_certificate"), given("http.tls_key")) {
        (true, false) => "http.tls_key",
        (false, true) => "http.tls_certificate",
        _ => return None,
    };
    Some(format!(
        "HTTPS needs both `http.tls_certificate` and `http.tls_key`, and `{missing}` is not set; set it, or neither"
    ))
}

fn admin_token(layers: &Layers) -> Option<String> {
    let listen = layers.address("admin.listen");
    (!listen.ip().is_loopback() && layers.optional_text("admin.token").is_none()).then(|| {
        format!(
            "the admin port on {listen} can be reached by others ({}); set `admin.token`, or listen on 127.0.0.1",
            layers.resolved("admin.listen").origin
        )
    })
}

fn default_password(layers: &Layers) -> Option<String> {
    let password = match layers.backend() {
        Backend::Embedded => "embedded.default_password",
        Backend::DuckDb(_) => "duckdb.default_password",
        Backend::Adbc(_) => "adbc.default_password",
        Backend::ClickHouse(_) => return None,
    };
    if layers.optional_text(password).is_some() {
        return None;
    }
    let ports = [
        ("the data port", "http.listen"),
        ("Flight SQL", "flight.listen"),
        ("OTLP over gRPC", "otlp.grpc_listen"),
        ("OTLP over HTTP", "otlp.http_listen"),
    ];
    ports.into_iter().find_map(|(port, path)| {
        let listen = layers.optional_address(path).filter(|listen| !listen.ip().is_loopback())?;
        Some(format!(
            "{port} on {listen} can be reached by others ({}), and the user `default` has no password; \
             set `{password}`, or listen on 127.0.0.1",
            layers.resolved(path).origin
        ))
    })
}

/// Refuses settings of certificates without https: someone who names an authority believes that the
/// connection is checked, so it must not be in the clear.
fn pinned_certificate(layers: &Layers) -> Option<String> {
    let set = ["backend_tls.ca_file", "backend_tls.server_name"]
        .into_iter()
        .find(|path| layers.optional_text(path).is_some())?;
    match layers.backend() {
        Backend::ClickHouse(replicas) if replicas.iter().any(|url| url.tls) => None,
        _ => Some(format!("`{set}` is set, but `backend` is no https:// URL; change one of them")),
    }
}

/// Refuses one native port for several replicas: each replica has a native port of its own.
fn native_port_of_replicas(layers: &Layers) -> Option<String> {
    let is_named = layers.optional_text("backend_native.address").is_some();
    let are_several =
        is_srv_record(layers) || matches!(layers.backend(), Backend::ClickHouse(replicas) if replicas.len() > 1);
    (is_named && are_several).then(|| {
        "`backend_native.address` names one native port, but `backend` has several replicas; leave it out and name \
         their native ports in `backend`, as in tcp://host:9000"
            .to_owned()
    })
}

fn is_srv_record(layers: &Layers) -> bool {
    matches!(layers.backend(), Backend::ClickHouse(replicas) if replicas.iter().any(|url| url.is_srv_record))
}

fn dns_server(layers: &Layers) -> Option<String> {
    let is_of_no_use = layers.is_set("backend.dns_server") && !is_srv_record(layers);
    is_of_no_use.then(|| {
        "`backend.dns_server` is set, but `backend` is no SRV record, as srv+http://_clickhouse._tcp.example.org is; \
         names of servers are looked up as the system does it"
            .to_owned()
    })
}

/// Refuses shards of any other backend: only a ClickHouse that somebody else runs has shards.
fn cluster(layers: &Layers) -> Option<String> {
    let set = ["backend.cluster", "backend.shards"].into_iter().find(|path| layers.is_set(path))?;
    if !matches!(layers.backend(), Backend::ClickHouse(_)) {
        return Some(format!("`{set}` is set, but `backend` is no address of a ClickHouse; change one of them"));
    }
    if !layers.is_set("backend.cluster") {
        return Some("`backend.shards` is set, and `backend.cluster` does not say of which cluster; set it".to_owned());
    }
    layers.shards().err().map(|problem| format!("`backend.shards`: {problem}"))
}

/// Checks that the journal has enough segments. Room is given back a segment at a time: with too few of them,
/// none is ever free to go.
fn journal(layers: &Layers) -> Option<String> {
    const MIN_SEGMENTS: u64 = 16;
    let (segment_bytes, max_bytes) = (layers.integer("journal.segment_bytes"), layers.integer("journal.max_bytes"));
    (max_bytes / MIN_SEGMENTS < segment_bytes).then(|| {
        format!(
            "`journal.max_bytes` ({}) must hold at least {MIN_SEGMENTS} files of `journal.segment_bytes` ({}); raise the first or lower the second",
            show_size_bytes(max_bytes),
            show_size_bytes(segment_bytes)
        )
    })
}

fn users_of(list: &ListSection, users: &[Entry]) -> Vec<String> {
    // `default` has settings of its own; the other is Windrow's own in the engine's user list.
    const RESERVED: [&str; 2] = ["default", "windrow"];
    let list = format!("[[{}]]", list.path);
    let mut problems = Vec::new();
    let names: Vec<&str> = users.iter().filter_map(|user| user.text("name")).collect();
    for (index, (user, name)) in users.iter().zip(&names).enumerate() {
        if name.is_empty() {
            problems.push(format!("a {list} entry has an empty `name`"));
        } else if RESERVED.contains(name) {
            problems.push(format!("{list} can't redefine `{name}`; choose another name"));
        } else if names[..index].contains(name) {
            problems.push(format!("{list} defines `{name}` twice; remove one of them"));
        }
        if matches!(user.value("password"), Value::Text(password) if password.is_empty()) {
            problems.push(format!("the {list} entry `{name}` has an empty `password`; give it one"));
        }
    }
    problems
}

fn patterns(layers: &Layers) -> Vec<String> {
    let mut problems = Vec::new();
    for (index, entry) in layers.entries.tables.iter().enumerate() {
        for key in ["database", "table", "user"] {
            if entry.text(key) == Some("") {
                problems.push(format!("[[tables]] entry {} has an empty `{key}`; use \"*\" for any", index + 1));
            }
        }
    }
    problems
}
