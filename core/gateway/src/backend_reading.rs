//! A payload read by ClickHouse: the payload is sent as a table beside a SELECT, and its rows come back as Native.

use std::sync::LazyLock;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use windrow_clickhouse::{Begun, Call, CallError, Client, Credentials, ErrorCode, Exception};
use windrow_columns::{block_rows, decode_native, Block, ColumnSpec, NativeBlock, NativeLimits};
use windrow_sql::backquote;

use crate::multipart::Multipart;

const TIMEOUT: Duration = Duration::from_secs(30);

/// The name of the table that is the payload. It differs between processes, so that it hides no table that an
/// expression of the payload reads.
static TABLE: LazyLock<String> =
    LazyLock::new(|| "payload_".chars().chain(std::iter::repeat_with(fastrand::lowercase).take(20)).collect());

/// Settings that the reading and the answer need, whatever the insert and the user's profile say.
const OWN_SETTINGS: [(&str, &str); 7] = [
    // The rows come in the payload's own order, and in no more blocks than an INSERT makes.
    ("max_threads", "1"),
    ("input_format_parallel_parsing", "0"),
    ("max_block_size", "1048576"),
    // ClickHouse cuts a longer payload off, without an error.
    ("http_max_multipart_form_data_size", "1073741824"),
    // The statement is the same for every payload.
    ("use_query_cache", "0"),
    ("result_overflow_mode", "throw"),
    // An error comes before all rows, and the summary says how many they are.
    ("wait_end_of_query", "1"),
];

/// A payload, and the columns to read it into: the answer has them in this order.
pub(crate) struct Reading<'a> {
    pub(crate) credentials: &'a Credentials,
    /// The payload's format, by ClickHouse's name.
    pub(crate) format: &'a str,
    /// Names and types of the columns.
    pub(crate) columns: &'a [(String, String)],
    pub(crate) payload: &'a [u8],
    /// Limit of the bytes that the rows may take in Native, however few bytes the payload has.
    pub(crate) max_bytes: usize,
}

/// The rows in Native, as ClickHouse wrote them.
pub(crate) struct Answer {
    pub(crate) native: Bytes,
    /// Number of rows by ClickHouse's own count.
    rows: Option<u64>,
    max_bytes: usize,
}

impl Reading<'_> {
    /// Sends the payload to ClickHouse. `params` are settings of reading, and other parameters of the URL.
    pub(crate) async fn ask<'p>(
        &self,
        client: &Client,
        params: impl Iterator<Item = (&'p str, &'p str)>,
    ) -> Result<Answer, CallError> {
        let names: Vec<String> = self.columns.iter().map(|(name, _)| backquote(name)).collect();
        let structure: Vec<String> =
            self.columns.iter().zip(&names).map(|((_, type_name), name)| format!("{name} {type_name}")).collect();
        let table = TABLE.as_str();
        if contains(self.payload, table) {
            return Err(CallError::Exception(wrong("the payload names the table that it would be itself")));
        }
        let mut parts = Multipart::new();
        parts.table(table, &[self.payload]);
        let form = parts.end();
        let query = format!("SELECT {} FROM {table} FORMAT Native", names.join(", "));
        let mut call = Call::new(self.credentials, &query)
            .param(&format!("{table}_format"), self.format)
            .param(&format!("{table}_structure"), &structure.join(", "))
            .field("Content-Type", &form.content_type)
            .timeout(TIMEOUT);
        // The last of a name counts.
        for (name, value) in params.chain(OWN_SETTINGS) {
            call = call.param(name, value);
        }
        let call = call.param("max_result_bytes", &self.max_bytes.to_string());
        let body = [form.body];
        let Begun { mut lease, head } = client.begin(&call.body(&body)).await?;
        let mut native = BytesMut::new();
        let mut answer = lease.connection().body(&head);
        while let Some(more) = answer.next(TIMEOUT).await.map_err(|error| CallError::Unknown(error.to_string()))? {
            // The connection is closed with the rest of the answer in it.
            if native.len() + more.len() > self.max_bytes {
                return Err(CallError::Exception(wrong("it is too long")));
            }
            native.extend_from_slice(&more);
        }
        let rows = all_rows(head.field_str("x-clickhouse-summary").unwrap_or(""));
        lease.give_back(&head);
        let rows = rows.map_err(CallError::Exception)?;
        Ok(Answer { native: native.freeze(), rows, max_bytes: self.max_bytes })
    }
}

