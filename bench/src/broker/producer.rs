//! Writes messages as fast as the broker takes them, or at a steady rate.

use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::batch::Batch;
use super::wire::{Api, Wire};
use crate::error::BenchError;

const PRODUCE: Api = Api { name: "Produce", key: 0, version: 3 };
/// Once the one broker there is has it.
const ACKS: i16 = 1;
const TIMEOUT_MS: i32 = 30_000;
/// Requests on their way: more than the broker needs to be kept busy.
const IN_FLIGHT: usize = 16;
/// Batches of a topic that is filled. Four times what a producer makes unless told, and what those are told who produce much.
const BATCH_BYTES: usize = 64 << 10;
/// The broker takes no larger ones than 1 MiB.
const MAX_BATCH_BYTES: usize = 512 << 10;
/// How long a producer at a steady rate gathers a batch.
const TICK: Duration = Duration::from_millis(10);

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

/// Sends messages at a steady rate. A message's timestamp is when it was due, also where the broker kept the producer waiting.
pub struct Producer {
    requests: Requests,
    batches: Vec<Batch>,
    messages_per_second: f64,
    began: Instant,
    began_ms: i64,
    ticks: u32,
    sent: u64,
}

impl Producer {
    pub fn begin(address: &str, topic: &Topic, messages_per_second: f64) -> Result<Self, BenchError> {
        Ok(Producer {
            requests: Requests::open(address, topic)?,
            batches: (0..topic.partitions).map(|_| Batch::default()).collect(),
            messages_per_second,
            began: Instant::now(),
            began_ms: now_ms(),
            ticks: 0,
            sent: 0,
        })
    }

    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// The timestamp that comes next.
    pub fn now_ms(&self) -> i64 {
        self.began_ms + (TICK * self.ticks).as_millis() as i64
    }

    pub fn run_for(&mut self, time: Duration, write: &impl Fn(u64, &mut Vec<u8>)) -> Result<(), BenchError> {
        let end = TICK * self.ticks + time;
        while TICK * self.ticks < end {
            self.tick(write)?;
        }
        Ok(())
    }

    fn tick(&mut self, write: &impl Fn(u64, &mut Vec<u8>)) -> Result<(), BenchError> {
        let due = TICK * self.ticks;
        std::thread::sleep((self.began + due).saturating_duration_since(Instant::now()));
        let timestamp_ms = self.now_ms();
        self.ticks += 1;
        let until = ((TICK * self.ticks).as_secs_f64() * self.messages_per_second) as u64;
        let mut value = Vec::new();
        while self.sent < until {
            value.clear();
            write(self.sent, &mut value);
            let partition = (self.sent % self.batches.len() as u64) as usize;
            self.batches[partition].push(&value);
            self.sent += 1;
            if self.batches[partition].bytes() >= MAX_BATCH_BYTES {
                self.flush(timestamp_ms)?;
            }
        }
        self.flush(timestamp_ms)
    }

    fn flush(&mut self, timestamp_ms: i64) -> Result<(), BenchError> {
        let full = self.batches.iter_mut().zip(0..).filter(|(batch, _)| !batch.is_empty());
        let batches: Vec<(i32, Vec<u8>)> =
            full.map(|(batch, partition)| (partition, batch.finish(timestamp_ms))).collect();
        match batches.is_empty() {
            true => Ok(()),
            false => self.requests.send(&batches),
        }
    }

    /// Returns when the broker has everything.
    pub fn end(mut self) -> Result<(), BenchError> {
        self.requests.close()
    }
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
