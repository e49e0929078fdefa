//! The faults, and their rates at each time of a life.

use std::time::Duration;

use fastrand::Rng;
use windrow_log::simulation::DiskFaults;

use super::system::SystemFaults;
use super::world::World;

/// Ends all faults.
pub(super) fn calm(world: &World) {
    world.system().faults.fill(SystemFaults { slowest_ms: 50, ..SystemFaults::default() });
    world.dead_letter_state().failures_per_thousand = 0;
    world.disk.set_faults(DiskFaults::default());
}

/// Changes the faults for as long as the life lasts.
pub(super) async fn weather(world: World, mut random: Rng) {
    loop {
        if let Some(shard) = world.scenario.shard_away {
            world.system().faults[shard as usize].is_away = true;
        }
        if world.scenario.system_faults > 0 {
            for shard in world.scenario.shards() {
                let faults = system_faults(world.scenario.system_faults, &mut random);
                world.say(|| format!("shard {shard}: {faults:?}"));
                world.system().faults[shard as usize] = faults;
            }
            world.dead_letter_state().failures_per_thousand = random.u32(0..300);
        }
        if world.scenario.disk_faults > 0 {
            let faults = disk_faults(world.scenario.disk_faults, &mut random);
            world.say(|| format!("{faults:?}"));
            world.disk.set_faults(faults);
        }
        // Now and then for hours.
        let longest_ms = if random.u32(0..20) == 0 { 7_200_000 } else { world.scenario.life_ms };
        tokio::time::sleep(Duration::from_millis(random.u64(1..=longest_ms))).await;
    }
}

fn system_faults(worst: u32, random: &mut Rng) -> SystemFaults {
    let mut share = |one_in: u32| if random.u32(0..one_in) == 0 { random.u32(0..=worst) } else { 0 };
    SystemFaults {
        not_sent: share(2),
        refused_for_now: share(2),
        lost: share(3),
        runs_on: share(4),
        is_revoked: random.u32(0..12) == 0,
        is_away: random.u32(0..8) == 0,
        slowest_ms: [10, 200, 10_000][random.usize(0..3)],
    }
}

fn disk_faults(worst: u32, random: &mut Rng) -> DiskFaults {
    match random.u32(0..8) {
        0..=2 => DiskFaults::default(),
        3 => DiskFaults { is_full: true, ..DiskFaults::default() },
        4 => DiskFaults { sync: 1000, ..DiskFaults::default() },
        _ => DiskFaults::everywhere(random.u32(0..=worst)),
    }
}
