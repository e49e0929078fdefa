//! What a connection is wanted for, and which of the replicas is chosen then.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::ReplicaId;

/// Which replica is asked, of those that are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// The first in the list.
    InOrder,
    /// The one whose pings are fastest.
    Nearest,
    /// Each in its turn.
    RoundRobin,
    /// The one that has the fewest requests of ours.
    LeastLoaded,
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// One's own question. It goes to the first in the list that is there, whatever is chosen for others: answers
    /// should agree with each other.
    Question,
    /// A client's statement.
    Statement,
    /// What is better done where others of its kind were: like a question, to the first.
    InOrder,
    /// A client's statement in a session that this replica has.
    InSession(ReplicaId),
    /// Rows for a table, by a hash of its name.
    Insert { table: u64 },
    /// A client's own insert. In order, since the table may be one of the first replica alone.
    Forwarded { table: u64 },
    /// Whether rows for a table would be taken. It does nothing, and may be asked twice.
    Probe { table: u64 },
    /// What only this replica can do.
    Only(ReplicaId),
    /// What only the first can do: tables that are not replicated are there. It is the same one until the gateway ends.
    First,
}

impl Purpose {
    pub fn insert_into(database: &str, table: &str) -> Purpose {
        Purpose::Insert { table: hash_of(database, table) }
    }

    pub fn forwarded_into(database: &str, table: &str) -> Purpose {
        Purpose::Forwarded { table: hash_of(database, table) }
    }

    pub fn probe_of(database: &str, table: &str) -> Purpose {
        Purpose::Probe { table: hash_of(database, table) }
    }

    /// Whether it does nothing, so that whoever has got no answer may ask another replica.
    pub(crate) fn may_be_repeated(self) -> bool {
        matches!(self, Purpose::Question | Purpose::Probe { .. })
    }

    /// Whether the user's choice decides where it goes.
    pub(super) fn is_of_choice(self) -> bool {
        matches!(self, Purpose::Statement | Purpose::Insert { .. })
    }

    pub(super) fn table(self) -> Option<u64> {
        match self {
            Purpose::Insert { table } | Purpose::Forwarded { table } | Purpose::Probe { table } => Some(table),
            _ => None,
        }
    }
}

fn hash_of(database: &str, table: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (database, table).hash(&mut hasher);
    hasher.finish()
}
