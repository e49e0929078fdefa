//! A writer that gathers rows into batches and hands them to ClickHouse, losing nothing that it took.
