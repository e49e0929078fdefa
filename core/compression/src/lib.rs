//! Compression and decompression of bodies: HTTP's encodings, and ClickHouse's own blocks with their checksum.
//!
//! Whole bodies are read in memory, within a limit: memory grows with the output really produced, and stops
//! at the caller's limit. Clients read answers of any size with [`StreamDecompressor`], as they come in. All
//! functions are synchronous: large bodies belong on a thread that may be busy for a while.

mod blocks;
mod brotli;
mod compress;
mod decompress;
mod encoding;
mod error;
pub mod hash;
mod lz4_frames;
mod stream;
mod xz;

pub use blocks::{clickhouse_block_bytes, compress_clickhouse, decompress_clickhouse_block, ClickHouseMethod};
pub use compress::compress;
pub use decompress::decompress;
pub use encoding::{AnswerEncoding, Encoding};
pub use error::DecompressError;
pub use hash::cityhash128;
pub use stream::{Step, StreamCompressor, StreamDecompressor};
