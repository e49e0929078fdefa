"""Parameters bound by the client and by the server, settings, sessions, external data, formats, time zones."""

from __future__ import annotations

import datetime
import decimal
import ipaddress
import uuid
from typing import Any
from zoneinfo import ZoneInfo

from compat.program import Run, program, program_for

UTC = datetime.timezone.utc
AT = datetime.datetime(2024, 7, 1, 12, 30, 45, 123456)

# Bound into the text: what the query shows of the value.
CLIENT_SIDE: dict[str, Any] = {
    "int": 5,
    "negative": -5,
    "float": 1.5,
    "text": "it's \\ a \"test\" ✓",
    "none": None,
    "bool": True,
    "date": datetime.date(2024, 7, 1),
    "naive_time": AT,
    "aware_time": AT.replace(tzinfo=UTC),
    "zoned_time": AT.replace(tzinfo=ZoneInfo("Asia/Tokyo")),
    "list": [1, 2, 3],
    "texts": ["a", "it's"],
    "tuple": (1, "x"),
    "map": {"a": 1},
    "decimal": decimal.Decimal("1.25"),
    "uuid": uuid.UUID("61f0c404-5cb3-11e7-907b-a6006ad3dba0"),
    "address": ipaddress.IPv4Address("10.1.2.3"),
    "empty_list": [],
    "nested_list": [[1], [2, 3]],
    "large": 2**70,
}


@program_for(**CLIENT_SIDE)
async def bound_by_name(run: Run, value: Any) -> Any:
    return await run.client.query("SELECT %(v)s AS v, toTypeName(v) AS k", parameters={"v": value})


@program_for(**CLIENT_SIDE)
async def bound_by_place(run: Run, value: Any) -> Any:
    return await run.client.query("SELECT %s AS v, %s AS w", parameters=[value, 1])


SERVER_SIDE: dict[str, tuple[str, Any]] = {
    "int": ("Int32", -5),
    "uint64": ("UInt64", 2**64 - 1),
    "float": ("Float64", 1.5),
    "text": ("String", "it's \\ a\ttest\n✓"),
    "none": ("Nullable(String)", None),
    "bool": ("Bool", True),
    "date": ("Date", datetime.date(2024, 7, 1)),
    "time": ("DateTime", AT),
    "aware_time": ("DateTime('UTC')", AT.replace(tzinfo=ZoneInfo("Asia/Tokyo"))),
    "texts": ("Array(String)", ["a", "it's", "b,c"]),
    "ints": ("Array(UInt8)", [1, 2]),
    "nullable_ints": ("Array(Nullable(Int8))", [1, None]),
    "tuple": ("Tuple(UInt8, String)", (1, "x")),
    "uuid": ("UUID", uuid.UUID("61f0c404-5cb3-11e7-907b-a6006ad3dba0")),
    "decimal": ("Decimal(9, 2)", decimal.Decimal("1.25")),
    "address": ("IPv6", ipaddress.IPv6Address("::1")),
    "dates": ("Array(Date)", [datetime.date(2024, 7, 1)]),
    "enum": ("Enum8('a' = 1)", "a"),
}


@program_for(**SERVER_SIDE)
async def bound_by_the_server(run: Run, case: tuple[str, Any]) -> Any:
    kind, value = case
    return await run.client.query(f"SELECT {{v:{kind}}} AS v, toTypeName(v) AS k", parameters={"v": value})


@program
async def a_precise_time(run: Run) -> Any:
    precise = run.module("driver.binding").DT64Param(AT)
    by_server = await run.client.query("SELECT {v:DateTime64(6)} AS v", parameters={"v": precise})
    by_client = await run.client.query("SELECT %(v)s AS v", parameters={"v": precise})
    by_suffix = await run.client.query("SELECT {v:DateTime64(6)} AS v", parameters={"v_64": AT})
    return by_server, by_client, by_suffix


@program
async def a_map_for_the_server(run: Run) -> Any:
    common = run.module("common")
    query = "SELECT {v:Map(String, UInt8)} AS v"
    as_document = await run.raises(run.client.query(query, parameters={"v": {"a": 1, "b": 2}}))
    common.set_setting("dict_parameter_format", "map")
    try:
        return type(as_document).__name__, await run.client.query(query, parameters={"v": {"a": 1, "b": 2}})
    finally:
        common.set_setting("dict_parameter_format", "json")


