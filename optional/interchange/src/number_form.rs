//! The forms in which columns store numbers.

use windrow_columns::DataType;

/// The seconds of 1900-01-01 and of the end of 2299, the limits of DateTime64 in every version.
const SECONDS: (i128, i128) = (-2_208_988_800, 10_413_791_999);
/// The days of 1900-01-01 and 2299-12-31, the limits of Date32.
const DAYS: (i128, i128) = (-25_567, 120_529);

/// The form in which a column stores an integer or a float.
#[derive(Clone, Debug)]
pub(crate) enum NumberForm {
    /// The number as it is, within these limits.
    Integer {
        low: i128,
        high: i128,
        width: usize,
        is_sure: bool,
    },
    Float32 {
        exact: bool,
    },
    Float64 {
        exact: bool,
    },
    /// The number times `factor`, within these limits before that.
    Scaled {
        low: i128,
        high: i128,
        factor: i128,
        width: usize,
    },
    /// A number that has to be one of these.
    Enum {
        values: Vec<i16>,
        width: usize,
    },
}

/// The reason why a number has no place in its column.
pub(crate) enum Misfit {
    /// The number is none of the scalar's.
    Broken,
    /// ClickHouse refuses the number too.
    Refused,
    /// ClickHouse may convert the number.
    Doubtful,
}

impl NumberForm {
    /// Returns the form for integers, or `None` where the type has no such numbers.
    pub(crate) fn integer(wanted: &DataType, exact: bool) -> Option<NumberForm> {
        use DataType as T;
        let width = wanted.fixed_width()?;
        let within = |low, high| Some(NumberForm::Integer { low, high, width, is_sure: true });
        let doubtful = |low, high| Some(NumberForm::Integer { low, high, width, is_sure: false });
        match wanted {
            T::UInt8 | T::UInt16 | T::UInt32 | T::UInt64 | T::Date | T::DateTime { .. } => {
                within(0, (1i128 << (8 * width)) - 1)
            }
            // ClickHouse cuts numbers down to this one type.
            T::Int8 => doubtful(i8::MIN.into(), i8::MAX.into()),
            T::Int16 | T::Int32 | T::Int64 => within(-(1i128 << (8 * width - 1)), (1i128 << (8 * width - 1)) - 1),
            T::Int128 | T::Int256 => within(i128::MIN, i128::MAX),
            T::UInt128 | T::UInt256 => doubtful(0, i128::MAX),
            T::Bool => doubtful(0, 1),
            T::Ipv4 => doubtful(0, u32::MAX.into()),
            T::Date32 => doubtful(DAYS.0, DAYS.1),
            T::DateTime64 { precision, .. } => {
                let factor = 10i128.checked_pow(u32::from(*precision))?;
                let most = i128::from(i64::MAX) / factor;
                let (low, high) = (SECONDS.0.max(-most), SECONDS.1.min(most));
                Some(NumberForm::Scaled { low, high, factor, width })
            }
            T::Decimal { precision, scale } => {
                let factor = 10i128.checked_pow(u32::from(*scale))?;
                let digits = u32::from(precision.checked_sub(*scale)?).min(38);
                let most = (10i128.checked_pow(digits)? - 1).min(i128::MAX / factor);
                Some(NumberForm::Scaled { low: -most, high: most, factor, width })
            }
            T::Enum8(values) | T::Enum16(values) => {
                Some(NumberForm::Enum { values: values.iter().map(|entry| entry.value).collect(), width })
            }
            _ => NumberForm::float(wanted, exact),
        }
    }

    pub(crate) fn float(wanted: &DataType, exact: bool) -> Option<NumberForm> {
        match wanted {
            DataType::Float32 => Some(NumberForm::Float32 { exact }),
            DataType::Float64 => Some(NumberForm::Float64 { exact }),
            _ => None,
        }
    }

    pub(crate) fn width(&self) -> usize {
        match self {
            NumberForm::Integer { width, .. } | NumberForm::Scaled { width, .. } | NumberForm::Enum { width, .. } => {
                *width
            }
            NumberForm::Float32 { .. } => 4,
            NumberForm::Float64 { .. } => 8,
        }
    }

    #[inline]
    pub(crate) fn push_integer(&self, value: i128, out: &mut Vec<u8>) -> Result<(), Misfit> {
        match self {
            NumberForm::Integer { low, high, width, is_sure } => {
                if value < *low || value > *high {
                    return Err(if *is_sure { Misfit::Refused } else { Misfit::Doubtful });
                }
                push_bytes(value, *width, out);
            }
            NumberForm::Scaled { low, high, factor, width } => {
                if value < *low || value > *high {
                    return Err(Misfit::Doubtful);
                }
                push_bytes(value * factor, *width, out);
            }
            NumberForm::Float32 { exact } if !exact || (value as f32) as i128 == value => {
                out.extend_from_slice(&(value as f32).to_le_bytes());
            }
            NumberForm::Float64 { exact } if !exact || (value as f64) as i128 == value => {
                out.extend_from_slice(&(value as f64).to_le_bytes());
            }
            NumberForm::Float32 { .. } | NumberForm::Float64 { .. } => return Err(Misfit::Doubtful),
            NumberForm::Enum { values, width } => {
                let value = i16::try_from(value).map_err(|_| Misfit::Refused)?;
                values.binary_search(&value).map_err(|_| Misfit::Refused)?;
                out.extend_from_slice(&value.to_le_bytes()[..*width]);
            }
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn push_float(&self, value: f64, out: &mut Vec<u8>) -> Result<(), Misfit> {
        match self {
            NumberForm::Float32 { exact } => {
                let narrow = value as f32;
                if *exact && !value.is_nan() && f64::from(narrow) != value {
                    return Err(Misfit::Doubtful);
                }
                out.extend_from_slice(&narrow.to_le_bytes());
            }
            NumberForm::Float64 { .. } => out.extend_from_slice(&value.to_le_bytes()),
            _ => return Err(Misfit::Doubtful),
        }
        Ok(())
    }
}

#[inline]
fn push_bytes(value: i128, width: usize, out: &mut Vec<u8>) {
    let bytes = value.to_le_bytes();
    match width {
        1 => out.push(bytes[0]),
        2 => out.extend_from_slice(&bytes[..2]),
        4 => out.extend_from_slice(&bytes[..4]),
        8 => out.extend_from_slice(&bytes[..8]),
        16 => out.extend_from_slice(&bytes),
        _ => {
            out.extend_from_slice(&bytes);
            out.resize(out.len() + width - 16, if value < 0 { 0xFF } else { 0 });
        }
    }
}

pub(crate) fn is_plain_integer(wanted: &DataType) -> bool {
    use DataType::*;
    matches!(wanted, UInt8 | UInt16 | UInt32 | UInt64 | Int8 | Int16 | Int32 | Int64)
}
