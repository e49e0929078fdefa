//! Rows in a real Redis: left-overs of a dead writer, also one of an earlier release, and a living writer whose
//! lane was taken. A connection that is cut stands for the end of a process: Redis hears nothing of it any more.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{mpsc, Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use windrow_writer::{
    BatchId, Buffer, BufferError, Gathering, Kept, Next, Options, Outgoing, RedisAddress, RedisBuffer, Rows, Sealed,
};

use crate::support::{left_overs, table, texts, Folder};

/// A server of the tests' own; it keeps nothing on the disk.
pub struct Redis {
    child: Child,
    port: u16,
    _folder: Folder,
}

impl Redis {
    pub fn start() -> Redis {
        let folder = Folder::new();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let port_text = port.to_string();
        let child = Command::new("redis-server")
            .args(["--port", &port_text, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is there: run `make setup-test`");
        let redis = Redis { child, port, _folder: folder };
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            std::thread::yield_now();
        }
        redis
    }

    /// Sends one command, and returns its answer as it came.
    fn call(&self, words: &[&str]) -> String {
        let mut connection = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let mut out = String::new();
        for words in [words, &["QUIT"]] {
            out += &format!("*{}\r\n", words.len());
            words.iter().for_each(|word| out += &format!("${}\r\n{word}\r\n", word.len()));
        }
        connection.write_all(out.as_bytes()).unwrap();
        let mut answer = Vec::new();
        connection.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(!answer.starts_with('-'), "{answer}");
        answer.trim_end_matches("+OK\r\n").trim_end().to_owned()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A relay to Redis that can be cut, or stopped for a while.
struct Relay {
    port: u16,
    connections: Arc<Mutex<Option<Vec<TcpStream>>>>,
    /// A lock that is held while nothing passes.
    gate: Arc<Mutex<()>>,
}

impl Relay {
    fn start(target: u16) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(Mutex::new(Some(Vec::new())));
        let gate = Arc::new(Mutex::new(()));
        let (its, its_gate) = (connections.clone(), gate.clone());
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let Ok(far) = TcpStream::connect(("127.0.0.1", target)) else { return };
                let Some(open) = &mut *its.lock().unwrap() else { return };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let gate = its_gate.clone();
                    std::thread::spawn(move || pass(from, to, &gate));
                }
                open.extend([near, far]);
            }
        });
        Relay { port, connections, gate }
    }

    fn cut(&self) {
        let open = self.connections.lock().unwrap().take();
        open.into_iter().flatten().for_each(|connection| drop(connection.shutdown(Shutdown::Both)));
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, gate: &Mutex<()>) {
    let mut bytes = vec![0; 64 << 10];
    loop {
        let count = from.read(&mut bytes).unwrap_or(0);
        let _open = gate.lock().unwrap();
        if count == 0 || to.write_all(&bytes[..count]).is_err() {
            let _ = to.shutdown(Shutdown::Both);
            return;
        }
    }
}

/// A bucket, and a relay to it that only the buffers of one process have.
pub struct Bucket {
    redis: Arc<Redis>,
    name: String,
    options: String,
    relay: Relay,
}

