//! The latency of messages: histograms of every message, at the cost of one observation for each chunk of them.

mod histogram;
mod spread;
mod timing;
mod window;

pub(crate) use histogram::{wall_ms, AgeGauge, LatencyHistogram};
pub(crate) use timing::{MissedReason, Timing};
pub(crate) use window::{Took, Window};
