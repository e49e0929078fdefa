//! Rows that can be told apart, and that show when they were torn: a text of varying length beside the row's number.

use std::sync::LazyLock;

use windrow_block::{read_json_each_row, Block, ColumnSpec, DataType, DefaultKind, ReadPlan, ReadSettings};
use windrow_client::Credentials;
use windrow_sink::{Batch, Destination};

static PLAN: LazyLock<ReadPlan> = LazyLock::new(|| {
    let column = |name: &str, data_type| ColumnSpec { name: name.into(), data_type, default_kind: DefaultKind::None };
    let columns = vec![column("note", DataType::String), column("id", DataType::UInt64)];
    ReadPlan::new(columns, ReadSettings::default())
});

pub fn block_of(ids: &[u64]) -> Block {
    let payload: String = ids.iter().map(|&id| format!("{{\"note\":\"{}\",\"id\":{id}}}\n", note(id))).collect();
    read_json_each_row(payload.as_bytes(), &PLAN).expect("the payload is well formed").block
}

fn note(id: u64) -> String {
    "n".repeat((id % 11) as usize) + &id.to_string()
}

/// The numbers of a batch's rows.
///
/// # Panics
/// If a row isn't as it was sent.
pub fn rows_of(batch: &Batch) -> Vec<u64> {
    let native = batch.block.encode_native(&batch.destination.columns, &batch.destination.types);
    // The numbers are the last column, and its values are the last of its bytes.
    let numbers = &native[native.len() - 8 * batch.block.rows()..];
    let ids: Vec<u64> = numbers.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap())).collect();
    assert_eq!(batch.block, block_of(&ids), "rows were torn");
    ids
}

/// A destination of its own for each `role`: the shapes of a table.
pub fn shape_of(table: &str, role: &str) -> Destination {
    Destination {
        database: "default".into(),
        table: table.into(),
        columns: PLAN.columns().iter().map(|column| column.name.clone()).collect(),
        types: PLAN.columns().iter().map(|column| column.data_type.clone()).collect(),
        credentials: Credentials { user: "joe".into(), password: String::new() },
        roles: vec![role.into()],
        quota_key: String::new(),
        settings: Vec::new(),
        deduplicates: false,
        has_views: false,
        hands_on: false,
    }
}
