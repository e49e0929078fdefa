//! One blocking connection to the broker, in the classic spelling of the protocol.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::error::BenchError;

const CLIENT_ID: &str = "windrow-bench";
/// No question asked here takes the broker longer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Of answers that are lists of partitions or topics.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// What is asked, in a version that brokers from 2.4 to 4.1 know.
#[derive(Debug, Clone, Copy)]
pub struct Api {
    pub name: &'static str,
    pub key: i16,
    pub version: i16,
}

pub struct Wire {
    stream: TcpStream,
    next_id: i32,
}

impl Wire {
    pub fn connect(address: &str) -> Result<Self, BenchError> {
        let connecting = || BenchError::io(format!("connecting to the broker at {address}"));
        let stream = TcpStream::connect(address).map_err(connecting())?;
        stream.set_nodelay(true).map_err(connecting())?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT)).map_err(connecting())?;
        Ok(Wire { stream, next_id: 0 })
    }

    /// The same connection, for another thread.
    pub fn another(&self) -> Result<Self, BenchError> {
        let stream = self.stream.try_clone().map_err(BenchError::io("sharing a connection to the broker"))?;
        Ok(Wire { stream, next_id: 0 })
    }

    pub fn call(&mut self, api: Api, body: impl FnOnce(&mut Writer)) -> Result<Answer, BenchError> {
        self.send(api, body)?;
        self.receive()
    }

    pub fn send(&mut self, api: Api, body: impl FnOnce(&mut Writer)) -> Result<(), BenchError> {
        let mut writer = Writer::default();
        // The size, known at the end.
        writer.i32(0);
        writer.i16(api.key);
        writer.i16(api.version);
        writer.i32(self.next_id);
        self.next_id = self.next_id.wrapping_add(1);
        writer.string(CLIENT_ID);
        body(&mut writer);
        let mut frame = writer.bytes;
        let size = i32::try_from(frame.len() - 4).map_err(|_| malformed("a request is too long"))?;
        frame[..4].copy_from_slice(&size.to_be_bytes());
        self.stream.write_all(&frame).map_err(BenchError::io(format!("sending {} to the broker", api.name)))
    }

    /// The next answer. The broker gives them in the order of the requests.
    pub fn receive(&mut self) -> Result<Answer, BenchError> {
        let reading = || BenchError::io("reading the broker's answer");
        let mut size = [0; 4];
        self.stream.read_exact(&mut size).map_err(reading())?;
        let size = usize::try_from(i32::from_be_bytes(size)).unwrap_or(usize::MAX);
        if size > MAX_ANSWER_BYTES {
            return Err(malformed("the broker's answer is too long"));
        }
        let mut bytes = vec![0; size];
        self.stream.read_exact(&mut bytes).map_err(reading())?;
        let mut answer = Answer { bytes, at: 0 };
        let _correlation_id = answer.i32()?;
        Ok(answer)
    }
}

#[derive(Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub fn bool(&mut self, value: bool) {
        self.bytes.push(u8::from(value));
    }

    pub fn i16(&mut self, value: i16) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    pub fn i32(&mut self, value: i32) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    pub fn i64(&mut self, value: i64) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    /// Names here are short.
    pub fn string(&mut self, text: &str) {
        self.i16(text.len() as i16);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    pub fn null_string(&mut self) {
        self.i16(-1);
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.i32(bytes.len() as i32);
        self.bytes.extend_from_slice(bytes);
    }

    pub fn array<T>(&mut self, elements: impl ExactSizeIterator<Item = T>, mut element: impl FnMut(&mut Self, T)) {
        self.i32(elements.len() as i32);
        elements.for_each(|each| element(self, each));
    }
}

pub struct Answer {
    bytes: Vec<u8>,
    at: usize,
}

impl Answer {
    fn take(&mut self, count: usize) -> Result<&[u8], BenchError> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or_else(|| malformed("the broker's answer breaks off"))?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], BenchError> {
        let mut field = [0; N];
        field.copy_from_slice(self.take(N)?);
        Ok(field)
    }

    pub fn i16(&mut self) -> Result<i16, BenchError> {
        self.fixed().map(i16::from_be_bytes)
    }

    pub fn i32(&mut self) -> Result<i32, BenchError> {
        self.fixed().map(i32::from_be_bytes)
    }

    pub fn i64(&mut self) -> Result<i64, BenchError> {
        self.fixed().map(i64::from_be_bytes)
    }

    /// Null is empty.
    pub fn string(&mut self) -> Result<String, BenchError> {
        let length = usize::try_from(self.i16()?).unwrap_or(0);
        Ok(String::from_utf8_lossy(self.take(length)?).into_owned())
    }

    pub fn bytes(&mut self) -> Result<Vec<u8>, BenchError> {
        let length = usize::try_from(self.i32()?).unwrap_or(0);
        self.take(length).map(<[u8]>::to_vec)
    }

    /// Null is empty.
    pub fn array<T>(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<T, BenchError>,
    ) -> Result<Vec<T>, BenchError> {
        let count = self.i32()?.max(0);
        // Grows as its elements are read: the count is only claimed.
        (0..count).map(|_| element(self)).collect()
    }
}

fn malformed(what: &str) -> BenchError {
    BenchError::Unsound(what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_back_and_no_prefix_of_it_is() {
        let mut writer = Writer::default();
        writer.array(["a", "bc"].iter(), |writer, text| writer.string(text));
        writer.null_string();
        writer.i32(7);
        let read = |bytes: &[u8]| {
            let mut answer = Answer { bytes: bytes.to_vec(), at: 0 };
            let names = answer.array(Answer::string)?;
            Ok::<_, BenchError>((names, answer.string()?, answer.i32()?))
        };
        let bytes = writer.bytes;
        assert_eq!(read(&bytes).unwrap(), (vec!["a".to_owned(), "bc".to_owned()], String::new(), 7));
        for end in 0..bytes.len() {
            assert!(read(&bytes[..end]).is_err(), "{end} bytes");
        }
    }
}
