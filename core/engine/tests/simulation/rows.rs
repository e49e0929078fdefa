//! The rows of simulated inserts. Each row shows its insert's number, and all rows follow from it, so that a
//! batch shows which inserts are in it and whether one is torn, doubled in part, or not as it was sent.

use std::sync::{Arc, LazyLock};

use super::scenario::TablePlan;
use crate::sink::{Destination, Form, ShardTable};
use windrow_clickhouse::Credentials;
use windrow_columns::{
    read_json_each_row, Block, ColumnSpec, DataType, DefaultKind, PassthroughRows, ReadPlan, ReadSettings, Rows,
};

static PLAN: LazyLock<ReadPlan> = LazyLock::new(|| {
    let column = ColumnSpec { name: "line".into(), data_type: DataType::String, default_kind: DefaultKind::None };
    ReadPlan::new(vec![column], ReadSettings::default())
});

/// Returns the rows of an insert, as texts.
fn lines(insert: u64) -> Vec<String> {
    let rows = 1 + insert % 3;
    let padding = "x".repeat((insert * 7 % 41) as usize + if insert % 29 == 7 { 900 } else { 0 });
    (0..rows).map(|row| format!("{insert} {row}/{rows} {padding}")).collect()
}

/// Returns an insert's rows, as a table of this form takes them.
pub(super) fn rows_of(insert: u64, form: &Form) -> Rows {
    let lines = lines(insert);
    match form {
        Form::Native { .. } => {
            let payload: String = lines.iter().map(|line| format!("{{\"line\":\"{line}\"}}\n")).collect();
            Rows::Parsed(read_json_each_row(payload.as_bytes(), &PLAN).expect("the payload is well formed").block)
        }
        Form::Text { .. } => {
            Rows::Passthrough(PassthroughRows::piece((lines.join("\n") + "\n").into_bytes(), lines.len()))
        }
    }
}

pub(super) fn payload_bytes(insert: u64) -> u64 {
    lines(insert).iter().map(|line| line.len() as u64).sum()
}

/// Returns the numbers of the inserts that a batch is made of, in its order. Fails where its rows are wrong,
/// with the reason.
pub(super) fn inserts_of(rows: &Rows) -> Result<Vec<u64>, String> {
    let found = match rows {
        Rows::Parsed(block) => strings_of(block),
        Rows::Blocks(blocks) => blocks.iter().flat_map(strings_of).collect(),
        Rows::Passthrough(passthrough) => {
            String::from_utf8_lossy(passthrough.text()).lines().map(ToOwned::to_owned).collect::<Vec<_>>()
        }
    };
    let mut rest = found.as_slice();
    let mut inserts = Vec::new();
    while let Some(line) = rest.first() {
        let number = line.split(' ').next().and_then(|number| number.parse().ok());
        let insert: u64 = number.ok_or_else(|| format!("a row that nobody sent: {line:?}"))?;
        let sent = lines(insert);
        rest = rest.strip_prefix(sent.as_slice()).ok_or_else(|| format!("insert {insert} is torn: {rest:?}"))?;
        inserts.push(insert);
    }
    Ok(inserts)
}

/// Returns the values of a block's one column.
fn strings_of(block: &Block) -> Vec<String> {
    if block.rows() == 0 {
        return Vec::new();
    }
    let native = block.encode_native(&[""], &[DataType::String]);
    // Numbers of columns and rows, the name, the type, and then each value, all led by its length.
    let mut rest = native.as_slice();
    varint(&mut rest);
    varint(&mut rest);
    text(&mut rest);
    text(&mut rest);
    (0..block.rows()).map(|_| text(&mut rest)).collect()
}

fn varint(from: &mut &[u8]) -> usize {
    let end = from.iter().position(|byte| byte & 0x80 == 0).expect("a block of ours is whole") + 1;
    let (bytes, rest) = from.split_at(end);
    *from = rest;
    bytes.iter().rev().fold(0, |number, byte| (number << 7) | usize::from(byte & 0x7f))
}

fn text(from: &mut &[u8]) -> String {
    let length = varint(from);
    let (bytes, rest) = from.split_at(length);
    *from = rest;
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the destination of inserts into a table, or of their parts for one shard of it. Rows of odd tables
/// are parsed, those of even ones stay text. Shard 0 is the table as a whole.
pub(super) fn destination_of(table: usize, plan: TablePlan, shard: u32) -> Destination {
    let of_shard = || ShardTable {
        number: shard,
        topology: 7,
        replicas: vec![format!("replica-of-shard-{shard}:8123")],
        database: "local".into(),
        table: format!("t{table}"),
    };
    Destination {
        database: "default".into(),
        table: format!("t{table}"),
        columns: vec!["line".into()],
        form: match table % 2 {
            0 => Form::Text { format: "JSONEachRow", header: Vec::new() },
            _ => Form::Native { types: vec![DataType::String] },
        },
        credentials: Credentials { user: "joe".into(), password: "secret".into() },
        roles: Vec::new(),
        quota_key: String::new(),
        shard: (shard > 0).then(|| Arc::new(of_shard())),
        settings: Vec::new(),
        deduplicates: plan.deduplicates,
        has_views: false,
        hands_on: false,
        is_replicated: false,
        partitioning: None,
        own_account: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: TablePlan = TablePlan { deduplicates: true, is_sharded: false };

    #[test]
    fn a_batch_tells_its_inserts_and_a_torn_one_shows() {
        for table in [0, 1] {
            let form = destination_of(table, PLAN, 0).form;
            let mut rows = rows_of(4, &form);
            for insert in [2, 5, 7] {
                rows.append(&rows_of(insert, &form));
            }
            assert_eq!(inserts_of(&rows), Ok(vec![4, 2, 5, 7]));
            let (mut torn, count) = (rows_of(4, &form), rows_of(5, &form).count());
            torn.append_range(&rows_of(5, &form), 0..count);
            assert_eq!(inserts_of(&torn), Ok(vec![4, 5]));
        }
        let mut lone = Block::empty([&DataType::String]);
        let Rows::Parsed(whole) = rows_of(2, &destination_of(1, PLAN, 0).form) else { unreachable!() };
        lone.append_range(&whole, 1..whole.rows());
        assert!(inserts_of(&Rows::Parsed(lone)).is_err());
    }
}
