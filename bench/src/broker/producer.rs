//! Writes messages as fast as the broker takes them, or at a steady rate.

use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::batch::{self, Batch};
use super::wire::{Api, Wire};
use crate::error::BenchError;

const PRODUCE: Api = Api { name: "Produce", key: 0, version: 3 };
/// Once the one broker there is has it.
const ACKS: i16 = 1;
const TIMEOUT_MS: i32 = 30_000;
/// Requests on their way: more than the broker needs to be kept busy.
const IN_FLIGHT: usize = 16;
/// Batches of a topic that is filled. Four times what a producer makes unless told, and what those are told who produce
/// much.
const BATCH_BYTES: usize = 64 << 10;
/// The broker takes no larger ones than 1 MiB.
const MAX_BATCH_BYTES: usize = 512 << 10;
/// How long a producer at a steady rate gathers a batch, about.
const TICK: Duration = Duration::from_millis(10);
/// What a producer at a steady rate sends before it begins from the front.
const ROUNDS: u64 = 16;

#[derive(Debug, Clone)]
pub struct Topic {
    pub name: String,
    pub partitions: i32,
}

/// One connection; answers are read by a thread of their own.
struct Requests {
    wire: Wire,
    topic: Topic,
    unanswered: Option<SyncSender<()>>,
    answers: Option<JoinHandle<Result<(), BenchError>>>,
}

impl Requests {
    fn open(address: &str, topic: &Topic) -> Result<Self, BenchError> {
        let wire = Wire::connect(address)?;
        let reader = wire.another()?;
        let (unanswered, to_read) = mpsc::sync_channel(IN_FLIGHT);
        let answers = std::thread::spawn(move || read_answers(reader, &to_read));
        Ok(Requests { wire, topic: topic.clone(), unanswered: Some(unanswered), answers: Some(answers) })
    }

    /// One batch of each partition that is named.
    fn send(&mut self, batches: &[(i32, Vec<u8>)]) -> Result<(), BenchError> {
        // Nobody reads any more when an answer was bad.
        if self.unanswered.as_ref().is_none_or(|unanswered| unanswered.send(()).is_err()) {
            self.close()?;
            return Err(BenchError::Setup("the connection to the broker is closed".into()));
        }
        let topic = &self.topic.name;
        self.wire.send(PRODUCE, |writer| {
            writer.null_string();
            writer.i16(ACKS);
            writer.i32(TIMEOUT_MS);
            writer.array([topic].iter(), |writer, topic| {
                writer.string(topic);
                writer.array(batches.iter(), |writer, (partition, bytes)| {
                    writer.i32(*partition);
                    writer.bytes(bytes);
                });
            });
        })
    }

    /// Returns when the broker has everything.
    fn close(&mut self) -> Result<(), BenchError> {
        self.unanswered = None;
        match self.answers.take().map(JoinHandle::join) {
            Some(Ok(outcome)) => outcome,
            Some(Err(_)) => Err(BenchError::Setup("the producer's reader panicked".into())),
            None => Ok(()),
        }
    }
}

fn read_answers(mut wire: Wire, to_read: &Receiver<()>) -> Result<(), BenchError> {
    while to_read.recv().is_ok() {
        let mut answer = wire.receive()?;
        let codes = answer.array(|answer| {
            let _topic = answer.string()?;
            answer.array(|answer| {
                let (partition, code) = (answer.i32()?, answer.i16()?);
                let _offset_and_time = (answer.i64()?, answer.i64()?);
                Ok((partition, code))
            })
        })?;
        if let Some((partition, code)) = codes.into_iter().flatten().find(|(_, code)| *code != 0) {
            return Err(BenchError::Setup(format!("the broker refused messages of partition {partition}: {code}")));
        }
    }
    Ok(())
}

/// What a topic holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Filled {
    pub messages: u64,
    /// Of their values.
    pub bytes: u64,
}

/// Messages of the numbers from 0 on, in turn into each partition. `write` makes the value of one.
pub fn fill(
    address: &str,
    topic: &Topic,
    messages: u64,
    write: &(impl Fn(u64, &mut Vec<u8>) + Sync),
) -> Result<Filled, BenchError> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..topic.partitions)
            .map(|partition| scope.spawn(move || fill_partition(address, topic, partition, messages, write)))
            .collect();
        let mut all = Filled::default();
        for thread in threads {
            let one = thread.join().map_err(|_| BenchError::Setup("a producer panicked".into()))??;
            all = Filled { messages: all.messages + one.messages, bytes: all.bytes + one.bytes };
        }
        Ok(all)
    })
}

