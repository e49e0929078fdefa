use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use windrow_http::{BodyError, RequestBody};

/// Bodies up to this are read without asking for room: as many bytes lie in the sockets' buffers anyway.
const FREE_BYTES: usize = 64 * 1024;
const PERMIT_BYTES: usize = 1024;

/// Bounds the bytes of all bodies that are being read into memory.
#[derive(Clone)]
pub(crate) struct BodyRoom {
    permits: Arc<Semaphore>,
    patience: Duration,
}

/// What has been read of a body.
pub(crate) struct Read {
    pub(crate) bytes: Bytes,
    /// Whether that is all of it.
    pub(crate) whole: bool,
    room: Option<OwnedSemaphorePermit>,
}

impl Read {
    pub(crate) fn nothing() -> Read {
        Read { bytes: Bytes::new(), whole: false, room: None }
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.whole || !self.bytes.is_empty()
    }
}

#[derive(Debug)]
pub(crate) enum ReadError {
    /// What came is not the body that was announced.
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
        BodyRoom { permits: Arc::new(Semaphore::new(permits)), patience }
    }

    /// Reads a body up to its end or a little past `limit` bytes.
    pub(crate) async fn read(&self, body: &mut RequestBody<'_>, limit: usize) -> Result<Read, ReadError> {
        let bytes = body.next().await?.unwrap_or_default();
        self.read_on(body, Read { bytes, whole: body.is_done(), room: None }, limit).await
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

    async fn make_room(&self, room: &mut Option<OwnedSemaphorePermit>, length: usize) -> Result<(), ReadError> {
        let held = room.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let wanted = length.saturating_sub(FREE_BYTES) / PERMIT_BYTES;
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
