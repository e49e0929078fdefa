//! The kind of values that an array has, read from the schema's format strings.

use std::ffi::CStr;

use super::Unsuited;
use crate::arrow::ffi::ArrowSchema;

/// Deepest nesting that is followed, for recursion's sake. Arrow's own types are seldom nested deeper than a
/// few.
const MAX_DEPTH: usize = 64;

pub(super) struct Field {
    pub(super) name: String,
    pub(super) layout: Layout,
    pub(super) children: Vec<Field>,
    /// The field of a dictionary's values, for which the numbers of the array stand.
    pub(super) dictionary: Option<Box<Field>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    Null,
    Bool,
    Int {
        width: usize,
        signed: bool,
    },
    Float {
        width: usize,
    },
    Decimal {
        width: usize,
        scale: i32,
    },
    /// Texts and binaries, with offsets of 32 or 64 bits.
    Bytes {
        large: bool,
    },
    /// Texts and binaries, each with a view of 16 bytes.
    BytesView,
    FixedBytes {
        width: usize,
    },
    Date {
        width: usize,
    },
    /// Ticks since midnight; `per_second` of them make a second.
    TimeOfDay {
        width: usize,
        per_second: i64,
    },
    Timestamp {
        per_second: i64,
    },
    Duration {
        per_second: i64,
    },
    List {
        large: bool,
    },
    FixedList {
        length: usize,
    },
    Map,
    Struct,
    /// A layout that is not read.
    Unknown,
}

impl Field {
    /// Reads the field of a schema.
    ///
    /// # Safety
    /// The schema is as Arrow's C data interface says.
    pub(super) unsafe fn of(schema: &ArrowSchema, depth: usize) -> Result<Field, Unsuited> {
        if depth > MAX_DEPTH || schema.release.is_none() || schema.format.is_null() {
            return Err(Unsuited);
        }
        // SAFETY: the caller's promise: texts end with a zero, and there are as many children as it says.
        unsafe {
            let format = CStr::from_ptr(schema.format).to_str().map_err(|_| Unsuited)?;
            let name = match schema.name.is_null() {
                true => String::new(),
                false => CStr::from_ptr(schema.name).to_string_lossy().into_owned(),
            };
            let children =
                (0..schema.n_children.max(0) as usize).map(|index| Field::of(&**schema.children.add(index), depth + 1));
            let dictionary = match schema.dictionary.as_ref() {
                Some(dictionary) => Some(Box::new(Field::of(dictionary, depth + 1)?)),
                None => None,
            };
            let layout = layout_of(format).unwrap_or(Layout::Unknown);
            Ok(Field { name, layout, children: children.collect::<Result<_, _>>()?, dictionary })
        }
    }

    pub(super) fn is_struct(&self) -> bool {
        self.layout == Layout::Struct
    }
}

fn layout_of(format: &str) -> Option<Layout> {
    let int = |width, signed| Some(Layout::Int { width, signed });
    match format {
        "n" => Some(Layout::Null),
        "b" => Some(Layout::Bool),
        "c" => int(1, true),
        "C" => int(1, false),
        "s" => int(2, true),
        "S" => int(2, false),
        "i" => int(4, true),
        "I" => int(4, false),
        "l" => int(8, true),
        "L" => int(8, false),
        "f" => Some(Layout::Float { width: 4 }),
        "g" => Some(Layout::Float { width: 8 }),
        "u" | "z" => Some(Layout::Bytes { large: false }),
        "U" | "Z" => Some(Layout::Bytes { large: true }),
        "vu" | "vz" => Some(Layout::BytesView),
        "tdD" => Some(Layout::Date { width: 4 }),
        "tdm" => Some(Layout::Date { width: 8 }),
        "+l" => Some(Layout::List { large: false }),
        "+L" => Some(Layout::List { large: true }),
        "+s" => Some(Layout::Struct),
        "+m" => Some(Layout::Map),
        _ => with_arguments(format),
    }
}

fn with_arguments(format: &str) -> Option<Layout> {
    if let Some(length) = format.strip_prefix("+w:") {
        return Some(Layout::FixedList { length: length.parse().ok()? });
    }
    if let Some(width) = format.strip_prefix("w:") {
        return Some(Layout::FixedBytes { width: width.parse().ok()? });
    }
    if let Some(arguments) = format.strip_prefix("d:") {
        let mut arguments = arguments.split(',').skip(1);
        let scale = arguments.next()?.parse().ok()?;
        let bits: usize = arguments.next().map_or(Some(128), |bits| bits.parse().ok())?;
        return [32, 64, 128, 256].contains(&bits).then_some(Layout::Decimal { width: bits / 8, scale });
    }
    let unit = |unit: Option<char>| {
        Some(match unit? {
            's' => 1,
            'm' => 1_000,
            'u' => 1_000_000,
            'n' => 1_000_000_000,
            _ => return None,
        })
    };
    if let Some(rest) = format.strip_prefix("ts") {
        return Some(Layout::Timestamp { per_second: unit(rest.chars().next())? });
    }
    if let Some(rest) = format.strip_prefix("tD") {
        return Some(Layout::Duration { per_second: unit(rest.chars().next())? });
    }
    let per_second = unit(format.strip_prefix("tt")?.chars().next())?;
    Some(Layout::TimeOfDay { width: if per_second <= 1_000 { 4 } else { 8 }, per_second })
}
