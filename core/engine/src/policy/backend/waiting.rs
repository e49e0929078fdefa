//! Lanes that are due and wait for their turn.

use std::collections::{BTreeMap, HashMap};

use super::{LaneId, Urgency};
use crate::policy::Micros;

/// The place of a lane in the line: the time when it was due, and a number that distinguishes lanes of that
/// moment.
type LinePosition = (Micros, u64);

#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    next: u64,
    places: HashMap<LaneId, (Urgency, LinePosition)>,
    urgent: BTreeMap<LinePosition, LaneId>,
    unwaited: BTreeMap<LinePosition, LaneId>,
}

impl Waiting {
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Adds a lane. A lane that waits already keeps its place.
    pub(super) fn enter(&mut self, now: Micros, lane: LaneId, urgency: Urgency) {
        if self.places.contains_key(&lane) {
            if urgency == Urgency::Urgent {
                self.raise(lane);
            }
            return;
        }
        let place = (now, self.next);
        self.next += 1;
        self.places.insert(lane, (urgency, place));
        self.of(urgency).insert(place, lane);
    }

    pub(super) fn raise(&mut self, lane: LaneId) {
        let Some((urgency @ Urgency::Unwaited, place)) = self.places.get_mut(&lane) else { return };
        *urgency = Urgency::Urgent;
        let place = *place;
        self.unwaited.remove(&place);
        self.urgent.insert(place, lane);
    }

    pub(super) fn leave(&mut self, lane: LaneId) {
        if let Some((urgency, place)) = self.places.remove(&lane) {
            self.of(urgency).remove(&place);
        }
    }

    /// Returns the lane that goes first: one without a waiting client that has been due since
    /// `overdue_since`, though not twice in a row if clients wait for others; then the urgent ones; then the
    /// others if they may.
    pub(super) fn first(
        &self,
        overdue_since: Option<Micros>,
        unwaited_may_go: bool,
        unwaited_went: bool,
    ) -> Option<(LaneId, Urgency)> {
        let unwaited = self.unwaited.first_key_value().map(|((due_at, _), lane)| (*due_at, (*lane, Urgency::Unwaited)));
        let urgent = self.urgent.first_key_value().map(|(_, lane)| (*lane, Urgency::Urgent));
        match unwaited {
            Some((due_at, lane)) if overdue_since.is_some_and(|since| due_at <= since) => {
                urgent.filter(|_| unwaited_went).or(Some(lane))
            }
            Some((_, lane)) if unwaited_may_go => urgent.or(Some(lane)),
            _ => urgent,
        }
    }

    pub(super) fn first_unwaited(&self) -> Option<Micros> {
        self.unwaited.first_key_value().map(|((due_at, _), _)| *due_at)
    }

    fn of(&mut self, urgency: Urgency) -> &mut BTreeMap<LinePosition, LaneId> {
        match urgency {
            Urgency::Urgent => &mut self.urgent,
            Urgency::Unwaited => &mut self.unwaited,
        }
    }
}
