//! Rows that come back with an error, as a Native block: the results' own reader turns it into Python values.

use windrow_columns::{ColumnSpec, DataType, DefaultKind, Format, ReadPlan, ReadSettings};
use windrow_writer::{Destination, Rows};

/// The bytes in front of a block for clients that name their version: no overflow row, no bucket.
const BLOCK_INFO: [u8; 8] = [1, 0, 2, 0xff, 0xff, 0xff, 0xff, 0];

/// Makes a Native block of rows. Returns `None` if a type of theirs is not read here.
pub(super) fn native_block(destination: &Destination, rows: Rows<'_>) -> Option<Vec<u8>> {
    let types: Vec<DataType> =
        destination.types.iter().map(|name| DataType::parse(name).ok()).collect::<Option<_>>()?;
    let column = |(name, data_type): (&String, &DataType)| ColumnSpec {
        name: name.clone(),
        data_type: data_type.clone(),
        default_kind: DefaultKind::None,
    };
    let columns = destination.columns.iter().zip(&types).map(column).collect();
    let plan = ReadPlan::new(columns, ReadSettings::default());
    let format = Format::named("RowBinary")?;
    let parsed = (format.read)(rows.bytes(), &plan).ok()?;
    let block = parsed.block.encode_native(&destination.columns, &types);
    Some([&BLOCK_INFO[..], &block].concat())
}
