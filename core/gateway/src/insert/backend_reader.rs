//! ClickHouse as the reader of payloads: it is asked to read them, and the columns that come back are
//! gathered like those that are read here.
//!
//! ClickHouse uses the reader that an INSERT would use, as the same user and under the same settings, so
//! expressions, lenient spellings and formats unknown here come out as they would be stored. The question
//! stores nothing: whatever goes wrong, the insert is forwarded.

use std::borrow::Cow;
use std::sync::Arc;

use windrow_clickhouse::{CallError, Client};
use windrow_columns::{ColumnSpec, PassthroughRows, Rows};
use windrow_engine::{sink::Destination, InsertKind};

use super::options::url_name;
use super::questions::{Questions, ReadPermit, PATIENCE};
use super::readers::{BatchCompatibility, Gatherable};
use crate::admission::may_be_asked;
use crate::backend_reading::{Answer, Reading};
use crate::forward_reason::ForwardReason;

/// Bound of the answer's length, as a multiple of the payload's length, within the two bounds below. An
/// insert with a longer answer is forwarded.
const USUAL_RATIO: usize = 16;
const LEAST_READ_BYTES: usize = 256 << 10;
const MOST_READ_BYTES: usize = 4 << 20;

/// Setting under which a NULL stands for the DEFAULT of its column.
const NULL_AS_DEFAULT: &str = "input_format_null_as_default";

pub(crate) struct BackendReader {
    pub(super) format: String,
    pub(super) taken: ReadAs,
    /// Destination with all of the columns.
    pub(super) destination: Arc<Destination>,
    pub(super) settings: Vec<(String, String)>,
    pub(super) database: Option<String>,
    /// Says whether some column has a DEFAULT.
    pub(super) has_defaults: bool,
    /// Says whether there may be expressions in a payload.
    pub(super) reads_expressions: bool,
    pub(super) max_payload_bytes: u64,
    /// Reason why no payload of the statement can be parsed here, if that is so.
    pub(super) not_parsed: Option<ForwardReason>,
}

/// Form that ClickHouse's answer is brought into.
pub(super) enum ReadAs {
    /// A block of the columns that the statement's payloads are parsed into.
    AsParsed,
    /// A block of these columns: no payload of the statement is parsed here.
    Columns(Vec<ColumnSpec>),
    /// The answer's own blocks, since some type is not known here: ClickHouse gets them back as they are.
    Blocks {
        /// Names and types of the columns.
        columns: Vec<(String, String)>,
        kind: Arc<InsertKind>,
    },
}

impl BackendReader {
    /// Returns the kind of inserts that are read like this, if it isn't that of all inserts of the statement.
    pub(crate) fn kind(&self) -> Option<&Arc<InsertKind>> {
        match &self.taken {
            ReadAs::AsParsed | ReadAs::Columns(_) => None,
            ReadAs::Blocks { kind, .. } => Some(kind),
        }
    }

    /// Returns the permit to ask ClickHouse. `None`: the insert is to be forwarded.
    pub(super) fn permit_to_ask<'q>(&self, questions: &'q Questions) -> Option<ReadPermit<'q>> {
        let Destination { database, table, credentials, roles, quota_key, .. } = &*self.destination;
        questions.permit((database, table, credentials, roles, quota_key, &self.database, &self.settings))
    }

    /// Lets ClickHouse read a payload. `parsed` are the columns that other payloads of the statement are
    /// parsed into, `query_parameters` are those of the request, which expressions may name. `None`: the
    /// insert is to be forwarded.
    pub(super) async fn read<'p>(
        &'p self,
        parsed: &[ColumnSpec],
        client: &Client,
        permit: ReadPermit<'_>,
        payload: &[u8],
        query_parameters: impl Iterator<Item = (&'p str, &'p str)>,
    ) -> Option<Gatherable> {
        if payload.len() as u64 > self.max_payload_bytes || self.has_defaults && names_default(payload) {
            return None;
        }
        if self.reads_expressions && !std::str::from_utf8(payload).is_ok_and(may_be_asked) {
            return None;
        }
        let names_and_types = |columns: &[ColumnSpec]| {
            columns.iter().map(|column| (column.name.clone(), column.data_type.to_string())).collect()
        };
        let columns: Cow<'_, [(String, String)]> = match &self.taken {
            ReadAs::AsParsed => names_and_types(parsed),
            ReadAs::Columns(columns) => names_and_types(columns),
            ReadAs::Blocks { columns, .. } => Cow::from(columns),
        };
        let Destination { credentials, roles, quota_key, .. } = &*self.destination;
        let reading = Reading {
            credentials,
            format: &self.format,
            columns: &columns,
            payload,
            max_bytes: max_read_bytes(payload),
        };
        let own = self.has_defaults.then_some((NULL_AS_DEFAULT, "0"));
        let settings = self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let account = roles.iter().map(|role| ("role", role.as_str()));
        let account = account.chain((!quota_key.is_empty()).then_some(("quota_key", quota_key.as_str())));
        let database = self.database.as_deref().map(|database| ("database", database));
        let query_parameters: Vec<_> = query_parameters.map(|(name, value)| (url_name(name), value)).collect();
        let query_parameters = query_parameters.iter().map(|(name, value)| (name.as_str(), *value));
        let params = settings.chain(own).chain(account).chain(database).chain(query_parameters);
        let answer = tokio::time::timeout(PATIENCE, reading.ask(client, params)).await;
        let error = match answer {
            Ok(Ok(answer)) => {
                return Some(Gatherable {
                    rows: self.rows(parsed, answer)?,
                    compatibility: BatchCompatibility::BackendRead,
                });
            }
            Ok(Err(error)) => Some(error),
            Err(_) => None,
        };
        permit.failed(error.as_ref());
        if !matches!(error, Some(CallError::Exception(_))) {
            tracing::debug!(?error, "ClickHouse was asked to read an insert's payload and gave no answer");
        }
        None
    }

    fn rows(&self, parsed: &[ColumnSpec], answer: Answer) -> Option<Rows> {
        match &self.taken {
            ReadAs::AsParsed => answer.block(parsed).ok().map(Rows::Parsed),
            ReadAs::Columns(columns) => answer.block(columns).ok().map(Rows::Parsed),
            ReadAs::Blocks { .. } => {
                let rows = answer.rows_of_one_block()?;
                Some(Rows::Passthrough(PassthroughRows::piece(answer.native.to_vec(), rows)))
            }
        }
    }
}

fn max_read_bytes(payload: &[u8]) -> usize {
    payload.len().saturating_mul(USUAL_RATIO).clamp(LEAST_READ_BYTES, MOST_READ_BYTES)
}

/// Returns the bytes that a question about a payload may take: the payload, the answer, and its rows.
pub(crate) fn memory_to_ask(payload: &[u8]) -> usize {
    payload.len() + 2 * max_read_bytes(payload)
}

/// Says whether a value may be the keyword DEFAULT; a string or a name with these letters counts as well.
fn names_default(payload: &[u8]) -> bool {
    const KEYWORD: &[u8] = b"DEFAULT";
    payload.windows(KEYWORD.len()).any(|letters| letters.eq_ignore_ascii_case(KEYWORD))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keyword_is_found_in_any_case() {
        assert!(names_default(b"(1, default)") && names_default(b"(DeFaUlT)") && names_default(b"DEFAULT"));
        assert!(!names_default(b"(1, 'defaul')") && !names_default(b""));
    }
}
