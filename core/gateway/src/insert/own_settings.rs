use std::time::Duration;

use windrow_engine::{
    policy::{CountLimit, FlushLimits, PolicyKind},
    AckLevel,
};
use windrow_settings::{AckRule, AsyncInsertRule, FlushPolicy, GatherSettings, TableRules};

/// Setting for the seconds that an insert waits until it is stored.
pub(crate) const WAIT_TIMEOUT: &str = "wait_for_async_insert_timeout";

/// The settings of an insert that concern gathering, from four places: the operator's `[[tables]]` rules, the request,
/// the user's profile, Windrow's own settings. The first that says something decides.
#[derive(Debug, Clone)]
pub(crate) struct OwnSettings {
    pub(crate) async_insert: bool,
    pub(crate) ack: AckLevel,
    pub(crate) wait_timeout: Duration,
    pub(crate) limits: FlushLimits,
}

/// Facts about the table that bear on gathering.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableSays {
    /// The table's own setting, which holds whatever the request says, as in ClickHouse.
    pub(crate) async_insert: bool,
    pub(crate) deduplicates: bool,
}

/// A value that ClickHouse would refuse; the insert is forwarded, and ClickHouse refuses it.
#[derive(Debug)]
pub(crate) struct InvalidValue;

/// Settings of gathering in the request, or else in the user's profile; `None` where neither has one.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestedSettings {
    async_insert: Option<bool>,
    wait: Option<bool>,
    ack: Option<AckLevel>,
    wait_timeout: Option<Duration>,
    flush_policy: Option<PolicyKind>,
    adaptive: Option<bool>,
    min_ms: Option<u64>,
    max_ms: Option<u64>,
    increase_rate: Option<f64>,
    decrease_rate: Option<f64>,
    max_data_size_bytes: Option<u64>,
    max_query_number: Option<u64>,
}

impl RequestedSettings {
    /// Makes settings that ask for gathering and this ack level. Rows wait for others for `hold_ms`.
    pub(crate) fn gathered(ack: AckLevel, hold_ms: Option<u64>) -> RequestedSettings {
        RequestedSettings {
            async_insert: Some(true),
            ack: Some(ack),
            flush_policy: hold_ms.map(|_| PolicyKind::Fixed),
            max_ms: hold_ms,
            ..RequestedSettings::default()
        }
    }

    /// Takes one setting; later ones of the same name win.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<(), InvalidValue> {
        match name {
            "async_insert" => self.async_insert = Some(flag(value)?),
            "wait_for_async_insert" => self.wait = Some(flag(value)?),
            WAIT_TIMEOUT => self.wait_timeout = Some(seconds(value)?),
            "async_insert_use_adaptive_busy_timeout" => self.adaptive = Some(flag(value)?),
            "async_insert_busy_timeout_min_ms" => self.min_ms = Some(number(value)?),
            "async_insert_busy_timeout_ms" | "async_insert_busy_timeout_max_ms" => self.max_ms = Some(positive(value)?),
            "async_insert_busy_timeout_increase_rate" => self.increase_rate = Some(rate(value)?),
            "async_insert_busy_timeout_decrease_rate" => self.decrease_rate = Some(rate(value)?),
            "async_insert_max_data_size" => self.max_data_size_bytes = Some(positive(value)?),
            "async_insert_max_query_number" => self.max_query_number = Some(number(value)?),
            "windrow_ack" => self.ack = Some(ack_level(value)?),
            "windrow_flush_policy" => self.flush_policy = Some(policy(value)?),
            _ if name.starts_with("windrow_") => return Err(InvalidValue),
            // Obsolete, or about ClickHouse's own threads: accepted without effect, as there.
            _ => {}
        }
        Ok(())
    }

    /// Takes from `other` the settings that are not given here.
    pub(crate) fn or(self, other: RequestedSettings) -> RequestedSettings {
        RequestedSettings {
            async_insert: self.async_insert.or(other.async_insert),
            wait: self.wait.or(other.wait),
            ack: self.ack.or(other.ack),
            wait_timeout: self.wait_timeout.or(other.wait_timeout),
            flush_policy: self.flush_policy.or(other.flush_policy),
            adaptive: self.adaptive.or(other.adaptive),
            min_ms: self.min_ms.or(other.min_ms),
            max_ms: self.max_ms.or(other.max_ms),
            increase_rate: self.increase_rate.or(other.increase_rate),
            decrease_rate: self.decrease_rate.or(other.decrease_rate),
            max_data_size_bytes: self.max_data_size_bytes.or(other.max_data_size_bytes),
            max_query_number: self.max_query_number.or(other.max_query_number),
        }
    }

    /// Checks a parameter that begins with `windrow_`. The error tells the client what is wrong with it.
    pub(crate) fn check_own(name: &str, value: &str) -> Result<(), String> {
        RequestedSettings::default().set(name, value).map_err(|_| explain(name, value))
    }

    pub(crate) fn resolve(&self, rules: &TableRules, defaults: &GatherSettings, table: TableSays) -> OwnSettings {
        let async_insert = match rules.async_insert {
            AsyncInsertRule::Always => true,
            AsyncInsertRule::Never => false,
            AsyncInsertRule::Client => table.async_insert || self.async_insert.unwrap_or(defaults.async_insert),
        };
        let asked = self.ack.unwrap_or(match self.wait.unwrap_or(defaults.wait_for_async_insert) {
            true => AckLevel::Stored,
            false => AckLevel::Disk,
        });
        let ack = match rules.ack {
            AckRule::Client => asked,
            AckRule::Memory => AckLevel::Memory,
            AckRule::Disk => AckLevel::Disk,
            AckRule::Stored => AckLevel::Stored,
        };
        let wait_timeout =
            self.wait_timeout.unwrap_or(Duration::from_millis(defaults.wait_for_async_insert_timeout_ms));
        OwnSettings { async_insert, ack, wait_timeout, limits: self.limits(rules, defaults, table.deduplicates) }
    }

    fn limits(&self, rules: &TableRules, defaults: &GatherSettings, table_deduplicates: bool) -> FlushLimits {
        // Who switches the adaptive time-out off wants the fixed one, as in ClickHouse.
        let asked = self.flush_policy.or((self.adaptive == Some(false)).then_some(PolicyKind::Fixed));
        let by_rule = rules.flush_policy.map(kind);
        let max_query_number = rules.max_query_number.or(self.max_query_number);
        FlushLimits {
            kind: by_rule.or(asked).unwrap_or(kind(defaults.flush_policy)),
            busy_timeout_min_ms: or3(rules.busy_timeout_min_ms, self.min_ms, defaults.async_insert_busy_timeout_min_ms),
            busy_timeout_max_ms: or3(rules.busy_timeout_max_ms, self.max_ms, defaults.async_insert_busy_timeout_max_ms),
            increase_rate: self.increase_rate.unwrap_or(defaults.async_insert_busy_timeout_increase_rate),
            decrease_rate: self.decrease_rate.unwrap_or(defaults.async_insert_busy_timeout_decrease_rate),
            max_data_size_bytes: or3(
                rules.max_data_size_bytes,
                self.max_data_size_bytes,
                defaults.async_insert_max_data_size_bytes,
            ),
            max_query_number: max_query_number.unwrap_or(defaults.async_insert_max_query_number),
            // ClickHouse counts because each insert of a deduplicating table becomes a node in Keeper. Where that isn't
            // so the number only makes more parts of the same rows, so it counts if somebody asked for it.
            count_limit: match max_query_number.is_some() || table_deduplicates {
                true => CountLimit::Cap,
                false => CountLimit::Off,
            },
            may_be_stretched: [rules.busy_timeout_min_ms, rules.busy_timeout_max_ms, self.min_ms, self.max_ms]
                .iter()
                .all(Option::is_none),
        }
    }
}

