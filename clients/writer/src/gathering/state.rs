//! The state that decisions are made upon, under one lock.

use std::collections::VecDeque;

use super::buffer_events::KeptRows;
use super::flights::Flights;
use super::room::RoomWaiter;
use super::settled::Settled;
use crate::errors::ErrorRing;
use crate::id::BatchId;
use crate::options::Options;
use crate::statistics::Statistics;

pub(super) struct State {
    pub(super) options: Options,
    pub(super) flights: Flights,
    pub(super) settled: Settled,
    pub(super) kept: KeptRows,
    pub(super) room_waiters: VecDeque<RoomWaiter>,
    pub(super) errors: ErrorRing,
    pub(super) counts: Statistics,
    /// The position before which all of this writer's rows are in batches.
    pub(super) sealed_before: u64,
    /// The time since which rows have been waiting.
    pub(super) waiting_since_ms: Option<u64>,
    /// The time before which a buffer that failed is not asked again.
    pub(super) buffer_again_ms: u64,
    /// The time of the next look for left-over batches; `None` until the first look.
    pub(super) left_overs_at_ms: Option<u64>,
    /// Batches that the buffer has not recorded yet.
    pub(super) unrecorded: Vec<BatchId>,
    pub(super) is_abandoned: bool,
}

impl State {
    pub(super) fn new(options: Options) -> State {
        State {
            flights: Flights::default(),
            settled: Settled::default(),
            kept: KeptRows::default(),
            room_waiters: VecDeque::new(),
            errors: ErrorRing::new(options.max_errors, options.max_error_bytes),
            counts: Statistics::default(),
            sealed_before: 0,
            waiting_since_ms: None,
            buffer_again_ms: 0,
            left_overs_at_ms: None,
            unrecorded: Vec::new(),
            is_abandoned: false,
            options,
        }
    }
}
