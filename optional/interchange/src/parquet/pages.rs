//! Reads the pages of a chunk: a dictionary perhaps, then levels and values.

use std::borrow::Cow;

use windrow_columns::NotParsedReason;
use windrow_compression::Encoding as HttpEncoding;

use super::encoding;
use super::footer::{page_places, Chunk, PagePlace};
use super::hybrid;
use super::schema::{Leaf, Physical};
use super::strict;
use super::thrift::Reader;
use super::values::LeafValues;
use crate::budget::Budget;
use crate::decompress::{decompress_to, Codec};
use crate::input::Input;

/// The contents of a chunk: a level for each entry, and a value for each entry that has one.
pub(super) struct LeafData {
    pub(super) entries: usize,
    /// Definition levels. Empty: all entries have a value.
    pub(super) definitions: Vec<u8>,
    /// Repetition levels. Empty: there are no lists.
    pub(super) repetitions: Vec<u8>,
    pub(super) values: LeafValues,
}

/// The highest levels of a leaf.
#[derive(Clone, Copy)]
pub(super) struct Levels {
    pub(super) definition: u8,
    pub(super) repetition: u8,
}

#[derive(Default)]
struct PageHeader {
    kind: i32,
    plain_bytes: usize,
    stored_bytes: usize,
    checksum: Option<i32>,
    values: usize,
    encoding: i32,
    /// The encodings of levels, in pages of the first version.
    level_encodings: Vec<i32>,
    /// Bytes of the definition levels, in pages of the second version.
    definition_bytes: usize,
    repetition_bytes: usize,
    is_compressed: bool,
}

const DATA_PAGE: i32 = 0;
const DICTIONARY_PAGE: i32 = 2;
const DATA_PAGE_V2: i32 = 3;

const PLAIN: i32 = 0;
const PLAIN_DICTIONARY: i32 = 2;
const RLE: i32 = 3;

const BROKEN: NotParsedReason = NotParsedReason::Syntax;
type Read<T> = Result<T, NotParsedReason>;

pub(super) fn read_chunk(
    file: &[u8],
    chunk: &Chunk,
    leaf: Leaf,
    levels: Levels,
    budget: &mut Budget,
) -> Read<LeafData> {
    let start = chunk.dictionary_offset.filter(|offset| *offset > 0).unwrap_or(chunk.data_offset);
    let start = usize::try_from(start).ok().filter(|start| *start >= 4).ok_or(BROKEN)?;
    let end = usize::try_from(chunk.compressed_bytes).ok().and_then(|bytes| start.checked_add(bytes)).ok_or(BROKEN)?;
    let wanted = usize::try_from(chunk.values).map_err(|_| BROKEN)?;
    let mut pages = Pages {
        rest: file.get(start..end).ok_or(BROKEN)?,
        codec: codec(chunk.codec)?,
        leaf,
        levels,
        dictionary: None,
        budget,
        data: LeafData {
            entries: 0,
            definitions: Vec::new(),
            repetitions: Vec::new(),
            values: LeafValues::empty(leaf.physical),
        },
    };
    let mut places = Vec::new();
    while pages.data.entries < wanted {
        let rest_bytes = pages.rest.len();
        let first_row = pages.rows();
        let is_data = pages.page(wanted)?;
        if is_data {
            let bytes = rest_bytes - pages.rest.len();
            places.push(PagePlace { offset: (end - rest_bytes) as i64, bytes: bytes as i64, first_row });
        }
    }
    let first_place = places.first().map_or(start as i64, |place| place.offset);
    let is_whole = pages.rest.is_empty() && pages.data.entries == wanted && first_place == chunk.data_offset;
    match is_whole && index_agrees(file, chunk, &places) {
        true => Ok(pages.data),
        false => Err(BROKEN),
    }
}

/// Says whether the list of pages, if there is one, names those that are there: ClickHouse relies on it.
fn index_agrees(file: &[u8], chunk: &Chunk, places: &[PagePlace]) -> bool {
    let (offset, bytes) = match (chunk.index_offset, chunk.index_bytes) {
        (None, None) => return true,
        (Some(offset), Some(bytes)) => (usize::try_from(offset), usize::try_from(bytes)),
        _ => return false,
    };
    let (Ok(offset), Ok(bytes)) = (offset, bytes) else { return false };
    let index = offset.checked_add(bytes).and_then(|end| file.get(offset..end));
    let index = index.filter(|index| strict::sound(index, strict::OFFSET_INDEX).map(<[u8]>::len) == Some(index.len()));
    index.and_then(page_places).is_some_and(|listed| listed == places)
}

