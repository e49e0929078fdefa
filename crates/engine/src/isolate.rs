//! How a refused batch is narrowed down until only the guilty inserts fail.
//!
//! A refused piece of several inserts is taken apart, in one of two ways:
//!
//! - **by a suspect**: the refusal names a row (a violated constraint does). The insert that brought it goes to the end
//!   of the line and all the others are tried again as one piece: two stores acknowledge the innocent ones, however
//!   many there are.
//! - **in halves**, where no row is named: one culprit among `n` inserts takes about 2 log2(n) stores.
//!
//! A row in an error is a hint and no verdict: each suspect is stored alone, after all others, and hears ClickHouse's
//! answer to its own insert.
//!
//! The work is bounded: halves make parts, so there are few of them; taking out a suspect makes none, so there may be
//! more, as long as the bytes that are sent again stay within a limit. Where that ends, what is left of a piece fails
//! together.
//!
//! Ids are derived: the same members of the same batch always make a piece with the same id.

use crate::sink::BatchId;
use windrow_clickhouse::Exception;
use windrow_columns::Rows;

use crate::member::{Contents, Member};

/// A batch, or a part of one, that is stored under an id of its own.
pub(crate) struct Piece {
    pub(crate) id: BatchId,
    pub(crate) contents: Contents,
}

impl Piece {
    /// A part of `batch`.
    pub(crate) fn of(batch: BatchId, contents: Contents) -> Piece {
        Piece { id: piece_id(batch, &contents.members), contents }
    }

    /// Its members have become others.
    pub(crate) fn rename(&mut self, batch: BatchId) {
        self.id = piece_id(batch, &self.contents.members);
    }
}

fn piece_id(batch: BatchId, members: &[Member]) -> BatchId {
    batch.derived(members.iter().flat_map(Member::lasting_id))
}

/// A batch full of culprits is given up here, so that a flood of bad inserts can't become a flood of tiny parts...
const MAX_HALVINGS: u32 = 128;
/// ... nor keep its table's other inserts waiting without an end.
const MAX_SUSPECTS: u32 = 512;
const MAX_BYTES_AGAIN: u64 = 256 << 20;

/// The pieces of one batch that are still to be stored, and how much more may be done to find its culprits.
pub(crate) struct Pieces {
    batch: BatchId,
    /// The next one last.
    waiting: Vec<Piece>,
    /// Inserts that were taken out by a hint, to be stored alone after all others.
    suspects: Vec<Piece>,
    halvings_left: u32,
    suspects_left: u32,
    bytes_left: u64,
    /// Whether its source has put the batch together: it would have to send the same parts again.
    is_pushed: bool,
}

/// A piece that is not taken apart any further.
pub(crate) struct Unbroken {
    pub(crate) piece: Piece,
    /// Whether it holds several inserts, some of which may be innocent.
    pub(crate) is_given_up: bool,
}

impl Pieces {
    /// `parts` are the whole batch, in order.
    pub(crate) fn new(batch: BatchId, mut parts: Vec<Contents>, is_pushed: bool) -> Pieces {
        let whole = |contents| Piece { id: batch, contents };
        let waiting = match parts.len() {
            1 => parts.drain(..).map(whole).collect(),
            _ => parts.into_iter().rev().map(|contents| Piece::of(batch, contents)).collect(),
        };
        Pieces {
            batch,
            waiting,
            suspects: Vec::new(),
            halvings_left: MAX_HALVINGS,
            suspects_left: MAX_SUSPECTS,
            bytes_left: MAX_BYTES_AGAIN,
            is_pushed,
        }
    }

    pub(crate) fn next(&mut self) -> Option<Piece> {
        if self.waiting.is_empty() {
            // In the order in which they came.
            self.suspects.sort_unstable_by_key(|piece| piece.contents.members.first().map(|member| member.id));
            self.suspects.reverse();
            self.waiting.append(&mut self.suspects);
        }
        self.waiting.pop()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.suspects.is_empty()
    }

