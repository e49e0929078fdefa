//! What writers sent and were told, held in the end against what the simulated ClickHouse and the dead letters have.
//!
//! 1. Acknowledged as `stored`: stored. As `disk`: stored or a dead letter. As `memory`: the same, unless its gateway
//!    was killed.
//! 2. Refused, withdrawn, or failed: neither.
//! 3. Where the table deduplicates, nothing is stored twice, nor stored and a dead letter, whatever was told.
//! 4. A dead letter has a reason: ClickHouse refuses the insert for good.
//! 5. What is stored was sent, to that table, and what a writer was told is kept stands in the order in which it was
//!    sent.

use std::collections::BTreeMap;

use windrow_log::simulation::Trace;

use super::dead_letters::Kept;
use super::system::{StoredInsert, System};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Memory,
    Disk,
    Stored,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// Its gateway ended before it answered, or its sender did not wait for the answer, or the answer was that nobody
    /// knows.
    Nothing,
    Acknowledged,
    /// Surely not kept, neither now nor later.
    Refused,
}

#[derive(Debug)]
pub(super) struct Sent {
    pub(super) writer: usize,
    pub(super) table: String,
    pub(super) level: Level,
    pub(super) life: usize,
    pub(super) told: Told,
}

#[derive(Default)]
pub(super) struct Books {
    /// By number.
    sent: Vec<Sent>,
    /// The lives of the gateway that ended in an orderly way, with nothing left.
    clean_lives: Vec<usize>,
    pub(super) trace: Trace,
}

/// What became of one insert.
#[derive(Debug, Default, Clone, Copy)]
struct Fate {
    copies: u32,
    dead_letters: u32,
    /// Those that say that the insert may be stored.
    doubtful_dead_letters: u32,
}

impl Books {
    /// An insert gets its number.
    pub(super) fn send(&mut self, writer: usize, table: &str, level: Level, life: usize) -> u64 {
        self.sent.push(Sent { writer, table: table.to_owned(), level, life, told: Told::Nothing });
        self.sent.len() as u64 - 1
    }

    pub(super) fn tell(&mut self, insert: u64, told: Told) {
        self.trace.add_number((insert << 2) | told as u64);
        self.sent[insert as usize].told = told;
    }

    pub(super) fn ended_clean(&mut self, life: usize) {
        self.clean_lives.push(life);
    }

    pub(super) fn count(&self, told: Told) -> usize {
        self.sent.iter().filter(|sent| sent.told == told).count()
    }

    /// What is wrong, in sentences; nothing if all is well.
    pub(super) fn audit(&self, system: &System, dead_letters: &[Kept]) -> Vec<String> {
        let mut complaints = system.complaints.clone();
        let mut fates = vec![Fate::default(); self.sent.len()];
        for stored in &system.stored {
            match self.sent.get(stored.insert as usize).filter(|sent| sent.table == stored.table) {
                Some(_) => fates[stored.insert as usize].copies += 1,
                None => {
                    complaints.push(format!("insert {} is in {}: nobody sent it there", stored.insert, stored.table))
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
        if dead_letters > 0 && !system.has_refused(insert) {
            return Some("a dead letter without a reason");
        }
        if system.deduplicates(&sent.table) && (fate.copies + fate.dead_letters > 1 || dead_letters > 1) {
            return Some("kept twice");
        }
        None
    }

    fn is_promised(&self, sent: &Sent) -> bool {
        sent.told == Told::Acknowledged && (sent.level != Level::Memory || self.clean_lives.contains(&sent.life))
    }

    /// Inserts whose writer was told that they are kept, where a later one of the same writer stands before them.
    fn disorder(&self, system: &System, fates: &[Fate]) -> Vec<String> {
        let mut latest: BTreeMap<(usize, &str), u64> = BTreeMap::new();
        let mut seen = vec![false; self.sent.len()];
        let mut complaints = Vec::new();
        for StoredInsert { table, insert, .. } in &system.stored {
            let Some(sent) = self.sent.get(*insert as usize) else { continue };
            // Of one whose outcome was left open nobody knows when it was stored; and one that was refused for good,
            // and is tried again because its dead letter came too late, has lost its place.
            let is_open = fates[*insert as usize].doubtful_dead_letters > 0 || system.has_refused(*insert);
            if is_open || !self.is_promised(sent) || std::mem::replace(&mut seen[*insert as usize], true) {
                continue;
            }
            let latest = latest.entry((sent.writer, table)).or_insert(*insert);
            if *latest > *insert {
                complaints.push(format!("writer {}: insert {insert} is stored behind {latest}", sent.writer));
            }
            *latest = *insert.max(latest);
        }
        complaints
    }
}
