//! FORMAT Parquet: the result is whole before it is sent, with its length, or in the ranges that were asked for.

use std::ops::Range;
use std::sync::Arc;

use windrow_gateway::sql_backend::{After, Exchange};
use windrow_http::{Connection, Method};

use super::answering::{after_of, Answer};
use super::head::{Framing, Head};
use super::kept_files::FileKey;
use super::run::Failure;
use super::sending::{BodyCompression, Sending};
use super::spool::SpooledResult;

impl Answer<'_> {
    pub(super) async fn parquet(&self, exchange: &Exchange<'_>, connection: &mut Connection) -> Result<After, Failure> {
        // A client that asks for the length begins to read, and wants the rows that are there now.
        let (begins, goes_on) =
            (*exchange.request.head.method() == Method::Head, exchange.request.head.field("range").is_some());
        let question = &self.run.question;
        let key = FileKey {
            user: exchange.credentials().map_or_else(String::new, |credentials| credentials.user.clone()),
            schema: question.session.schema.clone(),
            sql: question.asked.sql.clone(),
            max_rows: question.query_settings.max_result_rows,
        };
        if let Some(file) = self.backend.kept_files.get(&key).filter(|_| goes_on) {
            return self.send_file(exchange, connection, &file).await;
        }
        let kept = begins || goes_on;
        let mut body = Vec::new();
        let mut rows = self.run.rows(connection, &mut body).await?;
        let spool = self.spooled(connection, &mut rows, body).await?;
        let file = Arc::new(spool.end(rows.count, kept).await?);
        if kept {
            self.backend.kept_files.put(key, file.clone());
        }
        self.send_file(exchange, connection, &file).await
    }

    async fn send_file(
        &self,
        exchange: &Exchange<'_>,
        connection: &mut Connection,
        file: &SpooledResult,
    ) -> Result<After, Failure> {
        let length = file.length;
        let asked = exchange.request.head.field_str("range").and_then(|field| range(field, length));
        let part = asked.clone().unwrap_or(0..length);
        let after = after_of(exchange, connection);
        let blocks = exchange.request.flag("compress");
        let framing = if blocks { Framing::Chunked } else { Framing::Length(part.end - part.start) };
        let mut head: Head<'_> = self.head(exchange, after, framing);
        head.more.push(("Accept-Ranges", "bytes".to_owned()));
        if asked.is_some() {
            head.status = 206;
            head.more.push(("Content-Range", format!("bytes {}-{}/{length}", part.start, part.end - 1)));
        }
        let counted = self.counted(file.rows, part.end - part.start);
        if *exchange.request.head.method() == Method::Head {
            let mut out = Vec::new();
            head.write(&mut out, &counted, connection);
            connection.send(&out).await.map_err(|_| Failure::Gone)?;
            return Ok(after);
        }
        let compression = if blocks { BodyCompression::Blocks } else { BodyCompression::Plain };
        self.send_part(Sending::new(head, compression), connection, file, part).await?;
        Ok(after)
    }
}

/// Returns the one range of bytes that a `Range` field asks for, as far as the file has it, or `None` where
/// all of the file is sent.
fn range(field: &str, length: u64) -> Option<Range<u64>> {
    let (first, last) = field.strip_prefix("bytes=")?.split_once('-')?;
    let range = match (first.trim(), last.trim()) {
        ("", suffix) => length.saturating_sub(suffix.parse().ok()?)..length,
        (first, "") => first.parse().ok()?..length,
        (first, last) => first.parse().ok()?..last.parse::<u64>().ok()?.saturating_add(1).min(length),
    };
    (range.start < range.end).then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_far_as_the_file_goes() {
        assert_eq!(range("bytes=0-9", 100), Some(0..10));
        assert_eq!(range("bytes=90-200", 100), Some(90..100));
        assert_eq!(range("bytes=90-", 100), Some(90..100));
        assert_eq!(range("bytes=-8", 100), Some(92..100));
        for odd in ["bytes=100-", "bytes=5-4", "items=0-1", "bytes=", "bytes=a-b", "bytes=0-1,3-4", "bytes=--1"] {
            assert_eq!(range(odd, 100), None, "{odd}");
        }
        assert_eq!(range("bytes=0-18446744073709551615", 100), Some(0..100));
    }
}
