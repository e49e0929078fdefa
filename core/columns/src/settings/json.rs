//! Settings of JSON's formats that are implemented.

use super::{assign, SettingEffect};
use crate::read::Escapes;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JsonSettings {
    /// Says whether an object is taken for the columns whose names begin with its key and a dot.
    pub(crate) import_nested: bool,
    pub(crate) bools_as_numbers: bool,
    /// Says whether a String takes a Bool besides strings, as its text. The next three say so of other
    /// values.
    pub(crate) bools_as_strings: bool,
    pub(crate) numbers_as_strings: bool,
    pub(crate) arrays_as_strings: bool,
    pub(crate) objects_as_strings: bool,
    throws_on_bad_escape: bool,
}

/// The settings of this file, by name.
#[derive(Clone, Copy)]
pub(super) enum Json {
    ImportNested,
    BoolsAsNumbers,
    BoolsAsStrings,
    NumbersAsStrings,
    ArraysAsStrings,
    ObjectsAsStrings,
    ThrowOnBadEscape,
}

impl Default for JsonSettings {
    fn default() -> Self {
        JsonSettings {
            import_nested: false,
            bools_as_numbers: true,
            bools_as_strings: true,
            numbers_as_strings: true,
            arrays_as_strings: true,
            objects_as_strings: true,
            throws_on_bad_escape: true,
        }
    }
}

impl JsonSettings {
    pub(super) fn set(&mut self, which: Json, value: &str) -> SettingEffect {
        let target = match which {
            Json::ImportNested => &mut self.import_nested,
            Json::BoolsAsNumbers => &mut self.bools_as_numbers,
            Json::BoolsAsStrings => &mut self.bools_as_strings,
            Json::NumbersAsStrings => &mut self.numbers_as_strings,
            Json::ArraysAsStrings => &mut self.arrays_as_strings,
            Json::ObjectsAsStrings => &mut self.objects_as_strings,
            Json::ThrowOnBadEscape => &mut self.throws_on_bad_escape,
        };
        assign(target, value)
    }

    /// Returns the escapes that are read in a String's values.
    #[inline]
    pub(crate) fn escapes(&self) -> Escapes {
        match self.throws_on_bad_escape {
            true => Escapes::OfValue,
            false => Escapes::AnyOfValue,
        }
    }
}
