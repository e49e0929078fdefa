//! The bytes of a request, however they came: how large they may be, and how they are unpacked.

use bytes::Bytes;
use windrow_compression::{decompress, DecompressError, Encoding as Packing};
use windrow_gateway::protocol::{BodyRoom, Read, NO_ROOM};

use crate::export::aside;
use crate::refused::{RefusalReason, Refused};

/// Unpacks the bytes that were read into at most `limit` bytes, which get room of their own.
pub(crate) async fn unpacked(
    room: &BodyRoom,
    read: &mut Read,
    limit: usize,
    packing: Packing,
) -> Result<Bytes, Refused> {
    let unpack = |packed: &Bytes, max: usize| aside(max, || decompress(packing, packed, max).map(Bytes::from));
    match room.unpack(read, limit, unpack).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(DecompressError::TooLarge { .. })) => Err(too_large(limit)),
        Ok(Err(error)) => {
            Err(Refused::new(RefusalReason::Malformed, format!("the request can't be unpacked: {error}")))
        }
        Err(_) => Err(no_room()),
    }
}

pub(crate) fn too_large(limit: usize) -> Refused {
    Refused::new(RefusalReason::TooLarge, format!("the request is larger than {limit} bytes; send less at a time"))
}

pub(crate) fn no_room() -> Refused {
    Refused::new(RefusalReason::Unavailable, NO_ROOM)
}
