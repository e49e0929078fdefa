//! Packets in chunks: a length of 4 bytes, least significant first, and the bytes; a length of 0 ends a packet.
//!
//! ClickHouse and its clients have the setting `proto_caps` for chunks; they are off unless one side asks for
//! them. The form is that of ClickHouse's `src/IO/WriteBufferFromPocoSocketChunked.h`.

use crate::native::input::Fault;

const LENGTH_BYTES: usize = 4;

/// The directions of a connection in which packets come in chunks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Chunked {
    pub from_client: bool,
    pub from_server: bool,
}

/// State of reading one direction whose packets come in chunks.
#[derive(Debug, Default)]
pub struct ChunkReader {
    length: [u8; LENGTH_BYTES],
    /// Bytes of the length that have come.
    length_bytes: usize,
    /// Bytes of the chunk that are still to come.
    missing: usize,
    is_in_packet: bool,
}

impl ChunkReader {
    /// Removes the lengths from the bytes that came next. The bytes of packets are moved to the start;
    /// returns their count.
    ///
    /// # Errors
    /// Fails where a packet has no bytes.
    pub fn strip(&mut self, bytes: &mut [u8]) -> Result<usize, Fault> {
        let (mut from, mut kept) = (0, 0);
        while from < bytes.len() {
            if self.missing > 0 {
                let count = self.missing.min(bytes.len() - from);
                bytes.copy_within(from..from + count, kept);
                (from, kept, self.missing) = (from + count, kept + count, self.missing - count);
                continue;
            }
            self.length[self.length_bytes] = bytes[from];
            (from, self.length_bytes) = (from + 1, self.length_bytes + 1);
            if self.length_bytes == LENGTH_BYTES {
                self.length_bytes = 0;
                self.missing = u32::from_le_bytes(self.length) as usize;
                let was_in_packet = std::mem::replace(&mut self.is_in_packet, self.missing > 0);
                if !was_in_packet && self.missing == 0 {
                    return Err(Fault::Malformed("a packet of no bytes"));
                }
            }
        }
        Ok(kept)
    }
}

/// Writes whole packets as if they were one packet.
pub fn write_chunked(out: &mut Vec<u8>, packets: &[u8]) {
    if packets.is_empty() {
        return;
    }
    out.reserve(packets.len() + 2 * LENGTH_BYTES);
    for chunk in packets.chunks(u32::MAX as usize) {
        out.extend_from_slice(&(chunk.len() as u32).to_le_bytes());
        out.extend_from_slice(chunk);
    }
    out.extend_from_slice(&[0; LENGTH_BYTES]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_back_however_they_are_cut() {
        let mut sent = Vec::new();
        write_chunked(&mut sent, b"one");
        write_chunked(&mut sent, b"");
        // In two chunks, as ClickHouse sends what does not fit into its buffer.
        sent.extend_from_slice(b"\x04\0\0\0the \x05\0\0\0other\0\0\0\0");
        for piece in 1..=sent.len() {
            let (mut reader, mut read) = (ChunkReader::default(), Vec::new());
            for bytes in sent.chunks(piece) {
                let mut bytes = bytes.to_vec();
                let kept = reader.strip(&mut bytes).unwrap();
                read.extend_from_slice(&bytes[..kept]);
            }
            assert_eq!(read, b"onethe other", "in pieces of {piece}");
        }
    }

    #[test]
    fn a_packet_has_bytes() {
        assert!(matches!(ChunkReader::default().strip(&mut [0; 4]), Err(Fault::Malformed(_))));
        let mut twice = *b"\x01\0\0\0x\0\0\0\0\0\0\0\0";
        assert!(matches!(ChunkReader::default().strip(&mut twice), Err(Fault::Malformed(_))));
    }
}
