//! The number of rows a second that the writer takes: three columns, an Int32 and two texts, each row by
//! `write_row`, in memory and on a disk. Batches are dropped instead of sent, so that only the writer is
//! measured. `cargo run --release -p windrow-writer --example writer_rows -- [ROWS [redis://...]]`. With the
//! address of a Redis, the rows that Redis confirms are measured too.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use windrow_writer::{
    AppendError, Buffer, BufferError, BufferEvents, Column, Destination, DiskBuffer, DiskOptions, Gathering,
    MemoryBuffer, Next, Options, RedisAddress, RedisBuffer, Row, Rows,
};

const BATCH_ROWS: usize = 5000;
const ROUNDS: usize = 5;

type Event<'a> = (i32, &'a str, &'a str);

fn columns() -> Vec<Column> {
    let column = |name: &str, type_name: &str| Column::of(name.into(), type_name.into()).expect("a type of ours");
    vec![column("id", "Int32"), column("uuid", "String"), column("insert_ts", "String")]
}

fn gathering(buffer: Arc<dyn Buffer>) -> Arc<Gathering> {
    let options = Options { batch_rows: BATCH_ROWS, max_in_flight: 16, ..Options::default() };
    Gathering::new(buffer, Arc::default(), options)
}

/// A stand-in for a driver: every batch counts as stored as soon as it is there.
struct Driver {
    thread: std::thread::JoinHandle<()>,
    is_over: Arc<AtomicBool>,
}

impl Driver {
    fn start(gathering: &Arc<Gathering>) -> Driver {
        let is_over = Arc::new(AtomicBool::new(false));
        let (gathering, over) = (gathering.clone(), is_over.clone());
        let thread = std::thread::spawn(move || loop {
            match gathering.next(0) {
                Next::Send(outgoing) => {
                    let id = outgoing.id;
                    drop(outgoing);
                    gathering.stored(id);
                }
                Next::Wait { .. } if over.load(Ordering::Relaxed) => return,
                Next::Wait { .. } => std::thread::park_timeout(Duration::from_millis(10)),
                Next::Drained => return,
            }
        });
        Driver { thread, is_over }
    }

    fn stop(self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        let _ = self.thread.join();
    }
}

fn append(gathering: &Gathering, rows: Rows<'_>) {
    while let Err(error) = gathering.append(rows) {
        assert!(matches!(error, AppendError::Full), "{error}");
        std::thread::yield_now();
    }
}

/// Measures the rows a second that are taken, where `at_once` rows are appended at a time.
fn measure(gathering: &Arc<Gathering>, rows: usize, at_once: usize) -> f64 {
    let driver = Driver::start(gathering);
    let woken = driver.thread.thread().clone();
    gathering.set_waker(Box::new(move || woken.unpark()));
    let columns = columns();
    let events: [Event; 4] = [
        (1, "61f0c404", "15 Nov 22 13:20 UTC"),
        (200, "7a1f04ff", "15 Nov 22 13:21 UTC"),
        (-3, "0badcafe", "16 Nov 22 09:00 UTC"),
        (70_000, "deadbeef", "17 Nov 22 23:59 UTC"),
    ];
    let (mut bytes, mut lengths) = (Vec::new(), Vec::new());
    let started = Instant::now();
    for number in 0..rows / at_once {
        bytes.clear();
        lengths.clear();
        for row in 0..at_once {
            let before = bytes.len();
            events[(number + row) % 4].encode(&columns, &mut bytes).expect("it fits");
            lengths.push((bytes.len() - before) as u32);
        }
        append(gathering, Rows::new(&bytes, &lengths));
    }
    let elapsed = started.elapsed();
    driver.stop();
    rows as f64 / elapsed.as_secs_f64()
}

fn memory() -> Arc<Gathering> {
    gathering(Arc::new(MemoryBuffer::new(BATCH_ROWS, 16 << 20)))
}

fn disk(folder: &Path) -> Arc<Gathering> {
    let options = DiskOptions { batch_rows: BATCH_ROWS, ..DiskOptions::default() };
    let buffer = DiskBuffer::open(folder, Arc::<Destination>::default(), options).expect("a folder to write to");
    gathering(Arc::new(buffer))
}

fn report(what: &str, rows: usize, at_once: usize, gathering: impl Fn() -> Arc<Gathering>) {
    let round = |_| {
        let gathering = gathering();
        let rate = measure(&gathering, rows, at_once);
        gathering.abandon();
        rate
    };
    let mut rates: Vec<f64> = (0..ROUNDS).map(round).collect();
    print_rates(what, &mut rates);
}

fn print_rates(what: &str, rates: &mut [f64]) {
    rates.sort_by(f64::total_cmp);
    println!(
        "{what:<28} {:>12.0} rows/s (median of {ROUNDS}; {:.0} to {:.0})",
        rates[ROUNDS / 2],
        rates[0],
        rates[ROUNDS - 1]
    );
}

/// The position before which Redis has confirmed all rows.
struct Confirmed {
    before: AtomicU64,
    waiting: std::thread::Thread,
}

impl BufferEvents for Confirmed {
    fn kept(&self, before: u64) {
        self.before.store(before, Ordering::Release);
        self.waiting.unpark();
    }

    fn refused(&self, positions: Range<u64>, _: u64, error: BufferError) {
        panic!("{positions:?}: {error}");
    }

    fn stored_elsewhere(&self, _: Range<u64>, _: u64) {}

    fn wake(&self) {}
}

/// Measures the rows a second that Redis confirms, in appends of a thousand rows; each batch is done when it
/// is full.
fn redis(address: &str, round: usize, rows: usize) -> f64 {
    let address = RedisAddress::parse(&format!("{address}?bucket=rows{}-{round}", std::process::id())).expect("a URL");
    let buffer = RedisBuffer::open(address, Destination::default(), BATCH_ROWS, 16 << 20).expect("a Redis");
    let confirmed = Arc::new(Confirmed { before: AtomicU64::new(0), waiting: std::thread::current() });
    buffer.attach(confirmed.clone());
    let (row, lengths) = (b"\x01\0\0\0\x0861f0c404\x1315 Nov 22 13:20 UTC".repeat(1000), [32; 1000]);
    let started = Instant::now();
    for _ in 0..rows / 1000 {
        buffer.append(Rows::new(&row[..32 * 1000], &lengths)).expect("it is taken");
        while let Ok(Some(sealed)) = buffer.seal() {
            buffer.done(sealed.id).expect("it is there");
        }
    }
    while confirmed.before.load(Ordering::Acquire) < rows as u64 / 1000 * 1000 {
        std::thread::park_timeout(Duration::from_millis(10));
    }
    let elapsed = started.elapsed();
    buffer.close();
    rows as f64 / elapsed.as_secs_f64()
}

fn main() {
    let rows = std::env::args().nth(1).and_then(|rows| rows.parse().ok()).unwrap_or(10_000_000);
    let folder = std::env::temp_dir().join(format!("windrow-writer-rows-{}", std::process::id()));
    report("memory, write_row", rows, 1, memory);
    report("memory, write_rows of 1000", rows, 1000, memory);
    report("disk, write_row", rows / 10, 1, || disk(&folder));
    report("disk, write_rows of 1000", rows / 10, 1000, || disk(&folder));
    let _ = std::fs::remove_dir_all(&folder);
    if let Some(address) = std::env::args().nth(2) {
        let mut rates: Vec<f64> = (0..ROUNDS).map(|round| redis(&address, round, rows / 10)).collect();
        print_rates("Redis, write_rows of 1000", &mut rates);
    }
}
