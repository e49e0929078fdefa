"""Values that misbehave while they are read: nothing crashes or hangs; an error or the right bytes come back."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from windrow import _core, exceptions


def encodings(type_name: str, value: Any) -> list[Callable[[], object]]:
    names, types = ["a"], [type_name]
    return [
        lambda: _core.Encoder(names, types).rows([(value,)], 0, 1),
        lambda: _core.Encoder(names, types).rows([[value]], 0, 1),
        lambda: _core.Encoder(names, types).columns([[value]], 0, 1),
        lambda: _core.RowBinary(names, types).encode([(value,)]),
    ]


class Raises:
    """Whatever it is asked."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    def _fail(self, *_: Any) -> Any:
        raise RuntimeError("no")

    __int__ = __index__ = __float__ = __str__ = __bool__ = __len__ = __iter__ = __hash__ = _fail
    __repr__ = __eq__ = __getitem__ = _fail


class IntOfAnotherKind:
    def __int__(self) -> Any:
        return "five"

    __float__ = __index__ = __int__


TYPES = ["Int32", "UInt256", "Float64", "Bool", "String", "FixedString(3)", "Date", "DateTime", "DateTime64(3)", "Time"]
TYPES += ["Decimal(9, 2)", "UUID", "IPv4", "IPv6", "Enum8('a' = 1)", "Array(Int32)", "Tuple(Int32)", "Tuple(a Int32)"]
TYPES += ["Map(String, Int32)", "Nested(a Int32)", "Variant(String, Int32)", "Dynamic", "JSON", "Point"]
TYPES += ["QBit(Float32, 2)"]


@pytest.mark.parametrize("type_name", [*TYPES, *(f"Nullable({name})" for name in TYPES[:15])])
@pytest.mark.parametrize("value", [Raises(), IntOfAnotherKind()], ids=["raises", "lies"])
def test_objects_whose_methods_fail_are_refused(type_name: str, value: Any) -> None:
    takes_anything = type_name in ("Dynamic", "Bool", "Nullable(Bool)") and isinstance(value, IntOfAnotherKind)
    for encode in encodings(type_name, value):
        if takes_anything:
            assert encode()
            continue
        with pytest.raises(exceptions.DataError):
            encode()


def test_a_list_in_itself_is_read_as_deep_as_the_type() -> None:
    endless: list[Any] = []
    endless.append(endless)
    for depth in (1, 3, 50):
        for encode in encodings("Array(" * depth + "Int32" + ")" * depth, endless):
            with pytest.raises(exceptions.DataError):
                encode()
    for type_name in ("JSON", "Array(JSON)"):
        for encode in encodings(type_name, endless):
            with pytest.raises(exceptions.DataError):
                encode()


def test_deep_nesting() -> None:
    deep: Any = 5
    for _ in range(100):
        deep = [deep]
    for encode in encodings("Array(" * 100 + "Int32" + ")" * 100, deep):
        assert encode()
    document: Any = {}
    for _ in range(100_000):
        document = {"a": document}
    for encode in encodings("JSON", document):
        with pytest.raises(exceptions.DataError):
            encode()
    with pytest.raises(exceptions.DataError):
        _core.Encoder(["a"], ["Array(" * 100_000])
    while document:
        document = document.popitem()[1]


class LiesAboutLength:
    def __init__(self, says: int, has: int | None) -> None:
        self.says, self.has = says, has

    def __len__(self) -> int:
        return self.says

    def __iter__(self) -> Iterator[int]:
        given = 0
        while self.has is None or given < self.has:
            given += 1
            yield 1


@pytest.mark.parametrize(("says", "has"), [(3, None), (3, 2), (0, 1), (2**62, 1)])
def test_an_iterator_is_followed_no_further_than_its_length(says: int, has: int | None) -> None:
    value = LiesAboutLength(says, has)
    for type_name in ("Array(Int32)", "Tuple(Int32, Int32, Int32)", "QBit(Float32, 3)"):
        for encode in encodings(type_name, value):
            with pytest.raises(exceptions.DataError):
                encode()
    with pytest.raises(exceptions.DataError):
        _core.Encoder(["a", "b", "c"], ["Int32"] * 3).rows([value], 0, 1)


