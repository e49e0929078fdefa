//! Databases for tests, in folders that are removed with them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use windrow_duckdb::{DuckDb, DuckDbOptions, Port, Session};

/// The folder of one test.
pub struct Folder(pub PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn folder() -> Folder {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("windrow-duckdb-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    Folder(path)
}

pub struct TestDatabase {
    pub database: DuckDb,
    _folder: Folder,
}

pub fn options(folder: &Folder) -> DuckDbOptions {
    let library = std::env::var_os("WINDROW_DUCKDB_LIBRARY").map(PathBuf::from);
    DuckDbOptions { path: Some(folder.0.join("test.db")), library, ..DuckDbOptions::default() }
}

pub fn database() -> TestDatabase {
    let folder = folder();
    let database = DuckDb::open(options(&folder)).unwrap();
    TestDatabase { database, _folder: folder }
}

pub fn session() -> Session {
    Session { schema: "main".into(), readonly: false, user: "default".into(), port: Port::Http }
}
