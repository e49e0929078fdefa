//! The way of payloads that ClickHouse is asked to read: they come back in columns, and are gathered like those read here.
//!
//! It reads them with the reader that an INSERT would use, as the same user and under the same settings, so expressions,
//! lenient spellings and formats unknown here come out as they would be stored. Nothing is stored by it: whatever
//! goes wrong, the insert is forwarded.

use std::sync::Arc;

use windrow_block::{ColumnSpec, Rows};
use windrow_client::{CallError, Client};
use windrow_sink::Destination;

use super::ways::{Gatherable, Kinship};
use crate::backend_reading::Reading;

/// What becomes longer by being read is forwarded: memory is bounded, and it is a part worth having.
const MAX_READ_BYTES: usize = 4 << 20;

/// What a column's value is to be is said by the payload, or the payload isn't taken.
const NULL_AS_DEFAULT: &str = "input_format_null_as_default";
/// The table may have the column by now.
const SKIP_UNKNOWN_FIELDS: &str = "input_format_skip_unknown_fields";

pub(crate) struct AskedWay {
    pub(super) format: String,
    pub(super) columns: Vec<ColumnSpec>,
    /// With all of the columns.
    pub(super) destination: Arc<Destination>,
    pub(super) settings: Vec<(String, String)>,
    pub(super) database: Option<String>,
    /// Whether some column has a DEFAULT.
    pub(super) has_defaults: bool,
    pub(super) max_payload_bytes: u64,
    /// Why no payload of the statement can be read here, if that is so.
    pub(super) not_typed: Option<&'static str>,
}

impl AskedWay {
    /// `query_parameters`: those of the request, which expressions may name. `None`: the insert is to be forwarded.
    pub(crate) async fn read<'p>(
        &'p self,
        client: &Client,
        payload: &[u8],
        query_parameters: impl Iterator<Item = (&'p str, &'p str)>,
    ) -> Option<Gatherable> {
        if payload.len() as u64 > self.max_payload_bytes || self.has_defaults && names_default(payload) {
            return None;
        }
        let Destination { credentials, roles, quota_key, .. } = &*self.destination;
        let reading =
            Reading { credentials, format: &self.format, columns: &self.columns, payload, max_bytes: MAX_READ_BYTES };
        let own = [(SKIP_UNKNOWN_FIELDS, "0")].into_iter().chain(self.has_defaults.then_some((NULL_AS_DEFAULT, "0")));
        let is_replaced = |name: &str| own.clone().any(|(own, _)| own == name);
        let settings = self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let settings = settings.filter(|(name, _)| !is_replaced(name));
        let account = roles.iter().map(|role| ("role", role.as_str()));
        let account = account.chain((!quota_key.is_empty()).then_some(("quota_key", quota_key.as_str())));
        let database = self.database.as_deref().map(|database| ("database", database));
        let params = settings.chain(own.clone()).chain(account).chain(database).chain(query_parameters);
        match reading.ask(client, params).await {
            Ok(block) => Some(Gatherable { rows: Rows::Typed(block), kinship: Kinship::Asked }),
            Err(CallError::Exception(_)) => None,
            Err(error) => {
                tracing::debug!(%error, "ClickHouse was asked to read an insert's payload and gave no answer");
                None
            }
        }
    }
}

/// Whether a value may be the keyword DEFAULT; a string or a name with these letters counts as well.
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
