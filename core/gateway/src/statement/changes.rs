use windrow_sql::{OtherStatement, TableName};

use super::deduplication::RowRemoval;
use crate::cluster::{Change, Gone};
use crate::forward_reason::ForwardReason;
use crate::state::State;

/// Changes by a forwarded statement, as far as they concern gathering.
#[derive(Default)]
pub(crate) struct Changes {
    pub(crate) session: bool,
    pub(crate) learnt: Learnt,
    pub(crate) gone: Option<RowRemoval>,
}

/// The answers about tables and privileges that still hold after a statement.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Learnt {
    #[default]
    Holds,
    /// Answers about all other tables hold. A name without a database is that table in any database.
    ButOfTables(Vec<TableName>),
    OfNothing,
}

impl Learnt {
    /// Returns which answers still hold after a statement.
    fn behind(statement: &OtherStatement) -> Learnt {
        match statement.changes_only() {
            Some(names) => Learnt::ButOfTables(names.to_vec()),
            None if statement.is_ddl() || statement.changes_access() => Learnt::OfNothing,
            None => Learnt::Holds,
        }
    }
}

impl Changes {
    pub(crate) fn of(statement: Option<&OtherStatement>, reason: ForwardReason) -> Changes {
        match statement {
            Some(statement) => {
                Changes { session: statement.changes_session(), learnt: Learnt::behind(statement), gone: None }
            }
            // Not looked into: it could be anything. An insert that came here changes neither.
            None => {
                let could_be_anything = reason == ForwardReason::Unclear;
                let learnt = if could_be_anything { Learnt::OfNothing } else { Learnt::Holds };
                Changes { session: could_be_anything, learnt, gone: None }
            }
        }
    }

    /// Says whether the gateway must know if the statement was executed.
    pub(crate) fn any(&self) -> bool {
        self.learnt != Learnt::Holds || self.gone.is_some()
    }
}

impl State {
    /// Forgets answers that a statement has made wrong which the backend executed, and tells the other gateways.
    pub(crate) async fn have_changed(&self, changes: &Changes) {
        if !changes.any() {
            return;
        }
        let gone = match &changes.gone {
            None => Gone::default(),
            Some(RowRemoval::Of(tables)) => Gone::Of(tables.clone()),
            Some(RowRemoval::OfAnyTable) => Gone::OfAnyTable,
        };
        if let Learnt::ButOfTables(names) = &changes.learnt {
            self.admission.doubt_tables(names);
            self.prepared.has_changed();
        }
        let change = Change { learnt: changes.learnt == Learnt::OfNothing, gone };
        self.has_changed_somewhere(&change).await;
        // The others are not told which tables: they ask about all.
        let change = Change { learnt: changes.learnt != Learnt::Holds, ..change };
        if let Some(cluster) = &self.cluster {
            cluster.tell(&change).await;
        }
    }

