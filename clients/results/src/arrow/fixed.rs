//! Values of a fixed width that Arrow has in another one, or in another order.

use windrow_columns::DataType;

use super::node::{bitmap, Buffer, Keeper, Node};
use super::schema::unit_of;

/// Exports a column of a scalar type other than `String`.
pub(super) fn export(scalar: &DataType, width: usize, data: &[u8], keeper: &Keeper) -> Node {
    use DataType::*;
    let rows = data.len() / width.max(1);
    let values = match scalar {
        Bool => Buffer::owned(bitmap(data, 0)),
        Date => Buffer::owned(values::<2>(data).map(|day| i32::from(u16::from_le_bytes(day))).collect()),
        Decimal { precision: ..=9, .. } => {
            Buffer::owned(values::<4>(data).map(|value| i128::from(i32::from_le_bytes(value))).collect())
        }
        Decimal { precision: 10..=18, .. } => {
            Buffer::owned(values::<8>(data).map(|value| i128::from(i64::from_le_bytes(value))).collect())
        }
        Uuid => Buffer::owned(values::<8>(data).map(|half| u64::from_le_bytes(half).to_be_bytes()).collect()),
        DateTime64 { precision, .. } => scaled(*precision, data, keeper),
        Time64 { precision: precision @ ..=3 } => {
            let factor = factor_of(*precision);
            let narrowed = |ticks: [u8; 8]| i64::from_le_bytes(ticks).wrapping_mul(factor) as i32;
            Buffer::owned(values::<8>(data).map(narrowed).collect())
        }
        Time64 { precision } => scaled(*precision, data, keeper),
        BFloat16 => {
            let offsets = (0..=rows).map(|row| (row * width) as i32).collect();
            return Node::valid(rows, vec![Buffer::owned::<i32>(offsets), Buffer::shared(data, keeper)], Vec::new());
        }
        _ => Buffer::shared(data, keeper),
    };
    Node::valid(rows, vec![values], Vec::new())
}

fn values<const WIDTH: usize>(data: &[u8]) -> impl Iterator<Item = [u8; WIDTH]> + '_ {
    data.chunks_exact(WIDTH).map(|value| value.try_into().expect("chunks of as many bytes"))
}

/// Returns the number of ticks of Arrow's unit in one of ClickHouse's.
fn factor_of(precision: u8) -> i64 {
    10_i64.pow(3 * unit_of(precision) as u32 - u32::from(precision))
}

fn scaled(precision: u8, data: &[u8], keeper: &Keeper) -> Buffer {
    match factor_of(precision) {
        1 => Buffer::shared(data, keeper),
        factor => {
            Buffer::owned(values::<8>(data).map(|ticks| i64::from_le_bytes(ticks).wrapping_mul(factor)).collect())
        }
    }
}
