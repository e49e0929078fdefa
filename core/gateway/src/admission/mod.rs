//! Admission: the backend's answers about an insert before it is taken, and how long they are believed.
//!
//! There are three questions, none of which is asked for every table, statement or insert:
//! - Who is this account? Its settings, its database and its rights (`account.rs`), by its *fingerprint*.
//! - What is this table? Its columns and engine (`catalog.rs`), learnt many at a time and watched together.
//! - May this account insert with these settings? An INSERT of no rows, under its own credentials, which
//!   ClickHouse checks like any other and which leaves no trace (`probe.rs`). Where the grants say that the
//!   account may insert into a table, the answer for one table holds for all; elsewhere each table is asked
//!   about once.
//!
//! An answer is believed as long as it *stands* (`standing.rs`): until a question that began later
//! contradicts it, and for a while after the last question that confirmed it. [`Admission::doubt`] makes
//! every answer wait for a confirmation by a question that begins from then on.
//!
//! A refusal by ClickHouse is not worded here: the caller forwards the insert and ClickHouse refuses it
//! itself. For a database that takes SQL, such as DuckDB, the gateway finds all three answers
//! (`sql_backend/`), and words the refusals. While the backend is away, its last answers still hold: an
//! insert that it would refuse by then is refused at the flush.
//!
//! `docs/decisions/0035-admission-by-fingerprints.md` says why, and what somebody gains who knows all this.

mod account;
mod admissions_file;
mod casts;
mod catalog;
mod doubted;
mod engine;
mod facts;
mod functions;
mod grants;
mod on_disk;
mod probe;
mod pulse;
mod remembered;
mod rounds;
mod schema;
mod sharding;
mod standing;
mod user;
mod views;
mod windows;

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use windrow_clickhouse::{Call, CallError, Client, Credentials, ErrorCode, Exception, ReplicaId};
pub(crate) use windrow_engine::sink::TableKey;
use windrow_engine::table_by_name;
use windrow_sql::TableName;

pub(crate) use account::Account;
use account::Accounts;
pub(crate) use casts::refuse_casts;
use catalog::Catalog;
use doubted::{name_of, DoubtedTables};
pub use facts::BackendFacts;
pub(crate) use facts::{hostname, Facts};
pub(crate) use functions::may_be_asked;
use on_disk::AdmissionsOnDisk;
pub(crate) use on_disk::{KeptGrounds, KeptSince, ToKeep};
pub(crate) use probe::Probe;
use pulse::Pulse;
use remembered::Remembered;
pub(crate) use schema::{Column, Marks, TableSchema, Target};
use sharding::Shards;
pub(crate) use sharding::{Cutting, ShardOfCut, Sharding};
pub(crate) use standing::{Moment, Standing};
pub(crate) use user::{ServerVersion, UserContext, UserKey};
pub(crate) use views::Unprotected;
#[cfg(test)]
pub(crate) use windows::Bounds;
pub use windows::MARKED_WINDOW;
pub(crate) use windows::{Window, Windows};

use crate::backend::Backend;
use crate::error::Refusal;
use crate::forward_reason::ForwardReason;
use crate::sql_backend::SqlBackend;

/// Reason why an insert can't be taken.
#[derive(Debug, Clone)]
pub(crate) enum NotAdmitted {
    /// The insert is to be forwarded: ClickHouse will refuse it, or handle it in its own way.
    Forward(ForwardReason),
    /// The gateway itself refuses the insert, since nobody else can.
    Refused(Arc<Refusal>),
    /// The backend is too busy to answer. A caller without an earlier answer forwards the insert.
    Busy,
    /// The backend can't be asked now.
    Unreachable(String),
}

impl NotAdmitted {
    pub(crate) fn refused(refusal: Refusal) -> NotAdmitted {
        NotAdmitted::Refused(Arc::new(refusal))
    }

    fn of(error: &CallError) -> NotAdmitted {
        match error {
            // It says nothing of the insert: the backend has too much to do, or too little memory, at this moment.
            CallError::Exception(exception) if exception.is_passing() && exception.code != ErrorCode::READONLY => {
                NotAdmitted::Busy
            }
            CallError::Exception(exception) if exception.is_about_identity() => {
                NotAdmitted::Forward(ForwardReason::UnknownUser)
            }
            CallError::Exception(exception) if exception.code.says_no_such_table() => {
                NotAdmitted::Forward(ForwardReason::UnknownTable)
            }
            CallError::Exception(_) => NotAdmitted::Forward(ForwardReason::Refused),
            CallError::NotSent(error) => NotAdmitted::Unreachable(error.to_string()),
            CallError::Unknown(text) => NotAdmitted::Unreachable(text.clone()),
        }
    }
}

