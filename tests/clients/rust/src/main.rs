//! Drives a ClickHouse HTTP endpoint with the official Rust client, or, with the argument `klickhouse`, a
//! native endpoint with that client: every way to insert that it has, each into a table of its own. Prints
//! one JSON report.

mod inserts;
mod klick;
mod report;
mod rows;

use clickhouse::{Client, Compression};
use report::{equal, Report};
use rows::ROWS;
use std::env::var;
use std::error::Error;

fn connect() -> Result<Client, Box<dyn Error + Send + Sync>> {
    Ok(Client::default()
        .with_url(format!("http://{}:{}", var("CLICKHOUSE_HOST")?, var("CLICKHOUSE_PORT")?))
        .with_user(var("CLICKHOUSE_USER")?)
        .with_password(var("CLICKHOUSE_PASSWORD")?)
        .with_database(var("CLICKHOUSE_DATABASE")?))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    if std::env::args().nth(1).as_deref() == Some("klickhouse") {
        return klick::run().await;
    }
    let client = connect()?;
    let asynchronous =
        |wait: &str| client.clone().with_setting("async_insert", "1").with_setting("wait_for_async_insert", wait);
    let ways = [
        ("with_types", client.clone()),
        ("row_binary", client.clone().with_validation(false)),
        ("uncompressed", client.clone().with_compression(Compression::None)),
        ("waiting", asynchronous("1")),
        ("not_waiting", asynchronous("0")),
        ("row_binary_waiting", asynchronous("1").with_validation(false)),
        ("pinned_off", client.clone().with_setting("async_insert", "0")),
    ];
    let mut report = Report::default();
    for (table, way) in ways {
        report.sends(table, 1);
        report.note(table, inserts::rows(&client, table, &way).await);
    }
    report.sends("inserter", 4);
    report.note("inserter", inserts::inserter(&client, "inserter").await);
    report.sends("one_by_one", ROWS as usize);
    report.note("one_by_one", inserts::one_by_one(&asynchronous("1"), "one_by_one").await);
    for (table, way) in [("native", client.clone()), ("native_waiting", asynchronous("1"))] {
        report.sends(table, 1);
        report.note(table, inserts::native_rows(&client, table, &way).await);
    }
    for (table, format, text) in [
        ("formatted_json", "JSONEachRow", "{\"id\":7,\"s\":\"x\"}\n"),
        ("formatted_csv", "CSVWithNames", "\"id\",\"s\"\n7,\"x\"\n"),
        ("formatted_tsv", "TSV", "7\tx\n"),
    ] {
        report.sends(table, 1);
        report.note(table, inserts::formatted(&client, table, format, text).await);
    }
    report.sends("statement", 1);
    report.note("statement", inserts::statement(&client, "statement").await);
    report.sends("bad_row", 1);
    report.note("a bad row is 27", inserts::bad_row(&client, "bad_row").await);
    report.sends("checked", 1);
    report.note("a constraint is 469", inserts::constraint(&client, "checked").await);
    report.note("an unknown column is the client's own error", inserts::unknown_column(&client, "with_types").await);
    report.note("an unknown table is 60", inserts::unknown_table(&client).await);
    let sum = client.query("SELECT sum(number) FROM numbers(?)").bind(100_000).fetch_one::<u64>().await;
    report.note("read", sum.map_err(Into::into).and_then(|sum| equal(sum, 4_999_950_000)));
    report.print();
    Ok(())
}
