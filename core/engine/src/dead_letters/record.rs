//! A dead letter as it is written: the outcome of the insert, then the insert's own record as the journal has it.
//!
//! | bytes | content |
//! |---|---|
//! | 1 | version: 1 |
//! | 8 | time when it was given up, in microseconds since 1970 |
//! | 4 | ClickHouse's code of the error; 0: none of ClickHouse's |
//! | 4, n | the error's text |
//! | 16 | the batch in which it was sent last |
//! | 1, 8 | 1 if it was in the journal, else 0; its number there |
//! | 8 | rows |
//! | the rest | the insert, as `crate::records` writes it |
//!
//! Numbers are little-endian. The dead letter's context, which says where the insert was to go, is the insert's.
//!
//! A message that its pipeline could not store is a record of its own kind, as `crate::records` writes it;
//! its context says which pipeline and topic the message belongs to.
//!
//! A third kind of record names dead letters that are gone: version, reason ([`Gone`]), and their ids, 8
//! bytes each.

use windrow_clickhouse::ErrorCode;

use crate::sink::BatchId;

use super::summary::DeadLetterId;

pub(super) const DEAD_LETTER: u8 = 1;
pub(super) const GONE: u8 = 2;
pub(super) const MESSAGE: u8 = 3;

const VERSION: u8 = 1;
/// The longest error text that is kept, in bytes. ClickHouse's errors may quote rows, and a longer text helps
/// no reader.
pub(super) const MAX_ERROR_BYTES: usize = 64 * 1024;

/// The part of a dead letter that the insert's own record does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DeadLetterHead {
    pub(super) failed_micros: u64,
    pub(super) code: ErrorCode,
    pub(super) error: String,
    pub(super) batch: BatchId,
    pub(super) journal_id: Option<u64>,
    pub(super) rows: u64,
}

/// The reason why a dead letter is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gone {
    /// The dead letter is an insert again.
    Retried,
    Discarded,
    /// The dead letter was older than dead letters are kept.
    Expired,
}

impl Gone {
    pub fn as_str(self) -> &'static str {
        match self {
            Gone::Retried => "retried",
            Gone::Discarded => "discarded",
            Gone::Expired => "expired",
        }
    }

    fn number(self) -> u8 {
        match self {
            Gone::Retried => 1,
            Gone::Discarded => 2,
            Gone::Expired => 3,
        }
    }
}

/// Encodes a dead letter's record: head and insert.
pub(super) fn encode_dead_letter(head: &DeadLetterHead, insert: &[u8]) -> Vec<u8> {
    let error = &head.error.as_bytes()[..head.error.len().min(MAX_ERROR_BYTES)];
    let mut out = Vec::with_capacity(64 + error.len() + insert.len());
    out.push(VERSION);
    out.extend_from_slice(&head.failed_micros.to_le_bytes());
    out.extend_from_slice(&head.code.number().to_le_bytes());
    out.extend_from_slice(&(error.len() as u32).to_le_bytes());
    out.extend_from_slice(error);
    out.extend_from_slice(&head.batch.0.to_le_bytes());
    out.push(u8::from(head.journal_id.is_some()));
    out.extend_from_slice(&head.journal_id.unwrap_or(0).to_le_bytes());
    out.extend_from_slice(&head.rows.to_le_bytes());
    out.extend_from_slice(insert);
    out
}

/// The parts of a dead letter's record.
#[derive(Debug)]
pub(super) struct DecodedRecord<'a> {
    pub(super) head: DeadLetterHead,
    pub(super) insert: &'a [u8],
}

/// Decodes a dead letter's record. Returns `None` where it is of another version, or incomplete.
pub(super) fn decode_dead_letter(record: &[u8]) -> Option<DecodedRecord<'_>> {
    let mut input = Input { left: record };
    if input.array::<1>()? != [VERSION] {
        return None;
    }
    let failed_micros = u64::from_le_bytes(input.array()?);
    let code = ErrorCode::from_number(i32::from_le_bytes(input.array()?));
    let error_bytes = usize::try_from(u32::from_le_bytes(input.array()?)).ok()?;
    let error = String::from_utf8_lossy(input.take(error_bytes)?).into_owned();
    let batch = BatchId(u128::from_le_bytes(input.array()?));
    let was_journaled = match input.array()? {
        [0] => false,
        [1] => true,
        _ => return None,
    };
    let journal_id = Some(u64::from_le_bytes(input.array()?)).filter(|_| was_journaled);
    let rows = u64::from_le_bytes(input.array()?);
    let head = DeadLetterHead { failed_micros, code, error, batch, journal_id, rows };
    Some(DecodedRecord { head, insert: input.left })
}

