//! DuckDB behind Windrow: the library loaded through ADBC, its connections, its types, and the sink.
