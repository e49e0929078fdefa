//! A connection with the scripts loaded, and the conversations that are longer than one pipeline.

use std::ops::Range;

use redis::Value;

use super::address::RedisAddress;
use super::connection::{error_text, text, Connection, ConnectionError};
use super::entry;
use super::lane::{Bucket, Lane, Pipeline};
use super::lane_index::{self, Members};
use super::scripts::{verdict, Scripts, Verdict};
use crate::buffer::BufferError;
use crate::id::BatchId;
use crate::rows::Body;

/// The number of entries that are asked for at once.
const READ_ENTRIES: usize = 64;

pub(super) struct Link {
    connection: Connection,
    scripts: Scripts,
}

/// A lane as `survey` describes it.
pub(super) struct Surveyed {
    pub(super) name: String,
    pub(super) lease_left_ms: i64,
    pub(super) owner: String,
    pub(super) process: String,
    pub(super) destination: Vec<u8>,
}

/// The contents of a lane in Redis.
pub(super) struct Contents {
    /// The rows of each entry, and its bytes.
    pub(super) entries: Vec<(Range<u64>, u64)>,
    pub(super) batches: Vec<(BatchId, Members)>,
    pub(super) complaints: Vec<String>,
}

impl Link {
    pub(super) fn open(address: &RedisAddress) -> Result<Link, ConnectionError> {
        let mut connection = Connection::open(address, &Bucket::new(address).lanes)?;
        let replies = connection.exchange(&Scripts::loading(), Scripts::COUNT)?;
        let scripts = Scripts::loaded(replies).map_err(ConnectionError)?;
        Ok(Link { connection, scripts })
    }

