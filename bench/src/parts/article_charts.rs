//! The article's curves: active parts, all parts and ClickHouse's CPU, each of all experiments on the same axes.

use super::article::{Kind, Observed};
use super::sampler::Sample;
use crate::report::{count, Chart, Series};

/// CPU is counted in steps of 10 ms; over this many samples the steps no longer make a saw of the curve.
const CPU_SAMPLES_PER_POINT: usize = 4;

pub struct Figure {
    pub file: &'static str,
    /// For those who can't see it.
    pub alternative: &'static str,
    what: &'static str,
    y_label: &'static str,
    of: fn(&Sample) -> f64,
    /// A number of parts, whose largest counts; else a share, whose mean does.
    is_count: bool,
    /// Which of the experiments it shows.
    at_full_speed: bool,
}

pub const FIGURES: [Figure; 3] = [
    Figure {
        file: "active-parts.svg",
        alternative: "Active parts while 200 writers insert row by row, straight into ClickHouse and through Windrow",
        what: "200 writers, a row at a time. Active parts, at most",
        y_label: "active parts of the table, log scale",
        of: |sample| sample.active_parts as f64,
        is_count: true,
        at_full_speed: true,
    },
    Figure {
        file: "all-parts.svg",
        alternative: "All parts over time, active and merged ones",
        what: "Parts on the disk, at most",
        y_label: "all parts of the table, also merged ones, log scale",
        of: |sample| sample.all_parts as f64,
        is_count: true,
        at_full_speed: false,
    },
    Figure {
        file: "clickhouse-cpu.svg",
        alternative: "ClickHouse's CPU over time",
        what: "ClickHouse's CPU, % on average",
        y_label: "ClickHouse's CPU, % of the machine",
        of: |sample| sample.clickhouse_cpu_percent,
        is_count: false,
        at_full_speed: false,
    },
];

pub fn charts(observed: &[Observed], scale: f64) -> Vec<(String, String)> {
    let chart = |figure: &Figure| {
        let shown: Vec<&Observed> =
            observed.iter().filter(|one| one.experiment.at_full_speed == figure.at_full_speed).collect();
        Chart {
            title: figure.title(&shown),
            x_label: match figure.at_full_speed {
                true => "seconds".to_owned(),
                false => format!("seconds; the article's are {} times as long", 1.0 / scale),
            },
            y_label: figure.y_label.to_owned(),
            is_logarithmic: figure.is_count,
            series: shown.iter().map(|one| figure.series(one)).collect(),
        }
    };
    FIGURES.iter().map(|figure| (figure.file.to_owned(), chart(figure).to_svg())).collect()
}

impl Figure {
    /// `Active parts, at most: 274 straight, 6 through Windrow`.
    fn title(&self, shown: &[&Observed]) -> String {
        let of_one = |one: &&Observed| match self.is_count {
            true => one.samples.iter().map(self.of).fold(0.0, f64::max),
            false => one.samples.iter().map(self.of).sum::<f64>() / one.samples.len().max(1) as f64,
        };
        let largest = |is_straight: bool| {
            let of_kind = shown.iter().filter(|one| (one.experiment.kind == Kind::Synchronous) == is_straight);
            count(of_kind.map(of_one).fold(0.0, f64::max))
        };
        format!("{}: {} straight, {} through Windrow", self.what, largest(true), largest(false))
    }

    fn series(&self, one: &Observed) -> Series {
        let together = if self.is_count { 1 } else { CPU_SAMPLES_PER_POINT };
        let point = |samples: &[Sample]| {
            let mean = samples.iter().map(self.of).sum::<f64>() / samples.len() as f64;
            (samples[samples.len() - 1].seconds, mean)
        };
        Series { name: one.short_name(), points: one.samples.chunks(together).map(point).collect() }
    }
}
