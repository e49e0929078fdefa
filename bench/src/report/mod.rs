//! From figures to a page: tables, charts, and the places in docs/benchmarks.md where they belong.

mod document;
mod machine;
mod svg;
mod table;

#[cfg(test)]
pub use document::REGIONS;
pub use document::{write_section, Section};
pub use machine::{await_quiet, describe};
pub use svg::{Chart, Series};
pub use table::Table;

/// The middle value, or the mean of the two in the middle; 0 of nothing.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => sorted[odd / 2],
        even => (sorted[even / 2 - 1] + sorted[even / 2]) / 2.0,
    }
}

/// A number of things.
pub fn count(value: f64) -> String {
    with_thousands(value.round() as i64)
}

/// A number beside an axis.
fn count_or_fraction(value: f64) -> String {
    if value.fract() == 0.0 {
        count(value)
    } else {
        value.to_string()
    }
}

/// The median of the ratios of values that were measured one right after the other: whatever slowed the machine down
/// for a while slowed both. 0 when there is nothing to compare.
pub fn paired_ratio(values: &[f64], references: &[f64]) -> f64 {
    let pairs = values.iter().zip(references).filter(|(_, reference)| **reference > 0.0);
    median(pairs.map(|(value, reference)| value / reference))
}

/// A figure with as many digits as it deserves.
pub fn figure(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => with_thousands(value.round() as i64),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn with_thousands(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0 {
        text.insert(0, '-');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median([]), 0.0);
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn a_slow_spell_does_not_touch_paired_ratios() {
        assert_eq!(paired_ratio(&[50.0, 5.0, 40.0], &[100.0, 10.0, 80.0]), 0.5);
        assert_eq!(paired_ratio(&[1.0], &[0.0]), 0.0);
        assert_eq!(paired_ratio(&[1.0, 2.0], &[]), 0.0);
    }

    #[test]
    fn figures_keep_three_digits_or_all_that_are_whole() {
        let texts = [1_234_567.4, 999.6, 123.4, 12.34, 1.234, 0.0, -1234.0].map(figure);
        assert_eq!(texts, ["1,234,567", "1000", "123", "12.3", "1.23", "0.00", "-1,234"]);
    }
}
