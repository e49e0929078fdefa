//! The records of the log of appends: JSON, each with the version of its form.
//!
//! Kind 1: an append was opened and has a staging table. Kind 2: the append is decided, and will be brought
//! into the table. Kind 3: its end. Kind 4: nothing of it is left that would have to be cleared away.

use serde::{Deserialize, Serialize};

use super::publication::Publication;
use crate::answer::Atomicity;

pub(super) const OPENED: u8 = 1;
pub(super) const DECIDED: u8 = 2;
pub(super) const ENDED: u8 = 3;
pub(super) const CLEARED: u8 = 4;
const VERSION: u8 = 1;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum Event {
    Opened {
        database: String,
        table: String,
        user: String,
    },
    Decided {
        #[serde(alias = "landing")]
        publication: Box<Publication>,
    },
    Ended {
        at_ms: u64,
        end: End,
    },
    Cleared,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum End {
    Committed {
        atomic: WrittenAtomicity,
    },
    /// No part of the append is stored.
    Nothing,
    /// The outcome can't be known; the staged rows are kept.
    Unknown {
        why: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WrittenAtomicity {
    All,
    Partition,
    Block,
}

impl From<Atomicity> for WrittenAtomicity {
    fn from(atomic: Atomicity) -> WrittenAtomicity {
        match atomic {
            Atomicity::All => WrittenAtomicity::All,
            Atomicity::Partition => WrittenAtomicity::Partition,
            Atomicity::Block => WrittenAtomicity::Block,
        }
    }
}

impl From<WrittenAtomicity> for Atomicity {
    fn from(atomic: WrittenAtomicity) -> Atomicity {
        match atomic {
            WrittenAtomicity::All => Atomicity::All,
            WrittenAtomicity::Partition => Atomicity::Partition,
            WrittenAtomicity::Block => Atomicity::Block,
        }
    }
}

impl Event {
    pub(super) fn kind(&self) -> u8 {
        match self {
            Event::Opened { .. } => OPENED,
            Event::Decided { .. } => DECIDED,
            Event::Ended { .. } => ENDED,
            Event::Cleared => CLEARED,
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Written {
    v: u8,
    /// The append's id in 32 digits.
    id: String,
    #[serde(flatten)]
    event: Event,
}

/// An event of an append.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Record {
    pub(super) id: u128,
    pub(super) event: Event,
}

impl Record {
    pub(super) fn encode(&self) -> Vec<u8> {
        let written = Written { v: VERSION, id: format!("{:032x}", self.id), event: self.event.clone() };
        serde_json::to_vec(&written).expect("a record has nothing that JSON can't hold")
    }

    /// Reads a record. Returns `None` if it is no record that is known here.
    pub(super) fn decode(kind: u8, payload: &[u8]) -> Option<Record> {
        let written: Written = serde_json::from_slice(payload).ok()?;
        let id = u128::from_str_radix(&written.id, 16).ok()?;
        (written.v == VERSION && written.event.kind() == kind).then_some(Record { id, event: written.event })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clickhouse::publication::{PlannedPart, WrittenMethod};

    fn publication() -> Publication {
        Publication {
            method: WrittenMethod::Parts,
            database: "d`".to_owned(),
            table: "t".to_owned(),
            table_uuid: "u".to_owned(),
            user: "joe".to_owned(),
            columns: vec!["a".to_owned()],
            parts: vec![PlannedPart { uuid: "x".to_owned(), partition: "all".to_owned(), rows: 7 }],
            newest_block: -1,
            has_parts: true,
            decided_at_ms: 1_700_000_000_000,
            shows_merged_ms: 480_000,
            deduplicates: false,
            unpacked_bytes: 1 << 60,
            rows: 7,
            bytes: u64::MAX,
            batches: 1,
            elapsed_ms: 3,
        }
    }

    fn records() -> Vec<Record> {
        let opened = Event::Opened { database: "d".to_owned(), table: "t".to_owned(), user: "joe".to_owned() };
        let committed = End::Committed { atomic: WrittenAtomicity::Partition };
        let unknown = End::Unknown { why: "nobody knows".to_owned() };
        let ends = [committed, End::Nothing, unknown].map(|end| Event::Ended { at_ms: 1_700_000_000_000, end });
        let events =
            [opened, Event::Decided { publication: Box::new(publication()) }, Event::Cleared].into_iter().chain(ends);
        events.map(|event| Record { id: u128::MAX - 5, event }).collect()
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        for record in records() {
            assert_eq!(Record::decode(record.event.kind(), &record.encode()), Some(record));
        }
    }

    #[test]
    fn records_are_read_that_have_the_former_names_of_fields() {
        for record in records() {
            let written = String::from_utf8(record.encode()).expect("it is JSON");
            let former = written.replace("\"publication\":", "\"landing\":").replace("\"method\":", "\"way\":");
            assert_eq!(Record::decode(record.event.kind(), former.as_bytes()), Some(record));
        }
    }

    #[test]
    fn what_is_no_record_is_none() {
        for record in records() {
            let (kind, bytes) = (record.event.kind(), record.encode());
            assert_eq!(Record::decode(kind % 4 + 1, &bytes), None, "of another kind");
            for end in 0..bytes.len() {
                assert_eq!(Record::decode(kind, &bytes[..end]), None);
            }
        }
        assert_eq!(Record::decode(CLEARED, br#"{"v":2,"id":"00","event":"cleared"}"#), None, "of a later version");
    }
}
