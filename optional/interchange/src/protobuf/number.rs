//! Reads numbers of the wire.

use windrow_columns::DataType;

use super::schema::Scalar;
use super::Rules;
use crate::input::Input;
use crate::number_form::{is_plain_integer, Misfit, NumberForm};

/// Returns the form for a number. Returns `None` where ClickHouse may read such a number into such a type in
/// another way than its value suggests.
pub(super) fn number_form(scalar: Scalar, wanted: &DataType, rules: &Rules) -> Option<NumberForm> {
    let form = match scalar {
        Scalar::String | Scalar::Bytes => return None,
        Scalar::Float | Scalar::Double => return NumberForm::float(wanted, rules.exact),
        _ => NumberForm::integer(wanted, rules.exact)?,
    };
    if rules.every_pair {
        let is_refused = scalar == Scalar::Bool && !is_for_bool(wanted);
        return (!is_refused).then_some(form);
    }
    use DataType as T;
    let is_read = match scalar {
        Scalar::Bool => matches!(wanted, T::Bool | T::UInt8),
        Scalar::UInt32 | Scalar::Fixed32 if matches!(wanted, T::Date | T::Ipv4) => true,
        _ => is_plain_integer(wanted) || matches!(wanted, T::Float32 | T::Float64 | T::DateTime { .. }),
    };
    is_read.then_some(form)
}

#[inline]
pub(super) fn push_number(
    form: &NumberForm,
    scalar: Scalar,
    input: &mut Input<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Misfit> {
    match scalar {
        Scalar::Float => form.push_float(f32::from_le_bytes(input.array().ok_or(Misfit::Broken)?).into(), out),
        Scalar::Double => form.push_float(f64::from_le_bytes(input.array().ok_or(Misfit::Broken)?), out),
        _ => form.push_integer(read_integer(scalar, input)?, out),
    }
}

/// Reads a number in the scalar's range.
#[inline]
pub(super) fn read_integer(scalar: Scalar, input: &mut Input<'_>) -> Result<i128, Misfit> {
    let mut read = || {
        Some(match scalar {
            Scalar::Int32 => i32::try_from(input.varint()? as i64).ok()?.into(),
            Scalar::UInt32 => u32::try_from(input.varint()?).ok()?.into(),
            Scalar::SInt32 => i32::try_from(input.zigzag()?).ok()?.into(),
            Scalar::Int64 => i128::from(input.varint()? as i64),
            Scalar::UInt64 => input.varint()?.into(),
            Scalar::SInt64 => input.zigzag()?.into(),
            Scalar::Bool => u8::try_from(input.varint()?).ok().filter(|byte| *byte <= 1)?.into(),
            Scalar::Fixed32 => u32::from_le_bytes(input.array()?).into(),
            Scalar::SFixed32 => i32::from_le_bytes(input.array()?).into(),
            Scalar::Fixed64 => u64::from_le_bytes(input.array()?).into(),
            Scalar::SFixed64 => i64::from_le_bytes(input.array()?).into(),
            Scalar::Float | Scalar::Double | Scalar::String | Scalar::Bytes => return None,
        })
    };
    read().ok_or(Misfit::Broken)
}

fn is_for_bool(wanted: &DataType) -> bool {
    use DataType as T;
    is_plain_integer(wanted) || matches!(wanted, T::Bool | T::UInt128 | T::Int128 | T::UInt256 | T::Int256)
}
