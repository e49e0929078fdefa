//! FindCoordinator: the broker that coordinates a consumer group.

use crate::error_code::KafkaErrorCode;
use crate::wire::metadata::BrokerAddress;
use crate::wire::reader::{Read, Reader};
use crate::wire::request::{Api, Decode, Request};
use crate::wire::writer::Writer;

#[derive(Debug)]
pub(crate) struct FindCoordinatorRequest {
    pub group: String,
}

#[derive(Debug)]
pub(crate) struct FindCoordinatorResponse {
    pub error: KafkaErrorCode,
    pub error_message: Option<String>,
    /// Address of the broker, meaningless with an error.
    pub coordinator: BrokerAddress,
}

impl Request for FindCoordinatorRequest {
    const API: Api = Api { name: "FindCoordinator", key: 10, versions: (3, 3), flexible_from: 3 };
    type Response = FindCoordinatorResponse;

    fn encode(&self, writer: &mut Writer, _version: i16) {
        let of_a_group = 0;
        writer.string(&self.group);
        writer.i8(of_a_group);
        writer.end_structure();
    }
}

impl Decode for FindCoordinatorResponse {
    fn decode(reader: &mut Reader<'_>, _version: i16) -> Read<Self> {
        let error = KafkaErrorCode(reader.i16()?);
        let error_message = reader.nullable_string()?;
        let node_id = reader.i32()?;
        let host = reader.string()?;
        // -1 with an error.
        let port = if error.is_error() { reader.i32().map(|_| 0)? } else { reader.port()? };
        reader.end_structure()?;
        Ok(Self { error, error_message, coordinator: BrokerAddress { node_id, host, port } })
    }
}
