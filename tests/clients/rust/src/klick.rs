//! Inserts with klickhouse: the native protocol, with blocks that the client packs itself.

use crate::report::{equal, Outcome, Report};
use crate::rows::ROWS;
use klickhouse::{Client, ClientOptions, DateTime64, FixedPoint64, IndexMap, KlickhouseError, Row, Tz, Uuid};
use std::env::var;
use std::error::Error;

const COLUMNS: &str =
    "(id UInt64, s String, maybe Nullable(Int32), kind LowCardinality(String), price Decimal(18, 4), \
                       at DateTime64(3, 'UTC'), tags Array(String), key UUID, flag UInt8)";

// Its fields stand in the order of the table's columns: the client goes by that.
#[derive(Row, Clone, Debug, PartialEq)]
struct Event {
    id: u64,
    s: String,
    maybe: Option<i32>,
    kind: String,
    price: FixedPoint64<4>,
    at: DateTime64<3>,
    tags: Vec<String>,
    key: Uuid,
    flag: u8,
}

#[derive(Row, Clone, Debug, PartialEq)]
struct Pair {
    id: u64,
    s: String,
}

#[derive(Row)]
struct Count {
    count: u64,
}

fn event(number: u64) -> Event {
    Event {
        id: number,
        s: format!("text {number} ‘quoted’ \\ \t \", it's\n"),
        maybe: (number % 2 == 0).then_some(-7),
        kind: format!("kind {}", number % 3),
        price: FixedPoint64(10_000 * number as i64 + 1234),
        at: DateTime64(Tz::UTC, 1_709_210_096_789),
        tags: (0..number % 4).map(|tag| format!("tag {tag}")).collect(),
        key: Uuid::from_u128(number.into()),
        flag: u8::from(number % 2 == 0),
    }
}

fn events() -> Vec<Event> {
    (0..ROWS).map(event).collect()
}

async fn connect(settings: &[(&str, &str)]) -> Result<Client, Box<dyn Error + Send + Sync>> {
    let options = ClientOptions {
        username: var("CLICKHOUSE_USER")?,
        password: var("CLICKHOUSE_PASSWORD")?,
        default_database: var("CLICKHOUSE_DATABASE")?,
        settings: settings
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect::<IndexMap<_, _>>(),
        ..ClientOptions::default()
    };
    Ok(Client::connect(format!("{}:{}", var("CLICKHOUSE_HOST")?, var("CLICKHOUSE_PORT")?), options).await?)
}

async fn create(client: &Client, table: &str, columns: &str) -> Outcome {
    Ok(client.execute(format!("CREATE TABLE {table} {columns} ENGINE = MergeTree ORDER BY id")).await?)
}

/// Waits until all rows are stored, and compares them. Rows that were not waited for appear soon; the reader
/// of the report has the deadline.
async fn stored(client: &Client, table: &str) -> Outcome {
    while client.query_one::<Count>(format!("SELECT count() AS count FROM {table}")).await?.count < ROWS {}
    equal(client.query_collect::<Event>(format!("SELECT * FROM {table} ORDER BY id")).await?, events())
}

async fn block(client: &Client, table: &str) -> Outcome {
    create(client, table, COLUMNS).await?;
    client.insert_native_block(format!("INSERT INTO {table} FORMAT Native"), events()).await?;
    stored(client, table).await
}

/// Inserts blocks of three rows.
async fn blocks(client: &Client, table: &str) -> Outcome {
    create(client, table, COLUMNS).await?;
    let blocks: Vec<Vec<Event>> = events().chunks(3).map(<[Event]>::to_vec).collect();
    client.insert_native(format!("INSERT INTO {table} FORMAT Native"), tokio_stream::iter(blocks)).await?;
    stored(client, table).await
}

async fn some_columns(client: &Client, table: &str) -> Outcome {
    create(client, table, "(id UInt64, s String, more UInt64 DEFAULT id + 1)").await?;
    let rows = vec![Pair { id: 7, s: "x".to_owned() }];
    client.insert_native_block(format!("INSERT INTO {table} (id, s) FORMAT Native"), rows).await?;
    equal(client.query_one::<Count>(format!("SELECT more AS count FROM {table}")).await?.count, 8)
}

async fn statement(client: &Client, table: &str) -> Outcome {
    create(client, table, "(id UInt64, s String)").await?;
    client.execute(format!("INSERT INTO {table} VALUES (7, 'it''s')")).await?;
    let row = client.query_one::<Pair>(format!("SELECT * FROM {table}")).await?;
    equal(row, Pair { id: 7, s: "it's".to_owned() })
}

async fn constraint(client: &Client, table: &str) -> Outcome {
    create(client, table, &COLUMNS.replace("flag UInt8", "flag UInt8, CONSTRAINT few CHECK id < 5")).await?;
    refused(client.insert_native_block(format!("INSERT INTO {table} FORMAT Native"), events()).await, 469)?;
    // The connection goes on.
    equal(client.query_one::<Count>(format!("SELECT count() AS count FROM {table}")).await?.count, 0)
}

async fn errors(client: &Client) -> Outcome {
    refused(client.insert_native_block("INSERT INTO nowhere FORMAT Native", events()).await, 60)?;
    refused(client.execute("SELECT not_there").await, 47)?;
    equal(client.query_one::<Count>("SELECT sum(number) AS count FROM numbers(100000)").await?.count, 4_999_950_000)
}

fn refused(outcome: Result<(), KlickhouseError>, expected: i32) -> Outcome {
    match outcome {
        Err(KlickhouseError::ServerException { code, .. }) => equal(code, expected),
        Err(other) => Err(format!("another error: {other:?}").into()),
        Ok(()) => Err("no error was returned".into()),
    }
}

pub async fn run() -> Outcome {
    let mut report = Report::default();
    let client = connect(&[]).await?;
    let waiting = connect(&[("async_insert", "1")]).await?;
    let not_waiting = connect(&[("async_insert", "1"), ("wait_for_async_insert", "0")]).await?;
    let pinned_off = connect(&[("async_insert", "0")]).await?;
    for (table, way) in
        [("block", &client), ("waiting", &waiting), ("not_waiting", &not_waiting), ("pinned_off", &pinned_off)]
    {
        report.sends(table, 1);
        report.note(table, block(way, table).await);
    }
    report.sends("blocks", 1);
    report.note("blocks", blocks(&client, "blocks").await);
    report.sends("some_columns", 1);
    report.note("some_columns", some_columns(&client, "some_columns").await);
    report.sends("statement", 1);
    report.note("statement", statement(&client, "statement").await);
    report.sends("nowhere", 1);
    report.note("errors have ClickHouse's codes", errors(&client).await);
    // Behind an error among rows, a gateway that forwards looks into nothing more of this connection.
    report.sends("checked", 1);
    report.note("a constraint is 469", constraint(&client, "checked").await);
    report.print();
    Ok(())
}
