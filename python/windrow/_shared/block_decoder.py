"""What makes blocks of an answer's bytes, for both clients."""

from __future__ import annotations

from typing import Any, Protocol


class BlockDecoder(Protocol):
    """What is asked of a decoder; it takes its bytes out of the answer's Body."""

    def header(self) -> Any | None:
        """Names and types of the columns, once they are known."""

    def advance(self, form: int, max_rows: int) -> list[Any]:
        """Blocks made of what is there now; none if more is needed."""

    def finish(self) -> None:
        """Raises if the stream ends within a block."""