    /// Sends the commands that `write` puts into a pipeline, and returns the replies.
    pub(super) fn talk(
        &mut self,
        bucket: &Bucket,
        write: impl FnOnce(&mut Pipeline<'_>),
    ) -> Result<Vec<Value>, ConnectionError> {
        let mut pipeline = Pipeline::new(&self.scripts, bucket);
        write(&mut pipeline);
        let Pipeline { out, count, .. } = pipeline;
        self.connection.exchange(&out, count)
    }

    /// Sends a pipeline as `talk` does, for scripts that answer with a verdict.
    pub(super) fn judge(
        &mut self,
        bucket: &Bucket,
        write: impl FnOnce(&mut Pipeline<'_>),
    ) -> Result<Vec<Verdict>, ConnectionError> {
        let replies = self.talk(bucket, write)?;
        replies.iter().map(|reply| verdict(reply).map_err(ConnectionError)).collect()
    }

    pub(super) fn survey(&mut self, bucket: &Bucket) -> Result<Vec<Surveyed>, ConnectionError> {
        let replies = self.talk(bucket, |pipeline| pipeline.survey())?;
        let items = array(replies.into_iter().next())?;
        Ok(items.chunks_exact(5).filter_map(surveyed).collect())
    }

    pub(super) fn contents(&mut self, bucket: &Bucket, lane: &Lane) -> Result<Contents, ConnectionError> {
        let mut replies = self
            .talk(bucket, |pipeline| {
                pipeline.command(&[b"HKEYS", lane.rows.as_bytes()]);
                pipeline.command(&[b"HGETALL", lane.batches.as_bytes()]);
            })?
            .into_iter();
        let fields = array(replies.next())?;
        let records = array(replies.next())?;
        let mut contents = Contents { entries: Vec::new(), batches: Vec::new(), complaints: Vec::new() };
        for record in records.chunks_exact(2) {
            match (text(&record[0]).and_then(BatchId::parse), text(&record[1]).and_then(Members::parse)) {
                (Some(id), Some(members)) => contents.batches.push((id, members)),
                _ => contents.complaints.push(format!("Redis, {}: a batch's record can't be read", lane.batches)),
            }
        }
        for names in fields.chunks(READ_ENTRIES * 16) {
            let sizes = self.talk(bucket, |pipeline| {
                for name in names.iter().filter_map(text) {
                    pipeline.command(&[b"HSTRLEN", lane.rows.as_bytes(), name.as_bytes()]);
                }
            })?;
            for (name, size) in names.iter().filter_map(text).zip(sizes) {
                let size = if let Value::Int(size) = size { size.max(0) as u64 } else { 0 };
                match lane_index::parse_field(name) {
                    Some(rows) => contents.entries.push((rows, size)),
                    None => contents.complaints.push(format!("Redis, {}: no entry is called {name}", lane.rows)),
                }
            }
        }
        contents.entries.sort_by_key(|(rows, _)| rows.start);
        Ok(contents)
    }

    /// Reads rows of a lane, cut out of the entries that they lie in.
    pub(super) fn read(
        &mut self,
        bucket: &Bucket,
        lane: &Lane,
        entries: &[Range<u64>],
        rows: &Range<u64>,
    ) -> Result<Result<Body, BufferError>, ConnectionError> {
        let (mut bytes, mut lengths) = (Vec::new(), Vec::new());
        for part in entries.chunks(READ_ENTRIES) {
            let fields: Vec<String> =
                part.iter().map(|entry| lane_index::field(entry.start, entry.end - entry.start)).collect();
            let replies = self.talk(bucket, |pipeline| {
                let mut command = vec![&b"HMGET"[..], lane.rows.as_bytes()];
                command.extend(fields.iter().map(String::as_bytes));
                pipeline.command(&command);
            })?;
            let replies = array(replies.into_iter().next())?;
            for (range, reply) in part.iter().zip(&replies) {
                let Some(entry) = entry_of(range, reply) else {
                    let text = format!("Redis, {}: entry {} is not there or can't be read", lane.rows, range.start);
                    return Ok(Err(BufferError::Damaged(text)));
                };
                entry.copy(range, rows, &mut bytes, &mut lengths);
            }
        }
        Ok(Ok(Body::new(bytes, lengths)))
    }

    /// Returns how far a lane went that was emptied by another. Returns `None` if nothing is known of its end.
    pub(super) fn tombstone(&mut self, bucket: &Bucket, lane: &Lane) -> Result<Option<u64>, ConnectionError> {
        let replies = self.talk(bucket, |pipeline| pipeline.command(&[b"GET", lane.tombstone.as_bytes()]))?;
        Ok(replies.first().and_then(text).and_then(|next| next.parse().ok()))
    }
}

impl entry::Entry<'_> {
    fn copy(&self, own: &Range<u64>, wanted: &Range<u64>, bytes: &mut Vec<u8>, lengths: &mut Vec<u32>) {
        let (start, end) = (wanted.start.max(own.start), wanted.end.min(own.end));
        if start >= end {
            return;
        }
        let (from, to) = ((start - own.start) as usize, (end - own.start) as usize);
        let sum = |lengths: &[u32]| lengths.iter().map(|&length| length as usize).sum::<usize>();
        let skipped = sum(&self.lengths[..from]);
        let taken = sum(&self.lengths[from..to]);
        bytes.extend_from_slice(&self.bytes[skipped..skipped + taken]);
        lengths.extend_from_slice(&self.lengths[from..to]);
    }
}

fn entry_of<'a>(range: &Range<u64>, reply: &'a Value) -> Option<entry::Entry<'a>> {
    let Value::BulkString(bytes) = reply else { return None };
    entry::from_bytes(bytes).filter(|entry| entry.lengths.len() as u64 == range.end - range.start)
}

fn surveyed(items: &[Value]) -> Option<Surveyed> {
    let Value::BulkString(destination) = &items[4] else { return None };
    Some(Surveyed {
        name: text(&items[0])?.to_owned(),
        lease_left_ms: text(&items[1])?.parse().ok()?,
        owner: text(&items[2])?.to_owned(),
        process: text(&items[3])?.to_owned(),
        destination: destination.clone(),
    })
}

fn array(reply: Option<Value>) -> Result<Vec<Value>, ConnectionError> {
    match reply {
        Some(Value::Array(items)) => Ok(items),
        Some(Value::ServerError(error)) => Err(ConnectionError(error_text(&error))),
        _ => Err(ConnectionError("Redis answers something else than a list".into())),
    }
}
