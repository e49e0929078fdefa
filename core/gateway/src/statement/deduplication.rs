//! Forwarded statements and deduplication.
//!
//! An INSERT has to say what makes ClickHouse deduplicate it if, and only if, somebody wants it to: a table may have a
//! window that is Windrow's, for its batches, and rows that nobody repeated must not be dropped by it. One that names
//! itself by a token asks the deduplication index first, since a repeat may have been gathered; and enters it, since
//! one may be gathered later. A statement that takes rows away makes the deduplication index forget them.

use std::time::Duration;

use windrow_engine::{AckLevel, DedupKeys, PushError, Resolved};
use windrow_sql::{removes_rows, DdlScope, InsertOutline, OtherStatement, TableName};

use super::context::StatementContext;
use crate::admission::{NotAdmitted, TableKey, Window};
use crate::cluster::{GatewayId, InsertKey};
use crate::error::Refusal;
use crate::insert::{identities, is_dedup_setting, url_name, DedupPlan, DedupSettings, DefaultProfile};
use crate::state::State;

/// A statement's settings stand within this.
pub(crate) const LOOKED_THROUGH_BYTES: usize = 64 * 1024;

/// What an INSERT is to the deduplication index that is about to be forwarded.
pub(crate) enum Passage {
    /// It has no name.
    Nameless,
    Claimed(DedupKeys),
    Repeat,
    /// Another gateway owns it.
    Elsewhere(GatewayId),
    /// It is not forwarded: one of its name was on its way for longer than its sender waits, or whether it is a repeat
    /// can't be told now.
    Refused(Refusal),
}

/// What an INSERT says, and what follows for its table.
#[derive(Default)]
struct Deduplication {
    /// Settings that it has to say.
    additions: Vec<(&'static str, &'static str)>,
    keys: Option<DedupKeys>,
}

/// Of which tables the rows are gone.
pub(crate) enum RowRemoval {
    Of(Vec<u128>),
    OfAnyTable,
}

/// Of a text that may be an INSERT, as far as it begins with one.
pub(crate) fn outline(start: &[u8]) -> Option<InsertOutline> {
    InsertOutline::of(start, |name| is_dedup_setting(name) || bears_on_columns(name))
}

