//! The head of a batch.
//!
//! ```text
//!  0 base offset (8)       12 leader epoch (4)   21 attributes (2)       27 base timestamp (8)   51 producer epoch (2)
//!  8 bytes that follow (4) 16 magic (1)          23 last offset delta (4) 35 max timestamp (8)   53 base sequence (4)
//!                          17 CRC-32C (4), of all from 21                43 producer id (8)      57 number of records (4)
//! ```

pub(crate) const HEAD_BYTES: usize = 61;
/// Bytes of the base offset and of the size, which the size itself does not count.
pub(crate) const PREFIX_BYTES: usize = 12;
pub(crate) const MAGIC_AT: usize = 16;
const CRC_AT: usize = 17;
pub(crate) const CHECKED_FROM: usize = 21;

const COMPRESSION: i16 = 0b0000_0111;
const LOG_APPEND_TIME: i16 = 0b0000_1000;
const TRANSACTIONAL: i16 = 0b0001_0000;
const CONTROL: i16 = 0b0010_0000;

/// A view of a head that is known to be whole. Its methods read the fields.
#[derive(Clone, Copy)]
pub(crate) struct Head<'b>(pub &'b [u8; HEAD_BYTES]);

impl Head<'_> {
    fn at<const N: usize>(self, start: usize) -> [u8; N] {
        let mut field = [0; N];
        field.copy_from_slice(&self.0[start..start + N]);
        field
    }

    pub(crate) fn leader_epoch(self) -> i32 {
        i32::from_be_bytes(self.at(12))
    }

    pub(crate) fn crc(self) -> u32 {
        u32::from_be_bytes(self.at(CRC_AT))
    }

    fn attributes(self) -> i16 {
        i16::from_be_bytes(self.at(21))
    }

    pub(crate) fn compression_id(self) -> u8 {
        (self.attributes() & COMPRESSION) as u8
    }

    pub(crate) fn is_log_append_time(self) -> bool {
        self.attributes() & LOG_APPEND_TIME != 0
    }

    pub(crate) fn is_transactional(self) -> bool {
        self.attributes() & TRANSACTIONAL != 0
    }

    pub(crate) fn is_control(self) -> bool {
        self.attributes() & CONTROL != 0
    }

    pub(crate) fn last_offset_delta(self) -> i32 {
        i32::from_be_bytes(self.at(23))
    }

    pub(crate) fn base_timestamp_ms(self) -> i64 {
        i64::from_be_bytes(self.at(27))
    }

    pub(crate) fn max_timestamp_ms(self) -> i64 {
        i64::from_be_bytes(self.at(35))
    }

    pub(crate) fn producer_id(self) -> i64 {
        i64::from_be_bytes(self.at(43))
    }

    pub(crate) fn count(self) -> i32 {
        i32::from_be_bytes(self.at(57))
    }
}
