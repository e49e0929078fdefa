//! ClickHouse's Kafka engine and ours on the same broker, the same topics, the same tables: the article's table of
//! formats and engines, what exactly once costs, and how late rows are under a steady load.
//!
//! The pipeline runs in a gateway of its own, in front of the ClickHouse that also has the Kafka engine; the engine is
//! gone while it runs, and the other way round.

mod dashboards;
mod messages;
mod peak;
mod reader;
mod report;
mod running;
mod steady;
mod sustained;
mod target;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use clap::ValueEnum;

use super::Part;
use crate::broker::{fill, Broker, BrokerClient, Filled, Topic};
use crate::error::BenchError;
use crate::process::usage;
use crate::report::{median, Section};
use crate::stack::{Stack, StackOptions};
use messages::{views_of, Format, Hour};
use peak::Peak;
use reader::{Route, Side, Threads};
use steady::{Load, Steady};
use sustained::Sustained;
use target::{Engine, Target};

const PARTITIONS: i32 = 4;
/// Of either side's peak.
const SHARES: [f64; 3] = [0.25, 0.5, 0.75];
const TABLE: &str = "bench.kafka";
/// Whose peaks the steady loads are shares of.
const LOADED: (Format, Engine) = (Format::JsonEachRow, Engine::MergeTree);
/// What is as it comes, and what the goals of latency are about.
const WINDROW: Side = Side::Windrow { exactly_once: true, max_latency: "5s" };
const AT_LEAST_ONCE: Side = Side::Windrow { exactly_once: false, max_latency: "5s" };
const WITHIN_A_SECOND: Side = Side::Windrow { exactly_once: true, max_latency: "1s" };

#[derive(Debug, Clone, clap::Args)]
pub struct KafkaOptions {
    /// How long each steady load runs, and the Kafka engine when it reads a full topic.
    #[arg(long, default_value_t = 12.0)]
    pub seconds: f64,
    /// In a full topic. The fastest format is read at millions a second: peaks of a second or two differ by a tenth and
    /// more.
    #[arg(long, default_value_t = 20_000_000)]
    pub rows: u64,
    /// Of peaks into MergeTree, alternately; the other tables are read into once.
    #[arg(long, default_value_t = 2)]
    pub rounds: u32,
    #[arg(long, value_delimiter = ',', default_value = "engine,windrow")]
    pub sides: Vec<Sides>,
    #[arg(long, value_delimiter = ',', default_value = "raw-blob,json-each-row,protobuf-single,protobuf")]
    pub formats: Vec<Format>,
    #[arg(long, value_delimiter = ',', default_value = "null,merge-tree,aggregating-merge-tree")]
    pub engines: Vec<Engine>,
    /// No steady loads: peaks alone.
    #[arg(long)]
    pub no_latency: bool,
    /// Steady loads of so many rows/s, and nothing else.
    #[arg(long, value_delimiter = ',')]
    pub at: Vec<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Sides {
    Engine,
    Windrow,
}

/// What all runs share.
pub struct Bench<'a> {
    pub stack: &'a Stack,
    pub options: &'a StackOptions,
    pub broker: &'a Broker,
    pub hour: Hour,
    rows: u64,
    filled: RefCell<HashMap<&'static str, Filled>>,
    views: RefCell<HashMap<u64, u64>>,
    runs: Cell<u32>,
}

#[derive(Debug, Clone, Copy)]
pub struct Usages {
    pub clickhouse: f64,
    pub broker: f64,
}