pub(super) fn encode_gone(ids: &[DeadLetterId], why: Gone) -> Vec<u8> {
    let mut out = Vec::with_capacity(2 + 8 * ids.len());
    out.extend_from_slice(&[VERSION, why.number()]);
    ids.iter().for_each(|id| out.extend_from_slice(&id.0.to_le_bytes()));
    out
}

/// Decodes the ids of dead letters that are gone. Returns `None` where the record is of another version, or
/// incomplete.
pub(super) fn decode_gone(record: &[u8]) -> Option<Vec<DeadLetterId>> {
    let ids = match record {
        [VERSION, 1..=3, ids @ ..] => ids,
        _ => return None,
    };
    let chunks = ids.chunks_exact(8);
    if !chunks.remainder().is_empty() {
        return None;
    }
    chunks.map(|id| id.try_into().ok().map(u64::from_le_bytes).map(DeadLetterId)).collect()
}

struct Input<'a> {
    left: &'a [u8],
}

impl<'a> Input<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, left) = self.left.split_at_checked(bytes)?;
        self.left = left;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> DeadLetterHead {
        DeadLetterHead {
            failed_micros: 1_767_268_800_000_000,
            code: ErrorCode::VIOLATED_CONSTRAINT,
            error: "Code: 469. Ünlucky".to_owned(),
            batch: BatchId(7 << 100),
            journal_id: Some(12),
            rows: 3,
        }
    }

    #[test]
    fn a_dead_letter_is_read_as_it_was_written() {
        for journal_id in [Some(0), Some(u64::MAX), None] {
            let head = DeadLetterHead { journal_id, ..head() };
            let record = encode_dead_letter(&head, b"insert");
            let taken = decode_dead_letter(&record).unwrap();
            assert_eq!((taken.head, taken.insert), (head, &b"insert"[..]));
        }
        let long = DeadLetterHead { error: "é".repeat(MAX_ERROR_BYTES), ..head() };
        assert!(decode_dead_letter(&encode_dead_letter(&long, b"")).unwrap().head.error.len() <= MAX_ERROR_BYTES);
    }

    #[test]
    fn the_layout_is_the_one_that_is_written_down() {
        let record = encode_dead_letter(&DeadLetterHead { error: "no".to_owned(), ..head() }, b"I");
        let hex: String = record.iter().map(|byte| format!("{byte:02x}")).collect();
        let expected = concat!(
            "01",
            "00f00b5552470600",
            "d5010000",
            "02000000",
            "6e6f",
            "00000000000000000000000070000000",
            "01",
            "0c00000000000000",
            "0300000000000000",
            "49"
        );
        assert_eq!(hex, expected);
    }

    #[test]
    fn what_is_not_whole_is_not_read() {
        let record = encode_dead_letter(&head(), b"");
        for end in 0..record.len() {
            assert!(decode_dead_letter(&record[..end]).is_none(), "{end} bytes");
        }
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..20_000 {
            let mut changed = record.clone();
            let at = random.usize(..changed.len());
            changed[at] = random.u8(..);
            // Never a panic; what can be read may be wrong, which the checksum of the log is for.
            let _ = decode_dead_letter(&changed);
        }
        let gone = encode_gone(&[DeadLetterId(1), DeadLetterId(u64::MAX)], Gone::Retried);
        assert_eq!(decode_gone(&gone), Some(vec![DeadLetterId(1), DeadLetterId(u64::MAX)]));
        for end in (0..gone.len()).filter(|end| !matches!(end, 2 | 10)) {
            assert_eq!(decode_gone(&gone[..end]), None, "{end} bytes");
        }
        assert_eq!(decode_gone(&[VERSION, 9]), None);
    }
}
