//! The metadata of a file: its schema, and the places of each column's chunks.

use super::thrift::{FieldHead, Reader};

pub(super) struct Footer {
    pub(super) schema: Vec<SchemaElement>,
    pub(super) rows: i64,
    pub(super) row_groups: Vec<RowGroup>,
    /// Keys of the writer's own metadata.
    pub(super) remarks: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct SchemaElement {
    pub(super) physical: Option<i32>,
    pub(super) type_length: Option<i32>,
    pub(super) repetition: Option<i32>,
    pub(super) name: String,
    pub(super) children: i32,
    pub(super) converted: Option<i32>,
    pub(super) scale: i32,
    pub(super) precision: i32,
    pub(super) logical: Option<Logical>,
}

/// The logical types that matter here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Logical {
    String,
    Map,
    List,
    Enum,
    Decimal {
        scale: i32,
        precision: i32,
    },
    Date,
    /// A time of day, `10^power` ticks a second.
    Time {
        power: u32,
    },
    Timestamp {
        power: u32,
    },
    Json,
    Int {
        bits: u8,
        signed: bool,
    },
    Uuid,
    /// Any other type: its meaning for ClickHouse is not examined here.
    Other,
}

pub(super) struct RowGroup {
    pub(super) chunks: Vec<Chunk>,
    pub(super) rows: i64,
}

/// The pages of one column in one row group.
#[derive(Clone, Debug, Default)]
pub(super) struct Chunk {
    pub(super) physical: i32,
    pub(super) path: Vec<String>,
    pub(super) codec: i32,
    pub(super) values: i64,
    pub(super) compressed_bytes: i64,
    pub(super) data_offset: i64,
    pub(super) dictionary_offset: Option<i64>,
    /// Offset of the list of its data pages' places.
    pub(super) index_offset: Option<i64>,
    pub(super) index_bytes: Option<i32>,
    /// Says whether the chunk is encrypted, or in another file.
    is_elsewhere: bool,
}

impl Footer {
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (mut schema, mut rows, mut row_groups, mut remarks) = (None, None, None, Vec::new());
        let mut encrypted = false;
        Reader::new(bytes).structure(|reader, field| {
            match field.id {
                2 => schema = Some(reader.structs(field, schema_element)?),
                3 => rows = Some(reader.int(field)?),
                4 => row_groups = Some(reader.structs(field, row_group)?),
                5 => remarks = reader.structs(field, remark)?,
                8 | 9 => {
                    encrypted = true;
                    return Some(false);
                }
                _ => return Some(false),
            }
            Some(true)
        })?;
        (!encrypted).then_some(Footer { schema: schema?, rows: rows?, row_groups: row_groups?, remarks })
    }
}

fn schema_element(reader: &mut Reader<'_>) -> Option<SchemaElement> {
    let mut element = SchemaElement::default();
    reader.structure(|reader, field| {
        match field.id {
            1 => element.physical = Some(reader.i32(field)?),
            2 => element.type_length = Some(reader.i32(field)?),
            3 => element.repetition = Some(reader.i32(field)?),
            4 => element.name = reader.text(field)?.to_owned(),
            5 => element.children = reader.i32(field)?,
            6 => element.converted = Some(reader.i32(field)?),
            7 => element.scale = reader.i32(field)?,
            8 => element.precision = reader.i32(field)?,
            10 => element.logical = Some(logical(reader, field)?),
            _ => return Some(false),
        }
        Some(true)
    })?;
    Some(element)
}

/// Reads a union: a struct with one field.
fn logical(reader: &mut Reader<'_>, field: FieldHead) -> Option<Logical> {
    reader.is_struct(field)?;
    let mut logical = Logical::Other;
    let mut count = 0;
    reader.structure(|reader, field| {
        reader.is_struct(field)?;
        count += 1;
        logical = match field.id {
            5 => decimal(reader)?,
            7 => Logical::Time { power: power(reader)? },
            8 => Logical::Timestamp { power: power(reader)? },
            10 => int(reader)?,
            id => {
                reader.structure(|_, _| Some(false))?;
                match id {
                    1 => Logical::String,
                    2 => Logical::Map,
                    3 => Logical::List,
                    4 => Logical::Enum,
                    6 => Logical::Date,
                    12 => Logical::Json,
                    14 => Logical::Uuid,
                    _ => Logical::Other,
                }
            }
        };
        Some(true)
    })?;
    (count == 1).then_some(logical)
}

