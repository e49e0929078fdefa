//! The inserts that writers sent and the answers that they were told, compared at the end with the contents
//! of the simulated ClickHouse and the dead letters.
//!
//! 1. Acknowledged as `stored`: stored. As `disk`: stored or a dead letter. As `memory`: the same, unless its
//!    gateway was killed.
//! 2. Refused, withdrawn, or failed: neither.
//! 3. Where the table deduplicates, no insert is stored twice, nor stored and a dead letter, whatever was
//!    told. An insert with a token is stored once however often it is sent, and by whichever gateway; but one
//!    that can't be stored makes a dead letter each time, and may be stored when it comes again.
//! 4. A dead letter has a reason: ClickHouse refuses the insert for good; or it is unknown whether it is
//!    stored, and a repeat would not be recognised.
//! 5. Each stored insert was sent, to that table and that shard of it. Inserts that a writer was told are
//!    kept stand in the order in which they were sent; unless they failed for half a minute, and their senders
//!    are not known any more.

use std::collections::BTreeMap;

use windrow_log::simulation::Trace;

use super::dead_letters::Kept;
use super::system::{StoredInsert, System};
use crate::sink::PhysicalTable;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Memory,
    Disk,
    Stored,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// The outcome is unknown: its gateway ended before it answered, or its sender did not wait for the
    /// answer, or the answer said so.
    Nothing,
    Acknowledged,
    /// The insert is surely not kept, neither now nor later.
    Refused,
}

#[derive(Debug)]
pub(super) struct Sent {
    pub(super) writer: usize,
    pub(super) place: PhysicalTable,
    pub(super) level: Level,
    pub(super) life: usize,
    pub(super) told: Told,
    /// True if the insert has a token. It may have been sent several times.
    has_token: bool,
    sent_at_ms: u64,
    told_at_ms: Option<u64>,
}

/// Figures of inserts with tokens.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct TokenCounts {
    pub(super) attempts: u64,
    pub(super) repeats: u64,
    /// The number of hops from the gateway that an insert came to, to its owner.
    pub(super) hops: u64,
}

#[derive(Default)]
pub(super) struct Books {
    /// Sent inserts, by their numbers.
    sent: Vec<Sent>,
    /// The lives of the gateway that ended in an orderly way, with nothing left.
    clean_lives: Vec<usize>,
    pub(super) trace: Trace,
    pub(super) tokens: TokenCounts,
    /// The number of lives that ended while another gateway lived on.
    pub(super) survived: u64,
}

/// The outcome of one insert.
#[derive(Debug, Default, Clone, Copy)]
struct Fate {
    copies: u32,
    dead_letters: u32,
    /// The number of dead letters that say that the insert may be stored.
    doubtful_dead_letters: u32,
}

impl Books {
    /// Records an insert, or its part for one shard, and returns its number.
    pub(super) fn send(
        &mut self,
        writer: usize,
        place: PhysicalTable,
        level: Level,
        life: usize,
        sent_at_ms: u64,
    ) -> u64 {
        let (told, told_at_ms, has_token) = (Told::Nothing, None, false);
        self.sent.push(Sent { writer, place, level, life, told, has_token, sent_at_ms, told_at_ms });
        self.sent.len() as u64 - 1
    }

    /// Records an insert with a token, which is sent in no certain life.
    pub(super) fn send_with_token(
        &mut self,
        writer: usize,
        place: PhysicalTable,
        level: Level,
        sent_at_ms: u64,
    ) -> u64 {
        let insert = self.send(writer, place, level, usize::MAX, sent_at_ms);
        self.sent[insert as usize].has_token = true;
        insert
    }

    pub(super) fn tell(&mut self, insert: u64, told: Told, at_ms: u64) {
        self.trace.add_number((insert << 2) | told as u64);
        let sent = &mut self.sent[insert as usize];
        (sent.told, sent.told_at_ms) = (told, Some(at_ms));
    }

    pub(super) fn ended_clean(&mut self, life: usize) {
        self.clean_lives.push(life);
    }

    pub(super) fn count(&self, told: Told) -> usize {
        self.sent.iter().filter(|sent| sent.told == told).count()
    }

    /// Returns the complaints, in sentences; none if all is well.
    pub(super) fn audit(&self, system: &System, dead_letters: &[Kept]) -> Vec<String> {
        let mut complaints = system.complaints.clone();
        let mut fates = vec![Fate::default(); self.sent.len()];
        for stored in &system.stored {
            match self.sent.get(stored.insert as usize).filter(|sent| sent.place == stored.place) {
                Some(_) => fates[stored.insert as usize].copies += 1,
                None => {
                    complaints.push(format!("insert {} is in {:?}: nobody sent it there", stored.insert, stored.place))
                }
            }
        }
        for dead_letter in dead_letters {
            match fates.get_mut(dead_letter.insert as usize) {
                Some(fate) if dead_letter.says_may_be_stored => fate.doubtful_dead_letters += 1,
                Some(fate) => fate.dead_letters += 1,
                None => complaints.push(format!("a dead letter of insert {}, which nobody sent", dead_letter.insert)),
            }
        }
        for (insert, (sent, fate)) in self.sent.iter().zip(&fates).enumerate() {
            if let Some(why) = self.complaint(insert as u64, sent, *fate, system) {
                complaints.push(format!("insert {insert} ({sent:?}): {why} ({fate:?})"));
            }
        }
        complaints.extend(self.disorder(system, &fates));
        complaints
    }

