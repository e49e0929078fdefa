//! Knowledge of the tables that rows go into: which columns are filled, and what was worked out for inserts
//! into them.
//!
//! It is kept for each user and table, as long as the answers that it is based on hold; the next request
//! after that has the table described again. A table that is missing is made, where the settings have it so.

use std::sync::Arc;

use windrow_clickhouse::ErrorCode;
use windrow_engine::sink::TableKey;
use windrow_otlp::{Kind, Layout};
use windrow_sql::{Identifier, InsertStatement, InsertTable, TableName};

use super::create::Creating;
use super::refused::{RefusalReason, Refused};
use super::sender::Sender;
use crate::admission::{Holds, Moment, NotAdmitted};
use crate::error::Refusal;
use crate::forward_reason::ForwardReason;
use crate::insert::{Candidate, NotGathered, Prepared, RequestedSettings, RowsForm, StatementOptions};
use crate::recent::Recent;
use crate::state::State;

/// The largest number of tables that are kept, counted for each user. At least half of them are found again,
/// however many tenants come.
const MAX_ENTRIES: usize = 20_000;
/// The options of all inserts: rows come without settings of their own.
static NO_OPTIONS: StatementOptions<'static> = StatementOptions::NONE;
/// Attempts to have an insert admitted. If the table changes more often meanwhile, the rows are not gathered
/// this time.
const MAX_LOOKS: usize = 3;

pub(super) struct Tables {
    known: Recent<Box<[u8]>, Arc<Table>>,
    creating: Creating,
}

/// A table, as rows of a kind go into it from one user.
pub(super) struct Table {
    pub(super) name: TableName,
    pub(super) statement: InsertStatement,
    pub(super) layout: Layout,
    /// Names and types of the columns that the layout was made for.
    columns: Vec<(String, String)>,
    /// The prepared insert, or the reason why inserts are not gathered, and go on to the backend.
    pub(super) prepared: Result<Arc<Prepared>, ForwardReason>,
}

/// Rows that look for their table.
pub(super) struct Search<'s> {
    pub(super) state: &'s Arc<State>,
    pub(super) sender: &'s Sender,
    pub(super) kind: Kind,
    pub(super) key: &'s TableKey,
    pub(super) gathering: &'s RequestedSettings,
    /// The deduplication token of the insert that the rows become.
    pub(super) token: Option<&'s str>,
}

impl Tables {
    pub(super) fn new() -> Tables {
        Tables { known: Recent::new(MAX_ENTRIES), creating: Creating::new() }
    }

    pub(super) fn age(&self) {
        self.known.age();
    }
}

impl Table {
    /// Describes an insert of rows into the table, for its admission.
    pub(super) fn candidate<'c>(
        &'c self,
        sender: &'c Sender,
        gathering: &'c RequestedSettings,
        token: Option<&'c str>,
    ) -> Candidate<'c> {
        Candidate {
            sender: &sender.key,
            statement: &self.statement,
            table: &self.name,
            form: RowsForm::Columns(self.layout.types()),
            options: &NO_OPTIONS,
            gathering: Some(gathering),
            token,
            query_id: None,
            obstacle: None,
        }
    }

    /// Says whether inserts go the same way as the last time, so that the backend need not be asked.
    fn holds(&self, state: &State) -> bool {
        let now = Moment::now();
        let admission = &state.admission;
        self.prepared.as_ref().is_ok_and(|prepared| {
            admission.holds(&prepared.grounds, now) == Holds::Surely && !admission.renew(&prepared.grounds, now)
        })
    }
}

/// Says whether the table may be missing. An insert into a missing table is forwarded to ClickHouse, which
/// says so itself; of other databases it is known.
fn is_missing(why: &NotAdmitted) -> bool {
    match why {
        NotAdmitted::Forward(_) => true,
        NotAdmitted::Refused(refusal) => refusal.code == ErrorCode::UNKNOWN_TABLE,
        NotAdmitted::Busy | NotAdmitted::Unreachable(_) => false,
    }
}

