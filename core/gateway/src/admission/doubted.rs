//! Tables to which something was done through Windrow. An earlier answer about such a table says nothing of
//! it any more, while answers about other tables still hold.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use windrow_sql::TableName;

use super::standing::Moment;
use super::TableKey;

/// Bound of the doubted tables. If something is done to more of them at a time, all tables are doubted.
const MOST: usize = 10_000;

#[derive(Default)]
pub(super) struct DoubtedTables {
    /// Moment of the last doubt of each table. A name without a database may be of any.
    at: RwLock<HashMap<TableName, Moment>>,
    /// Moment of the last doubt of any table, in microseconds.
    last: AtomicU64,
}

pub(super) struct TooMany;

impl DoubtedTables {
    /// Notes that something was done to these tables. If there are many, doubts older than `ttl` are
    /// forgotten: answers from before them are not believed anyway. Fails where too many are left.
    pub(super) fn doubt(
        &self,
        names: impl Iterator<Item = TableName>,
        now: Moment,
        ttl: Duration,
    ) -> Result<(), TooMany> {
        let mut at = self.at.write().unwrap_or_else(PoisonError::into_inner);
        at.extend(names.map(|name| (name, now)));
        self.last.fetch_max(now.as_micros(), Ordering::AcqRel);
        if at.len() > MOST {
            let begin = now.before(ttl);
            at.retain(|_, at| *at >= begin);
        }
        if at.len() > MOST {
            at.clear();
            return Err(TooMany);
        }
        Ok(())
    }

    pub(super) fn last(&self) -> Moment {
        Moment::of_micros(self.last.load(Ordering::Acquire))
    }

    /// Returns the moment at which something was last done to this table, if anything was done to any table
    /// after `answered`; else zero.
    pub(super) fn at(&self, key: &TableKey, answered: Moment) -> Moment {
        // Mostly nothing was done to any.
        if self.last() <= answered {
            return Moment::default();
        }
        let at = self.at.read().unwrap_or_else(PoisonError::into_inner);
        let in_any = TableName { database: None, table: key.table.clone() };
        let names = [name_of(key.clone()), in_any];
        names.iter().filter_map(|name| at.get(name)).max().copied().unwrap_or_default()
    }
}

pub(super) fn name_of(key: TableKey) -> TableName {
    TableName { database: Some(key.database), table: key.table }
}

/// Says whether the name may be this table's.
pub(super) fn is_named(key: &TableKey, name: &TableName) -> bool {
    key.table == name.table && name.database.as_ref().is_none_or(|database| *database == key.database)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(database: &str, table: &str) -> TableKey {
        TableKey { database: database.into(), table: table.into() }
    }

    #[test]
    fn only_the_named_tables_are_doubted() {
        let tables = DoubtedTables::default();
        let at = Moment::of_micros(100);
        let doubt = |name: TableName, micros: u64| {
            let names = std::iter::once(name);
            assert!(tables.doubt(names, Moment::of_micros(micros), Duration::from_secs(5)).is_ok());
        };
        let before = Moment::of_micros(99);
        assert_eq!(tables.at(&key("d", "t"), before), Moment::default());
        doubt(name_of(key("d", "t")), 100);
        assert_eq!(tables.at(&key("d", "t"), before), at);
        assert_eq!(tables.at(&key("d", "t"), at), Moment::default(), "it was answered behind it");
        assert_eq!(tables.at(&key("e", "t"), before), Moment::default());
        assert_eq!(tables.at(&key("d", "u"), before), Moment::default());
        doubt(TableName { database: None, table: "u".into() }, 200);
        assert_eq!(tables.at(&key("any", "u"), at), Moment::of_micros(200));
        assert_eq!(tables.at(&key("d", "t"), before), at, "the first is not forgotten");
        assert_eq!(tables.last(), Moment::of_micros(200));
    }

    #[test]
    fn more_than_anybody_remembers_are_all() {
        let tables = DoubtedTables::default();
        let names = |count: usize| (0..count).map(|number| name_of(key("d", &number.to_string())));
        let now = Moment::of_micros(10_000_000);
        assert!(tables.doubt(names(MOST), Moment::of_micros(1), Duration::from_secs(1)).is_ok());
        assert!(tables.doubt(std::iter::once(name_of(key("e", "t"))), now, Duration::from_secs(1)).is_ok());
        assert_eq!(tables.at(&key("d", "0"), Moment::default()), Moment::default(), "it is too old to matter");
        assert!(tables.doubt(names(MOST), now, Duration::from_secs(1)).is_err());
    }
}
