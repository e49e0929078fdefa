"""What becomes of each kind of insert of each client: gathered, or forwarded for a reason.

The names are the tables of the client programs. docs/clients.md says the same in words.
"""

from __future__ import annotations

from clients.routes import forwarded, gathered

PYTHON_SYNC = {
    **gathered("statement raw_jsoneachrow raw_values raw_stream raw_gzip"),
    **forwarded(
        "format",
        "rows_plain rows_waiting rows_not_waiting rows_pinned_off rows_token rows_context rows_by_column"
        " rows_lz4 rows_zstd rows_gzip rows_br rows_uncompressed frame frame_waiting frame_arrow arrow arrow_waiting"
        " raw_jsonstringseachrow raw_jsonlines raw_ndjson raw_json raw_jsoncompact raw_jsoncolumns raw_jsoncolumnswithmetadata"
        " raw_jsoncompactcolumns raw_jsonobjecteachrow raw_jsoncompacteachrow raw_jsoncompacteachrowwithnames"
        " raw_jsoncompacteachrowwithnamesandtypes raw_jsoncompactstringseachrow raw_jsoncompactstringseachrowwithnames"
        " raw_jsoncompactstringseachrowwithnamesandtypes raw_csv raw_csvwithnames raw_csvwithnamesandtypes raw_tabseparated"
        " raw_tsv raw_tsvwithnames raw_tsvwithnamesandtypes raw_customseparated raw_customseparatedwithnames"
        " raw_customseparatedwithnamesandtypes raw_native raw_rowbinary raw_rowbinarywithnames raw_rowbinarywithnamesandtypes"
        " raw_msgpack raw_arrow raw_arrowstream raw_parquet raw_avro raw_orc raw_bsoneachrow raw_lz4 bad_csv checked",
    ),
    **forwarded("value", "bad_json"),
}
PYTHON_ASYNC = {
    **gathered("raw_jsoneachrow"),
    **forwarded(
        "format",
        "rows_plain rows_waiting rows_not_waiting rows_one_by_one rows_lz4 rows_zstd rows_gzip rows_br rows_uncompressed"
        " frame frame_arrow arrow raw_csvwithnames raw_parquet checked",
    ),
}
JAVASCRIPT = {
    **gathered(
        "source waiting not_waiting of_columns one_by_one values_JSONEachRow stream_JSONEachRow"
        " packed_gzip packed_stream_gzip packed_br packed_stream_br checked",
    ),
    **forwarded(
        "format",
        "values_JSONStringsEachRow stream_JSONStringsEachRow values_JSONCompactEachRow stream_JSONCompactEachRow"
        " values_JSONCompactStringsEachRow stream_JSONCompactStringsEachRow values_JSONCompactEachRowWithNames"
        " stream_JSONCompactEachRowWithNames values_JSONCompactEachRowWithNamesAndTypes"
        " stream_JSONCompactEachRowWithNamesAndTypes values_JSONCompactStringsEachRowWithNames"
        " stream_JSONCompactStringsEachRowWithNames values_JSONCompactStringsEachRowWithNamesAndTypes"
        " stream_JSONCompactStringsEachRowWithNamesAndTypes values_JSON values_JSONCompact values_JSONColumnsWithMetadata"
        " values_JSONObjectEachRow raw_CSV raw_CSVWithNames raw_CSVWithNamesAndTypes raw_TabSeparated raw_TabSeparatedRaw"
        " raw_TabSeparatedWithNames raw_TabSeparatedWithNamesAndTypes raw_CustomSeparated raw_CustomSeparatedWithNames"
        " raw_CustomSeparatedWithNamesAndTypes raw_Parquet bad_csv object_for_array",
    ),
    **forwarded("async_insert=0", "pinned_off"),
    **forwarded("insert_form", "except_columns"),
    **forwarded("value", "bad_json"),
}
RUST = {
    **gathered("formatted_json statement"),
    **forwarded(
        "format",
        "with_types row_binary uncompressed waiting not_waiting row_binary_waiting pinned_off inserter one_by_one"
        " native native_waiting formatted_csv formatted_tsv checked",
    ),
    **forwarded("value", "bad_row"),
}
GO = {
    **gathered("format_jsoneachrow format_values statements checked_json"),
    **forwarded(
        "format",
        "batch batch_waiting batch_not_waiting batch_with_async batch_pinned_off batch_lz4 batch_lz4hc batch_zstd batch_gzip"
        " batch_deflate batch_br batch_none format_jsoncompacteachrow format_csv format_csvwithnames format_tsv"
        " format_rowbinary format_rowbinarywithnamesandtypes format_msgpack format_parquet format_arrow checked_batch",
    ),
    **forwarded("syntax", "statements_with_map"),
    **forwarded("value", "bad_json"),
}
# clickhouse-go as the OpenTelemetry collector's exporter uses it.
TELEMETRY = {
    **forwarded(
        "format",
        "otel_logs_async otel_logs_sync otel_logs_unset otel_logs_lz4 otel_logs_not_waiting"
        " otel_traces_async otel_traces_sync otel_traces_unset otel_traces_lz4 otel_traces_not_waiting"
        " otel_viewed_async otel_viewed_sync otel_viewed_unset otel_viewed_lz4 otel_viewed_not_waiting",
    ),
}