impl Answer {
    /// Returns all blocks as one. Fails where the columns or the number of rows are not those that were expected.
    pub(crate) fn block(&self, columns: &[ColumnSpec]) -> Result<Block, Exception> {
        let types: Vec<String> = columns.iter().map(|column| column.data_type.native_name()).collect();
        let mut whole = Block::empty(columns.iter().map(|column| &column.data_type));
        let mut bytes = &self.native[..];
        while !bytes.is_empty() {
            let limits = NativeLimits {
                max_columns: 10_000,
                max_rows: 10_000_000,
                max_name_bytes: 1 << 20,
                // All blocks together.
                max_unfolded_bytes: self.max_bytes.saturating_sub(whole.bytes()),
            };
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
        match self.rows.is_none_or(|rows| rows == whole.rows() as u64) {
            true => Ok(whole),
            false => Err(wrong("it has another number of rows than ClickHouse counted")),
        }
    }

    /// Returns the number of rows, if they are one block. More blocks could not be told apart here.
    pub(crate) fn rows_of_one_block(&self) -> Option<usize> {
        let (rows, counted) = (block_rows(&self.native)?, self.rows?);
        (rows as u64 == counted && rows > 0).then_some(rows)
    }
}

/// Says whether a column has the wanted type. Over HTTP, ClickHouse leaves out the time zone of a plain DateTime.
fn is_type(got: &str, wanted: &str) -> bool {
    got == wanted || got == "DateTime" && wanted.starts_with("DateTime(")
}

/// Returns the number of rows, if a summary has it. Fails where there are fewer rows than were in the
/// payload, which the summary counts apart.
fn all_rows(summary: &str) -> Result<Option<u64>, Exception> {
    let (rows, read) = (counted(summary, "result_rows"), counted(summary, "total_rows_to_read"));
    match rows.zip(read).is_some_and(|(rows, read)| rows < read) {
        true => Err(wrong("it has fewer rows than the payload")),
        false => Ok(rows),
    }
}

fn counted(summary: &str, name: &str) -> Option<u64> {
    let rest = summary.split_once(&format!("\"{name}\":\""))?.1;
    rest.split('"').next()?.parse().ok()
}

fn contains(payload: &[u8], name: &str) -> bool {
    payload.windows(name.len()).any(|letters| letters == name.as_bytes())
}

fn wrong(why: &str) -> Exception {
    Exception::new(ErrorCode::CANNOT_PARSE_TEXT, &format!("ClickHouse's own reading can't be taken: {why}"), "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;
    use windrow_clickhouse::{ClientOptions, Endpoint};
    use windrow_columns::{read_json_each_row, DataType, DefaultKind, ReadPlan, ReadSettings};

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
        let summary = r#"{"read_rows":"7","total_rows_to_read":"12","result_rows":"12","x":"1"}"#;
        assert_eq!(all_rows(summary), Ok(Some(12)));
        assert_eq!(all_rows(""), Ok(None));
        assert!(all_rows(&summary.replace("to_read\":\"12", "to_read\":\"13")).is_err());
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
        let fewer = Answer { native: Bytes::from(one.clone()), rows: Some(3), max_bytes: 1 << 20 };
        assert!(fewer.block(&wanted).is_err());
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

    #[test]
    fn blocks_share_what_they_may_unfold_to() {
        let wanted = columns(&[("s", "LowCardinality(String)")]);
        // Of one column and 100 rows, which all are the same string of 6,000 bytes.
        let mut one = b"\x01\x64\x01s\x16LowCardinality(String)".to_vec();
        for number in [1_u64, 0x600, 1] {
            one.extend(number.to_le_bytes());
        }
        one.extend([b"\xf0\x2e".to_vec(), vec![b'x'; 6_000], 100_u64.to_le_bytes().to_vec(), vec![0; 100]].concat());
        assert_eq!(read(&one, &wanted), Ok(100));
        assert!(read(&[one.clone(), one].concat(), &wanted).is_err());
    }

    #[tokio::test]
    async fn an_endless_answer_is_not_read_to_its_end() {
        const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nX-ClickHouse-Format: Native\r\nTransfer-Encoding: chunked\r\n\r\n";
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut chunk = b"4000\r\n".to_vec();
            chunk.extend([0; 0x4000]);
            chunk.extend(b"\r\n");
            let mut sent = stream.write_all(HEAD).await;
            while sent.is_ok() {
                sent = stream.write_all(&chunk).await;
            }
        });
        let client = Client::new(Endpoint::parse(&url).expect("a URL"), ClientOptions::default()).expect("a client");
        let credentials = Credentials { user: "u".to_owned(), password: String::new() };
        let columns = [("a".to_owned(), "UInt8".to_owned())];
        let reading = |payload| Reading {
            credentials: &credentials,
            format: "Values",
            columns: &columns,
            payload,
            max_bytes: 1 << 20,
        };
        assert!(reading(b"(1)").ask(&client, std::iter::empty()).await.is_err());
        server.await.expect("the connection was closed");
        // Nobody listens any more, and nobody is asked.
        let named = format!("((SELECT count() FROM {}))", *TABLE);
        let answer = reading(named.as_bytes()).ask(&client, std::iter::empty()).await;
        assert!(matches!(answer, Err(CallError::Exception(_))));
    }
}
