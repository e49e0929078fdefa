//! Writes messages into a topic: all messages from standard input, as fast as the broker takes them, or the
//! same ones again and again at a steady rate.
//!
//! Kafka's own tools and librdkafka make and compress every message when it is sent. At a million messages a
//! second that takes a CPU of its own, which the measured programs need. So a steady load is made beforehand
//! here.

use std::io::{self, BufRead, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::batch::{self, Batch};
use crate::{print, read_line, Outcome};

/// The request Produce in version 3, which brokers from 2.4 to 4.1 know.
const PRODUCE: [u8; 4] = [0, 0, 0, 3];
/// The acknowledgement that is asked for: the broker, the only one, has the messages.
const ACKS: i16 = 1;
const TIMEOUT_MS: i32 = 30_000;
/// The most requests on their way: more than the broker needs to be kept busy.
const IN_FLIGHT: usize = 16;
/// Bytes of a batch in a topic that is filled. It is four times a producer's default, and a usual setting for
/// producers of many messages.
const BATCH_BYTES: usize = 64 << 10;
/// Count of rounds that a producer at a steady rate sends before it begins again with the first.
const ROUNDS: u64 = 16;
/// The longest time of sending without looking for the next order.
const AT_ONCE: Duration = Duration::from_millis(10);

#[derive(Debug, Deserialize)]
pub struct Plan {
    address: String,
    topic: String,
    partitions: i32,
    /// Says whether each value has its length before it, as in ClickHouse's Protobuf. If not, each value is a line.
    delimited: bool,
    /// Count of such values, with their lengths, in one message.
    rows_per_message: u64,
    steady: Option<Steady>,
}

#[derive(Debug, Deserialize)]
struct Steady {
    messages_per_second: f64,
    /// Messages of one batch, which is sent to each partition at once.
    batch_messages: u64,
}

/// An order to a steady producer.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Order {
    /// Send the messages that are due within so many seconds.
    RunFor(f64),
    /// Send messages at once until there are so many.
    Until(u64),
    End,
}

#[derive(Debug, Serialize)]
struct Sent {
    messages: u64,
    /// The timestamp of the next messages.
    next_ms: i64,
    /// The longest time between when messages were due and when they were sent.
    late_ms: f64,
}

pub fn run(plan: Plan) -> Outcome<()> {
    let mut requests = Requests::open(&plan)?;
    match &plan.steady {
        None => fill(&plan, &mut requests)?,
        Some(steady) => Producer::begin(&plan, steady)?.obey(&mut requests)?,
    }
    requests.close()
}

/// Fills the topic. Message number n goes to partition n, and after the last partition to the first again.
fn fill(plan: &Plan, requests: &mut Requests) -> Outcome<()> {
    let mut batches: Vec<(i32, Batch)> = (0..plan.partitions).map(|partition| (partition, Batch::default())).collect();
    let (timestamp_ms, mut value, mut messages) = (now_ms(), Vec::new(), 0u64);
    let mut input = io::stdin().lock();
    while plan.next_message(&mut input, &mut value)? {
        let (partition, batch) = &mut batches[(messages % plan.partitions as u64) as usize];
        batch.push(&value);
        if batch.bytes() >= BATCH_BYTES {
            requests.send(&[(*partition, batch.finish(timestamp_ms))])?;
        }
        messages += 1;
    }
    for (partition, batch) in batches.iter_mut().filter(|(_, batch)| batch.bytes() > 0) {
        requests.send(&[(*partition, batch.finish(timestamp_ms))])?;
    }
    print(&Sent { messages, next_ms: timestamp_ms, late_ms: 0.0 })
}

