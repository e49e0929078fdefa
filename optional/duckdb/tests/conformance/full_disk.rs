//! A disk that is full for a while: DuckDB gives up its database then, and it is opened again. Nothing is
//! lost or stored twice.
//!
//! A limit on the size of files stands for the full disk, so this runs in a process of its own.

use std::path::Path;
use std::process::Command;

use windrow_clickhouse::Credentials;
use windrow_engine::sink::{Sink, StoreError};

use crate::duckdb::InDuckDb;
use crate::suite::{batch, Kind, Store};

const ARGUMENT: &str = "store-on-a-full-disk";
const ROWS: i64 = 20_000;
const FULL_AT_BYTES: u64 = 3 << 20;

fn limit_files(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: both are calls about this process that keep no pointer.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &limit), 0);
    }
}

pub async fn store_if_asked() -> bool {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, argument, path] = &arguments[..] else { return false };
    if argument != ARGUMENT {
        return false;
    }
    let store = InDuckDb::new(Path::new(path)).await;
    store.create("filled", Kind::Plain).await;
    limit_files(FULL_AT_BYTES);
    let (mut number, mut failures) = (0, 0);
    while number < 40 {
        // Values that don't compress.
        let values = (0..ROWS).map(|row| ((number * ROWS + row) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) as i64);
        let credentials = Credentials { user: "default".into(), password: String::new() };
        let batch = batch(number as u128 + 1, "filled", credentials, values);
        match store.sink().store(&batch).await {
            Ok(_) => number += 1,
            Err(StoreError::Failed(error)) => panic!("{error}"),
            Err(_) => {
                failures += 1;
                // There is room again a little later.
                if failures == 5 {
                    limit_files(libc::RLIM_INFINITY);
                }
                assert!(failures < 1000, "it never works again");
            }
        }
    }
    assert!(failures >= 5, "the disk was never full");
    let found = store.values("filled").await;
    assert_eq!((found.len() as i64, found.values().max()), (40 * ROWS, Some(&1)));
    true
}

pub fn it_is_opened_again(folder: &Path) {
    let itself = std::env::current_exe().expect("a path");
    let status = Command::new(itself).arg(ARGUMENT).arg(folder.join("full.db")).status().expect("it starts");
    assert!(status.success(), "{status}");
}
