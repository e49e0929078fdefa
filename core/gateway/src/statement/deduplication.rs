//! Deduplication of forwarded statements.
//!
//! A forwarded INSERT must have the settings by which ClickHouse deduplicates it if, and only if, its client
//! wants that. The table may have a window that Windrow made for its batches, and that window must not drop
//! rows that are no repeat. An INSERT with a token is first looked up in the deduplication index, since it
//! may repeat one that was gathered; then it is entered, since its repeat may be gathered later. A statement
//! that removes rows makes the deduplication index forget them.

use std::time::Duration;

use windrow_engine::{AckLevel, DedupKeys, PushError, Resolved};
use windrow_sql::{removes_rows, DdlScope, InsertOutline, OtherStatement, TableName};

use super::context::StatementContext;
use crate::admission::{NotAdmitted, TableKey, Window};
use crate::cluster::{GatewayId, InsertKey};
use crate::error::Refusal;
use crate::insert::{identities, is_dedup_setting, url_name, DedupPlan, DedupSettings, DefaultProfile};
use crate::state::State;

/// Bytes of a statement in which its settings are looked for.
pub(crate) const LOOKED_THROUGH_BYTES: usize = 64 * 1024;

/// The deduplication index's answer about an INSERT that is about to be forwarded.
pub(crate) enum Passage {
    /// The INSERT has no keys in the deduplication index.
    Nameless,
    Claimed(DedupKeys),
    Repeat,
    /// Another gateway owns the INSERT.
    Elsewhere(GatewayId),
    /// The INSERT is not forwarded: another one with its token was on its way for longer than its client
    /// waits, or the gateway can't tell now whether it is a repeat.
    Refused(Refusal),
}

/// Settings and keys that follow from an INSERT's own settings and from its table.
#[derive(Default)]
struct Deduplication {
    /// Settings that the INSERT must get.
    additions: Vec<(&'static str, &'static str)>,
    keys: Option<DedupKeys>,
}

/// Tables from which a statement removes rows.
pub(crate) enum RowRemoval {
    Of(Vec<u128>),
    OfAnyTable,
}

/// Reads the outline of an INSERT from the start of a text, if the text begins with one.
pub(crate) fn outline(start: &[u8]) -> Option<InsertOutline> {
    InsertOutline::of(start, |name| is_dedup_setting(name) || bears_on_columns(name))
}

impl StatementContext<'_> {
    /// Asks the deduplication index about an INSERT that is on its way to the backend. Returns the settings
    /// that must be added to the INSERT, and the index's answer.
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

    /// Returns the tables from which a forwarded statement removes rows, if it does. It is called before the
    /// statement is forwarded: a table that is gone can't be asked about.
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

    /// Enters a forwarded INSERT into the deduplication index, if ClickHouse has stored it.
    pub(crate) async fn conclude(&self, passage: Passage, is_stored: bool) {
        if let (Passage::Claimed(keys), Some(deduplication), true) = (passage, self.gatherer.deduplication(), is_stored)
        {
            deduplication.enter(vec![keys]).wait().await;
        }
    }
}

/// Returns ClickHouse's answer; `None` if ClickHouse will refuse the insert itself, or can't be asked. While
/// ClickHouse can't be asked, an insert with a token is refused, because nobody knows whether it is a repeat.
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

/// Says whether a list of columns may depend on the setting.
fn bears_on_columns(setting: &str) -> bool {
    setting.starts_with("param_") || setting == "insert_allow_materialized_columns"
}

fn key_of(name: TableName, current_database: &str) -> TableKey {
    TableKey { database: name.database.unwrap_or_else(|| current_database.to_owned()), table: name.table }
}
