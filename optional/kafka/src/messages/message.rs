//! A message of a topic, with the parts that rows are made of.

use crate::Record;

/// A message that borrows its bytes.
#[derive(Debug, Clone, Copy)]
pub struct Message<'m> {
    pub offset: i64,
    /// Timestamp in milliseconds since 1970, negative if the message has none.
    pub timestamp_ms: i64,
    pub key: Option<&'m [u8]>,
    /// The payload. A message without one, or with no bytes, is a tombstone, of which no row is made.
    pub value: Option<&'m [u8]>,
    pub headers: Headers<'m>,
}

/// Headers of a message, in their order. A key may come more than once.
#[derive(Debug, Clone, Copy)]
pub enum Headers<'m> {
    /// Headers as they came from the broker.
    Fetched(crate::Headers<'m>),
    /// Headers that were kept, for example with a dead letter.
    Kept(&'m [(Vec<u8>, Option<Vec<u8>>)]),
}

impl Default for Headers<'_> {
    fn default() -> Self {
        Headers::Kept(&[])
    }
}

impl<'m> Headers<'m> {
    pub(crate) fn each(&self, mut take: impl FnMut(&'m [u8], Option<&'m [u8]>)) {
        match self {
            Headers::Fetched(headers) => headers.iter().for_each(|header| take(header.key, header.value)),
            Headers::Kept(headers) => headers.iter().for_each(|(key, value)| take(key, value.as_deref())),
        }
    }
}

impl<'m> From<Record<'m>> for Message<'m> {
    #[inline]
    fn from(record: Record<'m>) -> Self {
        Message {
            offset: record.offset,
            timestamp_ms: record.timestamp_ms,
            key: record.key,
            value: record.value,
            headers: Headers::Fetched(record.headers),
        }
    }
}
