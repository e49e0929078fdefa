"""How many memory blocks of Python are more than before, after results were read again and again. A process of its own, in which nothing
else allocates: arguments are files with results in ClickHouse's Native format, the last one of columns that arrays can hold; output is the
number of readings and the blocks."""

from __future__ import annotations

import contextlib
import gc
import struct
import sys
from pathlib import Path

from read.results import BLOCK, COLUMNS, ROWS, block_of, decoder, rows, text

from windrow._shared.frames import NumpyFrames

#: Until everything that is made once has been made: imports, zones, and what Python's cache of attributes keeps of names.
WARM_UP = 100
READINGS = 1000


def read(results: list[bytes]) -> None:
    for data in results:
        for form in (ROWS, COLUMNS, BLOCK):
            reading = decoder(data, query_formats={"UUID": "string"})
            found = reading.advance(form)
            if form == BLOCK:
                for index in range(len(found[0].names)):
                    found[0].column(index)
                    found[0].parts(index)
    NumpyFrames(found[0].names, found[0].type_names).whole(found)
    with contextlib.suppress(ValueError):
        rows(block_of(2, ("s", "String", text("a") * 2), ("t", "DateTime64(0)", struct.pack("<2q", 0, 2**62))))


def allocated() -> int:
    gc.collect()
    return sys.getallocatedblocks()


def main() -> None:
    results = [Path(path).read_bytes() for path in sys.argv[1:]]
    for _ in range(WARM_UP):
        read(results)
    before = allocated()
    for _ in range(READINGS):
        read(results)
    print(READINGS, allocated() - before)


if __name__ == "__main__":
    main()
