//! One connection's request and answer, over and over, in two buffers that are never given back.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::error::BenchError;
use crate::wire::{parse_head, BodyDecoder, Endpoint, Head, WireError};

const READ_BUFFER_BYTES: usize = 16 << 10;
/// An error's text is kept up to here; the rest is read and dropped.
const MAX_KEPT_BYTES: usize = 4 << 10;

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// The text of an answer other than 200.
    pub error: Option<String>,
    pub keep_alive: bool,
}

pub struct Exchange {
    address: String,
    prefix: Vec<u8>,
    stream: Option<TcpStream>,
    request: Vec<u8>,
    input: Vec<u8>,
}

impl Exchange {
    pub fn new(target: &Endpoint, query: &str) -> Self {
        Exchange {
            address: target.address.clone(),
            prefix: target.request_prefix(query).into_bytes(),
            stream: None,
            request: Vec::with_capacity(1024),
            input: vec![0; READ_BUFFER_BYTES],
        }
    }

    /// Another connection to the same server, not yet made.
    pub fn another(&self) -> Self {
        Exchange {
            address: self.address.clone(),
            prefix: self.prefix.clone(),
            stream: None,
            request: Vec::new(),
            input: vec![0; READ_BUFFER_BYTES],
        }
    }

    pub async fn connect(&mut self) -> Result<(), BenchError> {
        let failed = |source| BenchError::Io { what: format!("connecting to {}", self.address), source };
        let stream = TcpStream::connect(&self.address).await.map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        self.stream = Some(stream);
        Ok(())
    }

    /// Sends one body and waits for its whole answer. After an error the connection is gone and the next call makes a
    /// new one: whether the insert was stored is then unknown.
    pub async fn post(&mut self, body: &[u8]) -> Result<Answer, BenchError> {
        write_request(&mut self.request, &self.prefix, body);
        self.send().await
    }

    /// The same with another head than the usual one: everything up to the value of Content-Length.
    pub async fn post_to(&mut self, prefix: &[u8], body: &[u8]) -> Result<Answer, BenchError> {
        write_request(&mut self.request, prefix, body);
        self.send().await
    }

    async fn send(&mut self) -> Result<Answer, BenchError> {
        if self.stream.is_none() {
            self.connect().await?;
        }
        let answer = self.round_trip().await;
        if !matches!(&answer, Ok(Answer { keep_alive: true, .. })) {
            self.stream = None;
        }
        answer
    }

    async fn round_trip(&mut self) -> Result<Answer, BenchError> {
        let stream = self.stream.as_mut().ok_or_else(|| BenchError::Setup("not connected".into()))?;
        let failed = |source: io::Error| BenchError::Io { what: "talking to the server".into(), source };
        stream.write_all(&self.request).await.map_err(failed)?;
        let mut filled = 0;
        loop {
            if filled == self.input.len() {
                self.input.resize(self.input.len() * 2, 0);
            }
            let read = stream.read(&mut self.input[filled..]).await.map_err(failed)?;
            if read == 0 {
                return Err(WireError::Truncated.into());
            }
            filled += read;
            if let Some(head) = parse_head(&self.input[..filled])? {
                return read_body(stream, &mut self.input, filled, head).await;
            }
        }
    }
}

fn write_request(request: &mut Vec<u8>, prefix: &[u8], body: &[u8]) {
    use std::io::Write;
    request.clear();
    request.extend_from_slice(prefix);
    // Writing into a Vec can't fail.
    let _ = write!(request, "{}\r\n\r\n", body.len());
    request.extend_from_slice(body);
}

async fn read_body(stream: &mut TcpStream, input: &mut [u8], filled: usize, head: Head) -> Result<Answer, BenchError> {
    let mut decoder = BodyDecoder::new(head.framing);
    let mut kept = Vec::new();
    let mut keep = |data: &[u8]| {
        if head.status != 200 {
            let room = MAX_KEPT_BYTES - kept.len();
            kept.extend_from_slice(&data[..data.len().min(room)]);
        }
    };
    decoder.feed(&input[head.head_bytes..filled], &mut keep)?;
    while !decoder.is_complete() {
        let read = stream.read(input).await.map_err(BenchError::io("reading an answer"))?;
        if read == 0 && decoder.may_end_here() {
            break;
        }
        if read == 0 {
            return Err(WireError::Truncated.into());
        }
        decoder.feed(&input[..read], &mut keep)?;
    }
    let error = (head.status != 200).then(|| String::from_utf8_lossy(&kept).into_owned());
    Ok(Answer { status: head.status, error, keep_alive: head.keep_alive })
}