    /// Forgets answers that a change has made wrong, which was made here or through another gateway.
    pub(crate) async fn has_changed_somewhere(&self, change: &Change) {
        if change.learnt {
            self.forget_what_was_learnt();
        }
        match &change.gone {
            Gone::Of(tables) if tables.is_empty() => {}
            Gone::Of(tables) => self.forget_rows(Some(&RowRemoval::Of(tables.clone()))).await,
            Gone::OfAnyTable => self.forget_rows(Some(&RowRemoval::OfAnyTable)).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use windrow_sql::{classify, Statement};

    use super::*;

    fn left_by(text: &str) -> Learnt {
        match classify(text.as_bytes()) {
            Statement::Other(statement) => Changes::of(Some(&statement), ForwardReason::OtherStatement).learnt,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn but_of(names: &[(&str, &str)]) -> Learnt {
        let name = |(database, table): &(&str, &str)| TableName {
            database: (!database.is_empty()).then(|| (*database).to_owned()),
            table: (*table).to_owned(),
        };
        Learnt::ButOfTables(names.iter().map(name).collect())
    }

    #[test]
    fn what_is_about_tables_leaves_what_is_known_of_others() {
        for (text, names) in [
            ("CREATE TABLE t (a UInt8) ENGINE = Null", &[("", "t")][..]),
            ("create table if not exists d.t on cluster c as x.y", &[("d", "t")]),
            ("CREATE OR REPLACE TABLE `d d`.t (a UInt8) ENGINE = Null", &[("d d", "t")]),
            ("CREATE TABLE d.t ENGINE = Memory AS SELECT 1", &[("d", "t")]),
            ("CREATE DICTIONARY d.t (a UInt8) PRIMARY KEY a", &[("d", "t")]),
            ("CREATE VIEW d.v AS SELECT a FROM d.t", &[("d", "v")]),
            ("ALTER TABLE d.t ADD COLUMN b UInt8", &[("d", "t")]),
            ("ALTER TABLE t MODIFY SETTING non_replicated_deduplication_window = 9", &[("", "t")]),
            ("ALTER TABLE d.v MODIFY QUERY SELECT 1", &[("d", "v")]),
            ("DROP TABLE IF EXISTS d.t, u SYNC", &[("d", "t"), ("", "u")]),
            ("DROP VIEW d.v", &[("d", "v")]),
            ("TRUNCATE TABLE d.t", &[("d", "t")]),
        ] {
            assert_eq!(left_by(text), but_of(names), "{text}");
        }
    }

    #[test]
    fn what_may_be_about_anything_leaves_nothing() {
        for text in [
            "CREATE MATERIALIZED VIEW d.v TO d.u AS SELECT a FROM d.t",
            "CREATE LIVE VIEW v AS SELECT 1",
            "CREATE WINDOW VIEW v AS SELECT 1",
            "CREATE DATABASE d",
            "CREATE FUNCTION f AS x -> x",
            "CREATE NAMED COLLECTION n AS a = 1",
            "CREATE TEMPORARY TABLE t (a UInt8)",
            "CREATE TABLE d.t.x (a UInt8) PARALLEL WITH DROP TABLE u",
            "CREATE TABLE t (a UInt8) ENGINE = Null PARALLEL WITH DROP TABLE u",
            "CREATE USER u",
            "ALTER USER u IDENTIFIED BY 'x'",
            "ALTER DATABASE d MODIFY COMMENT 'x'",
            "ALTER NAMED COLLECTION n SET a = 1",
            "DROP DATABASE d",
            "DROP ROLE r",
            "DROP FUNCTION f",
            "TRUNCATE DATABASE d",
            "TRUNCATE ALL TABLES FROM d",
            "RENAME TABLE a TO b",
            "RENAME DATABASE a TO b",
            "EXCHANGE TABLES a AND b",
            "ATTACH TABLE t",
            "ATTACH DATABASE d",
            "DETACH TABLE t",
            "UNDROP TABLE t",
            "REPLACE TABLE t (a UInt8) ENGINE = Null",
            "GRANT INSERT ON d.t TO u",
            "REVOKE INSERT ON d.t FROM u",
            "SET DEFAULT ROLE r TO u",
            "MOVE USER u TO x",
            "SYSTEM RELOAD CONFIG",
            "RESTORE TABLE t FROM Disk('a', 'b')",
            "EXECUTE AS u SELECT 1",
            "SOMETHING NEW",
        ] {
            assert_eq!(left_by(text), Learnt::OfNothing, "{text}");
        }
    }

    #[test]
    fn what_changes_no_table_leaves_everything() {
        for text in [
            "SELECT 1",
            "SHOW TABLES",
            "OPTIMIZE TABLE t FINAL",
            "DELETE FROM t WHERE a",
            "SYSTEM STOP MERGES t",
            "KILL QUERY WHERE 1",
            "USE d",
            "SET a = 1",
        ] {
            assert_eq!(left_by(text), Learnt::Holds, "{text}");
        }
    }
}
