//! The shard on which ClickHouse's engine Distributed would store each row.
//!
//! A row on another shard than ClickHouse's own is found by no query that relies on the sharding key, and a
//! repeat of it is not recognised there. So a key is understood exactly or not at all: the functions, types
//! and constants that are understood were compared with a real ClickHouse. No shard is named for any other
//! key, nor for rows that ClickHouse would refuse.
//!
//! The rule (`createBlockSelector` in ClickHouse): the key's value, if it is a whole number of up to 64 bits,
//! is taken as an unsigned one, of 64 bits if it has 64, else of 32. Its remainder by the sum of all weights
//! says the shard: the first one has as many remainders as its weight, the next one those that follow.
//!
//! Not understood, though ClickHouse takes it: keys of constants alone, whose sign it handles otherwise;
//! values that can be NULL, whose hash inside a tuple depends on ClickHouse's version; divisors that are no
//! small positive constants.

mod arithmetic;
mod cut;
mod evaluate;
mod hash;
mod integer;
mod key;
mod values;

pub use cut::cut_by_shard;

use crate::block::Block;
use crate::types::DataType;
use evaluate::Input;
use key::Node;

/// A sharding key: the last argument of a table's `Distributed(cluster, database, table, key)`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ShardingKey {
    /// The key as it was given, so that it can be written down.
    expression: String,
    kind: Kind,
    /// The zone of moments whose column names no time zone. ClickHouse takes the server's, whatever
    /// `session_timezone` is.
    server_timezone: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Random,
    Of(Node),
}

impl ShardingKey {
    /// Reads a key as `engine_full` of `system.tables` shows it. `None` where the key isn't understood.
    pub fn parse(expression: &str, server_timezone: &str) -> Option<ShardingKey> {
        Some(ShardingKey {
            expression: expression.to_owned(),
            kind: key::parse(expression)?,
            server_timezone: server_timezone.to_owned(),
        })
    }

    /// Returns the text that [`ShardingKey::parse`] read the key from.
    pub fn expression(&self) -> &str {
        &self.expression
    }

    pub fn server_timezone(&self) -> &str {
        &self.server_timezone
    }

    /// Returns the columns that the key needs; a column that occurs twice is named twice.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        let mut names = Vec::new();
        if let Kind::Of(node) = &self.kind {
            node.note_columns(&mut names);
        }
        names.into_iter()
    }

    /// Says whether any shard is right for any row, as long as each gets its share.
    pub fn is_random(&self) -> bool {
        self.kind == Kind::Random
    }

    /// Returns for every row the position of its shard. `weights` are those of all shards, by their number.
    /// If the key is random, all rows go to the shard that `draw` hits, a number of which every one is
    /// equally likely.
    ///
    /// `None` where it isn't sure what ClickHouse would do: a column isn't in the block (ClickHouse takes its
    /// default), or has a type for which the key isn't understood. `names` and `types` are those of the
    /// block's columns, in order; the types are the Distributed table's, which may be others than those of
    /// its shards.
    pub fn shards_of_rows<N: AsRef<str>>(
        &self,
        names: &[N],
        types: &[DataType],
        block: &Block,
        weights: &[u32],
        draw: u64,
    ) -> Option<Vec<u32>> {
        let shares = Shares::of(weights)?;
        match &self.kind {
            Kind::Random => Some(vec![shares.shard(draw % shares.total); block.rows()]),
            Kind::Of(node) => {
                let input = Input { names, types, block, server_timezone: &self.server_timezone };
                let (integer, mut numbers) = input.evaluate(node)?.into_numbers()?;
                for number in &mut numbers {
                    let unsigned = if integer.bytes <= 4 { *number & u64::from(u32::MAX) } else { *number };
                    *number = unsigned % shares.total;
                }
                (numbers.len() == block.rows()).then_some(())?;
                Some(numbers.into_iter().map(|remainder| shares.shard(remainder)).collect())
            }
        }
    }
}

/// The shares of the remainders that belong to each shard.
struct Shares {
    /// The end of each shard's remainders: the first remainder that isn't its own any more.
    ends: Vec<u64>,
    total: u64,
}

impl Shares {
    /// Returns the shares of shards with these weights. `None` where no shard takes rows, or the weights are
    /// more than ClickHouse reckons with for a key of 32 bits.
    fn of(weights: &[u32]) -> Option<Shares> {
        let mut total = 0;
        let ends = weights.iter().map(|weight| {
            total += u64::from(*weight);
            total
        });
        let ends = ends.collect();
        (0 < total && total <= u32::MAX.into()).then_some(Shares { ends, total })
    }

    fn shard(&self, remainder: u64) -> u32 {
        self.ends.partition_point(|end| *end <= remainder) as u32
    }
}
