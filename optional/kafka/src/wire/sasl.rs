//! SaslHandshake and SaslAuthenticate: the client's authentication, before all other requests but ApiVersions.

use std::fmt;

use crate::error_code::KafkaErrorCode;
use crate::wire::reader::{Read, Reader};
use crate::wire::request::{Api, Decode, Request};
use crate::wire::writer::Writer;

#[derive(Debug)]
pub(crate) struct SaslHandshakeRequest {
    pub mechanism: &'static str,
}

#[derive(Debug)]
pub(crate) struct SaslHandshakeResponse {
    pub error: KafkaErrorCode,
    /// Mechanisms that the broker offers.
    pub mechanisms: Vec<String>,
}

impl Request for SaslHandshakeRequest {
    const API: Api = Api { name: "SaslHandshake", key: 17, versions: (1, 1), flexible_from: i16::MAX };
    type Response = SaslHandshakeResponse;

    fn encode(&self, writer: &mut Writer, _version: i16) {
        writer.string(self.mechanism);
    }
}

impl Decode for SaslHandshakeResponse {
    fn decode(reader: &mut Reader<'_>, _version: i16) -> Read<Self> {
        Ok(Self { error: KafkaErrorCode(reader.i16()?), mechanisms: reader.array(Reader::string)? })
    }
}

pub(crate) struct SaslAuthenticateRequest {
    pub message: Vec<u8>,
}

/// Shows only the name of the type, since the message may be a password.
impl fmt::Debug for SaslAuthenticateRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SaslAuthenticateRequest")
    }
}

#[derive(Debug)]
pub(crate) struct SaslAuthenticateResponse {
    pub error: KafkaErrorCode,
    pub error_message: Option<String>,
    pub message: Vec<u8>,
    /// Time after which the broker closes the connection, or 0 for never.
    pub session_lifetime_ms: i64,
}

impl Request for SaslAuthenticateRequest {
    const API: Api = Api { name: "SaslAuthenticate", key: 36, versions: (1, 1), flexible_from: 2 };
    type Response = SaslAuthenticateResponse;

    fn encode(&self, writer: &mut Writer, _version: i16) {
        writer.bytes(&self.message);
    }
}

impl Decode for SaslAuthenticateResponse {
    fn decode(reader: &mut Reader<'_>, _version: i16) -> Read<Self> {
        Ok(Self {
            error: KafkaErrorCode(reader.i16()?),
            error_message: reader.nullable_string()?,
            message: reader.owned_bytes()?,
            session_lifetime_ms: reader.i64()?,
        })
    }
}
