//! Inserts whose rows are columns already, from a protocol that has no statements.

use std::sync::Arc;

use windrow_clickhouse::Exception;
use windrow_columns::{Block, DataType};
use windrow_engine::sink::{Destination, TableKey};
use windrow_engine::{AckLevel, InsertKind};
use windrow_sql::{Identifier, InsertStatement, InsertTable, TableName};

use super::{GatewayHandle, User};
use crate::admission::{Holds, Moment};
use crate::error::{Refusal, Text};
use crate::forward_reason::ForwardReason;
use crate::ingest::{accept_admitted, RowSource};
use crate::insert::{
    log_unreadable, Candidate, NotGathered, Origin, Prepared, RequestedSettings, RowsForm, SentRows, Silent,
    StatementOptions,
};
use crate::statement::{NativeInsert, StatementContext};

/// The options of all inserts: rows come without settings of their own.
static NO_OPTIONS: StatementOptions<'static> = StatementOptions::NONE;

/// The settings by which rows are gathered, where those of their table say nothing else.
#[derive(Debug, Clone, Copy)]
pub struct Gathering {
    pub ack: AckLevel,
    /// Time for which the rows are held for others; `None`: as long as those of any insert.
    pub hold_ms: Option<u64>,
}

impl Gathering {
    fn requested(self) -> RequestedSettings {
        RequestedSettings::gathered(self.ack, self.hold_ms)
    }

    /// Returns the same settings for an insert that leaves this gateway.
    fn options(self, token: Option<&str>) -> StatementOptions<'_> {
        let mut options = StatementOptions::default();
        options.set("async_insert", "1");
        options.set("windrow_ack", self.ack.as_str());
        if let Some(hold_ms) = self.hold_ms {
            options.set("windrow_flush_policy", "fixed");
            options.set("async_insert_busy_timeout_max_ms", hold_ms.to_string());
        }
        if let Some(token) = token {
            options.set("insert_deduplication_token", token);
        }
        options
    }
}

/// An insert of certain columns into a table, for the rows of many requests.
pub struct ColumnInsert {
    table: TableName,
    statement: InsertStatement,
    types: Vec<DataType>,
    /// The prepared insert, or the reason why inserts are not gathered, and go on to the backend.
    prepared: Result<Arc<Prepared>, ForwardReason>,
}

/// Rows for a [`ColumnInsert`].
pub struct ColumnRows<'r> {
    pub block: Block,
    /// Makes the same block again, for rows that can't be gathered after all.
    pub again: &'r (dyn Fn() -> Block + Sync),
    /// Bytes of the request that the rows came in.
    pub payload_bytes: u64,
    pub gathering: Gathering,
    /// The deduplication token.
    pub token: Option<&'r str>,
}

/// Reason why rows were not stored.
pub enum NotStored {
    /// The rows are more than may be held for their table.
    TooLarge,
    Refused(Refusal),
}

impl From<Refusal> for NotStored {
    fn from(refusal: Refusal) -> NotStored {
        NotStored::Refused(refusal)
    }
}

impl ColumnInsert {
    /// Makes an insert that is not gathered until it is [prepared](ColumnInsert::prepare). ClickHouse converts the columns
    /// to the table's types.
    pub fn new(table: &TableKey, names: Vec<String>, types: Vec<DataType>) -> ColumnInsert {
        let statement = InsertStatement {
            table: InsertTable {
                database: Some(Identifier::Name(table.database.clone())),
                table: Identifier::Name(table.table.clone()),
            },
            columns: Some(names),
            except: Vec::new(),
            settings: Vec::new(),
            format: "Native".to_owned(),
            is_values_clause: false,
            data_start: 0,
        };
        let table = TableName { database: Some(table.database.clone()), table: table.table.clone() };
        ColumnInsert { table, statement, types, prepared: Err(ForwardReason::Columns) }
    }

    /// Has the insert admitted for a user, so that rows are gathered. Returns the columns that the table has by then;
    /// `None` where the insert can't be gathered, and goes on to the backend.
    ///
    /// # Errors
    /// Fails where the user may not insert into the table, or the backend can't be asked.
    pub async fn prepare(
        &mut self,
        gateway: &GatewayHandle,
        user: &User,
        gathering: Gathering,
        token: Option<&str>,
    ) -> Result<Option<Vec<(String, String)>>, Refusal> {
        let requested = gathering.requested();
        let admitted = self.candidate(user, &requested, token).admit(&gateway.state).await;
        self.prepared = match admitted {
            Ok(prepared) => Ok(prepared),
            Err(NotGathered::Refused(refusal)) => return Err(refusal),
            Err(why) => Err(why.reason()),
        };
        Ok(self.prepared.as_ref().ok().map(|prepared| prepared.grounds.schema.written_columns()))
    }

