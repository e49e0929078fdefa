//! The reading of single records of an open log by their ids.

use std::sync::Arc;

use super::context::Context;
use super::error::ReadError;
use super::format::{RecordHeader, KIND_CLOSED, KIND_CONTEXT, RECORD_HEADER_BYTES};
use super::index::RecordLocation;
use super::scan::{record_at, Found, Window};
use super::{RecordId, Shared};

#[derive(Clone, Debug)]
pub struct OwnedRecord {
    pub id: RecordId,
    pub kind: u8,
    pub context: Option<Context>,
    pub payload: Vec<u8>,
}

/// Reader of records; ascending ids are cheap.
pub struct Reader {
    shared: Arc<Shared>,
    window: Window,
    /// The segment that the window belongs to, and the record that the reader stands behind.
    at: Option<At>,
}

struct At {
    segment: u64,
    salt: u64,
    behind_id: u64,
    offset: u64,
}

/// The number of tries to read a record. A segment that is rewritten during a try makes another one
/// necessary; twice in a row doesn't happen by chance.
const LOOKS: usize = 5;

impl Reader {
    pub(super) fn new(shared: Arc<Shared>) -> Reader {
        Reader { shared, window: Window::default(), at: None }
    }

    /// Reads one record. Blocks.
    ///
    /// # Errors
    /// Fails where the record was released, is not on the disk yet, or can't be read.
    pub fn read(&mut self, id: RecordId) -> Result<OwnedRecord, ReadError> {
        for _ in 0..LOOKS {
            let place = self.shared.index().place(id.0).ok_or(ReadError::Gone)?;
            let (segment, salt) = (place.segment, place.salt);
            let found = self.find(id.0, place)?;
            if found.context == 0 {
                return Ok(found.record);
            }
            if let Some(context) = self.shared.index().context(segment, salt, found.context) {
                return Ok(OwnedRecord { context: Some(context), ..found.record });
            }
        }
        Err(ReadError::Gone)
    }

    fn find(&mut self, id: u64, place: RecordLocation) -> Result<FoundRecord, ReadError> {
        let name = super::segment::file_name(place.segment);
        let mut offset = self.start(id, &place);
        loop {
            let header = self.header_at(&place, offset).map_err(|error| ReadError::Io(format!("{name}: {error}")))?;
            let corrupt =
                |why: &str| ReadError::Corrupt(format!("segment {name} is damaged near byte {offset}: {why}"));
            let header = header.ok_or_else(|| corrupt("no record begins here"))?;
            let is_internal = header.kind == KIND_CONTEXT || header.kind == KIND_CLOSED;
            if is_internal || header.id < id {
                offset += header.record_bytes() as u64;
                continue;
            }
            if header.id > id {
                return Err(corrupt("a record is missing"));
            }
            let found = record_at(&mut self.window, &*place.file, place.checksums, offset, place.valid_bytes)
                .map_err(|error| ReadError::Io(format!("{name}: {error}")))?;
            let record = match found {
                Found::Record(record) => record,
                Found::Nothing => return Err(corrupt("the record is missing")),
                Found::Bad(why) => return Err(corrupt(why)),
            };
            let owned = OwnedRecord {
                id: RecordId(id),
                kind: record.header.kind,
                context: None,
                payload: record.payload.to_vec(),
            };
            offset += record.header.record_bytes() as u64;
            self.at = Some(At { segment: place.segment, salt: place.salt, behind_id: id, offset });
            return Ok(FoundRecord { record: owned, context: header.context });
        }
    }

    /// Returns the offset to search from: the end of the last record, if that is nearer than where the index
    /// would begin.
    fn start(&mut self, id: u64, place: &RecordLocation) -> u64 {
        let near = u64::from(place.near);
        match &self.at {
            Some(at) if at.segment == place.segment && at.salt == place.salt => match at.behind_id < id {
                true => near.max(at.offset),
                false => near,
            },
            _ => {
                self.window.forget();
                self.at = None;
                near
            }
        }
    }

    fn header_at(&mut self, place: &RecordLocation, offset: u64) -> std::io::Result<Option<RecordHeader>> {
        if offset >= place.valid_bytes {
            return Ok(None);
        }
        let bytes = self.window.at(&*place.file, offset, RECORD_HEADER_BYTES, place.valid_bytes)?;
        Ok(RecordHeader::decode(bytes))
    }
}

struct FoundRecord {
    record: OwnedRecord,
    /// The number of its context in the segment; 0 for none.
    context: u32,
}
