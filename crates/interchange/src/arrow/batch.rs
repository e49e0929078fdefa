//! A record batch: nodes and buffers, in the order of the fields, depth first.

use std::borrow::Cow;

use windrow_columns::NotParsedReason;
use windrow_compression::Encoding;

use super::dictionary::Dictionaries;
use super::flatbuffer::{Table, Vector};
use super::schema::{Dictionary, Field, Layout};
use crate::budget::Budget;
use crate::column::{Column, Field as StructField, Strings, Values};
use crate::decompress::{decompress_to, Codec};

pub(super) struct Batch<'a, 'b> {
    rows: usize,
    nodes: Vector<'a>,
    buffers: Vector<'a>,
    variadic: Option<Vector<'a>>,
    next_node: usize,
    next_buffer: usize,
    next_variadic: usize,
    codec: Option<Codec>,
    body: &'a [u8],
    budget: &'b mut Budget,
}

const BROKEN: NotParsedReason = NotParsedReason::Syntax;
type Read<T> = Result<T, NotParsedReason>;

impl<'a, 'b> Batch<'a, 'b> {
    pub(super) fn new(record: &Table<'a>, body: &'a [u8], budget: &'b mut Budget) -> Read<Self> {
        let codec = match record.table(3).ok_or(BROKEN)? {
            Some(compression) => match (compression.u8(0, 0), compression.u8(1, 0)) {
                (Some(0), Some(0)) => Some(Codec::Http(Encoding::Lz4)),
                (Some(1), Some(0)) => Some(Codec::Http(Encoding::Zstd)),
                _ => return Err(BROKEN),
            },
            None => None,
        };
        let rows = record.i64(0, 0).and_then(|rows| u32::try_from(rows).ok()).ok_or(BROKEN)? as usize;
        Ok(Batch {
            rows,
            nodes: record.vector(1, 16).flatten().ok_or(BROKEN)?,
            buffers: record.vector(2, 16).flatten().ok_or(BROKEN)?,
            variadic: record.vector(4, 8).ok_or(BROKEN)?,
            next_node: 0,
            next_buffer: 0,
            next_variadic: 0,
            codec,
            body,
            budget,
        })
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Every node and buffer has been used.
    pub(super) fn finish(self) -> Read<()> {
        let variadic = self.variadic.map_or(0, |variadic| variadic.len());
        let used = self.next_node == self.nodes.len() && self.next_buffer == self.buffers.len();
        (used && self.next_variadic == variadic).then_some(()).ok_or(BROKEN)
    }

    /// The next column, which has to have so many rows.
    pub(super) fn column(&mut self, field: &Field, rows: usize, dictionaries: &Dictionaries) -> Read<Column<'a>> {
        let node = self.next_node;
        self.next_node += 1;
        if node >= self.nodes.len() {
            return Err(BROKEN);
        }
        let (length, null_count) = (self.nodes.i64(2 * node), self.nodes.i64(2 * node + 1));
        if length != i64::try_from(rows).ok() {
            return Err(BROKEN);
        }
        let nulls = self.nulls(rows, null_count.ok_or(BROKEN)?)?;
        if let Some(dictionary) = &field.dictionary {
            return self.looked_up(dictionary, rows, nulls, dictionaries);
        }
        let values = match &field.layout {
            Layout::Bool => {
                let bits = self.buffer()?;
                Values::Bool(expanded(&bits, rows, 1)?)
            }
            Layout::Int { width, signed } => {
                Values::Int { width: *width, signed: *signed, data: self.fixed(rows, *width)? }
            }
            Layout::Float { width } => Values::Float { width: *width, data: self.fixed(rows, *width)? },
            Layout::Date => Values::Date(self.fixed(rows, 4)?),
            Layout::Uuid => Values::Uuid(self.fixed(rows, 16)?),
            Layout::Timestamp { power } => Values::Timestamp { power: *power, data: self.fixed(rows, 8)? },
            Layout::Decimal { width, scale } => {
                Values::Decimal { scale: *scale, width: *width, data: self.fixed(rows, *width)? }
            }
            Layout::FixedBytes { width } => Values::FixedBytes { width: *width, data: self.fixed(rows, *width)? },
            Layout::Strings { offset_width } => Values::Strings(self.strings(rows, *offset_width)?),
            Layout::Views => Values::Strings(self.views(rows, nulls.as_deref())?),
            Layout::List { offset_width, inner } => {
                let ends = self.list_ends(rows, *offset_width)?;
                let count = ends.last().map_or(0, |end| *end as usize);
                Values::List { ends, inner: Box::new(self.column(inner, count, dictionaries)?) }
            }
            Layout::FixedList { count, inner } => {
                self.budget.take_values(rows, 8)?;
                let total = rows.checked_mul(*count).ok_or(BROKEN)?;
                let ends = (1..=rows).map(|row| (row * count) as u64).collect();
                Values::List { ends, inner: Box::new(self.column(inner, total, dictionaries)?) }
            }
            Layout::Map { key, value } => self.map(key, value, rows, dictionaries)?,
            Layout::Struct(fields) => {
                let fields = fields.iter().map(|field| {
                    let column = self.column(field, rows, dictionaries)?;
                    Ok(StructField { name: field.name.clone(), column })
                });
                Values::Struct(fields.collect::<Read<_>>()?)
            }
        };
        Ok(Column { rows, nulls, values })
    }

