//! The line that says how far an append is, as wide as there is room for.

use std::time::Duration;

use windrow_appender::Progress;

const BAR_CELLS: u64 = 24;

/// Returns the longest of several wordings that fits: a line that is wrapped can't be drawn over.
pub(super) fn frame(progress: &Progress, elapsed: Duration, columns: usize) -> String {
    let percent = share(progress).map(|share| format!("{:3.0} %", share * 100.0));
    let rows = format!("{} rows", grouped(progress.rows));
    let line = line(progress, elapsed);
    let mut wordings = Vec::new();
    if let (Some(share), Some(percent)) = (share(progress), &percent) {
        wordings.push(format!("{} {percent}  {line}", bar(share)));
        wordings.push(format!("{percent}  {line}"));
        wordings.push(format!("{percent}  {rows}, {}", rate(progress, elapsed)));
        wordings.push(format!("{percent}  {rows}"));
    }
    wordings.extend([line, rows]);
    let fits = |wording: &&String| wording.chars().count() < columns;
    wordings.iter().find(fits).cloned().unwrap_or_default()
}

pub(super) fn line(progress: &Progress, elapsed: Duration) -> String {
    let rows = grouped(progress.rows);
    let (bytes, rate) = (size(progress.bytes_acknowledged), rate(progress, elapsed));
    format!("{rows} rows, {bytes}, {rate}, {:.0} s", elapsed.as_secs_f64())
}

/// Returns the text, or its beginning, so that it stays on one line.
pub(super) fn cut_to(text: &str, columns: usize) -> String {
    let most = columns.saturating_sub(1).max(1);
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

/// Writes 1234567 as 1,234,567.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} KB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.2} GB", bytes as f64 / 1e9),
    }
}

fn rate(progress: &Progress, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64().max(1e-3);
    format!("{}/s", size((progress.bytes_acknowledged as f64 / seconds) as u64))
}

/// Returns the progress from 0 to 1, where it can be told: by batches when they are counted, else by the size
/// that the source gave.
fn share(progress: &Progress) -> Option<f64> {
    let share = match (progress.all_batches, progress.whole_bytes) {
        (Some(0), _) => return Some(1.0),
        (Some(all), _) => progress.batches as f64 / all as f64,
        // Files are packed, so that this is a guess; only the end is the end.
        (None, Some(whole)) if whole > 0 => (progress.bytes_acknowledged as f64 / whole as f64).min(0.99),
        _ => return None,
    };
    Some(share.clamp(0.0, 1.0))
}

fn bar(share: f64) -> String {
    let full = (share * BAR_CELLS as f64) as u64;
    let cells: String = (0..BAR_CELLS).map(|cell| if cell < full { '#' } else { '.' }).collect();
    format!("[{cells}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_known_by_batches_or_guessed_by_bytes() {
        let by_bytes = Progress { bytes_acknowledged: 50, whole_bytes: Some(100), ..Progress::default() };
        assert_eq!(share(&by_bytes), Some(0.5));
        assert_eq!(share(&Progress { bytes_acknowledged: 500, ..by_bytes }), Some(0.99));
        assert_eq!(share(&Progress { batches: 3, all_batches: Some(3), ..by_bytes }), Some(1.0));
        assert_eq!(share(&Progress { all_batches: Some(0), ..by_bytes }), Some(1.0));
        assert_eq!(share(&Progress::default()), None);
    }

    #[test]
    fn a_frame_fits_whatever_the_terminal_is() {
        let progress = Progress {
            rows: 12_345_678,
            batches: 50,
            all_batches: Some(100),
            bytes_acknowledged: 98_765_432,
            ..Progress::default()
        };
        let shown = |columns| frame(&progress, Duration::from_secs(10), columns);
        assert_eq!(shown(80), "[############............]  50 %  12,345,678 rows, 98.8 MB, 9.9 MB/s, 10 s");
        assert_eq!(shown(60), " 50 %  12,345,678 rows, 98.8 MB, 9.9 MB/s, 10 s");
        assert_eq!(shown(40), " 50 %  12,345,678 rows, 9.9 MB/s");
        assert_eq!(shown(25), " 50 %  12,345,678 rows");
        for columns in 0..120 {
            assert!(shown(columns).chars().count() <= columns.saturating_sub(1), "{columns}");
        }
        assert_eq!(cut_to("waiting for gateway:8123", 12), "waiting fo…");
        assert_eq!(cut_to("short", 12), "short");
    }

    #[test]
    fn numbers_are_written_for_people() {
        let written = [0, 999, 1000, 1_234_567].map(grouped);
        assert_eq!(written, ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([999, 1500, 2_500_000, 3_210_000_000].map(size), ["999 B", "1.5 KB", "2.5 MB", "3.21 GB"]);
    }
}
