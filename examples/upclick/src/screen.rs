//! The picture on a terminal: figures on top, and the cities below, in as many columns as needed.

use crate::engine::Engine;
use crate::snapshot::{shown, shown_clock, shown_ms, CityView, Point, SideView, Snapshot};
use crate::style::{Colour, Line};

/// The size of the terminal, and the characters that it can show.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Canvas {
    pub width: usize,
    pub height: usize,
    /// Says whether bars and lines may use block characters. If not, plain ones are used.
    pub unicode: bool,
}

/// The least width of a city: name and latency, and a stub of a bar where there is room.
const MIN_CITY_WIDTH: usize = 20;
const MAX_CITY_WIDTH: usize = 50;
const NAME_WIDTH: usize = 13;
/// Width of ` 999 ms!`.
const LATENCY_WIDTH: usize = 8;
const COMPARED_LABEL_WIDTH: usize = 16;
const MAX_COMPARED_WIDTH: usize = 48;
/// Width of `  1010 ms`.
const COMPARED_VALUE_WIDTH: usize = 9;

pub(crate) fn draw(snapshot: &Snapshot, canvas: Canvas) -> Vec<Line> {
    let mut lines = header(snapshot);
    lines.push(Line::default());
    match &snapshot.sides[..] {
        [side] => {
            lines.extend(figures(snapshot, side, canvas.width));
            lines.push(Line::default());
        }
        sides => {
            lines.extend(comparison(sides, canvas));
            lines.extend(snapshot.sentence.clone().map(|sentence| Line::default().with(Colour::Bold, sentence)));
        }
    }
    lines.push(kpi_line(snapshot));
    let rows = canvas.height.saturating_sub(lines.len() + 1);
    lines.extend(cities(snapshot, canvas, rows));
    lines.truncate(canvas.height.saturating_sub(1));
    lines.push(footer(snapshot));
    lines
}

fn header(snapshot: &Snapshot) -> Vec<Line> {
    let title = Line::default()
        .with(Colour::Bold, format!("UpClick {}", shown_clock(snapshot.elapsed)))
        .with(Colour::Plain, format!("  {}", snapshot.title));
    vec![title, Line::default().with(Colour::Dim, snapshot.subtitle.clone())]
}

struct Figure {
    label: &'static str,
    value: String,
    colour: Colour,
}

struct FigureGroups {
    speed: Vec<Figure>,
    rows: Vec<Figure>,
    parts: Vec<Figure>,
    failures: Figure,
    gateway_cpu: Figure,
    clickhouse_cpu: Figure,
}

fn figures(snapshot: &Snapshot, side: &SideView, width: usize) -> Vec<Line> {
    let columns = figure_columns(snapshot, side, width);
    let rows = columns.iter().map(Vec::len).max().unwrap_or(0);
    let cell_width = (width / columns.len().max(1)).min(36);
    let line = |row: usize| {
        let in_row = columns.iter().enumerate().filter_map(|(at, column)| column.get(row).map(|figure| (at, figure)));
        in_row.fold(Line::default(), |line, (at, figure)| {
            line.beside(at * cell_width, cell(figure, cell_width.saturating_sub(3)))
        })
    };
    (0..rows).map(line).collect()
}

/// Arranges the figures in as many columns as the width allows. Figures that belong together stand below each other.
fn figure_columns(snapshot: &Snapshot, side: &SideView, width: usize) -> Vec<Vec<Figure>> {
    let FigureGroups { mut speed, mut rows, mut parts, failures, gateway_cpu, clickhouse_cpu } =
        figure_groups(snapshot, side);
    if width >= 110 {
        return vec![speed, rows, parts, vec![clickhouse_cpu, gateway_cpu, failures]];
    }
    if width >= 72 {
        speed.push(failures);
        rows.push(gateway_cpu);
        parts.push(clickhouse_cpu);
        return vec![speed, rows, parts];
    }
    speed.append(&mut rows);
    parts.extend([clickhouse_cpu, gateway_cpu, failures]);
    vec![speed, parts]
}

fn cell(figure: &Figure, width: usize) -> Line {
    let value_at = width.saturating_sub(figure.value.chars().count());
    let value = Line::default().with(figure.colour, figure.value.clone());
    Line::default().with(Colour::Dim, figure.label).beside(value_at.max(figure.label.len() + 1), value)
}

