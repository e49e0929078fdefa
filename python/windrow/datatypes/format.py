"""In which form values are read and written, for every query of the process.

>>> from windrow.datatypes import format
>>> format.set_read_format("UUID", "string")
>>> format.clear_all_formats()
"""

from windrow._shared.formats import (
    clear_all_formats,
    clear_default_format,
    clear_read_format,
    clear_write_format,
    set_default_formats,
    set_read_format,
    set_write_format,
)

__all__ = [
    "clear_all_formats",
    "clear_default_format",
    "clear_read_format",
    "clear_write_format",
    "set_default_formats",
    "set_read_format",
    "set_write_format",
]