impl Bucket {
    pub fn new(redis: &Arc<Redis>, options: &str) -> Bucket {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("b{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        Bucket { redis: redis.clone(), name, options: options.to_owned(), relay: Relay::start(redis.port) }
    }

    /// Returns the same bucket for another process.
    fn for_another(&self) -> Bucket {
        let (redis, name, options) = (self.redis.clone(), self.name.clone(), self.options.clone());
        Bucket { redis, name, options, relay: Relay::start(self.redis.port) }
    }

    pub fn open(&self, batch_rows: usize, batch_bytes: usize) -> RedisBuffer {
        let url = format!("redis://127.0.0.1:{}/0?bucket={}{}", self.relay.port, self.name, self.options);
        let destination = (*table("t")).clone();
        RedisBuffer::open(RedisAddress::parse(&url).unwrap(), destination, batch_rows, batch_bytes).unwrap()
    }

    /// Leaves the bucket as the next writer finds it if the process were killed now.
    pub fn killed(&mut self) {
        self.relay.cut();
        self.end_leases();
        self.relay = Relay::start(self.redis.port);
    }

    /// Ends all leases, as if their owners had been silent for too long.
    fn end_leases(&self) {
        let script = "for _, lane in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do redis.call('ZADD', KEYS[1], 0, lane) end return 1";
        self.redis.call(&["EVAL", script, "1", &self.key("lanes")]);
    }

    fn key(&self, rest: &str) -> String {
        format!("{{windrow:{}}}:{rest}", self.name)
    }

    /// Returns the keys that hold anything of the bucket, but for the word that a lane was emptied.
    pub fn left(&self) -> Vec<String> {
        let answer = self.redis.call(&["KEYS", &self.key("*")]);
        let keys = answer.lines().filter(|line| line.starts_with("{windrow:"));
        keys.filter(|key| !key.ends_with(":gone") && !key.ends_with(":bytes")).map(str::to_owned).collect()
    }

    pub fn held_bytes(&self) -> String {
        self.redis.call(&["GET", &self.key("bytes")])
    }
}

/// Appends through a writer's core and waits until Redis has the rows.
pub fn append_kept(gathering: &Gathering, rows: Rows<'_>) -> bool {
    let Ok(taken) = gathering.append(rows) else { return false };
    if taken.kept == Kept::Now {
        return true;
    }
    let (told, kept) = mpsc::channel();
    gathering.on_kept(taken, Box::new(move |outcome| told.send(outcome.is_ok()).expect("it is waited for")));
    kept.recv().unwrap()
}

fn gathering(buffer: RedisBuffer, flush_interval_ms: u64) -> Arc<Gathering> {
    let options = Options { flush_interval_ms, left_overs_interval_ms: 1, ..Options::default() };
    Gathering::new(Arc::new(buffer), table("t"), options)
}

fn write(gathering: &Gathering, numbers: std::ops::Range<u64>) {
    let rows: Vec<String> = numbers.map(|number| number.to_string()).collect();
    let lengths: Vec<u32> = rows.iter().map(|row| row.len() as u32).collect();
    assert!(append_kept(gathering, Rows::new(rows.concat().as_bytes(), &lengths)));
}

/// A table that knows the ids of batches.
#[derive(Default)]
struct Stored {
    batches: std::collections::HashMap<BatchId, Vec<String>>,
}

impl Stored {
    fn store(&mut self, outgoing: &Outgoing) {
        let rows = texts(&outgoing.body);
        let stored = self.batches.entry(outgoing.id).or_insert_with(|| rows.clone());
        assert_eq!(*stored, rows, "a batch keeps its members");
    }

    fn rows(&self) -> Vec<u64> {
        let mut rows: Vec<u64> = self.batches.values().flatten().map(|row| row.parse().unwrap()).collect();
        rows.sort_unstable();
        rows
    }
}

fn now_ms() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_millis() as u64
}

/// Stores the batches that a writer gives out, until `is_through` says that all it asks for is stored.
fn drive(gathering: &Gathering, stored: &mut Stored, mut is_through: impl FnMut(&Stored) -> bool) {
    let started = Instant::now();
    while !is_through(stored) {
        assert!(started.elapsed() < Duration::from_secs(60), "{:?}", gathering.statistics());
        match gathering.next(now_ms()) {
            Next::Send(outgoing) => {
                stored.store(&outgoing);
                gathering.stored(outgoing.id);
            }
            _ => std::thread::park_timeout(Duration::from_millis(1)),
        }
    }
}

