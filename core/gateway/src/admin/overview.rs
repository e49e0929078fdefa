//! The gateway's state at this moment as JSON, for the dashboard and other programs; see docs/dashboard.md.

use serde_json::{json, Value};
use windrow_clickhouse::ErrorCode;
use windrow_engine::{Gatherer, Held, TableFigures, TableKey, OTHER_TABLES};

use super::history::History;
use super::replicas;
use crate::admission::Unprotected;
use crate::backend::BackendSink;
use crate::metrics::{Tallies, TallyCounts};
use crate::state::State;

const MAX_TABLES_SHOWN: usize = 1000;
const TABLES_SHOWN: usize = 100;

/// The document with the reasons to forward a request, each in a row of a table: `` | `reason` | meaning | ``.
const REASONS: &str = include_str!("../../../../docs/compatibility.md");

/// Conditions, order and page of the list of tables.
#[derive(Debug)]
pub(super) struct TableQuery {
    search: String,
    sort: usize,
    descending: bool,
    offset: usize,
    limit: usize,
}

/// A row of the list of tables.
struct Row {
    name: TableKey,
    figures: TableFigures,
    held: Held,
}

/// A column of the list of tables. The list can be sorted by it.
struct Column {
    name: &'static str,
    value: fn(&Row) -> f64,
}

/// Columns that follow the table's name. Counts are exact up to 2^53.
const COLUMNS: [Column; 17] = [
    Column { name: "inserts_per_second", value: |row| row.figures.per_second.inserts },
    Column { name: "rows_per_second", value: |row| row.figures.per_second.rows },
    Column { name: "bytes_per_second", value: |row| row.figures.per_second.bytes },
    Column { name: "inserts", value: |row| row.figures.arrived.inserts as f64 },
    Column { name: "rows", value: |row| row.figures.arrived.rows as f64 },
    Column { name: "bytes", value: |row| row.figures.arrived.bytes as f64 },
    Column { name: "failed_inserts", value: |row| row.figures.failed_inserts as f64 },
    Column { name: "flushes", value: |row| row.figures.flushes as f64 },
    Column {
        name: "rows_per_flush",
        value: |row| row.figures.flushed_rows as f64 / (row.figures.flushes as f64).max(1.0),
    },
    Column {
        name: "inserts_per_flush",
        value: |row| row.figures.flushed_inserts as f64 / (row.figures.flushes as f64).max(1.0),
    },
    Column { name: "parts_active", value: |row| row.figures.parts_active as f64 },
    Column { name: "parts_created", value: |row| row.figures.parts_created as f64 },
    Column { name: "held_bytes", value: |row| row.held.buffer_bytes as f64 },
    Column { name: "backlog_inserts", value: |row| row.held.backlog_inserts as f64 },
    Column { name: "backlog_bytes", value: |row| row.held.backlog_bytes as f64 },
    Column { name: "journal_bytes", value: |row| row.held.journal_bytes as f64 },
    Column { name: "oldest_insert_seconds", value: |row| row.held.oldest_seconds },
];
/// Value of `sort` that means the table's name: an index behind all columns.
const BY_NAME: usize = COLUMNS.len();

impl TableQuery {
    pub(super) fn read(parameters: impl IntoIterator<Item = (String, String)>) -> Result<TableQuery, String> {
        let mut query = TableQuery { search: String::new(), sort: 1, descending: true, offset: 0, limit: TABLES_SHOWN };
        for (name, value) in parameters {
            let number = || value.parse().map_err(|_| format!("'{value}' is no number: parameter '{name}'"));
            match name.as_str() {
                "search" => query.search = value.to_lowercase(),
                "sort" if value == "table" => query.sort = BY_NAME,
                "sort" => {
                    let found = COLUMNS.iter().position(|column| column.name == value);
                    query.sort = found.ok_or_else(|| format!("tables can't be sorted by '{value}'"))?;
                }
                "order" if matches!(value.as_str(), "asc" | "desc") => query.descending = value == "desc",
                "order" => return Err("the order is asc or desc".to_owned()),
                "offset" => query.offset = number()?,
                "limit" => query.limit = number()?.min(MAX_TABLES_SHOWN),
                _ => {
                    return Err(format!("there is no parameter '{name}' here, only search, sort, order, offset, limit"))
                }
            }
        }
        Ok(query)
    }

    fn wants(&self, name: &TableKey) -> bool {
        self.search.is_empty() || format!("{}.{}", name.database, name.table).to_lowercase().contains(&self.search)
    }
}

