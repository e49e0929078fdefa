//! A payload read by ClickHouse: it goes there as a table beside a SELECT, and comes back as Native.

use std::time::Duration;

use windrow_block::{decode_native, Block, ColumnSpec, DataType, NativeBlock, NativeLimits};
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
    pub(crate) columns: &'a [ColumnSpec],
    pub(crate) payload: &'a [u8],
    /// What the rows may be in Native, however few the payload's bytes are.
    pub(crate) max_bytes: usize,
}

impl Reading<'_> {
    /// `params`: settings of reading, and whatever else goes into a URL.
    pub(crate) async fn ask<'p>(
        &self,
        client: &Client,
        params: impl Iterator<Item = (&'p str, &'p str)>,
    ) -> Result<Block, CallError> {
        let names: Vec<String> = self.columns.iter().map(|column| backquote(&column.name)).collect();
        let structure: Vec<String> =
            self.columns.iter().zip(&names).map(|(column, name)| format!("{name} {}", column.data_type)).collect();
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
            .field("Content-Type", &form.content_type)
            .timeout(TIMEOUT);
        for (name, value) in params {
            call = call.param(name, value);
        }
        let body = [form.body];
        let Begun { mut lease, head } = client.begin(&call.body(&body)).await?;
        // What is longer is cut off, so one byte more is asked for.
        let answer = lease.connection().body(&head).collect(self.max_bytes + 1, TIMEOUT).await;
        let answer = answer.map_err(|error| CallError::Unknown(error.to_string()))?;
        lease.give_back(&head);
        self.read(&answer).map_err(CallError::Exception)
    }

    /// All blocks of an answer as one, if they have the columns that were asked for.
    fn read(&self, mut bytes: &[u8]) -> Result<Block, Exception> {
        let wrong =
            |why: &str| Exception::new(CANNOT_PARSE, &format!("ClickHouse's own reading can't be taken: {why}"), "");
        if bytes.len() > self.max_bytes {
            return Err(wrong("it is too long"));
        }
        let limits = NativeLimits {
            max_columns: 10_000,
            max_rows: 10_000_000,
            max_name_bytes: 1 << 20,
            max_unfolded_bytes: self.max_bytes,
        };
        let types: Vec<String> = self.columns.iter().map(|column| column.data_type.native_name()).collect();
        let mut whole = Block::empty(self.columns.iter().map(|column| &column.data_type));
        while !bytes.is_empty() {
            let NativeBlock { names, types: got, block, consumed_bytes } =
                decode_native(bytes, limits).map_err(|error| wrong(&error.to_string()))?;
            let is_as_asked = names.iter().eq(self.columns.iter().map(|column| &column.name))
                && got.iter().map(DataType::native_name).eq(types.iter().cloned());
            if !is_as_asked {
                return Err(wrong("it has other columns"));
            }
            whole.append(&block);
            bytes = &bytes[consumed_bytes..];
        }
        Ok(whole)
    }
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

    fn read(bytes: &[u8], columns: &[ColumnSpec]) -> Result<usize, Exception> {
        let credentials = Credentials { user: String::new(), password: String::new() };
        let reading = Reading { credentials: &credentials, format: "CSV", columns, payload: b"", max_bytes: 1 << 20 };
        reading.read(bytes).map(|block| block.rows())
    }

    #[test]
    fn blocks_are_joined_and_must_be_as_asked() {
        let wanted = columns(&[("a", "UInt8"), ("s", "LowCardinality(Nullable(String))")]);
        let one = native(&wanted, "{\"a\":1,\"s\":\"x\"}\n{\"a\":2,\"s\":null}\n");
        let twice = [one.clone(), one.clone()].concat();
        assert_eq!(read(&twice, &wanted), Ok(4));
        assert_eq!(read(&[], &wanted), Ok(0));
        assert!(read(&one, &columns(&[("a", "UInt8")])).is_err());
        assert!(read(&one.repeat((1 << 20) / one.len() + 1), &wanted).is_err(), "too long");
        assert!(read(&one, &columns(&[("b", "UInt8"), ("s", "LowCardinality(Nullable(String))")])).is_err());
        assert!(read(&one, &columns(&[("a", "UInt16"), ("s", "LowCardinality(Nullable(String))")])).is_err());
        for length in 1..one.len() {
            assert!(read(&one[..length], &wanted).is_err(), "cut after {length}");
        }
    }
}
