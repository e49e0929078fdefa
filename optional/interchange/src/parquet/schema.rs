//! A file's schema as a tree: the parts of each column, and the levels at which its values are there.

use super::footer::{Logical, SchemaElement};

const MAX_DEPTH: usize = 32;

pub(super) struct Field {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) optional: bool,
}

pub(super) enum Kind {
    /// A leaf. Leaves are numbered in the order of their chunks.
    Leaf {
        index: usize,
        leaf: Leaf,
    },
    List(Box<Field>),
    Map {
        key: Box<Field>,
        value: Box<Field>,
    },
    Struct(Vec<Field>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Leaf {
    pub(super) physical: Physical,
    pub(super) meaning: Meaning,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Physical {
    Bool,
    Int32,
    Int64,
    Float,
    Double,
    Bytes,
    FixedBytes(usize),
}

/// The meaning of the physical values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Meaning {
    Plain,
    /// An integer of another width than that of its storage.
    Int {
        width: usize,
        signed: bool,
    },
    Uuid,
    Date,
    TimeOfDay {
        power: u32,
    },
    Timestamp {
        power: u32,
    },
    Decimal {
        scale: i32,
        width: usize,
    },
}

impl Physical {
    /// Returns the width of values that all have the same; 1 for others.
    pub(super) fn width(self) -> i32 {
        match self {
            Physical::FixedBytes(width) => width as i32,
            _ => 1,
        }
    }

    pub(super) fn of(number: i32, type_length: Option<i32>) -> Option<Self> {
        Some(match number {
            0 => Physical::Bool,
            1 => Physical::Int32,
            2 => Physical::Int64,
            4 => Physical::Float,
            5 => Physical::Double,
            6 => Physical::Bytes,
            7 => Physical::FixedBytes(usize::try_from(type_length?).ok().filter(|width| *width > 0)?),
            _ => return None,
        })
    }
}

/// Returns the columns of a schema, or `None` where one is of a kind that is not read here. `for_sql` says
/// that types which DuckDB writes are read too, though ClickHouse may read them as other types.
pub(super) fn fields(elements: &[SchemaElement], for_sql: bool) -> Option<Vec<Field>> {
    let (root, rest) = elements.split_first()?;
    let mut walk = Walk { rest, leaves: 0, for_sql };
    let fields = (0..root.children).map(|_| walk.field(0)).collect::<Option<Vec<_>>>()?;
    walk.rest.is_empty().then_some(fields)
}

struct Walk<'e> {
    rest: &'e [SchemaElement],
    leaves: usize,
    for_sql: bool,
}

const REQUIRED: Option<i32> = Some(0);
const OPTIONAL: Option<i32> = Some(1);
const REPEATED: Option<i32> = Some(2);

impl<'e> Walk<'e> {
    fn next(&mut self) -> Option<&'e SchemaElement> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    fn field(&mut self, depth: usize) -> Option<Field> {
        let element = self.next()?;
        if depth > MAX_DEPTH || !matches!(element.repetition, REQUIRED | OPTIONAL) {
            return None;
        }
        let kind = match element.physical {
            Some(physical) if element.children == 0 => self.leaf(element, physical)?,
            Some(_) => return None,
            None => self.group(element, depth)?,
        };
        Some(Field { name: element.name.clone(), kind, optional: element.repetition == OPTIONAL })
    }

    fn leaf(&mut self, element: &SchemaElement, physical: i32) -> Option<Kind> {
        let index = self.leaves;
        self.leaves += 1;
        let physical = Physical::of(physical, element.type_length)?;
        Some(Kind::Leaf { index, leaf: Leaf { physical, meaning: meaning(element, physical, self.for_sql)? } })
    }

    fn group(&mut self, element: &SchemaElement, depth: usize) -> Option<Kind> {
        match (element.logical, element.converted) {
            (Some(Logical::List), _) | (None, Some(3)) => {
                let repeated = self.repeated(element, 1)?;
                // With two levels instead of three the names would decide; ClickHouse and Arrow write three.
                let is_old = repeated.name == "array" || repeated.name.ends_with("_tuple");
                let inner = self.field(depth + 1)?;
                (!is_old).then_some(Kind::List(Box::new(inner)))
            }
            (Some(Logical::Map), _) | (None, Some(1 | 2)) => {
                self.repeated(element, 2)?;
                let key = self.field(depth + 1)?;
                let value = self.field(depth + 1)?;
                (!key.optional).then_some(Kind::Map { key: Box::new(key), value: Box::new(value) })
            }
            (None, None) if element.children > 0 => {
                let fields = (0..element.children).map(|_| self.field(depth + 1)).collect::<Option<Vec<_>>>()?;
                Some(Kind::Struct(fields))
            }
            _ => None,
        }
    }

    /// Returns the repeated group within a list or map.
    fn repeated(&mut self, outer: &SchemaElement, children: i32) -> Option<&'e SchemaElement> {
        let repeated = self.next()?;
        let is_group = repeated.physical.is_none() && repeated.children == children && repeated.logical.is_none();
        (outer.children == 1 && is_group && repeated.repetition == REPEATED).then_some(repeated)
    }
}

fn meaning(element: &SchemaElement, physical: Physical, for_sql: bool) -> Option<Meaning> {
    let decimal = |scale: i32, precision: i32| {
        let width = match precision {
            1..=9 => 4,
            10..=18 => 8,
            19..=38 => 16,
            39..=76 => 32,
            _ => return None,
        };
        let holds =
            matches!(physical, Physical::Int32 | Physical::Int64 | Physical::Bytes | Physical::FixedBytes(1..=32));
        (holds && (0..=precision).contains(&scale)).then_some(Meaning::Decimal { scale, width })
    };
    let int = |bits: u8, signed: bool| match (physical, bits) {
        (Physical::Int32, 8 | 16 | 32) | (Physical::Int64, 64) => {
            Some(Meaning::Int { width: usize::from(bits) / 8, signed })
        }
        _ => None,
    };
    if let Some(logical) = element.logical {
        return match (logical, physical) {
            (Logical::String | Logical::Enum, Physical::Bytes) => Some(Meaning::Plain),
            (Logical::Uuid, Physical::FixedBytes(16)) => Some(Meaning::Uuid),
            (Logical::Decimal { scale, precision }, _) => decimal(scale, precision),
            (Logical::Date, Physical::Int32) => Some(Meaning::Date),
            (Logical::Json, Physical::Bytes) if for_sql => Some(Meaning::Plain),
            (Logical::Time { power }, Physical::Int64) if for_sql => Some(Meaning::TimeOfDay { power }),
            (Logical::Timestamp { power }, Physical::Int64) => Some(Meaning::Timestamp { power }),
            (Logical::Int { bits, signed }, _) => int(bits, signed),
            _ => None,
        };
    }
    match (element.converted, physical) {
        (None, Physical::Int32) => Some(Meaning::Int { width: 4, signed: true }),
        (None, Physical::Int64) => Some(Meaning::Int { width: 8, signed: true }),
        (None, _) | (Some(0 | 4), Physical::Bytes) => Some(Meaning::Plain),
        (Some(5), _) => decimal(element.scale, element.precision),
        (Some(6), Physical::Int32) => Some(Meaning::Date),
        (Some(9), Physical::Int64) => Some(Meaning::Timestamp { power: 3 }),
        (Some(10), Physical::Int64) => Some(Meaning::Timestamp { power: 6 }),
        (Some(unsigned @ 11..=14), _) => int(8 << (unsigned - 11), false),
        (Some(signed @ 15..=18), _) => int(8 << (signed - 15), true),
        _ => None,
    }
}
