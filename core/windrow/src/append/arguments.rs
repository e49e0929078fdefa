use std::path::PathBuf;

use clap::Args;
use windrow_appender::{AppendId, Compression, Faults, FileFormat};

/// Append files to a table through a gateway: in order, and all of it or nothing.
#[derive(Args)]
pub(crate) struct AppendArguments {
    /// The gateway: http[s]://user:password@host:8123. The password may stand in WINDROW_PASSWORD instead.
    #[arg(long, value_name = "URL")]
    pub(super) to: String,
    /// The table, with its database or without: db.t.
    #[arg(long, value_name = "TABLE")]
    pub(super) table: String,
    /// Parquet, CSV (.gz and .zst too) or Arrow files, one after the other; - is standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
    /// The columns that the files have, with commas between; the others of the table take their defaults. Else the
    /// files' own.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub(super) columns: Option<Vec<String>>,
    /// parquet, csv or arrow. Else the files' names tell.
    #[arg(long, value_name = "FORMAT")]
    pub(super) format: Option<FileFormat>,
    /// The character between the fields of CSV files, if not a comma: one character, or tab.
    #[arg(long, value_name = "CHARACTER", value_parser = delimiter)]
    pub(super) delimiter: Option<u8>,
    /// Goes on with an append that broke off: the same files, and the same --batch-bytes.
    #[arg(long, value_name = "UUID")]
    pub(super) id: Option<AppendId>,
    /// The number of batches that are sent at once.
    #[arg(long, default_value_t = 8, value_name = "N")]
    pub(super) connections: usize,
    /// The size of a batch.
    #[arg(long, default_value_t = 4 << 20, value_name = "BYTES")]
    pub(super) batch_bytes: u64,
    /// The number of bytes that may be under way.
    #[arg(long, default_value_t = 64 << 20, value_name = "BYTES")]
    pub(super) window_bytes: u64,
    /// none, lz4 or zstd: for slow networks.
    #[arg(long, default_value = "none", value_name = "METHOD", value_parser = compression)]
    pub(super) compression: Compression,
    /// Store batches as they come: faster for some tables; still all or nothing.
    #[arg(long)]
    pub(super) unordered: bool,
    /// Seconds to try again while nothing gets through. Else 120, and 10 for the first connection.
    #[arg(long, value_name = "SECONDS")]
    pub(super) retry_for: Option<u64>,
    /// Certificates to trust instead of the system's.
    #[arg(long, value_name = "FILE")]
    pub(super) ca_file: Option<PathBuf>,
    /// Print errors only.
    #[arg(long, conflicts_with = "json")]
    pub(super) quiet: bool,
    /// Print one line of JSON at the end, on standard output.
    #[arg(long)]
    pub(super) json: bool,
    /// Misbehave on purpose, for tests: seed=1,delay_ms=20,drop=0.1,repeat=0.1,reorder=0.2,cut=0.05.
    #[arg(long, hide = true)]
    pub(super) faults: Option<Faults>,
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\r' | b'\n' | 0) => Ok(*byte),
        _ => Err("it is one character, or tab".to_owned()),
    }
}

fn compression(name: &str) -> Result<Compression, String> {
    match name {
        "none" => Ok(Compression::None),
        "lz4" => Ok(Compression::Lz4),
        "zstd" => Ok(Compression::Zstd),
        _ => Err("there are none, lz4 and zstd".to_owned()),
    }
}
