"""Rows that leave columns out, name others, or come with a list of columns: defaults are ClickHouse's own."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import pytest

from differential.budget import SEED, generator, scaled
from differential.duel import Duel, Outcome
from differential.kind import Kind
from differential.language import Language
from differential.payloads import (
    ROWS_PER_CASE, Case, damaged, encoded, json_row, laid_out, placed, some_settings, sql_row, statement,
)  # fmt: skip
from differential.composites import Array, LowCardinality, Map, Nullable, Tuple
from differential.scalars import Bool, Decimal, Enumeration, FixedString, Float, Integer, String, Uuid
from differential.times import Date, DateTime
from harness.endpoint import Endpoint
from harness.gateway import Gateway

CASES = 40
GATHERED_AT_LEAST = 0.9


@dataclass(frozen=True)
class Column:
    name: str
    kind: Kind
    # What follows the type: DEFAULT, MATERIALIZED, ALIAS, EPHEMERAL with its expression.
    clause: str = ""

    def definition(self) -> str:
        return f"`{self.name}` {self.kind.name} {self.clause}"

    def is_stored_as_given(self) -> bool:
        return not self.clause or self.clause.startswith("DEFAULT")


@dataclass(frozen=True)
class Table:
    name: str
    columns: tuple[Column, ...]
    # Whether rows of plain values are expected to be accepted and gathered.
    everyday: bool = True

    def definition(self) -> str:
        return ", ".join(["n UInt32", *(column.definition() for column in self.columns)])

    def hashes(self) -> str:
        stored = [column.name for column in self.columns if not column.clause.startswith(("ALIAS", "EPHEMERAL"))]
        return ", ".join(f"sipHash64(`{name}`), `{name}`" for name in stored)


INT, TEXT, LIST = Integer(32, True), String(), Array(String())
TABLES = (
    Table("without_defaults", (
        Column("i", INT), Column("f", Float(64)), Column("s", TEXT), Column("fs", FixedString(3)),
        Column("d", Date("Date", 1970, 2149)),
        Column("t", DateTime("UTC")), Column("t64", DateTime("UTC", 6)), Column("dec", Decimal(18, 4)),
        Column("u", Uuid()), Column("b", Bool()),
        Column("e", Enumeration("Enum8", {"x": 3, "y": -2})), Column("nu", Nullable(INT)),
        Column("lc", LowCardinality(Nullable(TEXT))),
        Column("a", LIST), Column("m", Map(TEXT, INT)), Column("tu", Tuple(INT, Nullable(TEXT), names=("p", "q"))),
    )),
    Table("constant_defaults", (
        Column("i", INT, "DEFAULT 7"), Column("s", TEXT, "DEFAULT 'text'"), Column("nu", Nullable(INT), "DEFAULT 5"),
        Column("b", Bool(), "DEFAULT true"),
        Column("lc", LowCardinality(TEXT), "DEFAULT 'low'"), Column("a", LIST, "DEFAULT ['d']"),
        Column("e", Enumeration("Enum8", {"x": 3, "y": 4}), "DEFAULT 'y'"),
        Column("d", Date("Date", 1970, 2149), "DEFAULT '2020-02-03'"), Column("z", INT),
    )),
    Table("depending_defaults", (
        Column("a", INT), Column("b", TEXT, "DEFAULT concat('a is ', toString(a))"),
        Column("c", Integer(64, True), "DEFAULT a * 2 + length(b)"),
        Column("d", Nullable(TEXT), "DEFAULT if(a > 0, b, NULL)"),
        Column("h", Integer(64, False), "DEFAULT cityHash64(b, c)"),
        Column("early", INT, "DEFAULT late + 1"), Column("late", INT),
    )),
    Table("computed_columns", (
        Column("a", INT), Column("doubled", Integer(64, True), "MATERIALIZED a * 2"),
        Column("as_text", TEXT, "ALIAS toString(a)"),
        Column("raw", TEXT, "EPHEMERAL 'none'"), Column("hex", TEXT, "DEFAULT concat(raw, '!')"),
        Column("only_raw", TEXT, "EPHEMERAL"),
    )),
    Table("odd_names", (
        Column("select", INT), Column("Case", TEXT), Column("case", TEXT), Column("with space", INT, "DEFAULT 3"),
        Column("dot.ted", LIST),
        Column("ünï", TEXT), Column("it's", INT), Column("1", INT),
    )),
    # Keys with escapes, and arrays that have to be of one length, are left to ClickHouse.
    Table("names_left_to_clickhouse", (
        Column("nested.one", LIST), Column("nested.two", Array(INT)), Column('quo"te', INT),
        Column("back\\\\slash", INT), Column("tab\\t", INT),
    ), everyday=False),
)  # fmt: skip


def column_list(rng: Random, table: Table, strange: bool) -> tuple[str, list[Column]]:
    """The list in the statement, and the columns that it means."""
    given = [column for column in table.columns if column.is_stored_as_given()]
    luck = rng.random()
    if luck < 0.5:
        return "", given
    candidates = list(table.columns) if strange else given
    chosen = rng.sample(candidates, rng.randint(1, len(candidates)))
    if luck < 0.9 or not strange:
        return "(n, " + ", ".join(f"`{column.name}`" for column in chosen) + ")", chosen
    lists = ("(*)", "(* EXCEPT(n))", f"(n, n, `{chosen[0].name}`)", "(n, missing)", f"(n, {chosen[0].name})", "()",
        f"(n, `{chosen[0].name.upper()}`)")
    return rng.choice(lists), chosen


def key_of(name: str) -> str:
    """A name inside of backquotes as a key: both escape backslashes alike."""
    return name.replace('"', '\\"')


def odd_member(rng: Random, table: Table) -> tuple[str, str]:
    column = rng.choice(table.columns)
    names = (column.name, column.name.upper(), column.name.lower(), f" {column.name}", "missing", "n", "", "tu.p",
        "dot")
    return key_of(rng.choice(names)), rng.choice(("null", "1", '"1"', "[]", '["a"]', "{}", '{"p":1}', "[[1,{}],null]",
        column.kind.odd(rng, Language.JSON)))


def row(rng: Random, language: Language, table: Table, number: int, given: list[Column], left_out: float,
    odd: float) -> str:
    def value(column: Column) -> str:
        if rng.random() < odd:
            return rng.choice(("null" if language is Language.JSON else "NULL", column.kind.odd(rng, language)))
        return column.kind.plain(rng, language)

    if language is Language.SQL:
        values = ["DEFAULT" if rng.random() < left_out else value(column) for column in given]
        return sql_row(rng, [str(number), *values])
    kept = [column for column in given if rng.random() >= left_out]
    members = [("n", str(number)), *((key_of(column.name), value(column)) for column in kept)]
    if rng.random() < odd:
        members.insert(rng.randint(0, len(members)), odd_member(rng, table))
    return json_row(rng, members)


def uniform_case(rng: Random, language: Language, table: Table, number: int) -> Case:
    """Everyday: all rows of an insert leave out the same columns."""
    columns, given = column_list(rng, table, strange=False)
    kept = [column for column in given if rng.random() < 0.7]
    first = number * ROWS_PER_CASE
    if language is Language.SQL:
        columns, kept = "(n, " + ", ".join(f"`{column.name}`" for column in kept) + ")" if kept else "(n)", kept
    rows = [row(rng, language, table, first + index, kept, 0, 0) for index in range(rng.choice((1, 1, 3)))]
    query, _ = statement(language, rng, {}, columns)
    return placed(rng, Case(number, query, encoded(laid_out(rng, language, rows))), torn=False)


def mixed_case(rng: Random, language: Language, table: Table, number: int) -> Case:
    """Each row leaves out columns of its own; values, keys, lists of columns and the text around them may be odd."""
    columns, given = column_list(rng, table, strange=rng.random() < 0.5)
    first = number * ROWS_PER_CASE
    left_out, odd = rng.choice((0, 0.2, 0.6)), rng.choice((0, 0, 0.1, 0.3))
    rows = [row(rng, language, table, first + index, given, left_out, odd) for index in range(rng.choice((1, 2, 4)))]
    text = laid_out(rng, language, rows)
    text = damaged(rng, text) if rng.random() < 0.1 else text
    query, in_url = statement(language, rng, some_settings(rng) if rng.random() < 0.25 else {}, columns,
        rng.random() < 0.2)
    return placed(rng, Case(number, query, encoded(text), in_url), torn=True)


@pytest.mark.parametrize("language", Language, ids=lambda language: language.value)
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_rows(gateway: Gateway, tested: Endpoint, direct: Endpoint, table: Table, language: Language) -> None:
    rng = generator("rows", table.name, language.value)
    duel = Duel(gateway, tested, direct, table.definition(), table.hashes())
    uniform = [uniform_case(rng, language, table, number) for number in range(scaled(CASES))]
    mixed = [mixed_case(rng, language, table, len(uniform) + number) for number in range(scaled(2 * CASES))]
    everyday, strange = duel.fight(uniform), duel.fight(mixed)
    print(f"{table.name} {language.value}, seed {SEED}\n  uniform: {everyday}\n  mixed: {strange}")
    assert not everyday.differences, everyday.report()
    assert not strange.differences, strange.report()
    if table.everyday:
        assert everyday.accepted == everyday.cases, f"the generator made payloads that ClickHouse refuses: {everyday}"
        assert everyday.share() >= GATHERED_AT_LEAST, str(everyday)