impl Bench<'_> {
    pub fn usages(&self) -> Usages {
        let clickhouse = self.stack.snapshot().clickhouse.cpu_seconds;
        Usages { clickhouse, broker: usage(self.broker.pid()).cpu_seconds }
    }

    /// No group and no table is used twice: what a run has left behind is in nobody's way.
    pub fn next_run(&self) -> u32 {
        self.runs.set(self.runs.get() + 1);
        self.runs.get()
    }

    pub fn create_topic(&self, name: &str) -> Result<Topic, BenchError> {
        let topic = Topic { name: name.to_owned(), partitions: PARTITIONS };
        BrokerClient::connect(&self.broker.address)?.create_topic(&topic)?;
        Ok(topic)
    }

    pub fn delete_topic(&self, topic: &Topic) -> Result<(), BenchError> {
        BrokerClient::connect(&self.broker.address)?.delete_topic(&topic.name)
    }

    /// What the format's topic holds, which is filled when it is first asked for.
    pub fn filled(&self, format: Format) -> Result<Filled, BenchError> {
        let known = self.filled.borrow().get(format.topic()).copied();
        if let Some(filled) = known {
            return Ok(filled);
        }
        let messages = self.rows / format.rows_per_message();
        let topic = self.create_topic(format.topic())?;
        let hour = self.hour;
        let write = |message: u64, out: &mut Vec<u8>| format.write(hour, message, out);
        let filled = fill(&self.broker.address, &topic, messages, &write)?;
        eprintln!("kafka: {}: {} messages, {} MB", topic.name, filled.messages, filled.bytes / 1_000_000);
        self.filled.borrow_mut().insert(format.topic(), filled);
        Ok(filled)
    }

    pub fn views_of(&self, rows: u64) -> u64 {
        *self.views.borrow_mut().entry(rows).or_insert_with(|| views_of(rows))
    }
}

/// How fast messages of a format come into a table: all runs.
pub struct Peaks {
    format: Format,
    engine: Engine,
    /// The faster of its two ways.
    threads: Threads,
    kafka_engine: Vec<Peak>,
    windrow: Vec<Peak>,
    at_least_once: Vec<Peak>,
}

impl Peaks {
    fn rate(peaks: &[Peak]) -> Option<f64> {
        (!peaks.is_empty()).then(|| median(peaks.iter().map(|peak| peak.rows_per_second)))
    }
}

/// What both sides do while messages are written.
#[derive(Default)]
pub struct UnderLoad {
    sustained: Vec<(Side, Sustained)>,
    loads: Vec<Loaded>,
}

/// One steady load.
pub struct Loaded {
    load: Load,
    share: Option<Share>,
    steady: Steady,
}

/// Of what a load is a share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    share: f64,
    of: Sides,
    peak: PeakOf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PeakOf {
    Sustained,
    FullTopic,
}

impl Part for KafkaOptions {
    fn environment(&self) -> Vec<String> {
        vec!["WINDROW_EMBEDDED_SYSTEM_LOGS=true".to_owned()]
    }

    fn measure(&self, stack: &Stack, options: &StackOptions) -> Result<Section, BenchError> {
        let broker = Broker::start()?;
        let bench = Bench {
            stack,
            options,
            broker: &broker,
            hour: Hour::of(SystemTime::now()),
            rows: self.rows,
            filled: RefCell::default(),
            views: RefCell::default(),
            runs: Cell::new(0),
        };
        let (peaks, under_load) = match self.at.as_slice() {
            [] => {
                let peaks = self.peaks(&bench)?;
                let under_load = if self.no_latency { UnderLoad::default() } else { self.under_load(&bench, &peaks)? };
                (peaks, under_load)
            }
            rates => (Vec::new(), UnderLoad { sustained: Vec::new(), loads: self.loads_of(&bench, rates)? }),
        };
        broker.stop()?;
        Ok(Section {
            name: "kafka",
            title: "Kafka",
            command: self.command(),
            body: report::report(self, &peaks, &under_load),
            charts: Vec::new(),
        })
    }
}

