use std::collections::hash_map::RandomState;
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use windrow_clickhouse::ReplicaId;

/// The longest time that ClickHouse keeps a session that is not used.
const LONGEST_SESSION: Duration = Duration::from_secs(3600);
const MAX_SESSIONS: usize = 100_000;

/// The sessions in which a statement has changed what later statements mean: SET, USE, temporary tables,
/// roles. Inserts in them are forwarded, into the session. In all other sessions an insert means what it would
/// mean outside, and is gathered.
///
/// With several replicas, such a session stays on the replica that it was changed on.
///
/// Sessions are kept by a hash of user and id: two that share one are both taken for changed, which is slower, never
/// wrong.
#[derive(Default)]
pub(crate) struct Sessions {
    changed: Mutex<Changed>,
    hasher: RandomState,
}

struct Session {
    used: Instant,
    /// The replica that has the session, once it is known.
    replica: Option<ReplicaId>,
}

impl Session {
    fn is_over(&self, now: Instant) -> bool {
        now - self.used >= LONGEST_SESSION
    }
}

#[derive(Default)]
struct Changed {
    sessions: HashMap<u64, Session>,
    /// The time until which any session may be a changed one, because there were more than can be kept.
    lost_track_until: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SessionKey(u64);

impl Sessions {
    pub(crate) fn key(&self, user: &str, session_id: &str) -> SessionKey {
        SessionKey(self.hasher.hash_one((user, session_id)))
    }

    fn lock(&self) -> MutexGuard<'_, Changed> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks a session as changed. Returns true if it was not marked before.
    pub(crate) fn mark_changed(&self, key: SessionKey) -> bool {
        let mut changed = self.lock();
        let now = Instant::now();
        if changed.sessions.len() >= MAX_SESSIONS && !changed.sessions.contains_key(&key.0) {
            changed.sessions.retain(|_, session| !session.is_over(now));
            if changed.sessions.len() >= MAX_SESSIONS {
                changed.lost_track_until = Some(now + LONGEST_SESSION);
                return false;
            }
        }
        match changed.sessions.get_mut(&key.0) {
            Some(session) => {
                session.used = now;
                false
            }
            None => changed.sessions.insert(key.0, Session { used: now, replica: None }).is_none(),
        }
    }

    /// Returns the replica that a changed session is on.
    pub(crate) fn replica_of(&self, key: SessionKey) -> Option<ReplicaId> {
        let changed = self.lock();
        changed.sessions.get(&key.0).filter(|session| !session.is_over(Instant::now()))?.replica
    }

    /// Notes the replica of a session. If the session is a changed one, it is there from now on.
    pub(crate) fn stays_on(&self, key: SessionKey, replica: ReplicaId) {
        if let Some(session) = self.lock().sessions.get_mut(&key.0) {
            session.replica = Some(replica);
        }
    }

    /// Removes the mark of a session, because the statement that was to change it was refused to its sender.
    pub(crate) fn unmark(&self, key: SessionKey) {
        self.lock().sessions.remove(&key.0);
    }

    /// Says whether an insert in this session has to be forwarded. The question counts as use: the session
    /// lives on at the backend.
    pub(crate) fn is_changed(&self, key: SessionKey) -> bool {
        let mut changed = self.lock();
        let now = Instant::now();
        if changed.lost_track_until.is_some_and(|until| now < until) {
            return true;
        }
        match changed.sessions.get_mut(&key.0) {
            Some(session) if !session.is_over(now) => {
                session.used = now;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_changed_session_of_that_user_counts() {
        let sessions = Sessions::default();
        assert!(sessions.mark_changed(sessions.key("joe", "1")));
        assert!(!sessions.mark_changed(sessions.key("joe", "1")), "marked before");
        assert!(sessions.is_changed(sessions.key("joe", "1")));
        assert!(!sessions.is_changed(sessions.key("joe", "2")));
        assert!(!sessions.is_changed(sessions.key("ann", "1")));
        assert_eq!(sessions.replica_of(sessions.key("joe", "1")), None);
        sessions.stays_on(sessions.key("joe", "1"), ReplicaId::FIRST);
        sessions.stays_on(sessions.key("ann", "1"), ReplicaId::FIRST);
        assert!(!sessions.mark_changed(sessions.key("joe", "1")));
        assert_eq!(sessions.replica_of(sessions.key("joe", "1")), Some(ReplicaId::FIRST));
        assert_eq!(sessions.replica_of(sessions.key("ann", "1")), None, "never changed");
        sessions.unmark(sessions.key("joe", "1"));
        assert!(!sessions.is_changed(sessions.key("joe", "1")));
    }

    #[test]
    fn a_flood_of_sessions_makes_all_of_them_suspect() {
        let sessions = Sessions::default();
        for id in 0..=MAX_SESSIONS {
            sessions.mark_changed(sessions.key("joe", &id.to_string()));
        }
        assert!(sessions.is_changed(sessions.key("ann", "never seen")));
        assert!(sessions.lock().sessions.len() <= MAX_SESSIONS);
    }
}
