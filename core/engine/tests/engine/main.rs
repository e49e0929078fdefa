//! Tests of the engine: flush policies in simulated time, records of the journal, and the gatherer against a
//! sink that does on demand the rare things of the real ones: refuses, loses the answer, hangs, panics.
//!
//! No test here waits for real time to pass: a gate holds the sink's calls, and tests wait for calls to begin
//! or to end. The only delays are the gatherer's own back-off.

mod budget;
mod dead_letter_store;
mod dead_letters;
mod flushing;
mod injected;
mod journal;
mod journal_golden;
mod journal_records;
mod lanes;
mod log;
/// The disk of the log's own tests, of which a part is used here.
#[allow(dead_code)]
#[path = "../../../log/tests/log/support/memory.rs"]
mod memory_disk;
mod model;
mod narrowing;
mod panics;
mod partitions;
mod policy;
mod policy_deadline;
mod pushed;
mod retries;
mod support;
mod withdrawal;