pub(super) fn tables(gatherer: &Gatherer<BackendSink>, has_parts: bool, query: &TableQuery) -> Value {
    let activity = gatherer.activity();
    let total = activity.len();
    let mut held = gatherer.held_by_tables();
    let of = |(name, figures)| Row { held: held.remove(&name).unwrap_or_default(), name, figures };
    let mut rows: Vec<Row> = activity.into_iter().map(of).collect();
    // What is left belongs to tables that share their figures.
    if let Some(others) = rows.iter_mut().find(|row| row.name.table == OTHER_TABLES) {
        others.held = held.into_values().fold(Held::default(), Held::and);
    }
    rows.retain(|row| query.wants(&row.name));
    rows.sort_by(|one, other| {
        let by_name = one.name.cmp(&other.name);
        let order = match COLUMNS.get(query.sort) {
            Some(column) => (column.value)(one).total_cmp(&(column.value)(other)),
            None => by_name,
        };
        let order = if query.descending { order.reverse() } else { order };
        order.then(by_name)
    });
    let matching = rows.len();
    let shown = rows.iter().skip(query.offset).take(query.limit).map(|row| table(row, has_parts));
    json!({ "total": total, "matching": matching, "tables": shown.collect::<Vec<_>>() })
}

fn table(row: &Row, has_parts: bool) -> Value {
    let mut shown = json!({ "database": row.name.database, "table": row.name.table });
    for column in &COLUMNS {
        let value = (column.value)(row);
        shown[column.name] = match column.name {
            "parts_active" | "parts_created" if !has_parts => Value::Null,
            _ if value == value.trunc() => json!(value as u64),
            _ => json!((value * 1e4).round() / 1e4),
        };
    }
    shown
}

/// Returns how many requests were forwarded, for each reason, and how many errors there were, for each code.
pub(super) fn refusals(state: &State, history: &History) -> Value {
    let before: TallyCounts = history.tallied_before().map(|tallied| tallied.counts).unwrap_or_default();
    let Tallies { forwarded, errors } = state.metrics.tallies();
    let errors = errors.into_iter().map(|(code, tally)| {
        let counted_before = before.errors.get(&code).copied().unwrap_or_default();
        json!({
            "code": code.number(),
            "name": name_of_code(code, &tally.latest),
            "count": tally.count,
            "last_minute": tally.count.saturating_sub(counted_before),
            "latest": tally.latest,
        })
    });
    let forwarded = forwarded.into_iter().map(|(reason, count)| {
        let counted_before = before.forwarded.get(reason).copied().unwrap_or_default();
        json!({ "reason": reason, "count": count, "last_minute": count.saturating_sub(counted_before), "help": meaning_of(reason) })
    });
    json!({ "errors": errors.collect::<Vec<_>>(), "forwarded": forwarded.collect::<Vec<_>>() })
}

/// Returns the figures of each signal of OTLP; none where the ports of OTLP are closed.
pub(super) fn otlp(state: &State, history: &History) -> Value {
    let settings = state.options.settings.get();
    if settings.otlp.grpc_listen.or(settings.otlp.http_listen).is_none() {
        return json!({ "signals": [] });
    }
    let before = history.tallied_before();
    let seconds = before.as_ref().map_or(1.0, |before| before.at.elapsed().as_secs_f64().max(1.0));
    let before = before.map(|before| before.otlp).unwrap_or_default();
    let signals = state.otlp_counts().into_iter().map(|now| {
        // At the start nothing has been counted.
        let before = before.iter().find(|before| before.signal == now.signal).cloned().unwrap_or_default();
        let per_second = |now: u64, before: u64| (now.saturating_sub(before) as f64 / seconds * 10.0).round() / 10.0;
        let ages = now.ages.since(&before.ages);
        json!({
            "signal": now.signal,
            "requests": now.requests,
            "rows": now.rows,
            "bytes": now.bytes,
            "rejected_rows": now.rejected_rows,
            "refused_requests": now.refused_requests,
            "last_minute": {
                "requests_per_second": per_second(now.requests, before.requests),
                "rows_per_second": per_second(now.rows, before.rows),
                "bytes_per_second": per_second(now.bytes, before.bytes),
                "refused_requests": now.refused_requests.saturating_sub(before.refused_requests),
                "age_seconds": { "p50": ages.quantile_seconds(0.5), "p99": ages.quantile_seconds(0.99) },
            },
        })
    });
    json!({ "signals": signals.collect::<Vec<_>>() })
}

/// Returns ClickHouse's name of an error code. The name of a code that is not known here stands at the end of
/// ClickHouse's own texts.
fn name_of_code(code: ErrorCode, text: &str) -> Option<&str> {
    code.name().or_else(|| {
        let (_, name) = text.strip_suffix(')')?.rsplit_once('(')?;
        let is_of_name = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
        (!name.is_empty() && name.bytes().all(is_of_name)).then_some(name)
    })
}

/// Returns what a reason to forward means, as plain text.
fn meaning_of(reason: &str) -> Option<String> {
    let start = format!("| `{reason}` | ");
    let row = REASONS.lines().find_map(|line| line.strip_prefix(&start)?.strip_suffix(" |"))?;
    Some(without_links(row).replace('`', ""))
}