impl Search<'_> {
    pub(super) async fn find(&self) -> Result<Arc<Table>, Refused> {
        let tables = &self.state.otlp.tables;
        let key = self.known_by();
        let known = tables.known.get(&key[..]);
        if let Some(known) = known.as_ref().filter(|known| known.holds(self.state)) {
            return Ok(known.clone());
        }
        let found = Arc::new(self.look(known.as_deref()).await?);
        tables.known.put(key.into(), found.clone());
        Ok(found)
    }

    fn known_by(&self) -> Vec<u8> {
        let credentials = &self.sender.credentials;
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
            Some(known) => self.laid_out(known.columns.clone())?,
            None => self.described().await?,
        };
        for _ in 0..MAX_LOOKS {
            match table.candidate(self.sender, self.gathering, self.token).admit(self.state).await {
                Ok(prepared) => {
                    let columns = prepared.grounds.schema.written_columns();
                    if columns == table.columns {
                        return Ok(Table { prepared: Ok(prepared), ..table });
                    }
                    table = self.laid_out(columns)?;
                }
                Err(NotGathered::Refused(refusal)) => return Err(refusal.into()),
                Err(_) if may_be_old => table = self.described().await?,
                Err(NotGathered::Forward(reason)) => {
                    table.prepared = Err(reason);
                    break;
                }
                Err(_) => break,
            }
            may_be_old = false;
        }
        Ok(table)
    }

    /// Reads the table's columns from the backend, and makes the table if it is missing.
    async fn described(&self) -> Result<Table, Refused> {
        let (admission, key) = (&self.state.admission, self.key);
        let described = match admission.unless_away(admission.table(key, &self.sender.key)).await {
            Err(not_admitted) if is_missing(&not_admitted) && self.may_be_made() => {
                self.state.otlp.tables.creating.make(self.state, self.sender, key, self.kind).await?;
                admission.table(key, &self.sender.key).await
            }
            described => described,
        };
        match described {
            Ok(schema) => self.laid_out(schema.written_columns()),
            Err(NotAdmitted::Refused(refusal)) if refusal.code != ErrorCode::UNKNOWN_TABLE => {
                Err((*refusal).clone().into())
            }
            Err(NotAdmitted::Forward(_) | NotAdmitted::Refused(_)) => Err(self.missing()),
            Err(NotAdmitted::Busy) => Err(Refusal::unreachable("it is too busy").into()),
            Err(NotAdmitted::Unreachable(cause)) => {
                match admission.kept_table(&self.sender.key, key, self.state.kept_ttl()) {
                    Some(schema) => self.laid_out(schema.written_columns()),
                    None => Err(Refusal::unreachable(&cause).into()),
                }
            }
        }
    }

    /// Says whether the table may be made: not where a mapping of the settings says what the columns are.
    fn may_be_made(&self) -> bool {
        let settings = self.state.options.settings.get();
        settings.otlp.tables.create_schema && self.mapping().is_none()
    }

    fn mapping(&self) -> Option<Vec<(String, String)>> {
        let settings = self.state.options.settings.get();
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
    fn laid_out(&self, columns: Vec<(String, String)>) -> Result<Table, Refused> {
        let layout = match self.mapping() {
            Some(mapping) => Layout::mapped(self.kind, &columns, &mapping),
            None => Layout::new(self.kind, &columns),
        };
        let layout = layout.map_err(|error| {
            let text = format!("Rows can't be written into {}.{}: {error}", self.key.database, self.key.table);
            Refused::new(RefusalReason::NoTable, text)
        })?;
        let name = TableName { database: Some(self.key.database.clone()), table: self.key.table.clone() };
        let statement = InsertStatement {
            table: InsertTable {
                database: Some(Identifier::Name(self.key.database.clone())),
                table: Identifier::Name(self.key.table.clone()),
            },
            columns: Some(layout.columns().map(str::to_owned).collect()),
            except: Vec::new(),
            settings: Vec::new(),
            format: "Native".to_owned(),
            is_values_clause: false,
            data_start: 0,
        };
        Ok(Table { name, statement, layout, columns, prepared: Err(ForwardReason::Columns) })
    }
}