fn or3(first: Option<u64>, second: Option<u64>, last: u64) -> u64 {
    first.or(second).unwrap_or(last)
}

fn kind(policy: FlushPolicy) -> PolicyKind {
    match policy {
        FlushPolicy::Balanced => PolicyKind::Balanced,
        FlushPolicy::Adaptive => PolicyKind::Adaptive,
        FlushPolicy::Fixed => PolicyKind::Fixed,
    }
}

fn flag(value: &str) -> Result<bool, InvalidValue> {
    match value {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => Err(InvalidValue),
    }
}

fn number(value: &str) -> Result<u64, InvalidValue> {
    value.parse().map_err(|_| InvalidValue)
}

fn positive(value: &str) -> Result<u64, InvalidValue> {
    number(value).and_then(|value| if value > 0 { Ok(value) } else { Err(InvalidValue) })
}

fn rate(value: &str) -> Result<f64, InvalidValue> {
    match value.parse() {
        Ok(rate) if rate > 0.0 && f64::is_finite(rate) => Ok(rate),
        _ => Err(InvalidValue),
    }
}

fn seconds(value: &str) -> Result<Duration, InvalidValue> {
    let seconds: f64 = value.parse().map_err(|_| InvalidValue)?;
    Duration::try_from_secs_f64(seconds.min(1e9)).map_err(|_| InvalidValue)
}

fn ack_level(value: &str) -> Result<AckLevel, InvalidValue> {
    match value {
        "memory" => Ok(AckLevel::Memory),
        "disk" => Ok(AckLevel::Disk),
        "stored" => Ok(AckLevel::Stored),
        _ => Err(InvalidValue),
    }
}

fn policy(value: &str) -> Result<PolicyKind, InvalidValue> {
    match value {
        "balanced" => Ok(PolicyKind::Balanced),
        "adaptive" => Ok(PolicyKind::Adaptive),
        "fixed" => Ok(PolicyKind::Fixed),
        _ => Err(InvalidValue),
    }
}

fn explain(name: &str, value: &str) -> String {
    match name {
        "windrow_ack" => format!("windrow_ack is memory, disk or stored, not '{value}'"),
        "windrow_flush_policy" => format!("windrow_flush_policy is balanced, adaptive or fixed, not '{value}'"),
        _ => format!("Windrow has no setting {name}; it has windrow_ack and windrow_flush_policy"),
    }
}