impl From<CallError> for NotAdmitted {
    fn from(error: CallError) -> Self {
        NotAdmitted::of(&error)
    }
}

/// Time that a question may take. The backend may be busy, but a client waits.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(10);

/// Bound of the known UUIDs. Beyond it all are forgotten, and a table that is made anew then isn't noticed.
const MOST_UUIDS: usize = 100_000;
/// Bound of the catalogues of other accounts, which see tables that the gateway's own account may not see.
const MOST_CATALOGS: usize = 1_000;

pub(crate) struct Admission {
    backend: Backend,
    pub(crate) facts: Arc<Facts>,
    learnt: Learnt,
    account_ttl: Duration,
    table_ttl: Duration,
    /// Moment of the last doubt of everything, in microseconds: earlier answers may no longer be true.
    doubted_at: AtomicU64,
    doubted_tables: DoubtedTables,
    /// The number of reloads of the settings.
    reloads: AtomicU64,
    pub(crate) windows: Windows,
    /// Shards of the backend's cluster, where it has one. Rows of its Distributed tables are cut by them.
    shards: Option<Shards>,
    kept: Option<Arc<AdmissionsOnDisk>>,
    /// Last UUID that each replica has told of a table which the deduplication index knows by its name.
    uuids: Mutex<HashMap<UuidSource, u128>>,
}

/// A table, the number of one of its shards (0: the whole table), and the replica that has told the UUID.
type UuidSource = (TableKey, u32, ReplicaId);

/// Known answers of the backend, and the means to ask for more.
enum Learnt {
    ClickHouse(OfClickHouse),
    Sql(OfSql),
}

/// Answers about a database that takes SQL. The gateway itself knows the users, and the database describes
/// its tables. Each answer is kept for a fixed time.
struct OfSql {
    backend: Arc<dyn SqlBackend>,
    accounts: Remembered<UserKey, Account>,
    tables: Remembered<TableKey, TableSchema>,
}

struct OfClickHouse {
    client: Arc<Client>,
    pulse: Pulse,
    accounts: Arc<Accounts>,
    own: Catalog,
    others: Mutex<HashMap<Credentials, Arc<Catalog>>>,
}

/// Answers of the backend that an admission is based on.
#[derive(Clone)]
pub(crate) struct Grounds {
    pub(crate) account: Arc<Account>,
    pub(crate) key: UserKey,
    pub(crate) table: TableKey,
    pub(crate) schema: Arc<TableSchema>,
    /// Moment of the question, where only the time since then tells whether the admission still holds.
    pub(crate) asked_at: Option<Moment>,
    /// The number of reloads of the settings before they were read.
    pub(crate) reloads: u64,
    /// Version of the shards at that time, for a table whose rows may be cut by them.
    pub(crate) topology: Option<u64>,
    /// Age of answers that an earlier run has kept; nothing has confirmed them since the start.
    pub(crate) kept: Option<KeptSince>,
}

impl Admission {
    pub(crate) fn new(backend: Backend, account_ttl: Duration, table_ttl: Duration, windows: Windows) -> Admission {
        let (facts, learnt) = match &backend {
            Backend::ClickHouse(it) => {
                // Nothing is known before ClickHouse has answered.
                let facts = Arc::new(Facts::default());
                let accounts = Arc::new(Accounts::new(it.client.clone(), facts.clone()));
                let viewer = UserKey::of(&it.client.endpoint().credentials);
                let own = Catalog::new(it.client.clone(), accounts.clone(), viewer, account_ttl);
                let (client, pulse) = (it.client.clone(), Pulse::of(it.client.clone()));
                let others = Mutex::default();
                (facts, Learnt::ClickHouse(OfClickHouse { client, pulse, accounts, own, others }))
            }
            Backend::Sql(it) => {
                let (accounts, tables) = (Remembered::new(account_ttl), Remembered::new(table_ttl));
                let facts = Arc::new(Facts::new(it.facts()));
                (facts, Learnt::Sql(OfSql { backend: it.clone(), accounts, tables }))
            }
        };
        let cluster = backend.clickhouse().and_then(|clickhouse| clickhouse.cluster.clone());
        Admission {
            shards: cluster.map(|cluster| Shards::new(cluster, account_ttl, table_ttl, &windows)),
            kept: None,
            uuids: Mutex::default(),
            facts,
            backend,
            learnt,
            account_ttl,
            table_ttl,
            doubted_at: AtomicU64::new(0),
            doubted_tables: DoubtedTables::default(),
            reloads: AtomicU64::new(0),
            windows,
        }
    }