class Changes:
    """Changes a list while its number is asked for."""

    def __init__(self, change: Callable[[], object]) -> None:
        self.change = change

    def __int__(self) -> int:
        self.change()
        return 7

    __float__ = __index__ = __int__


def test_lists_that_change_while_they_are_read() -> None:
    encoder = _core.Encoder(["a", "b", "c"], ["Int32", "String", "Int32"])
    binary = _core.RowBinary(["a", "b", "c"], ["Int32", "String", "Int32"])
    changes: list[Callable[[list[Any], list[Any]], object]] = [
        lambda rows, row: row.clear(),
        lambda rows, row: row.pop(),
        lambda rows, row: rows.clear(),
        lambda rows, row: rows.__setitem__(slice(None), [None] * 600),
        lambda rows, row: rows.__setitem__(slice(None), [(1,)] * 600),
        lambda rows, row: (rows.clear(), row.clear()),
    ]
    for change in changes:
        for where in (0, 5, 300):
            rows: list[Any] = [[number, "text %d" % number, number] for number in range(600)]
            row = rows[where]
            row[0] = Changes(lambda rows=rows, row=row, change=change: change(rows, row))
            with pytest.raises(exceptions.DataError):
                encoder.rows(rows, 0, 600)
            row = [None, "text", 5]
            row[0] = Changes(lambda row=row, change=change: change(row, row))
            try:
                assert binary.encode([row])
            except exceptions.DataError:
                pass


def test_arrays_and_maps_that_change_while_they_are_read() -> None:
    for type_name in ("Array(Int32)", "Tuple(Int32, Int32, Int32)", "QBit(Float64, 3)"):
        values: list[Any] = [1, None, 3]
        values[1] = Changes(values.clear)
        for encode in encodings(type_name, values):
            values[:] = [1, Changes(values.clear), 3]
            with pytest.raises(exceptions.DataError):
                encode()
    mapped: dict[str, Any] = {}
    for encode in encodings("Map(String, Int32)", mapped):
        mapped.update(a=Changes(mapped.clear), b=2)
        assert encode()
        assert not mapped


def test_random_values_of_any_class_never_crash() -> None:
    """Whatever the type and whatever the value: bytes or a DataError."""
    chance = random.Random(20)
    atoms: list[Any] = [None, True, -1, 2**70, 1.5, float("nan"), "", "a", "5", "2020-01-01", b"", b"abc"]
    atoms += [(), [], {}, object()]
    types = [*TYPES, "Nullable(Int32)", "Array(Nullable(String))", "Array(Tuple(Int32, Map(String, Array(Float64))))"]

    def any_value(depth: int) -> Any:
        kind = chance.randrange(5 if depth else 2)
        if kind < 2:
            return chance.choice(atoms)
        inner = [any_value(depth - 1) for _ in range(chance.randrange(4))]
        return (inner, tuple(inner), {str(item): item for item in inner})[kind - 2]

    outcomes = {True: 0, False: 0}
    for _ in range(4000):
        type_name, value = chance.choice(types), any_value(3)
        for encode in encodings(type_name, value):
            try:
                encode()
                outcomes[True] += 1
            except exceptions.DataError:
                outcomes[False] += 1
    assert outcomes[True] > 1000 and outcomes[False] > 1000


def test_two_threads_share_an_encoder() -> None:
    import threading

    encoder = _core.Encoder(["a", "b"], ["Int32", "Array(String)"])
    rows = [(number, [str(number)] * (number % 5)) for number in range(20_000)]
    expected = encoder.rows(rows, 0, len(rows))
    results: list[bytes] = []
    threads = [
        threading.Thread(target=lambda: results.append(encoder.rows(rows, 0, len(rows), share_gil=True)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 4
