//! The ways to insert, and the check of the stored rows after each.

use crate::report::{equal, Outcome};
use crate::rows::{all, native, native_block, small, Native, Small, Stranger, COLUMNS, NATIVE_COLUMNS, ROWS};
use clickhouse::error::Error;
use clickhouse::Client;
use std::time::{Duration, Instant};

async fn create(client: &Client, table: &str, columns: &str) -> Result<(), Error> {
    client.query(&format!("CREATE TABLE {table} {columns} ENGINE = MergeTree ORDER BY id")).execute().await
}

async fn count(client: &Client, table: &str) -> Result<u64, Error> {
    client.query(&format!("SELECT count() FROM {table}")).fetch_one().await
}

/// Waits until all rows are stored, and compares them. Rows that were not waited for appear soon.
async fn stored(client: &Client, table: &str) -> Outcome {
    let deadline = Instant::now() + Duration::from_secs(180);
    while count(client, table).await? < ROWS && Instant::now() < deadline {}
    let rows: Vec<Small> = client.query(&format!("SELECT ?fields FROM {table} ORDER BY id")).fetch_all().await?;
    equal(rows, all())
}

pub async fn rows(client: &Client, table: &str, way: &Client) -> Outcome {
    create(client, table, COLUMNS).await?;
    let mut insert = way.insert::<Small>(table).await?;
    for row in all() {
        insert.write(&row).await?;
    }
    insert.end().await?;
    stored(client, table).await
}

/// Inserts with an INSERT after every third row.
pub async fn inserter(client: &Client, table: &str) -> Outcome {
    create(client, table, COLUMNS).await?;
    let mut inserter = client.inserter::<Small>(table).with_max_rows(3);
    for row in all() {
        inserter.write(&row).await?;
        inserter.commit().await?;
    }
    inserter.end().await?;
    stored(client, table).await
}

pub async fn one_by_one(client: &Client, table: &str) -> Outcome {
    create(client, table, COLUMNS).await?;
    let tasks: Vec<_> = (0..ROWS)
        .map(|number| {
            let (client, table) = (client.clone(), table.to_owned());
            tokio::spawn(async move {
                let mut insert = client.insert::<Small>(&table).await?;
                insert.write(&small(number)).await?;
                insert.end().await
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    stored(client, table).await
}

pub async fn native_rows(client: &Client, table: &str, way: &Client) -> Outcome {
    create(client, table, NATIVE_COLUMNS).await?;
    let mut insert = way.insert_native(table);
    insert.write(&native_block()?).await?;
    insert.end().await?;
    let rows: Vec<Native> = client.query(&format!("SELECT ?fields FROM {table} ORDER BY id")).fetch_all().await?;
    equal(rows, all().into_iter().map(native).collect())
}

pub async fn formatted(client: &Client, table: &str, format: &str, text: &str) -> Outcome {
    create(client, table, "(id UInt64, s String)").await?;
    let mut insert = client.insert_formatted_with(format!("INSERT INTO {table} FORMAT {format}"));
    insert.send(text.to_owned().into()).await?;
    insert.end().await?;
    let row = client.query(&format!("SELECT id, s FROM {table}")).fetch_one::<(u64, String)>().await?;
    equal(row, (7, "x".to_owned()))
}

pub async fn statement(client: &Client, table: &str) -> Outcome {
    create(client, table, "(id UInt64, s String)").await?;
    client.query(&format!("INSERT INTO {table} VALUES (?, ?)")).bind(7).bind("it's").execute().await?;
    let row = client.query(&format!("SELECT id, s FROM {table}")).fetch_one::<(u64, String)>().await?;
    equal(row, (7, "it's".to_owned()))
}

pub async fn bad_row(client: &Client, table: &str) -> Outcome {
    create(client, table, "(id UInt64, s String)").await?;
    let mut insert = client.insert_formatted_with(format!("INSERT INTO {table} FORMAT JSONEachRow"));
    insert.send("{\"id\":\"x\"}".into()).await?;
    refused(insert.end().await, 27)?;
    equal(count(client, table).await?, 0)
}

pub async fn constraint(client: &Client, table: &str) -> Outcome {
    let columns = COLUMNS.replace("flag Bool", "flag Bool, CONSTRAINT few CHECK id < 5");
    create(client, table, &columns).await?;
    let mut insert = client.insert::<Small>(table).await?;
    insert.write(&small(7)).await?;
    refused(insert.end().await, 469)?;
    equal(count(client, table).await?, 0)
}

pub async fn unknown_column(client: &Client, table: &str) -> Outcome {
    match client.insert::<Stranger>(table).await {
        Err(Error::SchemaMismatch(_)) => Ok(()),
        Err(other) => Err(format!("another error: {other:?}").into()),
        Ok(mut insert) => {
            insert.write(&Stranger { id: 1, zork: 1 }).await?;
            Err("no error was returned".into())
        }
    }
}

pub async fn unknown_table(client: &Client) -> Outcome {
    refused(client.insert::<Small>("nowhere").await.map(drop), 60)
}

/// Checks that an insert was refused: the error is this variant, with ClickHouse's text.
fn refused(outcome: Result<(), Error>, code: u16) -> Outcome {
    match outcome {
        Err(Error::BadResponse(text)) if text.contains(&format!("Code: {code}. DB::Exception")) => Ok(()),
        Err(other) => Err(format!("another error: {other:?}").into()),
        Ok(()) => Err("no error was returned".into()),
    }
}
