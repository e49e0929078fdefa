use super::format::{Dialect, Layout, PassthroughFormat};
use crate::settings::{known_default, KnownDefault};

/// The effect of an insert's settings on joining its payload with others. Settings go along with the text,
/// and ClickHouse applies them; here the only question is whether the rows stay the same.
#[derive(Clone, Debug)]
pub struct PassthroughSettings {
    format: &'static PassthroughFormat,
    pub(super) csv_delimiter: u8,
    pub(super) may_join: bool,
}

/// Settings that change what a value means, or names, but not where a value ends.
const ABOUT_VALUES: &[&str] = &[
    "cast_ipv4_ipv6_default_on_conversion_error",
    "cast_keep_nullable",
    "cast_string_to_date_time_mode",
    "cast_string_to_dynamic_use_inference",
    "cast_string_to_variant_use_inference",
    "date_time_input_format",
    "date_time_overflow_behavior",
    "enable_parsing_to_custom_serialization",
    "input_format_column_name_matching_mode",
    "input_format_csv_enum_as_number",
    "input_format_csv_try_infer_numbers_from_strings",
    "input_format_csv_try_infer_strings_from_quoted_tuples",
    "input_format_csv_use_best_effort_in_schema_inference",
    "input_format_defaults_for_omitted_fields",
    "input_format_force_null_for_omitted_fields",
    "input_format_import_nested_json",
    "input_format_ipv4_default_on_conversion_error",
    "input_format_ipv6_default_on_conversion_error",
    "input_format_max_bytes_to_read_for_schema_inference",
    "input_format_max_rows_to_read_for_schema_inference",
    "input_format_null_as_default",
    "input_format_parallel_parsing",
    "input_format_read_datetime_number_as_raw_value",
    "input_format_skip_unknown_fields",
    "input_format_try_infer_dates",
    "input_format_try_infer_datetimes",
    "input_format_try_infer_datetimes_only_datetime64",
    "input_format_try_infer_exponent_floats",
    "input_format_try_infer_integers",
    "input_format_try_infer_variants",
    "input_format_tsv_empty_as_default",
    "input_format_tsv_enum_as_number",
    "input_format_tsv_use_best_effort_in_schema_inference",
    "max_parsing_threads",
    "precise_float_parsing",
    "session_timezone",
];

/// Settings that could make several blocks of one text, with the value that keeps them from it.
const ABOUT_BLOCKS: &[(&str, &str)] = &[("max_insert_block_size_bytes", "0"), ("use_strict_insert_block_limits", "0")];

impl PassthroughSettings {
    pub fn of(format: &'static PassthroughFormat) -> Self {
        PassthroughSettings { format, csv_delimiter: b',', may_join: true }
    }

    pub(super) fn format(&self) -> &'static PassthroughFormat {
        self.format
    }

    /// Takes a setting as a request or the server's profile has it.
    pub fn set(&mut self, name: &str, value: &str) {
        match name {
            "format_csv_delimiter" => self.set_csv_delimiter(value),
            _ => self.may_join &= self.leaves_rows_alone(name, value),
        }
    }

    fn leaves_rows_alone(&self, name: &str, value: &str) -> bool {
        if let Some((_, harmless)) = ABOUT_BLOCKS.iter().find(|(known, _)| *known == name) {
            return is_same(value, harmless);
        }
        // Other ways than `state` read the values of its arguments, which may be tuples.
        if name == "aggregate_function_input_format" {
            return value == "state" || matches!(self.format.layout, Layout::Objects | Layout::Arrays);
        }
        match known_default(name, self.format.families) {
            KnownDefault::Irrelevant => true,
            KnownDefault::Unknown => false,
            // JSON ends where it ends, whatever is made of it.
            KnownDefault::Is(_) if name.starts_with("input_format_json_") => true,
            KnownDefault::Is(default) => is_same(value, default) || ABOUT_VALUES.contains(&name),
        }
    }

    /// Sets the delimiter. Characters such as `:`, which values have in them without quotes, are not
    /// accepted.
    fn set_csv_delimiter(&mut self, value: &str) {
        match value.as_bytes() {
            [delimiter @ (b',' | b';' | b'|' | b'^' | b'~' | b'#')] => self.csv_delimiter = *delimiter,
            _ => self.may_join &= !matches!(self.format.layout, Layout::Delimited(Dialect::Csv)),
        }
    }
}

fn is_same(value: &str, default: &str) -> bool {
    let normalized = |value: &str| match value {
        "true" => "1".to_owned(),
        "false" => "0".to_owned(),
        _ => value.to_owned(),
    };
    normalized(value) == normalized(default)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may_join(format: &str, name: &str, value: &str) -> bool {
        let mut settings = PassthroughSettings::of(PassthroughFormat::named(format).unwrap());
        settings.set(name, value);
        settings.may_join
    }

    #[test]
    fn settings_about_values_go_along_and_others_forbid_joining() {
        let cases = [
            ("JSONEachRow", "input_format_json_read_numbers_as_strings", "0", true),
            ("JSONEachRow", "date_time_input_format", "basic", true),
            ("JSONEachRow", "input_format_allow_errors_num", "1", false),
            ("JSONEachRow", "input_format_allow_errors_num", "0", true),
            ("JSONEachRow", "input_format_max_block_size_bytes", "100", false),
            ("JSONEachRow", "input_format_max_block_wait_ms", "5", false),
            ("JSONEachRow", "input_format_connection_handling", "true", false),
            ("JSONEachRow", "max_insert_block_size_bytes", "100", false),
            ("JSONEachRow", "max_insert_block_size", "1", true),
            ("JSONEachRow", "input_format_csv_skip_first_lines", "1", true),
            ("JSONEachRow", "input_format_invented_tomorrow", "0", false),
            ("JSONEachRow", "format_csv_delimiter", "\t", true),
            ("JSONEachRow", "aggregate_function_input_format", "value", true),
            ("CSV", "aggregate_function_input_format", "value", false),
            ("CSV", "input_format_csv_skip_first_lines", "1", false),
            ("CSV", "format_csv_delimiter", "|", true),
            ("CSV", "format_csv_delimiter", "\t", false),
            ("CSV", "format_csv_delimiter", ":", false),
            ("CSV", "input_format_csv_empty_as_default", "0", false),
            ("CSV", "input_format_csv_empty_as_default", "1", true),
            ("CSV", "format_csv_delimiter", "\"", false),
            ("CSV", "format_csv_allow_single_quotes", "1", false),
            ("CSV", "format_csv_null_representation", "a\nb", false),
            ("TSV", "input_format_tsv_crlf_end_of_line", "1", false),
            ("TSV", "log_comment", "x", true),
        ];
        for (format, name, value, expected) in cases {
            assert_eq!(may_join(format, name, value), expected, "{format}: {name} = {value}");
        }
    }
}
