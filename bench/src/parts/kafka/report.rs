//! The page: the article's table for both sides, the details, and what the project promises.

use super::messages::Format;
use super::peak::Peak;
use super::reader::Side;
use super::steady::Lateness;
use super::sustained::Sustained;
use super::target::Engine;
use super::{KafkaOptions, Loaded, PeakOf, Peaks, Share, Sides, UnderLoad};
use crate::parts::goals::Goals;
use crate::parts::megabytes;
use crate::report::{count, figure, median, paired_ratio, Table};

/// How many times the engine's speed into MergeTree.
const TIMES: [(Format, f64); 3] = [(Format::JsonEachRow, 3.0), (Format::ProtobufSingle, 5.0), (Format::Protobuf, 2.0)];
const MEMORY_MB: f64 = 256.0;
const NONE: &str = "–";

pub fn report(options: &KafkaOptions, peaks: &[Peaks], under_load: &UnderLoad) -> String {
    let UnderLoad { sustained, loads } = under_load;
    let mut text = format!("{METHOD}\n");
    if !peaks.is_empty() {
        text.push_str(&format!("### Peak\n\n{PEAK_METHOD}\n"));
        for (title, of) in [("Kafka engine", kafka_engine as fn(&Peaks) -> &[Peak]), ("Windrow", windrow)] {
            if peaks.iter().any(|each| !of(each).is_empty()) {
                text.push_str(&format!("{title}, rows/s:\n\n{}\n", formats_by_engines(peaks, of).to_markdown()));
            }
        }
        text.push_str(&format!("{}\n", details(peaks).to_markdown()));
    }
    if let Some(once) = exactly_once(peaks) {
        text.push_str(&format!("### Exactly once\n\n{ONCE_METHOD}\n{}\n", once.to_markdown()));
    }
    if !sustained.is_empty() {
        text.push_str(&format!(
            "### While messages are written\n\n{SUSTAINED_METHOD}\n{}\n",
            sustained_table(sustained).to_markdown()
        ));
    }
    if !loads.is_empty() {
        text.push_str(&format!(
            "### Latency\n\n{LATENCY_METHOD} Each load ran for {} s after a warm-up.\n\n{}\n",
            figure(options.seconds),
            latency(loads).to_markdown()
        ));
    }
    text.push_str(&goals(peaks, under_load).to_markdown());
    text
}

const METHOD: &str = "\
The broker is a real one (Kafka 4.1, one node, on the same machine), its topics have 4 partitions, and its messages come in \
batches of 64 KiB before lz4 compresses them, as who produces much is told to: uncompressed, the broker's copies of them were the limit under load. Both sides store into the same ClickHouse, the one that also has the Kafka engine: a queue table with 2 consumers \
(`kafka_num_consumers = 2`, `kafka_flush_interval_ms = 2200`, `kafka_thread_per_consumer` as it is faster into MergeTree, else its defaults) and a materialized view, and a gateway of its own \
with one pipeline in `[[kafka]]`. Rows are those of the article on the Kafka engine: \
two times, a number, a title, a count; 148 bytes as JSON, 44 as protobuf. Its third format, CapnProto, is not one of Windrow's.
";
const PEAK_METHOD: &str = "\
A full topic is read by a new group. Counted are rows whose offsets are committed, which both sides do once the rows are stored, from the first commit to the \
last one before the topic's end, over the time between; a table of engine Null keeps no rows that could be counted otherwise. What a pipeline has \
stored is counted and added up afterwards, but for Null. AggregatingMergeTree is the article's table; the engine's view aggregates as the article's does.
";
const ONCE_METHOD: &str = "Into MergeTree, alternately, with `exactly_once` on and off.\n";
const SUSTAINED_METHOD: &str = "\
JSONEachRow into MergeTree while the producer writes it: what a reader sustains, with its share of a machine on which the messages are made and taken too. The producer \
writes as fast as it can, but is never more than 3 million rows ahead of what is stored, so that it writes as fast as the reader just keeps up with. CPU is in % of one.
";
const LATENCY_METHOD: &str = "\
JSONEachRow into MergeTree at a steady rate, in batches of 10 ms: shares of what is sustained, by either side, and of Windrow's peak from a full topic, \
at which nobody had to write. Late is the time from a message's timestamp, which is when it was due, until its row can be found: each row's block number says which \
part brought it, and `system.part_log` when that part was added to the table. Every row is counted, and nothing is asked meanwhile, unless \
queries are part of the case: then 4 dashboards ask for the most viewed titles over all rows again and again, with 500 ms between an answer \
and the next question. `max_latency` is 1s. CPU is in % of one.";

fn kafka_engine(peaks: &Peaks) -> &[Peak] {
    &peaks.kafka_engine
}

