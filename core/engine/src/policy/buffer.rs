//! The state that a policy keeps of one open buffer.

use crate::policy::{Arrival, CountLimit, FlushLimits, Micros, PolicyKind, SealReason, Urgency, WORTH_A_PART};

/// The id of a buffer within one table, from its opening to the end of its flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BufferId(pub(crate) u64);

#[derive(Clone, Debug)]
pub struct BufferPolicy {
    pub(crate) id: BufferId,
    pub(crate) kind: PolicyKind,
    pub(crate) opened_at: Micros,
    /// The time when the latest of its inserts came.
    pub(crate) last_at: Micros,
    /// The latest moment to seal; set when the buffer opens and never moved back by later inserts.
    pub(crate) deadline: Micros,
    /// The shortest minimum time-out among its inserts.
    pub(crate) min_timeout: Micros,
    /// A reason to seal that holds from now on, acted on as soon as the lane is free.
    pub(crate) due: Option<SealReason>,
    /// The hold for a stream of inserts; set with the first of them. Only used by `balanced`.
    pub(crate) hold: Option<Micros>,
    inserts: u64,
    /// The number of inserts that a client waits for.
    waiting: u64,
    rows: u64,
    bytes: u64,
    count_trigger: u64,
}

impl BufferPolicy {
    pub(crate) fn new(id: BufferId) -> Self {
        BufferPolicy {
            id,
            kind: PolicyKind::Balanced,
            opened_at: Micros::ZERO,
            last_at: Micros::ZERO,
            deadline: Micros::NEVER,
            min_timeout: Micros::NEVER,
            due: None,
            hold: None,
            inserts: 0,
            waiting: 0,
            rows: 0,
            bytes: 0,
            count_trigger: u64::MAX,
        }
    }

    pub fn id(&self) -> BufferId {
        self.id
    }

    pub fn opened_at(&self) -> Micros {
        self.opened_at
    }

    pub fn inserts(&self) -> u64 {
        self.inserts
    }

    /// Returns the gain from flushing the buffer, as far as the backend is concerned.
    pub fn urgency(&self) -> Urgency {
        match self.is_waited_for() || self.inserts >= WORTH_A_PART {
            true => Urgency::Urgent,
            false => Urgency::Unwaited,
        }
    }

    pub(crate) fn is_waited_for(&self) -> bool {
        self.waiting > 0
    }

    pub fn rows(&self) -> u64 {
        self.rows
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.inserts == 0
    }

    /// Adds an insert. The size limits of the arriving insert decide, and the insert itself counts, as in
    /// ClickHouse.
    pub(crate) fn add(&mut self, now: Micros, arrival: &Arrival, limits: &FlushLimits) -> Option<SealReason> {
        if self.inserts == 0 {
            self.kind = limits.kind;
            self.opened_at = now;
        }
        self.last_at = now;
        self.inserts += 1;
        self.waiting += u64::from(arrival.waits);
        self.rows = self.rows.saturating_add(arrival.rows);
        self.bytes = self.bytes.saturating_add(arrival.bytes);
        // A shape mixes inserts whose time-outs differ; nobody is held longer than it asked for.
        self.deadline = self.deadline.min(now + limits.max_timeout());
        self.min_timeout = self.min_timeout.min(Micros::from_millis(limits.min_timeout_ms()));
        if limits.count_limit == CountLimit::Trigger {
            self.count_trigger = self.count_trigger.min(limits.max_query_number);
        }
        if self.bytes >= limits.max_data_size_bytes {
            return Some(SealReason::Size);
        }
        let capped = limits.count_limit == CountLimit::Cap && self.inserts >= limits.max_query_number;
        capped.then_some(SealReason::Count)
    }

    /// Removes an insert that was added before.
    pub(crate) fn leave(&mut self, waited: bool, rows: u64, bytes: u64) {
        self.inserts = self.inserts.saturating_sub(1);
        self.waiting = self.waiting.saturating_sub(u64::from(waited));
        self.rows = self.rows.saturating_sub(rows);
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    pub(crate) fn count_is_due(&self) -> bool {
        self.inserts >= self.count_trigger
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(bytes: u64) -> Arrival {
        Arrival { writer: 1, waits: true, back_after: None, rows: 1, bytes }
    }

    #[test]
    fn the_last_insert_counts_towards_the_size() {
        let limits = FlushLimits { max_data_size_bytes: 100, ..FlushLimits::default() };
        let mut buffer = BufferPolicy::new(BufferId(0));
        assert_eq!(buffer.add(Micros(1), &arrival(99), &limits), None);
        assert_eq!(buffer.add(Micros(2), &arrival(1), &limits), Some(SealReason::Size));
        assert_eq!((buffer.inserts(), buffer.rows(), buffer.bytes()), (2, 2, 100));
    }

    #[test]
    fn who_has_left_counts_no_longer() {
        let limits = FlushLimits { max_data_size_bytes: 100, ..FlushLimits::default() };
        let mut buffer = BufferPolicy::new(BufferId(0));
        for _ in 0..50 {
            assert_eq!(buffer.add(Micros(1), &arrival(60), &limits), None);
            buffer.leave(true, 1, 60);
            assert!(buffer.is_empty() && !buffer.is_waited_for());
        }
        assert_eq!(buffer.add(Micros(2), &arrival(60), &limits), None);
        assert_eq!(buffer.add(Micros(2), &arrival(60), &limits), Some(SealReason::Size));
    }

    #[test]
    fn nobody_is_held_longer_than_it_asked_for() {
        let limits = FlushLimits::default();
        let hasty = FlushLimits { busy_timeout_max_ms: 20, busy_timeout_min_ms: 5, ..limits };
        let mut buffer = BufferPolicy::new(BufferId(0));
        buffer.add(Micros::from_millis(1000), &arrival(1), &limits);
        assert_eq!(buffer.deadline, Micros::from_millis(1200));
        buffer.add(Micros::from_millis(1050), &arrival(1), &limits);
        assert_eq!(buffer.deadline, Micros::from_millis(1200));
        buffer.add(Micros::from_millis(1100), &arrival(1), &hasty);
        assert_eq!(buffer.deadline, Micros::from_millis(1120));
        assert_eq!(buffer.min_timeout, Micros::from_millis(5));
    }

    #[test]
    fn hostile_sizes_saturate() {
        let mut buffer = BufferPolicy::new(BufferId(0));
        let huge = Arrival { writer: 1, waits: false, back_after: None, rows: u64::MAX, bytes: u64::MAX };
        let limits = FlushLimits { max_data_size_bytes: u64::MAX, ..FlushLimits::default() };
        assert_eq!(buffer.add(Micros(1), &huge, &limits), Some(SealReason::Size));
        assert_eq!(buffer.add(Micros(1), &huge, &limits), Some(SealReason::Size));
        assert_eq!(buffer.rows(), u64::MAX);
    }
}