fn codec(number: i32) -> Read<Option<Codec>> {
    match number {
        0 => Ok(None),
        1 => Ok(Some(Codec::Snappy)),
        2 => Ok(Some(Codec::Http(HttpEncoding::Gzip))),
        4 => Ok(Some(Codec::Http(HttpEncoding::Brotli))),
        6 => Ok(Some(Codec::Http(HttpEncoding::Zstd))),
        7 => Ok(Some(Codec::Lz4Block)),
        _ => Err(NotParsedReason::Value),
    }
}

struct Pages<'a, 'b> {
    rest: &'a [u8],
    codec: Option<Codec>,
    leaf: Leaf,
    levels: Levels,
    dictionary: Option<LeafValues>,
    budget: &'b mut Budget,
    data: LeafData,
}

impl<'a> Pages<'a, '_> {
    /// Returns how many rows have begun so far.
    fn rows(&self) -> i64 {
        let rows = match self.levels.repetition {
            0 => self.data.entries,
            _ => self.data.repetitions.iter().filter(|level| **level == 0).count(),
        };
        rows as i64
    }

    /// Reads a page. Returns whether it was a page of data.
    fn page(&mut self, wanted: usize) -> Read<bool> {
        let header_bytes = strict::sound(self.rest, strict::PAGE_HEADER).ok_or(BROKEN)?;
        let header = PageHeader::read(&mut Reader::new(header_bytes)).ok_or(BROKEN)?;
        let mut rest = Input::new(&self.rest[header_bytes.len()..]);
        let stored = rest.take(header.stored_bytes).ok_or(BROKEN)?;
        self.rest = rest.rest();
        if let Some(expected) = header.checksum {
            let mut crc = flate2::Crc::new();
            crc.update(stored);
            if crc.sum() != expected as u32 {
                return Err(BROKEN);
            }
        }
        match header.kind {
            DICTIONARY_PAGE => self.dictionary_page(&header, stored).map(|()| false),
            DATA_PAGE | DATA_PAGE_V2 => {
                let after = self.data.entries.checked_add(header.values).filter(|after| *after <= wanted);
                self.data.entries = after.ok_or(BROKEN)?;
                self.data_page(&header, stored).map(|()| true)
            }
            _ => Err(BROKEN),
        }
    }

    fn dictionary_page(&mut self, header: &PageHeader, stored: &[u8]) -> Read<()> {
        let is_first = self.dictionary.is_none() && self.data.entries == 0;
        if !is_first || !matches!(header.encoding, PLAIN | PLAIN_DICTIONARY) {
            return Err(BROKEN);
        }
        let plain = self.plain_bytes(stored, header.plain_bytes, self.codec)?;
        let mut dictionary = LeafValues::empty(self.leaf.physical);
        let mut input = Input::new(&plain);
        encoding::plain(&mut input, header.values, &mut dictionary).ok_or(BROKEN)?;
        self.dictionary = Some(dictionary);
        input.is_empty().then_some(()).ok_or(BROKEN)
    }

    fn data_page(&mut self, header: &PageHeader, stored: &'a [u8]) -> Read<()> {
        // Levels and positions are numbers of 32 bits while they are read, then bytes.
        self.budget.take_values(header.values, 8)?;
        if header.kind == DATA_PAGE_V2 {
            let levels_bytes = header.repetition_bytes.checked_add(header.definition_bytes).ok_or(BROKEN)?;
            let (levels, values) = stored.split_at_checked(levels_bytes).ok_or(BROKEN)?;
            let (repetitions, definitions) = levels.split_at(header.repetition_bytes);
            let plain_bytes = header.plain_bytes.checked_sub(levels_bytes).ok_or(BROKEN)?;
            let codec = self.codec.filter(|_| header.is_compressed);
            let values = self.plain_bytes(values, plain_bytes, codec)?;
            let present = self.add_levels(repetitions, definitions, header.values)?;
            return self.values(&values, header.encoding, present);
        }
        if header.level_encodings.iter().any(|encoding| *encoding != RLE) {
            return Err(NotParsedReason::Value);
        }
        let plain = self.plain_bytes(stored, header.plain_bytes, self.codec)?;
        let mut input = Input::new(&plain);
        let mut levels = |highest: u8| match highest {
            0 => Some(&[][..]),
            _ => {
                let bytes = input.u32()? as usize;
                input.take(bytes)
            }
        };
        let repetitions = levels(self.levels.repetition).ok_or(BROKEN)?;
        let definitions = levels(self.levels.definition).ok_or(BROKEN)?;
        let present = self.add_levels(repetitions, definitions, header.values)?;
        self.values(input.rest(), header.encoding, present)
    }

    fn plain_bytes<'s>(&mut self, stored: &'s [u8], bytes: usize, codec: Option<Codec>) -> Read<Cow<'s, [u8]>> {
        match codec {
            None => (stored.len() == bytes).then_some(Cow::Borrowed(stored)).ok_or(BROKEN),
            Some(_) if bytes == 0 => Ok(Cow::Borrowed(&[])),
            Some(codec) => {
                self.budget.take(bytes)?;
                decompress_to(codec, stored, bytes).map(Cow::Owned).ok_or(BROKEN)
            }
        }
    }

    /// Adds levels. Returns how many of the page's entries have a value.
    fn add_levels(&mut self, repetitions: &[u8], definitions: &[u8], count: usize) -> Read<usize> {
        let read = |bytes: &[u8], highest: u8| {
            let numbers = hybrid::read(&mut Input::new(bytes), 8 - highest.leading_zeros(), count)?;
            numbers
                .into_iter()
                .map(|level| (level <= u32::from(highest)).then_some(level as u8))
                .collect::<Option<Vec<u8>>>()
        };
        if self.levels.repetition > 0 {
            let levels: Vec<u8> = read(repetitions, self.levels.repetition).ok_or(BROKEN)?;
            self.data.repetitions.extend_from_slice(&levels);
        }
        if self.levels.definition == 0 {
            return Ok(count);
        }
        let levels: Vec<u8> = read(definitions, self.levels.definition).ok_or(BROKEN)?;
        self.data.definitions.extend_from_slice(&levels);
        Ok(levels.iter().filter(|level| **level == self.levels.definition).count())
    }

    fn values(&mut self, bytes: &[u8], encoding_number: i32, count: usize) -> Read<()> {
        let mut input = Input::new(bytes);
        let values = &mut self.data.values;
        let physical = self.leaf.physical;
        let read = match (encoding_number, physical) {
            (PLAIN, _) => encoding::plain(&mut input, count, values),
            (PLAIN_DICTIONARY | 8, _) => {
                let dictionary = self.dictionary.as_ref().ok_or(BROKEN)?;
                if count == 0 {
                    return Ok(());
                }
                let bit_width = input.byte().ok_or(BROKEN)?;
                let indices = hybrid::read(&mut input, u32::from(bit_width), count).ok_or(BROKEN)?;
                return values.look_up(dictionary, &indices, self.budget);
            }
            (RLE, Physical::Bool) => encoding::run_booleans(&mut input, count, values),
            (5, Physical::Int32 | Physical::Int64) => {
                self.budget.take_values(count, 16)?;
                encoding::delta_integers(&mut input, count, physical, values)
            }
            (6, Physical::Bytes) => {
                self.budget.take_values(count, 16)?;
                encoding::delta_lengths(&mut input, count, values)
            }
            (7, Physical::Bytes) => {
                self.budget.take_values(count, 32)?;
                let room_bytes = MAX_DELTA_STRINGS_BYTES;
                encoding::delta_strings(&mut input, count, values, room_bytes)
            }
            (9, _) => encoding::split_bytes(&mut input, count, values),
            _ => return Err(NotParsedReason::Value),
        };
        read.ok_or(BROKEN)
    }
}

