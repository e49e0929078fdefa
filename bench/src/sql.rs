//! Statements around a run: tables made, rows counted, parts looked at. One blocking connection per statement.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::error::BenchError;
use crate::wire::{parse_head, BodyDecoder, Endpoint, Head, WireError};

const READ_BUFFER_BYTES: usize = 256 << 10;
/// No statement of a benchmark takes longer on a healthy server.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// What query() keeps of an answer; counts and small tables are far below.
const MAX_ANSWER_BYTES: usize = 16 << 20;
const MAX_ERROR_BYTES: usize = 4 << 10;

#[derive(Debug, Clone)]
pub struct Sql {
    endpoint: Endpoint,
}

impl Sql {
    pub fn new(endpoint: Endpoint) -> Self {
        Sql { endpoint }
    }

    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The answer's text. Any status but 200 is an error.
    pub fn query(&self, sql: &str) -> Result<String, BenchError> {
        self.post("", sql.as_bytes())
    }

    pub fn execute(&self, sql: &str) -> Result<(), BenchError> {
        self.query(sql).map(drop)
    }

    pub fn number(&self, sql: &str) -> Result<u64, BenchError> {
        let text = self.query(sql)?;
        let wrong = |_| BenchError::Setup(format!("{sql}: expected a number, got {text:?}"));
        text.trim().parse().map_err(wrong)
    }

    /// With the query in the URL and `body` as its data.
    pub fn post(&self, url_query: &str, body: &[u8]) -> Result<String, BenchError> {
        let mut text = Vec::new();
        self.stream(url_query, body, |data| {
            let room = MAX_ANSWER_BYTES - text.len();
            text.extend_from_slice(&data[..data.len().min(room)]);
        })?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Hands the answer on as it comes. An answer that breaks off is an error.
    pub fn stream(&self, url_query: &str, body: &[u8], mut data: impl FnMut(&[u8])) -> Result<(), BenchError> {
        let mut connection = Connection::open(&self.endpoint)?;
        connection.send(&self.endpoint, url_query, body)?;
        let head = connection.read_head()?;
        if head.status == 200 {
            return connection.read_body(head, &mut data);
        }
        let mut text = Vec::new();
        connection.read_body(head, &mut |data: &[u8]| {
            let room = MAX_ERROR_BYTES - text.len();
            text.extend_from_slice(&data[..data.len().min(room)]);
        })?;
        let what = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
        Err(BenchError::Refused { what, status: head.status, text: String::from_utf8_lossy(&text).into_owned() })
    }
}

struct Connection {
    stream: TcpStream,
    input: Vec<u8>,
    filled: usize,
}

impl Connection {
    fn open(endpoint: &Endpoint) -> Result<Self, BenchError> {
        let connecting = || BenchError::io(format!("connecting to {}", endpoint.address));
        let stream = TcpStream::connect(&endpoint.address).map_err(connecting())?;
        stream.set_nodelay(true).map_err(connecting())?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT)).map_err(connecting())?;
        Ok(Connection { stream, input: vec![0; READ_BUFFER_BYTES], filled: 0 })
    }

    fn send(&mut self, endpoint: &Endpoint, url_query: &str, body: &[u8]) -> Result<(), BenchError> {
        let head = format!("{}{}\r\nConnection: close\r\n\r\n", endpoint.request_prefix(url_query), body.len());
        self.stream.write_all(head.as_bytes()).map_err(BenchError::io("sending a statement"))?;
        self.stream.write_all(body).map_err(BenchError::io("sending a statement"))
    }

    fn read_head(&mut self) -> Result<Head, BenchError> {
        loop {
            let read = self.read_more()?;
            if read == 0 {
                return Err(WireError::Truncated.into());
            }
            if let Some(head) = parse_head(&self.input[..self.filled])? {
                return Ok(head);
            }
        }
    }

    /// parse_head() refuses a head before the buffer is full, so there is always room.
    fn read_more(&mut self) -> Result<usize, BenchError> {
        let read = self.stream.read(&mut self.input[self.filled..]).map_err(BenchError::io("reading an answer"))?;
        self.filled += read;
        Ok(read)
    }

    fn read_body(&mut self, head: Head, data: &mut impl FnMut(&[u8])) -> Result<(), BenchError> {
        let mut decoder = BodyDecoder::new(head.framing);
        decoder.feed(&self.input[head.head_bytes..self.filled], &mut *data)?;
        while !decoder.is_complete() {
            self.filled = 0;
            let read = self.read_more()?;
            if read == 0 && decoder.may_end_here() {
                break;
            }
            if read == 0 {
                return Err(WireError::Truncated.into());
            }
            decoder.feed(&self.input[..read], &mut *data)?;
        }
        Ok(())
    }
}
