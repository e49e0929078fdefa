use super::super::binary::BinaryInput;
use super::NotParsedReason;

/// The next item of the payload; the values inside a list or map follow it.
pub(super) enum Item<'a> {
    Nil,
    Bool(bool),
    Unsigned(u64),
    /// A signed number, also one that is not negative, if it was written so.
    Signed(i64),
    /// Bytes of a float, little-endian.
    Float32([u8; 4]),
    Float64([u8; 8]),
    Text(&'a [u8]),
    Binary(&'a [u8]),
    List(usize),
    Map(usize),
    Extension {
        kind: u8,
        bytes: &'a [u8],
    },
}

#[inline]
pub(super) fn read_item<'a>(input: &mut BinaryInput<'a>) -> Result<Item<'a>, NotParsedReason> {
    let head = input.byte()?;
    Ok(match head {
        0x00..=0x7F => Item::Unsigned(u64::from(head)),
        0x80..=0x8F => Item::Map(usize::from(head & 0x0F)),
        0x90..=0x9F => Item::List(usize::from(head & 0x0F)),
        0xA0..=0xBF => Item::Text(input.take(usize::from(head & 0x1F))?),
        0xE0..=0xFF => Item::Signed(i64::from(head as i8)),
        _ => read_marked(input, head)?,
    })
}

/// Reads an item whose first byte says only its kind.
fn read_marked<'a>(input: &mut BinaryInput<'a>, head: u8) -> Result<Item<'a>, NotParsedReason> {
    Ok(match head {
        0xC0 => Item::Nil,
        0xC2 => Item::Bool(false),
        0xC3 => Item::Bool(true),
        0xC4..=0xC6 => {
            let length = read_length(input, 1 << (head - 0xC4))?;
            Item::Binary(input.take(length)?)
        }
        0xC7..=0xC9 => {
            let length = read_length(input, 1 << (head - 0xC7))?;
            read_extension(input, length)?
        }
        0xCA => Item::Float32(reversed(input.array::<4>()?)),
        0xCB => Item::Float64(reversed(input.array::<8>()?)),
        0xCC..=0xCF => Item::Unsigned(read_unsigned(input, 1 << (head - 0xCC))?),
        0xD0..=0xD3 => Item::Signed(read_signed(input, 1 << (head - 0xD0))?),
        0xD4..=0xD8 => read_extension(input, 1 << (head - 0xD4))?,
        0xD9..=0xDB => {
            let length = read_length(input, 1 << (head - 0xD9))?;
            Item::Text(input.take(length)?)
        }
        0xDC..=0xDD => Item::List(read_length(input, 2 << (head - 0xDC))?),
        0xDE..=0xDF => Item::Map(read_length(input, 2 << (head - 0xDE))?),
        _ => return Err(NotParsedReason::Syntax),
    })
}

fn read_extension<'a>(input: &mut BinaryInput<'a>, length: usize) -> Result<Item<'a>, NotParsedReason> {
    Ok(Item::Extension { kind: input.byte()?, bytes: input.take(length)? })
}

fn read_length(input: &mut BinaryInput<'_>, width: usize) -> Result<usize, NotParsedReason> {
    usize::try_from(read_unsigned(input, width)?).map_err(|_| NotParsedReason::Syntax)
}

/// Reads a big-endian number of at most eight bytes.
fn read_unsigned(input: &mut BinaryInput<'_>, width: usize) -> Result<u64, NotParsedReason> {
    Ok(input.take(width)?.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

fn read_signed(input: &mut BinaryInput<'_>, width: usize) -> Result<i64, NotParsedReason> {
    let unused_bits = 64 - 8 * width;
    Ok((read_unsigned(input, width)? << unused_bits) as i64 >> unused_bits)
}

fn reversed<const WIDTH: usize>(bytes: &[u8; WIDTH]) -> [u8; WIDTH] {
    let mut reversed = *bytes;
    reversed.reverse();
    reversed
}
