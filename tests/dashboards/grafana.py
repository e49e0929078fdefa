"""dashboards/windrow.json, and what Grafana says a dashboard may have.

Grafana itself is in no package registry. Its types are: grafana-foundation-sdk, generated from Grafana's sources. They
decode a dashboard and leave out the fields that they don't know; values are held against what they declare.
"""

from __future__ import annotations

import copy
import enum
import json
import re
import types
import typing
import warnings
from collections.abc import Iterator, Mapping

from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from harness.paths import ROOT

with warnings.catch_warnings():
    # It asks for the second version of the format, which Grafana 11 can't read.
    warnings.simplefilter("ignore", DeprecationWarning)
    from grafana_foundation_sdk.models.dashboard import Dashboard

plugins.register_default_plugins()
PATH = ROOT / "dashboards" / "windrow.json"
TEXT = PATH.read_text()
DASHBOARD: dict = json.loads(TEXT)


def all_panels() -> Iterator[dict]:
    """Rows among them; those of a row that is folded stand inside of it."""
    for panel in DASHBOARD["panels"]:
        yield panel
        yield from panel.get("panels", [])


PANELS = [panel for panel in all_panels() if panel["type"] != "row"]
VARIABLES: dict[str, dict] = {variable["name"]: variable for variable in DASHBOARD["templating"]["list"]}
QUERIES = {f"{panel['title']} {target['refId']}": target for panel in PANELS for target in panel["targets"]}
QUERIES |= {each["name"]: each for each in DASHBOARD["annotations"]["list"] if "expr" in each}


def filled(query: str, values: Mapping[str, list[str]], window: str = "1m") -> str:
    """As Prometheus gets it: several values of a variable are alternatives of a regular expression, inside of quotation marks."""

    def chosen(found: re.Match) -> str:
        quoted = [re.escape(value).replace("\\", "\\\\") for value in values[found[1]]]
        return f"({'|'.join(quoted)})"

    return re.sub(r"\$([a-z]+)\b", chosen, re.sub(r"\$__(rate_interval|range)\b", window, query))


def faults(dashboard: dict) -> list[str]:
    """What Grafana's types don't know, or know otherwise."""
    return [*decoding_faults(dashboard, Dashboard, ""), *override_faults(dashboard)]


def override_faults(dashboard: dict) -> list[str]:
    """What an override sets is what the defaults of its panel might say as well."""
    found = []
    for row in dashboard["panels"]:
        for panel in [row, *row.get("panels", [])]:
            for override in panel.get("fieldConfig", {}).get("overrides", []):
                trial, field = copy.deepcopy(panel), {}
                for each in override["properties"]:
                    *outer, name = each["id"].split(".")
                    (field.setdefault(outer[0], {}) if outer else field)[name] = each["value"]
                trial["fieldConfig"] = {"defaults": field, "overrides": []}
                trial_faults = decoding_faults({"panels": [trial]}, Dashboard, "")
                found += [f"{panel['title']}, override of {override['matcher']['options']}: {fault}" for fault in trial_faults]
    return found


def decoding_faults(data: dict, kind: type, path: str) -> list[str]:
    decoded = kind.from_json(data)
    return [*unknown_fields(data, json.loads(JSONEncoder().encode(decoded)), path), *wrong_values(decoded, kind, path)]


def unknown_fields(given: object, known: object, path: str) -> list[str]:
    if isinstance(given, dict) and isinstance(known, dict):
        lost = [f"{path}.{name} is not known" for name in given if name not in known]
        return lost + [fault for name in given if name in known for fault in unknown_fields(given[name], known[name], f"{path}.{name}")]
    if isinstance(given, list) and isinstance(known, list) and len(given) == len(known):
        return [fault for at, pair in enumerate(zip(given, known)) for fault in unknown_fields(*pair, f"{path}[{at}]")]
    return [] if given == known else [f"{path}: {given!r} is read as {known!r}"]


def wrong_values(value: object, declared: object, path: str) -> list[str]:
    """Decoding lets any value pass: it is held against the type that its field declares."""
    if hasattr(value, "to_json"):
        fields = typing.get_type_hints(type(value))
        return [fault for name, of in fields.items() for fault in wrong_values(getattr(value, name), of, f"{path}.{name}")]
    origin, arguments = typing.get_origin(declared), typing.get_args(declared)
    if origin in (typing.Union, types.UnionType):
        each = [wrong_values(value, argument, path) for argument in arguments]
        return [] if [] in each else each[0]
    if origin is list and isinstance(value, list):
        return [fault for at, one in enumerate(value) for fault in wrong_values(one, arguments[0], f"{path}[{at}]")]
    if origin is dict and isinstance(value, dict):
        return [fault for name, one in value.items() for fault in wrong_values(one, arguments[1], f"{path}.{name}")]
    if hasattr(declared, "from_json") and isinstance(value, dict):
        return decoding_faults(value, declared, path)
    return [] if fits(value, declared) else [f"{path}: {value!r} is no {declared}"]


def fits(value: object, declared: object) -> bool:
    if typing.get_origin(declared) is typing.Literal:
        return value in typing.get_args(declared)
    if declared in (object, typing.Any):
        return True
    if not isinstance(declared, type):
        return False
    if issubclass(declared, enum.Enum):
        return value in [member.value for member in declared]
    numbers = {float: (int, float), int: int}
    return isinstance(value, numbers.get(declared, declared)) and (declared is bool or not isinstance(value, bool))
