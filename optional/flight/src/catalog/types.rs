//! The answer to `GetXdbcTypeInfo`: the types that columns may have, and their names in ODBC and JDBC.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, BooleanArray, Int32Array, RecordBatch, StringArray};
use arrow_schema::{ArrowError, DataType, Field};

use super::layout::xdbc_type_info;
use crate::sql::Dialect;

const BIT: i32 = -7;
const TINYINT: i32 = -6;
const BIGINT: i32 = -5;
const VARBINARY: i32 = -3;
const DECIMAL: i32 = 3;
const INTEGER: i32 = 4;
const SMALLINT: i32 = 5;
const REAL: i32 = 7;
const DOUBLE: i32 = 8;
const VARCHAR: i32 = 12;
const DATE: i32 = 91;
const TIME: i32 = 92;
const TIMESTAMP: i32 = 93;
/// ODBC's number for any date or time; `datetime_subcode` says which one.
const DATETIME: i32 = 9;

/// A type: its name, its number, and its digits, bits, or characters as ODBC counts them.
struct Known(&'static str, i32, Option<i32>);

const DUCKDB: &[Known] = &[
    Known("BOOLEAN", BIT, Some(1)),
    Known("TINYINT", TINYINT, Some(3)),
    Known("UTINYINT", TINYINT, Some(3)),
    Known("BIGINT", BIGINT, Some(19)),
    Known("UBIGINT", BIGINT, Some(20)),
    Known("BLOB", VARBINARY, None),
    Known("DECIMAL", DECIMAL, Some(38)),
    Known("INTEGER", INTEGER, Some(10)),
    Known("UINTEGER", INTEGER, Some(10)),
    Known("SMALLINT", SMALLINT, Some(5)),
    Known("USMALLINT", SMALLINT, Some(5)),
    Known("FLOAT", REAL, Some(24)),
    Known("DOUBLE", DOUBLE, Some(53)),
    Known("VARCHAR", VARCHAR, None),
    Known("DATE", DATE, Some(10)),
    Known("TIME", TIME, Some(15)),
    Known("TIMESTAMP", TIMESTAMP, Some(26)),
    Known("TIMESTAMP WITH TIME ZONE", TIMESTAMP, Some(32)),
];

const CLICKHOUSE: &[Known] = &[
    Known("Bool", BIT, Some(1)),
    Known("Int8", TINYINT, Some(3)),
    Known("UInt8", TINYINT, Some(3)),
    Known("Int64", BIGINT, Some(19)),
    Known("UInt64", BIGINT, Some(20)),
    Known("Decimal", DECIMAL, Some(76)),
    Known("Int32", INTEGER, Some(10)),
    Known("UInt32", INTEGER, Some(10)),
    Known("Int16", SMALLINT, Some(5)),
    Known("UInt16", SMALLINT, Some(5)),
    Known("Float32", REAL, Some(24)),
    Known("Float64", DOUBLE, Some(53)),
    Known("String", VARCHAR, None),
    Known("Date", DATE, Some(10)),
    Known("Date32", DATE, Some(10)),
    Known("DateTime", TIMESTAMP, Some(19)),
    Known("DateTime64", TIMESTAMP, Some(29)),
];

impl Known {
    fn is_quoted(&self) -> bool {
        matches!(self.1, VARCHAR | VARBINARY | DATE | TIME | TIMESTAMP)
    }

    fn is_number(&self) -> bool {
        self.radix().is_some()
    }

    fn radix(&self) -> Option<i32> {
        match self.1 {
            TINYINT | SMALLINT | INTEGER | BIGINT | DECIMAL => Some(10),
            REAL | DOUBLE => Some(2),
            _ => None,
        }
    }

    fn is_unsigned(&self) -> bool {
        self.0.starts_with('U')
    }

    fn parameters(&self) -> &'static [&'static str] {
        match self.0 {
            "DECIMAL" | "Decimal" => &["precision", "scale"],
            "DateTime64" => &["precision"],
            _ => &[],
        }
    }

    fn subcode(&self) -> Option<i32> {
        match self.1 {
            DATE | TIME | TIMESTAMP => Some(self.1 - 90),
            _ => None,
        }
    }
}

/// Lists the types in the order of their numbers, as ODBC asks for. With `asked`, only types of this number
/// are listed.
pub(crate) fn list_types(dialect: Dialect, asked: Option<i32>) -> Result<RecordBatch, ArrowError> {
    let known = match dialect {
        Dialect::DuckDb => DUCKDB,
        Dialect::ClickHouse => CLICKHOUSE,
    };
    let known: Vec<_> = known.iter().filter(|known| asked.is_none_or(|asked| asked == known.1)).collect();
    let numbers = |of: &dyn Fn(&Known) -> Option<i32>| -> ArrayRef {
        Arc::new(known.iter().map(|known| of(known)).collect::<Int32Array>())
    };
    let flags = |of: &dyn Fn(&Known) -> Option<bool>| -> ArrayRef {
        Arc::new(known.iter().map(|known| of(known)).collect::<BooleanArray>())
    };
    let texts = |of: &dyn Fn(&Known) -> Option<&'static str>| -> ArrayRef {
        Arc::new(known.iter().map(|known| of(known)).collect::<StringArray>())
    };
    let quote = |known: &Known| known.is_quoted().then_some("'");
    let sql_type = |known: &Known| Some(if known.subcode().is_some() { DATETIME } else { known.1 });
    // Nullable is a type of its own in ClickHouse.
    let nullable = i32::from(dialect == Dialect::DuckDb);
    let columns: Vec<ArrayRef> = vec![
        texts(&|known| Some(known.0)),
        numbers(&|known| Some(known.1)),
        numbers(&|known| known.2),
        texts(&quote),
        texts(&quote),
        parameters(&known),
        numbers(&|_| Some(nullable)),
        flags(&|known| Some(known.1 == VARCHAR)),
        // Everything may be compared; texts by LIKE as well.
        numbers(&|known| Some(if known.1 == VARCHAR { 3 } else { 2 })),
        flags(&|known| known.is_number().then(|| known.is_unsigned())),
        flags(&|_| Some(false)),
        flags(&|known| known.is_number().then_some(false)),
        texts(&|known| Some(known.0)),
        numbers(&|known| (known.1 == DECIMAL).then_some(0)),
        numbers(&|known| known.2.filter(|_| known.1 == DECIMAL)),
        numbers(&sql_type),
        numbers(&Known::subcode),
        numbers(&Known::radix),
        numbers(&|_| None),
    ];
    RecordBatch::try_new(xdbc_type_info(), columns)
}

fn parameters(known: &[&Known]) -> ArrayRef {
    let mut lists = ListBuilder::new(StringBuilder::new()).with_field(Field::new("item", DataType::Utf8, false));
    for known in known {
        for parameter in known.parameters() {
            lists.values().append_value(parameter);
        }
        lists.append(!known.parameters().is_empty());
    }
    Arc::new(lists.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_told_in_the_order_of_their_numbers() {
        for (dialect, known) in [(Dialect::DuckDb, DUCKDB), (Dialect::ClickHouse, CLICKHOUSE)] {
            assert!(known.is_sorted_by_key(|known| known.1));
            assert_eq!(list_types(dialect, None).unwrap().num_rows(), known.len());
            assert_eq!(list_types(dialect, Some(VARCHAR)).unwrap().num_rows(), 1);
            assert_eq!(list_types(dialect, Some(77)).unwrap().num_rows(), 0);
        }
    }
}
