//! Answers: JSON for success, and ClickHouse's form for errors.

use std::borrow::Cow;

use serde::Serialize;
use windrow_append::AppendError;
use windrow_clickhouse::{ErrorCode, Exception};
use windrow_http::{Connection, Method, RequestHead, ResponseBuilder};

use crate::data::answer::{after, After};
use crate::error::Refusal;

const LENGTH_REQUIRED: u16 = 411;

/// An answer before it is written.
pub(super) struct Reply {
    status: u16,
    body: Vec<u8>,
    kind: &'static str,
    code: Option<ErrorCode>,
    retry_after_seconds: Option<u32>,
    batch: Option<u64>,
    row: Option<u64>,
}

impl Reply {
    pub(super) fn json(status: u16, body: &impl Serialize) -> Reply {
        match serde_json::to_vec(body) {
            Ok(mut body) => {
                body.push(b'\n');
                let kind = "application/json; charset=UTF-8";
                Reply { status, body, kind, code: None, retry_after_seconds: None, batch: None, row: None }
            }
            // Nothing that is answered has keys that aren't texts.
            Err(error) => Reply::error(&AppendError::new(ErrorCode::STD_EXCEPTION, &error.to_string()), ""),
        }
    }

    pub(super) fn error(error: &AppendError, version: &str) -> Reply {
        let line = &error.exception.line;
        let line = match error.exception.version_suffix().is_empty() && !line.ends_with(version) {
            true => format!("{line} {version}\n"),
            false => format!("{line}\n"),
        };
        Reply {
            status: error.status,
            body: line.into_bytes(),
            kind: "text/plain; charset=UTF-8",
            code: Some(error.exception.code),
            retry_after_seconds: error.retry_after_seconds,
            batch: error.batch,
            row: error.row,
        }
    }

    pub(super) fn refusal(refusal: &Refusal, version: &str) -> Reply {
        let line = refusal.line(version);
        let exception = Exception { code: refusal.code, line, before_writing: true };
        let error = AppendError {
            status: refusal.status,
            retry_after_seconds: refusal.retry_after_seconds,
            ..AppendError::from(exception)
        };
        Reply::error(&error, "")
    }

    pub(super) fn code(&self) -> Option<ErrorCode> {
        self.code
    }

    pub(super) fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.body.trim_ascii_end())
    }

    pub(super) fn write(self, out: &mut Vec<u8>, head: &RequestHead, connection: &Connection) -> After {
        // Behind a head without a length nobody knows where the next one begins.
        let is_at_end = connection.body_is_done() && self.status != LENGTH_REQUIRED;
        let after = if is_at_end { after(head, connection) } else { After::Close };
        let mut response = ResponseBuilder::new(out, self.status)
            .date()
            .field("Connection", if after == After::KeepAlive { "Keep-Alive" } else { "Close" })
            .field("Content-Type", self.kind);
        if let Some(code) = self.code {
            response = response.number("X-ClickHouse-Exception-Code", u64::from(code.number().unsigned_abs()));
        }
        if let Some(batch) = self.batch {
            response = response.number("X-Windrow-Batch", batch);
        }
        if let Some(row) = self.row {
            response = response.number("X-Windrow-Row", row);
        }
        if let Some(seconds) = self.retry_after_seconds {
            response = response.number("Retry-After", u64::from(seconds));
        }
        match head.method() {
            Method::Head => response.end(),
            _ => response.body(&self.body),
        }
        after
    }
}
