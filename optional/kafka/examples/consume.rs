//! A member of a group that reads and commits: `consume BROKERS GROUP TOPIC[,TOPIC...] [NAME=VALUE...]`,
//! where a topic that begins with `^` is a pattern. The program prints a line for everything that happens,
//! with tabs between the fields, and obeys orders, which are lines of standard input.
//!
//! Names: `start` (earliest, latest, or a time in milliseconds: the place to begin at where the group has no
//! offset), `session_ms`, `heartbeat_ms`, `rebalance_ms`, `refresh_ms`, `assignors`, `instance`,
//! `prefetch_bytes`, `commit=no`, `give_up=no` (revoked partitions are kept until the order `release`),
//! `quiet=yes` (instead of a line for each record there is one each second, with the number of records and
//! the seconds that they took).
//!
//! Orders: `pause TOPIC PARTITION`, `resume TOPIC PARTITION`, `start TOPIC PARTITION OFFSET`, `commit TOPIC
//! PARTITION OFFSET METADATA`, `watermarks TOPIC PARTITION`, `release`, `leave`. The member also leaves at
//! the end of its orders.

use std::collections::{BTreeMap, HashMap};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::mpsc;
use windrow_kafka::consumer::{Claim, Commit, Consumer, ConsumerOptions, Event, Fetched, Joined, Start, Topics};
use windrow_kafka::{Assignor, Client, ClientOptions, Decompressor};

type Failure = Box<dyn std::error::Error>;
type Names = HashMap<String, String>;

const REPORT_EVERY: Duration = Duration::from_secs(1);

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match consume().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

struct Member {
    consumer: Consumer,
    names: Names,
    claims: BTreeMap<(String, i32), Claim>,
    /// Claims that are revoked and not given up yet.
    revoked: Vec<Claim>,
    decompressor: Decompressor,
    counted: Counted,
}

/// Records that were read since the last report.
#[derive(Default)]
struct Counted {
    records: u64,
    bytes: u64,
    first_and_last: Option<(Instant, Instant)>,
}

async fn consume() -> Result<(), Failure> {
    let mut words = std::env::args().skip(1);
    let (Some(brokers), Some(group), Some(topics)) = (words.next(), words.next(), words.next()) else {
        return Err("BROKERS, GROUP and TOPICS are needed".into());
    };
    let names: Option<Names> =
        words.map(|word| word.split_once('=').map(|(name, value)| (name.into(), value.into()))).collect();
    let names = names.ok_or("what follows the topics has to be NAME=VALUE")?;
    let client = Client::connect(ClientOptions::new(brokers.split(',').map(str::to_owned).collect())).await?;
    let Joined { consumer, mut events, mut records } = Consumer::join(client, options(&group, &topics, &names)?)?;
    let decompressor = Decompressor::new(128 << 20);
    let (claims, revoked, counted) = (BTreeMap::new(), Vec::new(), Counted::default());
    let mut member = Member { consumer, names, claims, revoked, decompressor, counted };
    let mut report = tokio::time::interval(REPORT_EVERY);
    let mut orders = orders();
    loop {
        tokio::select! {
            biased;
            event = events.recv() => match event {
                Some(event) => member.heed(event).await?,
                None => return Ok(()),
            },
            order = orders.recv() => match order {
                Some(order) => member.obey(&order).await?,
                None => {
                    member.consumer.leave().await;
                    return Ok(());
                }
            },
            _ = report.tick() => member.report(),
            Some(fetched) = records.next() => member.read(fetched).await?,
        }
    }
}

/// Reads the orders from standard input, up to its end or to the order `leave`.
fn orders() -> mpsc::UnboundedReceiver<String> {
    let (order, orders) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        let lines = std::io::stdin().lines().map_while(Result::ok);
        lines.take_while(|line| line != "leave").try_for_each(|line| order.send(line))
    });
    orders
}

fn options(group: &str, topics: &str, names: &Names) -> Result<ConsumerOptions, Failure> {
    let topics = match topics.strip_prefix('^') {
        Some(pattern) => Topics::Pattern(pattern.to_owned()),
        None => Topics::Named(topics.split(',').map(str::to_owned).collect()),
    };
    let mut options = ConsumerOptions::new(topics, group);
    let number = |name: &str, default: u64| names.get(name).map_or(Ok(default), |text| text.parse());
    options.session_timeout_ms = number("session_ms", options.session_timeout_ms)?;
    options.heartbeat_interval_ms = number("heartbeat_ms", options.heartbeat_interval_ms)?;
    options.rebalance_timeout_ms = number("rebalance_ms", options.rebalance_timeout_ms)?;
    options.metadata_refresh_ms = number("refresh_ms", options.metadata_refresh_ms)?;
    options.max_prefetch_bytes = number("prefetch_bytes", options.max_prefetch_bytes as u64)? as usize;
    options.group_instance_id = names.get("instance").cloned();
    if let Some(named) = names.get("assignors") {
        let known = [Assignor::CooperativeSticky, Assignor::Range];
        options.assignors = known.into_iter().filter(|each| named.split(',').any(|name| name == each.name())).collect();
    }
    Ok(options)
}

impl Member {
    fn is(&self, name: &str, value: &str) -> bool {
        self.names.get(name).is_some_and(|given| given == value)
    }

