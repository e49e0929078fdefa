//! The answer to `GetSqlInfo`: what the service is and can do.

use std::sync::Arc;

use arrow_array::{
    new_empty_array, ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray, UInt32Array, UnionArray,
};
use arrow_schema::ArrowError;

use super::layout::{info_values, sql_info_layout};
use crate::sql::Dialect;

#[derive(Debug, Clone, PartialEq)]
enum Value {
    Text(String),
    Is(bool),
    Number(i64),
    Flags(i32),
}

/// Returns what is known about the service. The numbers are Flight SQL's; unknown facts are left out, as
/// Flight SQL asks for.
fn known(dialect: Dialect) -> Vec<(u32, Value)> {
    let quote = match dialect {
        Dialect::DuckDb => "\"",
        Dialect::ClickHouse => "`",
    };
    vec![
        (0, Value::Text("Windrow".to_owned())),
        (1, Value::Text(env!("CARGO_PKG_VERSION").to_owned())),
        (2, Value::Text("1.3".to_owned())),
        // It takes writes, and SQL, no Substrait, and no transactions: each statement is one of its own.
        (3, Value::Is(false)),
        (4, Value::Is(true)),
        (5, Value::Is(false)),
        (8, Value::Flags(0)),
        (9, Value::Is(false)),
        (10, Value::Is(true)),
        (11, Value::Is(false)),
        (100, Value::Number(0)),
        (101, Value::Number(0)),
        // Catalogs can't be made; schemas and tables can.
        (500, Value::Is(false)),
        (501, Value::Is(true)),
        (502, Value::Is(true)),
        // Case: 3 means that ClickHouse tells names apart by it, 1 that DuckDB doesn't.
        (503, Value::Number(if dialect == Dialect::ClickHouse { 3 } else { 1 })),
        (504, Value::Text(quote.to_owned())),
        (505, Value::Number(if dialect == Dialect::ClickHouse { 3 } else { 1 })),
        (506, Value::Is(false)),
        (514, Value::Text("\\".to_owned())),
        (515, Value::Text(String::new())),
        (529, Value::Text("schema".to_owned())),
        (531, Value::Text("catalog".to_owned())),
        (563, Value::Is(false)),
        (572, Value::Is(true)),
        (573, Value::Is(false)),
        (574, Value::Is(false)),
    ]
}

/// Answers `GetSqlInfo`. `asked` has the wanted numbers; if it is empty, all are wanted.
pub(crate) fn sql_info(dialect: Dialect, asked: &[u32]) -> Result<RecordBatch, ArrowError> {
    let told: Vec<_> =
        known(dialect).into_iter().filter(|(name, _)| asked.is_empty() || asked.contains(name)).collect();
    let (mut texts, mut bools, mut numbers, mut flags) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut types, mut offsets) = (Vec::<i8>::new(), Vec::<i32>::new());
    for (_, value) in &told {
        let (kind, offset) = match value {
            Value::Text(text) => (0, pushed(&mut texts, text.as_str())),
            Value::Is(is) => (1, pushed(&mut bools, *is)),
            Value::Number(number) => (2, pushed(&mut numbers, *number)),
            Value::Flags(bits) => (3, pushed(&mut flags, *bits)),
        };
        types.push(kind);
        offsets.push(offset);
    }
    let fields = info_values();
    let mut children: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(texts)),
        Arc::new(BooleanArray::from(bools)),
        Arc::new(Int64Array::from(numbers)),
        Arc::new(Int32Array::from(flags)),
    ];
    children.extend(fields.iter().skip(4).map(|(_, field)| new_empty_array(field.data_type())));
    let values = UnionArray::try_new(fields, types.into(), Some(offsets.into()), children)?;
    let names = UInt32Array::from_iter_values(told.iter().map(|(name, _)| *name));
    RecordBatch::try_new(sql_info_layout(), vec![Arc::new(names), Arc::new(values)])
}

/// Adds a value, and returns its position.
fn pushed<T>(values: &mut Vec<T>, value: T) -> i32 {
    values.push(value);
    values.len() as i32 - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_told_or_what_was_asked() {
        let all = sql_info(Dialect::DuckDb, &[]).unwrap();
        assert_eq!(all.num_rows(), known(Dialect::DuckDb).len());
        let some = sql_info(Dialect::ClickHouse, &[0, 10, 99_999]).unwrap();
        assert_eq!(some.num_rows(), 2);
    }
}
