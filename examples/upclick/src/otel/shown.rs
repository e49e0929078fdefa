//! The picture while the scene lasts, and the summary of a run.

use std::fmt;
use std::time::Duration;

use super::store::RouteRow;
use crate::snapshot::{shown, shown_clock, shown_ms};
use crate::style::{Colour, Line};

/// All that is shown at one moment.
pub(super) struct Picture {
    pub(super) elapsed: Duration,
    pub(super) title: String,
    pub(super) subtitle: String,
    pub(super) dashboard: String,
    pub(super) signals: Vec<SignalView>,
    pub(super) active_parts: Option<u64>,
    pub(super) parts_per_second: Option<f64>,
    pub(super) problem: Option<String>,
    pub(super) ending: bool,
}

/// The figures of one signal, counted in rows.
#[derive(Debug, Clone)]
pub struct SignalView {
    pub name: &'static str,
    pub rows_per_second: Option<f64>,
    pub sent: u64,
    pub acknowledged: u64,
    pub refused: u64,
    /// Requests that were acknowledged.
    pub requests: u64,
    /// Count of repeated requests.
    pub repeats: u64,
    /// Rows that ClickHouse has.
    pub found: Option<u64>,
    /// Age of the newest of these rows, in seconds.
    pub newest_seconds: Option<f64>,
    pub ack_p50_ms: Option<f64>,
    pub ack_p99_ms: Option<f64>,
}

