//! Accounts, as the backend knows them: an account is a user with a password, roles and a quota key.
//!
//! Three questions, asked with the account's own credentials, tell everything about it that bears on inserts:
//! its settings, quota and roles; SHOW GRANTS for its own grants; SHOW GRANTS for those of all its roles as
//! well. The answers together are its *fingerprint*. While an account is in use, the questions are asked
//! again every half of `gather.admission_ttl_ms`. As long as the fingerprint is the same, everything that
//! ClickHouse has accepted of the account still holds, however many tables and settings that concerns. When
//! the fingerprint has changed, everything is asked anew. ClickHouse refuses the questions where the password
//! is no longer valid or the quota is used up.
//!
//! SHOW GRANTS does not list the grants of roles that a request names, and an older server doesn't know
//! `WITH IMPLICIT FINAL`. For such an account, ClickHouse is asked about each kind of insert by itself, as
//! often as `gather.admission_ttl_ms` says.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;
use windrow_clickhouse::{Call, CallError, Client};

use super::facts::Facts;
use super::grants::Grants;
use super::rounds::{Answers, Rounds};
use super::standing::{Moment, Standing};
use super::user::{self, UserContext, UserKey};
use super::{NotAdmitted, QUESTION_TIMEOUT};

/// Bound of the questions that ClickHouse is known to accept of one account. Beyond it, all are asked again.
const MOST_ACCEPTED: usize = 20_000;
/// Bound of the INSERTs of no rows that are under way for one account at a time.
const PROBES_AT_ONCE: usize = 4;
/// Bound of the known accounts. More are a flood of names that don't exist: then unused ones are forgotten.
const MOST_ACCOUNTS: usize = 10_000;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct AccountKey {
    pub(crate) credentials: windrow_clickhouse::Credentials,
    pub(crate) roles: Vec<String>,
    pub(crate) quota_key: String,
}

impl AccountKey {
    pub(super) fn of(key: &UserKey) -> AccountKey {
        let UserKey { credentials, roles, quota_key, .. } = key.clone();
        AccountKey { credentials, roles, quota_key }
    }

    /// Makes a call with the account's credentials, roles and quota key.
    pub(super) fn call<'a>(&'a self, query: &str) -> Call<'a> {
        let mut call = Call::new(&self.credentials, query).timeout(QUESTION_TIMEOUT);
        for role in &self.roles {
            call = call.param("role", role);
        }
        match self.quota_key.is_empty() {
            true => call,
            false => call.param("quota_key", &self.quota_key),
        }
    }
}

/// Answers of the backend about one account, which hold as long as the account's fingerprint is the same.
pub(crate) struct Account {
    pub(crate) context: Arc<UserContext>,
    /// Grants of the account. `None`: its rights can't be told without asking about each table.
    pub(crate) grants: Option<Grants>,
    pub(crate) standing: Standing,
    fingerprint: u64,
    /// Hashes of the questions that ClickHouse has accepted. Nobody outside can foresee a hash.
    accepted: Mutex<HashSet<u64>>,
    pub(super) hasher: RandomState,
    pub(super) probes: Semaphore,
}

impl Account {
    pub(crate) fn new(context: UserContext, grants: Option<Grants>, fingerprint: u64, began: Moment) -> Account {
        Account {
            context: Arc::new(context),
            grants,
            standing: Standing::confirmed_at(began),
            fingerprint,
            accepted: Mutex::default(),
            hasher: RandomState::new(),
            probes: Semaphore::new(PROBES_AT_ONCE),
        }
    }

    /// Returns the user's context, in the database that a request names, if it names one.
    pub(crate) fn context_in(&self, database: Option<&str>) -> Arc<UserContext> {
        match database.filter(|database| *database != self.context.database) {
            None => self.context.clone(),
            Some(database) => Arc::new(UserContext { database: database.to_owned(), ..(*self.context).clone() }),
        }
    }

    pub(super) fn has_accepted(&self, question: u64) -> bool {
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner).contains(&question)
    }

    pub(super) fn accept(&self, question: u64) {
        let mut accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        if accepted.len() >= MOST_ACCEPTED {
            accepted.clear();
        }
        accepted.insert(question);
    }
}

type Answer = Result<Arc<Account>, NotAdmitted>;

struct AccountEntry {
    rounds: Arc<Rounds<(), Answer>>,
    account: Arc<Mutex<Option<Arc<Account>>>>,
}

/// The accounts that are in use.
pub(crate) struct Accounts {
    client: Arc<Client>,
    facts: Arc<Facts>,
    hasher: RandomState,
    entries: Mutex<HashMap<AccountKey, Arc<AccountEntry>>>,
}

impl Accounts {
    pub(super) fn new(client: Arc<Client>, facts: Arc<Facts>) -> Accounts {
        Accounts { client, facts, hasher: RandomState::new(), entries: Mutex::default() }
    }

    /// Returns the account as it was at `since` or later.
    pub(super) async fn get(&self, key: &UserKey, since: Moment) -> Answer {
        let entry = self.entry(AccountKey::of(key));
        if let Some(account) = entry.known().filter(|known| known.standing.confirmed() >= since) {
            return Ok(account);
        }
        // A round that broke off: the backend can't be asked now.
        let nobody = || NotAdmitted::Unreachable("the question was given up".to_owned());
        let answer = entry.rounds.answer((), since).await.unwrap_or_else(|| Err(nobody()));
        if let Err(NotAdmitted::Forward(_) | NotAdmitted::Refused(_)) = &answer {
            self.forget_stranger(&AccountKey::of(key), &entry);
        }
        answer
    }