impl Plan {
    /// Reads the next message. Returns false at the end of the input.
    fn next_message(&self, input: &mut impl BufRead, value: &mut Vec<u8>) -> io::Result<bool> {
        value.clear();
        if !self.delimited {
            input.read_until(b'\n', value)?;
            let is_line = value.pop_if(|last| *last == b'\n').is_some();
            return Ok(is_line);
        }
        for _ in 0..self.rows_per_message {
            let begin = value.len();
            if input.fill_buf()?.is_empty() {
                return Ok(false);
            }
            let mut length = 0;
            for shift in (0..64).step_by(7) {
                let mut byte = [0];
                input.read_exact(&mut byte)?;
                value.push(byte[0]);
                length |= u64::from(byte[0] & 0x7f) << shift;
                if byte[0] < 0x80 {
                    break;
                }
            }
            if self.rows_per_message == 1 {
                value.truncate(begin);
            }
            if input.take(length).read_to_end(value)? as u64 != length {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(true)
    }
}

/// A producer at a steady rate. A message's timestamp is when it was due, even where the broker kept the
/// producer waiting.
struct Producer {
    /// The rounds. Each is sent at one time: a batch for every partition.
    rounds: Vec<Vec<(i32, Vec<u8>)>>,
    messages_per_round: u64,
    tick: Duration,
    began: Instant,
    began_ms: i64,
    ticks: u64,
}

impl Producer {
    fn begin(plan: &Plan, steady: &Steady) -> Outcome<Self> {
        let (mut input, mut value) = (io::stdin().lock(), Vec::new());
        let mut batch_of = |partition: i32| {
            let mut batch = Batch::default();
            for _ in 0..steady.batch_messages {
                if !plan.next_message(&mut input, &mut value)? {
                    return Err("there are too few messages".into());
                }
                batch.push(&value);
            }
            Outcome::Ok((partition, batch.finish(0)))
        };
        let rounds = (0..ROUNDS).map(|_| (0..plan.partitions).map(&mut batch_of).collect()).collect::<Outcome<_>>()?;
        let messages_per_round = steady.batch_messages * plan.partitions as u64;
        let tick = Duration::from_secs_f64(messages_per_round as f64 / steady.messages_per_second);
        Ok(Producer { rounds, messages_per_round, tick, began: Instant::now(), began_ms: now_ms(), ticks: 0 })
    }

    fn obey(&mut self, requests: &mut Requests) -> Outcome<()> {
        (self.began, self.began_ms) = (Instant::now(), now_ms());
        print(&self.sent(Duration::ZERO))?;
        loop {
            let late = match read_line()? {
                Order::RunFor(seconds) => self.run_for(requests, Duration::from_secs_f64(seconds))?,
                Order::Until(messages) => self.send_until(requests, messages)?,
                Order::End => return Ok(()),
            };
            print(&self.sent(late))?;
        }
    }

    fn sent(&self, late: Duration) -> Sent {
        let messages = self.ticks * self.messages_per_round;
        Sent { messages, next_ms: self.due_ms(), late_ms: late.as_secs_f64() * 1000.0 }
    }

    fn due(&self) -> Duration {
        self.tick.mul_f64(self.ticks as f64)
    }

    fn due_ms(&self) -> i64 {
        self.began_ms + self.due().as_millis() as i64
    }

    fn run_for(&mut self, requests: &mut Requests, time: Duration) -> Outcome<Duration> {
        let end = self.due() + time;
        let mut latest = Duration::ZERO;
        while self.due() < end {
            let due_at = self.began + self.due();
            std::thread::sleep(due_at.saturating_duration_since(Instant::now()));
            self.send(requests, self.due_ms())?;
            latest = latest.max(due_at.elapsed());
        }
        Ok(latest)
    }

    fn send_until(&mut self, requests: &mut Requests, messages: u64) -> Outcome<Duration> {
        let began = Instant::now();
        while self.ticks * self.messages_per_round < messages && began.elapsed() < AT_ONCE {
            self.send(requests, now_ms())?;
        }
        Ok(Duration::ZERO)
    }

    fn send(&mut self, requests: &mut Requests, timestamp_ms: i64) -> Outcome<()> {
        let round = &mut self.rounds[(self.ticks % ROUNDS) as usize];
        round.iter_mut().for_each(|(_, batch)| batch::stamp(batch, timestamp_ms));
        requests.send(round)?;
        self.ticks += 1;
        Ok(())
    }
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

/// One connection to the broker.
struct Requests {
    stream: TcpStream,
    topic: String,
    unanswered: usize,
}

impl Requests {
    fn open(plan: &Plan) -> Outcome<Self> {
        let stream = TcpStream::connect(&plan.address)?;
        stream.set_nodelay(true)?;
        Ok(Requests { stream, topic: plan.topic.clone(), unanswered: 0 })
    }

    /// Sends one batch for each partition that is named.
    fn send(&mut self, batches: &[(i32, Vec<u8>)]) -> Outcome<()> {
        if self.unanswered == IN_FLIGHT {
            self.read_answer()?;
        }
        let mut frame = vec![0; 4];
        frame.extend_from_slice(&PRODUCE);
        // Answers come in the order of the requests: their numbers need not differ. Neither client nor transaction.
        frame.extend_from_slice(&[0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
        frame.extend_from_slice(&ACKS.to_be_bytes());
        for number in [TIMEOUT_MS, 1] {
            frame.extend_from_slice(&number.to_be_bytes());
        }
        frame.extend_from_slice(&(self.topic.len() as i16).to_be_bytes());
        frame.extend_from_slice(self.topic.as_bytes());
        frame.extend_from_slice(&(batches.len() as i32).to_be_bytes());
        for (partition, bytes) in batches {
            frame.extend_from_slice(&partition.to_be_bytes());
            frame.extend_from_slice(&(bytes.len() as i32).to_be_bytes());
            frame.extend_from_slice(bytes);
        }
        let size = i32::try_from(frame.len() - 4)?;
        frame[..4].copy_from_slice(&size.to_be_bytes());
        self.unanswered += 1;
        Ok(self.stream.write_all(&frame)?)
    }

    /// Reads an answer about one topic: the size, a number, the topic, and for each partition 22 bytes with
    /// an error's code.
    fn read_answer(&mut self) -> Outcome<()> {
        let mut size = [0; 4];
        self.stream.read_exact(&mut size)?;
        let mut answer = Vec::new();
        (&self.stream).take(u64::from(u32::from_be_bytes(size))).read_to_end(&mut answer)?;
        let partitions = answer.get(8 + 2 + self.topic.len() + 4..).ok_or("the broker's answer breaks off")?;
        if let Some(refused) = partitions.chunks_exact(22).find(|partition| partition[4..6] != [0, 0]) {
            return Err(format!("the broker refused messages: error {:?}", &refused[4..6]).into());
        }
        self.unanswered -= 1;
        Ok(())
    }

    /// Waits until the broker has everything.
    fn close(&mut self) -> Outcome<()> {
        while self.unanswered > 0 {
            self.read_answer()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(delimited: bool, rows_per_message: u64, mut input: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        let plan = Plan {
            address: String::new(),
            topic: String::new(),
            partitions: 1,
            delimited,
            rows_per_message,
            steady: None,
        };
        let (mut value, mut all) = (Vec::new(), Vec::new());
        while plan.next_message(&mut input, &mut value)? {
            all.push(value.clone());
        }
        Ok(all)
    }

    #[test]
    fn messages_are_lines_or_values_or_many_values_with_their_lengths() {
        assert_eq!(messages(false, 1, b"{}\n{\"a\":1}\n").unwrap(), [b"{}".to_vec(), b"{\"a\":1}".to_vec()]);
        let long = [b"\x80\x01".as_slice(), &[b'x'; 128]].concat();
        let bytes = [b"\x02ab\x00".as_slice(), long.as_slice(), b"\x01c"].concat();
        assert_eq!(messages(true, 1, &bytes).unwrap(), [b"ab".to_vec(), vec![], vec![b'x'; 128], b"c".to_vec()]);
        assert_eq!(messages(true, 2, &bytes).unwrap(), [b"\x02ab\x00".to_vec(), [long.as_slice(), b"\x01c"].concat()]);
        for end in [1, 2, 5, 100] {
            assert!(messages(true, 1, &bytes[..end]).is_err(), "{end} bytes");
        }
    }
}
