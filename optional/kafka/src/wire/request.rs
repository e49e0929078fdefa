//! A request and its answer: the properties of an API, and the heads of the messages.

use bytes::Bytes;

use crate::wire::malformed::Malformed;
use crate::wire::reader::{Read, Reader};
use crate::wire::writer::Writer;

/// A kind of request that a client may send to a broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Api {
    pub name: &'static str,
    pub(crate) key: i16,
    /// The oldest and the newest version that are written and read here. Brokers from 2.4 to 4.1 share one
    /// with each API.
    pub(crate) versions: (i16, i16),
    /// The first version that is flexible.
    pub(crate) flexible_from: i16,
}

impl Api {
    pub(crate) fn is_flexible(&self, version: i16) -> bool {
        version >= self.flexible_from
    }
}

/// A request that can be sent over a [`Connection`](crate::Connection).
pub trait Request {
    const API: Api;
    type Response: Decode;

    fn encode(&self, writer: &mut Writer, version: i16);

    /// Returns the newest version in which this request can be written.
    fn newest_version(&self) -> i16 {
        Self::API.versions.1
    }

    /// Returns the time for which the broker may let the request wait before it answers.
    fn wait_ms(&self) -> u64 {
        0
    }
}

pub trait Decode: Sized {
    fn decode(reader: &mut Reader<'_>, version: i16) -> Read<Self>;
}

/// The contents of an answer.
#[derive(Debug)]
pub struct Answer<T> {
    /// Time for which the broker asks not to get requests.
    pub throttle_time_ms: i32,
    pub response: T,
}

/// Key of ApiVersions, whose answer has the classic head in every version, since its reader can't know better.
const API_VERSIONS_KEY: i16 = 18;
/// Keys of answers that do not begin with a throttle time. SaslHandshake and SaslAuthenticate have none, and
/// ApiVersions has it at its end, where it is ignored: no request came before. All other answers begin with it.
const WITHOUT_THROTTLE: [i16; 3] = [17, API_VERSIONS_KEY, 36];

/// Writes the request with its size and head, as it goes over the wire.
pub(crate) fn encode<R: Request>(request: &R, version: i16, correlation_id: i32, client_id: &str) -> Vec<u8> {
    let flexible = R::API.is_flexible(version);
    let mut writer = Writer::new(false);
    // The size, known at the end.
    writer.i32(0);
    writer.i16(R::API.key);
    writer.i16(version);
    writer.i32(correlation_id);
    writer.nullable_string(Some(client_id));
    writer.set_flexible(flexible);
    writer.end_structure();
    request.encode(&mut writer, version);
    let mut bytes = writer.into_bytes();
    let size = i32::try_from(bytes.len() - 4).unwrap_or(i32::MAX);
    bytes[..4].copy_from_slice(&size.to_be_bytes());
    bytes
}

/// Reads the number of the request that an answer (without its size) belongs to.
pub(crate) fn correlation_id(frame: &[u8]) -> Option<i32> {
    frame.first_chunk().map(|bytes| i32::from_be_bytes(*bytes))
}

/// Reads the answer (without its size) to a request that was sent in this version.
pub fn decode<R: Request>(frame: &Bytes, version: i16) -> Read<Answer<R::Response>> {
    let flexible = R::API.is_flexible(version);
    let mut reader = Reader::new(frame, flexible && R::API.key != API_VERSIONS_KEY);
    let _correlation_id = reader.i32()?;
    reader.end_structure()?;
    reader.set_flexible(flexible);
    let throttle_time_ms = if WITHOUT_THROTTLE.contains(&R::API.key) { 0 } else { reader.i32()? };
    let response = R::Response::decode(&mut reader, version)?;
    match reader.is_empty() {
        true => Ok(Answer { throttle_time_ms, response }),
        false => Err(Malformed("there are bytes behind its end")),
    }
}
