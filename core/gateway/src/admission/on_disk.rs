//! Admissions for a gateway that starts while ClickHouse is away: the answers that ClickHouse gave to an
//! earlier run, out of the file `admissions` (`admissions_file.rs`).
//!
//! The file is believed only until ClickHouse has answered anything since the start. From then on
//! ClickHouse's own answers count, and the file is written anew. It admits only accounts that ClickHouse had
//! admitted (the password has to be the same), and only kinds of insert that ClickHouse had taken from that
//! account, whose clients don't wait until they are stored. Meanwhile, ClickHouse is asked about each of them
//! again and again.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use windrow_clickhouse::{Credentials, ReplicaId};

use super::account::{Account, AccountKey};
use super::admissions_file::{KeptAccount, KeptAdmissions, KeptColumn, KeptInsert, KeptServer, KeptTable, Proof};
use super::facts::BackendFacts;
use super::functions;
use super::schema::{Column, TableSchema};
use super::standing::{Moment, Standing};
use super::{Admission, Grounds, TableKey, UserKey};

/// Bound of the names and passwords that are remembered to be right. Beyond it, all are forgotten.
const MOST_PROVEN: usize = 10_000;
/// Bound of the proofs that are made at a time: each takes a tenth of a second.
const MOST_NEW_PROOFS: usize = 20;
/// Bound of the kinds of insert in a file.
const MOST_INSERTS: usize = 20_000;

pub(super) struct AdmissionsOnDisk {
    path: PathBuf,
    /// Content of the file at the start.
    read: KeptAdmissions,
    /// Accounts that have proved to be among those of the file, by name, password, roles and quota key.
    proven: Mutex<HashMap<AccountKey, Proven>>,
    /// Permit to check a password. A check takes a CPU for a while: whoever tries many has one at most.
    turn: Semaphore,
    /// Proofs of the accounts that ClickHouse admits now.
    proofs: Mutex<HashMap<Credentials, Proof>>,
    written: Mutex<Option<KeptAdmissions>>,
}

#[derive(Clone)]
struct Proven {
    at: usize,
    account: Arc<Account>,
}

/// Admission of a kind of insert by an earlier run of the gateway.
pub(crate) struct KeptGrounds {
    pub(crate) account: Arc<Account>,
    pub(crate) schema: Arc<TableSchema>,
    pub(crate) deduplicates: bool,
    pub(crate) since: KeptSince,
}

/// Age of kept answers: the age when they were read, and the moment of reading.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeptSince {
    age: Duration,
    read: Moment,
}

impl KeptSince {
    pub(super) fn age(&self) -> Duration {
        self.age + self.read.elapsed()
    }
}

/// An admission that is to be written to the file.
pub(crate) struct ToKeep<'a> {
    /// Bytes that identify the kind of insert, without the password.
    pub(crate) what: Vec<u8>,
    pub(crate) grounds: &'a Grounds,
    pub(crate) table: TableKey,
    pub(crate) deduplicates: bool,
}

impl AdmissionsOnDisk {
    pub(super) fn read(path: PathBuf) -> AdmissionsOnDisk {
        let read = KeptAdmissions::read(&path).unwrap_or_default();
        AdmissionsOnDisk {
            path,
            read,
            proven: Mutex::default(),
            turn: Semaphore::new(1),
            proofs: Mutex::default(),
            written: Mutex::default(),
        }
    }

    fn is_young(insert: &KeptInsert, ttl: Duration) -> bool {
        insert.age().is_some_and(|age| age < ttl)
    }

    pub(super) fn has_some(&self, ttl: Duration) -> bool {
        self.read
            .accounts
            .iter()
            .flat_map(|account| &account.inserts)
            .any(|insert| AdmissionsOnDisk::is_young(insert, ttl))
    }

    fn proven(&self, key: &UserKey) -> Option<Proven> {
        self.proven.lock().unwrap_or_else(PoisonError::into_inner).get(&AccountKey::of(key)).cloned()
    }

