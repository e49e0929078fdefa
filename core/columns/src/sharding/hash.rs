//! Hash functions of one or several values of any type, as ClickHouse's `FunctionAnyHash` computes them: each value is
//! hashed alone, and the hashes are combined from the first to the last. Tuples count as their elements.

use super::integer::Integer;
use super::values::Values;
use crate::types::DataType;
use windrow_compression::hash::{combine_cityhash64, int_hash32, int_hash64};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Algorithm {
    City64,
    Sip64,
    Xx32,
    Xx64,
    Xx3,
    Murmur3,
}

impl Algorithm {
    pub(super) fn of_function(name: &str) -> Option<Algorithm> {
        Some(match name {
            "cityHash64" => Algorithm::City64,
            "sipHash64" => Algorithm::Sip64,
            "xxHash32" => Algorithm::Xx32,
            "xxHash64" => Algorithm::Xx64,
            "xxh3" => Algorithm::Xx3,
            "murmurHash3_64" => Algorithm::Murmur3,
            _ => return None,
        })
    }

    pub(super) fn result(self) -> Integer {
        Integer::unsigned(if self == Algorithm::Xx32 { 4 } else { 8 })
    }

    /// Mixes every row's value into the row's hash.
    pub(super) fn mix(self, values: &Values<'_>, hashes: &mut [u64], is_first: &mut bool) -> Option<()> {
        if let Values::Tuple(elements) = values {
            return elements.iter().try_for_each(|element| self.mix(element, hashes, is_first));
        }
        let first = std::mem::replace(is_first, false);
        let take = |hash: &mut u64, of_value: u64| *hash = if first { of_value } else { self.combine(*hash, of_value) };
        match values {
            Values::Fixed { data_type, width, data } => {
                let of_values = data.chunks_exact(*width);
                match kind(data_type)? {
                    Kind::Number => hashes.iter_mut().zip(of_values).for_each(|(hash, value)| {
                        let mut word = [0; 8];
                        word[..*width].copy_from_slice(value);
                        take(hash, self.number(u64::from_le_bytes(word), *width));
                    }),
                    Kind::Bytes => {
                        hashes.iter_mut().zip(of_values).for_each(|(hash, value)| take(hash, self.bytes(value)))
                    }
                }
            }
            Values::Strings(strings) => {
                let mut strings = strings.clone();
                for hash in hashes {
                    take(hash, self.bytes(strings.next()?));
                }
            }
            Values::Numbers(integer, numbers) => hashes.iter_mut().zip(numbers).for_each(|(hash, number)| {
                take(hash, self.number(integer.bits(*number), integer.bytes));
            }),
            Values::Dates(days) => hashes.iter_mut().zip(days).for_each(|(hash, day)| take(hash, self.number(*day, 2))),
            Values::Texts(texts) => {
                hashes.iter_mut().zip(texts).for_each(|(hash, text)| take(hash, self.bytes(text.as_bytes())));
            }
            Values::Text(text) => {
                let of_text = self.bytes(text.as_bytes());
                hashes.iter_mut().for_each(|hash| take(hash, of_text));
            }
            Values::Tuple(_) => return None,
        }
        Some(())
    }

    /// Hashes a number. `bits` are the stored bits, with zeros above them.
    fn number(self, bits: u64, bytes: usize) -> u64 {
        match self {
            Algorithm::City64 => int_hash64(bits),
            _ => self.bytes(&bits.to_le_bytes()[..bytes]),
        }
    }

    fn bytes(self, value: &[u8]) -> u64 {
        match self {
            Algorithm::City64 => windrow_compression::hash::cityhash64(value),
            Algorithm::Sip64 => windrow_compression::hash::siphash64(value),
            Algorithm::Xx32 => windrow_compression::hash::xxhash32(value).into(),
            Algorithm::Xx64 => windrow_compression::hash::xxhash64(value),
            Algorithm::Xx3 => windrow_compression::hash::xxh3(value),
            Algorithm::Murmur3 => windrow_compression::hash::murmurhash3_64(value),
        }
    }

    fn combine(self, first: u64, last: u64) -> u64 {
        match self {
            Algorithm::City64 | Algorithm::Xx64 | Algorithm::Xx3 => combine_cityhash64(first, last),
            Algorithm::Sip64 => {
                let mut both = [0; 16];
                both[..8].copy_from_slice(&first.to_le_bytes());
                both[8..].copy_from_slice(&last.to_le_bytes());
                self.bytes(&both)
            }
            Algorithm::Xx32 => u64::from(int_hash32(first)) ^ last,
            Algorithm::Murmur3 => int_hash64(first) ^ last,
        }
    }
}

/// The kind of values that ClickHouse takes a type's values for.
enum Kind {
    /// A number of up to eight bytes, which `cityHash64` hashes in a way of its own.
    Number,
    Bytes,
}

fn kind(data_type: &DataType) -> Option<Kind> {
    use DataType::*;
    Some(match data_type {
        Float32 | Float64 => Kind::Number,
        number if Integer::stored(number).is_some() => Kind::Number,
        UInt128 | UInt256 | Int128 | Int256 | Uuid | Ipv6 | Decimal { .. } | DateTime64 { .. } | FixedString(_) => {
            Kind::Bytes
        }
        _ => return None,
    })
}