impl KafkaOptions {
    fn command(&self) -> String {
        let mut command =
            format!("bench/run kafka --seconds {} --rows {} --rounds {}", self.seconds, self.rows, self.rounds);
        let mut only = |name: &str, chosen: Vec<String>, all: usize| {
            if chosen.len() < all {
                command.push_str(&format!(" --{name} {}", chosen.join(",")));
            }
        };
        only("sides", names(&self.sides), Sides::value_variants().len());
        only("formats", names(&self.formats), Format::value_variants().len());
        only("engines", names(&self.engines), Engine::value_variants().len());
        if self.no_latency {
            command.push_str(" --no-latency");
        }
        if !self.at.is_empty() {
            let rates: Vec<String> = self.at.iter().map(f64::to_string).collect();
            command.push_str(&format!(" --at {}", rates.join(",")));
        }
        command
    }

    fn peaks(&self, bench: &Bench<'_>) -> Result<Vec<Peaks>, BenchError> {
        let mut all = Vec::new();
        for format in self.formats.iter().copied() {
            bench.filled(format)?;
            let mut threads = Threads::OnePerConsumer;
            if self.engines.contains(&Engine::MergeTree) {
                let peaks = self.peaks_into_merge_tree(bench, format)?;
                threads = peaks.threads;
                all.push(peaks);
            }
            for engine in self.engines.iter().copied() {
                if engine != Engine::MergeTree && engine.holds(format) {
                    all.push(self.peaks_into(bench, format, engine, threads)?);
                }
            }
        }
        Ok(all)
    }

    /// Several rounds of all there is, alternately. The first one finds which of its two ways is the engine's better
    /// one, which the others keep to.
    fn peaks_into_merge_tree(&self, bench: &Bench<'_>, format: Format) -> Result<Peaks, BenchError> {
        let (mut threads, mut kafka_engine) = (Threads::OnePerConsumer, Vec::new());
        let (mut windrow, mut at_least_once) = (Vec::new(), Vec::new());
        let engine = Engine::MergeTree;
        for round in 0..self.rounds {
            if self.sides.contains(&Sides::Engine) {
                let mut peak = self.peak(bench, Side::KafkaEngine(threads), format, engine)?;
                if round == 0 {
                    let shared = self.peak(bench, Side::KafkaEngine(Threads::Shared), format, engine)?;
                    if shared.rows_per_second > peak.rows_per_second {
                        (threads, peak) = (Threads::Shared, shared);
                    }
                }
                kafka_engine.push(peak);
            }
            if self.sides.contains(&Sides::Windrow) {
                windrow.push(self.peak(bench, WINDROW, format, engine)?);
                at_least_once.push(self.peak(bench, AT_LEAST_ONCE, format, engine)?);
            }
        }
        Ok(Peaks { format, engine, threads, kafka_engine, windrow, at_least_once })
    }

    /// The other tables can't tell what comes twice from what comes once.
    fn peaks_into(
        &self,
        bench: &Bench<'_>,
        format: Format,
        engine: Engine,
        threads: Threads,
    ) -> Result<Peaks, BenchError> {
        let run = |side: Side| match self.sides.contains(&side.chosen_as()) {
            true => self.peak(bench, side, format, engine).map(|peak| vec![peak]),
            false => Ok(Vec::new()),
        };
        let (kafka_engine, windrow) = (run(Side::KafkaEngine(threads))?, run(WINDROW)?);
        Ok(Peaks { format, engine, threads, kafka_engine, windrow, at_least_once: Vec::new() })
    }

    fn peak(&self, bench: &Bench<'_>, side: Side, format: Format, engine: Engine) -> Result<Peak, BenchError> {
        let sql = &bench.stack.clickhouse;
        let target = Target::create(sql, TABLE.to_owned(), engine, format, false)?;
        let topic = Topic { name: format.topic().to_owned(), partitions: PARTITIONS };
        let group = format!("peak-{}", bench.next_run());
        let route = Route { broker: bench.broker, topic: &topic, group: &group, format, target: &target };
        // What a pipeline has stored is counted; the engine would take too long for that.
        let limit = matches!(side, Side::KafkaEngine(_)).then(|| Duration::from_secs_f64(self.seconds));
        let peak = peak::measure(bench, side, &route, limit)?;
        target.drop(sql)?;
        eprintln!(
            "kafka: {} into {}, {}: {:.0} rows/s; CPU s for a million: gateway {:.2}, ClickHouse {:.2}, broker {:.2}",
            format.name(),
            engine.name(),
            side,
            peak.rows_per_second,
            peak.gateway_cpu_seconds.unwrap_or_default(),
            peak.clickhouse_cpu_seconds,
            peak.broker_cpu_seconds
        );
        Ok(peak)
    }

