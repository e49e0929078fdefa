//! The gatherer against a sink that does on demand what the real ones do rarely: refuses, loses the answer, hangs, panics.
//!
//! Nothing here waits for time to pass: a gate holds the sink's calls, and tests wait for calls to begin or to end. The only
//! delays are the gatherer's own back-off.

mod budget;
mod dead_letter_store;
mod dead_letters;
mod flushing;
mod journal;
mod lanes;
mod log;
mod model;
mod narrowing;
mod panics;
mod partitions;
mod pushed;
mod retries;
mod support;
mod withdrawal;
