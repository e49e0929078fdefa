//! The attributes that a JSON column can store, and the keys in the column beside it.
//!
//! ClickHouse refuses a block because of one object that it can't store, so such rows are found here and
//! rejected one by one.

use crate::json_text::{write_json_map, JsonFor};
use crate::value::{AnyValue, Attribute};
use crate::wire::{checked, Payload};

const NOT_FINITE: &str = "an attribute has a number that JSON has no form for (NaN, or infinite)";
const DOUBLED: &str = "two attributes have the same path in JSON (as a key with a dot, and a key within another)";
const LONG_KEYS: &str = "the keys of attributes within others are too long, with those around them";

/// Returns why these sorted attributes can't be an object in a column, or `None` if they can.
pub(crate) fn unfit(attributes: &[Attribute<'_>]) -> Option<&'static str> {
    if write_json_map(attributes, JsonFor::Column, &mut Vec::new()).is_err() {
        return Some(NOT_FINITE);
    }
    if flattened_keys(attributes).is_none() {
        return Some(LONG_KEYS);
    }
    has_doubled_path(attributes).then_some(DOUBLED)
}

/// Says whether ClickHouse would find two values at one path. Without objects inside objects there are none.
fn has_doubled_path(attributes: &[Attribute<'_>]) -> bool {
    let is_nested = attributes.iter().any(|attribute| matches!(attribute.value, AnyValue::Map(_)));
    let in_lists = attributes.iter().any(|attribute| match attribute.value {
        AnyValue::List(list) => elements_have_doubled_path(list),
        AnyValue::Map(map) => has_doubled_path(&Attribute::all_of(map)),
        _ => false,
    });
    in_lists || (is_nested && paths_are_doubled(attributes))
}

fn elements_have_doubled_path(list: &[u8]) -> bool {
    checked(list).any(|field| {
        let (1, Payload::Bytes(element)) = (field.number, field.payload) else { return false };
        let mut value = AnyValue::Empty;
        value.read(element);
        match value {
            AnyValue::List(list) => elements_have_doubled_path(list),
            AnyValue::Map(map) => has_doubled_path(&Attribute::all_of(map)),
            _ => false,
        }
    })
}

fn paths_are_doubled(attributes: &[Attribute<'_>]) -> bool {
    let mut paths = Keys::with_room_for(attributes);
    paths.last_of_each = true;
    if paths.add(b"", attributes).is_none() {
        return false;
    }
    paths.keys.sort_unstable();
    paths.keys.windows(2).any(|pair| pair[0] == pair[1])
}

/// Returns the keys of the JSON object that these attributes make, sorted and without repeats. Keys of an
/// inner object follow the outer key and a dot. Returns `None` where the keys are many times longer than the
/// attributes: a long key is repeated for each key inside it.
pub(crate) fn flattened_keys(attributes: &[Attribute<'_>]) -> Option<Vec<Vec<u8>>> {
    let mut keys = Keys::with_room_for(attributes);
    keys.add(b"", attributes)?;
    keys.keys.sort_unstable();
    keys.keys.dedup();
    Some(keys.keys)
}

struct Keys {
    keys: Vec<Vec<u8>>,
    left_bytes: usize,
    /// Says whether only the last of several entries with the same key counts, and only if it has a value, as
    /// in JSON.
    last_of_each: bool,
}

impl Keys {
    fn with_room_for(attributes: &[Attribute<'_>]) -> Self {
        let sent: usize = attributes.iter().map(Attribute::bytes).sum();
        Keys { keys: Vec::new(), left_bytes: 1024 + 8 * sent, last_of_each: false }
    }

    fn add(&mut self, prefix: &[u8], attributes: &[Attribute<'_>]) -> Option<()> {
        for (at, attribute) in attributes.iter().enumerate() {
            let is_last = attributes.get(at + 1).is_none_or(|next| next.key != attribute.key);
            if self.last_of_each && (!is_last || attribute.value == AnyValue::Empty) {
                continue;
            }
            let key = match prefix.is_empty() {
                true => attribute.key.to_vec(),
                false => [prefix, b".", attribute.key].concat(),
            };
            self.left_bytes = self.left_bytes.checked_sub(key.len())?;
            match attribute.value {
                AnyValue::Map(map) => self.add(&key, &Attribute::all_of(map))?,
                _ => self.keys.push(key),
            }
        }
        Some(())
    }
}
