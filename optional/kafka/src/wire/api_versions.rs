//! ApiVersions: the APIs and versions that a broker understands. It is the first request on every connection.

use crate::error_code::KafkaErrorCode;
use crate::wire::reader::{Read, Reader};
use crate::wire::request::{Api, Decode, Request};
use crate::wire::writer::Writer;

#[derive(Debug)]
pub(crate) struct ApiVersionsRequest;

#[derive(Debug, Clone)]
pub(crate) struct ApiVersionsResponse {
    pub error: KafkaErrorCode,
    pub apis: Vec<ApiRange>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ApiRange {
    pub key: i16,
    pub min: i16,
    pub max: i16,
}

impl ApiVersionsResponse {
    /// Returns the newest version that both sides know and that is not newer than `newest`.
    pub(crate) fn common(&self, api: &Api, newest: i16) -> Option<i16> {
        let range = self.apis.iter().find(|range| range.key == api.key)?;
        let newest = range.max.min(newest);
        (newest >= range.min.max(api.versions.0)).then_some(newest)
    }
}

impl Request for ApiVersionsRequest {
    const API: Api = Api { name: "ApiVersions", key: 18, versions: (3, 3), flexible_from: 3 };
    type Response = ApiVersionsResponse;

    fn encode(&self, writer: &mut Writer, _version: i16) {
        writer.string("windrow");
        writer.string(env!("CARGO_PKG_VERSION"));
        writer.end_structure();
    }
}

impl Decode for ApiVersionsResponse {
    fn decode(reader: &mut Reader<'_>, _version: i16) -> Read<Self> {
        let error = KafkaErrorCode(reader.i16()?);
        if error == KafkaErrorCode::UNSUPPORTED_VERSION {
            // Then the rest is written as in version 0.
            reader.skip_rest();
            return Ok(Self { error, apis: Vec::new() });
        }
        let apis = reader.array(|reader| {
            let range = ApiRange { key: reader.i16()?, min: reader.i16()?, max: reader.i16()? };
            reader.end_structure()?;
            Ok(range)
        })?;
        let _throttle_time_ms = reader.i32()?;
        reader.end_structure()?;
        Ok(Self { error, apis })
    }
}
