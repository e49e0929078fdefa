//! The article's three charts for each kind of insert: active parts, all parts, CPU.

use super::article::{Kind, Observed};
use super::sampler::Sample;
use crate::report::{Chart, Panel, Series};

/// CPU is counted in steps of 10 ms; over this many samples the steps no longer make a saw of the curve.
const CPU_SAMPLES_PER_POINT: usize = 4;

pub fn charts(observed: &[Observed], scale: f64) -> Vec<(String, String)> {
    [
        (Kind::Synchronous, "Synchronous inserts, straight into ClickHouse"),
        (Kind::Waiting, "Asynchronous inserts that wait, through the gateway"),
        (Kind::NotWaiting, "Asynchronous inserts that do not wait, through the gateway"),
    ]
    .into_iter()
    .map(|(kind, title)| (file_name(kind).to_owned(), chart(observed, kind, title, scale).to_svg()))
    .collect()
}

pub fn file_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Synchronous => "article-synchronous.svg",
        Kind::Waiting => "article-waiting.svg",
        Kind::NotWaiting => "article-not-waiting.svg",
    }
}

fn chart(observed: &[Observed], kind: Kind, title: &str, scale: f64) -> Chart {
    let runs: Vec<&Observed> = observed.iter().filter(|one| one.experiment.kind == kind).collect();
    let panel = |title: &str, of: fn(&Sample) -> u64| Panel {
        title: title.to_owned(),
        series: runs.iter().enumerate().map(|(at, one)| counted(one, at, of)).collect(),
    };
    let mut cpu = Panel { title: "CPU, % of the machine".to_owned(), series: Vec::new() };
    for (at, one) in runs.iter().enumerate() {
        cpu.series.push(cpu_series(one, at, "ClickHouse", |sample| sample.clickhouse_cpu_percent));
        if kind != Kind::Synchronous {
            cpu.series.push(cpu_series(one, at, "gateway", |sample| sample.gateway_cpu_percent));
        }
    }
    Chart {
        title: title.to_owned(),
        x_label: format!("seconds; the article's are {} times as long", 1.0 / scale),
        panels: vec![
            panel("active parts", |sample| sample.active_parts),
            panel("all parts, active and inactive", |sample| sample.all_parts),
            cpu,
        ],
    }
}

/// Labelled like ClickHouse's CPU, because it is ClickHouse's parts that are counted: one line in the legend for both.
fn counted(one: &Observed, colour: usize, of: fn(&Sample) -> u64) -> Series {
    let points = one.samples.iter().map(|sample| (sample.seconds, of(sample) as f64)).collect();
    Series { label: label(one, "ClickHouse"), colour, dashed: false, points }
}

fn cpu_series(one: &Observed, colour: usize, process: &str, of: fn(&Sample) -> f64) -> Series {
    let points = one
        .samples
        .chunks(CPU_SAMPLES_PER_POINT)
        .map(|samples| {
            let mean = samples.iter().map(of).sum::<f64>() / samples.len() as f64;
            (samples[samples.len() - 1].seconds, mean)
        })
        .collect();
    Series { label: label(one, process), colour, dashed: process == "gateway", points }
}

fn label(one: &Observed, process: &str) -> String {
    format!("{}: {process}", one.experiment.name())
}
