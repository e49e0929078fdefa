//! A test of results that are larger than memory. It is alone in its process, since it measures all memory of
//! the process.

mod support;

use support::{database, session, TestDatabase};

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_result_takes_no_more_memory_than_what_is_on_its_way() {
    let TestDatabase { database, .. } = database();
    let mut stream = database.query("SELECT a, a::VARCHAR FROM range(20000000) AS t(a)", &session()).await.unwrap();
    stream.next().await.unwrap().unwrap();
    let before = resident_kib();
    let mut rows = 0;
    while let Some(batch) = stream.next().await {
        rows += batch.unwrap().num_rows();
    }
    assert!(rows > 19_000_000);
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < 150 * 1024, "{grown} KiB for a result of some 500 MiB");
}
