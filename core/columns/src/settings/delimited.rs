//! Settings of text with delimiters that are implemented.

use super::{applied_if, assign, SettingEffect};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DelimitedSettings {
    pub(crate) csv_delimiter: u8,
    pub(crate) csv_null: String,
    pub(crate) csv_empty_as_default: bool,
    pub(crate) csv_detect_header: bool,
    /// Says whether `'` quotes as well.
    pub(crate) csv_single_quotes: bool,
    pub(crate) csv_skip_first_lines: u64,
    pub(crate) csv_skip_trailing_empty_lines: bool,
    pub(crate) csv_variable_columns: bool,
    /// Says whether a Tuple is spread over as many fields as it has elements.
    pub(crate) csv_spread_tuples: bool,
    pub(crate) tsv_null: String,
    pub(crate) tsv_empty_as_default: bool,
    pub(crate) tsv_detect_header: bool,
    pub(crate) tsv_crlf: bool,
    pub(crate) tsv_skip_first_lines: u64,
    pub(crate) tsv_skip_trailing_empty_lines: bool,
    pub(crate) tsv_variable_columns: bool,
}

/// The settings of this file, by name.
#[derive(Clone, Copy)]
pub(super) enum Delimited {
    CsvDelimiter,
    CsvNull,
    CsvEmptyAsDefault,
    CsvDetectHeader,
    CsvSingleQuotes,
    CsvSkipFirstLines,
    CsvSkipTrailingEmptyLines,
    CsvVariableColumns,
    CsvSpreadTuples,
    TsvNull,
    TsvEmptyAsDefault,
    TsvDetectHeader,
    TsvCrlf,
    TsvSkipFirstLines,
    TsvSkipTrailingEmptyLines,
    TsvVariableColumns,
}

impl Default for DelimitedSettings {
    fn default() -> Self {
        DelimitedSettings {
            csv_delimiter: b',',
            csv_null: "\\N".to_string(),
            csv_empty_as_default: true,
            csv_detect_header: true,
            csv_single_quotes: false,
            csv_skip_first_lines: 0,
            csv_skip_trailing_empty_lines: false,
            csv_variable_columns: false,
            csv_spread_tuples: true,
            tsv_null: "\\N".to_string(),
            tsv_empty_as_default: false,
            tsv_detect_header: true,
            tsv_crlf: false,
            tsv_skip_first_lines: 0,
            tsv_skip_trailing_empty_lines: false,
            tsv_variable_columns: false,
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
            Delimited::CsvSingleQuotes => assign(&mut self.csv_single_quotes, value),
            Delimited::CsvSkipFirstLines => set_count(&mut self.csv_skip_first_lines, value),
            Delimited::CsvSkipTrailingEmptyLines => assign(&mut self.csv_skip_trailing_empty_lines, value),
            Delimited::CsvVariableColumns => assign(&mut self.csv_variable_columns, value),
            Delimited::CsvSpreadTuples => assign(&mut self.csv_spread_tuples, value),
            Delimited::TsvNull => set_null(&mut self.tsv_null, value),
            Delimited::TsvEmptyAsDefault => assign(&mut self.tsv_empty_as_default, value),
            Delimited::TsvDetectHeader => assign(&mut self.tsv_detect_header, value),
            Delimited::TsvCrlf => assign(&mut self.tsv_crlf, value),
            Delimited::TsvSkipFirstLines => set_count(&mut self.tsv_skip_first_lines, value),
            Delimited::TsvSkipTrailingEmptyLines => assign(&mut self.tsv_skip_trailing_empty_lines, value),
            Delimited::TsvVariableColumns => assign(&mut self.tsv_variable_columns, value),
        }
    }

    /// Sets the delimiter. Only characters are accepted that no value without quotes is written with:
    /// ClickHouse reads some values on past the delimiter.
    fn set_csv_delimiter(&mut self, value: &str) -> SettingEffect {
        match value.as_bytes() {
            [delimiter @ (b',' | b';' | b'|')] => self.csv_delimiter = *delimiter,
            _ => return SettingEffect::NotParsed,
        }
        SettingEffect::Applied
    }
}

/// Sets the text of NULL. Only words are accepted: a text that holds a delimiter, or begins like a value, is
/// read by rules of its own.
fn set_null(target: &mut String, value: &str) -> SettingEffect {
    let is_word = value.starts_with(|first: char| first.is_ascii_alphabetic())
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_known = value == "\\N" || is_word;
    if is_known {
        *target = value.to_string();
    }
    applied_if(is_known)
}

fn set_count(target: &mut u64, value: &str) -> SettingEffect {
    match value.parse() {
        Ok(count) => *target = count,
        Err(_) => return SettingEffect::NotParsed,
    }
    SettingEffect::Applied
}
