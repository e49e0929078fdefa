//! Answers to senders: all rows were accepted, some never will be, or the request was refused.
//!
//! Protobuf messages are written field by field: they have few fields, and senders read nothing else.

mod json;
mod protobuf;

use std::time::Duration;

use crate::kind::Signal;
use crate::request::Encoding;

/// Rows that can never be accepted. Their sender is told, and does not send them again. If there are none of
/// them, the message is a warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartialSuccess {
    pub rejected: usize,
    pub message: String,
}

/// A `google.rpc.Status`, as it stands in the body of a refusal over HTTP, and in `grpc-status-details-bin`
/// over gRPC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The status code of gRPC.
    pub code: i32,
    pub message: String,
    /// Time after which the request may be sent again: `RetryInfo`.
    pub retry_after: Option<Duration>,
    /// Description of what is wrong with the request itself: `BadRequest`.
    pub bad_request: Option<String>,
}

/// Returns the answer to a request that was accepted: an `Export…ServiceResponse`.
pub fn success(signal: Signal, encoding: Encoding, partial: Option<&PartialSuccess>) -> Vec<u8> {
    match encoding {
        Encoding::Protobuf => protobuf::success(partial),
        Encoding::Json => json::success(signal, partial),
    }
}

impl Status {
    pub fn encode(&self, encoding: Encoding) -> Vec<u8> {
        match encoding {
            Encoding::Protobuf => protobuf::status(self),
            Encoding::Json => json::status(self),
        }
    }
}

const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";
const BAD_REQUEST: &str = "type.googleapis.com/google.rpc.BadRequest";

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn success_is_empty() {
        assert_eq!(success(Signal::Logs, Encoding::Protobuf, None), b"");
        assert_eq!(text(success(Signal::Logs, Encoding::Json, None)), "{}");
    }

    #[test]
    fn rejected_rows_are_counted() {
        let partial = PartialSuccess { rejected: 300, message: "no".into() };
        let protobuf = success(Signal::Traces, Encoding::Protobuf, Some(&partial));
        assert_eq!(protobuf, [0x0A, 7, 0x08, 0xAC, 0x02, 0x12, 2, b'n', b'o']);
        let json = |signal| text(success(signal, Encoding::Json, Some(&partial)));
        assert_eq!(json(Signal::Logs), r#"{"partialSuccess":{"errorMessage":"no","rejectedLogRecords":"300"}}"#);
        assert_eq!(json(Signal::Traces), r#"{"partialSuccess":{"errorMessage":"no","rejectedSpans":"300"}}"#);
        assert_eq!(json(Signal::Metrics), r#"{"partialSuccess":{"errorMessage":"no","rejectedDataPoints":"300"}}"#);
    }

    #[test]
    fn a_status_says_when_to_come_again() {
        let retry_after = Some(Duration::from_millis(1500));
        let status = Status { code: 14, message: "later".into(), retry_after, bad_request: None };
        let duration = [0x08, 1, 0x10, 0x80, 0xCA, 0xB5, 0xEE, 0x01];
        let detail = [&[0x0A, 40][..], RETRY_INFO.as_bytes(), &[0x12, 10, 0x0A, 8], &duration].concat();
        let expected = [&[0x08, 14, 0x12, 5][..], b"later", &[0x1A, detail.len() as u8], &detail].concat();
        assert_eq!(status.encode(Encoding::Protobuf), expected);
        assert_eq!(
            text(status.encode(Encoding::Json)),
            r#"{"code":14,"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1.500s"}],"message":"later"}"#
        );
    }

    #[test]
    fn a_status_says_what_is_wrong() {
        let status = Status { code: 3, message: "m".into(), bad_request: Some("w".into()), ..Status::default() };
        let detail = [&[0x0A, 41][..], BAD_REQUEST.as_bytes(), &[0x12, 5, 0x0A, 3, 0x12, 1, b'w'][..]].concat();
        let expected = [&[0x08, 3, 0x12, 1, b'm', 0x1A, detail.len() as u8][..], &detail].concat();
        assert_eq!(status.encode(Encoding::Protobuf), expected);
        assert_eq!(
            text(status.encode(Encoding::Json)),
            r#"{"code":3,"details":[{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"description":"w"}]}],"message":"m"}"#
        );
    }
}
