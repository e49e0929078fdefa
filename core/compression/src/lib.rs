//! Bodies in and out: HTTP's encodings, and ClickHouse's own blocks with their checksum.
//!
//! Whole bodies, in memory, bounded: memory grows with the output really produced, and stops at the caller's limit.
//! Clients read answers of any size by [`StreamDecompressor`], as they come in. Synchronous: large bodies belong on a
//! thread that may be busy for a while.

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
