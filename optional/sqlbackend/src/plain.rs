//! Answers requests without SQL: whether the server is there, and that a path doesn't exist.

use windrow_gateway::sql_backend::{after, send, After, Request};
use windrow_http::{Connection, Method, ResponseBuilder};

const NO_HANDLE: &str =
    "\n\nUse / or /ping for health checks.\nOr /replicas_status for more sophisticated health checks.\n\n\
    Send queries from your program with POST method or GET /?query=...\n";

/// Says whether statements are taken under the request's path.
pub(super) fn takes_statements(request: &Request<'_>) -> bool {
    matches!(request.path, "/" | "/query")
}

/// Answers a request that has nothing to do with a statement. Returns `None` for all other requests.
pub(super) async fn answer_plainly(
    request: &Request<'_>,
    connection: &mut Connection,
    out: &mut Vec<u8>,
) -> Option<After> {
    let method = request.head.method();
    let known = matches!(method, Method::Get | Method::Head | Method::Post | Method::Options);
    let (status, text) = match request.path {
        _ if !known => (501, String::new()),
        _ if *method == Method::Options => (204, String::new()),
        "/ping" | "/replicas_status" => (200, "Ok.\n".to_owned()),
        _ if request.is_for_anyone() => (200, "Ok.\n".to_owned()),
        _ if takes_statements(request) => return None,
        path => (404, format!("There is no handle {path}{NO_HANDLE}")),
    };
    let after = match status {
        200 | 204 if connection.body_is_done() => after(request.head, connection),
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