    pub(crate) fn backend(&self) -> &Backend {
        &self.backend
    }

    /// Doubts all answers, since schemas and privileges may have changed: an answer holds again when a
    /// question that begins from now on has confirmed it.
    pub(crate) fn doubt(&self) {
        self.doubted_at.fetch_max(Moment::now().as_micros(), Ordering::AcqRel);
        if let Learnt::Sql(it) = &self.learnt {
            it.accounts.clear();
            it.tables.clear();
        }
        self.shards.iter().for_each(Shards::doubt);
    }

    /// Doubts the answers about these tables alone: the named ones, those that hand rows on to them through a
    /// view or shards, and those whose views are not known.
    pub(crate) fn doubt_tables(&self, names: &[TableName]) {
        let Learnt::ClickHouse(it) = &self.learnt else { return self.doubt() };
        let now = Moment::now();
        let mut doubted = it.concerned_by(names);
        if let Some(shards) = &self.shards {
            shards.doubt_tables(names);
            doubted.extend(shards.over_any(names));
        }
        let doubted = names.iter().cloned().chain(doubted.into_iter().map(name_of));
        if self.doubted_tables.doubt(doubted, now, self.table_ttl).is_err() {
            self.doubt();
        }
    }

    fn concerned_by(&self, names: &[TableName]) -> Vec<TableKey> {
        match &self.learnt {
            Learnt::ClickHouse(it) => it.concerned_by(names),
            Learnt::Sql(_) => Vec::new(),
        }
    }