    /// Says whether ClickHouse had admitted this account with this password. Takes its time.
    async fn prove(self: &Arc<Self>, key: &UserKey, ttl: Duration) -> bool {
        if self.proven(key).is_some() {
            return true;
        }
        let AccountKey { credentials, roles, quota_key } = AccountKey::of(key);
        let is_meant = |account: &&KeptAccount| {
            (&account.user, &account.roles, &account.quota_key) == (&credentials.user, &roles, &quota_key)
                && account.inserts.iter().any(|insert| AdmissionsOnDisk::is_young(insert, ttl))
        };
        if !self.read.accounts.iter().any(|account| is_meant(&account)) {
            return false;
        }
        // Never closed.
        let Ok(_turn) = self.turn.acquire().await else { return false };
        if self.proven(key).is_some() {
            return true;
        }
        for (at, account) in self.read.accounts.iter().enumerate().filter(|(_, account)| is_meant(account)) {
            let (kept, credentials) = (self.clone(), credentials.clone());
            let proof = move || kept.read.accounts[at].proof.holds_for(&credentials);
            if tokio::task::spawn_blocking(proof).await.unwrap_or(false) {
                let account = Account::new(account.context.clone(), None, 0, Moment::default());
                let mut proven = self.proven.lock().unwrap_or_else(PoisonError::into_inner);
                if proven.len() >= MOST_PROVEN {
                    proven.clear();
                }
                proven.insert(AccountKey::of(key), Proven { at, account: Arc::new(account) });
                return true;
            }
        }
        false
    }

    fn insert(&self, key: &UserKey, what: &[u8], ttl: Duration) -> Option<KeptGrounds> {
        let Proven { at, account } = self.proven(key)?;
        let kept = &self.read.accounts[at];
        let name = kept.proof.name_of(what);
        let insert = kept.inserts.iter().find(|insert| insert.name == name)?;
        let age = insert.age().filter(|age| *age < ttl)?;
        let schema = Arc::new(self.read.tables[insert.table].schema()?);
        let since = KeptSince { age, read: Moment::now() };
        Some(KeptGrounds { account, schema, deduplicates: insert.deduplicates, since })
    }

    /// Returns a table that the account inserted into.
    fn table(&self, key: &UserKey, table: &TableKey, ttl: Duration) -> Option<TableSchema> {
        let Proven { at, .. } = self.proven(key)?;
        let young = self.read.accounts[at].inserts.iter().filter(|insert| AdmissionsOnDisk::is_young(insert, ttl));
        let mut tables = young.map(|insert| &self.read.tables[insert.table]);
        tables.find(|kept| (&kept.database, &kept.table) == (&table.database, &table.table))?.schema()
    }

    /// Writes these admissions to the file, unless they are those that were written last. Returns false where
    /// those of some accounts are missing, since their proofs would have taken too long: call it again then.
    fn keep(&self, server: KeptServer, inserts: Vec<ToKeep<'_>>, confirmed: impl Fn(&Grounds) -> u64) -> bool {
        let mut kept = KeptAdmissions { server, ..KeptAdmissions::default() };
        let (mut accounts, mut tables) = (HashMap::<AccountKey, usize>::new(), HashMap::new());
        let (mut new_proofs, mut is_whole) = (MOST_NEW_PROOFS, true);
        for ToKeep { what, grounds, table, deduplicates } in inserts.into_iter().take(MOST_INSERTS) {
            let Some(proof) = self.proof_of(&grounds.key.credentials, &mut new_proofs) else {
                is_whole = false;
                continue;
            };
            let at = *tables.entry(Arc::as_ptr(&grounds.schema)).or_insert_with(|| {
                kept.tables.push(KeptTable::of(table, &grounds.schema));
                kept.tables.len() - 1
            });
            let name = proof.name_of(&what);
            let insert = KeptInsert { name, table: at, deduplicates, confirmed: confirmed(grounds) };
            let key = AccountKey::of(&grounds.key);
            let account = *accounts.entry(key.clone()).or_insert_with(|| {
                let AccountKey { credentials, roles, quota_key } = key;
                let context = (*grounds.account.context).clone();
                let (user, inserts) = (credentials.user, Vec::new());
                kept.accounts.push(KeptAccount { user, roles, quota_key, proof, context, inserts });
                kept.accounts.len() - 1
            });
            kept.accounts[account].inserts.push(insert);
        }
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if written.as_ref() == Some(&kept) {
            return is_whole;
        }
        match kept.write(&self.path) {
            Ok(()) => *written = Some(kept),
            Err(error) => {
                let path = self.path.display();
                tracing::warn!(%path, %error, "what is known of users and tables could not be written: a gateway that starts while ClickHouse is away will not go by it");
            }
        }
        is_whole
    }

