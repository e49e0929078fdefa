use serde_json::Value;
use windrow_http::{Method, RequestHead, ResponseBuilder};

/// An answer of the admin port to one request.
pub(super) struct Answer {
    status: u16,
    kind: &'static str,
    /// The name under which a browser saves the body.
    file_name: Option<String>,
    body: Vec<u8>,
}

impl Answer {
    pub(super) fn new(status: u16, kind: &'static str, body: impl Into<Vec<u8>>) -> Answer {
        Answer { status, kind, file_name: None, body: body.into() }
    }

    pub(super) fn text(status: u16, body: impl Into<Vec<u8>>) -> Answer {
        Answer::new(status, "text/plain; charset=utf-8", body)
    }

    pub(super) fn json(status: u16, value: &Value) -> Answer {
        Answer::new(status, "application/json", format!("{value}\n"))
    }

    /// Makes an answer with an error of the API, which is a sentence in JSON.
    pub(super) fn error(status: u16, sentence: &str) -> Answer {
        Answer::json(status, &serde_json::json!({ "error": sentence }))
    }

    pub(super) fn file(name: String, body: Vec<u8>) -> Answer {
        Answer { status: 200, kind: "application/octet-stream", file_name: Some(name), body }
    }

    pub(super) fn write(&self, head: &RequestHead, out: &mut Vec<u8>) {
        let mut response = ResponseBuilder::new(out, self.status).field("Content-Type", self.kind).for_browsers();
        if self.status == 401 {
            response = response.field("WWW-Authenticate", "Bearer");
        }
        if let Some(name) = &self.file_name {
            response = response.field("Content-Disposition", &format!("attachment; filename=\"{name}\""));
        }
        match head.method() {
            Method::Head => response.number("Content-Length", self.body.len() as u64).end(),
            _ => response.body(&self.body),
        }
    }
}
