//! Frames: four bytes that say how many bytes follow, and these bytes.

use std::io;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::client::frame_pool::FramePool;

/// Bytes that memory is reserved for at once. The memory of a larger frame grows as its bytes come.
const MAX_RESERVED_BYTES: usize = 8 << 20;
/// Size from which frames use the pool. The allocator serves smaller ones well enough.
const POOLED_FROM_BYTES: usize = 256 << 10;

/// Reads the next frame and returns it without its size, or `None` at the end of the stream.
pub(crate) async fn read_frame(
    reader: &mut (impl AsyncRead + Unpin),
    max_bytes: usize,
    pool: &Arc<FramePool>,
) -> io::Result<Option<Bytes>> {
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
    if wanted < POOLED_FROM_BYTES {
        pool.trim();
        let mut frame = BytesMut::with_capacity(wanted);
        fill(reader, &mut frame, wanted).await?;
        return Ok(Some(frame.freeze()));
    }
    let new = || Vec::with_capacity(FramePool::rounded(wanted.min(MAX_RESERVED_BYTES)));
    let mut frame = pool.take(wanted).unwrap_or_else(new);
    fill(reader, &mut frame, wanted).await?;
    Ok(Some(pool.share(frame)))
}

async fn fill(reader: &mut (impl AsyncRead + Unpin), frame: &mut impl BufMut, wanted: usize) -> io::Result<()> {
    let mut missing = wanted;
    while missing > 0 {
        match (&mut *reader).take(missing as u64).read_buf(frame).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => missing -= count,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read_frame(reader: &mut &[u8], max_bytes: usize) -> io::Result<Option<Bytes>> {
        super::read_frame(reader, max_bytes, &Arc::default()).await
    }

    #[tokio::test]
    async fn large_frames_use_each_others_memory() {
        let pool = Arc::default();
        for size in [300_000usize, 900_000, 10 << 20] {
            let body: Vec<u8> = (0..size).map(|index| (index % 251) as u8).collect();
            let stream = [&(size as i32).to_be_bytes()[..], &body].concat();
            let first = super::read_frame(&mut &stream[..], usize::MAX, &pool).await.unwrap().unwrap();
            let second = super::read_frame(&mut &stream[..], usize::MAX, &pool).await.unwrap().unwrap();
            assert!(first == body && second == body);
            let memory = first.as_ptr();
            drop(first);
            let third = super::read_frame(&mut &stream[..], usize::MAX, &pool).await.unwrap().unwrap();
            assert_eq!((third.as_ptr(), third == body), (memory, true));
            let cut = &stream[..stream.len() - 1];
            assert!(super::read_frame(&mut &cut[..], usize::MAX, &pool).await.is_err());
        }
    }

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
