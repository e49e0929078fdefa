"""Rows in the layouts that the formats allow, and in some that they don't."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from differential.kind import ALPHABET, Kind, edited
from differential.language import Language

# A case's rows are numbered from its own number times this: a stored row tells which case it came from.
ROWS_PER_CASE = 16
MOST_SHOWN_BYTES = 2000
# Sample of what clients set; each is sent with odd payloads of every type.
SETTINGS = (
    ("date_time_input_format", ("basic", "best_effort", "best_effort_us")),
    ("date_time_overflow_behavior", ("throw", "saturate", "ignore")),
    ("session_timezone", ("Asia/Tokyo", "America/Sao_Paulo", "UTC")),
    ("precise_float_parsing", ("0", "1")),
    ("input_format_null_as_default", ("0", "1")),
    ("input_format_skip_unknown_fields", ("0", "1")),
    ("input_format_defaults_for_omitted_fields", ("0", "1")),
    ("input_format_force_null_for_omitted_fields", ("1",)),
    ("input_format_json_read_numbers_as_strings", ("0",)),
    ("input_format_json_read_bools_as_numbers", ("0",)),
    ("input_format_json_read_bools_as_strings", ("0",)),
    ("input_format_json_read_arrays_as_strings", ("0",)),
    ("input_format_json_read_objects_as_strings", ("0",)),
    ("input_format_json_named_tuples_as_objects", ("0",)),
    ("input_format_json_defaults_for_missing_elements_in_named_tuple", ("0",)),
    ("input_format_json_ignore_unknown_keys_in_named_tuple", ("0",)),
    ("input_format_json_ignore_unnecessary_fields", ("0", "1")),
    ("input_format_json_map_as_array_of_tuples", ("1",)),
    ("input_format_json_empty_as_default", ("1",)),
    ("input_format_json_throw_on_bad_escape_sequence", ("0",)),
    ("input_format_json_max_depth", ("2",)),
    ("input_format_import_nested_json", ("1",)),
    ("input_format_column_name_matching_mode", ("match_case", "ignore_case", "auto")),
    ("input_format_values_interpret_expressions", ("0", "1")),
    ("input_format_values_deduce_templates_of_expressions", ("0", "1")),
    ("input_format_values_accurate_types_of_literals", ("0",)),
    ("input_format_ipv4_default_on_conversion_error", ("1",)),
    ("input_format_ipv6_default_on_conversion_error", ("1",)),
    ("input_format_allow_errors_num", ("1",)),
    ("input_format_allow_errors_ratio", ("0.5",)),
    ("input_format_parallel_parsing", ("0", "1")),
    ("cast_string_to_date_time_mode", ("best_effort",)),
    ("bool_true_representation", ("yes",)),
    ("insert_null_as_default", ("0",)),
)


@dataclass(frozen=True)
class Case:
    """`query` names the table `{table}` and ends before the rows."""

    number: int
    query: str
    rows: bytes
    settings: dict[str, str] = field(default_factory=dict)
    # How many bytes of the rows stand with the query in the URL; None puts the query into the body as well.
    rows_in_url: int | None = 0

    def __str__(self) -> str:
        place = "all in the body" if self.rows_in_url is None else f"{self.rows_in_url} bytes of the rows in the URL"
        return f"case {self.number}: {self.query!r} {self.rows[:MOST_SHOWN_BYTES]!r} ({place}) {self.settings or ''}"


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def json_row(rng: Random, members: list[tuple[str, str]]) -> str:
    if rng.random() < 0.2:
        rng.shuffle(members)
    colon, comma = rng.choice(((":", ","), (":", ","), (": ", ", "), (" :\n", " ,\t")))
    return "{" + comma.join(f'"{name}"{colon}{value}' for name, value in members) + "}"


def sql_row(rng: Random, values: list[str]) -> str:
    comma = rng.choice((",", ",", ", ", " ,\n"))
    return "(" + comma.join(values) + ")"


def laid_out(rng: Random, language: Language, rows: list[str]) -> str:
    """The rows with something between them that both formats' users write."""
    if language is Language.SQL:
        return rng.choice((",", ", ", ",\n", " ")).join(rows) + rng.choice(("", "", "\n", ";"))
    if rng.random() < 0.25:
        return rng.choice(("[", " [\n")) + rng.choice((",", ", ", ",\n")).join(rows) + rng.choice(("]", "]\n", "\n]"))
    return rng.choice(("\n", "\n", "", ",", ", ", " \r\n", ",\n")).join(rows) + rng.choice(("", "\n"))


def damaged(rng: Random, text: str) -> str:
    """Cut off, changed here and there, or with something before or behind."""
    way = rng.randrange(5)
    if way <= 1 and text:
        return text[: rng.randrange(len(text))]
    if way == 2:
        return text[rng.randint(0, min(3, len(text))) :]
    if way == 3:
        return text + rng.choice((",", ";", "}", "]", ")", "(", "{", "[", "x", " \0", ";;", "; x", "\n\n", "-- c",
            "/* c */", "{}", "()", ALPHABET))
    return edited(rng, text, 3)


