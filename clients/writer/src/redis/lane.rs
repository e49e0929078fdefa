//! The keys of a lane, and the commands that concern a lane.

use std::ops::Range;
use std::time::Duration;

use redis::Cmd;

use super::address::RedisAddress;
use super::entry;
use super::lane_index::{Change, Members};
use super::queue::Again;
use super::scripts::{Script, Scripts};
use crate::id::BatchId;
use crate::rows::Rows;

/// The time for which word of an emptied lane stays, for an owner that was thought dead and comes back.
const TOMBSTONE_LIFE: Duration = Duration::from_secs(24 * 60 * 60);

/// A limit of more bytes than any bucket has, exact in Lua's numbers.
const NO_LIMIT: &str = "9007199254740992";

/// The keys that all lanes of a bucket share. The braces keep a bucket in one slot of a Redis Cluster.
#[derive(Debug, Clone)]
pub(super) struct Bucket {
    pub(super) lanes: String,
    bytes: String,
    lane_prefix: String,
    max_bytes: String,
    lease_ms: String,
}

/// One writer's rows within a bucket, and their present owner.
#[derive(Debug, Clone)]
pub(super) struct Lane {
    pub(super) name: String,
    pub(super) owner: String,
    lane: String,
    pub(super) rows: String,
    pub(super) batches: String,
    pub(super) tombstone: String,
}

impl Bucket {
    pub(super) fn new(address: &RedisAddress) -> Bucket {
        let prefix = format!("{{windrow:{}}}", address.bucket);
        Bucket {
            lanes: format!("{prefix}:lanes"),
            bytes: format!("{prefix}:bytes"),
            lane_prefix: format!("{prefix}:lane:"),
            max_bytes: address.max_bytes.to_string(),
            lease_ms: address.lease.as_millis().to_string(),
        }
    }

    pub(super) fn lane(&self, name: &str, owner: &str) -> Lane {
        let lane = format!("{}{name}", self.lane_prefix);
        Lane {
            name: name.to_owned(),
            owner: owner.to_owned(),
            rows: format!("{lane}:rows"),
            batches: format!("{lane}:batches"),
            tombstone: format!("{lane}:gone"),
            lane,
        }
    }
}

/// A pipeline that commands of one bucket are written into.
pub(super) struct Pipeline<'a> {
    pub(super) scripts: &'a Scripts,
    pub(super) bucket: &'a Bucket,
    pub(super) out: Vec<u8>,
    pub(super) count: usize,
}

impl<'a> Pipeline<'a> {
    pub(super) fn new(scripts: &'a Scripts, bucket: &'a Bucket) -> Pipeline<'a> {
        Pipeline { scripts, bucket, out: Vec::new(), count: 0 }
    }

    pub(super) fn register(&mut self, lane: &Lane, process: &str, destination: &[u8]) {
        let arguments = [
            lane.name.as_bytes(),
            lane.owner.as_bytes(),
            process.as_bytes(),
            destination,
            self.bucket.lease_ms.as_bytes(),
        ];
        self.call(Script::Register, &[&self.bucket.lanes, &lane.lane], &arguments);
    }

    pub(super) fn append(&mut self, lane: &Lane, first_row: u64, rows: Rows<'_>) {
        let bucket = self.bucket;
        self.write_entry(lane, &bucket.max_bytes, first_row, rows, None);
    }

    /// Appends rows without a limit: the bucket had room for them before Redis forgot them.
    pub(super) fn append_again(&mut self, lane: &Lane, again: &Again) {
        self.write_entry(lane, NO_LIMIT, again.first, again.rows.rows(), again.batch);
    }

    fn write_entry(&mut self, lane: &Lane, limit: &str, first_row: u64, rows: Rows<'_>, batch: Option<BatchId>) {
        let count = rows.count() as u64;
        let entry = entry::to_bytes(rows);
        let batch = batch.map(|id| {
            let members = Members { rows: first_row..first_row + count, is_done: false };
            [id.to_string(), members.to_text()]
        });
        let (first_row, count) = (first_row.to_string(), count.to_string());
        let mut arguments =
            vec![lane.owner.as_bytes(), limit.as_bytes(), first_row.as_bytes(), count.as_bytes(), entry.as_slice()];
        arguments.extend(batch.iter().flatten().map(String::as_bytes));
        self.call(Script::Append, &[&lane.lane, &lane.rows, &self.bucket.bytes, &lane.batches], &arguments);
    }

    pub(super) fn withdraw(&mut self, lane: &Lane, rows: &Range<u64>) {
        let (first_row, count) = (rows.start.to_string(), (rows.end - rows.start).to_string());
        let arguments = [lane.owner.as_bytes(), first_row.as_bytes(), count.as_bytes()];
        self.call(Script::Withdraw, &[&lane.lane, &lane.rows, &self.bucket.bytes], &arguments);
    }

    pub(super) fn record(&mut self, lane: &Lane, serial: u64, change: &Change) {
        let mut arguments = vec![lane.owner.clone(), serial.to_string(), change.writes.len().to_string()];
        for (id, members) in &change.writes {
            arguments.extend([id.to_string(), members.to_text()]);
        }
        arguments.push(change.forgets.len().to_string());
        arguments.extend(change.forgets.iter().map(BatchId::to_string));
        arguments.extend(change.releases.iter().cloned());
        let arguments: Vec<&[u8]> = arguments.iter().map(String::as_bytes).collect();
        self.call(Script::Record, &[&lane.lane, &lane.rows, &lane.batches, &self.bucket.bytes], &arguments);
    }

    pub(super) fn renew(&mut self, lane: &Lane) {
        let arguments = [lane.name.as_bytes(), lane.owner.as_bytes(), self.bucket.lease_ms.as_bytes()];
        self.call(Script::Renew, &[&self.bucket.lanes, &lane.lane], &arguments);
    }

    pub(super) fn survey(&mut self) {
        self.call(Script::Survey, &[&self.bucket.lanes], &[self.bucket.lane_prefix.as_bytes()]);
    }

    pub(super) fn adopt(&mut self, lane: &Lane, former_owner: &str, process: &str, is_dead: bool) {
        let arguments = [
            lane.name.as_bytes(),
            former_owner.as_bytes(),
            lane.owner.as_bytes(),
            process.as_bytes(),
            self.bucket.lease_ms.as_bytes(),
            if is_dead { b"1" } else { b"0" },
        ];
        self.call(Script::Adopt, &[&self.bucket.lanes, &lane.lane], &arguments);
    }

    /// Leaves a lane. With `is_void` its rows are deleted.
    pub(super) fn leave(&mut self, lane: &Lane, is_void: bool) {
        let life_ms = TOMBSTONE_LIFE.as_millis().to_string();
        let is_void = if is_void { b"1" } else { b"0" };
        let arguments = [lane.name.as_bytes(), lane.owner.as_bytes(), life_ms.as_bytes(), is_void];
        let keys = [&self.bucket.lanes, &lane.lane, &lane.rows, &lane.batches, &lane.tombstone, &self.bucket.bytes];
        self.call(Script::Leave, &keys.map(String::as_str), &arguments);
    }

    pub(super) fn command(&mut self, parts: &[&[u8]]) {
        parts.iter().fold(&mut Cmd::new(), |command, part| command.arg(part)).write_packed_command(&mut self.out);
        self.count += 1;
    }

    fn call(&mut self, script: Script, keys: &[&str], arguments: &[&[u8]]) {
        self.scripts.write_call(&mut self.out, script, keys, arguments);
        self.count += 1;
    }
}
