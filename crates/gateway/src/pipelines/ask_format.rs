//! A payload read by ClickHouse: it goes there as a table beside a SELECT, and comes back as Native.

use std::time::Duration;

use windrow_block::{decode_native, Block, ColumnSpec, DataType, NativeBlock, NativeLimits};
use windrow_client::{Call, CallError, Client, Exception};
use windrow_pipeline::{AskError, FormatQuestion};
use windrow_statement::backquote;

use super::own_account;
use crate::multipart::Multipart;

const TIMEOUT: Duration = Duration::from_secs(30);
const CANNOT_PARSE: i32 = 6;
/// What a message's rows may become, however few its bytes are.
const LIMITS: NativeLimits =
    NativeLimits { max_columns: 10_000, max_rows: 10_000_000, max_name_bytes: 1 << 20, max_unfolded_bytes: 64 << 20 };

pub(super) async fn ask(client: &Client, question: FormatQuestion<'_>) -> Result<Block, AskError> {
    let columns: Vec<String> = question.columns.iter().map(|column| backquote(&column.name)).collect();
    let structure: Vec<String> =
        question.columns.iter().zip(&columns).map(|(column, name)| format!("{name} {}", column.data_type)).collect();
    let mut parts = Multipart::new();
    parts.table("message", &[&question.payload]);
    let form = parts.end();
    let query = format!("SELECT {} FROM message FORMAT Native", columns.join(", "));
    let mut call = Call::new(own_account(client), &query)
        .param("message_format", question.format)
        .param("message_structure", &structure.join(", "))
        // In the message's own order.
        .param("max_threads", "1")
        .param("input_format_parallel_parsing", "0")
        .field("Content-Type", &form.content_type)
        .timeout(TIMEOUT);
    for (name, value) in question.settings {
        call = call.param(name, value);
    }
    let body = [form.body];
    match client.call(call.body(&body)).await {
        Ok(answer) => read(&answer.body, question.columns).map_err(AskError::Refused),
        Err(CallError::Exception(exception)) if !exception.is_passing() => Err(AskError::Refused(exception)),
        Err(CallError::Exception(exception)) => Err(AskError::Unavailable(exception.line)),
        Err(CallError::NotSent(error)) => Err(AskError::Unavailable(error.to_string())),
        Err(CallError::Unknown(text)) => Err(AskError::Unavailable(text)),
    }
}

/// All blocks of an answer as one, if they have the columns that were asked for.
fn read(mut bytes: &[u8], columns: &[ColumnSpec]) -> Result<Block, Exception> {
    let wrong =
        |why: &str| Exception::new(CANNOT_PARSE, &format!("ClickHouse's own reading can't be taken: {why}"), "");
    let types: Vec<String> = columns.iter().map(|column| column.data_type.native_name()).collect();
    let mut whole = Block::empty(columns.iter().map(|column| &column.data_type));
    while !bytes.is_empty() {
        let NativeBlock { names, types: got, block, consumed_bytes } =
            decode_native(bytes, LIMITS).map_err(|error| wrong(&error.to_string()))?;
        let is_as_asked = names.iter().eq(columns.iter().map(|column| &column.name))
            && got.iter().map(DataType::native_name).eq(types.iter().cloned());
        if !is_as_asked {
            return Err(wrong("it has other columns"));
        }
        whole.append(&block);
        bytes = &bytes[consumed_bytes..];
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_block::{read_json_each_row, DefaultKind, ReadPlan, ReadSettings};

    fn columns(types: &[(&str, &str)]) -> Vec<ColumnSpec> {
        let column = |(name, data_type): &(&str, &str)| ColumnSpec {
            name: (*name).to_owned(),
            data_type: DataType::parse(data_type).expect("a known type"),
            default_kind: DefaultKind::None,
        };
        types.iter().map(column).collect()
    }

    fn native(columns: &[ColumnSpec], rows: &str) -> Vec<u8> {
        let plan = ReadPlan::new(columns.to_vec(), ReadSettings::default());
        let Ok(parsed) = read_json_each_row(rows.as_bytes(), &plan) else { panic!("rows that can be read: {rows}") };
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let types: Vec<DataType> = columns.iter().map(|column| column.data_type.clone()).collect();
        parsed.block.encode_native(&names, &types)
    }

    #[test]
    fn blocks_are_joined_and_must_be_as_asked() {
        let wanted = columns(&[("a", "UInt8"), ("s", "LowCardinality(Nullable(String))")]);
        let one = native(&wanted, "{\"a\":1,\"s\":\"x\"}\n{\"a\":2,\"s\":null}\n");
        let twice = [one.clone(), one.clone()].concat();
        assert_eq!(read(&twice, &wanted).map(|block| block.rows()), Ok(4));
        assert_eq!(read(&[], &wanted).map(|block| block.rows()), Ok(0));
        assert!(read(&one, &columns(&[("a", "UInt8")])).is_err());
        assert!(read(&one, &columns(&[("b", "UInt8"), ("s", "LowCardinality(Nullable(String))")])).is_err());
        assert!(read(&one, &columns(&[("a", "UInt16"), ("s", "LowCardinality(Nullable(String))")])).is_err());
        for length in 1..one.len() {
            assert!(read(&one[..length], &wanted).is_err(), "cut after {length}");
        }
    }
}
