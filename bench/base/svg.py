"""A line chart as plain SVG: its title says what it shows, each line's name stands at its end, and it is readable on a light and
on a dark page."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from bench.base.figures import count

WIDTH, HEIGHT = 800, 360
# The lines end at RIGHT, where their names begin.
LEFT, RIGHT, TOP, BOTTOM = 56, 560, 56, 316
NAME_HEIGHT = 15
# Told apart also by those who see no red or no green.
COLOURS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#8c6d00")
STYLE = (
    "text{font:12px sans-serif;fill:#333}.title{font-size:16px;font-weight:bold}.grid{stroke:#ddd}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.grid{stroke:#444}}"
)
Point = tuple[float, float]


@dataclass
class Axis:
    """From 0 to a round number above the largest value; or from 1 to a power of ten, where 0 stands at 1."""

    end: float
    step: float
    is_logarithmic: bool
    pixels: tuple[float, float]

    @classmethod
    def over(cls, values: Iterable[float], is_logarithmic: bool, pixels: tuple[float, float]) -> "Axis":
        most = max(filter(math.isfinite, values), default=0.0)
        if is_logarithmic:
            return cls(10.0 ** math.ceil(math.log10(max(most, 10))), 10, True, pixels)
        step = round_step(most / 5)
        return cls(step * max(1, math.ceil(most / step)), step, False, pixels)

    def at(self, value: float) -> float:
        share = math.log10(max(value, 1)) / math.log10(self.end) if self.is_logarithmic else value / self.end
        return self.pixels[0] + (self.pixels[1] - self.pixels[0]) * share

    def ticks(self) -> list[float]:
        if self.is_logarithmic:
            return [10.0**power for power in range(round(math.log10(self.end)) + 1)]
        # Rounded, because 3 * 0.1 prints sixteen digits.
        return [round(number * self.step, 6) for number in range(round(self.end / self.step) + 1)]


def round_step(at_least: float) -> float:
    """The least of 1, 2, 5, 10, 20 … and 0.5, 0.2, 0.1 … that is not below."""
    if at_least <= 0:
        return 1
    power = 10.0 ** math.floor(math.log10(at_least))
    return next((digit * power for digit in (1, 2, 5) if digit * power >= at_least * 0.999_999), 10 * power)


def text(x: float, y: float, anchor: str, content: str, style: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {style}>{escape(content, quote=False)}</text>'


def chart(title: str, x_label: str, y_label: str, series: dict[str, list[Point]], is_logarithmic: bool) -> str:
    """All series on the same axes. The title is the conclusion, in figures."""
    points = [point for line in series.values() for point in line]
    x_axis = Axis.over((x for x, _ in points), False, (LEFT, RIGHT))
    y_axis = Axis.over((y for _, y in points), is_logarithmic, (BOTTOM, TOP))
    named = lambda tick: count(tick) if float(tick).is_integer() else f"{tick:g}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">',
        f"<style>{STYLE}</style>",
        text(LEFT, 22, "start", title, 'class="title"'),
        text(LEFT, 42, "start", y_label),
    ]
    for tick in y_axis.ticks():
        parts.append(f'<path class="grid" d="M{LEFT} {y_axis.at(tick):.1f}H{RIGHT}"/>')
        parts.append(text(LEFT - 6, y_axis.at(tick) + 4, "end", named(tick)))
    parts += [text(x_axis.at(tick), BOTTOM + 17, "middle", named(tick)) for tick in x_axis.ticks()]
    parts.append(text((LEFT + RIGHT) / 2, BOTTOM + 35, "middle", x_label))
    colours = [COLOURS[at % len(COLOURS)] for at in range(len(series))]
    for line, colour in zip(series.values(), colours):
        path = " ".join(f"{x_axis.at(x):.1f},{y_axis.at(y):.1f}" for x, y in line)
        drawn = f'fill="none" stroke="{colour}" stroke-width="2" stroke-linejoin="round"'
        parts.append(f'<polyline points="{path}" {drawn}/>')
    heights = name_heights([y_axis.at(line[-1][1]) if line else BOTTOM for line in series.values()])
    for name, colour, height in zip(series, colours, heights):
        parts.append(text(RIGHT + 8, height + 4, "start", name, f'style="fill:{colour}"'))
    return "\n".join([*parts, "</svg>\n"])


def name_heights(ends: list[float]) -> list[float]:
    """Each name beside the end of its line, moved as far as it takes to stand below the one above."""
    heights = [0.0] * len(ends)
    # So low that all that come below have room above the bottom.
    lowest: float = BOTTOM - NAME_HEIGHT * (len(ends) - 1)
    following: float = TOP
    for at in sorted(range(len(ends)), key=lambda at: ends[at]):
        heights[at] = max(min(ends[at], lowest), following)
        following = heights[at] + NAME_HEIGHT
        lowest += NAME_HEIGHT
    return heights
