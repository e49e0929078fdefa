//! FindCoordinator: which broker keeps a consumer group.

use crate::error_code::ErrorCode;
use crate::wire::metadata::BrokerAddress;
use crate::wire::reader::{Read, Reader};
use crate::wire::request::sealed::{Decode, Encode};
use crate::wire::request::{Api, Request, Response};
use crate::wire::writer::Writer;

#[derive(Debug)]
pub(crate) struct FindCoordinatorRequest {
    pub group: String,
}

#[derive(Debug)]
pub(crate) struct FindCoordinatorResponse {
    pub throttle_time_ms: i32,
    pub error: ErrorCode,
    pub error_message: Option<String>,
    /// Meaningless with an error.
    pub coordinator: BrokerAddress,
}

impl Request for FindCoordinatorRequest {
    const API: Api = Api { name: "FindCoordinator", key: 10, versions: (3, 3), flexible_from: 3 };
    type Response = FindCoordinatorResponse;
}

impl Encode for FindCoordinatorRequest {
    fn encode(&self, writer: &mut Writer, _version: i16) {
        let of_a_group = 0;
        writer.string(&self.group);
        writer.i8(of_a_group);
        writer.end_structure();
    }
}

impl Response for FindCoordinatorResponse {
    fn throttle_time_ms(&self) -> i32 {
        self.throttle_time_ms
    }
}

impl Decode for FindCoordinatorResponse {
    fn decode(reader: &mut Reader<'_>, _version: i16) -> Read<Self> {
        let throttle_time_ms = reader.i32()?;
        let error = ErrorCode(reader.i16()?);
        let error_message = reader.nullable_string()?;
        let node_id = reader.i32()?;
        let host = reader.string()?;
        // -1 with an error.
        let port = if error.is_error() { reader.i32().map(|_| 0)? } else { reader.port()? };
        reader.end_structure()?;
        Ok(Self { throttle_time_ms, error, error_message, coordinator: BrokerAddress { node_id, host, port } })
    }
}