/// The most bytes that one page of strings which repeat each other may become.
const MAX_DELTA_STRINGS_BYTES: usize = 64 << 20;

impl PageHeader {
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let mut header = PageHeader { kind: -1, is_compressed: true, ..PageHeader::default() };
        let size = |number: i32| usize::try_from(number).ok();
        let mut described = None;
        reader.structure(|reader, field| {
            match field.id {
                1 => header.kind = reader.i32(field)?,
                2 => header.plain_bytes = size(reader.i32(field)?)?,
                3 => header.stored_bytes = size(reader.i32(field)?)?,
                4 => header.checksum = Some(reader.i32(field)?),
                5 | 7 | 8 => {
                    reader.is_struct(field)?;
                    described = Some(field.id);
                    header.details(reader, field.id)?;
                }
                _ => return Some(false),
            }
            Some(true)
        })?;
        let fits = matches!((header.kind, described?), (DATA_PAGE, 5) | (DICTIONARY_PAGE, 7) | (DATA_PAGE_V2, 8));
        fits.then_some(header)
    }

    fn details(&mut self, reader: &mut Reader<'_>, of: i16) -> Option<()> {
        let size = |number: i32| usize::try_from(number).ok();
        reader.structure(|reader, field| {
            match (of, field.id) {
                (_, 1) => self.values = size(reader.i32(field)?)?,
                (5 | 7, 2) | (8, 4) => self.encoding = reader.i32(field)?,
                (5, 3 | 4) => self.level_encodings.push(reader.i32(field)?),
                (8, 5) => self.definition_bytes = size(reader.i32(field)?)?,
                (8, 6) => self.repetition_bytes = size(reader.i32(field)?)?,
                (8, 7) => self.is_compressed = reader.bool(field)?,
                _ => return Some(false),
            }
            Some(true)
        })
    }
}