@program
async def identifiers(run: Run) -> Any:
    await run.table("a UInt8, `b c` String")
    named = await run.client.query("SELECT {c:Identifier} FROM {t:Identifier}", parameters={"c": "b c", "t": "t"})
    binding = run.module("driver.binding")
    return named, binding.quote_identifier("a`b"), binding.quote_identifier("plain"), binding.quote_identifier("`quoted`")


@program
async def finalized_queries(run: Run) -> Any:
    binding = run.module("driver.binding")
    return (
        binding.finalize_query("SELECT %(a)s, %(b)s", {"a": "x'y", "b": [1, "z"]}),
        binding.finalize_query("SELECT %s, %s", (1.5, None)),
        binding.bind_query("SELECT {a:Int32} FROM {b:Identifier}", {"a": 5, "b": "t"}),
        binding.format_query_value({"a": [1, 2]}),
    )


@program
async def parameters_in_a_where(run: Run) -> Any:
    query = "SELECT number FROM numbers(100) WHERE number IN %(several)s AND number BETWEEN %(low)s AND %(high)s ORDER BY number"
    return await run.client.query(query, parameters={"several": (1, 5, 50, 99), "low": 2, "high": 60})


@program
async def a_percent_sign(run: Run) -> Any:
    plain = await run.client.query("SELECT 'x' LIKE '%x%' AS a, 7 % 4 AS b")
    with_parameters = await run.client.query("SELECT 'x' LIKE '%%x%%' AS a, %(v)s AS b", parameters={"v": 1})
    return plain, with_parameters


@program
async def a_missing_parameter(run: Run) -> Any:
    by_server = await run.raises(run.client.query("SELECT {v:Int32}", parameters={"w": 1}))
    return type(by_server).__name__, by_server.code, type(await run.raises(run.client.query("SELECT %(v)s", parameters={"w": 1}))).__name__


@program
async def parameters_of_a_command(run: Run) -> Any:
    return await run.client.command("SELECT %(a)s", parameters={"a": 7}), await run.client.command("SELECT {a:String}", parameters={"a": "x"})


@program
async def parameters_in_a_form(run: Run) -> Any:
    client = await run.connect(form_encode_query_params=True)
    return await client.query("SELECT {v:String} AS v, {w:Array(UInt32)} AS w", parameters={"v": "x" * 1000, "w": list(range(500))})


@program
async def settings_of_a_query(run: Run) -> Any:
    query = "SELECT getSetting('max_threads') AS a, getSetting('max_block_size') AS b"
    client = await run.connect(settings={"max_threads": 3})
    return await client.query(query, settings={"max_block_size": 1234}), client.get_client_setting("max_threads")


@program
async def settings_of_a_client(run: Run) -> Any:
    run.client.set_client_setting("max_threads", 2)
    run.client.set_client_setting("allow_experimental_analyzer", True)
    answer = await run.client.query("SELECT getSetting('max_threads') AS a")
    return answer, run.client.get_client_setting("max_threads"), run.client.get_client_setting("no_such"), run.client.get_client_setting(
        "allow_experimental_analyzer"
    )


@program
async def an_unknown_setting(run: Run) -> Any:
    by_query = await run.raises(run.client.query("SELECT 1", settings={"no_such_setting": 5}))
    by_connect = await run.raises(run.connect(settings={"no_such_setting": 5}))
    return by_query, by_connect


@program
async def an_unknown_setting_dropped(run: Run) -> Any:
    common = run.module("common")
    common.set_setting("invalid_setting_action", "drop")
    try:
        return await run.client.query("SELECT 1 AS a", settings={"no_such_setting": 5})
    finally:
        common.set_setting("invalid_setting_action", "error")


@program
async def common_settings(run: Run) -> Any:
    common = run.module("common")
    names = ("autogenerate_session_id", "autogenerate_query_id", "invalid_setting_action", "dict_parameter_format", "max_error_size")
    try:
        common.get_setting("no_such")
    except Exception as error:
        return error, [common.get_setting(name) for name in names]
    return "no error"


