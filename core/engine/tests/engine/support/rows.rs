//! Rows that can be told apart, and that show when they were torn: a text of varying length beside the row's
//! number.

use std::sync::{Arc, LazyLock};

use windrow_clickhouse::Credentials;
use windrow_columns::{
    read_json_each_row, Block, ColumnSpec, DataType, DefaultKind, PassthroughRows, ReadPlan, ReadSettings, Rows,
};
use windrow_engine::sink::{Again, Batch, BatchId, Destination, Form};

static PLAN: LazyLock<ReadPlan> = LazyLock::new(|| {
    let column = |name: &str, data_type| ColumnSpec { name: name.into(), data_type, default_kind: DefaultKind::None };
    let columns = vec![column("note", DataType::String), column("id", DataType::UInt64)];
    ReadPlan::new(columns, ReadSettings::default())
});

/// The role whose rows pass through.
pub const PASSTHROUGH: &str = "passthrough";

fn payload_of(ids: &[u64]) -> Vec<u8> {
    let payload: String = ids.iter().map(|&id| format!("{{\"note\":\"{}\",\"id\":{id}}}\n", note(id))).collect();
    payload.into_bytes()
}

fn note(id: u64) -> String {
    "n".repeat((id % 11) as usize) + &id.to_string()
}

fn block_of(payload: &[u8]) -> Block {
    read_json_each_row(payload, &PLAN).expect("the payload is well formed").block
}

/// Returns rows with these numbers, in the form that the destination takes.
pub fn rows_for(destination: &Destination, ids: &[u64]) -> Rows {
    match destination.form {
        Form::Native { .. } => Rows::Parsed(block_of(&payload_of(ids))),
        Form::Text { .. } => Rows::Passthrough(PassthroughRows::piece(payload_of(ids), ids.len())),
    }
}

/// Returns the numbers of a batch's rows.
///
/// # Panics
/// If a row isn't as it was sent.
pub fn rows_of(batch: &Batch) -> Vec<u64> {
    let block = match &batch.rows {
        Rows::Passthrough(rows) => block_of(rows.text()),
        rows => rows.to_block().expect("they are parsed").into_owned(),
    };
    assert_eq!(block.rows(), batch.rows.count(), "rows were lost or doubled");
    // The numbers are the last column, and its values are the last of its bytes.
    let native = block.encode_native(&["note", "id"], &[DataType::String, DataType::UInt64]);
    let numbers = &native[native.len() - 8 * block.rows()..];
    let ids: Vec<u64> = numbers.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap())).collect();
    let as_sent = match &batch.rows {
        Rows::Passthrough(rows) => rows.text() == payload_of(&ids),
        Rows::Parsed(_) | Rows::Blocks(_) => block == block_of(&payload_of(&ids)),
    };
    assert!(as_sent, "rows were torn: {ids:?}");
    ids
}

/// Returns the numbers of rows of this destination.
pub fn numbers_of(destination: Arc<Destination>, rows: Rows) -> Vec<u64> {
    rows_of(&Batch { id: BatchId(0), destination, rows, again: Again::Never, traceparent: None })
}

/// Returns a destination of its own for each `role`: the shapes of a table.
pub fn shape_of(table: &str, role: &str) -> Destination {
    Destination {
        database: "default".into(),
        table: table.into(),
        columns: PLAN.columns().iter().map(|column| column.name.clone()).collect(),
        form: match role {
            PASSTHROUGH => Form::Text { format: "JSONEachRow", header: Vec::new() },
            _ => Form::Native { types: PLAN.columns().iter().map(|column| column.data_type.clone()).collect() },
        },
        credentials: Credentials { user: "joe".into(), password: String::new() },
        own_account: false,
        roles: vec![role.into()],
        quota_key: String::new(),
        shard: None,
        settings: Vec::new(),
        deduplicates: false,
        is_replicated: false,
        has_views: false,
        hands_on: false,
        partitioning: None,
    }
}
