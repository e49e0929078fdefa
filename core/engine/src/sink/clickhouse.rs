use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use windrow_clickhouse::{Call, CallError, Client, Cluster, Credentials, Exception, Purpose};
use windrow_columns::{native_pieces, Rows};
use windrow_sql::{backquote, quote_string};

use crate::isolate::shows_stale_schema;
use crate::sink::batch::{Batch, Destination, Form, TableKey};
use crate::sink::conclude::conclude;
use crate::sink::contract::{Load, PartCount, Sink, StoreError, Stored};
use crate::sink::converting::{self, is_about_types, types_question, Conversion};
use crate::sink::spread::{may_span_partitions, PARTS_AT_ONCE};

/// Time for which the server may be silent while it writes a batch. Past it the outcome is unknown.
const STORE_TIMEOUT: Duration = Duration::from_secs(300);
const LOAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Number of tables in one query: as many names as stay below ClickHouse's bound on the length of a query.
const MOST_TABLES_ASKED: usize = 2_000;

/// A sink that writes batches as one INSERT each, as the user whose inserts they hold: in FORMAT Native, or
/// as the text they came in.
pub struct ClickHouseSink {
    client: Arc<Client>,
    /// The cluster, for batches that were cut by shards.
    cluster: Option<Arc<Cluster>>,
}

impl ClickHouseSink {
    pub fn new(client: Arc<Client>, cluster: Option<Arc<Cluster>>) -> ClickHouseSink {
        ClickHouseSink { client, cluster }
    }

    /// Returns the client for the server that the rows go to.
    fn client_of(&self, destination: &Destination) -> Result<Cow<'_, Arc<Client>>, StoreError> {
        let Some(shard) = &destination.shard else { return Ok(Cow::Borrowed(&self.client)) };
        let cluster = self.cluster.as_ref().ok_or_else(|| {
            StoreError::NotSent(format!("its rows were cut for shard {}: set `backend.cluster` again", shard.number))
        })?;
        cluster.client_of(shard.topology, &shard.replicas).map(Cow::Owned).map_err(StoreError::NotSent)
    }
}

/// Settings with which ClickHouse makes one block of a whole text, and of many blocks. It writes this block
/// only when it has read all of the text: an error in any row means that no row is stored. Parallel parsing
/// cuts texts of many megabytes only (`min_chunk_bytes_for_parallel_parsing`), and stays as it is: errors
/// name it.
pub const ONE_BLOCK: [(&str, &str); 3] = [
    ("max_insert_block_size", MANY_ROWS),
    ("min_insert_block_size_rows", MANY_ROWS),
    // However many bytes the blocks before have.
    ("min_insert_block_size_bytes", "0"),
];
/// Settings for an INSERT that takes its rows from a SELECT, which writes one block with them as well.
const WITH_A_SELECT: [(&str, &str); 4] = [ONE_BLOCK[0], ONE_BLOCK[1], ONE_BLOCK[2], ("max_insert_threads", "1")];
/// Setting that makes a replica that has lost its Keeper say so after 6 s: it would try for two minutes
/// before. Another replica knows the batch if it is stored. With fewer attempts, a Keeper that is away for a
/// moment would leave more parts of which the replica does not know for five minutes whether they count.
const BRIEFLY_AT_ONE_REPLICA: (&str, &str) = ("insert_keeper_max_retries", "6");
/// Number of rows, which is more than a batch of text can have.
const MANY_ROWS: &str = "16777216";

/// Returns the settings that a flush sets by itself, besides what its inserts ask for. Inserts of a user that
/// may not set these can't be gathered.
pub fn settings_of_flushes(
    destination: &Destination,
    spans_partitions: bool,
) -> impl Iterator<Item = (&'static str, &'static str)> {
    let is_text = matches!(destination.form, Form::Text { .. });
    let one_block = ONE_BLOCK.into_iter().filter(move |_| is_text);
    let is_told_itself = destination.settings.iter().any(|(name, _)| name == BRIEFLY_AT_ONE_REPLICA.0);
    let goes_elsewhere = destination.is_replicated && destination.deduplicates && !is_told_itself;
    let briefly = goes_elsewhere.then_some(BRIEFLY_AT_ONE_REPLICA);
    one_block.chain(spans_partitions.then_some(PARTS_AT_ONCE)).chain(briefly)
}