@program
async def a_session(run: Run) -> Any:
    client = await run.connect(session_id=f"session_of_{run.folder.name}")
    await client.command("CREATE TEMPORARY TABLE mine (a UInt8)")
    await client.insert("mine", [[1], [2]], column_type_names=["UInt8"], column_names=["a"])
    await client.command("SET max_threads = 1")
    return await client.query("SELECT sum(a) AS s, getSetting('max_threads') AS m FROM mine")


@program
async def sessions_by_themselves(run: Run) -> Any:
    own = await run.connect(autogenerate_session_id=True)
    await own.command("CREATE TEMPORARY TABLE mine (a UInt8)")
    none = await run.connect(autogenerate_session_id=False)
    error = await run.raises(none.query("SELECT * FROM mine"))
    return await own.query("SELECT count() AS c FROM mine"), type(error).__name__, error.code


@program
async def external_data(run: Run) -> Any:
    external = run.module("driver.external").ExternalData(
        file_name="people.csv", fmt="CSV", structure=["name String", "age UInt8"], data=b"Ann,30\nBob,40\n"
    )
    external.add_file(file_name="ids.tsv", fmt="TSV", types=["UInt8"], data=b"1\n2\n")
    query = "SELECT name, age, (SELECT sum(_1) FROM ids) AS s FROM people ORDER BY name"
    rows = await run.client.query(query, external_data=external)
    frame = await run.client.query_df(query, external_data=external)
    arrow = await run.client.query_arrow(query, external_data=external)
    raw = await run.client.raw_query(query, fmt="CSV", external_data=external)
    return rows, frame, arrow, raw, await run.client.command("SELECT count() FROM people", external_data=external)


@program
async def external_data_and_parameters(run: Run) -> Any:
    (run.folder / "people.csv").write_text("Ann,30\nBob,40\n")
    external = run.module("driver.external").ExternalData(
        file_path=str(run.folder / "people.csv"), fmt="CSV", structure="name String, age UInt8"
    )
    query = "SELECT name FROM people WHERE age > {age:UInt8}"
    client = await run.connect(form_encode_query_params=True)
    return [await each.query(query, parameters={"age": 35}, external_data=external) for each in (run.client, client)]


@program
async def bad_external_data(run: Run) -> Any:
    make = run.module("driver.external").ExternalData
    found = []
    for arguments in ({"data": b""}, {"file_path": "/no/such/file"}, {"data": b"x", "file_name": "a", "types": "x", "structure": "y"}):
        try:
            make(**arguments)
        except Exception as error:
            found.append(error)
    return found


@program
async def query_formats(run: Run) -> Any:
    query = (
        "SELECT toIPv4('1.2.3.4') AS i, toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0') AS u, toDate('2024-07-01') AS d, "
        "toDateTime('2024-07-01 12:00:00', 'UTC') AS t, toFixedString('ab', 3) AS f, 'x' AS s, toUInt64(5) AS n, "
        "CAST('a', 'Enum8(\\'a\\' = 1)') AS e, toDecimal32(1.5, 2) AS p, [toIPv4('1.2.3.4')] AS l"
    )
    formats = {"IP*": "string", "UUID": "string", "Date*": "int", "FixedString": "string", "UInt64": "signed", "Enum*": "int"}
    found = [await run.client.query(query, query_formats={name: kind}) for name, kind in formats.items()]
    return found, await run.client.query(query, query_formats=formats), await run.client.query(query, query_formats={"String": "bytes"})


@program
async def column_formats(run: Run) -> Any:
    query = "SELECT toIPv4('1.2.3.4') AS a, toIPv4('1.2.3.4') AS b, map('k', toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0')) AS c, (toDate('2024-01-01'), 'x') AS d"
    return await run.client.query(query, column_formats={"b": "string", "c": {"UUID": "string"}, "d": {"Date": "int"}})


@program
async def an_unknown_format(run: Run) -> Any:
    return await run.raises(run.client.query("SELECT 1", query_formats={"UUID": "wrong"})), await run.raises(
        run.client.query("SELECT 1", query_formats={"NoType": "string"})
    )


@program
async def default_formats(run: Run) -> Any:
    formats = run.module("datatypes.format")
    query = "SELECT toIPv4('1.2.3.4') AS i, toFixedString('ab', 2) AS f, toUInt64(1) AS n"
    try:
        formats.set_default_formats("IPv*", "string", "FixedString", "string")
        formats.set_read_format("UInt64", "signed")
        first = await run.client.query(query)
        formats.clear_default_format("IPv*")
        return first, await run.client.query(query)
    finally:
        formats.clear_all_formats()