fn figure_groups(snapshot: &Snapshot, side: &SideView) -> FigureGroups {
    let SideView { results, store, .. } = side;
    let figure = |label, value| Figure { label, value, colour: Colour::Bold };
    let percent = |value: Option<f64>| shown(value, |percent| format!("{percent:.1} %"));
    let failures = Figure {
        label: "failed inserts",
        value: results.failures.to_string(),
        colour: if results.failures == 0 { Colour::Green } else { Colour::Red },
    };
    let rate = shown(side.parts_per_second, |rate| format!("{rate:.1}"));
    let in_store = match side.engine {
        Engine::ClickHouse => "in ClickHouse",
        Engine::DuckDb => "in DuckDB",
        Engine::PostgreSql => "in PostgreSQL",
        Engine::Sqlite => "in SQLite",
    };
    FigureGroups {
        speed: vec![
            figure("inserts/s", shown(side.inserts_per_second, |rate| format!("{rate:.1}"))),
            figure("ack p50", shown_ms(results.ack_p50_ms)),
            figure("ack p99", shown_ms(results.ack_p99_ms)),
        ],
        rows: vec![
            figure("rows inserted", results.sent.to_string()),
            figure("acknowledged", results.acknowledged.to_string()),
            figure(in_store, shown(store.found, |rows| rows.to_string())),
        ],
        parts: match side.engine {
            Engine::ClickHouse => vec![
                figure("active parts", shown(store.active_parts, |parts| parts.to_string())),
                figure("all parts", shown(store.all_parts, |parts| parts.to_string())),
                figure("new parts/s", rate),
            ],
            Engine::DuckDb | Engine::PostgreSql | Engine::Sqlite => vec![
                figure("batches", shown(store.all_parts, |batches| batches.to_string())),
                figure("batches/s", rate),
            ],
        },
        failures,
        gateway_cpu: figure("gateway CPU", percent(snapshot.gateway_cpu_percent)),
        clickhouse_cpu: figure("ClickHouse CPU", percent(side.database_cpu_percent)),
    }
}

/// Compares the sides: one column for each, with every measure and its course. The lines of both sides have
/// one scale.
fn comparison(sides: &[SideView], canvas: Canvas) -> Vec<Line> {
    let columns = sides.len().max(1);
    let width = (canvas.width.saturating_sub(COMPARED_LABEL_WIDTH) / columns).min(MAX_COMPARED_WIDTH);
    let row = |label: &'static str, cell: &dyn Fn(&SideView) -> Line| {
        let cells = sides.iter().enumerate();
        cells.fold(Line::default().with(Colour::Dim, label), |line, (at, side)| {
            line.beside(COMPARED_LABEL_WIDTH + at * width, cell(side))
        })
    };
    let measured = |label, of: fn(&Point) -> Option<f64>, show: fn(f64) -> String| {
        let past = |side: &SideView| side.past.iter().map(of).collect::<Vec<_>>();
        let highest = sides.iter().flat_map(past).flatten().fold(1.0, f64::max);
        row(label, &|side: &SideView| {
            let past = past(side);
            let line_width = width.saturating_sub(COMPARED_VALUE_WIDTH + 3);
            let value = shown(past.last().copied().flatten(), show);
            Line::default()
                .with(Colour::Plain, spark(&past, line_width, highest, canvas.unicode))
                .with(Colour::Bold, format!("{value:>COMPARED_VALUE_WIDTH$}"))
        })
    };
    let mut lines = vec![row("", &|side| Line::default().with(Colour::Bold, side.name.clone()))];
    lines.push(measured("new parts/s", |point| point.parts_per_second, |rate| format!("{rate:.1}")));
    lines.push(measured(
        "active parts",
        |point| point.active_parts.map(|parts| parts as f64),
        |parts| format!("{parts:.0}"),
    ));
    lines.push(measured("all parts", |point| point.all_parts.map(|parts| parts as f64), |parts| format!("{parts:.0}")));
    lines.push(measured("ClickHouse CPU", |point| point.database_cpu_percent, |percent| format!("{percent:.0} %")));
    lines.push(row("ack p50, p99", &|side| {
        let (p50, p99) = (shown_ms(side.results.ack_p50_ms), shown_ms(side.results.ack_p99_ms));
        Line::default().with(Colour::Plain, format!("{p50}, {p99}"))
    }));
    lines.push(row("rows stored", &|side| {
        let SideView { results, store, .. } = side;
        let failed = format!("{} failed", results.failures);
        Line::default()
            .with(Colour::Plain, format!("{} of {}, ", shown(store.found, |rows| rows.to_string()), results.sent))
            .with(if results.failures == 0 { Colour::Green } else { Colour::Red }, failed)
    }));
    lines
}

