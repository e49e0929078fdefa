//! Settings of text with delimiters that are implemented.

use super::{applied_if, assign, SettingEffect};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DelimitedSettings {
    pub(crate) csv_delimiter: u8,
    pub(crate) csv_null: String,
    pub(crate) csv_empty_as_default: bool,
    pub(crate) csv_detect_header: bool,
    pub(crate) tsv_null: String,
    pub(crate) tsv_empty_as_default: bool,
    pub(crate) tsv_detect_header: bool,
}

/// Which of them a setting is.
#[derive(Clone, Copy)]
pub(super) enum Delimited {
    CsvDelimiter,
    CsvNull,
    CsvEmptyAsDefault,
    CsvDetectHeader,
    TsvNull,
    TsvEmptyAsDefault,
    TsvDetectHeader,
}

impl Default for DelimitedSettings {
    fn default() -> Self {
        DelimitedSettings {
            csv_delimiter: b',',
            csv_null: "\\N".to_string(),
            csv_empty_as_default: true,
            csv_detect_header: true,
            tsv_null: "\\N".to_string(),
            tsv_empty_as_default: false,
            tsv_detect_header: true,
        }
    }
}

impl DelimitedSettings {
    pub(super) fn set(&mut self, which: Delimited, value: &str) -> SettingEffect {
        match which {
            Delimited::CsvDelimiter => self.set_csv_delimiter(value),
            Delimited::CsvNull => set_null(&mut self.csv_null, value),
            Delimited::CsvEmptyAsDefault => assign(&mut self.csv_empty_as_default, value),
            Delimited::CsvDetectHeader => assign(&mut self.csv_detect_header, value),
            Delimited::TsvNull => set_null(&mut self.tsv_null, value),
            Delimited::TsvEmptyAsDefault => assign(&mut self.tsv_empty_as_default, value),
            Delimited::TsvDetectHeader => assign(&mut self.tsv_detect_header, value),
        }
    }

    /// Only characters that no value without quotes is written with: ClickHouse reads some values on past the delimiter.
    fn set_csv_delimiter(&mut self, value: &str) -> SettingEffect {
        match value.as_bytes() {
            [delimiter @ (b',' | b';' | b'|')] => self.csv_delimiter = *delimiter,
            _ => return SettingEffect::NotTyped,
        }
        SettingEffect::Applied
    }
}

/// Words only: what holds a delimiter, or begins like a value, is read by rules of its own.
fn set_null(target: &mut String, value: &str) -> SettingEffect {
    let is_word = value.starts_with(|first: char| first.is_ascii_alphabetic())
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_known = value == "\\N" || is_word;
    if is_known {
        *target = value.to_string();
    }
    applied_if(is_known)
}
