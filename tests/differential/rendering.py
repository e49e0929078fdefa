"""Payloads in every format: as ClickHouse renders them, and with something wrong or odd about them."""

from __future__ import annotations

import json
from random import Random

from differential.budget import generator
from differential.contest import Case
from differential.kind import ANYTHING
from differential.payloads import encoded
from differential.sources import PLAIN_ROWS, SOURCES, fill, table
from harness.endpoint import Endpoint
from harness.quick_http import QuickConnection

# Each format once, under its first name; the names behind it are the same format.
FORMATS = {
    "JSONEachRow": ("NDJSON", "JSONLines", "JSONL"), "JSONStringsEachRow": (), "JSONCompactEachRow": (),
    "JSONCompactEachRowWithNames": (), "JSONCompactEachRowWithNamesAndTypes": (), "JSONCompactStringsEachRow": (),
    "JSONCompactStringsEachRowWithNames": (), "JSONCompactStringsEachRowWithNamesAndTypes": (), "JSONColumns": (),
    "JSONCompactColumns": (), "JSONColumnsWithMetadata": (), "JSON": (), "JSONCompact": (), "JSONObjectEachRow": (),
    "BSONEachRow": (), "Values": (),
    "TabSeparated": ("TSV",), "TabSeparatedRaw": ("TSVRaw", "Raw"), "TabSeparatedWithNames": ("TSVWithNames",),
    "TabSeparatedWithNamesAndTypes": ("TSVWithNamesAndTypes",),
    "TabSeparatedRawWithNames": ("TSVRawWithNames", "RawWithNames"),
    "TabSeparatedRawWithNamesAndTypes": ("TSVRawWithNamesAndTypes", "RawWithNamesAndTypes"),
    "CSV": (), "CSVWithNames": (), "CSVWithNamesAndTypes": (), "CustomSeparated": (), "CustomSeparatedWithNames": (),
    "CustomSeparatedWithNamesAndTypes": (), "TSKV": (),
    "Native": (), "RowBinary": (), "RowBinaryWithNames": (), "RowBinaryWithNamesAndTypes": (),
    "RowBinaryWithDefaults": (), "MsgPack": (), "Buffers": (),
    "Arrow": (), "ArrowStream": (), "Parquet": (), "ORC": (), "Avro": (), "Protobuf": (), "ProtobufSingle": (),
    "ProtobufList": (),
}  # fmt: skip
JSON_LIKE = tuple(name for name in FORMATS if name.startswith("JSON"))
TEXT_LIKE = (*JSON_LIKE, *(name for name in FORMATS if name.startswith(("Tab", "CSV", "Custom", "TSKV", "Values"))))
WITH_HEADER = tuple(name for name in FORMATS if "WithNames" in name)
# Never read here, and ClickHouse may end by a damaged one: only whole payloads of them are sent.
FORWARDED = ("BSONEachRow", "Buffers", "ORC")
# What a message's field may be for a column of a type.
PROTOBUF_TYPES = {
    "UInt8": "uint32", "UInt16": "uint32", "UInt32": "uint32", "UInt64": "uint64", "Int8": "sint32", "Int16": "int32",
    "Int32": "int32", "Int64": "int64", "Float32": "float", "Float64": "double", "Bool": "bool", "String": "string",
    "FixedString(12)": "bytes", "Array(UInt8)": "repeated uint32", "Array(String)": "repeated string",
    "Array(Float32)": "repeated float", "LowCardinality(String)": "string", "Nullable(Int64)": "optional int64",
    "Nullable(String)": "optional string", "DateTime('UTC')": "uint32", "Date": "uint32", "UUID": "string",
    "Map(String, UInt64)": "map<string, uint64>",
}  # fmt: skip
SETTINGS = (
    ("input_format_null_as_default", "01"), ("input_format_skip_unknown_fields", "01"),
    ("input_format_defaults_for_omitted_fields", "01"), ("input_format_force_null_for_omitted_fields", "1"),
    ("date_time_input_format", ("basic", "best_effort", "best_effort_us")), ("input_format_allow_errors_num", "1"),
    ("input_format_with_names_use_header", "01"), ("input_format_with_types_use_header", "01"),
    ("input_format_csv_empty_as_default", "01"), ("input_format_csv_trim_whitespaces", "01"),
    ("input_format_csv_detect_header", "01"), ("input_format_csv_skip_first_lines", "01"),
    ("input_format_csv_allow_variable_number_of_columns", "1"), ("input_format_csv_use_default_on_bad_values", "1"),
    ("input_format_csv_enum_as_number", "1"), ("input_format_csv_arrays_as_nested_csv", "1"),
    ("format_csv_allow_single_quotes", "01"), ("format_csv_allow_double_quotes", "0"), ("format_csv_delimiter", ";|\t"),
    ("format_csv_null_representation", ("NULL", "")), ("format_tsv_null_representation", ("NULL", "")),
    ("input_format_csv_allow_cr_end_of_line", "1"), ("input_format_tsv_crlf_end_of_line", "1"),
    ("input_format_tsv_empty_as_default", "1"), ("input_format_tsv_skip_first_lines", "1"),
    ("input_format_tsv_detect_header", "01"), ("input_format_tsv_enum_as_number", "1"),
    ("input_format_tsv_allow_variable_number_of_columns", "1"),
    ("format_custom_field_delimiter", ("\t", ",", "<sep>")), ("format_custom_escaping_rule", ("CSV", "Quoted", "Raw")),
    ("bool_true_representation", ("yes", "1")),
    ("input_format_json_read_numbers_as_strings", "0"), ("input_format_json_read_bools_as_numbers", "0"),
    ("input_format_json_named_tuples_as_objects", "0"), ("input_format_json_empty_as_default", "1"),
    ("input_format_json_compact_allow_variable_number_of_columns", "1"), ("input_format_import_nested_json", "1"),
    ("input_format_json_validate_types_from_metadata", "0"), ("input_format_json_map_as_array_of_tuples", "1"),
    ("input_format_native_allow_types_conversion", "0"), ("input_format_native_decode_types_in_binary_format", "1"),
    ("input_format_binary_decode_types_in_binary_format", "1"), ("input_format_binary_read_json_as_string", "1"),
    ("format_binary_max_string_size", "3"), ("format_binary_max_array_size", "1"),
    ("input_format_arrow_allow_missing_columns", "0"), ("input_format_arrow_case_insensitive_column_matching", "1"),
    ("input_format_parquet_allow_missing_columns", "0"),
    ("input_format_parquet_case_insensitive_column_matching", "1"), ("input_format_avro_allow_missing_fields", "1"),
    ("input_format_avro_null_as_default", "1"), ("input_format_parquet_import_nested", "1"),
    ("input_format_column_name_matching_mode", ("match_case", "ignore_case")), ("session_timezone", ("Asia/Tokyo",)),
    ("precise_float_parsing", "0"), ("insert_null_as_default", "0"), ("input_format_ipv4_default_on_conversion_error", "1"),
)  # fmt: skip