    async fn heed(&mut self, event: Event) -> Result<(), Failure> {
        match event {
            Event::Assigned(assigned) => {
                for each in assigned {
                    let claim = each.claim;
                    let offset = each.committed.as_ref().map_or(-1, |committed| committed.offset);
                    let metadata = each.committed.as_ref().map_or("", |committed| &committed.metadata);
                    say("assigned", &claim, &format!("{offset}\t{metadata}\t{}", each.topic_id));
                    self.claims.insert((claim.topic.to_string(), claim.partition), claim.clone());
                    let start = if offset >= 0 { Start::At(offset) } else { start(self.names.get("start"))? };
                    match self.consumer.start(&claim, start).await {
                        Ok(offset) => say("started", &claim, &offset.to_string()),
                        Err(error) => say("not-started", &claim, &error.to_string()),
                    }
                }
            }
            Event::Revoking(claims) => {
                claims.iter().for_each(|claim| say("revoking", claim, ""));
                self.revoked.extend(claims);
                if !self.is("give_up", "no") {
                    self.release();
                }
            }
            Event::Lost(claims) => {
                self.revoked.retain(|claim| !claims.contains(claim));
                for claim in claims {
                    say("lost", &claim, "");
                    self.claims.retain(|_, known| *known != claim);
                }
            }
            Event::OutOfRange { claim, offset, earliest, latest, .. } => {
                say("out-of-range", &claim, &format!("{offset}\t{earliest}\t{latest}"));
                self.consumer.start(&claim, Start::Earliest).await?;
            }
            Event::Truncated { claim, offset, diverged, leader_epoch, .. } => {
                say("truncated", &claim, &format!("{offset}\t{diverged}\t{leader_epoch}"));
                self.consumer.start_behind(&claim, diverged, leader_epoch);
            }
            Event::Trouble(text) => println!("trouble\t{text}"),
            Event::Ended(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn release(&mut self) {
        for claim in &self.revoked {
            say("given-up", claim, "");
            self.claims.retain(|_, known| known != claim);
        }
        self.consumer.given_up(&std::mem::take(&mut self.revoked));
    }

    async fn obey(&mut self, order: &str) -> Result<(), Failure> {
        let words: Vec<&str> = order.split(' ').collect();
        if words == ["release"] {
            self.release();
            return Ok(());
        }
        let [order, topic, partition, rest @ ..] = &words[..] else { return Err(format!("{order}?").into()) };
        let Some(claim) = self.claims.get(&(topic.to_string(), partition.parse()?)).cloned() else {
            println!("not-ours\t{topic}\t{partition}");
            return Ok(());
        };
        match (*order, rest) {
            ("pause", []) => self.consumer.pause(&claim),
            ("resume", []) => self.consumer.resume(&claim),
            ("start", [offset]) => drop(self.consumer.start(&claim, Start::At(offset.parse()?)).await?),
            ("commit", [offset, metadata]) => self.commit(&claim, offset.parse()?, metadata).await,
            ("watermarks", []) => say(
                "watermarks",
                &claim,
                &match self.consumer.watermarks(&claim) {
                    Some(marks) => format!("{}\t{}\t{}", marks.low, marks.high, marks.last_stable),
                    None => String::new(),
                },
            ),
            _ => return Err(format!("{words:?}?").into()),
        }
        Ok(())
    }

    async fn read(&mut self, fetched: Fetched) -> Result<(), Failure> {
        let is_quiet = self.is("quiet", "yes");
        for batch in fetched.batches {
            for record in self.decompressor.records(&batch?)? {
                let record = record?;
                if record.offset < fetched.from_offset {
                    continue;
                }
                self.counted.records += 1;
                self.counted.bytes += record.value.map_or(0, <[u8]>::len) as u64;
                if !is_quiet {
                    let value = record.value.map_or("null".into(), |value| value.escape_ascii().to_string());
                    let age_ms = now_ms() - record.timestamp_ms;
                    say("record", &fetched.claim, &format!("{}\t{age_ms}\t{value}", record.offset));
                }
            }
        }
        if !self.is("commit", "no") {
            self.commit(&fetched.claim, fetched.next_offset, &format!("from {}", fetched.from_offset)).await;
        }
        let (first, now) = (self.counted.first_and_last.map(|(first, _)| first), Instant::now());
        self.counted.first_and_last = Some((first.unwrap_or(now), now));
        Ok(())
    }

    fn report(&mut self) {
        let Counted { records, bytes, first_and_last } = std::mem::take(&mut self.counted);
        if let Some((first, last)) = first_and_last.filter(|_| self.is("quiet", "yes")) {
            println!("read\t{records}\t{bytes}\t{:.3}", last.duration_since(first).as_secs_f64());
        }
    }

    async fn commit(&self, claim: &Claim, offset: i64, metadata: &str) {
        let commit = Commit { claim: claim.clone(), offset, metadata: metadata.to_owned() };
        match self.consumer.commit(&[commit]).await {
            Ok(()) => say("committed", claim, &format!("{offset}\t{metadata}")),
            Err(error) => say("not-committed", claim, &format!("{offset}\t{error:?}")),
        }
    }
}

fn start(named: Option<&String>) -> Result<Start, Failure> {
    Ok(match named.map(String::as_str) {
        None | Some("earliest") => Start::Earliest,
        Some("latest") => Start::Latest,
        Some(time) => Start::Time(time.parse()?),
    })
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

fn say(what: &str, claim: &Claim, rest: &str) {
    println!("{what}\t{}\t{}\t{}\t{rest}", claim.topic, claim.partition, claim.epoch);
}
