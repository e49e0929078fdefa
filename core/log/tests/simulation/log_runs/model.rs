//! The records that a log has to remember.

use std::collections::BTreeMap;

use crate::RecordId;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// The record was appended, and its outcome is not known.
    Queued,
    Durable,
    /// The record's commit failed: it may come back after a crash, or not.
    Failed,
    /// The record is not needed any more: it may come back as well.
    Released,
    /// The record was not there after a restart, or its commit surely failed: it never comes back.
    Gone,
}

/// The bytes of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bytes {
    pub(super) kind: u8,
    pub(super) context: Option<Vec<u8>>,
    pub(super) payload: Vec<u8>,
}

#[derive(Debug)]
struct Record {
    bytes: Bytes,
    state: State,
}

#[derive(Default)]
pub(super) struct Model {
    records: BTreeMap<RecordId, Record>,
    /// The highest id that was ever known to be on the disk.
    highest_durable: Option<RecordId>,
}

impl Model {
    pub(super) fn appended(&mut self, id: RecordId, bytes: Bytes) {
        assert!(self.highest_durable.is_none_or(|highest| highest < id), "{id:?} has been given away before");
        let latest = self.records.iter().rev().find(|(_, record)| record.state != State::Gone);
        assert!(latest.is_none_or(|(latest, _)| *latest < id), "{id:?} comes after {latest:?}");
        self.records.insert(id, Record { bytes, state: State::Queued });
    }

    pub(super) fn set(&mut self, id: RecordId, state: State) {
        let record = self.records.get_mut(&id).expect("it was appended");
        record.state = state;
        if state == State::Durable {
            self.highest_durable = self.highest_durable.max(Some(id));
        }
    }

    pub(super) fn state(&self, id: RecordId) -> State {
        self.records[&id].state
    }

    pub(super) fn bytes(&self, id: RecordId) -> &Bytes {
        &self.records[&id].bytes
    }

    pub(super) fn with(&self, state: State) -> Vec<RecordId> {
        self.records.iter().filter(|(_, record)| record.state == state).map(|(id, _)| *id).collect()
    }

    /// Checks the records that a restart found, and updates the model by them.
    pub(super) fn restarted(&mut self, found: &BTreeMap<RecordId, Bytes>) {
        for (id, found) in found {
            let record = self.records.get(id).unwrap_or_else(|| panic!("{id:?} was never appended"));
            assert_ne!(record.state, State::Gone, "{id:?} comes back, though it was not there before");
            assert_eq!(record.bytes, *found, "{id:?} has changed");
        }
        for (id, record) in &mut self.records {
            if found.contains_key(id) {
                record.state = State::Durable;
                self.highest_durable = self.highest_durable.max(Some(*id));
            } else {
                assert_ne!(record.state, State::Durable, "{id:?} was committed and is lost");
                record.state = State::Gone;
            }
        }
    }
}