fn fill_partition(
    address: &str,
    topic: &Topic,
    partition: i32,
    messages: u64,
    write: &impl Fn(u64, &mut Vec<u8>),
) -> Result<Filled, BenchError> {
    let mut requests = Requests::open(address, topic)?;
    let (mut batch, mut value, mut filled) = (Batch::default(), Vec::new(), Filled::default());
    let timestamp_ms = now_ms();
    for number in (partition as u64..messages).step_by(topic.partitions as usize) {
        value.clear();
        write(number, &mut value);
        batch.push(&value);
        filled = Filled { messages: filled.messages + 1, bytes: filled.bytes + value.len() as u64 };
        if batch.bytes() >= BATCH_BYTES {
            requests.send(&[(partition, batch.finish(timestamp_ms))])?;
        }
    }
    if !batch.is_empty() {
        requests.send(&[(partition, batch.finish(timestamp_ms))])?;
    }
    requests.close()?;
    Ok(filled)
}

/// Sends messages at a steady rate, the same ones again and again: they are made beforehand, so that it takes little of
/// a machine that those who are measured need. A message's timestamp is when it was due, also where the broker kept the
/// producer waiting.
pub struct Producer {
    requests: Requests,
    /// What is sent at one time each: a batch for every partition.
    rounds: Vec<Vec<(i32, Vec<u8>)>>,
    messages_per_round: u64,
    tick: Duration,
    began: Instant,
    began_ms: i64,
    ticks: u64,
}

impl Producer {
    /// `write` makes the value of a message of a number.
    pub fn begin(
        address: &str,
        topic: &Topic,
        messages_per_second: f64,
        write: impl Fn(u64, &mut Vec<u8>),
    ) -> Result<Self, BenchError> {
        let partitions = topic.partitions as u64;
        let mut each = (TICK.as_secs_f64() * messages_per_second / partitions as f64).round().max(1.0) as u64;
        let mut value = Vec::new();
        write(0, &mut value);
        each = each.min((MAX_BATCH_BYTES / value.len().max(1)) as u64).max(1);
        let messages_per_round = each * partitions;
        let mut next = 0..;
        let mut batch_of = |partition: i32| {
            let mut batch = Batch::default();
            for number in next.by_ref().take(each as usize) {
                value.clear();
                write(number, &mut value);
                batch.push(&value);
            }
            (partition, batch.finish(0))
        };
        let rounds = (0..ROUNDS).map(|_| (0..topic.partitions).map(&mut batch_of).collect()).collect();
        Ok(Producer {
            requests: Requests::open(address, topic)?,
            rounds,
            messages_per_round,
            tick: Duration::from_secs_f64(messages_per_round as f64 / messages_per_second),
            began: Instant::now(),
            began_ms: now_ms(),
            ticks: 0,
        })
    }

    pub fn sent(&self) -> u64 {
        self.ticks * self.messages_per_round
    }

    /// What `of` makes of the messages up to a number, for all that were sent: those of full circles, and those of the
    /// last one.
    pub fn sum(&self, of: impl Fn(u64) -> u64) -> u64 {
        let (circles, rest) = (self.ticks / ROUNDS, self.ticks % ROUNDS);
        circles * of(ROUNDS * self.messages_per_round) + of(rest * self.messages_per_round)
    }

    /// The timestamp that comes next.
    pub fn now_ms(&self) -> i64 {
        self.began_ms + self.due().as_millis() as i64
    }

    fn due(&self) -> Duration {
        self.tick.mul_f64(self.ticks as f64)
    }

    /// Sends what is due in this time. Returns how long after it was due something was sent at most.
    pub fn run_for(&mut self, time: Duration) -> Result<Duration, BenchError> {
        let end = self.due() + time;
        let mut latest = Duration::ZERO;
        while self.due() < end {
            let due_at = self.began + self.due();
            std::thread::sleep(due_at.saturating_duration_since(Instant::now()));
            self.send(self.now_ms())?;
            latest = latest.max(due_at.elapsed());
        }
        Ok(latest)
    }

    /// Sends what comes next, due or not, with the time that it is.
    pub fn send_now(&mut self) -> Result<(), BenchError> {
        self.send(now_ms())
    }

    fn send(&mut self, timestamp_ms: i64) -> Result<(), BenchError> {
        let round = &mut self.rounds[(self.ticks % ROUNDS) as usize];
        round.iter_mut().for_each(|(_, batch)| batch::stamp(batch, timestamp_ms));
        self.requests.send(round)?;
        self.ticks += 1;
        Ok(())
    }

    /// Returns when the broker has everything.
    pub fn end(mut self) -> Result<(), BenchError> {
        self.requests.close()
    }
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
