//! Tests of the promises that the gatherer relies on, with both real sinks: the embedded ClickHouse and DuckDB.

mod clickhouse;
mod duckdb;
mod full_disk;
mod killing;
mod suite;

use std::path::PathBuf;

use windrow_embedded::run_engine_if_asked;

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn run() {
    if killing::store_if_asked().await || full_disk::store_if_asked().await {
        return;
    }
    let folder = Folder(std::env::temp_dir().join(format!("windrow-conformance-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).expect("a folder");
    suite::all(&duckdb::InDuckDb::new(&folder.0.join("store.db")).await).await;
    println!("DuckDB keeps the promises");
    killing::each_batch_is_there_once(&folder.0).await;
    println!("also when it is killed");
    full_disk::it_is_opened_again(&folder.0);
    println!("also when the disk is full for a while");
    suite::all(&clickhouse::InClickHouse::new(&folder.0.join("clickhouse")).await).await;
    println!("ClickHouse keeps the promises");
}

fn main() {
    run_engine_if_asked();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(run());
}
