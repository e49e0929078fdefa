//! A message of a topic, as far as rows are made of it.

use crate::Record;

/// It borrows from wherever it lies.
#[derive(Debug, Clone, Copy)]
pub struct Message<'m> {
    pub offset: i64,
    /// Since 1970; negative if it has none.
    pub timestamp_ms: i64,
    pub key: Option<&'m [u8]>,
    /// None, or no bytes, is a tombstone, of which no row is made.
    pub value: Option<&'m [u8]>,
    pub headers: Headers<'m>,
}

/// A message's headers, in their order; a key may come more than once.
#[derive(Debug, Clone, Copy)]
pub enum Headers<'m> {
    /// As they came from the broker.
    Fetched(crate::Headers<'m>),
    /// As they were kept, with a dead letter for one.
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