    fn complaint(&self, insert: u64, sent: &Sent, fate: Fate, system: &System) -> Option<&'static str> {
        let dead_letters = fate.dead_letters + fate.doubtful_dead_letters;
        let is_kept = fate.copies + dead_letters > 0;
        if self.is_promised(sent) && !is_kept {
            return Some("acknowledged and lost");
        }
        if sent.told == Told::Acknowledged && sent.level == Level::Stored && fate.copies == 0 {
            return Some("acknowledged as stored, and isn't");
        }
        if sent.told == Told::Refused && is_kept {
            return Some("refused and kept all the same");
        }
        // Its outcome was unknown again and again, where each attempt may have stored it once more.
        let is_given_up = fate.dead_letters == 0 && !system.deduplicates(&sent.place);
        if dead_letters > 0 && !is_given_up && !system.has_refused(insert) {
            return Some("a dead letter without a reason");
        }
        let is_twice = match sent.has_token {
            // When rights are gone after an answer was lost, nobody knows whether it is stored, and its token is free.
            true => fate.copies > 1 && !system.has_refused(insert),
            false => fate.copies + fate.dead_letters > 1 || dead_letters > 1,
        };
        if system.deduplicates(&sent.place) && is_twice {
            return Some("kept twice");
        }
        None
    }

    /// Returns the parts for this shard that were sent in the first life and not acknowledged within the
    /// limit. A part that was sent in the life's last moments may have had no time.
    pub(super) fn delays(&self, shard: u32, limit_ms: u64) -> Vec<String> {
        let of_life = || self.sent.iter().enumerate().filter(|(_, sent)| sent.life == 0);
        let latest_ms = of_life().map(|(_, sent)| sent.told_at_ms.unwrap_or(sent.sent_at_ms)).max().unwrap_or(0);
        let is_late = |sent: &Sent| match (sent.told, sent.told_at_ms) {
            (Told::Acknowledged, Some(told_at_ms)) => told_at_ms > sent.sent_at_ms + limit_ms,
            (_, told_at_ms) => told_at_ms.is_some() || latest_ms > sent.sent_at_ms + limit_ms,
        };
        let late = of_life().filter(|(_, sent)| sent.place.shard == shard && is_late(sent));
        late.map(|(insert, sent)| format!("insert {insert} ({sent:?}): delayed")).collect()
    }

    /// Returns the number of inserts with a token that are stored once.
    pub(super) fn count_stored_tokens(&self, system: &System) -> u64 {
        let mut copies = vec![0; self.sent.len()];
        system.stored.iter().for_each(|stored| copies[stored.insert as usize] += 1);
        self.sent.iter().zip(copies).filter(|(sent, copies)| sent.has_token && *copies == 1).count() as u64
    }

    /// Returns the number of parts for this shard that were acknowledged in the first life.
    pub(super) fn acknowledged_of(&self, shard: u32, level: Level) -> usize {
        let is_one = |sent: &&Sent| {
            sent.life == 0 && sent.place.shard == shard && sent.level == level && sent.told == Told::Acknowledged
        };
        self.sent.iter().filter(is_one).count()
    }

    fn is_promised(&self, sent: &Sent) -> bool {
        sent.told == Told::Acknowledged && (sent.level != Level::Memory || self.clean_lives.contains(&sent.life))
    }

    /// Returns a complaint for each insert whose writer was told that it is kept, and which is stored behind
    /// a later one of the same writer.
    fn disorder(&self, system: &System, fates: &[Fate]) -> Vec<String> {
        let mut latest: BTreeMap<(usize, &PhysicalTable), u64> = BTreeMap::new();
        let mut seen = vec![false; self.sent.len()];
        let mut complaints = Vec::new();
        for StoredInsert { place, insert } in &system.stored {
            let Some(sent) = self.sent.get(*insert as usize) else { continue };
            // Of one whose outcome was left open nobody knows when it was stored; and one that was refused for good or
            // given up, and is tried again because its dead letter came too late, has lost its place.
            let was_ended = system.has_refused(*insert) || system.may_be_given_up(*insert);
            let is_open = fates[*insert as usize].doubtful_dead_letters > 0 || was_ended;
            // Nor has one a place that is sent again.
            let is_open = is_open || sent.has_token || system.fails_for_long_after(place, sent.sent_at_ms);
            if is_open || !self.is_promised(sent) || std::mem::replace(&mut seen[*insert as usize], true) {
                continue;
            }
            let latest = latest.entry((sent.writer, place)).or_insert(*insert);
            if *latest > *insert {
                complaints.push(format!("writer {}: insert {insert} is stored behind {latest}", sent.writer));
            }
            *latest = *insert.max(latest);
        }
        complaints
    }
}
