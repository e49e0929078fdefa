//! Prepared statements, by handle: the owner of each, its text, and the parameters that were bound last.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use bytes::Bytes;
use windrow_clickhouse::{Credentials, ErrorCode, Exception};

use crate::error;
use crate::login::Caller;

const MAX_STATEMENTS: usize = 10_000;
const MAX_BYTES: usize = 64 << 20;
const IDLE: Duration = Duration::from_secs(3600);

/// A statement that a client is going to run.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) sql: String,
    pub(crate) bound: Option<RecordBatch>,
}

#[derive(Default)]
pub(crate) struct Statements {
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    statements: HashMap<Bytes, Entry>,
    bytes: usize,
}

struct Entry {
    owner: Credentials,
    prepared: Prepared,
    used: Instant,
    bytes: usize,
}

impl Statements {
    pub(crate) fn add(&self, caller: &Caller, sql: String) -> Result<Bytes, Exception> {
        let handle =
            crate::login::random_name().map_err(|error| error::own(ErrorCode::STD_EXCEPTION, &error.to_string()))?;
        let handle = Bytes::from(handle);
        let prepared = Prepared { sql, bound: None };
        self.lock().keep(handle.clone(), caller.credentials.clone(), prepared)?;
        Ok(handle)
    }

    pub(crate) fn get(&self, caller: &Caller, handle: &Bytes) -> Result<Prepared, Exception> {
        let mut held = self.lock();
        let entry = held.statements.get_mut(handle).filter(|entry| entry.owner == caller.credentials);
        let entry = entry
            .ok_or_else(|| error::own(ErrorCode::BAD_ARGUMENTS, "there is no such prepared statement, or no longer"))?;
        entry.used = Instant::now();
        Ok(entry.prepared.clone())
    }

    pub(crate) fn bind(&self, caller: &Caller, handle: &Bytes, bound: RecordBatch) -> Result<(), Exception> {
        let prepared = Prepared { bound: Some(bound), ..self.get(caller, handle)? };
        self.lock().keep(handle.clone(), caller.credentials.clone(), prepared)
    }

    pub(crate) fn close(&self, caller: &Caller, handle: &Bytes) {
        let mut held = self.lock();
        if held.statements.get(handle).is_some_and(|entry| entry.owner == caller.credentials) {
            held.remove(handle);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn keep(&mut self, handle: Bytes, owner: Credentials, prepared: Prepared) -> Result<(), Exception> {
        let bound_bytes = prepared.bound.as_ref().map_or(0, RecordBatch::get_array_memory_size);
        let bytes = prepared.sql.len() + bound_bytes + 256;
        self.remove(&handle);
        if self.is_full(bytes) {
            let now = Instant::now();
            let idle = |entry: &Entry| now.duration_since(entry.used) >= IDLE;
            let handles: Vec<_> =
                self.statements.iter().filter(|(_, entry)| idle(entry)).map(|(handle, _)| handle.clone()).collect();
            handles.iter().for_each(|handle| self.remove(handle));
        }
        if self.is_full(bytes) {
            return Err(error::own(
                ErrorCode::TOO_MANY_SIMULTANEOUS_QUERIES,
                "there are too many prepared statements, or too large ones: close some",
            ));
        }
        self.bytes += bytes;
        self.statements.insert(handle, Entry { owner, prepared, used: Instant::now(), bytes });
        Ok(())
    }

    fn is_full(&self, more_bytes: usize) -> bool {
        self.statements.len() >= MAX_STATEMENTS || self.bytes.saturating_add(more_bytes) > MAX_BYTES
    }

    fn remove(&mut self, handle: &Bytes) {
        if let Some(entry) = self.statements.remove(handle) {
            self.bytes -= entry.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(user: &str) -> Caller {
        let credentials = Credentials { user: user.into(), password: String::new() };
        Caller { credentials, readonly: false, database: None }
    }

    #[test]
    fn a_statement_is_its_makers_alone() {
        let (statements, joe, ann) = (Statements::default(), caller("joe"), caller("ann"));
        let handle = statements.add(&joe, "SELECT 1".into()).unwrap();
        assert_eq!(statements.get(&joe, &handle).unwrap().sql, "SELECT 1");
        assert!(statements.get(&ann, &handle).is_err());
        statements.close(&ann, &handle);
        assert!(statements.get(&joe, &handle).is_ok());
        statements.close(&joe, &handle);
        assert!(statements.get(&joe, &handle).is_err());
        assert_eq!(statements.lock().bytes, 0);
    }

    #[test]
    fn they_are_bounded_in_bytes() {
        let (statements, joe) = (Statements::default(), caller("joe"));
        let long = "x".repeat(MAX_BYTES / 3);
        let first = statements.add(&joe, long.clone()).unwrap();
        statements.add(&joe, long.clone()).unwrap();
        assert_eq!(statements.add(&joe, long.clone()).unwrap_err().code, ErrorCode::TOO_MANY_SIMULTANEOUS_QUERIES);
        statements.close(&joe, &first);
        statements.add(&joe, long).unwrap();
    }
}
