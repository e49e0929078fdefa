//! Local times of a time zone as moments.
//!
//! A zone is turned once into the stretches of local time that mean exactly one moment. Local times between
//! them, in the hour that a clock skips or repeats, are left to ClickHouse, which has its own way with them.
//!
//! Time zone databases differ from release to release: governments change their minds, and history is
//! corrected. So a zone is best told by the server itself ([`ZoneChange`]). Without that, the built-in
//! database is trusted only for zones whose rules nobody has touched for many years, and only where all
//! releases agree.

use jiff::tz::TimeZone;
use jiff::Timestamp;

/// The beginning of trusted rules, 2000-01-01: older history is still being corrected.
const SETTLED_FROM: i64 = 946_684_800;
/// The end of trusted rules, 2038-01-01: later times were not tried against a real ClickHouse.
const SETTLED_UNTIL: i64 = 2_145_916_800;

/// Zones whose rules have been the same in every release of the database for more than ten years.
const SETTLED: &[&str] = &[
    "America/Anchorage",
    "America/Bogota",
    "America/Chicago",
    "America/Denver",
    "America/Halifax",
    "America/Lima",
    "America/Los_Angeles",
    "America/New_York",
    "America/Phoenix",
    "America/Toronto",
    "Asia/Bangkok",
    "Asia/Dubai",
    "Asia/Ho_Chi_Minh",
    "Asia/Hong_Kong",
    "Asia/Jakarta",
    "Asia/Jerusalem",
    "Asia/Karachi",
    "Asia/Kathmandu",
    "Asia/Kolkata",
    "Asia/Kuala_Lumpur",
    "Asia/Kuwait",
    "Asia/Qatar",
    "Asia/Riyadh",
    "Asia/Seoul",
    "Asia/Shanghai",
    "Asia/Singapore",
    "Asia/Taipei",
    "Asia/Tokyo",
    "Australia/Adelaide",
    "Australia/Brisbane",
    "Australia/Darwin",
    "Australia/Hobart",
    "Australia/Melbourne",
    "Australia/Perth",
    "Australia/Sydney",
    "Europe/Amsterdam",
    "Europe/Athens",
    "Europe/Belgrade",
    "Europe/Berlin",
    "Europe/Bratislava",
    "Europe/Brussels",
    "Europe/Bucharest",
    "Europe/Budapest",
    "Europe/Copenhagen",
    "Europe/Dublin",
    "Europe/Helsinki",
    "Europe/Lisbon",
    "Europe/Ljubljana",
    "Europe/London",
    "Europe/Luxembourg",
    "Europe/Madrid",
    "Europe/Oslo",
    "Europe/Paris",
    "Europe/Prague",
    "Europe/Riga",
    "Europe/Rome",
    "Europe/Sofia",
    "Europe/Stockholm",
    "Europe/Tallinn",
    "Europe/Vienna",
    "Europe/Vilnius",
    "Europe/Warsaw",
    "Europe/Zagreb",
    "Europe/Zurich",
    "Pacific/Auckland",
    "Pacific/Honolulu",
];

/// A change of a zone's clocks: from this moment on they are `offset_seconds` ahead of UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneChange {
    pub utc_second: i64,
    pub offset_seconds: i32,
}

/// The meaning of a column's local times.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Zone {
    Utc,
    Stretches(Vec<Stretch>),
    /// The zone's rules are not known: no local time is read.
    Unknown,
}

/// Local seconds `start..end` that are `offset` ahead of UTC.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stretch {
    start: i64,
    end: i64,
    offset: i64,
}

impl Zone {
    /// Returns a zone as the built-in database has it.
    pub(crate) fn named(name: &str) -> Self {
        if is_utc(name) {
            return Zone::Utc;
        }
        match TimeZone::get(name) {
            Ok(zone) if is_settled(name) => Zone::Stretches(stretches(&built_in(&zone), SETTLED_UNTIL)),
            _ => Zone::Unknown,
        }
    }

    /// Returns a zone as the server has it, from the first of its changes until `end`.
    pub(crate) fn told(changes: &[ZoneChange], end: i64) -> Self {
        if changes.is_sorted_by_key(|change| change.utc_second) {
            Zone::Stretches(stretches(changes, end))
        } else {
            Zone::Unknown
        }
    }

    /// Returns the moment of a local time, both in seconds since 1970; `None` where it is not certain.
    #[inline]
    pub(crate) fn moment(&self, local: i64) -> Option<i64> {
        match self {
            Zone::Utc => Some(local),
            Zone::Stretches(stretches) => {
                let next = stretches.partition_point(|stretch| stretch.start <= local);
                let stretch = stretches[..next].last()?;
                (local < stretch.end).then(|| local - stretch.offset)
            }
            Zone::Unknown => None,
        }
    }
}

/// Says whether the two names mean one zone for sure.
pub(crate) fn is_same_zone(one: &str, other: &str) -> bool {
    one == other || (is_utc(one) && is_utc(other))
}