    /// Notes a reload of the settings: admissions under the former ones have to be worked out anew.
    pub(crate) fn settings_changed(&self) {
        self.reloads.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn reloads(&self) -> u64 {
        self.reloads.load(Ordering::Acquire)
    }

    /// Says whether the backend has ever answered.
    pub(crate) fn backend_has_answered(&self) -> bool {
        match &self.learnt {
            Learnt::ClickHouse(it) => it.client.has_answered(),
            Learnt::Sql(_) => true,
        }
    }

    pub(crate) fn doubted_at(&self) -> Moment {
        Moment::of_micros(self.doubted_at.load(Ordering::Acquire))
    }

    /// Returns the moment since which an account must have been confirmed to hold at `now`.
    fn account_since(&self, now: Moment) -> Moment {
        now.before(self.account_ttl).max(self.doubted_at())
    }

    fn table_since(&self, now: Moment) -> Moment {
        now.before(self.table_ttl).max(self.doubted_at())
    }

    /// Returns the moment before which an answer says nothing of this table, whatever it says of others.
    pub(crate) fn doubted_table_at(&self, key: &TableKey, confirmed: Moment) -> Moment {
        self.doubted_tables.at(key, confirmed)
    }

    /// Returns the moment of the last doubt: an earlier answer may say nothing of some table or account.
    pub(crate) fn last_doubt(&self) -> Moment {
        self.doubted_at().max(self.doubted_tables.last())
    }

    pub(crate) async fn account(&self, key: &UserKey) -> Result<Arc<Account>, NotAdmitted> {
        self.account_at(key, Moment::default()).await
    }

    /// Returns the account as it was at `since` or later.
    pub(crate) async fn account_at(&self, key: &UserKey, since: Moment) -> Result<Arc<Account>, NotAdmitted> {
        match &self.learnt {
            Learnt::ClickHouse(it) => it.accounts.get(key, self.account_since(Moment::now()).max(since)).await,
            Learnt::Sql(it) => it.accounts.get(key, async || it.backend.account(key)).await,
        }
    }

    /// Returns the user's context in the database that the request names. If the backend can't be asked, the
    /// context is the last known one.
    pub(crate) async fn user(&self, key: UserKey) -> Result<Arc<UserContext>, NotAdmitted> {
        Ok(self.account_of_late(&key).await?.context_in(key.database.as_deref()))
    }

    async fn account_of_late(&self, key: &UserKey) -> Result<Arc<Account>, NotAdmitted> {
        match self.unless_away(self.account(key)).await {
            Err(error @ (NotAdmitted::Unreachable(_) | NotAdmitted::Busy)) => self.known_account(key).ok_or(error),
            account => account,
        }
    }

    /// Returns the user's context if it is known, without asking.
    pub(crate) fn known_user(&self, key: &UserKey) -> Option<Arc<UserContext>> {
        Some(self.known_account(key)?.context_in(key.database.as_deref()))
    }

    fn known_account(&self, key: &UserKey) -> Option<Arc<Account>> {
        match &self.learnt {
            Learnt::ClickHouse(it) => it.accounts.known(key).or_else(|| self.kept_account(key)),
            Learnt::Sql(it) => it.accounts.known(key),
        }
    }

    /// Says whether the table has another UUID than at the last insert into it, as far as the gateway has
    /// seen. Then an insert that was stored in the former table is no repeat in this one.
    pub(crate) fn is_made_anew(&self, key: &TableKey, schema: &TableSchema, sharding: Option<&Sharding>) -> bool {
        let whole = (schema.is_replicated && sharding.is_none()).then_some((0, schema));
        let of_shards = sharding.iter().flat_map(|sharding| sharding.locals());
        let mut uuids = self.uuids.lock().unwrap_or_else(PoisonError::into_inner);
        if uuids.len() >= MOST_UUIDS {
            uuids.clear();
        }
        let mut is_new = false;
        for (shard, local) in whole.into_iter().chain(of_shards).filter(|(_, schema)| schema.uuid != 0) {
            let before = uuids.insert((key.clone(), shard, local.said_by), local.uuid);
            is_new |= before.is_some_and(|before| before != local.uuid);
        }
        is_new
    }

    /// Returns the table as it is for everyone. It is asked for with the gateway's own credentials, which
    /// usually see more, or else with the client's.
    pub(crate) async fn table(&self, key: &TableKey, asker: &UserKey) -> Result<Arc<TableSchema>, NotAdmitted> {
        self.table_at(key, asker, Moment::default()).await
    }

    /// Returns the table as it was at `since` or later.
    pub(crate) async fn table_at(
        &self,
        key: &TableKey,
        asker: &UserKey,
        since: Moment,
    ) -> Result<Arc<TableSchema>, NotAdmitted> {
        match &self.learnt {
            Learnt::ClickHouse(it) => {
                let doubted = self.doubted_table_at(key, Moment::default());
                it.table(key, asker, self.table_since(Moment::now()).max(since), doubted).await
            }
            Learnt::Sql(it) => it.tables.get(key, || it.backend.schema(key)).await,
        }
    }

    /// Says whether an admission that is based on these answers holds now.
    pub(crate) fn holds(&self, grounds: &Grounds, now: Moment) -> Holds {
        let Grounds { account, table, schema, asked_at, .. } = grounds;
        if account.standing.is_over() || schema.standing.is_over() {
            return Holds::Not;
        }
        if grounds.topology.is_some() && grounds.topology != self.topology_of(schema) {
            return Holds::Not;
        }
        // By other rules it may be another answer; but while the backend is away there is none.
        if grounds.reloads != self.reloads() || grounds.kept.is_some() {
            return Holds::Unconfirmed;
        }
        let (account_since, table_since) = (self.account_since(now), self.table_since(now));
        let confirmed = schema.confirmed();
        let is_in_time = account.standing.confirmed() >= account_since
            && confirmed >= table_since
            && asked_at.is_none_or(|asked_at| asked_at >= account_since)
            && self.is_beyond_doubt(table, asked_at.map_or(confirmed, |asked_at| asked_at.min(confirmed)));
        if is_in_time {
            Holds::Surely
        } else {
            Holds::Unconfirmed
        }
    }

    /// Says whether an answer of the moment `answered` is later than the last doubt of the table.
    fn is_beyond_doubt(&self, table: &TableKey, answered: Moment) -> bool {
        answered >= self.doubted_table_at(table, answered)
    }

    /// Returns the age of the oldest answer that the admission is based on.
    pub(crate) fn age(&self, grounds: &Grounds) -> Duration {
        grounds.kept.map_or_else(|| self.confirmed(grounds).elapsed(), |kept| kept.age())
    }

    /// Returns the moment at which the oldest question that the admission is based on began.
    fn confirmed(&self, grounds: &Grounds) -> Moment {
        let confirmed = grounds.account.standing.confirmed().min(grounds.schema.confirmed());
        confirmed.min(grounds.asked_at.unwrap_or(confirmed))
    }

    /// Starts a new confirmation once half of the time has passed, so that no insert has to wait when the
    /// rest has passed, too. Returns true where only time can tell whether the admission holds: then one
    /// caller has to ask anew.
    pub(crate) fn renew(&self, grounds: &Grounds, now: Moment) -> bool {
        let Learnt::ClickHouse(it) = &self.learnt else { return self.is_half_over(grounds, now) };
        if grounds.kept.is_some() {
            return true;
        }
        let since = now.before(self.account_ttl / 2).max(self.doubted_at());
        let standing = &grounds.account.standing;
        if standing.confirmed() < since && standing.begin_renewal() {
            it.accounts.renew(&grounds.key, since);
        }
        let since = now.before(self.table_ttl / 2).max(self.doubted_at());
        if let Some(watch) = grounds.schema.watch.as_ref().filter(|_| grounds.schema.confirmed() < since) {
            if watch.begin_renewal() {
                it.catalog_of(watch, &grounds.key).begin_look(since);
            }
        }
        self.is_half_over(grounds, now)
    }

    fn is_half_over(&self, grounds: &Grounds, now: Moment) -> bool {
        let half = now.before(self.account_ttl.min(self.table_ttl) / 2);
        let by_time = match grounds.schema.watch {
            Some(_) => grounds.asked_at,
            None => Some(grounds.asked_at.unwrap_or(grounds.schema.confirmed())),
        };
        by_time.is_some_and(|asked_at| asked_at < half)
    }

    /// Returns the earliest moment of answers that a renewal may use: half of the time ago.
    pub(crate) fn half_time(&self) -> Moment {
        Moment::now().before(self.account_ttl.min(self.table_ttl) / 2)
    }

    /// Says whether the backend could not be asked lately.
    pub(crate) fn is_failing(&self) -> bool {
        match &self.learnt {
            Learnt::ClickHouse(it) => it.own.is_failing(),
            Learnt::Sql(_) => false,
        }
    }

    /// Ends when the backend is found to be away.
    pub(crate) async fn backend_stops(&self) {
        match &self.learnt {
            Learnt::ClickHouse(it) => it.pulse.stops().await,
            Learnt::Sql(_) => std::future::pending().await,
        }
    }

    /// Waits for the answer, or returns an error when the backend is found to be away: for callers that don't
    /// wait until it is back.
    pub(crate) async fn unless_away<T>(
        &self,
        asked: impl Future<Output = Result<T, NotAdmitted>>,
    ) -> Result<T, NotAdmitted> {
        tokio::select! {
            biased;
            answer = asked => answer,
            () = self.backend_stops() => Err(NotAdmitted::Unreachable("it does not answer".to_owned())),
        }
    }

    /// Waits until these answers are confirmed as of `since`, or are known not to be true any more.
    pub(crate) async fn confirm(&self, grounds: &Grounds, since: Moment) -> Result<(), NotAdmitted> {
        let Learnt::ClickHouse(it) = &self.learnt else { return Ok(()) };
        let now = Moment::now();
        let (account_since, table_since) = (self.account_since(now).max(since), self.table_since(now).max(since));
        let account = async {
            match grounds.account.standing.confirmed() < account_since {
                true => it.accounts.get(&grounds.key, account_since).await.map(|_| ()),
                false => Ok(()),
            }
        };
        let doubted = self.doubted_table_at(&grounds.table, grounds.schema.confirmed());
        let table = async {
            if grounds.schema.confirmed() < doubted {
                return it.table(&grounds.table, &grounds.key, table_since, doubted).await.map(drop);
            }
            match &grounds.schema.watch {
                Some(watch) if grounds.schema.confirmed() < table_since => {
                    it.catalog_of(watch, &grounds.key).look(table_since).await
                }
                _ => Ok(()),
            }
        };
        let (account, table) = tokio::join!(account, table);
        account.and(table)
    }

    /// Returns the moment at which the earliest question under way about these answers began.
    pub(crate) fn asking_since(&self, grounds: &Grounds) -> Option<Moment> {
        let Learnt::ClickHouse(it) = &self.learnt else { return None };
        let account = it.accounts.asking_since(&grounds.key);
        let watch = grounds.schema.watch.as_ref();
        let table = watch.and_then(|watch| it.catalog_of(watch, &grounds.key).looking_since());
        account.into_iter().chain(table).min()
    }

    /// Says whether the last attempt to have these answers confirmed failed.
    pub(crate) fn has_failed_lately(&self, grounds: &Grounds) -> bool {
        // Nothing could be asked yet about answers that were kept.
        if grounds.kept.is_some() {
            return true;
        }
        let since = self.doubted_at();
        let watch = grounds.schema.watch.as_deref();
        // A question of before says nothing of what was done to the table.
        if !self.is_beyond_doubt(&grounds.table, grounds.schema.confirmed()) {
            return false;
        }
        let standings = [Some(&grounds.account.standing), Some(&grounds.schema.standing), watch];
        standings.into_iter().flatten().any(|standing| standing.has_failed_lately(since))
    }

    /// Asks for the table as it is now, with the gateway's own account. An error has the backend's words.
    pub(crate) async fn table_anew(&self, key: &TableKey) -> Result<TableSchema, CallError> {
        match &self.learnt {
            Learnt::ClickHouse(it) => schema::ask_as(&it.client, key, &it.client.endpoint().credentials).await,
            Learnt::Sql(it) => it.backend.schema_anew(key).await.map_err(CallError::Exception),
        }
    }

    /// Returns all ids that the deduplication index may know the tables of a database by, of tables that this
    /// user sees. `None`: they can't be found out.
    pub(crate) async fn tables_of(&self, database: &str, asker: &UserKey) -> Option<Vec<u128>> {
        let Learnt::ClickHouse(it) = &self.learnt else { return None };
        let question = "SELECT name, toString(uuid) FROM system.tables WHERE database = {database:String} \
                        FORMAT JSONCompactEachRow";
        let call =
            asker.roles.iter().fold(Call::new(&asker.credentials, question), |call, role| call.param("role", role));
        let answer = it.client.call(call.param("param_database", database).timeout(QUESTION_TIMEOUT)).await.ok()?;
        let mut known = Vec::new();
        for line in answer.text().lines() {
            let (table, id): (String, String) = serde_json::from_str(line).ok()?;
            known.extend(schema::uuid(&id).filter(|uuid| *uuid != 0));
            known.push(table_by_name(database, &table));
        }
        Some(known)
    }

    /// Forgets the table, which has changed: the next caller gets a new answer.
    pub(crate) fn forget_table(&self, key: &TableKey) {
        match &self.learnt {
            Learnt::ClickHouse(it) => {
                let others = it.others.lock().unwrap_or_else(PoisonError::into_inner);
                let forgotten = others.values().map(|other| other.forget(key)).chain([it.own.forget(key)]);
                for schema in forgotten.flatten() {
                    self.shards_of(&schema).inspect(|(shards, distributed)| shards.forget_table(distributed));
                }
            }
            Learnt::Sql(it) => it.tables.doubt(key, Duration::ZERO),
        }
    }

    /// Returns the Distributed tables whose rows were cut for this table of the shards.
    pub(crate) fn distributed_over(&self, local: &TableKey) -> Vec<TableKey> {
        self.shards.as_ref().map(|shards| shards.over(local)).unwrap_or_default()
    }

    /// Asks whether this account may insert like this: once, as long as account and table are the same.
    pub(crate) async fn probe(
        &self,
        probe: Probe<'_>,
        account: &Account,
        schema: &TableSchema,
    ) -> Result<(), NotAdmitted> {
        match &self.learnt {
            Learnt::ClickHouse(it) => {
                let question = probe.question(account, schema);
                // What only time can tell is remembered with the insert's own time, not with the account.
                let is_limited = account.grants.is_none() || probe.database.is_some();
                if !is_limited && account.has_accepted(question) {
                    return Ok(());
                }
                // Never closed.
                let _turn = account.probes.acquire().await.map_err(|_| NotAdmitted::Busy)?;
                if is_limited || !account.has_accepted(question) {
                    probe.ask(&it.client).await?;
                    account.accept(question);
                }
                Ok(())
            }
            Learnt::Sql(it) => it.backend.probe(&probe.destination.credentials),
        }
    }

    /// Asks whether this account may insert into these columns of a ClickHouse table, unless its grants
    /// already say so. `settings` are those that the columns depend on.
    pub(crate) async fn may_insert(
        &self,
        key: &UserKey,
        table: &TableKey,
        columns: &str,
        settings: &[(&str, &str)],
    ) -> Result<(), NotAdmitted> {
        let Learnt::ClickHouse(it) = &self.learnt else {
            return Err(NotAdmitted::Forward(ForwardReason::Refused));
        };
        let account = self.account_of_late(key).await?;
        if account.grants.as_ref().is_some_and(|grants| grants.allow_insert(&table.database, &table.table)) {
            return Ok(());
        }
        match probe::ask_for_columns(&it.client, key, table, columns, settings).await {
            // The error says nothing of rights, so the insert may get another answer than the question.
            Err(CallError::Exception(exception)) if !exception.is_passing() && !is_about_rights(&exception) => {
                Err(NotAdmitted::refused(Refusal::exception(exception)))
            }
            answer => Ok(answer?),
        }
    }

    /// Says whether the backend grants `privilege` to the user.
    pub(crate) async fn is_granted(&self, credentials: &Credentials, privilege: &str) -> Result<bool, CallError> {
        match &self.learnt {
            Learnt::ClickHouse(it) => {
                let call = Call::new(credentials, &format!("CHECK GRANT {privilege}"));
                Ok(it.client.call(call.timeout(QUESTION_TIMEOUT)).await?.text().trim() == "1")
            }
            Learnt::Sql(it) => Ok(it.backend.access(credentials).is_some_and(|access| !access.readonly)),
        }
    }

    /// Probes an INSERT of no rows as the gateway's own account. A database that takes SQL is not asked.
    pub(crate) async fn ask_for_own(&self, probe: &Probe<'_>) -> Result<(), CallError> {
        match &self.learnt {
            Learnt::ClickHouse(it) => probe.ask(&it.client).await,
            Learnt::Sql(_) => Ok(()),
        }
    }
}

fn is_about_rights(exception: &Exception) -> bool {
    matches!(exception.code, ErrorCode::READONLY | ErrorCode::ACCESS_DENIED) || exception.is_about_identity()
}

/// Says whether an admission holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    Surely,
    /// The admission held when it was last confirmed, which is too long ago or was under former settings.
    Unconfirmed,
    /// The account, the table or the shards have changed.
    Not,
}

