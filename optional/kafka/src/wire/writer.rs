//! The writer of the protocol's primitives, in the classic or the compact encoding (see `reader.rs`).

pub struct Writer {
    bytes: Vec<u8>,
    flexible: bool,
}

impl Writer {
    pub(crate) fn new(flexible: bool) -> Self {
        Self { bytes: Vec::with_capacity(128), flexible }
    }

    pub(crate) fn set_flexible(&mut self, flexible: bool) {
        self.flexible = flexible;
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(crate) fn i8(&mut self, value: i8) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    pub(crate) fn i16(&mut self, value: i16) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    pub(crate) fn i32(&mut self, value: i32) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    pub(crate) fn i64(&mut self, value: i64) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    pub(crate) fn bool(&mut self, value: bool) {
        self.bytes.push(u8::from(value));
    }

    pub(crate) fn uuid(&mut self, value: [u8; 16]) {
        self.bytes.extend_from_slice(&value);
    }

    fn unsigned_varint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// Writes a length, or null. Lengths that are too large for the type don't occur; the broker would refuse
    /// such a request.
    fn length(&mut self, length: Option<usize>, classic: fn(&mut Self, i32)) {
        let length = length.map(|length| i32::try_from(length).unwrap_or(i32::MAX - 1));
        match (self.flexible, length) {
            (true, length) => self.unsigned_varint(length.map_or(0, |length| length as u32 + 1)),
            (false, length) => classic(self, length.unwrap_or(-1)),
        }
    }

    fn short(&mut self, length: i32) {
        self.i16(i16::try_from(length).unwrap_or(i16::MAX));
    }

    pub(crate) fn nullable_string(&mut self, text: Option<&str>) {
        self.length(text.map(str::len), Self::short);
        self.bytes.extend_from_slice(text.unwrap_or_default().as_bytes());
    }

    pub(crate) fn string(&mut self, text: &str) {
        self.nullable_string(Some(text));
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.length(Some(bytes.len()), Self::i32);
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn array<T>(&mut self, elements: &[T], mut element: impl FnMut(&mut Self, &T)) {
        self.length(Some(elements.len()), Self::i32);
        for each in elements {
            element(self, each);
        }
    }

    pub(crate) fn null_array(&mut self) {
        self.length(None, Self::i32);
    }

    /// Writes that a structure has no tagged fields at its end, which only flexible versions have.
    pub(crate) fn end_structure(&mut self) {
        if self.flexible {
            self.unsigned_varint(0);
        }
    }
}
