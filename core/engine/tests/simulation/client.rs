//! A client whose inserts have tokens. It comes to any gateway, which hands the insert to the token's owner.
//! It sends the insert again while it does not know that all of it is kept, and sometimes even when it knows.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;

use super::books::Told;
use super::cluster::LiveGateway;
use super::hand_over::{hand_over, Part, Patience};
use super::rows::destination_of;
use super::sabotage::{self, Sabotage};
use super::scenario::ClientPlan;
use super::world::World;
use super::writer::{insert_of, kind_of};
use crate::{table_by_name, DedupKeys, DeduplicationBounds};

/// The most attempts to send an insert. With the longest pause in between, they last longer than a gateway's
/// start.
const MOST_ATTEMPTS: u32 = 10;
const LONGEST_PAUSE_MS: u64 = 2_000;
/// The first of the numbers that clients have as writers.
const FIRST_WRITER: usize = 1_000;
/// The id of the cut of rows by shards.
const CUT: u64 = 7;
/// Bounds that last longer than a run: a repeat that comes when the index has forgotten is stored again, and
/// rightly so.
const BOUNDS: DeduplicationBounds = DeduplicationBounds { entries: 10_000, age_micros: None };

pub(super) struct Client {
    pub(super) world: World,
    pub(super) number: usize,
    pub(super) plan: ClientPlan,
    pub(super) random: Rng,
}

struct Tokened {
    token: u128,
    /// Shards that the insert has rows for, each with the number of its part: the same whenever the insert is
    /// sent.
    parts: Vec<(u32, u64)>,
}

impl Client {
    pub(super) async fn run(mut self) {
        for _ in 0..self.plan.inserts {
            self.pause(self.plan.pause_ms).await;
            let insert = self.insert();
            self.send_until_kept(&insert).await;
        }
    }

    async fn pause(&mut self, most_ms: u64) {
        tokio::time::sleep(Duration::from_millis(self.random.u64(0..=most_ms))).await;
    }

    fn insert(&mut self) -> Tokened {
        let (table, token) = (self.world.scenario.tables[self.plan.table], self.random.u128(..));
        let shards = table.shards_of_insert(&mut self.random);
        let now_ms = self.world.time.now_ms();
        let mut books = self.world.books();
        let parts = shards.into_iter().map(|shard| {
            let place = destination_of(self.plan.table, table, shard).physical_table();
            (shard, books.send_with_token(FIRST_WRITER + self.number, place, self.plan.level, now_ms))
        });
        Tokened { token, parts: parts.collect() }
    }

    async fn send_until_kept(&mut self, insert: &Tokened) {
        let mut known = vec![Told::Refused; insert.parts.len()];
        for attempt in 0..MOST_ATTEMPTS {
            let entry = self.random.usize(0..2);
            for (known, told) in known.iter_mut().zip(self.attempt(insert, entry).await) {
                // One that was kept is kept; after an attempt of which nobody knows the end, none is surely refused.
                *known = match (*known, told) {
                    (Told::Acknowledged, _) | (_, Told::Acknowledged) => Told::Acknowledged,
                    (Told::Nothing, _) | (_, Told::Nothing) => Told::Nothing,
                    (Told::Refused, Told::Refused) => Told::Refused,
                };
            }
            self.world.books().tokens.attempts += 1;
            self.world.books().tokens.repeats += u64::from(attempt > 0);
            // Now and then the last answer is lost, too.
            if known.iter().all(|told| *told == Told::Acknowledged) && self.random.u32(0..4) > 0 {
                break;
            }
            self.pause(LONGEST_PAUSE_MS).await;
        }
        let now_ms = self.world.time.now_ms();
        for ((_, number), told) in insert.parts.iter().zip(known) {
            self.world.say(|| format!("insert {number}: {told:?}"));
            self.world.books().tell(*number, told, now_ms);
        }
    }

    /// Makes one attempt, and returns the result that it shows for each part.
    async fn attempt(&mut self, insert: &Tokened, entry: usize) -> Vec<Told> {
        let all = |told| vec![told; insert.parts.len()];
        let owner = if sabotage::is(Sabotage::LeavesTokens) { entry } else { (insert.token % 2) as usize };
        let patience = Patience { until_taken: self.at_most(3_000), until_stored: self.at_most(10_000) };
        let gateways = self.world.gateways.clone();
        let Some(entry) = gateways.of(entry) else { return all(Told::Refused) };
        self.pause(5).await;
        // While the owner is away nobody takes its inserts: it may have them in its journal.
        let Some(owner) = gateways.of(owner) else { return all(Told::Refused) };
        self.world.books().tokens.hops += u64::from(owner.world.gateway != entry.world.gateway);
        let parts = self.parts(insert, &owner);
        tokio::select! {
            biased;
            () = owner.world.ended.wait() => all(Told::Nothing),
            () = entry.world.ended.wait() => all(Told::Nothing),
            told = hand_over(&owner.gatherer, parts, patience, |_, _| {}) => {
                // What a machine without power says is heard by nobody.
                if owner.world.is_powered() && entry.world.is_powered() { told } else { all(Told::Nothing) }
            }
        }
    }

    fn at_most(&mut self, ms: u64) -> Option<Duration> {
        (self.random.u32(0..3) == 0).then(|| Duration::from_millis(self.random.u64(0..ms)))
    }

    fn parts(&self, insert: &Tokened, owner: &LiveGateway) -> Vec<Part> {
        let (table, kind) = (self.world.scenario.tables[self.plan.table], Arc::new(kind_of(&self.world)));
        let part = |&(shard, number): &(u32, u64)| {
            let shape = owner.gatherer.shape(destination_of(self.plan.table, table, shard));
            let whole =
                DedupKeys::new(table_by_name("default", &shape.destination().table), insert.token, vec![], BOUNDS);
            let keys = if shard == 0 { whole } else { whole.of_shard(CUT, shard, vec![]) };
            let mut insert = insert_of(number, (FIRST_WRITER + self.number) as u64, self.plan.level, &shape, &kind);
            insert.dedup = Some(keys);
            Part { shape, insert }
        };
        insert.parts.iter().map(part).collect()
    }
}
