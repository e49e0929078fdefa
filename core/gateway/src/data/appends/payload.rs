//! The body of a batch.

use bytes::{Bytes, BytesMut};
use windrow_append::{AppendError, Payload};
use windrow_clickhouse::ErrorCode;
use windrow_compression::{decompress, DecompressError, Encoding};
use windrow_http::{Connection, RequestBody};

use super::call::Form;
use crate::data::request::Request;
use crate::error::Refusal;

/// Returns how the body is compressed, if it is.
pub(super) fn encoding(request: &Request<'_>) -> Result<Option<Encoding>, Refusal> {
    let declared = request.head.field_str("content-encoding").filter(|name| !name.is_empty() && *name != "identity");
    match (declared, request.flag("decompress")) {
        (None, false) => Ok(None),
        (None, true) => Ok(Some(Encoding::ClickHouse)),
        (Some(name), false) => {
            let known = Encoding::from_content_encoding(name);
            known.map(Some).ok_or_else(|| Refusal::bad_argument("This Content-Encoding is not known here"))
        }
        (Some(_), true) => Err(Refusal::bad_argument("Content-Encoding and decompress=1 are not given both")),
    }
}

/// Returns about how many bytes of memory a batch will take, before the batch is here.
pub(super) fn expected_bytes(announced: Option<u64>, encoding: Option<Encoding>) -> u64 {
    /// Number of bytes that is taken for bodies that don't announce their length.
    const USUAL_BYTES: u64 = 4 << 20;
    const USUAL_RATIO: u64 = 4;
    let announced = announced.unwrap_or(USUAL_BYTES);
    match encoding {
        None => announced,
        Some(_) => announced.saturating_mul(USUAL_RATIO),
    }
}

pub(super) enum Body {
    Whole(Bytes),
    TooLarge,
}

/// Reads a body. Fails if the client did not send what it announced: there is then nobody to answer.
pub(super) async fn read(connection: &mut Connection, max_bytes: u64) -> Result<Body, ()> {
    let (mut body, _) = connection.body().await.map_err(|_| ())?;
    let announced = body.announced_bytes();
    if announced > max_bytes {
        return Ok(Body::TooLarge);
    }
    // In one piece from the start: what was announced is believed, within the bound.
    let mut bytes = BytesMut::with_capacity(announced as usize);
    while let Some(more) = body.next().await.map_err(|_| ())? {
        if bytes.is_empty() && body.is_done() {
            return Ok(Body::Whole(more));
        }
        bytes.extend_from_slice(&more);
        if bytes.len() as u64 > max_bytes {
            return Ok(Body::TooLarge);
        }
    }
    Ok(Body::Whole(bytes.freeze()))
}

/// Reads the rest of a body that is not needed, so that the connection can go on.
pub(super) async fn skip(connection: &mut Connection, max_bytes: u64) {
    let Ok((mut body, _)) = connection.body().await else { return };
    let _ = skip_body(&mut body, max_bytes).await;
}

async fn skip_body(body: &mut RequestBody<'_>, max_bytes: u64) -> Option<()> {
    let mut skipped = 0;
    while skipped <= max_bytes {
        skipped += body.next().await.ok()??.len() as u64;
    }
    None
}

pub(super) fn unpacked(bytes: Bytes, encoding: Option<Encoding>, max_bytes: u64) -> Result<Bytes, AppendError> {
    const LARGE_BYTES: usize = 64 << 10;
    let Some(encoding) = encoding else { return Ok(bytes) };
    let unpack = || decompress(encoding, &bytes, usize::try_from(max_bytes).unwrap_or(usize::MAX)).map(Bytes::from);
    let unpacked = match bytes.len() > LARGE_BYTES {
        true => tokio::task::block_in_place(unpack),
        false => unpack(),
    };
    unpacked.map_err(|error| match error {
        DecompressError::TooLarge { .. } => AppendError::new(
            ErrorCode::QUERY_IS_TOO_LARGE,
            "The batch unpacks to more than append.max_batch_bytes allows: cut it smaller",
        ),
        other => AppendError::new(ErrorCode::INCORRECT_DATA, &format!("The batch can't be unpacked: {other}")),
    })
}

pub(super) fn payload(bytes: Bytes, form: Form) -> Payload {
    match form {
        Form::ArrowStream => Payload::ArrowStream(bytes),
        Form::Native => Payload::Native(bytes),
    }
}

pub(super) fn too_large(max_bytes: u64) -> AppendError {
    let text = format!("The batch is larger than {max_bytes} bytes (append.max_batch_bytes): cut it smaller");
    AppendError::new(ErrorCode::QUERY_IS_TOO_LARGE, &text)
}
