//! The kinds of values: what each accepts, from TOML and from text, and how it is shown.

use std::net::SocketAddr;

use crate::backend::Backend;
use crate::cluster::gateway_address;
use crate::kafka::KafkaStart;
use crate::units::{parse_duration_ms, parse_size_bytes, show_duration_ms, show_size_bytes};

/// The kind of values that a setting accepts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Backend,
    /// The address of a gateway.
    Gateway,
    /// The addresses of several gateways, as a list or with commas between.
    Gateways,
    Text,
    /// A text that is never shown.
    Secret,
    Path,
    Address,
    /// An address, or nothing for a port that stays closed.
    AddressOrOff,
    LogLevel,
    Choice(&'static [&'static str]),
    Bool,
    Count {
        min: u64,
        max: u64,
    },
    Bytes {
        min: u64,
        max: u64,
    },
    Milliseconds {
        min: u64,
        max: u64,
    },
    /// A time with a unit, or in seconds.
    Duration {
        min_ms: u64,
        max_ms: u64,
    },
    /// A number from 0 to 1.
    Share,
    /// A number above 0 and up to `max`.
    Ratio {
        max: f64,
    },
    TextList,
    TextMap,
    /// The position from which a topic's partitions are read.
    KafkaStart,
}

/// A value as a source gave it, before it is checked.
#[derive(Debug, Clone)]
pub(crate) enum Raw {
    /// A text from a variable or a flag: the kind decides what it stands for.
    Word(String),
    Text(String),
    Integer(i64),
    Float(f64),
    Bool(bool),
    List(Vec<Raw>),
    Map(Vec<(String, Raw)>),
    /// A date as it was written.
    Date(String),
    /// A section within an entry, whose keys stand beside it.
    Section,
    /// A TOML type that no setting uses.
    Other(&'static str),
}

/// A checked value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Unset,
    Backend(Backend),
    Text(String),
    Address(SocketAddr),
    Bool(bool),
    Integer(u64),
    Ratio(f64),
    List(Vec<String>),
    Map(Vec<(String, String)>),
}

impl Kind {
    /// Returns the value, or a clause that says what was expected. The clause never holds a secret.
    pub(crate) fn check(self, raw: &Raw) -> Result<Value, String> {
        if let Self::Backend = self {
            let backend = match (raw.text(), raw) {
                (Some(text), _) => Backend::parse(text),
                (None, Raw::List(items)) => {
                    let addresses: Option<Vec<&str>> = items.iter().map(Raw::text).collect();
                    Backend::of_replicas(&addresses.ok_or_else(|| self.expected_got(raw))?)
                }
                _ => return Err(self.expected_got(raw)),
            };
            return backend.map(Value::Backend);
        }
        if let (Self::Gateway | Self::Gateways, Some(addresses)) = (self, raw.texts()) {
            let addresses = addresses.into_iter().map(gateway_address).collect::<Result<Vec<_>, _>>()?;
            return match (self, addresses.as_slice()) {
                (Self::Gateways, [_, ..]) => Ok(Value::List(addresses)),
                (Self::Gateway, [address]) => Ok(Value::Text(address.clone())),
                _ => Err(self.expected_got(raw)),
            };
        }
        self.accept(raw).ok_or_else(|| self.expected_got(raw))
    }

    fn accept(self, raw: &Raw) -> Option<Value> {
        match self {
            Self::Backend | Self::Gateway | Self::Gateways => None,
            Self::Text | Self::Secret => raw.text().map(|text| Value::Text(text.to_owned())),
            Self::Path => raw.text().filter(|text| !text.is_empty()).map(|text| Value::Text(text.to_owned())),
            Self::AddressOrOff if raw.text()?.is_empty() => Some(Value::Unset),
            Self::Address | Self::AddressOrOff => parse_address(raw.text()?).map(Value::Address),
            Self::LogLevel => raw.text().filter(|text| is_log_level(text)).map(|text| Value::Text(text.to_owned())),
            Self::Choice(choices) => {
                let text = raw.text()?;
                choices.iter().find(|choice| **choice == text).map(|choice| Value::Text((*choice).to_owned()))
            }
            Self::Bool => raw.boolean().map(Value::Bool),
            Self::Count { min, max } | Self::Milliseconds { min, max } => within(raw.integer()?, min, max),
            Self::Bytes { min, max } => within(raw.integer().or_else(|| parse_size_bytes(raw.text()?))?, min, max),
            Self::Duration { min_ms, max_ms } => within(raw.duration_ms()?, min_ms, max_ms),
            Self::Share => raw.float().filter(|number| (0.0..=1.0).contains(number)).map(Value::Ratio),
            Self::Ratio { max } => raw.float().filter(|number| *number > 0.0 && *number <= max).map(Value::Ratio),
            Self::TextList => raw.list(),
            Self::TextMap => raw.map(),
            Self::KafkaStart => {
                raw.moment().filter(|text| KafkaStart::parse(text).is_some()).map(|text| Value::Text(text.to_owned()))
            }
        }
    }