impl OfClickHouse {
    fn concerned_by(&self, names: &[TableName]) -> Vec<TableKey> {
        let others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        others.values().flat_map(|other| other.concerned_by(names)).chain(self.own.concerned_by(names)).collect()
    }

    /// Returns the table as it was at `since` or later. An answer from before `doubted` says nothing of it.
    async fn table(
        &self,
        key: &TableKey,
        asker: &UserKey,
        since: Moment,
        doubted: Moment,
    ) -> Result<Arc<TableSchema>, NotAdmitted> {
        match self.own.table(key, since, doubted).await {
            Err(NotAdmitted::Forward(_)) if asker.credentials != self.own.viewer().credentials => {
                self.catalog(asker).table(key, since, doubted).await
            }
            answer => answer,
        }
    }

    fn catalog(&self, viewer: &UserKey) -> Arc<Catalog> {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(catalog) = others.get(&viewer.credentials) {
            return catalog.clone();
        }
        if others.len() >= MOST_CATALOGS {
            others.clear();
        }
        let viewer = UserKey::of(&viewer.credentials);
        let (credentials, client) = (viewer.credentials.clone(), self.own.client());
        let catalog = Arc::new(Catalog::new(client, self.accounts.clone(), viewer, self.own.believes_viewer_for()));
        others.insert(credentials, catalog.clone());
        catalog
    }

    /// Returns the catalogue that a table was learnt from.
    fn catalog_of(&self, watch: &Arc<Standing>, asker: &UserKey) -> WatchedBy<'_> {
        match self.own.watches(watch) {
            true => WatchedBy::Own(&self.own),
            false => WatchedBy::Other(self.catalog(asker)),
        }
    }
}

enum WatchedBy<'a> {
    Own(&'a Catalog),
    Other(Arc<Catalog>),
}

impl std::ops::Deref for WatchedBy<'_> {
    type Target = Catalog;

    fn deref(&self) -> &Catalog {
        match self {
            WatchedBy::Own(catalog) => catalog,
            WatchedBy::Other(catalog) => catalog,
        }
    }
}
