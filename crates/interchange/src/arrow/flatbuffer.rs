//! Just enough of FlatBuffers to read Arrow's messages. Every access is checked: an offset out of bounds is `None`.
//!
//! A table begins with the distance back to its vtable; the vtable says where in the table each field lies, or that it is
//! left out. Offsets to strings, vectors and tables point forward from where they are written.

#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    bytes: &'a [u8],
    at: usize,
    vtable: usize,
    vtable_bytes: usize,
}

/// Elements of a fixed width, or offsets to tables.
#[derive(Clone, Copy)]
pub(super) struct Vector<'a> {
    bytes: &'a [u8],
    at: usize,
    count: usize,
}

/// A field that was left out, against one that is broken.
pub(super) type Optional<T> = Option<Option<T>>;

impl<'a> Table<'a> {
    pub(super) fn root(bytes: &'a [u8]) -> Option<Self> {
        Table::new(bytes, read_u32(bytes, 0)? as usize)
    }

    fn new(bytes: &'a [u8], at: usize) -> Option<Self> {
        let back = i64::from(i32::from_le_bytes(read(bytes, at)?));
        let vtable = usize::try_from(i64::try_from(at).ok()? - back).ok()?;
        let vtable_bytes = usize::from(u16::from_le_bytes(read(bytes, vtable)?));
        let table_bytes = usize::from(u16::from_le_bytes(read(bytes, vtable.checked_add(2)?)?));
        let sound =
            vtable_bytes >= 4 && vtable_bytes.is_multiple_of(2) && vtable.is_multiple_of(2) && at.is_multiple_of(4);
        (sound && bytes.len() >= vtable.checked_add(vtable_bytes)? && bytes.len() >= at.checked_add(table_bytes)?)
            .then_some(Table { bytes, at, vtable, vtable_bytes })
    }

    /// Where a field lies.
    fn place(&self, field: usize) -> Optional<usize> {
        let entry = 4 + 2 * field;
        if entry + 2 > self.vtable_bytes {
            return Some(None);
        }
        match u16::from_le_bytes(read(self.bytes, self.vtable + entry)?) {
            0 => Some(None),
            offset => Some(Some(self.at.checked_add(usize::from(offset))?)),
        }
    }

    pub(super) fn u8(&self, field: usize, default: u8) -> Option<u8> {
        self.number(field, default, |[byte]| byte)
    }

    pub(super) fn i16(&self, field: usize, default: i16) -> Option<i16> {
        self.number(field, default, i16::from_le_bytes)
    }

    pub(super) fn i32(&self, field: usize, default: i32) -> Option<i32> {
        self.number(field, default, i32::from_le_bytes)
    }

    pub(super) fn i64(&self, field: usize, default: i64) -> Option<i64> {
        self.number(field, default, i64::from_le_bytes)
    }

    fn number<T, const N: usize>(&self, field: usize, default: T, decode: fn([u8; N]) -> T) -> Option<T> {
        match self.place(field)? {
            Some(at) if at % N == 0 => read(self.bytes, at).map(decode),
            Some(_) => None,
            None => Some(default),
        }
    }

    fn target(&self, field: usize) -> Optional<usize> {
        match self.place(field)? {
            Some(at) => Some(Some(follow(self.bytes, at)?)),
            None => Some(None),
        }
    }

    pub(super) fn table(&self, field: usize) -> Optional<Table<'a>> {
        match self.target(field)? {
            Some(at) => Some(Some(Table::new(self.bytes, at)?)),
            None => Some(None),
        }
    }

    /// Elements of `width` bytes; 4 for tables.
    pub(super) fn vector(&self, field: usize, width: usize) -> Optional<Vector<'a>> {
        let Some(at) = self.target(field)? else { return Some(None) };
        at.is_multiple_of(4).then_some(())?;
        let count = read_u32(self.bytes, at)? as usize;
        let end = at.checked_add(4)?.checked_add(count.checked_mul(width)?)?;
        (end <= self.bytes.len()).then_some(Some(Vector { bytes: self.bytes, at: at + 4, count }))
    }

    pub(super) fn text(&self, field: usize) -> Optional<&'a str> {
        let Some(vector) = self.vector(field, 1)? else { return Some(None) };
        let text = vector.bytes.get(vector.at..vector.at + vector.count)?;
        // Every string ends in a zero that is not counted.
        (vector.bytes.get(vector.at + vector.count) == Some(&0)).then_some(())?;
        Some(Some(std::str::from_utf8(text).ok()?))
    }
}

impl<'a> Vector<'a> {
    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn table(&self, index: usize) -> Option<Table<'a>> {
        Table::new(self.bytes, follow(self.bytes, self.at + 4 * index)?)
    }

    pub(super) fn i64(&self, index: usize) -> Option<i64> {
        read(self.bytes, self.at + 8 * index).map(i64::from_le_bytes)
    }
}

fn follow(bytes: &[u8], at: usize) -> Option<usize> {
    at.is_multiple_of(4).then_some(())?;
    at.checked_add(read_u32(bytes, at)? as usize)
}

fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    read(bytes, at).map(u32::from_le_bytes)
}

fn read<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk::<N>().copied()
}