@program
async def write_formats(run: Run) -> Any:
    formats = run.module("datatypes.format")
    await run.table("i IPv4, d Date")
    try:
        formats.set_write_format("IPv4", "string")
        await run.client.insert("t", [["1.2.3.4", datetime.date(2024, 1, 1)]])
        formats.set_write_format("Date", "int")
        await run.client.insert("t", [["1.2.3.5", 5]])
    finally:
        formats.clear_all_formats()
    return await run.stored()


@program
async def no_none(run: Run) -> Any:
    query = (
        "SELECT CAST(NULL, 'Nullable(Int32)') a, CAST(NULL, 'Nullable(String)') b, CAST(NULL, 'Nullable(Float64)') c, CAST(NULL, 'Nullable(Date)') d, "
        "CAST(NULL, 'Nullable(UUID)') e, CAST(NULL, 'Nullable(DateTime(\\'UTC\\'))') f, CAST(NULL, 'Nullable(Bool)') g"
    )
    return await run.client.query(query, use_none=False), await run.client.query(query)


@program
async def encodings(run: Run) -> Any:
    query = "SELECT unhex('e4f6fc') AS a, 'x' AS b"
    return await run.client.query(query, encoding="latin-1"), await run.client.query(query)


TIMES = (
    "SELECT toDateTime('2024-07-01 12:00:00') AS plain, toDateTime('2024-07-01 12:00:00', 'UTC') AS utc, "
    "toDateTime('2024-07-01 12:00:00', 'Asia/Tokyo') AS tokyo, toDateTime64('2024-01-01 00:00:00.5', 3, 'America/New_York') AS ny, "
    "toDateTime64('2024-01-01 00:00:00.5', 6) AS plain64, toDateTime('2024-11-03 05:30:00', 'America/New_York') AS fold"
)
ZONES: dict[str, dict[str, Any]] = {
    "default": {},
    "query_tz": {"query_tz": "Europe/Berlin"},
    "query_tz_object": {"query_tz": ZoneInfo("Europe/Berlin")},
    "query_tz_utc": {"query_tz": "UTC"},
    "column_tzs": {"column_tzs": {"plain": "Asia/Kolkata", "tokyo": "Europe/Berlin", "utc": "UTC"}},
    "both": {"query_tz": "Europe/Berlin", "column_tzs": {"plain": "Asia/Kolkata"}},
    "aware": {"tz_mode": "aware"},
    "schema": {"tz_mode": "schema"},
    "schema_with_query_tz": {"tz_mode": "schema", "column_tzs": {"plain": "Europe/Berlin"}},
}


@program_for(**ZONES)
async def zones(run: Run, arguments: dict[str, Any]) -> Any:
    return await run.client.query(TIMES, **arguments)


@program_for(**ZONES)
async def zones_in_frames(run: Run, arguments: dict[str, Any]) -> Any:
    return await run.client.query_df(TIMES, **arguments)


@program_for(
    server={"tz_source": "server"},
    local={"tz_source": "local"},
    auto={"tz_source": "auto"},
    aware={"tz_mode": "aware"},
    schema={"tz_mode": "schema"},
)
async def zones_of_a_client(run: Run, arguments: dict[str, Any]) -> Any:
    client = await run.connect(**arguments)
    return await client.query(TIMES), await client.query(TIMES, settings={"session_timezone": "Asia/Tokyo"}), await client.query_arrow(TIMES)


@program
async def a_session_zone(run: Run) -> Any:
    client = await run.connect(settings={"session_timezone": "Asia/Tokyo"})
    return await client.query(TIMES), await client.query("SELECT toDateTime(0) AS a", settings={"session_timezone": "Europe/Berlin"})


@program
async def wrong_zones(run: Run) -> Any:
    doing = (run.client.query(TIMES, query_tz="No/Where"), run.client.query(TIMES, column_tzs={"plain": "No/Where"}))
    found = [await run.raises(each) for each in doing]
    return [(type(error).__name__, "No/Where" in str(error)) for error in found], [
        await run.raises(run.client.query(TIMES, tz_mode="wrong")),
        await run.raises(run.connect(tz_source="wrong")),
        await run.raises(run.connect(tz_mode="wrong")),
    ]
