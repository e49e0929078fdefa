"""dashboards/windrow.json as a file: Grafana can read it, and so can everybody who looks at it."""

from __future__ import annotations

import copy
import itertools
import json
import re
from collections.abc import Iterator

import pytest
from grafana_foundation_sdk.models import units

from dashboards.grafana import DASHBOARD, PANELS, QUERIES, TEXT, VARIABLES, all_panels, faults
from harness.paths import ROOT

# In the order in which Windrow's own dashboard answers (docs/dashboard.md).
ROWS = (
    "Are rows arriving?",
    "Are they safe?",
    "Are they in the database?",
    "What is refused, or waits?",
    "Kafka",
    "OpenTelemetry",
    "Appends and Flight SQL",
    "Backend",
    "Process",
)
# By Okabe and Ito, without yellow and black, which are not seen on one of the backgrounds. Shades of one colour differ in lightness.
COLOURS = {"#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7"}
COLOUR_MODES = {"fixed", "shades", "thresholds"}
UNITS = {value for name, value in vars(units).items() if isinstance(value, str) and not name.startswith("_")}
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
DOCS = ("operations.md", "dead-letters.md", "kafka-latency.md", "otlp.md")
SUFFIX = re.compile(r"_(bucket|sum|count)$")


def everything(value: object) -> Iterator[dict]:
    """Each object of the dashboard, at any depth."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from everything(inner)


def test_grafana_knows_every_field_and_value() -> None:
    assert not faults(DASHBOARD)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("refresh",), 10, "refresh: 10"),
        (("panel", "decription"), "", "decription is not known"),
        (("panel", "fieldConfig", "defaults", "custom", "lineWidth"), "1", "line_width: '1'"),
        (("panel", "fieldConfig", "overrides", 0, "properties", 0, "value", "mode"), "shade", "mode: 'shade'"),
        (("panel", "options", "legend", "displayMode"), "lists", "display_mode: 'lists'"),
        (("panel", "targets", 0, "query"), "up", "query is not known"),
    ],
)
def test_a_mistake_would_be_found(path: tuple, value: object, said: str) -> None:
    wrong = copy.deepcopy(DASHBOARD)
    place = next(panel for panel in wrong["panels"] if panel["title"] == "Journal on the disk") if path[0] == "panel" else wrong
    for name in path[1:-1]:
        place = place[name]
    place[path[-1]] = value
    assert any(said in fault for fault in faults(wrong)), faults(wrong)


def test_the_file_is_in_order() -> None:
    """So that a difference between two versions shows what was changed."""
    assert TEXT == json.dumps(DASHBOARD, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    assert [panel["id"] for panel in all_panels()] == list(range(1, len(list(all_panels())) + 1))
    assert tuple(panel["title"] for panel in all_panels() if panel["type"] == "row") == ROWS


def test_it_is_found_again() -> None:
    assert (DASHBOARD["uid"], DASHBOARD["refresh"]) == ("windrow", "10s")
    assert "id" not in DASHBOARD and "__inputs" not in DASHBOARD, "Grafana's own provisioning doesn't fill them in"


def test_no_panel_covers_another() -> None:
    # As they lie when everything is unfolded.
    for siblings in (DASHBOARD["panels"], *(panel["panels"] for panel in DASHBOARD["panels"] if panel["type"] == "row")):
        for one, other in itertools.combinations((panel["gridPos"] for panel in siblings), 2):
            beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
            assert beside or one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"], (one, other)
        assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in siblings)


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_each_panel_says_what_it_shows(panel: dict) -> None:
    assert panel["description"].endswith(".") and len(panel["description"]) < 300
    assert panel["fieldConfig"]["defaults"]["unit"] in UNITS and "color" in panel["fieldConfig"]["defaults"]
    assert [target["refId"] for target in panel["targets"]] == list("ABCDEFGHIJ"[: len(panel["targets"])])


def test_whoever_confuses_colours_sees_them() -> None:
    for each in everything(DASHBOARD):
        for name in ("fixedColor", "iconColor", "color"):
            colour = each.get(name)
            assert not isinstance(colour, str) or colour in COLOURS, each
        if {"mode"} <= each.keys() <= {"mode", "fixedColor"} and "steps" not in each:
            assert each["mode"] in COLOUR_MODES, each


def test_every_query_asks_the_chosen_source_for_the_chosen_gateways() -> None:
    sources = [each["datasource"] for each in everything(DASHBOARD) if "expr" in each or "targets" in each]
    assert sources and all(source == SOURCE for source in sources)
    for name, query in QUERIES.items():
        selectors = re.findall(r"\b(?:windrow|process)_\w+(\{.*?\})?", query["expr"])
        chosen = '{job=~"$job", instance=~"$instance"'
        assert selectors and all(selector.startswith(chosen) for selector in selectors), name
        used = set(re.findall(r"\$(\w+)", query["expr"])) - {"__rate_interval", "__range"}
        assert used <= VARIABLES.keys(), name
        # A fixed window shows nothing where Prometheus reads less often.
        assert set(re.findall(r"\[(.*?)\]", query["expr"])) <= {"$__rate_interval", "$__range"}, name


def test_the_metrics_are_documented() -> None:
    documented = set(re.findall(r"`((?:windrow|process)_\w+)`", "".join((ROOT / "docs" / page).read_text() for page in DOCS)))
    used = {name for query in QUERIES.values() for name in re.findall(r"\b(?:windrow|process)_\w+", query["expr"])}
    unknown = {name for name in used if not {name, SUFFIX.sub("", name)} & documented}
    assert not unknown
