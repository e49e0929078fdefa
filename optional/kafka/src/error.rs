//! Errors between this client and a broker, in words that say what to do.

use std::fmt;

use windrow_clickhouse::ErrorCode;

use crate::error_code::KafkaErrorCode;
use crate::wire::Malformed;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// Settings can't be used.
    Options(String),
    /// The connection can't be made, or it broke: `doing` says during what.
    Network { broker: String, doing: String, reason: String },
    /// The broker did not answer in time.
    Timeout { broker: String, doing: String, after_ms: u64 },
    /// The broker rejects our credentials.
    Authentication { broker: String, reason: String },
    /// The broker refused a request.
    Refused { doing: String, code: KafkaErrorCode, reason: Option<String> },
    /// The broker is too old or too new, or no Kafka broker at all.
    Unsupported { broker: String, what: String },
    /// An answer can't be read.
    Malformed { broker: String, api: &'static str, what: Malformed },
    /// A task of the consumer has panicked.
    Panicked(String),
}

impl Error {
    /// Returns ClickHouse's code for the error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Options(_) => ErrorCode::BAD_ARGUMENTS,
            Self::Network { .. } => ErrorCode::NETWORK_ERROR,
            Self::Timeout { .. } => ErrorCode::SOCKET_TIMEOUT,
            Self::Authentication { .. } => ErrorCode::AUTHENTICATION_FAILED,
            Self::Refused { code, .. } if code.is_authorization() => ErrorCode::ACCESS_DENIED,
            Self::Refused { .. } => ErrorCode::STD_EXCEPTION,
            Self::Unsupported { .. } => ErrorCode::NOT_IMPLEMENTED,
            Self::Malformed { .. } => ErrorCode::INCORRECT_DATA,
            Self::Panicked(_) => ErrorCode::LOGICAL_ERROR,
        }
    }

    /// Says whether the same request may succeed later, without anyone changing anything.
    pub fn is_retriable(&self) -> bool {
        match self {
            Self::Network { .. } | Self::Timeout { .. } | Self::Malformed { .. } => true,
            Self::Refused { code, .. } => code.is_retriable(),
            Self::Options(_) | Self::Authentication { .. } | Self::Unsupported { .. } | Self::Panicked(_) => false,
        }
    }

    /// Returns Kafka's code, if a broker gave one.
    pub fn kafka_code(&self) -> Option<KafkaErrorCode> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Options(what) => write!(f, "{what}.")?,
            Self::Network { broker, doing, reason } => write!(f, "Kafka broker {broker}: {doing}: {reason}.")?,
            Self::Timeout { broker, doing, after_ms } => {
                write!(f, "Kafka broker {broker}: {doing}: no answer within {after_ms} ms.")?;
            }
            Self::Authentication { broker, reason } => {
                write!(f, "Kafka broker {broker}: Authentication failed: {reason}.")?;
            }
            Self::Refused { doing, code, reason: None } => write!(f, "Kafka: {doing}: {code}.")?,
            Self::Refused { doing, code, reason: Some(reason) } => write!(f, "Kafka: {doing}: {code}: {reason}.")?,
            Self::Unsupported { broker, what } => write!(f, "Kafka broker {broker}: {what}.")?,
            Self::Malformed { broker, api, what } => {
                write!(f, "Kafka broker {broker}: the answer to {api} can't be read: {what}.")?;
            }
            Self::Panicked(what) => write!(f, "Kafka: the consumer has failed inside: {what}.")?,
        }
        write!(f, " ({})", self.code().name().unwrap_or_default())
    }
}

impl std::error::Error for Error {}