def some_settings(rng: Random) -> dict[str, str]:
    chosen = rng.sample(SETTINGS, 1 if rng.random() < 0.8 else 2)
    return {name: rng.choice(values) for name, values in chosen}


def placed(rng: Random, case: Case, torn: bool) -> Case:
    """Rows stand behind the query or apart from it; torn ones begin in one place and end in the other.

    ClickHouse puts a line feed between the two, so a tear within a value changes it.
    """
    luck = rng.random()
    if luck < 0.55:
        return case
    if luck < 0.8:
        return Case(case.number, case.query, case.rows, case.settings, None)
    in_url = len(case.rows) if luck < 0.9 or not torn else rng.randint(0, len(case.rows))
    return Case(case.number, case.query, case.rows, case.settings, in_url)


INTO = ("INSERT INTO {table}", "insert into {table}", "INSERT INTO TABLE {table}", "INSERT INTO `{table}`",
    "/* c */ INSERT INTO\n{table} -- c\n", "INSERT {table}")
FORMATS = {
    Language.JSON: ("FORMAT JSONEachRow", "format JSONEachRow", "FORMAT JSONLines", "FORMAT NDJSON",
    "FORMAT jsoneachrow", "FORMAT JSONEachRow\n\n", "FORMAT JSONEachRow;"),
    Language.SQL: ("VALUES", "values", "FORMAT Values", "FORMAT VALUES", "VALUES -- c\n", "VALUES /* c */", "VALUES\n"),
}  # fmt: skip


def statement(
    language: Language, rng: Random, settings: dict[str, str], columns: str = "", odd: bool = False
) -> tuple[str, dict[str, str]]:
    """The query up to the rows, and those settings that go into the URL."""
    clause = ""
    if settings and rng.random() < 0.3:
        clause = " SETTINGS " + ", ".join(f"{name} = {Language.SQL.quoted(value)}" for name, value in settings.items())
        settings = {}
    into, form = (rng.choice(INTO), rng.choice(FORMATS[language])) if odd else (INTO[0], FORMATS[language][0])
    return f"{into}{columns}{clause} {form} ", settings


def typed_row(rng: Random, language: Language, number: int, value: str) -> str:
    if language is Language.JSON:
        return json_row(rng, [("n", str(number)), ("v", value)])
    return sql_row(rng, [str(number), value])


def plain_case(rng: Random, language: Language, kind: Kind, number: int) -> Case:
    first = number * ROWS_PER_CASE
    count = rng.choice((1, 1, 2, 5))
    rows = [typed_row(rng, language, first + index, kind.plain(rng, language)) for index in range(count)]
    query, _ = statement(language, rng, {})
    return placed(rng, Case(number, query, encoded(laid_out(rng, language, rows))), torn=False)


def odd_row(rng: Random, language: Language, kind: Kind, number: int) -> str:
    """A row that is odd in its value, mostly, or in its shape."""
    if rng.random() < 0.8:
        return typed_row(rng, language, number, kind.odd(rng, language))
    value = kind.plain(rng, language)
    if language is Language.SQL:
        return rng.choice((f"({number})", f"({number},)", f"({number},{value},{value})", f"({number} {value})",
            f"({number},{value},)", f"({number},DEFAULT)"))
    odd_key = rng.choice(("V", "v ", "", "v.x", "vv", "\\u0076", "unknown", "n", "v"))
    other = rng.choice((value, "null", "[1,{}]", '{"a":[]}', '"x"', "1e5", "tru", "{", "nan"))
    return rng.choice((
        f'{{"n":{number}}}', f'{{"n":{number},"v":null}}', f'{{"n":{number},"v":{value},"{odd_key}":{other}}}',
        f'{{"n":{number},"{odd_key}":{other}}}',
        f'{{"n":{number},"{odd_key}":{other},"v":{value}}}', f'{{"n":{number},"v":{value},}}',
        f"{{n:{number},v:{value}}}", f"[{number},{value}]",
        f"{{'n':{number},'v':{value}}}", f'{{"n":{number} "v":{value}}}', f'{{"n"={number},"v":{value}}}',
        f'{{,"n":{number},"v":{value}}}',
    ))  # fmt: skip


def odd_case(rng: Random, language: Language, kind: Kind, number: int) -> Case:
    first = number * ROWS_PER_CASE
    count = rng.choice((1, 1, 1, 3))
    odd_index = rng.randrange(count)
    rows = [typed_row(rng, language, first + index, kind.plain(rng, language)) for index in range(count)]
    rows[odd_index] = odd_row(rng, language, kind, first + odd_index)
    text = laid_out(rng, language, rows)
    if rng.random() < 0.15:
        text = damaged(rng, text)
    settings = some_settings(rng) if rng.random() < 0.3 else {}
    query, in_url = statement(language, rng, settings, odd=rng.random() < 0.2)
    return placed(rng, Case(number, query, encoded(text), in_url), torn=True)
