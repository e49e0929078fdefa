use bytes::Bytes;
use windrow_sql::{classify, classify_prefix, InsertStatement, Statement};

/// The text of a request: its `query` parameter, a line break, its body.
#[derive(Clone)]
pub(crate) struct Text {
    /// The `query` parameter and the line break; empty without a query.
    pub(super) head: Bytes,
    body: Bytes,
    /// Says whether the body is all there.
    pub(super) whole: bool,
}

impl Text {
    pub(super) fn new(query: &[u8], body: &Bytes, whole: bool) -> Text {
        let head = if query.is_empty() { Bytes::new() } else { [query, b"\n"].concat().into() };
        Text { head, body: body.clone(), whole }
    }

    pub(crate) fn joined(&self) -> Bytes {
        match self.head.is_empty() {
            true => self.body.clone(),
            false => [&self.head[..], &self.body[..]].concat().into(),
        }
    }

    /// Returns the text's first bytes, up to `limit` of the body.
    pub(super) fn start(&self, limit: usize) -> Bytes {
        let body = self.body.slice(..self.body.len().min(limit));
        match self.head.is_empty() {
            true => body,
            false => [&self.head[..], &body].concat().into(),
        }
    }

    /// Says whether the text's first bytes, up to `limit` of the body, contain `needle`.
    pub(super) fn may_contain(&self, needle: &[u8], limit: usize) -> bool {
        let body = &self.body[..self.body.len().min(limit)];
        [&self.head[..], body].iter().any(|part| part.windows(needle.len()).any(|window| window == needle))
    }

    /// Classifies the statement. For an insert that has its statement in the URL and its data in the body,
    /// the two need no joining.
    pub(super) fn classify(&self) -> Statement {
        match self.classify_head() {
            Some(statement) => Statement::Insert(statement),
            None if self.whole => classify(&self.joined()),
            None => classify_prefix(&self.joined()),
        }
    }

    fn classify_head(&self) -> Option<InsertStatement> {
        match classify_prefix(&self.head) {
            Statement::Insert(statement) if statement.data_start == self.head.len() => Some(statement),
            _ => None,
        }
    }

    /// Returns the text from `start` on, which is an insert's data.
    pub(super) fn data(&self, start: usize) -> Bytes {
        match start.checked_sub(self.head.len()) {
            Some(at) => self.body.slice(at..),
            None => self.joined().slice(start..),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(query: &str, body: &str) -> Text {
        Text::new(query.as_bytes(), &Bytes::from(body.to_owned()), true)
    }

    fn data(text: &Text) -> Bytes {
        match text.classify() {
            Statement::Insert(insert) => text.data(insert.data_start),
            other => panic!("{other:?} is no insert"),
        }
    }

    #[test]
    fn data_is_found_wherever_the_text_is_split() {
        assert_eq!(data(&text("INSERT INTO t FORMAT JSONEachRow", "{}")), "{}");
        assert_eq!(data(&text("", "INSERT INTO t FORMAT JSONEachRow\n{}")), "{}");
        assert_eq!(data(&text("INSERT INTO t", "FORMAT JSONEachRow\n{}")), "{}");
        assert_eq!(data(&text("INSERT INTO t VALUES (1),", "(2)")), "(1),\n(2)");
        assert_eq!(data(&text("INSERT INTO t FORMAT JSONEachRow {}", "")), "{}\n");
    }

    #[test]
    fn data_in_the_body_is_not_copied() {
        let body = Bytes::from_static(b"{\"a\":1}");
        let text = Text::new(b"INSERT INTO t FORMAT JSONEachRow", &body, true);
        assert_eq!(data(&text).as_ptr(), body.as_ptr());
    }
}
