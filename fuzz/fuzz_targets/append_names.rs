#![no_main]
//! Reads names of tables and columns in the URLs of appends: a name that was read can be written so that it
//! is read again.

use libfuzzer_sys::fuzz_target;

use windrow_sql::{backquote, column_names, TableName};

fuzz_target!(|text: &str| {
    if let Some(columns) = column_names(text) {
        assert!(columns.iter().all(|column| !column.is_empty()));
        let written = columns.iter().map(|column| backquote(column)).collect::<Vec<_>>().join(",");
        assert_eq!(column_names(&written), Some(columns));
    }
    if let Some(table) = TableName::parse(text) {
        let database = table.database.iter().map(|name| format!("{}.", backquote(name))).collect::<String>();
        assert_eq!(TableName::parse(&format!("{database}{}", backquote(&table.table))), Some(table));
    }
});
