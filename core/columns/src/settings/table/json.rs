//! Settings of the formats made of JSON.

use super::Effect::{Json, Nothing, OnlyDefault};
use super::{row, Row};
use crate::format::families::JSON;
use crate::settings::json::Json::*;

pub(super) const ROWS: &[Row] = &[
    row("format_json_object_each_row_column_for_object_name", "", JSON, OnlyDefault),
    row("input_format_import_nested_json", "0", JSON, Json(ImportNested)),
    row("input_format_json_compact_allow_variable_number_of_columns", "0", JSON, Nothing),
    row("input_format_json_defaults_for_missing_elements_in_named_tuple", "1", JSON, OnlyDefault),
    row("input_format_json_empty_as_default", "0", JSON, OnlyDefault),
    row("input_format_json_ignore_unknown_keys_in_named_tuple", "1", JSON, OnlyDefault),
    row("input_format_json_ignore_unnecessary_fields", "1", JSON, Nothing), // Duplicate fields are never read.
    row("input_format_json_infer_array_of_dynamic_from_array_of_different_types", "1", JSON, Nothing),
    row("input_format_json_infer_incomplete_types_as_strings", "1", JSON, Nothing),
    row("input_format_json_map_as_array_of_tuples", "0", JSON, OnlyDefault),
    row("input_format_json_max_depth", "1000", JSON, OnlyDefault),
    row("input_format_json_named_tuples_as_objects", "1", JSON, OnlyDefault),
    row("input_format_json_read_arrays_as_strings", "1", JSON, Json(ArraysAsStrings)),
    row("input_format_json_read_bools_as_numbers", "1", JSON, Json(BoolsAsNumbers)),
    row("input_format_json_read_bools_as_strings", "1", JSON, Json(BoolsAsStrings)),
    row("input_format_json_read_numbers_as_strings", "1", JSON, Json(NumbersAsStrings)),
    row("input_format_json_read_objects_as_strings", "1", JSON, Json(ObjectsAsStrings)),
    row("input_format_json_throw_on_bad_escape_sequence", "1", JSON, Json(ThrowOnBadEscape)),
    row("input_format_json_try_infer_named_tuples_from_objects", "1", JSON, Nothing),
    row("input_format_json_try_infer_numbers_from_strings", "0", JSON, Nothing),
    row(
        "input_format_json_use_string_type_for_ambiguous_paths_in_named_tuples_inference_from_objects",
        "0",
        JSON,
        Nothing,
    ),
    row("input_format_json_validate_types_from_metadata", "1", JSON, OnlyDefault), // Else JSONCompact goes by position.
];
