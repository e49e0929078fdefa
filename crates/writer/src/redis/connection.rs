//! One connection to Redis: opened, logged in, and spoken to in pipelines. An error ends it; the caller opens the next.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use super::address::RedisAddress;
use super::resp::{self, Progress, Reply};

const READ_BYTES: usize = 64 * 1024;

/// Why a conversation with Redis ended.
#[derive(Debug)]
pub(super) enum ConnectionError {
    Io(io::Error),
    /// Not Redis, or not the database that was named.
    Refused(String),
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(formatter, "{error}"),
            Self::Refused(text) => write!(formatter, "{text}"),
        }
    }
}

impl From<io::Error> for ConnectionError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

pub(super) struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
    answer_limit: Duration,
}

impl Connection {
    pub(super) fn open(address: &RedisAddress) -> Result<Self, ConnectionError> {
        let stream = connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(address.answer_limit))?;
        let mut connection = Self { stream, received: Vec::new(), answer_limit: address.answer_limit };
        connection.log_in(address)?;
        Ok(connection)
    }

    fn log_in(&mut self, address: &RedisAddress) -> Result<(), ConnectionError> {
        let mut out = Vec::new();
        let mut commands = 0;
        if let Some(password) = &address.password {
            match &address.user {
                Some(user) => resp::write_command(&mut out, &[b"AUTH", user.as_bytes(), password.as_bytes()]),
                None => resp::write_command(&mut out, &[b"AUTH", password.as_bytes()]),
            }
            commands += 1;
        }
        let database = address.database.to_string();
        resp::write_command(&mut out, &[b"SELECT", database.as_bytes()]);
        for reply in self.exchange(&out, commands + 1)? {
            if let Reply::Error(text) = reply {
                return Err(ConnectionError::Refused(text));
            }
        }
        Ok(())
    }

    /// Sends a pipeline and reads its replies, `count` of them.
    pub(super) fn exchange(&mut self, commands: &[u8], count: usize) -> Result<Vec<Reply>, ConnectionError> {
        self.stream.write_all(commands)?;
        let mut replies = Vec::with_capacity(count);
        let mut start = 0;
        while replies.len() < count {
            match resp::parse(&self.received[start..]).map_err(|garbled| ConnectionError::Refused(garbled.0.into()))? {
                Progress::Whole(parsed) => {
                    start += parsed.end;
                    replies.push(parsed.reply);
                }
                Progress::Needs(bytes) => {
                    self.received.drain(..start);
                    start = 0;
                    self.receive(bytes)?;
                }
            }
        }
        self.received.drain(..start);
        Ok(replies)
    }

    /// Reads until `wanted` bytes are there. The limit is on silence: a large answer may take its time.
    fn receive(&mut self, wanted: usize) -> io::Result<()> {
        self.stream.set_read_timeout(Some(self.answer_limit))?;
        while self.received.len() < wanted {
            let before = self.received.len();
            self.received.resize(before + READ_BYTES, 0);
            let outcome = self.stream.read(&mut self.received[before..]);
            self.received.truncate(before + *outcome.as_ref().unwrap_or(&0));
            match outcome {
                Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "Redis closed the connection")),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "Redis does not answer"))
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn connect(address: &RedisAddress) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, format!("{} has no address", address.host));
    for place in (address.host.as_str(), address.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&place, address.answer_limit) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}
