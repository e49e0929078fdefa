//! Payloads turned into blocks of the table's columns, exactly or not at all.
//!
//! ClickHouse casts the values that it reads: 300 becomes 44 in a UInt8, a time loses its fractions, NULL
//! becomes 0. So payloads are read here, by the readers that gathered inserts go through, which take only
//! values that both types have. A value that isn't taken is an error that names the column: the column is
//! found by reading the columns one by one.

use windrow_clickhouse::ErrorCode;
use windrow_columns::{decode_native, Block, Format, NativeLimits, NotParsed, NotParsedReason, Parsed, ReadPlan};

use super::table::{plan, Table, Written};
use crate::error::AppendError;
use crate::request::Payload;
use crate::target::Read;

/// Rows of the columns that the first batch had.
pub(crate) struct Batch {
    pub(super) block: Block,
}

struct Source<'t> {
    table: &'t Table,
    payload: Payload,
}

pub(super) fn read(table: &Table, payload: Payload, max_bytes: u64) -> Result<Read<Batch>, AppendError> {
    let source = Source { table, payload };
    let Parsed { block, present } = source.read(&table.plan)?.map_err(|not_parsed| source.why(not_parsed))?;
    let held_bytes = block.bytes() as u64;
    if held_bytes > max_bytes {
        let text = format!("The batch takes {held_bytes} bytes in memory, more than {max_bytes}; send smaller batches");
        return Err(AppendError::new(ErrorCode::MEMORY_LIMIT_EXCEEDED, &text).with_status(413));
    }
    bind(table, present.iter().collect())?;
    Ok(Read { rows: block.rows() as u64, held_bytes, batch: Batch { block } })
}

fn named(format: Option<&'static Format>) -> Result<&'static Format, AppendError> {
    format.ok_or_else(|| AppendError::new(ErrorCode::UNKNOWN_FORMAT, "The format is not known here"))
}

/// Checks that all batches have the columns of the first one that was read.
fn bind(table: &Table, present: Vec<usize>) -> Result<(), AppendError> {
    let bound = table.bound.get_or_init(|| present.clone());
    if *bound == present {
        return Ok(());
    }
    let names = |positions: &[usize]| {
        positions.iter().map(|&at| table.columns()[at].name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let text = format!(
        "All batches of an append have the same columns; this one has ({}), the first one had ({})",
        names(&present),
        names(bound)
    );
    Err(AppendError::new(ErrorCode::INCORRECT_DATA, &text))
}

impl Source<'_> {
    /// Reads the payload. The outer error is a fault of this program.
    fn read(&self, plan: &ReadPlan) -> Result<Result<Parsed, NotParsed>, AppendError> {
        Ok(match &self.payload {
            Payload::ArrowStream(bytes) => (named(windrow_interchange::format(self.format()))?.read)(bytes, plan),
            Payload::Native(bytes) => (named(Format::named(self.format()))?.read)(bytes, plan),
            Payload::Batch(batch) => windrow_interchange::read_record_batch_of(batch, plan),
        })
    }

    fn format(&self) -> &'static str {
        match self.payload {
            Payload::Native(_) => "Native",
            Payload::ArrowStream(_) | Payload::Batch(_) => "ArrowStream",
        }
    }

    /// Makes an error in words that name the column.
    fn why(&self, not_parsed: NotParsed) -> AppendError {
        let format = self.format();
        if not_parsed.reason == NotParsedReason::UnknownField {
            if let Some(name) = self.names().into_iter().find(|name| !self.has_column(name)) {
                let text = format!("Column {name} of the batch is none of the columns to append to");
                return AppendError::new(ErrorCode::NO_SUCH_COLUMN_IN_TABLE, &text).with_status(400);
            }
        }
        if let Some(column) = self.culprit() {
            return AppendError::new(column.code(), &column.text(format)).with_status(400);
        }
        let text = format!("Cannot read the batch as {format}: {}", general(not_parsed.reason));
        AppendError::new(ErrorCode::INCORRECT_DATA, &text)
    }

    fn has_column(&self, name: &str) -> bool {
        self.table.columns().iter().any(|column| column.name == name)
    }

    /// Returns the first column that can't be read where it alone is. If none can, it is not the columns' fault.
    fn culprit(&self) -> Option<Culprit<'_>> {
        let names = self.names();
        let present = self.table.columns().iter().filter(|column| names.contains(&column.name));
        let read: Vec<Option<Culprit<'_>>> = present.map(|column| self.read_alone(column)).collect();
        let is_of_all = read.len() > 1 && read.iter().all(Option::is_some);
        read.into_iter().flatten().next().filter(|_| !is_of_all)
    }

    fn read_alone<'c>(&self, column: &'c Written) -> Option<Culprit<'c>> {
        let alone: ReadPlan = plan(std::iter::once(column), &self.table.server_timezone, true);
        let reason = self.read(&alone).ok()?.err()?.reason;
        let is_of_values = matches!(reason, NotParsedReason::Value | NotParsedReason::Null | NotParsedReason::TimeZone);
        is_of_values.then_some(Culprit { column, reason })
    }

    /// Returns the columns that the payload has, as far as they can be made out.
    fn names(&self) -> Vec<String> {
        match &self.payload {
            Payload::Native(bytes) => {
                decode_native(bytes, NativeLimits::default()).map(|block| block.names).unwrap_or_default()
            }
            Payload::ArrowStream(bytes) => super::arrow_names::of_stream(bytes).unwrap_or_default(),
            Payload::Batch(batch) => batch.schema_ref().fields().iter().map(|field| field.name().clone()).collect(),
        }
    }
}

struct Culprit<'t> {
    column: &'t Written,
    reason: NotParsedReason,
}

impl Culprit<'_> {
    fn code(&self) -> ErrorCode {
        match self.reason {
            NotParsedReason::Null => ErrorCode::CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN,
            _ => ErrorCode::TYPE_MISMATCH,
        }
    }

    fn text(&self, format: &str) -> String {
        let Culprit { column, reason, .. } = self;
        let (name, data_type) = (&column.name, &column.type_name);
        match reason {
            NotParsedReason::Null => format!("NULL in column {name}, whose type {data_type} has no NULL"),
            NotParsedReason::TimeZone => {
                format!("Column {name} of type {data_type}: its times are in a zone that is not known here")
            }
            _ => {
                format!("Column {name}: a value or the type in {format} is none that {data_type} can hold without loss")
            }
        }
    }
}

fn general(reason: NotParsedReason) -> &'static str {
    match reason {
        NotParsedReason::Syntax => "it is cut off or damaged",
        NotParsedReason::UnknownField => "it has a column that the table has not, or none that the table has",
        NotParsedReason::DuplicateField => "it has a column twice",
        NotParsedReason::Null => "it has NULL where the column's type has none",
        NotParsedReason::TooDeep => "its types are nested too deeply",
        NotParsedReason::MixedDefaults => "a column is there for some rows only",
        NotParsedReason::ColumnKind => "there is no column that can be written",
        _ => "it has something that can't be taken exactly as it is",
    }
}
