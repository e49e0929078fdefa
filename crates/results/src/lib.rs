//! Rows that come as Arrow, in ClickHouse's formats: pure functions from record batches to bytes.
