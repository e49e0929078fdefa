use std::fmt;
use std::sync::Arc;

use windrow_clickhouse::Credentials;
use windrow_columns::{DataType, PartitionKey, Rows};

/// The name of a batch for ever: retries, also after a restart, carry the same one. It is a random UUID, or
/// derived from one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct BatchId(pub u128);

impl BatchId {
    /// Derives the id of something that follows from this batch, such as a part of it, and that is told apart
    /// by `what`. The id is the same whenever it is asked for.
    ///
    /// The hash is FNV-1a over the id and these bytes, with the marks of a UUID of version 8: no generator's
    /// state and no library's version changes it.
    pub fn derived(self, what: impl IntoIterator<Item = u8>) -> BatchId {
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013B;
        const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
        let bytes = self.0.to_le_bytes().into_iter().chain(what);
        let hash = bytes.fold(BASIS, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME));
        BatchId(hash & !(0xf << 76) & !(0x3 << 62) | (8 << 76) | (2 << 62))
    }

    /// Writes the id as a UUID. This is done by hand, since every insert's answer carries an id.
    pub fn text(self) -> [u8; 36] {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        const DASHES: [usize; 4] = [8, 13, 18, 23];
        let mut text = [b'-'; 36];
        let digits = (0..32).rev().map(|digit| HEX[(self.0 >> (4 * digit)) as usize & 15]);
        let places = (0..36).filter(|place| !DASHES.contains(place));
        places.zip(digits).for_each(|(place, digit)| text[place] = digit);
        text
    }
}

impl fmt::Display for BatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.text()).unwrap_or_default())
    }
}

impl fmt::Debug for BatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A table with the database it is in.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableKey {
    pub database: String,
    pub table: String,
}

/// The table that a batch is written to, and the account: all that inserts must have in common to share a
/// batch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Destination {
    pub database: String,
    pub table: String,
    /// Names of the columns that the rows carry, in their order.
    pub columns: Vec<String>,
    pub form: Form,
    /// Credentials of the sender, with whose own rights batches are written.
    pub credentials: Credentials,
    /// The sender's password can't be had any more, since no password outlives the process. Then batches are
    /// written with the gateway's own account, and without the sender's roles and quota key.
    pub own_account: bool,
    pub roles: Vec<String>,
    pub quota_key: String,
    /// Settings that change what is written, sorted by name.
    pub settings: Vec<(String, String)>,
    /// The table keeps a window of the batches it has stored, so that a repeat under the same id is harmless.
    pub deduplicates: bool,
    /// Each of several replicas can take the table's rows: they share what they store, and with it the
    /// window. If false, the rows are of one server alone.
    pub is_replicated: bool,
    /// Views hang on the table: then an error may come after the table itself has the rows.
    pub has_views: bool,
    /// The table hands its rows on to other tables, of which some may have them when another refuses.
    pub hands_on: bool,
    /// Partitions of the table, if it has a partition key.
    pub partitioning: Option<Partitioning>,
    /// The shard of these rows, if the table is Distributed and its rows were cut by shards.
    pub shard: Option<Arc<ShardTable>>,
}

impl Destination {
    pub(crate) fn physical_table(&self) -> PhysicalTable {
        let name = TableKey { database: self.database.clone(), table: self.table.clone() };
        PhysicalTable { name, shard: self.shard.as_ref().map_or(0, |shard| shard.number) }
    }
}

/// A table of one shard, which stores rows of a Distributed table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ShardTable {
    /// Number of the shard, from 1 on, when the rows were cut.
    pub number: u32,
    /// Hash of the topology at that time.
    pub topology: u64,
    /// Addresses of the shard's replicas at that time.
    pub replicas: Vec<String>,
    pub database: String,
    pub table: String,
}

/// The unit that has a flush policy and a backlog of its own: a table, or one shard of a Distributed one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PhysicalTable {
    pub(crate) name: TableKey,
    /// Number of the shard, from 1 on; 0 for the table as a whole.
    pub(crate) shard: u32,
}

/// The rules for a table's partitions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Partitioning {
    /// The expression that spreads rows over partitions, where that is understood.
    pub key: Option<PartitionKey>,
    /// Number of partitions that one INSERT may write to, where that is bounded.
    pub max_per_insert: Option<u64>,
}

/// The form in which the rows of a destination are written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Form {
    /// Columns of these types.
    Native { types: Vec<DataType> },
    /// The text that the senders wrote.
    Text {
        /// ClickHouse's name of the format.
        format: &'static str,
        /// Bytes that stand once before all rows: the names of the columns, where the format has them.
        header: Vec<u8>,
    },
}

/// The form in which a batch's rows can be brought again, for the table as it is then, by somebody who hears
/// what becomes of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// The rows are acknowledged, and exist nowhere else.
    Never,
    /// The rows were read from text, which can be read again.
    Text,
    /// Some rows came as values of the types that their table had.
    Values,
}

/// A batch as a sink receives it.
#[derive(Debug)]
pub struct Batch {
    pub id: BatchId,
    pub destination: Arc<Destination>,
    pub rows: Rows,
    pub again: Again,
    /// The span that the spans of the sink's system belong to, if that traces what it does.
    pub traceparent: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_written_as_uuids() {
        let id = BatchId(0x0123_4567_89ab_4def_8123_4567_89ab_cdef);
        assert_eq!(id.to_string(), "01234567-89ab-4def-8123-456789abcdef");
    }

    /// Ids stand in logs and in databases: whoever repeats a part of a batch has to come to the same id.
    #[test]
    fn derived_ids_never_change() {
        let id = BatchId(0x0123_4567_89ab_4def_8123_4567_89ab_cdef);
        assert_eq!(id.derived([1, 2, 3]).to_string(), "ce2117e7-a35f-8309-85ba-2a153a20057b");
        assert_ne!(id.derived([1, 2]), id.derived([1, 2, 0]));
    }
}
