//! Two gateways at the same time in front of one ClickHouse, each with its own lives, and clients that go
//! from one to the other.
//!
//! The gateways share a runtime, so a life can't end by dropping it. Its writers are dropped; its other tasks
//! stay forever where they are, since its disks, its sink and its dead letters have no power any more.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use tokio::task::JoinSet;

use super::client::Client;
use super::life::Life;
use super::system::SimSink;
use super::world::World;
use crate::Gatherer;

/// The longest time until a gateway starts again, in milliseconds.
const LONGEST_OUTAGE_MS: u64 = 3_000;
/// The distance between the first life numbers of two gateways. The numbers of a gateway's lives follow each
/// other.
const LIVES_OF_A_GATEWAY: usize = 100;

/// The gateways that live, where clients find them.
#[derive(Clone, Default)]
pub(super) struct Gateways {
    live: Arc<Mutex<[Option<LiveGateway>; 2]>>,
}

#[derive(Clone)]
pub(super) struct LiveGateway {
    pub(super) gatherer: Gatherer<SimSink>,
    /// The world as the gateway's life has it.
    pub(super) world: World,
}

impl Gateways {
    fn lock(&self) -> MutexGuard<'_, [Option<LiveGateway>; 2]> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn begins(&self, gateway: usize, live: LiveGateway) {
        self.lock()[gateway] = Some(live);
    }

    /// Notes the end of a gateway's life, and returns the number of gateways that live on.
    pub(super) fn ends(&self, gateway: usize) -> usize {
        let mut live = self.lock();
        live[gateway] = None;
        live.iter().flatten().count()
    }

    pub(super) fn of(&self, gateway: usize) -> Option<LiveGateway> {
        self.lock()[gateway].clone()
    }
}

/// Runs both gateways. Returns the failures that the books do not show.
pub(super) fn live(worlds: &mut [World]) -> Result<Vec<String>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    Ok(runtime.block_on(run(worlds)))
}

async fn run(worlds: &mut [World]) -> Vec<String> {
    let shared = worlds[0].clone();
    shared.time.begin_life();
    let clients = run_clients(&shared);
    let mut complaints = Vec::new();
    let mut lives = JoinSet::new();
    worlds.iter().for_each(|world| drop(lives.spawn(live_until_the_last(world.clone()))));
    for (world, wrong) in lives.join_all().await {
        let gateway = world.gateway;
        worlds[gateway] = world;
        complaints.extend(wrong);
    }
    let mut last = JoinSet::new();
    for world in worlds.iter() {
        let number = number_of(world.gateway, world.endings().len());
        last.spawn(Life { world: world.clone(), number, ending: None, died: Arc::default() }.run());
    }
    if clients.await.is_err() {
        complaints.push("a client failed".to_owned());
    }
    shared.clients_ended.happens();
    complaints.extend(last.join_all().await.into_iter().filter_map(Result::err));
    complaints
}

/// Starts the clients. The returned task ends with the last of them.
fn run_clients(world: &World) -> tokio::task::JoinHandle<()> {
    let mut clients = JoinSet::new();
    for (number, plan) in world.scenario.clients.iter().enumerate() {
        let random = Rng::with_seed(world.scenario.seed ^ ((number as u64 + 1) << 40));
        clients.spawn(Client { world: world.clone(), number, plan: *plan, random }.run());
    }
    tokio::spawn(async move { drop(clients.join_all().await) })
}

async fn live_until_the_last(mut world: World) -> (World, Vec<String>) {
    let mut complaints = Vec::new();
    let mut random = Rng::with_seed(world.scenario.seed ^ (0x0047_a6e0 + world.gateway as u64));
    for (number, ending) in world.endings().to_vec().into_iter().enumerate() {
        let life = Life {
            world: world.clone(),
            number: number_of(world.gateway, number),
            ending: Some(ending),
            died: Arc::default(),
        };
        complaints.extend(life.run().await.err().map(|why| format!("gateway {}: {why}", world.gateway)));
        world.begin_anew(Some(ending));
        tokio::time::sleep(Duration::from_millis(random.u64(0..LONGEST_OUTAGE_MS))).await;
    }
    (world, complaints)
}

fn number_of(gateway: usize, life: usize) -> usize {
    gateway * LIVES_OF_A_GATEWAY + life
}
