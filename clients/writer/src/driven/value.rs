//! Rust values: the columns that each type is written to, and the bytes that are written.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::{SystemTime, UNIX_EPOCH};

use windrow_columns::DataType;

/// A column of the table, as values are written to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    pub name: String,
    /// ClickHouse's name of the type.
    pub type_name: String,
    /// The type inside of `LowCardinality` and `Nullable`.
    pub data_type: DataType,
    pub is_nullable: bool,
}

impl Column {
    /// Makes a column. Returns `None` for a type of which Rust values can't be written.
    pub fn of(name: String, type_name: String) -> Option<Column> {
        let (data_type, is_nullable) = without_wrappers(&DataType::parse(&type_name).ok()?);
        Some(Column { name, type_name, data_type, is_nullable })
    }
}

fn without_wrappers(data_type: &DataType) -> (DataType, bool) {
    match data_type.plain() {
        DataType::LowCardinality(inner) => without_wrappers(inner),
        DataType::Nullable(inner) => (without_wrappers(inner).0, true),
        plain => (plain.clone(), false),
    }
}

/// The reason why a value can't be written, as text for the caller.
pub type ValueError = &'static str;

/// A value of a row. Implemented for Rust's numbers, texts, addresses, times, `Option` for Nullable columns and `Vec`
/// for Arrays.
pub trait Value {
    /// A type that is the same for all value types that are checked alike, whatever they borrow.
    type Shape: 'static;

    /// Says whether values go into a column of this type; `is_nullable` says whether the column takes NULL.
    fn fits(data_type: &DataType, is_nullable: bool) -> bool;

    /// Appends the value in RowBinary, to a type that fits.
    ///
    /// # Errors
    /// Fails where the value is out of the column's range, or an array is written to a column of another type.
    fn encode(&self, data_type: &DataType, is_nullable: bool, out: &mut Vec<u8>) -> Result<(), ValueError>;
}

macro_rules! numbers {
    ($($rust:ty => $($data_type:ident)|+;)*) => {$(
        impl Value for $rust {
            type Shape = $rust;

            fn fits(data_type: &DataType, _: bool) -> bool {
                matches!(data_type, $(DataType::$data_type)|+)
            }

            #[inline]
            fn encode(&self, _: &DataType, is_nullable: bool, out: &mut Vec<u8>) -> Result<(), ValueError> {
                not_null(is_nullable, out);
                out.extend_from_slice(&self.to_le_bytes());
                Ok(())
            }
        }
    )*};
}

numbers! {
    i8 => Int8; i16 => Int16; i32 => Int32; i64 => Int64; i128 => Int128;
    u8 => UInt8; u16 => UInt16; u32 => UInt32; u64 => UInt64; u128 => UInt128;
    f32 => Float32; f64 => Float64;
}

#[inline]
fn not_null(is_nullable: bool, out: &mut Vec<u8>) {
    if is_nullable {
        out.push(0);
    }
}

/// Implements [`Value`] for a type that is written without a look at the column's type.
macro_rules! plain {
    ($rust:ty, $fits:pat, |$value:ident, $out:ident| $encode:expr) => {
        impl Value for $rust {
            type Shape = $rust;

            fn fits(data_type: &DataType, _: bool) -> bool {
                matches!(data_type, $fits)
            }

            #[inline]
            fn encode(&self, _: &DataType, is_nullable: bool, $out: &mut Vec<u8>) -> Result<(), ValueError> {
                not_null(is_nullable, $out);
                let $value = self;
                $encode;
                Ok(())
            }
        }
    };
}

plain!(bool, DataType::Bool, |value, out| out.push(u8::from(*value)));
plain!(String, DataType::String, |value, out| text(value.as_bytes(), out));
plain!(Ipv4Addr, DataType::Ipv4, |value, out| out.extend_from_slice(&u32::from(*value).to_le_bytes()));
plain!(Ipv6Addr, DataType::Ipv6, |value, out| out.extend_from_slice(&value.octets()));
plain!(Uuid, DataType::Uuid, |value, out| {
    out.extend_from_slice(&((value.0 >> 64) as u64).to_le_bytes());
    out.extend_from_slice(&(value.0 as u64).to_le_bytes());
});
plain!(Date, DataType::Date, |value, out| out.extend_from_slice(&value.0.to_le_bytes()));
plain!(DateTime, DataType::DateTime { .. }, |value, out| out.extend_from_slice(&value.0.to_le_bytes()));
plain!(DateTime64, DataType::DateTime64 { .. }, |value, out| out.extend_from_slice(&value.0.to_le_bytes()));

/// A UUID, the first digit in the highest bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uuid(pub u128);

/// Days since 1970-01-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Date(pub u16);

/// Seconds since 1970-01-01 00:00:00 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DateTime(pub u32);

/// Ticks of the column's precision since 1970-01-01 00:00:00 UTC: milliseconds for a `DateTime64(3)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DateTime64(pub i64);

/// Bytes that need not be UTF-8, for a column of strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawString<'a>(pub &'a [u8]);