/// Returns the database and the table that take the rows.
fn stored_in(destination: &Destination) -> (&str, &str) {
    match &destination.shard {
        Some(shard) => (&shard.database, &shard.table),
        None => (&destination.database, &destination.table),
    }
}

/// Returns the statement that writes to `destination`, by way of a SELECT if there is one.
fn insert_statement(destination: &Destination, select: &str, format: &str) -> String {
    let mut statement = String::with_capacity(64 + 16 * destination.columns.len());
    statement.push_str("INSERT INTO ");
    let (database, table) = stored_in(destination);
    statement.push_str(&backquote(database));
    statement.push('.');
    statement.push_str(&backquote(table));
    statement.push_str(" (");
    for (index, column) in destination.columns.iter().enumerate() {
        if index > 0 {
            statement.push_str(", ");
        }
        statement.push_str(&backquote(column));
    }
    statement.push(')');
    if !select.is_empty() {
        statement.push(' ');
        statement.push_str(select);
    }
    statement.push_str(" FORMAT ");
    statement.push_str(format);
    statement
}

/// Returns the format that a batch's rows are sent in.
fn format_of(destination: &Destination) -> &'static str {
    match &destination.form {
        Form::Native { .. } => "Native",
        Form::Text { format, .. } => format,
    }
}

/// Returns the call that stores a batch. `own` is the gateway's own account.
fn insert_call<'a>(batch: &'a Batch, own: &'a Credentials, spans_partitions: bool, statement: &str) -> Call<'a> {
    let id = batch.id.to_string();
    let mut call = call_as(batch, own, statement).param("query_id", &id).param("insert_deduplication_token", &id);
    for (name, value) in settings_of_flushes(&batch.destination, spans_partitions) {
        call = call.param(name, value);
    }
    if let Some(traceparent) = &batch.traceparent {
        call = call.field("traceparent", traceparent);
    }
    call.timeout(STORE_TIMEOUT)
}

/// Returns a call of a statement under the account that the batch's rows are written with.
fn call_as<'a>(batch: &'a Batch, own: &'a Credentials, statement: &str) -> Call<'a> {
    let destination = &batch.destination;
    let account = if destination.own_account { own } else { &destination.credentials };
    let mut call = Call::new(account, statement).param("async_insert", "0");
    for (name, value) in &destination.settings {
        call = call.param(name, value);
    }
    if !destination.own_account {
        for role in &destination.roles {
            call = call.param("role", role);
        }
        if !destination.quota_key.is_empty() {
            call = call.param("quota_key", &destination.quota_key);
        }
    }
    call.purpose(purpose(destination)).timeout(LOAD_TIMEOUT)
}

/// Returns the servers that may get the rows. Where no other replica shares the rows, no other server may get
/// them: it would not know a repeat, and readers would not find them.
fn purpose(destination: &Destination) -> Purpose {
    let (database, table) = stored_in(destination);
    match destination.is_replicated {
        true => Purpose::insert_into(database, table),
        false => Purpose::First,
    }
}

/// Returns the body of the INSERT. A batch may be large, and is needed for another attempt: it is lent, not
/// copied.
fn body(batch: &Batch) -> Vec<Cow<'_, [u8]>> {
    let destination = &batch.destination;
    match (&batch.rows, &destination.form) {
        (Rows::Parsed(block), Form::Native { types }) => {
            native_pieces(std::slice::from_ref(block), &destination.columns, types)
        }
        (Rows::Blocks(blocks), Form::Native { types }) => native_pieces(blocks, &destination.columns, types),
        (Rows::Passthrough(rows), Form::Text { header, .. }) => vec![Cow::from(header), Cow::from(rows.text())],
        _ => panic!("the rows of a batch are of its destination's form"),
    }
}

