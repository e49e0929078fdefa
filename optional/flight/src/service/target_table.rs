//! The table that rows are ingested into. It is made, replaced or left as it is, as the client asks.
//!
//! A table that replaces another is filled under a name of its own and takes the other's place at the end. A
//! table that was made for rows is dropped again if these do not all come.

use arrow_schema::Schema;
use windrow_clickhouse::{ErrorCode, Exception};

use crate::error;
use crate::login::{random_name, Caller};
use crate::messages::TableDefinitionOptions;
use crate::sql::{create_table, Dialect};
use crate::store::Store;
use windrow_sql::TableName;

const CREATE: i32 = 1;
const FAIL: i32 = 1;
const REPLACE: i32 = 3;

pub(super) struct TargetTable {
    target: TableName,
    how: How,
}

enum How {
    Known,
    Made,
    /// The table replaces another. It is filled under this name first.
    Replaced(TableName),
}

impl TargetTable {
    pub(super) async fn prepare(
        store: &Store,
        caller: &Caller,
        target: TableName,
        wanted: &TableDefinitionOptions,
        schema: Option<&Schema>,
    ) -> Result<TargetTable, Exception> {
        let exists = store.fields(caller, &target).await?.is_some();
        let table = &target.table;
        let how = match (exists, wanted.if_exists, wanted.if_not_exist) {
            (true, FAIL, _) => {
                return Err(error::own(ErrorCode::TABLE_ALREADY_EXISTS, &format!("Table {table} already exists.")))
            }
            (true, REPLACE, _) => {
                let name = random_name().map_err(|error| error::own(ErrorCode::STD_EXCEPTION, &error.to_string()))?;
                How::Replaced(TableName { table: format!("__windrow_ingest_{}", &name[..32]), ..target.clone() })
            }
            (true, ..) => How::Known,
            (false, _, CREATE) => How::Made,
            (false, ..) => return Err(error::own(ErrorCode::UNKNOWN_TABLE, &format!("Table {table} does not exist."))),
        };
        let prepared = TargetTable { target, how };
        if !matches!(prepared.how, How::Known) {
            let schema =
                schema.ok_or_else(|| error::own(ErrorCode::BAD_ARGUMENTS, "rows without columns make no table"))?;
            let name = quoted(store, caller, prepared.rows_go_to());
            store.update(caller, &create_table(store.dialect(), &name, schema)?).await?;
        }
        Ok(prepared)
    }

    pub(super) fn rows_go_to(&self) -> &TableName {
        match &self.how {
            How::Known | How::Made => &self.target,
            How::Replaced(new) => new,
        }
    }

    /// Finishes the table when all rows are there.
    pub(super) async fn finish(self, store: &Store, caller: &Caller) -> Result<(), Exception> {
        let How::Replaced(new) = &self.how else { return Ok(()) };
        let (old_name, new_name) = (quoted(store, caller, &self.target), quoted(store, caller, new));
        let swapped = match store.dialect() {
            Dialect::DuckDb => {
                let drop = format!("DROP TABLE {old_name}");
                let rename = format!("ALTER TABLE {new_name} RENAME TO {}", Dialect::DuckDb.name(&self.target.table));
                store.update_all(caller, &[drop, rename]).await.map(|_| ())
            }
            Dialect::ClickHouse => exchange(store, caller, &old_name, &new_name).await,
        };
        if swapped.is_err() {
            self.undo(store, caller).await;
        }
        swapped
    }

    /// Drops the table that was made for rows, when not all of them came.
    pub(super) async fn undo(&self, store: &Store, caller: &Caller) {
        if matches!(self.how, How::Known) {
            return;
        }
        let name = quoted(store, caller, self.rows_go_to());
        if let Err(exception) = store.update(caller, &format!("DROP TABLE IF EXISTS {name}")).await {
            tracing::warn!(
                table = name,
                error = exception.line,
                "a table made for rows that did not come can't be dropped"
            );
        }
    }
}

/// Exchanges two tables and drops the old one. Databases of the engine Atomic do this in one step; for others
/// a RENAME of both comes closest.
async fn exchange(store: &Store, caller: &Caller, old: &str, new: &str) -> Result<(), Exception> {
    let dropped = match store.update(caller, &format!("EXCHANGE TABLES {old} AND {new}")).await {
        Ok(_) => new.to_owned(),
        Err(exception) if exception.code == ErrorCode::NOT_IMPLEMENTED => {
            let aside = format!("{}_old`", new.trim_end_matches('`'));
            store.update(caller, &format!("RENAME TABLE {old} TO {aside}, {new} TO {old}")).await?;
            aside
        }
        Err(exception) => return Err(exception),
    };
    store.update(caller, &format!("DROP TABLE {dropped}")).await.map(|_| ())
}

fn quoted(store: &Store, caller: &Caller, target: &TableName) -> String {
    store.dialect().table(store.database_of(caller, target).as_deref(), &target.table)
}
