//! The meaning of a naive datetime in this machine's zone: the rules of `datetime.timestamp()`, gaps and
//! folds included.

use super::layout::WallTime;

use super::calendar::SECONDS_PER_DAY;

/// Returns the seconds since 1970 of a wall time. Returns `None` when the system has no answer.
pub(super) fn local_seconds(wall: WallTime) -> Option<i64> {
    let local = wall.date.days() * SECONDS_PER_DAY + wall.clock.seconds();
    let first = local - offset_at(local)?;
    let first_offset = local - first;
    if first + offset_at(first)? == local {
        // The wall time may occur twice, the other time up to a day away: `fold` says which is meant.
        let other = if wall.fold { first + SECONDS_PER_DAY } else { first - SECONDS_PER_DAY };
        let other_offset = offset_at(other)?;
        if other_offset == first_offset {
            return Some(first);
        }
        return second_try(local, first, other_offset, wall.fold);
    }
    second_try(local, first, offset_at(first)?, wall.fold)
}

fn second_try(local: i64, first: i64, offset: i64, fold: bool) -> Option<i64> {
    let second = local - offset;
    if second + offset_at(second)? == local {
        return Some(second);
    }
    if first + offset_at(first)? == local {
        return Some(first);
    }
    // A wall time that was skipped.
    Some(if fold { first.min(second) } else { first.max(second) })
}

/// Returns the seconds by which local time is ahead of UTC at a moment.
fn offset_at(seconds: i64) -> Option<i64> {
    let time: libc::time_t = seconds;
    // Safety: a tm of zeros is valid, and localtime_r writes nothing but it.
    unsafe {
        let mut fields: libc::tm = std::mem::zeroed();
        if libc::localtime_r(&time, &mut fields).is_null() {
            return None;
        }
        Some(fields.tm_gmtoff)
    }
}
