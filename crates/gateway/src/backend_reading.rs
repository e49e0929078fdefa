//! A payload read by ClickHouse: it goes there as a table beside a SELECT, and comes back as Native.

use std::time::Duration;

use bytes::Bytes;
use windrow_block::{block_rows, decode_native, Block, ColumnSpec, NativeBlock, NativeLimits};
use windrow_client::{Begun, Call, CallError, Client, Credentials, Exception};
use windrow_statement::backquote;

use crate::multipart::Multipart;

const TIMEOUT: Duration = Duration::from_secs(30);
const CANNOT_PARSE: i32 = 6;
const TABLE: &str = "message";

/// A payload, and what it is to be read into: the answer has a column for each, in this order.
pub(crate) struct Reading<'a> {
    pub(crate) credentials: &'a Credentials,
    /// ClickHouse's name.
    pub(crate) format: &'a str,
    /// Names and types.
    pub(crate) columns: &'a [(String, String)],
    pub(crate) payload: &'a [u8],
    /// What the rows may be in Native, however few the payload's bytes are.
    pub(crate) max_bytes: usize,
}

/// The rows in Native, as ClickHouse wrote them.
pub(crate) struct Answer {
    pub(crate) native: Bytes,
    /// By ClickHouse's own count.
    rows: Option<u64>,
    max_bytes: usize,
}

impl Reading<'_> {
    /// `params`: settings of reading, and whatever else goes into a URL.
    pub(crate) async fn ask<'p>(
        &self,
        client: &Client,
        params: impl Iterator<Item = (&'p str, &'p str)>,
    ) -> Result<Answer, CallError> {
        let names: Vec<String> = self.columns.iter().map(|(name, _)| backquote(name)).collect();
        let structure: Vec<String> =
            self.columns.iter().zip(&names).map(|((_, type_name), name)| format!("{name} {type_name}")).collect();
        let mut parts = Multipart::new();
        parts.table(TABLE, &[self.payload]);
        let form = parts.end();
        let query = format!("SELECT {} FROM {TABLE} FORMAT Native", names.join(", "));
        let mut call = Call::new(self.credentials, &query)
            .param("message_format", self.format)
            .param("message_structure", &structure.join(", "))
            // In the payload's own order.
            .param("max_threads", "1")
            .param("input_format_parallel_parsing", "0")
            // The statement is the same for every payload.
            .param("use_query_cache", "0")
            // An error comes before all rows, and the summary says how many they are.
            .param("wait_end_of_query", "1")
            .field("Content-Type", &form.content_type)
            .timeout(TIMEOUT);
        for (name, value) in params {
            call = call.param(name, value);
        }
        let body = [form.body];
        let Begun { mut lease, head } = client.begin(&call.body(&body)).await?;
        // What is longer is cut off, so one byte more is asked for.
        let native = lease.connection().body(&head).collect(self.max_bytes + 1, TIMEOUT).await;
        let native = native.map_err(|error| CallError::Unknown(error.to_string()))?;
        let rows = head.field_str("x-clickhouse-summary").and_then(result_rows);
        lease.give_back(&head);
        match native.len() > self.max_bytes {
            true => Err(CallError::Exception(wrong("it is too long"))),
            false => Ok(Answer { native, rows, max_bytes: self.max_bytes }),
        }
    }
}

impl Answer {
    /// All blocks as one, if they have the columns that were asked for.
    pub(crate) fn block(&self, columns: &[ColumnSpec]) -> Result<Block, Exception> {
        let limits = NativeLimits {
            max_columns: 10_000,
            max_rows: 10_000_000,
            max_name_bytes: 1 << 20,
            max_unfolded_bytes: self.max_bytes,
        };
        let types: Vec<String> = columns.iter().map(|column| column.data_type.native_name()).collect();
        let mut whole = Block::empty(columns.iter().map(|column| &column.data_type));
        let mut bytes = &self.native[..];
        while !bytes.is_empty() {
            let NativeBlock { names, types: got, block, consumed_bytes } =
                decode_native(bytes, limits).map_err(|error| wrong(&error.to_string()))?;
            let is_as_asked = names.iter().eq(columns.iter().map(|column| &column.name))
                && got.len() == types.len()
                && got.iter().zip(&types).all(|(got, wanted)| is_type(&got.native_name(), wanted));
            if !is_as_asked {
                return Err(wrong("it has other columns"));
            }
            whole.append(&block);
            bytes = &bytes[consumed_bytes..];
        }
        Ok(whole)
    }

    /// How many rows there are, if they are one block. More blocks could not be told apart here.
    pub(crate) fn rows_of_one_block(&self) -> Option<usize> {
        let (rows, counted) = (block_rows(&self.native)?, self.rows?);
        (rows as u64 == counted && rows > 0).then_some(rows)
    }
}

/// Over HTTP, ClickHouse leaves out the zone of a plain DateTime.
fn is_type(got: &str, wanted: &str) -> bool {
    got == wanted || got == "DateTime" && wanted.starts_with("DateTime(")
}

fn result_rows(summary: &str) -> Option<u64> {
    let rest = summary.split_once("\"result_rows\":\"")?.1;
    rest.split('"').next()?.parse().ok()
}

fn wrong(why: &str) -> Exception {
    Exception::new(CANNOT_PARSE, &format!("ClickHouse's own reading can't be taken: {why}"), "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_block::{read_json_each_row, DataType, DefaultKind, ReadPlan, ReadSettings};

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
    fn rows_are_counted_where_they_are_one_block() {
        let one = native(&columns(&[("a", "UInt8")]), "{\"a\":1}\n{\"a\":2}\n");
        let rows = |native: &[u8], rows| {
            Answer { native: Bytes::copy_from_slice(native), rows, max_bytes: 1 << 20 }.rows_of_one_block()
        };
        assert_eq!(rows(&one, Some(2)), Some(2));
        assert_eq!(rows(&[one.clone(), one.clone()].concat(), Some(4)), None, "several blocks");
        assert_eq!(rows(&one, None), None, "no summary");
        assert_eq!(rows(&[], Some(0)), None);
        assert_eq!(result_rows(r#"{"read_rows":"7","result_rows":"12","x":"1"}"#), Some(12));
    }

    fn read(bytes: &[u8], columns: &[ColumnSpec]) -> Result<usize, Exception> {
        let answer = Answer { native: Bytes::copy_from_slice(bytes), rows: None, max_bytes: 1 << 20 };
        answer.block(columns).map(|block| block.rows())
    }

    #[test]
    fn blocks_are_joined_and_must_be_as_asked() {
        let wanted = columns(&[("a", "UInt8"), ("s", "LowCardinality(Nullable(String))")]);
        let one = native(&wanted, "{\"a\":1,\"s\":\"x\"}\n{\"a\":2,\"s\":null}\n");
        let twice = [one.clone(), one.clone()].concat();
        assert_eq!(read(&twice, &wanted), Ok(4));
        assert_eq!(read(&[], &wanted), Ok(0));
        assert!(read(&one, &columns(&[("a", "UInt8")])).is_err());
        assert_eq!(
            read(&native(&columns(&[("t", "DateTime")]), "{\"t\":1}"), &columns(&[("t", "DateTime('UTC')")])),
            Ok(1)
        );
        assert!(read(&one, &columns(&[("b", "UInt8"), ("s", "LowCardinality(Nullable(String))")])).is_err());
        assert!(read(&one, &columns(&[("a", "UInt16"), ("s", "LowCardinality(Nullable(String))")])).is_err());
        for length in 1..one.len() {
            assert!(read(&one[..length], &wanted).is_err(), "cut after {length}");
        }
    }
}
