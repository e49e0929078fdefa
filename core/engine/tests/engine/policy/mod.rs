//! ClickHouse's asynchronous insert queue and Windrow's policy on the same arrivals, in simulated time.
//!
//! The model has these parts, in microseconds and without a clock:
//! - **Arrivals**: a list drawn once from a seed (open loop), or writers that send the next insert a drawn time
//!   after the last one was stored (closed loop; each writer draws from a seed of its own, so both sides have the
//!   same writers).
//! - **A flush** costs a fixed time plus a share per insert. On one table alone flushes that run at the same time
//!   don't slow each other down, which favours ClickHouse: it runs several for a table at once, Windrow one after
//!   another, to keep inserts in order. Where one at a time can't keep up with batches of the count limit,
//!   ClickHouse is also run with that restriction.
//! - **ClickHouse** (`clickhouse.rs`): state per shard, shared by its tables; a deadline thread that looks every
//!   10 ms and whenever an insert is pushed; a deadline that is fixed when the batch opens.
//! - **Many tables** (`many.rs`): flushes share the CPUs of a backend (`cpus.rs`), so the more of them run, the
//!   longer each takes.
//! - **Windrow** (`windrow.rs`): the crate itself, one policy per table; timers that fire on whole milliseconds, as
//!   tokio's do. Many tables run once as if each were alone, and once with the policy above them (`backend.rs`).
//!
//! Waiting time is from the arrival of an insert to the end of the flush that stored it. Percentiles are over
//! inserts, inserts per part over flushes (one flush makes one part).

// Each program that includes this uses a part of it.
#![allow(dead_code)]

#[cfg(test)]
mod against_clickhouse;
pub mod arrivals;
mod backend;
pub mod books;
mod clickhouse;
mod cpus;
pub mod engine;
pub mod many;
#[cfg(test)]
mod many_tables;
pub mod report;
pub mod scenarios;
#[cfg(test)]
mod several_gateways;
pub mod windrow;

use clickhouse::Order;
use report::Comparison;
use scenarios::Scenario;

/// Runs one scenario on both sides.
pub fn compare(scenario: &Scenario) -> Comparison {
    let clickhouse = |order| engine::run(scenario, &mut clickhouse::Shard::new(scenario.limits, order));
    let in_order = scenario.needs_overlap.then(|| clickhouse(Order::OneByOne));
    let adaptive = clickhouse(Order::Overlapping);
    let balanced = engine::run(scenario, &mut windrow::Tables::new(scenario.limits, scenario.tables()));
    Comparison { name: scenario.name.clone(), rate: scenario.rate, adaptive, in_order, balanced }
}