/// Asks what is to be done with rows of types that the table no longer has. The query is sent where the rows
/// go.
async fn conversion(client: &Client, batch: &Batch) -> Option<Conversion> {
    let (database, table) = stored_in(&batch.destination);
    let question = types_question(database, table);
    let call = Call::new(&client.endpoint().credentials, &question).purpose(purpose(&batch.destination));
    let answer = client.call(call.timeout(LOAD_TIMEOUT)).await.ok()?;
    Some(converting::conversion(&batch.destination, answer.text(), batch.again))
}

fn written_rows(summary: &str) -> Option<u64> {
    let rest = &summary[summary.find("\"written_rows\":\"")? + 16..];
    rest.split('"').next()?.parse().ok()
}

/// Checks that a batch of text has as many rows as its inserts had by our count; if not, our reading of the
/// text is wrong. Views add to the count, and tables that hand rows on may not count them.
fn check_count(batch: &Batch, written_rows: u64) {
    let Destination { has_views, hands_on, database, table, .. } = &*batch.destination;
    let counted = batch.rows.count() as u64;
    if matches!(batch.rows, Rows::Passthrough(_)) && !has_views && !hands_on && written_rows != counted {
        tracing::error!(database, table, batch = %batch.id, counted, written_rows, "ClickHouse read other rows from a batch of text than there are");
    }
}

impl Sink for ClickHouseSink {
    async fn store(&self, batch: &Batch) -> Result<Stored, StoreError> {
        let client = self.client_of(&batch.destination)?;
        let body = body(batch);
        let spans_partitions = may_span_partitions(batch);
        let own = &client.endpoint().credentials;
        let call = |statement: &str| insert_call(batch, own, spans_partitions, statement);
        let plain = insert_statement(&batch.destination, "", format_of(&batch.destination));
        let mut outcome = match self.compare_types(&client, batch).await? {
            Some(exception) => Err(CallError::Exception(exception)),
            None => client.call(call(&plain).body(&body)).await,
        };
        if matches!(&outcome, Err(CallError::Exception(exception)) if batch.destination.is_replicated && shows_stale_schema(exception.code))
        {
            // A replica may not know yet what the first one, which was asked for the schema, does. Nothing is stored.
            outcome = client.call(call(&plain).body(&body).purpose(Purpose::InOrder)).await;
        }
        let mut has_other_types = false;
        if matches!(&outcome, Err(CallError::Exception(exception)) if is_about_types(exception, &batch.destination)) {
            match conversion(&client, batch).await {
                Some(Conversion::By(select)) => {
                    has_other_types = true;
                    let statement = insert_statement(&batch.destination, &select, format_of(&batch.destination));
                    let settings = WITH_A_SELECT.iter();
                    let call = settings.fold(call(&statement), |call, (name, value)| call.param(name, value));
                    outcome = client.call(call.body(&body)).await;
                }
                Some(Conversion::Needless) => outcome = client.call(call(&plain).body(&body)).await,
                Some(Conversion::Refused) | None => {}
            }
        }
        match outcome {
            Ok(answer) => {
                let written_rows = answer.head.field_str("x-clickhouse-summary").and_then(written_rows);
                if let Some(written_rows) = written_rows {
                    check_count(batch, written_rows);
                }
                Ok(Stored { written_rows, has_other_types })
            }
            Err(CallError::NotSent(error)) => Err(StoreError::NotSent(error.to_string())),
            Err(CallError::Unknown(text)) => Err(StoreError::Unknown(text)),
            Err(CallError::Exception(exception)) => Err(conclude(exception, &batch.destination, spans_partitions)),
        }
    }

    async fn answers(&self, destination: &Destination) -> bool {
        let Ok(client) = self.client_of(destination) else { return false };
        let own = &client.endpoint().credentials;
        let call = Call::new(own, "SELECT 1").purpose(purpose(destination)).timeout(LOAD_TIMEOUT);
        // That it refuses is an answer as well.
        matches!(client.call(call).await, Ok(_) | Err(CallError::Exception(_)))
    }