fn is_utc(name: &str) -> bool {
    matches!(name, "UTC" | "Etc/UTC" | "GMT" | "Etc/GMT")
}

/// Says whether a zone's rules are trusted. `Etc/GMT+5` and the like have no rules that could change.
fn is_settled(name: &str) -> bool {
    SETTLED.contains(&name) || name.starts_with("Etc/GMT")
}

fn built_in(zone: &TimeZone) -> Vec<ZoneChange> {
    let (Ok(first), Ok(end)) = (Timestamp::from_second(SETTLED_FROM), Timestamp::from_second(SETTLED_UNTIL)) else {
        return Vec::new();
    };
    let start = ZoneChange { utc_second: SETTLED_FROM, offset_seconds: zone.to_offset(first).seconds() };
    let transitions = zone.following(first).take_while(|transition| transition.timestamp() < end).map(|transition| {
        ZoneChange { utc_second: transition.timestamp().as_second(), offset_seconds: transition.offset().seconds() }
    });
    std::iter::once(start).chain(transitions).collect()
}

fn stretches(changes: &[ZoneChange], end: i64) -> Vec<Stretch> {
    let mut changes = changes.to_vec();
    // A change of the name alone moves no clock.
    changes.dedup_by_key(|change| change.offset_seconds);
    let mut before = changes.first().map_or(0, |change| change.offset_seconds);
    let mut stretches = Vec::with_capacity(changes.len());
    for (index, change) in changes.iter().enumerate() {
        let start = change.utc_second.saturating_add(change.offset_seconds.max(before).into());
        let end = match changes.get(index + 1) {
            Some(next) => next.utc_second.saturating_add(change.offset_seconds.min(next.offset_seconds).into()),
            None => end.saturating_add(change.offset_seconds.into()),
        };
        before = change.offset_seconds;
        // ClickHouse keeps offsets in quarters of an hour.
        if start < end && change.offset_seconds % 900 == 0 {
            stretches.push(Stretch { start, end, offset: change.offset_seconds.into() });
        }
    }
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn berlin_skips_and_repeats_an_hour_a_year() {
        let berlin = Zone::named("Europe/Berlin");
        // 2024-07-02 03:04:05 is two hours ahead of UTC, 2024-01-02 one.
        assert_eq!(berlin.moment(1_719_889_445), Some(1_719_889_445 - 7200));
        assert_eq!(berlin.moment(1_704_164_645), Some(1_704_164_645 - 3600));
        // 2024-03-31: 01:59:59 is, 02:00:00 to 02:59:59 is not, 03:00:00 is.
        assert_eq!(berlin.moment(1_711_850_399), Some(1_711_846_799));
        assert_eq!(berlin.moment(1_711_850_400), None);
        assert_eq!(berlin.moment(1_711_853_999), None);
        assert_eq!(berlin.moment(1_711_854_000), Some(1_711_846_800));
        // 2024-10-27: 02:00:00 to 02:59:59 is twice.
        assert_eq!(berlin.moment(1_729_994_399), Some(1_729_987_199));
        assert_eq!(berlin.moment(1_729_994_400), None);
        assert_eq!(berlin.moment(1_729_997_999), None);
        assert_eq!(berlin.moment(1_729_998_000), Some(1_729_994_400));
        assert_eq!(berlin.moment(SETTLED_FROM), None);
        assert_eq!(berlin.moment(SETTLED_FROM + 3600), Some(SETTLED_FROM));
    }

    #[test]
    fn unknown_zones_read_nothing() {
        assert_eq!(Zone::named("Mars/Olympus").moment(1_704_164_645), None);
        // Real, but its rules changed lately.
        assert_eq!(Zone::named("Africa/Casablanca").moment(1_704_164_645), None);
        assert_eq!(Zone::named("Etc/UTC"), Zone::Utc);
    }

    #[test]
    fn settled_zones_are_in_the_database() {
        for name in SETTLED {
            assert!(matches!(Zone::named(name), Zone::Stretches(stretches) if !stretches.is_empty()), "{name}");
        }
    }

    #[test]
    fn a_zone_told_by_the_server_is_read_from_its_first_change_on() {
        let change = |utc_second, offset_seconds| ZoneChange { utc_second, offset_seconds };
        let zone = Zone::told(&[change(0, 3600), change(1000, 0), change(50_000, 0), change(100_000, 7200)], 200_000);
        assert_eq!(zone.moment(3599), None);
        assert_eq!(zone.moment(3600), None, "repeated from 1000 on");
        assert_eq!(zone.moment(4600), Some(4600));
        assert_eq!(zone.moment(99_999), Some(99_999));
        assert_eq!(zone.moment(100_000), None, "skipped");
        assert_eq!(zone.moment(107_200), Some(100_000));
        assert_eq!(zone.moment(207_199), Some(199_999));
        assert_eq!(zone.moment(207_200), None);
        assert_eq!(Zone::told(&[change(5, 0), change(4, 0)], 9), Zone::Unknown);
    }
}
