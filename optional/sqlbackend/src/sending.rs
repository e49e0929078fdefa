//! Sends a body as it is made: held back until there is enough of it, compressed, in chunks.

use std::io;

use windrow_compression::{compress_clickhouse, AnswerEncoding, ClickHouseMethod, Encoding, StreamCompressor};
use windrow_http::Connection;

use super::head::{Counted, Framing, Head};

/// Bytes that are gathered before they are sent. Until then, an error still gets a status of its own.
pub(super) const BUFFER_BYTES: usize = 256 * 1024;
/// The largest number of bytes that are held back, even if a client asks for more.
pub(super) const MAX_BUFFER_BYTES: usize = 16 << 20;

/// The compression of a body.
pub(super) enum BodyCompression {
    Plain,
    Http(Box<StreamCompressor>),
    /// ClickHouse's own blocks (`compress=1`).
    Blocks,
}

impl BodyCompression {
    /// Chooses the compression, and the encoding that the head names. There is no encoding for ClickHouse's
    /// blocks, nor where the client accepts none that can be made piece by piece: then the body is plain.
    pub(super) fn of(accepted: Option<&str>, blocks: bool) -> io::Result<(BodyCompression, Option<AnswerEncoding>)> {
        if blocks {
            return Ok((BodyCompression::Blocks, None));
        }
        let Some((answer, encoding)) = accepted.and_then(streamable) else { return Ok((BodyCompression::Plain, None)) };
        Ok(match StreamCompressor::new(encoding)? {
            Some(compressor) => (BodyCompression::Http(Box::new(compressor)), Some(answer)),
            None => (BodyCompression::Plain, None),
        })
    }

    fn step(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            BodyCompression::Plain => Ok(bytes.to_vec()),
            BodyCompression::Http(compressor) => compressor.step(bytes),
            BodyCompression::Blocks if bytes.is_empty() => Ok(Vec::new()),
            BodyCompression::Blocks => Ok(compress_clickhouse(ClickHouseMethod::Lz4, bytes)),
        }
    }

    fn finish(self) -> io::Result<Vec<u8>> {
        match self {
            BodyCompression::Http(compressor) => compressor.finish(),
            BodyCompression::Plain | BodyCompression::Blocks => Ok(Vec::new()),
        }
    }
}

/// Chooses as ClickHouse does among the accepted encodings, without those that can't be made piece by piece.
fn streamable(accepted: &str) -> Option<(AnswerEncoding, Encoding)> {
    const MADE_WHOLE: [&str; 4] = ["br", "snappy", "xz", "lzma"];
    let is_made_whole = |item: &&str| MADE_WHOLE.iter().any(|name| item.trim().split(';').next() == Some(name));
    let others: Vec<&str> = accepted.split(',').filter(|item| !is_made_whole(item)).collect();
    let answer = AnswerEncoding::from_accept_encoding(&others.join(","))?;
    Some((answer, Encoding::from_content_encoding(answer.name())?))
}

/// The body of one answer on its way.
pub(super) struct Sending<'a> {
    head: Head<'a>,
    compression: BodyCompression,
    head_sent: bool,
    /// Bytes that are compressed and framed, and not sent yet.
    out: Vec<u8>,
}

/// The connection can only be closed: the client is gone.
pub(super) struct ClientGone;

impl<'a> Sending<'a> {
    pub(super) fn new(head: Head<'a>, compression: BodyCompression) -> Sending<'a> {
        Sending { head, compression, head_sent: false, out: Vec::new() }
    }

    /// Says whether the client has been told that all is well.
    pub(super) fn head_sent(&self) -> bool {
        self.head_sent
    }

    /// Sends what is in `body`, and the head before it if that is still to come.
    pub(super) async fn send(
        &mut self,
        connection: &mut Connection,
        body: &mut Vec<u8>,
        counted: &Counted,
    ) -> Result<(), ClientGone> {
        self.begin(counted, connection);
        let piece = self.compression.step(body).map_err(|_| ClientGone)?;
        body.clear();
        self.frame(&piece);
        self.flush(connection).await
    }

    /// Sends the rest of the body, and its end.
    pub(super) async fn finish(
        mut self,
        connection: &mut Connection,
        body: &[u8],
        counted: &Counted,
    ) -> Result<(), ClientGone> {
        self.begin(counted, connection);
        let mut piece = self.compression.step(body).map_err(|_| ClientGone)?;
        let compression = std::mem::replace(&mut self.compression, BodyCompression::Plain);
        piece.extend(compression.finish().map_err(|_| ClientGone)?);
        self.frame(&piece);
        if self.head.framing == Framing::Chunked {
            self.out.extend_from_slice(b"0\r\n\r\n");
        }
        self.flush(connection).await
    }

    /// Breaks the body off as ClickHouse does: the error between two tags, and no end. The connection has to be closed.
    pub(super) async fn break_off(mut self, connection: &mut Connection, body: &[u8], line: &str) {
        let tag = self.head.tag;
        let message = format!("{line}\n");
        let mut rest = body.to_vec();
        rest.extend_from_slice(
            format!("\r\n__exception__\r\n{tag}\r\n{message}{} {tag}\r\n__exception__\r\n", message.len()).as_bytes(),
        );
        let compression = std::mem::replace(&mut self.compression, BodyCompression::Plain);
        let compressed = match compression {
            BodyCompression::Plain => Ok(rest),
            mut compression => compression.step(&rest).and_then(|mut piece| {
                piece.extend(compression.finish()?);
                Ok(piece)
            }),
        };
        if let Ok(piece) = compressed {
            self.frame(&piece);
            // A client that is gone needs no error.
            let _ = self.flush(connection).await;
        }
    }

    fn begin(&mut self, counted: &Counted, connection: &Connection) {
        if !std::mem::replace(&mut self.head_sent, true) {
            self.head.write(&mut self.out, counted, connection);
        }
    }

    fn frame(&mut self, piece: &[u8]) {
        match self.head.framing {
            _ if piece.is_empty() => {}
            Framing::Chunked => {
                self.out.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
                self.out.extend_from_slice(piece);
                self.out.extend_from_slice(b"\r\n");
            }
            Framing::UntilClose | Framing::Length(_) => self.out.extend_from_slice(piece),
        }
    }

    async fn flush(&mut self, connection: &mut Connection) -> Result<(), ClientGone> {
        let sent = connection.send(&self.out).await;
        self.out.clear();
        sent.map_err(|_| ClientGone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_encodings_that_come_piece_by_piece_are_used() {
        let name = |accepted| streamable(accepted).map(|(answer, _)| answer.name());
        assert_eq!(name("gzip, deflate, br, zstd"), Some("zstd"));
        assert_eq!(name("gzip, deflate, br"), Some("gzip"));
        assert_eq!(name("br"), None);
        assert_eq!(name("br;q=1.0, lz4"), Some("lz4"));
        assert_eq!(name("identity"), None);
        assert_eq!(name("*"), Some("zstd"));
    }
}
