//! Reads payload after payload into the same columns, as payloads follow each other in a topic; other readers
//! take the one payload of a request.
//!
//! A payload is read whole or leaves nothing behind. Nothing is allocated for a payload: the memory that
//! reading needs is kept for the next one. To keep this cheap, the ends of the columns' strings are noted
//! only now and then; a payload that fails is taken back from there on.

use super::binary::{self, Target};
use super::layout::Layout;
use super::outcome::{NotParsed, NotParsedReason, Parsed};
use super::rows::Rows;
use super::{delimited, json, msgpack, raw};
use crate::column::StringsEnd;
use crate::format::Format;
use crate::plan::ReadPlan;

/// Reads payloads of one format, one after the other.
pub struct Series<'p> {
    format: &'static Format,
    /// The function that appends a payload; `None` for formats whose payloads are read one by one and then
    /// put together.
    append: Option<Append>,
    rows: Rows<'p>,
    kept: Kept,
    noted: Noted,
    /// The rows that were read payload by payload.
    whole: Option<Parsed>,
}

/// The reason why a payload can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesError {
    pub reason: NotParsedReason,
    /// The number of rows of this payload that were read before.
    pub row: u64,
    /// The column of the plan, where one value is to blame.
    pub column: Option<usize>,
    /// The place that reading has come to, in bytes; `None` if that isn't known.
    pub at: Option<usize>,
    /// Says that ClickHouse is known to refuse the payload as well.
    pub is_refused: bool,
}

/// Memory that is kept from payload to payload.
#[derive(Default)]
pub(super) struct Kept {
    /// Buffer in which escapes are resolved.
    pub(super) scratch: Vec<u8>,
    /// The order of the columns in JSON's objects.
    pub(super) order: Vec<usize>,
    /// The layout of rows without a header.
    pub(super) table_layout: Option<Layout>,
    pub(super) targets: Vec<Target>,
}

/// The place and the reason where reading has stopped.
pub(super) struct Stopped {
    pub(super) reason: NotParsedReason,
    pub(super) at: usize,
}

/// A function that appends the rows of one more payload.
pub(super) type Append = fn(&[u8], &mut Rows<'_>, &mut Kept) -> Result<(), Stopped>;

/// The ends of the strings of all columns after `rows` rows.
#[derive(Default)]
struct Noted {
    rows: usize,
    ends: Vec<StringsEnd>,
}

/// The number of rows between two notes: noting costs more than a short row, and taking back walks these
/// rows.
const ROWS_BETWEEN_NOTES: usize = 64;

impl<'p> Series<'p> {
    /// Makes a series without rows.
    ///
    /// # Errors
    /// Fails where the plan takes no payload at all.
    pub fn new(format: &'static Format, plan: &'p ReadPlan) -> Result<Self, NotParsed> {
        let rows = Rows::new(plan, 0)?;
        let mut series = Series {
            format,
            append: appender(format.name),
            rows,
            kept: Kept::default(),
            noted: Noted::default(),
            whole: None,
        };
        series.note();
        Ok(series)
    }

    /// Reads all rows of a payload and returns their number.
    ///
    /// # Errors
    /// Fails where the payload can't be parsed with certainty: it is then as if there had been no such
    /// payload. With [`NotParsedReason::MixedDefaults`] the payload may leave out other columns than those
    /// before it: it can be read once these are [taken](Series::take).
    pub fn read(&mut self, payload: &[u8]) -> Result<usize, SeriesError> {
        let Some(append) = self.append else { return self.read_whole(payload) };
        let before = self.rows.count();
        if before >= self.noted.rows + ROWS_BETWEEN_NOTES {
            self.note();
        }
        self.rows.begin(payload.len());
        let error = match append(payload, &mut self.rows, &mut self.kept) {
            Ok(()) if self.rows.plan.rules.nested.is_empty() || self.rows.nested_lengths_agree(before) => {
                return Ok(self.rows.count() - before);
            }
            Ok(()) => SeriesError { reason: NotParsedReason::Value, row: 0, column: None, at: None, is_refused: false },
            Err(Stopped { reason, at }) => {
                let row = (self.rows.count() - before) as u64;
                SeriesError { reason, row, column: self.rows.failed(), at: Some(at), is_refused: false }
            }
        };
        self.take_back(before);
        Err(error)
    }

    fn read_whole(&mut self, payload: &[u8]) -> Result<usize, SeriesError> {
        let no_place =
            |NotParsed { reason, row }| SeriesError { reason, row, column: None, at: None, is_refused: false };
        let parsed = (self.format.read)(payload, self.rows.plan).map_err(no_place)?;
        let rows = parsed.block.rows();
        match &mut self.whole {
            _ if rows == 0 => {}
            Some(whole) if whole.present != parsed.present => {
                return Err(no_place(NotParsed { reason: NotParsedReason::MixedDefaults, row: 0 }));
            }
            Some(whole) => whole.block.append(&parsed.block),
            none => *none = Some(parsed),
        }
        Ok(rows)
    }

    /// Returns the number of rows that were read and not taken.
    pub fn rows(&self) -> usize {
        self.rows.count() + self.whole.as_ref().map_or(0, |whole| whole.block.rows())
    }

    /// Returns the bytes that these rows take.
    pub fn bytes(&self) -> usize {
        self.rows.bytes() + self.whole.as_ref().map_or(0, |whole| whole.block.bytes())
    }

    /// Hands out the rows that were read.
    pub fn take(&mut self) -> Parsed {
        if let Some(whole) = self.whole.take() {
            return whole;
        }
        let parsed = self.rows.take();
        self.note();
        parsed
    }

    fn note(&mut self) {
        self.noted.rows = self.rows.count();
        self.noted.ends.clear();
        self.rows.columns.iter().for_each(|column| column.note_strings(&mut self.noted.ends));
    }

    #[cold]
    fn take_back(&mut self, rows: usize) {
        self.rows.truncate(rows, &self.noted.ends);
    }
}

fn appender(format: &str) -> Option<Append> {
    match format {
        "JSONEachRow" => Some(json::append_each_row::<false>),
        "JSONStringsEachRow" => Some(json::append_each_row::<true>),
        "MsgPack" => Some(msgpack::append),
        name => delimited::appender(name).or_else(|| binary::appender(name)).or_else(|| raw::appender(name)),
    }
}
