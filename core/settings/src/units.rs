//! Sizes and times as people write them.

const UNITS: &[(&str, u64)] = &[
    ("b", 1),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
];

/// Returns the bytes of `64MiB`, `10 MB`, `1.5GiB` or `1048576`. A fraction of a byte is refused, as is a
/// number without digits.
pub(crate) fn parse_size_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits_end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits_end);
    let unit = unit.trim().to_ascii_lowercase();
    let factor = if unit.is_empty() { 1 } else { UNITS.iter().find(|known| known.0 == unit)?.1 };
    let number = number.replace('_', "");
    match number.split_once('.') {
        None => number.parse::<u64>().ok()?.checked_mul(factor),
        Some((whole, fraction)) => scaled(whole, fraction, factor),
    }
}

/// Computes `whole.fraction * factor` in integers, so that 1.5GiB is exact.
fn scaled(whole: &str, fraction: &str, factor: u64) -> Option<u64> {
    if fraction.is_empty() || fraction.len() > 9 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let denominator = 10u128.pow(fraction.len() as u32);
    let numerator = u128::from(whole.parse::<u64>().ok()?) * denominator + fraction.parse::<u128>().ok()?;
    let product = numerator.checked_mul(u128::from(factor))?;
    if product % denominator != 0 {
        return None;
    }
    u64::try_from(product / denominator).ok()
}

/// Returns the shortest exact way to write a size: `64MiB`, `10MB` or plain bytes. [`parse_size_bytes`] reads
/// it back.
pub(crate) fn show_size_bytes(bytes: u64) -> String {
    const SHOWN: &[(&str, u64)] =
        &[("GiB", 1 << 30), ("MiB", 1 << 20), ("GB", 1_000_000_000), ("MB", 1_000_000), ("KiB", 1 << 10)];
    match SHOWN.iter().find(|(_, factor)| bytes > 0 && bytes.is_multiple_of(*factor)) {
        Some((unit, factor)) => format!("{}{unit}", bytes / factor),
        None => bytes.to_string(),
    }
}

const TIMES: &[(&str, u64)] = &[("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("", 1000)];

/// Returns the milliseconds of `800ms`, `5s`, `1.5m`, `1h`; a number alone is seconds. A fraction of a
/// millisecond is refused.
pub(crate) fn parse_duration_ms(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits_end);
    let factor = TIMES.iter().find(|known| known.0 == unit.trim())?.1;
    match number.split_once('.') {
        None => number.parse::<u64>().ok()?.checked_mul(factor),
        Some((whole, fraction)) => scaled(whole, fraction, factor),
    }
}

/// Returns the shortest exact way to write a time. [`parse_duration_ms`] reads it back.
pub(crate) fn show_duration_ms(ms: u64) -> String {
    let largest_first = TIMES.iter().rev().skip(1);
    match largest_first.clone().find(|(_, factor)| ms > 0 && ms.is_multiple_of(*factor)) {
        Some((unit, factor)) => format!("{}{unit}", ms / factor),
        None => format!("{ms}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_exactly() {
        for (text, bytes) in [
            ("0", 0),
            ("1048576", 1 << 20),
            ("1_000", 1000),
            ("64MiB", 64 << 20),
            ("64 mib", 64 << 20),
            ("10MB", 10_000_000),
            ("1.5GiB", 3 << 29),
            ("0.5kb", 500),
            (" 7 B ", 7),
        ] {
            assert_eq!(parse_size_bytes(text), Some(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in [
            "",
            "MiB",
            "-1",
            "1.5",
            "1.0001kb",
            "1..5MB",
            "10 parsecs",
            "1e6",
            "99999999999999999999",
            "20000000TiB",
            "1.MB",
            ".",
        ] {
            assert_eq!(parse_size_bytes(text), None, "{text}");
        }
    }

    #[test]
    fn times_are_read_exactly_and_shown_shortly() {
        for (text, ms) in
            [("800ms", 800), ("5s", 5000), ("5", 5000), ("0.25", 250), ("1.5m", 90_000), ("1 h", 3_600_000), ("0", 0)]
        {
            assert_eq!(parse_duration_ms(text), Some(ms), "{text}");
        }
        for text in ["", "s", "-1s", "5 days", "5S", "0.0001s", "1..5s", "99999999999999999999", "1e3", "NaN"] {
            assert_eq!(parse_duration_ms(text), None, "{text}");
        }
        for (ms, text) in [(0, "0ms"), (1, "1ms"), (1000, "1s"), (1500, "1500ms"), (60_000, "1m"), (86_400_000, "24h")]
        {
            assert_eq!((show_duration_ms(ms).as_str(), parse_duration_ms(text)), (text, Some(ms)));
        }
    }

    #[test]
    fn shown_sizes_read_back() {
        for bytes in [0, 1, 1023, 1024, 10_485_760, 10_000_000, 1_000_001, 3 << 30, u64::MAX] {
            assert_eq!(parse_size_bytes(&show_size_bytes(bytes)), Some(bytes));
        }
        assert_eq!(show_size_bytes(10 << 20), "10MiB");
        assert_eq!(show_size_bytes(1_000_000), "1MB");
    }
}
