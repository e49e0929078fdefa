//! Batches that may go into several partitions, and the setting that makes their INSERT all or nothing.
//!
//! MergeTree writes a part for each partition of a block. By itself it keeps each part when the next but one
//! is begun, so that an error in the last leaves the others stored. If it is asked to, it writes all parts
//! before it keeps the first. That costs some 3 MiB of its memory for each partition (more for parts that are
//! wide), so it is asked only where there may be several.

use crate::sink::batch::{Batch, Form};

/// Setting for how many files and streams may be open before the first part is kept: more than any batch can
/// need.
pub(crate) const PARTS_AT_ONCE: (&str, &str) = ("max_insert_delayed_streams_for_parallel_write", "100000");

/// Says whether the batch may go into several partitions. Returns true also where nobody can tell.
pub(crate) fn may_span_partitions(batch: &Batch) -> bool {
    let Some(partitioning) = &batch.destination.partitioning else { return false };
    if batch.rows.count() <= 1 {
        return false;
    }
    let (Some(key), Some(blocks), Form::Native { types }) =
        (&partitioning.key, batch.rows.blocks(), &batch.destination.form)
    else {
        return true;
    };
    let mut latest = None;
    blocks.iter().any(|block| {
        let keys = key.of_rows(&batch.destination.columns, types, block);
        keys.is_none_or(|keys| keys.into_iter().any(|key| latest.replace(key).is_some_and(|latest| latest != key)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use windrow_clickhouse::Credentials;
    use windrow_columns::{
        read_json_each_row, ColumnSpec, DataType, DefaultKind, PartitionKey, PassthroughRows, ReadPlan, ReadSettings,
        Rows,
    };

    use crate::sink::batch::{Again, BatchId, Destination, Partitioning};

    fn batch(rows: Rows, form: Form, partitioning: Option<Partitioning>) -> Batch {
        let destination = Destination {
            database: "d".into(),
            table: "t".into(),
            columns: vec!["a".into()],
            form,
            credentials: Credentials { user: "u".into(), password: "p".into() },
            own_account: false,
            roles: vec![],
            quota_key: String::new(),
            shard: None,
            settings: vec![],
            deduplicates: false,
            is_replicated: false,
            has_views: false,
            hands_on: false,
            partitioning,
        };
        Batch { id: BatchId(1), destination: Arc::new(destination), rows, again: Again::Text, traceparent: None }
    }

    fn partitioned_by(key: &str) -> Option<Partitioning> {
        Some(Partitioning { key: PartitionKey::parse(key, "UTC"), max_per_insert: None })
    }

    fn typed_spans(json: &str, partitioning: Option<Partitioning>) -> bool {
        let spec = ColumnSpec { name: "a".into(), data_type: DataType::UInt64, default_kind: DefaultKind::None };
        let plan = ReadPlan::new(vec![spec], ReadSettings::default());
        let block = read_json_each_row(json.as_bytes(), &plan).unwrap().block;
        may_span_partitions(&batch(Rows::Parsed(block), Form::Native { types: vec![DataType::UInt64] }, partitioning))
    }

    #[test]
    fn rows_of_one_partition_make_one_part() {
        let (near, far) = (r#"{"a":1}{"a":9}"#, r#"{"a":1}{"a":9}{"a":10}"#);
        assert!(!typed_spans(near, partitioned_by("intDiv(a, 10)")));
        assert!(typed_spans(far, partitioned_by("intDiv(a, 10)")));
        assert!(!typed_spans(far, None));
    }

    #[test]
    fn where_nobody_can_tell_there_may_be_several() {
        for key in ["cityHash64(a)", "missing"] {
            assert!(typed_spans(r#"{"a":1}{"a":1}"#, partitioned_by(key)), "{key}");
            assert!(!typed_spans(r#"{"a":1}"#, partitioned_by(key)), "{key}, of one row");
        }
        let text = || Form::Text { format: "CSV", header: vec![] };
        let rows = |count| Rows::Passthrough(PassthroughRows::piece(b"1\n".repeat(count), count));
        assert!(may_span_partitions(&batch(rows(2), text(), partitioned_by("a"))));
        assert!(!may_span_partitions(&batch(rows(1), text(), partitioned_by("a"))));
        assert!(!may_span_partitions(&batch(rows(2), text(), None)));
    }
}