/// Replaces each link `[text](address)` by its `text`.
fn without_links(markdown: &str) -> String {
    let mut text = String::new();
    let mut rest = markdown;
    while let Some((before, behind)) = rest.split_once("](") {
        let (outside, inside) = before.rsplit_once('[').unwrap_or((before, ""));
        text.push_str(outside);
        text.push_str(inside);
        rest = behind.split_once(')').map_or("", |(_, behind)| behind);
    }
    text + rest
}

pub(super) fn appends(state: &State) -> Value {
    let open = state.appends.get().map(|appends| appends.list_all()).unwrap_or_default();
    let open = open.into_iter().map(|(user, progress)| {
        let mut shown = json!(progress);
        shown["user"] = json!(user);
        shown
    });
    json!({ "appends": open.collect::<Vec<_>>() })
}

/// Returns the settings in force and their sources. Values of secrets are not shown.
pub(super) fn settings(state: &State) -> Value {
    let settings = state.options.settings.get();
    let shown = settings.shown().map(|(name, value, source)| json!({ "name": name, "value": value, "source": source }));
    json!({ "settings": shown.collect::<Vec<_>>() })
}

/// Returns the version within a suffix like `(version 26.7.2.1 (official build))` or `(DuckDB v1.5.6)`.
fn version_of(suffix: &str) -> Option<&str> {
    let inside = suffix.strip_prefix('(')?.strip_suffix(')')?;
    Some(["version ", "DuckDB ", "ADBC "].iter().find_map(|word| inside.strip_prefix(word)).unwrap_or(inside))
}

/// Returns the kind, address, version and health of the backend.
pub(super) fn backend(state: &State, up: Result<(), String>) -> Value {
    let facts = state.admission.facts.get();
    let address = state.backend.clickhouse().map(|clickhouse| clickhouse.client.replicas().to_string());
    json!({
        "kind": state.backend.kind(),
        "name": address,
        "version": version_of(facts.version_suffix()),
        "up": up.is_ok(),
        "reason": up.err(),
        "replicas": replicas::shown(&state.backend),
    })
}

/// Returns the tables that views fill and that may have rows twice.
pub(super) fn unprotected(state: &State) -> Value {
    let unprotected = state.admission.unprotected();
    let shown = unprotected.iter().take(MAX_TABLES_SHOWN).map(|Unprotected { table, view, why }| {
        let view = format!("{}.{}", view.database, view.table);
        json!({ "database": table.database, "table": table.table, "view": view, "why": why })
    });
    json!(shown.collect::<Vec<_>>())
}

/// Returns the same for people: a line, and one more for each of the first tables if `names` may be told.
pub(super) fn unprotected_in_words(state: &State, names: bool) -> String {
    const SHOWN: usize = 20;
    let unprotected = state.admission.unprotected();
    if unprotected.is_empty() {
        return String::new();
    }
    let end = if names { ":" } else { "; the log names them" };
    let mut text = format!(
        "of a batch that is sent again after a lost answer, these tables may have rows twice: {} that materialized views \
         fill{end}\n",
        unprotected.len()
    );
    for table in unprotected.iter().filter(|_| names).take(SHOWN) {
        text.push_str(&format!("{table}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(parameters: &[(&str, &str)]) -> Result<TableQuery, String> {
        TableQuery::read(parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    #[test]
    fn a_query_is_read_or_refused() {
        let asked = query(&[("search", "Shop"), ("sort", "table"), ("order", "asc"), ("limit", "100000")]).unwrap();
        assert_eq!((asked.sort, asked.descending, asked.limit), (BY_NAME, false, MAX_TABLES_SHOWN));
        assert!(asked.wants(&TableKey { database: "SHOP".to_owned(), table: "t".to_owned() }));
        for bad in [("sort", "colour"), ("order", "up"), ("limit", "-1"), ("offset", "x"), ("page", "2")] {
            assert!(query(&[bad]).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn errors_have_names_and_reasons_a_meaning() {
        assert_eq!(name_of_code(ErrorCode::UNKNOWN_TABLE, "whatever it says"), Some("UNKNOWN_TABLE"));
        let new = ErrorCode::from_number(9999);
        assert_eq!(
            name_of_code(new, "Code: 9999. DB::Exception: no (it) is not there. (NEW_ERROR)"),
            Some("NEW_ERROR")
        );
        assert_eq!(name_of_code(new, "Code: 9999. DB::Exception: it is not there (really)"), None);
        assert_eq!(version_of("(version 26.7.2.1 (official build))"), Some("26.7.2.1 (official build)"));
        assert_eq!((version_of("(DuckDB v1.5.6)"), version_of("")), (Some("v1.5.6"), None));
        let meaning = meaning_of("async_insert=0").unwrap();
        assert!(meaning.starts_with("the request says so (or gather.async_insert"), "{meaning}");
        assert_eq!(meaning_of("nothing"), None);
        assert_eq!(without_links("see [this](a.md#b) and [that](c)."), "see this and that.");
    }
}
