//! Knowledge of the tables that rows go into: which columns are filled, and what was worked out for inserts
//! into them.
//!
//! It is kept for each user, table and kind of rows, as long as the answers that it is based on hold. The
//! next request after that has the insert prepared again, with the columns that were known, and the table
//! described where that fails. A table that is missing is made, where the settings have it so.

use std::sync::Arc;

use windrow_engine::sink::TableKey;
use windrow_gateway::protocol::{ColumnInsert, Gathering, NoColumns, Recent, User};
use windrow_otlp::{Kind, Layout};

use crate::create::Creating;
use crate::refused::{RefusalReason, Refused};
use crate::Context;

/// The largest number of tables that are kept, counted for each user. At least half of them are found again,
/// however many tenants come.
const MAX_ENTRIES: usize = 20_000;
/// Attempts to have an insert admitted. If the table changes more often meanwhile, the rows are not gathered
/// this time.
const MAX_ATTEMPTS: usize = 3;

pub(crate) struct Tables {
    known: Recent<Box<[u8]>, Arc<Table>>,
    creating: Creating,
}

/// A table, as rows of a kind go into it from one user.
pub(crate) struct Table {
    pub(crate) insert: ColumnInsert,
    pub(crate) layout: Layout,
    /// Names and types of the columns that the layout was made for.
    columns: Vec<(String, String)>,
}

/// The facts that a table is looked for by.
pub(crate) struct Search<'s> {
    pub(crate) context: &'s Context,
    pub(crate) user: &'s User,
    pub(crate) kind: Kind,
    pub(crate) key: &'s TableKey,
    pub(crate) gathering: Gathering,
    /// The deduplication token of the insert that the rows become.
    pub(crate) token: Option<&'s str>,
}

impl Tables {
    pub(crate) fn new() -> Tables {
        Tables { known: Recent::new(MAX_ENTRIES), creating: Creating::new() }
    }

    pub(crate) fn forget_unused(&self) {
        self.known.age();
    }
}

impl Search<'_> {
    pub(crate) async fn find(&self) -> Result<Arc<Table>, Refused> {
        let tables = &self.context.shared.tables;
        let key = self.cache_key();
        let known = tables.known.get(&key[..]);
        if let Some(known) = known.as_ref().filter(|known| known.insert.holds(&self.context.gateway)) {
            return Ok(known.clone());
        }
        let found = Arc::new(self.look(known.as_deref()).await?);
        tables.known.put(key.into(), found.clone());
        Ok(found)
    }

    /// Returns the key of the table among those that are known. What is known holds for this user with this password, and
    /// an insert with a token is prepared for itself.
    fn cache_key(&self) -> Vec<u8> {
        let credentials = self.user.credentials();
        let mut key = vec![self.kind as u8, u8::from(self.token.is_some())];
        for part in [&credentials.user, &credentials.password, &self.key.database, &self.key.table] {
            key.extend_from_slice(&(part.len() as u32).to_le_bytes());
            key.extend_from_slice(part.as_bytes());
        }
        key
    }

    /// Asks for the admission of an insert into the table, with the columns that the table has now.
    async fn look(&self, known: Option<&Table>) -> Result<Table, Refused> {
        let mut may_be_old = known.is_some();
        let mut table = match known {
            Some(known) => self.lay_out(known.columns.clone())?,
            None => self.describe().await?,
        };
        for _ in 0..MAX_ATTEMPTS {
            let prepared = table.insert.prepare(&self.context.gateway, self.user, self.gathering, self.token).await?;
            match prepared {
                Some(columns) if columns != table.columns => table = self.lay_out(columns)?,
                None if may_be_old => table = self.describe().await?,
                _ => break,
            }
            may_be_old = false;
        }
        Ok(table)
    }

    /// Reads the table's columns from the backend, and makes the table if it is missing.
    async fn describe(&self) -> Result<Table, Refused> {
        let Context { gateway, shared } = self.context;
        let columns = match gateway.columns(self.user, self.key).await {
            Err(NoColumns::Missing) if self.may_be_made() => {
                shared.tables.creating.make(gateway, self.user, self.key, self.kind).await?;
                gateway.columns(self.user, self.key).await
            }
            columns => columns,
        };
        match columns {
            Ok(columns) => self.lay_out(columns),
            Err(NoColumns::Missing) => Err(self.missing()),
            Err(NoColumns::Refused(refusal)) => Err(refusal.into()),
        }
    }

    /// Says whether the table may be made: not where a mapping of the settings says what the columns are.
    fn may_be_made(&self) -> bool {
        let settings = self.context.gateway.settings();
        settings.otlp.tables.create_schema && self.mapping().is_none()
    }

    fn mapping(&self) -> Option<Vec<(String, String)>> {
        let settings = self.context.gateway.settings();
        let mapping = settings.otlp.mappings.iter().find(|mapping| mapping.kind == self.kind.as_str());
        mapping.map(|mapping| mapping.columns.clone())
    }

    fn missing(&self) -> Refused {
        let TableKey { database, table } = self.key;
        let text = format!(
            "The table {database}.{table} is missing, or the user may not see it: make it, or set otlp.create_schema"
        );
        Refused::new(RefusalReason::NoTable, text)
    }

    /// Works out how rows are written into a table with these columns.
    fn lay_out(&self, columns: Vec<(String, String)>) -> Result<Table, Refused> {
        let layout = match self.mapping() {
            Some(mapping) => Layout::mapped(self.kind, &columns, &mapping),
            None => Layout::new(self.kind, &columns),
        };
        let layout = layout.map_err(|error| {
            let text = format!("Rows can't be written into {}.{}: {error}", self.key.database, self.key.table);
            Refused::new(RefusalReason::NoTable, text)
        })?;
        let names = layout.columns().map(str::to_owned).collect();
        let insert = ColumnInsert::new(self.key, names, layout.types().to_vec());
        Ok(Table { insert, layout, columns })
    }
}
