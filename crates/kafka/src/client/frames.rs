//! Frames: four bytes that say how many follow.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// For which room is made at once; a larger frame gets more as its bytes come.
const MAX_RESERVED_BYTES: usize = 8 << 20;

/// The next frame without its size; nothing at the end of the stream.
pub(crate) async fn read_frame(reader: &mut (impl AsyncRead + Unpin), max_bytes: usize) -> io::Result<Option<Bytes>> {
    let mut size = [0; 4];
    if reader.read(&mut size[..1]).await? == 0 {
        return Ok(None);
    }
    reader.read_exact(&mut size[1..]).await?;
    let size = i32::from_be_bytes(size);
    let wanted = usize::try_from(size).ok().filter(|wanted| *wanted <= max_bytes).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("an answer of {size} bytes, where {max_bytes} are allowed (is it a Kafka broker, and is TLS set as it has to be?)"),
        )
    })?;
    let mut frame = BytesMut::with_capacity(wanted.min(MAX_RESERVED_BYTES));
    while frame.len() < wanted {
        let missing = (wanted - frame.len()) as u64;
        if (&mut *reader).take(missing).read_buf(&mut frame).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(Some(frame.freeze()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn frames_are_read_whole_or_not_at_all() {
        let stream = [0, 0, 0, 3, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 1, 9];
        let mut reader = &stream[..];
        assert_eq!(read_frame(&mut reader, 3).await.unwrap().unwrap(), [1, 2, 3][..]);
        assert_eq!(read_frame(&mut reader, 3).await.unwrap().unwrap(), [][..]);
        assert_eq!(read_frame(&mut reader, 3).await.unwrap().unwrap(), [9][..]);
        assert_eq!(read_frame(&mut reader, 3).await.unwrap(), None);
        for cut in 1..7 {
            let error = read_frame(&mut &stream[..cut], 3).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{cut}");
        }
    }

    #[tokio::test]
    async fn sizes_out_of_range_are_refused() {
        for size in [4i32, i32::MAX, -1, i32::MIN] {
            let error = read_frame(&mut &size.to_be_bytes()[..], 3).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{size}");
        }
    }
}
