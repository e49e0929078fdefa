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
# Nobody but ClickHouse knows where values of these types end.
GO_TYPES_NATIVE = {
    **{table: how for table, how in GO_TYPES.items() if table not in ("dynamic", "json")},
    **forwarded("type", "dynamic json"),
}
TELEMETRY_NATIVE = {
    **{table: how for table, how in TELEMETRY.items() if "json" not in table},
    **forwarded("type", "otel_json_async otel_json_lz4 otel_json_not_waiting otel_json_unset"),
    **forwarded("async_insert=0", "otel_json_sync"),
}
RUST = {
    **gathered(
        "checked formatted_csv formatted_json formatted_tsv inserter native native_waiting not_waiting one_by_one"
        " row_binary row_binary_waiting statement uncompressed waiting with_types",
    ),
    **forwarded("async_insert=0", "pinned_off"),
    **forwarded("value", "bad_row"),
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