    /// Forgets a name and password that ClickHouse refuses, when nobody else waits for the answer.
    fn forget_stranger(&self, key: &AccountKey, entry: &Arc<AccountEntry>) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let is_idle = entry.rounds.running_since().is_none() && entry.known().is_none();
        if is_idle && entries.get(key).is_some_and(|known| Arc::ptr_eq(known, entry)) {
            entries.remove(key);
        }
    }

    /// Asks for the account again, without waiting for the answer.
    pub(super) fn renew(&self, key: &UserKey, since: Moment) {
        self.entry(AccountKey::of(key)).rounds.begin((), since);
    }

    /// Returns the account if it is known, without asking.
    pub(super) fn known(&self, key: &UserKey) -> Option<Arc<Account>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).get(&AccountKey::of(key))?.known()
    }

    /// Returns the moment at which the questions under way about the account began.
    pub(super) fn asking_since(&self, key: &UserKey) -> Option<Moment> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.get(&AccountKey::of(key))?.rounds.running_since()
    }

    fn entry(&self, key: AccountKey) -> Arc<AccountEntry> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = entries.get(&key) {
            return entry.clone();
        }
        if entries.len() >= MOST_ACCOUNTS {
            entries.retain(|_, entry| entry.is_in_use());
        }
        if entries.len() >= MOST_ACCOUNTS {
            entries.clear();
        }
        let entry = Arc::new(self.new_entry(key.clone()));
        entries.insert(key, entry.clone());
        entry
    }

    fn new_entry(&self, key: AccountKey) -> AccountEntry {
        let account = Arc::<Mutex<Option<Arc<Account>>>>::default();
        let (client, facts, hasher) = (self.client.clone(), self.facts.clone(), self.hasher.clone());
        let kept = account.clone();
        let rounds = Rounds::new(move |_, began| {
            let (client, facts, hasher) = (client.clone(), facts.clone(), hasher.clone());
            let (key, kept) = (key.clone(), kept.clone());
            async move {
                let asked = ask(&client, &facts, &hasher, &key, began).await;
                Answers::from([((), keep(&kept, asked, began))])
            }
        });
        AccountEntry { rounds, account }
    }
}

impl AccountEntry {
    fn known(&self) -> Option<Arc<Account>> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn is_in_use(&self) -> bool {
        self.rounds.running_since().is_some() || self.known().is_some_and(|account| Arc::strong_count(&account) > 2)
    }
}

/// Keeps the known account if its fingerprint is still the same, else puts the new one in its place. A
/// refusal ends the known account; a backend that can't be asked leaves it as it is.
fn keep(kept: &Mutex<Option<Arc<Account>>>, asked: Result<Account, NotAdmitted>, began: Moment) -> Answer {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    match (asked, kept.as_ref()) {
        (Ok(account), Some(known)) if known.fingerprint == account.fingerprint => {
            known.standing.confirm(began);
            Ok(known.clone())
        }
        (Ok(account), known) => {
            known.inspect(|known| known.standing.end());
            let account = Arc::new(account);
            *kept = Some(account.clone());
            Ok(account)
        }
        // While the backend can't be asked nobody knows better.
        (Err(error @ (NotAdmitted::Unreachable(_) | NotAdmitted::Busy)), known) => {
            known.inspect(|known| known.standing.fail(began));
            Err(error)
        }
        (Err(refused), known) => {
            known.inspect(|known| known.standing.end());
            *kept = None;
            Err(refused)
        }
    }
}

async fn ask(
    client: &Client,
    facts: &Facts,
    hasher: &RandomState,
    key: &AccountKey,
    began: Moment,
) -> Result<Account, NotAdmitted> {
    // One after the other: a user may be allowed few queries at once.
    let context = user::ask(client, facts, key).await?;
    let own = ask_grants(client, key, "SHOW GRANTS FORMAT TSVRaw").await?;
    let all = ask_grants(client, key, "SHOW GRANTS WITH IMPLICIT FINAL FORMAT TSVRaw").await?;
    let fingerprint = hasher.hash_one((&context, &own, &all));
    // What roles of a request's choice may do is not among them.
    let known = own.zip(all).filter(|_| key.roles.is_empty());
    let grants = known.and_then(|(own, all)| Grants::in_force(&own, &all, &context.enabled_roles));
    Ok(Account::new(context, grants, fingerprint, began))
}

/// Returns the grants in ClickHouse's words. `None`: it refuses the question, as an older server does.
async fn ask_grants(client: &Client, key: &AccountKey, question: &str) -> Result<Option<String>, NotAdmitted> {
    match client.call(key.call(question)).await {
        Ok(answer) => Ok(Some(answer.text().to_owned())),
        Err(CallError::Exception(exception)) if !exception.is_passing() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forward_reason::ForwardReason;

    fn account(fingerprint: u64, began: Moment) -> Account {
        Account::new(UserContext::default(), None, fingerprint, began)
    }

    #[test]
    fn an_account_lives_as_long_as_its_fingerprint() {
        let kept = Mutex::new(None);
        let first = keep(&kept, Ok(account(1, Moment::default())), Moment::default()).unwrap();
        first.accept(7);
        let later = Moment::now();
        let same = keep(&kept, Ok(account(1, later)), later).unwrap();
        assert!(Arc::ptr_eq(&first, &same) && same.has_accepted(7));
        assert_eq!(same.standing.confirmed(), later);
        let away = keep(&kept, Err(NotAdmitted::Unreachable("away".into())), later);
        assert!(away.is_err() && !first.standing.is_over() && first.standing.has_failed_lately(later));
        let moved = keep(&kept, Ok(account(2, later)), later).unwrap();
        assert!(first.standing.is_over() && !moved.has_accepted(7));
        assert!(keep(&kept, Err(NotAdmitted::Forward(ForwardReason::Refused)), later).is_err());
        assert!(moved.standing.is_over() && kept.lock().unwrap().is_none());
    }
}
