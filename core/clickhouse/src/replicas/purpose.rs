//! The purpose of a connection, and the choice of a replica for it.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::ReplicaId;

/// The rule that chooses a replica among those that are up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// The first of the list.
    InOrder,
    /// The replica with the fastest pings.
    Nearest,
    /// Each replica in its turn.
    RoundRobin,
    /// The replica with the fewest requests of ours.
    LeastLoaded,
}

/// The purpose of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A query of our own. It goes to the first replica of the list that is up, whatever the choice for
    /// others is: answers should agree with each other.
    Question,
    /// A client's statement.
    Statement,
    /// A statement that is better run where others of its kind ran. Like a query of our own, it goes to the
    /// first replica.
    InOrder,
    /// A client's statement in a session that this replica has.
    InSession(ReplicaId),
    /// Rows for a table, which is named by a hash of its name.
    Insert { table: u64 },
    /// A client's own insert. Replicas are tried in order, since the table may exist on the first replica alone.
    Forwarded { table: u64 },
    /// A query whether rows for a table would be accepted. It changes nothing, and may be sent twice.
    Probe { table: u64 },
    /// A task that only this replica can do.
    Only(ReplicaId),
    /// A task that only the first replica can do: tables that are not replicated are there. It is the same
    /// replica until the gateway ends.
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

    /// Says whether the request changes nothing, so that it may be sent to another replica if no answer came.
    pub(crate) fn may_be_repeated(self) -> bool {
        matches!(self, Purpose::Question | Purpose::Probe { .. })
    }

    /// Says whether the user's choice decides to which replica the request goes.
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
