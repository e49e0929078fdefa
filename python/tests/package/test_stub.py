"""`_core.pyi` says of the compiled module what it has: every name, every method, every parameter's name, kind and default."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from types import ModuleType

import pytest

import windrow
from windrow import _core

STUB = ast.parse((Path(windrow.__file__).parent / "_core.pyi").read_text())
Function = ast.FunctionDef | ast.AsyncFunctionDef
CLASSES = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}
# Ordinary dunders may be left out of a stub; those that make a protocol may not.
IMPLIED = set(dir(object)) | {"__module__", "__weakref__", "__dict__", "__new__", "__doc__", "__text_signature__"}
IMPLIED |= {"__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__", "__hash__", "__repr__", "__str__", "__int__"}


def is_type_only(node: ast.stmt) -> bool:
    """Type variables, aliases and protocols stand for nothing in the binary."""
    if isinstance(node, ast.ClassDef):
        return any(isinstance(base, ast.Name) and base.id in ("Protocol", "TypedDict", "NamedTuple") for base in node.bases)
    if isinstance(node, ast.AnnAssign):
        return isinstance(node.annotation, ast.Name) and node.annotation.id == "TypeAlias"
    return isinstance(node, ast.Assign)


def names_in(body: list[ast.stmt]) -> set[str]:
    found = set()
    for node in body:
        if is_type_only(node):
            continue
        if isinstance(node, ast.ClassDef | Function):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return found


def declared_functions() -> list[tuple[str, str, Function]]:
    found = [("", node.name, node) for node in STUB.body if isinstance(node, Function)]
    for name, node in CLASSES.items():
        if not is_type_only(node):
            found += [(name, member.name, member) for member in node.body if isinstance(member, Function)]
    return [(owner, name, node) for owner, name, node in found if not is_property(node)]


def is_property(node: Function) -> bool:
    return any(ast.unparse(mark) == "property" or ast.unparse(mark).endswith(".setter") for mark in node.decorator_list)


def public(names: list[str]) -> set[str]:
    return {name for name in names if not name.startswith("_")}


def test_the_stub_has_the_modules_names() -> None:
    private = {"__version__"}
    assert names_in(STUB.body) - private == public(dir(_core))


@pytest.mark.parametrize("name", sorted(name for name, node in CLASSES.items() if not is_type_only(node)))
def test_the_stub_has_a_classes_names(name: str) -> None:
    declared = names_in(CLASSES[name].body)
    real = getattr(_core, name)
    own = {member for member in vars(real) if member not in IMPLIED}
    missing = {member for member in declared if not hasattr(real, member)}
    assert not missing, f"declared, but not in the binary: {missing}"
    inherited = {member for base in real.__mro__[1:] if base is not object for member in vars(base)}
    assert own - declared - inherited == set(), "in the binary, but not declared"


def stub_parameters(node: Function, of_class: bool) -> list[tuple[str, str, bool]]:
    """Name, kind and whether it has a default."""
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    without_default = len(positional) - len(arguments.defaults)
    found = [
        (parameter.arg, "positional", index >= without_default)
        for index, parameter in enumerate(positional)
        if not (of_class and index == 0)
    ]
    found += [(arguments.vararg.arg, "varargs", False)] if arguments.vararg else []
    pairs = zip(arguments.kwonlyargs, arguments.kw_defaults)
    return found + [(parameter.arg, "keyword", default is not None) for parameter, default in pairs]


def real_parameters(callable_: object) -> list[tuple[str, str, bool]]:
    kinds = {
        inspect.Parameter.POSITIONAL_ONLY: "positional",
        inspect.Parameter.POSITIONAL_OR_KEYWORD: "positional",
        inspect.Parameter.VAR_POSITIONAL: "varargs",
        inspect.Parameter.KEYWORD_ONLY: "keyword",
        inspect.Parameter.VAR_KEYWORD: "keywords",
    }
    parameters = inspect.signature(callable_).parameters.values()
    return [
        (parameter.name, kinds[parameter.kind], parameter.default is not inspect.Parameter.empty)
        for parameter in parameters
        if parameter.name not in ("self", "cls", "$self")
    ]


@pytest.mark.parametrize(("owner", "name", "node"), declared_functions(), ids=lambda value: value if isinstance(value, str) else "")
def test_a_signature_is_the_binarys(owner: str, name: str, node: Function) -> None:
    holder: ModuleType | type = getattr(_core, owner) if owner else _core
    target = holder if name in ("__init__", "__new__") else getattr(holder, name)
    if target.__text_signature__ is None or (name.startswith("__") and target is not holder):
        # Slots have no names of their own.
        assert name.startswith("__"), f"{owner}.{name} has no signature"
        return
    static = any(ast.unparse(mark) == "staticmethod" for mark in node.decorator_list)
    assert stub_parameters(node, bool(owner) and not static) == real_parameters(target)