    async fn load(&self, tables: &[TableKey]) -> Option<Load> {
        let mut load = Load::default();
        for tables in tables.chunks(MOST_TABLES_ASKED) {
            self.ask_for_load(tables, &mut load).await?;
        }
        Some(load)
    }
}

impl ClickHouseSink {
    /// Lets ClickHouse compare the names of the types where it would take the rows for others, before any row
    /// is sent. Returns the refusal if the types are not the table's.
    async fn compare_types(&self, client: &Client, batch: &Batch) -> Result<Option<Exception>, StoreError> {
        let destination = &batch.destination;
        let Some((format, header)) = converting::header(destination) else { return Ok(None) };
        let (statement, body) = (insert_statement(destination, "", format), [header]);
        let call = call_as(batch, &client.endpoint().credentials, &statement).body(&body);
        match client.call(call).await {
            Ok(_) => Ok(None),
            Err(CallError::Exception(exception)) if is_about_types(&exception, destination) => {
                Ok(Some(converting::type_mismatch(exception)))
            }
            Err(CallError::Exception(exception)) => Err(conclude(exception, destination, false)),
            Err(CallError::NotSent(error)) => Err(StoreError::NotSent(error.to_string())),
            Err(CallError::Unknown(text)) => Err(StoreError::NotSent(text)),
        }
    }

    async fn ask_for_load(&self, tables: &[TableKey], load: &mut Load) -> Option<()> {
        let names: Vec<String> = tables
            .iter()
            .map(|name| format!("({}, {})", quote_string(&name.database), quote_string(&name.table)))
            .collect();
        let query = format!(
            "SELECT database, table, max(parts), sum(parts), max(newest), (SELECT toUInt64(value) FROM \
             system.merge_tree_settings WHERE name = 'parts_to_throw_insert'), (SELECT toUInt64OrZero(extract(value, \
             '\\\\d+')) FROM system.settings WHERE name = 'max_threads') FROM (SELECT database, table, toUInt64(count()) AS \
             parts, toUInt64(max(max_block_number)) AS newest FROM system.parts WHERE active AND (database, table) IN ({}) \
             GROUP BY database, table, partition_id) GROUP BY database, table FORMAT JSONCompactEachRow",
            names.join(", ")
        );
        let own: &Credentials = &self.client.endpoint().credentials;
        let body = [query.as_bytes()];
        // In the body, since a URL has a bound.
        let call = Call::new(own, "").param("output_format_json_quote_64bit_integers", "0").body(&body);
        let answer = self.client.call(call.timeout(LOAD_TIMEOUT)).await.ok()?;
        for line in answer.text().lines() {
            let (database, table, fullest, active, created, throw_at, cpus): (String, String, u64, u64, u64, u64, u64) =
                serde_json::from_str(line).ok()?;
            let count = PartCount { active_in_fullest_partition: fullest, active, created, throw_at };
            load.parts.push((TableKey { database, table }, count));
            load.cpus = u32::try_from(cpus).ok().filter(|cpus| *cpus > 0);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted() {
        let destination = Destination {
            database: "d".into(),
            table: "t`\\".into(),
            columns: vec!["a".into(), "b c".into()],
            form: Form::Native { types: vec![] },
            credentials: Credentials { user: "u".into(), password: "p".into() },
            own_account: false,
            roles: vec![],
            quota_key: String::new(),
            settings: vec![],
            deduplicates: false,
            is_replicated: false,
            has_views: false,
            hands_on: false,
            partitioning: None,
            shard: None,
        };
        assert_eq!(
            insert_statement(&destination, "", "Native"),
            "INSERT INTO `d`.`t\\`\\\\` (`a`, `b c`) FORMAT Native"
        );
    }

    #[test]
    fn the_summary_tells_the_rows() {
        assert_eq!(written_rows(r#"{"read_rows":"2","written_rows":"12","x":"1"}"#), Some(12));
        assert_eq!(written_rows("{}"), None);
    }
}
