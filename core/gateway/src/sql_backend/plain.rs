//! What is asked without SQL: is the server there, and paths that don't exist.

use windrow_http::{Connection, Method, ResponseBuilder};

use crate::data::{after, send, After, Exchange, Request};

const NO_HANDLE: &str =
    "\n\nUse / or /ping for health checks.\nOr /replicas_status for more sophisticated health checks.\n\n\
    Send queries from your program with POST method or GET /?query=...\n";

/// Whether a request is answered whoever sends it.
pub(crate) fn is_for_anyone(request: &Request<'_>) -> bool {
    matches!(request.path, "/ping" | "/replicas_status")
        || *request.head.method() == Method::Options
        || (request.path == "/" && !request.is_post() && request.query().is_empty())
}

/// The path under which statements are taken.
pub(super) fn takes_statements(request: &Request<'_>) -> bool {
    matches!(request.path, "/" | "/query")
}

impl Exchange<'_> {
    /// An answer that no statement has a part in, if the request wants one.
    pub(super) async fn answer_plainly(&self, connection: &mut Connection, out: &mut Vec<u8>) -> Option<After> {
        let method = self.request.head.method();
        let known = matches!(method, Method::Get | Method::Head | Method::Post | Method::Options);
        let (status, text) = match self.request.path {
            _ if !known => (501, String::new()),
            _ if *method == Method::Options => (204, String::new()),
            "/ping" | "/replicas_status" => (200, "Ok.\n".to_owned()),
            _ if is_for_anyone(&self.request) => (200, "Ok.\n".to_owned()),
            _ if takes_statements(&self.request) => return None,
            path => (404, format!("There is no handle {path}{NO_HANDLE}")),
        };
        let after = match status {
            200 | 204 if connection.body_is_done() => after(self.request.head, connection),
            _ => After::Close,
        };
        let response = ResponseBuilder::new(out, status).date();
        let response = response.field("Connection", if after == After::KeepAlive { "Keep-Alive" } else { "Close" });
        let response = response.field("Content-Type", "text/html; charset=UTF-8");
        match (method, status) {
            (Method::Head, _) | (_, 204) => response.end(),
            _ => response.body(text.as_bytes()),
        }
        Some(send(connection, out, after).await)
    }
}
