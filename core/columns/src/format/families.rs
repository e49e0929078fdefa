//! Groups of formats that share settings.

/// A set of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Families(u32);

pub const NONE: Families = Families(0);
pub const JSON: Families = Families(1);
pub const VALUES: Families = Families(1 << 1);
pub const CSV: Families = Families(1 << 2);
pub const TSV: Families = Families(1 << 3);
pub const CUSTOM: Families = Families(1 << 4);
/// Formats whose first line may give names, of columns or of types.
pub const HEADED: Families = Families(1 << 5);
pub const ROW_BINARY: Families = Families(1 << 6);
pub const NATIVE: Families = Families(1 << 7);
pub const MSGPACK: Families = Families(1 << 8);
pub const ARROW: Families = Families(1 << 9);
pub const PARQUET: Families = Families(1 << 10);
pub const AVRO: Families = Families(1 << 11);
pub const PROTOBUF: Families = Families(1 << 12);

/// Formats of text with delimiters.
pub const TEXT: Families = CSV.and(TSV).and(CUSTOM);
pub const ALL: Families = Families(u32::MAX);

impl Families {
    pub const fn and(self, other: Families) -> Families {
        Families(self.0 | other.0)
    }

    pub const fn meets(self, other: Families) -> bool {
        self.0 & other.0 != 0
    }
}
