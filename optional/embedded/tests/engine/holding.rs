//! Tests that the engine ends with its holder, however the holder ends.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::{processes_of, query, query_as, DataDir, Watched, HOLDER};

struct Held {
    holder: Child,
    http_port: u16,
    password: String,
    engine: u32,
}

fn hold(data: &DataDir, engine: Option<&Path>) -> Held {
    let mut command = Command::new(HOLDER);
    command.arg(&data.0).stdout(Stdio::piped());
    if let Some(engine) = engine {
        command.env("WINDROW_EMBEDDED_ENGINE", engine);
    }
    let mut holder = command.spawn().expect("the holder starts");
    let mut line = String::new();
    BufReader::new(holder.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    let told: serde_json::Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
    let number = |value: &serde_json::Value| value.as_u64().expect("a number");
    Held {
        holder,
        http_port: number(&told["endpoint"]["http_port"]) as u16,
        password: told["endpoint"]["password"].as_str().expect("a text").to_owned(),
        engine: number(&told["pid"]) as u32,
    }
}

impl Held {
    fn query(&self, statement: &str) -> Result<String, String> {
        query_as(self.http_port, "windrow", &self.password, statement)
    }

    fn kill_the_holder(&mut self) {
        self.holder.kill().expect("killed");
        self.holder.wait().expect("waited for");
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_holder_takes_the_engine_along_and_its_successor_waits_for_that() {
    let data = DataDir::new();
    let mut held = hold(&data, None);
    held.query("CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a").expect("created");
    held.query("INSERT INTO t VALUES (9)").expect("inserted");
    let watched = Watched::new(held.engine);
    held.kill_the_holder();
    // At once: the old engine still has the directory.
    let successor = data.start().await;
    watched.wait_for_end();
    assert_eq!(query(successor.endpoint(), "SELECT a FROM t").as_deref(), Ok("9"));
}

#[test]
fn an_engine_that_is_a_binary_ends_with_its_holder_too() {
    let data = DataDir::new();
    let mut held = hold(&data, Some(&data.binary("")));
    assert_eq!(held.query("SELECT 1").as_deref(), Ok("1"));
    let all: Vec<Watched> = processes_of(&data.0).into_iter().map(Watched::new).collect();
    assert!(all.len() >= 3, "the holder, the engine and what watches it: {}", all.len());
    held.kill_the_holder();
    all.iter().for_each(Watched::wait_for_end);
}

#[test]
fn an_engine_that_is_a_binary_leaves_no_watching_process_behind() {
    let data = DataDir::new();
    let held = hold(&data, Some(&data.binary("")));
    let others = processes_of(&data.0).into_iter().filter(|pid| *pid != held.holder.id());
    let others: Vec<Watched> = others.map(Watched::new).collect();
    crate::support::kill(held.engine);
    others.iter().for_each(Watched::wait_for_end);
}

#[test]
fn a_terminal_interrupt_does_not_reach_the_engine() {
    let data = DataDir::new();
    let held = hold(&data, None);
    // SAFETY: no memory is involved.
    let group = unsafe { libc::getpgid(held.engine as libc::pid_t) };
    assert_eq!(group, held.engine as libc::pid_t, "the engine is in a process group of its own");
}
