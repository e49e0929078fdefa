//! Blocks as texts, read from their Native bytes by code that shares nothing with the crate.

use windrow_columns::{native_pieces, DataType, Parsed, ReadPlan};

/// Renders one text per row, columns separated by `|`.
pub fn render_rows(parsed: &Parsed, plan: &ReadPlan) -> Vec<String> {
    let columns: Vec<_> = parsed.present.iter().map(|index| &plan.columns()[index]).collect();
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let types: Vec<DataType> = columns.iter().map(|column| column.data_type.clone()).collect();
    assert_eq!(parsed.block.columns(), types.len(), "one column in the block for each that is present");
    let native = parsed.block.encode_native(&names, &types);
    let pieces = parsed.block.clone().into_native(&names, &types);
    assert_eq!(native, pieces.concat(), "all ways of encoding give the same bytes");
    let lent = native_pieces(std::slice::from_ref(&parsed.block), &names, &types);
    assert_eq!(native, lent.concat(), "all ways of encoding give the same bytes");
    render_native(&native, &types)
}

pub fn render_native(native: &[u8], types: &[DataType]) -> Vec<String> {
    let mut bytes = Bytes { rest: native };
    assert_eq!(bytes.varint(), types.len() as u64);
    let rows = bytes.varint() as usize;
    let mut columns = Vec::new();
    for data_type in types {
        bytes.string();
        assert_eq!(String::from_utf8_lossy(bytes.string()), data_type.native_name());
        bytes.take(if rows > 0 { 8 * variants(data_type) } else { 0 });
        columns.push(column(&mut bytes, data_type, rows));
    }
    assert!(bytes.rest.is_empty(), "{} bytes behind the block", bytes.rest.len());
    (0..rows).map(|row| columns.iter().map(|column| column[row].as_str()).collect::<Vec<_>>().join("|")).collect()
}

/// Returns the number of Variants in a type: each has eight bytes before the values.
fn variants(data_type: &DataType) -> usize {
    match data_type {
        DataType::Nullable(inner) | DataType::Array(inner) => variants(inner),
        DataType::Map(key, value) => variants(key) + variants(value),
        DataType::Tuple(tuple) => tuple.elements.iter().map(variants).sum(),
        DataType::Custom(custom) => variants(&custom.inner),
        DataType::Variant(alternatives) => 1 + alternatives.iter().map(variants).sum::<usize>(),
        _ => 0,
    }
}

struct Bytes<'a> {
    rest: &'a [u8],
}

impl<'a> Bytes<'a> {
    fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    fn varint(&mut self) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = self.take(1)[0];
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }

    fn string(&mut self) -> &'a [u8] {
        let length = self.varint() as usize;
        self.take(length)
    }

    fn little_endian(&mut self, width: usize) -> i128 {
        let mut value = [0; 16];
        value[..width].copy_from_slice(self.take(width));
        i128::from_le_bytes(value)
    }

    fn signed(&mut self, width: usize) -> i128 {
        let shift = 128 - 8 * width as u32;
        self.little_endian(width) << shift >> shift
    }
}

fn column(bytes: &mut Bytes<'_>, data_type: &DataType, rows: usize) -> Vec<String> {
    match data_type {
        DataType::LowCardinality(inner) => column(bytes, inner, rows),
        DataType::Nullable(inner) => {
            let nulls = bytes.take(rows).to_vec();
            let values = column(bytes, inner, rows);
            nulls.iter().zip(values).map(|(null, value)| if *null == 1 { "NULL".into() } else { value }).collect()
        }
        DataType::Array(inner) => array(bytes, rows, |bytes, rows| column(bytes, inner, rows)),
        DataType::Map(key, value) => array(bytes, rows, |bytes, rows| {
            let keys = column(bytes, key, rows);
            let values = column(bytes, value, rows);
            keys.iter().zip(values).map(|(key, value)| format!("{key}:{value}")).collect()
        }),
        DataType::Tuple(tuple) => {
            let elements: Vec<_> = tuple.elements.iter().map(|element| column(bytes, element, rows)).collect();
            let row = |row: usize| elements.iter().map(|element| element[row].as_str()).collect::<Vec<_>>().join(",");
            (0..rows).map(|index| format!("({})", row(index))).collect()
        }
        DataType::Custom(custom) => column(bytes, &custom.inner, rows),
        DataType::Variant(alternatives) => variant(bytes, alternatives, rows),
        scalar => (0..rows).map(|_| value(bytes, scalar)).collect(),
    }
}