/// Draws the last `width` values as a line of bars. An unknown value is a gap.
fn spark(values: &[Option<f64>], width: usize, highest: f64, unicode: bool) -> String {
    let levels = if unicode { "▁▂▃▄▅▆▇█" } else { "_.,-~=+#" };
    let level = |value: f64| {
        let at = (value / highest * 7.0).round().clamp(0.0, 7.0) as usize;
        levels.chars().nth(at).unwrap_or(' ')
    };
    let shown = &values[values.len().saturating_sub(width)..];
    let line: String = shown.iter().map(|value| value.map_or(' ', level)).collect();
    format!("{line:<width$}")
}

fn kpi_line(snapshot: &Snapshot) -> Line {
    let above = snapshot.count_above_kpi();
    let within = snapshot.count_measured() - above;
    Line::default()
        .with(Colour::Plain, format!("average latency, last {} s", snapshot.averaged_over.as_secs().max(1)))
        .with(Colour::Dim, format!("   KPI {:.0} ms: ", snapshot.kpi_ms))
        .with(Colour::Green, format!("{within} within"))
        .with(Colour::Dim, ", ")
        .with(if above == 0 { Colour::Dim } else { Colour::Red }, format!("{above} above"))
}

fn cities(snapshot: &Snapshot, canvas: Canvas, rows: usize) -> Vec<Line> {
    let count = snapshot.cities.len();
    if rows == 0 || count == 0 {
        return Vec::new();
    }
    let columns_that_fit = (canvas.width / MIN_CITY_WIDTH).max(1);
    let columns_wanted = count.div_ceil(rows).max(canvas.width.div_ceil(MAX_CITY_WIDTH));
    let columns = columns_wanted.min(columns_that_fit);
    let rows = count.div_ceil(columns).min(rows);
    let cell_width = canvas.width / columns;
    // The scale stays as it is while the slowest city changes a little.
    let slowest = snapshot.cities.iter().filter_map(|city| city.average_ms).fold(2.0 * snapshot.kpi_ms, f64::max);
    let line = |row: usize| {
        let in_row = snapshot.cities.iter().skip(row).step_by(rows).take(columns).enumerate();
        in_row.fold(Line::default(), |line, (column, city)| {
            line.beside(column * cell_width, city_cell(snapshot, city, cell_width, slowest, canvas.unicode))
        })
    };
    (0..rows).map(line).collect()
}

fn city_cell(snapshot: &Snapshot, city: &CityView, width: usize, slowest_ms: f64, unicode: bool) -> Line {
    let name_width = NAME_WIDTH.min(width.saturating_sub(LATENCY_WIDTH)).max(1);
    let name: String = city.city.name.chars().take(name_width).collect();
    let above = snapshot.above_kpi(city);
    // Without colours the mark is what tells.
    let mark = if above { "!" } else { " " };
    let colour = match (city.average_ms, above) {
        (None, _) => Colour::Dim,
        (_, true) => Colour::Red,
        (_, false) => Colour::Green,
    };
    let latency = shown(city.average_ms, |ms| format!("{ms:.0} ms"));
    let bar_width = width.saturating_sub(name_width + LATENCY_WIDTH + 2);
    let share = city.average_ms.unwrap_or(0.0) / slowest_ms.max(1.0);
    Line::default()
        .with(Colour::Plain, format!("{name:name_width$}"))
        .with(colour, format!("{latency:>7}{mark}{}", bar(share, bar_width, unicode)))
}

/// Draws a bar, in eighths of a column where the terminal can show them.
fn bar(share: f64, width: usize, unicode: bool) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    match unicode {
        true => "█".repeat(eighths / 8) + EIGHTHS[eighths % 8],
        false => "#".repeat((eighths + 4) / 8),
    }
}

