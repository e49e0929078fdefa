//! The gatherer's access to the world around it: the wall clock, randomness, threads that may wait for a
//! disk. A simulation brings its own. (The time that passes is tokio's clock, which a test can hold.)

use std::time::{SystemTime, UNIX_EPOCH};

pub trait Environment: Send + Sync + 'static {
    /// Returns microseconds since 1970, for people and logs only: this clock may jump.
    fn wall_micros(&self) -> u64;

    /// Returns a random number. Batches are named by such numbers: two must never be equal, also over
    /// restarts.
    fn random_u128(&self) -> u128;

    /// Says whether reading from a disk is handed to a thread that may wait. A simulation, whose disk is
    /// memory, reads at once.
    fn reads_in_threads(&self) -> bool;
}

/// The environment that the machine itself gives.
#[derive(Debug, Clone, Copy, Default)]
pub struct Machine;

impl Environment for Machine {
    fn wall_micros(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
    }

    fn random_u128(&self) -> u128 {
        let mut bytes = [0u8; 16];
        if getrandom::fill(&mut bytes).is_err() {
            // Without the system's randomness uniqueness is what counts, and this generator was seeded per thread.
            bytes = fastrand::u128(..).to_le_bytes();
        }
        u128::from_le_bytes(bytes)
    }

    fn reads_in_threads(&self) -> bool {
        true
    }
}