#[inline]
fn text(bytes: &[u8], out: &mut Vec<u8>) {
    count(bytes.len(), out);
    out.extend_from_slice(bytes);
}

#[inline]
fn count(mut count: usize, out: &mut Vec<u8>) {
    while count >= 0x80 {
        out.push(count as u8 | 0x80);
        count >>= 7;
    }
    out.push(count as u8);
}

impl Value for str {
    type Shape = String;

    fn fits(data_type: &DataType, _: bool) -> bool {
        matches!(data_type, DataType::String)
    }

    #[inline]
    fn encode(&self, _: &DataType, is_nullable: bool, out: &mut Vec<u8>) -> Result<(), ValueError> {
        not_null(is_nullable, out);
        text(self.as_bytes(), out);
        Ok(())
    }
}

impl Value for RawString<'_> {
    type Shape = String;

    fn fits(data_type: &DataType, _: bool) -> bool {
        matches!(data_type, DataType::String)
    }

    fn encode(&self, _: &DataType, is_nullable: bool, out: &mut Vec<u8>) -> Result<(), ValueError> {
        not_null(is_nullable, out);
        text(self.0, out);
        Ok(())
    }
}

impl<const N: usize> Value for [u8; N] {
    type Shape = [u8; N];

    fn fits(data_type: &DataType, _: bool) -> bool {
        *data_type == DataType::FixedString(N)
    }

    fn encode(&self, _: &DataType, is_nullable: bool, out: &mut Vec<u8>) -> Result<(), ValueError> {
        not_null(is_nullable, out);
        out.extend_from_slice(self);
        Ok(())
    }
}

impl Value for SystemTime {
    type Shape = SystemTime;

    fn fits(data_type: &DataType, _: bool) -> bool {
        matches!(data_type, DataType::DateTime { .. } | DataType::DateTime64 { .. })
    }

    fn encode(&self, data_type: &DataType, is_nullable: bool, out: &mut Vec<u8>) -> Result<(), ValueError> {
        const RANGE: ValueError = "the time is out of the column's range";
        not_null(is_nullable, out);
        let nanos = match self.duration_since(UNIX_EPOCH) {
            Ok(after) => i128::try_from(after.as_nanos()),
            Err(before) => i128::try_from(before.duration().as_nanos()).map(|nanos| -nanos),
        };
        let nanos = nanos.map_err(|_| RANGE)?;
        match data_type {
            DataType::DateTime64 { precision, .. } => {
                let tick_nanos = 10_i128.pow(9 - u32::from(*precision).min(9));
                let ticks = i64::try_from(nanos.div_euclid(tick_nanos)).map_err(|_| RANGE)?;
                out.extend_from_slice(&ticks.to_le_bytes());
            }
            _ => {
                let seconds = u32::try_from(nanos.div_euclid(1_000_000_000)).map_err(|_| RANGE)?;
                out.extend_from_slice(&seconds.to_le_bytes());
            }
        }
        Ok(())
    }
}

impl<T: Value + ?Sized> Value for &T {
    type Shape = T::Shape;

    fn fits(data_type: &DataType, is_nullable: bool) -> bool {
        T::fits(data_type, is_nullable)
    }

    #[inline]
    fn encode(&self, data_type: &DataType, is_nullable: bool, out: &mut Vec<u8>) -> Result<(), ValueError> {
        (**self).encode(data_type, is_nullable, out)
    }
}

impl<T: Value> Value for Option<T> {
    type Shape = Option<T::Shape>;

    fn fits(data_type: &DataType, is_nullable: bool) -> bool {
        is_nullable && T::fits(data_type, false)
    }

    #[inline]
    fn encode(&self, data_type: &DataType, _: bool, out: &mut Vec<u8>) -> Result<(), ValueError> {
        out.push(u8::from(self.is_none()));
        self.as_ref().map_or(Ok(()), |value| value.encode(data_type, false, out))
    }
}

impl<T: Value> Value for [T] {
    type Shape = Vec<T::Shape>;

    fn fits(data_type: &DataType, is_nullable: bool) -> bool {
        let DataType::Array(element) = data_type else { return false };
        let (element, is_element_nullable) = without_wrappers(element);
        !is_nullable && T::fits(&element, is_element_nullable)
    }

    fn encode(&self, data_type: &DataType, _: bool, out: &mut Vec<u8>) -> Result<(), ValueError> {
        let DataType::Array(element) = data_type else { return Err("the column is no Array") };
        let (element, is_nullable) = without_wrappers(element);
        count(self.len(), out);
        self.iter().try_for_each(|value| value.encode(&element, is_nullable, out))
    }
}

impl<T: Value> Value for Vec<T> {
    type Shape = Vec<T::Shape>;

    fn fits(data_type: &DataType, is_nullable: bool) -> bool {
        <[T]>::fits(data_type, is_nullable)
    }

    fn encode(&self, data_type: &DataType, is_nullable: bool, out: &mut Vec<u8>) -> Result<(), ValueError> {
        self.as_slice().encode(data_type, is_nullable, out)
    }
}
