//! Settings that change how all formats are read, and settings of VALUES.

use super::Effect::{Nothing, OnlyDefault};
use super::{row, Effect, Row};
use crate::format::families::{ALL, VALUES};

pub(super) const ROWS: &[Row] = &[
    row("cast_ipv4_ipv6_default_on_conversion_error", "0", ALL, OnlyDefault),
    row("cast_keep_nullable", "0", ALL, Nothing),
    row("cast_string_to_date_time_mode", "best_effort", ALL, Nothing),
    row("cast_string_to_dynamic_use_inference", "0", ALL, Nothing),
    row("cast_string_to_variant_use_inference", "1", ALL, Nothing),
    row("date_time_input_format", "best_effort", ALL, Effect::DateTimeInputFormat),
    row("date_time_overflow_behavior", "ignore", ALL, Nothing), // Values that overflow are never read.
    row("enable_parsing_to_custom_serialization", "1", ALL, Nothing),
    row("input_format_allow_errors_num", "0", ALL, OnlyDefault),
    row("input_format_allow_errors_ratio", "0", ALL, OnlyDefault),
    row("input_format_allow_seeks", "1", ALL, Nothing),
    row("input_format_column_name_matching_mode", "auto", ALL, OnlyDefault),
    row("input_format_connection_handling", "0", ALL, OnlyDefault),
    row("input_format_defaults_for_omitted_fields", "1", ALL, OnlyDefault),
    row("input_format_force_null_for_omitted_fields", "0", ALL, OnlyDefault),
    row("input_format_ipv4_default_on_conversion_error", "0", ALL, OnlyDefault),
    row("input_format_ipv6_default_on_conversion_error", "0", ALL, OnlyDefault),
    row("input_format_max_block_size_bytes", "0", ALL, Nothing),
    row("input_format_max_block_wait_ms", "0", ALL, Nothing),
    row("input_format_max_bytes_to_read_for_schema_inference", "33554432", ALL, Nothing),
    row("input_format_max_rows_to_read_for_schema_inference", "25000", ALL, Nothing),
    row("input_format_null_as_default", "1", ALL, Effect::NullAsDefault),
    row("input_format_parallel_parsing", "1", ALL, Nothing),
    row("input_format_read_datetime_number_as_raw_value", "0", ALL, Effect::DatetimeNumberIsRaw),
    row("input_format_record_errors_file_path", "", ALL, OnlyDefault),
    row("input_format_skip_unknown_fields", "1", ALL, Effect::SkipUnknownFields),
    row("input_format_try_infer_dates", "1", ALL, Nothing),
    row("input_format_try_infer_datetimes", "1", ALL, Nothing),
    row("input_format_try_infer_datetimes_only_datetime64", "0", ALL, Nothing),
    row("input_format_try_infer_exponent_floats", "0", ALL, Nothing),
    row("input_format_try_infer_integers", "1", ALL, Nothing),
    row("input_format_try_infer_variants", "0", ALL, Nothing),
    row("input_format_values_accurate_types_of_literals", "1", VALUES, Nothing),
    row("input_format_values_deduce_templates_of_expressions", "1", VALUES, OnlyDefault),
    row("input_format_values_interpret_expressions", "1", VALUES, Nothing),
    row("max_parsing_threads", "auto", ALL, Nothing),
    row("min_chunk_bytes_for_parallel_parsing", "10485760", ALL, Nothing),
    row("precise_float_parsing", "1", ALL, Effect::PreciseFloatParsing),
    row("session_timezone", "", ALL, Effect::SessionTimezone),
];
