//! Prints the statements that make the table of a kind, for a test that compares the tables with those of the
//! collector's exporter: `otlp_tables KIND DATABASE TABLE TTL_SECONDS VERSION [json]`. A zero byte follows
//! each statement.

use windrow_otlp::{create_statements, Kind, TableOptions};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, database, table, ttl, version, json @ ..] = &arguments[..] else {
        panic!("otlp_tables KIND DATABASE TABLE TTL_SECONDS VERSION [json]")
    };
    let kind = Kind::ALL.into_iter().find(|known| known.as_str() == kind).expect("a kind");
    let (major, minor) = version.split_once('.').expect("a version");
    let options = TableOptions {
        table: table.clone(),
        ttl_seconds: ttl.parse().expect("seconds"),
        json: !json.is_empty(),
        server_version: (major.parse().expect("a year"), minor.parse().expect("a month")),
        ..TableOptions::new(kind, database)
    };
    for statement in create_statements(kind, &options) {
        print!("{statement}\0");
    }
}
