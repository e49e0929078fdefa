//! The gatherer, its journal and its sink under one seed: simulated time, disk and ClickHouse, faults and
//! crashes anywhere.
//!
//! A seed decides a scenario (`scenario.rs`): tables, writers, and the ends of the gateway's lives. Each life
//! (`life.rs`) has a runtime of its own with a clock that stands still while any task can run, so that hours
//! pass in a moment and a crash means that the runtime is dropped. The `World` outlives it: the disk, the
//! simulated ClickHouse (`system.rs`) and the books of the inserts that the writers (`writer.rs`) sent, with
//! the answers that they were told. After the last life, in which nothing fails, the books are audited
//! (`books.rs`).
//!
//! Two gateways beside each other share a runtime (`cluster.rs`), and have clients whose inserts have tokens
//! (`client.rs`). Tables may have two shards: then an insert's parts are inserts of their own
//! (`hand_over.rs`), and each shard has faults, and a window of known batches, of its own.
//!
//! `make simulate SEED=n` runs one seed and prints its events; `make simulate SEEDS=n` runs many.

mod books;
mod client;
mod cluster;
mod dead_letters;
mod hand_over;
mod life;
mod rows;
mod runs;
pub(crate) mod sabotage;
mod scenario;
mod system;
mod time;
mod weather;
mod world;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use windrow_log::simulation::Trace;

use books::{Level, TokenCounts, Told};
use life::Life;
use scenario::Scenario;
use world::World;

/// The time within which a part is acknowledged whose shard takes everything, whatever the other shard does.
const UNDELAYED: Duration = Duration::from_secs(6);

/// The result of a seed.
#[derive(Debug)]
struct Report {
    seed: u64,
    complaints: Vec<String>,
    trace: Trace,
    lives: usize,
    acknowledged: usize,
    dead_letters: usize,
    /// The number of calls to the sink, and of those whose answers were lost.
    calls: u64,
    lost_calls: u64,
    /// The number of parts for shard 1 that were acknowledged in the first life, as `disk` and as `stored`.
    first_shard: [usize; 2],
    tokens: TokenCounts,
    stored_tokens: u64,
    /// The number of lives that ended while the other gateway lived on.
    survived: u64,
}

/// Runs the lives of a gateway that has no other beside it, each on a runtime of its own.
fn live_alone(world: &mut World) -> Vec<String> {
    let mut complaints = Vec::new();
    let endings = world.endings().to_vec();
    for (number, ending) in endings.into_iter().map(Some).chain([None]).enumerate() {
        let life = Life { world: world.clone(), number, ending, died: Arc::default() };
        complaints.extend(life.live().err().map(|why| format!("life {number}: {why}")));
        world.begin_anew(ending);
    }
    complaints
}

fn simulate(scenario: Scenario, is_told: bool) -> Report {
    let first = World::new(scenario, is_told);
    let mut worlds: Vec<World> = (0..first.scenario.endings.len())
        .map(|gateway| if gateway == 0 { first.clone() } else { first.beside(gateway) })
        .collect();
    let world = first;
    world.say(|| format!("{:?}", world.scenario));
    let mut complaints = match worlds.as_mut_slice() {
        [world] => live_alone(world),
        worlds => cluster::live(worlds).unwrap_or_else(|error| vec![error]),
    };
    let mut trace = world.trace();
    worlds.iter().for_each(|world| world.add_own_trace(&mut trace));
    let dead_letters: Vec<_> = worlds.iter().flat_map(|world| world.dead_letter_state().kept()).collect();
    let (system, books) = (world.system(), world.books());
    complaints.extend(books.audit(&system, &dead_letters));
    if world.scenario.shard_away == Some(2) {
        complaints.extend(books.delays(1, UNDELAYED.as_millis() as u64));
    }
    Report {
        seed: world.scenario.seed,
        complaints,
        trace,
        lives: world.scenario.endings.iter().map(|endings| endings.len() + 1).sum(),
        acknowledged: books.count(Told::Acknowledged),
        dead_letters: dead_letters.len(),
        calls: system.calls,
        lost_calls: system.lost_calls,
        tokens: books.tokens,
        stored_tokens: books.count_stored_tokens(&system),
        survived: books.survived,
        first_shard: [Level::Disk, Level::Stored].map(|level| books.acknowledged_of(1, level)),
    }
}
