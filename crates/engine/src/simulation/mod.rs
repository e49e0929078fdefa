//! The gatherer, its journal and its sink under one seed: simulated time, disk and ClickHouse, faults and crashes
//! anywhere.
//!
//! A seed decides a scenario (`scenario.rs`): tables, writers, how the gateway's lives end. Each life (`life.rs`) has a
//! runtime of its own with a clock that stands still while anything can be done, so that hours pass in a moment and a
//! crash is the runtime being dropped. What outlives it is the `World`: the disk, the simulated ClickHouse
//! (`system.rs`) and the books of what the writers (`writer.rs`) sent and were told. After the last life, in which
//! nothing fails, the books are audited (`books.rs`).
//!
//! `make simulate SEED=n` runs one seed and prints what happens; `make simulate SEEDS=n` runs many.

mod books;
mod dead_letters;
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

use windrow_log::simulation::Trace;

use books::Told;
use life::Life;
use scenario::{Ending, Scenario};
use world::World;

/// How a seed went.
#[derive(Debug)]
struct Report {
    seed: u64,
    complaints: Vec<String>,
    trace: Trace,
    lives: usize,
    acknowledged: usize,
    dead_letters: usize,
    /// Of the sink, and those whose answers were lost.
    calls: u64,
    lost_calls: u64,
}

fn simulate(scenario: Scenario, is_told: bool) -> Report {
    let mut world = World::new(scenario, is_told);
    world.say(|| format!("{:?}", world.scenario));
    let mut complaints = Vec::new();
    let endings = world.scenario.endings.iter().copied().map(Some).chain([None]);
    for (number, ending) in endings.enumerate() {
        let life = Life { world: world.clone(), number, ending };
        complaints.extend(life.live().err().map(|why| format!("life {number}: {why}")));
        world.disk = match ending {
            Some(Ending::PowerFails { .. }) => world.disk.restart(),
            _ => world.disk.reopen(),
        };
    }
    let trace = world.trace();
    let (system, books, dead_letters) = (world.system(), world.books(), world.dead_letter_state().kept());
    complaints.extend(books.audit(&system, &dead_letters));
    Report {
        seed: world.scenario.seed,
        complaints,
        trace,
        lives: world.scenario.endings.len() + 1,
        acknowledged: books.count(Told::Acknowledged),
        dead_letters: dead_letters.len(),
        calls: system.calls,
        lost_calls: system.lost_calls,
    }
}
