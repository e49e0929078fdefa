//! The position from which a partition is read that has no offset.

use std::fmt;

/// A start position: `earliest`, `latest` or a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KafkaStart {
    Earliest,
    Latest,
    /// The first message of this moment or later, in milliseconds since 1970.
    Time(i64),
}

impl KafkaStart {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "earliest" => Some(Self::Earliest),
            "latest" => Some(Self::Latest),
            moment => moment.parse::<jiff::Timestamp>().ok().map(|moment| Self::Time(moment.as_millisecond())),
        }
    }
}

impl fmt::Display for KafkaStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Earliest => f.write_str("earliest"),
            Self::Latest => f.write_str("latest"),
            Self::Time(ms) => match jiff::Timestamp::from_millisecond(*ms) {
                Ok(moment) => moment.fmt(f),
                Err(_) => write!(f, "{ms} ms"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_a_word_or_a_moment() {
        for (text, start) in [
            ("earliest", Some(KafkaStart::Earliest)),
            ("latest", Some(KafkaStart::Latest)),
            ("1970-01-01T00:00:01Z", Some(KafkaStart::Time(1000))),
            ("1970-01-01T01:00:00.5+01:00", Some(KafkaStart::Time(500))),
            // Of which zone?
            ("2026-01-01T00:00:00", None),
            ("2026-01-01", None),
            ("Earliest", None),
            ("", None),
        ] {
            assert_eq!(KafkaStart::parse(text), start, "{text}");
        }
        assert_eq!(KafkaStart::Time(1000).to_string(), "1970-01-01T00:00:01Z");
    }
}
