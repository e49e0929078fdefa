//! A process that is killed in the middle of appending, sealing and releasing; and one whose disk gives no room.
//!
//! The children are this program again. A variable makes a test play the victim, and names its folder.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use windrow_writer::{AppendError, BatchId, Buffer, DiskOptions, Rows};

use crate::support::{append, left_overs, load, open, Folder};

const FOLDER: &str = "WINDROW_WRITER_TEST_FOLDER";

fn options() -> DiskOptions {
    DiskOptions { batch_rows: 5, segment_bytes: 16 << 10, ..DiskOptions::default() }
}

fn child(test: &str, folder: &Folder) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn row(number: u64) -> String {
    format!("row {number} {}", "x".repeat((number % 97) as usize))
}

/// The calls that the victim has reported: each when it has returned, or, for a done, before it is made.
#[derive(Default)]
struct VictimReport {
    rows: u64,
    sealed: HashMap<BatchId, (u64, u64)>,
    releasing: Vec<BatchId>,
}

impl VictimReport {
    fn line(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["a", rows] => self.rows = rows.parse().unwrap(),
            ["s", id, first, end] => {
                let members = (first.parse().unwrap(), end.parse().unwrap());
                self.sealed.insert(BatchId::parse(id).unwrap(), members);
            }
            ["d", id] => self.releasing.push(BatchId::parse(id).unwrap()),
            // The test runner's own.
            _ => {}
        }
    }
}

#[test]
fn victim() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let buffer = open(folder.as_ref(), &options());
    let mut out = std::io::stdout().lock();
    writeln!(out).unwrap();
    for number in 0.. {
        append(&buffer, &[&row(number)]);
        writeln!(out, "a {}", number + 1).unwrap();
        if number % 7 != 6 {
            continue;
        }
        let Some(batch) = buffer.seal().unwrap() else { continue };
        writeln!(out, "s {} {} {}", batch.id, batch.positions.start, batch.positions.end).unwrap();
        if number % 3 != 0 {
            writeln!(out, "d {}", batch.id).unwrap();
            buffer.done(batch.id).unwrap();
        }
    }
}

#[test]
fn a_killed_process_loses_no_row_of_a_call_that_returned() {
    for seed in 0..20 {
        let folder = Folder::new();
        let mut victim = child("kill::victim", &folder);
        let mut lines = BufReader::new(victim.stdout.take().unwrap()).lines();
        let mut report = VictimReport::default();
        let lines_before_death = fastrand::Rng::with_seed(seed).usize(1..3000);
        lines.by_ref().take(lines_before_death).for_each(|line| report.line(&line.unwrap()));
        victim.kill().unwrap();
        victim.wait().unwrap();
        // What it said before it died: each line is one write.
        lines.map_while(Result::ok).for_each(|line| report.line(&line));
        check(&folder, &report, seed);
    }
}

fn check(folder: &Folder, report: &VictimReport, seed: u64) {
    let buffer = open(folder.path(), &options());
    let found = left_overs(&buffer);
    assert!(found.complaints.is_empty(), "seed {seed}: {:?}", found.complaints);
    let mut there = vec![0; report.rows as usize + 10_000];
    for batch in &found.batches {
        let rows = load(&buffer, batch);
        let first: u64 = rows[0].split(' ').nth(1).unwrap().parse().unwrap();
        for (number, text) in (first..).zip(&rows) {
            assert_eq!(*text, row(number), "seed {seed}");
            there[number as usize] += 1;
        }
        if let Some(members) = report.sealed.get(&batch.id) {
            assert_eq!(*members, (first, first + batch.rows), "seed {seed}: a batch keeps its members");
        }
    }
    let found: Vec<BatchId> = found.batches.iter().map(|batch| batch.id).collect();
    let mut may_be_gone = vec![false; there.len()];
    for (id, (first, end)) in &report.sealed {
        let is_released = report.releasing.contains(id);
        assert!(is_released || found.contains(id), "seed {seed}: batch {id} is lost");
        (*first..*end).for_each(|number| may_be_gone[number as usize] = is_released);
    }
    for number in 0..report.rows as usize {
        assert!(there[number] == 1 || may_be_gone[number] && there[number] == 0, "seed {seed}: row {number}");
    }
}

/// Checks a disk without room. A limit on the size of files stands for it: both are met when room is taken
/// for a segment.
#[test]
fn cramped() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let buffer = open(folder.as_ref(), &options());
    // SAFETY: no handler of ours is replaced.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    limit_file_size(4096);
    let text = "x".repeat(1000);
    let mut taken = 0;
    let error = loop {
        match buffer.append(Rows::new(text.repeat(3).as_bytes(), &[1000; 3])) {
            Ok(_) => taken += 3,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, AppendError::Failed(_)), "{error}");
    assert!(taken > 5 && buffer.next_position() == taken, "{taken}");
    let batches: Vec<_> = std::iter::from_fn(|| buffer.seal().unwrap()).collect();
    assert_eq!(batches.iter().map(|batch| load(&buffer, batch).len() as u64).sum::<u64>(), taken);
    limit_file_size(libc::RLIM_INFINITY);
    append(&buffer, &[&text]);
    batches.iter().for_each(|batch| buffer.done(batch.id).unwrap());
    assert_eq!(buffer.open().rows, 1);
}

fn limit_file_size(bytes: libc::rlim_t) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: `limit` is valid for the call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) }, 0);
}

#[test]
fn no_room_on_the_disk_is_an_error_of_that_append_alone() {
    let folder = Folder::new();
    let output = child("kill::cramped", &folder).wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