    fn proof_of(&self, credentials: &Credentials, new_proofs: &mut usize) -> Option<Proof> {
        let mut proofs = self.proofs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = proofs.get(credentials) {
            return Some(known.clone());
        }
        if proofs.len() >= MOST_PROVEN {
            proofs.clear();
        }
        *new_proofs = new_proofs.checked_sub(1)?;
        let proof = Proof::of(credentials)?;
        proofs.insert(credentials.clone(), proof.clone());
        Some(proof)
    }
}

impl KeptTable {
    fn of(key: TableKey, schema: &TableSchema) -> KeptTable {
        KeptTable {
            database: key.database,
            table: key.table,
            columns: schema.columns.iter().map(KeptColumn::of).collect(),
            gatherable: schema.gatherable,
            async_insert: schema.async_insert,
            marks: schema.marks.clone(),
            window: schema.window,
            uuid: format!("{:x}", schema.uuid),
            has_views: schema.has_views,
            keeps_none: schema.keeps_none,
            hands_on: schema.hands_on,
            is_replicated: schema.is_replicated,
            has_replicated_engine: schema.has_replicated_engine,
            partition_key: schema.partition_key.clone(),
            computes: schema.computes,
            asks_for_rights: schema.asks_for_rights,
            reads_request: schema.reads_request,
        }
    }

    fn schema(&self) -> Option<TableSchema> {
        let mut columns: Vec<Column> = self.columns.iter().map(KeptColumn::column).collect();
        functions::find_those_that_read_the_request(&mut columns);
        Some(TableSchema {
            standing: Standing::default(),
            watch: None,
            columns: columns.into_boxed_slice(),
            gatherable: self.gatherable,
            async_insert: self.async_insert,
            marks: self.marks.clone(),
            window: self.window,
            uuid: u128::from_str_radix(&self.uuid, 16).ok()?,
            has_views: self.has_views,
            fed: Box::default(),
            keeps_none: self.keeps_none,
            hands_on: self.hands_on,
            // Those whose rows are cut by shards are not kept.
            distributed: None,
            is_replicated: self.is_replicated,
            has_replicated_engine: self.has_replicated_engine,
            said_by: ReplicaId::FIRST,
            partition_key: self.partition_key.clone(),
            computes: self.computes,
            asks_for_rights: self.asks_for_rights,
            reads_request: self.reads_request,
        })
    }
}

impl KeptColumn {
    fn of(column: &Column) -> KeptColumn {
        KeptColumn {
            name: column.name.clone(),
            type_name: column.type_name.clone(),
            default_kind: column.kind_name().to_owned(),
            default_expression: column.default_expression.to_string(),
        }
    }

    fn column(&self) -> Column {
        Column::new(self.name.clone(), self.type_name.clone(), &self.default_kind, &self.default_expression)
    }
}

/// Says whether a profile's setting may hold what belongs in no file: a password, or an address with one.
fn may_hold_a_secret((name, value): &(String, String)) -> bool {
    const WORDS: [&str; 5] = ["password", "secret", "credential", "access_key", "auth"];
    WORDS.iter().any(|word| name.contains(word)) || value.contains("://")
}

impl Admission {
    /// Reads kept accounts and tables from this file.
    pub(crate) fn with_kept(mut self, path: PathBuf) -> Admission {
        self.kept = Some(Arc::new(AdmissionsOnDisk::read(path)));
        self
    }

    /// Returns the kept answers, as long as the backend has not answered since the start.
    fn kept(&self) -> Option<&Arc<AdmissionsOnDisk>> {
        self.kept.as_ref().filter(|_| !self.backend_has_answered())
    }

    /// Says whether inserts can be taken by kept answers, as long as the backend has not answered.
    pub(crate) fn goes_by_what_was_kept(&self, ttl: Duration) -> bool {
        self.kept().is_some_and(|kept| kept.has_some(ttl))
    }

