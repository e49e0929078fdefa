"""The decoder's behaviour whatever the bytes are: cut, damaged, in pieces; and what it leaves behind."""

from __future__ import annotations

import gc
import os
import random
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from read import expressions
from read.results import BLOCK, COLUMNS, ROWS, block_of, decoder, native, options, rows, text

from windrow._core import Body, Decoder
from windrow._shared.frames import PandasFrames
from windrow.exceptions import NotSupportedError, StreamFailureError

EVERYTHING = [
    *expressions.SCALARS,
    *map(expressions.nullable, expressions.SCALARS),
    *expressions.LOW_CARDINALITY,
    *expressions.CONTAINERS,
    *expressions.OF_MANY_TYPES,
    *expressions.DOCUMENTS,
    *expressions.VECTORS,
]


@pytest.fixture(scope="module")
def everything(engine: Any) -> bytes:
    named = ", ".join(f"{expression} AS c{at}" for at, expression in enumerate(EVERYTHING))
    return native(engine.direct, f"SELECT {named} FROM numbers(3)")


def test_pieces_of_any_size_give_the_same(everything: bytes) -> None:
    whole = repr(rows(everything))
    chance = random.Random(30)
    for _ in range(20):
        body = Body.of_bytes(everything)
        reading = Decoder(body, options())
        found: list[Any] = []
        for block in reading.advance(ROWS, chance.choice([0, 1, 2, 5])):
            found += block
        reading.finish()
        assert repr(found) == whole


def test_every_truncation_is_told(everything: bytes) -> None:
    step = max(1, len(everything) // 400)
    for end in [*range(1, len(everything), step), len(everything) - 1]:
        reading = decoder(everything[:end])
        assert reading.advance(ROWS) == []
        with pytest.raises(StreamFailureError, match="ends inside a block"):
            reading.finish()


def test_damaged_bytes_give_values_or_an_error(everything: bytes) -> None:
    chance = random.Random(31)
    for _ in range(400):
        damaged = bytearray(everything)
        for _ in range(chance.choice([1, 2, 8])):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        for form in (ROWS, COLUMNS, BLOCK):
            reading = decoder(bytes(damaged))
            try:
                found = reading.advance(form)
                names = reading.header()
                if form == BLOCK and found and names:
                    PandasFrames(*names).whole(found)
            except Exception as error:  # noqa: BLE001 - anything that Python can tell is fine
                assert type(error).__name__ != "PanicException", error


def test_an_error_comes_after_the_whole_blocks_before_it(engine: Any) -> None:
    data = native(engine.direct, "SELECT number FROM numbers(10)")
    reading = decoder(data + b"\xff" * 40)
    assert reading.advance(ROWS) == [[(number,) for number in range(10)]]
    for _ in range(2):
        with pytest.raises(StreamFailureError):
            reading.advance(ROWS)


def test_a_type_without_values_says_which_column() -> None:
    data = block_of(1, ("sums", "AggregateFunction(sum, UInt64)", b"\0" * 8))
    with pytest.raises(NotSupportedError, match="sums.*AggregateFunction"):
        rows(data)


def test_no_result_has_no_header() -> None:
    reading = decoder(b"")
    assert reading.advance(ROWS) == []
    assert reading.header() is None
    reading.finish()


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(ValueError, match="form"):
        decoder(b"").advance(3)


def test_an_unknown_encoding_is_told() -> None:
    data = block_of(1, ("x", "String", text("a")))
    with pytest.raises(LookupError, match="no-such-encoding"):
        rows(data, encoding="no-such-encoding")


def test_rows_of_plain_values_are_nothing_to_the_garbage_collector(engine: Any) -> None:
    data = native(engine.direct, "SELECT number, 'a', generateUUIDv4(), [1] FROM numbers(5)")
    for row in rows(data):
        assert gc.is_tracked(row)
    data = native(engine.direct, "SELECT number, 'a', NULL, now(), toIPv4('1.2.3.4'), (1, 'b') FROM numbers(5)")
    for row in rows(data):
        assert not any(gc.is_tracked(value) for value in (row, *row))


def test_nothing_is_left_behind(engine: Any, everything: bytes, tmp_path: Path) -> None:
    """References given away twice crash; references kept for good show in the number of allocated blocks."""
    flat = native(engine.direct, "SELECT number, toString(number), [1], if(number = 1, NULL, number) FROM numbers(3)")
    files = [tmp_path / "everything", tmp_path / "flat"]
    for file, data in zip(files, (everything, flat), strict=True):
        file.write_bytes(data)
    program = Path(__file__).parent / "left_behind.py"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    ran = subprocess.run([sys.executable, str(program), *map(str, files)], capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr
    readings, blocks = map(int, ran.stdout.split())
    # One object that each reading left behind would be a block, or several.
    assert blocks < readings / 2


def test_the_interpreter_is_shared_while_rows_are_made(engine: Any) -> None:
    """With turns that never end by themselves, others only run if the decoder steps back, which it does on a worker."""
    data = native(engine.direct, "SELECT number, toString(number), [number, 1] FROM numbers(200000)")
    started, steps, stopped = threading.Event(), [0], threading.Event()

    def count() -> None:
        started.set()
        while not stopped.is_set():
            steps[0] += 1
            stopped.wait(0.0001)

    counting = threading.Thread(target=count)
    counting.start()
    started.wait()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        before = steps[0]
        reading = decoder(data)
        found: list[Any] = []
        worker = threading.Thread(target=lambda: found.extend(reading.advance(ROWS)))
        worker.start()
        worker.join()
        assert sum(map(len, found)) == 200000
        assert steps[0] > before + 10
    finally:
        sys.setswitchinterval(interval)
        stopped.set()
        counting.join()


def test_a_second_thread_is_refused(engine: Any) -> None:
    data = native(engine.direct, "SELECT number, toString(number) FROM numbers(500000)")
    reading = decoder(data)
    errors: list[str] = []
    stopped = threading.Event()

    def interfere() -> None:
        while not stopped.is_set():
            try:
                reading.finish()
            except RuntimeError as error:
                errors.append(str(error))
            except StreamFailureError:
                pass

    interfering = threading.Thread(target=interfere)
    interfering.start()
    while not errors:
        try:
            found = reading.advance(ROWS)
        except RuntimeError:
            continue
        if not found:
            reading = decoder(data)
    stopped.set()
    interfering.join()
    assert errors[0] == "the decoder is in use by another thread"
