//! The decision about a request: it is gathered, answered here, or forwarded.
//!
//! The decision reads no more of the body than it needs: nothing for a request whose URL says enough, and only
//! what came with the head for a stranger (`strangers.rs`).

use bytes::Bytes;
use windrow_compression::{DecompressError, Encoding};
use windrow_http::{BodyFraming, Connection};
use windrow_sql::{classify, classify_prefix, InsertStatement, OtherStatement, Statement, TableName};

use super::body::{Read, ReadError};
use super::exchange::Exchange;
use super::request::Caller;
use super::text::Text;
use crate::error::Refusal;
use crate::forward_reason::ForwardReason;

/// Longest statement, other than an INSERT, in bytes; ClickHouse's own limit (`max_query_size`) is the same.
pub(super) const MAX_STATEMENT_BYTES: usize = 256 * 1024;

/// The decision about a request.
pub(super) enum Plan {
    Gather { statement: InsertStatement, text: Text },
    Flush(Vec<TableName>),
    Forward { reason: ForwardReason, statement: Option<OtherStatement>, text: Option<Text> },
    Refuse(Refusal),
}

impl Exchange<'_> {
    /// Reads as much of the body as it takes to know what the request is, and decides about it.
    pub(super) async fn plan(&self, connection: &mut Connection, read: &mut Read) -> Result<Plan, ReadError> {
        let untouched = |reason| Ok(Plan::Forward { reason, statement: None, text: None });
        if self.request.lacks_length() {
            return Ok(Plan::Refuse(Refusal::length_required("POST")));
        }
        if let Caller::WrongPassword { user } = &self.caller {
            return Ok(Plan::Refuse(Refusal::wrong_password(user)));
        }
        let without_body = matches!(self.request.head.framing(), BodyFraming::None | BodyFraming::Length(0));
        if without_body && self.request.query().is_empty() {
            return untouched(ForwardReason::NotAQuery);
        }
        if self.request.path != "/" || self.request.is_multipart() {
            let strangers = if without_body { None } else { self.plan_for_stranger(ForwardReason::NotAQuery).await };
            return Ok(strangers.unwrap_or_else(|| self.by_its_url(ForwardReason::NotAQuery)));
        }
        if !self.request.is_post() {
            let strangers = if without_body { None } else { self.plan_for_stranger(ForwardReason::Unclear).await };
            if let Some(plan) = strangers {
                return Ok(plan);
            }
            let statement = other(classify(self.request.query()));
            let text = without_body.then(|| self.text(&Bytes::new(), true));
            let reason = if without_body { ForwardReason::Read } else { ForwardReason::Unclear };
            return Ok(Plan::Forward { reason, statement: statement.filter(|_| without_body), text });
        }
        let encoding = match self.encoding() {
            Ok(encoding) => encoding,
            Err(()) => {
                let strangers = self.plan_for_stranger(ForwardReason::Encoding).await;
                return Ok(strangers.unwrap_or_else(|| self.by_its_url(ForwardReason::Encoding)));
            }
        };
        let (mut body, _) = connection.body().await.map_err(|_| ReadError::Body)?;
        let room = &self.state.body_room;
        if !read.has_begun() {
            *read = self.peer.permit.wait_for(room.begin(&mut body)).await.ok_or(ReadError::Body)??;
            let is_all = read.whole && (encoding.is_none() || read.bytes.is_empty());
            if !is_all {
                if let Some(plan) = self.plan_for_stranger(ForwardReason::Credentials).await {
                    return Ok(plan);
                }
            }
            *read = room.read_on(&mut body, std::mem::replace(read, Read::nothing()), MAX_STATEMENT_BYTES).await?;
        }
        let gathered_limit = self.max_gathered_bytes();
        // What is compressed shows itself only as a whole.
        let wants_more = !read.whole && (encoding.is_some() || self.begins_insert(&read.bytes));
        if wants_more {
            *read = room.read_on(&mut body, std::mem::replace(read, Read::nothing()), gathered_limit).await?;
        }
        let decoded = match encoding {
            None => read.bytes.clone(),
            Some(_) if !read.whole => return untouched(ForwardReason::TooLarge),
            Some(encoding) => match self.decompress(encoding, read).await? {
                Ok(decoded) => decoded,
                Err(_) => return Ok(self.by_its_url(ForwardReason::Encoding)),
            },
        };
        let text = self.text(&decoded, read.whole);
        Ok(match text.classify() {
            Statement::Insert(_) if !text.whole => {
                Plan::Forward { reason: ForwardReason::TooLarge, statement: None, text: Some(text) }
            }
            Statement::Insert(statement) => Plan::Gather { statement, text },
            Statement::SystemFlushAsyncInsertQueue { tables } => Plan::Flush(tables),
            Statement::Other(statement) => {
                let reason = ForwardReason::of_statement(&statement);
                Plan::Forward { reason, statement: Some(statement), text: Some(text) }
            }
            Statement::Incomplete => Plan::Forward { reason: ForwardReason::Unclear, statement: None, text: None },
        })
    }

    /// Decides about a request whose body is not looked into. If the statement stands in the URL, it shows
    /// there what the request may change.
    pub(super) fn by_its_url(&self, reason: ForwardReason) -> Plan {
        match classify_prefix(&self.text(&Bytes::new(), false).head) {
            Statement::Insert(_) => Plan::Forward { reason, statement: None, text: None },
            Statement::Other(statement) => Plan::Forward { reason, statement: Some(statement), text: None },
            Statement::SystemFlushAsyncInsertQueue { .. } | Statement::Incomplete => {
                Plan::Forward { reason: ForwardReason::Unclear, statement: None, text: None }
            }
        }
    }

    fn begins_insert(&self, body: &Bytes) -> bool {
        matches!(self.text(body, false).classify(), Statement::Insert(_))
    }

    /// Returns how the body is compressed. Fails for encodings that are not known here.
    fn encoding(&self) -> Result<Option<Encoding>, ()> {
        let declared = self.request.head.field_str("content-encoding").filter(|name| !name.is_empty());
        match (declared, self.request.flag("decompress")) {
            (None, false) => Ok(None),
            (None, true) => Ok(Some(Encoding::ClickHouse)),
            (Some(name), false) => Encoding::from_content_encoding(name).map(Some).ok_or(()),
            (Some(_), true) => Err(()),
        }
    }

    pub(super) fn is_compressed(&self) -> bool {
        !matches!(self.encoding(), Ok(None))
    }

    async fn decompress(
        &self,
        encoding: Encoding,
        read: &mut Read,
    ) -> Result<Result<Bytes, DecompressError>, ReadError> {
        const LARGE_BYTES: usize = 64 * 1024;
        if read.bytes.is_empty() {
            return Ok(Ok(Bytes::new()));
        }
        let limit = self.max_decompressed_bytes();
        let unpack = |bytes: &Bytes, max_bytes| {
            let decompress = || windrow_compression::decompress(encoding, bytes, max_bytes).map(Bytes::from);
            match bytes.len() > LARGE_BYTES {
                true => tokio::task::block_in_place(decompress),
                false => decompress(),
            }
        };
        self.state.body_room.unpack(read, limit, unpack).await
    }

    /// Returns the longest body of an insert that is read. ClickHouse takes longer ones; DuckDB gets none
    /// past the gateway.
    fn max_gathered_bytes(&self) -> usize {
        match self.state.backend.takes_requests() {
            true => self.state.options.settings.get().http.max_body_bytes_gathered,
            false => usize::try_from(self.state.max_table_bytes).unwrap_or(usize::MAX),
        }
    }

    fn max_decompressed_bytes(&self) -> usize {
        match self.state.backend.takes_requests() {
            true => self.state.options.settings.get().http.max_decompressed_bytes,
            false => self.max_gathered_bytes(),
        }
    }

    fn text(&self, body: &Bytes, whole: bool) -> Text {
        Text::new(self.request.query(), body, whole)
    }
}

fn other(statement: Statement) -> Option<OtherStatement> {
    match statement {
        Statement::Other(statement) => Some(statement),
        _ => None,
    }
}
