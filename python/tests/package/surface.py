"""The public names of clickhouse-connect, found by looking, and what stands in their place here."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from types import ModuleType
from typing import Any

import clickhouse_connect
import windrow
from windrow._shared.options import ClientOptions

#: Need packages that aren't there: Alembic and greenlet.
LEFT_OUT = ("clickhouse_connect.cc_sqlalchemy.alembic", "clickhouse_connect.cc_sqlalchemy.asyncio")


@dataclass
class Surface:
    """Where names belong: a module below the package, a class, or the arguments of a function."""

    where: str
    theirs: dict[str, Any]
    ours: dict[str, Any]


def surfaces() -> Iterator[Surface]:
    """All of them, modules first."""
    for name in modules():
        where = name.partition(".")[2] or "top"
        yield Surface(where, defined_in(importlib.import_module(name)), ours_of(name))
    for where, path in CLASSES.items():
        module, name = path.rsplit(".", 1)
        theirs = getattr(importlib.import_module(f"clickhouse_connect.{module}"), name)
        ours = getattr(importlib.import_module(f"windrow.{module}"), name)
        yield Surface(where, members(theirs), members(ours))
    yield Surface("get_client arguments", arguments("httpclient.HttpClient", "create_client"), our_arguments(windrow.get_client))
    made = arguments("asyncclient.AsyncClient", "create_async_client")
    yield Surface("get_async_client arguments", made, our_arguments(windrow.get_async_client))
    theirs = vars(importlib.import_module("clickhouse_connect.common"))["_common_settings"]
    yield Surface("common.set_setting names", dict(theirs), dict(importlib.import_module("windrow.common")._settings))


CLASSES = {
    "AsyncClient": "driver.asyncclient.AsyncClient",
    "Client": "driver.httpclient.HttpClient",
    "QueryResult": "driver.query.QueryResult",
    "NumpyResult": "driver.npquery.NumpyResult",
    "StreamContext": "driver.common.StreamContext",
    "QuerySummary": "driver.summary.QuerySummary",
    "QueryContext": "driver.query.QueryContext",
    "InsertContext": "driver.insert.InsertContext",
    "ExternalData": "driver.external.ExternalData",
    "ExternalFile": "driver.external.ExternalFile",
    "DT64Param": "driver.binding.DT64Param",
    "ClickHouseType": "datatypes.base.ClickHouseType",
    "Connection": "dbapi.Connection",
    "Cursor": "dbapi.cursor.Cursor",
}


def modules() -> list[str]:
    """The importable ones without an underscore anywhere in their names."""
    found = ["clickhouse_connect"]
    for module in pkgutil.walk_packages(clickhouse_connect.__path__, "clickhouse_connect.", onerror=lambda name: None):
        parts = module.name.split(".")
        if not any(part.startswith("_") for part in parts) and not module.name.startswith(LEFT_OUT):
            found.append(module.name)
    return found


def defined_in(module: ModuleType) -> dict[str, Any]:
    """What a program would import from there: what is defined in it, and in a package what it gathers from others."""
    return {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_") and not isinstance(value, ModuleType) and _belongs(value, module)
    }


def _belongs(value: Any, module: ModuleType) -> bool:
    home = getattr(value, "__module__", None) if inspect.isclass(value) or inspect.isroutine(value) else None
    if home is None:
        return may_be_a_constant(module) and isinstance(value, (str, int))
    gathers = hasattr(module, "__path__")
    return home == module.__name__ or (gathers and home.startswith("clickhouse_connect"))


def may_be_a_constant(module: ModuleType) -> bool:
    """PEP 249 has constants; elsewhere what is neither a class nor a function is a table behind one."""
    return module.__name__ == "clickhouse_connect.dbapi"


def ours_of(name: str) -> dict[str, Any]:
    try:
        module = importlib.import_module(name.replace("clickhouse_connect", "windrow", 1))
    except ModuleNotFoundError:
        return {}
    return {key: value for key, value in vars(module).items() if not key.startswith("_")}


def members(of: type) -> dict[str, Any]:
    """Methods and class attributes, and what methods assign to `self`."""
    found = {name: getattr(of, name) for name in dir(of) if not name.startswith("_")}
    for base in of.__mro__:
        if base.__module__.startswith(("clickhouse_connect", "windrow")):
            for name in re.findall(r"\bself\.([a-z]\w*)(?:: [^=\n]+)? = ", inspect.getsource(base)):
                found.setdefault(name, None)
    return found


def arguments(of_class: str, of_function: str) -> dict[str, Any]:
    module, name = of_class.split(".")
    client: Callable[..., Any] = getattr(importlib.import_module(f"clickhouse_connect.driver.{module}"), name)
    maker = getattr(importlib.import_module("clickhouse_connect.driver"), of_function)
    named = [*inspect.signature(client).parameters, *inspect.signature(maker).parameters]
    return {name: None for name in named if name not in ("self", "kwargs")}


def our_arguments(maker: Callable[..., Any]) -> dict[str, Any]:
    named = [*inspect.signature(maker).parameters, *(option.name for option in fields(ClientOptions))]
    return {name: None for name in named if name != "options"}
