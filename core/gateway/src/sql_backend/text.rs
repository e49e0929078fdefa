//! A request's whole text: its `query` parameter, a line break, its body.

use bytes::Bytes;
use windrow_clickhouse::ErrorCode;
use windrow_compression::Encoding;
use windrow_http::{BodyFraming, Connection};

use crate::data::{Exchange, Read, ReadError};
use crate::error::Refusal;

/// The reason why there is no text.
pub enum NoText {
    Refused(Refusal),
    /// The client did not send what it announced; there is nobody to answer.
    Broken,
}

impl From<ReadError> for NoText {
    fn from(error: ReadError) -> NoText {
        match error {
            ReadError::Body => NoText::Broken,
            ReadError::NoRoom => NoText::Refused(Refusal::no_room()),
        }
    }
}

impl Exchange<'_> {
    /// Returns the request's whole text, and reads for it what is left of the body behind `read`.
    ///
    /// # Errors
    /// Fails where the request is a form, its body is too long, cannot be decompressed or read, finds no
    /// room, or is no text that a database takes.
    pub async fn whole_text(&self, connection: &mut Connection, read: Read) -> Result<String, NoText> {
        if self.request.is_multipart() {
            return Err(refused(
                ErrorCode::NOT_IMPLEMENTED,
                "Forms (multipart/form-data) are not taken in front of DuckDB: there are no external tables",
            ));
        }
        let body = match self.request.is_post() {
            true => self.whole_body(connection, read).await?,
            false => Bytes::new(),
        };
        let mut text = self.request.query().to_vec();
        if !text.is_empty() && !body.is_empty() {
            text.push(b'\n');
        }
        text.extend_from_slice(&body);
        statement_text(text).map_err(NoText::Refused)
    }

    async fn whole_body(&self, connection: &mut Connection, mut read: Read) -> Result<Bytes, NoText> {
        if matches!(self.request.head.framing(), BodyFraming::None) {
            let text = "The Transfer-Encoding is not chunked and there is no Content-Length header for POST request";
            return Err(refused(ErrorCode::HTTP_LENGTH_REQUIRED, text));
        }
        let limits = &self.state.options.settings.get().http;
        let (mut body, _) = connection.body().await.map_err(|_| NoText::Broken)?;
        let room = &self.state.body_room;
        if !read.whole {
            read = match read.has_begun() {
                true => room.read_on(&mut body, read, limits.max_body_bytes_gathered).await?,
                false => room.read(&mut body, limits.max_body_bytes_gathered).await?,
            };
        }
        if !read.whole {
            let text = format!(
                "The statement is longer than http.max_body_bytes_gathered ({} bytes)",
                limits.max_body_bytes_gathered
            );
            return Err(refused(ErrorCode::QUERY_IS_TOO_LARGE, &text));
        }
        let Some(encoding) = self.body_encoding()? else { return Ok(read.bytes) };
        if read.bytes.is_empty() {
            return Ok(Bytes::new());
        }
        let unpack = |bytes: &Bytes, max_bytes| {
            tokio::task::block_in_place(|| windrow_compression::decompress(encoding, bytes, max_bytes).map(Bytes::from))
        };
        let unpacked = room.unpack(&mut read, limits.max_decompressed_bytes, unpack).await?;
        unpacked
            .map_err(|error| refused(ErrorCode::INCORRECT_DATA, &format!("The body cannot be decompressed: {error}")))
    }

    fn body_encoding(&self) -> Result<Option<Encoding>, NoText> {
        let declared = self.request.head.field_str("content-encoding").filter(|name| !name.is_empty());
        match (declared, self.request.flag("decompress")) {
            (None, false) => Ok(None),
            (None, true) => Ok(Some(Encoding::ClickHouse)),
            (Some(name), _) => match Encoding::from_content_encoding(name) {
                Some(encoding) => Ok(Some(encoding)),
                None => Err(refused(ErrorCode::NOT_IMPLEMENTED, &format!("Unknown compression method {name}"))),
            },
        }
    }
}

/// Returns the text of a statement.
///
/// # Errors
/// Fails where the bytes are no text that a database takes: not UTF-8, or with a zero byte.
pub(super) fn statement_text(bytes: Vec<u8>) -> Result<String, Refusal> {
    let what = match String::from_utf8(bytes) {
        // DuckDB's text would end there.
        Ok(text) if text.contains('\0') => "has a zero byte in it",
        Ok(text) => return Ok(text),
        Err(_) => "is not text in UTF-8",
    };
    Err(Refusal::statement(ErrorCode::SYNTAX_ERROR, format!("The statement {what}")))
}

fn refused(code: ErrorCode, text: &str) -> NoText {
    NoText::Refused(Refusal::statement(code, text.to_owned()))
}
