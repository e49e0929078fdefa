//! Arrow Flight SQL on a port of its own: queries, prepared statements and bulk ingest.