fn windrow(peaks: &Peaks) -> &[Peak] {
    &peaks.windrow
}

fn rate(peaks: &[Peak]) -> String {
    Peaks::rate(peaks).map_or_else(|| NONE.to_owned(), count)
}

/// The article's own table.
fn formats_by_engines(peaks: &[Peaks], of: fn(&Peaks) -> &[Peak]) -> Table {
    let mut table = Table::new(["format", "Null", "MergeTree", "AggregatingMergeTree"]);
    let mut formats: Vec<Format> = Vec::new();
    for each in peaks {
        if !formats.contains(&each.format) {
            formats.push(each.format);
        }
    }
    for format in formats {
        let cell = |engine: Engine| {
            let found = peaks.iter().find(|each| (each.format, each.engine) == (format, engine));
            found.map_or_else(|| NONE.to_owned(), |each| rate(of(each)))
        };
        table.row([format.title(), cell(Engine::Null), cell(Engine::MergeTree), cell(Engine::AggregatingMergeTree)]);
    }
    table
}

fn details(peaks: &[Peaks]) -> Table {
    let mut table = Table::new([
        "format",
        "table",
        "reader",
        "rows/s",
        "× the engine",
        "gateway's CPU, s per million rows",
        "ClickHouse's",
        "broker's",
        "gateway's peak memory, MB",
    ]);
    for each in peaks {
        let cases =
            [(Side::KafkaEngine(each.threads).to_string(), &each.kafka_engine), ("Windrow".to_owned(), &each.windrow)];
        for (reader, runs) in cases.into_iter().filter(|(_, runs)| !runs.is_empty()) {
            let middle = |of: fn(&Peak) -> Option<f64>| match runs.iter().any(|peak| of(peak).is_some()) {
                true => figure(median(runs.iter().filter_map(of))),
                false => NONE.to_owned(),
            };
            table.row([
                each.format.title(),
                each.engine.name().to_owned(),
                reader,
                rate(runs),
                times(each, runs).map_or_else(|| NONE.to_owned(), figure),
                middle(|peak| peak.gateway_cpu_seconds),
                middle(|peak| Some(peak.clickhouse_cpu_seconds)),
                middle(|peak| Some(peak.broker_cpu_seconds)),
                peak_megabytes(runs.iter()).map_or_else(|| NONE.to_owned(), figure),
            ]);
        }
    }
    table
}

fn times(peaks: &Peaks, runs: &[Peak]) -> Option<f64> {
    let rates = |runs: &[Peak]| -> Vec<f64> { runs.iter().map(|peak| peak.rows_per_second).collect() };
    (!peaks.kafka_engine.is_empty()).then(|| paired_ratio(&rates(runs), &rates(&peaks.kafka_engine)))
}

fn peak_megabytes<'p>(runs: impl Iterator<Item = &'p Peak>) -> Option<f64> {
    runs.filter_map(|peak| peak.gateway_peak_bytes).max().map(megabytes)
}

fn exactly_once(peaks: &[Peaks]) -> Option<Table> {
    let mut table = Table::new(["format", "exactly once, rows/s", "at least once, rows/s", "cost"]);
    let both = peaks.iter().filter(|each| !each.at_least_once.is_empty());
    let mut any = false;
    for each in both {
        any = true;
        table.row([
            each.format.title(),
            rate(&each.windrow),
            rate(&each.at_least_once),
            cost_of_once(each).map_or_else(|| NONE.to_owned(), |cost| format!("{} %", figure(100.0 * cost))),
        ]);
    }
    any.then_some(table)
}

/// As a share of the speed without it.
fn cost_of_once(peaks: &Peaks) -> Option<f64> {
    let rates = |runs: &[Peak]| -> Vec<f64> { runs.iter().map(|peak| peak.rows_per_second).collect() };
    let ratio = paired_ratio(&rates(&peaks.windrow), &rates(&peaks.at_least_once));
    (ratio > 0.0).then_some(1.0 - ratio)
}

fn sustained_table(sustained: &[(Side, Sustained)]) -> Table {
    let mut table = Table::new([
        "reader",
        "rows/s",
        "gateway's CPU",
        "ClickHouse's",
        "broker's",
        "producer's",
        "gateway's peak memory, MB",
    ]);
    for (side, each) in sustained {
        table.row([
            side.to_string(),
            count(each.rows_per_second),
            or_none(each.cpu_percent.gateway),
            figure(each.cpu_percent.clickhouse),
            figure(each.cpu_percent.broker),
            figure(each.cpu_percent.producer),
            or_none(each.gateway_peak_bytes.map(megabytes)),
        ]);
    }
    table
}

fn or_none(value: Option<f64>) -> String {
    value.map_or_else(|| NONE.to_owned(), figure)
}

