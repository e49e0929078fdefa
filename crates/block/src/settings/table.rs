//! The one table of settings that bear on reading, with the defaults of ClickHouse 26.7.

/// What the readers know about a name.
pub(super) enum Known {
    Listed(Effect),
    /// By its name it bears on reading, but it is not in the table.
    Unlisted,
    Irrelevant,
}

#[derive(Clone, Copy)]
pub(super) enum Effect {
    /// Concerns formats that are not read here, only writing, or only speed.
    OtherFormats,
    /// Implemented for ClickHouse's default only.
    OnlyDefault(&'static str),
    SkipUnknownFields,
    NullAsDefault,
    DatetimeNumberIsRaw,
    PreciseFloatParsing,
    DateTimeInputFormat,
    SessionTimezone,
}

use Effect::{OnlyDefault, OtherFormats};

const TABLE: &[(&str, Effect)] = &[
    ("cast_ipv4_ipv6_default_on_conversion_error", OnlyDefault("0")),
    ("cast_keep_nullable", OtherFormats),
    ("cast_string_to_date_time_mode", OtherFormats),
    ("cast_string_to_dynamic_use_inference", OtherFormats),
    ("cast_string_to_variant_use_inference", OtherFormats),
    ("date_time_input_format", Effect::DateTimeInputFormat),
    ("date_time_overflow_behavior", OtherFormats), // Values that overflow are never read.
    ("enable_parsing_to_custom_serialization", OtherFormats),
    ("input_format_allow_errors_num", OnlyDefault("0")),
    ("input_format_allow_errors_ratio", OnlyDefault("0")),
    ("input_format_allow_seeks", OtherFormats),
    ("input_format_column_name_matching_mode", OnlyDefault("auto")),
    ("input_format_connection_handling", OnlyDefault("0")),
    ("input_format_defaults_for_omitted_fields", OnlyDefault("1")),
    ("input_format_force_null_for_omitted_fields", OnlyDefault("0")),
    ("input_format_import_nested_json", OnlyDefault("0")),
    ("input_format_ipv4_default_on_conversion_error", OnlyDefault("0")),
    ("input_format_ipv6_default_on_conversion_error", OnlyDefault("0")),
    ("input_format_json_compact_allow_variable_number_of_columns", OtherFormats),
    ("input_format_json_defaults_for_missing_elements_in_named_tuple", OnlyDefault("1")),
    ("input_format_json_empty_as_default", OnlyDefault("0")),
    ("input_format_json_ignore_unknown_keys_in_named_tuple", OnlyDefault("1")),
    ("input_format_json_ignore_unnecessary_fields", OtherFormats), // Duplicate fields are never read.
    ("input_format_json_infer_array_of_dynamic_from_array_of_different_types", OtherFormats),
    ("input_format_json_infer_incomplete_types_as_strings", OtherFormats),
    ("input_format_json_map_as_array_of_tuples", OnlyDefault("0")),
    ("input_format_json_max_depth", OnlyDefault("1000")),
    ("input_format_json_named_tuples_as_objects", OnlyDefault("1")),
    ("input_format_json_read_arrays_as_strings", OnlyDefault("1")),
    ("input_format_json_read_bools_as_numbers", OnlyDefault("1")),
    ("input_format_json_read_bools_as_strings", OnlyDefault("1")),
    ("input_format_json_read_numbers_as_strings", OnlyDefault("1")),
    ("input_format_json_read_objects_as_strings", OnlyDefault("1")),
    ("input_format_json_throw_on_bad_escape_sequence", OtherFormats), // Bad escapes are never read.
    ("input_format_json_try_infer_named_tuples_from_objects", OtherFormats),
    ("input_format_json_try_infer_numbers_from_strings", OtherFormats),
    ("input_format_json_use_string_type_for_ambiguous_paths_in_named_tuples_inference_from_objects", OtherFormats),
    ("input_format_json_validate_types_from_metadata", OtherFormats),
    ("input_format_max_block_size_bytes", OtherFormats),
    ("input_format_max_block_wait_ms", OtherFormats),
    ("input_format_max_bytes_to_read_for_schema_inference", OtherFormats),
    ("input_format_max_rows_to_read_for_schema_inference", OtherFormats),
    ("input_format_null_as_default", Effect::NullAsDefault),
    ("input_format_parallel_parsing", OtherFormats),
    ("input_format_read_datetime_number_as_raw_value", Effect::DatetimeNumberIsRaw),
    ("input_format_record_errors_file_path", OnlyDefault("")),
    ("input_format_skip_unknown_fields", Effect::SkipUnknownFields),
    ("input_format_try_infer_dates", OtherFormats),
    ("input_format_try_infer_datetimes", OtherFormats),
    ("input_format_try_infer_datetimes_only_datetime64", OtherFormats),
    ("input_format_try_infer_exponent_floats", OtherFormats),
    ("input_format_try_infer_integers", OtherFormats),
    ("input_format_try_infer_variants", OtherFormats),
    // Literals are read as they stand; what needs the SQL parser is never read. Only with both of its ways forbidden
    // would ClickHouse refuse the integer in quotes that is taken here.
    ("input_format_values_accurate_types_of_literals", OtherFormats),
    ("input_format_values_deduce_templates_of_expressions", OnlyDefault("1")),
    ("input_format_values_interpret_expressions", OtherFormats),
    ("max_parsing_threads", OtherFormats),
    ("min_chunk_bytes_for_parallel_parsing", OtherFormats),
    ("precise_float_parsing", Effect::PreciseFloatParsing),
    ("session_timezone", Effect::SessionTimezone),
    ("bool_false_representation", OtherFormats),
    ("bool_true_representation", OtherFormats),
];

/// Names of formats that are not read here or settings of writing only.
const OTHER_FORMATS: &[&str] = &[
    "date_time_64_output_format_",
    "date_time_output_format",
    "format_avro_",
    "format_binary_",
    "format_capn_proto_",
    "format_csv_",
    "format_custom_",
    "format_display_",
    "format_geojson_",
    "format_json_object_each_row_",
    "format_protobuf_",
    "format_regexp",
    "format_schema",
    "format_template_",
    "format_tsv_",
    "formatdatetime_",
    "input_format_arrow_",
    "input_format_avro_",
    "input_format_binary_",
    "input_format_bson_",
    "input_format_capn_proto_",
    "input_format_csv_",
    "input_format_custom_",
    "input_format_geojson_",
    "input_format_hive_text_",
    "input_format_msgpack_",
    "input_format_mysql_dump_",
    "input_format_native_",
    "input_format_orc_",
    "input_format_parquet_",
    "input_format_protobuf_",
    "input_format_tsv_",
    "input_format_with_",
];

/// Whatever else begins so may bear on reading.
const READING: &[&str] = &["input_format_", "format_", "date_time_", "cast_"];

pub(super) fn find(name: &str) -> Known {
    if let Some((_, effect)) = TABLE.iter().find(|(known, _)| *known == name) {
        return Known::Listed(*effect);
    }
    let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    if begins(OTHER_FORMATS) {
        Known::Listed(OtherFormats)
    } else if begins(READING) {
        Known::Unlisted
    } else {
        Known::Irrelevant
    }
}
