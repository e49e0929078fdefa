use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use windrow_compression::DecompressError;
use windrow_http::{BodyError, RequestBody};

/// Length up to which bodies are read without asking for room: as many bytes lie in the sockets' buffers anyway.
const FREE_BYTES: usize = 64 * 1024;
const PERMIT_BYTES: usize = 1024;
/// Ratio of compression that text seldom exceeds. If it is too small, unpacking twice costs time; if it is
/// too large, the room that is not used is missing elsewhere.
const USUAL_RATIO: usize = 12;

/// The bounded room for the bytes of all bodies that are being read into memory, and of what they are unpacked to.
#[derive(Clone)]
pub struct BodyRoom {
    total_permits: usize,
    permits: Arc<Semaphore>,
    patience: Duration,
}

/// The part of a body that has been read.
pub struct Read {
    pub bytes: Bytes,
    /// Says whether that is all of the body.
    pub whole: bool,
    room: Option<OwnedSemaphorePermit>,
}

impl Read {
    pub(crate) fn nothing() -> Read {
        Read { bytes: Bytes::new(), whole: false, room: None }
    }

    /// Makes a whole body of bytes that were read elsewhere, with the room that they hold.
    pub fn of(bytes: Bytes, room: Room) -> Read {
        Read { bytes, whole: true, room: room.held }
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.whole || !self.bytes.is_empty()
    }
}

/// Room that is held until it is dropped.
#[derive(Default)]
pub struct Room {
    held: Option<OwnedSemaphorePermit>,
}

#[derive(Debug)]
pub enum ReadError {
    /// The bytes that came are not the body that was announced.
    Body,
    NoRoom,
}

impl From<BodyError> for ReadError {
    fn from(error: BodyError) -> Self {
        tracing::debug!(%error, "a request's body could not be read");
        ReadError::Body
    }
}

impl BodyRoom {
    pub(crate) fn new(max_bytes: u64, patience: Duration) -> BodyRoom {
        let permits = (max_bytes / PERMIT_BYTES as u64).clamp(1, Semaphore::MAX_PERMITS as u64) as usize;
        BodyRoom { total_permits: permits, permits: Arc::new(Semaphore::new(permits)), patience }
    }

    /// Reads the first bytes of a body, which are usually all of it.
    pub(crate) async fn begin(&self, body: &mut RequestBody<'_>) -> Result<Read, ReadError> {
        let bytes = body.next().await?.unwrap_or_default();
        Ok(Read { bytes, whole: body.is_done(), room: None })
    }

    /// Reads a body up to its end or a little past `limit` bytes.
    ///
    /// # Errors
    /// Fails where the body does not come as it was announced, or there is no room for it.
    pub async fn read(&self, body: &mut RequestBody<'_>, limit: usize) -> Result<Read, ReadError> {
        let begun = self.begin(body).await?;
        self.read_on(body, begun, limit).await
    }

    /// Reads more of a body of which `read` has been read.
    pub(crate) async fn read_on(
        &self,
        body: &mut RequestBody<'_>,
        mut read: Read,
        limit: usize,
    ) -> Result<Read, ReadError> {
        if read.whole || read.bytes.len() > limit {
            return Ok(read);
        }
        // What is announced is believed up to the limit: a buffer that grows is copied again and again.
        let announced = usize::try_from(body.announced_bytes()).unwrap_or(limit).min(limit);
        let mut bytes = BytesMut::with_capacity(read.bytes.len() + announced + 1);
        bytes.extend_from_slice(&read.bytes);
        while bytes.len() <= limit && !body.is_done() {
            let Some(more) = body.next().await? else { break };
            bytes.extend_from_slice(&more);
            self.make_room(&mut read.room, bytes.len()).await?;
        }
        Ok(Read { bytes: bytes.freeze(), whole: body.is_done(), room: read.room })
    }

    /// Unpacks a body into at most `limit` bytes, with room for the result. `unpack` is told how many bytes
    /// that may be. If they were too few and there is more room, it is called again with more.
    ///
    /// # Errors
    /// Fails where there is no room. The inner error is that of `unpack`.
    pub async fn unpack(
        &self,
        read: &mut Read,
        limit: usize,
        unpack: impl Fn(&Bytes, usize) -> Result<Bytes, DecompressError>,
    ) -> Result<Result<Bytes, DecompressError>, ReadError> {
        let packed = read.bytes.len();
        let limit = limit.min(self.total_permits.saturating_mul(PERMIT_BYTES).saturating_sub(packed));
        let mut expected = packed.saturating_mul(USUAL_RATIO).max(FREE_BYTES.saturating_sub(packed)).min(limit);
        loop {
            self.make_room(&mut read.room, packed + expected).await?;
            let unpacked = unpack(&read.bytes, expected);
            if matches!(unpacked, Err(DecompressError::TooLarge { .. })) && expected < limit {
                expected = expected.saturating_mul(USUAL_RATIO).min(limit);
                continue;
            }
            Self::give_back(&mut read.room, packed + unpacked.as_ref().map_or(0, Bytes::len));
            return Ok(unpacked);
        }
    }

