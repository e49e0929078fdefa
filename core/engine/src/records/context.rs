//! The part of records that many inserts share: their destination, their sender, and the statement they came
//! with. No password is ever in it.

use std::sync::Arc;

use crate::sink::{Destination, Form, Partitioning, ShardTable};
use windrow_clickhouse::Credentials;
use windrow_columns::{DataType, PartitionKey, PassthroughFormat};

use super::bytes::{error, Bytes, RecordError, Writer};

const VERSION: u8 = 1;
/// Version with the shard that the rows were cut for behind everything else.
const OF_A_SHARD: u8 = 2;
const NATIVE: u8 = 0;
const TEXT: u8 = 1;

/// A destination and a statement that are to be written to a record.
#[derive(Clone, Copy, Debug)]
pub struct ContextRecord<'a> {
    pub destination: &'a Destination,
    /// The statement without its data.
    pub query: &'a str,
    pub format: &'a str,
}

/// A context that was read back. The credentials have no password, so the destination has
/// [`Destination::own_account`] set.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedContext {
    pub destination: Destination,
    pub query: String,
    pub format: String,
    /// Types of the columns as the values in records have them: without dictionaries.
    pub(super) layout: Vec<DataType>,
}

pub fn encode_context(context: &ContextRecord<'_>) -> Vec<u8> {
    let destination = context.destination;
    let mut out = Writer::default();
    out.u8(if destination.shard.is_some() { OF_A_SHARD } else { VERSION });
    out.bytes(destination.database.as_bytes());
    out.bytes(destination.table.as_bytes());
    out.list(destination.columns.iter().map(String::as_str));
    encode_form(&destination.form, &mut out);
    out.bytes(destination.credentials.user.as_bytes());
    out.list(destination.roles.iter().map(String::as_str));
    out.bytes(destination.quota_key.as_bytes());
    out.u32(destination.settings.len() as u32);
    for (name, value) in &destination.settings {
        out.bytes(name.as_bytes());
        out.bytes(value.as_bytes());
    }
    // Versions before replicas knew of no second bit: what they wrote is of one server.
    out.u8(u8::from(destination.deduplicates) | u8::from(destination.is_replicated) << 1);
    for flag in [destination.has_views, destination.hands_on] {
        out.u8(u8::from(flag));
    }
    encode_partitioning(destination.partitioning.as_ref(), &mut out);
    out.bytes(context.query.as_bytes());
    out.bytes(context.format.as_bytes());
    if let Some(shard) = &destination.shard {
        encode_shard(shard, &mut out);
    }
    out.0
}

fn encode_shard(shard: &ShardTable, out: &mut Writer) {
    out.u32(shard.number);
    out.u64(shard.topology);
    out.list(shard.replicas.iter().map(String::as_str));
    out.bytes(shard.database.as_bytes());
    out.bytes(shard.table.as_bytes());
}

fn decode_shard(bytes: &mut Bytes<'_>) -> Result<ShardTable, RecordError> {
    Ok(ShardTable {
        number: bytes.u32()?,
        topology: bytes.u64()?,
        replicas: bytes.texts()?,
        database: bytes.text()?.to_owned(),
        table: bytes.text()?.to_owned(),
    })
}

fn encode_form(form: &Form, out: &mut Writer) {
    match form {
        Form::Native { types } => {
            let names: Vec<String> = types.iter().map(DataType::to_string).collect();
            out.u8(NATIVE);
            out.list(names.iter().map(String::as_str));
        }
        Form::Text { format, header } => {
            out.u8(TEXT);
            out.bytes(format.as_bytes());
            out.bytes(header);
        }
    }
}

fn encode_partitioning(partitioning: Option<&Partitioning>, out: &mut Writer) {
    out.u8(u8::from(partitioning.is_some()));
    let Some(partitioning) = partitioning else { return };
    out.u8(u8::from(partitioning.key.is_some()));
    if let Some(key) = &partitioning.key {
        out.bytes(key.expression().as_bytes());
        out.bytes(key.server_timezone().as_bytes());
    }
    out.optional_u64(partitioning.max_per_insert);
}

/// Reads the context of a record back.
///
/// # Errors
/// Fails where the bytes end too early or too late, or the version, the format, or a type is not known.
pub fn decode_context(bytes: &[u8]) -> Result<RecordedContext, RecordError> {
    let mut bytes = Bytes(bytes);
    let version = bytes.u8()?;
    if version != VERSION && version != OF_A_SHARD {
        return error(format!("a destination of version {version}, and this Windrow knows versions 1 and 2"));
    }
    // One byte for two answers: see `encode_context`.
    let bits;
    let mut destination = Destination {
        database: bytes.text()?.to_owned(),
        table: bytes.text()?.to_owned(),
        columns: bytes.texts()?,
        form: decode_form(&mut bytes)?,
        credentials: Credentials { user: bytes.text()?.to_owned(), password: String::new() },
        own_account: true,
        roles: bytes.texts()?,
        quota_key: bytes.text()?.to_owned(),
        settings: bytes.list(8, |bytes| Ok((bytes.text()?.to_owned(), bytes.text()?.to_owned())))?,
        deduplicates: {
            bits = bytes.u8()?;
            bits & 1 != 0
        },
        is_replicated: bits & 2 != 0,
        has_views: bytes.bool()?,
        hands_on: bytes.bool()?,
        partitioning: decode_partitioning(&mut bytes)?,
        shard: None,
    };
    if bits > 3 {
        return error(format!("{bits} has more than two bits"));
    }
    let (query, format) = (bytes.text()?.to_owned(), bytes.text()?.to_owned());
    if version == OF_A_SHARD {
        destination.shard = Some(Arc::new(decode_shard(&mut bytes)?));
    }
    bytes.end()?;
    let layout = layout(&destination)?;
    Ok(RecordedContext { destination, query, format, layout })
}

fn decode_form(bytes: &mut Bytes<'_>) -> Result<Form, RecordError> {
    match bytes.u8()? {
        NATIVE => {
            let types = bytes.list(4, |bytes| parse_type(bytes.text()?))?;
            Ok(Form::Native { types })
        }
        TEXT => {
            let name = bytes.text()?;
            let Some(format) = PassthroughFormat::name_of_rows(name) else {
                return error(format!("unknown format {name}"));
            };
            Ok(Form::Text { format, header: bytes.bytes()?.to_vec() })
        }
        other => error(format!("unknown form of rows {other}")),
    }
}

fn parse_type(text: &str) -> Result<DataType, RecordError> {
    DataType::parse(text).map_err(|error| RecordError(format!("type {text}: {error}")))
}

fn decode_partitioning(bytes: &mut Bytes<'_>) -> Result<Option<Partitioning>, RecordError> {
    if !bytes.bool()? {
        return Ok(None);
    }
    let key = match bytes.bool()? {
        // A key that is not understood any more costs an attempt at most.
        true => PartitionKey::parse(bytes.text()?, bytes.text()?),
        false => None,
    };
    Ok(Some(Partitioning { key, max_per_insert: bytes.optional_u64()? }))
}

fn layout(destination: &Destination) -> Result<Vec<DataType>, RecordError> {
    let Form::Native { types } = &destination.form else { return Ok(Vec::new()) };
    if types.len() != destination.columns.len() {
        return error("as many types as columns were expected");
    }
    types.iter().map(|data_type| parse_type(&data_type.native_name())).collect()
}