/// A column of the table: its heading, its width, and the function that fills it.
type Column = (&'static str, usize, fn(&SignalView) -> String);

const COLUMNS: [Column; 6] = [
    ("rows/s", 9, |of| shown(of.rows_per_second, |rate| format!("{rate:.0}"))),
    ("acknowledged", 14, |of| of.acknowledged.to_string()),
    ("in ClickHouse", 15, |of| shown(of.found, |rows| rows.to_string())),
    ("newest", 10, |of| shown(of.newest_seconds, |age| format!("{age:.1} s"))),
    ("ack p50", 10, |of| shown_ms(of.ack_p50_ms)),
    ("p99", 10, |of| shown_ms(of.ack_p99_ms)),
];
const NAME_WIDTH: usize = 8;

pub(super) fn screen(picture: &Picture) -> Vec<Line> {
    let heads = COLUMNS.iter().map(|(title, width, _)| format!("{title:>width$}")).collect::<String>();
    let mut lines = vec![
        Line::default()
            .with(Colour::Bold, format!("OpenTelemetry {}", shown_clock(picture.elapsed)))
            .with(Colour::Plain, format!("  {}", picture.title)),
        Line::default().with(Colour::Dim, picture.subtitle.clone()),
        Line::default(),
        Line::default().with(Colour::Dim, format!("{:NAME_WIDTH$}{heads}", "")),
    ];
    for signal in &picture.signals {
        let cells = COLUMNS.iter().map(|(_, width, cell)| format!("{:>width$}", cell(signal))).collect::<String>();
        lines.push(
            Line::default().with(Colour::Plain, format!("{:NAME_WIDTH$}", signal.name)).with(Colour::Bold, cells),
        );
    }
    let sent_again: u64 = picture.signals.iter().map(|signal| signal.repeats).sum();
    let refused: u64 = picture.signals.iter().map(|signal| signal.refused).sum();
    lines.push(Line::default());
    lines.push(
        Line::default()
            .with(Colour::Dim, "parts ")
            .with(Colour::Bold, format!("{} active", shown(picture.active_parts, |parts| parts.to_string())))
            .with(Colour::Bold, format!(", {} new/s", shown(picture.parts_per_second, |rate| format!("{rate:.1}"))))
            .with(Colour::Dim, "   requests sent again ")
            .with(Colour::Bold, sent_again.to_string())
            .with(Colour::Dim, "   rows refused ")
            .with(if refused == 0 { Colour::Green } else { Colour::Red }, refused.to_string()),
    );
    lines.push(Line::default());
    lines.push(match &picture.problem {
        _ if picture.ending => {
            Line::default().with(Colour::Plain, "ends: the last answers are waited for; Ctrl-C ends without")
        }
        Some(problem) => Line::default().with(Colour::Red, problem.replace(['\n', '\r', '\x1b'], " ")),
        None => Line::default()
            .with(Colour::Dim, "dashboard: ")
            .with(Colour::Plain, picture.dashboard.clone())
            .with(Colour::Dim, "   Ctrl-C ends the run with a summary"),
    });
    lines
}

pub(super) fn plain(picture: &Picture) -> String {
    let mut line = shown_clock(picture.elapsed);
    for signal in &picture.signals {
        line.push_str(&format!(
            " | {}: {} rows/s, {} acknowledged, {} in ClickHouse, newest {} old, ack p50 {}, p99 {}",
            signal.name,
            shown(signal.rows_per_second, |rate| format!("{rate:.0}")),
            signal.acknowledged,
            shown(signal.found, |rows| rows.to_string()),
            shown(signal.newest_seconds, |age| format!("{age:.1} s")),
            shown_ms(signal.ack_p50_ms),
            shown_ms(signal.ack_p99_ms),
        ));
    }
    let active = shown(picture.active_parts, |parts| parts.to_string());
    let created = shown(picture.parts_per_second, |rate| format!("{rate:.1}"));
    line.push_str(&format!(" | parts {active} active, {created} new/s"));
    if let Some(problem) = &picture.problem {
        line.push_str(&format!(" | {}", problem.replace(['\n', '\r'], " ")));
    }
    line
}

/// The figures of a whole run.
#[derive(Debug, Clone)]
pub struct OtelSummary {
    pub elapsed: Duration,
    pub agents: usize,
    pub signals: Vec<SignalView>,
    pub parts: u64,
    /// The slowest routes, or the error of the query for them.
    pub routes: Result<Vec<RouteRow>, String>,
}

impl OtelSummary {
    pub fn is_complete(&self) -> bool {
        let is_complete = |of: &SignalView| of.sent > 0 && of.acknowledged == of.sent && of.found == Some(of.sent);
        self.signals.iter().all(is_complete)
    }

    fn row(&self, f: &mut fmt::Formatter<'_>, label: &str, value: impl Fn(&SignalView) -> String) -> fmt::Result {
        let cells: String = self.signals.iter().map(|signal| format!("  {:>14}", value(signal))).collect();
        writeln!(f, "  {label:<20}{cells}")
    }
}

impl fmt::Display for OtelSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.elapsed.as_secs_f64();
        writeln!(f, "{} agents sent telemetry for {seconds:.1} s.", self.agents)?;
        self.row(f, "", |signal| signal.name.to_owned())?;
        self.row(f, "rows sent", |signal| signal.sent.to_string())?;
        self.row(f, "acknowledged", |signal| signal.acknowledged.to_string())?;
        self.row(f, "found in ClickHouse", |signal| shown(signal.found, |rows| rows.to_string()))?;
        self.row(f, "refused", |signal| signal.refused.to_string())?;
        self.row(f, "requests sent again", |signal| signal.repeats.to_string())?;
        self.row(f, "acknowledged after", |signal| shown_ms(signal.ack_p50_ms))?;
        self.row(f, "p99", |signal| shown_ms(signal.ack_p99_ms))?;
        let requests: u64 = self.signals.iter().map(|signal| signal.requests).sum();
        writeln!(f, "{requests} requests became {} parts.", self.parts)?;
        match &self.routes {
            Ok(routes) => {
                writeln!(f, "The slowest routes, of the spans in ClickHouse:")?;
                writeln!(
                    f,
                    "  {:<11}{:<22}{:>9}{:>9}{:>9}{:>10}",
                    "service", "route", "requests", "p50", "p99", "failed"
                )?;
                for row in routes {
                    let RouteRow { service, route, requests, failed_percent, p50_ms, p99_ms } = row;
                    let (p50, p99) = (format!("{p50_ms:.0} ms"), format!("{p99_ms:.0} ms"));
                    let failed = format!("{failed_percent:.1} %");
                    writeln!(f, "  {service:<11}{route:<22}{requests:>9}{p50:>9}{p99:>9}{failed:>10}")?;
                }
            }
            Err(error) => {
                writeln!(f, "The routes could not be asked for: {}", error.replace(['\n', '\r', '\x1b'], " "))?
            }
        }
        f.write_str(match self.is_complete() {
            true => "Every log record, span and point was acknowledged and is in ClickHouse, once.",
            false => "Not all that was sent was acknowledged, or is in ClickHouse.",
        })
    }
}
