//! Packets that a server writes to a client, for one revision of the protocol.

use windrow_compression::{compress_clickhouse, ClickHouseMethod};

use crate::exception::ErrorCode;
use crate::native::input::{write_string, write_varint};
use crate::native::{revision, server};

/// One counter in a ProfileEvents packet.
#[derive(Debug, Clone, Copy)]
pub struct Counter<'a> {
    pub name: &'a str,
    pub value: i64,
}

/// Writes packets for a client.
pub struct Answer<'o> {
    pub out: &'o mut Vec<u8>,
    pub revision: u64,
    /// Says whether blocks are compressed, as the client asked with its query.
    pub is_compressed: bool,
}

impl Answer<'_> {
    pub fn pong(&mut self) {
        write_varint(self.out, server::PONG);
    }

    pub fn end_of_stream(&mut self) {
        write_varint(self.out, server::END_OF_STREAM);
    }

    /// Writes an exception. `text` is the part of a shown error between its code and its name:
    /// `DB::Exception: Table t does not exist`.
    pub fn exception(&mut self, code: ErrorCode, text: &str) {
        write_varint(self.out, server::EXCEPTION);
        self.out.extend_from_slice(&code.number().to_le_bytes());
        write_string(self.out, "DB::Exception");
        write_string(self.out, text);
        // No stack trace, and none inside.
        write_string(self.out, "");
        self.out.push(0);
    }

    /// Writes the counts of rows and bytes that were written since the last packet of this kind.
    pub fn progress(&mut self, written_rows: u64, written_bytes: u64, elapsed_ns: u64) {
        write_varint(self.out, server::PROGRESS);
        [0, 0, 0].into_iter().for_each(|number| write_varint(self.out, number));
        if self.revision >= revision::TOTAL_BYTES_IN_PROGRESS {
            write_varint(self.out, 0);
        }
        [written_rows, written_bytes].into_iter().for_each(|number| write_varint(self.out, number));
        if self.revision >= revision::SERVER_QUERY_TIME_IN_PROGRESS {
            write_varint(self.out, elapsed_ns);
        }
    }

    /// Writes the columns of a table with their defaults, as ClickHouse describes them.
    pub fn table_columns(&mut self, description: &str) {
        write_varint(self.out, server::TABLE_COLUMNS);
        let mut body = Vec::with_capacity(description.len() + 8);
        write_string(&mut body, "");
        write_string(&mut body, description);
        let is_compressed = self.revision >= revision::COMPRESSED_LOGS_PROFILE_EVENTS_COLUMNS;
        self.append_body(&body, is_compressed);
    }

    /// Writes a block without rows that names the columns which an INSERT has to bring.
    pub fn header<'c>(&mut self, columns: impl ExactSizeIterator<Item = (&'c str, &'c str)>) {
        write_varint(self.out, server::DATA);
        write_string(self.out, "");
        let mut body = Vec::with_capacity(64 + 32 * columns.len());
        self.begin_block(&mut body, columns.len() as u64, 0);
        columns.for_each(|(name, data_type)| self.column(&mut body, name, data_type));
        self.append_body(&body, true);
    }

    /// Writes the ProfileEvents packet. ClickHouse's packet always has two gauges; a client that waits for it
    /// does not look at them.
    pub fn profile_events(&mut self, host_name: &str, seconds: u32, counters: &[Counter<'_>]) {
        write_varint(self.out, server::PROFILE_EVENTS);
        write_string(self.out, "");
        let gauges = ["MemoryTrackerUsage", "MemoryTrackerPeakUsage"].map(|name| Counter { name, value: 0 });
        let all = || counters.iter().map(|counter| (counter, 1)).chain(gauges.iter().map(|gauge| (gauge, 2)));
        let rows = counters.len() + gauges.len();
        let mut body = Vec::with_capacity(512);
        self.begin_block(&mut body, 6, rows as u64);
        self.column(&mut body, "host_name", "String");
        all().for_each(|_| write_string(&mut body, host_name));
        self.column(&mut body, "current_time", "DateTime");
        all().for_each(|_| body.extend_from_slice(&seconds.to_le_bytes()));
        self.column(&mut body, "thread_id", "UInt64");
        all().for_each(|_| body.extend_from_slice(&[0; 8]));
        self.column(&mut body, "type", "Enum8('increment' = 1, 'gauge' = 2)");
        all().for_each(|(_, kind)| body.push(kind));
        self.column(&mut body, "name", "String");
        all().for_each(|(counter, _)| write_string(&mut body, counter.name));
        self.column(&mut body, "value", "Int64");
        all().for_each(|(counter, _)| body.extend_from_slice(&counter.value.to_le_bytes()));
        self.append_body(&body, self.revision >= revision::COMPRESSED_LOGS_PROFILE_EVENTS_COLUMNS);
    }

    fn begin_block(&self, body: &mut Vec<u8>, columns: u64, rows: u64) {
        body.extend_from_slice(&[1, 0, 2, 0xFF, 0xFF, 0xFF, 0xFF]);
        if self.revision >= revision::OUT_OF_ORDER_BUCKETS {
            body.extend_from_slice(&[3, 0]);
        }
        body.push(0);
        write_varint(body, columns);
        write_varint(body, rows);
    }

    fn column(&self, body: &mut Vec<u8>, name: &str, data_type: &str) {
        write_string(body, name);
        write_string(body, data_type);
        if self.revision >= revision::CUSTOM_SERIALIZATION {
            body.push(0);
        }
    }

    fn append_body(&mut self, body: &[u8], may_be_compressed: bool) {
        match may_be_compressed && self.is_compressed {
            true => self.out.extend_from_slice(&compress_clickhouse(ClickHouseMethod::Lz4, body)),
            false => self.out.extend_from_slice(body),
        }
    }
}