    fn expected_got(self, raw: &Raw) -> String {
        match self {
            Self::Secret => format!("expected {}", self.expected()),
            // A URL may hold a password.
            Self::Backend => "expected a text such as \"embedded\", or a list of addresses".to_owned(),
            _ => format!("expected {}, got {}", self.expected(), raw.shown()),
        }
    }

    /// Describes the accepted values, with their unit, for errors and for the reference.
    pub(crate) fn expected(self) -> String {
        match self {
            Self::Backend => "`embedded`, `http[s]://user:password@host:port`, `tcp[s]://user:password@host:port`, several of such addresses, `duckdb:///path/file.db`, or `adbc:` and a database's address".to_owned(),
            Self::Gateway => "an address such as `http://windrow-0.windrow:8123`".to_owned(),
            Self::Gateways => "addresses such as `http://windrow-0.windrow:8123`, as a list or with commas between".to_owned(),
            Self::Text | Self::Secret => "a text".to_owned(),
            Self::Path => "a path".to_owned(),
            Self::Address => "an address and port such as `127.0.0.1:8123` or `[::]:8123`".to_owned(),
            Self::AddressOrOff => format!("{}, or `\"\"` for none", Self::Address.expected()),
            Self::LogLevel => {
                "`error`, `warn`, `info`, `debug`, `trace` or `off`, also per target as in `info,windrow_http=debug`"
                    .to_owned()
            }
            Self::Choice(choices) => match choices.split_last() {
                Some((last, rest)) => format!("`{}` or `{last}`", rest.join("`, `")),
                None => "nothing".to_owned(),
            },
            Self::Bool => "true or false".to_owned(),
            Self::Count { min, max } => format!("a whole number {}", range(min, max, |n| n.to_string())),
            Self::Bytes { min, max } => {
                format!(
                    "bytes as a whole number or a size like `64MiB` or `10MB`, {}",
                    range(min, max, show_size_bytes)
                )
            }
            Self::Milliseconds { min, max } => {
                format!("milliseconds as a whole number {}", range(min, max, |n| n.to_string()))
            }
            Self::Duration { min_ms, max_ms } => {
                format!(
                    "a time like `800ms`, `5s` or `1m`, or a number of seconds, {}",
                    range(min_ms, max_ms, show_duration_ms)
                )
            }
            Self::Share => "a number from 0 to 1".to_owned(),
            Self::Ratio { max } => format!("a number above 0 and up to {max}"),
            Self::TextList => "a list of texts".to_owned(),
            Self::TextMap => "a table of names with numbers, texts or booleans".to_owned(),
            Self::KafkaStart => {
                "`earliest`, `latest` or a moment with its zone such as `2026-01-31T12:00:00Z`".to_owned()
            }
        }
    }