class Renderer:
    """`None` for what ClickHouse can't render."""

    def __init__(self, direct: Endpoint):
        self.direct = direct
        self.connection = QuickConnection(direct)
        self.known: dict[tuple, bytes | None] = {}
        self.filled: set[int] = set()

    def rows(self, form: str, source: int, first: int, count: int, what: str = "n, v", **settings: str) -> bytes | None:
        key = (form, source, first, count, what, *settings.items())
        if key not in self.known:
            self.known[key] = self.rendered(form, source, first, count, what, settings)
        return self.known[key]

    def rendered(self, form: str, source: int, first: int, count: int, what: str, settings: dict) -> bytes | None:
        if form == "RowBinaryWithDefaults":
            return self.with_default_marks(source, first, count)
        if source not in self.filled:
            fill(self.direct, source, generator("source", SOURCES[source].type))
            self.filled.add(source)
        settings = {**settings, **schema_settings(form, source)}
        query = f"SELECT {what} FROM {table(source)} WHERE n >= {first} ORDER BY n LIMIT {count} FORMAT {form}"
        target = self.direct.target(query, {"wait_end_of_query": 1, "output_format_write_statistics": 0, **settings})
        reply = self.connection.post(target, b"")
        return reply.body if reply.status == 200 else None

    def with_default_marks(self, source: int, first: int, count: int) -> bytes | None:
        """Each value behind a byte that says whether it is there."""
        cells = []
        for row in range(first, first + count):
            for what in ("n", "v"):
                cells.append(self.rows("RowBinary", source, row, 1, what))
        return None if None in cells else b"".join(b"\0" + cell for cell in cells if cell)


def schema_settings(form: str, source: int) -> dict[str, str]:
    if not form.startswith("Protobuf"):
        return {}
    fields = f"uint32 n = 1; {PROTOBUF_TYPES.get(SOURCES[source].type, 'string')} v = 2; string d = 3;"
    schema = f'syntax = "proto3"; message Row {{ {fields} }}'
    return {"format_schema_source": "string", "format_schema": schema, "format_schema_message_name": "Row"}


