//! Deduplication keys of inserts, by which a repeat is recognised: of its token, or of its rows.
//!
//! Rows are recognised by a hash of their columns as they were read, so the same rows in another format are
//! the same insert. Their order counts, as in ClickHouse, and so do the columns that are given.

use windrow_columns::{PartitionKey, Rows};
use windrow_compression::cityhash128;
use windrow_engine::{
    sink::{Destination, Form},
    table_by_name, DedupKeys, DeduplicationBounds,
};

use crate::admission::{TableKey, TableSchema, Window};

/// Rules by which the inserts of a statement are told apart.
#[derive(Debug, Clone)]
pub(crate) struct DedupPlan {
    table: u128,
    bounds: DeduplicationBounds,
    partition_key: Option<PartitionKey>,
    is_partitioned: bool,
}

impl DedupPlan {
    /// Makes the plan. `window` is that of the tables that get the rows. `shards` is the number of parts that
    /// an insert may be stored in, each of which is known by itself.
    pub(crate) fn new(
        key: &TableKey,
        schema: &TableSchema,
        window: Window,
        server_timezone: &str,
        shards: u64,
    ) -> DedupPlan {
        let mut bounds = match window {
            Window::Owners(bounds) => DeduplicationBounds {
                entries: bounds.blocks,
                age_micros: bounds.age.map(|age| u64::try_from(age.as_micros()).unwrap_or(u64::MAX)),
            },
            Window::Windrows | Window::None | Window::Never => DeduplicationBounds::DEFAULT,
        };
        bounds.entries = bounds.entries.saturating_mul(shards);
        DedupPlan {
            table: identity(key, schema),
            bounds,
            partition_key: schema.partition_key(server_timezone),
            is_partitioned: schema.is_partitioned(),
        }
    }

    /// Says whether an insert's partitions can be told here. Where they can't, ClickHouse has to deduplicate.
    pub(crate) fn tells_partitions(&self) -> bool {
        !self.is_partitioned || self.partition_key.is_some()
    }

    /// Says whether texts that are not read here can be told apart by their token.
    pub(crate) fn takes_texts(&self) -> bool {
        !self.is_partitioned
    }

    /// Makes the keys of an insert. `None`: the insert can't be told apart from others here.
    pub(crate) fn keys(&self, token: Option<&str>, destination: &Destination, rows: &Rows) -> Option<DedupKeys> {
        let key = match (token, rows, &destination.form) {
            (Some(token), ..) => token_key(token),
            (None, Rows::Parsed(block), Form::Native { types }) => {
                hash(b"rows\0", &block.encode_native(&destination.columns, types))
            }
            (None, ..) => return None,
        };
        Some(DedupKeys::new(self.table, key, self.partitions_of(destination, rows)?, self.bounds))
    }

    /// Returns the partitions of some rows of an insert that has keys.
    pub(crate) fn partitions_of(&self, destination: &Destination, rows: &Rows) -> Option<Vec<u64>> {
        if self.is_partitioned {
            self.partitions(destination, rows)
        } else {
            Some(Vec::new())
        }
    }

    fn partitions(&self, destination: &Destination, rows: &Rows) -> Option<Vec<u64>> {
        let (Rows::Parsed(block), Form::Native { types }) = (rows, &destination.form) else { return None };
        let mut partitions = self.partition_key.as_ref()?.of_rows(&destination.columns, types, block)?;
        partitions.sort_unstable();
        partitions.dedup();
        Some(partitions)
    }

    /// Makes the keys of an insert by its token alone: only ClickHouse has read the rows, or nobody yet.
    pub(crate) fn keys_of_whole(&self, token: &str) -> DedupKeys {
        DedupKeys::new(self.table, token_key(token), Vec::new(), self.bounds)
    }
}

/// Returns the id that the deduplication index knows a table by: one of its name where each replica may have
/// given it another UUID, and where its rows may be cut by shards, or have been.
fn identity(key: &TableKey, schema: &TableSchema) -> u128 {
    match schema.uuid {
        _ if schema.is_replicated || schema.distributed.is_some() => table_by_name(&key.database, &key.table),
        0 => table_by_name(&key.database, &key.table),
        uuid => uuid,
    }
}

/// Returns all ids that the deduplication index may know a table by.
pub(crate) fn identities(key: &TableKey, schema: Option<&TableSchema>) -> Vec<u128> {
    let uuid = schema.map(|schema| schema.uuid).filter(|&uuid| uuid != 0);
    uuid.into_iter().chain([table_by_name(&key.database, &key.table)]).collect()
}

fn token_key(token: &str) -> u128 {
    hash(b"token\0", token.as_bytes())
}

fn hash(kind: &[u8], bytes: &[u8]) -> u128 {
    u128::from_le_bytes(cityhash128(&[kind, bytes].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_no_row() {
        assert_ne!(hash(b"token\0", b"x"), hash(b"rows\0", b"x"));
        assert_eq!(token_key("x"), token_key("x"));
        assert_ne!(token_key("x"), token_key("y"));
    }
}
