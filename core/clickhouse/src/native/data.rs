//! Data packets of a client, compressed or not, as they come in.

use windrow_compression::{clickhouse_block_bytes, decompress_clickhouse_block, DecompressError};

use crate::native::block::{BlockEnd, BlockReader, RowShape};
use crate::native::input::{Fault, Input};

/// The most bytes of an external table's name.
const MAX_NAME_BYTES: usize = 64 * 1024;
/// Bytes of a compressed block's header.
const FRAME_HEADER_BYTES: usize = 25;

/// Reads the Data packets of one query, one after the other.
pub struct DataReader {
    blocks: BlockReader,
    is_compressed: bool,
    max_bytes: usize,
    /// Says whether the packet's name has been read, and its end has not.
    inside: bool,
    has_name: bool,
    /// Bytes that were decompressed and are not taken yet.
    unpacked: Vec<u8>,
}

/// Progress in reading a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadProgress {
    pub bytes: usize,
    /// The size of the block, at the packet's end.
    pub end: Option<BlockEnd>,
    /// Says whether the packet belongs to a table that was sent along with the query.
    pub has_name: bool,
}

impl DataReader {
    pub fn new(revision: u64, is_compressed: bool, max_bytes: usize) -> DataReader {
        DataReader {
            blocks: BlockReader::new(revision, max_bytes),
            is_compressed,
            max_bytes,
            inside: false,
            has_name: false,
            unpacked: Vec::new(),
        }
    }

    /// Sets the shape that rows of the blocks are likely to have.
    pub fn expecting(self, expected: RowShape) -> DataReader {
        DataReader { blocks: self.blocks.expecting(expected), ..self }
    }

    /// Makes the reader look for the ends of packets only. The caller may clear `out` at any time.
    pub fn discarding(self) -> DataReader {
        DataReader { blocks: self.blocks.discarding(), ..self }
    }

    /// Says whether a packet has begun and not ended.
    pub fn is_inside(&self) -> bool {
        self.inside
    }

    /// Reads on in a packet, which begins with its type. Bytes that were not taken have to come again, with
    /// more after them.
    ///
    /// # Errors
    /// Fails where the bytes are no such packet, a compressed block is damaged, or the block is too large or
    /// can't be read here.
    pub fn read(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<ReadProgress, Fault> {
        let mut taken = 0;
        if !self.inside {
            let mut input = Input::new(bytes);
            let name = input.varint().and_then(|_| input.bytes(MAX_NAME_BYTES, "the name of a table"));
            self.has_name = match name {
                Err(Fault::Incomplete { .. }) => return Ok(self.taken(0, None)),
                name => !name?.is_empty(),
            };
            taken = input.at();
            self.inside = true;
            self.blocks.begin();
        }
        let end = match self.is_compressed {
            true => self.read_frames(bytes, &mut taken, out)?,
            false => {
                let (more, end) = self.blocks.read(&bytes[taken..], out)?;
                taken += more;
                end
            }
        };
        self.inside = end.is_none();
        Ok(self.taken(taken, end))
    }

    fn taken(&self, bytes: usize, end: Option<BlockEnd>) -> ReadProgress {
        ReadProgress { bytes, end, has_name: self.has_name }
    }

    fn read_frames(&mut self, bytes: &[u8], taken: &mut usize, out: &mut Vec<u8>) -> Result<Option<BlockEnd>, Fault> {
        loop {
            let left = &bytes[*taken..];
            let Some(length) = clickhouse_block_bytes(left).map_err(Fault::Frame)? else { return Ok(None) };
            if length > self.max_bytes.saturating_add(FRAME_HEADER_BYTES) {
                return Err(Fault::TooLarge("a compressed block"));
            }
            let Some(frame) = left.get(..length) else { return Ok(None) };
            match decompress_clickhouse_block(frame, &mut self.unpacked, self.max_bytes) {
                Err(DecompressError::TooLarge { .. }) => return Err(Fault::TooLarge("a compressed block")),
                result => result.map_err(Fault::Frame)?,
            }
            *taken += length;
            // A value that takes more than this would be too large anyway.
            if self.unpacked.len() > self.max_bytes.saturating_mul(2) {
                return Err(Fault::TooLarge("a compressed block"));
            }
            let (used, end) = self.blocks.read(&self.unpacked, out)?;
            self.unpacked.drain(..used);
            if end.is_some() {
                if !self.unpacked.is_empty() {
                    return Err(Fault::Malformed("a block that ends before its compressed bytes do"));
                }
                return Ok(end);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::client;
    use crate::native::input::{write_string, write_varint};
    use crate::native::revision;
    use windrow_compression::{compress_clickhouse, ClickHouseMethod};

    fn block() -> Vec<u8> {
        let mut block = vec![0, 1, 3];
        write_string(&mut block, "n");
        write_string(&mut block, "UInt32");
        block.extend_from_slice(&[0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
        block
    }

    fn packet(frames: &[u8]) -> Vec<u8> {
        let mut packet = Vec::new();
        write_varint(&mut packet, client::DATA);
        write_string(&mut packet, "");
        packet.extend_from_slice(frames);
        packet
    }

    fn read(bytes: &[u8], is_compressed: bool) -> Result<(ReadProgress, Vec<u8>), Fault> {
        let mut out = Vec::new();
        let taken = DataReader::new(revision::NEWEST, is_compressed, 1 << 20).read(bytes, &mut out)?;
        Ok((taken, out))
    }

    #[test]
    fn packets_are_read_however_they_are_compressed() {
        let (expected, plain) = (read(&packet(&block()), false).unwrap().1, block());
        assert_eq!(expected.len(), plain.len() - 2, "without BlockInfo and the mark of the serialisation");
        for method in [ClickHouseMethod::None, ClickHouseMethod::Lz4, ClickHouseMethod::Zstd] {
            let (first, second) = plain.split_at(9);
            let frames = [compress_clickhouse(method, first), compress_clickhouse(method, second)].concat();
            let bytes = packet(&frames);
            let (taken, out) = read(&bytes, true).unwrap();
            assert_eq!((taken.bytes, out), (bytes.len(), expected.clone()));
            assert_eq!(taken.end, Some(BlockEnd { columns: 1, rows: 3 }));
            for end in 0..bytes.len() {
                assert_eq!(read(&bytes[..end], true).unwrap().0.end, None, "{end} bytes");
            }
        }
    }

    #[test]
    fn frames_that_lie_are_refused() {
        let mut frames = compress_clickhouse(ClickHouseMethod::Lz4, &block());
        *frames.last_mut().unwrap() ^= 1;
        assert_eq!(read(&packet(&frames), true).unwrap_err(), Fault::Frame(DecompressError::Checksum));
        let large = compress_clickhouse(ClickHouseMethod::Zstd, &vec![0; 2 << 20]);
        assert!(read(&packet(&large), true).is_err());
        let more = [block(), vec![0]].concat();
        let more = compress_clickhouse(ClickHouseMethod::None, &more);
        assert!(matches!(read(&packet(&more), true), Err(Fault::Malformed(_))));
    }
}