fn decimal(reader: &mut Reader<'_>) -> Option<Logical> {
    let (mut scale, mut precision) = (0, 0);
    reader.structure(|reader, field| {
        match field.id {
            1 => scale = reader.i32(field)?,
            2 => precision = reader.i32(field)?,
            _ => return Some(false),
        }
        Some(true)
    })?;
    Some(Logical::Decimal { scale, precision })
}

fn power(reader: &mut Reader<'_>) -> Option<u32> {
    let mut power = None;
    reader.structure(|reader, field| {
        if field.id != 2 {
            return Some(false);
        }
        reader.is_struct(field)?;
        reader.structure(|reader, unit| {
            reader.is_struct(unit)?;
            power = Some(match unit.id {
                1 => 3,
                2 => 6,
                3 => 9,
                _ => return None,
            });
            reader.structure(|_, _| Some(false))?;
            Some(true)
        })?;
        Some(true)
    })?;
    power
}

fn int(reader: &mut Reader<'_>) -> Option<Logical> {
    let (mut bits, mut signed) = (0, true);
    reader.structure(|reader, field| {
        match field.id {
            1 => bits = reader.byte(field)?,
            2 => signed = reader.bool(field)?,
            _ => return Some(false),
        }
        Some(true)
    })?;
    Some(Logical::Int { bits, signed })
}

fn row_group(reader: &mut Reader<'_>) -> Option<RowGroup> {
    let (mut chunks, mut rows) = (None, None);
    reader.structure(|reader, field| {
        match field.id {
            1 => chunks = Some(reader.structs(field, chunk)?),
            3 => rows = Some(reader.int(field)?),
            _ => return Some(false),
        }
        Some(true)
    })?;
    Some(RowGroup { chunks: chunks?, rows: rows? })
}

fn chunk(reader: &mut Reader<'_>) -> Option<Chunk> {
    let mut chunk = Chunk::default();
    let mut is_described = false;
    reader.structure(|reader, field| {
        match field.id {
            1 | 8 | 9 => {
                chunk.is_elsewhere = true;
                return Some(false);
            }
            4 => chunk.index_offset = Some(reader.int(field)?),
            5 => chunk.index_bytes = Some(reader.i32(field)?),
            3 => {
                reader.is_struct(field)?;
                is_described = true;
                chunk_metadata(reader, &mut chunk)?;
            }
            _ => return Some(false),
        }
        Some(true)
    })?;
    (is_described && !chunk.is_elsewhere).then_some(chunk)
}

fn chunk_metadata(reader: &mut Reader<'_>, chunk: &mut Chunk) -> Option<()> {
    let mut needed = 0;
    reader.structure(|reader, field| {
        match field.id {
            1 => chunk.physical = reader.i32(field)?,
            3 => chunk.path = reader.texts(field)?.into_iter().map(str::to_owned).collect(),
            4 => chunk.codec = reader.i32(field)?,
            5 => chunk.values = reader.int(field)?,
            7 => chunk.compressed_bytes = reader.int(field)?,
            9 => chunk.data_offset = reader.int(field)?,
            11 => {
                chunk.dictionary_offset = Some(reader.int(field)?);
                return Some(true);
            }
            _ => return Some(false),
        }
        needed += 1;
        Some(true)
    })?;
    (needed == 6).then_some(())
}

fn remark(reader: &mut Reader<'_>) -> Option<String> {
    let mut key = String::new();
    reader.structure(|reader, field| {
        if field.id != 1 {
            return Some(false);
        }
        key = reader.text(field)?.to_owned();
        Some(true)
    })?;
    Some(key)
}

/// The place of a data page, and the row that it begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct PagePlace {
    pub(super) offset: i64,
    /// Bytes of the page, with its header.
    pub(super) bytes: i64,
    pub(super) first_row: i64,
}

pub(super) fn page_places(bytes: &[u8]) -> Option<Vec<PagePlace>> {
    let mut places = None;
    Reader::new(bytes).structure(|reader, field| {
        if field.id != 1 {
            return Some(false);
        }
        places = Some(reader.structs(field, page_place)?);
        Some(true)
    })?;
    places
}

fn page_place(reader: &mut Reader<'_>) -> Option<PagePlace> {
    let mut place = PagePlace::default();
    reader.structure(|reader, field| {
        match field.id {
            1 => place.offset = reader.int(field)?,
            2 => place.bytes = reader.int(field)?,
            3 => place.first_row = reader.int(field)?,
            _ => return Some(false),
        }
        Some(true)
    })?;
    Some(place)
}