fn latency(loads: &[Loaded]) -> Table {
    let mut table = Table::new([
        "reader",
        "load",
        "rows/s",
        "queries/s",
        "p50 ms",
        "p95 ms",
        "p99 ms",
        "max ms",
        "parts/s",
        "gateway's CPU",
        "ClickHouse's",
        "broker's",
        "producer's",
        "sent late by at most, ms",
        "queries' p50 ms",
        "queries' p99 ms",
        "gateway's peak memory, MB",
    ]);
    for each in loads {
        let (steady, late) = (&each.steady, &each.steady.lateness);
        table.row([
            each.load.side.to_string(),
            load_name(each),
            count(each.load.rows_per_second),
            or_none(steady.asked.map(|asked| asked.queries_per_second)),
            figure(late.p50_ms),
            figure(late.p95_ms),
            figure(late.p99_ms),
            figure(late.max_ms),
            figure(steady.parts_per_second),
            or_none(steady.cpu_percent.gateway),
            figure(steady.cpu_percent.clickhouse),
            figure(steady.cpu_percent.broker),
            figure(steady.cpu_percent.producer),
            figure(steady.sent_late_ms),
            or_none(steady.asked.map(|asked| asked.p50_ms)),
            or_none(steady.asked.map(|asked| asked.p99_ms)),
            or_none(steady.gateway_peak_bytes.map(megabytes)),
        ]);
    }
    table
}

fn load_name(loaded: &Loaded) -> String {
    let Some(Share { share, of, peak }) = loaded.share else { return "as given".to_owned() };
    let whose = if of == Sides::Windrow { "Windrow" } else { "the engine" };
    match peak {
        PeakOf::Sustained => format!("{:.0} % of what {whose} sustains", 100.0 * share),
        PeakOf::FullTopic => format!("{:.0} % of {whose}'s peak", 100.0 * share),
    }
}

pub fn one_line(loaded: &Loaded) -> String {
    let (steady, late) = (&loaded.steady, &loaded.steady.lateness);
    let cpu = steady.cpu_percent;
    format!(
        "{}, {}, {} rows/s{}: p50 {} ms, p95 {} ms, p99 {} ms, {} parts/s; CPU %: gateway {}, ClickHouse {}, broker {}, producer {}; sent late by {} ms",
        loaded.load.side,
        load_name(loaded),
        count(loaded.load.rows_per_second),
        if loaded.load.with_queries { " with queries" } else { "" },
        figure(late.p50_ms),
        figure(late.p95_ms),
        figure(late.p99_ms),
        figure(steady.parts_per_second),
        or_none(cpu.gateway),
        figure(cpu.clickhouse),
        figure(cpu.broker),
        figure(cpu.producer),
        figure(steady.sent_late_ms)
    )
}

fn goals(peaks: &[Peaks], under_load: &UnderLoad) -> Goals {
    let mut goals = Goals::new();
    for (format, goal) in TIMES {
        let found = peaks.iter().find(|each| (each.format, each.engine) == (format, Engine::MergeTree));
        if let Some(measured) = found.and_then(|each| times(each, &each.windrow)).filter(|times| *times > 0.0) {
            goals.at_least(&format!("{} into MergeTree, times the engine's rows/s", format.title()), goal, measured);
        }
    }
    for each in peaks {
        if let Some(cost) = cost_of_once(each) {
            goals.at_most(&format!("{}, what exactly once costs, %", each.format.title()), 10.0, 100.0 * cost);
        }
    }
    for (peak, half) in [(PeakOf::Sustained, "half of what we sustain"), (PeakOf::FullTopic, "half of our peak")] {
        let share = Share { share: 0.5, of: Sides::Windrow, peak };
        for each in under_load.loads.iter().filter(|each| each.share == Some(share)) {
            let Lateness { p99_ms, .. } = each.steady.lateness;
            match each.load.with_queries {
                true => goals.at_most(&format!("at {half}, with queries, p99 ms"), 2000.0, p99_ms),
                false => {
                    goals.at_most(&format!("at {half}, p99 ms"), 1000.0, p99_ms);
                    goals.at_most(&format!("at {half}, parts/s"), 2.0, each.steady.parts_per_second);
                }
            }
        }
    }
    let of_full_topics = peaks.iter().flat_map(|each| each.windrow.iter().chain(&each.at_least_once));
    if let Some(most) = peak_megabytes(of_full_topics) {
        goals.at_most("at the peaks, gateway's memory, MB", MEMORY_MB, most);
    }
    if let Some(most) = under_load.sustained.iter().filter_map(|(_, each)| each.gateway_peak_bytes).max() {
        goals.at_most("at what we sustain, gateway's memory, MB", MEMORY_MB, megabytes(most));
    }
    goals
}