fn load(buffer: &RedisBuffer, sealed: &Sealed) -> Vec<String> {
    loop {
        match buffer.load(sealed.id) {
            Ok(body) => return texts(&body),
            Err(BufferError::NotYet) => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn calls_that_do_not_divide_the_batch_are_taken_over_whole() {
    let redis = Arc::new(Redis::start());
    let mut bucket = Bucket::new(&redis, "");
    let dead = gathering(bucket.open(10, 1000), 3_600_000);
    (0..3).for_each(|call| write(&dead, 7 * call..7 * call + 7));
    let mut stored = Stored::default();
    // A batch is sealed, which has become full.
    drop(dead.next(now_ms()));
    bucket.killed();
    let next = gathering(bucket.open(10, 1000), 0);
    drive(&next, &mut stored, |stored| stored.rows().len() == 21);
    assert_eq!(stored.rows(), (0..21).collect::<Vec<_>>());
    next.close();
    drive(&next, &mut stored, |_| matches!(next.next(now_ms()), Next::Drained));
    next.abandon();
    assert_eq!(bucket.left(), Vec::<String>::new());
    assert_eq!(bucket.held_bytes(), "$1\r\n0");
}

/// Checks lanes whose entries were cut: earlier releases sealed a part of an entry when a batch became full in it.
#[test]
fn what_earlier_releases_have_cut_is_taken_over_whole() {
    let redis = Arc::new(Redis::start());
    for (batches, done) in [(&["L0-10"][..], 0), (&["D0-10"][..], 10), (&["D0-10", "L10-12", "L17-20"][..], 10)] {
        let mut bucket = Bucket::new(&redis, "");
        let dead = gathering(bucket.open(10, 1000), 3_600_000);
        (0..3).for_each(|call| write(&dead, 7 * call..7 * call + 7));
        let lanes = redis.call(&["ZRANGE", &bucket.key("lanes"), "0", "-1"]);
        let lane = lanes.lines().nth(2).unwrap();
        for members in batches {
            let id = BatchId::random().unwrap().to_string();
            redis.call(&["HSET", &bucket.key(&format!("lane:{lane}:batches")), &id, members]);
        }
        bucket.killed();
        let next = bucket.open(10, 1000);
        let found = left_overs(&next).batches;
        let mut rows: Vec<u64> =
            found.iter().flat_map(|sealed| load(&next, sealed)).map(|row| row.parse().unwrap()).collect();
        rows.sort_unstable();
        assert_eq!(rows, (done..21).collect::<Vec<_>>(), "{batches:?}");
        found.iter().for_each(|sealed| next.done(sealed.id).unwrap());
        next.close();
        assert_eq!(bucket.left(), Vec::<String>::new(), "{batches:?}");
    }
}

/// Checks a writer that was stopped for longer than its lease. Both go on, each row is stored, and a flush ends.
#[test]
fn who_was_thought_dead_hears_that_its_rows_are_stored() {
    let redis = Arc::new(Redis::start());
    let bucket = Bucket::new(&redis, "&lease=0.6");
    let first = gathering(bucket.open(10, 1000), 3_600_000);
    (0..5).for_each(|call| write(&first, 7 * call..7 * call + 7));
    let mut stored = Stored::default();
    // A batch is under way when it happens.
    let under_way = next_outgoing(&first);
    let stopped = bucket.relay.gate.lock().unwrap();
    bucket.end_leases();
    let other = bucket.for_another();
    let second = gathering(other.open(8, 1000), 0);
    let (told, flushed) = mpsc::channel();
    drive(&second, &mut stored, |stored| stored.rows().len() == 35);
    drop(stopped);
    write(&first, 35..38);
    first.flush(Box::new(move || told.send(()).expect("it is waited for")));
    stored.store(&under_way);
    first.stored(under_way.id);
    drive(&first, &mut stored, |_| flushed.try_recv().is_ok());
    assert_eq!(stored.rows(), (0..38).collect::<Vec<_>>());
    assert_eq!(first.statistics().bytes_held, 0);
    for writer in [&first, &second] {
        writer.close();
        drive(writer, &mut stored, |_| writer.statistics().bytes_held == 0);
        writer.abandon();
    }
    assert_eq!(bucket.left(), Vec::<String>::new());
}

fn next_outgoing(gathering: &Gathering) -> Outgoing {
    loop {
        match gathering.next(now_ms()) {
            Next::Send(outgoing) => return outgoing,
            _ => std::thread::yield_now(),
        }
    }
}

/// Checks a bucket of 2 MiB, and 25 MiB that come at once: rows that are stored make room for the rest.
#[test]
fn nothing_is_refused_while_what_is_there_can_be_stored() {
    let redis = Arc::new(Redis::start());
    let bucket = Bucket::new(&redis, "&max_bytes=2097152&patience=30");
    let writer = gathering(bucket.open(5000, 16 << 20), 3_600_000);
    let rows = vec![b'x'; 64 << 10];
    let (told, kept) = mpsc::channel();
    for _ in 0..400 {
        let taken = writer.append(Rows::new(&rows, &[64 << 10])).unwrap();
        let told = told.clone();
        writer.on_kept(taken, Box::new(move |outcome| drop(told.send(outcome.map_err(|error| error.to_string())))));
    }
    let (mut outcomes, mut rows_sent) = (0, 0);
    while outcomes < 400 {
        match writer.next(now_ms()) {
            Next::Send(outgoing) => {
                rows_sent += outgoing.body.count();
                writer.stored(outgoing.id);
            }
            _ => std::thread::park_timeout(Duration::from_millis(1)),
        }
        for outcome in kept.try_iter() {
            assert_eq!(outcome, Ok(()));
            outcomes += 1;
        }
    }
    assert!(rows_sent >= 360, "{rows_sent}: the bucket holds no more than 32");
    writer.abandon();
}

/// Checks a Redis that was started again with the state of an earlier time.
#[test]
fn redis_that_has_gone_back_is_told_again() {
    let redis = Arc::new(Redis::start());
    let mut bucket = Bucket::new(&redis, "");
    let writer = gathering(bucket.open(10, 1000), 3_600_000);
    write(&writer, 0..7);
    let mut stored = Stored::default();
    let lanes = redis.call(&["ZRANGE", &bucket.key("lanes"), "0", "-1"]);
    let lane = bucket.key(&format!("lane:{}", lanes.lines().nth(2).unwrap()));
    write(&writer, 7..14);
    // As it was before the second call.
    redis.call(&["HDEL", &format!("{lane}:rows"), "7:7"]);
    redis.call(&["HSET", &lane, "next", "7"]);
    write(&writer, 14..21);
    bucket.killed();
    let next = gathering(bucket.open(10, 1000), 0);
    drive(&next, &mut stored, |stored| stored.rows().len() == 21);
    assert_eq!(stored.rows(), (0..21).collect::<Vec<_>>(), "each once: the lane that was behind is gone");
    next.close();
    drive(&next, &mut stored, |_| next.statistics().bytes_held == 0);
    next.abandon();
}