def everyday(renderer: Renderer, form: str, source: int) -> list[Case]:
    """Payloads as clients send them: these say how a format and a type are handled."""
    cases = []
    for first, count in ((3, 4),):
        payload = renderer.rows(form, source, first, 1 if form == "ProtobufSingle" else count)
        if payload is not None:
            cases.append(Case(form, source, payload, schema_settings(form, source), "(n, v)", "everyday"))
    return cases


def odd(renderer: Renderer, rng: Random, form: str, source: int) -> Case | None:
    """Some payload of the format that ClickHouse may take, may take for something else or may refuse."""
    form = rng.choice((form, *FORMATS[form]))
    first = rng.randrange(PLAIN_ROWS + 20)
    what = rng.choice(("n, v", "n, v", "v, n", "n", "n, v, 'x' AS d", "n, v, 1 AS u", "n AS N, v", "toString(n) AS n, v",
        "n, toString(v) AS v", "n, CAST(v AS Nullable(String)) AS v"))  # fmt: skip
    if "WithNames" not in form and not form.startswith(("JSON", "TSKV", "Native", "Arrow", "Parquet", "Avro", "ORC")):
        what = rng.choice(("n, v", what))
    payload = renderer.rows(form, source, first, rng.choice((1, 1, 2, 4)), what)
    if payload is None:
        payload, what = renderer.rows(form, source, first, 1), "n, v"
    if payload is None:
        return None
    settings = {**schema_settings(form, source), **some_settings(rng, form)}
    columns = rng.choice(("(n, v)", "(n, v)", "(n, v)", "(n, v)", "", "(v, n)", "(n)", "(n, v, d)"))
    if what.startswith("v, n") and rng.random() < 0.7:
        columns = "(v, n)"
    payload, note = broken(rng, renderer, form, source, payload)
    return Case(form, source, payload, settings, columns, f"{what}, {note}")


def some_settings(rng: Random, form: str) -> dict[str, str]:
    if rng.random() < 0.6:
        return {}
    family = next((word for word in ("json", "csv", "tsv", "custom", "native", "binary", "arrow", "parquet", "avro")
        if word in form.lower().replace("tabseparated", "tsv")), "")  # fmt: skip
    fitting = [entry for entry in SETTINGS if family and f"_{family}_" in entry[0]]
    name, values = rng.choice(fitting if fitting and rng.random() < 0.6 else SETTINGS)
    return {name: rng.choice(values)}


def broken(rng: Random, renderer: Renderer, form: str, source: int, payload: bytes) -> tuple[bytes, str]:
    luck = rng.random()
    if luck < 0.25:
        return payload, "whole"
    if luck < 0.4:
        at = rng.randrange(len(payload) + 1)
        return payload[:at], f"cut at {at}"
    if luck < 0.5 and form in TEXT_LIKE:
        return swapped_value(rng, form, payload), "another value"
    if luck < 0.6:
        return payload + rng.choice((payload, b"\n", b"\r\n", b" ", b";", b"\0", b",", b"\xef\xbb\xbf", b"\n\n")), "more"
    if luck < 0.65:
        return rng.choice((b"", b"\n", b" ", b"\xef\xbb\xbf" + payload, b"\n" + payload)), "before"
    if luck < 0.75:
        other = rng.randrange(len(SOURCES))
        stranger = renderer.rows(form, other, 0, 1)
        return (payload, "whole") if stranger is None else (stranger, f"of {SOURCES[other].type}")
    return edited_bytes(rng, form, payload), "edited"


def swapped_value(rng: Random, form: str, payload: bytes) -> bytes:
    """A value of the text replaced by something else that somebody may write."""
    value = rng.choice(ANYTHING)
    if rng.random() < 0.3:
        value = json.dumps(value)
    elif rng.random() < 0.2:
        value = '"' + value.replace('"', '""') + '"'
    for separator in rng.sample((b",", b"\t", b":", b"\n", b"[", b"="), 6):
        parts = payload.split(separator)
        if len(parts) > 1:
            at = rng.randrange(1, len(parts))
            parts[at] = encoded(value) + rng.choice((b"", b"\n", parts[at][-2:]))
            return separator.join(parts)
    return payload


def edited_bytes(rng: Random, form: str, payload: bytes) -> bytes:
    edited = bytearray(payload)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(edited) + 1)
        if form in TEXT_LIKE:
            fresh = encoded(rng.choice("0123456789-+.eE:,TZ \t\n\r\\/'\"[]{}()nulNtfx_\0é;#N"))
        else:
            fresh = bytes([rng.choice((0, 1, 2, 127, 128, 255, rng.randrange(256)))])
        kept = at + rng.randint(0, 1)
        edited[at:kept] = rng.choice((b"", fresh, bytes(edited[at : at + 3]) * 2))
    return bytes(edited)
