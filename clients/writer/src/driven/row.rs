//! Rows as tuples of values.

use std::any::type_name;
use std::fmt;

use super::value::{Column, Value};

/// The reason why a row can't be written; nothing of the row was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowError {
    /// The column, unless the error is about the row as a whole.
    pub column: Option<String>,
    pub message: String,
    /// The number of the row in its call, from 0.
    pub row: usize,
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.column {
            Some(column) => write!(f, "column {column}: {} (row {})", self.message, self.row),
            None => write!(f, "{} (row {})", self.message, self.row),
        }
    }
}

impl std::error::Error for RowError {}

/// A row: a tuple of up to twelve [`Value`]s, or a reference to one.
pub trait Row {
    /// A type that is the same for all row types that are checked alike.
    type Shape: 'static;

    /// Checks whether rows of this type fit the columns; called once per writer.
    ///
    /// # Errors
    /// Fails where the number of values is not that of the columns, or a value's type doesn't fit its column.
    fn check(columns: &[Column]) -> Result<(), RowError>;

    /// Appends the row in RowBinary; the columns have passed the check.
    ///
    /// # Errors
    /// Fails where a value is out of its column's range, or the number of values is not that of the columns.
    fn encode(&self, columns: &[Column], out: &mut Vec<u8>) -> Result<(), RowError>;
}

impl<R: Row + ?Sized> Row for &R {
    type Shape = R::Shape;

    fn check(columns: &[Column]) -> Result<(), RowError> {
        R::check(columns)
    }

    #[inline]
    fn encode(&self, columns: &[Column], out: &mut Vec<u8>) -> Result<(), RowError> {
        (**self).encode(columns, out)
    }
}

fn check_value<V: Value>(column: &Column) -> Result<(), RowError> {
    match V::fits(&column.data_type, column.is_nullable) {
        true => Ok(()),
        false => Err(error(column, &format!("{} can't be written to {}", type_name::<V>(), column.type_name))),
    }
}

#[cold]
fn error(column: &Column, message: &str) -> RowError {
    RowError { column: Some(column.name.clone()), message: message.to_owned(), row: 0 }
}

#[cold]
fn wrong_count(values: usize, columns: usize) -> RowError {
    RowError { column: None, message: format!("{values} values for {columns} columns"), row: 0 }
}

macro_rules! tuples {
    ($($count:literal => $($value:ident $column:ident),+;)*) => {$(
        #[allow(non_snake_case)]
        impl<$($value: Value),+> Row for ($($value,)+) {
            type Shape = ($($value::Shape,)+);

            fn check(columns: &[Column]) -> Result<(), RowError> {
                let [$($column),+] = columns else { return Err(wrong_count($count, columns.len())) };
                $(check_value::<$value>($column)?;)+
                Ok(())
            }

            #[inline]
            fn encode(&self, columns: &[Column], out: &mut Vec<u8>) -> Result<(), RowError> {
                let ($($value,)+) = self;
                let [$($column),+] = columns else { return Err(wrong_count($count, columns.len())) };
                $(
                    let encoded = $value.encode(&$column.data_type, $column.is_nullable, out);
                    if let Err(message) = encoded {
                        return Err(error($column, message));
                    }
                )+
                Ok(())
            }
        }
    )*};
}

tuples! {
    1 => A a;
    2 => A a, B b;
    3 => A a, B b, C c;
    4 => A a, B b, C c, D d;
    5 => A a, B b, C c, D d, E e;
    6 => A a, B b, C c, D d, E e, F f;
    7 => A a, B b, C c, D d, E e, F f, G g;
    8 => A a, B b, C c, D d, E e, F f, G g, H h;
    9 => A a, B b, C c, D d, E e, F f, G g, H h, I i;
    10 => A a, B b, C c, D d, E e, F f, G g, H h, I i, J j;
    11 => A a, B b, C c, D d, E e, F f, G g, H h, I i, J j, K k;
    12 => A a, B b, C c, D d, E e, F f, G g, H h, I i, J j, K k, L l;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driven::value::{RawString, Uuid};

    fn columns(types: &[&str]) -> Vec<Column> {
        let column = |(index, text): (usize, &&str)| Column::of(format!("c{index}"), (*text).to_owned()).unwrap();
        types.iter().enumerate().map(column).collect()
    }

    fn encoded<R: Row>(row: R, types: &[&str]) -> Result<Vec<u8>, RowError> {
        let columns = columns(types);
        R::check(&columns)?;
        let mut out = Vec::new();
        row.encode(&columns, &mut out).map(|()| out)
    }

    #[test]
    fn rows_are_written_as_row_binary() {
        assert_eq!(
            encoded((-2_i32, "ab", "".to_owned()), &["Int32", "String", "LowCardinality(String)"]).unwrap(),
            b"\xfe\xff\xff\xff\x02ab\0"
        );
        assert_eq!(
            encoded((Some(7_u8), None::<u16>, 8_u8), &["Nullable(UInt8)", "Nullable(UInt16)", "Nullable(UInt8)"])
                .unwrap(),
            [0, 7, 1, 0, 8]
        );
        assert_eq!(
            encoded((vec![Some("x"), None],), &["Array(LowCardinality(Nullable(String)))"]).unwrap(),
            [2, 0, 1, b'x', 1]
        );
        assert_eq!(
            encoded((RawString(b"\xff"), *b"xy", true), &["String", "FixedString(2)", "Bool"]).unwrap(),
            [1, 255, b'x', b'y', 1]
        );
        let uuid = encoded((Uuid(0x0102030405060708_090a0b0c0d0e0f10),), &["UUID"]).unwrap();
        assert_eq!(uuid, [8, 7, 6, 5, 4, 3, 2, 1, 16, 15, 14, 13, 12, 11, 10, 9]);
        let long = "x".repeat(200);
        assert_eq!(encoded((long.as_str(),), &["String"]).unwrap()[..2], [200, 1]);
    }

    #[test]
    fn what_does_not_fit_names_the_column() {
        let error = encoded((1_i64, "a"), &["Int32", "String"]).unwrap_err();
        assert_eq!(error.to_string(), "column c0: i64 can't be written to Int32 (row 0)");
        assert_eq!(encoded((1_i64,), &["Int64", "String"]).unwrap_err().to_string(), "1 values for 2 columns (row 0)");
        assert!(encoded((Some(1_i64),), &["Int64"]).is_err(), "NULL needs a Nullable column");
        assert!(encoded((*b"abc",), &["FixedString(2)"]).is_err());
        assert!(encoded((vec![1_u8],), &["Array(Int8)"]).is_err());
    }

    #[test]
    fn times_have_the_columns_precision_and_range() {
        use std::time::{Duration, UNIX_EPOCH};
        let time = UNIX_EPOCH + Duration::from_millis(1_500);
        assert_eq!(
            encoded((time, time), &["DateTime", "DateTime64(3, 'UTC')"]).unwrap(),
            [&1_u32.to_le_bytes()[..], &1_500_i64.to_le_bytes()].concat()
        );
        let before = UNIX_EPOCH - Duration::from_millis(1);
        assert_eq!(encoded((before,), &["DateTime64(0)"]).unwrap(), (-1_i64).to_le_bytes());
        assert!(encoded((before,), &["DateTime"]).unwrap_err().to_string().contains("range"));
    }
}
