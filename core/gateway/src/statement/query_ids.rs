//! The query ids that requests through this gateway use.
//!
//! ClickHouse runs no two queries of one id at a time, whoever sends them: the second is refused (code 216). An insert
//! that waits to be stored has no query there; only its batch will have one, with an id of its own. So the ids of such
//! inserts are kept here, and those of forwarded requests beside them: an insert whose id a forwarded request has is
//! forwarded too, and ClickHouse decides. Ids that were generated collide with nothing and are not kept.
//!
//! An entry lives as long as its request, so there are no more entries than connections.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

#[derive(Clone, Default)]
pub(crate) struct QueryIds {
    uses: Arc<Mutex<HashMap<Arc<str>, IdUse>>>,
}

enum IdUse {
    /// An insert of this user. A request that waits for its end has a receiver; the sender is dropped with the entry.
    Insert { user: String, ended: Option<watch::Sender<()>> },
    /// Forwarded requests, by their number. ClickHouse decides between them.
    Forwarded(usize),
}

/// A claim of an id, which stays in use until the claim is dropped.
pub(crate) struct Claim {
    ids: QueryIds,
    id: Arc<str>,
}

/// The request that has an id already.
pub(crate) enum InUse {
    ByInsert { user: String, ended: Ended },
    ByForwarded,
}

/// The end of an insert that has an id which another request asks for.
pub(crate) struct Ended(watch::Receiver<()>);

impl Ended {
    pub(crate) async fn wait(mut self) {
        // Nothing is ever sent: the channel closes.
        while self.0.changed().await.is_ok() {}
    }
}

impl QueryIds {
    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, IdUse>> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn claim_for_insert(&self, id: &str, user: &str) -> Result<Claim, InUse> {
        let mut uses = self.lock();
        match uses.get_mut(id) {
            Some(using) => Err(using.in_use()),
            None => {
                let id: Arc<str> = Arc::from(id);
                uses.insert(id.clone(), IdUse::Insert { user: user.to_owned(), ended: None });
                Ok(Claim { ids: self.clone(), id })
            }
        }
    }

    pub(crate) fn claim_for_forwarded(&self, id: &str) -> Result<Claim, InUse> {
        let mut uses = self.lock();
        let id: Arc<str> = match uses.get_mut(id) {
            Some(using @ IdUse::Insert { .. }) => return Err(using.in_use()),
            Some(IdUse::Forwarded(requests)) => {
                *requests += 1;
                Arc::from(id)
            }
            None => {
                let id: Arc<str> = Arc::from(id);
                uses.insert(id.clone(), IdUse::Forwarded(1));
                id
            }
        };
        Ok(Claim { ids: self.clone(), id })
    }
}

impl IdUse {
    fn in_use(&mut self) -> InUse {
        match self {
            IdUse::Forwarded(_) => InUse::ByForwarded,
            IdUse::Insert { user, ended } => {
                let sender = ended.get_or_insert_with(|| watch::Sender::new(()));
                InUse::ByInsert { user: user.clone(), ended: Ended(sender.subscribe()) }
            }
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut uses = self.ids.lock();
        match uses.get_mut(&self.id) {
            Some(IdUse::Forwarded(requests)) if *requests > 1 => *requests -= 1,
            _ => {
                uses.remove(&self.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_insert_has_its_id_alone() {
        let ids = QueryIds::default();
        let first = ids.claim_for_insert("x", "joe").ok();
        assert!(first.is_some());
        assert!(ids.claim_for_insert("y", "joe").is_ok());
        assert!(
            matches!(ids.claim_for_insert("x", "ann"), Err(InUse::ByInsert { user, .. }) if user == "joe"),
            "whoever asks"
        );
        assert!(matches!(ids.claim_for_forwarded("x"), Err(InUse::ByInsert { .. })));
        drop(first);
        assert!(ids.claim_for_forwarded("x").is_ok());
        assert!(ids.lock().is_empty(), "nothing is left of what has ended");
    }

    #[test]
    fn forwarded_requests_share_an_id_and_keep_inserts_away() {
        let ids = QueryIds::default();
        let (one, two) = (ids.claim_for_forwarded("x").ok(), ids.claim_for_forwarded("x").ok());
        assert!(one.is_some() && two.is_some());
        drop(one);
        assert!(matches!(ids.claim_for_insert("x", "joe"), Err(InUse::ByForwarded)));
        drop(two);
        assert!(ids.claim_for_insert("x", "joe").is_ok());
    }

    #[tokio::test]
    async fn the_end_of_an_insert_is_told() {
        let ids = QueryIds::default();
        let first = ids.claim_for_insert("x", "joe").ok();
        let Err(InUse::ByInsert { ended, .. }) = ids.claim_for_insert("x", "joe") else { panic!("x is in use") };
        let end = tokio::spawn(ended.wait());
        drop(first);
        end.await.unwrap();
        assert!(ids.claim_for_insert("x", "joe").is_ok());
    }
}
