"""How the benchmarks make text of figures: medians, tables, the page, charts."""

from __future__ import annotations

import random

import pytest

from bench.base import svg
from bench.base.document import METHOD, REGIONS, compose, wrapped
from bench.base.figures import Goals, Rows, figure, median, paired_ratio, table
from bench.base.machine import PATIENCE_SECONDS, await_quiet


def test_medians():
    assert [median([]), median([3, 1, 2]), median([4, 1, 2, 3])] == [0, 2, 2.5]


def test_a_slow_spell_does_not_touch_paired_ratios():
    assert paired_ratio([50, 5, 40], [100, 10, 80]) == 0.5
    assert (paired_ratio([1], [0]), paired_ratio([1, 2], [])) == (0, 0)


def test_figures_keep_three_digits_or_all_that_are_whole():
    values = [1_234_567.4, 999.6, 123.4, 12.34, 1.234, 0.0123, 0.0, -1234.0, None]
    assert [figure(value) for value in values] == ["1,234,567", "1000", "123", "12.3", "1.23", "0.012", "0.00", "-1,234", "–"]


def test_columns_line_up_and_figures_stand_on_the_right():
    assert table(["way", "requests/s"], [["direct", "240"], ["é", "1,200"]]).splitlines() == [
        "| way    | requests/s |",
        "|--------|-----------:|",
        "| direct |        240 |",
        "| é      |      1,200 |",
    ]


def test_a_goal_about_what_was_not_measured_is_left_out():
    goals = Goals()
    goals.at_least("a", 1, Rows([{"x": 2}]).where(x=3).median("x"))
    assert str(goals) == ""
    goals.at_least("b", 1000, 999)
    goals.at_least("d", 4e6, 5e6)
    goals.at_most("c", 2, 2)
    assert [line.split("|")[1:4] for line in str(goals).splitlines()[2:]] == [
        [" b: at least 1,000     ", "       999 ", " **no** "],
        [" d: at least 4,000,000 ", " 5,000,000 ", " yes    "],
        [" c: at most 2          ", "      2.00 ", " yes    "],
    ]


def test_prose_is_wrapped_and_nothing_else():
    long = "word " * 60
    kept = f"| {long}|\n```\n{long}\n```"
    page = wrapped(f"- {long}\n\n{kept}")
    words = page.partition("\n\n")[0].splitlines()
    assert all(len(line) <= 110 for line in words) and words[1].startswith("  word")
    assert page.endswith(f"\n\n{kept}")


def test_a_section_replaces_its_own_region_only_and_keeps_the_order_of_the_page():
    both = compose(compose("", "article", "old article"), "inserts", "inserts one")
    again = compose(both, "article", "new article")
    assert again.startswith(METHOD) and REGIONS.index("inserts") < REGIONS.index("article")
    assert again.index("inserts one") < again.index("new article") and "old article" not in again
    assert compose(again, "article", "new article") == again


def test_nothing_is_published_from_a_machine_that_stays_busy():
    loads, waited = iter([9.0, 5.0, 1.9]), list[float]()
    await_quiet(lambda: next(loads), waited.append)
    assert len(waited) == 2
    with pytest.raises(SystemExit):
        await_quiet(lambda: 2.1, waited.append)
    assert sum(waited) >= PATIENCE_SECONDS


@pytest.mark.parametrize(("most", "step"), [(0, 1), (5, 1), (7, 2), (0.3, 0.1), (99, 20), (100, 20), (30_000, 10_000)])
def test_steps_are_round_and_cover_the_values(most: float, step: float):
    axis = svg.Axis.over([most], False, (0, 100))
    assert abs(axis.step - step) < 1e-9 and axis.ticks()[-1] >= most * 0.999_999


@pytest.mark.parametrize("is_logarithmic", [False, True])
def test_every_point_lies_on_its_axis(is_logarithmic: bool):
    chance = random.Random(9)
    values = [chance.random() * 10 ** chance.randrange(-2, 6) for _ in range(200)]
    axis = svg.Axis.over(values, is_logarithmic, (svg.BOTTOM, svg.TOP))
    assert all(svg.TOP - 0.01 <= axis.at(value) <= svg.BOTTOM + 0.01 for value in values), "seed 9"
    assert svg.Axis.over([274], True, (0, 1)).ticks() == [1, 10, 100, 1000]


@pytest.mark.parametrize("lasts", [[5, 5, 5, 300], [1, 1, 1, 1], [900, 999, 1, 999]])
def test_names_are_escaped_and_do_not_cover_each_other(lasts: list[float]):
    drawn = svg.chart("t", "s", "n", {f"a < b & {last}, {at}": [(0, 1), (1, last)] for at, last in enumerate(lasts)}, True)
    assert (drawn.count("a &lt; b &amp; "), drawn.count("<polyline")) == (4, 4)
    axis = svg.Axis.over(lasts, True, (svg.BOTTOM, svg.TOP))
    heights = sorted(svg.name_heights([axis.at(last) for last in lasts]))
    assert all(after - before >= svg.NAME_HEIGHT - 0.01 for before, after in zip(heights, heights[1:]))
    assert svg.TOP <= heights[0] and heights[-1] <= svg.BOTTOM + 0.01