    /// Says whether rows go the same way as the last time, so that the insert need not be prepared again.
    pub fn holds(&self, gateway: &GatewayHandle) -> bool {
        let now = Moment::now();
        let admission = &gateway.state.admission;
        self.prepared.as_ref().is_ok_and(|prepared| {
            admission.holds(&prepared.grounds, now) == Holds::Surely && !admission.renew(&prepared.grounds, now)
        })
    }

    /// Returns where gathered rows go, and what the log says of them.
    pub fn destination_and_kind(&self) -> Option<(&Destination, &InsertKind)> {
        self.prepared.as_ref().ok().map(|prepared| (&**prepared.destination(), &*prepared.kind))
    }

    fn candidate<'c>(
        &'c self,
        user: &'c User,
        requested: &'c RequestedSettings,
        token: Option<&'c str>,
    ) -> Candidate<'c> {
        Candidate {
            sender: &user.key,
            statement: &self.statement,
            table: &self.table,
            form: RowsForm::Columns(&self.types),
            options: &NO_OPTIONS,
            gathering: Some(requested),
            token,
            query_id: None,
            obstacle: None,
        }
    }

    /// Hands rows over to the gatherer, or on to the backend or to the gateway that owns them, and waits until they are
    /// acknowledged. The user, the settings for gathering, and whether there is a token have to be those that the insert was
    /// prepared for.
    ///
    /// # Errors
    /// Fails where the rows were not taken, or it is not known whether they were stored.
    pub async fn store(
        &self,
        gateway: &GatewayHandle,
        user: &User,
        rows: ColumnRows<'_>,
        origin: Origin<'_>,
    ) -> Result<(), NotStored> {
        let state = &gateway.state;
        let ColumnRows { block, again, payload_bytes, gathering, token } = rows;
        let context_with = |options| StatementContext {
            state,
            user_key: user.key.clone(),
            names_user: true,
            options,
            query_id: None,
            came_by_hop: false,
            stays_here: false,
        };
        let accepted = match &self.prepared {
            Ok(prepared) => {
                let requested = gathering.requested();
                let candidate = self.candidate(user, &requested, token);
                let mut source = BlockSource { insert: self, block: Some(block), payload_bytes, native: Vec::new() };
                let (context, prepared) = (context_with(StatementOptions::NONE), prepared.clone());
                accept_admitted(&context, &candidate, prepared, origin, &mut source).await
            }
            Err(reason) => Err(NotGathered::Forward(*reason)),
        };
        let why = match accepted {
            Ok(accepted) => {
                let stored = accepted.store(state, origin, &mut Silent).await;
                return stored.map(drop).map_err(|refusal| {
                    state.metrics.refused(&refusal);
                    refusal.into()
                });
            }
            Err(NotGathered::Forward(ForwardReason::TooLarge)) => return Err(NotStored::TooLarge),
            Err(NotGathered::Refused(refusal)) => return Err(refusal.into()),
            Err(why) => why,
        };
        let block = self.encode_native(&again());
        let insert = NativeInsert { table: &self.table, columns: self.names(), block: &block, given: &user.given };
        let context = context_with(gathering.options(token));
        let passed_on = match why {
            NotGathered::Elsewhere(owner) => context.pass_to_owner(&insert, owner, origin).await,
            NotGathered::NotRead { unread, prepared, query_id } => {
                let passed_on = context.pass_on(&insert, unread.reason, origin).await;
                if let Err(Refusal { code, text: Text::Backend(line), .. }) = &passed_on {
                    let exception = Exception { code: *code, line: line.clone(), before_writing: true };
                    log_unreadable(state, &prepared, query_id, payload_bytes, exception);
                }
                passed_on
            }
            why => context.pass_on(&insert, why.reason(), origin).await,
        };
        passed_on.map_err(NotStored::Refused)
    }

    fn names(&self) -> &[String] {
        self.statement.columns.as_deref().unwrap_or_default()
    }

    fn encode_native(&self, block: &Block) -> Vec<u8> {
        block.encode_native(self.names(), &self.types)
    }
}

/// The rows of one request.
struct BlockSource<'s> {
    insert: &'s ColumnInsert,
    block: Option<Block>,
    payload_bytes: u64,
    /// The same rows in the format Native, where the table has columns that are only passed through.
    native: Vec<u8>,
}

impl RowSource for BlockSource<'_> {
    async fn rows(&mut self, prepared: &Arc<Prepared>) -> Result<SentRows<'_>, NotGathered> {
        let block = self.block.take().ok_or(NotGathered::NoRows)?;
        if prepared.takes_columns() {
            return Ok(SentRows::Columns { block, payload_bytes: self.payload_bytes });
        }
        self.native = self.insert.encode_native(&block);
        Ok(SentRows::Bytes(&self.native))
    }
}
