//! A reader in front of an empty topic and an empty table, both its own, while somebody writes into the topic.

use std::time::{Duration, Instant};

use super::messages::Format;
use super::reader::{Reader, Route, Side};
use super::target::{Engine, Target};
use super::Bench;
use crate::broker::{BrokerClient, Producer, Topic};
use crate::error::BenchError;
use crate::process::{own_cpu_seconds, usage};

const JOINED_WITHIN: Duration = Duration::from_secs(90);
const CAUGHT_UP_WITHIN: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(20);

pub struct Running<'b> {
    bench: &'b Bench<'b>,
    pub format: Format,
    pub topic: Topic,
    pub target: Target,
    group: String,
    reader: Reader,
    client: BrokerClient,
}

/// CPU time of all who share the machine: up to now in seconds, or of a while in % of one CPU.
#[derive(Debug, Clone, Copy)]
pub struct Cpu {
    pub gateway: Option<f64>,
    pub clickhouse: f64,
    pub broker: f64,
    pub producer: f64,
}

impl Cpu {
    pub fn percent_since(self, before: Cpu, wall: Duration) -> Cpu {
        let percent = |after: f64, before: f64| 100.0 * (after - before) / wall.as_secs_f64();
        Cpu {
            gateway: self.gateway.zip(before.gateway).map(|(after, before)| percent(after, before)),
            clickhouse: percent(self.clickhouse, before.clickhouse),
            broker: percent(self.broker, before.broker),
            producer: percent(self.producer, before.producer),
        }
    }
}

impl<'b> Running<'b> {
    /// Its table is MergeTree, and each row keeps its message's timestamp. Returns when the reader has its partitions.
    pub fn start(bench: &'b Bench<'b>, side: Side, format: Format) -> Result<Self, BenchError> {
        let group = format!("steady-{}", bench.next_run());
        let topic = bench.create_topic(&group)?;
        let name = format!("bench.kafka_{}", group.replace('-', "_"));
        let target = Target::create(&bench.stack.clickhouse, name, Engine::MergeTree, format, true)?;
        let route = Route { broker: bench.broker, topic: &topic, group: &group, format, target: &target };
        let reader = Reader::start(side, &route, bench.stack, bench.options)?;
        let mut client = BrokerClient::connect(&bench.broker.address)?;
        wait_for("its members", JOINED_WITHIN, || client.is_stable(&group))?;
        Ok(Running { bench, format, topic, target, group, reader, client })
    }

    /// Messages, from number 0 on.
    pub fn producer(&self, messages_per_second: f64) -> Result<Producer, BenchError> {
        let (format, hour) = (self.format, self.bench.hour);
        let write = |message: u64, out: &mut Vec<u8>| format.write(hour, message, out);
        Producer::begin(&self.bench.broker.address, &self.topic, messages_per_second, write)
    }

    /// How many messages are stored.
    pub fn committed(&mut self) -> Result<u64, BenchError> {
        self.client.committed(&self.group, &self.topic)
    }

    pub fn cpu(&self) -> Cpu {
        let usages = self.bench.usages();
        Cpu {
            gateway: self.reader.pid().map(|pid| usage(pid).cpu_seconds),
            clickhouse: usages.clickhouse,
            broker: usages.broker,
            producer: own_cpu_seconds(),
        }
    }

    /// When all that was sent is stored, which is looked up, the reader ends. Returns what memory it took at most, and
    /// its table.
    pub fn end(mut self, producer: Producer) -> Result<(Option<u64>, Target), BenchError> {
        let (sent, rows_per_message) = (producer.sent(), self.format.rows_per_message());
        let views = producer.sum(|messages| self.bench.views_of(messages * rows_per_message));
        producer.end()?;
        wait_for("all rows", CAUGHT_UP_WITHIN, || Ok(self.committed()? >= sent))?;
        let peak_bytes = self.reader.peak_resident_bytes();
        self.reader.stop()?;
        self.target.check(&self.bench.stack.clickhouse, sent * rows_per_message, views)?;
        self.bench.delete_topic(&self.topic)?;
        Ok((peak_bytes, self.target))
    }
}

fn wait_for(
    what: &str,
    patience: Duration,
    mut there: impl FnMut() -> Result<bool, BenchError>,
) -> Result<(), BenchError> {
    let until = Instant::now() + patience;
    while !there()? {
        if Instant::now() > until {
            return Err(BenchError::Unsound(format!("{what} were not there within {patience:?}")));
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}