/// Reads a Variant, in which every alternative has the values of its own rows only.
fn variant(bytes: &mut Bytes<'_>, alternatives: &[DataType], rows: usize) -> Vec<String> {
    let discriminators = bytes.take(rows).to_vec();
    let mut values: Vec<_> = (0u8..)
        .zip(alternatives)
        .map(|(index, alternative)| {
            let rows = discriminators.iter().filter(|discriminator| **discriminator == index).count();
            column(bytes, alternative, rows).into_iter()
        })
        .collect();
    let mut value = |index: u8| values[usize::from(index)].next().expect("as many values as discriminators");
    discriminators.iter().map(|index| if *index == 255 { "NULL".into() } else { value(*index) }).collect()
}

fn array(bytes: &mut Bytes<'_>, rows: usize, inner: impl FnOnce(&mut Bytes<'_>, usize) -> Vec<String>) -> Vec<String> {
    let offsets: Vec<usize> = (0..rows).map(|_| bytes.little_endian(8) as usize).collect();
    let values = inner(bytes, offsets.last().copied().unwrap_or(0));
    let starts = std::iter::once(&0).chain(&offsets);
    starts.zip(&offsets).map(|(start, end)| format!("[{}]", values[*start..*end].join(","))).collect()
}

fn value(bytes: &mut Bytes<'_>, data_type: &DataType) -> String {
    use DataType::*;
    match data_type {
        UInt8 | Bool => bytes.little_endian(1).to_string(),
        UInt16 | Date => bytes.little_endian(2).to_string(),
        UInt32 | DateTime { .. } => bytes.little_endian(4).to_string(),
        UInt64 => bytes.little_endian(8).to_string(),
        UInt128 => (bytes.little_endian(16) as u128).to_string(),
        Int8 | Enum8(_) => bytes.signed(1).to_string(),
        Int16 | Enum16(_) => bytes.signed(2).to_string(),
        Int32 | Date32 | Time => bytes.signed(4).to_string(),
        Int64 | DateTime64 { .. } | Time64 { .. } | Interval(_) => bytes.signed(8).to_string(),
        Int128 => bytes.signed(16).to_string(),
        UInt256 | Int256 => hex(bytes.take(32).iter().rev()),
        Decimal { precision, .. } => match precision {
            0..=9 => bytes.signed(4).to_string(),
            10..=18 => bytes.signed(8).to_string(),
            19..=38 => bytes.signed(16).to_string(),
            _ => hex(bytes.take(32).iter().rev()),
        },
        BFloat16 => format!("{:?}", f32::from_bits((bytes.little_endian(2) as u32) << 16)),
        Float32 => format!("{:?}", f32::from_bits(bytes.little_endian(4) as u32)),
        Float64 => format!("{:?}", f64::from_bits(bytes.little_endian(8) as u64)),
        String => bytes.string().escape_ascii().to_string(),
        FixedString(width) => bytes.take(*width).escape_ascii().to_string(),
        Uuid => hex(bytes.take(8).iter().rev()) + &hex(bytes.take(8).iter().rev()),
        Ipv4 => std::net::Ipv4Addr::from(bytes.little_endian(4) as u32).to_string(),
        Ipv6 => std::net::Ipv6Addr::from(<[u8; 16]>::try_from(bytes.take(16)).unwrap()).to_string(),
        Nullable(_) | LowCardinality(_) | Array(_) | Map(..) | Tuple(_) | Variant(_) | Custom(_) => {
            unreachable!("not a scalar")
        }
        Dynamic | Json { .. } | QBit { .. } | Nothing | AggregateFunction(_) => unreachable!("of results only"),
    }
}

fn hex<'b>(bytes: impl Iterator<Item = &'b u8>) -> String {
    bytes.map(|byte| format!("{byte:02x}")).collect()
}