    /// Takes room for the result of a body. Returns `None` if there is none, or not soon enough.
    pub(crate) async fn room_for(&self, length: usize) -> Option<Room> {
        if permits_for(length) > self.total_permits {
            return None;
        }
        let mut held = None;
        self.make_room(&mut held, length).await.ok()?;
        Some(Room { held })
    }

    /// Makes `room` large enough for `length` bytes. Returns false if there is no room, or not soon enough.
    pub async fn grow(&self, room: &mut Room, length: usize) -> bool {
        permits_for(length) <= self.total_permits && self.make_room(&mut room.held, length).await.is_ok()
    }

    /// Gives room back, but for `length` bytes.
    fn give_back(room: &mut Option<OwnedSemaphorePermit>, length: usize) {
        let wanted = permits_for(length);
        if let Some(held) = room {
            drop(held.split(held.num_permits().saturating_sub(wanted)));
        }
    }

    async fn make_room(&self, room: &mut Option<OwnedSemaphorePermit>, length: usize) -> Result<(), ReadError> {
        let held = room.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let wanted = permits_for(length);
        if wanted <= held {
            return Ok(());
        }
        let more = u32::try_from(wanted - held).map_err(|_| ReadError::NoRoom)?;
        let acquired = tokio::time::timeout(self.patience, self.permits.clone().acquire_many_owned(more));
        let Ok(Ok(permit)) = acquired.await else { return Err(ReadError::NoRoom) };
        match room {
            Some(room) => room.merge(permit),
            None => *room = Some(permit),
        }
        Ok(())
    }
}

fn permits_for(length: usize) -> usize {
    length.saturating_sub(FREE_BYTES) / PERMIT_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(bytes: usize) -> Read {
        Read { bytes: vec![0; bytes].into(), whole: true, room: None }
    }

    /// Returns an unpacking of any body into `content` bytes, however small the body is.
    fn unpack(content: usize) -> impl Fn(&Bytes, usize) -> Result<Bytes, DecompressError> {
        move |_, max_bytes| match content <= max_bytes {
            true => Ok(vec![0; content].into()),
            false => Err(DecompressError::TooLarge { max_bytes }),
        }
    }

    #[tokio::test]
    async fn what_is_unpacked_holds_room_for_its_own_length() {
        let room = BodyRoom::new(64 << 20, Duration::ZERO);
        for content in [0, 1000, 100_000, 10 << 20, 63 << 20] {
            let mut read = packed(10_000);
            let unpacked = room.unpack(&mut read, 1 << 30, unpack(content)).await.unwrap().unwrap();
            assert_eq!(unpacked.len(), content);
            let held = room.total_permits - room.permits.available_permits();
            assert_eq!(held, permits_for(10_000 + content), "{content} bytes");
            drop(read);
            assert_eq!(room.permits.available_permits(), room.total_permits);
        }
    }

    #[tokio::test]
    async fn room_is_held_until_it_is_dropped() {
        let room = BodyRoom::new(1 << 20, Duration::ZERO);
        let held = room.room_for(1 << 20).await.expect("there is room");
        assert!(room.room_for(512 << 10).await.is_none(), "none is left");
        assert!(room.room_for(1000).await.is_some(), "so little is free");
        drop(held);
        assert!(room.room_for(512 << 10).await.is_some());
        assert!(room.room_for(2 << 20).await.is_none(), "never so much");
    }

    #[tokio::test]
    async fn what_there_can_be_no_room_for_is_too_large() {
        let room = BodyRoom::new(1 << 20, Duration::ZERO);
        for limit in [1 << 30, 300_000] {
            let mut read = packed(10_000);
            let unpacked = room.unpack(&mut read, limit, unpack(2 << 20)).await.unwrap();
            assert!(matches!(unpacked, Err(DecompressError::TooLarge { .. })));
            assert_eq!(permits_for(read.bytes.len()), 0, "and holds no room");
            assert_eq!(room.permits.available_permits(), room.total_permits);
        }
    }

    #[tokio::test]
    async fn who_finds_no_room_hears_so() {
        let room = BodyRoom::new(1 << 20, Duration::ZERO);
        let mut first = packed(10_000);
        assert!(room.unpack(&mut first, 1 << 30, unpack(900_000)).await.unwrap().is_ok());
        let second = room.unpack(&mut packed(10_000), 1 << 30, unpack(900_000)).await;
        assert!(matches!(second, Err(ReadError::NoRoom)));
        drop(first);
        assert!(room.unpack(&mut packed(10_000), 1 << 30, unpack(900_000)).await.is_ok());
    }
}