    /// Returns the value as `windrow config` and the reference show it.
    pub(crate) fn show(self, value: &Value) -> String {
        match (self, value) {
            (_, Value::Unset) => "(not set)".to_owned(),
            (Self::Secret, Value::Text(text)) if text.is_empty() => "(not set)".to_owned(),
            (Self::Secret, _) => "(set)".to_owned(),
            (Self::Bytes { .. }, Value::Integer(bytes)) => show_size_bytes(*bytes),
            (Self::Duration { .. }, Value::Integer(ms)) => show_duration_ms(*ms),
            (_, Value::Backend(backend)) => backend.to_string(),
            (_, Value::Text(text)) => format!("{text:?}"),
            (_, Value::Address(address)) => format!("\"{address}\""),
            (_, Value::Bool(flag)) => flag.to_string(),
            (_, Value::Integer(number)) => number.to_string(),
            (_, Value::Ratio(number)) => number.to_string(),
            (_, Value::List(texts)) => format!("{texts:?}"),
            // Values of such maps may be anything, so only the names are shown.
            (_, Value::Map(pairs)) => pairs.iter().map(|pair| pair.0.as_str()).collect::<Vec<_>>().join(", "),
        }
    }
}

/// Returns the words that commas separate in a variable or a flag.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|word| !word.is_empty())
}

fn within(number: u64, min: u64, max: u64) -> Option<Value> {
    (min..=max).contains(&number).then_some(Value::Integer(number))
}

fn range(min: u64, max: u64, show: impl Fn(u64) -> String) -> String {
    match max {
        u64::MAX => format!("of at least {}", show(min)),
        max => format!("from {} to {}", show(min), show(max)),
    }
}

/// Reads an address and never looks up a name: whether others can reach a port must be certain before it is
/// opened.
fn parse_address(text: &str) -> Option<SocketAddr> {
    match text.strip_prefix("localhost:") {
        Some(port) => port.parse().ok().map(|port: u16| SocketAddr::from(([127, 0, 0, 1], port))),
        None => text.parse().ok(),
    }
}

fn is_log_level(text: &str) -> bool {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    text.split(',').all(|directive| {
        let level = directive.rsplit_once('=').map_or(directive, |(_, level)| level);
        LEVELS.contains(&level.trim().to_ascii_lowercase().as_str())
    })
}

impl Raw {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Word(text) | Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the texts of a list, or of a text with commas.
    fn texts(&self) -> Option<Vec<&str>> {
        match self {
            Self::List(items) => items.iter().map(Self::text).collect(),
            _ => self.text().map(|text| words(text).collect()),
        }
    }