fn footer(snapshot: &Snapshot) -> Line {
    let waits = format!("ends: {} inserts have no answer yet; Ctrl-C ends without them", snapshot.unanswered());
    match snapshot.problem() {
        _ if snapshot.ending => Line::default().with(Colour::Plain, waits),
        Some(problem) => Line::default().with(Colour::Red, problem.replace(['\n', '\r', '\x1b'], " ")),
        None => Line::default()
            .with(Colour::Dim, "with a map: ")
            .with(Colour::Plain, snapshot.page.clone())
            .with(Colour::Dim, "   Ctrl-C ends the run with a summary"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cities::CITIES;
    use std::time::Duration;

    fn snapshot() -> Snapshot {
        let average = |index: usize| (index != 3).then_some(index as f64 * 7.0);
        let mut snapshot = Snapshot {
            elapsed: Duration::from_secs(75),
            title: "200 probes in 40 cities, one measurement each every 10 s".to_owned(),
            subtitle: "through http://127.0.0.1:8123".to_owned(),
            kpi_ms: 100.0,
            averaged_over: Duration::from_secs(10),
            cities: CITIES
                .iter()
                .enumerate()
                .map(|(index, city)| CityView { city, average_ms: average(index), course_ms: Vec::new() })
                .collect(),
            sides: vec![SideView { name: "through Windrow".to_owned(), ..SideView::default() }],
            ..Snapshot::default()
        };
        snapshot.sides[0].results.acknowledged = 4711;
        snapshot
    }

    /// Returns a snapshot with a straight side that makes two hundred times as many parts.
    fn compared() -> Snapshot {
        let mut snapshot = snapshot();
        let point = |second, rate| Point {
            second,
            parts_per_second: Some(rate),
            active_parts: Some(second),
            all_parts: Some(second * 2),
            database_cpu_percent: Some(rate / 4.0),
        };
        snapshot.sides[0].past = (0..90).map(|second| point(second, 1.0)).collect();
        let straight = SideView { name: "straight to ClickHouse".to_owned(), is_straight: true, ..SideView::default() };
        snapshot.sides.push(SideView { past: (0..90).map(|second| point(second, 200.0)).collect(), ..straight });
        snapshot.sentence = Some("200 parts/s became 1; ClickHouse's CPU 57 % became 6 %".to_owned());
        snapshot
    }

    fn painted(snapshot: &Snapshot, width: usize, height: usize) -> Vec<String> {
        let canvas = Canvas { width, height, unicode: true };
        draw(snapshot, canvas).iter().map(|line| line.paint(width, false)).collect()
    }

    #[test]
    fn everything_fits_on_80_by_24() {
        let lines = painted(&snapshot(), 80, 24);
        assert!(lines.len() <= 24, "{}", lines.len());
        let text = lines.join("\n");
        for city in &CITIES {
            assert!(text.contains(city.name), "{} is not in\n{text}", city.name);
        }
        assert!(text.contains("4711") && text.contains("1:15") && text.contains("25 above"), "{text}");
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn the_comparison_fits_on_80_by_24_with_all_cities() {
        let lines = painted(&compared(), 80, 24);
        let text = lines.join("\n");
        assert!(lines.len() <= 24 && lines.iter().all(|line| line.chars().count() <= 80), "{text}");
        for city in &CITIES {
            let name: String = city.name.chars().take(12).collect();
            assert!(text.contains(&name), "{name} is not in\n{text}");
        }
        assert!(text.contains("through Windrow                 straight to ClickHouse"), "{text}");
        let rates = "new parts/s     ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁      1.0   ████████████████████    200.0";
        assert!(lines.contains(&rates.to_owned()), "{text}");
        assert!(text.contains("200 parts/s became 1; ClickHouse's CPU 57 % became 6 %"), "{text}");
    }

    #[test]
    fn any_size_is_filled_and_none_overflows() {
        for snapshot in [snapshot(), compared(), Snapshot::default()] {
            for (width, height) in (0..200).flat_map(|width| (1..60).map(move |height| (width, height))) {
                let canvas = Canvas { width, height, unicode: false };
                let lines = draw(&snapshot, canvas);
                assert!(lines.len() <= height, "{width}x{height}: {}", lines.len());
                assert!(lines.iter().all(|line| line.paint(width, false).chars().count() <= width), "{width}x{height}");
            }
        }
        assert!(painted(&snapshot(), 160, 40).len() >= 17);
    }

    #[test]
    fn cities_above_the_kpi_are_marked_without_colours_too() {
        let text = painted(&snapshot(), 80, 24).join("\n");
        assert!(text.contains("105 ms!"), "{text}");
        assert!(text.contains("98 ms "), "{text}");
    }

    #[test]
    fn an_error_cannot_move_the_cursor() {
        let mut snapshot = snapshot();
        snapshot.last_error = Some("line\nbreak \x1b[2J".to_owned());
        let last = painted(&snapshot, 80, 24).pop().expect("a footer");
        assert_eq!(last, "line break  [2J");
    }

    #[test]
    fn bars_grow_by_eighths() {
        assert_eq!(bar(0.5, 3, true), "█▌");
        assert_eq!(bar(2.0, 3, true), "███");
        assert_eq!(bar(f64::NAN, 3, true), "");
        assert_eq!(bar(0.5, 4, false), "##");
    }
}