    /// Says whether the backend had admitted this account before the start.
    pub(crate) async fn was_let_in(&self, key: &UserKey, ttl: Duration) -> bool {
        match self.kept() {
            Some(kept) => kept.prove(key, ttl).await,
            None => false,
        }
    }

    pub(super) fn kept_account(&self, key: &UserKey) -> Option<Arc<Account>> {
        Some(self.kept()?.proven(key)?.account)
    }

    /// Returns the kept admission of such an insert, for an account that [was let in](Self::was_let_in).
    pub(crate) fn kept_insert(&self, key: &UserKey, what: &[u8], ttl: Duration) -> Option<KeptGrounds> {
        let kept = self.kept()?;
        let found = kept.insert(key, what, ttl)?;
        let KeptServer { version_suffix, display_name, timezone } = kept.read.server.clone();
        self.facts.set_if_unknown(BackendFacts::new(version_suffix, display_name, timezone));
        Some(found)
    }

    pub(crate) fn kept_table(&self, key: &UserKey, table: &TableKey, ttl: Duration) -> Option<TableSchema> {
        self.kept()?.table(key, table, ttl)
    }

    /// Writes those of these admissions that hold now to the file, for a gateway that starts while the
    /// backend is away. Takes a while. Returns false if there is more to do.
    pub(crate) fn keep(&self, inserts: Vec<ToKeep<'_>>, ttl: Duration) -> bool {
        // Until then, what was kept is all there is.
        let Some(kept) = self.kept.as_ref().filter(|_| self.backend_has_answered()) else { return true };
        let (now, doubted_at) = (Moment::now(), self.doubted_at());
        let holds = |grounds: &Grounds| {
            let confirmed = self.confirmed(grounds);
            grounds.kept.is_none()
                && confirmed >= doubted_at
                && confirmed.elapsed() < ttl
                && self.holds(grounds, now) != super::Holds::Not
                && !grounds.account.context.changed_settings.iter().any(may_hold_a_secret)
        };
        let inserts: Vec<_> = inserts.into_iter().filter(|insert| holds(insert.grounds)).collect();
        let now = super::admissions_file::seconds_now();
        // The time is not exact to the second, so that the file is not written for every confirmation.
        let unit = (ttl.as_secs() / 10).clamp(1, 60);
        let confirmed =
            |grounds: &Grounds| now.saturating_sub(self.confirmed(grounds).elapsed().as_secs()) / unit * unit;
        kept.keep(self.facts.get().kept(), inserts, confirmed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_comes_back_as_it_was() {
        let column = |kind: &str, default: &str| Column::new("a".into(), "Array(UInt8)".into(), kind, default);
        let columns = ["", "DEFAULT", "MATERIALIZED", "EPHEMERAL", "ALIAS"].map(|kind| column(kind, "[1]"));
        let table = KeptTable {
            database: "d".into(),
            table: "t".into(),
            columns: columns.iter().map(KeptColumn::of).collect(),
            gatherable: true,
            async_insert: true,
            marks: None,
            window: super::super::Window::of_blocks(9, Some(Duration::from_secs(1))),
            uuid: format!("{:x}", u128::MAX),
            has_views: true,
            keeps_none: false,
            hands_on: false,
            is_replicated: true,
            has_replicated_engine: true,
            partition_key: "p".into(),
            computes: true,
            asks_for_rights: true,
            reads_request: true,
        };
        let schema = table.schema().unwrap();
        assert_eq!(&schema.columns[..], columns);
        assert_eq!(KeptTable::of(TableKey { database: "d".into(), table: "t".into() }, &schema), table);
    }

    #[test]
    fn a_profile_with_a_secret_in_it_is_not_written_down() {
        let is_secret = |name: &str, value: &str| may_hold_a_secret(&(name.into(), value.into()));
        assert!(is_secret("google_adc_client_secret", "x") && is_secret("some_password", ""));
        assert!(is_secret("format_avro_schema_registry_url", "http://u:p@host"));
        assert!(!is_secret("insert_deduplicate", "1") && !is_secret("input_format_null_as_default", "0"));
    }
}