    fn integer(&self) -> Option<u64> {
        match self {
            Self::Integer(number) => u64::try_from(*number).ok(),
            Self::Word(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    fn float(&self) -> Option<f64> {
        match self {
            Self::Float(number) => Some(*number),
            Self::Integer(number) => Some(*number as f64),
            Self::Word(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// Reads a boolean as TOML and as ClickHouse write it: ClickHouse uses 0 and 1.
    fn boolean(&self) -> Option<bool> {
        match self {
            Self::Bool(flag) => Some(*flag),
            Self::Integer(0) => Some(false),
            Self::Integer(1) => Some(true),
            Self::Word(text) => match text.trim() {
                "true" | "1" => Some(true),
                "false" | "0" => Some(false),
                _ => None,
            },
            _ => None,
        }
    }

    fn duration_ms(&self) -> Option<u64> {
        match self {
            Self::Integer(seconds) => u64::try_from(*seconds).ok()?.checked_mul(1000),
            Self::Float(seconds) => parse_duration_ms(&seconds.to_string()),
            _ => parse_duration_ms(self.text()?),
        }
    }

    fn moment(&self) -> Option<&str> {
        match self {
            Self::Date(text) => Some(text),
            _ => self.text(),
        }
    }

    fn list(&self) -> Option<Value> {
        if let Self::Word(text) = self {
            return Some(Value::List(words(text).map(str::to_owned).collect()));
        }
        let Self::List(items) = self else { return None };
        items.iter().map(|item| item.text().map(str::to_owned)).collect::<Option<Vec<_>>>().map(Value::List)
    }

    fn map(&self) -> Option<Value> {
        if let Self::Word(text) = self {
            let pair = |word: &str| {
                word.split_once('=').map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
            };
            return words(text).map(pair).collect::<Option<Vec<_>>>().map(Value::Map);
        }
        let Self::Map(pairs) = self else { return None };
        let scalars = pairs.iter().map(|(name, raw)| raw.scalar().map(|text| (name.clone(), text)));
        scalars.collect::<Option<Vec<_>>>().map(Value::Map)
    }

    /// Returns a scalar as ClickHouse writes it in its own configuration.
    fn scalar(&self) -> Option<String> {
        match self {
            Self::Word(text) | Self::Text(text) => Some(text.clone()),
            Self::Integer(number) => Some(number.to_string()),
            Self::Float(number) => Some(number.to_string()),
            Self::Bool(flag) => Some(u8::from(*flag).to_string()),
            _ => None,
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::Word(text) | Self::Text(text) => format!("{:?}", text.chars().take(80).collect::<String>()),
            Self::Integer(number) => number.to_string(),
            Self::Float(number) => number.to_string(),
            Self::Bool(flag) => flag.to_string(),
            Self::List(_) => "a list".to_owned(),
            Self::Map(_) | Self::Section => "a table".to_owned(),
            Self::Date(_) => "a date".to_owned(),
            Self::Other(name) => format!("a {name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> Raw {
        Raw::Text(value.to_owned())
    }

    fn word(value: &str) -> Raw {
        Raw::Word(value.to_owned())
    }

    #[test]
    fn durations_are_whole_milliseconds_only() {
        let kind = Kind::Milliseconds { min: 1, max: 1000 };
        assert_eq!(kind.check(&Raw::Integer(50)), Ok(Value::Integer(50)));
        assert_eq!(kind.check(&word("50")), Ok(Value::Integer(50)));
        for refused in
            [text("50"), word("50ms"), Raw::Integer(0), Raw::Integer(-1), Raw::Integer(1001), Raw::Float(1.0)]
        {
            let error = kind.check(&refused).expect_err("out of bounds or no whole number");
            assert!(error.contains("milliseconds as a whole number from 1 to 1000"), "{error}");
        }
    }

    #[test]
    fn sizes_are_numbers_or_texts() {
        let kind = Kind::Bytes { min: 1, max: u64::MAX };
        for raw in [Raw::Integer(65536), text("64KiB"), word("65536"), word("64KiB")] {
            assert_eq!(kind.check(&raw), Ok(Value::Integer(65536)));
        }
        let error = kind.check(&text("64 furlongs")).expect_err("no size");
        assert!(error.contains("`64MiB`") && error.contains("\"64 furlongs\""), "{error}");
    }

    #[test]
    fn booleans_may_be_written_as_clickhouse_does() {
        for (raw, expected) in
            [(Raw::Bool(true), true), (Raw::Integer(0), false), (word("1"), true), (word("false"), false)]
        {
            assert_eq!(Kind::Bool.check(&raw), Ok(Value::Bool(expected)));
        }
        assert!(Kind::Bool.check(&text("true")).is_err());
        assert!(Kind::Bool.check(&Raw::Integer(2)).is_err());
    }

    #[test]
    fn addresses_are_literal() {
        let check = |value: &str| Kind::Address.check(&text(value));
        assert_eq!(check("localhost:1"), Ok(Value::Address(SocketAddr::from(([127, 0, 0, 1], 1)))));
        assert!(check("[::1]:0").is_ok());
        for refused in ["example.com:80", "8123", ":8123", "127.0.0.1", "127.0.0.1:70000", "localhost:x"] {
            assert!(check(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn ratios_have_bounds() {
        let kind = Kind::Ratio { max: 1.0 };
        assert_eq!(kind.check(&Raw::Integer(1)), Ok(Value::Ratio(1.0)));
        for refused in [Raw::Float(0.0), Raw::Float(1.1), Raw::Float(f64::NAN), word("NaN"), word("inf")] {
            assert!(kind.check(&refused).is_err(), "{refused:?}");
        }
    }

    #[test]
    fn log_levels_may_be_per_target() {
        for good in ["info", "DEBUG", "info,windrow_http=debug", "off"] {
            assert!(Kind::LogLevel.check(&text(good)).is_ok(), "{good}");
        }
        for bad in ["", "loud", "info,", "windrow_http="] {
            assert!(Kind::LogLevel.check(&text(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_secret_is_not_repeated_in_errors() {
        assert!(!Kind::Secret.check(&Raw::Integer(4711)).expect_err("a number").contains("4711"));
        assert_eq!(Kind::Secret.show(&Value::Text("geheim".into())), "(set)");
    }
}