impl StatementContext<'_> {
    /// Asks the deduplication index for an INSERT that is on its way to the backend. What comes first are the settings
    /// that have to be added to it.
    pub(crate) async fn settle_deduplication(
        &self,
        insert: &InsertOutline,
    ) -> (Vec<(&'static str, &'static str)>, Passage) {
        if self.options.has_unreadable_token {
            return (Vec::new(), Passage::Refused(Refusal::unreadable_token()));
        }
        let Deduplication { additions, keys } = match self.deduplication_of(insert).await {
            Ok(found) => found,
            Err(refusal) => return (Vec::new(), Passage::Refused(refusal)),
        };
        (additions, self.claim_keys(keys).await)
    }

    async fn claim_keys(&self, keys: Option<DedupKeys>) -> Passage {
        let (Some(keys), Some(deduplication)) = (keys, self.state.gatherer.deduplication()) else {
            return Passage::Nameless;
        };
        let cluster = self.state.cluster.as_ref().filter(|_| !self.stays_here);
        if let Some(owner) = cluster.and_then(|cluster| cluster.elsewhere(InsertKey::new(&keys, true))) {
            return Passage::Elsewhere(owner);
        }
        let patience = Duration::from_millis(self.state.options.settings.get().gather.wait_for_async_insert_timeout_ms);
        match tokio::time::timeout(patience, deduplication.resolve(keys, AckLevel::Stored)).await {
            Ok(Resolved::Mine { keys, .. }) => Passage::Claimed(keys),
            Ok(Resolved::Repeat) => Passage::Repeat,
            Err(_) => Passage::Refused(Refusal::push(&PushError::Behind)),
        }
    }

    async fn deduplication_of(&self, insert: &InsertOutline) -> Result<Deduplication, Refusal> {
        let parameters: Vec<_> = self.options.query_parameters().map(|(name, value)| (url_name(name), value)).collect();
        let parameters = parameters.iter().map(|(name, value)| (name.as_str(), *value));
        let in_text = insert.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let settings = self.options.settings().chain(in_text);
        let said = DedupSettings::of(settings.clone());
        let admission = &self.state.admission;
        let token = said.name().filter(|_| self.names_user);
        let asker = &self.user_key;
        let Some(user) = answered(admission.user(asker.clone()).await, token)? else {
            return Ok(Deduplication::default());
        };
        let profile = DefaultProfile::of(&self.state.options.settings.get());
        let name = insert.table_name(|parameter| self.options.query_parameter(parameter));
        let key = name.map(|name| key_of(name, &user.database));
        let schema = match &key {
            Some(key) => answered(admission.table(key, asker).await, token)?,
            None => None,
        };
        let (window, has_views) = schema.as_ref().map_or((Window::Never, false), |it| (it.window, it.has_views));
        let additions = said.additions(window, has_views, &user, profile);
        let (Some(token), Some((key, schema))) = (token, key.zip(schema)) else {
            return Ok(Deduplication { additions, keys: None });
        };
        // To who may not insert, no repeat is told, and nobody has to wait for him.
        let settings: Vec<_> = settings.filter(|(name, _)| bears_on_columns(name)).chain(parameters).collect();
        let may_insert = admission.may_insert(asker, &key, &insert.columns, &settings).await;
        let Some(()) = answered(may_insert, Some(token))? else { return Ok(Deduplication { additions, keys: None }) };
        let most_parts = admission.most_parts(&schema);
        let keys = DedupPlan::new(&key, &schema, schema.window, &user.timezone, most_parts).keys_of_whole(token);
        match self.state.gatherer.deduplication() {
            Some(known) if admission.was_cut(&schema, &keys, known) => Err(Refusal::was_cut()),
            _ => Ok(Deduplication { additions, keys: Some(keys) }),
        }
    }

    /// What a forwarded statement takes away, if it does. Asked before it is: a table that is gone can't be asked
    /// about.
    pub(crate) async fn row_removal(&self, statement: &OtherStatement, text: &[u8]) -> Option<RowRemoval> {
        if !statement.is_ddl() || !removes_rows(text) {
            return None;
        }
        let admission = &self.state.admission;
        let names = match statement.ddl_scope() {
            DdlScope::Tables(names) => names,
            // Dropping one that isn't there, IF EXISTS, is something that anybody may do.
            DdlScope::Database(database) => {
                let tables = admission.tables_of(database, &self.user_key).await;
                return Some(tables.map_or(RowRemoval::OfAnyTable, RowRemoval::Of));
            }
            DdlScope::None | DdlScope::Anything => return Some(RowRemoval::OfAnyTable),
        };
        let database = self.current_database().await;
        let mut gone = Vec::new();
        for name in names {
            let key = key_of(name.clone(), &database);
            let schema = admission.table(&key, &self.user_key).await.ok();
            gone.extend(identities(&key, schema.as_deref()));
            let over = admission.distributed_over(&key);
            gone.extend(over.iter().flat_map(|distributed| identities(distributed, None)));
        }
        Some(RowRemoval::Of(gone))
    }
}

impl State {
    pub(crate) async fn forget_rows(&self, gone: Option<&RowRemoval>) {
        let (Some(gone), Some(deduplication)) = (gone, self.gatherer.deduplication()) else { return };
        match gone {
            RowRemoval::Of(tables) => {
                for &table in tables {
                    deduplication.forget(table).await;
                }
            }
            RowRemoval::OfAnyTable => deduplication.forget_all().await,
        }
    }

    /// ClickHouse's answer is known.
    pub(crate) async fn conclude(&self, passage: Passage, is_stored: bool) {
        if let (Passage::Claimed(keys), Some(deduplication), true) = (passage, self.gatherer.deduplication(), is_stored)
        {
            deduplication.enter(vec![keys]).wait().await;
        }
    }
}

/// What ClickHouse answered. `None`: it refuses the insert, and will say so itself. While it can't be asked, an insert
/// with a token is not sent on, because nobody knows whether it is a repeat.
fn answered<T>(answer: Result<T, NotAdmitted>, token: Option<&str>) -> Result<Option<T>, Refusal> {
    match answer {
        Err(NotAdmitted::Refused(refusal)) => Err((*refusal).clone()),
        Err(NotAdmitted::Unreachable(cause)) if token.is_some() => Err(Refusal::unreachable(&cause)),
        Err(NotAdmitted::Busy) if token.is_some() => Err(Refusal::too_busy(
            "ClickHouse is too busy to say whether this user may insert. The insert was not taken; try again later"
                .into(),
        )),
        answer => Ok(answer.ok()),
    }
}

/// Whether a list of columns may depend on it.
fn bears_on_columns(setting: &str) -> bool {
    setting.starts_with("param_") || setting == "insert_allow_materialized_columns"
}

fn key_of(name: TableName, current_database: &str) -> TableKey {
    TableKey { database: name.database.unwrap_or_else(|| current_database.to_owned()), table: name.table }
}
