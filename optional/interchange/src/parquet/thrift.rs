//! Thrift's compact protocol, as far as Parquet's metadata needs it. Structs are read field by field; fields
//! that the caller does not know are skipped, whatever is in them.

use crate::input::Input;

/// The deepest nesting that is read; Parquet's metadata has no deeper one.
const MAX_DEPTH: usize = 24;

const BOOL_TRUE: u8 = 1;
const BOOL_FALSE: u8 = 2;

/// The head of a field: its number and the type of its value.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldHead {
    pub(super) id: i16,
    kind: u8,
}

pub(super) struct Reader<'a> {
    input: Input<'a>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Reader { input: Input::new(bytes) }
    }

    /// Reads a struct. `read` takes the fields that it knows, and returns whether it did.
    pub(super) fn structure(&mut self, mut read: impl FnMut(&mut Self, FieldHead) -> Option<bool>) -> Option<()> {
        let mut id = 0i16;
        loop {
            let head = self.input.byte()?;
            if head == 0 {
                return Some(());
            }
            id = match head >> 4 {
                0 => i16::try_from(self.input.zigzag()?).ok()?,
                delta => id.checked_add(i16::from(delta))?,
            };
            let field = FieldHead { id, kind: head & 0x0F };
            if !read(self, field)? {
                self.skip(field.kind, 0)?;
            }
        }
    }

    pub(super) fn bool(&mut self, field: FieldHead) -> Option<bool> {
        match field.kind {
            BOOL_TRUE => Some(true),
            BOOL_FALSE => Some(false),
            _ => None,
        }
    }

    /// Reads an integer of 16, 32 or 64 bits.
    pub(super) fn int(&mut self, field: FieldHead) -> Option<i64> {
        (4..=6).contains(&field.kind).then_some(())?;
        self.input.zigzag()
    }

    pub(super) fn i32(&mut self, field: FieldHead) -> Option<i32> {
        i32::try_from(self.int(field)?).ok()
    }

    pub(super) fn byte(&mut self, field: FieldHead) -> Option<u8> {
        (field.kind == 3).then_some(())?;
        self.input.byte()
    }

    pub(super) fn text(&mut self, field: FieldHead) -> Option<&'a str> {
        (field.kind == 8).then_some(())?;
        self.element_text()
    }

    fn element_text(&mut self) -> Option<&'a str> {
        let length = usize::try_from(self.input.varint()?).ok()?;
        std::str::from_utf8(self.input.take(length)?).ok()
    }

    pub(super) fn is_struct(&self, field: FieldHead) -> Option<()> {
        (field.kind == 12).then_some(())
    }

    /// Reads a list of structs.
    pub(super) fn structs<T>(
        &mut self,
        field: FieldHead,
        mut read: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let count = self.list(field, 12)?;
        // No capacity from the count: it is whatever somebody wrote.
        let mut elements = Vec::new();
        for _ in 0..count {
            elements.push(read(self)?);
        }
        Some(elements)
    }

    pub(super) fn texts(&mut self, field: FieldHead) -> Option<Vec<&'a str>> {
        let count = self.list(field, 8)?;
        let mut elements = Vec::new();
        for _ in 0..count {
            elements.push(self.element_text()?);
        }
        Some(elements)
    }

    fn list(&mut self, field: FieldHead, wanted: u8) -> Option<usize> {
        (field.kind == 9).then_some(())?;
        let (kind, count) = self.list_head()?;
        (kind == wanted || count == 0).then_some(count)
    }

    fn list_head(&mut self) -> Option<(u8, usize)> {
        let head = self.input.byte()?;
        let count = match head >> 4 {
            15 => usize::try_from(self.input.varint()?).ok()?,
            count => usize::from(count),
        };
        Some((head & 0x0F, count))
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        match kind {
            BOOL_TRUE | BOOL_FALSE => {}
            3 => drop(self.input.byte()?),
            4..=6 => drop(self.input.varint()?),
            7 => drop(self.input.take(8)?),
            8 => {
                let length = usize::try_from(self.input.varint()?).ok()?;
                self.input.take(length)?;
            }
            9 | 10 => {
                let (kind, count) = self.list_head()?;
                for _ in 0..count {
                    self.skip_element(kind, depth + 1)?;
                }
            }
            11 => {
                let count = self.input.varint()?;
                let kinds = if count == 0 { 0 } else { self.input.byte()? };
                for _ in 0..count {
                    self.skip_element(kinds >> 4, depth + 1)?;
                    self.skip_element(kinds & 0x0F, depth + 1)?;
                }
            }
            12 => loop {
                let head = self.input.byte()?;
                if head == 0 {
                    break;
                }
                if head >> 4 == 0 {
                    self.input.zigzag()?;
                }
                self.skip(head & 0x0F, depth + 1)?;
            },
            _ => return None,
        }
        Some(())
    }

    /// Skips an element of a list, where a boolean takes a byte.
    fn skip_element(&mut self, kind: u8, depth: usize) -> Option<()> {
        match kind {
            BOOL_TRUE | BOOL_FALSE => self.input.byte().map(drop),
            kind => self.skip(kind, depth),
        }
    }
}
