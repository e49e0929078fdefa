//! One HTTP query to the engine, as the user with all rights. A dozen lines replace a client, because nothing
//! here has to be fast or large.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::Endpoint;

const MAX_ANSWER_BYTES: u64 = 64 * 1024;

/// Returns the answer's body. An answer other than 200 is an error with ClickHouse's text.
pub(super) async fn ask(endpoint: &Endpoint, statement: &str, limit: Duration) -> io::Result<String> {
    timeout(limit, exchange(endpoint, statement)).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

async fn exchange(endpoint: &Endpoint, statement: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect((endpoint.host.as_str(), endpoint.http_port)).await?;
    let request = format!(
        "POST / HTTP/1.0\r\nHost: {}\r\nX-ClickHouse-User: {}\r\nX-ClickHouse-Key: {}\r\nContent-Length: {}\r\n\r\n{statement}",
        endpoint.host,
        endpoint.user,
        endpoint.password,
        statement.len(),
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(MAX_ANSWER_BYTES).read_to_end(&mut answer).await?;
    body_of(&answer)
}

/// Returns the body of a complete answer. In HTTP/1.0 the body ends with the connection and is in no encoding.
fn body_of(answer: &[u8]) -> io::Result<String> {
    let text = String::from_utf8_lossy(answer);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the answer ended in its head"));
    };
    match head.split(' ').nth(1) {
        Some("200") => Ok(body.trim_end().to_owned()),
        _ => Err(io::Error::other(body.trim_end().to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_200_is_an_answer() {
        let whole = b"HTTP/1.0 200 OK\r\nA: b\r\n\r\n26.7\n";
        assert_eq!(body_of(whole).expect("a body"), "26.7");
        let head_bytes = whole.len() - "26.7\n".len();
        for end in 0..head_bytes {
            body_of(&whole[..end]).expect_err("a head cut short");
        }
        let refused = body_of(b"HTTP/1.0 403 Forbidden\r\n\r\nCode: 516").expect_err("refused");
        assert_eq!(refused.to_string(), "Code: 516");
        body_of(b"\xff\xfe\r\n\r\n").expect_err("not HTTP");
    }
}
