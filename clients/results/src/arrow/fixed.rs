//! Values of a fixed width that Arrow has in another one, or in another order.

use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_schema::DataType as ArrowType;
use windrow_columns::DataType;

use super::buffers::{array, bitmap, owned, shared, Keeper};

/// Exports a column of a scalar type other than `String`.
pub(super) fn export(arrow: &ArrowType, scalar: &DataType, width: usize, data: &[u8], keeper: &Keeper) -> ArrayData {
    use DataType::*;
    let rows = data.len() / width.max(1);
    let values = match scalar {
        Bool => owned(bitmap(data, 0)),
        Date => owned(values::<2>(data).map(|day| i32::from(u16::from_le_bytes(day))).collect()),
        Decimal { precision: ..=9, .. } => {
            owned(values::<4>(data).map(|value| i128::from(i32::from_le_bytes(value))).collect())
        }
        Decimal { precision: 10..=18, .. } => {
            owned(values::<8>(data).map(|value| i128::from(i64::from_le_bytes(value))).collect())
        }
        Uuid => owned(values::<8>(data).map(|half| u64::from_le_bytes(half).to_be()).collect()),
        DateTime64 { precision, .. } => scaled(*precision, data, keeper),
        Time64 { precision: precision @ ..=3 } => {
            let factor = factor_of(*precision);
            let narrowed = |ticks: [u8; 8]| i64::from_le_bytes(ticks).wrapping_mul(factor) as i32;
            owned(values::<8>(data).map(narrowed).collect())
        }
        Time64 { precision } => scaled(*precision, data, keeper),
        BFloat16 => {
            let offsets = (0..=rows).map(|row| (row * width) as i32).collect();
            return array(arrow, rows, vec![owned::<i32>(offsets), shared(data, keeper)], Vec::new());
        }
        _ => shared(data, keeper),
    };
    array(arrow, rows, vec![values], Vec::new())
}

fn values<const WIDTH: usize>(data: &[u8]) -> impl Iterator<Item = [u8; WIDTH]> + '_ {
    data.chunks_exact(WIDTH).map(|value| value.try_into().expect("chunks of as many bytes"))
}

/// Returns the number of ticks of Arrow's unit in one of ClickHouse's.
fn factor_of(precision: u8) -> i64 {
    10_i64.pow(u32::from(precision.next_multiple_of(3) - precision))
}

fn scaled(precision: u8, data: &[u8], keeper: &Keeper) -> Buffer {
    match factor_of(precision) {
        1 => shared(data, keeper),
        factor => owned(values::<8>(data).map(|ticks| i64::from_le_bytes(ticks).wrapping_mul(factor)).collect()),
    }
}
