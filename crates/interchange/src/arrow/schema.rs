//! An Arrow schema: the fields of a stream and how their values lie in buffers.

use super::flatbuffer::{Table, Vector};

/// Deeper schemas are left to ClickHouse.
const MAX_DEPTH: usize = 32;
const MAX_FIELDS: usize = 10_000;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) layout: Layout,
    /// The values are indices into the dictionary of this id.
    pub(super) dictionary: Option<Dictionary>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Dictionary {
    pub(super) id: i64,
    pub(super) index_width: usize,
    pub(super) signed: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Layout {
    Bool,
    Int {
        width: usize,
        signed: bool,
    },
    Float {
        width: usize,
    },
    Date,
    Timestamp {
        power: u32,
    },
    Decimal {
        width: usize,
        scale: i32,
    },
    /// Offsets of 4 or 8 bytes into a buffer of values.
    Strings {
        offset_width: usize,
    },
    /// Sixteen bytes each that hold a short string or point to a longer one.
    Views,
    Uuid,
    FixedBytes {
        width: usize,
    },
    List {
        offset_width: usize,
        inner: Box<Field>,
    },
    FixedList {
        count: usize,
        inner: Box<Field>,
    },
    Map {
        key: Box<Field>,
        value: Box<Field>,
    },
    Struct(Vec<Field>),
}

/// The fields of a schema; nothing if one of them is of a kind that is not read here.
pub(super) fn fields(schema: &Table<'_>) -> Option<Vec<Field>> {
    let little_endian = schema.i16(0, 0)? == 0;
    let features = schema.vector(3, 8)?.map_or(0, |features| features.len());
    if !little_endian || features != 0 {
        return None;
    }
    children(schema.vector(1, 4)?, 0)
}

fn children(vector: Option<Vector<'_>>, depth: usize) -> Option<Vec<Field>> {
    let Some(vector) = vector else { return Some(Vec::new()) };
    if vector.len() > MAX_FIELDS || depth > MAX_DEPTH {
        return None;
    }
    (0..vector.len()).map(|index| field(&vector.table(index)?, depth)).collect()
}

fn field(table: &Table<'_>, depth: usize) -> Option<Field> {
    let name = table.text(0)?.unwrap_or_default().to_owned();
    let kind = table.u8(2, 0)?;
    let details = table.table(3)??;
    let inner = children(table.vector(5, 4)?, depth + 1)?;
    let extension = extension(table)?;
    let dictionary = match table.table(4)? {
        Some(encoding) => Some(dictionary(&encoding)?),
        None => None,
    };
    Some(Field {
        name,
        layout: match (extension, layout(kind, &details, inner)?) {
            (None, layout) => layout,
            (Some("arrow.uuid"), Layout::FixedBytes { width: 16 }) => Layout::Uuid,
            // ClickHouse may know more of them, and read their fields as other types.
            (Some(_), _) => return None,
        },
        dictionary,
    })
}

fn dictionary(encoding: &Table<'_>) -> Option<Dictionary> {
    let id = encoding.i64(0, 0)?;
    let dense = encoding.i16(3, 0)? == 0;
    dense.then_some(())?;
    match encoding.table(1)? {
        Some(index) => match int(&index)? {
            Layout::Int { width, signed } => Some(Dictionary { id, index_width: width, signed }),
            _ => None,
        },
        None => Some(Dictionary { id, index_width: 4, signed: true }),
    }
}

fn int(details: &Table<'_>) -> Option<Layout> {
    let width = match details.i32(0, 0)? {
        8 => 1,
        16 => 2,
        32 => 4,
        64 => 8,
        _ => return None,
    };
    Some(Layout::Int { width, signed: details.u8(1, 0)? != 0 })
}

fn layout(kind: u8, details: &Table<'_>, inner: Vec<Field>) -> Option<Layout> {
    let layout = match kind {
        2 => int(details)?,
        3 => match details.i16(0, 0)? {
            1 => Layout::Float { width: 4 },
            2 => Layout::Float { width: 8 },
            _ => return None,
        },
        4 | 5 => Layout::Strings { offset_width: 4 },
        6 => Layout::Bool,
        7 => decimal(details)?,
        8 => (details.i16(0, 1)? == 0).then_some(Layout::Date)?,
        10 => {
            let unit = u32::try_from(details.i16(0, 0)?).ok().filter(|unit| *unit <= 3)?;
            details.text(1)?.is_none_or(is_zone).then_some(())?;
            Layout::Timestamp { power: 3 * unit }
        }
        12 => Layout::List { offset_width: 4, inner: only(inner)? },
        13 => return (!inner.is_empty()).then_some(Layout::Struct(inner)),
        15 => Layout::FixedBytes { width: positive(details.i32(0, 0)?)? },
        16 => Layout::FixedList { count: positive(details.i32(0, 0)?)?, inner: only(inner)? },
        17 => return map(*only(inner)?),
        19 | 20 => Layout::Strings { offset_width: 8 },
        21 => Layout::List { offset_width: 8, inner: only(inner)? },
        23 | 24 => Layout::Views,
        _ => return None,
    };
    Some(layout)
}

fn decimal(details: &Table<'_>) -> Option<Layout> {
    let (precision, scale) = (details.i32(0, 0)?, details.i32(1, 0)?);
    let width = match details.i32(2, 128)? {
        32 => 4,
        64 => 8,
        128 => 16,
        256 => 32,
        _ => return None,
    };
    (precision > 0 && precision <= 76 && (0..=precision).contains(&scale)).then_some(Layout::Decimal { width, scale })
}

fn only(inner: Vec<Field>) -> Option<Box<Field>> {
    <[Field; 1]>::try_from(inner).ok().map(|[field]| Box::new(field))
}

/// A map is a list of structs of two.
fn map(entries: Field) -> Option<Layout> {
    let Layout::Struct(pair) = entries.layout else { return None };
    let [key, value] = <[Field; 2]>::try_from(pair).ok()?;
    entries.dictionary.is_none().then_some(Layout::Map { key: Box::new(key), value: Box::new(value) })
}

fn positive(number: i32) -> Option<usize> {
    usize::try_from(number).ok().filter(|number| *number > 0)
}

/// A zone changes nothing, but ClickHouse has to know it.
fn is_zone(name: &str) -> bool {
    name.is_empty() || jiff::tz::TimeZone::get(name).is_ok_and(|zone| zone.iana_name() == Some(name))
}

/// The name of the extension type that a field is of.
fn extension<'a>(field: &Table<'a>) -> Option<Option<&'a str>> {
    let Some(remarks) = field.vector(6, 4)? else { return Some(None) };
    for index in 0..remarks.len() {
        let remark = remarks.table(index)?;
        if remark.text(0)? == Some("ARROW:extension:name") {
            return Some(Some(remark.text(1)?.unwrap_or_default()));
        }
    }
    Some(None)
}
