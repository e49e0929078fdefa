"""What becomes of each kind of insert of each client: gathered, or forwarded for a reason.

The names are the tables of the client programs. docs/clients.md says the same in words.
"""

from __future__ import annotations

from clients.routes import forwarded, gathered

PYTHON_SYNC = {
    **gathered(
        "rows_plain rows_waiting rows_not_waiting rows_by_threads rows_context rows_by_column rows_lz4 rows_zstd"
        " rows_gzip rows_br rows_uncompressed frame frame_waiting statement raw_jsoneachrow raw_jsonstringseachrow"
        " raw_jsonlines raw_ndjson raw_json raw_jsoncompact raw_jsoncolumns raw_jsoncolumnswithmetadata"
        " raw_jsoncompactcolumns raw_jsonobjecteachrow raw_jsoncompacteachrow raw_jsoncompacteachrowwithnames"
        " raw_jsoncompacteachrowwithnamesandtypes raw_jsoncompactstringseachrow"
        " raw_jsoncompactstringseachrowwithnames raw_jsoncompactstringseachrowwithnamesandtypes raw_csv"
        " raw_csvwithnames raw_csvwithnamesandtypes raw_tabseparated raw_tsv raw_tsvwithnames"
        " raw_tsvwithnamesandtypes raw_values raw_native raw_rowbinary raw_rowbinarywithnames"
        " raw_rowbinarywithnamesandtypes raw_msgpack raw_stream raw_gzip raw_lz4 checked"
        " frame_arrow arrow arrow_waiting raw_arrow raw_arrowstream raw_parquet raw_avro rows_token"
        " raw_customseparated raw_customseparatedwithnames raw_customseparatedwithnamesandtypes raw_orc"
        " raw_bsoneachrow",
    ),
    **forwarded("async_insert=0", "rows_pinned_off"),
    **forwarded("too_large", "frame_large"),
    **forwarded("value", "bad_json bad_csv"),
}
PYTHON_ASYNC = {
    **gathered(
        "rows_plain rows_waiting rows_not_waiting rows_one_by_one rows_lz4 rows_zstd rows_gzip rows_br"
        " rows_uncompressed frame raw_jsoneachrow raw_csvwithnames checked"
        " frame_arrow arrow raw_parquet",
    ),
}
# A column of each type, as clickhouse-connect writes it.
PYTHON_TYPES = {
    **gathered(
        "uint8 int16 uint64 int128 uint256 float32 float64 bfloat16 bool string fixed_string date date32 datetime"
        " datetime64 time time64 decimal32 decimal128 decimal256 uuid ipv4 ipv6 enum8 enum16 nullable words"
        " words_or_null few_numbers array array_of_words map map_of_words tuple named_tuple array_of_tuples point"
        " polygon simple_aggregate variant dynamic json",
    ),
}
JAVASCRIPT = {
    **gathered(
        "source waiting not_waiting of_columns one_by_one values_JSONEachRow stream_JSONEachRow"
        " values_JSONStringsEachRow stream_JSONStringsEachRow values_JSONCompactEachRow stream_JSONCompactEachRow"
        " values_JSONCompactStringsEachRow stream_JSONCompactStringsEachRow values_JSONCompactEachRowWithNames"
        " stream_JSONCompactEachRowWithNames values_JSONCompactEachRowWithNamesAndTypes"
        " stream_JSONCompactEachRowWithNamesAndTypes values_JSONCompactStringsEachRowWithNames"
        " stream_JSONCompactStringsEachRowWithNames values_JSONCompactStringsEachRowWithNamesAndTypes"
        " stream_JSONCompactStringsEachRowWithNamesAndTypes values_JSON values_JSONCompact"
        " values_JSONColumnsWithMetadata values_JSONObjectEachRow raw_CSV raw_CSVWithNames"
        " raw_CSVWithNamesAndTypes raw_TabSeparated raw_TabSeparatedRaw raw_TabSeparatedWithNames"
        " raw_TabSeparatedWithNamesAndTypes packed_gzip packed_stream_gzip packed_br packed_stream_br checked raw_Parquet"
        " raw_CustomSeparated raw_CustomSeparatedWithNames raw_CustomSeparatedWithNamesAndTypes except_columns",
    ),
    **forwarded("async_insert=0", "pinned_off"),
    **forwarded("syntax", "object_for_array"),
    **forwarded("value", "bad_json bad_csv"),
}
GO = {
    **gathered(
        "batch batch_br batch_deflate batch_gzip batch_lz4 batch_lz4hc batch_none batch_not_waiting batch_waiting"
        " batch_with_async batch_zstd checked_batch checked_json format_csv format_csvwithnames"
        " format_jsoncompacteachrow format_jsoneachrow format_msgpack format_rowbinary"
        " format_rowbinarywithnamesandtypes format_tsv format_values statements statements_with_map format_arrow format_parquet",
    ),
    **forwarded("async_insert=0", "batch_pinned_off"),
    **forwarded("value", "bad_json"),
}
# A column of each type, as clickhouse-go writes it.
GO_TYPES = {
    **gathered(
        "array array_of_tuples array_of_words bfloat16 bool date date32 datetime datetime64 decimal128 decimal256"
        " decimal32 enum16 enum8 fixed_string float32 float64 int128 int64 ipv4 ipv6 map map_of_maps map_of_words"
        " named_tuple nullable point polygon simple_aggregate string time time64 tuple uint256 uint8 uuid variant"
        " words words_or_null dynamic json",
    ),
}
# clickhouse-go as the OpenTelemetry collector's exporter uses it.
TELEMETRY = {
    **gathered(
        "otel_histograms_async otel_histograms_lz4 otel_histograms_not_waiting otel_histograms_unset"
        " otel_logs_async otel_logs_lz4 otel_logs_not_waiting otel_logs_unset otel_traces_async otel_traces_lz4"
        " otel_traces_not_waiting otel_traces_unset otel_viewed_async otel_viewed_lz4 otel_viewed_not_waiting"
        " otel_viewed_unset otel_json_async otel_json_lz4 otel_json_not_waiting otel_json_unset",
    ),
    **forwarded(
        "async_insert=0",
        "otel_histograms_sync otel_json_sync otel_logs_sync otel_traces_sync otel_viewed_sync",
    ),
}
# The same over the native protocol.
GO_NATIVE = {
    **gathered(
        "batch batch_lz4 batch_lz4hc batch_none batch_not_waiting batch_waiting batch_with_async batch_zstd"
        " checked_batch statements statements_with_map",
    ),
    **forwarded("async_insert=0", "batch_pinned_off"),
}
# ch-go, which clickhouse-go stands on: blocks of its own columns.
CHGO = {
    **gathered(
        "after_set at_once block block_not_waiting block_waiting by_name constraint constraint_packed constraint_stream"
        " constraint_waiting cut_off_behind float_as_number given_up_behind many milli_as_nano milli_as_seconds named"
        " narrow_as_wide nothing_named nullable_as_plain number_as_bool number_as_decimal number_as_float"
        " number_as_text observed old_revision one_by_one packed_disabled packed_disabled_stream packed_lz4"
        " packed_lz4_stream packed_lz4hc packed_lz4hc_stream packed_none packed_none_stream packed_zstd"
        " packed_zstd_stream settings_of_client signed_as_unsigned stream_1 stream_10 stream_3 stream_not_waiting"
        " stream_waiting stream_with_holes stream_with_tail superfluous text_as_date text_as_enum text_as_nullable"
        " text_as_number text_as_words too_wide_as_narrow turned type_array_of_words type_bool type_date type_date32"
        " type_datetime type_datetime64 type_enum16 type_enum8 type_float32 type_float64 type_int128 type_int64"
        " type_ipv4 type_ipv6 type_nullable type_string type_uint256 type_uint8 type_uuid type_words wide_as_narrow"
        " words_as_text",
    ),
    **forwarded("async_insert=0", "block_pinned_off constraint_off stream_pinned_off"),
    **forwarded("setting", "logged unknown_setting"),
    **forwarded("session", "scratch"),
    **forwarded("insert_form", "select"),
    **forwarded("columns", "left_out unknown_column"),
    **forwarded("too_large", "many_large"),
    **forwarded("value", "not_cast"),
    **forwarded("unknown_field", "superfluous_not_skipped"),
    **forwarded("unknown_table", "nowhere"),
}
# clickhouse-driver and asynch speak the native protocol only.
DRIVER = {
    **gathered(
        "with_semicolon after_set lists tuples dicts columns generator generator_of_dicts blocks blocks_of_columns a_block_a_row checked_types"
        " no_rows as_bytes null_as_default traced frame arrays packed_lz4 packed_lz4_blocks packed_lz4hc"
        " packed_lz4hc_blocks packed_zstd packed_zstd_blocks packed_not packed_not_blocks packed_in_pieces"
        " events_none_old events_none_old_waiting events_sent_old events_sent_old_waiting events_sent_new"
        " events_sent_new_waiting oldest_revision waiting not_waiting not_waiting_blocks important token named"
        " named_again quota all_named quoted of_database in_small_letters commented format_native format_values"
        " format_csv settings_clause turned some_named except values values_waiting values_not_waiting"
        " values_substituted values_of_server text_of_json text_of_csv computed_all computed_id computed_ephemeral one_by_one"
        " one_by_one_changing by_threads in_turns many many_packed dbapi_many dbapi_values constraint"
        " constraint_blocks constraint_waiting constraint_packed constraint_values",
    ),
    **forwarded(
        "async_insert=0",
        "events_none_old_off events_sent_old_off events_sent_new_off pinned_off pinned_off_blocks settings_clause_off"
        " values_off constraint_off",
    ),
    **forwarded("session", "after_use scratch"),
    **forwarded("setting", "logged unknown_setting important_setting"),
    **forwarded("insert_form", "selected selected_from_tables through_input of_temporary"),
    **forwarded("columns", "unknown_column"),
    **forwarded("too_large", "many_large"),
    **forwarded("value", "bad_value bad_json"),
    **forwarded("refused", "bad_setting"),
    **forwarded("unknown_table", "nowhere"),
    **forwarded("unclear", "no_table"),
}
# A column of each type, as clickhouse-driver writes it.
DRIVER_TYPES = {
    **gathered(
        "uint8 int16 uint64 int128 uint256 float32 float64 bool string fixed_string date date32 datetime datetime64"
        " decimal32 decimal128 decimal256 uuid ipv4 ipv6 enum8 enum16 nullable words words_or_null few_numbers array"
        " array_of_words map map_of_words tuple named_tuple array_of_tuples point polygon simple_aggregate int8 int32"
        " int64 int256 uint16 uint32 uint128 decimal64 datetime_plain datetime64_plain datetime64_zero nullable_uuid"
        " nullable_date nullable_datetime64 nullable_decimal nullable_enum nullable_ipv6 nullable_bool nullable_fixed"
        " few_dates few_moments few_fixed few_floats array_of_fixed array_of_maps array_of_words_or_null"
        " array_of_enums map_of_arrays map_of_arrays_of_words tuple_of_words tuple_of_one tuple_of_tuples ring"
        " multi_polygon interval nested nested_whole json json_array json_typed",
    ),
}
ASYNCH = {
    **gathered(
        "after_set lists tuples dicts generator blocks executemany waiting not_waiting not_waiting_blocks events_none important"
        " packed_lz4 packed_lz4_blocks packed_lz4hc packed_lz4hc_blocks packed_zstd packed_zstd_blocks packed_not"
        " packed_not_blocks values one_by_one by_pool at_once in_turns many constraint constraint_waiting type_uint8"
        " type_int16 type_uint64 type_int128 type_uint256 type_float32 type_float64 type_bool type_string"
        " type_fixed_string type_date type_date32 type_datetime type_datetime64 type_decimal32 type_decimal128"
        " type_decimal256 type_uuid type_ipv4 type_ipv6 type_enum8 type_enum16 type_nullable type_words"
        " type_words_or_null type_few_numbers type_array type_array_of_words type_map type_map_of_words type_tuple"
        " type_named_tuple type_point type_polygon type_simple_aggregate type_json",
    ),
    **forwarded("async_insert=0", "pinned_off pinned_off_blocks events_none_off constraint_off"),
    **forwarded("session", "scratch"),
    **forwarded("insert_form", "of_temporary"),
    **forwarded("setting", "important_setting"),
    **forwarded("unknown_table", "nowhere"),
}
# The OpenTelemetry collector's exporter itself.
COLLECTOR = {
    **gathered(
        " ".join(
            f"{variant}_{kind}"
            for variant in ("default", "json", "none", "not_waiting", "zstd")
            for kind in ("logs", "traces", "gauge", "sum", "summary", "histogram", "exponential")
        ),
    ),
    **forwarded(
        "async_insert=0",
        "sync_logs sync_traces sync_gauge sync_sum sync_summary sync_histogram sync_exponential",
    ),
}
# A ClickHouse whose remote_servers name Windrow.
DISTRIBUTED = {
    **gathered(
        "foreground foreground_waiting foreground_not_waiting background background_waiting rows_in_text many"
        " many_in_background small_blocks sparse sparse_in_background packed_not packed_zstd traced logged by_function"
        " computed other_types typed checked",
    ),
    **forwarded("async_insert=0", "foreground_off background_off"),
    **forwarded("too_large", "large large_in_background"),
    **forwarded("insert_form", "selected"),
    **forwarded("unknown_table", "nowhere"),
}
RUST = {
    **gathered(
        "checked formatted_csv formatted_json formatted_tsv inserter native native_waiting not_waiting one_by_one"
        " row_binary row_binary_waiting statement uncompressed waiting with_types",
    ),
    **forwarded("async_insert=0", "pinned_off"),
    **forwarded("value", "bad_row"),
}
# It begins every connection with a SET.
KLICKHOUSE = {
    **gathered("block waiting not_waiting blocks some_columns statement checked"),
    **forwarded("async_insert=0", "pinned_off"),
    **forwarded("unknown_table", "nowhere"),
}
CLIENT_V2 = {
    **gathered(
        "objects objects_waiting objects_not_waiting objects_one_by_one objects_lz4 objects_http_lz4"
        " written_rowbinary written_rowbinarywithdefaults stream_jsoneachrow stream_jsoncompacteachrow stream_csv"
        " stream_csvwithnames stream_tabseparated stream_tsvwithnamesandtypes stream_values stream_native"
        " stream_rowbinary stream_rowbinarywithnames stream_rowbinarywithnamesandtypes stream_msgpack checked"
        " stream_parquet stream_arrowstream stream_avro",
    ),
    **forwarded("async_insert=0", "objects_pinned_off"),
    **forwarded("value", "bad_json"),
}
JDBC = {
    **gathered("jdbc_prepared jdbc_batch jdbc_row_binary jdbc_lz4 jdbc_async jdbc_checked"),
}
# Versions up to 0.9 send async_insert=0 with every statement.
JDBC_PINNING = {
    **gathered("jdbc_row_binary"),
    **forwarded("async_insert=0", "jdbc_prepared jdbc_batch jdbc_lz4 jdbc_async jdbc_checked"),
}
PHP = {
    **gathered(
        "lines lines_waiting lines_not_waiting in_the_body array gzip deflate values values_with_columns"
        " written_csv written_csvwithnames written_tabseparated written_tsvwithnames written_jsoncompacteachrow"
        " written_rowbinary checked",
    ),
    **forwarded("value", "bad_json"),
}
VECTOR = {
    **gathered(
        "by_name by_name_waiting by_name_not_waiting by_name_random_shard by_parameter by_parameter_waiting",
    ),
    **forwarded("value", "by_name_bad"),
}
