use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// ClickHouse keeps no session longer than this without use.
const LONGEST_SESSION: Duration = Duration::from_secs(3600);
const MAX_SESSIONS: usize = 100_000;

/// The sessions in which a statement has changed what later ones mean: SET, USE, temporary tables, roles. Inserts in them
/// are forwarded, into the session. In all other sessions an insert means what it would mean outside, and is gathered.
#[derive(Default)]
pub(crate) struct Sessions {
    changed: Mutex<HashMap<SessionKey, Instant>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct SessionKey {
    pub(crate) user: String,
    pub(crate) session_id: String,
}

impl Sessions {
    pub(crate) fn mark_changed(&self, key: SessionKey) {
        let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        if changed.len() >= MAX_SESSIONS {
            changed.retain(|_, used| used.elapsed() < LONGEST_SESSION);
        }
        changed.insert(key, Instant::now());
    }

    /// Whether an insert in this session has to be forwarded. Looking counts as use: the session lives on at the backend.
    pub(crate) fn is_changed(&self, key: &SessionKey) -> bool {
        let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        // A flood of sessions can't be told apart any more: then all are taken for changed.
        if changed.len() >= MAX_SESSIONS {
            return true;
        }
        match changed.get_mut(key) {
            Some(used) if used.elapsed() < LONGEST_SESSION => {
                *used = Instant::now();
                true
            }
            Some(_) => {
                changed.remove(key);
                false
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_changed_session_of_that_user_counts() {
        let key = |user: &str, id: &str| SessionKey { user: user.into(), session_id: id.into() };
        let sessions = Sessions::default();
        sessions.mark_changed(key("joe", "1"));
        assert!(sessions.is_changed(&key("joe", "1")));
        assert!(!sessions.is_changed(&key("joe", "2")));
        assert!(!sessions.is_changed(&key("ann", "1")));
    }
}
