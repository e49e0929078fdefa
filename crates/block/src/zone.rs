//! Local times of a time zone as moments.
//!
//! A zone is turned once into the stretches of local time that mean exactly one moment. What lies between them, the
//! hour that a clock skips or repeats, is left to ClickHouse, which has its own way with it.

use jiff::tz::TimeZone;
use jiff::Timestamp;

/// Stretches are listed from here, as ClickHouse's own tables for older times differ from the time zone database.
const FIRST_SECOND: i64 = 0;
/// The last year of DateTime64's documented range ends before this second.
const END_SECOND: i64 = 10_413_792_000;

/// What a local time of a column means.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Zone {
    Utc,
    Stretches(Vec<Stretch>),
    /// Not in the built-in database, or the server's own is not known: no local time is read.
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
    pub(crate) fn named(name: &str) -> Self {
        if matches!(name, "UTC" | "Etc/UTC") {
            return Zone::Utc;
        }
        match TimeZone::get(name) {
            Ok(zone) => Zone::Stretches(stretches(&zone)),
            Err(_) => Zone::Unknown,
        }
    }

    /// The moment of a local time, both in seconds since 1970; nothing where it is not certain.
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

fn stretches(zone: &TimeZone) -> Vec<Stretch> {
    let (Ok(first), Ok(end)) = (Timestamp::from_second(FIRST_SECOND), Timestamp::from_second(END_SECOND)) else {
        return Vec::new();
    };
    let mut changes = vec![Change { second: FIRST_SECOND, offset: zone.to_offset(first).seconds().into() }];
    for transition in zone.following(first).take_while(|transition| transition.timestamp() < end) {
        let offset = i64::from(transition.offset().seconds());
        // A change of the name alone moves no clock.
        if changes.last().is_some_and(|last| last.offset != offset) {
            changes.push(Change { second: transition.timestamp().as_second(), offset });
        }
    }
    let ends = changes.iter().skip(1).map(Some).chain([None]);
    let mut before = changes[0].offset;
    let mut stretches = Vec::with_capacity(changes.len());
    for (change, next) in changes.iter().zip(ends) {
        let end = next.map_or(END_SECOND + change.offset, |next| next.second + change.offset.min(next.offset));
        let start = change.second + change.offset.max(before);
        before = change.offset;
        // ClickHouse keeps offsets in quarters of an hour.
        if start < end && change.offset % 900 == 0 {
            stretches.push(Stretch { start, end, offset: change.offset });
        }
    }
    stretches
}

struct Change {
    second: i64,
    offset: i64,
}

#[cfg(test)]
mod tests {
    use super::Zone;

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
        assert_eq!(berlin.moment(-7200), None);
    }

    #[test]
    fn unknown_zones_read_nothing() {
        assert_eq!(Zone::named("Mars/Olympus").moment(1_704_164_645), None);
        assert_eq!(Zone::named("Etc/UTC"), Zone::Utc);
    }
}
