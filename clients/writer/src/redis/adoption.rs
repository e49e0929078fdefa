//! Lanes of writers that are gone: taken over with the batches that they had, under the same ids, and the
//! rows that they had not made batches of.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use redis::Value;

use super::connection::{text, ConnectionError};
use super::lane::{Bucket, Lane};
use super::lane_index::{Change, LaneIndex};
use super::link::{Contents, Link, Surveyed};
use super::process;
use super::state::{BatchLimits, LaneState, State};
use crate::buffer::Sealed;
use crate::destination::Destination;
use crate::id::BatchId;

/// A lane that this writer has taken over, and its contents.
pub(super) struct Adopted {
    lane: Lane,
    serial: u64,
    destination: Destination,
    contents: Contents,
}

/// The writer that adopts lanes.
pub(super) struct Adopter<'a> {
    pub(super) bucket: &'a Bucket,
    pub(super) owner: &'a str,
    pub(super) process: &'a str,
    pub(super) destination: &'a Destination,
}

impl Adopter<'_> {
    /// Takes over every lane of the same table whose owner is dead, or has been silent for longer than its
    /// lease. Takes over its own lanes, too, if they are not among those that `has`: the connection broke
    /// before their contents were read.
    ///
    /// Does not take over a lane that this writer has and another had since, who is gone as well: records
    /// that this writer has still to send of it would be taken for records of its present contents. First
    /// this writer has to hear that the lane was lost.
    pub(super) fn adopt_all(
        &self,
        link: &mut Link,
        has: impl Fn(&str) -> bool,
    ) -> Result<Vec<Adopted>, ConnectionError> {
        let mut adopted = Vec::new();
        for surveyed in link.survey(self.bucket)? {
            let is_dead = surveyed.owner == self.owner || process::is_dead(&surveyed.process);
            let is_left = is_dead || surveyed.lease_left_ms <= 0;
            let Some(destination) = Destination::from_bytes(&surveyed.destination) else { continue };
            if is_left && !has(&surveyed.name) && destination.is_same_table(self.destination) {
                adopted.extend(self.adopt(link, &surveyed, is_dead, destination)?);
            }
        }
        Ok(adopted)
    }

    fn adopt(
        &self,
        link: &mut Link,
        surveyed: &Surveyed,
        is_dead: bool,
        destination: Destination,
    ) -> Result<Option<Adopted>, ConnectionError> {
        let lane = self.bucket.lane(&surveyed.name, self.owner);
        let replies =
            link.talk(self.bucket, |pipeline| pipeline.adopt(&lane, &surveyed.owner, self.process, is_dead))?;
        let Some(Value::Array(items)) = replies.first() else { return Ok(None) };
        if items.first().and_then(text) != Some("OK") {
            return Ok(None);
        }
        let serial = items.get(1).and_then(text).and_then(|serial| serial.parse().ok()).unwrap_or(0);
        let contents = link.contents(self.bucket, &lane)?;
        Ok(Some(Adopted { lane, serial, destination, contents }))
    }
}

impl State {
    /// Enters a lane that was adopted: its batches become this writer's.
    pub(super) fn enter(&mut self, adopted: Adopted, own_destination: &Destination, limits: BatchLimits) {
        let Adopted { lane, serial, destination, contents } = adopted;
        let mut index = LaneIndex::default();
        let sizes: HashMap<u64, u64> = contents.entries.iter().map(|(rows, bytes)| (rows.start, *bytes)).collect();
        contents.entries.into_iter().for_each(|(rows, _)| index.add_entry(rows));
        contents.batches.into_iter().for_each(|(id, members)| index.add_recorded(id, members));
        self.found.complaints.extend(contents.complaints);
        let destination = (destination != *own_destination).then(|| Arc::new(destination));
        let number = self.lanes.len();
        let tidied = index.tidy();
        self.lanes.push(LaneState { lane, index, serial, is_gone: false, destination });
        self.record(number, tidied);
        for id in self.lanes[number].index.live_batches() {
            self.offer(number, id, true);
        }
        self.seal_unsealed(number, &sizes, limits);
    }

    /// Joins neighbours to batches as large as they may be. The batches are recorded at once: a writer of an
    /// earlier release, if it is the next, overlooks rows of an entry of which others are recorded.
    fn seal_unsealed(&mut self, lane: usize, sizes: &HashMap<u64, u64>, limits: BatchLimits) {
        let index = &self.lanes[lane].index;
        let mut groups: Vec<(Range<u64>, u64)> = Vec::new();
        for rows in index.unsealed() {
            let entry = index.entries_of(&rows).into_iter().next().unwrap_or(rows.clone());
            let entry_bytes = sizes.get(&entry.start).copied().unwrap_or(0);
            let bytes = entry_bytes / (entry.end - entry.start) * (rows.end - rows.start);
            match groups.last_mut() {
                Some((all, sum))
                    if all.end == rows.start
                        && rows.end - all.start <= limits.rows as u64
                        && *sum + bytes <= limits.bytes as u64 =>
                {
                    all.end = rows.end;
                    *sum += bytes;
                }
                _ => groups.push((rows, bytes)),
            }
        }
        let mut change = Change::default();
        for (rows, _) in groups {
            // Without random numbers nothing else works either; the rows stay where they are, for the next one.
            let Ok(id) = BatchId::random() else { continue };
            change.writes.append(&mut self.lanes[lane].index.seal(id, rows).writes);
        }
        let sealed: Vec<BatchId> = change.writes.iter().map(|(id, _)| *id).collect();
        self.record(lane, change);
        sealed.into_iter().for_each(|id| self.offer(lane, id, false));
    }

    /// Offers a batch of an adopted lane to the writer. A batch that was given up to another process, and
    /// comes back when that has died, is still under way here and only changes its lane.
    fn offer(&mut self, lane: usize, id: BatchId, is_recorded: bool) {
        let Some(members) = self.lanes[lane].index.members(id) else { return };
        let members = members.rows.clone();
        if let Some(batch) = self.batches.get_mut(&id) {
            batch.lane = lane;
            return;
        }
        let sealed = Sealed {
            id,
            rows: members.end - members.start,
            positions: 0..0,
            held_bytes: 0,
            destination: self.lanes[lane].destination.clone(),
        };
        self.add_batch(lane, sealed.clone(), members, None, is_recorded);
        self.found.batches.push(sealed);
    }
}