    /// Takes a refused piece apart.
    pub(crate) fn narrow(&mut self, mut piece: Piece, exception: &Exception) -> Result<(), Unbroken> {
        let members = piece.contents.members.len();
        if members < 2 {
            return Err(Unbroken { piece, is_given_up: false });
        }
        let bytes_left = self.bytes_left.checked_sub(piece.contents.rows.bytes() as u64);
        if bytes_left.is_none() && !self.is_pushed {
            return Err(Unbroken { piece, is_given_up: true });
        }
        let suspect = bytes_left.and_then(|_| self.suspect(exception, &piece.contents.members));
        if let Some(suspect) = suspect {
            self.suspects_left -= 1;
            let suspect = piece.contents.split_out(suspect);
            self.suspects.push(Piece::of(self.batch, suspect));
            self.waiting.push(Piece::of(self.batch, piece.contents));
        } else if self.halvings_left > 0 || self.is_pushed {
            self.halvings_left = self.halvings_left.saturating_sub(1);
            let second = piece.contents.split_off(members / 2);
            // The first half goes first: rows keep their order.
            self.waiting.push(Piece::of(self.batch, second));
            self.waiting.push(Piece::of(self.batch, piece.contents));
        } else {
            return Err(Unbroken { piece, is_given_up: true });
        }
        self.bytes_left = bytes_left.unwrap_or(0);
        Ok(())
    }

    fn suspect(&self, exception: &Exception, members: &[Member]) -> Option<usize> {
        let row = exception.row().filter(|_| self.suspects_left > 0)?;
        let mut ends = members.iter().scan(0, |end, member| {
            *end += member.rows as u64;
            Some(*end)
        });
        ends.position(|end| row <= end)
    }
}

/// Whether every insert of a batch would get this error, so that looking for a culprit is in vain.
pub(crate) fn concerns_whole_batch(code: i32, rows: &Rows) -> bool {
    match rows {
        Rows::Parsed(_) | Rows::Blocks(_) => concerns_all_typed(code),
        // What only the text of one insert can have brought about.
        Rows::Passthrough(_) => concerns_all_typed(code) && !matches!(code, 20 | 44 | 48 | 53),
    }
}

fn concerns_all_typed(code: i32) -> bool {
    matches!(
        code,
        16 // NO_SUCH_COLUMN_IN_TABLE
        | 20 // NUMBER_OF_COLUMNS_DOESNT_MATCH
        | 44 // ILLEGAL_COLUMN
        | 48 // NOT_IMPLEMENTED
        | 53 // TYPE_MISMATCH
        | 60 // UNKNOWN_TABLE
        | 73 // UNKNOWN_FORMAT
        | 81 // UNKNOWN_DATABASE
        | 115 // UNKNOWN_SETTING
        | 192 // UNKNOWN_USER
        | 193 // WRONG_PASSWORD
        | 194 // REQUIRED_PASSWORD
        | 201 // QUOTA_EXCEEDED
        | 452 // SETTING_CONSTRAINT_VIOLATION
        | 497 // ACCESS_DENIED
        | 511 // UNKNOWN_ROLE
        | 516 // AUTHENTICATION_FAILED
    )
}

/// Whether the refusal comes of what the rows hold, whenever and however often they are sent.
pub(crate) fn is_of_rows(exception: &Exception) -> bool {
    const TOO_MANY_PARTS: i32 = 252;
    let is_about_partitions = exception.code == TOO_MANY_PARTS && !exception.is_passing();
    is_about_partitions || exception.comes_of_values() && !concerns_all_typed(exception.code)
}

/// Whether the error says that what we knew of the table is no longer so. That the rows may not be written, too: a
/// right may be missing behind a view of the table.
pub(crate) fn shows_stale_schema(code: i32) -> bool {
    matches!(code, 10 | 16 | 20 | 44 | 47 | 53 | 60 | 81 | 497)
}