    /// Shares of what both sides sustain. The engine is spared what is more than it can read.
    fn under_load(&self, bench: &Bench<'_>, peaks: &[Peaks]) -> Result<UnderLoad, BenchError> {
        let Some(peaks) = peaks.iter().find(|peaks| (peaks.format, peaks.engine) == LOADED) else {
            return Ok(UnderLoad::default());
        };
        let engine = Side::KafkaEngine(peaks.threads);
        let mut under_load = UnderLoad::default();
        for (of, readers) in [(engine, [engine, WITHIN_A_SECOND].as_slice()), (WITHIN_A_SECOND, &[WITHIN_A_SECOND])] {
            let of_whom = of.chosen_as();
            if !self.sides.contains(&of_whom) {
                continue;
            }
            let sustained = sustained::measure(bench, of, peaks.format, self.seconds)?;
            eprintln!("kafka: {of} sustains {:.0} rows/s, {:?}", sustained.rows_per_second, sustained.cpu_percent);
            under_load.sustained.push((of, sustained));
            let mut shares: Vec<(Share, bool)> = Vec::new();
            let of_sustained = |share: f64| Share { share, of: of_whom, peak: PeakOf::Sustained };
            shares.extend(SHARES.map(|share| (of_sustained(share), false)));
            shares.push((of_sustained(0.5), true));
            if of_whom == Sides::Windrow {
                let half = Share { share: 0.5, of: of_whom, peak: PeakOf::FullTopic };
                shares.extend([(half, false), (half, true)]);
            }
            for (share, with_queries) in shares {
                let peak = match share.peak {
                    PeakOf::Sustained => Some(sustained.rows_per_second),
                    PeakOf::FullTopic => Peaks::rate(&peaks.windrow),
                };
                let Some(peak) = peak else { continue };
                for side in readers.iter().copied().filter(|side| self.sides.contains(&side.chosen_as())) {
                    let load = Load { side, rows_per_second: peak * share.share, with_queries };
                    under_load.loads.push(self.loaded(bench, load, Some(share))?);
                }
            }
        }
        Ok(under_load)
    }

    /// Without and with queries.
    fn loads_of(&self, bench: &Bench<'_>, rates: &[f64]) -> Result<Vec<Loaded>, BenchError> {
        // The broker has work to do before it is as fast as it gets.
        bench.filled(LOADED.0)?;
        let mut all = Vec::new();
        for rows_per_second in rates.iter().copied() {
            for side in [Side::KafkaEngine(Threads::OnePerConsumer), WITHIN_A_SECOND] {
                for with_queries in [false, true] {
                    if self.sides.contains(&side.chosen_as()) {
                        all.push(self.loaded(bench, Load { side, rows_per_second, with_queries }, None)?);
                    }
                }
            }
        }
        Ok(all)
    }

    fn loaded(&self, bench: &Bench<'_>, load: Load, share: Option<Share>) -> Result<Loaded, BenchError> {
        let (format, _) = LOADED;
        let steady = steady::measure(bench, load, format, self.seconds)?;
        let loaded = Loaded { load, share, steady };
        eprintln!("kafka: {}", report::one_line(&loaded));
        Ok(loaded)
    }
}

fn names<T: ValueEnum>(chosen: &[T]) -> Vec<String> {
    chosen.iter().filter_map(ValueEnum::to_possible_value).map(|value| value.get_name().to_owned()).collect()
}