    fn map(&mut self, key: &Field, value: &Field, rows: usize, dictionaries: &Dictionaries) -> Read<Values<'a>> {
        let ends = self.list_ends(rows, 4)?;
        let count = ends.last().map_or(0, |end| *end as usize);
        // The struct of a pair has a node and a validity of its own; none of the pairs may be NULL.
        let node = self.next_node;
        self.next_node += 1;
        let is_plain = node < self.nodes.len()
            && self.nodes.i64(2 * node) == i64::try_from(count).ok()
            && self.nodes.i64(2 * node + 1) == Some(0);
        if !is_plain || self.nulls(count, 0)?.is_some() {
            return Err(BROKEN);
        }
        let key = Box::new(self.column(key, count, dictionaries)?);
        Ok(Values::Map { ends, key, value: Box::new(self.column(value, count, dictionaries)?) })
    }

    fn looked_up(
        &mut self,
        dictionary: &Dictionary,
        rows: usize,
        nulls: Option<Vec<u8>>,
        dictionaries: &Dictionaries,
    ) -> Read<Column<'a>> {
        let data = self.fixed(rows, dictionary.index_width)?;
        let values = dictionaries.get(dictionary).ok_or(NotParsedReason::Value)?;
        let mut indices = Vec::with_capacity(rows);
        for (row, bytes) in data.chunks_exact(dictionary.index_width).enumerate() {
            if nulls.as_ref().is_some_and(|nulls| nulls[row] == 1) {
                indices.push(0);
                continue;
            }
            let mut index = [0; 8];
            index[..bytes.len()].copy_from_slice(bytes);
            let index = u64::from_le_bytes(index);
            let is_negative = dictionary.signed && bytes.last().is_some_and(|last| last & 0x80 != 0);
            if is_negative || index >= values.rows as u64 {
                return Err(BROKEN);
            }
            indices.push(index as u32);
        }
        values.at(&indices, nulls, self.budget)
    }

    /// The next buffer's bytes.
    fn buffer(&mut self) -> Read<Cow<'a, [u8]>> {
        let index = self.next_buffer;
        self.next_buffer += 1;
        if index >= self.buffers.len() {
            return Err(BROKEN);
        }
        let place = |at| self.buffers.i64(at).and_then(|number| usize::try_from(number).ok()).ok_or(BROKEN);
        let (offset, length) = (place(2 * index)?, place(2 * index + 1)?);
        let end = offset.checked_add(length).ok_or(BROKEN)?;
        let bytes = self.body.get(offset..end).ok_or(BROKEN)?;
        match self.codec {
            Some(codec) if !bytes.is_empty() => self.decompressed(codec, bytes),
            _ => Ok(Cow::Borrowed(bytes)),
        }
    }

    fn decompressed(&mut self, codec: Codec, bytes: &'a [u8]) -> Read<Cow<'a, [u8]>> {
        let (length, compressed) = bytes.split_first_chunk::<8>().ok_or(BROKEN)?;
        match i64::from_le_bytes(*length) {
            -1 => Ok(Cow::Borrowed(compressed)),
            length => {
                let length = usize::try_from(length).map_err(|_| BROKEN)?;
                self.budget.take(length)?;
                decompress_to(codec, compressed, length).map(Cow::Owned).ok_or(BROKEN)
            }
        }
    }

    /// The next buffer as NULLs, one byte per row.
    fn nulls(&mut self, rows: usize, null_count: i64) -> Read<Option<Vec<u8>>> {
        let bits = self.buffer()?;
        if bits.is_empty() {
            return if null_count == 0 || rows == 0 { Ok(None) } else { Err(BROKEN) };
        }
        let nulls = expanded(&bits, rows, 0)?;
        // Whether the bits or their number decide is not for us to know where they disagree.
        let counted = nulls.iter().filter(|null| **null == 1).count();
        if i64::try_from(counted).ok() != Some(null_count) {
            return Err(NotParsedReason::Null);
        }
        Ok((counted > 0).then_some(nulls))
    }

    fn fixed(&mut self, rows: usize, width: usize) -> Read<Cow<'a, [u8]>> {
        let needed = rows.checked_mul(width).ok_or(BROKEN)?;
        match self.buffer()? {
            Cow::Borrowed(bytes) => bytes.get(..needed).map(Cow::Borrowed).ok_or(BROKEN),
            Cow::Owned(bytes) if bytes.len() < needed => Err(BROKEN),
            Cow::Owned(mut bytes) => {
                bytes.truncate(needed);
                Ok(Cow::Owned(bytes))
            }
        }
    }

    /// Where each row's elements end, the first beginning at 0.
    fn list_ends(&mut self, rows: usize, offset_width: usize) -> Read<Vec<u64>> {
        let offsets = self.offsets(rows, offset_width)?;
        match offsets.first() {
            Some(0) => Ok(offsets[1..].iter().map(|offset| *offset as u64).collect()),
            None => Ok(Vec::new()),
            _ => Err(NotParsedReason::Value),
        }
    }

    /// One more than rows, ascending; none if there are no rows.
    fn offsets(&mut self, rows: usize, offset_width: usize) -> Read<Vec<usize>> {
        if rows == 0 {
            self.buffer()?;
            return Ok(Vec::new());
        }
        self.budget.take_values(rows, 8)?;
        let data = self.fixed(rows + 1, offset_width)?;
        let offset = |bytes: &[u8]| match bytes.len() {
            4 => usize::try_from(i32::from_le_bytes(bytes.try_into().expect("four bytes"))).ok(),
            _ => usize::try_from(i64::from_le_bytes(bytes.try_into().expect("eight bytes"))).ok(),
        };
        let offsets: Vec<usize> = data.chunks_exact(offset_width).map(offset).collect::<Option<_>>().ok_or(BROKEN)?;
        offsets.is_sorted().then_some(offsets).ok_or(BROKEN)
    }

    fn strings(&mut self, rows: usize, offset_width: usize) -> Read<Strings<'a>> {
        let mut ends = self.offsets(rows, offset_width)?;
        let data = self.buffer()?;
        let (Some(&first), Some(&last)) = (ends.first(), ends.last()) else {
            return Ok(Strings { ends, data: Cow::Borrowed(&[]) });
        };
        if last > data.len() {
            return Err(BROKEN);
        }
        let data = match data {
            Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[first..last]),
            Cow::Owned(bytes) => Cow::Owned(bytes[first..last].to_vec()),
        };
        ends.remove(0);
        ends.iter_mut().for_each(|end| *end -= first);
        Ok(Strings { ends, data })
    }

    /// Strings of at most twelve bytes stand in the view itself; longer ones in one of some buffers.
    fn views(&mut self, rows: usize, nulls: Option<&[u8]>) -> Read<Strings<'a>> {
        let views = self.fixed(rows, 16)?;
        let counts = self.variadic.ok_or(BROKEN)?;
        let at = self.next_variadic;
        self.next_variadic += 1;
        let count = if at < counts.len() { counts.i64(at) } else { None };
        let count = count.and_then(|count| usize::try_from(count).ok()).ok_or(BROKEN)?;
        if count > self.buffers.len() {
            return Err(BROKEN);
        }
        let buffers: Vec<Cow<'a, [u8]>> = (0..count).map(|_| self.buffer()).collect::<Read<_>>()?;
        let (mut ends, mut data) = (Vec::with_capacity(rows), Vec::new());
        for (row, view) in views.chunks_exact(16).enumerate() {
            if nulls.is_none_or(|nulls| nulls[row] != 1) {
                let text = viewed(view, &buffers).ok_or(BROKEN)?;
                self.budget.take(text.len())?;
                data.extend_from_slice(text);
            }
            ends.push(data.len());
        }
        Ok(Strings { ends, data: data.into() })
    }
}

fn viewed<'v>(view: &'v [u8], buffers: &'v [Cow<'_, [u8]>]) -> Option<&'v [u8]> {
    let number = |at: usize| {
        let bytes = view.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(i32::from_le_bytes(bytes)).ok()
    };
    let length = number(0)?;
    if length <= 12 {
        return view.get(4..4 + length);
    }
    let (buffer, offset) = (number(8)?, number(12)?);
    let text = buffers.get(buffer)?.get(offset..offset.checked_add(length)?)?;
    text.starts_with(&view[4..8]).then_some(text)
}

/// One byte per bit: 1 where it is `wanted`.
fn expanded(bits: &[u8], rows: usize, wanted: u8) -> Read<Vec<u8>> {
    if bits.len() < rows.div_ceil(8) {
        return Err(BROKEN);
    }
    let flip = 1 - wanted;
    Ok((0..rows).map(|row| (bits[row / 8] >> (row % 8) & 1) ^ flip).collect())
}
