#![no_main]
//! Names of tables and columns in the URLs of appends: those that were read can be written so that they are read again.

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/gateway/src/data/appends/names.rs"]
#[allow(dead_code)]
mod names;

fuzz_target!(|text: &str| {
    if let Some(columns) = names::column_names(text) {
        assert!(columns.iter().all(|column| !column.is_empty()));
        let written = columns.iter().map(|column| quoted(column)).collect::<Vec<_>>().join(",");
        assert_eq!(names::column_names(&written), Some(columns));
    }
    if let Some(table) = names::table_name(text) {
        let database = table.database.iter().map(|name| format!("{}.", quoted(name))).collect::<String>();
        assert_eq!(names::table_name(&format!("{database}{}", quoted(&table.table))), Some(table));
    }
});

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('\\', "\\\\").replace('`', "\\`"))
}
