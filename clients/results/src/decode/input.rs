//! The bytes that are there, and the room that may be made for bytes that are announced.

use super::error::Problem;
use windrow_columns::wire::parse_varint;

/// Room that is made at once for announced values. Larger columns grow with the bytes that really come.
const TRUSTED_BYTES: usize = 16 << 20;

/// The state of a reader: done, or waiting for more bytes. A waiting reader has taken all bytes that there
/// were, and continues from there with the next ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Progress {
    Done,
    Waiting,
}

/// Leaves a reader's function when the bytes don't suffice.
macro_rules! done_or_wait {
    ($progress:expr) => {
        if $progress? == crate::decode::input::Progress::Waiting {
            return Ok(crate::decode::input::Progress::Waiting);
        }
    };
}
/// Returns the token, or leaves a reader's function when the token isn't whole yet.
macro_rules! token_or_wait {
    ($token:expr) => {
        match $token? {
            Some(token) => token,
            None => return Ok(crate::decode::input::Progress::Waiting),
        }
    };
}
pub(super) use {done_or_wait, token_or_wait};

/// A cursor over the bytes that are there.
pub(super) struct Input<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Input<'a> {
    pub(super) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// Takes the next `wanted` bytes, or as many of them as are there.
    pub(super) fn up_to(&mut self, wanted: usize) -> &'a [u8] {
        let rest = self.rest();
        let taken = &rest[..wanted.min(rest.len())];
        self.at += taken.len();
        taken
    }

    pub(super) fn u64(&mut self) -> Result<Option<u64>, Problem> {
        match self.rest().first_chunk::<8>() {
            Some(bytes) => {
                self.at += 8;
                Ok(Some(u64::from_le_bytes(*bytes)))
            }
            None => Ok(None),
        }
    }

    pub(super) fn varint(&mut self) -> Result<Option<u64>, Problem> {
        let varint = parse_varint(self.rest()).map_err(Problem::Malformed)?;
        self.at += varint.as_ref().map_or(0, |varint| varint.length);
        Ok(varint.map(|varint| varint.value))
    }

    /// Reads a text with its length in front. Takes nothing unless all of it is there.
    pub(super) fn text(&mut self, max_bytes: usize) -> Result<Option<&'a str>, Problem> {
        let start = self.at;
        let Some(length) = self.varint()? else { return Ok(None) };
        let length = usize::try_from(length).ok().filter(|length| *length <= max_bytes);
        let length = length.ok_or(Problem::Malformed("a name of an impossible length"))?;
        let Some(text) = self.rest().get(..length) else {
            self.at = start;
            return Ok(None);
        };
        self.at += length;
        std::str::from_utf8(text).map(Some).map_err(|_| Problem::Malformed("a name that is not UTF-8"))
    }
}

/// Bytes of a known number, gathered as they come.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) bytes: Vec<u8>,
    missing: usize,
}

impl Gathered {
    pub(super) fn begin(&mut self, bytes: usize) {
        self.missing = bytes;
    }

    pub(super) fn read(&mut self, input: &mut Input<'_>) -> Progress {
        let coming = input.up_to(self.missing);
        make_room(&mut self.bytes, coming.len(), self.missing);
        self.bytes.extend_from_slice(coming);
        self.missing -= coming.len();
        if self.missing == 0 {
            Progress::Done
        } else {
            Progress::Waiting
        }
    }

    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }
}

/// Makes room for `coming` more elements of the `announced` ones that are to come in all.
pub(super) fn make_room<T>(values: &mut Vec<T>, coming: usize, announced: usize) {
    if values.capacity() - values.len() >= coming {
        return;
    }
    let trusted = announced.min(TRUSTED_BYTES / size_of::<T>().max(1));
    let growth = announced.min(values.len().max(coming));
    values.reserve_exact(coming.max(trusted).max(growth));
}
