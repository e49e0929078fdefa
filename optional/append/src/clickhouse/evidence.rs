//! The verdict on a publishing whose answer was lost, by the parts of both tables.
//!
//! Each part of a staging table has a UUID that goes with it. A part with that UUID in the target, also one
//! that was merged since and waits for its removal (eight minutes, by default), has arrived; so has one that
//! is gone from the staging table, where nothing is merged or removed. On a server that lives, all parts of a
//! statement arrive at one moment. A server that was killed in that moment may have kept some: those are
//! taken out of the staging table, and the others sent again.

use super::publication::PlannedPart;

/// A part, in the target or in the staging table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SeenPart {
    pub(super) name: String,
    pub(super) uuid: String,
    pub(super) in_staging: bool,
    pub(super) is_active: bool,
}

/// The state of both tables as it was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sight {
    pub(super) parts: Vec<SeenPart>,
    pub(super) has_staging: bool,
    /// The number of parts that the server put aside when it started, because they are damaged.
    pub(super) set_aside: u64,
    /// The highest number of a block in the target.
    pub(super) newest_block: i64,
    /// The UUID of the table that has the target's name now.
    pub(super) target_uuid: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// All parts are in the target.
    Published,
    /// All parts are in the staging table, and none was seen in the target.
    NotSeen,
    /// Some parts are in the target. The `arrived` parts of the staging table are among them; they have to go
    /// before the others are sent.
    Half { arrived: Vec<String> },
    /// Some parts are in neither table.
    Vanished,
}

pub(super) fn judge(planned: &[PlannedPart], sight: &Sight) -> Verdict {
    let is_there = |part: &&PlannedPart| sight.parts.iter().any(|seen| !seen.in_staging && seen.uuid == part.uuid);
    let staged = |part: &PlannedPart| {
        sight.parts.iter().find(|seen| seen.in_staging && seen.is_active && seen.uuid == part.uuid)
    };
    if planned.iter().all(|part| is_there(&part)) {
        return Verdict::Published;
    }
    if !sight.has_staging || sight.set_aside > 0 {
        return Verdict::Vanished;
    }
    let left = planned.iter().filter(|part| staged(part).is_some_and(|_| !is_there(part))).count();
    let arrived = planned.iter().filter(is_there).filter_map(|part| Some(staged(part)?.name.clone())).collect();
    match left {
        0 => Verdict::Published,
        left if left == planned.len() => Verdict::NotSeen,
        _ => Verdict::Half { arrived },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(uuids: &[&str]) -> Vec<PlannedPart> {
        let part = |uuid: &&str| PlannedPart { uuid: (*uuid).to_owned(), partition: "p".to_owned(), rows: 1 };
        uuids.iter().map(part).collect()
    }

    fn seen(uuid: &str, in_staging: bool, is_active: bool) -> SeenPart {
        SeenPart { name: format!("all_{uuid}"), uuid: uuid.to_owned(), in_staging, is_active }
    }

    fn sight(parts: &[SeenPart]) -> Sight {
        Sight { parts: parts.to_vec(), has_staging: true, ..Sight::default() }
    }

    #[test]
    fn parts_tell_by_where_they_are() {
        let plan = planned(&["a", "b"]);
        let staged = [seen("a", true, true), seen("b", true, true)];
        assert_eq!(judge(&plan, &sight(&staged)), Verdict::NotSeen);
        let linked = [staged[0].clone(), staged[1].clone(), seen("a", false, true), seen("b", false, true)];
        assert_eq!(judge(&plan, &sight(&linked)), Verdict::Published);
        let merged = [seen("a", false, false), seen("b", false, false), seen("x", false, true)];
        assert_eq!(judge(&plan, &sight(&merged)), Verdict::Published);
        assert_eq!(judge(&[], &sight(&[])), Verdict::Published);
    }

    #[test]
    fn what_is_gone_from_the_staging_table_has_moved() {
        let plan = planned(&["a", "b"]);
        assert_eq!(judge(&plan, &sight(&[])), Verdict::Published);
        assert_eq!(judge(&plan, &sight(&[seen("a", true, false), seen("b", true, false)])), Verdict::Published);
        let one_left = [seen("a", true, false), seen("b", true, true)];
        assert_eq!(judge(&plan, &sight(&one_left)), Verdict::Half { arrived: vec![] });
    }

    #[test]
    fn a_server_killed_in_between_has_kept_some() {
        let plan = planned(&["a", "b"]);
        let half = [seen("a", true, true), seen("b", true, true), seen("b", false, true)];
        assert_eq!(judge(&plan, &sight(&half)), Verdict::Half { arrived: vec!["all_b".to_owned()] });
    }

    #[test]
    fn without_the_staging_table_only_the_target_can_tell() {
        let plan = planned(&["a", "b"]);
        let gone = Sight { has_staging: false, ..sight(&[seen("a", false, true)]) };
        assert_eq!(judge(&plan, &gone), Verdict::Vanished);
        let damaged = Sight { set_aside: 1, ..sight(&[seen("a", true, true)]) };
        assert_eq!(judge(&plan, &damaged), Verdict::Vanished);
        let there = Sight { has_staging: false, ..sight(&[seen("a", false, true), seen("b", false, false)]) };
        assert_eq!(judge(&plan, &there), Verdict::Published);
    }
}
