//! Protobuf's wire format: the fields of a message as they stand in its bytes. Nothing is copied.

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Payload<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes(&'a [u8]),
    /// An old form of nesting, which no message of OTLP has. It was skipped.
    Group,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<'a> {
    pub(crate) number: u32,
    pub(crate) payload: Payload<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WireFault {
    Truncated,
    LongVarint,
    WireType,
    FieldNumber,
}

impl WireFault {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            WireFault::Truncated => "a message is cut off",
            WireFault::LongVarint => "a number has more than 64 bits",
            WireFault::WireType => "a field has an unknown wire type",
            WireFault::FieldNumber => "a field has the number 0, or one that is too large",
        }
    }
}

/// The fields of a message that are left to read.
#[derive(Clone)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(crate) fn of(message: &'a [u8]) -> Self {
        Fields { rest: message }
    }

    /// Returns the next field. This function and those that it calls are inlined into every loop over a
    /// message: requests are read here, twice.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Result<Option<Field<'a>>, WireFault> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (number, wire_type) = self.tag()?;
        let payload = match wire_type {
            3 => self.group()?,
            4 => return Err(WireFault::WireType),
            other => self.scalar(other)?,
        };
        Ok(Some(Field { number, payload }))
    }

    /// Returns the next field, with the bytes that it stands in.
    pub(crate) fn next_with_bytes(&mut self) -> Result<Option<(Field<'a>, &'a [u8])>, WireFault> {
        let before = self.rest;
        let next = self.next()?;
        Ok(next.map(|field| (field, &before[..before.len() - self.rest.len()])))
    }

    #[inline(always)]
    fn tag(&mut self) -> Result<(u32, u8), WireFault> {
        let tag = self.varint()?;
        match u32::try_from(tag >> 3) {
            Ok(number @ 1..0x2000_0000) => Ok((number, (tag & 7) as u8)),
            _ => Err(WireFault::FieldNumber),
        }
    }

    #[inline(always)]
    fn scalar(&mut self, wire_type: u8) -> Result<Payload<'a>, WireFault> {
        match wire_type {
            0 => Ok(Payload::Varint(self.varint()?)),
            1 => Ok(Payload::Fixed64(u64::from_le_bytes(self.array()?))),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| WireFault::Truncated)?;
                let (bytes, rest) = self.rest.split_at_checked(length).ok_or(WireFault::Truncated)?;
                self.rest = rest;
                Ok(Payload::Bytes(bytes))
            }
            5 => Ok(Payload::Fixed32(u32::from_le_bytes(self.array()?))),
            _ => Err(WireFault::WireType),
        }
    }

    /// Skips a group, with the groups in it.
    #[cold]
    #[inline(never)]
    fn group(&mut self) -> Result<Payload<'a>, WireFault> {
        let mut open = 1;
        while open > 0 {
            match self.tag()?.1 {
                3 => open += 1,
                4 => open -= 1,
                other => {
                    self.scalar(other)?;
                }
            }
        }
        Ok(Payload::Group)
    }

    #[inline(always)]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireFault> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(WireFault::Truncated)?;
        self.rest = rest;
        Ok(*bytes)
    }

    #[inline(always)]
    fn varint(&mut self) -> Result<u64, WireFault> {
        match self.rest.split_first() {
            Some((byte @ ..0x80, rest)) => {
                self.rest = rest;
                Ok(u64::from(*byte))
            }
            Some(_) => self.long_varint(),
            None => Err(WireFault::Truncated),
        }
    }

    #[inline(never)]
    fn long_varint(&mut self) -> Result<u64, WireFault> {
        let mut value = 0;
        for (index, byte) in self.rest.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7F) << (7 * index);
            if *byte < 0x80 {
                self.rest = &self.rest[index + 1..];
                return Ok(value);
            }
        }
        Err(if self.rest.len() < 10 { WireFault::Truncated } else { WireFault::LongVarint })
    }

    /// Checks a message that consists of numbers only.
    pub(crate) fn check_varints(mut self) -> Result<(), WireFault> {
        while !self.rest.is_empty() {
            self.varint()?;
        }
        Ok(())
    }
}

/// Returns the fields of a message that was checked before: it has no faults.
#[inline(always)]
pub(crate) fn checked<'a>(message: &'a [u8]) -> impl Iterator<Item = Field<'a>> {
    let mut fields = Fields::of(message);
    std::iter::from_fn(move || fields.next().ok().flatten())
}

/// Returns the numbers of eight bytes in a repeated field: packed into one field, or each in a field of its own.
pub(crate) fn fixed_numbers<'a>(payload: Payload<'a>) -> impl Iterator<Item = u64> + 'a {
    let (single, packed) = match payload {
        Payload::Fixed64(number) => (Some(number), &[][..]),
        Payload::Bytes(packed) => (None, packed),
        _ => (None, &[][..]),
    };
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("chunks are of eight bytes"));
    single.into_iter().chain(packed.chunks_exact(8).map(number))
}

/// Returns the numbers of varying length in a repeated field, packed or not.
pub(crate) fn varints<'a>(payload: Payload<'a>) -> impl Iterator<Item = u64> + 'a {
    let (single, packed) = match payload {
        Payload::Varint(number) => (Some(number), &[][..]),
        Payload::Bytes(packed) => (None, packed),
        _ => (None, &[][..]),
    };
    let mut packed = Fields::of(packed);
    single.into_iter().chain(std::iter::from_fn(move || packed.varint().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> Result<Vec<(u32, Payload<'_>)>, WireFault> {
        let mut fields = Fields::of(bytes);
        let mut found = Vec::new();
        while let Some(field) = fields.next()? {
            found.push((field.number, field.payload));
        }
        Ok(found)
    }

    #[test]
    fn fields_of_all_wire_types_are_read() {
        let bytes = [0x08, 0x96, 0x01, 0x12, 2, b'h', b'i', 0x1D, 1, 0, 0, 0, 0x21, 2, 0, 0, 0, 0, 0, 0, 0];
        let expected = vec![
            (1, Payload::Varint(150)),
            (2, Payload::Bytes(b"hi")),
            (3, Payload::Fixed32(1)),
            (4, Payload::Fixed64(2)),
        ];
        assert_eq!(all(&bytes), Ok(expected));
    }

    #[test]
    fn groups_are_passed_over() {
        // Field 5 begins a group with field 1 and another group in it.
        assert_eq!(all(&[0x2B, 0x08, 1, 0x33, 0x34, 0x2C, 0x08, 7]).map(|found| found.len()), Ok(2));
        assert_eq!(all(&[0x2B, 0x08, 1]), Err(WireFault::Truncated));
        assert_eq!(all(&[0x2C]), Err(WireFault::WireType));
    }

    #[test]
    fn what_is_no_message_is_told() {
        assert_eq!(all(&[0x12, 3, b'h', b'i']), Err(WireFault::Truncated));
        assert_eq!(all(&[0x00, 1]), Err(WireFault::FieldNumber));
        assert_eq!(all(&[0x0E]), Err(WireFault::WireType));
        assert_eq!(all(&[0xFF; 11]), Err(WireFault::LongVarint));
        assert_eq!(all(&[0xFF; 3]), Err(WireFault::Truncated));
    }
}
