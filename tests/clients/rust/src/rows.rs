//! The table that every way of inserting fills, and its rows.

use clickhouse::native::builder::BlockBuilder;
use clickhouse::native::Block;
use clickhouse::Row;
use serde::{Deserialize, Serialize};
use std::error::Error;

pub const COLUMNS: &str =
    "(id UInt64, s String, maybe Nullable(Int32), kind LowCardinality(String), price Decimal(18, 4), \
     at DateTime64(3, 'UTC'), tags Array(String), counts Map(String, UInt64), pair Tuple(UInt8, String), flag Bool)";
// What the client's Native writer has types for.
pub const NATIVE_COLUMNS: &str =
    "(id UInt64, s String, maybe Nullable(Int32), kind LowCardinality(String), tags Array(String))";
pub const ROWS: u64 = 10;

#[derive(Row, Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct Small {
    pub id: u64,
    pub s: String,
    pub maybe: Option<i32>,
    pub kind: String,
    // Ten thousandths.
    pub price: i64,
    // Milliseconds.
    pub at: i64,
    pub tags: Vec<String>,
    pub counts: Vec<(String, u64)>,
    pub pair: (u8, String),
    pub flag: bool,
}

#[derive(Row, Deserialize, Debug, PartialEq)]
pub struct Native {
    pub id: u64,
    pub s: String,
    pub maybe: Option<i32>,
    pub kind: String,
    pub tags: Vec<String>,
}

// Names a column that the table doesn't have.
#[derive(Row, Serialize)]
pub struct Stranger {
    pub id: u64,
    pub zork: u8,
}

pub fn small(number: u64) -> Small {
    Small {
        id: number,
        s: format!("text {number} ‘quoted’ \\ \t \", it's\n"),
        maybe: (number % 2 == 0).then_some(-7),
        kind: format!("kind {}", number % 3),
        price: 10_000 * number as i64 + 1234,
        at: 1_709_210_096_789,
        tags: (0..number % 4).map(|tag| format!("tag {tag}")).collect(),
        counts: vec![("a".to_owned(), number), ("b".to_owned(), 2 * number)],
        pair: (number as u8, format!("p{number}")),
        flag: number % 2 == 0,
    }
}

pub fn all() -> Vec<Small> {
    (0..ROWS).map(small).collect()
}

pub fn native(row: Small) -> Native {
    Native { id: row.id, s: row.s, maybe: row.maybe, kind: row.kind, tags: row.tags }
}

pub fn native_block() -> Result<Block, Box<dyn Error + Send + Sync>> {
    let rows = all();
    let mut block = BlockBuilder::new();
    block.upsert_column::<u64>("id")?.add_all(rows.iter().map(|row| row.id))?;
    block.upsert_column::<String>("s")?.add_all(rows.iter().map(|row| row.s.clone()))?;
    block.upsert_column::<Option<i32>>("maybe")?.add_all(rows.iter().map(|row| row.maybe))?;
    block.upsert_column::<String>("kind")?.add_all(rows.iter().map(|row| row.kind.clone()))?;
    block.upsert_column::<Vec<String>>("tags")?.add_all(rows.iter().map(|row| row.tags.clone()))?;
    Ok(block.build()?)
}
