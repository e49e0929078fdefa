"""External data: files that are sent along with a query and read there as tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from windrow._shared.errors import ProgrammingError

Words = str | Sequence[str] | None
ANY_BYTES = "application/octet-stream"


class ExternalFile:
    """One file: its content, and the format and structure in which ClickHouse reads it."""

    def __init__(
        self,
        file_path: str | None = None,
        file_name: str | None = None,
        data: bytes | None = None,
        fmt: str | None = None,
        types: Words = None,
        structure: Words = None,
        mime_type: str | None = None,
    ) -> None:
        if types and structure:
            raise ProgrammingError(
                "External data takes its columns from types or from structure: leave one of them out"
            )
        if file_path and data:
            raise ProgrammingError(
                "External data is either given (data) or read from a file (file_path): leave one of them out"
            )
        if file_path:
            self.data = _content(file_path)
            self.file_name = file_name or Path(file_path).name
        elif data is not None:
            if not file_name:
                raise ProgrammingError(
                    "External data given as bytes needs a file_name: it names the table in the query"
                )
            self.data = data
            self.file_name = file_name
        else:
            raise ProgrammingError("External data is missing: give its content as data, or a file to read as file_path")
        self.name = self.file_name.rsplit(".", maxsplit=1)[0]
        self.types = _joined(types)
        self.structure = _joined(structure)
        self.fmt = fmt
        self.mime_type = mime_type or ANY_BYTES

    @property
    def form_data(self) -> tuple[str, bytes, str]:
        """The file's name, content and media type."""
        return self.file_name, self.data, self.mime_type

    @property
    def query_params(self) -> dict[str, str]:
        """What stands in the URL for this file."""
        words = (("format", self.fmt), ("structure", self.structure), ("types", self.types))
        return {f"{self.name}_{word}": value for word, value in words if value}


class ExternalData:
    """The files of one query; each is a table of its name there.

    >>> days = ExternalData(file_name="days.csv", data=b"1,Mon\\n2,Tue\\n", fmt="CSV", structure="n Int8, day String")
    >>> days.query_params
    {'days_format': 'CSV', 'days_structure': 'n Int8, day String'}
    """

    def __init__(
        self,
        file_path: str | None = None,
        file_name: str | None = None,
        data: bytes | None = None,
        fmt: str | None = None,
        types: Words = None,
        structure: Words = None,
        mime_type: str | None = None,
    ) -> None:
        self.files: list[ExternalFile] = []
        if data is not None or file_path:
            self.add_file(file_path, file_name, data, fmt, types, structure, mime_type)

    def add_file(
        self,
        file_path: str | None = None,
        file_name: str | None = None,
        data: bytes | None = None,
        fmt: str | None = None,
        types: Words = None,
        structure: Words = None,
        mime_type: str | None = None,
    ) -> None:
        """Adds another file."""
        self.files.append(ExternalFile(file_path, file_name, data, fmt, types, structure, mime_type))

    @property
    def form_data(self) -> dict[str, tuple[str, bytes, str]]:
        """The files by their names."""
        self._check()
        return {each.name: each.form_data for each in self.files}

    @property
    def query_params(self) -> dict[str, str]:
        """What stands in the URL for all files."""
        self._check()
        return {name: value for file in self.files for name, value in file.query_params.items()}

    def _check(self) -> None:
        if not self.files:
            raise ProgrammingError("There is no file in this ExternalData: add one with add_file")


def _content(file_path: str) -> bytes:
    try:
        return Path(file_path).read_bytes()
    except OSError as cause:
        raise ProgrammingError(f"The file {file_path} of external data can't be read: {cause.strerror}") from cause


def _joined(words: Words) -> str | None:
    if not words:
        return None
    return words if isinstance(words, str) else ",".join(words)
